//! Network namespaces for tests, created and deleted by the test itself, and a way to skip that cannot be
//! overlooked.
//!
//! A test that programs the kernel does so inside [`netns`] (one namespace) or a few [`Netns`] (a small
//! network), never in the namespace it was started in. Where a namespace cannot be created, or a tool is
//! missing, the test calls [`skip`]: the reason is printed, written to the file named by `SLUICEGATE_SKIPPED`
//! for the summary of `cargo xtask test`, and fails the test when `SLUICEGATE_NO_SKIP` is set, as continuous
//! integration does.
//!
//! ```
//! testns::netns(|| {
//!     // Anything here sees an empty network: only `lo`, up, and no rules.
//!     assert_eq!(std::fs::read_dir("/sys/class/net").is_ok(), true);
//! });
//! ```
#![forbid(unsafe_code)]

mod loopback;
pub mod schema;
mod shells;
mod sockets;

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, setns, unshare};
pub use shells::zsh;
pub use sockets::{NetfilterSocket, netfilter_sockets};

/// Runs `test` on a thread of its own in a new network namespace, in which loopback is up.
///
/// Processes that the test starts inherit the namespace; it disappears with the last of them. A panic of the
/// test is handed on. Where no namespace can be created, the test is skipped (see [`skip`]).
pub fn netns(test: impl FnOnce() + Send) {
    if let Some(namespace) = Netns::new() {
        namespace.run(test);
    }
}

/// Gives the calling thread, and the processes that it starts from now on, mounts of their own: what is
/// mounted then is gone with them. Returns false where that is not permitted.
#[must_use]
pub fn own_mounts() -> bool {
    unshare(CloneFlags::CLONE_NEWNS).is_ok() && try_sh("mount --make-rprivate /").status.success()
}

/// Raises a flag when it goes, by a failed assertion too: a scoped thread that works until then would be
/// waited for without end.
#[derive(Debug)]
pub struct RaiseOnDrop<'a>(pub &'a AtomicBool);

impl Drop for RaiseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A network namespace that lives as long as this value, its threads and its sockets.
#[derive(Debug)]
pub struct Netns {
    file: File,
}

impl Netns {
    /// Makes an empty namespace with loopback up, or skips (see [`skip`]) and returns `None` where that is
    /// not permitted.
    #[must_use]
    pub fn new() -> Option<Self> {
        let made = thread::scope(|scope| {
            scope
                .spawn(|| -> Result<File, String> {
                    unshare(CloneFlags::CLONE_NEWNET).map_err(|e| {
                        format!(
                            "a network namespace cannot be made ({e}); needs root, or \
                         `cargo xtask test`, which makes a user namespace"
                        )
                    })?;
                    loopback::set_up().map_err(|e| format!("loopback cannot be set up: {e}"))?;
                    File::open("/proc/thread-self/ns/net").map_err(|e| {
                        format!(
                            "/proc/thread-self/ns/net: \
                     {e}"
                        )
                    })
                })
                .join()
                .expect("the thread that makes a namespace does not panic")
        });
        match made {
            Ok(file) => Some(Self { file }),
            Err(why) => {
                skip(&why);
                None
            }
        }
    }

    /// Runs `f` inside the namespace, on a thread of its own, and returns what it returns. A panic is handed
    /// on.
    pub fn run<T: Send>(&self, f: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| {
            let thread = scope.spawn(|| {
                self.enter();
                f()
            });
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Runs `f` inside the namespace, on the calling thread, which goes back to its own afterwards: for
    /// measurements. A thread of its own would have a heap of its own, which glibc lets grow page by page,
    /// with a system call for each, where that of the main thread grows by 128 KiB.
    pub fn run_here<T>(&self, f: impl FnOnce() -> T) -> T {
        struct Back(File);
        impl Drop for Back {
            fn drop(&mut self) {
                setns(self.0.as_fd(), CloneFlags::CLONE_NEWNET).expect("a thread may go back");
            }
        }
        let _back = Back(File::open("/proc/thread-self/ns/net").expect("/proc is mounted"));
        self.enter();
        f()
    }

    /// Starts a thread inside the namespace, for servers and clients that run beside the test.
    pub fn spawn<T: Send + 'static>(&self, f: impl FnOnce() -> T + Send + 'static) -> thread::JoinHandle<T> {
        let file = self.file.try_clone().expect("a file descriptor can be duplicated");
        thread::spawn(move || {
            Self { file }.enter();
            f()
        })
    }

    /// Returns a path by which `ip link set DEV netns PATH` and `nsenter --net=PATH` find the namespace.
    #[must_use]
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd())
    }

    fn enter(&self) {
        setns(self.file.as_fd(), CloneFlags::CLONE_NEWNET).expect("a namespace of our own can be entered");
    }
}

/// Says that a test did not run and why. Fails instead when `SLUICEGATE_NO_SKIP` is set.
///
/// # Panics
/// When `SLUICEGATE_NO_SKIP` is set: there, what can run must run.
pub fn skip(why: &str) {
    let test = thread::current().name().unwrap_or("a test").to_owned();
    let line = format!("SKIPPED {test}: {why}");
    assert!(std::env::var_os("SLUICEGATE_NO_SKIP").is_none(), "{line} (and nothing may be skipped here)");
    note(&line);
}

/// Says what this kernel lacks, so that a part of a test has nothing to try. That is not a skip: the part
/// runs in another kernel (`cargo xtask test guest`).
pub fn lacks(what: &str) {
    note(&format!("LACKS {what}: {}", thread::current().name().unwrap_or("a test")));
}

