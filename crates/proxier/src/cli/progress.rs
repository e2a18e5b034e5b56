//! A line of progress on standard error while something takes long, when standard error is a terminal.

use std::io::{self, IsTerminal as _, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use sluicegate_proxier::run::{Observer, SyncReport};
use sluicegate_service_rules::Error;
use sluicegate_services::Cluster;

use super::output::counted;

/// Starts to show the progress of the loop. Returns `None` when standard error is not a terminal.
pub(crate) fn on_terminal() -> Option<Arc<dyn Observer>> {
    if !io::stderr().is_terminal() {
        return None;
    }
    let work = Arc::new(Mutex::new(Work::new(Instant::now())));
    let shown = Arc::downgrade(&work);
    let show = move || {
        let mut is_shown = false;
        while let Some(work) = shown.upgrade() {
            let line = lock(&work).line(Instant::now());
            // A terminal that is gone is no reason to stop.
            let _ = match line {
                Some(line) => write!(io::stderr(), "{CLEAR}{line}"),
                None if is_shown => write!(io::stderr(), "{CLEAR}"),
                None => Ok(()),
            };
            is_shown = lock(&work).line(Instant::now()).is_some();
            drop(work);
            thread::sleep(TICK);
        }
    };
    // Without a thread there is no line of progress, and nothing else is amiss.
    thread::Builder::new().name("progress".to_owned()).spawn(show).ok()?;
    Some(Arc::new(Progress(work)))
}

/// Standard error for the log. A log line overwrites the line of progress, which is printed again below.
pub(crate) struct Log {
    is_terminal: bool,
}

impl Log {
    pub(crate) fn new() -> Self {
        Self { is_terminal: io::stderr().is_terminal() }
    }
}

impl Write for Log {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut stderr = io::stderr().lock();
        if self.is_terminal {
            stderr.write_all(CLEAR.as_bytes())?;
        }
        stderr.write_all(line)?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

struct Progress(Arc<Mutex<Work>>);

impl Observer for Progress {
    fn queued(&self, _: Instant, cluster: &Cluster) {
        let mut work = lock(&self.0);
        work.services = cluster.service_count();
        work.since = None;
    }

    fn syncing(&self, now: Instant) {
        let mut work = lock(&self.0);
        work.since = Some(now);
        work.is_listed = true;
    }

    fn synced(&self, _: &SyncReport) {
        lock(&self.0).since = None;
    }

    fn failed(&self, _: &Error) {
        lock(&self.0).since = None;
    }
}

/// The current step of the loop.
struct Work {
    /// When the step began. `None` when the loop is idle.
    since: Option<Instant>,
    is_listed: bool,
    services: usize,
}

impl Work {
    fn new(now: Instant) -> Self {
        Self { since: Some(now), is_listed: false, services: 0 }
    }

    /// Returns the line to show when the step takes long.
    fn line(&self, now: Instant) -> Option<String> {
        let took = now.saturating_duration_since(self.since?);
        let what = if self.is_listed {
            format!("programming {}", counted(self.services, "service"))
        } else {
            "waiting for all Services and EndpointSlices".to_owned()
        };
        (took >= LONG).then(|| format!("{what} ... {} s", took.as_secs()))
    }
}

fn lock(work: &Mutex<Work>) -> std::sync::MutexGuard<'_, Work> {
    work.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Moves to the beginning of the line, and clears it.
const CLEAR: &str = "\r\x1b[K";
const TICK: Duration = Duration::from_millis(200);
const LONG: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_takes_long_is_shown() {
        let start = Instant::now();
        let after = |ms| start + Duration::from_millis(ms);
        let progress = Progress(Arc::new(Mutex::new(Work::new(start))));
        let line = |ms| lock(&progress.0).line(after(ms));
        assert_eq!(line(499), None);
        assert_eq!(line(2100).as_deref(), Some("waiting for all Services and EndpointSlices ... 2 s"));
        progress.queued(after(3000), &Cluster::default());
        assert_eq!(line(9000), None, "nothing is done");
        progress.syncing(after(9000));
        assert_eq!(line(9100), None);
        assert_eq!(line(9600).as_deref(), Some("programming 0 services ... 0 s"));
        progress.failed(&Error::Refused { services: Vec::new() });
        assert_eq!(line(20_000), None);
    }
}
