//! `/status`: what the daemon does and what troubles it, with every service port and its endpoints, as JSON
//! for the command `status`.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU16;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use k8s_openapi::chrono::{DateTime, SecondsFormat, Utc};
use serde::Serialize;
use sluicegate_services::{Family, Scheduler, ServicePort};
use tokio::sync::{mpsc::Sender, oneshot};

use super::counted::Counted;
use super::http::Reply;
use super::readyz::Condition;
use super::{Answer, JSON, PLAIN, answer};
use crate::Visible;
use crate::run::{Inspection, Snapshot, SyncReport};

/// The last syncs and troubles. Callers pass in the time.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    syncs: VecDeque<Sync>,
    /// The last failure, until a sync succeeds.
    failure: Option<Failure>,
    /// What a source or a server could not do.
    warnings: VecDeque<Warning>,
}

/// A sync that succeeded.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Sync {
    time: String,
    seconds: f64,
    /// Whether it compared everything.
    full: bool,
    /// The number of services that changed.
    changed: usize,
    summary: String,
}

/// Syncs that failed since the last one that succeeded.
#[derive(Clone, Debug, Serialize)]
struct Failure {
    since: String,
    last: String,
    count: u64,
    reason: String,
}

/// A warning, with the number of times that it was given in a row.
#[derive(Clone, Debug, Serialize)]
struct Warning {
    time: String,
    text: String,
    count: u64,
}

impl History {
    /// Records a sync that succeeded.
    pub(super) fn synced(&mut self, report: &SyncReport, now: SystemTime) {
        self.failure = None;
        let (seconds, summary) = (report.took.as_secs_f64(), report.sent.to_string());
        let sync =
            Sync { time: rfc3339(now), seconds, full: report.is_full, changed: report.changed, summary };
        keep(&mut self.syncs, sync, SYNCS);
    }

    /// Records a sync that failed.
    pub(super) fn failed(&mut self, reason: &str, now: SystemTime) {
        let last = rfc3339(now);
        let failure = self.failure.get_or_insert_with(|| Failure {
            since: last.clone(),
            last: String::new(),
            count: 0,
            reason: String::new(),
        });
        failure.count += 1;
        (failure.last, failure.reason) = (last, reason.to_owned());
    }

    /// Records a warning.
    pub(super) fn warned(&mut self, text: &str, now: SystemTime) {
        let time = rfc3339(now);
        match self.warnings.back_mut().filter(|last| last.text == text) {
            Some(last) => (last.time, last.count) = (time, last.count + 1),
            None => keep(&mut self.warnings, Warning { time, text: text.to_owned(), count: 1 }, WARNINGS),
        }
    }
}

/// What the page says beside the services.
pub(super) struct Facts {
    pub(super) mode: &'static str,
    pub(super) started: SystemTime,
    pub(super) history: History,
    pub(super) conditions: Vec<Condition>,
    pub(super) families: Vec<Family>,
    /// The scheduler of services that ask for none; `None` in modes without schedulers.
    pub(super) scheduler: Option<Scheduler>,
}

/// Returns the body of the page. It is written at once, without a tree of values in between: with many
/// services that would take more memory than all else.
pub(super) fn page(
    facts: &Facts,
    world: &Snapshot,
    counted: Option<&Mutex<Counted>>,
    now: SystemTime,
) -> String {
    let cluster = &world.cluster;
    let mut counted = counted.map(|counted| counted.lock().unwrap_or_else(PoisonError::into_inner));
    let unknown =
        counted.as_mut().and_then(|counted| counted.read(cluster).err()).map(|error| error.to_string());
    let counted = counted.as_deref().filter(|_| unknown.is_none());
    let mut names: Vec<_> = cluster.service_names().collect();
    names.sort();
    let ports = names
        .into_iter()
        .flat_map(|name| facts.families.iter().flat_map(move |family| cluster.ports(name, *family)));
    let page = Page {
        version: env!("CARGO_PKG_VERSION"),
        mode: facts.mode,
        node: &cluster.node().name,
        started: rfc3339(facts.started),
        time: rfc3339(now),
        ready: facts.conditions.iter().all(Condition::is_met),
        conditions: facts.conditions.iter().map(ToString::to_string).collect(),
        syncs: &facts.history.syncs,
        failure: facts.history.failure.as_ref(),
        warnings: &facts.history.warnings,
        refused: world.refused.iter().map(|(name, why)| format!("Service {name}: {why}")).collect(),
        conflicts: cluster.conflicts().map(|conflict| conflict.to_string()).collect(),
        forbidden_external_ips: cluster
            .forbidden_external_ips()
            .map(|(name, left_out)| {
                let left_out: Vec<_> = left_out.iter().map(ToString::to_string).collect();
                format!("Service {name}: {}", left_out.join(", "))
            })
            .collect(),
        services: cluster.service_count(),
        connections_unknown: unknown,
        ports: Ports(std::cell::RefCell::new(Box::new(ports)), facts.scheduler, counted),
    };
    // Nothing in it can fail to be written.
    Visible::json(&serde_json::to_string(&page).unwrap_or_default())
}

