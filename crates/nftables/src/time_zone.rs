//! The time zone that dates and hours are read and printed in.

use crate::sort;

/// A time zone: how far local time is ahead of UTC, and when that changes. The default is UTC.
///
/// The library opens no file: a program gives it what it read, say, from `/etc/localtime`.
///
/// ```
/// use sluicegate_nftables::TimeZone;
///
/// // Central Europe on a day of summer, and what it changes to.
/// let zone = TimeZone::fixed(7200).with_changes([(1_774_746_000, 7200), (1_792_890_000, 3600)]);
/// assert_eq!(zone.offset(), 7200);
/// assert_eq!(zone.offset_at(1_792_890_000), 3600);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct TimeZone {
    now: i32,
    changes: Vec<(i64, i32)>,
}

impl TimeZone {
    /// UTC.
    pub const UTC: Self = Self::fixed(0);

    /// Creates a time zone that is so many seconds ahead of UTC, always: 7200 for what POSIX calls `UTC-2`.
    #[must_use]
    pub const fn fixed(seconds: i32) -> Self {
        Self { now: seconds, changes: Vec::new() }
    }

    /// Adds the times at which the offset changes, in seconds since 1970, each with the offset from then on.
    #[must_use]
    pub fn with_changes(mut self, changes: impl IntoIterator<Item = (i64, i32)>) -> Self {
        self.changes.extend(changes);
        sort::by(&mut self.changes, Ord::cmp);
        self
    }

    /// Returns the offset in seconds that hours of the day are read and printed with: nft takes that of the
    /// moment.
    #[must_use]
    pub fn offset(&self) -> i32 {
        self.now
    }

    /// Returns the offset in seconds at a time in seconds since 1970. Before the first change it is that of
    /// the moment.
    #[must_use]
    pub fn offset_at(&self, time: i64) -> i32 {
        let before = self.changes.partition_point(|(from, _)| *from <= time);
        let change = before.checked_sub(1).and_then(|at| self.changes.get(at));
        change.map_or(self.now, |(_, offset)| *offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_holds_until_the_next_change() {
        let zone = TimeZone::fixed(1).with_changes([(20, 3), (10, 2)]);
        assert_eq!([9, 10, 19, 20, i64::MAX].map(|time| zone.offset_at(time)), [1, 2, 2, 3, 3]);
        assert_eq!(TimeZone::default(), TimeZone::UTC);
    }
}
