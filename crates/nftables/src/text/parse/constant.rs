//! Constants by their type: the meaning of a word or a number where an address, a port or a state is
//! expected.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use sluicegate_netlink::text::byte_len;

use crate::check::constants::{largest, largest_result, odd_bits};
use crate::datatype::{DataType, Order};
use crate::key::{EtherAddr, Part};
use crate::name::InterfaceName;
use crate::sort;
use crate::text::parse::options::ParseOptions;
use crate::text::parse::services::{port_of, protocol_alias, services};
use crate::text::parse::suggest::nearest;
use crate::text::parse::time;
use crate::tree::{Expression, Value};

/// The type that the context gives to a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Typed {
    pub(crate) part: Part,
    /// Length of the field in bits, where it is not a multiple of 8.
    pub(crate) bits: Option<u16>,
    /// Whether the numbers are the subtypes of MPTCP, which have names in later versions of nft.
    pub(crate) is_mptcp_subtype: bool,
    /// The largest result of what is calculated modulo a number.
    pub(crate) limit: Option<u64>,
}

/// A constant that is not of its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wrong {
    /// What was expected.
    pub(crate) expected: String,
    /// The probably intended word.
    pub(crate) meant: Option<String>,
}

impl From<Part> for Typed {
    fn from(part: Part) -> Self {
        let bits = match part {
            Part::Type(of) if !of.bits().is_multiple_of(8) => Some(of.bits()),
            _ => None,
        };
        Self { part, bits, is_mptcp_subtype: false, limit: None }
    }
}

impl From<DataType> for Typed {
    fn from(of: DataType) -> Self {
        Part::Type(of).into()
    }
}

impl Typed {
    /// The type that an expression gives to the value it is compared with.
    pub(crate) fn of(expression: &Expression) -> Option<Self> {
        let typed = Self::from(expression.part()?);
        let is_mptcp_subtype =
            matches!(expression, Expression::Exthdr(of) if of.to_string() == "tcp option mptcp subtype");
        Some(Self {
            bits: odd_bits(expression),
            limit: largest_result(expression),
            is_mptcp_subtype,
            ..typed
        })
    }

    /// The same where nft does not compare with the results that there may be: in concatenations and maps.
    pub(crate) fn without_limit(self) -> Self {
        Self { limit: None, ..self }
    }

    /// The types of a concatenation, from those of its parts. A part of which the type is not known leaves all
    /// others without their place.
    pub(crate) fn concatenated(parts: &[Vec<Self>]) -> Vec<Self> {
        match parts.iter().any(Vec::is_empty) {
            true => Vec::new(),
            false => parts.iter().flatten().copied().map(Self::without_limit).collect(),
        }
    }

    pub(crate) fn data_type(self) -> DataType {
        self.part.data_type()
    }

    /// Bits of a value.
    pub(crate) fn width(self) -> usize {
        self.bits.map_or(self.part.bytes() * 8, usize::from)
    }

    fn largest(self) -> u64 {
        if let Some(limit) = self.limit.or_else(|| largest(self.data_type())) {
            return limit;
        }
        match u32::try_from(self.width()) {
            Ok(bits @ 0..64) => (1 << bits) - 1,
            _ => u64::MAX,
        }
    }

    fn wrong(self, meant: Option<&str>) -> Wrong {
        Wrong { expected: self.wanted(), meant: meant.map(str::to_owned) }
    }

    /// A description of the expected constant, for error messages.
    pub(crate) fn wanted(self) -> String {
        match self.data_type() {
            DataType::INET_SERVICE => "a port or the name of a service".to_owned(),
            DataType::INET_PROTO => "a protocol".to_owned(),
            DataType::IPV4_ADDR => "an IPv4 address".to_owned(),
            DataType::IPV6_ADDR => "an IPv6 address".to_owned(),
            DataType::ETHER_ADDR | DataType::LL_ADDR => "a link-layer address".to_owned(),
            DataType::IFACE_INDEX => "an interface that exists".to_owned(),
            DataType::IFNAME => "the name of an interface, of 15 bytes at most".to_owned(),
            DataType::STRING => "a text of 15 bytes at most".to_owned(),
            DataType::TIME => "a time like `1h30m`".to_owned(),
            DataType::DATE => "a date like \"2026-01-31 17:00\"".to_owned(),
            DataType::HOUR => "an hour like \"17:00\"".to_owned(),
            DataType::MARK => "a mark".to_owned(),
            DataType::UID => "a user".to_owned(),
            DataType::GID => "a group".to_owned(),
            DataType::CLASSID => "a class like `1:2`".to_owned(),
            DataType::CGROUPSV2 => "a control group that exists".to_owned(),
            DataType::CT_LABEL => "the number of a label, 0 to 127".to_owned(),
            DataType::VERDICT => "a verdict".to_owned(),
            DataType::INTEGER | DataType::BITMASK => match self.largest() {
                u64::MAX => format!("a number of {} bits", self.width()),
                largest => format!("a number from 0 to {largest}"),
            },
            of => format!("a value of type {of}"),
        }
    }
}

