//! The addresses of this node, as the kernel has them: node ports are answered on some of them.

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;

use crate::Error;

/// The addresses of the interfaces in this network namespace.
pub(crate) fn of_interfaces() -> Result<Vec<IpAddr>, Error> {
    let interfaces = nix::ifaddrs::getifaddrs();
    let interfaces = interfaces.map_err(|errno| Error::Read {
        path: PathBuf::from("the addresses of this node's interfaces"),
        source: io::Error::from(errno),
    })?;
    let ip = |address: nix::sys::socket::SockaddrStorage| {
        let v4 = address.as_sockaddr_in().map(|v4| IpAddr::from(v4.ip()));
        v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::from(v6.ip())))
    };
    let found: BTreeSet<_> = interfaces.filter_map(|interface| ip(interface.address?)).collect();
    Ok(found.into_iter().collect())
}
