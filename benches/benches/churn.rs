//! The processor time of the daemon in nftables mode while 50 endpoints a second change, one after the other:
//! with the least time between two syncs that kube-proxy has, 1 s, and with ours, 50 ms.
//!
//! The peer is `nft -f` of the changes of a second in kube-proxy's layout, once a second: what kube-proxy
//! starts, without its own work. All include the kernel's share, and neither the reading of objects.
//!
//! Each run is a process of its own, in a network namespace of its own. `late` is the time from the change to
//! the end of the sync that programs it.

use std::process::Command;
use std::sync::{Arc, Mutex, mpsc as std_mpsc};
use std::time::{Duration, Instant};
use std::{env, process, thread};

use benches::manifests::{ENDPOINTS, service, slice};
use benches::record::{Unit, keep};
use benches::timing::{is_measuring, process_time, time_of_tool};
use sluicegate_lab::{change_one, uniform_cluster};
use sluicegate_proxier::Mode;
use sluicegate_proxier::run::{Intervals, Loop, Observer, SyncReport, ThisNode, World};
use sluicegate_proxier::source;
use sluicegate_proxier::source::update::{Kind, Update};
use sluicegate_service_rules::nftables::{Applier, Layout, Planner, Settings};
use sluicegate_services::Family;
use tokio::sync::mpsc;

/// Changes a second.
const RATE: u32 = 50;

fn main() {
    let arguments: Vec<_> = env::args().skip_while(|argument| argument != DAEMON).skip(1).collect();
    if let [services, seconds, min] = &arguments[..] {
        let number = |text: &String| text.parse::<u32>().expect("a number");
        return daemon(number(services), number(seconds), Duration::from_millis(number(min).into()));
    }
    let (sizes, seconds): (&[u32], _) = if is_measuring() { (&[100, 1_000, 10_000], 10) } else { (&[10], 1) };
    for size in sizes {
        for min in [Duration::from_secs(1), Intervals::of(Mode::Nftables).min] {
            let Some(namespace) = testns::Netns::new() else { return };
            let mut daemon = Command::new(env::current_exe().expect("a path"));
            let arguments = [size.to_string(), seconds.to_string(), min.as_millis().to_string()];
            daemon.arg(DAEMON).args(arguments);
            let output = namespace.run(|| daemon.output().expect("it can be started"));
            let told = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
            let numbers: Vec<f64> =
                told.split_whitespace().map(|word| word.parse().expect("a number")).collect();
            let [busy, syncs, median, most] = numbers[..] else { panic!("{told}") };
            println!(
                "{size} services, {RATE} changes a second, at most a sync in {min:?}: {:.2} % of a processor, {syncs} \
                 syncs, late {median:.0} ms (at most {most:.0} ms)",
                busy * 100.0
            );
            keep(AREA, WHAT, &format!("ours, {min:?}"), *size, Unit::Nanoseconds, &[busy * 1e9]);
        }
        let Some(namespace) = testns::Netns::new() else { return };
        let busy = namespace.run(|| peer(*size, seconds));
        println!("{size} services, {RATE} changes a second, nft -f each second: {:.2} %", busy * 100.0);
        keep(AREA, WHAT, "nft -f, kube-proxy's layout, 1s", *size, Unit::Nanoseconds, &[busy * 1e9]);
    }
}

