//! Values of options: which words are valid, and how iptables-save prints them.

mod address;
pub(crate) mod lists;
mod named;
mod number;
mod packed;
mod time;

use std::borrow::Cow;

use crate::RuleFault;
use crate::encoding::{byte_len, cut};
use crate::ext::Family;

pub(crate) use address::{Network, networks};
pub use named::{port_number, protocol_number};
pub(crate) use number::{integer, mark};
pub(crate) use packed::{bit_rate_text, hash_rate, seconds, string_bytes};
pub(crate) use time::seconds_of_day;

/// The kind of a value. Reading one gives its normal spelling.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Value {
    /// A number from .. to; also hexadecimal and octal, as strtoul(3) takes them.
    Int(u64, u64),
    /// A number up to the second, printed in hexadecimal with so many digits at least.
    Hex(usize, u64),
    U8,
    U16,
    U32,
    /// `a`, `a:b`, `:b`, `a:`, up to the number.
    Range(u64),
    /// The same, ending at or above its start.
    RisingRange(u64),
    /// The same, where `a` stands for `a:`.
    OpenRange(u64),
    /// From 0 to 1.
    Probability,
    /// Text of at most so many bytes.
    Text(usize),
    /// Text that iptables cuts to so many bytes.
    Cut(usize),
    /// Text of at most so many bytes, not empty.
    Name(usize),
    /// The same, not empty, as the name of a file: without `/`.
    FileName(usize),
    /// The name of a file that iptables cuts to so many bytes.
    CutFileName(usize),
    Mark,
    Tos,
    DscpClass,
    Class,
    LogLevel,
    Realm,
    Group,
    Protocol,
    ProtocolNumber,
    /// A port as getaddrinfo(3) takes it.
    ServicePort,
    ServicePortRange,
    PortRange,
    Ports,
    Host,
    HostMask,
    Addresses,
    AddressRange,
    PrefixLength,
    PrefixMask,
    Mac,
    Interface,
    InterfaceName,
    Owner,
    IcmpType,
    Icmp6Type,
    MhType,
    RejectWith,
    PacketType,
    TcpFlags,
    TcpOptions,
    SctpChunks,
    SegmentSize,
    OneOf(&'static [&'static str]),
    OneOfAnyCase(&'static [&'static str]),
    /// Comma-separated; printed in the order of the list.
    ListOf(&'static [&'static str]),
    /// The same, in small letters only.
    ExactListOf(&'static [&'static str]),
    /// The same, where a prefix of a name suffices.
    BeginningsOf(&'static [&'static str]),
    Rate,
    LimitRate,
    Burst,
    BitRate,
    RateTime,
    Seconds,
    LedDelay,
    DayTime,
    Date,
    WeekDays,
    MonthDays,
    SetName,
    SetFlags,
    Zone,
    ConnLabel,
    QueueRange,
    NatSource,
    NatDestination,
    NatPorts,
    HeaderOptions,
    HexString,
    Bytecode,
    U32Tests,
}

/// Outcome of reading a value: its normal spelling, or what was expected instead.
pub(crate) type Read = Result<String, Cow<'static, str>>;

impl Value {
    /// Returns whether iptables-save prints it as a string, in quotes unless it is plain, or as it is: the row of
    /// the option says which.
    pub(crate) fn is_text(self) -> bool {
        matches!(
            self,
            Self::Text(_)
                | Self::Cut(_)
                | Self::Name(_)
                | Self::FileName(_)
                | Self::CutFileName(_)
                | Self::HexString
                | Self::ConnLabel
                | Self::Bytecode
                | Self::U32Tests
        )
    }

    /// Returns the least and the greatest number, where it is a number in a range.
    pub(crate) fn range(self) -> Option<(u64, u64)> {
        Some(match self {
            Self::Int(from, to) => (from, to),
            Self::Hex(_, to) => (0, to),
            Self::U8 => (0, u8::MAX.into()),
            Self::U16 => (0, u16::MAX.into()),
            Self::U32 => (0, u32::MAX.into()),
            Self::Seconds => (1, u32::MAX.into()),
            _ => return None,
        })
    }

    /// Returns the kind of fault of a word that is not such a value.
    pub(crate) fn fault(self, extension: &'static str, option: &'static str, word: &str) -> RuleFault {
        match self {
            Self::PortRange | Self::Ports | Self::ServicePort | Self::ServicePortRange => {
                let is_port = |port: &str| port.is_empty() || named::port(port).is_ok();
                match word.split_once(':') {
                    Some((low, high)) if is_port(low) && is_port(high) => RuleFault::PortRange,
                    _ => RuleFault::Port { extension },
                }
            }
            Self::Protocol | Self::ProtocolNumber => RuleFault::Protocol,
            Self::RejectWith => RuleFault::RejectType,
            number if number.range().is_some() => RuleFault::OutOfRange { extension, option },
            _ => RuleFault::Value { extension, option },
        }
    }

