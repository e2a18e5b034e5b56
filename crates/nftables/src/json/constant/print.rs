//! Constants as nft prints them in JSON: a string where the type has a name for the value, or a form of its
//! own; else a number.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::datatype::{DataType, Order};
use crate::json::style::Style;
use crate::json::{Value, single};
use crate::key::text::{Inet6, write_number};
use crate::key::{EtherAddr, Part, integer, integer_bytes};
use crate::name::InterfaceName;
use crate::tree;

/// The context of a constant.
#[derive(Debug, Clone, Copy)]
pub(in crate::json) struct Context<'a> {
    /// The types of its parts: more than one of a concatenation, none where they are not known.
    pub(in crate::json) parts: &'a [Part],
    /// How several bits of a mask are joined.
    pub(in crate::json) bits: Bits,
    /// Whether it is the bound of a range, where nft prints protocols and several bits as numbers.
    pub(in crate::json) bound: bool,
    /// Whether names are left out.
    pub(in crate::json) numeric: bool,
    pub(in crate::json) with: Style<'a>,
}

/// How several bits of a mask are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::json) enum Bits {
    /// `["new", "related"]`: any of them.
    List,
    /// `{"|": ["syn", "ack"]}`
    Or,
    /// The number.
    Number,
}

impl<'a> Context<'a> {
    pub(in crate::json) fn new(parts: &'a [Part], bits: Bits, with: Style<'a>) -> Self {
        Self { parts, bits, bound: false, numeric: false, with }
    }

    /// The same for one part of a concatenation.
    pub(in crate::json) fn part(self, index: usize) -> Self {
        Self { parts: self.parts.get(index..=index).unwrap_or_default(), ..self }
    }

    /// The same for a bound of a range.
    pub(in crate::json) fn bound(self) -> Self {
        Self { bound: true, bits: Bits::Number, ..self }
    }
}

/// A constant of the language.
pub(in crate::json) fn value(value: &tree::Value, context: Context<'_>) -> Value {
    let part = context.parts.first().copied();
    match (value, part) {
        (tree::Value::Number(number), Some(part)) if part.data_type() == DataType::CT_LABEL => {
            bytes_of(part, &integer_bytes(part.order(), part.bytes(), *number), context)
        }
        (tree::Value::Number(number), Some(part)) => number_of(part, *number, context),
        (tree::Value::Number(number), None) => signed(*number),
        (tree::Value::Address(IpAddr::V4(address)), Some(part)) if is_integer(part, 4) => {
            bytes_of(part, &address.octets(), context)
        }
        (tree::Value::Address(IpAddr::V6(address)), Some(part)) if is_integer(part, 16) => {
            bytes_of(part, &address.octets(), context)
        }
        (tree::Value::Ether(address), Some(part)) if is_integer(part, 6) => {
            bytes_of(part, &address.0, context)
        }
        (tree::Value::Address(IpAddr::V4(address)), _) => address.to_string().into(),
        (tree::Value::Address(IpAddr::V6(address)), _) => Inet6(*address).to_string().into(),
        (tree::Value::Ether(address), _) => address.to_string().into(),
        (tree::Value::Interface(name) | tree::Value::Text(name), _) => name.as_str().into(),
        (tree::Value::Bytes(bytes), Some(part)) if part.bytes() == bytes.len() => {
            bytes_of(part, bytes, context)
        }
        (tree::Value::Bytes(bytes), _) => hexadecimal(bytes),
    }
}

/// A part of a key of a set, by its bytes.
pub(in crate::json) fn element_part(part: Part, bytes: &[u8], context: Context<'_>) -> Value {
    bytes_of(part, bytes, context)
}

fn bytes_of(part: Part, bytes: &[u8], context: Context<'_>) -> Value {
    match part.data_type() {
        DataType::IPV4_ADDR => match <[u8; 4]>::try_from(bytes) {
            Ok(octets) => Ipv4Addr::from(octets).to_string().into(),
            Err(_) => hexadecimal(bytes),
        },
        DataType::IPV6_ADDR => match <[u8; 16]>::try_from(bytes) {
            Ok(octets) => Inet6(Ipv6Addr::from(octets)).to_string().into(),
            Err(_) => hexadecimal(bytes),
        },
        DataType::ETHER_ADDR | DataType::LL_ADDR => match <[u8; 6]>::try_from(bytes) {
            Ok(bytes) => EtherAddr(bytes).to_string().into(),
            Err(_) => hexadecimal(bytes),
        },
        DataType::IFNAME | DataType::STRING => InterfaceName::from_bytes(bytes).as_str().into(),
        DataType::CT_LABEL => labels(bytes, context.bits),
        _ if bytes.len() > 8 => hexadecimal(&in_network_order(part, bytes)),
        _ => number_of(part, integer(part.order(), bytes), context),
    }
}

