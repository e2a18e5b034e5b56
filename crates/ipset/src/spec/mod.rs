//! The specification of a set: its name, type, family and options.

pub(crate) mod parse;
mod print;
pub(crate) mod wire;

use std::net::IpAddr;

use crate::set_type::{CreateWord, Feature};
use crate::{Addresses, Family, Reason, SetName, SetType};

pub(crate) use print::each_option;

/// The specification of a wanted set: the arguments of `create`.
///
/// An existing set is described by a [`SetInfo`](crate::SetInfo).
///
/// ```
/// use sluicegate_ipset::{CreateOptions, Family, SetName, SetSpec, SetType};
///
/// let mut options = CreateOptions::default();
/// options.maxelem = Some(100_000);
/// options.timeout = Some(3600);
/// let spec = SetSpec::new(SetName::new("allowed")?, SetType::HashNet, Family::Ipv6, options)?;
/// assert_eq!(spec.to_string(), "create allowed hash:net family inet6 maxelem 100000 timeout 3600");
///
/// // An option that the type does not have is an error.
/// let mut options = CreateOptions::default();
/// options.markmask = Some(1);
/// assert!(SetSpec::new(SetName::new("m")?, SetType::HashNet, Family::Ipv4, options).is_err());
/// # Ok::<(), sluicegate_ipset::Reason>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetSpec {
    name: SetName,
    kind: SetType,
    family: Family,
    options: CreateOptions,
}

/// The options of `create`. The kernel chooses those that are not given.
///
/// ```
/// use sluicegate_ipset::{CreateOptions, Family, SetName, SetSpec, SetType};
///
/// let mut options = CreateOptions::default();
/// (options.timeout, options.counters) = (Some(600), true);
/// let spec = SetSpec::new(SetName::new("banned")?, SetType::HashIp, Family::Ipv4, options)?;
/// assert_eq!(spec.to_string(), "create banned hash:ip family inet timeout 600 counters");
/// # Ok::<(), sluicegate_ipset::Reason>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CreateOptions {
    /// The initial number of buckets of a hash, which the kernel rounds up to a power of two. The default is
    /// 1024.
    pub hashsize: Option<u32>,
    /// The maximum number of entries of a hash. The default is 65,536.
    pub maxelem: Option<u32>,
    /// The number of entries of a bucket above which the hash grows: even, 2 to 14. The default is 12.
    pub bucketsize: Option<u8>,
    /// The seed of the hash function. By default it is random.
    pub initval: Option<u32>,
    /// The prefix length of networks that are stored in place of addresses.
    pub netmask: Option<u8>,
    /// A mask that is applied to addresses, as `netmask`, but any mask.
    pub bitmask: Option<IpAddr>,
    /// The mask that is applied to marks, of `hash:ip,mark`.
    pub markmask: Option<u32>,
    /// The timeout in seconds of entries that are added without one; 0 means forever. Without this option,
    /// entries cannot have a timeout.
    pub timeout: Option<u32>,
    /// Whether the packets and bytes of each entry are counted.
    pub counters: bool,
    /// Whether entries may have comments.
    pub comment: bool,
    /// Whether entries may have a mark, a priority and a queue.
    pub skbinfo: bool,
    /// Whether a new entry replaces another when the hash is full.
    pub forceadd: bool,
    /// The range of a bitmap.
    pub range: Option<Range>,
    /// The number of entries of a `list:set`, which kernels have ignored since 2014 but report. The default
    /// is 8.
    pub size: Option<u32>,
}

/// The range of a bitmap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Range {
    /// The range of `bitmap:ip` and `bitmap:ip,mac`: a network or a range of IPv4 addresses.
    Addresses(Addresses),
    /// The range of `bitmap:port`.
    Ports(u16, u16),
}

impl SetSpec {
    /// Checks a specification.
    ///
    /// # Errors
    /// When the type does not have the family or one of the options, when one is out of range, or when a
    /// bitmap has no range.
    pub fn new(name: SetName, kind: SetType, family: Family, options: CreateOptions) -> Result<Self, Reason> {
        if !kind.families().contains(&family) {
            return Err(Reason::TypeFamily { kind, family });
        }
        options.check(kind, family)?;
        Ok(Self { name, kind, family, options })
    }

    /// Returns the set's name.
    #[must_use]
    pub fn name(&self) -> SetName {
        self.name
    }

    /// Returns the specification with another name.
    #[must_use]
    pub fn named(&self, name: SetName) -> Self {
        Self { name, ..self.clone() }
    }

    /// Returns the set's type.
    #[must_use]
    pub fn set_type(&self) -> SetType {
        self.kind
    }

    /// Returns the set's family.
    #[must_use]
    pub fn family(&self) -> Family {
        self.family
    }

    /// Returns the options.
    #[must_use]
    pub fn options(&self) -> &CreateOptions {
        &self.options
    }

    /// Returns the specification with a hash that is large enough for this number of entries, so that it does
    /// not have to grow while it is filled.
    ///
    /// This reduces the time to fill a hash of 100,000 entries to a third. A lower `maxelem` is raised; a
    /// given `hashsize` is kept. Sets of another method than hash are returned unchanged.
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

    /// Returns the oldest revision of the type that has all the options, and the option that needs it.
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
    fn a_type_accepts_its_own_options_only() {
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
    fn a_hash_is_sized_for_its_entries() {
        let spec = SetSpec::new(name(), SetType::HashIp, Family::Ipv4, CreateOptions::default()).unwrap();
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
        let spec = SetSpec::new(name(), SetType::HashIp, Family::Ipv4, options).unwrap();
        assert_eq!(spec.needs(), Some((6, "netmask or bitmask")));
    }
}
