//! The options of a match or target: as an encoder asks for them, and as a decoder puts them together.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::extension::Mismatch;
use sluicegate_iptables_save::{Family, Module, OptionUse};

use super::Sets;

/// The options that an encoder writes, in the spelling of iptables-save.
pub(crate) struct Given<'a> {
    pub(crate) module: &'a Module<'a>,
    /// The same module as it was written, for the few things that the saved spelling does not tell.
    pub(crate) written: &'a Module<'a>,
    pub(crate) family: Family,
    pub(crate) sets: &'a dyn Sets,
}

impl Given<'_> {
    pub(crate) fn has(&self, name: &str) -> bool {
        self.module.option(name).is_some()
    }

    /// Returns whether the option is there, with `!` before it.
    pub(crate) fn not(&self, name: &str) -> bool {
        self.module.option(name).is_some_and(|option| option.negated)
    }

    pub(crate) fn word(&self, name: &str) -> Option<&str> {
        self.module.value(name)
    }

    pub(crate) fn second(&self, name: &str) -> Option<&str> {
        self.module.option(name)?.values.as_slice().get(1).map(|value| &**value)
    }

    /// Returns the value as it was written.
    pub(crate) fn written_word(&self, name: &str) -> Option<&str> {
        self.written.value(name)
    }

    /// Returns whether the option was written with a mask behind its address.
    pub(crate) fn has_mask(&self, name: &str) -> bool {
        self.written_word(name).is_some_and(|word| word.contains('/'))
    }

    pub(crate) fn need(&self, name: &str) -> Result<&str, Mismatch> {
        self.word(name).ok_or_else(|| Mismatch::expected(format!("--{name} with a value")))
    }

    /// Returns a number, or 0 without the option.
    pub(crate) fn number<T: TryFrom<u64> + Default>(&self, name: &str) -> Result<T, Mismatch> {
        self.word(name).map_or(Ok(T::default()), |word| number(word, name))
    }

    /// Returns a number or a range `a:b`; `open` without the option.
    pub(crate) fn span<T: TryFrom<u64> + Copy>(&self, name: &str, open: (T, T)) -> Result<(T, T), Mismatch> {
        match self.word(name) {
            None => Ok(open),
            Some(word) => span(word, ':', name),
        }
    }

    /// Returns `value[/mask]`, whose mask is full if it is not given.
    pub(crate) fn mark(&self, name: &str) -> Result<Option<(u32, u32)>, Mismatch> {
        self.word(name)
            .map(|word| match word.split_once('/') {
                None => Ok((number(word, name)?, u32::MAX)),
                Some((value, mask)) => Ok((number(value, name)?, number(mask, name)?)),
            })
            .transpose()
    }

    /// Returns the bits of a list of names.
    pub(crate) fn bits(&self, name: &str, names: &[(&str, u32)]) -> Result<u32, Mismatch> {
        self.word(name).map_or(Ok(0), |word| bits(word, names, name))
    }

    /// Returns an address with its mask, which is full if it is not given.
    pub(crate) fn masked(&self, name: &str) -> Result<Option<(IpAddr, IpAddr)>, Mismatch> {
        self.word(name).map(|word| masked(word, self.family, name)).transpose()
    }

    pub(crate) fn address(&self, name: &str) -> Result<Option<IpAddr>, Mismatch> {
        self.word(name).map(|word| address(word, self.family, name)).transpose()
    }

    /// Returns the flags that are given, each by its bit.
    pub(crate) fn flags(&self, names: &[(&str, u32)]) -> u32 {
        names.iter().filter(|(name, _)| self.has(name)).fold(0, |flags, (_, bit)| flags | bit)
    }

    /// Returns the bits of the options that have `!` before them.
    pub(crate) fn nots(&self, names: &[(&str, u32)]) -> u32 {
        names.iter().filter(|(name, _)| self.not(name)).fold(0, |flags, (_, bit)| flags | bit)
    }
}

/// Reads a number: decimal, or hexadecimal with `0x`.
pub(crate) fn number<T: TryFrom<u64>>(word: &str, name: &str) -> Result<T, Mismatch> {
    let parsed = match word.strip_prefix("0x") {
        Some(digits) if !digits.starts_with('+') => u64::from_str_radix(digits, 16).ok(),
        Some(_) => None,
        None if word.starts_with('+') => None,
        None => word.parse().ok(),
    };
    parsed
        .and_then(|number| T::try_from(number).ok())
        .ok_or_else(|| Mismatch::expected(format!("a number that fits --{name}")).found(word))
}

/// Reads `a` or `aSb`, S being the separator.
pub(crate) fn span<T: TryFrom<u64> + Copy>(
    word: &str,
    separator: char,
    name: &str,
) -> Result<(T, T), Mismatch> {
    match word.split_once(separator) {
        Some((low, high)) => Ok((number(low, name)?, number(high, name)?)),
        None => number(word, name).map(|number| (number, number)),
    }
}

/// Returns the bits of a list of names with commas between.
pub(crate) fn bits(word: &str, names: &[(&str, u32)], option: &str) -> Result<u32, Mismatch> {
    word.split(',')
        .filter(|part| !part.is_empty())
        .try_fold(0, |bits, part| named(part, names, option).map(|bit| bits | bit))
}

/// Returns the number that belongs to a name.
pub(crate) fn named(word: &str, names: &[(&str, u32)], option: &str) -> Result<u32, Mismatch> {
    let found = names.iter().find(|(name, _)| *name == word);
    found.map(|(_, number)| *number).ok_or_else(|| {
        let names: Vec<_> = names.iter().map(|(name, _)| *name).collect();
        Mismatch::expected(format!("one of {}", names.join(", "))).option(option).found(word)
    })
}