/// Writes a page for all who ask at the same time, on a thread of its own: neither the run loop nor the
/// thread that answers health checks waits for it. `R` is what the page depends on of a request.
#[derive(Debug)]
pub(super) struct Writer<R>(SyncSender<(R, oneshot::Sender<Answer>)>);

impl<R: Send + 'static> Writer<R> {
    /// Starts the thread. `write` returns the page for each of the requests.
    pub(super) fn start(
        name: &str,
        mut write: impl FnMut(&[R]) -> Vec<Answer> + Send + 'static,
    ) -> std::io::Result<Self> {
        let (sender, requests) = sync_channel::<(R, oneshot::Sender<Answer>)>(MOST_WAITING);
        std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            while let Ok(first) = requests.recv() {
                let began = Instant::now();
                let (asked, waiting): (Vec<_>, Vec<_>) =
                    std::iter::once(first).chain(requests.try_iter()).unzip();
                for (waiting, answer) in waiting.into_iter().zip(write(&asked)) {
                    // Whoever asked may be gone.
                    let _ = waiting.send(answer);
                }
                // Not more than half of the time, however many ask.
                std::thread::sleep(began.elapsed().min(LONGEST_PAUSE));
            }
        })?;
        Ok(Self(sender))
    }

    /// Returns the page, or an answer that says that too many wait for it.
    pub(super) fn reply(&self, request: R) -> Reply {
        let (sender, answered) = oneshot::channel();
        match self.0.try_send((request, sender)) {
            Ok(()) => Reply::Later(answered),
            Err(_) => answer(503, PLAIN, "too many ask already\n".to_owned()).into(),
        }
    }
}

/// Returns a function that writes the status page. `facts` has what is known without the loop, which `asking`
/// leads to.
pub(super) fn status(
    facts: impl Fn() -> Facts + Send,
    asking: Sender<Inspection>,
    counted: Option<Arc<Mutex<Counted>>>,
) -> impl FnMut(&[()]) -> Vec<Answer> + Send {
    let mut last = None;
    move |requests| {
        last = snapshot(&asking).or_else(|| last.take());
        let answer = match &last {
            Some(world) => answer(200, JSON, page(&facts(), world, counted.as_deref(), SystemTime::now())),
            None => answer(503, PLAIN, "nothing is followed yet\n".to_owned()),
        };
        vec![answer; requests.len()]
    }
}

/// Asks the loop for a copy of its world; `None` when it does not answer.
pub(super) fn snapshot(asking: &Sender<Inspection>) -> Option<Snapshot> {
    let (sender, answered) = sync_channel(1);
    let look: Inspection = Box::new(move |world| {
        let _ = sender.send(world.snapshot());
    });
    asking.try_send(look).ok()?;
    answered.recv_timeout(LOOK).ok()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Page<'a> {
    version: &'static str,
    mode: &'static str,
    node: &'a str,
    started: String,
    time: String,
    ready: bool,
    conditions: Vec<String>,
    syncs: &'a VecDeque<Sync>,
    failure: Option<&'a Failure>,
    warnings: &'a VecDeque<Warning>,
    refused: Vec<String>,
    conflicts: Vec<String>,
    /// The external IPs that are left out, because the configuration forbids them.
    #[serde(rename = "forbiddenExternalIPs")]
    forbidden_external_ips: Vec<String>,
    services: usize,
    /// Why connections are counted, and not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    connections_unknown: Option<String>,
    ports: Ports<'a>,
}

/// The service ports, written one after the other as they are computed.
struct Ports<'a>(
    std::cell::RefCell<Box<dyn Iterator<Item = ServicePort<'a>> + 'a>>,
    /// The scheduler of the node.
    Option<Scheduler>,
    Option<&'a Counted>,
);