    /// Reads a value: the normal spelling, or what was expected.
    pub(crate) fn read(self, word: &str, family: Family) -> Read {
        match self {
            Self::Int(from, to) => number::int(word, from, to),
            Self::Hex(digits, to) => number::hex(word, digits, to),
            Self::U8 => number::int(word, 0, u8::MAX.into()),
            Self::U16 => number::int(word, 0, u16::MAX.into()),
            Self::U32 => number::int(word, 0, u32::MAX.into()),
            Self::Range(to) => number::range(word, to),
            Self::RisingRange(to) => number::rising_range(word, to),
            Self::OpenRange(to) => number::open_range(word, to),
            Self::Probability => number::probability(word),
            Self::Text(most) => text(word, most),
            Self::Cut(most) => Ok(cut(word, most).into_owned()),
            Self::Name(_) | Self::FileName(_) | Self::CutFileName(_) if word.is_empty() => {
                Err("expected a name".into())
            }
            Self::FileName(_) | Self::CutFileName(_) if word.contains('/') => {
                Err("expected the name of a file, without `/`".into())
            }
            Self::CutFileName(most) => Ok(cut(word, most).into_owned()),
            Self::Name(most) | Self::FileName(most) => text(word, most),
            Self::Mark => mark(word).map(|(value, mask)| match mask {
                u32::MAX => format!("{value:#x}"),
                _ => format!("{value:#x}/{mask:#x}"),
            }),
            Self::Tos => named::tos(word),
            Self::DscpClass => named::dscp_class(word),
            Self::Class => packed::class(word),
            Self::LogLevel => named::log_level(word),
            Self::Realm | Self::Group => packed::masked(word),
            Self::Protocol => named::protocol(word),
            Self::ProtocolNumber => named::protocol_as_number(word),
            Self::ServicePort => named::service_port(word).map(|port| port.to_string()),
            Self::ServicePortRange => named::service_port_range(word),
            Self::PortRange => named::port_range(word),
            Self::Ports => named::ports(word),
            Self::Host => address::host(word, family),
            Self::HostMask => address::host_mask(word, family),
            Self::Addresses => address::addresses(word, family),
            Self::AddressRange => address::range(word, family),
            Self::PrefixLength => address::prefix_length(word, family),
            Self::PrefixMask => address::prefix_mask(word, family),
            Self::Mac => packed::mac(word),
            Self::Interface | Self::InterfaceName => packed::interface(word, matches!(self, Self::Interface)),
            Self::Owner => packed::owner(word),
            Self::IcmpType => named::icmp(word, crate::names::ICMP, "ICMP", true),
            Self::Icmp6Type => named::icmp(word, crate::names::ICMP6, "ICMPv6", false),
            Self::MhType => named::mh(word),
            Self::RejectWith => named::reject(word, family),
            Self::PacketType => named::packet_type(word),
            Self::TcpFlags => named::tcp_flags(word),
            Self::TcpOptions => named::tcp_options(word),
            Self::SctpChunks => packed::sctp_chunks(word),
            Self::SegmentSize => number::int(word, 0, if family == Family::Ipv4 { 65515 } else { 65495 }),
            Self::OneOf(words) => lists::one_of(word, words, false),
            Self::OneOfAnyCase(words) => lists::one_of(word, words, true),
            Self::ListOf(words) => lists::list_of(word, words, lists::Names::AnyCase),
            Self::ExactListOf(words) => lists::list_of(word, words, lists::Names::Exact),
            Self::BeginningsOf(words) => lists::list_of(word, words, lists::Names::Beginnings),
            Self::Rate => packed::rate(word),
            Self::LimitRate => packed::limit_rate(word),
            Self::Burst => packed::burst(word),
            Self::BitRate => packed::bit_rate(word),
            Self::RateTime => packed::rate_time(word),
            Self::Seconds => number::int(word, 1, u32::MAX.into()),
            Self::LedDelay => packed::led_delay(word),
            Self::DayTime => time::day_time(word),
            Self::Date => time::date(word),
            Self::WeekDays => time::week_days(word),
            Self::MonthDays => time::month_days(word),
            Self::SetName => packed::set_name(word),
            Self::SetFlags => packed::set_flags(word),
            Self::Zone => packed::zone(word),
            Self::ConnLabel => text(word, 255),
            Self::QueueRange => packed::queues(word),
            Self::NatSource => address::nat(word, family, false),
            Self::NatDestination => address::nat(word, family, true),
            Self::NatPorts => address::nat_ports(word),
            Self::HeaderOptions => packed::header_options(word),
            Self::HexString => packed::hex_string(word),
            Self::Bytecode => packed::bytecode(word),
            Self::U32Tests => packed::u32_tests(word),
        }
    }
}

fn text(word: &str, most: usize) -> Read {
    match byte_len(word) {
        length if length > most => Err(format!("expected at most {most} bytes of text, not {length}").into()),
        _ => Ok(word.to_owned()),
    }
}
