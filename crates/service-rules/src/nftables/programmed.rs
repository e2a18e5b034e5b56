//! The frontends and endpoints that a listed table has, ours or kube-proxy's, in either layout.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU16;

use sluicegate_nftables as nft;
use sluicegate_nftables::expr::Data;
use sluicegate_nftables::read::Ruleset;
use sluicegate_services::{Family, Frontend, Protocol};

use super::element::{Container, Path, Scope};
use crate::flows::Programmed;

/// Returns the frontends whose flows may become stale, and if there are some the endpoints of all.
pub(super) fn programmed(kernel: &Ruleset) -> Programmed {
    let mut programmed = Programmed::default();
    for (set, elements) in &kernel.sets {
        let (family, name) = (family_of(set.family), set.name.as_str());
        let frontend = if name == Container::Dispatch(Scope::Address, Path::Main).name() {
            address_frontend
        } else if name == Container::Dispatch(Scope::NodePort, Path::Main).name() {
            node_port_frontend
        } else {
            continue;
        };
        programmed.frontends.extend(elements.iter().filter_map(|element| frontend(family, &element.key)));
    }
    if programmed.frontends.is_empty() {
        return programmed;
    }
    for (set, elements) in &kernel.sets {
        // In layout `maps` named maps, in `chains` anonymous ones of rules.
        let values = elements.iter().filter_map(|element| match &element.data {
            Some(Data::Value(value)) => endpoint(family_of(set.family), value),
            _ => None,
        });
        programmed.endpoints.extend(values);
    }
    let chains = kernel.chains.iter().map(|chain| chain.name.as_str());
    programmed.endpoints.extend(chains.filter_map(endpoint_of_chain));
    programmed
}

/// Decodes `ip daddr . meta l4proto . th dport`, each part of which takes a multiple of four bytes.
fn address_frontend(family: Family, key: &[u8]) -> Option<Frontend> {
    let (ip, rest) = address(family, key)?;
    let (protocol, port) = protocol_and_port(rest).filter(|(protocol, _)| may_be_stale(*protocol))?;
    Some(Frontend::Address(ip, protocol, port))
}

/// Decodes `meta l4proto . th dport`.
fn node_port_frontend(family: Family, key: &[u8]) -> Option<Frontend> {
    let (protocol, port) = protocol_and_port(key).filter(|(protocol, _)| may_be_stale(*protocol))?;
    Some(Frontend::NodePort(family, protocol, port))
}

/// Returns whether flows of this protocol may become stale.
fn may_be_stale(protocol: Protocol) -> bool {
    protocol != Protocol::Tcp
}

/// Decodes `meta l4proto . th dport`.
pub(super) fn protocol_and_port(key: &[u8]) -> Option<(Protocol, NonZeroU16)> {
    let [number, _, _, _, high, low, ..] = *key else { return None };
    let protocol = Protocol::ALL.into_iter().find(|known| known.number() == number)?;
    Some((protocol, NonZeroU16::new(u16::from_be_bytes([high, low]))?))
}

/// Decodes an address and a port.
pub(super) fn endpoint(family: Family, value: &[u8]) -> Option<SocketAddr> {
    let (ip, [high, low, _, _]) = address(family, value)? else { return None };
    Some(SocketAddr::new(ip, u16::from_be_bytes([*high, *low])))
}

pub(super) fn address(family: Family, bytes: &[u8]) -> Option<(IpAddr, &[u8])> {
    Some(match family {
        Family::Ipv4 => {
            let (octets, rest) = bytes.split_first_chunk()?;
            (Ipv4Addr::from(*octets).into(), rest)
        }
        Family::Ipv6 => {
            let (octets, rest) = bytes.split_first_chunk()?;
            (Ipv6Addr::from(*octets).into(), rest)
        }
    })
}

/// Returns the endpoint of a chain `endpoint-CVGDRFH4-ns/name/udp/port__10.0.0.1/53` of session affinity.
fn endpoint_of_chain(name: &str) -> Option<SocketAddr> {
    let (_, end) = name.strip_prefix("endpoint-")?.rsplit_once("__")?;
    let (ip, port) = end.split_once('/')?;
    let ip = ip.parse().or_else(|_| ip.replace('.', ":").parse());
    Some(SocketAddr::new(ip.ok()?, port.parse().ok()?))
}

fn family_of(family: nft::Family) -> Family {
    if family == nft::Family::IP6 { Family::Ipv6 } else { Family::Ipv4 }
}