/// The value of a word, quoted or not, as a constant of a type.
pub(crate) fn constant(text: &str, of: Typed, options: &ParseOptions<'_>) -> Result<Value, Wrong> {
    let data_type = of.data_type();
    let known = |text: &str| options.symbols.get(&(data_type, text.to_owned())).copied();
    let named = || if options.symbols.is_empty() { None } else { known(text) };
    let value = match data_type {
        DataType::IPV4_ADDR => match text.parse::<Ipv4Addr>() {
            Ok(address) => Some(address.into()),
            Err(_) => host(text, options, IpAddr::is_ipv4)?,
        },
        DataType::IPV6_ADDR => match text.parse::<Ipv6Addr>() {
            Ok(address) => Some(address.into()),
            Err(_) => host(text, options, IpAddr::is_ipv6)?,
        },
        DataType::ETHER_ADDR | DataType::LL_ADDR => {
            // A number, too, is bytes in hexadecimal.
            return short_link_layer(text).map(Value::Ether).ok_or_else(|| of.wrong(None));
        }
        DataType::IFNAME | DataType::STRING => return string(text, of),
        DataType::IFACE_INDEX => options.interfaces.get(text).map(|index| Value::Number((*index).into())),
        DataType::INET_SERVICE => named().or_else(|| port_of(text).map(u64::from)).map(Value::Number),
        DataType::INET_PROTO => named()
            .or_else(|| data_type.value_of(text))
            .or_else(|| protocol_alias(text).map(u64::from))
            .map(Value::Number),
        DataType::TIME => {
            time::duration(text).and_then(|time| u64::try_from(time.as_millis()).ok()).map(Value::Number)
        }
        DataType::DATE => time::date(text, &options.time_zone).map(Value::Number),
        DataType::HOUR => time::hour(text, &options.time_zone).map(Value::Number),
        DataType::CLASSID => class(text).map(Value::Number),
        DataType::CT_LABEL => named().and_then(label),
        DataType::UID | DataType::GID => named().or_else(|| (text == "root").then_some(0)).map(Value::Number),
        DataType::DEVGROUP => named().or_else(|| (text == "default").then_some(0)).map(Value::Number),
        _ if of.is_mptcp_subtype => {
            let at = MPTCP_SUBTYPES.iter().position(|name| *name == text);
            at.and_then(|at| u64::try_from(at).ok()).map(Value::Number)
        }
        _ => named().or_else(|| data_type.value_of(text)).map(Value::Number),
    };
    match value {
        Some(value) => Ok(value),
        None => match numeral(text, data_type) {
            Some(Ok(value)) => number(value, of),
            Some(Err(digits)) => wide(digits, of),
            None => Err(of.wrong(suggestion(text, of, options).as_deref())),
        },
    }
}

/// The value of a number as a constant of a type.
pub(crate) fn number(number: u64, of: Typed) -> Result<Value, Wrong> {
    let fits = |fits: bool| if fits { Ok(Value::Number(number)) } else { Err(of.wrong(None)) };
    match of.data_type() {
        DataType::IPV4_ADDR => match u32::try_from(number) {
            Ok(number) => Ok(Ipv4Addr::from(number).into()),
            Err(_) => Err(of.wrong(None)),
        },
        // `11` is a byte in hexadecimal, as in an address.
        DataType::ETHER_ADDR | DataType::LL_ADDR => {
            short_link_layer(&number.to_string()).map(Value::Ether).ok_or_else(|| of.wrong(None))
        }
        DataType::IPV6_ADDR | DataType::VERDICT => Err(of.wrong(None)),
        DataType::IFNAME | DataType::STRING => string(&number.to_string(), of),
        DataType::CT_LABEL => label(number).ok_or_else(|| of.wrong(None)),
        DataType::TIME => number
            .checked_mul(1000)
            .filter(|millis| *millis <= of.largest())
            .map(Value::Number)
            .ok_or_else(|| of.wrong(None)),
        DataType::DATE => number.checked_mul(1_000_000_000).map(Value::Number).ok_or_else(|| of.wrong(None)),
        _ => fits(number <= of.largest()),
    }
}

/// A constant of unknown type: an address, recognised by its form, or nothing.
pub(crate) fn untyped(text: &str) -> Option<Value> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Some(address.into());
    }
    if text.split(':').count() == 6 {
        return link_layer(text).map(Value::Ether);
    }
    match digits(text) {
        Some(Ok(number)) => Some(Value::Number(number)),
        _ => None,
    }
}

