//! Objects from the Kubernetes API (feature `kube`): each kind is listed, then watched, until the receiver is
//! dropped.
//!
//! The requests are those of kube-proxy (`watched.rs` has the selectors). Kinds are independent: a list of
//! one kind that fails does not delay the changes of another.
//!
//! - A list is read in pages, and each is sent before the next is requested: [`Update::Listing`], the
//!   objects, and [`Update::Listed`] at the end.
//! - A watch continues from the last version seen, also after a lost connection: nothing is missed or listed
//!   again. Only when the server no longer has that version (410), or sends something that cannot be decoded,
//!   is everything listed again; the new list shows what was deleted meanwhile.
//! - Failures are retried, with growing random pauses, and no earlier than the server's `Retry-After` says.
//!   Kinds that fail by one cause share their pauses, and a success ends them. The first failure of an outage
//!   leads to an [`Update::Warning`], another one only when it lasts.
//! - After failures to connect or to authenticate, the configuration is read again, for certificates, tokens
//!   and addresses that were replaced meanwhile, and the next address of the server is tried.
//! - A server that hangs is noticed within 45 seconds: by pings where it speaks HTTP/2, otherwise by watches
//!   that are short.
//! - A source that may not list services or endpoint slices for five minutes sends [`Update::Hopeless`].
//! - An object that cannot be decoded leads to an [`Update::Unreadable`] with its name, and keeps its last
//!   state.
//!
//! All waiting uses the monotonic clock.
//!
//! The requests are made here, over `kube`'s client, instead of by the watcher of kube-runtime: that one
//! repeats a watch forever whose response has the status 410, drops an event whose object it cannot decode,
//! and ignores `Retry-After`.

mod backoff;
mod connect;
pub mod decode;
mod event;
mod events;
mod follow;
mod request;
mod watched;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, join4, select};
use k8s_openapi::api::core::v1::{Node, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::ServiceCIDR;
use tokio::sync::{mpsc, oneshot};

pub use connect::Server;
pub use events::{Occurrence, Recorder};

use super::observer::SourceObserver;
use super::update::Update;
use crate::source::Error;
use backoff::Backoff;
use connect::{Connection, KeepAlive};
use follow::Follower;

/// An API server, and the objects to watch there.
#[derive(Clone, Debug)]
pub struct Source {
    /// The address of the server, and the credentials.
    pub server: Server,
    /// The name of the node to watch.
    pub node: String,
    /// Whether to watch `ServiceCIDR` objects, which only nftables mode uses. A server without this API
    /// (before Kubernetes 1.33), or whose role for proxies does not name it (before 1.31), counts as one
    /// without such objects.
    pub service_cidrs: bool,
    /// Timeouts, intervals and sizes.
    pub tuning: Tuning,
}

/// Timeouts, intervals and sizes of a source. Tests use shorter ones than the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// The pause after the first failure. Each further one doubles it. A random time up to the pause is
    /// added.
    pub first: Duration,
    /// The longest pause, without the random part.
    pub longest: Duration,
    /// The longest pause while there is no connection, without the random part, and twice that while the
    /// credentials are refused. Such requests cost the server little, and a change of it is not to be missed.
    pub unreachable: Duration,
    /// The longest time that the first list of services waits for that of the node, and for which a kind that
    /// is not needed may be forbidden before it counts as absent.
    pub node: Duration,
    /// The timeout for the beginning of a response, and for each next part.
    pub answer: Duration,
    /// The duration of a watch, at most 290 s. A random part of up to a tenth is subtracted.
    pub watch: Duration,
    /// The interval of pings on a connection with HTTP/2, and the duration of a watch without them.
    pub silence: Duration,
    /// The timeout for the answer to a ping, for the end of a watch without pings, and for a new connection.
    pub ping_answer: Duration,
    /// The interval of requests for an API that the server does not have.
    pub absent: Duration,
    /// The interval of warnings about a failure that lasts.
    pub remind: Duration,
    /// The time after which a source that was never allowed to list services or endpoint slices gives up.
    pub give_up: Duration,
    /// The number of objects in a page.
    pub page: u32,
    /// The most bytes of a list, over all its pages, of which none may have more than 128 MiB. A longer one is
    /// refused, and what is known stays.
    pub list_bytes: usize,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(800),
            longest: Duration::from_secs(30),
            unreachable: Duration::from_secs(2),
            node: Duration::from_secs(30),
            answer: Duration::from_secs(40),
            watch: Duration::from_secs(290),
            // Those of client-go.
            silence: Duration::from_secs(30),
            ping_answer: Duration::from_secs(15),
            absent: Duration::from_secs(600),
            remind: Duration::from_secs(300),
            give_up: Duration::from_secs(300),
            page: 500,
            list_bytes: 512 << 20,
        }
    }
}

