//! The objects of connection tracking: helpers, timeouts and expectations, of which each has a network protocol, be it that of its table.

use sluicegate_netlink::attr::{self, Attribute};

use super::demand::tracks;
use crate::expr::ObjectKind;
use crate::fake::message::{
    Attrs, EAFNOSUPPORT, EINVAL, ENOENT, EOPNOTSUPP, ERANGE, Refusal, refusal, refuse,
};
use crate::family::Family;
use crate::key::Protocol;
use crate::object::stateful::usual_timeouts;

/// What such an object shows; `None` of others.
pub(super) fn shown(kind: ObjectKind, family: Family, attrs: &Attrs<'_>) -> Option<Result<Vec<u8>, Refusal>> {
    match kind {
        ObjectKind::CT_HELPER => Some(helper(family, attrs)),
        ObjectKind::CT_TIMEOUT => Some(timeout(family, attrs)),
        ObjectKind::CT_EXPECT => Some(expectation(family, attrs)),
        _ => None,
    }
}

fn helper(of: Family, attrs: &Attrs<'_>) -> Result<Vec<u8>, Refusal> {
    let name = attrs.need(HELPER_NAME)?;
    let protocol = number(attrs.need(HELPER_PROTOCOL)?)?;
    if protocol == 0 {
        return refuse(ENOENT);
    }
    let text = name.str().map_err(|_| refusal(EINVAL))?;
    if text.len() > MAX_HELPER_NAME {
        return refuse(ERANGE);
    }
    let network = network(of, attrs.get(HELPER_NETWORK))?;
    let (v4, v6) = match network {
        Family::IP if of != Family::IP6 => (true, false),
        Family::IP6 if of != Family::IP => (false, true),
        Family::IP | Family::IP6 => return refuse(EINVAL),
        Family::INET | Family::BRIDGE | Family::NETDEV => (true, true),
        _ => return refuse(EAFNOSUPPORT),
    };
    let known =
        |v6: bool| HELPERS.iter().any(|(name, of, both)| *name == text && of.0 == protocol && (*both || !v6));
    let shown = match (v4 && known(false), v6 && known(true)) {
        (true, true) => Family::INET,
        (true, false) => Family::IP,
        (false, true) => Family::IP6,
        (false, false) => return refuse(ENOENT),
    };
    tracks(of)?;
    let data = attr::encode(|w| {
        w.put_str(HELPER_NAME, text);
        w.put_u8(HELPER_PROTOCOL, protocol);
        w.put_be16(HELPER_NETWORK, u16::from(shown.0));
    });
    data.map_err(|_| refusal(EINVAL))
}

fn timeout(of: Family, attrs: &Attrs<'_>) -> Result<Vec<u8>, Refusal> {
    let protocol = Protocol(number(attrs.need(TIMEOUT_PROTOCOL)?)?);
    let policy = Attrs::nested(Some(attrs.need(TIMEOUT_POLICY)?))?;
    let network = network(of, attrs.get(TIMEOUT_NETWORK))?;
    // Linux 6.17 has forgotten DCCP.
    let usual = if protocol == Protocol::DCCP { &[] } else { usual_timeouts(protocol) };
    if usual.is_empty() {
        return refuse(EOPNOTSUPP);
    }
    tracks(of)?;
    let data = attr::encode(|w| {
        w.put_u8(TIMEOUT_PROTOCOL, protocol.0);
        w.put_be16(TIMEOUT_NETWORK, u16::from(network.0));
        let mut shown = w.nest(TIMEOUT_POLICY);
        for (state, usual) in (1..).zip(usual) {
            shown.put_be32(state, policy.be32(state).ok().flatten().unwrap_or(*usual));
        }
    });
    data.map_err(|_| refusal(EINVAL))
}

fn expectation(of: Family, attrs: &Attrs<'_>) -> Result<Vec<u8>, Refusal> {
    let protocol = number(attrs.need(EXPECT_PROTOCOL)?)?;
    let rest = [attrs.need(EXPECT_PORT)?, attrs.need(EXPECT_TIMEOUT)?, attrs.need(EXPECT_SIZE)?];
    let network = network(of, attrs.get(EXPECT_NETWORK))?;
    if ![Family::IP, Family::IP6].contains(&network) {
        return refuse(EAFNOSUPPORT);
    }
    if network != of && of != Family::INET {
        return refuse(EINVAL);
    }
    if !EXPECTED.contains(&Protocol(protocol)) {
        return refuse(EOPNOTSUPP);
    }
    tracks(of)?;
    let data = attr::encode(|w| {
        w.put_be16(EXPECT_NETWORK, u16::from(network.0));
        w.put_u8(EXPECT_PROTOCOL, protocol);
        rest.iter().for_each(|attribute| w.put(attribute.kind, attribute.payload));
    });
    data.map_err(|_| refusal(EINVAL))
}

fn number(attribute: &Attribute<'_>) -> Result<u8, Refusal> {
    attribute.u8().map_err(|_| refusal(ERANGE))
}

/// The network protocol: that of the table unless another is given.
fn network(of: Family, attribute: Option<&Attribute<'_>>) -> Result<Family, Refusal> {
    let Some(attribute) = attribute else { return Ok(of) };
    let number = attribute.be16().map_err(|_| refusal(ERANGE))?;
    Ok(u8::try_from(number).map_or(Family::UNSPEC, Family))
}

/// The helpers of Linux, each with its transport protocol and whether it knows IPv6.
const HELPERS: [(&str, Protocol, bool); 13] = [
    ("amanda", Protocol::UDP, true),
    ("ftp", Protocol::TCP, true),
    ("irc", Protocol::TCP, false),
    ("netbios-ns", Protocol::UDP, false),
    ("pptp", Protocol::TCP, false),
    ("Q.931", Protocol::TCP, true),
    ("RAS", Protocol::UDP, true),
    ("sane", Protocol::TCP, true),
    ("sip", Protocol::TCP, true),
    ("sip", Protocol::UDP, true),
    ("snmp", Protocol::UDP, false),
    ("snmp_trap", Protocol::UDP, false),
    ("tftp", Protocol::UDP, true),
];
/// Those whose connections have ports.
const EXPECTED: [Protocol; 5] =
    [Protocol::TCP, Protocol::UDP, Protocol::DCCP, Protocol::SCTP, Protocol::UDPLITE];
/// `NF_CT_HELPER_NAME_LEN` without the NUL.
const MAX_HELPER_NAME: usize = 15;

const HELPER_NAME: u16 = 1;
const HELPER_NETWORK: u16 = 2;
const HELPER_PROTOCOL: u16 = 3;
const TIMEOUT_NETWORK: u16 = 1;
const TIMEOUT_PROTOCOL: u16 = 2;
const TIMEOUT_POLICY: u16 = 3;
const EXPECT_NETWORK: u16 = 1;
const EXPECT_PROTOCOL: u16 = 2;
const EXPECT_PORT: u16 = 3;
const EXPECT_TIMEOUT: u16 = 4;
const EXPECT_SIZE: u16 = 5;
