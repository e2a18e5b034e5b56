//! The daemon itself, fed by the API server: what it programs follows, and stays when the server is gone.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::kube::server::{ApiServer, Fault, PORT, Verb};
use crate::kube::watching::{NODE, node, service_cidr};
use crate::schedulers::WRONG;

/// `sluicegate-proxier run`, killed when it is dropped.
pub(crate) struct Daemon {
    child: Child,
    log: PathBuf,
}

impl Daemon {
    fn start(test: &str, flags: &[&str]) -> Self {
        let log = std::env::temp_dir().join(format!("sluicegate-kube-{test}-{}", std::process::id()));
        let child = Command::new(env!("CARGO_BIN_EXE_sluicegate-proxier"))
            .args(["run", "--hostname-override", NODE, "--nftables-min-sync-period", "10ms"])
            .args(flags)
            .stderr(File::create(&log).expect("a log"))
            .stdout(Stdio::null())
            .spawn()
            .expect("the command starts");
        Self { child, log }
    }

    pub(crate) fn asking(test: &str) -> Self {
        Self::start(test, &["--master", &format!("http://127.0.0.1:{PORT}")])
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).expect("a log")
    }

    pub(crate) fn until(&self, what: &str, mut done: impl FnMut() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while !done() {
            assert!(Instant::now() < deadline, "never: {what}\n{}\n{}", table(), self.log());
            thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn says(&self, what: &str) {
        self.until(what, || self.log().contains(what));
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have ended; the log is of no use any more.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_file(&self.log);
    }
}

pub(crate) fn table() -> String {
    String::from_utf8_lossy(&testns::try_sh("nft -s list table ip kube-proxy").stdout).into_owned()
}

pub(crate) fn namespace(test: impl FnOnce() + Send) {
    if testns::have(&["nft"]) {
        testns::netns(test);
    }
}

pub(crate) fn service(name: &str, ip: &str) -> Value {
    json!({"metadata": {"namespace": "demo", "name": name},
        "spec": {"clusterIP": ip, "ports": [{"name": "p", "port": 80}]}})
}

pub(crate) fn slice(of: &str, endpoints: &[&str]) -> Value {
    let endpoints: Vec<_> = endpoints.iter().map(|ip| json!({"addresses": [ip]})).collect();
    json!({"metadata": {"namespace": "demo", "name": format!("{of}-1"), "labels": {"kubernetes.io/service-name": of}},
        "addressType": "IPv4", "ports": [{"name": "p", "port": 8080, "protocol": "TCP"}], "endpoints": endpoints})
}

pub(crate) fn filled() -> ApiServer {
    let server = ApiServer::new();
    server.put("nodes", node(NODE));
    server.put("servicecidrs", service_cidr());
    server.put("services", service("web", "10.96.0.1"));
    server.put("endpointslices", slice("web", &["10.244.0.1", "10.244.0.2"]));
    server
}

#[test]
fn the_kernel_follows_the_api_server() {
    namespace(|| {
        let server = filled();
        let daemon = Daemon::asking("follows");
        daemon.says("Connection refused");
        assert_eq!(table(), "", "nothing is programmed before both lists are there");
        server.up();
        daemon.until("the first service", || table().contains("10.96.0.1 . tcp . 80"));
        assert!(table().contains("10.244.0.2") && table().contains("10.96.0.0/12"), "{}", table());
        // The address of the Node object is where node ports are answered.
        assert!(table().contains("192.168.0.2"), "{}", table());

        server.put("services", service("db", "10.96.0.2"));
        server.put("endpointslices", slice("db", &["10.244.0.3"]));
        daemon.until("a new service", || table().contains("10.96.0.2 . tcp . 80 : 0:1"));
        server.put("endpointslices", slice("web", &["10.244.0.9"]));
        daemon
            .until("another endpoint", || table().contains("10.244.0.9") && !table().contains("10.244.0.2"));
        server.delete("services", "demo", "db");
        daemon.until("a deletion", || !table().contains("10.96.0.2"));
    });
}

/// What `check` tells of a file is an Event of the Service and a warning of `status` here.
#[test]
fn a_scheduler_that_cannot_be_is_an_event_of_its_service_which_works_at_random() {
    namespace(|| {
        let server = filled();
        for (number, (value, _)) in (1..).zip(WRONG) {
            let name = format!("wrong-{number}");
            let mut object = service(&name, &format!("10.96.1.{number}"));
            object["metadata"]["annotations"] = json!({"sluicegate.github.io/scheduler": value});
            server.put("services", object);
            server.put("endpointslices", slice(&name, &["10.244.1.1", "10.244.1.2"]));
        }
        server.up();
        let daemon = Daemon::asking("schedulers");
        let events = || -> Vec<Value> {
            let all = server.events().into_iter();
            all.filter(|event| event["reason"] == "ObjectProblem").collect()
        };
        daemon.until("an Event of each", || events().len() >= WRONG.len());
        for (number, (value, expected)) in (1..).zip(WRONG) {
            let name = format!("wrong-{number}");
            let events = events();
            let of_it: Vec<_> = events.iter().filter(|event| event["regarding"]["name"] == name).collect();
            let [event] = of_it[..] else { panic!("one Event of {value:?}: {events:#?}") };
            let note = event["note"].as_str().expect("a note");
            assert!(note.contains(&format!("{expected}; random is used")), "{value:?}: {note}");
            assert_eq!(event["type"], "Warning", "{event:#}");
            let frontend = format!("10.96.1.{number} . tcp . 80 : ");
            daemon.until("the service", || table().contains(&frontend));
        }
        let table = table();
        assert!(table.contains("numgen random mod 2") && !table.contains("jhash"), "{table}");
        let mut status = Command::new(env!("CARGO_BIN_EXE_sluicegate-proxier"));
        let output = status.args(["status", "-o", "json"]).output().expect("the command starts");
        let page: Value = serde_json::from_slice(&output.stdout).expect("an object");
        let warnings = page["warnings"].as_array().expect("warnings");
        for (value, expected) in WRONG {
            let is_told =
                |warning: &Value| warning["text"].as_str().is_some_and(|text| text.contains(expected));
            assert!(warnings.iter().any(is_told), "{value:?}: {page:#}");
        }
    });
}

#[test]
fn a_packet_is_explained_by_the_objects_of_the_api_server() {
    testns::netns(|| {
        let server = filled();
        let mut policy = service("local", "10.96.0.2");
        policy["spec"]["internalTrafficPolicy"] = json!("Local");
        server.put("services", policy);
        server.put("endpointslices", slice("local", &["10.244.0.3"]));
        // More than one page of what has nothing to do with it.
        (0..600).for_each(|n| server.put("endpointslices", slice(&format!("other-{n}"), &["10.244.1.1"])));
        server.up();
        let explain = |to: &str| {
            let output = Command::new(env!("CARGO_BIN_EXE_sluicegate-proxier"))
                .args([
                    "explain",
                    "-o",
                    "json",
                    "--hostname-override",
                    NODE,
                    "--cluster-cidr",
                    "10.244.0.0/16",
                ])
                .args(["--master", &format!("http://127.0.0.1:{PORT}"), "--from", "10.244.0.7", "--to", to])
                .output()
                .expect("the command starts");
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{said}");
            serde_json::from_slice::<Value>(&output.stdout).expect("an object")
        };
        let web = explain("10.96.0.1:80/tcp");
        assert_eq!(web["node"], NODE);
        assert_eq!(web["frontend"]["service"], "demo/web", "{web:#}");
        let choices = web["verdict"]["choices"].as_array().expect("choices");
        let endpoints: Vec<_> = choices.iter().map(|choice| choice["endpoint"].as_str()).collect();
        assert_eq!(endpoints, [Some("10.244.0.1:8080"), Some("10.244.0.2:8080")]);
        assert_eq!(choices[0]["probability"], 0.5);
        assert_eq!(web["endpoints"][0]["slices"], json!(["demo/web-1"]), "{web:#}");

        // The endpoint of the other one is on no known node.
        let local = explain("10.96.0.2:80/tcp");
        assert_eq!(local["verdict"]["what"], "dropped", "{local:#}");
        let fields: Vec<_> =
            local["decisions"].as_array().expect("decisions").iter().map(|d| &d["field"]).collect();
        assert!(fields.contains(&&json!("spec.internalTrafficPolicy")), "{local:#}");
    });
}

#[test]
fn ten_thousand_services_of_the_api_server_take_little_memory() {
    namespace(|| {
        let server = filled();
        for n in 0..SERVICES {
            let [_, a, b, c] = n.to_be_bytes();
            let managed = json!([{"manager": "kube-controller-manager", "operation": "Update", "fieldsV1":
                {"f:metadata": {"f:labels": {".": {}, "f:app": {}}}, "f:spec": {"f:ports": {}, "f:selector": {}}}}]);
            let name = format!("service-{n}");
            let mut object = service(&name, &format!("10.{}.{b}.{c}", 100 + a));
            object["metadata"]["managedFields"] = managed.clone();
            server.put("services", object);
            let mut object = slice(&name, &[]);
            object["metadata"]["managedFields"] = managed;
            let endpoint = |place: u8| {
                json!({"addresses": [format!("10.{}.{b}.{c}", 150 + a + place)], "nodeName": format!("node-{}", n % 100),
                    "conditions": {"ready": true, "serving": true, "terminating": false},
                    "targetRef": {"kind": "Pod", "namespace": "demo", "name": format!("{name}-{place}")}})
            };
            object["endpoints"] = (0..5).map(endpoint).collect();
            server.put("endpointslices", object);
        }
        server.up();
        let daemon = Daemon::asking("memory");
        daemon.says("elements");
        let status = fs::read_to_string(format!("/proc/{}/status", daemon.child.id())).expect("it runs");
        // The program itself, which is several times as large in a debug build, does not count.
        let kilobytes = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a line of this name");
            line.split_whitespace().next().and_then(|number| number.parse::<u64>().ok()).expect("a number")
        };
        let peak = kilobytes("VmHWM:") - kilobytes("RssFile:");
        assert!(peak < MOST_MEMORY, "{peak} KB");
    });
}

