//! A listener of the source, which holds what a run loop would hold.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};
use sluicegate_proxier::source::Object;
use sluicegate_proxier::source::kube::{Server, Source, Tuning};
use sluicegate_proxier::source::update::{Kind, ObjectName, Update};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{self, Receiver};
use tokio::time::{Instant, timeout_at};

use crate::kube::server::{ApiServer, PORT};

/// The name of the node that is followed.
pub(crate) const NODE: &str = "node-a";

/// A source that runs, and what it told.
pub(crate) struct Watching {
    runtime: Runtime,
    updates: Receiver<Update>,
    /// What a run loop would hold now.
    pub(crate) held: BTreeMap<ObjectName, Object>,
    /// What was held of a kind when its list began, and was not sent since.
    unlisted: BTreeMap<Kind, BTreeSet<ObjectName>>,
    /// How often each kind was listed.
    pub(crate) lists: BTreeMap<Kind, usize>,
    /// The kinds, in the order of their first lists.
    pub(crate) order: Vec<Kind>,
    /// All warnings.
    pub(crate) warnings: Vec<String>,
    /// What there is no right to.
    pub(crate) hopeless: Vec<String>,
}

/// In a hurry.
pub(crate) fn tuning() -> Tuning {
    Tuning {
        first: Duration::from_millis(10),
        longest: Duration::from_millis(100),
        unreachable: Duration::from_millis(100),
        node: Duration::from_secs(20),
        answer: Duration::from_secs(20),
        absent: Duration::from_millis(50),
        ..Tuning::default()
    }
}

pub(crate) fn source(tuning: Tuning) -> Source {
    let master = Some(format!("http://127.0.0.1:{PORT}"));
    Source { server: Server { kubeconfig: None, master }, node: NODE.to_owned(), service_cidrs: true, tuning }
}

impl Watching {
    pub(crate) fn start() -> Self {
        Self::with(source(tuning()))
    }

    pub(crate) fn with(source: Source) -> Self {
        // On this thread alone, for it is this thread that is in the namespace.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let (sender, updates) = mpsc::channel(64);
        let run = source.start(sender, std::sync::Arc::new(())).expect("the configuration is fine");
        runtime.spawn(run);
        Self {
            runtime,
            updates,
            held: BTreeMap::new(),
            unlisted: BTreeMap::new(),
            lists: BTreeMap::new(),
            order: vec![],
            warnings: vec![],
            hopeless: vec![],
        }
    }

    /// Waits until `done`, while it takes updates.
    pub(crate) fn until(&mut self, what: &str, done: impl Fn(&Self) -> bool) {
        self.within(Duration::from_secs(30), what, done);
    }

    fn within(&mut self, patience: Duration, what: &str, done: impl Fn(&Self) -> bool) {
        let deadline = std::time::Instant::now() + patience;
        while !done(self) {
            assert!(
                std::time::Instant::now() < deadline,
                "never: {what}; held {:?}, lists {:?}, warnings {:?}",
                self.held.keys(),
                self.lists,
                self.warnings
            );
            self.take(Duration::from_millis(20));
        }
    }

    /// Takes updates for a while.
    pub(crate) fn idle(&mut self, for_: Duration) {
        let end = std::time::Instant::now() + for_;
        while let Some(left) = end.checked_duration_since(std::time::Instant::now()) {
            self.take(left);
        }
    }

    fn take(&mut self, patience: Duration) {
        let updates = &mut self.updates;
        let next =
            self.runtime.block_on(async { timeout_at(Instant::now() + patience, updates.recv()).await });
        let Ok(update) = next else { return };
        match update.expect("the source does not end by itself") {
            Update::Apply(object) => {
                let name = ObjectName::of(&object);
                if let Some(names) = self.unlisted.get_mut(&name.kind()) {
                    names.remove(&name);
                }
                self.held.insert(name, object);
            }
            Update::Delete(name) => {
                self.held.remove(&name);
            }
            Update::Listing(kind) => {
                let known = self.held.keys().filter(|name| name.kind() == kind).cloned();
                self.unlisted.insert(kind, known.collect());
            }
            Update::Listed(kind) => {
                for name in self.unlisted.remove(&kind).expect("it began") {
                    self.held.remove(&name);
                }
                let listed = self.lists.entry(kind).or_default();
                *listed += 1;
                if *listed == 1 {
                    self.order.push(kind);
                }
            }
            Update::Replace(kind, _) => panic!("the list of {kind} is sent piece by piece"),
            Update::Warning(warning) => self.warnings.push(warning),
            Update::Unreadable(kind, name, reason) => {
                match (self.unlisted.get_mut(&kind), name) {
                    (Some(names), Some(name)) => _ = names.remove(&name),
                    (Some(names), None) => names.clear(),
                    (None, _) => {}
                }
                self.warnings.push(reason);
            }
            Update::Unusable(files) => panic!("{files:?}"),
            Update::Hopeless(reason) => self.hopeless.push(reason),
        }
    }

