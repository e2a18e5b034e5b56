//! Links, addresses and routes of one namespace, by rtnetlink(7).
//!
//! The messages are written with `sluicegate-netlink`, as those of ipvs mode are: the crate `rtnetlink` and what
//! it needs take longer to compile than half of the demonstration.
//!
//! Numbers are those of `linux/rtnetlink.h`, `linux/if_link.h`, `linux/if_addr.h` and `linux/veth.h`.

use std::net::IpAddr;

use ipnet::IpNet;
use sluicegate_netlink::attr::Writer;
use sluicegate_netlink::message::Flags;
use sluicegate_netlink::{Batch, NetlinkFamily, Options, Socket, exchange};

use crate::{Error, Namespace};

/// An rtnetlink socket in one namespace: that of the thread that opens it.
#[derive(Debug)]
pub struct Wire(Socket);

impl Wire {
    /// Opens a socket in the current thread's namespace.
    ///
    /// # Errors
    /// When no netlink socket can be had.
    pub fn open() -> Result<Self, Error> {
        let socket = Socket::open(NetlinkFamily::ROUTE, &Options::default());
        socket.map(Self).map_err(|error| Error::network("opening an rtnetlink socket", error))
    }

    /// Makes a pair of connected devices, the second one in another namespace.
    ///
    /// # Errors
    /// [`Error`] names the device and says what the kernel answered; so for all that follow.
    pub fn veth(&mut self, device: &str, peer: &str, namespace: &Namespace) -> Result<(), Error> {
        self.make(device, "veth", |info| {
            let mut data = info.nest(INFO_DATA);
            let mut other = data.nest(VETH_PEER);
            other.raw(&LinkHeader::default().bytes());
            other.put_str(NAME, peer);
            other.put(NAMESPACE, &namespace.raw_fd().to_ne_bytes());
        })
    }

    /// Makes a bridge.
    ///
    /// # Errors
    /// See [`veth`](Self::veth).
    pub fn bridge(&mut self, device: &str) -> Result<(), Error> {
        self.make(device, "bridge", |_| ())
    }

    /// Makes a dummy device.
    ///
    /// # Errors
    /// See [`veth`](Self::veth).
    pub fn dummy(&mut self, device: &str) -> Result<(), Error> {
        self.make(device, "dummy", |_| ())
    }

    /// Makes a device a port of a bridge.
    ///
    /// # Errors
    /// See [`veth`](Self::veth).
    pub fn attach(&mut self, device: &str, bridge: &str) -> Result<(), Error> {
        let (index, bridge_index) = (self.index(device)?, self.index(bridge)?);
        self.send(&format!("attaching {device} to {bridge}"), SET_LINK, Flags::empty(), |message| {
            message.raw(&LinkHeader { index, ..LinkHeader::default() }.bytes());
            message.put_u32(CONTROLLER, bridge_index);
        })
    }

    /// Sets a device up.
    ///
    /// # Errors
    /// See [`veth`](Self::veth).
    pub fn up(&mut self, device: &str) -> Result<(), Error> {
        let header = LinkHeader { index: self.index(device)?, flags: IFF_UP, change: IFF_UP };
        self.send(&format!("setting {device} up"), SET_LINK, Flags::empty(), |message| {
            message.raw(&header.bytes());
        })
    }

    /// Gives a device an address.
    ///
    /// # Errors
    /// See [`veth`](Self::veth).
    pub fn address(&mut self, device: &str, address: IpNet) -> Result<(), Error> {
        let index = self.index(device)?.to_ne_bytes();
        let step = format!("giving {device} the address {address}");
        self.send(&step, NEW_ADDRESS, Flags::CREATE | Flags::EXCL, |message| {
            // struct ifaddrmsg: family, prefix length, flags, scope; the index of the device. An address of IPv6
            // can be used at once, without detection of duplicates.
            message.raw(&[family(address), address.prefix_len(), IFA_F_NODAD, 0]);
            message.raw(&index);
            put_ip(message, LOCAL, address.addr());
            put_ip(message, ADDRESS, address.addr());
        })
    }

    /// Adds a route through a device, by way of a gateway or straight onto the link.
    ///
    /// # Errors
    /// See [`veth`](Self::veth).
    pub fn route(&mut self, to: IpNet, gateway: Option<IpAddr>, device: &str) -> Result<(), Error> {
        let index = self.index(device)?;
        let scope = if gateway.is_some() { SCOPE_UNIVERSE } else { SCOPE_LINK };
        let step = format!("adding the route {to} through {device}");
        self.send(&step, NEW_ROUTE, Flags::CREATE | Flags::EXCL, |message| {
            // struct rtmsg: family, lengths of destination and source, type of service; table, who made it,
            // scope, type; flags.
            message.raw(&[family(to), to.prefix_len(), 0, 0, TABLE_MAIN, BY_STATIC, scope, UNICAST]);
            message.raw(&[0; 4]);
            put_ip(message, DESTINATION, to.network());
            message.put_u32(OUT_INTERFACE, index);
            if let Some(gateway) = gateway {
                put_ip(message, GATEWAY, gateway);
            }
        })
    }

