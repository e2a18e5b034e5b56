//! What a set is to be: its name, type, family and options.

pub(crate) mod parse;
mod print;
pub(crate) mod wire;

use std::net::IpAddr;

use crate::set_type::{CreateWord, Feature};
use crate::{Addresses, Family, Reason, SetName, SetType};

pub(crate) use print::each_option;

/// A set that is wanted: what `create` says.
///
/// What the kernel says of a set that exists is a [`SetInfo`](crate::SetInfo).
///
/// ```
/// use sluicegate_ipset::{CreateOptions, Family, SetName, SetSpec, SetType};
///
/// let spec = SetSpec::new(SetName::new("allowed")?, SetType::HashNet, Family::Inet6, CreateOptions {
///     maxelem: Some(100_000),
///     timeout: Some(3600),
///     ..CreateOptions::default()
/// })?;
/// assert_eq!(spec.to_string(), "create allowed hash:net family inet6 maxelem 100000 timeout 3600");
///
/// // A type does not take the options of another.
/// let options = CreateOptions { markmask: Some(1), ..CreateOptions::default() };
/// assert!(SetSpec::new(SetName::new("m")?, SetType::HashNet, Family::Inet, options).is_err());
/// # Ok::<(), sluicegate_ipset::Reason>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetSpec {
    name: SetName,
    kind: SetType,
    family: Family,
    options: CreateOptions,
}

/// The options of `create`; what is not given is the kernel's choice.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CreateOptions {
    /// Initial number of buckets of a hash; the kernel rounds up to a power of two. 1024.
    pub hashsize: Option<u32>,
    /// Most entries of a hash. 65,536.
    pub maxelem: Option<u32>,
    /// Most entries of a bucket before the hash grows, even, 2 to 14. 12.
    pub bucketsize: Option<u8>,
    /// Seed of the hash function. Random.
    pub initval: Option<u32>,
    /// Stores networks of this prefix length in place of addresses.
    pub netmask: Option<u8>,
    /// As `netmask`, with any mask.
    pub bitmask: Option<IpAddr>,
    /// The bits of marks that count, in `hash:ip,mark`.
    pub markmask: Option<u32>,
    /// Seconds that an entry lives unless it says otherwise; 0 is for ever. Without this, entries have no timeout.
    pub timeout: Option<u32>,
    /// Count packets and bytes of each entry.
    pub counters: bool,
    /// Entries may have comments.
    pub comment: bool,
    /// Entries may have a mark, a priority and a queue.
    pub skbinfo: bool,
    /// When the hash is full, a new entry takes the place of another.
    pub forceadd: bool,
    /// The range of a bitmap.
    pub range: Option<Range>,
    /// Ignored by kernels since 2014; the kernel reports it. 8.
    pub size: Option<u32>,
}

/// The range of a bitmap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Range {
    /// Of `bitmap:ip` and `bitmap:ip,mac`: a network or a range of IPv4 addresses.
    Addresses(Addresses),
    /// Of `bitmap:port`.
    Ports(u16, u16),
}

impl SetSpec {
    /// Checks a specification.
    ///
    /// # Errors
    /// When the type does not have the family or one of the options, when one is out of range, or when a bitmap has
    /// no range.
    pub fn new(name: SetName, kind: SetType, family: Family, options: CreateOptions) -> Result<Self, Reason> {
        if !kind.families().contains(&family) {
            return Err(Reason::TypeFamily { kind, family });
        }
        options.check(kind, family)?;
        Ok(Self { name, kind, family, options })
    }

    /// The set's name.
    #[must_use]
    pub fn name(&self) -> SetName {
        self.name
    }

    /// The same set by another name.
    #[must_use]
    pub fn named(&self, name: SetName) -> Self {
        Self { name, ..self.clone() }
    }

    /// The set's type.
    #[must_use]
    pub fn set_type(&self) -> SetType {
        self.kind
    }

    /// The set's family.
    #[must_use]
    pub fn family(&self) -> Family {
        self.family
    }

    /// The options.
    #[must_use]
    pub fn options(&self) -> &CreateOptions {
        &self.options
    }

    /// The same set with a hash large enough for this many entries, so that it does not have to grow while it is filled.
    ///
    /// Filling a hash of 100,000 entries takes a third of the time then. `maxelem` is raised when it is lower; a
    /// `hashsize` that was given is kept. Changes nothing in a set that is no hash.
    #[must_use]
    pub fn sized_for(mut self, entries: usize) -> Self {
        if self.kind.takes(CreateWord::Hashsize) {
            let entries = u32::try_from(entries).unwrap_or(u32::MAX);
            let buckets = (entries / 2).checked_next_power_of_two().unwrap_or(1 << 31);
            self.options.hashsize.get_or_insert(buckets.max(1024));
            if entries > self.options.maxelem.unwrap_or(65_536) {
                self.options.maxelem = Some(entries);
            }
        }
        self
    }

    /// The oldest revision of the type that has all the options, and the option that needs it.
    pub(crate) fn needs(&self) -> Option<(u8, &'static str)> {
        let options = &self.options;
        let plain_netmask = self.kind == SetType::HashIp || self.kind == SetType::BitmapIp;
        [
            (options.counters, Feature::Counters),
            (options.comment, Feature::Comment),
            (options.skbinfo, Feature::Skbinfo),
            (options.forceadd, Feature::Forceadd),
            (options.bucketsize.is_some() || options.initval.is_some(), Feature::Bucketsize),
            (options.bitmask.is_some() || (options.netmask.is_some() && !plain_netmask), Feature::Masks),
        ]
        .into_iter()
        .filter(|(used, _)| *used)
        .filter_map(|(_, feature)| Some((self.kind.since(feature)?, feature.option())))
        .max_by_key(|(revision, _)| *revision)
    }
}

