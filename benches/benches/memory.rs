//! The memory of the daemon in nftables mode, which follows manifests of n services with 5 endpoints each, as
//! kubectl prints them, and programs them: documents in files of 100 services, or a list in one file.
//!
//! Each size is a process of its own, in a network namespace of its own. `peak` is the most that it had
//! resident (`VmHWM`), its program text included, and `steady` what it has two seconds after the first sync
//! (`VmRSS`); the memory of the kernel's tables is not in it. More than [`MOST`] for 10,000 services in files of
//! 100 is a failure, and so is more than twice the text of one large file.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use std::{env, fs, process, thread};

use benches::manifests::{service, slice};
use benches::timing::is_measuring;
use sluicegate_proxier::run::{Intervals, Loop, Observer, SyncReport, ThisNode, World};
use sluicegate_proxier::source::watch;
use sluicegate_service_rules::nftables::{Applier, Settings};
use sluicegate_services::Family;
use tokio::sync::mpsc;

/// In kilobytes.
const MOST: u64 = 64 << 10;
const FEW: u32 = 100;
/// In bytes: below it, the program itself is most of what is resident.
const LARGE: u64 = 100 << 20;

fn main() {
    if let Some(manifests) = env::args_os().skip_while(|argument| argument != DAEMON).nth(1) {
        return daemon(manifests.into());
    }
    let Some(namespace) = testns::Netns::new() else { return };
    let measured = [(100, FEW), (1_000, FEW), (10_000, FEW), (15_000, 15_000), (150_000, 150_000)];
    let sizes = if is_measuring() { &measured[..] } else { &[(10, FEW)] };
    for (size, of_a_file) in sizes {
        let directory = env::temp_dir().join(format!("sluicegate-memory-{}", process::id()));
        let bytes = write_manifests(&directory, *size, *of_a_file);
        let mut daemon = Command::new(env::current_exe().expect("a path"));
        daemon.arg(DAEMON).arg(&directory);
        let output = namespace.run(|| daemon.output().expect("it can be started"));
        fs::remove_dir_all(&directory).expect("it is ours");
        let status = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{status}{}", String::from_utf8_lossy(&output.stderr));
        let (peak, steady) = (kilobytes(&status, "VmHWM:"), kilobytes(&status, "VmRSS:"));
        println!(
            "{size} services in files of {of_a_file}, together {} KB: peak {peak} KB, steady {steady} KB",
            bytes >> 10
        );
        assert!(*of_a_file > FEW || peak <= MOST, "{size} services take more than {MOST} KB");
        assert!(
            bytes < LARGE || peak <= (2 * bytes) >> 10,
            "a file of {bytes} bytes takes more than twice that"
        );
    }
}

/// Programs the manifests of a directory, and ends when it has told of its memory.
fn daemon(manifests: PathBuf) {
    let (sender, updates) = mpsc::channel(1024);
    let (_stop, signals) = mpsc::channel(1);
    thread::spawn(move || watch(&[manifests], &sender));
    let world = World::new(ThisNode { name: "node".to_owned(), ..ThisNode::default() });
    let settings = Settings { families: vec![Family::Ipv4], ..Settings::default() };
    let backend = Box::new(Applier::open(settings).expect("nf_tables"));
    let run = Loop::new(world, backend, Intervals::default(), Arc::new(Memory)).expect("good intervals");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(run.run(updates, signals)).expect("it runs until its end is told");
}

/// Tells the memory of this process some time after the first sync.
struct Memory;

impl Observer for Memory {
    fn synced(&self, _: &SyncReport) {
        thread::spawn(|| {
            thread::sleep(Duration::from_secs(2));
            print!("{}", fs::read_to_string("/proc/self/status").expect("Linux"));
            process::exit(0);
        });
    }

    fn failed(&self, error: &sluicegate_service_rules::Error) {
        panic!("{error}");
    }
}

/// Returns the number in a line of `/proc/self/status`.
fn kilobytes(status: &str, name: &str) -> u64 {
    let line = status.lines().find(|line| line.starts_with(name)).expect("a line of this name");
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number")
}

/// Returns the number of bytes. One file for all is a list, as `kubectl get services,endpointslices` prints it.
fn write_manifests(directory: &Path, services: u32, of_a_file: u32) -> u64 {
    fs::create_dir_all(directory).expect("a directory");
    let mut bytes = 0;
    for first in (0..services).step_by(usize::try_from(of_a_file).expect("it fits")) {
        let path = directory.join(format!("{first:06}.yaml"));
        let mut file = BufWriter::new(File::create(&path).expect("a file"));
        let is_list = of_a_file > FEW;
        let mut write = |text: &str| file.write_all(text.as_bytes()).expect("the disk has room");
        if is_list {
            write("apiVersion: v1\nitems:\n");
        }
        for object in (first..services.min(first + of_a_file)).flat_map(|n| [service(n), slice(n, 0)]) {
            if !is_list {
                write("---\n");
            }
            for (number, line) in object.lines().enumerate() {
                match (is_list, number) {
                    (false, _) => (),
                    (true, 0) => write("- "),
                    (true, _) => write("  "),
                }
                write(line);
                write("\n");
            }
        }
        if is_list {
            write("kind: List\nmetadata:\n  resourceVersion: \"\"\n");
        }
        file.flush().expect("the disk has room");
        bytes += fs::metadata(&path).expect("it was written").len();
    }
    bytes
}

const DAEMON: &str = "daemon";
