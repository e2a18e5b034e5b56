//! Any words of a rule: nothing panics, and a rule that was encoded is printed as words that encode to a rule
//! which prints the same.
//!
//! The first byte chooses the family and the table, the rest is the words.

use sluicegate_iptables_save::{Family, Place};
use sluicegate_xtables::{Kernel, Kind, NoWords, Rule, SetMismatch, Sets};

pub(crate) fn run(data: &[u8]) {
    let Some((choice, words)) = data.split_first() else { return };
    let Ok(words) = std::str::from_utf8(words) else { return };
    let family = if choice & 1 == 0 { Family::Ipv4 } else { Family::Ipv6 };
    let table = ["filter", "nat", "mangle", "raw"][usize::from(choice >> 1 & 3)];
    let place = Place { table, chain: "X", family };
    let Ok(rules) = Rule::compile(words, place, &Everything) else { return };
    for rule in rules {
        let printed = match rule.words(family, &Everything) {
            Ok(printed) => printed,
            // A chain may be jumped to by a name that no line can hold.
            Err(NoWords::Chain(_)) => continue,
            Err(error) => panic!("{words:?}: {error}"),
        };
        let again = Rule::compile(&printed, place, &Everything);
        let again = again.unwrap_or_else(|error| panic!("{words:?}: {printed:?}: {error}"));
        assert_eq!(again[0].words(family, &Everything).expect("as before"), printed, "{words:?}");
    }
}

/// A kernel that has every revision, and sets `s0` to `s65534`.
struct Everything;

impl Kernel for Everything {
    fn has(&self, _: Kind, _: &str, _: u8) -> bool {
        true
    }

    fn sets(&self) -> &dyn Sets {
        self
    }
}

impl Sets for Everything {
    fn index(&self, name: &str, _: Family) -> Result<u16, SetMismatch> {
        let number = name.strip_prefix('s').and_then(|number| number.parse().ok());
        number
            .filter(|number| *number < u16::MAX)
            .ok_or_else(|| SetMismatch::Missing { name: name.to_owned() })
    }

    fn name(&self, index: u16) -> Option<String> {
        Some(format!("s{index}"))
    }
}
