//! Options for listings: what they contain, and names.

use std::collections::BTreeMap;

use crate::datatype::DataType;
use crate::name::{InterfaceName, Name};
use crate::time_zone::TimeZone;

/// Options for listings: those of nft, and what nft looks up on the machine (names of interfaces, names of
/// numbers in `/etc/iproute2`, the time zone).
///
/// Printing a listing does no input or output. Without options, [`TableContent`](crate::TableContent) prints
/// interfaces as numbers (which nft reads as well as names) and times in UTC; with options, use
/// [`TableContent::display`](crate::TableContent::display). [`read::list_options`](crate::read::list_options)
/// looks names up as nft does.
///
/// ```
/// use sluicegate_nftables::{DataType, InterfaceName, ListOptions, TimeZone};
///
/// let mut options = ListOptions::default();
/// options.interfaces.insert(1, InterfaceName::new("lo")?);
/// options.symbols.insert((DataType::DEVGROUP, 7), "uplinks".parse()?);
/// options.time_zone = Some(TimeZone::fixed(2 * 60 * 60));
/// # Ok::<(), sluicegate_nftables::NameError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListOptions {
    /// Prints state: counters, the used part of a quota, the remaining lifetime of elements. nft does so
    /// without `-s`.
    pub state: bool,
    /// Prints handles, as `nft -a` does.
    pub handles: bool,
    /// Names of interfaces by index: `iif "lo"`, `fwd to "eth0"`, elements of type `iface_index`.
    pub interfaces: BTreeMap<u32, InterfaceName>,
    /// Names of numbers by type, which are printed in quotes: [`DataType::MARK`], [`DataType::REALM`],
    /// [`DataType::DEVGROUP`].
    pub symbols: BTreeMap<(DataType, u64), Name>,
    /// The time zone of `meta time` and `meta hour`.
    ///
    /// With `None`, times print as numbers (seconds since 1970, seconds since midnight UTC), which nft reads
    /// in the same way in every time zone. Transactions, rules and statements always print them so, because a
    /// script may be read anywhere.
    pub time_zone: Option<TimeZone>,
    /// Prints priorities as numbers, as `nft -y` does.
    pub numeric_priority: bool,
    /// Prints transport protocols as numbers, as `nft -p` does.
    pub numeric_protocol: bool,
    /// Prints lengths of time in seconds, as `nft -T` does. Dates and times of the day are printed all the same.
    pub numeric_time: bool,
    /// Prints all other values as numbers as well, as `nft -n` does.
    pub numeric_symbols: bool,
}

impl ListOptions {
    /// The options for scripts, whose meaning does not depend on the machine.
    pub(crate) const SCRIPT: Self = Self {
        state: false,
        handles: false,
        interfaces: BTreeMap::new(),
        symbols: BTreeMap::new(),
        time_zone: None,
        numeric_priority: false,
        numeric_protocol: false,
        numeric_time: false,
        numeric_symbols: false,
    };
}

/// Prints neither state nor handles, uses no names of the machine, and prints times in UTC.
impl Default for ListOptions {
    fn default() -> Self {
        Self { time_zone: Some(TimeZone::UTC), ..Self::SCRIPT }
    }
}
