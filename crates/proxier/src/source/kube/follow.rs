//! Follows one kind of object: lists it, watches it, and starts again when the watch cannot go on.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use super::decode::Malformed;
use super::event::Event;
use super::request::{Api, Cause, List, Position, Refusal, Stream, clip};
use super::watched::Watched;
use super::{Shared, Source, Tuning};
use crate::source::update::Update;

/// Follows one kind of object.
pub(super) struct Follower {
    source: Source,
    shared: Shared,
    /// Since when the first list is forbidden.
    forbidden: Option<Instant>,
    is_listed: bool,
    /// Whether this kind counts as absent because it is forbidden.
    is_withheld: bool,
    updates: mpsc::Sender<Update>,
    /// Signalled when the first list was sent.
    listed: Option<oneshot::Sender<()>>,
    /// The signals that the first list waits for, up to a timeout.
    after: Vec<oneshot::Receiver<()>>,
}

/// The receiver of updates was dropped.
#[derive(Debug)]
struct Closed;

/// Why a watch ended.
enum Ended {
    /// The server ended it, as it does after some time.
    ByServer,
    /// It failed, or could not begin. A new watch may continue from the last version.
    Broken(Refusal),
    /// The server no longer has the version, as after some time without a connection. Everything has to be
    /// listed again.
    Stale(String),
    /// The server sent something that cannot be decoded, or did not understand the request. Everything has to
    /// be listed again.
    Malformed(String),
}

impl From<Refusal> for Ended {
    fn from(refusal: Refusal) -> Self {
        match refusal.cause {
            Cause::Stale => Self::Stale(refusal.reason),
            Cause::Malformed | Cause::Absent => Self::Malformed(refusal.reason),
            _ => Self::Broken(refusal),
        }
    }
}

impl Follower {
    pub(super) fn new(
        source: &Source,
        shared: Shared,
        updates: mpsc::Sender<Update>,
        listed: Option<oneshot::Sender<()>>,
        after: Vec<oneshot::Receiver<()>>,
    ) -> Self {
        let source = source.clone();
        Self { source, shared, forbidden: None, is_listed: false, is_withheld: false, updates, listed, after }
    }

    /// Runs until the receiver is dropped.
    pub(super) async fn run<K: Watched>(mut self) {
        let mut api = Api::new::<K>(&self.source, &self.shared);
        // Closed is the one way out.
        let Closed = loop {
            let version = match self.list::<K>(&mut api).await {
                Ok(Some(version)) => version,
                Ok(None) => continue,
                Err(closed) => break closed,
            };
            if let Err(closed) = self.watch::<K>(&mut api, version).await {
                break closed;
            }
        };
    }

    /// Sends one list, and returns its version. Returns `None` after a failure, and after the pause that
    /// follows it.
    async fn list<K: Watched>(&mut self, api: &mut Api) -> Result<Option<String>, Closed> {
        match self.pages::<K>(api).await? {
            Ok(version) => {
                self.shared.backoff.succeeded(K::KIND);
                self.is_withheld = false;
                Ok(Some(version))
            }
            Err(refusal) if K::MAY_BE_ABSENT && refusal.cause == Cause::Absent => {
                tracing::debug!(kind = %K::KIND, "the API server does not have this API");
                self.absent::<K>().await
            }
            Err(refusal) => {
                let forbidden = self.forbidden_for(&refusal);
                if K::MAY_BE_ABSENT && forbidden.is_some_and(|lasts| self.withholds(lasts)) {
                    self.warn_withheld::<K>(&refusal).await?;
                    return self.absent::<K>().await;
                }
                if K::IS_NEEDED && !self.is_listed && forbidden >= Some(self.tuning().give_up) {
                    let reason = format!("{}s from the API server: {}", K::KIND, refusal.reason);
                    self.send(Update::Hopeless(reason)).await?;
                }
                self.refused::<K>(api, refusal).await?;
                Ok(None)
            }
        }
    }

    /// Goes on without objects of this kind, for the time after which the API is asked for again.
    async fn absent<K: Watched>(&mut self) -> Result<Option<String>, Closed> {
        self.shared.backoff.succeeded(K::KIND);
        self.shared.observer.heard(K::KIND);
        self.begin::<K>().await?;
        self.end::<K>().await?;
        sleep(self.tuning().absent).await;
        Ok(None)
    }