/// Returns the name that belongs to a number.
pub(crate) fn name_of(number: u32, names: &[(&'static str, u32)]) -> Option<&'static str> {
    names.iter().find(|(_, known)| *known == number).map(|(name, _)| *name)
}

/// Returns the names of bits with commas between, if each has one.
pub(crate) fn names_of(bits: u32, names: &[(&'static str, u32)]) -> Option<String> {
    let known = names.iter().fold(0, |known, (_, bit)| known | bit);
    let found: Vec<_> =
        names.iter().filter(|(_, bit)| *bit != 0 && bits & bit == *bit).map(|(name, _)| *name).collect();
    (bits & !known == 0).then(|| found.join(","))
}

/// Reads an address of the family.
pub(crate) fn address(word: &str, family: Family, name: &str) -> Result<IpAddr, Mismatch> {
    let parsed = match family {
        Family::Ipv4 => word.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
        Family::Ipv6 => word.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
    };
    parsed.ok_or_else(|| {
        let family = if family == Family::Ipv4 { "IPv4" } else { "IPv6" };
        Mismatch::expected(format!("an {family} address")).option(name).found(word)
    })
}

/// Reads an address with a mask, in either notation.
pub(crate) fn masked(word: &str, family: Family, name: &str) -> Result<(IpAddr, IpAddr), Mismatch> {
    let (host, mask) = word.split_once('/').map_or((word, None), |(host, mask)| (host, Some(mask)));
    let full = prefix_mask(u8::MAX, family);
    let mask = match mask {
        None => full,
        Some(mask) => match mask.parse::<u8>() {
            Ok(length) => prefix_mask(length, family),
            Err(_) => address(mask, family, name)?,
        },
    };
    Ok((address(host, family, name)?, mask))
}

/// Returns the mask of so many leading bits.
pub(crate) fn prefix_mask(length: u8, family: Family) -> IpAddr {
    match family {
        Family::Ipv4 => IpAddr::V4(Ipv4Addr::from(!u32::MAX.checked_shr(u32::from(length)).unwrap_or(0))),
        Family::Ipv6 => IpAddr::V6(Ipv6Addr::from(!u128::MAX.checked_shr(u32::from(length)).unwrap_or(0))),
    }
}

/// Returns the number of leading ones, if the mask has no others.
pub(crate) fn prefix_length(mask: IpAddr) -> Option<u8> {
    let (ones, family) = match mask {
        IpAddr::V4(mask) => (u32::from(mask).leading_ones(), Family::Ipv4),
        IpAddr::V6(mask) => (u128::from(mask).leading_ones(), Family::Ipv6),
    };
    let length = u8::try_from(ones).ok()?;
    (prefix_mask(length, family) == mask).then_some(length)
}

/// Returns a mask as a length, or as an address if it is not a prefix.
pub(crate) fn mask_text(mask: IpAddr) -> String {
    prefix_length(mask).map_or_else(|| mask.to_string(), |length| length.to_string())
}

/// Returns an address with its mask, which is left out if it is full.
pub(crate) fn masked_text(address: IpAddr, mask: IpAddr) -> String {
    let full = if address.is_ipv4() { 32 } else { 128 };
    match prefix_length(mask) {
        Some(length) if length == full => address.to_string(),
        _ => format!("{address}/{}", mask_text(mask)),
    }
}

/// Returns a number, or a range with a separator if its ends differ.
pub(crate) fn span_text<T: Copy + PartialEq + std::fmt::Display>(low: T, high: T, separator: char) -> String {
    if low == high { low.to_string() } else { format!("{low}{separator}{high}") }
}

/// Returns a mark in hexadecimal, without its mask if that is full.
pub(crate) fn mark_text(value: u32, mask: u32) -> String {
    if mask == u32::MAX { format!("{value:#x}") } else { format!("{value:#x}/{mask:#x}") }
}

/// What a decoder puts together.
pub(crate) struct Built<'a> {
    pub(crate) module: Module<'static>,
    pub(crate) family: Family,
    pub(crate) sets: &'a dyn Sets,
}

impl Built<'_> {
    /// Changes the name, of the few that are written under another one.
    pub(crate) fn rename(&mut self, name: &'static str) {
        self.module.name = Cow::Borrowed(name);
    }

    /// Adds a flag, if it is set.
    pub(crate) fn flag(&mut self, name: &'static str, set: bool) {
        if set {
            self.push(name, false, []);
        }
    }

    /// Adds a flag that may have `!` before it.
    pub(crate) fn flag_not(&mut self, name: &'static str, negated: bool) {
        self.push(name, negated, []);
    }

    #[allow(clippy::needless_pass_by_value, reason = "most values are numbers")]
    pub(crate) fn value(&mut self, name: &'static str, value: impl ToString) {
        self.push(name, false, [value.to_string()]);
    }

    #[allow(clippy::needless_pass_by_value, reason = "most values are numbers")]
    pub(crate) fn value_not(&mut self, name: &'static str, negated: bool, value: impl ToString) {
        self.push(name, negated, [value.to_string()]);
    }

    pub(crate) fn two(&mut self, name: &'static str, negated: bool, values: [String; 2]) {
        self.push(name, negated, values);
    }

    /// Adds flags by their bits; `None` if a bit is left over.
    pub(crate) fn flags(&mut self, bits: u32, names: &[(&'static str, u32)]) -> Option<()> {
        names.iter().for_each(|(name, bit)| self.flag(name, bits & bit != 0));
        (bits & !names.iter().fold(0, |known, (_, bit)| known | bit) == 0).then_some(())
    }

    fn push<const N: usize>(&mut self, name: &'static str, negated: bool, values: [String; N]) {
        let option = OptionUse::new(name, values.map(Cow::Owned)).negated(negated);
        self.module.options.push(option);
    }
}