impl Serialize for Ports<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.borrow_mut().by_ref().map(|port| Port::new(&port, self.1, self.2)))
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Port {
    name: String,
    protocol: &'static str,
    #[serde(rename = "clusterIP")]
    cluster_ip: Option<IpAddr>,
    port: NonZeroU16,
    node_port: Option<NonZeroU16>,
    #[serde(rename = "externalIPs")]
    external_ips: Vec<IpAddr>,
    #[serde(rename = "loadBalancerIPs")]
    load_balancer_ips: Vec<IpAddr>,
    /// How an endpoint is chosen; none under session affinity, and in modes without schedulers.
    scheduler: Option<String>,
    /// The connections since the kernel counts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    connections: Option<u64>,
    endpoints: Vec<Endpoint>,
}

#[derive(Serialize)]
struct Endpoint {
    address: SocketAddr,
    local: bool,
    ready: bool,
    serving: bool,
    terminating: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    connections: Option<u64>,
}

impl Port {
    fn new(port: &ServicePort<'_>, default: Option<Scheduler>, counted: Option<&Counted>) -> Self {
        let counted = counted.map(|counted| (counted, port.frontends()));
        let of_endpoint = |address| {
            let (counted, frontends) = counted.as_ref()?;
            counted.of_endpoint(frontends, address)
        };
        let endpoint = |endpoint: &sluicegate_services::Endpoint| Endpoint {
            address: endpoint.address,
            local: endpoint.is_local,
            ready: endpoint.ready,
            serving: endpoint.serving,
            terminating: endpoint.terminating,
            connections: of_endpoint(endpoint.address),
        };
        Self {
            name: port.name.to_string(),
            protocol: port.name.protocol.as_str(),
            cluster_ip: port.cluster_ip,
            port: port.port,
            node_port: port.node_port,
            external_ips: port.external_ips.clone(),
            load_balancer_ips: port.load_balancer_ips.clone(),
            scheduler: default.and_then(|default| port.service.scheduler(default)).map(|one| one.to_string()),
            connections: counted.as_ref().map(|(counted, frontends)| counted.of_port(frontends)),
            endpoints: port.endpoints.iter().map(endpoint).collect(),
        }
    }
}

/// Adds to a list that keeps the last ones.
fn keep<T>(list: &mut VecDeque<T>, item: T, most: usize) {
    if list.len() == most {
        list.pop_front();
    }
    list.push_back(item);
}

fn rfc3339(time: SystemTime) -> String {
    // chrono takes a `SystemTime` only with its feature `std`, which comes with the feature `kube` alone.
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
    let time = DateTime::<Utc>::from_timestamp(seconds, since.subsec_nanos()).unwrap_or_default();
    time.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// The most requests that wait for one page.
const MOST_WAITING: usize = 16;
/// How long to wait for the loop, which may be in a sync, before the last copy of its world is shown.
const LOOK: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// The number of syncs that are kept.
const SYNCS: usize = 5;
/// The number of warnings that are kept.
const WARNINGS: usize = 20;

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::run::{ThisNode, World};

    #[test]
    fn troubles_are_counted_and_the_last_ones_kept() {
        let (mut history, start) = (History::default(), SystemTime::UNIX_EPOCH);
        for second in 0..3 {
            history.failed("no room", start + Duration::from_secs(second));
            history.warned("a file is gone", start + Duration::from_secs(second));
        }
        for number in 0..WARNINGS {
            history.warned(&format!("warning {number}"), start);
        }
        let conditions = vec![Condition::new("rules", Some("no room".to_owned()))];
        let families = Family::BOTH.into();
        let facts =
            Facts { mode: "nftables", started: start, history, conditions, families, scheduler: None };
        let this = ThisNode { name: "here".to_owned(), ..ThisNode::default() };
        let page = page(&facts, &World::new(this).snapshot(), None, start);
        let page: Value = serde_json::from_str(&page).unwrap();
        assert_eq!((&page["ready"], &page["node"]), (&false.into(), &"here".into()));
        assert_eq!(page["conditions"][0], "[-]rules failed: no room");
        let failure = &page["failure"];
        assert_eq!((&failure["count"], &failure["reason"]), (&3.into(), &"no room".into()));
        assert_eq!(
            (&failure["since"], &failure["last"]),
            (&"1970-01-01T00:00:00.000Z".into(), &"1970-01-01T00:00:02.000Z".into())
        );
        let warnings = page["warnings"].as_array().unwrap();
        assert_eq!((warnings.len(), &warnings[0]["text"]), (WARNINGS, &"warning 0".into()));
    }
}
