//! Formats the tree in nft's syntax: text that `nft -f` reads, in the form that `nft list` prints.

mod expression;
mod nat;
mod statement;
mod value;

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

#[cfg(feature = "json")]
pub(crate) use nat::prefix_of;
pub(crate) use statement::TypedUpdate;
#[cfg(feature = "json")]
pub(crate) use value::Inet6;
pub(crate) use value::{Wording, write_number, write_part};

/// Types that print differently with options and names of the machine. Printed alone they have the form of a
/// script.
pub(crate) trait Words {
    fn write(&self, f: &mut Formatter<'_>, with: Wording<'_>) -> fmt::Result;

    /// Wraps a value so that it prints with these options.
    fn worded<'a>(&'a self, with: Wording<'a>) -> Worded<'a, Self> {
        Worded(self, with)
    }
}

/// A value with the options for printing it.
pub(crate) struct Worded<'a, T: ?Sized>(&'a T, Wording<'a>);

impl<T: Words + ?Sized> Display for Worded<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.write(f, self.1)
    }
}

macro_rules! as_script {
    ($($of:ty)*) => {$(
        impl Display for $of {
            fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
                self.write(f, Wording::SCRIPT)
            }
        }
    )*};
}

as_script! {
    crate::tree::Expression crate::tree::Jhash crate::tree::Statement crate::tree::Match crate::tree::Tproxy
        crate::tree::Dup
    crate::tree::Fwd crate::tree::Queue crate::tree::SetUpdate crate::tree::ObjectReference
    crate::tree::Counter crate::tree::Last crate::tree::Quota crate::tree::Reject
}

/// Returns a time in milliseconds as it is sent and printed. A positive time is at least one millisecond,
/// because zero means that there is no limit.
pub(crate) fn millis(time: Duration) -> u64 {
    let least = u64::from(!time.is_zero());
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(least)
}

/// A time in nft's syntax: `1d2h3m4s5ms`.
pub(crate) struct Time(pub(crate) Duration);

impl Display for Time {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let millis = millis(self.0);
        let seconds = millis / 1_000;
        let parts = [
            (seconds / 86_400, "d"),
            (seconds / 3_600 % 24, "h"),
            (seconds / 60 % 60, "m"),
            (seconds % 60, "s"),
            (millis % 1_000, "ms"),
        ];
        if parts.iter().all(|(n, _)| *n == 0) {
            return f.write_str("0s");
        }
        parts.iter().filter(|(n, _)| *n > 0).try_for_each(|(n, unit)| write!(f, "{n}{unit}"))
    }
}