    /// Returns for how long lists of this kind have been forbidden. A server that starts forbids everything
    /// for a moment.
    fn forbidden_for(&mut self, refusal: &Refusal) -> Option<Duration> {
        if refusal.cause != FORBIDDEN {
            self.forbidden = None;
            return None;
        }
        Some(self.forbidden.get_or_insert_with(Instant::now).elapsed())
    }

    /// Returns whether a kind that may be absent counts as such because it is forbidden: the role
    /// `system:node-proxier` of before Kubernetes 1.31 does not name ServiceCIDRs. What was listed once stays
    /// when a right is taken away.
    fn withholds(&mut self, lasts: Duration) -> bool {
        // Services need not wait for this.
        self.listed = None;
        self.is_withheld || (!self.is_listed && lasts >= self.tuning().node)
    }

    async fn warn_withheld<K: Watched>(&mut self, refusal: &Refusal) -> Result<(), Closed> {
        if std::mem::replace(&mut self.is_withheld, true) {
            return Ok(());
        }
        let (kind, reason) = (K::KIND, &refusal.reason);
        self.send(Update::Warning(format!("going on without {kind}s, which may not be listed: {reason}")))
            .await
    }

    /// Lists all objects, page by page, and returns the version of the list. The objects of a page are sent
    /// before the next page is requested: those of a large cluster, as the API has them, would take several
    /// times the memory of what becomes of them.
    ///
    /// When the list expires before its last page, everything is requested at once.
    async fn pages<K: Watched>(&mut self, api: &mut Api) -> Result<Result<String, Refusal>, Closed> {
        let mut position = Position::start(self.tuning());
        loop {
            let is_first = position.is_first();
            let List { objects, version, unreadable } = match api.page::<K>(&mut position).await {
                Ok(page) => page,
                Err(refusal) if refusal.cause == Cause::Stale && position.is_paged() => {
                    tracing::debug!(kind = %K::KIND, "a list took too long for its pages: {}", refusal.reason);
                    position = Position::whole(self.tuning());
                    continue;
                }
                Err(refusal) => return Ok(Err(refusal)),
            };
            if is_first {
                self.begin::<K>().await?;
            }
            for reason in unreadable {
                self.send(kept::<K>(&reason)).await?;
            }
            for object in objects {
                self.send(Update::Apply(object)).await?;
            }
            if position.is_end() {
                self.end::<K>().await?;
                return Ok(Ok(version));
            }
        }
    }

    /// Begins a list. The first one waits until others are there.
    async fn begin<K: Watched>(&mut self) -> Result<(), Closed> {
        let deadline = Instant::now() + self.tuning().node;
        for first in self.after.drain(..) {
            // Another follower that fails sends its own warnings.
            let _ = timeout_at(deadline, first).await;
        }
        self.send(Update::Listing(K::KIND)).await
    }

    async fn end<K: Watched>(&mut self) -> Result<(), Closed> {
        self.is_listed = true;
        tracing::debug!(kind = %K::KIND, "listed");
        self.send(Update::Listed(K::KIND)).await?;
        if let Some(listed) = self.listed.take() {
            // The receiver may have timed out.
            let _ = listed.send(());
        }
        Ok(())
    }

    /// Watches from `version` for as long as possible. Afterwards everything has to be listed again.
    async fn watch<K: Watched>(&mut self, api: &mut Api, mut version: String) -> Result<(), Closed> {
        loop {
            let began = Instant::now();
            let before = version.clone();
            let ended = match api.watch(&version).await {
                Ok(stream) => {
                    self.shared.backoff.succeeded(K::KIND);
                    self.events::<K>(stream, &mut version).await?
                }
                Err(refusal) => Ended::from(refusal),
            };
            if version != before || began.elapsed() > STEADY {
                self.shared.backoff.is_steady();
            }
            match ended {
                Ended::ByServer if version != before || began.elapsed() > BRIEF => {}
                Ended::ByServer => {
                    let reason = "the server ends every watch at once";
                    self.refused::<K>(api, Refusal::new(Cause::Brief, reason)).await?;
                }
                Ended::Broken(refusal) => self.refused::<K>(api, refusal).await?,
                Ended::Stale(reason) => {
                    tracing::debug!(kind = %K::KIND, "listing everything again: {reason}");
                    let (until, _) = self.shared.backoff.pause(&Refusal::new(Cause::Stale, reason));
                    sleep_until(until).await;
                    return Ok(());
                }
                Ended::Malformed(reason) => {
                    return self.refused::<K>(api, Refusal::new(Cause::Malformed, reason)).await;
                }
            }
        }
    }

