//! What a listing says, and by which names.

use std::collections::BTreeMap;

use crate::datatype::DataType;
use crate::name::{InterfaceName, Name};

/// What a listing says: nft's options, and what nft asks the machine for when it lists (names of interfaces, names that `/etc/iproute2` gives to
/// numbers, the time zone).
///
/// A listing here does no input or output by itself. [`TableContent`](crate::TableContent) prints interfaces as numbers (which nft reads as
/// well as names) and times in UTC, until it is told otherwise ([`TableContent::display`](crate::TableContent::display)). [`read::machine`](crate::read::machine) asks as nft does.
///
/// ```
/// use sluicegate_nftables::{DataType, InterfaceName, ListOptions};
///
/// let mut options = ListOptions::default();
/// options.interfaces.insert(1, InterfaceName::new("lo")?);
/// options.symbols.insert((DataType::DEVGROUP, 7), "uplinks".parse()?);
/// options.utc_offset = Some(2 * 60 * 60);
/// # Ok::<(), sluicegate_nftables::NameError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListOptions {
    /// Says what packets and time have made of it: counts, what is used of a quota, how long an element stays. nft does unless it is run with
    /// `-s`.
    pub state: bool,
    /// Says handles, as `nft -a` does.
    pub handles: bool,
    /// Names of interfaces by index: `iif "lo"`, `fwd to "eth0"`, elements of type `iface_index`.
    pub interfaces: BTreeMap<u32, InterfaceName>,
    /// Names of numbers of a type, which are shown in quotes: [`DataType::MARK`], [`DataType::REALM`], [`DataType::DEVGROUP`].
    pub symbols: BTreeMap<(DataType, u64), Name>,
    /// Seconds that local time is ahead of UTC, for `meta time` and `meta hour`: 7200 in the time zone that POSIX calls `UTC-2`. nft takes
    /// the offset of each date by itself; this is one for all.
    ///
    /// `None` prints numbers (seconds since 1970, seconds since midnight UTC), which nft reads alike in every time zone. So do transactions, rules and
    /// statements when they are printed, because a script does not know who will read it.
    pub utc_offset: Option<i32>,
}

impl ListOptions {
    /// What a script has to say, to mean the same everywhere.
    pub(crate) const SCRIPT: Self = Self {
        state: false,
        handles: false,
        interfaces: BTreeMap::new(),
        symbols: BTreeMap::new(),
        utc_offset: None,
    };
}

/// Neither state nor handles, nothing known of the machine, and times in UTC.
impl Default for ListOptions {
    fn default() -> Self {
        Self { utc_offset: Some(0), ..Self::SCRIPT }
    }
}
