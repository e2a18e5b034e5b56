//! The tables of both back ends of iptables by this library and by the tools: services of kube-proxy's
//! iptables mode, 5 endpoints each, restored as a whole and changed by one endpoint.
//!
//! Of iptables-legacy the kernel replaces a table whatever changes in it. What it takes alone to give the
//! tables of a change and to take them back is a line, with no tool beside it: the floor for every change. An
//! input without lines makes the tool replace the tables all the same, and the library nothing. Of iptables-nft
//! a change also follows one of another program's, after which nothing that was read is valid any more.
//!
//! In iptables-nft the kernel's share of a change grows with the table. A batch that adds a rule with an
//! expression that has to be validated (any verdict, jump, match or target) makes `nft_table_validate` visit
//! the chains of the table, and all rules to which the built-in ones lead, before the commit: all of them after
//! a proxier, which jumps there. Two lines show it, each of one rule in a chain of its own that nothing jumps to:
//! with a verdict, which is the floor for every change, and with a counter alone, which needs no validation.
//!
//! Then a proxier in iptables mode: its first sync, the change of one endpoint, with all that it looks at
//! beside, and the first sync of one that is started again. Before each change the kernel has time to destroy
//! the rules of the last one. It does so a grace period of RCU later, and until then every rule with a `match` or
//! `target` expression of `nft_compat` waits (`nft_compat_wait_for_destructors`), of whichever program.
//!
//! Times are those of the wall clock in milliseconds, medians of rounds in which both take turns.
//! `SLUICEGATE_BENCH_ROUNDS` says how many rounds (5), `SLUICEGATE_BENCH_ALL` adds 5,000 services, for which
//! `iptables-nft-restore` takes minutes.

use std::time::{Duration, Instant};

use benches::record::{self, Unit};
use benches::timing::is_measuring;
use sluicegate_iptables_save::{Save, Table};
use sluicegate_lab::{change_one, uniform_cluster};
use sluicegate_netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::lang::{Counter, Verdict};
use sluicegate_nftables::{Chain, ChainId, Family as NftFamily, Name, TableId, Transaction};
use sluicegate_service_rules::iptables::{Applier, Feature, Planner, Settings, Support};
use sluicegate_services::{Cluster, DetectLocal, Family};
use sluicegate_xtables::Family as TableFamily;
use sluicegate_xtables::legacy::Restore;
use sluicegate_xtables::{BackEnd, legacy, nft};
use testns::Netns;

const SIZES: [u32; 4] = [10, 100, 1_000, 5_000];
/// With more services, only if everything is asked for.
const USUAL: usize = 3;
const ENDPOINTS: u32 = 5;
/// After which the kernel has destroyed what a change deleted.
const SETTLED: Duration = Duration::from_millis(100);

