//! HTTP servers: their sockets, and the one thread that they run on.
//!
//! Anybody who reaches the node can open connections to the health server, so each of them is bounded in
//! time: until the header of its first request, for each exchange, and until the next request, which load
//! balancers send every few seconds. Their number is bounded in [`Connections`].

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use http_body_util::Full;
use hyper::Request;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONNECTION, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use socket2::{Domain, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

use super::Answer;
use super::connections::Connections;
use crate::Visible;

/// The address of a server: an IP address with or without a port, or none.
///
/// As in kube-proxy's flags, the port has a default, and an empty string disables the server.
///
/// ```
/// use sluicegate_proxier::serve::BindAddress;
///
/// let at = |text: &str| text.parse::<BindAddress>().unwrap().socket(10256).map(|at| at.to_string());
/// assert_eq!(at("0.0.0.0").as_deref(), Some("0.0.0.0:10256"));
/// assert_eq!(at("[::1]:80").as_deref(), Some("[::1]:80"));
/// assert_eq!(at(""), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BindAddress(Option<(IpAddr, Option<u16>)>);

impl BindAddress {
    /// The value that starts no server.
    pub const NOWHERE: Self = Self(None);

    /// Returns the address of this IP address and port.
    #[must_use]
    pub const fn new(ip: IpAddr, port: u16) -> Self {
        Self(Some((ip, Some(port))))
    }

    /// Returns the same address with another port, 0 for no server.
    #[must_use]
    pub fn with_port(self, port: u16) -> Self {
        Self(self.0.filter(|_| port != 0).map(|(ip, _)| (ip, Some(port))))
    }

    /// Returns the socket address. `None` for no server.
    #[must_use]
    pub fn socket(&self, default_port: u16) -> Option<SocketAddr> {
        self.0.map(|(ip, port)| SocketAddr::new(ip, port.unwrap_or(default_port)))
    }
}

impl FromStr for BindAddress {
    type Err = BindAddressError;

    fn from_str(text: &str) -> Result<Self, BindAddressError> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(Self::NOWHERE);
        }
        if let Ok(address) = text.parse::<SocketAddr>() {
            return Ok(Self::new(address.ip(), address.port()));
        }
        let ip = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
        match ip.parse() {
            Ok(ip) => Ok(Self(Some((ip, None)))),
            Err(_) => Err(BindAddressError { found: text.to_owned() }),
        }
    }
}

/// A text that is not an address of a server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected an IP address with or without a port (0.0.0.0:10256, [::]:10256, 127.0.0.1), found \"{}\"",
    Visible(.found).clipped()
)]
#[non_exhaustive]
pub struct BindAddressError {
    /// The text.
    pub found: String,
}

/// Why a server cannot be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A server cannot listen on its address.
    #[error("{server} cannot listen on {address}: {source}")]
    Listen {
        /// The server: `/healthz`, `/metrics`, or the health check of a service.
        server: String,
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The thread that all servers run on cannot be started.
    #[error("starting the thread of the HTTP servers: {0}")]
    Thread(
        /// What the system said.
        io::Error,
    ),
}

impl Error {
    /// Returns true when another program, or another server of this one, uses the port.
    #[must_use]
    pub fn is_in_use(&self) -> bool {
        matches!(self, Self::Listen { source, .. } if source.kind() == io::ErrorKind::AddrInUse)
    }
}

/// A function that returns the response to a request, at once or when another thread has it.
pub(super) type Handler = Arc<dyn Fn(&Request<()>) -> Reply + Send + Sync>;

/// The response to a request.
#[derive(Debug)]
pub(super) enum Reply {
    /// It is known.
    Now(Answer),
    /// Another thread sends it. Meanwhile other requests are answered.
    Later(oneshot::Receiver<Answer>),
}

impl From<Answer> for Reply {
    fn from(answer: Answer) -> Self {
        Self::Now(answer)
    }
}

/// A thread that servers run on. All of them end with it.
#[derive(Debug)]
pub(super) struct Server {
    handle: Handle,
    connections: Connections,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts the thread, in the network namespace of the calling thread.
    pub(super) fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new().name("http".to_owned()).spawn(move || {
            // It ends when the sender sends, or is dropped.
            let _ = runtime.block_on(stopped);
        })?;
        Ok(Self { handle, connections: Connections::default(), stop: Some(stop), thread: Some(thread) })
    }

    /// Starts a server. Fails when it cannot listen.
    pub(super) fn listen(
        &self,
        server: &str,
        address: SocketAddr,
        handler: Handler,
    ) -> Result<Listening, Error> {
        let failed = |source| Error::Listen { server: server.to_owned(), address, source };
        let _guard = self.handle.enter();
        let (listener, local) = bind(address).map_err(failed)?;
        let (closing, closed) = mpsc::channel();
        let open = Open { listener, _closing: closing };
        let task = self.handle.spawn(accept(open, self.connections.clone(), handler));
        Ok(Listening { address: Arc::new(local.into()), task: task.abort_handle(), closed })
    }

    /// Starts a server, and retries `every` so often when it cannot listen. `report` gets each error that
    /// differs from the one before, and the address when the server listens at last.
    pub(super) fn listen_with_retries(
        &self,
        server: &str,
        address: SocketAddr,
        every: Duration,
        handler: Handler,
        report: impl Fn(Result<SocketAddr, Error>) + Send + 'static,
    ) -> Listening {
        let error = match self.listen(server, address, Arc::clone(&handler)) {
            Ok(listening) => return listening,
            Err(error) => error,
        };
        let mut last = error.to_string();
        report(Err(error));
        let (closing, closed) = mpsc::channel();
        let (server, place) = (server.to_owned(), Arc::new(OnceLock::new()));
        let known = Arc::clone(&place);
        let connections = self.connections.clone();
        let task = self.handle.spawn(async move {
            let (listener, local) = loop {
                tokio::time::sleep(every).await;
                match bind(address) {
                    Ok(bound) => break bound,
                    Err(source) => {
                        let error = Error::Listen { server: server.clone(), address, source };
                        let text = error.to_string();
                        if text != last {
                            last = text;
                            report(Err(error));
                        }
                    }
                }
            };
            report(Ok(local));
            // It is set here only.
            let _ = known.set(local);
            accept(Open { listener, _closing: closing }, connections, handler).await;
        });
        Listening { address: place, task: task.abort_handle(), closed }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // The panic hook has reported a panic of the thread already.
            let _ = thread.join();
        }
    }
}

