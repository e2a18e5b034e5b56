//! HTTPS with the kubeconfig's certificate authority, and its token; HTTP/2, and servers that hang.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use http_body_util::Empty;
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use sluicegate_proxier::source::kube::{Server, Source, Tuning};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::kube::server::{ApiServer, PORT};
use crate::kube::watching::{Watching, fill, service, source, tuning};

const TLS_PORT: u16 = PORT + 1;

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/tls").join(name)
}

fn certified(protocols: &[&[u8]]) -> TlsAcceptor {
    let certificates = CertificateDer::pem_file_iter(testdata("server.crt")).expect("a file");
    let certificates = certificates.collect::<Result<Vec<_>, _>>().expect("certificates");
    let key = PrivateKeyDer::from_pem_file(testdata("server.key")).expect("a key");
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(certificates, key);
    let mut config = config.expect("they belong together");
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    TlsAcceptor::from(Arc::new(config))
}

/// Speaks TLS and HTTP/1.1 in front of the server, in this thread's namespace, until the test's process ends.
fn terminate_tls() {
    Front::start("127.0.0.1", &[]);
}

/// What speaks TLS in front of the server, on a thread of this thread's namespace, until the test's process
/// ends: a load balancer, or the server itself.
struct Front {
    hangs: Arc<AtomicBool>,
    accepted: Arc<AtomicUsize>,
}

impl Front {
    /// Bytes are passed on; with HTTP/2 each request is.
    fn start(address: &str, protocols: &[&[u8]]) -> Self {
        let listener = std::net::TcpListener::bind((address, TLS_PORT)).expect("the port is free");
        listener.set_nonblocking(true).expect("a socket can be non-blocking");
        let (acceptor, speaks_h2) = (certified(protocols), !protocols.is_empty());
        let front = Self { hangs: Arc::default(), accepted: Arc::default() };
        let (hangs, accepted) = (Arc::clone(&front.hangs), Arc::clone(&front.accepted));
        thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                tokio::spawn(async move {
                    loop {
                        // The thread stops, and the kernel goes on accepting and acknowledging.
                        while hangs.load(Ordering::Relaxed) {
                            thread::sleep(Duration::from_millis(5));
                        }
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                });
                let listener = TcpListener::from_std(listener).expect("a listener");
                while let Ok((client, _)) = listener.accept().await {
                    accepted.fetch_add(1, Ordering::Relaxed);
                    let acceptor = acceptor.clone();
                    tokio::spawn(async move {
                        // A client that does not trust us goes away.
                        let Ok(mut client) = acceptor.accept(client).await else { return };
                        if speaks_h2 {
                            let server = http2::Builder::new(TokioExecutor::new());
                            let io = TokioIo::new(client);
                            let _ = server.serve_connection(io, service_fn(pass_on)).await;
                            return;
                        }
                        let Ok(mut server) = TcpStream::connect(("127.0.0.1", PORT)).await else { return };
                        let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
                    });
                }
            });
        });
        front
    }

    fn hang(&self, hangs: bool) {
        self.hangs.store(hangs, Ordering::Relaxed);
    }
}

/// Asks the server the same.
async fn pass_on(request: Request<Incoming>) -> Result<Response<Incoming>, Box<dyn Error + Send + Sync>> {
    let server = TcpStream::connect(("127.0.0.1", PORT)).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(server)).await?;
    tokio::spawn(connection);
    let path = request.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
    let asked = Request::get(path).header("host", "server").body(Empty::<Bytes>::new())?;
    let mut response = sender.send_request(asked).await?;
    // Of HTTP/1.1 only.
    response.headers_mut().remove("transfer-encoding");
    Ok(response)
}

/// A kubeconfig, removed with it.
struct Kubeconfig(PathBuf);

impl Kubeconfig {
    fn new(test: &str, cluster: &str) -> Self {
        Self::of(test, "127.0.0.1", cluster)
    }

    fn of(test: &str, host: &str, cluster: &str) -> Self {
        let path = std::env::temp_dir().join(format!("sluicegate-tls-{test}-{}", std::process::id()));
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
                contexts: [{{name: c, context: {{cluster: k, user: u}}}}]\n\
             clusters: [{{name: k, cluster: {{server: 'https://{host}:{TLS_PORT}'{cluster}}}}}]\n\
             users: [{{name: u, user: {{token: let-me-in}}}}]\n"
        );
        fs::write(&path, text).expect("a temporary file");
        Self(path)
    }

    fn source(&self) -> Source {
        Source { server: Server { kubeconfig: Some(self.0.clone()), master: None }, ..source(tuning()) }
    }
}

