//! The results of the checks, and the summary at the end.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::checks::{self, Check};
use crate::parallel;
use crate::progress::{self, about, say};
use crate::session::Session;
use crate::times::Times;

/// The result of one check. A check that is not a run of tests counts as one.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The number of tests, or checks, that passed.
    pub passed: usize,
    /// The failures, one entry each; a last line `again: COMMAND` repeats it.
    pub failures: Vec<String>,
    /// The tests that could not run, one entry each, with the reason.
    pub skips: Vec<String>,
    /// Remarks on the extent of the check.
    pub notes: Vec<String>,
}

impl Outcome {
    /// Returns the result of a check that passed.
    pub(crate) fn passed() -> Self {
        Self { passed: 1, ..Self::default() }
    }

    /// Returns the result of a check that could not run.
    pub(crate) fn skipped(why: impl Into<String>) -> Self {
        Self { skips: vec![why.into()], ..Self::default() }
    }

    /// Returns the result of a check that failed.
    pub(crate) fn failed(why: impl Into<String>) -> Self {
        Self { failures: vec![why.into()], ..Self::default() }
    }

    /// Adds a remark.
    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// Adds the result of another part of the same check.
    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failures.extend(other.failures);
        self.skips.extend(other.skips);
        self.notes.extend(other.notes);
    }
}

/// The results of all checks. Its copies are one, so that whoever interrupts gets them.
#[derive(Clone)]
pub(crate) struct Report {
    start: Instant,
    made: Arc<Mutex<Vec<Made>>>,
}

struct Made {
    name: &'static str,
    time: Duration,
    outcome: Outcome,
}

impl Report {
    /// Returns a report without results.
    pub(crate) fn new() -> Self {
        Self { start: Instant::now(), made: Arc::default() }
    }

