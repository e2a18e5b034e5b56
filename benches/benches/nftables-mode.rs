//! nftables mode (layout `maps`) in the kernel: the first sync, the sync after a restart, one service more, a
//! hundred services at once and session affinity, at sizes that show how each grows.
//!
//! Each line compares the processor time of a sync, without that of the kernel, with the kernel's for the
//! same batch, which is sent by itself in a second namespace; or that of a sync after a restart with that of
//! a loop that only receives the same dump. Medians of several rounds.
//!
//! A line `parts` has the steps of a first sync before the kernel: the plan, the elements of the script, and
//! their encoding, beside writing as many bytes of one value, which no encoder can undercut. A line `growth`
//! has the exponents by which the first sync, the kernel's share, ours and the bare dump grow from the size
//! before: 1.00 is linear.
//!
//! It runs in network namespaces of its own, and is left out with a word where none can be made.
//! `SLUICEGATE_BENCH_ALL` adds 100,000 services.

use std::hint::black_box;
use std::time::{Duration, Instant};

use benches::kernel::{send, socket};
use benches::timing::{cpu_time, is_measuring};
use sluicegate_lab::{change_one, uniform_cluster};
use sluicegate_netlink::message::{Flags, Messages, NLMSG_DONE};
use sluicegate_netlink::{Batch, Socket, Transport, Wait};
use sluicegate_nftables::{ApplyOptions, Name, Object, Operation, TableId, Transaction, read};
use sluicegate_service_rules::nftables::{Applier, Planner, Settings};
use sluicegate_services::{Cluster, Family, ServiceName, SliceName};

const ENDPOINTS: u32 = 5;

fn main() {
    let (Some(namespace), Some(other)) = (testns::Netns::new(), testns::Netns::new()) else { return };
    let sizes: &[u32] = match (is_measuring(), std::env::var_os("SLUICEGATE_BENCH_ALL")) {
        (false, _) => &[10],
        (true, None) => &[100, 1_000, 10_000],
        (true, Some(_)) => &[100, 1_000, 10_000, 50_000, 100_000],
    };
    let mut bare = other.run_here(socket);
    namespace.run_here(|| {
        let mut before = None;
        for size in sizes {
            let now = measure(*size, &mut bare);
            if let Some((smaller, times)) = before.replace((*size, now)) {
                println!("{size} services: growth from {smaller}: {}", growth(smaller, times, *size, now));
            }
        }
    });
}