impl Drop for Kubeconfig {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn a_server_of_the_right_authority_is_asked_with_the_token() {
    testns::netns(|| {
        let server = ApiServer::started();
        fill(&server);
        terminate_tls();
        let authority = format!(", certificate-authority: {}", testdata("ca.crt").display());
        let kubeconfig = Kubeconfig::new("right", &authority);
        let mut watching = Watching::with(kubeconfig.source());
        watching.settle(&server);
        let asked = server.authorizations();
        assert!(!asked.is_empty() && asked.iter().all(|line| line == "Bearer let-me-in"), "{asked:?}");
    });
}

#[test]
fn a_server_of_another_authority_is_told_nothing() {
    testns::netns(|| {
        let server = ApiServer::started();
        fill(&server);
        terminate_tls();
        let kubeconfig = Kubeconfig::new("wrong", "");
        let mut watching = Watching::with(kubeconfig.source());
        watching.until("warning is told", |watching| watching.warning("invalid peer certificate"));
        assert_eq!(server.authorizations(), Vec::<String>::new());
        assert!(watching.held.is_empty());
    });
}

fn authority() -> String {
    format!(", certificate-authority: {}", testdata("ca.crt").display())
}

/// In a hurry to notice silence.
fn impatient() -> Tuning {
    let (silence, ping_answer) = (Duration::from_millis(200), Duration::from_secs(2));
    Tuning { silence, ping_answer, ..tuning() }
}

#[test]
fn a_server_of_http_2_that_hangs_is_noticed_by_its_pings() {
    testns::netns(|| {
        let server = ApiServer::started();
        fill(&server);
        let front = Front::start("127.0.0.1", &[b"h2"]);
        let kubeconfig = Kubeconfig::new("pings", &authority());
        let mut watching = Watching::with(Source { tuning: impatient(), ..kubeconfig.source() });
        watching.settle(&server);
        watching.idle(Duration::from_secs(2));
        let asked = server.requests("services");
        assert_eq!(asked.len(), 2, "ten pings later the first watch still runs: {asked:?}");
        assert_eq!(watching.warnings, Vec::<String>::new());
        front.hang(true);
        watching.until("it is noticed", |watching| watching.warning("no connection within 2s"));
        server.put("services", service("later"));
        front.hang(false);
        watching.settle(&server);
        assert!(watching.has("later"));
    });
}

#[test]
fn when_a_server_hangs_its_other_address_is_asked() {
    testns::netns(|| {
        let hosts = std::env::temp_dir().join(format!("sluicegate-hosts-{}", std::process::id()));
        fs::write(&hosts, "127.0.0.1 api.example\n127.0.0.2 api.example\n").expect("a temporary file");
        // Of this thread, and of those that it starts.
        let mounted = unshare(CloneFlags::CLONE_NEWNS)
            .and_then(|()| {
                mount(None::<&str>, "/", None::<&str>, MsFlags::MS_PRIVATE | MsFlags::MS_REC, None::<&str>)
            })
            .and_then(|()| mount(Some(&hosts), "/etc/hosts", None::<&str>, MsFlags::MS_BIND, None::<&str>));
        if let Err(errno) = mounted {
            let _ = fs::remove_file(&hosts);
            testns::skip(&format!("no file can be mounted over /etc/hosts: {errno}"));
            return;
        }
        let server = ApiServer::started();
        fill(&server);
        let fronts = ["127.0.0.1", "127.0.0.2"].map(|address| Front::start(address, &[b"h2"]));
        let cluster = format!("{}, tls-server-name: 127.0.0.1", authority());
        let kubeconfig = Kubeconfig::of("addresses", "api.example", &cluster);
        let mut watching = Watching::with(Source { tuning: impatient(), ..kubeconfig.source() });
        watching.settle(&server);
        let used: Vec<_> = fronts.iter().map(|front| front.accepted.load(Ordering::Relaxed) > 0).collect();
        assert_eq!(used.iter().filter(|used| **used).count(), 1, "{used:?}");
        for (front, used) in fronts.iter().zip(used) {
            front.hang(used);
        }
        server.put("services", service("later"));
        watching.settle(&server);
        assert!(watching.has("later"));
        let _ = fs::remove_file(&hosts);
    });
}