impl Source {
    /// Reads the configuration, without a connection. The returned future runs until the receiver of
    /// `updates` is dropped, and reports requests and their failures to `observer` (`()` ignores them).
    ///
    /// # Errors
    /// [`Error::Kubeconfig`], [`Error::NotInPod`], [`Error::Url`] or [`Error::Proxy`] when the configuration
    /// cannot be used. Nothing that happens later is an error: an API server that does not answer yet is
    /// asked again.
    pub fn start(
        self,
        updates: mpsc::Sender<Update>,
        observer: Arc<dyn SourceObserver>,
    ) -> Result<impl Future<Output = ()> + Send, Error> {
        // A closed queue: there are no Events to write.
        self.start_recording(updates, observer, mpsc::channel(1).1)
    }

    /// As [`start`](Self::start), and writes Events of what comes from a [`Recorder`].
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_recording(
        self,
        updates: mpsc::Sender<Update>,
        observer: Arc<dyn SourceObserver>,
        occurrences: mpsc::Receiver<Occurrence>,
    ) -> Result<impl Future<Output = ()> + Send, Error> {
        let config = self.server.config()?;
        let alive = KeepAlive { ping: self.tuning.silence, answer: self.tuning.ping_answer };
        let connection = Connection::new(config, alive);
        let (node, patience) = (self.node.clone(), self.tuning.answer);
        let recording = events::write(node, connection.clone(), Arc::clone(&observer), patience, occurrences);
        let following = self.follow(connection, updates, observer);
        Ok(async move {
            // What follows ends last: when nobody wants updates, nobody is left to tell either.
            let mut following = Box::pin(following);
            if let Either::Right(((), following)) = select(&mut following, Box::pin(recording)).await {
                following.await;
            }
        })
    }

    async fn follow(
        self,
        connection: Connection,
        updates: mpsc::Sender<Update>,
        observer: Arc<dyn SourceObserver>,
    ) {
        let closed = updates.clone();
        let shared = Shared { connection, backoff: Backoff::new(self.tuning), observer };
        let run = Box::pin(self.run(shared, updates));
        if let Either::Left(_) = select(Box::pin(closed.closed()), run).await {
            tracing::debug!("the receiver of the API source was dropped");
        }
    }

    async fn run(self, shared: Shared, updates: mpsc::Sender<Update>) {
        let (node_listed, node) = oneshot::channel();
        let (cidrs_listed, cidrs) = oneshot::channel();
        let follow = |listed, after| Follower::new(&self, shared.clone(), updates.clone(), listed, after);
        let nodes = follow(Some(node_listed), vec![]).run::<Node>();
        let (cidrs_wanted, service_cidrs) = (self.service_cidrs, follow(Some(cidrs_listed), vec![]));
        let service_cidrs = async move {
            if cidrs_wanted {
                service_cidrs.run::<ServiceCIDR>().await;
            }
        };
        let slices = follow(None, vec![]).run::<EndpointSlice>();
        // The rules of services depend on the node, so its list comes first.
        let services = follow(None, vec![node, cidrs]).run::<Service>();
        join4(nodes, service_cidrs, slices, services).await;
    }
}

/// What the watches of a source share.
#[derive(Clone)]
struct Shared {
    connection: Connection,
    backoff: Backoff,
    observer: Arc<dyn SourceObserver>,
}

#[cfg(test)]
mod tests;
