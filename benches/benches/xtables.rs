//! The tables of iptables-legacy by this library and by the tool: services of kube-proxy's iptables mode, 5
//! endpoints each, restored as a whole and changed by one endpoint. The kernel replaces a table whatever
//! changes in it: what an input without lines takes is the floor for every change.
//!
//! Times are those of the wall clock in milliseconds, medians of rounds in which both take turns.
//! `SLUICEGATE_BENCH_ROUNDS` says how many rounds (5).

use std::time::{Duration, Instant};

use benches::timing::is_measuring;
use sluicegate_iptables_save::{Save, Table};
use sluicegate_lab::{change_one, uniform_cluster};
use sluicegate_service_rules::iptables::{Feature, Planner, Settings, Support};
use sluicegate_services::{Cluster, DetectLocal, Family};
use sluicegate_xtables::Family as TableFamily;
use sluicegate_xtables::legacy::{Client, Restore};
use testns::Netns;

const SIZES: [u32; 4] = [10, 100, 1_000, 5_000];
const ENDPOINTS: u32 = 5;

fn main() {
    let sizes = if is_measuring() { &SIZES[..] } else { &SIZES[..1] };
    if !testns::have(&["iptables-legacy-restore"]) {
        return;
    }
    println!("{:>8} {:<28} {:>9} {:>9} {:>7}", "services", "", "library", "tool", "times");
    sizes.iter().for_each(|size| measure(*size));
}

fn measure(size: u32) {
    let (Some(ours), Some(theirs)) = (Netns::new(), Netns::new()) else { return };
    let mut cluster = uniform_cluster(size, ENDPOINTS);
    cluster.take_changes();
    let mut plan = planner(&cluster);
    let all = plan.input().to_string();
    let mut client = ours.run(|| Client::open(TableFamily::Ipv4).expect("a raw socket"));
    compare(size, "everything", || ours.run(|| library(&mut client, &all)), || theirs.run(|| tool(&all)));
    let mut changes = std::iter::from_fn(|| {
        change_one(&mut cluster, size / 2, ENDPOINTS);
        let changed = cluster.take_changes();
        Some(plan.sync(&cluster, &changed).expect("plans can be compared").to_string())
    });
    let both: Vec<String> = changes.by_ref().take(2 * rounds()).collect();
    let (mut first, mut second) = (both.iter().cycle(), both.iter().cycle());
    compare(
        size,
        "one endpoint",
        || ours.run(|| library(&mut client, first.next().expect("a cycle"))),
        || theirs.run(|| tool(second.next().expect("a cycle"))),
    );
    let empty: String = Save::parse(&both[0]).expect("the planner's text").tables().map(empty).collect();
    compare(
        size,
        "no line: the floor",
        || ours.run(|| library(&mut client, &empty)),
        || theirs.run(|| tool(&empty)),
    );
}

fn empty(table: &Table<'_>) -> String {
    format!("*{}\nCOMMIT\n", table.name())
}

fn planner(cluster: &Cluster) -> Planner {
    let detect_local = DetectLocal::ClusterCidrs(vec!["10.0.0.0/8".parse().expect("a CIDR")]);
    let settings = Settings { detect_local, ..Settings::default() };
    let support = Support::without([Feature::Nfacct]);
    Planner::new(Family::Ipv4, &settings, support, cluster, None).expect("good settings")
}

fn library(client: &mut Client, input: &str) -> Duration {
    let start = Instant::now();
    let save = Save::parse(input).expect("the planner's text");
    client.restore(&save, Restore { flush: false, counters: true }).expect("it is restored");
    start.elapsed()
}

fn tool(input: &str) -> Duration {
    let start = Instant::now();
    let output = testns::feed(&["iptables-legacy-restore", "-w", "5", "--noflush", "--counters"], input);
    let took = start.elapsed();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    took
}

fn rounds() -> usize {
    let rounds = std::env::var("SLUICEGATE_BENCH_ROUNDS").ok().and_then(|rounds| rounds.parse().ok());
    if is_measuring() { rounds.unwrap_or(5) } else { 1 }
}

fn compare(size: u32, what: &str, mut ours: impl FnMut() -> Duration, mut theirs: impl FnMut() -> Duration) {
    let (mut library, mut tool): (Vec<_>, Vec<_>) = (0..rounds()).map(|_| (ours(), theirs())).unzip();
    let median = |times: &mut Vec<Duration>| {
        times.sort();
        times[times.len() / 2].as_secs_f64() * 1000.0
    };
    let (library, tool) = (median(&mut library), median(&mut tool));
    println!("{size:>8} {what:<28} {library:>9.2} {tool:>9.2} {:>7.1}", tool / library);
}
