//! Where a run is: on a terminal a line below the output that is drawn again each second, elsewhere a line a
//! minute.
//!
//! All output of xtask goes through [`say`], so that it does not run into that line. Programs that write by
//! themselves (cargo) overwrite it, and it is drawn again.

use std::io::{IsTerminal as _, Write as _, stdout};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Prints a line.
pub(crate) fn say(line: impl AsRef<str>) {
    let mut progress = progress();
    progress.erase();
    // Whoever reads this may have gone; the checks go on.
    let _ = writeln!(stdout(), "{}", line.as_ref());
    progress.draw();
}

/// Tells that a check begins.
pub(crate) fn begin(check: Check) {
    start_clock();
    let mut progress = progress();
    progress.said = Instant::now();
    progress.check = Some((check, Instant::now()));
}

/// Tells that the check has ended.
pub(crate) fn end() {
    let mut progress = progress();
    progress.erase();
    progress.check = None;
}

/// Sets the number of tests of the check.
pub(crate) fn expect_tests(number: usize) {
    if let Some((check, _)) = &mut progress().check {
        check.tests = number;
    }
}

/// Counts a test as done.
pub(crate) fn count_test() {
    if let Some((check, _)) = &mut progress().check {
        check.done += 1;
    }
}

/// Returns where the run is.
pub(crate) fn place() -> Option<String> {
    progress().check.as_ref().map(|(check, _)| check.place())
}

/// A check that runs.
pub(crate) struct Check {
    pub name: &'static str,
    /// Its number among those of this run, from 1.
    pub number: usize,
    /// The number of checks.
    pub of: usize,
    /// The time that it took the last time, or usually does.
    pub usual: Duration,
    /// The time that those after it take.
    pub rest: Duration,
    /// The number of tests in it, once it is known.
    pub tests: usize,
    /// Those that have run.
    pub done: usize,
}

impl Check {
    fn place(&self) -> String {
        let tests = match (self.done, self.tests) {
            (0, _) => String::new(),
            (done, tests) if tests < done => format!(", {}", grouped(done)),
            (done, tests) => format!(", {} of {}", grouped(done), grouped(tests)),
        };
        format!("check {} of {}: {}{tests}", self.number, self.of, self.name)
    }

    fn text(&self, elapsed: Duration) -> String {
        if elapsed > self.usual && self.rest.is_zero() {
            return format!("{}, longer than usual", self.place());
        }
        let left = self.usual.saturating_sub(elapsed) + self.rest;
        format!("{}, {} left", self.place(), about(left))
    }
}

/// Returns a time as one estimates it.
pub(crate) fn about(time: Duration) -> String {
    let minutes = (time.as_secs() + 30) / 60;
    if minutes == 0 { "less than a minute".to_owned() } else { format!("about {minutes} min") }
}

/// Returns a number with its thousands set apart.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

struct Progress {
    check: Option<(Check, Instant)>,
    is_drawn: bool,
    /// When a line was last printed, where there is no terminal.
    said: Instant,
}

impl Progress {
    fn erase(&mut self) {
        if std::mem::take(&mut self.is_drawn) {
            let _ = write!(stdout(), "\r\x1b[K");
        }
    }

    fn draw(&mut self) {
        if let (true, Some((check, start))) = (*IS_TERMINAL, &self.check) {
            let _ = write!(stdout(), "{}", check.text(start.elapsed()));
            let _ = stdout().flush();
            self.is_drawn = true;
        }
    }

    fn tick(&mut self) {
        if *IS_TERMINAL {
            self.erase();
            self.draw();
        } else if let (true, Some((check, start))) = (self.said.elapsed() >= MINUTE, &self.check) {
            let _ = writeln!(stdout(), "=== {}", check.text(start.elapsed()));
            self.said = Instant::now();
        }
    }
}

/// Starts the thread that shows the progress while nothing is printed, once.
fn start_clock() {
    static CLOCK: LazyLock<()> = LazyLock::new(|| {
        thread::spawn(|| {
            loop {
                thread::sleep(Duration::from_secs(1));
                progress().tick();
            }
        });
    });
    LazyLock::force(&CLOCK);
}

fn progress() -> MutexGuard<'static, Progress> {
    static PROGRESS: LazyLock<Mutex<Progress>> =
        LazyLock::new(|| Mutex::new(Progress { check: None, is_drawn: false, said: Instant::now() }));
    PROGRESS.lock().unwrap_or_else(PoisonError::into_inner)
}

static IS_TERMINAL: LazyLock<bool> = LazyLock::new(|| stdout().is_terminal());

const MINUTE: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_which_check_how_many_tests_and_how_long() {
        let mut check = Check {
            name: "test",
            number: 4,
            of: 9,
            usual: Duration::from_secs(200),
            rest: Duration::from_secs(100),
            tests: 1496,
            done: 812,
        };
        assert_eq!(
            check.text(Duration::from_secs(120)),
            "check 4 of 9: test, 812 of 1,496, about 3 min left"
        );
        // It takes longer than the last time.
        assert_eq!(
            check.text(Duration::from_secs(900)),
            "check 4 of 9: test, 812 of 1,496, about 2 min left"
        );
        check.rest = Duration::ZERO;
        assert_eq!(
            check.text(Duration::from_secs(201)),
            "check 4 of 9: test, 812 of 1,496, longer than usual"
        );
        check.tests = 0;
        assert_eq!(check.text(Duration::from_secs(190)), "check 4 of 9: test, 812, less than a minute left");
        check.done = 0;
        assert_eq!(check.place(), "check 4 of 9: test");
        assert_eq!([7, 100, 1000, 1_234_567].map(grouped), ["7", "100", "1,000", "1,234,567"]);
    }
}
