//! Formats translations of addresses and ports in nft's syntax.

use std::fmt::{self, Display, Formatter};
use std::net::IpAddr;

use crate::datatype::DataType;
use crate::expr::NatFlags;
use crate::key::text::Inet6;
use crate::object::element::prefix_length;
use crate::text::print::expression::Typed;
use crate::tree::expression::*;
use crate::tree::statement::*;
use crate::tree::value::*;
use crate::wording::{Wording, Words};

pub(super) fn write_nat(f: &mut Formatter<'_>, word: &str, nat: &Nat, with: Wording<'_>) -> fmt::Result {
    f.write_str(word)?;
    if let Some(family) = nat.family {
        write!(f, " {family}")?;
    }
    if nat.flags.contains(NatFlags::NETMAP) {
        f.write_str(" prefix")?;
    }
    match &nat.to {
        NatTarget::Address(address) => {
            f.write_str(" to ")?;
            write_address_port(f, Some(address), None, with)?;
        }
        NatTarget::Port(port) => {
            f.write_str(" to :")?;
            write_port(f, port, with)?;
        }
        NatTarget::AddressPort(address, port) => {
            f.write_str(" to ")?;
            write_address_port(f, Some(address), Some(port), with)?;
        }
        NatTarget::Concat(of) | NatTarget::ConcatInterval(of) => {
            let address = if nat.family == Some(crate::Family::IP6) {
                DataType::IPV6_ADDR
            } else {
                DataType::IPV4_ADDR
            };
            f.write_str(" to ")?;
            Typed(of, &[address.into(), DataType::INET_SERVICE.into()], with).fmt(f)?;
        }
        NatTarget::Interval(of) => write!(f, " to {}", of.worded(with))?,
    }
    write_nat_flags(f, nat.flags)
}

/// Returns the prefix length of a range of addresses, if it is a prefix.
pub(crate) fn prefix_of(range: &(Value, Value)) -> Option<u32> {
    match range {
        (Value::Address(IpAddr::V4(low)), Value::Address(IpAddr::V4(high))) => {
            prefix_length(DataType::IPV4_ADDR.into(), &low.octets(), &high.octets())
        }
        (Value::Address(IpAddr::V6(low)), Value::Address(IpAddr::V6(high))) => {
            prefix_length(DataType::IPV6_ADDR.into(), &low.octets(), &high.octets())
        }
        _ => None,
    }
}

pub(super) fn write_port_nat(
    f: &mut Formatter<'_>,
    word: &str,
    nat: &PortNat,
    with: Wording<'_>,
) -> fmt::Result {
    f.write_str(word)?;
    if let Some(port) = &nat.port {
        f.write_str(" to :")?;
        write_port(f, port, with)?;
    }
    write_nat_flags(f, nat.flags)
}

fn write_nat_flags(f: &mut Formatter<'_>, flags: NatFlags) -> fmt::Result {
    const NAMES: [(NatFlags, &str); 3] = [
        (NatFlags::RANDOM, "random"),
        (NatFlags::FULLY_RANDOM, "fully-random"),
        (NatFlags::PERSISTENT, "persistent"),
    ];
    let names = NAMES.iter().filter(|(flag, _)| flags.contains(*flag));
    for (i, (_, name)) in names.enumerate() {
        f.write_str(if i == 0 { " " } else { "," })?;
        f.write_str(name)?;
    }
    Ok(())
}

fn write_port(f: &mut Formatter<'_>, port: &Expression, with: Wording<'_>) -> fmt::Result {
    Typed(port, &[DataType::INET_SERVICE.into()], with).fmt(f)
}

/// Writes an address and a port, with an IPv6 address in brackets.
fn write_address_port(
    f: &mut Formatter<'_>,
    address: Option<&Expression>,
    port: Option<&Expression>,
    with: Wording<'_>,
) -> fmt::Result {
    match address {
        Some(Expression::Value(Value::Address(IpAddr::V6(address)))) if port.is_some() => {
            write!(f, "[{}]", Inet6(*address))?;
        }
        Some(Expression::Range(range)) if prefix_of(range).is_some() => {
            write!(f, "{}/{}", Expression::from(range.0.clone()), prefix_of(range).unwrap_or_default())?;
        }
        Some(Expression::Range(range)) if port.is_some() => match &**range {
            (Value::Address(IpAddr::V6(low)), Value::Address(IpAddr::V6(high))) => {
                write!(f, "[{}]-[{}]", Inet6(*low), Inet6(*high))?;
            }
            _ => write!(f, "{}", Expression::Range(range.clone()))?,
        },
        Some(address) => address.write(f, with)?,
        None => {}
    }
    match port {
        Some(port) => {
            f.write_str(":")?;
            write_port(f, port, with)
        }
        None => Ok(()),
    }
}

impl Words for Tproxy {
    fn write(&self, f: &mut Formatter<'_>, with: Wording<'_>) -> fmt::Result {
        f.write_str("tproxy")?;
        if let Some(family) = self.family {
            write!(f, " {family}")?;
        }
        f.write_str(" to ")?;
        match (&self.address, &self.port) {
            (Some(Expression::Value(Value::Address(IpAddr::V6(address)))), None) => {
                write!(f, "[{}]", Inet6(*address))
            }
            (address, port) => write_address_port(f, address.as_ref(), port.as_ref(), with),
        }
    }
}

impl Words for Dup {
    fn write(&self, f: &mut Formatter<'_>, with: Wording<'_>) -> fmt::Result {
        let iface = [DataType::IFACE_INDEX.into()];
        match (&self.address, &self.device) {
            (Some(address), Some(device)) => {
                write!(f, "dup to {} device {}", address.worded(with), Typed(device, &iface, with))
            }
            (Some(address), None) => write!(f, "dup to {}", address.worded(with)),
            (None, Some(device)) => write!(f, "dup to {}", Typed(device, &iface, with)),
            (None, None) => f.write_str("dup"),
        }
    }
}

impl Words for Fwd {
    fn write(&self, f: &mut Formatter<'_>, with: Wording<'_>) -> fmt::Result {
        let iface = [DataType::IFACE_INDEX.into()];
        let device = Typed(&self.device, &iface, with);
        match &self.address {
            Some((family, address)) => write!(f, "fwd {family} to {} device {device}", address.worded(with)),
            None => write!(f, "fwd to {device}"),
        }
    }
}