/// Prints the times for this number of services, and returns those of the first sync, of the kernel's share,
/// of ours, and of a bare dump. The socket `bare` belongs to the other namespace.
fn measure(size: u32, bare: &mut Socket) -> [Duration; 4] {
    let rounds = if is_measuring() { 3 + 2000 / size.max(300) } else { 1 };
    let mut plain = uniform_cluster(size, ENDPOINTS);
    let first = Times::median((0..rounds).map(|_| first_sync(&mut plain, bare)));
    println!("{size} services: first sync: {first}");
    println!("{size} services: parts: {}", parts(&plain, rounds));
    let mut sticky = uniform_cluster(size, ENDPOINTS);
    bind_clients(&mut sticky, size);
    open().cleanup().expect("it is deleted");
    Planner::cleanup().apply(bare).expect("it is deleted");
    let memory = kernel_memory();
    let with = Times::median((0..rounds).map(|_| first_sync(&mut sticky, bare)));
    let ratio = with.total().as_secs_f64() / first.total().as_secs_f64();
    // Both namespaces have such a table now.
    let memory = kernel_memory().saturating_sub(memory) / 2;
    println!(
        "{size} services: first sync with session affinity: {with}; {ratio:.2} times without; {memory} KB in the \
         kernel"
    );
    drop(sticky);

    first_sync(&mut plain, bare);
    let dump = median((0..rounds).map(|_| cpu_time(bare_dump)));
    let restart = median((0..rounds).map(|_| {
        let mut applier = open();
        cpu_time(|| assert_eq!(applier.sync(&mut plain, Instant::now()).expect("it works").batches, 0))
    }));
    let ratio = restart.as_secs_f64() / dump.as_secs_f64();
    println!("{size} services: restart: {restart:.1?}, a bare dump {dump:.1?}: {ratio:.2} times");

    let mut applier = open();
    applier.sync(&mut plain, Instant::now()).expect("it works");
    let mut planner = planner(&plain);
    planner.script();
    let mut sync = |plain: &mut Cluster| {
        let changes = plain.take_changes();
        let batch = encode(&planner.sync(plain, &changes, Instant::now()));
        let kernel = cpu_time(|| send(bare, &batch));
        let sync = || applier.sync_changes(plain, &changes, Instant::now()).expect("it works");
        Times::new(cpu_time(sync), kernel)
    };
    let one_more = uniform_cluster(size + 1, ENDPOINTS);
    let (service, slice) = (service_name(size), slice_name(size));
    let add = Times::median((0..rounds * 10).map(|_| {
        plain.set_service(&service, one_more.service(&service).cloned());
        plain.set_slice(&slice, one_more.slices(&service).next().cloned());
        let added = sync(&mut plain);
        plain.set_service(&service, None);
        plain.set_slice(&slice, None);
        sync(&mut plain);
        added
    }));
    println!("{size} services: a service is added: {add}");
    let mut change = |round: u32, count: u32| {
        (0..count).for_each(|n| change_one(&mut plain, (n * 97 + round * 131) % size, ENDPOINTS));
        sync(&mut plain)
    };
    let many = Times::median((0..rounds * 5).map(|round| change(round, size.min(100))));
    println!("{size} services: an endpoint of each of {} changes: {many}", size.min(100));
    let one = Times::median((0..rounds * 10).map(|round| change(round, 1)));
    println!("{size} services: one endpoint changes: {one}");
    [first.total(), first.kernel, first.own, dump]
}

/// Returns the exponents of growth between two sizes, as text.
fn growth(smaller: u32, before: [Duration; 4], size: u32, now: [Duration; 4]) -> String {
    let by = (f64::from(size) / f64::from(smaller)).ln();
    let exponent = |(now, before): (Duration, Duration)| (now.as_secs_f64() / before.as_secs_f64()).ln() / by;
    let named = ["first sync", "kernel", "own", "bare dump"].into_iter().zip(now.into_iter().zip(before));
    named.map(|(name, times)| format!("{name} {:.2}", exponent(times))).collect::<Vec<_>>().join(", ")
}

/// Returns the processor times of planning, of the script and of encoding it, as text.
fn parts(cluster: &Cluster, rounds: u32) -> String {
    let plan = median((0..rounds).map(|_| cpu_time(|| planner(cluster))));
    let mut planner = planner(cluster);
    let script = median((0..rounds).map(|_| cpu_time(|| planner.script())));
    let transaction = planner.script();
    let encoding = median((0..rounds).map(|_| cpu_time(|| encode(&transaction))));
    let lists = transaction.operations().iter().filter_map(|operation| match operation {
        Operation::Add(Object::Elements(elements)) => u32::try_from(elements.list.len()).ok(),
        _ => None,
    });
    let elements = lists.sum::<u32>().max(1);
    let bytes = encode(&transaction).len();
    let each = |time: Duration| time.as_secs_f64() * 1e9 / f64::from(elements);
    let written = median((0..rounds).map(|_| cpu_time(|| black_box(vec![1_u8; bytes]))));
    format!(
        "plan {plan:.1?}, script {script:.1?}, encoding {encoding:.1?} of {elements} elements, {:.1} ns each; \
         writing {bytes} bytes {written:.1?}, {:.1} ns each",
        each(encoding),
        each(written)
    )
}

fn settings() -> Settings {
    Settings { families: vec![Family::Ipv4], ..Settings::default() }
}

fn open() -> Applier {
    Applier::open(settings()).expect("nf_tables")
}

fn planner(cluster: &Cluster) -> Planner {
    Planner::new(&settings(), cluster, None).expect("good settings")
}

