//! New addresses, ports and devices, in JSON.

use crate::datatype::DataType;
use crate::expr::NatFlags;
use crate::family::Family;
use crate::json::expression::{self, of_packet, parse_mapping};
use crate::json::node::{Node, Parsed};
use crate::json::object::flags;
use crate::json::scope::Within;
use crate::object::SetData;
use crate::text::parse::constant::Typed;
use crate::tree::*;

const FLAGS: [(&str, NatFlags); 4] = [
    ("random", NatFlags::RANDOM),
    ("fully-random", NatFlags::FULLY_RANDOM),
    ("persistent", NatFlags::PERSISTENT),
    ("netmap", NatFlags::NETMAP),
];

/// `dnat` and `snat`
pub(super) fn translation(of: &Node<'_>, within: Within<'_>) -> Parsed<Nat> {
    let family = family(of)?;
    let mut flags = nat_flags(of)?;
    let kinds = [("interval", Kind::Interval), ("prefix", Kind::Prefix), ("concat", Kind::Concat)];
    let mut kind = None;
    if let Some(node) = of.given("type_flags") {
        for flag in node.one_or_more() {
            let flag = flag.word("how addresses are given", &kinds)?;
            if flag == Kind::Prefix {
                flags |= NatFlags::NETMAP;
            }
            kind = Some(flag);
        }
    }
    let port = of.given("port").map(|port| port_of(&port, within)).transpose()?;
    let Some(node) = of.given("addr") else {
        let port = port.ok_or_else(|| of.wrong("a member \"addr\" or \"port\""))?;
        return Ok(Nat { family, to: NatTarget::Port(port), flags });
    };
    let (address, found) = target(&node, family, within)?;
    let to = match (kind.or(found), port) {
        (_, Some(port)) => NatTarget::AddressPort(address, port),
        (Some(Kind::Concat), None) => NatTarget::Concat(address),
        (Some(Kind::ConcatInterval), None) => NatTarget::ConcatInterval(address),
        (Some(Kind::Interval | Kind::Prefix), None) if is_map(&address) => match found {
            Some(Kind::ConcatInterval) => NatTarget::ConcatInterval(address),
            _ => NatTarget::Interval(address),
        },
        (_, None) => NatTarget::Address(address),
    };
    Ok(Nat { family, to, flags })
}

/// What a map gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Interval,
    Prefix,
    Concat,
    ConcatInterval,
}

fn is_map(of: &Expression) -> bool {
    matches!(of, Expression::Map(_))
}

/// An address, or a map; and what that gives beside single addresses.
fn target(node: &Node<'_>, family: Option<Family>, within: Within<'_>) -> Parsed<(Expression, Option<Kind>)> {
    let address = address_type(family, within);
    let types: Vec<Typed> = address.into_iter().collect();
    let Some(map) = node.given("map") else {
        let of = expression::parse(node, &types, within)?;
        let kind = matches!(&of, Expression::Concat(_)).then_some(Kind::Concat);
        return Ok((of, kind));
    };
    let key = of_packet(&map.need("key", "what is looked up")?, within)?;
    let both: Vec<Typed> = address.into_iter().chain([DataType::INET_SERVICE.into()]).collect();
    let value = |value: &Node<'_>| {
        let types = if value.has("concat") && address.is_some() { &both } else { &types };
        expression::parse(value, types, within)
    };
    let map = parse_mapping(&map.need("data", "a map")?, &key, within, value)?;
    let kind = match &map {
        Mapping::Named(name) => match within.set(name).and_then(|set| set.data) {
            Some(SetData::Value(of)) => (of.parts().len() > 1).then_some(Kind::Concat),
            Some(SetData::Interval(of)) if of.parts().len() > 1 => Some(Kind::ConcatInterval),
            Some(SetData::Interval(_)) => Some(Kind::Interval),
            _ => None,
        },
        Mapping::Anonymous(pairs) => {
            let several = pairs.iter().any(|(_, value)| matches!(value, Expression::Concat(_)));
            let intervals = pairs.iter().any(|(_, value)| is_interval(value));
            match (several, intervals) {
                (true, true) => Some(Kind::ConcatInterval),
                (true, false) => Some(Kind::Concat),
                (false, true) => Some(Kind::Interval),
                (false, false) => None,
            }
        }
    };
    Ok((Expression::Map(Box::new(Map { key, map })), kind))
}

fn is_interval(of: &Expression) -> bool {
    match of {
        Expression::Prefix(_) | Expression::Range(_) => true,
        Expression::Concat(parts) => parts.iter().any(is_interval),
        _ => false,
    }
}

/// The type of an address: that of the family that is given, or of the table's. Where neither says it, its
/// form does.
fn address_type(family: Option<Family>, within: Within<'_>) -> Option<Typed> {
    match family.unwrap_or(within.family()) {
        Family::IP => Some(DataType::IPV4_ADDR.into()),
        Family::IP6 => Some(DataType::IPV6_ADDR.into()),
        _ => None,
    }
}

/// `masquerade` and `redirect`
pub(super) fn port_translation(of: &Node<'_>, within: Within<'_>) -> Parsed<PortNat> {
    let port = of.given("port").map(|port| port_of(&port, within)).transpose()?;
    Ok(PortNat { port, flags: nat_flags(of)? })
}

pub(super) fn tproxy(of: &Node<'_>, within: Within<'_>) -> Parsed<Tproxy> {
    let family = family(of)?;
    let types: Vec<Typed> = address_type(family, within).into_iter().collect();
    Ok(Tproxy {
        family,
        address: of.given("addr").map(|node| expression::parse(&node, &types, within)).transpose()?,
        port: of.given("port").map(|port| port_of(&port, within)).transpose()?,
    })
}

pub(super) fn dup(of: &Node<'_>, within: Within<'_>) -> Parsed<Dup> {
    let node = of.need("addr", "an address, or in tables of family netdev a device")?;
    if within.family() == Family::NETDEV {
        return Ok(Dup { address: None, device: Some(device(&node, within)?) });
    }
    let types: Vec<Typed> = address_type(None, within).into_iter().collect();
    Ok(Dup {
        address: Some(expression::parse(&node, &types, within)?),
        device: of.given("dev").map(|node| device(&node, within)).transpose()?,
    })
}

pub(super) fn fwd(of: &Node<'_>, within: Within<'_>) -> Parsed<Fwd> {
    let device = device(&of.need("dev", "a device")?, within)?;
    let address = match (family(of)?, of.given("addr")) {
        (Some(family), Some(node)) => {
            let types: Vec<Typed> = address_type(Some(family), within).into_iter().collect();
            Some((family, expression::parse(&node, &types, within)?))
        }
        (None, None) => None,
        _ => return Err(of.wrong("both \"family\" and \"addr\", or neither")),
    };
    Ok(Fwd { device, address })
}

fn device(node: &Node<'_>, within: Within<'_>) -> Parsed<Expression> {
    expression::parse(node, &[DataType::IFACE_INDEX.into()], within)
}

fn port_of(node: &Node<'_>, within: Within<'_>) -> Parsed<Expression> {
    expression::parse(node, &[DataType::INET_SERVICE.into()], within)
}

fn family(of: &Node<'_>) -> Parsed<Option<Family>> {
    of.given("family")
        .map(|node| node.word("a family", &[("ip", Family::IP), ("ip6", Family::IP6)]))
        .transpose()
}

fn nat_flags(of: &Node<'_>) -> Parsed<NatFlags> {
    let all = flags(of, "a flag of address translation", &FLAGS)?;
    Ok(all.into_iter().fold(NatFlags::empty(), |all, flag| all | flag))
}
