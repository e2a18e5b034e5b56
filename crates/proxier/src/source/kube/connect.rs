//! The address of the API server, and connections to it.

use std::error::Error as StdError;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::Uri;
use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::{GaiResolver, Name};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::{Body, ConfigExt as _};
use kube::config::Kubeconfig;
use kube::{Client, Config};
use tokio::time::timeout;
use tower::{BoxError, Service, ServiceBuilder};

use crate::source::Error;

/// The address of the API server and the credentials: kube-proxy's flags `--kubeconfig` and `--master`.
///
/// Without either, the environment of a pod is used: `KUBERNETES_SERVICE_HOST` and `KUBERNETES_SERVICE_PORT`,
/// and the service account's token and certificates in `/var/run/secrets/kubernetes.io/serviceaccount`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Server {
    /// A kubeconfig file; its current context is used.
    pub kubeconfig: Option<PathBuf>,
    /// The URL of the server, instead of the one in the kubeconfig.
    pub master: Option<String>,
}

impl Server {
    pub(super) fn config(&self) -> Result<Configured, Error> {
        let mut config = match (&self.kubeconfig, &self.master) {
            (Some(path), _) => Kubeconfig::read_from(path)
                .and_then(Config::try_from)
                .map_err(|e| Error::Kubeconfig { path: path.clone(), reason: explain(&e) })?,
            (None, Some(_)) => Config::new(Uri::default()),
            (None, None) => Config::incluster().map_err(|e| Error::NotInPod(explain(&e)))?,
        };
        if let Some(master) = &self.master {
            config.cluster_url = url(master)?;
        }
        if let Some(proxy) = &config.proxy_url {
            return Err(Error::Proxy(proxy.to_string()));
        }
        Ok(Configured { server: self.clone(), config })
    }
}

/// A valid configuration, and its source.
#[derive(Clone)]
pub(super) struct Configured {
    server: Server,
    config: Config,
}

/// A client that all watches of a source share, recreated when its configuration may have changed. Clones are
/// the same connection.
#[derive(Clone)]
pub(super) struct Connection(Arc<Mutex<Live>>);

struct Live {
    configured: Configured,
    alive: KeepAlive,
    client: Option<Client>,
    /// The number of the client, so that of several watches that failed with it one replaces it.
    number: u64,
    /// The address to begin with, of those that the name of the server has.
    turn: Arc<AtomicUsize>,
}

/// The times by which a connection that is dead is noticed.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeepAlive {
    /// The interval of HTTP/2's pings.
    pub(super) ping: Duration,
    /// The longest time until a ping is answered, and until a connection is made.
    pub(super) answer: Duration,
}

impl Connection {
    pub(super) fn new(configured: Configured, alive: KeepAlive) -> Self {
        let turn = Arc::default();
        Self(Arc::new(Mutex::new(Live { configured, alive, client: None, number: 0, turn })))
    }

    /// Returns the URL of the server, for messages.
    pub(super) fn url(&self) -> String {
        self.lock().configured.config.cluster_url.to_string()
    }

    /// Returns the host of that URL, with its port.
    pub(super) fn host(&self) -> String {
        let live = self.lock();
        live.configured.config.cluster_url.authority().map(ToString::to_string).unwrap_or_default()
    }

    /// Returns the client, and its number.
    ///
    /// # Errors
    /// When certificates or credentials cannot be used.
    pub(super) fn client(&self) -> Result<(Client, u64), kube::Error> {
        let mut live = self.lock();
        let client = match &live.client {
            Some(client) => client.clone(),
            None => {
                let new = client(&live.configured.config, live.alive, &live.turn);
                live.client.insert(new?).clone()
            }
        };
        Ok((client, live.number))
    }

    /// Reads the configuration again, for the next client, unless the client of this number was replaced
    /// already. An invalid configuration changes nothing: files are replaced one by one.
    pub(super) fn refresh(&self, used: u64) {
        let mut live = self.lock();
        if live.number != used {
            return;
        }
        match live.configured.server.config() {
            Ok(configured) => {
                live.configured = configured;
                live.client = None;
                live.number += 1;
            }
            Err(error) => tracing::debug!("keeping the last configuration of the API server: {error}"),
        }
    }

    /// Begins the next connection with the next address of the server.
    pub(super) fn turn(&self) {
        self.lock().turn.fetch_add(1, Ordering::Relaxed);
    }

    /// Locks the state, also after a panic: it is consistent at every moment.
    fn lock(&self) -> MutexGuard<'_, Live> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a connection with a client that is never replaced.
    #[cfg(test)]
    pub(super) fn scripted(client: Client) -> Self {
        let alive = KeepAlive { ping: Duration::MAX, answer: Duration::MAX };
        let config = Config::new(Uri::from_static("http://scripted"));
        let nowhere = Server { kubeconfig: Some("/nonexistent/kubeconfig".into()), master: None };
        let connection = Self::new(Configured { server: nowhere, config }, alive);
        connection.lock().client = Some(client);
        connection
    }
}

