//! Writes specifications and the headers of sets.

use std::fmt;

use super::{CreateOptions, Range, SetSpec};
use crate::port::write_numbers;
use crate::set_type::CreateWord;
use crate::{Addresses, Family, SetType};

impl fmt::Display for SetSpec {
    /// Returns a line of a restore file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "create {} {}", self.name.quoted(), self.kind)?;
        each_option(self.kind, self.family, &self.options, |name, value| match value {
            Some(value) => write!(f, " {name} {value}"),
            None => write!(f, " {name}"),
        })
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Addresses(addresses) => addresses.fmt(f),
            Self::Ports(from, to) => write_numbers(f, *from, Some(*to)),
        }
    }
}

/// Calls `write` with each option that is set: name and value, in the order in which `ipset` prints those of
/// the type.
pub(crate) fn each_option(
    kind: SetType,
    family: Family,
    options: &CreateOptions,
    mut write: impl FnMut(&'static str, Option<&dyn fmt::Display>) -> fmt::Result,
) -> fmt::Result {
    for word in kind.facts().create {
        let name = word.name();
        let mut number = |value: Option<u32>| match value {
            Some(value) => write(name, Some(&value)),
            None => Ok(()),
        };
        match word {
            CreateWord::Hashsize => number(options.hashsize)?,
            CreateWord::Maxelem => number(options.maxelem)?,
            CreateWord::Size => number(options.size)?,
            CreateWord::Timeout => number(options.timeout)?,
            CreateWord::Netmask => number(options.netmask.map(u32::from))?,
            CreateWord::Bucketsize => number(options.bucketsize.map(u32::from))?,
            CreateWord::Family => write(name, Some(&family))?,
            CreateWord::Markmask | CreateWord::Initval => {
                let value = if *word == CreateWord::Initval { options.initval } else { options.markmask };
                if let Some(value) = value {
                    write(name, Some(&format_args!("0x{value:08x}")))?;
                }
            }
            CreateWord::Bitmask => {
                if let Some(mask) = options.bitmask {
                    write(name, Some(&Addresses::Host(mask)))?;
                }
            }
            CreateWord::Range => {
                if let Some(range) = &options.range {
                    write(name, Some(range))?;
                }
            }
            CreateWord::Counters | CreateWord::Comment | CreateWord::Forceadd | CreateWord::Skbinfo => {
                if flag(options, *word) {
                    write(name, None)?;
                }
            }
        }
    }
    Ok(())
}

fn flag(options: &CreateOptions, word: CreateWord) -> bool {
    match word {
        CreateWord::Counters => options.counters,
        CreateWord::Comment => options.comment,
        CreateWord::Forceadd => options.forceadd,
        _ => options.skbinfo,
    }
}
