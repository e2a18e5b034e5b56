//! How a proxy chooses among the endpoints of a service for a new connection.

use std::fmt;
use std::str::FromStr;

/// The way in which a proxy chooses an endpoint for a new connection.
///
/// A Service asks for one by the annotation [`Scheduler::ANNOTATION`]; the node has a default for all others.
/// The names are what [`FromStr`] reads and [`fmt::Display`] prints:
///
/// ```
/// use sluicegate_services::{Scheduler, Slots};
///
/// assert_eq!("source-hash".parse(), Ok(Scheduler::SourceHash));
/// assert_eq!("maglev".parse(), Ok(Scheduler::Maglev(Slots::default())));
/// assert_eq!("maglev:1021".parse::<Scheduler>()?.to_string(), "maglev:1021");
/// assert_eq!(
///     "maglev:1000".parse::<Scheduler>().unwrap_err().to_string(),
///     "expected a prime number of slots from 11 to 65521 after `maglev:`, found \"1000\""
/// );
/// # Ok::<(), sluicegate_services::UnknownScheduler>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scheduler {
    /// `random`: any endpoint, each with the same probability, as kube-proxy does.
    #[default]
    Random,
    /// `round-robin`: one endpoint after the other.
    RoundRobin,
    /// `source-hash`: the endpoint that a hash of the client's address chooses by its place in the list, so
    /// that a client stays at its endpoint as long as the list is the same, on every node.
    SourceHash,
    /// `maglev`, or `maglev:1021` with a number of slots: the endpoint that has the slot which a hash of the
    /// client's address and port chooses. Nodes with the same list agree, and an endpoint that comes or goes
    /// moves hardly any connections but its own.
    Maglev(Slots),
}

/// The number of slots in the table of [`Scheduler::Maglev`]: a prime number from 11 to 65521; 251 by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slots(u32);

impl Slots {
    /// The least number.
    pub const MIN: u32 = 11;
    /// The largest number.
    pub const MAX: u32 = 65_521;
    /// The largest number that a Service may ask for: each slot is an element for each of its ports and
    /// addresses, on every node, in maps that all services share.
    pub const MAX_OF_SERVICE: u32 = 4_093;

    /// Returns this number of slots; `None` unless it is a prime number from [`MIN`](Self::MIN) to
    /// [`MAX`](Self::MAX).
    #[must_use]
    pub fn new(number: u32) -> Option<Self> {
        let is_prime = || (2..).take_while(|d| d * d <= number).all(|d| !number.is_multiple_of(d));
        ((Self::MIN..=Self::MAX).contains(&number) && is_prime()).then_some(Self(number))
    }

    /// Returns the number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Returns a number of slots with one for each of `endpoints`: this one, or else about twice as many, or
    /// four times, and so on, or the largest. With another number nearly all connections move, so it seldom
    /// changes.
    #[must_use]
    pub fn for_endpoints(self, endpoints: usize) -> Self {
        let wanted = u32::try_from(endpoints).unwrap_or(Self::MAX);
        let mut slots = self;
        while slots.0 < wanted && slots.0 < Self::MAX {
            let least = slots.0.saturating_mul(2).min(Self::MAX);
            slots = (least..=Self::MAX).find_map(Self::new).unwrap_or(Self(Self::MAX));
        }
        slots
    }
}

impl Default for Slots {
    fn default() -> Self {
        Self(251)
    }
}

impl Scheduler {
    /// The annotation by which a Service asks for one.
    pub const ANNOTATION: &str = "sluicegate.github.io/scheduler";
    /// How the keys of all annotations begin that this project gives a meaning to.
    pub const ANNOTATION_PREFIX: &str = "sluicegate.github.io/";
    /// The path of its value in a Service.
    pub const FIELD: &str = "metadata.annotations[sluicegate.github.io/scheduler]";