/// A running server. Dropping it closes its port and its connections.
#[derive(Debug)]
pub(super) struct Listening {
    address: Arc<OnceLock<SocketAddr>>,
    task: AbortHandle,
    closed: mpsc::Receiver<()>,
}

impl Listening {
    /// Returns the address, with the port that the kernel chose. `None` until the server listens.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        self.address.get().copied()
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.task.abort();
        // Nothing is ever sent: this returns when the other end is dropped, right after the listener.
        let _ = self.closed.recv();
    }
}

/// A listener, and a sender that is dropped after it, which shows that it is closed: fields are dropped in
/// order.
#[derive(Debug)]
struct Open {
    listener: TcpListener,
    _closing: mpsc::Sender<()>,
}

/// Binds a listener. Must be called inside the runtime.
fn bind(address: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM.nonblocking(), None)?;
    if address.is_ipv6() {
        // `::` and `0.0.0.0` are two servers with one port, whatever net.ipv6.bindv6only says.
        socket.set_only_v6(true)?;
    }
    // Connections of a server that ended before would block the port otherwise.
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    let listener = TcpListener::from_std(socket.into())?;
    let local = listener.local_addr()?;
    Ok((listener, local))
}

async fn accept(open: Open, places: Connections, handler: Handler) {
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        match open.listener.accept().await {
            Ok((stream, peer)) => {
                let place = places.admit(peer.ip());
                let number = place.number();
                let handler = Arc::clone(&handler);
                let task = connections.spawn(async move {
                    // Free again when the connection ends or is closed.
                    let _place = place;
                    // Errors of clients, and that they were too slow, are not reported.
                    let _ = serve(stream, handler).await;
                });
                places.set_task(number, task);
                // The connection's turn comes before that of the next, which may close it: if its request is
                // here already, it is answered.
                tokio::task::yield_now().await;
            }
            // No descriptor is left, or the connection was closed already: later ones may succeed.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

/// Answers the requests of a connection, until it takes too long.
async fn serve(stream: TcpStream, handler: Handler) -> hyper::Result<()> {
    let deadline = Deadline::new();
    let service = service_fn(|request: Request<Incoming>| {
        deadline.set(EXCHANGE);
        let reply = handler(&request.map(drop));
        let deadline = &deadline;
        async move {
            let mut answer = match reply {
                Reply::Now(answer) => answer,
                Reply::Later(answer) => answer.await.unwrap_or_else(|_| unavailable()),
            };
            if answer.body().len() <= SMALL {
                deadline.set(IDLE);
            } else {
                // Whether the client reads it is seen at the end of the connection alone.
                answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, std::convert::Infallible>(answer.map(|body| Full::new(Bytes::from(body))))
        }
    });
    let mut server = http1::Builder::new();
    // Its time for a header would count from the last answer on as well.
    server.header_read_timeout(None).max_buf_size(BUFFER);
    let mut connection = std::pin::pin!(server.serve_connection(TokioIo::new(stream), service));
    loop {
        let until = deadline.get();
        tokio::select! {
            ended = &mut connection => return ended,
            () = tokio::time::sleep_until(until) => if deadline.get() <= until {
                return Ok(());
            },
        }
    }
}

/// When a connection is closed, unless something happens there before.
struct Deadline(Mutex<Instant>);

impl Deadline {
    fn new() -> Self {
        Self(Mutex::new(Instant::now() + HEADER))
    }

    fn set(&self, after: Duration) {
        *self.lock() = Instant::now() + after;
    }

    fn get(&self) -> Instant {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, Instant> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the response where the thread that should have one has ended.
fn unavailable() -> Answer {
    super::answer(503, super::PLAIN, "the proxier is stopping\n".to_owned())
}

/// The length of the queue of connections that are not accepted yet, which the kernel bounds by
/// net.core.somaxconn: in a full one the kernel drops the first packet of a client, who tries again a second
/// later.
const BACKLOG: i32 = 4096;
/// The longest time until the header of the first request.
const HEADER: Duration = Duration::from_secs(5);
/// The longest time for a request and its response, so that a client that does not read cannot keep its
/// place.
const EXCHANGE: Duration = Duration::from_secs(10);
/// The longest time from an answer to the whole header of the next request. Load balancers ask at least once a
/// minute; Go's clients keep a connection for 90 s.
const IDLE: Duration = Duration::from_secs(100);
/// The most bytes of a body that is sent whether the client reads or not: they fit into the socket's buffer.
const SMALL: usize = 4 << 10;
/// The most bytes of a header.
const BUFFER: usize = 16 << 10;

#[cfg(test)]
mod tests;
