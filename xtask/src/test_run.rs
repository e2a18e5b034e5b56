//! Runs test programs, shows their output and counts the results.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use crate::children::Running;
use crate::progress;
use crate::report::Outcome;
use crate::session::shown;

/// Runs `cargo test`, or a test program, and counts the results of its tests.
pub(crate) fn run(command: &mut Command) -> Result<Outcome, String> {
    run_labelled(command, "")
}

/// Runs a program beside others: what it prints is shown below a title when it has ended. That a test takes
/// long is shown at once, for it may never end.
pub(crate) fn run_titled(command: &mut Command, title: &str) -> Result<Outcome, String> {
    let mut shown = format!("\n{title}");
    let result = count(command, |line| {
        if line.contains(" has been running for over ") {
            progress::say(format!("{}: {line}", title.trim()));
        }
        shown.push('\n');
        shown.push_str(line);
    });
    progress::say(shown);
    result
}

/// Runs a command with a label before each line, for programs that run beside each other.
pub(crate) fn run_labelled(command: &mut Command, label: &str) -> Result<Outcome, String> {
    progress::say(format!("{label}$ {}", shown(command)));
    count(command, |line| progress::say(format!("{label}{line}")))
}

fn count(command: &mut Command, mut show: impl FnMut(&str)) -> Result<Outcome, String> {
    let mut child =
        Running::start(command.stdout(Stdio::piped())).map_err(|e| format!("{}: {e}", shown(command)))?;
    let output = child.0.stdout.take().ok_or("no pipe")?;
    let mut counter = Counter::default();
    for line in BufReader::new(output).split(b'\n') {
        let line = line.map_err(|e| format!("{}: {e}", shown(command)))?;
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end_matches('\r');
        show(line);
        if line.starts_with("test ") && line.contains(" ... ") {
            progress::count_test();
        }
        counter.take(line);
    }
    let status = child.wait().map_err(|e| format!("{}: {e}", shown(command)))?;
    let mut outcome = counter.outcome;
    take_skips(&mut outcome, &counter.logged);
    if !status.success() && outcome.failures.is_empty() {
        outcome.failures.push(format!("`{}`: {status}", shown(command)));
    }
    Ok(outcome)
}

/// Counts the results in the output of test programs (libtest, criterion), line by line.
#[derive(Default)]
struct Counter {
    outcome: Outcome,
    /// Whether the current line is in the list of names at the end of libtest's output.
    in_failures: bool,
    /// Whether the program has printed its result. Later lines are not the output of a test.
    ended: bool,
    /// A log of skips that a guest printed at its end.
    logged: String,
}

impl Counter {
    fn take(&mut self, line: &str) {
        let outcome = &mut self.outcome;
        if let Some(counts) = line.strip_prefix("test result: ") {
            outcome.passed += number_before(counts, " passed");
            self.ended = true;
        } else if line.starts_with("running ") {
            self.ended = false;
        } else if self.ended && line.starts_with("SKIPPED ") {
            self.logged += &format!("{line}\n");
        } else if line == "Success" {
            // Criterion prints this for every benchmark.
            outcome.passed += 1;
        } else if let Some((name, why)) =
            line.strip_prefix("test ").and_then(|line| line.split_once(" ... ignored"))
        {
            // What another check runs is not skipped.
            if !why.contains("cargo xtask test ") {
                outcome.skips.push(format!("{name}: ignored{why}"));
            }
        } else if let (true, Some(name)) = (self.in_failures, line.strip_prefix("    ")) {
            outcome.failures.push(name.to_owned());
            return;
        }
        // The word appears twice: before the output of the tests that failed, and before their names.
        self.in_failures = line == "failures:";
    }
}

/// Returns 27 for `ok. 27 passed; 0 failed`.
fn number_before(text: &str, word: &str) -> usize {
    let number = text.split(word).next().and_then(|before| before.rsplit(' ').next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// Adds the skipped tests of the log, which has a line `SKIPPED test: reason` for each (see `testns::skip`).
/// For its program a skipped test has passed, so each is subtracted from those that passed.
pub(crate) fn take_skips(outcome: &mut Outcome, logged: &str) {
    let mut skips: Vec<_> = logged.lines().filter_map(|line| line.strip_prefix("SKIPPED ")).collect();
    skips.sort_unstable();
    skips.dedup();
    outcome.passed = outcome.passed.saturating_sub(skips.len());
    outcome.skips.extend(skips.into_iter().map(str::to_owned));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(lines: &str) -> Outcome {
        let mut counter = Counter::default();
        lines.lines().for_each(|line| counter.take(line));
        counter.outcome
    }

    // cargo 1.95, `cargo test`.
    #[test]
    fn libtest_is_counted() {
        let outcome = counted(
            "\nrunning 4 tests\ntest a::b ... ok\ntest c ... FAILED\ntest d ... ignored, needs a moon\ntest \
             f ... ignored, needs another kernel: cargo xtask test guest\ntest e - should panic ... ok\n\
             \nfailures:\n\n---- c stdout ----\n\nthread 'c' (17) panicked at \
             src/lib.rs:3:5:\n    no\n\nfailures:\n    c\n\n\
             test result: FAILED. 2 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in \
             0.00s\n\
             test result: ok. 5 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s",
        );
        assert_eq!(outcome.passed, 7);
        assert_eq!(outcome.failures, ["c"]);
        assert_eq!(outcome.skips, ["d: ignored, needs a moon"]);
    }

    #[test]
    fn a_log_of_skips_counts_after_the_result_alone() {
        let text = "SKIPPED a: shown with the output of a test that failed\ntest result: ok. 2 passed; 0 \
                    failed\nSKIPPED b: why\n\
                    running 1 test\nSKIPPED c: again\n";
        let mut counter = Counter::default();
        text.lines().for_each(|line| counter.take(line));
        assert_eq!(counter.logged, "SKIPPED b: why\n");
    }

    // With --nocapture --test-threads=1 the output of a test is between its name and its result.
    #[test]
    fn libtest_is_counted_where_output_is_not_captured() {
        let outcome = counted(
            "running 2 tests\ntest a ... some output\nok\ntest b ... \nthread 'b' (1) panicked at \
             x.rs:1:1:\nno\nFAILED\n\n\
             failures:\n\nfailures:\n    b\n\ntest result: FAILED. 1 passed; 1 failed; 0 ignored; 0 \
             measured; 0 filtered out",
        );
        assert_eq!((outcome.passed, outcome.failures.as_slice()), (1, ["b".to_owned()].as_slice()));
    }

    // criterion 0.7, `cargo test --benches`.
    #[test]
    fn criterion_is_counted() {
        assert_eq!(
            counted("Testing chain-names/iptables/sluicegate/10\nSuccess\n\nTesting x\nSuccess\n").passed,
            2
        );
    }

    #[test]
    fn skips_are_taken_from_what_passed_and_each_is_listed_once() {
        let mut outcome = Outcome { passed: 3, ..Outcome::default() };
        take_skips(
            &mut outcome,
            "SKIPPED a: not installed: nft\nSKIPPED a: not installed: nft\nSKIPPED b: no namespace\n",
        );
        assert_eq!(outcome.passed, 1);
        assert_eq!(outcome.skips, ["a: not installed: nft", "b: no namespace"]);
    }

    #[test]
    fn a_command_that_fails_without_a_test_is_a_failure() {
        let outcome = run(Command::new("sh").args(["-c", "exit 3"])).unwrap();
        assert_eq!(outcome.failures, ["`sh -c exit 3`: exit status: 3"]);
        assert!(run(&mut Command::new("/no/such/program")).is_err());
    }
}