/// Prints a line, and logs it where `SLUICEGATE_SKIPPED` says.
fn note(line: &str) {
    eprintln!("{line}");
    if let Some(log) = std::env::var_os("SLUICEGATE_SKIPPED")
        && let Ok(mut file) = OpenOptions::new().create(true).append(true).open(log)
    {
        // The line is on standard error already; a log that cannot be written must not fail the test.
        let _ = writeln!(file, "{line}");
    }
}

/// Returns true when every one of `tools` can be started (`nft`, `ipset`, ...); otherwise skips and returns
/// false.
#[must_use]
pub fn have(tools: &[&str]) -> bool {
    let missing: Vec<_> = tools.iter().filter(|tool| !on_path(tool)).copied().collect();
    if !missing.is_empty() {
        skip(&format!("not installed: {}", missing.join(", ")));
    }
    missing.is_empty()
}

/// Returns the kind of guest (`uml`, `qemu`) that this process runs in, set by the guest scripts as
/// `NETVM_GUEST`.
#[must_use]
pub fn guest() -> Option<String> {
    std::env::var("NETVM_GUEST").ok()
}

/// Returns the command that starts a program as a shell would, which finds programs of administration as well.
///
/// The program is named by its path. If it were not, a changed `PATH` would make the standard library fork, which
/// copies the page tables of a large test program; it spawns without a copy (`posix_spawn`) where it need not search.
#[must_use]
pub fn command(program: impl AsRef<Path>) -> Command {
    let (program, path) = (program.as_ref(), search_path());
    let found =
        path.split(':').map(|directory| Path::new(directory).join(program)).find(|path| path.is_file());
    let mut command = Command::new(found.as_deref().unwrap_or(program));
    command.arg0(program).env("PATH", path);
    command
}

/// Runs a shell script and returns its standard output.
///
/// # Panics
/// When it fails, with the script, its status and all that it printed.
#[must_use]
pub fn sh(script: &str) -> String {
    let output = try_sh(script);
    assert!(
        output.status.success(),
        "`{script}`: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs a shell script and returns whatever came of it.
///
/// # Panics
/// If no shell is found.
#[must_use]
pub fn try_sh(script: &str) -> Output {
    command("sh").arg("-c").arg(script).output().expect("sh can be started")
}

/// Runs a shell script until it succeeds once, for half a minute, and returns its standard output: for a tool
/// that reads or writes beside a daemon that writes the same tables. Where the two meet, the kernel refuses the
/// tool for the moment (`EBUSY`, `EINTR` of a dump that changed, `ENOENT` of what is replaced).
///
/// The script must mean the same when a part of it is done already, as a deletion of one thing alone does not.
///
/// # Panics
/// When it never succeeds, with the script, its last status and all that it printed then.
pub fn sh_beside(script: &str) -> String {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        let output = try_sh(script);
        if output.status.success() {
            return String::from_utf8_lossy(&output.stdout).into_owned();
        }
        thread::sleep(Duration::from_millis(10));
    }
    sh(script)
}

/// Feeds `input` to a command and returns whatever came of it, for `nft -f -`, `ipset restore` and their
/// like.
///
/// # Panics
/// When the command cannot be started.
#[must_use]
pub fn feed(command: &[&str], input: &str) -> Output {
    let mut child = self::command(command[0])
        .args(&command[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|e| panic!("{}: {e}", command[0]));
    let mut stdin = child.stdin.take().expect("stdin was asked for");
    thread::scope(|scope| {
        scope.spawn(move || {
            // A command that stops reading early says why in its own output.
            let _ = stdin.write_all(input.as_bytes());
        });
        child.wait_with_output().expect("a child can be waited for")
    })
}

/// Returns rules of iptables with names for the timers of `IDLETIMER` that no other caller gets.
///
/// These names are the machine's and not a namespace's, and the kernel takes a timer off its list before it
/// removes its file in sysfs (`xt_idletimer.c` of Linux 6.18): while a namespace goes, a rule with the same name
/// is refused (EEXIST) in any other.
#[must_use]
pub fn own_timers(rules: &str) -> String {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let own = format!("--label {}.{}.", std::process::id(), CALLS.fetch_add(1, Ordering::Relaxed));
    let line = |line: &str| {
        let own = if line.contains("-j IDLETIMER") { own.as_str() } else { "--label " };
        line.replace("--label ", own)
    };
    rules.split_inclusive('\n').map(line).collect()
}

/// Returns the path of an example of the package under test, which cargo builds beside its tests.
///
/// # Panics
/// Outside of a test.
#[must_use]
pub fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a running test has a path");
    let directory = test.parent().and_then(|deps| deps.parent()).expect("tests are in target/PROFILE/deps");
    directory.join("examples").join(name)
}

/// Runs an example of the package under test and returns its standard output.
///
/// # Panics
/// When it fails, with what it wrote to standard error.
#[must_use]
pub fn run_example(name: &str, arguments: &[&str]) -> String {
    let path = example(name);
    let output = Command::new(&path).args(arguments).output();
    let output =
        output.unwrap_or_else(|e| panic!("{}: {e} (`cargo build --examples` makes it)", path.display()));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name} {arguments:?}: {}\n{stderr}", output.status);
    String::from_utf8(output.stdout).expect("an example prints UTF-8")
}

fn on_path(tool: &str) -> bool {
    search_path().split(':').any(|dir| Path::new(dir).join(tool).is_file())
}

/// How long [`sh_beside`] tries.
const PATIENCE: Duration = Duration::from_secs(30);

/// Administration tools live in sbin, which an ordinary user's PATH often lacks.
fn search_path() -> String {
    format!("{}:/usr/local/sbin:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default())
}
