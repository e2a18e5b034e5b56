//! Following one kind of object: list, watch, and again.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, timeout_at};

use super::backoff::Backoff;
use super::connect::Connection;
use super::event::Event;
use super::request::{Api, Cause, List, Refusal, Stream};
use super::watched::Watched;
use super::{Pace, Source};
use crate::source::Object;
use crate::source::update::{Kind, Update};

/// What follows one kind.
pub(super) struct Follower {
    source: Source,
    connection: Connection,
    teller: Teller,
    backoff: Backoff,
    /// Told when the first list is out.
    listed: Option<oneshot::Sender<()>>,
    /// The first list waits for these, for a while.
    after: Vec<oneshot::Receiver<()>>,
}

/// Nobody listens any more.
#[derive(Debug)]
struct Closed;

/// Why a watch ended.
enum Ended {
    /// The server ended it, as it does after a while.
    Quietly,
    /// It broke, or could not begin. What follows the last version may be asked for again.
    Broken(Refusal),
    /// The version is gone, as happens after a while without a connection: everything has to be listed anew.
    Stale(String),
    /// What the server says, or says of our question, makes no sense: everything has to be listed anew.
    Nonsense(String),
}

impl From<Refusal> for Ended {
    fn from(refusal: Refusal) -> Self {
        match refusal.cause {
            Cause::Stale => Self::Stale(refusal.reason),
            Cause::Nonsense | Cause::Absent => Self::Nonsense(refusal.reason),
            Cause::Connection | Cause::Other => Self::Broken(refusal),
        }
    }
}

impl Follower {
    pub(super) fn new(
        source: &Source,
        connection: Connection,
        updates: mpsc::Sender<Update>,
        listed: Option<oneshot::Sender<()>>,
        after: Vec<oneshot::Receiver<()>>,
    ) -> Self {
        Self {
            source: source.clone(),
            connection,
            teller: Teller { updates, remind: source.pace.remind, told: None },
            backoff: Backoff::new(&source.pace),
            listed,
            after,
        }
    }

