//! The pauses after failures.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::time::Duration;

use super::Pace;

/// Pauses that double up to a limit, each with a random part, so that nodes that lost the same server at the
/// same time do not all reconnect at the same time.
#[derive(Debug)]
pub(super) struct Backoff {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl Backoff {
    pub(super) fn new(pace: &Pace) -> Self {
        Self { first: pace.first, longest: pace.longest, next: pace.first }
    }

    /// Returns the pause after one more failure, no shorter than the server asked for, unless it asked for
    /// more than five minutes: the rules would be stale for so long.
    pub(super) fn pause(&mut self, asked: Option<Duration>) -> Duration {
        let pause = self.next;
        self.next = (pause * 2).min(self.longest);
        pause.max(asked.unwrap_or_default().min(LONGEST_ASKED)) + fraction(pause)
    }

    /// Starts again with the first pause, after a success.
    pub(super) fn reset(&mut self) {
        self.next = self.first;
    }
}

/// The longest time that a server may ask to wait.
const LONGEST_ASKED: Duration = Duration::from_secs(300);

/// Returns a random part of `whole`.
pub(super) fn fraction(whole: Duration) -> Duration {
    // The only source of randomness in the standard library: every state has random keys.
    let chance = RandomState::new().build_hasher().finish();
    whole.mul_f64(f64::from((chance >> 32) as u32) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_begin_again() {
        let mut backoff = Backoff::new(&Pace::default());
        for least in [800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000] {
            let pause = backoff.pause(None).as_millis();
            assert!((least..=2 * least).contains(&pause), "{pause} ms where {least} ms are the least");
        }
        backoff.reset();
        assert!(backoff.pause(None) < Duration::from_secs(2));
    }

    #[test]
    fn the_server_may_ask_for_more_and_not_for_less() {
        let mut backoff = Backoff::new(&Pace::default());
        assert!(backoff.pause(Some(Duration::from_secs(7))) >= Duration::from_secs(7));
        assert!(backoff.pause(Some(Duration::ZERO)) >= Duration::from_millis(1_600));
        assert!(backoff.pause(Some(Duration::MAX)) < Duration::from_secs(310), "five minutes are enough");
    }

    #[test]
    fn chance_differs() {
        let hour = Duration::from_secs(3_600);
        let parts: std::collections::HashSet<_> = (0..16).map(|_| fraction(hour)).collect();
        assert!(parts.len() > 8 && parts.iter().all(|part| *part <= hour), "{parts:?}");
    }
}
