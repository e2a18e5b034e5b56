//! How text is worded: the options for listings, and the differences between a listing and a script.

mod options;

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use crate::datatype::DataType;
pub use options::ListOptions;

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

/// Options for printing constants.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wording<'a> {
    pub(crate) options: &'a ListOptions,
    numbers: Numbers,
    /// Whether the text is a script for nft to read, not a listing.
    script: bool,
    state: State,
    /// The parts of a set's keys and values that are raw payload, one bit each.
    raw: [u8; 2],
}

/// Whether to print state: counters, remaining times and the like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Never,
    /// State other than zero, as in a script.
    NonZero,
    Always,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Numbers {
    /// As a symbolic constant, if the type has one.
    Named,
    /// As a number: the bounds of ranges.
    Bare,
    /// In hexadecimal: compared with raw payload.
    Hexadecimal,
}

impl<'a> Wording<'a> {
    pub(crate) const fn new(options: &'a ListOptions) -> Self {
        let state = if options.state { State::Always } else { State::Never };
        Self { options, numbers: Numbers::Named, script: false, state, raw: [0; 2] }
    }

    /// Returns the same for the bounds of a range.
    pub(crate) fn bare(self) -> Self {
        match self.numbers {
            Numbers::Named => Self { numbers: Numbers::Bare, ..self },
            _ => self,
        }
    }

    /// Returns whether the text is a script.
    pub(crate) fn is_script(self) -> bool {
        self.script
    }

    /// Returns the same for the statements of new elements: nft prints no state for them.
    pub(crate) fn for_new_elements(self) -> Self {
        if self.script { self } else { Self { state: State::Never, ..self } }
    }

    /// Returns whether to print the state of an object; `reached` tells whether it is not zero.
    pub(crate) fn shows_state(self, reached: bool) -> bool {
        match self.state {
            State::Never => false,
            State::NonZero => reached,
            State::Always => true,
        }
    }

    /// Returns whether values are printed as symbolic constants.
    pub(crate) fn is_named(self) -> bool {
        self.numbers == Numbers::Named
    }

    /// Returns whether numbers are printed in hexadecimal.
    pub(crate) fn is_hexadecimal(self) -> bool {
        self.numbers == Numbers::Hexadecimal
    }

    /// Returns whether values of this type are printed as symbolic constants.
    pub(crate) fn names(self, of: DataType) -> bool {
        match of {
            DataType::INET_PROTO => !self.options.numeric_protocol,
            // nft has other options for the names of these (`-S`, `-u`).
            DataType::INET_SERVICE | DataType::UID | DataType::GID => true,
            _ => !self.options.numeric_symbols,
        }
    }

    /// Returns a time that prints in the largest units, or in seconds.
    pub(crate) fn time(self, time: Duration) -> impl Display {
        ListedTime { time, in_seconds: self.options.numeric_time }
    }

    /// Returns the same for the elements of a set: which parts of its keys and of its values are raw payload,
    /// one bit each.
    pub(crate) fn with_raw_parts(self, raw: [u8; 2]) -> Self {
        Self { raw, ..self }
    }

    /// Returns the same for the value of an element.
    pub(crate) fn data(self) -> Self {
        Self { raw: [self.raw[1], 0], ..self }
    }

    /// Returns the same for a part of a key.
    pub(crate) fn part(self, index: usize) -> Self {
        if index < 8 && self.raw[0] >> index & 1 == 1 { self.hexadecimal() } else { self }
    }

    pub(crate) fn hexadecimal(self) -> Self {
        Self { numbers: Numbers::Hexadecimal, ..self }
    }
}

impl Wording<'static> {
    /// The options for scripts.
    pub(crate) const SCRIPT: Self = Self { script: true, state: State::NonZero, ..Self::new(&SCRIPT) };
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

/// A time as it prints in a listing.
struct ListedTime {
    time: Duration,
    in_seconds: bool,
}

impl Display for ListedTime {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.in_seconds {
            true => write!(f, "{}s", self.time.as_secs()),
            false => Time(self.time).fmt(f),
        }
    }
}

static SCRIPT: ListOptions = ListOptions::SCRIPT;
