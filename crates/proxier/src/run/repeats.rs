//! Troubles that come again and again, as when another program and this one undo each other's work: the first
//! ones are told, the rest are counted.

use std::time::{Duration, Instant};

/// What was told of one trouble. Callers pass in the time.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    /// When the first of those was told that count against [`FEW`].
    since: Option<Instant>,
    told: u32,
    /// How many were not told.
    untold: u32,
}

impl Repeats {
    /// Counts the trouble. Returns true if it is to be told: a few times a minute.
    pub(super) fn count(&mut self, now: Instant) -> bool {
        let since = *self.since.get_or_insert(now);
        if self.untold == 0 && now.saturating_duration_since(since) >= WINDOW {
            (self.since, self.told) = (Some(now), 0);
        }
        let is_told = self.told < FEW;
        if is_told {
            self.told += 1;
        } else {
            self.untold += 1;
        }
        is_told
    }

    /// Returns how many were not told, when a minute is over, and the time since the first that was told.
    pub(super) fn summary(&mut self, now: Instant) -> Option<(u32, Duration)> {
        let lasted = now.saturating_duration_since(self.since?);
        if self.untold == 0 || lasted < WINDOW {
            return None;
        }
        // What still goes on is counted from here, and not told one by one again.
        self.since = Some(now);
        Some((std::mem::take(&mut self.untold), lasted))
    }
}

/// How often a trouble is told in a [`WINDOW`].
const FEW: u32 = 5;
const WINDOW: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_are_told_and_the_rest_are_counted_each_minute() {
        let (start, mut repeats) = (Instant::now(), Repeats::default());
        let at = |seconds| start + Duration::from_secs(seconds);
        let told = (0..59).filter(|second| repeats.count(at(*second))).count();
        assert_eq!((told, repeats.summary(at(59))), (5, None));
        assert_eq!(repeats.summary(at(60)), Some((54, WINDOW)));
        assert!(!repeats.count(at(61)), "it still goes on");
        assert_eq!(repeats.summary(at(62)), None);
        assert_eq!(repeats.summary(at(121)), Some((1, Duration::from_secs(61))));
        assert_eq!(repeats.summary(at(500)), None, "it is over");
        assert!(repeats.count(at(501)), "and begins again");
    }

    #[test]
    fn what_comes_now_and_then_is_always_told() {
        let (start, mut repeats) = (Instant::now(), Repeats::default());
        assert!((0..100).all(|n| repeats.count(start + Duration::from_secs(20 * n))));
        assert_eq!(repeats.summary(start + Duration::from_secs(9000)), None);
    }
}