fn encode(transaction: &Transaction) -> Batch {
    transaction.encode(ApplyOptions::default()).expect("it can be encoded")
}

/// The processor time of a sync without the kernel's for its batch, and the kernel's.
#[derive(Clone, Copy)]
struct Times {
    own: Duration,
    kernel: Duration,
}

impl Times {
    fn new(total: Duration, kernel: Duration) -> Self {
        Self { own: total.saturating_sub(kernel), kernel }
    }

    fn total(&self) -> Duration {
        self.own + self.kernel
    }

    /// Returns the round with the median of the ratios.
    fn median(rounds: impl Iterator<Item = Self>) -> Self {
        let mut all: Vec<_> = rounds.collect();
        all.sort_unstable_by(|a, b| a.ratio().total_cmp(&b.ratio()));
        all[all.len() / 2]
    }

    fn ratio(&self) -> f64 {
        self.own.as_secs_f64() / self.kernel.as_secs_f64()
    }
}

impl std::fmt::Display for Times {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { own, kernel } = self;
        write!(f, "{own:.1?}, kernel {kernel:.1?}: {:.2} times", self.ratio())
    }
}

fn median(rounds: impl Iterator<Item = Duration>) -> Duration {
    let mut all: Vec<_> = rounds.collect();
    all.sort_unstable();
    all[all.len() / 2]
}

/// Programs the whole cluster in a kernel without our table.
fn first_sync(cluster: &mut Cluster, bare: &mut Socket) -> Times {
    Planner::cleanup().apply(bare).expect("it is deleted");
    let batch = encode(&planner(cluster).script());
    let kernel = cpu_time(|| send(bare, &batch));
    let mut applier = open();
    applier.cleanup().expect("it is deleted");
    Times::new(cpu_time(|| applier.sync(cluster, Instant::now()).expect("it works")), kernel)
}

/// Returns the name of a service of `uniform_cluster`.
fn service_name(index: u32) -> ServiceName {
    ServiceName::new("scale", &format!("service-{index}")).expect("a DNS label")
}

/// Returns the name of its only slice.
fn slice_name(index: u32) -> SliceName {
    SliceName { namespace: "scale".into(), name: format!("service-{index}").into() }
}

fn bind_clients(cluster: &mut Cluster, size: u32) {
    for index in 0..size {
        let name = service_name(index);
        let mut service = cluster.service(&name).cloned().expect("it exists");
        service.affinity_seconds = Some(10_800);
        cluster.set_service(&name, Some(service));
    }
}

/// Receives all elements of the table and looks at nothing but the ends of messages.
fn bare_dump() -> usize {
    let mut socket = socket();
    let table = TableId::new(sluicegate_nftables::Family::IP, Name::new("kube-proxy").expect("a name"));
    let sets = read::sets(&mut socket, table).expect("a list");
    let mut bytes = 0;
    let mut buffer = Vec::new();
    for set in sets {
        let mut request = Batch::new();
        // NFT_MSG_GETSETELEM of NFNL_SUBSYS_NFTABLES, with the names of the table and of the set.
        let mut message = request.netfilter(10, 13, Flags::DUMP, 2, 0);
        message.put_str(1, "kube-proxy");
        message.put_str(2, set.name.as_str());
        drop(message);
        socket.send(request.bytes().expect("it is short")).expect("it can be sent");
        let mut done = false;
        while !done {
            assert!(socket.receive(&mut buffer, Wait::Answer).expect("a datagram"));
            bytes += buffer.len();
            done =
                Messages::new(&buffer).any(|message| message.expect("a message").header.kind == NLMSG_DONE);
        }
    }
    bytes
}

/// Returns the memory that the kernel has allocated, in kilobytes.
fn kernel_memory() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").expect("Linux");
    let of = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).expect("a line of meminfo");
        line.split_whitespace().nth(1).and_then(|number| number.parse::<u64>().ok()).expect("a number")
    };
    of("SUnreclaim:") + of("VmallocUsed:") + of("Percpu:")
}