/// Programs the services, makes changes for so many seconds, and prints the share of a processor, the number of
/// syncs, and how late the changes were: the median and the most, in milliseconds.
fn daemon(services: u32, seconds: u32, min: Duration) {
    let (sender, updates) = mpsc::channel(1024);
    let (_stop, signals) = mpsc::channel(1);
    let (synced, syncs) = std_mpsc::channel();
    let feed = move || {
        let send = |update| sender.blocking_send(update).expect("the daemon listens");
        let objects = |text: &str, sink: &mut dyn FnMut(Update)| {
            let ignored = source::read_str("manifest", text, |manifest| sink(Update::Apply(manifest.object)));
            ignored.expect("a good manifest");
        };
        for index in 0..services {
            objects(&service(index), &mut |update| send(update));
            objects(&slice(index, 0), &mut |update| send(update));
        }
        Kind::ALL.map(Update::Listed).into_iter().for_each(send);
        let all = |report: &(usize, Option<Duration>)| report.0 == services as usize;
        while !syncs.recv_timeout(Duration::from_secs(600)).is_ok_and(|report| all(&report)) {}
        let mut changes = Vec::new();
        for at in 0..seconds * RATE {
            // Neighbours in time are far apart.
            objects(&slice(at * 97 % services, 1 + at), &mut |update| changes.push(update));
        }
        // What was left of the minimum.
        thread::sleep(min);
        syncs.try_iter().for_each(drop);
        let (start, before) = (Instant::now(), process_time());
        for (at, change) in (1..).zip(changes) {
            send(change);
            thread::sleep((Duration::from_secs(1) * at / RATE).saturating_sub(start.elapsed()));
        }
        thread::sleep(min + Duration::from_millis(200));
        let busy = (process_time() - before).as_secs_f64() / f64::from(seconds);
        let mut late: Vec<_> = syncs.try_iter().filter_map(|(_, late)| late).collect();
        late.sort_unstable();
        let milliseconds = |at: usize| late[at].as_secs_f64() * 1e3;
        println!("{busy} {} {} {}", late.len(), milliseconds(late.len() / 2), milliseconds(late.len() - 1));
        process::exit(0);
    };
    thread::spawn(feed);
    let world = World::new(ThisNode { name: "node".to_owned(), ..ThisNode::default() });
    let settings = Settings { families: vec![Family::Ipv4], ..Settings::default() };
    let backend = Box::new(Applier::open(settings).expect("nf_tables"));
    let intervals = Intervals { min, ..Intervals::of(Mode::Nftables) };
    let run =
        Loop::new(world, backend, intervals, Arc::new(Told(Mutex::new(synced)))).expect("good intervals");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(run.run(updates, signals)).expect("it runs until the changes are made");
}

/// Tells the number of services of each sync, and how late its oldest change is.
struct Told(Mutex<std_mpsc::Sender<(usize, Option<Duration>)>>);

impl Observer for Told {
    fn synced(&self, report: &SyncReport) {
        let late = report.queued.map(|queued| queued.elapsed());
        // The feeder is gone at the end.
        let _ = self.0.lock().expect("nobody panics with it").send((report.services, late));
    }

    fn failed(&self, error: &sluicegate_service_rules::Error) {
        panic!("{error}");
    }
}

/// Returns the share of a processor that `nft -f` takes when it gets the changes of a second each second. Nothing
/// waits between: a share is a time.
fn peer(services: u32, seconds: u32) -> f64 {
    let settings = Settings { families: vec![Family::Ipv4], layout: Layout::Chains, ..Settings::default() };
    let mut cluster = uniform_cluster(services, ENDPOINTS);
    let mut planner = Planner::new(&settings, &cluster, None).expect("good settings");
    let mut first = Applier::open(settings).expect("nf_tables");
    first.sync(&mut cluster, Instant::now()).expect("it works");
    planner.script();
    let mut busy = Duration::ZERO;
    for second in 0..seconds {
        (0..RATE).for_each(|n| change_one(&mut cluster, (second * RATE + n) * 97 % services, ENDPOINTS));
        let changes = cluster.take_changes();
        let script = planner.sync(&cluster, &changes, Instant::now()).to_string();
        busy += time_of_tool("nft -f -", &script);
    }
    busy.as_secs_f64() / f64::from(seconds)
}

const AREA: &str = "churn";
const WHAT: &str = "processor time a second, 50 changes a second";
const DAEMON: &str = "daemon";
