//! Processor times of this library and of its peers, measured alternately and printed as a ratio.

use std::time::Duration;

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

/// Returns the processor time of a shell command with this input, in user space and in the kernel.
///
/// # Panics
///
/// If the command fails.
#[must_use]
pub fn time_of_tool(command: &str, input: &str) -> Duration {
    let script = format!("{command} > /dev/null && times");
    let output = testns::feed(&["sh", "-c", &script], input);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    // `times` prints two lines of two times, as `0m1.250000s`: the shell's own, and its children's.
    let times = text.lines().nth(1).expect("a second line of times").split_whitespace();
    let seconds = times.map(|time| {
        let (minutes, seconds) = time.trim_end_matches('s').split_once('m').expect("minutes and seconds");
        let number = |text: &str| text.parse::<f64>().expect("a number");
        60.0 * number(minutes) + number(seconds)
    });
    Duration::from_secs_f64(seconds.sum())
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

fn thread_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).expect("processor time is not negative")
}
