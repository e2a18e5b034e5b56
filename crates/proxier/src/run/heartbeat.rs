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
}