    /// Makes these checks, and stores their results.
    pub(crate) fn make(&self, checks: &[&'static Check], session: &Session) {
        let times = Mutex::new(Times::read(session));
        let usual = |check: &Check| lock(&times).of(check);
        parallel::in_order(
            checks,
            |check| check.is_beside,
            |index, check, is_beside| {
                let (number, of) = (index + 1, checks.len());
                let announced = format!("\n=== check {number} of {of}: {}: {}", check.name, check.what);
                if is_beside {
                    say(format!("{announced} (beside those after it)"));
                    return self.make_one(check, session, None);
                }
                let (usual, rest) = (
                    usual(check),
                    checks[number..].iter().filter(|check| !check.is_beside).map(|check| usual(check)).sum(),
                );
                say(format!("{announced} ({}, {} left)", about(usual), about(usual + rest)));
                progress::begin(progress::Check {
                    name: check.name,
                    number,
                    of,
                    usual,
                    rest,
                    tests: 0,
                    done: 0,
                });
                self.make_one(check, session, Some(&times));
                progress::end();
            },
        );
    }

    /// Keeps how long it took among `times`: beside others it takes longer than alone.
    fn make_one(&self, check: &Check, session: &Session, times: Option<&Mutex<Times>>) {
        let start = Instant::now();
        let mut outcome = (check.make)(session).unwrap_or_else(Outcome::failed);
        let time = start.elapsed();
        if let (Some(only), true) = (&session.only, outcome == Outcome::default()) {
            outcome = Outcome::failed(format!("no test is called {only}"));
        }
        if !outcome.failures.is_empty() && !outcome.failures.iter().any(|entry| entry.contains("again: ")) {
            outcome.failures.push(format!("again: cargo xtask test {}", check.name));
        }
        if let (Some(times), true, None) = (times, outcome.failures.is_empty(), &session.only) {
            lock(times).keep(check, time);
        }
        say(format!("=== {}: {} in {:.1} s", check.name, verdict(&outcome), time.as_secs_f64()));
        self.made().push(Made { name: check.name, time, outcome });
    }

    /// Prints the summary. Returns success if nothing failed; with `no_skip`, skipped tests count as failed.
    pub(crate) fn finish(&self, no_skip: bool) -> ExitCode {
        let mut made = self.made();
        made.sort_by_key(|made| checks::ALL.iter().position(|check| check.name == made.name));
        say("\n=== summary");
        for Made { name, time, outcome } in made.iter() {
            say(format!("{name:<12} {:>7.1} s  {}", time.as_secs_f64(), verdict(outcome)));
        }
        // Less than the sum where some were made beside others.
        say(format!("{:<12} {:>7.1} s", "in all", self.start.elapsed().as_secs_f64()));
        list("failed", &made, |outcome| outcome.failures.clone());
        list("skipped", &made, |outcome| by_reason(&outcome.skips));
        list("note", &made, |outcome| outcome.notes.clone());
        let is_left_out = |check: &&Check| made.iter().all(|made| made.name != check.name);
        let left_out: Vec<_> = checks::ALL.iter().filter(is_left_out).map(|check| check.name).collect();
        if !left_out.is_empty() {
            say(format!(
                "\nleft out: {}\n`cargo xtask test --all` makes every check, `cargo xtask test NAME...` some, \
                 and --list says what each is.",
                left_out.join(", ")
            ));
        }

        let passed: usize = made.iter().map(|made| made.outcome.passed).sum();
        let failures = made.iter().flat_map(|made| &made.outcome.failures);
        let mut failed = failures.filter(|entry| !entry.starts_with("again: ")).count();
        let mut skipped: usize = made.iter().map(|made| made.outcome.skips.len()).sum();
        if no_skip && skipped > 0 {
            say("\nSLUICEGATE_NO_SKIP is set: what was skipped counts as failed.");
            failed += std::mem::take(&mut skipped);
        }
        say(format!("\n{passed} passed, {failed} failed, {skipped} skipped"));
        if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }

    fn made(&self) -> MutexGuard<'_, Vec<Made>> {
        lock(&self.made)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn list(title: &str, made: &[Made], entries: impl Fn(&Outcome) -> Vec<String>) {
    let all = made.iter().flat_map(|made| entries(&made.outcome).into_iter().map(|entry| (made.name, entry)));
    let mut all = all.peekable();
    if all.peek().is_some() {
        say(format!("\n{title}:"));
    }
    for (name, entry) in all {
        say(format!("  {name}: {}", entry.replace('\n', "\n    ")));
    }
}

/// Returns skipped tests (`test: reason`), those with the same reason as one entry.
fn by_reason(skips: &[String]) -> Vec<String> {
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for skip in skips {
        let (test, reason) = skip.split_once(": ").unwrap_or(("", skip));
        reasons.entry(reason).or_default().push(test);
    }
    let entries = reasons.into_iter().map(|(reason, tests)| match tests[..] {
        [""] => reason.to_owned(),
        [test] => format!("{test}: {reason}"),
        [first, .., last] => format!("{reason}: {} tests, {first} to {last}", tests.len()),
        [] => String::new(),
    });
    entries.collect()
}

fn verdict(outcome: &Outcome) -> String {
    let failed = outcome.failures.iter().filter(|entry| !entry.starts_with("again: ")).count();
    let mut words = Vec::new();
    for (count, word) in [(outcome.passed, "passed"), (failed, "FAILED"), (outcome.skips.len(), "skipped")] {
        if count > 0 {
            words.push(format!("{count} {word}"));
        }
    }
    if words.is_empty() { "nothing to do".to_owned() } else { words.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_names_only_what_happened() {
        assert_eq!(verdict(&Outcome::passed()), "1 passed");
        let mut outcome = Outcome::passed();
        outcome.add(Outcome::failed("x"));
        outcome.add(Outcome::failed("again: cargo xtask test x"));
        outcome.add(Outcome::skipped("y"));
        assert_eq!(verdict(&outcome), "1 passed, 1 FAILED, 1 skipped");
        assert_eq!(verdict(&Outcome::default()), "nothing to do");
    }

    #[test]
    fn skips_with_one_reason_are_one_entry() {
        let skips = ["a: not installed: nft", "b: no namespace", "c: not installed: nft"].map(str::to_owned);
        assert_eq!(by_reason(&skips), ["b: no namespace", "not installed: nft: 2 tests, a to c"]);
        assert_eq!(by_reason(&["no typos here".to_owned()]), ["no typos here"]);
    }

    #[test]
    fn a_skip_fails_only_where_none_may_be() {
        let report = || {
            let report = Report::new();
            let outcome = Outcome::skipped("no such tool");
            report.made().push(Made { name: "x", time: Duration::ZERO, outcome });
            report
        };
        assert_eq!(report().finish(false), ExitCode::SUCCESS);
        assert_eq!(report().finish(true), ExitCode::FAILURE);
    }
}
