//! Values of one word that have parts: ports, marks, lists, addresses of address translation.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use super::field::OneWord;
use crate::value::{Value, mark, port};
use crate::{Family, words};

/// A port; read from the name of a service too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Port(pub u16);

/// A port or a range of ports, both ends included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Ports {
    /// First port.
    pub first: u16,
    /// Last port.
    pub last: u16,
}

/// A mark of 32 bits with the mask of those that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MarkMask {
    /// The bits.
    pub value: u32,
    /// Those that count, or that are cleared first.
    pub mask: u32,
}

/// Names with commas between, as in `NEW,RELATED`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct List(pub Vec<String>);

/// A probability in steps of 2^-31, as the kernel holds it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Probability(pub u32);

/// A set and which parts of a packet are looked up in it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct SetUse {
    /// The name of the set.
    pub name: String,
    /// `src` and `dst`, one for each dimension of the set.
    pub flags: List,
}

/// An address or a range of addresses, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Addresses {
    /// First address.
    pub first: IpAddr,
    /// Last address.
    pub last: IpAddr,
}

/// A port or a range of ports to map to; with a base, the range is shifted from there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NatPorts {
    /// The ports.
    pub ports: Ports,
    /// DNAT only: the first port before translation.
    pub base: Option<u16>,
}

/// Where address translation leads: addresses, ports, or both.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Nat {
    /// The addresses; none to change ports alone.
    pub addresses: Option<Addresses>,
    /// The ports; none to keep them.
    pub ports: Option<NatPorts>,
}

impl Ports {
    /// One port.
    #[must_use]
    pub fn one(port: u16) -> Self {
        Self { first: port, last: port }
    }
}

impl Default for MarkMask {
    /// No bits, all of which count.
    fn default() -> Self {
        Self { value: 0, mask: u32::MAX }
    }
}

impl FromStr for Port {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        Ok(Self(port(word)?))
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Ports {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let normal = Value::PortRange.read(word, Family::V4)?;
        let (first, last) = normal.split_once(':').unwrap_or((&normal, &normal));
        Ok(Self { first: port(first)?, last: port(last)? })
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        range(f, self.first, self.last, ':')
    }
}

impl FromStr for MarkMask {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let (value, mask) = mark(word)?;
        Ok(Self { value, mask })
    }
}

impl fmt::Display for MarkMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.mask {
            u32::MAX => write!(f, "{:#x}", self.value),
            mask => write!(f, "{:#x}/{mask:#x}", self.value),
        }
    }
}

impl FromStr for List {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let names: Vec<_> = word.split(',').map(str::to_owned).collect();
        if names.iter().any(|name| name.is_empty() || name.contains(words::is_blank)) {
            return Err("expected names with commas between".to_owned());
        }
        Ok(Self(names))
    }
}

impl fmt::Display for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(","))
    }
}

impl<const N: usize> From<[&str; N]> for List {
    fn from(names: [&str; N]) -> Self {
        Self(names.map(str::to_owned).to_vec())
    }
}

impl FromStr for Probability {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        Value::Probability.read(word, Family::V4)?;
        let steps = word.parse::<f64>().map(|number| (number * STEPS).round()).unwrap_or_default();
        // From 0 to 2^31, as the value was checked to be from 0 to 1.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within 0..=2^31")]
        Ok(Self(steps as u32))
    }
}

impl fmt::Display for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.11}", f64::from(self.0) / STEPS)
    }
}

impl FromStr for Addresses {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let (first, last) = word.split_once('-').unwrap_or((word, word));
        let parse = |part: &str| {
            part.parse::<IpAddr>().map_err(|_| "expected an address or a range of them".to_owned())
        };
        let (first, last) = (parse(first)?, parse(last)?);
        if first.is_ipv4() != last.is_ipv4() || first > last {
            return Err(
                "expected a range of addresses of one family that ends at or above its start".to_owned()
            );
        }
        Ok(Self { first, last })
    }
}

impl fmt::Display for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        range(f, self.first, self.last, '-')
    }
}

impl FromStr for NatPorts {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let (ports, base) = word.split_once('/').map_or((word, None), |(ports, base)| (ports, Some(base)));
        let normal = Value::NatPorts.read(ports, Family::V4)?;
        let (first, last) = normal.split_once('-').unwrap_or((&normal, &normal));
        let ports = Ports { first: port(first)?, last: port(last)? };
        Ok(Self { ports, base: base.map(port).transpose()? })
    }
}

impl fmt::Display for NatPorts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.base {
            Some(base) => write!(f, "{}-{}/{base}", self.ports.first, self.ports.last),
            None => range(f, self.ports.first, self.ports.last, '-'),
        }
    }
}

impl FromStr for Nat {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let (addresses, ports) = match word.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((addresses, rest)) => (addresses, rest.strip_prefix(':')),
            None if word.matches(':').count() > 1 => (word, None),
            None => word.split_once(':').map_or((word, None), |(addresses, ports)| (addresses, Some(ports))),
        };
        let addresses = (!addresses.is_empty()).then(|| addresses.parse()).transpose()?;
        let ports = ports.map(str::parse).transpose()?;
        match (&addresses, &ports) {
            (None, None) => Err("expected an address, a port, or both".to_owned()),
            _ => Ok(Self { addresses, ports }),
        }
    }
}

impl fmt::Display for Nat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.addresses, &self.ports) {
            (Some(addresses), Some(ports)) if addresses.first.is_ipv6() => write!(f, "[{addresses}]:{ports}"),
            (Some(addresses), Some(ports)) => write!(f, "{addresses}:{ports}"),
            (Some(addresses), None) => addresses.fmt(f),
            (None, Some(ports)) => write!(f, ":{ports}"),
            (None, None) => Ok(()),
        }
    }
}

fn range<T: fmt::Display + PartialEq + Copy>(
    f: &mut fmt::Formatter<'_>,
    first: T,
    last: T,
    between: char,
) -> fmt::Result {
    if first == last { first.fmt(f) } else { write!(f, "{first}{between}{last}") }
}

impl OneWord for Port {}
impl OneWord for Ports {}
impl OneWord for MarkMask {}
impl OneWord for List {}
impl OneWord for Probability {}
impl OneWord for Addresses {}
impl OneWord for NatPorts {}
impl OneWord for Nat {}

const STEPS: f64 = 2_147_483_648.0;