const SERVICES: u32 = 10_000;
/// In kilobytes. The daemon may have 64 MB, of which the program takes about 10 in a release build.
const MOST_MEMORY: u64 = 54 << 10;

#[test]
fn half_of_the_lists_programs_nothing() {
    namespace(|| {
        let server = filled();
        (0..1_000).for_each(|_| server.fail("endpointslices", Verb::List, Fault::Status(403, None)));
        server.up();
        let daemon = Daemon::asking("half");
        daemon.says("EndpointSlices from the API server");
        thread::sleep(Duration::from_secs(1));
        assert_eq!(table(), "");
        server.mend();
        daemon.until("the first service", || table().contains("10.96.0.1 . tcp . 80"));
    });
}

#[test]
fn while_the_api_server_is_gone_everything_stays_and_is_mended() {
    namespace(|| {
        let server = filled();
        server.up();
        let daemon = Daemon::asking("gone");
        daemon.until("the first service", || table().contains("10.96.0.1 . tcp . 80"));
        let before = table();
        server.down();
        daemon.says("the API server http");
        assert_eq!(table(), before);
        testns::sh_beside("nft flush ruleset");
        daemon.until("what somebody else broke", || table() == before);
        server.delete("services", "demo", "web");
        server.put("services", service("new", "10.96.0.3"));
        server.put("endpointslices", slice("new", &["10.244.0.4"]));
        server.forget();
        server.up();
        daemon.until("what was missed", || {
            table().contains("10.96.0.3 . tcp") && !table().contains("10.96.0.1 . ")
        });
    });
}

