//! Kubernetes Events: what an operator sees by `kubectl describe` of a Service or of the node, without access to
//! the log.
//!
//! A [`Recorder`] follows a run loop and puts occurrences into a queue; the source writes them one after the
//! other. What finds no place in the queue waits for the next sync. Events are a courtesy: what the API server does
//! not take is dropped, the log and /status have all of it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use http_body_util::BodyExt as _;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::chrono::{DateTime, Utc};
use kube::client::Body;
use kube::core::Request;
use kube::core::Resource as _;
use kube::core::params::PostParams;
use sluicegate_service_rules::Error as RulesError;
use sluicegate_services::{Conflict, ServiceName};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::time::{sleep, timeout};

use super::connect::{Connection, explain};
use super::request::clip;
use crate::Mode;
use crate::run::{Observer, SyncReport};
use crate::source::observer::SourceObserver;

/// What has happened to an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Occurrence {
    /// The Service; `None` for this node.
    pub service: Option<ServiceName>,
    /// Whether somebody should look.
    pub is_warning: bool,
    /// A word for programs, as `FrontendConflict`.
    pub reason: &'static str,
    /// What was done, as `StartKubeProxy`.
    pub action: &'static str,
    /// A sentence for people.
    pub note: String,
}

/// Makes Events of what a run loop does. The same is told once in an hour, and of one object no more than a few
/// things: who writes objects cannot fill the API server by them.
pub struct Recorder {
    queue: Sender<Occurrence>,
    told: Mutex<Reported>,
}

/// What was told, and how often of each object.
#[derive(Default)]
struct Reported {
    /// What found no place in the queue.
    waiting: VecDeque<Occurrence>,
    since: Option<Instant>,
    of: HashMap<Option<ServiceName>, Vec<Occurrence>>,
}

impl Recorder {
    /// Creates a recorder, and the queue that [`Source::start_recording`](super::Source::start_recording) takes.
    /// The first Events are that the proxier starts, as kube-proxy's is, and what is deprecated of its mode.
    #[must_use]
    pub fn new(mode: Mode) -> (Self, Receiver<Occurrence>) {
        let (queue, occurrences) = mpsc::channel(QUEUE);
        let recorder = Self { queue, told: Mutex::default() };
        recorder.node(
            false,
            "Starting",
            "StartKubeProxy",
            format!("sluicegate-proxier starts in {mode} mode"),
        );
        if mode == Mode::Ipvs {
            let note =
                "ipvs mode is deprecated since Kubernetes 1.35: nftables mode takes its place".to_owned();
            recorder.node(true, "DeprecatedMode", "StartKubeProxy", note);
        }
        (recorder, occurrences)
    }

    fn node(&self, is_warning: bool, reason: &'static str, action: &'static str, note: String) {
        self.tell(Occurrence { service: None, is_warning, reason, action, note });
    }

    fn warn(&self, service: &ServiceName, reason: &'static str, action: &'static str, note: &str) {
        let (service, note) = (Some(service.clone()), note.to_owned());
        self.tell(Occurrence { service, is_warning: true, reason, action, note });
    }

