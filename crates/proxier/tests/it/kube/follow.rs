//! What is asked for, and what is told, when nothing fails.

use serde_json::json;
use sluicegate_proxier::source::kube::{Server, Source};
use sluicegate_proxier::source::update::{Kind, ObjectName};
use tokio::sync::mpsc;

use crate::kube::server::ApiServer;
use crate::kube::watching::{NODE, Watching, fill, node, service, slice, source, tuning};

#[test]
fn lists_then_changes_are_told() {
    testns::netns(|| {
        let server = ApiServer::started();
        fill(&server);
        let mut watching = Watching::start();
        watching.settle(&server);
        assert_eq!(watching.held.len(), 4, "one of each kind, and not the other node");
        server.put("services", service("api"));
        server.put("endpointslices", slice("api-1"));
        server.put("nodes", node(NODE));
        server.put("nodes", node("node-b"));
        watching.settle(&server);
        assert!(watching.has("api"));
        server.delete("services", "demo", "web");
        watching.settle(&server);
        assert!(!watching.has("web"));
        assert!(watching.lists.values().all(|lists| *lists == 1), "{:?}", watching.lists);
        assert_eq!(watching.warnings, Vec::<String>::new());
    });
}

#[test]
fn the_node_and_the_networks_come_before_the_services() {
    testns::netns(|| {
        let server = ApiServer::started();
        fill(&server);
        let mut watching = Watching::start();
        watching.settle(&server);
        // Endpoint slices wait for nobody, and nobody waits for them.
        let rank = |kind| watching.order.iter().position(|listed| *listed == kind).expect("each is listed");
        for first in [Kind::Node, Kind::ServiceCidr] {
            assert!(rank(first) < rank(Kind::Service), "{:?}", watching.order);
        }
    });
}

#[test]
fn what_kube_proxy_does_not_want_is_not_asked_for() {
    testns::netns(|| {
        let server = ApiServer::started();
        fill(&server);
        let mut watching = Watching::start();
        watching.settle(&server);
        let mut other = service("other-proxy");
        other["metadata"]["labels"] = json!({"service.kubernetes.io/service-proxy-name": "other"});
        server.put("services", other);
        let mut headless = service("headless");
        headless["spec"]["clusterIP"] = json!("None");
        server.put("services", headless);
        let mut slice = slice("headless-1");
        slice["metadata"]["labels"]["service.kubernetes.io/headless"] = json!("");
        server.put("endpointslices", slice);
        // Ceases to match: for the watch it is deleted.
        let mut web = service("web");
        web["metadata"]["labels"] = json!({"service.kubernetes.io/service-proxy-name": "other"});
        server.put("services", web);
        watching.settle(&server);
        assert!(watching.held.keys().all(|name| name.kind() != Kind::Service), "{:?}", watching.held.keys());
        let lists = server.requests("services");
        assert!(
            lists
                .iter()
                .all(|target| target.contains("labelSelector=%21service.kubernetes.io%2Fservice-proxy-name")
                    && target.contains("fieldSelector=spec.clusterIP%21%3DNone")),
            "{lists:?}"
        );
        let nodes = server.requests("nodes");
        assert!(
            nodes.iter().all(|target| target.contains("fieldSelector=metadata.name%3Dnode-a")),
            "{nodes:?}"
        );
    });
}

#[test]
fn a_long_list_comes_in_pages_and_is_told_at_once() {
    testns::netns(|| {
        let server = ApiServer::started();
        fill(&server);
        (0..23).for_each(|n| server.put("services", service(&format!("svc-{n}"))));
        let mut tuning = tuning();
        tuning.page = 5;
        let mut watching = Watching::with(source(tuning));
        watching.until("services are listed", |watching| watching.lists(Kind::Service) == 1);
        assert!(watching.holds(&server), "the first list is complete");
        watching.settle(&server);
        let requests = server.requests("services");
        let pages = requests.iter().filter(|target| !target.contains("watch=true")).count();
        assert_eq!(pages, 5, "24 services in pages of 5: {requests:?}");
    });
}

#[test]
fn a_bookmark_is_where_the_next_watch_begins() {
    testns::netns(|| {
        let server = ApiServer::started();
        fill(&server);
        let mut watching = Watching::start();
        watching.settle(&server);
        // Versions go up by what happens to other kinds; without bookmarks the watch of services would be too
        // old.
        (0..10).for_each(|_| server.put("endpointslices", slice("web-1")));
        watching.settle(&server);
        server.bookmark();
        // What was sent before a connection is closed is read before its end.
        watching.until("the bookmark is sent", |_| server.has_bookmarked("services"));
        server.down();
        server.up();
        server.put("services", service("later"));
        watching.settle(&server);
        assert_eq!(watching.lists(Kind::Service), 1);
        let requests = server.requests("services");
        let version =
            |target: &str| target.rsplit_once("resourceVersion=").map(|(_, version)| version.to_owned());
        let (first, last) = (version(&requests[1]), version(&requests[requests.len() - 1]));
        assert_eq!((first.as_deref(), last.as_deref()), (Some("6"), Some("17")), "{requests:?}");
    });
}

