//! HTTPS with the kubeconfig's certificate authority, and its token.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use sluicegate_proxier::source::kube::{Server, Source};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::server::{ApiServer, PORT};
use crate::watching::{Watching, fill, pace, source};

const TLS_PORT: u16 = PORT + 1;

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/tls").join(name)
}

/// Speaks TLS in front of the server, in this thread's namespace, until the test's process ends.
fn terminate_tls() {
    let certificates = CertificateDer::pem_file_iter(testdata("server.crt")).expect("a file");
    let certificates = certificates.collect::<Result<Vec<_>, _>>().expect("certificates");
    let key = PrivateKeyDer::from_pem_file(testdata("server.key")).expect("a key");
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(certificates, key);
    let acceptor = TlsAcceptor::from(Arc::new(config.expect("they belong together")));
    let listener = std::net::TcpListener::bind(("127.0.0.1", TLS_PORT)).expect("the port is free");
    listener.set_nonblocking(true).expect("a socket can be non-blocking");
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let listener = TcpListener::from_std(listener).expect("a listener");
            while let Ok((client, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    // A client that does not trust us goes away.
                    let Ok(mut client) = acceptor.accept(client).await else { return };
                    let Ok(mut server) = TcpStream::connect(("127.0.0.1", PORT)).await else { return };
                    let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
                });
            }
        });
    });
}

/// A kubeconfig, removed with it.
struct Kubeconfig(PathBuf);

impl Kubeconfig {
    fn new(test: &str, cluster: &str) -> Self {
        let path = std::env::temp_dir().join(format!("sluicegate-tls-{test}-{}", std::process::id()));
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
                contexts: [{{name: c, context: {{cluster: k, user: u}}}}]\n\
             clusters: [{{name: k, cluster: {{server: 'https://127.0.0.1:{TLS_PORT}'{cluster}}}}}]\n\
             users: [{{name: u, user: {{token: let-me-in}}}}]\n"
        );
        fs::write(&path, text).expect("a temporary file");
        Self(path)
    }

    fn source(&self) -> Source {
        Source { server: Server { kubeconfig: Some(self.0.clone()), master: None }, ..source(pace()) }
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
