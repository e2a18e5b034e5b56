//! The loop with a kernel that only remembers, and refuses what a test wants it to.

use std::sync::Mutex;

use sluicegate_conntrack::{Client, Filter, NewFlow, Protocol, Tuple};
use sluicegate_service_rules::Present;
use tokio::sync::mpsc::{self, Sender};

use super::*;
use crate::run::ThisNode;
use crate::source;
use crate::source::update::{Kind, ObjectName};

/// What the backend and the observer share with a test.
#[derive(Default)]
struct Kernel {
    holds: BTreeSet<String>,
    syncs: usize,
    /// Every sync fails so often more.
    failures: usize,
    /// Services that are refused, and whether by name.
    refuses: Vec<(String, bool)>,
    reports: Vec<SyncReport>,
    errors: Vec<String>,
    warnings: Vec<String>,
    queued: usize,
    /// How often what it serves was listed.
    listed: usize,
    /// What stood before the start.
    present: Present,
}

#[derive(Clone, Default)]
struct Fake(Arc<Mutex<Kernel>>);

impl Backend for Fake {
    fn sync(&mut self, cluster: &Cluster, _: &Changes, _: Instant) -> Result<Summary, RulesError> {
        let mut kernel = self.0.lock().unwrap();
        kernel.syncs += 1;
        if kernel.failures > 0 {
            kernel.failures -= 1;
            return Err(RulesError::backend("programming the test's kernel", "no answer"));
        }
        let wanted: BTreeSet<String> = cluster.service_names().map(ToString::to_string).collect();
        let refused = kernel.refuses.iter().filter(|(name, _)| wanted.contains(name));
        let (named, nameless): (Vec<_>, Vec<_>) = refused.partition(|(_, named)| *named);
        if !named.is_empty() || !nameless.is_empty() {
            let name = |text: &str| {
                let (namespace, name) = text.split_once('/').unwrap();
                ServiceName::new(namespace, name).unwrap()
            };
            let services = named.iter().map(|(text, _)| (name(text), "no room".to_owned())).collect();
            return Err(RulesError::Refused { services });
        }
        kernel.holds = wanted;
        Ok(Summary::default())
    }

    fn invalidate(&mut self) {}

    fn present(&mut self) -> Result<Option<Present>, RulesError> {
        let mut kernel = self.0.lock().unwrap();
        kernel.listed += 1;
        Ok(Some(kernel.present.clone()))
    }
}

impl Observer for Fake {
    fn queued(&self, _: Instant, _: &Cluster) {
        self.0.lock().unwrap().queued += 1;
    }

    fn synced(&self, report: &SyncReport) {
        self.0.lock().unwrap().reports.push(report.clone());
    }

    fn failed(&self, error: &RulesError) {
        self.0.lock().unwrap().errors.push(error.to_string());
    }

    fn warning(&self, warning: &str) {
        self.0.lock().unwrap().warnings.push(warning.to_owned());
    }
}

/// A loop that runs on a thread of its own.
struct Running {
    kernel: Fake,
    updates: Sender<Update>,
    signals: Sender<Signal>,
    thread: std::thread::JoinHandle<Result<(), Error>>,
}

impl Running {
    fn new() -> Self {
        Self::with(Present::default(), |looping| looping)
    }

    fn with(present: Present, set: impl FnOnce(Loop) -> Loop + Send + 'static) -> Self {
        let kernel = Fake::default();
        kernel.0.lock().unwrap().present = present;
        let intervals = Intervals {
            min: Duration::from_millis(1),
            sync: Duration::from_secs(60),
            full: Duration::from_secs(3600),
        };
        let (updates, news) = mpsc::channel(100);
        let (signals, told) = mpsc::channel(1);
        let fake = kernel.clone();
        let thread = std::thread::spawn(move || {
            let world = World::new(ThisNode { name: "node".to_owned(), ..ThisNode::default() });
            let looping = Loop::new(world, Box::new(fake.clone()), intervals, Arc::new(fake)).unwrap();
            let looping = set(looping);
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(looping.run(news, told))
        });
        Self { kernel, updates, signals, thread }
    }

