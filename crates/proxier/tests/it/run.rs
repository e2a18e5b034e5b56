//! The daemon, as a process of its own in a namespace of its own, and what it does to the kernel there.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read as _;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A directory with manifests and a log, removed with it.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("sluicegate-run-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(path.join("m")).expect("a directory");
        Self(path)
    }

    /// One with the service `web` of one endpoint.
    fn with_web() -> Self {
        let directory = Self::new();
        directory.write("web.yaml", &service("web", "172.30.0.1", &["10.0.0.1"]));
        directory
    }

    fn manifests(&self) -> PathBuf {
        self.0.join("m")
    }

    /// Replaces a manifest as a whole, as a tool would.
    fn write(&self, name: &str, text: &str) {
        let new = self.0.join("new");
        fs::write(&new, text).expect("a file");
        fs::rename(new, self.manifests().join(name)).expect("a file that can be renamed");
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A running proxier; killed when it is dropped.
struct Daemon {
    child: Child,
    log: PathBuf,
}

impl Daemon {
    fn start(directory: &Directory, flags: &[&str]) -> Self {
        Self::start_by(Command::new(BINARY), directory, flags)
    }

    fn start_by(mut command: Command, directory: &Directory, flags: &[&str]) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let log = directory.0.join(format!("log-{}", NEXT.fetch_add(1, Ordering::Relaxed)));
        let child = command
            .args(["run", "--hostname-override", "node", "--manifests"])
            .arg(directory.manifests())
            .args(flags)
            .stderr(fs::File::create(&log).expect("a log"))
            .stdout(Stdio::null())
            .spawn()
            .expect("the command starts");
        Self { child, log }
    }

    fn log(&self) -> String {
        let mut text = String::new();
        fs::File::open(&self.log).expect("a log").read_to_string(&mut text).expect("text");
        text
    }

    /// Waits until the log holds this so many times.
    fn says(&self, what: &str, times: usize) {
        eventually(
            || self.log().matches(what).count() >= times,
            || format!("{what:?} is not {times} times in the log:\n{}", self.log()),
        );
    }

    /// Waits until it listens for what others do, which it does between its syncs.
    fn listens(&self) {
        let listens = || testns::netfilter_sockets().iter().any(|socket| socket.listens);
        eventually(listens, || format!("it does not listen:\n{}", self.log()));
    }

    fn signal(&self, name: &str) {
        let _ = testns::sh(&format!("kill -{name} {}", self.child.id()));
    }

    fn ends(&mut self) -> ExitStatus {
        let mut status = None;
        eventually(
            || {
                status = self.child.try_wait().expect("a child");
                status.is_some()
            },
            || "it does not end".to_owned(),
        );
        status.expect("it has ended")
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn eventually(mut condition: impl FnMut() -> bool, why: impl FnOnce() -> String) {
    let end = Instant::now() + Duration::from_secs(30);
    while !condition() {
        assert!(Instant::now() < end, "{}", why());
        thread::sleep(Duration::from_millis(10));
    }
}

fn service(name: &str, ip: &str, endpoints: &[&str]) -> String {
    let endpoints: Vec<_> = endpoints.iter().map(|ip| format!("{{addresses: [{ip}]}}")).collect();
    format!(
        "apiVersion: v1
kind: Service
metadata: {{name: {name}, namespace: demo}}
spec: {{clusterIP: {ip}, ports: [{{name: p, port: 80}}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: {name}-1, namespace: demo, labels: {{kubernetes.io/service-name: {name}}}}}
addressType: IPv4
ports: [{{name: p, port: 8080, protocol: TCP}}]
endpoints: [{}]
---
",
        endpoints.join(", ")
    )
}

fn table() -> String {
    String::from_utf8_lossy(&testns::try_sh("nft -s list table ip kube-proxy | sort").stdout).into_owned()
}

/// What a process that knows nothing of the daemon says is still to be done.
fn difference(directory: &Directory) -> String {
    let output = Command::new(BINARY)
        .args(["diff", "--hostname-override", "node", "--manifests"])
        .arg(directory.manifests())
        .output()
        .expect("the command runs");
    let text = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&text).into_owned()
}

fn converges(directory: &Directory, daemon: &Daemon) {
    eventually(
        || difference(directory).is_empty(),
        || format!("{}\n{}", difference(directory), daemon.log()),
    );
}

fn namespace(test: impl FnOnce() + Send) {
    if testns::have(&["nft"]) {
        testns::netns(test);
    }
}

#[test]
fn it_follows_its_manifests_stops_with_all_rules_in_place_and_changes_nothing_when_it_is_back() {
    namespace(|| {
        let directory = Directory::new();
        directory.write("web.yaml", &service("web", "172.30.0.1", &["10.0.0.1", "10.0.0.2"]));
        let mut daemon = Daemon::start(&directory, FAST);
        daemon.says("1 service, 1 changed: ", 1);
        converges(&directory, &daemon);
        assert!(table().contains("172.30.0.1 . tcp . 80 : 0:2"), "{}", table());

        directory.write("db.yaml", &service("db", "172.30.0.2", &["10.0.0.3"]));
        daemon.says("2 services, 1 changed: ", 1);
        converges(&directory, &daemon);
        fs::remove_file(directory.manifests().join("web.yaml")).expect("it is there");
        eventually(|| !table().contains("172.30.0.1"), table);
        converges(&directory, &daemon);

        // Chains that nobody uses any more go by themselves.
        eventually(|| !table().contains("lb-tcp-2"), table);

        let before = table();
        daemon.signal("TERM");
        assert!(daemon.ends().success(), "{}", daemon.log());
        daemon.says("stopped; all rules stay in place", 1);
        assert_eq!(table(), before);

        let mut again = Daemon::start(&directory, FAST);
        again.says("1 service, 1 changed: nothing to change", 1);
        assert_eq!(table(), before);
        again.signal("INT");
        assert!(again.ends().success());
    });
}

#[test]
fn a_folder_that_has_lost_most_at_the_start_does_not_empty_the_node() {
    namespace(|| {
        let directory = Directory::with_web();
        let web = service("web", "172.30.0.1", &["10.0.0.1"]);
        let sync = |flags: &[&str]| {
            let mut command = Command::new(BINARY);
            command.args(["sync", "--hostname-override", "node", "--manifests"]).arg(directory.manifests());
            let output = command.args(flags).output().expect("the command runs");
            (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
        };
        assert!(sync(&[]).0);
        let before = table();
        let (alone, _) = web.split_once("---").expect("two documents");
        let emptied: [(&str, Option<&str>); 4] = [
            ("have no Service any more", None),
            ("have no Service any more", Some("# nothing\n")),
            ("have no Service any more", Some("apiVersion: apps/v1\nkind: Deployment\n")),
            ("1 have no EndpointSlice any more", Some(alone)),
        ];
        for (why, left) in emptied {
            match left {
                Some(text) => directory.write("web.yaml", text),
                None => fs::remove_file(directory.manifests().join("web.yaml")).expect("it is there"),
            }
            let (is_done, said) = sync(&[]);
            assert!(!is_done && said.contains(why) && said.contains("--allow-empty"), "{said}");
            let daemon = Daemon::start(&directory, FAST);
            daemon.says(why, 1);
            assert_eq!(table(), before, "{why}");
            directory.write("web.yaml", &web);
            daemon.says("1 service, 1 changed: nothing to change", 1);
            assert_eq!(table(), before, "{why}");
        }
        directory.write("web.yaml", "# nothing\n");
        let _daemon = Daemon::start(&directory, &[FAST, &["--allow-empty"]].concat());
        eventually(|| !table().contains("172.30.0.1"), table);
    });
}

#[test]
fn what_others_break_is_mended_at_once_and_what_they_do_elsewhere_costs_nothing() {
    namespace(|| {
        let directory = Directory::with_web();
        let daemon = Daemon::start(&directory, &[FAST, &["-v", "2"]].concat());
        daemon.says("1 service, 1 changed", 1);
        daemon.listens();
        let before = table();
        for damage in [
            "delete element ip kube-proxy cluster-ips { 172.30.0.1 }",
            "flush chain ip kube-proxy services",
            "flush ruleset",
        ] {
            daemon.listens();
            testns::sh_beside(&format!("nft '{damage}'"));
            eventually(|| table() == before, || format!("{damage}: {}\n{}", table(), daemon.log()));
        }
        assert!(daemon.log().contains("nft (process "), "the log names who did it: {}", daemon.log());

        testns::sh_beside(
            "nft 'add table inet others; add chain inet others c; add rule inet others c drop'",
        );
        directory.write("web.yaml", &service("web", "172.30.0.1", &["10.0.0.2"]));
        converges(&directory, &daemon);
        // The kernel has it a moment before the log says so.
        daemon.says("1 changed: ", 2);
        let log = daemon.log();
        let last = log.lines().rfind(|line| line.contains("1 changed: ")).expect("a line for the change");
        // The endpoint of the frontend, and its own connections to itself, as the slice names no node.
        assert!(last.contains(" 2 elements added, 2 deleted"), "{last}");
        assert!(!log.contains("may have been missed"), "{log}");
    });
}

#[test]
fn a_program_that_fights_for_the_tables_is_told_a_few_times_and_then_counted() {
    namespace(|| {
        let directory = Directory::with_web();
        let daemon = Daemon::start(&directory, FAST);
        daemon.says("1 service, 1 changed", 1);
        let before = table();
        for _ in 0..9 {
            daemon.listens();
            testns::sh_beside("nft flush ruleset");
            eventually(|| table() == before, || format!("{}\n{}", table(), daemon.log()));
        }
        let log = daemon.log();
        assert_eq!(log.matches("changed our tables; repairing them").count(), 5, "{log}");
    });
}

#[test]
fn hangup_compares_everything_and_a_file_that_does_not_parse_keeps_what_it_held() {
    namespace(|| {
        let directory = Directory::with_web();
        let daemon = Daemon::start(&directory, FAST);
        daemon.says("1 service, 1 changed", 1);
        let before = table();
        daemon.signal("HUP");
        daemon.says("comparing everything with the kernel, as requested", 1);
        daemon.says("1 service, 0 changed: nothing to change", 1);

        directory.write("web.yaml", "kind: Service\napiVersion: v1\nspec: {ports: [}\n");
        daemon.says("web.yaml, document 1, line 3, column ", 1);
        assert_eq!(table(), before);
        // The whole source is gone for a while.
        fs::rename(directory.manifests(), directory.0.join("away")).expect("a directory");
        daemon.says("stay in use", 2);
        directory.write_back();
        directory.write("web.yaml", &service("web", "172.30.0.9", &["10.0.0.1"]));
        eventually(|| table().contains("172.30.0.9"), || format!("{}\n{}", table(), daemon.log()));
        converges(&directory, &daemon);
    });
}

impl Directory {
    fn write_back(&self) {
        fs::rename(self.0.join("away"), self.manifests()).expect("a directory");
    }
}

#[test]
fn a_second_one_is_refused_with_a_clear_message() {
    namespace(|| {
        let directory = Directory::with_web();
        let first = Daemon::start(&directory, FAST);
        first.says("1 service", 1);
        let mut second = Daemon::start(&directory, FAST);
        assert!(!second.ends().success());
        let expected = format!(
            "process {} is a proxier of this network namespace already, and two would undo each other's work",
            first.child.id()
        );
        assert!(second.log().contains(&expected), "{}", second.log());
        // A third may begin as soon as the first is gone, even when it was killed.
        drop(first);
        Daemon::start(&directory, FAST).says("nothing to change", 1);
    });
}

#[test]
fn net_admin_is_the_only_capability_it_needs() {
    if !testns::have(&["setpriv"]) {
        return;
    }
    namespace(|| {
        let directory = Directory::with_web();
        let mut command = Command::new("setpriv");
        command.args(["--bounding-set", "-all,+net_admin", "--inh-caps", "-all,+net_admin", "--", BINARY]);
        let daemon = Daemon::start_by(command, &directory, FAST);
        daemon.says("1 service, 1 changed", 1);
        let status = fs::read_to_string(format!("/proc/{}/status", daemon.child.id())).expect("a process");
        assert!(status.contains("CapEff:\t0000000000001000"), "{status}");
        daemon.listens();
        testns::sh_beside("nft flush ruleset");
        converges(&directory, &daemon);
    });
}

#[test]
fn without_the_capability_it_says_so_and_ends() {
    if !testns::have(&["setpriv"]) {
        return;
    }
    namespace(|| {
        let directory = Directory::with_web();
        let mut command = Command::new("setpriv");
        command.args(["--bounding-set", "-all", "--inh-caps", "-all", "--", BINARY]);
        let mut daemon = Daemon::start_by(command, &directory, FAST);
        assert!(!daemon.ends().success());
        let log = daemon.log();
        assert!(log.contains("taking the lock of the network namespace, which needs CAP_NET_ADMIN"), "{log}");
    });
}

#[test]
fn a_configuration_file_is_taken_below_the_flags_and_a_wrong_field_is_named() {
    namespace(|| {
        let directory = Directory::with_web();
        let config = directory.0.join("config.conf");
        let write = |body: &str| {
            let head = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n";
            fs::write(&config, format!("{head}{body}")).expect("a file");
        };
        let path = config.to_str().expect("text").to_owned();
        write("mode: nftables\nclusterCIDR: 10.9.0.0/16\nnftables: {masqueradeBit: 3}\nportRange: 1-2\n");
        let daemon = Daemon::start(&directory, &["--config", &path, "--cluster-cidr", "10.8.0.0/16"]);
        daemon.says("1 service", 1);
        let table = table();
        assert!(table.contains("ip saddr != 10.8.0.0/16") && !table.contains("10.9.0.0"), "{table}");
        assert!(table.contains("0x00000008"), "{table}");
        assert!(daemon.log().contains("config.conf: line 6, column 1: portRange: has no effect here"));
        drop(daemon);
        write("mode: nftables\noomScoreAdj: 3000\n");
        let mut wrong = Daemon::start(&directory, &["--config", &path]);
        assert!(!wrong.ends().success());
        assert!(
            wrong.log().contains(
                "config.conf: line 4, column 14: oomScoreAdj: expected a number from -1000 to 1000"
            )
        );
    });
}

#[test]
fn the_iptables_mode_runs_as_well_and_mends_a_flush_when_it_looks() {
    if !testns::have(&["iptables-nft-restore"]) {
        return;
    }
    testns::netns(|| {
        let directory = Directory::with_web();
        let flags = [
            "--proxy-mode",
            "iptables",
            "--iptables-backend",
            "nft",
            "--iptables-min-sync-period",
            "0s",
            "--iptables-sync-period",
            "300ms",
        ];
        let daemon = Daemon::start(&directory, &flags);
        daemon.says("1 service, 1 changed", 1);
        let rules = || testns::sh_beside("iptables-nft-save -t nat");
        assert!(rules().contains("demo/web:p -> 10.0.0.1:8080"), "{}", rules());
        directory.write("web.yaml", &service("web", "172.30.0.1", &["10.0.0.2"]));
        eventually(|| rules().contains("demo/web:p -> 10.0.0.2:8080"), || daemon.log());
        // Each table in one step: between two, the daemon may put back what the second asks to be empty.
        testns::sh_beside(
            "for t in filter nat mangle; do printf '*%s\\nCOMMIT\\n' $t | iptables-nft-restore || exit; done",
        );
        eventually(|| rules().contains("demo/web:p -> 10.0.0.2:8080"), || daemon.log());
    });
}

/// Of the other mode's rules there is one service left among the manifests, and then again what there was.
#[test]
fn what_another_mode_serves_stays_as_long_as_most_of_it_is_missing() {
    if !testns::have(&["nft", "iptables-nft-save"]) {
        return;
    }
    const NFTABLES: &[&str] = &["--proxy-mode", "nftables"];
    const IPTABLES: &[&str] = &["--proxy-mode", "iptables", "--iptables-backend", "nft"];
    let all = || table() + &testns::sh_beside("iptables-nft-save");
    let name = |n: usize| format!("w{n}.yaml");
    for (before, after, answers) in [
        (IPTABLES, NFTABLES, "-d 172.30.0.3/32 -p tcp -m comment --comment \"demo/w3:p cluster IP\""),
        (NFTABLES, IPTABLES, "172.30.0.3 . tcp . 80 : "),
    ] {
        testns::netns(|| {
            let directory = Directory::new();
            let write = |n: usize| {
                let (name, ip) = (format!("w{n}"), format!("172.30.0.{n}"));
                directory.write(&format!("{name}.yaml"), &service(&name, &ip, &["10.0.0.1"]));
            };
            (1..=12).for_each(write);
            let mut daemon = Daemon::start(&directory, before);
            daemon.says("12 services, 12 changed", 1);
            daemon.signal("TERM");
            daemon.ends();
            (2..=12).for_each(|n| fs::remove_file(directory.manifests().join(name(n))).expect("it is there"));
            let daemon = Daemon::start(&directory, after);
            daemon.says("1 service, 1 changed", 1);
            daemon.says("stays in use for now, beside what is programmed: 11 of the 12 cluster IPs", 1);
            assert!(all().contains(answers), "{}", all());
            (2..=12).for_each(write);
            eventually(|| !all().contains(answers), || format!("{}\n{}", daemon.log(), all()));
            daemon.says("removed what another mode than", 1);
        });
    }
}

#[test]
fn events_that_were_lost_lead_to_a_comparison() {
    namespace(|| {
        let directory = Directory::with_web();
        let daemon = Daemon::start(&directory, FAST);
        daemon.says("1 service, 1 changed", 1);
        daemon.listens();
        let before = table();
        // It sleeps while others do more than its socket can hold, and something to us among it.
        daemon.signal("STOP");
        let many: Vec<String> =
            (0..100_000_u32).map(|n| format!("{}", Ipv4Addr::from(0x0a00_0000 + n))).collect();
        let script = format!(
            "add table ip others\nadd set ip others s {{ type ipv4_addr; }}\n\
                add element ip others s {{ {} }}\ndelete table ip kube-proxy\n",
            many.join(",")
        );
        let output = testns::feed(&["nft", "-f", "-"], &script);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        daemon.signal("CONT");
        daemon.says("commits of other programs may have been missed (the receive buffer overflowed)", 1);
        eventually(|| table() == before, || format!("{}\n{}", table(), daemon.log()));
    });
}

#[test]
fn a_udp_flow_to_an_endpoint_that_is_gone_is_removed() {
    if !testns::have(&["ip", "conntrack"]) {
        return;
    }
    namespace(|| {
        let _ = testns::sh(
            "ip addr add 10.0.0.1/32 dev lo; ip addr add 10.0.0.2/32 dev lo; ip route add 172.30.0.0/16 dev \
                lo",
        );
        let directory = Directory::new();
        let dns = |endpoint| {
            service("dns", "172.30.0.1", &[endpoint])
                .replace("port: 80}", "port: 80, protocol: UDP}")
                .replace("TCP", "UDP")
        };
        directory.write("dns.yaml", &dns("10.0.0.1"));
        let daemon = Daemon::start(&directory, FAST);
        daemon.says("1 service, 1 changed", 1);
        let client = UdpSocket::bind("10.0.0.1:0").expect("a socket");
        client.send_to(b"?", "172.30.0.1:80").expect("it is sent");
        let flows = || testns::sh_beside("conntrack -L -p udp 2>/dev/null");
        assert!(flows().contains("dst=172.30.0.1") && flows().contains("src=10.0.0.1"), "{}", flows());
        directory.write("dns.yaml", &dns("10.0.0.2"));
        eventually(|| !flows().contains("dst=172.30.0.1"), || format!("{}\n{}", flows(), daemon.log()));
        client.send_to(b"?", "172.30.0.1:80").expect("it is sent");
        assert!(flows().contains("src=10.0.0.2"), "the next packet goes to the new endpoint: {}", flows());
    });
}

#[test]
fn killed_in_the_middle_of_syncs_the_kernel_holds_one_state_or_the_other_and_converges() {
    namespace(|| {
        let directory = Directory::new();
        // A thousand kills take a few minutes: set the variable for them.
        let kills: u32 = std::env::var("SLUICEGATE_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(30);
        let mut random = Random(u64::from(std::process::id()) | 1);
        println!("seed {}", random.0);
        let (mut held, mut mid) = (String::new(), 0);
        // In microseconds. Where the machine is busy a daemon takes longer to begin: then it gets more time.
        let mut most = 120_000;
        for round in 0..kills {
            let manifests = cluster(&mut random);
            directory.write("all.yaml", &manifests);
            // Clusters of any size follow one another: what is gone is meant to be gone.
            let mut daemon = Daemon::start(&directory, &[FAST, &["--allow-empty"]].concat());
            // Another change while it is at it.
            thread::sleep(Duration::from_micros(random.below(25_000)));
            directory.write("all.yaml", &cluster(&mut random));
            thread::sleep(Duration::from_micros(random.below(most)));
            let _ = daemon.child.kill();
            let _ = daemon.child.wait();
            let now = table();
            assert!(is_whole(&now), "round {round}: {now}");
            mid += u32::from(now != held);
            most = if now == held { (2 * most).min(5_000_000) } else { 120_000 };
            held = now;
        }
        println!("{mid} of {kills} kills left another state than the one before");
        assert!(mid > 0, "no kill came after a sync had begun");
        let daemon = Daemon::start(&directory, &[FAST, &["--allow-empty"]].concat());
        converges(&directory, &daemon);
    });
}

/// Every cluster IP has a frontend, every frontend all of its endpoints, and there are no endpoints of
/// nobody: no transaction is there by half.
fn is_whole(table: &str) -> bool {
    let entries = || table.split([',', '{', '}', '\n']).map(str::trim);
    let (mut wanted, mut found) = (BTreeSet::new(), BTreeSet::new());
    for entry in entries() {
        if let Some((ip, count)) = entry.split_once(" . tcp . 80 : 0:") {
            let count = u32::from_str_radix(count, 16).expect("a number of endpoints");
            wanted.extend((0..count).map(|n| format!("{ip} . {n}")));
        } else if let Some((key, _)) = entry.split_once(" : 10.1.") {
            found.insert(key.replace(" . 80 . ", " . "));
        }
    }
    wanted == found
}

fn cluster(random: &mut Random) -> String {
    let mut text = String::new();
    for index in 0..20 + random.below(60) {
        let endpoints: Vec<String> =
            (0..random.below(5)).map(|n| format!("10.1.{index}.{}", n + random.below(200) + 1)).collect();
        let mut endpoints: Vec<&str> = endpoints.iter().map(String::as_str).collect();
        endpoints.sort_unstable();
        endpoints.dedup();
        text += &service(&format!("s{index}"), &format!("172.30.1.{}", index + 1), &endpoints);
    }
    text
}

/// Xorshift: enough for choosing.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

const BINARY: &str = env!("CARGO_BIN_EXE_sluicegate-proxier");
const FAST: &[&str] = &["--nftables-min-sync-period", "20ms"];
