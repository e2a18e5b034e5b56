//! The stateful objects of connection tracking: helpers, timeouts and expectations. Each has a network
//! protocol, which may be that of its table's family.

use sluicegate_netlink::Errno;
use sluicegate_netlink::attr::{self, Attribute};

use super::validate::tracks;
use crate::expr::ObjectKind;
use crate::fake::message::{Attrs, Refusal, refusal, refuse};
use crate::family::Family;
use crate::object::stateful::default_timeouts;
use crate::object::stateful::wire::*;
use sluicegate_netlink::Protocol;

/// Returns the data that the kernel lists for such an object; `None` for objects of other kinds.
pub(super) fn listed_data(
    kind: ObjectKind,
    family: Family,
    attrs: &Attrs<'_>,
) -> Option<Result<Vec<u8>, Refusal>> {
    match kind {
        ObjectKind::CT_HELPER => Some(helper(family, attrs)),
        ObjectKind::CT_TIMEOUT => Some(timeout(family, attrs)),
        ObjectKind::CT_EXPECT => Some(expectation(family, attrs)),
        _ => None,
    }
}

fn helper(of: Family, attrs: &Attrs<'_>) -> Result<Vec<u8>, Refusal> {
    let name = attrs.need(NFTA_CT_HELPER_NAME)?;
    let protocol = number(attrs.need(NFTA_CT_HELPER_L4PROTO)?)?;
    if protocol == 0 {
        return refuse(Errno::ENOENT);
    }
    let text = name.text().map_err(|_| refusal(Errno::EINVAL))?;
    if text.len() > MAX_HELPER_NAME {
        return refuse(Errno::ERANGE);
    }
    let network = network(of, attrs.get(NFTA_CT_HELPER_L3PROTO))?;
    let (v4, v6) = match network {
        Family::IP if of != Family::IP6 => (true, false),
        Family::IP6 if of != Family::IP => (false, true),
        Family::IP | Family::IP6 => return refuse(Errno::EINVAL),
        Family::INET | Family::BRIDGE | Family::NETDEV => (true, true),
        _ => return refuse(Errno::EAFNOSUPPORT),
    };
    let known =
        |v6: bool| HELPERS.iter().any(|(name, of, both)| *name == text && of.0 == protocol && (*both || !v6));
    let network = match (v4 && known(false), v6 && known(true)) {
        (true, true) => Family::INET,
        (true, false) => Family::IP,
        (false, true) => Family::IP6,
        (false, false) => return refuse(Errno::ENOENT),
    };
    tracks(of)?;
    let data = attr::encode(|w| {
        w.put_str(NFTA_CT_HELPER_NAME, &text);
        w.put_u8(NFTA_CT_HELPER_L4PROTO, protocol);
        w.put_be16(NFTA_CT_HELPER_L3PROTO, u16::from(network.0));
    });
    data.map_err(|_| refusal(Errno::EINVAL))
}

fn timeout(of: Family, attrs: &Attrs<'_>) -> Result<Vec<u8>, Refusal> {
    let protocol = Protocol(number(attrs.need(NFTA_CT_TIMEOUT_L4PROTO)?)?);
    let policy = Attrs::nested(Some(attrs.need(NFTA_CT_TIMEOUT_DATA)?))?;
    let network = network(of, attrs.get(NFTA_CT_TIMEOUT_L3PROTO))?;
    // Linux 6.17 removed connection tracking for DCCP.
    let defaults = if protocol == Protocol::DCCP { &[] } else { default_timeouts(protocol) };
    if defaults.is_empty() {
        return refuse(Errno::EOPNOTSUPP);
    }
    tracks(of)?;
    let data = attr::encode(|w| {
        w.put_u8(NFTA_CT_TIMEOUT_L4PROTO, protocol.0);
        w.put_be16(NFTA_CT_TIMEOUT_L3PROTO, u16::from(network.0));
        let mut nest = w.nest(NFTA_CT_TIMEOUT_DATA);
        for (state, default) in (1..).zip(defaults) {
            nest.put_be32(state, policy.be32(state).ok().flatten().unwrap_or(*default));
        }
    });
    data.map_err(|_| refusal(Errno::EINVAL))
}

fn expectation(of: Family, attrs: &Attrs<'_>) -> Result<Vec<u8>, Refusal> {
    let protocol = number(attrs.need(NFTA_CT_EXPECT_L4PROTO)?)?;
    let rest = [
        attrs.need(NFTA_CT_EXPECT_DPORT)?,
        attrs.need(NFTA_CT_EXPECT_TIMEOUT)?,
        attrs.need(NFTA_CT_EXPECT_SIZE)?,
    ];
    let network = network(of, attrs.get(NFTA_CT_EXPECT_L3PROTO))?;
    if ![Family::IP, Family::IP6].contains(&network) {
        return refuse(Errno::EAFNOSUPPORT);
    }
    if network != of && of != Family::INET {
        return refuse(Errno::EINVAL);
    }
    if !EXPECTED.contains(&Protocol(protocol)) {
        return refuse(Errno::EOPNOTSUPP);
    }
    tracks(of)?;
    let data = attr::encode(|w| {
        w.put_be16(NFTA_CT_EXPECT_L3PROTO, u16::from(network.0));
        w.put_u8(NFTA_CT_EXPECT_L4PROTO, protocol);
        rest.iter().for_each(|attribute| w.put(attribute.kind, attribute.payload));
    });
    data.map_err(|_| refusal(Errno::EINVAL))
}

fn number(attribute: &Attribute<'_>) -> Result<u8, Refusal> {
    attribute.u8().map_err(|_| refusal(Errno::ERANGE))
}

/// Returns the network protocol: that of the table's family unless one is given.
fn network(of: Family, attribute: Option<&Attribute<'_>>) -> Result<Family, Refusal> {
    let Some(attribute) = attribute else { return Ok(of) };
    let number = attribute.be16().map_err(|_| refusal(Errno::ERANGE))?;
    Ok(u8::try_from(number).map_or(Family::UNSPEC, Family))
}

/// The helpers of Linux, each with its transport protocol and whether it supports IPv6.
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
/// The protocols with ports, which expectations need.
const EXPECTED: [Protocol; 5] =
    [Protocol::TCP, Protocol::UDP, Protocol::DCCP, Protocol::SCTP, Protocol::UDPLITE];
/// `NF_CT_HELPER_NAME_LEN` without the NUL.
const MAX_HELPER_NAME: usize = 15;
