//! HTTP servers: sockets, one thread for all of them, and what a server answers with.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::sync::{Arc, OnceLock, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use socket2::{Domain, Socket, Type};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, JoinSet};

use super::Answer;

/// Where a server listens: an address and a port, or nowhere.
///
/// As for kube-proxy's flags, an address alone takes the server's usual port, and an empty text means no server.
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
    /// No server.
    pub const NOWHERE: Self = Self(None);

    /// This address and port.
    #[must_use]
    pub const fn new(ip: IpAddr, port: u16) -> Self {
        Self(Some((ip, Some(port))))
    }

    /// The socket's address; `None` for no server.
    #[must_use]
    pub fn socket(&self, usual_port: u16) -> Option<SocketAddr> {
        self.0.map(|(ip, port)| SocketAddr::new(ip, port.unwrap_or(usual_port)))
    }
}

impl FromStr for BindAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
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
            Err(_) => {
                Err("not an IP address with or without a port (0.0.0.0:10256, [::]:10256, 127.0.0.1)"
                    .to_owned())
            }
        }
    }
}

/// Why a server does not listen.
#[derive(Debug, thiserror::Error)]
#[error("{what} cannot listen on {address}: {source}")]
pub struct ServeError {
    /// Which server: `/healthz`, or the health check of a service.
    pub what: String,
    /// Where it was to listen.
    pub address: SocketAddr,
    /// What the system said.
    pub source: io::Error,
}

impl ServeError {
    /// True when another program, or another server of this one, has the port.
    #[must_use]
    pub fn is_in_use(&self) -> bool {
        self.source.kind() == io::ErrorKind::AddrInUse
    }
}

/// What a server answers to a request for a path.
pub(super) type Handler = Arc<dyn Fn(&Request<()>) -> Answer + Send + Sync>;

/// A thread on which servers run. All of them end with it.
#[derive(Debug)]
pub(super) struct Server {
    handle: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts the thread, in the network namespace of the calling one.
    pub(super) fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new().name("http".to_owned()).spawn(move || {
            // Told to stop or dropped: it ends either way.
            let _ = runtime.block_on(stopped);
        })?;
        Ok(Self { handle, stop: Some(stop), thread: Some(thread) })
    }

    /// Listens, and answers what comes in. What goes wrong here is known on return.
    pub(super) fn listen(
        &self,
        what: &str,
        address: SocketAddr,
        handler: Handler,
    ) -> Result<Listening, ServeError> {
        let failed = |source| ServeError { what: what.to_owned(), address, source };
        let _guard = self.handle.enter();
        let (listener, local) = bind(address).map_err(failed)?;
        let (closing, closed) = mpsc::channel();
        let open = Open { listener, _closing: closing };
        let task = self.handle.spawn(accept(open, handler));
        Ok(Listening { address: Arc::new(local.into()), task: task.abort_handle(), closed })
    }

    /// The same, but where it cannot listen it tries again and again, `every` so often. `told` is given each error that is another
    /// than the one before, and then nothing when it listens at last.
    pub(super) fn listen_some_time(
        &self,
        what: &str,
        address: SocketAddr,
        every: Duration,
        handler: Handler,
        told: impl Fn(Result<SocketAddr, ServeError>) + Send + 'static,
    ) -> Listening {
        let error = match self.listen(what, address, Arc::clone(&handler)) {
            Ok(listening) => return listening,
            Err(error) => error,
        };
        let mut said = error.to_string();
        told(Err(error));
        let (closing, closed) = mpsc::channel();
        let (what, place) = (what.to_owned(), Arc::new(OnceLock::new()));
        let known = Arc::clone(&place);
        let task = self.handle.spawn(async move {
            let (listener, local) = loop {
                tokio::time::sleep(every).await;
                match bind(address) {
                    Ok(bound) => break bound,
                    Err(source) => {
                        let error = ServeError { what: what.clone(), address, source };
                        let text = error.to_string();
                        if text != said {
                            said = text;
                            told(Err(error));
                        }
                    }
                }
            };
            told(Ok(local));
            // Nobody else sets it.
            let _ = known.set(local);
            accept(Open { listener, _closing: closing }, handler).await;
        });
        Listening { address: place, task: task.abort_handle(), closed }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic there was reported there; nothing is left to do about it.
            let _ = thread.join();
        }
    }
}

/// A server that listens until this is dropped. Then its port is free and its connections are closed.
#[derive(Debug)]
pub(super) struct Listening {
    address: Arc<OnceLock<SocketAddr>>,
    task: AbortHandle,
    closed: mpsc::Receiver<()>,
}

impl Listening {
    /// Where: with the port that the kernel chose, if it was to. None as long as it could not listen.
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

/// A listener, and what tells that it is closed: fields are dropped in this order.
#[derive(Debug)]
struct Open {
    listener: TcpListener,
    _closing: mpsc::Sender<()>,
}

/// A listener and where it listens; to be called on the runtime.
fn bind(address: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM.nonblocking(), None)?;
    if address.is_ipv6() {
        // `::` and `0.0.0.0` are two servers with one port, whatever net.ipv6.bindv6only says.
        socket.set_only_v6(true)?;
    }
    // Connections of a server that has just ended must not keep the next one from its port.
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    let listener = TcpListener::from_std(socket.into())?;
    let local = listener.local_addr()?;
    Ok((listener, local))
}