fn main() {
    let sizes = match (is_measuring(), std::env::var_os("SLUICEGATE_BENCH_ALL")) {
        (false, _) => &SIZES[..1],
        (true, None) => &SIZES[..USUAL],
        (true, Some(_)) => &SIZES[..],
    };
    println!("{:>8} {:<34} {:>9} {:>9} {:>7}", "services", "", "library", "tool", "times");
    for backend in [Backend::Nft, Backend::Legacy] {
        if testns::have(&[backend.tool()]) {
            sizes.iter().for_each(|size| measure(*size, backend));
        }
        sizes.iter().for_each(|size| proxier(*size, backend));
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Backend {
    Nft,
    Legacy,
}

/// A client of either back end.
enum Client {
    Nft(nft::Client),
    Legacy(legacy::Client),
}

impl Backend {
    fn tool(self) -> &'static str {
        match self {
            Self::Nft => "iptables-nft-restore",
            Self::Legacy => "iptables-legacy-restore",
        }
    }

    fn open(self) -> Client {
        match self {
            Self::Nft => Client::Nft(nft::Client::open(TableFamily::Ipv4).expect("a socket")),
            Self::Legacy => Client::Legacy(legacy::Client::open(TableFamily::Ipv4).expect("a raw socket")),
        }
    }
}

fn measure(size: u32, backend: Backend) {
    let (Some(ours), Some(theirs)) = (Netns::new(), Netns::new()) else { return };
    let mut cluster = uniform_cluster(size, ENDPOINTS);
    cluster.take_changes();
    let mut plan = planner(&cluster);
    let all = plan.input().to_string();
    let mut client = ours.run_here(|| backend.open());
    let name = |what: &str| format!("{}: {what}", if backend == Backend::Nft { "nft" } else { "legacy" });
    let tool = |input: &str| theirs.run_here(|| tool(backend, input));
    // Restored again, the same input empties every chain first.
    compare(size, &name("everything"), || ours.run_here(|| library(&mut client, &all)), || tool(&all));
    let mut changes = std::iter::from_fn(|| {
        change_one(&mut cluster, size / 2, ENDPOINTS);
        let changed = cluster.take_changes();
        Some(plan.sync(&cluster, &changed).expect("plans can be compared").to_string())
    });
    let both: Vec<String> = changes.by_ref().take(2 * rounds()).collect();
    let (mut first, mut second) = (both.iter().cycle(), both.iter().cycle());
    compare(
        size,
        &name("one endpoint"),
        || ours.run_here(|| library(&mut client, first.next().expect("a cycle"))),
        || tool(second.next().expect("a cycle")),
    );
    if backend == Backend::Nft {
        compare(
            size,
            &name("one endpoint, after another's"),
            || {
                ours.run_here(|| {
                    let _ =
                        testns::sh("iptables-nft -t security -Z; iptables-nft -t security -P INPUT ACCEPT");
                    library(&mut client, first.next().expect("a cycle"))
                })
            },
            || tool(second.next().expect("a cycle")),
        );
        keep("nft: one endpoint", "the kernel alone", size, &validation(size, &ours));
        return;
    }
    let save = Save::parse(&both[0]).expect("the planner's text");
    floor(size, &ours, &mut client, &save);
    let empty: String = save.tables().map(empty).collect();
    compare(size, &name("no line"), || ours.run_here(|| library(&mut client, &empty)), || tool(&empty));
}

/// Prints what the kernel takes for one rule more, with a verdict and without.
/// Returns the times of the former.
fn validation(size: u32, namespace: &Netns) -> Vec<Duration> {
    let name = |name: &str| Name::new(name).expect("a name");
    let chain = TableId::new(NftFamily::IP, name("nat")).chain(name("FLOOR"));
    let rules = |rule: fn(&ChainId) -> Transaction| {
        let times = namespace.run_here(|| {
            let mut socket = Socket::open(NetlinkFamily::NETFILTER, &Options::default()).expect("a socket");
            let mut made = Transaction::new();
            made.add(Chain::new(chain.clone()));
            made.apply(&mut socket).expect("a chain more");
            let mut apply = |transaction: Transaction| {
                // With the caches in the state in which a change finds them.
                std::thread::sleep(SETTLED);
                let start = Instant::now();
                transaction.apply(&mut socket).expect("a rule more");
                start.elapsed()
            };
            let times: Vec<_> = (0..rounds()).map(|_| apply(rule(&chain))).collect();
            let mut gone = Transaction::new();
            gone.flush(chain.clone());
            gone.delete(chain.clone());
            gone.apply(&mut socket).expect("it can go");
            times
        });
        std::thread::sleep(SETTLED);
        times
    };
    let mut validated = rules(|chain| {
        let mut transaction = Transaction::new();
        transaction.add(chain.rule().then(Verdict::Return));
        transaction
    });
    let mut plain = rules(|chain| {
        let mut transaction = Transaction::new();
        transaction.add(chain.rule().then(Counter::default()));
        transaction
    });
    println!("{size:>8} {:<34} {:>9.2}", "nft: the kernel alone, a verdict", median(&mut validated));
    println!("{size:>8} {:<34} {:>9.2}", "nft: the kernel alone, a counter", median(&mut plain));
    validated
}

/// Prints what the kernel takes to give the tables of an input that have lines, and to take them back.
fn floor(size: u32, namespace: &Netns, client: &mut Client, input: &Save<'_>) {
    let Client::Legacy(client) = client else { return };
    let mut took = [Vec::new(), Vec::new()];
    for _ in 0..rounds() {
        let mut sum = [Duration::ZERO; 2];
        for table in input.tables().filter(|table| !table.entries.is_empty()) {
            let [read, replaced] = namespace.run_here(|| read_and_replace(client, table.name()));
            sum = [sum[0] + read, sum[1] + replaced];
        }
        took.iter_mut().zip(sum).for_each(|(took, sum)| took.push(sum));
    }
    let whole: Vec<_> = took[0].iter().zip(&took[1]).map(|(read, replace)| *read + *replace).collect();
    keep("legacy: the tables of a change", "the kernel alone", size, &whole);
    let [read, replace] = took.map(|mut times| median(&mut times));
    println!("{size:>8} {:<34} {read:>9.2}", "legacy: the kernel alone, reading");
    println!("{size:>8} {:<34} {replace:>9.2}", "legacy: the kernel alone, replacing");
}

fn read_and_replace(client: &mut legacy::Client, table: &str) -> [Duration; 2] {
    let start = Instant::now();
    let raw = client.raw(table).expect("a table");
    let read = start.elapsed();
    client.put_back(&raw).expect("the kernel takes what it gave");
    [read, start.elapsed() - read]
}

fn empty(table: &Table<'_>) -> String {
    format!("*{}\nCOMMIT\n", table.name())
}

/// Prints how long the syncs of an applier take.
fn proxier(size: u32, backend: Backend) {
    let Some(namespace) = Netns::new() else { return };
    let back_end = if backend == Backend::Nft { BackEnd::Nft } else { BackEnd::Legacy };
    let mut cluster = uniform_cluster(size, ENDPOINTS);
    let mut sync = |applier: &mut Applier| {
        std::thread::sleep(SETTLED);
        let start = Instant::now();
        applier.sync(&mut cluster, Instant::now()).expect("it is synced");
        let took = start.elapsed();
        change_one(&mut cluster, size / 2, ENDPOINTS);
        took
    };
    let [first, changes, again] = namespace.run_here(|| {
        let open =
            || Applier::open(Some(back_end), &[Family::Ipv4], settings()).expect("the kernel's tables");
        let mut applier = open();
        let first = sync(&mut applier);
        let changes = (0..rounds()).map(|_| sync(&mut applier)).collect();
        [vec![first], changes, vec![sync(&mut open())]]
    });
    for (what, mut times) in [("first sync", first), ("one endpoint", changes), ("restarted", again)] {
        println!("{size:>8} {:<34} {:>9.2}", format!("{back_end}: proxier, {what}"), median(&mut times));
    }
    if backend == Backend::Nft {
        // Here the built-in chains jump to all others.
        validation(size, &namespace);
    }
}

fn planner(cluster: &Cluster) -> Planner {
    let support = Support::without([Feature::Nfacct]);
    Planner::new(Family::Ipv4, &settings(), support, cluster, None).expect("good settings")
}

fn settings() -> Settings {
    let detect_local = DetectLocal::ClusterCidrs(vec!["10.0.0.0/8".parse().expect("a CIDR")]);
    Settings { detect_local, ..Settings::default() }
}

fn library(client: &mut Client, input: &str) -> Duration {
    let start = Instant::now();
    let save = Save::parse(input).expect("the planner's text");
    let how = Restore::default().counters();
    match client {
        Client::Nft(client) => client.restore(&save, how),
        Client::Legacy(client) => client.restore(&save, how).map(drop),
    }
    .expect("it is restored");
    start.elapsed()
}

fn tool(backend: Backend, input: &str) -> Duration {
    let start = Instant::now();
    let output = testns::feed(&[backend.tool(), "-w", "5", "--noflush", "--counters"], input);
    let took = start.elapsed();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    took
}

fn rounds() -> usize {
    let rounds = std::env::var("SLUICEGATE_BENCH_ROUNDS").ok().and_then(|rounds| rounds.parse().ok());
    if is_measuring() { rounds.unwrap_or(5) } else { 1 }
}

fn median(times: &mut [Duration]) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1000.0
}

fn compare(size: u32, what: &str, mut ours: impl FnMut() -> Duration, mut theirs: impl FnMut() -> Duration) {
    let (mut library, mut tool): (Vec<_>, Vec<_>) = (0..rounds()).map(|_| (ours(), theirs())).unzip();
    keep(what, "library", size, &library);
    keep(what, "iptables-restore", size, &tool);
    let (library, tool) = (median(&mut library), median(&mut tool));
    println!("{size:>8} {what:<34} {library:>9.2} {tool:>9.2} {:>7.1}", tool / library);
}

fn keep(what: &str, who: &str, size: u32, times: &[Duration]) {
    let samples: Vec<_> = times.iter().map(|time| time.as_secs_f64() * 1e9).collect();
    record::keep("iptables", what, who, size, Unit::Nanoseconds, &samples);
}