fn string(text: &str, of: Typed) -> Result<Value, Wrong> {
    let name = InterfaceName::from_script(text);
    let length = byte_len(&name.literal());
    if text.is_empty() || text == "*" || length > 15 || text.contains('\0') {
        return Err(of.wrong(None));
    }
    Ok(if of.data_type() == DataType::IFNAME { Value::Interface(name) } else { Value::Text(name) })
}

/// The address of a host, which nft refuses where there are several.
fn host(text: &str, options: &ParseOptions<'_>, of: fn(&IpAddr) -> bool) -> Result<Option<Value>, Wrong> {
    // A number may be an address, but is no host.
    let Some(hosts) = options.hosts.filter(|_| digits(text).is_none()) else { return Ok(None) };
    let mut addresses: Vec<_> = hosts(text).into_iter().filter(of).collect();
    sort::by(&mut addresses, Ord::cmp);
    addresses.dedup();
    match addresses.len() {
        0 | 1 => Ok(addresses.first().copied().map(Value::Address)),
        count => Err(Wrong { expected: format!("a host with one address, not {count}"), meant: None }),
    }
}

fn link_layer(text: &str) -> Option<EtherAddr> {
    let mut bytes = [0; 6];
    let mut groups = text.split(':');
    for byte in &mut bytes {
        let group = groups.next().filter(|group| matches!(group.len(), 1 | 2))?;
        *byte = u8::from_str_radix(group, 16).ok().filter(|_| !group.starts_with('+'))?;
    }
    groups.next().is_none().then_some(EtherAddr(bytes))
}

/// The last bytes of a link-layer address, of which those before are zeros: `11` is 00:00:00:00:00:11.
fn short_link_layer(text: &str) -> Option<EtherAddr> {
    let groups = text.split(':').count().min(6);
    link_layer(&format!("{}{text}", "0:".repeat(6 - groups)))
}

fn class(text: &str) -> Option<u64> {
    let hex = |text: &str| match text.strip_prefix("0x").unwrap_or(text) {
        "" => Some(0),
        text => u16::from_str_radix(text, 16).ok().filter(|_| !text.starts_with('+')),
    };
    match text {
        "none" => Some(0),
        "root" => Some(0xffff_ffff),
        _ => {
            let (major, minor) = text.split_once(':')?;
            Some(u64::from(hex(major)?) << 16 | u64::from(hex(minor)?))
        }
    }
}

/// The mask of one label, 128 bits in the host's order.
fn label(bit: u64) -> Option<Value> {
    let bit = u32::try_from(bit).ok().filter(|bit| *bit < 128)?;
    Some(match bit {
        0..64 => Value::Number(1 << bit),
        _ => Value::Bytes((1_u128 << bit).to_ne_bytes().into()),
    })
}

/// The number that a text is; its digits and their base where it is too large.
fn digits(text: &str) -> Option<Result<u64, (&str, u32)>> {
    let (digits, base) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => (hex, 16),
        // A leading zero means octal: 08 is no number.
        None if text.len() > 1 && text.starts_with('0') => (text, 8),
        None => (text, 10),
    };
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(base)) {
        return None;
    }
    Some(u64::from_str_radix(digits, base).map_err(|_| (digits, base)))
}

/// The number that a word is as a constant of a type: nft 1.0.6 reads those of some types as decimal digits alone,
/// also after a leading zero, and of some first as other numbers.
fn numeral(text: &str, of: DataType) -> Option<Result<u64, (&str, u32)>> {
    let decimal = || {
        let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        is_number.then(|| text.parse().map_err(|_| (text, 10)))
    };
    match of {
        DataType::UID | DataType::IFACE_INDEX | DataType::DATE | DataType::HOUR => decimal(),
        DataType::INET_SERVICE => digits(text).or_else(decimal),
        _ => digits(text),
    }
}

/// A number of more than 64 bits.
fn wide((digits, base): (&str, u32), of: Typed) -> Result<Value, Wrong> {
    let Part::Integer { bytes, order } = of.part else { return Err(of.wrong(None)) };
    let value = u128::from_str_radix(digits, base).map_err(|_| of.wrong(None))?;
    if of.width() < 128 && value >> of.width() != 0 {
        return Err(of.wrong(None));
    }
    let mut bytes = value.to_be_bytes().into_iter().skip(16 - usize::from(bytes.min(16))).collect::<Vec<_>>();
    if order == Order::Host && cfg!(target_endian = "little") {
        bytes.reverse();
    }
    Ok(Value::Bytes(bytes.into()))
}