async fn accept(open: Open, handler: Handler) {
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        if connections.len() >= MAX_CONNECTIONS {
            connections.join_next().await;
        }
        match open.listener.accept().await {
            Ok((stream, _)) => {
                let handler = Arc::clone(&handler);
                connections.spawn(async move {
                    let service = service_fn(move |request: Request<Incoming>| {
                        let answer = respond(&handler, request);
                        async { Ok::<_, std::convert::Infallible>(answer) }
                    });
                    let mut server = http1::Builder::new();
                    server.timer(TokioTimer::new()).header_read_timeout(PATIENCE);
                    // A client that breaks off or speaks no HTTP is its own problem.
                    let _ = server.serve_connection(TokioIo::new(stream), service).await;
                });
            }
            // No descriptor left, or a connection that was gone at once: others may do better soon.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

fn respond(handler: &Handler, request: Request<Incoming>) -> Response<Full<Bytes>> {
    handler(&request.map(drop)).map(|body| Full::new(Bytes::from(body)))
}

/// Connections of one server at a time; more wait in the backlog.
const MAX_CONNECTIONS: usize = 256;
const BACKLOG: i32 = 128;
/// A connection that sends no request for so long is closed.
const PATIENCE: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{Ipv4Addr, TcpStream};

    use super::*;

    fn ask(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    fn echo() -> Handler {
        Arc::new(|request| super::super::answer(200, super::super::PLAIN, request.uri().path().to_owned()))
    }

    /// At once, but for another test of this process that is starting a program: that holds a copy of every descriptor until it runs.
    fn soon(holds: impl Fn() -> bool) {
        let end = std::time::Instant::now() + Duration::from_secs(10);
        while !holds() {
            assert!(std::time::Instant::now() < end, "it never comes true");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn loopback(port: u16) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, port).into()
    }

    #[test]
    fn a_port_is_free_when_its_server_is_dropped() {
        testns::netns(|| {
            let server = Server::start().unwrap();
            let first = server.listen("first", loopback(0), echo()).unwrap();
            let address = first.address().unwrap();
            assert!(ask(address, "GET /a HTTP/1.0\r\n\r\n").ends_with("\r\n\r\n/a"));
            let kept = TcpStream::connect(address).unwrap();
            let second = server.listen("second", address, echo()).unwrap_err();
            assert!(second.is_in_use());
            assert_eq!(
                second.to_string(),
                format!("second cannot listen on {address}: Address already in use (os error 98)")
            );
            for _ in 0..100 {
                let again = server.listen("first", loopback(0), echo()).unwrap();
                let address = again.address().unwrap();
                drop(again);
                soon(|| server.listen("next", address, echo()).is_ok());
            }
            drop(first);
            soon(|| TcpStream::connect(address).is_err());
            let mut rest = Vec::new();
            // Closed in order or reset: closed it must be.
            let _ = (&kept).read_to_end(&mut rest);
            assert!(rest.is_empty());
        });
    }

    #[test]
    fn a_taken_port_is_tried_again_until_it_is_free() {
        testns::netns(|| {
            let server = Server::start().unwrap();
            let taken = std::net::TcpListener::bind(loopback(0)).unwrap();
            let address = taken.local_addr().unwrap();
            let (told, heard) = mpsc::channel();
            let told = move |said: Result<SocketAddr, ServeError>| {
                told.send(said.map_err(|error| error.is_in_use())).unwrap();
            };
            let every = Duration::from_millis(1);
            let listening = server.listen_some_time("server", address, every, echo(), told);
            assert_eq!(heard.recv(), Ok(Err(true)));
            assert_eq!(listening.address(), None);
            std::thread::sleep(Duration::from_millis(20));
            assert!(heard.try_recv().is_err(), "the same is told once");
            drop(taken);
            assert_eq!(heard.recv(), Ok(Ok(address)));
            assert!(ask(address, "GET /a HTTP/1.0\r\n\r\n").ends_with("/a"));
            assert_eq!(listening.address(), Some(address));

            let taken = std::net::TcpListener::bind(loopback(0)).unwrap();
            let waiting =
                server.listen_some_time("server", taken.local_addr().unwrap(), every, echo(), |_| ());
            // It ends with this, although it never listened.
            drop(waiting);
        });
    }

    #[test]
    fn a_server_outlives_clients_that_speak_no_http_or_break_off() {
        testns::netns(|| {
            let server = Server::start().unwrap();
            let listening = server.listen("server", loopback(0), echo()).unwrap();
            let address = listening.address().unwrap();
            for _ in 0..2 * MAX_CONNECTIONS {
                drop(TcpStream::connect(address).unwrap());
            }
            assert!(ask(address, "\0\0\0\r\n\r\n").starts_with("HTTP/1.1 400"));
            assert!(ask(address, "HEAD /b HTTP/1.0\r\n\r\n").ends_with("\r\n\r\n"));
            assert!(ask(address, "GET /c HTTP/1.0\r\n\r\n").ends_with("/c"));
        });
    }

    #[test]
    fn addresses_are_read_as_kube_proxy_reads_them() {
        let socket =
            |text: &str| text.parse::<BindAddress>().map(|at| at.socket(10249).map(|at| at.to_string()));
        assert_eq!(socket("127.0.0.1:1"), Ok(Some("127.0.0.1:1".to_owned())));
        assert_eq!(socket("::"), Ok(Some("[::]:10249".to_owned())));
        assert_eq!(socket("[::]"), Ok(Some("[::]:10249".to_owned())));
        assert_eq!(socket(" "), Ok(None));
        for bad in ["localhost:80", "127.0.0.1:", "127.0.0.1:65536", "10256", "[1.2.3.4"] {
            assert!(socket(bad).is_err(), "{bad}");
        }
    }
}
