//! Options of the parser: names of the machine, included texts, and sets in the kernel.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::net::IpAddr;

use crate::datatype::DataType;
use crate::name::InterfaceName;
use crate::object::{Set, SetId};
use crate::text::parse::source::Included;
use crate::time_zone::TimeZone;
use crate::wording::ListOptions;

/// Everything that a text may refer to without containing it: names that nft reads from the machine, files,
/// and sets that exist in the kernel.
///
/// The parser does no input or output itself. Names of services, protocols and all constants of nft's types
/// are built in; everything else is given here. [`ListOptions`] from
/// [`read::list_options`](crate::read::list_options) contain interfaces, marks and groups:
/// `ParseOptions::from(&options)`.
///
/// ```
/// use sluicegate_nftables::lang::parse::{Included, ParseOptions};
/// use sluicegate_nftables::{DataType, Transaction};
///
/// let include = |path: &str| match path {
///     "ports.nft" => Ok(vec![Included { name: path.to_owned(), text: "define web = { 80, 443 }".to_owned() }]),
///     _ => Err(Box::<dyn std::error::Error>::from("no such file")),
/// };
/// let mut options = ParseOptions::default();
/// options.include = Some(&include);
/// options.interfaces.insert("lo".to_owned(), 1);
/// options.symbols.insert((DataType::MARK, "vpn".to_owned()), 7);
/// let script = "include \"ports.nft\"\nadd rule ip t c iif lo tcp dport $web meta mark set vpn";
/// let transaction = Transaction::parse_with(script, &options)?;
/// assert_eq!(
///     transaction.to_string(),
///     "add rule ip t c iif 1 tcp dport { 80, 443 } meta mark set 0x00000007\n"
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct ParseOptions<'a> {
    /// The indices of interfaces by name: `iif "lo"`, `fwd to "eth0"`.
    pub interfaces: BTreeMap<String, u32>,
    /// Numbers by name, in addition to the built-in ones: [`DataType::MARK`], [`DataType::REALM`],
    /// [`DataType::DEVGROUP`], [`DataType::UID`], [`DataType::GID`], [`DataType::CT_LABEL`] (the number of
    /// the bit), [`DataType::CGROUPSV2`], and services and protocols of the machine.
    pub symbols: BTreeMap<(DataType, String), u64>,
    /// Returns the addresses of a host: `ip saddr example.org`. As nft, which queries the name service, the
    /// parser refuses a host that has several addresses of the family.
    pub hosts: Option<&'a Hosts<'a>>,
    /// The time zone of dates and hours.
    pub time_zone: TimeZone,
    /// Variables that are defined before the script starts, as nft's `-D` does: names and values.
    pub defines: Vec<(String, String)>,
    /// Returns the texts for the path of an `include`; a pattern may match any number of texts.
    pub include: Option<&'a Include<'a>>,
    /// Returns a set or map that the text uses and does not add itself, by table and name; the text may not
    /// show which of the two it is. Elements of a set can only be parsed if its type is known.
    pub sets: Option<&'a Sets<'a>>,
    /// The number of mistakes after which the parser stops.
    pub max_mistakes: usize,
}

/// Returns the texts that match a path or a pattern, or why they cannot be read.
pub type Include<'a> = dyn Fn(&str) -> Result<Vec<Included>, Box<dyn Error>> + 'a;

/// Returns the addresses of a host by its name; none if it is not known.
pub type Hosts<'a> = dyn Fn(&str) -> Vec<IpAddr> + 'a;

/// Returns a set or map that is in the kernel, or `None`.
pub type Sets<'a> = dyn Fn(&SetId) -> Option<Set> + 'a;

impl Default for ParseOptions<'_> {
    fn default() -> Self {
        Self {
            interfaces: BTreeMap::new(),
            symbols: BTreeMap::new(),
            hosts: None,
            time_zone: TimeZone::UTC,
            defines: Vec::new(),
            include: None,
            sets: None,
            max_mistakes: 20,
        }
    }
}

/// Converts the names and the time zone of listing options.
impl From<&ListOptions> for ParseOptions<'_> {
    fn from(list: &ListOptions) -> Self {
        let name = |name: &InterfaceName| name.as_str().to_owned();
        let mut options = Self { time_zone: list.time_zone.clone().unwrap_or_default(), ..Self::default() };
        // Not collected: that compiles a sort for each map.
        for (index, interface) in &list.interfaces {
            options.interfaces.insert(name(interface), *index);
        }
        for ((of, number), name) in &list.symbols {
            options.symbols.insert((*of, name.as_str().to_owned()), *number);
        }
        options
    }
}

impl fmt::Debug for ParseOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParseOptions")
            .field("interfaces", &self.interfaces)
            .field("symbols", &self.symbols)
            .field("hosts", &self.hosts.is_some())
            .field("time_zone", &self.time_zone)
            .field("defines", &self.defines)
            .field("include", &self.include.is_some())
            .field("sets", &self.sets.is_some())
            .field("max_mistakes", &self.max_mistakes)
            .finish()
    }
}
