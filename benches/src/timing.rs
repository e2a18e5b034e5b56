//! Processor times of this library and of its peers, measured alternately and printed as a ratio.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use rustix::time::{ClockId, clock_gettime};

/// Prints how long `ours` takes and how many times as long as `theirs`: medians over rounds, with the least
/// and the greatest ratio.
///
/// The two run alternately, so that both meet the same load of the machine. Nothing is run or printed
/// when the benchmark is only checked (`cargo test`).
pub fn compare(
    rounds: u32,
    name: &str,
    peer: &str,
    mut ours: impl FnMut() -> Duration,
    mut theirs: impl FnMut() -> Duration,
) {
    if !is_measuring() {
        return;
    }
    let mut rounds: Vec<_> = (0..rounds)
        .map(|_| {
            let (theirs, ours) = (theirs(), ours());
            (ours.as_secs_f64() / theirs.as_secs_f64(), ours, theirs)
        })
        .collect();
    rounds.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (ratio, ours, theirs) = rounds[rounds.len() / 2];
    let (least, most) = (rounds[0].0, rounds[rounds.len() - 1].0);
    println!("{name}: {ours:?}, {peer}: {theirs:?}: {ratio:.2} times ({least:.2} to {most:.2})");
}

/// Returns true under `cargo bench`, and false when each benchmark runs once as a check.
#[must_use]
pub fn is_measuring() -> bool {
    std::env::args().any(|argument| argument == "--bench")
}

/// Returns the processor time of a command with this input, in user space and in the kernel. Its output is
/// thrown away.
///
/// # Panics
///
/// If the command fails.
#[must_use]
pub fn time_of_tool(command: &str, input: &str) -> Duration {
    let mut words = command.split_whitespace();
    let mut tool = Command::new(words.next().expect("a command"));
    tool.args(words).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let before = time_of_children();
    let mut child = tool.spawn().unwrap_or_else(|error| panic!("{command}: {error}"));
    let mut stdin = child.stdin.take().expect("it was asked for");
    let output = thread::scope(|scope| {
        // A command that stops reading early says why in its own output.
        scope.spawn(move || drop(stdin.write_all(input.as_bytes())));
        child.wait_with_output().expect("a child can be waited for")
    });
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    time_of_children() - before
}

/// Returns the processor time of the children that this process has waited for.
fn time_of_children() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).expect("it has no reason to fail");
    let of = |time: TimeVal| {
        let microseconds = time.tv_sec() * 1_000_000 + time.tv_usec();
        Duration::from_micros(microseconds.try_into().expect("a time is not negative"))
    };
    of(usage.user_time()) + of(usage.system_time())
}

/// Returns the processor time that this thread takes for the work, in user space and in the kernel, without
/// that for dropping its result.
pub fn cpu_time<T>(mut work: impl FnMut() -> T) -> Duration {
    let start = thread_time();
    let result = work();
    let took = thread_time() - start;
    drop(result);
    took
}

/// Returns the [`cpu_time`] of so many rounds of the work, for `iter_custom` of Criterion.
pub fn cpu_time_of_rounds<T>(rounds: u64, mut work: impl FnMut() -> T) -> Duration {
    (0..rounds).map(|_| cpu_time(&mut work)).sum()
}

/// Returns the processor time of all threads of this process until now, in user space and in the kernel.
///
/// # Panics
///
/// If the clock is set before its start.
#[must_use]
pub fn process_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).expect("processor time is not negative")
}

/// Returns a time as [`record::keep`](crate::record::keep) takes it.
#[must_use]
pub fn nanoseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e9
}

fn thread_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).expect("processor time is not negative")
}