    /// Follows until nobody listens.
    pub(super) async fn run<K: Watched>(mut self) {
        let mut api = Api::new::<K>(&self.source, self.connection.clone());
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

    /// One list, told whole, and its version; none when it has to be tried again, which it waited for.
    async fn list<K: Watched>(&mut self, api: &mut Api) -> Result<Option<String>, Closed> {
        match api.list::<K>().await {
            Ok(List { objects, version, unreadable }) => {
                for reason in unreadable {
                    self.teller.send(Update::Trouble(reason)).await?;
                }
                self.replace::<K>(objects).await?;
                self.teller.well(K::KIND);
                Ok(Some(version))
            }
            Err(refusal) if K::MAY_BE_ABSENT && refusal.cause == Cause::Absent => {
                tracing::debug!(kind = %K::KIND, "the API server does not have this API");
                self.replace::<K>(Vec::new()).await?;
                self.teller.well(K::KIND);
                sleep(self.pace().absent).await;
                Ok(None)
            }
            Err(refusal) => {
                self.refused::<K>(api, refusal).await?;
                Ok(None)
            }
        }
    }

    async fn replace<K: Watched>(&mut self, objects: Vec<Object>) -> Result<(), Closed> {
        let deadline = Instant::now() + self.pace().node;
        for first in self.after.drain(..) {
            // Late, or never: what was waited for has its own troubles, and tells them.
            let _ = timeout_at(deadline, first).await;
        }
        tracing::debug!(kind = %K::KIND, objects = objects.len(), "listed");
        self.teller.send(Update::Replace(K::KIND, objects)).await?;
        if let Some(listed) = self.listed.take() {
            // Whoever waited may have given up.
            let _ = listed.send(());
        }
        Ok(())
    }

    /// Watches from `version` for as long as that goes; afterwards everything has to be listed.
    async fn watch<K: Watched>(&mut self, api: &mut Api, mut version: String) -> Result<(), Closed> {
        loop {
            let began = Instant::now();
            let before = version.clone();
            let ended = match api.watch(&version).await {
                Ok(stream) => {
                    self.teller.well(K::KIND);
                    self.events::<K>(stream, &mut version).await?
                }
                Err(refusal) => Ended::from(refusal),
            };
            if version != before || began.elapsed() > STEADY {
                self.backoff.reset();
            }
            match ended {
                Ended::Quietly if version != before || began.elapsed() > BRIEF => {}
                Ended::Quietly => {
                    let reason = "the server ends every watch at once";
                    self.refused::<K>(api, Refusal::new(Cause::Other, reason)).await?;
                }
                Ended::Broken(refusal) => self.refused::<K>(api, refusal).await?,
                Ended::Stale(reason) => {
                    tracing::info!(kind = %K::KIND, "listing everything anew: {reason}");
                    sleep(self.backoff.pause(None)).await;
                    return Ok(());
                }
                Ended::Nonsense(reason) => {
                    return self.refused::<K>(api, Refusal::new(Cause::Nonsense, reason)).await;
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
                Ok(None) => return Ok(Ended::Quietly),
                Err(refusal) => return Ok(refusal.into()),
            };
            let (update, seen) = match Event::decode::<K>(&line) {
                Ok(Event::Apply(object, seen)) => (Some(Update::Apply(object)), seen),
                Ok(Event::Delete(name, seen)) => (Some(Update::Delete(name)), seen),
                Ok(Event::Unreadable(reason, seen)) => (Some(Update::Trouble(reason)), seen),
                Ok(Event::Bookmark(seen)) => (None, seen),
                Ok(Event::Error(status)) => return Ok(error(*status)),
                Err(reason) => return Ok(Ended::Nonsense(reason)),
            };
            if let Some(update) = update {
                self.teller.send(update).await?;
            }
            if seen.is_empty() {
                return Ok(Ended::Nonsense("an event has no resourceVersion".to_owned()));
            }
            *version = seen;
        }
    }

    /// Tells of a refusal and waits.
    async fn refused<K: Watched>(&mut self, api: &mut Api, refusal: Refusal) -> Result<(), Closed> {
        let Refusal { reason, cause, retry_after } = refusal;
        self.teller.trouble(K::KIND, &format!("{}: {reason}", api.url())).await?;
        sleep(self.backoff.pause(retry_after)).await;
        if cause == Cause::Connection {
            api.refresh();
        }
        Ok(())
    }

    fn pace(&self) -> &Pace {
        &self.source.pace
    }
}

/// What an `ERROR` event means.
fn error(status: Status) -> Ended {
    let code = status.code.unwrap_or_default();
    let reason = status.reason.unwrap_or_default();
    let text = format!("{code} {reason}: {}", status.message.unwrap_or_default());
    if code == 410 || matches!(reason.as_str(), "Expired" | "Gone") {
        return Ended::Stale(text);
    }
    let asked = status.details.and_then(|details| details.retry_after_seconds);
    let retry_after = asked.and_then(|seconds| u64::try_from(seconds).ok()).map(Duration::from_secs);
    Ended::Broken(Refusal { reason: text, cause: Cause::Other, retry_after })
}

/// Sends what there is to tell.
struct Teller {
    updates: mpsc::Sender<Update>,
    remind: Duration,
    /// The trouble that lasts, and when it was told last.
    told: Option<(String, Instant)>,
}

impl Teller {
    async fn send(&self, update: Update) -> Result<(), Closed> {
        self.updates.send(update).await.map_err(|_| Closed)
    }

    /// Tells a trouble, unless it was told just now.
    async fn trouble(&mut self, kind: Kind, reason: &str) -> Result<(), Closed> {
        if let Some((last, at)) = &self.told
            && last == reason
            && at.elapsed() < self.remind
        {
            return Ok(());
        }
        self.told = Some((reason.to_owned(), Instant::now()));
        self.send(Update::Trouble(format!("{kind}s from the API server {reason}"))).await
    }

    fn well(&mut self, kind: Kind) {
        if self.told.take().is_some() {
            tracing::info!(%kind, "the API server answers again");
        }
    }
}

/// A watch that ends sooner without a word was no watch.
const BRIEF: Duration = Duration::from_secs(1);

/// A watch that lasted longer worked.
const STEADY: Duration = Duration::from_secs(10);