fn url(master: &str) -> Result<Uri, Error> {
    let invalid = |reason: String| Error::Url { url: master.to_owned(), reason };
    let uri: Uri = master.parse().map_err(|e: hyper::http::uri::InvalidUri| invalid(e.to_string()))?;
    match uri.scheme_str() {
        Some("http" | "https") => Ok(uri),
        _ => Err(invalid("it does not begin with http:// or https://".to_owned())),
    }
}

/// Creates a client with the layers that `kube` uses. Connections speak HTTP/2 where the server does, and
/// send pings, as client-go does; those of HTTP/1.1 have keep-alive of TCP, which detects a host that is
/// gone.
fn client(config: &Config, alive: KeepAlive, turn: &Arc<AtomicUsize>) -> Result<Client, kube::Error> {
    let resolver = RotatingResolver { turn: Arc::clone(turn), resolver: GaiResolver::new() };
    let mut tcp = HttpConnector::new_with_resolver(resolver);
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(Duration::from_secs(10)));
    tcp.set_keepalive(Some(Duration::from_secs(30)));
    tcp.set_keepalive_interval(Some(Duration::from_secs(10)));
    tcp.set_keepalive_retries(Some(3));
    tcp.set_tcp_user_timeout(Some(Duration::from_secs(60)));
    let mut tls =
        HttpsConnectorBuilder::new().with_tls_config(config.rustls_client_config()?).https_or_http();
    if let Some(name) = &config.tls_server_name {
        let name = name.clone().try_into().map_err(|e| kube::Error::Service(BoxError::from(e)))?;
        tls = tls.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    let connector = Bounded { connector: tls.enable_all_versions().wrap_connector(tcp), time: alive.answer };
    let http: legacy::Client<_, Body> = legacy::Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .http2_keep_alive_interval(alive.ping)
        .http2_keep_alive_timeout(alive.answer)
        .build(connector);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(http);
    Ok(Client::new(service, config.default_namespace.clone()))
}

/// A resolver that begins with another address of a name after each failure: one that accepts connections and
/// then hangs would be chosen for ever otherwise.
#[derive(Clone)]
struct RotatingResolver<R> {
    turn: Arc<AtomicUsize>,
    resolver: R,
}

impl<R> Service<Name> for RotatingResolver<R>
where
    R: Service<Name, Response: Iterator<Item = SocketAddr>, Future: Send + 'static>,
{
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = R::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.resolver.poll_ready(context)
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let (turn, found) = (self.turn.load(Ordering::Relaxed), self.resolver.call(name));
        Box::pin(async move {
            let mut addresses: Vec<_> = found.await?.collect();
            let first = turn.checked_rem(addresses.len()).unwrap_or_default();
            addresses.rotate_left(first);
            Ok(addresses.into_iter())
        })
    }
}

/// A connector that gives up after some time: that of TCP alone would wait for ever for the handshake of TLS.
#[derive(Clone)]
struct Bounded<C> {
    connector: C,
    time: Duration,
}

impl<C> Service<Uri> for Bounded<C>
where
    C: Service<Uri, Error = BoxError, Future: Send + 'static, Response: Send>,
{
    type Response = C::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<C::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.connector.poll_ready(context)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let (time, connecting) = (self.time, self.connector.call(uri));
        Box::pin(async move {
            let expired = || BoxError::from(format!("no connection within {time:?}"));
            timeout(time, connecting).await.map_err(|_| expired())?
        })
    }
}

/// Formats an error with all its causes: `client error (Connect): tcp connect error: Connection refused`.
pub(super) fn explain(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        // Some errors include their cause in their text.
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::{Ready, ready};

    use super::*;

    /// A name with three addresses.
    #[derive(Clone)]
    struct Three;

    impl Service<Name> for Three {
        type Response = std::vec::IntoIter<SocketAddr>;
        type Error = Infallible;
        type Future = Ready<Result<Self::Response, Infallible>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, _: Name) -> Self::Future {
            let all: Vec<_> = (1..=3).map(|last| SocketAddr::from(([10, 0, 0, last], 443))).collect();
            ready(Ok(all.into_iter()))
        }
    }

    #[tokio::test]
    async fn after_each_failure_another_address_comes_first() {
        let turn: Arc<AtomicUsize> = Arc::default();
        let mut resolver = RotatingResolver { turn: Arc::clone(&turn), resolver: Three };
        for expected in [[1, 2, 3], [2, 3, 1], [3, 1, 2], [1, 2, 3]] {
            let Ok(found) = resolver.call("api".parse().unwrap()).await;
            let found: Vec<_> = found.map(|address| address.ip().to_string()).collect();
            assert_eq!(found, expected.map(|last| format!("10.0.0.{last}")));
            turn.fetch_add(1, Ordering::Relaxed);
        }
    }
}
