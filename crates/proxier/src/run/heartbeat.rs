//! The heartbeat of the run loop, by which others see that it still moves.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A time that the run loop sets in every turn, at least once a second. Clones share it.
#[derive(Clone, Debug)]
pub struct Heartbeat(Arc<Beat>);

#[derive(Debug)]
struct Beat {
    start: Instant,
    /// Milliseconds from the start to the last beat.
    last: AtomicU64,
}

impl Default for Heartbeat {
    /// Returns a heart that beats now.
    fn default() -> Self {
        Self(Arc::new(Beat { start: Instant::now(), last: AtomicU64::new(0) }))
    }
}

impl Heartbeat {
    /// Records that the loop moves.
    pub fn beat(&self) {
        let since = u64::try_from(self.0.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.0.last.store(since, Ordering::Relaxed);
    }

    /// Returns the time since the last beat.
    #[must_use]
    pub fn age(&self, now: Instant) -> Duration {
        let last = Duration::from_millis(self.0.last.load(Ordering::Relaxed));
        now.saturating_duration_since(self.0.start).saturating_sub(last)
    }

    /// Starts a thread that ends the process with status 1 if the heart does not beat for this long: a system
    /// call that never returns is mended by nothing else.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn watch(&self, longest: Duration) -> std::io::Result<()> {
        let heart = self.clone();
        std::thread::Builder::new().name("watchdog".to_owned()).spawn(move || {
            // Seconds of this thread are counted, so that a process that was stopped and goes on has time to
            // beat again.
            let (mut last, mut silent) = (None, Duration::ZERO);
            while silent < longest {
                std::thread::sleep(BEAT);
                let beat = heart.0.last.load(Ordering::Relaxed);
                silent = if last == Some(beat) { silent + BEAT } else { Duration::ZERO };
                last = Some(beat);
            }
            tracing::error!("the run loop has not moved for {} s; ending the process", silent.as_secs());
            std::process::exit(1);
        })?;
        Ok(())
    }
}

/// The longest time between two beats of a loop that waits.
pub(super) const BEAT: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    #[test]
    fn the_age_counts_from_the_last_beat() {
        let heart = Heartbeat::default();
        let later = Instant::now() + Duration::from_secs(90);
        assert!(heart.age(later) >= Duration::from_secs(89));
        std::thread::sleep(Duration::from_millis(20));
        heart.clone().beat();
        assert!(heart.age(Instant::now()) < Duration::from_secs(5));
        assert!(heart.age(later) < Duration::from_secs(90));
    }

    /// The watchdog ends its process: the test starts this program anew for that.
    fn under_watch(step: &str) -> Child {
        let exe = std::env::current_exe().expect("the program of the tests");
        let name = "run::heartbeat::tests::a_heart_that_stops_ends_the_process_and_one_that_beats_does_not";
        let mut command = Command::new(exe);
        command.args(["--exact", name]).env(STEP, step).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().expect("it starts")
    }

    #[test]
    fn a_heart_that_stops_ends_the_process_and_one_that_beats_does_not() {
        let Ok(step) = std::env::var(STEP) else {
            let ended = ["stops", "beats"].map(under_watch).map(|mut child| child.wait().expect("a child"));
            assert_eq!(ended.map(|status| status.code()), [Some(1), Some(BEATEN)]);
            return;
        };
        let heart = Heartbeat::default();
        heart.watch(BEAT * 3).expect("a thread");
        if step == "stops" {
            // As in a system call that never returns.
            loop {
                std::thread::park();
            }
        }
        // Longer than the watchdog waits.
        let until = Instant::now() + BEAT * 5;
        while Instant::now() < until {
            heart.beat();
            std::thread::sleep(Duration::from_millis(20));
        }
        std::process::exit(BEATEN);
    }

    /// Says, to the process that the test starts, which step it is.
    const STEP: &str = "SLUICEGATE_HEARTBEAT";
    /// The status of a process whose heart went on beating.
    const BEATEN: i32 = 7;
}
