//! The address of the API server, and connections to it.

use std::error::Error as StdError;
use std::path::PathBuf;
use std::time::Duration;

use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{self};
use hyper_util::rt::TokioExecutor;
use kube::client::{Body, ConfigExt as _};
use kube::config::Kubeconfig;
use kube::{Client, Config};
use tower::{BoxError, ServiceBuilder};

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
            (None, Some(_)) => Config::new(hyper::Uri::default()),
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

/// A client, recreated when its configuration may have changed.
#[derive(Clone)]
pub(super) struct Connection {
    configured: Configured,
    client: Option<Client>,
}

impl Connection {
    pub(super) fn new(configured: Configured) -> Self {
        Self { configured, client: None }
    }

    /// Returns the URL of the server, for messages.
    pub(super) fn url(&self) -> String {
        self.configured.config.cluster_url.to_string()
    }

    /// Returns the client.
    ///
    /// # Errors
    /// When certificates or credentials cannot be used.
    pub(super) fn client(&mut self) -> Result<Client, String> {
        if let Some(client) = &self.client {
            return Ok(client.clone());
        }
        let client = client(&self.configured.config).map_err(|e| explain(&e))?;
        self.client = Some(client.clone());
        Ok(client)
    }

    /// Reads the configuration again, for the next client. An invalid one changes nothing: files are replaced
    /// one by one.
    pub(super) fn refresh(&mut self) {
        match self.configured.server.config() {
            Ok(configured) => *self = Self::new(configured),
            Err(error) => tracing::warn!("keeping the last configuration of the API server: {error}"),
        }
    }
}

fn url(master: &str) -> Result<hyper::Uri, Error> {
    let invalid = |reason: String| Error::Url { url: master.to_owned(), reason };
    let uri: hyper::Uri = master.parse().map_err(|e: hyper::http::uri::InvalidUri| invalid(e.to_string()))?;
    match uri.scheme_str() {
        Some("http" | "https") => Ok(uri),
        _ => Err(invalid("it does not begin with http:// or https://".to_owned())),
    }
}

/// Creates a client with the layers that `kube` uses, over connections with keep-alive, which detects a
/// server that is gone.
fn client(config: &Config) -> Result<Client, kube::Error> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(Duration::from_secs(10)));
    tcp.set_keepalive(Some(Duration::from_secs(30)));
    tcp.set_keepalive_interval(Some(Duration::from_secs(10)));
    tcp.set_keepalive_retries(Some(3));
    tcp.set_tcp_user_timeout(Some(Duration::from_secs(60)));
    let connector = config.rustls_https_connector_with_connector(tcp)?;
    let http: legacy::Client<_, Body> = legacy::Client::builder(TokioExecutor::new()).build(connector);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(http);
    Ok(Client::new(service, config.default_namespace.clone()))
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