/// A number of a type: what nft prints for it in JSON.
fn number_of(part: Part, number: u64, context: Context<'_>) -> Value {
    let (of, with) = (part.data_type(), context.with);
    if part.bytes() > 8 && i64::try_from(number).is_err() {
        return format!("{number:#x}").into();
    }
    if context.numeric {
        return signed(number);
    }
    if of.is_bitmask() {
        return mask(of, number, context);
    }
    if !with.names(of) && !of.symbols().is_empty() && of != DataType::BOOLEAN {
        return signed(number);
    }
    let text = |number| Value::from(NumberText(of, number, with).to_string().trim_matches('"'));
    match of {
        DataType::INET_PROTO | DataType::INET_SERVICE if context.bound => number.into(),
        DataType::BOOLEAN if number <= 1 => Value::Bool(number == 1),
        // nft reads a time in milliseconds from a text only.
        DataType::TIME if with.is_script() && !number.is_multiple_of(1000) => text(number),
        DataType::TIME => seconds(number, with),
        DataType::REALM | DataType::CLASSID | DataType::IFACE_INDEX | DataType::DATE | DataType::HOUR => {
            text(number)
        }
        DataType::CGROUPSV2 => text(number),
        _ => match with.options.symbols.get(&(of, number)).filter(|_| with.names(of)) {
            Some(name) => name.as_str().into(),
            None => match of.symbol_of(number) {
                Some(symbol) => symbol.into(),
                None => signed(number),
            },
        },
    }
}

/// nft 1.0.6 cuts milliseconds off.
pub(in crate::json) fn seconds(milliseconds: u64, with: Style<'_>) -> Value {
    match with.is_script() && !milliseconds.is_multiple_of(1000) {
        #[expect(clippy::cast_precision_loss, reason = "times of 285,000 years are exact to a millisecond")]
        true => (milliseconds as f64 / 1000.0).into(),
        false => (milliseconds / 1000).into(),
    }
}

/// A number of 64 bits as nft's JSON library has it, which is with a sign.
pub(in crate::json) fn signed(number: u64) -> Value {
    number.cast_signed().into()
}

fn mask(of: DataType, number: u64, context: Context<'_>) -> Value {
    let mut bits = Vec::new();
    let mut rest = number;
    while rest != 0 {
        let bit = rest & rest.wrapping_neg();
        let symbol = of.symbol_of(bit).filter(|_| context.with.names(of));
        bits.push(symbol.map_or_else(|| Value::from(bit), Value::from));
        rest &= !bit;
    }
    match bits.len() {
        0 => 0.into(),
        1 => bits.remove(0),
        _ if context.bits == Bits::Number => number.into(),
        _ => joined(bits, context.bits),
    }
}

/// Labels of connections go by the numbers of their bits.
fn labels(bytes: &[u8], bits: Bits) -> Value {
    let mut bytes = bytes.to_vec();
    if cfg!(target_endian = "big") {
        bytes.reverse();
    }
    let numbers = bytes
        .iter()
        .enumerate()
        .flat_map(|(i, byte)| (0..8).filter(move |bit| byte & 1 << bit != 0).map(move |bit| i * 8 + bit));
    let mut numbers: Vec<Value> = numbers.map(Value::from).collect();
    match numbers.len() {
        0 => 0.into(),
        1 => numbers.remove(0),
        _ => joined(numbers, bits),
    }
}

fn joined(bits: Vec<Value>, how: Bits) -> Value {
    if how == Bits::List {
        return Value::Array(bits);
    }
    bits.into_iter().reduce(|all, bit| single("|", vec![all, bit])).unwrap_or(Value::from(0))
}

/// As nft prints integers of more than eight bytes.
fn hexadecimal(bytes: &[u8]) -> Value {
    let significant = bytes.iter().skip_while(|byte| **byte == 0);
    let number = significant.fold(String::new(), |text, byte| match text.is_empty() {
        true => format!("{byte:x}"),
        false => format!("{text}{byte:02x}"),
    });
    if bytes.len() > 8 && number.len() <= 16 {
        let small = u64::from_str_radix(&number, 16).unwrap_or(0);
        return Value::from(small.cast_signed());
    }
    format!("0x{}", if number.is_empty() { "0" } else { &number }).into()
}

fn in_network_order(part: Part, bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if part.order() == Order::Host && cfg!(target_endian = "little") {
        bytes.reverse();
    }
    bytes
}

fn is_integer(part: Part, bytes: usize) -> bool {
    part.data_type() == DataType::INTEGER && part.bytes() == bytes
}

/// A number as nft's text has it.
struct NumberText<'a>(DataType, u64, Style<'a>);

impl fmt::Display for NumberText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_number(f, self.0, self.1, self.2.with)
    }
}
