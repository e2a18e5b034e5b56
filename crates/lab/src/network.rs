//! The network of a small cluster as one node sees it: the node, its pods, pods of another node, a client
//! outside.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::time::{Duration, Instant};
use std::{fs, thread};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use sluicegate_services::Family;

use crate::{Error, Namespace, Wire, serve};

/// What to build. Addresses of both families; nothing leaves the namespaces.
#[derive(Debug, Clone)]
pub struct NetworkSpec {
    /// The node's address on the link to the world outside.
    pub node: (Ipv4Addr, Ipv6Addr),
    /// The client's address on that link.
    pub client: (Ipv4Addr, Ipv6Addr),
    /// The node's address towards its pods; pods use it as their gateway, masqueraded traffic comes from it.
    pub gateway: (Ipv4Addr, Ipv6Addr),
    /// Pods of this node and of another.
    pub pods: Vec<PodSpec>,
    /// What the client outside sends to the node: service addresses that the world routes there.
    pub routed: Vec<IpNet>,
}

/// A pod: a namespace with an address of each family and servers on some ports.
#[derive(Debug, Clone)]
pub struct PodSpec {
    /// Its name, which its servers answer with.
    pub name: &'static str,
    /// Its addresses.
    pub address: (Ipv4Addr, Ipv6Addr),
    /// Ports that answer TCP and UDP.
    pub ports: Vec<u16>,
}

/// A namespace with its addresses.
#[derive(Debug)]
pub struct Host {
    /// The namespace.
    pub namespace: Namespace,
    /// Its addresses.
    pub address: (IpAddr, IpAddr),
}

/// The network, running.
#[derive(Debug)]
pub struct Network {
    /// The node: here the rules are.
    pub node: Host,
    /// A client outside the cluster.
    pub client: Host,
    /// The pods, in the order of the specification.
    pub pods: Vec<Host>,
}

impl Network {
    /// Builds it and starts the servers.
    ///
    /// # Errors
    /// [`Error`] says which step failed, and why.
    pub fn build(spec: &NetworkSpec) -> Result<Self, Error> {
        // A kernel with IPv6 as a module loads it for the first who wants a socket, and has no sysctls of it
        // before.
        drop(UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)));
        let node = Host::new("node", spec.node)?;
        node.namespace.sysctl("net/ipv4/ip_forward", "1")?;
        node.namespace.sysctl("net/ipv6/conf/all/forwarding", "1")?;
        // Refusals are ICMP errors, of which the kernel otherwise sends only a few a second to one client.
        node.namespace.sysctl("net/ipv4/icmp_ratelimit", "0")?;
        node.namespace.sysctl("net/ipv6/icmp/ratelimit", "0")?;
        let client = Host::new("client", spec.client)?;
        connect_client(spec, &node, &client)?;
        let mut pods = Vec::new();
        for (index, pod) in spec.pods.iter().enumerate() {
            let host = Host::new(pod.name, pod.address)?;
            connect_pod(spec, &node, &host, &format!("pod{index}"))?;
            serve(&host.namespace, pod.name, &pod.ports)?;
            pods.push(host);
        }
        let network = Self { node, client, pods };
        network.hosts().try_for_each(Host::wait_for_ipv6)?;
        Ok(network)
    }

    /// The host with this name: `node`, `client` or a pod's.
    #[must_use]
    pub fn host(&self, name: &str) -> Option<&Host> {
        self.hosts().find(|host| host.namespace.name() == name)
    }

    /// All hosts.
    pub fn hosts(&self) -> impl Iterator<Item = &Host> {
        [&self.node, &self.client].into_iter().chain(&self.pods)
    }
}

impl Host {
    /// Its address of a family.
    #[must_use]
    pub fn address_of(&self, family: Family) -> IpAddr {
        match family {
            Family::Ipv4 => self.address.0,
            Family::Ipv6 => self.address.1,
        }
    }

    fn new(name: &str, address: (Ipv4Addr, Ipv6Addr)) -> Result<Self, Error> {
        let namespace = Namespace::new(name)?;
        // Duplicate address detection would keep every IPv6 address unusable for its first second.
        namespace.sysctl("net/ipv6/conf/default/accept_dad", "0")?;
        namespace.sysctl("net/ipv6/conf/all/accept_dad", "0")?;
        // It waits at random up to this long even where it then detects nothing.
        namespace.sysctl("net/ipv6/conf/default/router_solicitation_delay", "0")?;
        namespace.run(|| Wire::open()?.up("lo"))?;
        Ok(Self { namespace, address: (address.0.into(), address.1.into()) })
    }