#[test]
fn a_server_without_service_cidrs_has_none_until_it_has() {
    testns::netns(|| {
        let server = ApiServer::started();
        server.set_absent(Some("servicecidrs"));
        fill(&server);
        let mut watching = Watching::start();
        watching.until("all kinds are listed", |watching| watching.lists.len() == Kind::ALL.len());
        assert!(!watching.held.keys().any(|name| name.kind() == Kind::ServiceCidr));
        assert_eq!(watching.warnings, Vec::<String>::new(), "that is no warning");
        server.set_absent(None);
        watching.settle(&server);
        assert!(watching.held.contains_key(&ObjectName::ServiceCidr { name: "kubernetes".to_owned() }));
    });
}

#[test]
fn service_cidrs_are_left_alone_where_nobody_uses_them() {
    testns::netns(|| {
        let server = ApiServer::started();
        fill(&server);
        let mut watching = Watching::with(Source { service_cidrs: false, ..source(tuning()) });
        watching.until("services are listed", |watching| watching.lists(Kind::Service) == 1);
        assert_eq!(server.requests("servicecidrs"), Vec::<String>::new());
    });
}

#[test]
fn managed_fields_are_not_kept() {
    testns::netns(|| {
        let server = ApiServer::started();
        fill(&server);
        let mut watching = Watching::start();
        watching.settle(&server);
        assert!(watching.held.values().all(|object| !format!("{object:?}").contains("kubectl")));
    });
}

#[test]
fn the_source_ends_when_nobody_listens() {
    testns::netns(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let (sender, receiver) = mpsc::channel(1);
        let run = source(tuning()).start(sender, std::sync::Arc::new(())).expect("the configuration is fine");
        drop(receiver);
        let patience = std::time::Duration::from_secs(30);
        runtime.block_on(async { tokio::time::timeout(patience, run).await }).expect("it ends at once");
    });
}

#[test]
fn a_configuration_that_cannot_be_used_says_which_and_why() {
    let start = |server: Server| {
        let source = Source { server, ..source(tuning()) };
        source
            .start(mpsc::channel(1).0, std::sync::Arc::new(()))
            .err()
            .map(|error| error.to_string())
            .expect("it is refused")
    };
    let file = |text: &str| {
        let path = std::env::temp_dir().join(format!("sluicegate-kubeconfig-{}", std::process::id()));
        std::fs::write(&path, text).expect("a temporary file");
        let error = start(Server { kubeconfig: Some(path.clone()), master: None });
        std::fs::remove_file(&path).expect("it was there");
        error
    };
    let missing = start(Server { kubeconfig: Some("/nowhere/config".into()), master: None });
    assert!(
        missing.contains("kubeconfig /nowhere/config: ") && missing.contains("No such file"),
        "{missing}"
    );
    let no_context = file("apiVersion: v1\nkind: Config\n");
    assert!(no_context.contains("current context"), "{no_context}");
    let no_yaml = file("clusters: [");
    assert!(no_yaml.contains("YAML"), "{no_yaml}");
    let no_ca = file(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
            contexts: [{name: c, context: {cluster: k, user: u}}]\n\
         clusters: [{name: k, cluster: {server: 'https://127.0.0.1:1', certificate-authority: \
         /nowhere/ca.crt}}]\n",
    );
    assert!(no_ca.contains("certificate authority") && no_ca.contains("/nowhere/ca.crt"), "{no_ca}");
    let master = |url: &str| start(Server { kubeconfig: None, master: Some(url.to_owned()) });
    assert!(
        master("10.0.0.1:6443").starts_with(
            "expected the URL of an API server (https://10.0.0.1:6443), found \"10.0.0.1:6443\""
        ),
        "{}",
        master("10.0.0.1:6443")
    );
    assert!(master("ftp://x").contains("http:// or https://"));
    // Not in a pod, as far as this test's environment goes.
    if std::env::var_os("KUBERNETES_SERVICE_HOST").is_none() {
        let pod = start(Server::default());
        assert!(pod.contains("no kubeconfig is given") && pod.contains("environment variable"), "{pod}");
    }
}
