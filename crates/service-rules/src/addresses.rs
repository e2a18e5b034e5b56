//! Lists the addresses of this node's interfaces, some of which answer node ports.
//!
//! Numbers are those of `linux/rtnetlink.h` and `linux/if_addr.h`.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;
use sluicegate_netlink::attr::Attributes;
use sluicegate_netlink::message::{Flags, Message};
use sluicegate_netlink::{Batch, DecodeError, NetlinkFamily, Options, Socket, Transport, dump};

use crate::Error;

/// Lists the addresses of all interfaces in the network namespace of this thread, each once.
///
/// # Errors
/// [`Error::Netlink`] when they cannot be listed.
pub fn interface_addresses() -> Result<Vec<IpAddr>, Error> {
    listed().map_err(|error| Error::netlink("listing the addresses of this node's interfaces", error))
}

/// Lists them as [`interface_addresses`] does, with the error of netlink.
pub(crate) fn listed() -> Result<Vec<IpAddr>, sluicegate_netlink::Error> {
    let mut socket = Socket::open(NetlinkFamily::ROUTE, &Options::default())?;
    let listed = list(&mut socket)?;
    Ok(listed.into_iter().map(|(_, ip)| ip).collect::<BTreeSet<_>>().into_iter().collect())
}

/// Lists the addresses of all interfaces, each with the length of its network's prefix: what the node takes for
/// a neighbour on a link.
///
/// # Errors
/// As [`interface_addresses`].
pub fn connected_networks() -> Result<Vec<IpNet>, Error> {
    let read = |message: Message<'_>| {
        // `ifa_prefixlen` is the second byte of `struct ifaddrmsg`.
        let length = message.payload.get(1).copied().unwrap_or_default();
        Ok(decode(message)?.and_then(|(_, ip)| IpNet::new(ip, length).ok()))
    };
    let listed = Socket::open(NetlinkFamily::ROUTE, &Options::default())
        .and_then(|mut socket| dump(&mut socket, &request(), read));
    listed.map_err(|error| Error::netlink("listing the networks of this node's interfaces", error))
}

/// Lists the addresses of all interfaces, each with the number of its interface.
pub(crate) fn list<T: Transport>(transport: &mut T) -> Result<Vec<(u32, IpAddr)>, sluicegate_netlink::Error> {
    dump(transport, &request(), |message| Ok(decode(message)?))
}

fn request() -> Batch {
    let mut batch = Batch::new();
    batch.message(GET_ADDRESS, Flags::REQUEST | Flags::DUMP, 0).raw(&[0; 8]);
    batch
}

/// Returns the interface and the address of a message about an address; `None` for other messages.
pub(crate) fn decode(message: Message<'_>) -> Result<Option<(u32, IpAddr)>, DecodeError> {
    if ![NEW_ADDRESS, DEL_ADDRESS].contains(&message.header.kind) {
        return Ok(None);
    }
    let Some((header, rest)) = message.payload.split_first_chunk::<8>() else { return Ok(None) };
    let [.., i0, i1, i2, i3] = *header;
    // On a point-to-point link, `IFA_ADDRESS` is the address of the peer.
    let attribute = match Attributes::new(rest).find(LOCAL)? {
        Some(attribute) => Some(attribute),
        None => Attributes::new(rest).find(ADDRESS)?,
    };
    let Some(attribute) = attribute else { return Ok(None) };
    let ip = match attribute.array::<4>() {
        Ok(octets) => IpAddr::from(octets),
        Err(_) => IpAddr::from(attribute.array::<16>()?),
    };
    Ok(Some((u32::from_ne_bytes([i0, i1, i2, i3]), ip)))
}

/// `RTM_NEWADDR`
pub(crate) const NEW_ADDRESS: u16 = 20;
/// `RTM_DELADDR`
pub(crate) const DEL_ADDRESS: u16 = 21;
/// `RTM_GETADDR`
const GET_ADDRESS: u16 = 22;
/// `IFA_ADDRESS`
pub(crate) const ADDRESS: u16 = 1;
/// `IFA_LOCAL`
pub(crate) const LOCAL: u16 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_a_namespace_are_listed_each_once() {
        testns::netns(|| {
            let _ = testns::sh(
                "ip link set lo up; ip addr add 10.0.0.1/32 dev lo; ip addr add fd00::1/128 dev lo
                 ip link add d0 type veth peer name d1; ip addr add 10.0.0.1/24 dev d0; ip addr add \
                 10.0.0.2 peer 10.0.0.3 dev d0",
            );
            let expected = ["10.0.0.1", "10.0.0.2", "127.0.0.1", "::1", "fd00::1"];
            let listed: Vec<_> = interface_addresses().unwrap().iter().map(ToString::to_string).collect();
            assert_eq!(listed, expected);
            let networks: BTreeSet<_> =
                connected_networks().unwrap().iter().map(ToString::to_string).collect();
            for network in ["10.0.0.1/32", "10.0.0.1/24", "10.0.0.2/32", "fd00::1/128"] {
                assert!(networks.contains(network), "{network}: {networks:?}");
            }
        });
    }
}