fn suggestion(text: &str, of: Typed, options: &ParseOptions<'_>) -> Option<String> {
    let data_type = of.data_type();
    let mut names: Vec<&str> =
        options.symbols.keys().filter(|(of, _)| *of == data_type).map(|(_, name)| name.as_str()).collect();
    match data_type {
        DataType::INET_SERVICE => services().for_each(|name| names.push(name)),
        DataType::IFACE_INDEX => names.extend(options.interfaces.keys().map(String::as_str)),
        _ => data_type.symbols().iter().for_each(|(name, _)| names.push(name)),
    }
    nearest(text, names).map(str::to_owned)
}

/// `MPTCPOPT_*`, RFC 8684.
const MPTCP_SUBTYPES: &[&str] = &[
    "mp-capable",
    "mp-join",
    "dss",
    "add-addr",
    "remove-addr",
    "mp-prio",
    "mp-fail",
    "mp-fastclose",
    "mp-tcprst",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, of: impl Into<Typed>) -> Result<Value, String> {
        let options = ParseOptions::default();
        constant(text, of.into(), &options).map_err(|wrong| match wrong.meant {
            Some(meant) => format!("{}; {meant}?", wrong.expected),
            None => wrong.expected,
        })
    }

    #[test]
    fn a_word_is_what_its_type_says() {
        let number = |number| Ok(Value::Number(number));
        assert_eq!(read("ssh", DataType::INET_SERVICE), number(22));
        assert_eq!(read("0x16", DataType::INET_SERVICE), number(22));
        assert_eq!(read("08", DataType::INET_SERVICE), number(8));
        assert_eq!(read("icmpv6", DataType::INET_PROTO), number(58));
        assert_eq!(read("TCP", DataType::INET_PROTO), number(6));
        assert_eq!(read("established", DataType::CT_STATE), number(2));
        assert_eq!(read("1:ff", DataType::CLASSID), number(0x1_00ff));
        assert_eq!(read("root", DataType::CLASSID), number(0xffff_ffff));
        assert_eq!(read("Wednesday", DataType::DAY), number(3));
        assert_eq!(read("1h", DataType::TIME), number(3_600_000));
        assert_eq!(read("17:00", DataType::HOUR), number(61_200));
        assert_eq!(read("5", DataType::CT_LABEL), number(32));
        let high = Value::Bytes((1_u128 << 100).to_ne_bytes().into());
        assert_eq!(read("100", DataType::CT_LABEL), Ok(high));
        assert_eq!(read("10.0.0.1", DataType::IPV4_ADDR), Ok(Ipv4Addr::new(10, 0, 0, 1).into()));
        assert_eq!(read("1", DataType::IPV4_ADDR), Ok(Ipv4Addr::new(0, 0, 0, 1).into()));
        assert_eq!(read("1:2:3:4:5:a", DataType::ETHER_ADDR), Ok(EtherAddr([1, 2, 3, 4, 5, 10]).into()));
        assert_eq!(read("7", DataType::IFNAME), Ok(InterfaceName::from_kernel("7").into()));
        let wide = Part::Integer { bytes: 16, order: Order::Network };
        let bytes = (1_u128 << 64).to_be_bytes().to_vec();
        assert_eq!(read("0x10000000000000000", wide), Ok(Value::Bytes(bytes.into())));
    }

    #[test]
    fn an_error_says_what_was_expected_and_what_was_meant() {
        let wrong = |text, of: DataType| read(text, of).unwrap_err();
        assert_eq!(wrong("shh", DataType::INET_SERVICE), "a port or the name of a service; ssh?");
        assert_eq!(wrong("65536", DataType::INET_SERVICE), "a port or the name of a service");
        assert_eq!(wrong("established,", DataType::CT_STATE), "a value of type ct_state; established?");
        assert_eq!(wrong("10.0.0.256", DataType::IPV4_ADDR), "an IPv4 address");
        assert_eq!(wrong("eth0", DataType::IFACE_INDEX), "an interface that exists");
        assert_eq!(
            wrong("abcdefghijklmnop", DataType::IFNAME),
            "the name of an interface, of 15 bytes at most"
        );
        assert_eq!(wrong("128", DataType::CT_LABEL), "the number of a label, 0 to 127");
        let field = Typed::of(&crate::tree::Payload::IP_HDRLENGTH.into()).unwrap();
        assert_eq!(read("16", field).unwrap_err(), "a number from 0 to 15");
        assert_eq!(read("15", field), Ok(Value::Number(15)));
    }

    #[test]
    fn without_a_type_an_address_is_told_by_its_form() {
        assert_eq!(untyped("::1"), Some(Ipv6Addr::LOCALHOST.into()));
        assert_eq!(untyped("7"), Some(Value::Number(7)));
        assert_eq!(untyped("1:2:3:4:5:6"), Some(EtherAddr([1, 2, 3, 4, 5, 6]).into()));
        assert_eq!(untyped("tcp"), None);
    }
}