    async fn events<K: Watched>(
        &mut self,
        mut stream: Stream,
        version: &mut String,
    ) -> Result<Ended, Closed> {
        loop {
            let line = match stream.next().await {
                Ok(Some(line)) => line,
                Ok(None) => return Ok(Ended::ByServer),
                Err(refusal) => return Ok(refusal.into()),
            };
            let (update, seen) = match Event::decode::<K>(&line) {
                Ok(Event::Apply(object, seen)) => (Some(Update::Apply(object)), seen),
                Ok(Event::Delete(name, seen)) => (Some(Update::Delete(name)), seen),
                Ok(Event::Unreadable(reason, seen)) => (Some(kept::<K>(&reason)), seen),
                Ok(Event::Bookmark(seen)) => (None, seen),
                Ok(Event::Error(status)) => return Ok(error(*status)),
                Err(reason) => return Ok(Ended::Malformed(reason.to_string())),
            };
            self.shared.observer.heard(K::KIND);
            if let Some(update) = update {
                self.send(update).await?;
            }
            if seen.is_empty() {
                return Ok(Ended::Malformed(Malformed::EventWithoutVersion.to_string()));
            }
            *version = seen;
        }
    }

    /// Reports a refusal and waits.
    async fn refused<K: Watched>(&mut self, api: &mut Api, refusal: Refusal) -> Result<(), Closed> {
        self.shared.observer.failed(K::KIND, &refusal.reason);
        if let Some(warning) = self.shared.backoff.failed(K::KIND, &api.url(), &refusal) {
            self.send(Update::Warning(warning)).await?;
        }
        tracing::debug!(kind = %K::KIND, "{}", refusal.reason);
        let (until, is_first) = self.shared.backoff.pause(&refusal);
        if is_first && matches!(refusal.cause, Cause::Connection | Cause::Broken) {
            self.shared.connection.turn();
        }
        sleep_until(until).await;
        if matches!(refusal.cause, Cause::Connection | Cause::Credentials) {
            api.refresh();
        }
        Ok(())
    }

    async fn send(&self, update: Update) -> Result<(), Closed> {
        self.updates.send(update).await.map_err(|_| Closed)
    }

    fn tuning(&self) -> &Tuning {
        &self.source.tuning
    }
}

/// Returns the update for an object that cannot be read. One of another kind may stand in the place of any that
/// is known.
fn kept<K: Watched>(reason: &Malformed) -> Update {
    let told = reason.to_string();
    match reason {
        Malformed::Object { name, .. } => Update::Unreadable(K::KIND, Some(name.clone()), told),
        _ => Update::Unreadable(K::KIND, None, told),
    }
}

/// Returns how an `ERROR` event ends a watch.
fn error(status: Status) -> Ended {
    let code = status.code.unwrap_or_default();
    let reason = status.reason.unwrap_or_default();
    let text = format!("{code} {}: {}", clip(&reason), clip(&status.message.unwrap_or_default()));
    if code == 410 || matches!(reason.as_str(), "Expired" | "Gone") {
        return Ended::Stale(text);
    }
    let asked = status.details.and_then(|details| details.retry_after_seconds);
    let retry_after = asked.and_then(|seconds| u64::try_from(seconds).ok()).map(Duration::from_secs);
    Ended::Broken(Refusal { reason: text, cause: Cause::Other, retry_after })
}

/// The server knows who asks, and does not allow it.
const FORBIDDEN: Cause = Cause::Status(403);

/// A watch that the server ends sooner counts as a failure.
const BRIEF: Duration = Duration::from_secs(1);

/// A watch that lasted longer counts as a success.
const STEADY: Duration = Duration::from_secs(10);
