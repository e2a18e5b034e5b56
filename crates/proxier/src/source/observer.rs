//! Callbacks of a source that asks a server, for metrics and health.

use std::time::Duration;

use super::update::Kind;

/// Callbacks of a source that asks a server. Every method does nothing by default.
///
/// The source calls the methods from its tasks, so they must return quickly.
pub trait SourceObserver: Send + Sync {
    /// Called after each request to a host, with the status of the answer, `None` without an answer, and the
    /// time until its header came.
    fn requested(&self, host: &str, verb: Verb, status: Option<u16>, took: Duration) {
        let _ = (host, verb, status, took);
    }

    /// Called with the bytes of the body of an answer that was read whole.
    fn received(&self, host: &str, bytes: usize) {
        let _ = (host, bytes);
    }

    /// Called after each request that writes an Event, with the bytes of its body.
    fn posted(&self, host: &str, status: Option<u16>, bytes: usize, took: Duration) {
        let _ = (host, status, bytes, took);
    }

    /// Called before a request, with the number of the client that makes it, counted from the start.
    fn transport(&self, number: u64) {
        let _ = number;
    }

    /// Called when the server sent objects of a kind, an event, or a sign that there was none.
    fn heard(&self, kind: Kind) {
        let _ = kind;
    }

    /// Called when objects of a kind cannot be listed or watched. The source keeps retrying.
    fn failed(&self, kind: Kind, reason: &str) {
        let _ = (kind, reason);
    }
}

/// The observer that ignores everything.
impl SourceObserver for () {}

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    /// All objects of a kind, or a page of them.
    List,
    /// The changes of a kind.
    Watch,
}
