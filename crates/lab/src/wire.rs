//! Links, addresses and routes of one namespace, through rtnetlink.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use futures_util::TryStreamExt as _;
use ipnet::IpNet;
use rtnetlink::packet_route::link::{LinkAttribute, LinkMessage};
use rtnetlink::{Handle, LinkBridge, LinkDummy, LinkUnspec, LinkVeth, RouteMessageBuilder};
use tokio::runtime::Runtime;

use crate::{Error, Namespace};

/// An rtnetlink connection into one namespace. It belongs to the namespace of the thread that opens it.
#[derive(Debug)]
pub struct Wire {
    runtime: Runtime,
    handle: Handle,
}

impl Wire {
    /// Connects to the current thread's namespace.
    ///
    /// # Errors
    /// When no netlink socket can be had.
    pub fn open() -> Result<Self, Error> {
        let fail = |e: std::io::Error| Error::network("opening an rtnetlink socket", e);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().map_err(fail)?;
        let handle = {
            let _inside = runtime.enter();
            let (connection, handle, _) = rtnetlink::new_connection().map_err(fail)?;
            runtime.spawn(connection);
            handle
        };
        Ok(Self { runtime, handle })
    }

    /// Makes a pair of connected devices, the second one in another namespace.
    ///
    /// # Errors
    /// [`Error`] names the device and says what rtnetlink answered; so for all that follow.
    pub fn veth(&self, device: &str, peer: &str, namespace: &Namespace) -> Result<(), Error> {
        self.link(device, LinkVeth::new(device, peer).build())?;
        let index = self.index(peer)?;
        let message = LinkUnspec::new_with_index(index).setns_by_fd(namespace.raw_fd()).build();
        self.set(&format!("moving {peer} to {}", namespace.name()), message)
    }

    /// Makes a bridge.
    ///
    /// # Errors
    /// See [`veth`](Self::veth).
    pub fn bridge(&self, device: &str) -> Result<(), Error> {
        self.link(device, LinkBridge::new(device).build())
    }

    /// Makes a dummy device.
    ///
    /// # Errors
    /// See [`veth`](Self::veth).
    pub fn dummy(&self, device: &str) -> Result<(), Error> {
        self.link(device, LinkDummy::new(device).build())
    }

    /// Makes a device a port of a bridge.
    ///
    /// # Errors
    /// See [`veth`](Self::veth).
    pub fn attach(&self, device: &str, bridge: &str) -> Result<(), Error> {
        let (index, bridge_index) = (self.index(device)?, self.index(bridge)?);
        let message = LinkUnspec::new_with_index(index).controller(bridge_index).build();
        self.set(&format!("attaching {device} to {bridge}"), message)
    }

    /// Sets a device up.
    ///
    /// # Errors
    /// See [`veth`](Self::veth).
    pub fn up(&self, device: &str) -> Result<(), Error> {
        let message = LinkUnspec::new_with_index(self.index(device)?).up().build();
        self.set(&format!("setting {device} up"), message)
    }

    /// Gives a device an address.
    ///
    /// # Errors
    /// See [`veth`](Self::veth).
    pub fn address(&self, device: &str, address: IpNet) -> Result<(), Error> {
        let index = self.index(device)?;
        let request = self.handle.address().add(index, address.addr(), address.prefix_len());
        self.runtime
            .block_on(request.execute())
            .map_err(|e| Error::network(format!("giving {device} the address {address}"), e))
    }

    /// Adds a route through a device, by way of a gateway or straight onto the link.
    ///
    /// # Errors
    /// See [`veth`](Self::veth).
    pub fn route(&self, destination: IpNet, gateway: Option<IpAddr>, device: &str) -> Result<(), Error> {
        let index = self.index(device)?;
        let message = match (destination, gateway) {
            (IpNet::V4(net), gateway) => {
                let route = RouteMessageBuilder::<Ipv4Addr>::new()
                    .destination_prefix(net.addr(), net.prefix_len())
                    .output_interface(index);
                match gateway {
                    Some(IpAddr::V4(gateway)) => route.gateway(gateway).build(),
                    _ => route.scope(rtnetlink::packet_route::route::RouteScope::Link).build(),
                }
            }
            (IpNet::V6(net), gateway) => {
                let route = RouteMessageBuilder::<Ipv6Addr>::new()
                    .destination_prefix(net.addr(), net.prefix_len())
                    .output_interface(index);
                match gateway {
                    Some(IpAddr::V6(gateway)) => route.gateway(gateway).build(),
                    _ => route.build(),
                }
            }
        };
        self.runtime
            .block_on(self.handle.route().add(message).execute())
            .map_err(|e| Error::network(format!("adding the route {destination} through {device}"), e))
    }

    fn link(&self, device: &str, message: LinkMessage) -> Result<(), Error> {
        self.runtime
            .block_on(self.handle.link().add(message).execute())
            .map_err(|e| Error::network(format!("making the device {device}"), e))
    }

    fn set(&self, step: &str, message: LinkMessage) -> Result<(), Error> {
        self.runtime.block_on(self.handle.link().set(message).execute()).map_err(|e| Error::network(step, e))
    }

    fn index(&self, device: &str) -> Result<u32, Error> {
        let mut links = self.handle.link().get().match_name(device.to_owned()).execute();
        let link = self
            .runtime
            .block_on(links.try_next())
            .map_err(|e| Error::network(format!("looking for the device {device}"), e))?;
        link.filter(|link| {
            link.attributes.iter().any(|a| matches!(a, LinkAttribute::IfName(n) if n == device))
        })
        .map(|link| link.header.index)
        .ok_or_else(|| Error::network(format!("looking for the device {device}"), "it does not exist"))
    }
}
