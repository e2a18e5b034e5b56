//! Objects from the Kubernetes API (feature `kube`): each kind is listed, then watched, for as long as somebody listens.
//!
//! What is asked for is what kube-proxy asks for (`watched.rs` has the selectors). Every kind follows by itself: a list of
//! one kind that fails does not hold up the changes of another.
//!
//! - A list is made of pages and handed on whole, as one [`Update::Replace`]; half a list is never handed on.
//! - A watch goes on from the last version that was seen, after a cut connection as well: nothing is lost and nothing is
//!   listed again. Only when the server no longer has that version (410), or what it says cannot be understood, is
//!   everything listed anew; whatever was deleted meanwhile is missing from that list.
//! - Whatever fails is tried again, with growing pauses that differ from node to node, and no earlier than the server's
//!   `Retry-After` says. The first failure is told as [`Update::Trouble`], and again when it changes or lasts.
//! - After failures to connect or to authenticate, the configuration is read again: certificates, tokens and addresses that
//!   were replaced meanwhile are used.
//! - An object that cannot be read is named in an [`Update::Trouble`] and left as it was last known.
//!
//! Waiting is measured on the monotonic clock: setting the time of day changes nothing.
//!
//! The requests are made here, over `kube`'s client: what its own watcher does with a 410 that is the status of a watch's
//! answer (it repeats the request for ever), with an object that it cannot read (it drops the event), and with
//! `Retry-After` (it does not see it) is not what a service proxy may do.

mod backoff;
mod connect;
mod event;
mod follow;
mod request;
mod watched;

use std::future::Future;
use std::time::Duration;

use futures_util::future::{Either, join4, select};
use k8s_openapi::api::core::v1::{Node, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::ServiceCIDR;
use tokio::sync::{mpsc, oneshot};

pub use connect::Server;

use super::update::Update;
use crate::Error;
use connect::Connection;
use follow::Follower;

/// Which API server is asked, and for what.
#[derive(Clone, Debug)]
pub struct Source {
    /// How the server is found, and who we are.
    pub server: Server,
    /// The name of the one node that is watched.
    pub node: String,
    /// `ServiceCIDR` objects are watched too; only nftables mode has a use for them. A server that does not have this API (before
    /// Kubernetes 1.33) is taken for one that has no such object.
    pub service_cidrs: bool,
    /// How long to wait for what.
    pub pace: Pace,
}

/// How long the source waits. The default is for clusters; tests are in more of a hurry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// The pause after a first failure; each further one doubles it. Up to as much again is added by chance.
    pub first: Duration,
    /// The longest pause, without what is added.
    pub longest: Duration,
    /// How long the first list of services waits for that of the node.
    pub node: Duration,
    /// How long an answer may take to begin, and to go on.
    pub answer: Duration,
    /// How long a watch lasts before the server is asked for a new one, at most 290 s; a tenth of it is left to chance.
    pub watch: Duration,
    /// How long until an API that a server does not have is asked for again.
    pub absent: Duration,
    /// How often a failure that lasts is told.
    pub remind: Duration,
    /// How many objects make a page.
    pub page: u32,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(800),
            longest: Duration::from_secs(30),
            node: Duration::from_secs(30),
            answer: Duration::from_secs(60),
            watch: Duration::from_secs(290),
            absent: Duration::from_secs(600),
            remind: Duration::from_secs(300),
            page: 500,
        }
    }
}

impl Source {
    /// Reads the configuration, without speaking to the server. The source then runs until nobody listens to `updates` any more.
    ///
    /// # Errors
    /// [`Error::Api`] when the configuration cannot be used. Nothing that happens later is an error: an API server that is not
    /// there yet will come.
    pub fn start(self, updates: mpsc::Sender<Update>) -> Result<impl Future<Output = ()> + Send, Error> {
        let config = self.server.config()?;
        Ok(async move {
            let closed = updates.clone();
            let run = Box::pin(self.run(Connection::new(config), updates));
            if let Either::Left(_) = select(Box::pin(closed.closed()), run).await {
                tracing::debug!("nobody listens to the API source any more");
            }
        })
    }

    async fn run(self, connection: Connection, updates: mpsc::Sender<Update>) {
        let (node_listed, node) = oneshot::channel();
        let (cidrs_listed, cidrs) = oneshot::channel();
        let follow = |listed, after| Follower::new(&self, connection.clone(), updates.clone(), listed, after);
        let nodes = follow(Some(node_listed), vec![]).run::<Node>();
        let (cidrs_wanted, service_cidrs) = (self.service_cidrs, follow(Some(cidrs_listed), vec![]));
        let service_cidrs = async move {
            if cidrs_wanted {
                service_cidrs.run::<ServiceCIDR>().await;
            }
        };
        let slices = follow(None, vec![]).run::<EndpointSlice>();
        // Whoever programs services wants to know first on which node.
        let services = follow(None, vec![node, cidrs]).run::<Service>();
        join4(nodes, service_cidrs, slices, services).await;
    }
}