    /// Makes a device of a kind, whose own attributes `info` adds.
    fn make(&mut self, device: &str, kind: &str, info: impl FnOnce(&mut Writer<'_>)) -> Result<(), Error> {
        let step = format!("making the device {device}");
        self.send(&step, NEW_LINK, Flags::CREATE | Flags::EXCL, |message| {
            message.raw(&LinkHeader::default().bytes());
            message.put_str(NAME, device);
            let mut nest = message.nest(LINK_INFO);
            nest.put_str(INFO_KIND, kind);
            info(&mut nest);
        })
    }

    /// Returns the number of a device.
    fn index(&mut self, device: &str) -> Result<u32, Error> {
        let step = format!("looking for the device {device}");
        let mut index = None;
        let mut batch = Batch::new();
        let mut message = batch.message(GET_LINK, Flags::REQUEST | Flags::ACK, 0);
        message.raw(&LinkHeader::default().bytes());
        message.put_str(NAME, device);
        drop(message);
        self.exchange(&step, &batch, |payload| index = LinkHeader::index_of(payload))?;
        index.ok_or_else(|| Error::network(step, "the answer of the kernel is too short"))
    }

    fn send(
        &mut self,
        step: &str,
        kind: u16,
        flags: Flags,
        write: impl FnOnce(&mut Writer<'_>),
    ) -> Result<(), Error> {
        let mut batch = Batch::new();
        write(&mut batch.message(kind, flags | Flags::REQUEST | Flags::ACK, 0));
        self.exchange(step, &batch, |_| ())
    }

    fn exchange(&mut self, step: &str, batch: &Batch, mut on_data: impl FnMut(&[u8])) -> Result<(), Error> {
        let report = exchange(&mut self.0, &[batch], |message| {
            on_data(message.payload);
            Ok(())
        });
        let report = report.map_err(|error| Error::network(step, error))?;
        report.errors.first().map_or(Ok(()), |error| Err(Error::network(step, error)))
    }
}

/// `struct ifinfomsg`, of a device of any type.
#[derive(Clone, Copy, Default)]
struct LinkHeader {
    index: u32,
    flags: u32,
    /// The flags that are meant.
    change: u32,
}

impl LinkHeader {
    fn bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[4..8].copy_from_slice(&self.index.to_ne_bytes());
        bytes[8..12].copy_from_slice(&self.flags.to_ne_bytes());
        bytes[12..].copy_from_slice(&self.change.to_ne_bytes());
        bytes
    }

    fn index_of(payload: &[u8]) -> Option<u32> {
        payload.get(4..)?.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))
    }
}

fn put_ip(message: &mut Writer<'_>, attribute: u16, ip: IpAddr) {
    match ip {
        IpAddr::V4(ip) => message.put(attribute, &ip.octets()),
        IpAddr::V6(ip) => message.put(attribute, &ip.octets()),
    }
}

/// `AF_INET` or `AF_INET6`.
const fn family(net: IpNet) -> u8 {
    match net {
        IpNet::V4(_) => 2,
        IpNet::V6(_) => 10,
    }
}

/// `RTM_NEWLINK`
const NEW_LINK: u16 = 16;
/// `RTM_GETLINK`
const GET_LINK: u16 = 18;
/// `RTM_SETLINK`
const SET_LINK: u16 = 19;
/// `RTM_NEWADDR`
const NEW_ADDRESS: u16 = 20;
/// `RTM_NEWROUTE`
const NEW_ROUTE: u16 = 24;
/// `IFLA_IFNAME`
const NAME: u16 = 3;
/// `IFLA_MASTER`
const CONTROLLER: u16 = 10;
/// `IFLA_LINKINFO`
const LINK_INFO: u16 = 18;
/// `IFLA_NET_NS_FD`
const NAMESPACE: u16 = 28;
/// `IFLA_INFO_KIND`
const INFO_KIND: u16 = 1;
/// `IFLA_INFO_DATA`
const INFO_DATA: u16 = 2;
/// `VETH_INFO_PEER`
const VETH_PEER: u16 = 1;
/// `IFA_F_NODAD` of `linux/if_addr.h`
const IFA_F_NODAD: u8 = 2;
/// `IFF_UP` of `linux/if.h`
const IFF_UP: u32 = 1;
/// `IFA_ADDRESS`
const ADDRESS: u16 = 1;
/// `IFA_LOCAL`
const LOCAL: u16 = 2;
/// `RTA_DST`
const DESTINATION: u16 = 1;
/// `RTA_OIF`
const OUT_INTERFACE: u16 = 4;
/// `RTA_GATEWAY`
const GATEWAY: u16 = 5;
/// `RT_TABLE_MAIN`
const TABLE_MAIN: u8 = 254;
/// `RTPROT_STATIC`
const BY_STATIC: u8 = 4;
/// `RT_SCOPE_UNIVERSE`
const SCOPE_UNIVERSE: u8 = 0;
/// `RT_SCOPE_LINK`
const SCOPE_LINK: u8 = 253;
/// `RTN_UNICAST`
const UNICAST: u8 = 1;