    fn tell(&self, occurrence: Occurrence) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.is_news(&occurrence, Instant::now()) {
            if told.waiting.len() < MOST_WAITING {
                told.waiting.push_back(occurrence);
            } else {
                told.forget(&occurrence);
            }
        }
        self.send(&mut told);
    }

    /// Puts what waits into the queue, which is full while the API server is away or slow.
    fn send(&self, told: &mut Reported) {
        while let Some(occurrence) = told.waiting.pop_front() {
            if let Err(TrySendError::Full(occurrence)) = self.queue.try_send(occurrence) {
                return told.waiting.push_front(occurrence);
            }
        }
    }

    fn send_again(&self) {
        self.send(&mut self.told.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Reported {
    fn is_news(&mut self, occurrence: &Occurrence, now: Instant) -> bool {
        if self.since.is_none_or(|since| now.duration_since(since) >= AGAIN) || self.of.len() >= MOST_OBJECTS
        {
            self.of.clear();
            self.since = Some(now);
        }
        let of_object = self.of.entry(occurrence.service.clone()).or_default();
        if of_object.len() >= MOST_OF_ONE || of_object.contains(occurrence) {
            return false;
        }
        of_object.push(occurrence.clone());
        true
    }

    /// Takes back that this was told.
    fn forget(&mut self, occurrence: &Occurrence) {
        if let Some(of_object) = self.of.get_mut(&occurrence.service) {
            of_object.retain(|other| other != occurrence);
        }
    }
}

impl Observer for Recorder {
    fn synced(&self, report: &SyncReport) {
        for (name, why) in &report.refused {
            self.warn(name, "ServiceRefused", "SyncProxyRules", &format!("the kernel refuses it: {why}"));
        }
        self.send_again();
    }

    fn failed(&self, error: &RulesError) {
        self.node(true, "SyncFailed", "SyncProxyRules", error.to_string());
    }

    fn conflict(&self, conflict: &Conflict) {
        self.warn(&conflict.loser, "FrontendConflict", "SyncProxyRules", &conflict.to_string());
    }

    fn concerns(&self, service: &ServiceName, problem: &str) {
        self.warn(service, "ObjectProblem", "ReadObject", problem);
    }
}

/// Writes occurrences as Events, until the recorder is gone.
pub(super) async fn write(
    node: String,
    connection: Connection,
    observer: Arc<dyn SourceObserver>,
    patience: Duration,
    mut occurrences: Receiver<Occurrence>,
) {
    let mut refused_for = None;
    while let Some(occurrence) = occurrences.recv().await {
        let event = event(&node, &occurrence, SystemTime::now());
        for attempt in 1..=ATTEMPTS {
            match post(&connection, &*observer, patience, &event).await {
                Ok(()) => refused_for = None,
                Err(Failure::Away(why)) if attempt < ATTEMPTS => {
                    tracing::debug!("an Event waits for the API server: {why}");
                    sleep(PAUSE).await;
                    continue;
                }
                Err(Failure::Away(why) | Failure::Refused(why)) => {
                    if refused_for.as_ref() != Some(&why) {
                        tracing::info!("an Event could not be written: {why}");
                    }
                    refused_for = Some(why);
                }
            }
            break;
        }
        sleep(BETWEEN).await;
    }
}

/// Why an Event was not written.
enum Failure {
    /// There was no answer.
    Away(String),
    /// The server does not want it.
    Refused(String),
}

async fn post(
    connection: &Connection,
    observer: &dyn SourceObserver,
    patience: Duration,
    event: &Event,
) -> Result<(), Failure> {
    let refused = |error: &dyn std::fmt::Display| Failure::Refused(error.to_string());
    let namespace = event.metadata.namespace.as_deref();
    let body = serde_json::to_vec(event).map_err(|error| refused(&error))?;
    let size = body.len();
    let request = Request::new(Event::url_path(&(), namespace)).create(&PostParams::default(), body);
    let request = request.map_err(|error| refused(&error))?;
    let (client, _) = connection.client().map_err(|error| Failure::Away(explain(&error)))?;
    let began = Instant::now();
    let answer = match timeout(patience, client.send(request.map(Body::from))).await {
        Err(_) => Err(format!("no answer within {patience:?}")),
        Ok(answer) => answer.map_err(|error| explain(&error)),
    };
    let status = answer.as_ref().ok().map(|response| response.status().as_u16());
    observer.posted(&connection.host(), status, size, began.elapsed());
    let response = answer.map_err(Failure::Away)?;
    let status = response.status();
    if status.is_success() {
        // The connection is free again when the body was read.
        let _ = timeout(patience, response.into_body().collect()).await;
        return Ok(());
    }
    if status.is_server_error() && status.as_u16() != 501 {
        return Err(Failure::Away(status.to_string()));
    }
    Err(Failure::Refused(status.to_string()))
}

/// Returns the object of an occurrence. Of a Service it is beside it, of the node, which has no namespace, in
/// `default`.
fn event(node: &str, occurrence: &Occurrence, now: SystemTime) -> Event {
    let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
    let time = DateTime::<Utc>::from_timestamp(seconds, since.subsec_nanos()).unwrap_or_default();
    let (kind, namespace, name) = match &occurrence.service {
        Some(service) => ("Service", Some(service.namespace().to_owned()), service.name().to_owned()),
        None => ("Node", None, node.to_owned()),
    };
    let regarding = ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some(kind.to_owned()),
        namespace: namespace.clone(),
        name: Some(name.clone()),
        // As the kubelet does for its node, so that `kubectl describe node` finds it.
        uid: occurrence.service.is_none().then(|| name.clone()),
        ..ObjectReference::default()
    };
    Event {
        metadata: ObjectMeta {
            namespace: Some(namespace.unwrap_or_else(|| "default".to_owned())),
            name: Some(format!("{name}.{:x}", since.as_nanos())),
            ..ObjectMeta::default()
        },
        event_time: Some(MicroTime(time)),
        action: Some(occurrence.action.to_owned()),
        reason: Some(occurrence.reason.to_owned()),
        note: Some(clip(&occurrence.note).to_owned()),
        regarding: Some(regarding),
        reporting_controller: Some("kube-proxy".to_owned()),
        reporting_instance: Some(format!("sluicegate-proxier-{node}")),
        type_: Some(if occurrence.is_warning { "Warning" } else { "Normal" }.to_owned()),
        ..Event::default()
    }
}

/// The most occurrences that wait to be written.
const QUEUE: usize = 64;
/// The most that wait for a place among those.
const MOST_WAITING: usize = 1024;
/// The time after which the same is told again.
const AGAIN: Duration = Duration::from_secs(3600);
/// The most that is told of one object in that time.
const MOST_OF_ONE: usize = 10;
/// The most objects that are remembered.
const MOST_OBJECTS: usize = 4096;
/// How often an Event is tried while the server does not answer, and the pause between, as client-go does.
const ATTEMPTS: usize = 12;
const PAUSE: Duration = Duration::from_secs(10);
/// The least time between two Events.
const BETWEEN: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    fn occurrence(service: Option<&str>, note: &str) -> Occurrence {
        let service = service.map(|name| ServiceName::new("demo", name).unwrap());
        let note = note.to_owned();
        Occurrence { service, is_warning: true, reason: "ObjectProblem", action: "ReadObject", note }
    }

    #[test]
    fn the_same_is_told_once_an_hour_and_little_of_one_object() {
        let (mut told, start) = (Reported::default(), Instant::now());
        assert!(told.is_news(&occurrence(Some("a"), "x"), start));
        assert!(!told.is_news(&occurrence(Some("a"), "x"), start));
        assert!(told.is_news(&occurrence(Some("b"), "x"), start));
        assert!(told.is_news(&occurrence(None, "x"), start));
        let news = (0..100).filter(|n| told.is_news(&occurrence(Some("a"), &n.to_string()), start)).count();
        assert_eq!(news, MOST_OF_ONE - 1);
        assert!(told.is_news(&occurrence(Some("a"), "x"), start + AGAIN));
        for n in 0..2 * MOST_OBJECTS {
            told.is_news(&occurrence(Some(&format!("s{n}")), "x"), start + AGAIN);
        }
        assert!(told.of.len() <= MOST_OBJECTS);
    }

    #[test]
    fn an_event_of_a_service_is_beside_it_and_one_of_the_node_in_default() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_nanos(1_500_000_000);
        let of_service = event("here", &occurrence(Some("web"), &"n".repeat(5000)), now);
        assert_eq!(of_service.metadata.namespace.as_deref(), Some("demo"));
        assert_eq!(of_service.metadata.name.as_deref(), Some("web.59682f00"));
        assert!(of_service.note.as_ref().is_some_and(|note| note.len() <= 1024), "the API takes no more");
        let regarding = of_service.regarding.unwrap();
        assert_eq!((regarding.kind.as_deref(), regarding.uid), (Some("Service"), None));
        let of_node = event("here", &occurrence(None, "x"), now);
        assert_eq!(of_node.metadata.namespace.as_deref(), Some("default"));
        let json = serde_json::to_value(&of_node).unwrap();
        assert_eq!(json["eventTime"], "1970-01-01T00:00:01.500000Z");
        assert_eq!((&json["type"], &json["regarding"]["kind"]), (&"Warning".into(), &"Node".into()));
    }

    #[test]
    fn what_finds_the_queue_full_is_told_when_there_is_room() {
        let (recorder, mut queue) = Recorder::new(Mode::Nftables);
        let service = |number: usize| ServiceName::new("demo", &format!("s{number}")).unwrap();
        let more = MOST_WAITING + QUEUE;
        for number in 0..=more {
            recorder.concerns(&service(number), "x");
        }
        let mut read = || std::iter::from_fn(|| queue.try_recv().ok()).map(|told| told.service).collect();
        let mut told: Vec<Option<ServiceName>> = read();
        while let Some(last) = told.last().cloned() {
            recorder.send_again();
            let next: Vec<_> = read();
            assert!(!next.contains(&last));
            if next.is_empty() {
                break;
            }
            told.extend(next);
        }
        // One place was the start's.
        assert_eq!(told.len(), more);
        assert_eq!(told[1..], (0..more - 1).map(|number| Some(service(number))).collect::<Vec<_>>());
        // What nothing had room for does not count as told.
        recorder.concerns(&service(more), "x");
        recorder.concerns(&service(0), "x");
        assert_eq!(read(), [Some(service(more))]);
    }

    #[test]
    fn the_start_and_a_deprecated_mode_are_told_first() {
        let reasons = |mode| {
            let (_recorder, mut queue) = Recorder::new(mode);
            std::iter::from_fn(|| queue.try_recv().ok()).map(|told| told.reason).collect::<Vec<_>>()
        };
        assert_eq!(reasons(Mode::Nftables), ["Starting"]);
        assert_eq!(reasons(Mode::Ipvs), ["Starting", "DeprecatedMode"]);
    }
}