    /// Returns the name, without the number of slots.
    const fn as_str(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::RoundRobin => "round-robin",
            Self::SourceHash => "source-hash",
            Self::Maglev(_) => "maglev",
        }
    }
}

impl fmt::Display for Scheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Maglev(slots) if *slots != Slots::default() => write!(f, "maglev:{}", slots.get()),
            other => f.write_str(other.as_str()),
        }
    }
}

impl FromStr for Scheduler {
    type Err = UnknownScheduler;

    fn from_str(text: &str) -> Result<Self, UnknownScheduler> {
        match text {
            "random" => Ok(Self::Random),
            "round-robin" => Ok(Self::RoundRobin),
            "source-hash" => Ok(Self::SourceHash),
            "maglev" => Ok(Self::Maglev(Slots::default())),
            _ => match text.strip_prefix("maglev:") {
                Some(number) => {
                    let slots = number.parse().ok().and_then(Slots::new).map(Self::Maglev);
                    slots.ok_or_else(|| UnknownScheduler::Slots(number.to_owned()))
                }
                None => Err(UnknownScheduler::Name(text.to_owned())),
            },
        }
    }
}

/// The text is not the name of a scheduler.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnknownScheduler {
    /// No scheduler has this name.
    #[error("expected random, round-robin, source-hash, maglev or maglev:SLOTS, found {0:?}")]
    Name(String),
    /// A table cannot have this number of slots.
    #[error(
        "expected a prime number of slots from {least} to {most} after `maglev:`, found {0:?}",
        least = Slots::MIN,
        most = Slots::MAX
    )]
    Slots(String),
    /// A Service asks for more slots than it may ([`Slots::MAX_OF_SERVICE`]).
    #[error("expected at most {most} slots of a Service, found {0}", most = Slots::MAX_OF_SERVICE)]
    TooMany(u32),
    /// A Service asks for a number of slots that no table can have.
    #[error(
        "expected a prime number of slots from {least} to {most} after `maglev:` of a Service, found {0:?}",
        least = Slots::MIN,
        most = Slots::MAX_OF_SERVICE
    )]
    SlotsOfService(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_printed_and_others_say_what_is_expected() {
        for name in ["random", "round-robin", "source-hash", "maglev", "maglev:11", "maglev:65521"] {
            assert_eq!(name.parse::<Scheduler>().unwrap().to_string(), name);
        }
        assert_eq!("maglev:251".parse::<Scheduler>().unwrap().to_string(), "maglev");
        let message = |text: &str| text.parse::<Scheduler>().unwrap_err().to_string();
        for name in ["", "rr", "lc", "Random", "maglev ", " maglev"] {
            let expected = "expected random, round-robin, source-hash, maglev or maglev:SLOTS, found";
            assert_eq!(message(name), format!("{expected} {name:?}"));
        }
        for number in ["", "0", "7", "10", "250", "65522", "65537", "4294967311", "-11", "x"] {
            assert_eq!(
                message(&format!("maglev:{number}")),
                format!(
                    "expected a prime number of slots from 11 to 65521 after `maglev:`, found {number:?}"
                )
            );
        }
    }

    #[test]
    fn the_field_has_the_annotation() {
        assert_eq!(Scheduler::FIELD, format!("metadata.annotations[{}]", Scheduler::ANNOTATION));
        assert!(Scheduler::ANNOTATION.starts_with(Scheduler::ANNOTATION_PREFIX));
    }

    #[test]
    fn slots_are_prime_and_enough_for_all_endpoints() {
        let primes: Vec<_> = (0..=50).filter_map(Slots::new).map(Slots::get).collect();
        assert_eq!(primes, [11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47]);
        let default = Slots::default();
        assert_eq!(Slots::new(default.get()), Some(default));
        for (endpoints, slots) in
            [(0, 251), (251, 251), (252, 503), (503, 503), (504, 1009), (65_521, 65_521), (70_000, 65_521)]
        {
            assert_eq!(default.for_endpoints(endpoints).get(), slots);
        }
    }
}