    /// Waits until what is held is what the server has.
    pub(crate) fn settle(&mut self, server: &ApiServer) {
        self.until("what the server has is held", |watching| {
            watching.lists.len() == Kind::ALL.len() && watching.holds(server)
        });
    }

    pub(crate) fn holds(&self, server: &ApiServer) -> bool {
        let of = |kind: Kind| {
            self.held.iter().filter(move |(name, _)| name.kind() == kind).map(|(_, object)| object)
        };
        SELECTORS.iter().all(|(kind, resource, selectors)| {
            let theirs: BTreeMap<String, Value> = server
                .objects(resource, selectors)
                .into_iter()
                .map(|object| (name(&object), object))
                .collect();
            let ours: BTreeMap<String, Value> =
                of(*kind).map(json).map(|object| (name(&object), object)).collect();
            ours.len() == theirs.len()
                && ours.iter().all(|(name, ours)| {
                    theirs.get(name).is_some_and(|theirs| {
                        ours["metadata"]["resourceVersion"] == theirs["metadata"]["resourceVersion"]
                            && ours["metadata"]["labels"] == theirs["metadata"]["labels"]
                    })
                })
        })
    }

    pub(crate) fn lists(&self, kind: Kind) -> usize {
        self.lists.get(&kind).copied().unwrap_or_default()
    }

    /// True when a service is held in this version of our own: see [`service`].
    pub(crate) fn has(&self, name: &str) -> bool {
        self.held.contains_key(&ObjectName::Service { namespace: "demo".to_owned(), name: name.to_owned() })
    }

    pub(crate) fn warning(&self, part: &str) -> bool {
        self.warnings.iter().any(|warning| warning.contains(part))
    }
}

/// What kube-proxy asks for, said once more.
const SELECTORS: [(Kind, &str, &str); 4] = [
    (
        Kind::Service,
        "services",
        "labelSelector=!service.kubernetes.io/service-proxy-name&fieldSelector=spec.clusterIP!%3DNone",
    ),
    (Kind::EndpointSlice, "endpointslices", "labelSelector=!service.kubernetes.io/headless"),
    (Kind::Node, "nodes", "fieldSelector=metadata.name%3Dnode-a"),
    (Kind::ServiceCidr, "servicecidrs", ""),
];

fn json(object: &Object) -> Value {
    match object {
        Object::Service(object) => json!(object),
        Object::EndpointSlice(object) => json!(object),
        Object::Node(object) => json!(object),
        Object::ServiceCidr(object) => json!(object),
    }
}

fn name(object: &Value) -> String {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    format!("{}/{}", text("namespace"), text("name"))
}

/// A service that is proxied.
pub(crate) fn service(name: &str) -> Value {
    json!({"metadata": {"namespace": "demo", "name": name, "managedFields": [{"manager": "kubectl"}]},
        "spec": {"clusterIP": "10.96.0.10", "ports": [{"port": 80}]}})
}

pub(crate) fn slice(name: &str) -> Value {
    json!({"metadata": {"namespace": "demo", "name": name, "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4", "ports": [{"port": 8080}], "endpoints": [{"addresses": ["10.244.0.5"]}]})
}

pub(crate) fn node(name: &str) -> Value {
    json!({"metadata": {"name": name}, "status": {"addresses": [{"type": "InternalIP", "address": "192.168.0.2"}]}})
}

pub(crate) fn service_cidr() -> Value {
    json!({"metadata": {"name": "kubernetes"}, "spec": {"cidrs": ["10.96.0.0/12"]}})
}

/// A small cluster.
pub(crate) fn fill(server: &ApiServer) {
    server.put("nodes", node(NODE));
    server.put("nodes", node("node-b"));
    server.put("servicecidrs", service_cidr());
    server.put("endpointslices", slice("web-1"));
    server.put("services", service("web"));
}