impl CreateOptions {
    fn check(&self, kind: SetType, family: Family) -> Result<(), Reason> {
        for (given, word) in [
            (self.hashsize.is_some(), CreateWord::Hashsize),
            (self.maxelem.is_some(), CreateWord::Maxelem),
            (self.bucketsize.is_some(), CreateWord::Bucketsize),
            (self.initval.is_some(), CreateWord::Initval),
            (self.netmask.is_some(), CreateWord::Netmask),
            (self.bitmask.is_some(), CreateWord::Bitmask),
            (self.markmask.is_some(), CreateWord::Markmask),
            (self.timeout.is_some(), CreateWord::Timeout),
            (self.counters, CreateWord::Counters),
            (self.comment, CreateWord::Comment),
            (self.skbinfo, CreateWord::Skbinfo),
            (self.forceadd, CreateWord::Forceadd),
            (self.range.is_some(), CreateWord::Range),
            (self.size.is_some(), CreateWord::Size),
        ] {
            if given && !kind.takes(word) {
                return Err(Reason::NoSuchOption { option: word.name(), kind, command: "create" });
            }
        }
        self.check_values(kind, family)
    }

    fn check_values(&self, kind: SetType, family: Family) -> Result<(), Reason> {
        let limit = |value: u32, min: u64, max: u64| {
            if (min..=max).contains(&u64::from(value)) {
                Ok(())
            } else {
                Err(Reason::OutOfRange { text: value.to_string(), min, max })
            }
        };
        if let Some(netmask) = self.netmask {
            limit(netmask.into(), 1, family.bits().into())?;
        }
        if let Some(timeout) = self.timeout {
            limit(timeout, 0, crate::EntryOptions::MAX_TIMEOUT.into())?;
        }
        if self.netmask.is_some() && self.bitmask.is_some() {
            return Err(Reason::Exclusive("netmask", "bitmask"));
        }
        if let Some(bitmask) = self.bitmask.filter(|mask| Family::of(*mask) != family) {
            return Err(Reason::Bitmask { text: bitmask.to_string(), family });
        }
        self.check_range(kind, family)
    }

    fn check_range(&self, kind: SetType, family: Family) -> Result<(), Reason> {
        match (&self.range, kind) {
            (None, _) if kind.takes(CreateWord::Range) => Err(Reason::MissingOption("range")),
            (Some(Range::Ports(..)), SetType::BitmapPort) => Ok(()),
            (Some(Range::Addresses(addresses)), SetType::BitmapIp | SetType::BitmapIpMac) => {
                match addresses {
                    Addresses::Host(_) => Err(Reason::NeedsRange(addresses.to_string())),
                    _ if addresses.family() != Some(family) => {
                        Err(Reason::Address { text: addresses.to_string(), family })
                    }
                    Addresses::Network { prefix, .. } if *prefix > family.bits() => Err(Reason::OutOfRange {
                        text: prefix.to_string(),
                        min: 0,
                        max: family.bits().into(),
                    }),
                    _ => Ok(()),
                }
            }
            (Some(_), _) => Err(Reason::NoSuchOption { option: "range", kind, command: "create" }),
            (None, _) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name() -> SetName {
        SetName::new("s").unwrap()
    }

    #[test]
    fn a_type_takes_its_own_options_only() {
        let all = CreateOptions {
            timeout: Some(1),
            counters: true,
            comment: true,
            skbinfo: true,
            ..CreateOptions::default()
        };
        for kind in SetType::ALL {
            let range = match kind {
                SetType::BitmapPort => Some(Range::Ports(1, 2)),
                SetType::BitmapIp | SetType::BitmapIpMac => {
                    Some(Range::Addresses(([10, 0, 0, 0].into(), 24).into()))
                }
                _ => None,
            };
            let options = CreateOptions { range, ..all.clone() };
            assert!(SetSpec::new(name(), kind, kind.default_family(), options.clone()).is_ok(), "{kind}");
            let markmask = CreateOptions { markmask: Some(1), ..options };
            assert_eq!(
                SetSpec::new(name(), kind, kind.default_family(), markmask).is_ok(),
                kind == SetType::HashIpMark
            );
        }
    }

    #[test]
    fn a_hash_is_sized_for_what_goes_into_it() {
        let spec = SetSpec::new(name(), SetType::HashIp, Family::Inet, CreateOptions::default()).unwrap();
        assert_eq!(
            spec.clone().sized_for(100_000).to_string(),
            "create s hash:ip family inet hashsize 65536 maxelem 100000"
        );
        assert_eq!(spec.sized_for(10).to_string(), "create s hash:ip family inet hashsize 1024");
        let list =
            SetSpec::new(name(), SetType::ListSet, Family::Unspecified, CreateOptions::default()).unwrap();
        assert_eq!(list.clone().sized_for(100_000), list);
    }

    #[test]
    fn the_option_that_needs_the_newest_kernel_is_named() {
        let options = CreateOptions {
            counters: true,
            bitmask: Some([255, 0, 0, 0].into()),
            ..CreateOptions::default()
        };
        let spec = SetSpec::new(name(), SetType::HashIp, Family::Inet, options).unwrap();
        assert_eq!(spec.needs(), Some((6, "netmask or bitmask")));
    }
}