#[test]
fn the_flags_of_the_source_are_checked() {
    let refused = |flags: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_sluicegate-proxier"))
            .arg("run")
            .args(flags)
            .env_remove("KUBERNETES_SERVICE_HOST")
            .output()
            .expect("the command starts");
        assert!(!output.status.success(), "{flags:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let both = refused(&["--manifests", "/tmp", "--kubeconfig", "/nowhere"]);
    assert!(
        both.contains("--manifests") && both.contains("cannot be used with") && both.contains("--kubeconfig")
    );
    namespace(|| {
        let missing = refused(&["--kubeconfig", "/nowhere"]);
        assert!(missing.contains("--kubeconfig /nowhere: ") && missing.contains("No such file"), "{missing}");
        let pod = refused(&[]);
        assert!(pod.contains("no --kubeconfig, and this does not run in a pod"), "{pod}");
    });
}

#[test]
fn requests_and_what_was_heard_are_in_the_metrics_and_readiness_follows() {
    namespace(|| {
        let server = filled();
        (0..1_000).for_each(|_| server.fail("endpointslices", Verb::List, Fault::Status(403, None)));
        server.up();
        let daemon = Daemon::asking("metrics");
        let get = |port: u16, path: &str| {
            let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).ok()?;
            write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").ok()?;
            let mut text = String::new();
            stream.read_to_string(&mut text).ok()?;
            Some(text)
        };
        let says = |port: u16, path: &str, what: &str| {
            daemon.until(&format!("{what} in {path}"), || {
                get(port, path).is_some_and(|text| text.contains(what))
            });
        };
        says(10256, "/readyz", "[-]endpointslices failed: for ");
        says(10256, "/readyz", "s: 403 Forbidden: told to answer 403\n");
        says(10256, "/healthz", "503 Service Unavailable");
        says(10256, "/livez", "200 OK");
        says(
            10249,
            "/metrics",
            "rest_client_requests_total{code=\"403\",host=\"127.0.0.1:6443\",method=\"GET\"} ",
        );
        server.mend();
        says(10256, "/readyz", "[+]endpointslices ok\n");
        says(10256, "/readyz", "readyz check passed\n");
        says(10256, "/healthz", "200 OK");
        for line in [
            "sluicegate_source_synced{resource=\"endpointslices\"} 1\n",
            "sluicegate_source_silence_seconds{resource=\"services\"} 0.",
            "rest_client_request_duration_seconds_bucket{le=\"60.0\",host=\"127.0.0.1:6443\",verb=\"GET\"} ",
            "kubernetes_build_info{build_date=\"\",compiler=\"rustc\",",
            "\nprocess_resident_memory_bytes ",
            "\nprocess_open_fds ",
            "\nprocess_start_time_seconds ",
        ] {
            says(10249, "/metrics", line);
        }
        says(10249, "/statusz", "\nkube-proxy statusz\n");
        says(10249, "/flagz", "\nmaster=http://127.0.0.1:6443\n");
    });
}

#[test]
fn a_node_that_the_api_server_does_not_have_is_told() {
    namespace(|| {
        let server = ApiServer::new();
        server.put("nodes", node("another"));
        server.put("services", service("web", "10.96.0.1"));
        server.put("endpointslices", slice("web", &["10.244.0.1"]));
        server.up();
        let daemon = Daemon::asking("nameless");
        let told = format!("the API server has no Node {NODE} (--hostname-override)");
        daemon.says(&told);
        daemon.until("the first service", || table().contains("10.96.0.1 . tcp . 80"));
        let output = Command::new(env!("CARGO_BIN_EXE_sluicegate-proxier"))
            .args(["explain", "--hostname-override", NODE, "--from", "10.244.0.7", "--to", "10.96.0.1:80"])
            .args(["--master", &format!("http://127.0.0.1:{PORT}")])
            .output()
            .expect("the command starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(&told), "{said}");
    });
}