    /// Waits until the devices can look for neighbours. The kernel gives a device its link-local address, from
    /// which it asks for them, when it has seen that the link is up: later, in a queue that all namespaces of
    /// the machine share, and without that address questions are dropped in silence.
    fn wait_for_ipv6(&self) -> Result<(), Error> {
        let end = Instant::now() + LONGEST_WAIT;
        let read = || fs::read_to_string("/proc/thread-self/net/if_inet6");
        loop {
            let step = || format!("waiting for the IPv6 addresses of {}", self.namespace.name());
            let addresses = self.namespace.run(read).map_err(|error| Error::network(step(), error))?;
            if is_ready(&addresses) {
                return Ok(());
            }
            if Instant::now() > end {
                return Err(Error::network(step(), format!("they are not usable yet:\n{addresses}")));
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Returns whether no address is tentative and each device but the loop-back has a link-local one, by lines of
/// address, index, length of the prefix, scope, flags and device, numbers in hexadecimal.
fn is_ready(if_inet6: &str) -> bool {
    let (mut devices, mut linked) = (BTreeSet::new(), BTreeSet::new());
    for line in if_inet6.lines() {
        let [_, _, _, scope, flags, device] = line.split_whitespace().collect::<Vec<_>>()[..] else {
            return false;
        };
        if u32::from_str_radix(flags, 16).is_ok_and(|flags| flags & IFA_F_TENTATIVE != 0) {
            return false;
        }
        if device != "lo" {
            devices.insert(device);
        }
        if scope == LINK_SCOPE {
            linked.insert(device);
        }
    }
    devices == linked
}

fn connect_client(spec: &NetworkSpec, node: &Host, client: &Host) -> Result<(), Error> {
    node.namespace.run(|| {
        let mut wire = Wire::open()?;
        wire.veth("world", "eth0", &client.namespace)?;
        wire.up("world")?;
        wire.address("world", subnet4(spec.node.0, 24))?;
        wire.address("world", subnet6(spec.node.1, 64))?;
        // The node's way to everywhere else; without it, it could not reach a cluster IP of its own.
        wire.route(default4(), Some(spec.client.0.into()), "world")?;
        wire.route(default6(), Some(spec.client.1.into()), "world")
    })?;
    client.namespace.run(|| {
        let mut wire = Wire::open()?;
        wire.up("eth0")?;
        wire.address("eth0", subnet4(spec.client.0, 24))?;
        wire.address("eth0", subnet6(spec.client.1, 64))?;
        spec.routed.iter().try_for_each(|net| {
            let gateway = if net.addr().is_ipv4() { spec.node.0.into() } else { spec.node.1.into() };
            wire.route(*net, Some(gateway), "eth0")
        })
    })
}

/// Connects a pod by a link of its own, with routes to single addresses, as many network plug-ins do.
fn connect_pod(spec: &NetworkSpec, node: &Host, pod: &Host, device: &str) -> Result<(), Error> {
    let (gateway4, gateway6) = spec.gateway;
    let (pod4, pod6) = pod.address;
    node.namespace.run(|| {
        let mut wire = Wire::open()?;
        wire.veth(device, "eth0", &pod.namespace)?;
        wire.up(device)?;
        wire.address(device, subnet4(gateway4, 32))?;
        wire.address(device, subnet6(gateway6, 128))?;
        wire.route(pod4.into(), None, device)?;
        wire.route(pod6.into(), None, device)
    })?;
    pod.namespace.run(|| {
        let mut wire = Wire::open()?;
        wire.up("eth0")?;
        wire.address("eth0", pod4.into())?;
        wire.address("eth0", pod6.into())?;
        wire.route(IpAddr::from(gateway4).into(), None, "eth0")?;
        wire.route(IpAddr::from(gateway6).into(), None, "eth0")?;
        wire.route(default4(), Some(gateway4.into()), "eth0")?;
        wire.route(default6(), Some(gateway6.into()), "eth0")
    })
}

fn subnet4(address: Ipv4Addr, prefix: u8) -> IpNet {
    Ipv4Net::new_assert(address, prefix).into()
}

fn subnet6(address: Ipv6Addr, prefix: u8) -> IpNet {
    Ipv6Net::new_assert(address, prefix).into()
}

fn default4() -> IpNet {
    Ipv4Net::default().into()
}

fn default6() -> IpNet {
    Ipv6Net::default().into()
}

/// For a busy machine: it mostly takes milliseconds.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// `IFA_F_TENTATIVE` of `linux/if_addr.h`
const IFA_F_TENTATIVE: u32 = 0x40;
/// `IPV6_ADDR_LINKLOCAL` of the kernel's `net/ipv6.h`
const LINK_SCOPE: &str = "20";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ipv6_is_ready_when_all_devices_have_addresses_to_ask_from() {
        let own = "fd000010024400010000000000000001 02 80 00 82     eth0\n";
        let loopback = "00000000000000000000000000000001 01 80 10 80       lo\n";
        let link = |flags: &str| format!("fe80000000000000000000fffe000001 02 40 20 {flags}     eth0\n");
        assert!(!is_ready(&[loopback, own].concat()));
        assert!(!is_ready(&[loopback, own, &link("c0")].concat()));
        assert!(is_ready(&[loopback, own, &link("80")].concat()));
    }
}
