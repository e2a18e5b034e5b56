//! The results of the checks, and the summary at the end.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::checks::Check;
use crate::session::Session;

/// The result of one check. A check that is not a run of tests counts as one.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The number of tests, or checks, that passed.
    pub passed: usize,
    /// The failures, one entry each.
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

/// The results of all checks, in order.
#[derive(Default)]
pub(crate) struct Report {
    made: Vec<(&'static str, Duration, Outcome)>,
}

impl Report {
    /// Runs a check under a heading and stores its result.
    pub(crate) fn make(&mut self, check: &Check, session: &Session) {
        println!("\n=== {}: {}", check.name, check.what);
        let start = Instant::now();
        let outcome = (check.make)(session).unwrap_or_else(Outcome::failed);
        let time = start.elapsed();
        println!("=== {}: {} in {:.1} s", check.name, verdict(&outcome), time.as_secs_f64());
        self.made.push((check.name, time, outcome));
    }

    /// Prints the summary. Returns true if nothing failed; with `no_skip`, skipped tests count as failed.
    pub(crate) fn finish(self, no_skip: bool) -> ExitCode {
        println!("\n=== summary");
        for (name, time, outcome) in &self.made {
            println!("{name:<10} {:>7.1} s  {}", time.as_secs_f64(), verdict(outcome));
        }
        let total: Duration = self.made.iter().map(|(_, time, _)| *time).sum();
        println!("{:<10} {:>7.1} s", "in all", total.as_secs_f64());
        self.list("failed", |outcome| &outcome.failures);
        self.list("skipped", |outcome| &outcome.skips);
        self.list("note", |outcome| &outcome.notes);

        let passed: usize = self.made.iter().map(|(_, _, outcome)| outcome.passed).sum();
        let mut failed: usize = self.made.iter().map(|(_, _, outcome)| outcome.failures.len()).sum();
        let mut skipped: usize = self.made.iter().map(|(_, _, outcome)| outcome.skips.len()).sum();
        if no_skip && skipped > 0 {
            println!("\nSLUICEGATE_NO_SKIP is set: what was skipped counts as failed.");
            failed += std::mem::take(&mut skipped);
        }
        println!("\n{passed} passed, {failed} failed, {skipped} skipped");
        if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }

    fn list(&self, title: &str, entries: impl Fn(&Outcome) -> &[String]) {
        let all: Vec<_> = self
            .made
            .iter()
            .flat_map(|(name, _, outcome)| entries(outcome).iter().map(move |e| (name, e)))
            .collect();
        if !all.is_empty() {
            println!("\n{title}:");
            for (name, entry) in all {
                println!("  {name}: {}", entry.replace('\n', "\n    "));
            }
        }
    }
}

fn verdict(outcome: &Outcome) -> String {
    let mut words = Vec::new();
    for (count, word) in
        [(outcome.passed, "passed"), (outcome.failures.len(), "FAILED"), (outcome.skips.len(), "skipped")]
    {
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
        outcome.add(Outcome::skipped("y"));
        assert_eq!(verdict(&outcome), "1 passed, 1 FAILED, 1 skipped");
        assert_eq!(verdict(&Outcome::default()), "nothing to do");
    }

    #[test]
    fn a_skip_fails_only_where_none_may_be() {
        let report = || Report { made: vec![("x", Duration::ZERO, Outcome::skipped("no such tool"))] };
        assert_eq!(report().finish(false), ExitCode::SUCCESS);
        assert_eq!(report().finish(true), ExitCode::FAILURE);
    }
}