    fn listed(services: &[&str]) -> Self {
        let running = Self::new();
        running.tell(Update::Replace(Kind::EndpointSlice, Vec::new()));
        running.tell(Update::Replace(Kind::Service, services.iter().map(|name| service(name)).collect()));
        running
    }

    fn tell(&self, update: Update) {
        self.updates.blocking_send(update).unwrap();
    }

    fn wait(&self, what: &str, condition: impl Fn(&Kernel) -> bool) {
        let end = Instant::now() + Duration::from_secs(30);
        while !condition(&self.kernel.0.lock().unwrap()) {
            assert!(Instant::now() < end, "it never came to this: {what}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn holds(&self, names: &[&str]) {
        let wanted: BTreeSet<String> = names.iter().map(|name| format!("demo/{name}")).collect();
        self.wait(&format!("{names:?} is held"), |kernel| kernel.holds == wanted);
    }

    fn kernel<T>(&self, change: impl FnOnce(&mut Kernel) -> T) -> T {
        change(&mut self.kernel.0.lock().unwrap())
    }

    fn stop(self) -> Result<(), Error> {
        self.signals.blocking_send(Signal::Stop).unwrap();
        self.thread.join().unwrap()
    }
}

fn service(name: &str) -> source::Object {
    service_with(name, 80)
}

fn service_with(name: &str, port: u16) -> source::Object {
    let number: u32 = name.bytes().map(u32::from).sum();
    let text = format!(
        "{{apiVersion: v1, kind: Service, metadata: {{namespace: demo, name: {name}}}, spec: {{clusterIP: \
            10.0.0.{}, ports: [{{port: {port}}}]}}}}",
        number % 250 + 1
    );
    let mut found = None;
    source::read_str("test.yaml", &text, |manifest| found = Some(manifest.object)).unwrap();
    found.unwrap()
}

#[test]
fn nothing_is_programmed_before_services_and_slices_have_both_been_listed() {
    for (first, second) in [(Kind::Service, Kind::EndpointSlice), (Kind::EndpointSlice, Kind::Service)] {
        let running = Running::new();
        running.tell(Update::Replace(Kind::Node, Vec::new()));
        running.tell(Update::Replace(first, Vec::new()));
        running.tell(Update::Apply(service("early")));
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(running.kernel(|kernel| (kernel.syncs, kernel.queued)), (0, 0));
        let list = if second == Kind::Service { vec![service("early")] } else { Vec::new() };
        running.tell(Update::Replace(second, list));
        running.holds(&["early"]);
        running.stop().unwrap();
    }
}

#[test]
fn what_stands_is_not_removed_for_an_empty_source_and_is_when_that_is_asked_for() {
    let mut present = Present::default();
    // Those of the services `a` to `t`.
    present.cluster_ips.extend((98..118).map(|last| std::net::IpAddr::from([10, 0, 0, last])));
    let all = |running: &Running, services: &[&str]| {
        running.tell(Update::Replace(Kind::EndpointSlice, Vec::new()));
        let list = services.iter().map(|name| service(name)).collect();
        running.tell(Update::Replace(Kind::Service, list));
    };
    let running = Running::with(present.clone(), |looping| looping.guarded(true));
    all(&running, &[]);
    running.wait("a failure", |kernel| !kernel.errors.is_empty());
    assert_eq!(running.kernel(|kernel| kernel.syncs), 0);
    let error = "nothing is programmed, and the rules of before stay in use: 20 of the 20 cluster IPs that the \
                 kernel serves have no Service any more; it goes on when most of them are among the manifests, and \
                 --allow-empty removes those that are missing there";
    assert_eq!(running.kernel(|kernel| kernel.errors[0].clone()), error);
    // What the kernel serves is not listed anew at each change.
    running.tell(Update::Apply(service("a")));
    running.wait("another failure", |kernel| kernel.errors.len() > 1);
    running.tell(Update::Delete(ObjectName::Service { namespace: "demo".to_owned(), name: "a".to_owned() }));
    running.wait("a third failure", |kernel| kernel.errors.len() > 2);
    assert_eq!(running.kernel(|kernel| kernel.listed), 1);
    // With what was there it begins, and follows what is taken away then.
    let half = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    running.tell(Update::Replace(Kind::Service, half.iter().map(|name| service(name)).collect()));
    running.holds(&half);
    running.tell(Update::Replace(Kind::Service, Vec::new()));
    running.holds(&[]);
    running.stop().unwrap();

    let running = Running::with(present, |looping| looping);
    all(&running, &[]);
    running.wait("a sync", |kernel| kernel.syncs > 0);
    running.stop().unwrap();
}

#[test]
fn what_is_probably_not_meant_is_told_once() {
    let lint: Lint =
        Box::new(|world| world.other_nodes().map(|node| format!("beware of {}", node.name)).collect());
    let node = |name: &str| {
        let text = format!("{{apiVersion: v1, kind: Node, metadata: {{name: {name}}}}}");
        let mut found = None;
        source::read_str("test.yaml", &text, |manifest| found = Some(manifest.object)).unwrap();
        Update::Apply(found.unwrap())
    };
    let running = Running::with(Present::default(), move |looping| looping.linted_by(lint));
    running.tell(node("node"));
    running.tell(node("other"));
    running.tell(Update::Replace(Kind::EndpointSlice, Vec::new()));
    running.tell(Update::Replace(Kind::Service, vec![service("a")]));
    running.holds(&["a"]);
    running.tell(Update::Apply(service("b")));
    running.holds(&["a", "b"]);
    assert_eq!(running.kernel(|kernel| kernel.warnings.clone()), ["beware of other"]);
    // Another node is no change to program.
    running.tell(node("third"));
    running.wait("it is told", |kernel| kernel.warnings.last().is_some_and(|last| last == "beware of third"));
    running.stop().unwrap();
}

#[test]
fn objects_come_change_go_and_are_replaced() {
    let running = Running::listed(&["a", "b"]);
    running.holds(&["a", "b"]);
    running.tell(Update::Apply(service("c")));
    running.holds(&["a", "b", "c"]);
    running.tell(Update::Delete(ObjectName::Service { namespace: "demo".to_owned(), name: "a".to_owned() }));
    running.holds(&["b", "c"]);
    running.tell(Update::Replace(Kind::Service, vec![service("d"), service("c")]));
    running.holds(&["c", "d"]);
    let syncs = running.kernel(|kernel| kernel.syncs);
    running.tell(Update::Apply(service("d")));
    running.tell(Update::Warning("the server is away".to_owned()));
    running.wait("the warning is told", |kernel| kernel.warnings == ["the server is away"]);
    assert_eq!(running.kernel(|kernel| kernel.syncs), syncs, "what is as it was is no change");
    running.stop().unwrap();
}

#[test]
fn a_failure_is_tried_again_and_the_report_has_all_that_waited() {
    let running = Running::listed(&["a"]);
    running.holds(&["a"]);
    running.kernel(|kernel| kernel.failures = 2);
    running.tell(Update::Apply(service("b")));
    running.wait("a failure", |kernel| !kernel.errors.is_empty());
    running.tell(Update::Apply(service("c")));
    running.holds(&["a", "b", "c"]);
    running.wait("a report", |kernel| kernel.reports.len() == 2);
    let report = running.kernel(|kernel| kernel.reports[1].clone());
    assert_eq!((report.services, report.changed, report.is_full), (3, 2, true));
    assert!(report.queued.is_some_and(|queued| queued < report.began));
    running.stop().unwrap();
}

#[test]
fn a_service_that_is_refused_by_name_is_left_out_until_it_changes_or_is_asked_for_again() {
    let running = Running::listed(&["a", "bad", "c"]);
    running.holds(&["a", "bad", "c"]);
    running.kernel(|kernel| kernel.refuses = vec![("demo/bad".to_owned(), true)]);
    running.tell(Update::Apply(service_with("bad", 81)));
    running.holds(&["a", "c"]);
    running.wait("a report", |kernel| kernel.reports.len() == 2);
    let refused = running.kernel(|kernel| kernel.reports[1].refused.clone());
    assert_eq!(refused.len(), 1);
    assert_eq!((refused[0].0.as_str(), refused[0].1.as_str()), ("demo/bad", "no room"));
    // The others go on, and it stays out.
    running.tell(Update::Apply(service("d")));
    running.holds(&["a", "c", "d"]);
    running.kernel(|kernel| kernel.refuses.clear());
    running.signals.blocking_send(Signal::Resync).unwrap();
    running.holds(&["a", "bad", "c", "d"]);
    running.wait("a report", |kernel| kernel.reports.last().is_some_and(|report| report.refused.is_empty()));
    // Refused again, and then corrected.
    running.kernel(|kernel| kernel.refuses = vec![("demo/bad".to_owned(), true)]);
    running.tell(Update::Apply(service_with("bad", 82)));
    running.holds(&["a", "c", "d"]);
    running.kernel(|kernel| kernel.refuses.clear());
    running.tell(Update::Apply(service_with("bad", 83)));
    running.holds(&["a", "bad", "c", "d"]);
    running.stop().unwrap();
}

#[test]
fn the_culprits_of_an_error_that_names_nobody_are_found() {
    let running = Running::listed(&["old"]);
    running.holds(&["old"]);
    running.kernel(|kernel| {
        kernel.refuses = vec![("demo/s17".to_owned(), false), ("demo/s40".to_owned(), false)];
    });
    let names: Vec<String> = (0..60).map(|n| format!("s{n}")).collect();
    let services = names.iter().map(String::as_str).chain(["old"]);
    running.tell(Update::Replace(Kind::Service, services.clone().map(service).collect()));
    let rest: Vec<&str> = services.filter(|name| !["s17", "s40"].contains(name)).collect();
    running.wait("a report", |kernel| kernel.reports.len() == 2);
    running.holds(&rest);
    let report = running.kernel(|kernel| kernel.reports[1].clone());
    let refused: Vec<_> = report.refused.iter().map(|(name, _)| name.to_string()).collect();
    assert_eq!(refused, ["demo/s17", "demo/s40"]);
    running.stop().unwrap();
}

#[test]
fn an_error_that_is_nobodys_fault_leaves_nobody_out() {
    let running = Running::listed(&["a", "bad"]);
    running.holds(&["a", "bad"]);
    // Refused whatever changes: the fault is with one that has not changed.
    running.kernel(|kernel| kernel.refuses = vec![("demo/bad".to_owned(), false)]);
    running.tell(Update::Apply(service("b")));
    running.wait("a failure", |kernel| !kernel.errors.is_empty());
    running.kernel(|kernel| kernel.refuses.clear());
    running.holds(&["a", "b", "bad"]);
    running.stop().unwrap();
}

/// A service with a UDP port, an external and a load balancer's address, and its endpoint.
fn dns(endpoint: &str) -> [source::Object; 2] {
    let text = format!(
        "apiVersion: v1
kind: Service
metadata: {{namespace: demo, name: dns}}
spec: {{type: LoadBalancer, clusterIP: 10.96.0.10, externalIPs: [192.0.2.7], ports: [{{name: p, port: 53, \
protocol: UDP, nodePort: 30053}}]}}
status: {{loadBalancer: {{ingress: [{{ip: 198.51.100.9}}]}}}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{namespace: demo, name: dns-1, labels: {{kubernetes.io/service-name: dns}}}}
addressType: IPv4
ports: [{{name: p, port: 53, protocol: UDP}}]
endpoints: [{{addresses: [{endpoint}]}}]
"
    );
    let mut found = Vec::new();
    source::read_str("test.yaml", &text, |manifest| found.push(manifest.object)).unwrap();
    found.try_into().unwrap()
}

/// The flow of a client to a front end, answered by an endpoint. Each front end has a client of its own, as
/// an endpoint has to tell them apart.
fn flow(front: &str, endpoint: &str) -> NewFlow {
    let number = front.split(['.', ':']).nth(3).unwrap();
    let client = format!("10.0.0.{number}:1000").parse().unwrap();
    let tuple = |a, b| Tuple::with_ports(Protocol::UDP, a, b).unwrap();
    let mut flow = NewFlow::new(tuple(client, front.parse().unwrap()), 300);
    flow.reply = tuple(endpoint.parse().unwrap(), client);
    flow
}

/// Whatever the mode: the backend knows nothing of connection tracking.
#[test]
fn udp_flows_to_an_endpoint_that_is_gone_are_removed_after_a_sync() {
    testns::netns(|| {
        let _ = testns::sh("ip link set lo up; ip addr add 192.168.0.3/32 dev lo");
        let mut tracker = Client::open().unwrap();
        // The last two are to the node port of another host, and to nobody's address.
        let fronts = [
            "10.96.0.10:53",
            "192.0.2.7:53",
            "198.51.100.9:53",
            "192.168.0.3:30053",
            "203.0.113.1:30053",
            "10.99.0.2:53",
        ];
        tracker.create(&fronts.map(|front| flow(front, "10.244.0.5:53"))).unwrap();
        let running = Running::new();
        let [service_of_dns, slice] = dns("10.244.0.5");
        running.tell(Update::Replace(Kind::EndpointSlice, vec![slice]));
        running.tell(Update::Replace(Kind::Service, vec![service_of_dns.clone()]));
        running.wait("a report", |kernel| kernel.reports.len() == 1);
        assert_eq!(tracker.count().unwrap(), 6, "all of them are right so far");

        let [_, slice] = dns("10.244.0.6");
        running.tell(Update::Apply(slice));
        running.wait("a report", |kernel| kernel.reports.len() == 2);
        let left = tracker.list(&Filter::default()).unwrap();
        let left: BTreeSet<_> = left.iter().map(|flow| flow.original.destination().to_string()).collect();
        assert_eq!(left, ["10.99.0.2", "203.0.113.1"].map(str::to_owned).into());

        // Also where the culprit of a refusal had to be looked for first.
        tracker.create(&[flow("192.0.2.7:53", "10.244.0.6:53")]).unwrap();
        running.kernel(|kernel| kernel.refuses = vec![("demo/bad".to_owned(), false)]);
        running.tell(Update::Replace(Kind::Service, vec![service("bad")]));
        running.wait("a report", |kernel| kernel.reports.len() == 3);
        assert_eq!(running.kernel(|kernel| kernel.reports[2].refused.len()), 1);
        assert_eq!(tracker.count().unwrap(), 2);
        running.stop().unwrap();
    });
}

#[test]
fn the_end_of_the_source_ends_it_with_an_error() {
    let running = Running::listed(&["a"]);
    running.holds(&["a"]);
    let Running { updates, thread, signals: _signals, .. } = running;
    drop(updates);
    assert!(matches!(thread.join().unwrap(), Err(Error::SourceEnded)));
}

/// A kernel that refuses everything with one error.
struct Refusing(fn() -> RulesError);

impl Backend for Refusing {
    fn sync(&mut self, _: &Cluster, _: &Changes, _: Instant) -> Result<Summary, RulesError> {
        Err((self.0)())
    }

    fn invalidate(&mut self) {}
}

/// Runs a loop on a paused clock until it ends by itself. Returns its error, and after which time.
fn end(error: fn() -> RulesError, first: Vec<Update>) -> (String, Duration) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(async {
        let world = World::new(ThisNode { name: "node".to_owned(), ..ThisNode::default() });
        let backend = Box::new(Refusing(error));
        let looping = Loop::new(world, backend, Intervals::default(), Arc::new(())).unwrap();
        let (updates, news) = mpsc::channel(100);
        let (_signals, told) = mpsc::channel(1);
        for update in first {
            updates.try_send(update).unwrap();
        }
        let began = tokio::time::Instant::now();
        let hour = Duration::from_secs(3600);
        let ended = tokio::time::timeout(hour, looping.run(news, told)).await.expect("it ends");
        (ended.unwrap_err().to_string(), began.elapsed())
    })
}

fn lists() -> Vec<Update> {
    vec![Update::Replace(Kind::EndpointSlice, Vec::new()), Update::Replace(Kind::Service, Vec::new())]
}

#[test]
fn what_waiting_does_not_mend_ends_the_loop_with_its_reason() {
    let denied = || RulesError::Netlink {
        doing: "programming the rules",
        source: sluicegate_netlink::Error::Io {
            operation: "sendmsg",
            source: std::io::Error::from_raw_os_error(1),
        },
    };
    let (reason, after) = end(denied, lists());
    assert!(reason.contains("programming the rules") && reason.contains("CAP_NET_ADMIN"), "{reason}");
    assert_eq!(after, Duration::ZERO);
    let missing = || RulesError::Services(ServicesError::NoPodCidrs { node: "node".to_owned() });
    let (reason, after) = end(missing, lists());
    assert!(reason.contains("nothing can be programmed"), "{reason}");
    assert!((GIVE_UP..GIVE_UP + Duration::from_secs(40)).contains(&after), "{after:?}");
    let hopeless = vec![Update::Hopeless("Services from the API server: 403".to_owned())];
    let (reason, _) = end(missing, hopeless);
    assert!(reason.starts_with("Services from the API server: 403: this was refused"), "{reason}");
}

/// Whoever always has something keeps nobody from a sync: here updates, and functions that look.
#[test]
fn a_sync_comes_in_time_whatever_else_never_ends() {
    let kernel = Fake::default();
    let (updates, news) = mpsc::channel(10_000);
    let (signals, told) = mpsc::channel(1);
    let (asking, inspections) = mpsc::channel::<Inspection>(10_000);
    let intervals = Intervals { min: Duration::from_millis(1), ..Intervals::default() };
    let fake = kernel.clone();
    let thread = std::thread::spawn(move || {
        let world = World::new(ThisNode { name: "node".to_owned(), ..ThisNode::default() });
        let looping = Loop::new(world, Box::new(fake.clone()), intervals, Arc::new(fake)).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(looping.inspected_by(Some(inspections)).run(news, told))
    });
    updates.blocking_send(Update::Replace(Kind::EndpointSlice, Vec::new())).unwrap();
    updates.blocking_send(Update::Replace(Kind::Service, vec![service("web")])).unwrap();
    let floods = std::thread::spawn(move || {
        // Neither queue is ever empty until the receivers are gone.
        for port in (1..60_000).cycle() {
            let _ = asking.try_send(Box::new(|_| std::thread::sleep(Duration::from_micros(50))));
            if updates.blocking_send(Update::Apply(service_with("flood", port))).is_err() {
                return;
            }
        }
    });
    let running = Instant::now();
    while kernel.0.lock().unwrap().syncs < 50 {
        assert!(running.elapsed() < Duration::from_secs(30), "{} syncs", kernel.0.lock().unwrap().syncs);
        std::thread::sleep(Duration::from_millis(1));
    }
    signals.blocking_send(Signal::Stop).unwrap();
    thread.join().unwrap().unwrap();
    floods.join().unwrap();
}
