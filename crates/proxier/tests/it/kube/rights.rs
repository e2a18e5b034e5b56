//! The rights of a proxier in a cluster: those of the `ClusterRole` `system:node-proxier` suffice,
//! which every cluster has.

use std::time::Duration;

use sluicegate_proxier::source::kube::Tuning;
use sluicegate_proxier::source::update::Kind;

use crate::kube::daemon::{Daemon, filled, namespace, service, slice, table};
use crate::kube::server::{ApiServer, Rule};
use crate::kube::watching::{Watching, fill, source, tuning};

/// `system:node-proxier` of Kubernetes 1.31 and newer.
const NODE_PROXIER: &[Rule] = &[
    ("", &["services", "endpoints"], &["list", "watch"]),
    ("", &["nodes"], &["get", "list", "watch"]),
    ("", &["events"], &["create", "patch", "update"]),
    ("events.k8s.io", &["events"], &["create", "patch", "update"]),
    ("discovery.k8s.io", &["endpointslices"], &["list", "watch"]),
    ("networking.k8s.io", &["servicecidrs"], &["list", "watch"]),
];

/// The same without the last rule, as before 1.31.
const BEFORE_1_31: &[Rule] = NODE_PROXIER.split_at(5).0;

#[test]
fn the_daemon_runs_with_the_rights_of_node_proxier_and_asks_for_no_other() {
    namespace(|| {
        let server = filled();
        server.authorize(NODE_PROXIER);
        server.up();
        let daemon = Daemon::asking("rights");
        daemon.until("the first service", || table().contains("10.96.0.1 . tcp . 80"));
        daemon.until("the service network", || table().contains("10.96.0.0/12"));
        server.put("services", service("db", "10.96.0.2"));
        server.put("endpointslices", slice("db", &["10.244.0.3"]));
        daemon.until("a new service", || table().contains("10.96.0.2 . tcp . 80 : 0:1"));
        // Another service claims an address of the first.
        let mut rival = service("rival", "10.96.0.3");
        rival["spec"]["externalIPs"] = serde_json::json!(["10.96.0.1", "169.254.169.254"]);
        server.put("services", rival);
        let told = || server.events();
        daemon.until("events", || told().len() >= 3);
        let find = |reason: &str| {
            let events = told();
            let event = events.iter().find(|event| event["reason"] == reason).cloned();
            event.unwrap_or_else(|| panic!("no {reason}: {events:#?}"))
        };
        let start = find("Starting");
        assert_eq!((&start["regarding"]["kind"], &start["type"]), (&"Node".into(), &"Normal".into()));
        assert_eq!(start["reportingController"], "kube-proxy");
        for (reason, word) in [("FrontendConflict", "10.96.0.1:80"), ("ObjectProblem", "169.254.169.254")] {
            let event = find(reason);
            assert_eq!((&event["regarding"]["name"], &event["type"]), (&"rival".into(), &"Warning".into()));
            assert!(event["note"].as_str().is_some_and(|note| note.contains(word)), "{event:#}");
        }
        assert_decisions(&server, &["endpointslices", "events", "nodes", "servicecidrs", "services"], &[]);
    });
}

#[test]
fn a_role_without_service_cidrs_delays_nothing_and_does_without_them() {
    namespace(|| {
        let server = filled();
        server.authorize(BEFORE_1_31);
        server.up();
        // With the default timeouts services would wait 30 s, as long as for a node: longer than this does.
        let daemon = Daemon::asking("rights-before");
        daemon.until("the first service", || table().contains("10.96.0.1 . tcp . 80"));
        assert!(!table().contains("10.96.0.0/12"), "{}", table());
        daemon.says("ServiceCIDRs from the API server");
        let allowed = ["endpointslices", "events", "nodes", "services"];
        let forbidden = ["servicecidrs"];
        assert_decisions(&server, &allowed, &forbidden);
    });
}

#[test]
fn what_stays_forbidden_and_is_not_needed_counts_as_absent_until_it_is_allowed() {
    testns::netns(|| {
        let server = ApiServer::started();
        fill(&server);
        server.authorize(BEFORE_1_31);
        let mut watching = Watching::with(source(Tuning { node: Duration::from_millis(300), ..tuning() }));
        watching.until("the list of none", |watching| watching.lists(Kind::ServiceCidr) == 1);
        assert!(watching.warning("going on without ServiceCIDRs, which may not be listed: 403"));
        watching.until("it is asked for again", |watching| watching.lists(Kind::ServiceCidr) == 3);
        let warnings = watching.warnings.len();
        server.authorize(NODE_PROXIER);
        watching.settle(&server);
        assert_eq!(watching.warnings.len(), warnings, "{:?}", watching.warnings);
    });
}

/// Compares the resources that were allowed and that were forbidden.
fn assert_decisions(server: &ApiServer, allowed: &[&str], forbidden: &[&str]) {
    let resources = server.decisions().map(|decided| {
        let mut resources: Vec<String> = decided.into_iter().map(|(.., resource)| resource).collect();
        resources.sort();
        resources.dedup();
        resources
    });
    assert_eq!(resources, [allowed, forbidden], "{:?}", server.decisions());
}
