//! Targets of address translation: `linux/netfilter/nf_nat.h`, `linux/netfilter/xt_TPROXY.h`,
//! `linux/netfilter_ipv6/ip6t_NPT.h`.
//!
//! IPv4 has a structure of its own (`nf_nat_ipv4_multi_range_compat`) but for DNAT, whose revision 2 is the
//! same for both families.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use sluicegate_iptables_save::Family;

use super::codec;
use crate::extension::Codec;
use crate::extension::Mismatch;
use crate::extension::options::{Built, Given, address, mask_text, masked, number, prefix_length};
use crate::extension::wire::{Reader, Writer};

pub(super) static CODECS: &[Codec] = &[
    codec("DNAT", 2, 44, dnat, read_dnat),
    codec("SNAT", 0, 20, snat, read_snat).v4(),
    codec("SNAT", 1, 40, snat, read_snat).v6(),
    codec("MASQUERADE", 0, 20, ports_only, read_ports_only).v4(),
    codec("MASQUERADE", 0, 40, ports_only, read_ports_only).v6(),
    codec("REDIRECT", 0, 20, ports_only, read_ports_only).v4(),
    codec("REDIRECT", 0, 40, ports_only, read_ports_only).v6(),
    codec("NETMAP", 0, 20, netmap, read_netmap).v4(),
    codec("NETMAP", 0, 40, netmap, read_netmap).v6(),
    codec("TPROXY", 1, 28, tproxy, read_tproxy),
    codec("SNPT", 0, 36, npt, read_npt).v6().compared_to(34),
    codec("DNPT", 0, 36, npt, read_npt).v6().compared_to(34),
];

/// What the structures of address translation have in common.
#[derive(Clone, Copy)]
struct Range {
    flags: u32,
    addresses: [IpAddr; 2],
    ports: [u16; 2],
    base: u16,
}

impl Range {
    fn new(given: &Given<'_>) -> Self {
        let flags = given.flags(FLAGS);
        Self { flags, addresses: [unspecified(given.family); 2], ports: [0; 2], base: 0 }
    }

    /// Reads `[address[-address]][:port[-port[/base]]]`, an IPv6 address in brackets if a port follows.
    fn parse(&mut self, word: &str, name: &str, family: Family) -> Result<(), Mismatch> {
        let (hosts, ports) = match family {
            Family::Ipv4 => word.split_once(':').map_or((word, None), |(hosts, ports)| (hosts, Some(ports))),
            Family::Ipv6 => match word.strip_prefix('[').and_then(|rest| rest.split_once("]:")) {
                Some((hosts, ports)) => (hosts, Some(ports)),
                None => match word.strip_prefix(':').filter(|rest| !rest.starts_with(':')) {
                    Some(ports) => ("", Some(ports)),
                    None => (word, None),
                },
            },
        };
        if !hosts.is_empty() {
            let (low, high) = hosts.split_once('-').unwrap_or((hosts, hosts));
            self.addresses = [address(low, family, name)?, address(high, family, name)?];
            self.flags |= MAP_IPS;
        }
        ports.map_or(Ok(()), |ports| self.parse_ports(ports, name))
    }

    fn parse_ports(&mut self, word: &str, name: &str) -> Result<(), Mismatch> {
        let (range, base) = word.split_once('/').map_or((word, None), |(range, base)| (range, Some(base)));
        let (low, high) = range.split_once('-').unwrap_or((range, range));
        self.ports = [number(low, name)?, number(high, name)?];
        self.flags |= PROTO_SPECIFIED;
        if let Some(base) = base {
            self.base = number(base, name)?;
            self.flags |= PROTO_OFFSET;
        }
        Ok(())
    }

    /// Writes `struct nf_nat_ipv4_multi_range_compat` or `struct nf_nat_range`.
    fn write(&self, out: &mut Writer) {
        if let [IpAddr::V4(low), IpAddr::V4(high)] = self.addresses {
            out.u32(1);
            out.u32(self.flags);
            out.bytes(&low.octets());
            out.bytes(&high.octets());
        } else {
            out.u32(self.flags);
            self.addresses.iter().for_each(|address| out.inet(*address));
        }
        self.ports.iter().for_each(|port| out.be16(*port));
    }

    fn read(data: &mut Reader<'_>, family: Family) -> Option<Self> {
        let (flags, addresses) = match family {
            Family::Ipv4 => {
                let [count, flags] = [data.u32()?, data.u32()?];
                let mut host = || data.array::<4>().map(|bytes| IpAddr::V4(Ipv4Addr::from(bytes)));
                let addresses = [host()?, host()?];
                (count == 1).then_some((flags, addresses))?
            }
            Family::Ipv6 => (data.u32()?, [data.inet(family)?, data.inet(family)?]),
        };
        Some(Self { flags, addresses, ports: [data.be16()?, data.be16()?], base: 0 })
    }

    fn ports_text(&self) -> String {
        let [low, high] = self.ports;
        let shift = self.flags & PROTO_OFFSET != 0;
        let range = if low == high && !shift { low.to_string() } else { format!("{low}-{high}") };
        if shift { format!("{range}/{}", self.base) } else { range }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        if self.flags & MAP_IPS != 0 {
            let [low, high] = self.addresses;
            text = if low == high { low.to_string() } else { format!("{low}-{high}") };
        }
        if self.flags & PROTO_SPECIFIED == 0 {
            return text;
        }
        match self.addresses {
            [IpAddr::V6(_), _] if !text.is_empty() => format!("[{text}]:{}", self.ports_text()),
            _ => format!("{text}:{}", self.ports_text()),
        }
    }

    fn build_flags(&self, built: &mut Built<'_>) -> Option<()> {
        built.flags(self.flags & !(MAP_IPS | PROTO_SPECIFIED | PROTO_OFFSET), FLAGS)
    }
}

fn unspecified(family: Family) -> IpAddr {
    match family {
        Family::Ipv4 => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        Family::Ipv6 => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    }
}

/// `struct nf_nat_range2`
fn dnat(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    let mut range = Range::new(given);
    range.parse(given.need("to-destination")?, "to-destination", given.family)?;
    out.u32(range.flags);
    range.addresses.iter().for_each(|address| out.inet(*address));
    range.ports.iter().for_each(|port| out.be16(*port));
    out.be16(range.base);
    out.align(4);
    Ok(())
}

fn read_dnat(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let flags = data.u32()?;
    let addresses = [data.inet(built.family)?, data.inet(built.family)?];
    let range = Range { flags, addresses, ports: [data.be16()?, data.be16()?], base: data.be16()? };
    built.value("to-destination", range.text());
    range.build_flags(built)
}

fn snat(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    let mut range = Range::new(given);
    range.parse(given.need("to-source")?, "to-source", given.family)?;
    range.write(out);
    Ok(())
}

fn read_snat(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let range = Range::read(data, built.family)?;
    built.value("to-source", range.text());
    range.build_flags(built)
}

/// MASQUERADE and REDIRECT
fn ports_only(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    let mut range = Range::new(given);
    if let Some(word) = given.word("to-ports") {
        range.parse_ports(word, "to-ports")?;
    }
    range.write(out);
    Ok(())
}

fn read_ports_only(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let range = Range::read(data, built.family)?;
    if range.flags & PROTO_SPECIFIED != 0 {
        built.value("to-ports", range.ports_text());
    }
    range.build_flags(built)
}

fn netmap(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    let (host, mask) = masked(given.need("to")?, given.family, "to")?;
    let (low, high) = match (host, mask) {
        (IpAddr::V4(host), IpAddr::V4(mask)) => {
            let (host, mask) = (u32::from(host), u32::from(mask));
            (IpAddr::V4((host & mask).into()), IpAddr::V4((host | !mask).into()))
        }
        (IpAddr::V6(host), IpAddr::V6(mask)) => {
            let (host, mask) = (u128::from(host), u128::from(mask));
            (IpAddr::V6((host & mask).into()), IpAddr::V6((host | !mask).into()))
        }
        _ => return Err(Mismatch::expected("an address and a mask of one family").option("to")),
    };
    Range { flags: MAP_IPS, addresses: [low, high], ports: [0; 2], base: 0 }.write(out);
    Ok(())
}

fn read_netmap(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let Range { addresses: [low, high], .. } = Range::read(data, built.family)?;
    let mask = match (low, high) {
        (IpAddr::V4(low), IpAddr::V4(high)) => IpAddr::V4((!(u32::from(low) ^ u32::from(high))).into()),
        (IpAddr::V6(low), IpAddr::V6(high)) => IpAddr::V6((!(u128::from(low) ^ u128::from(high))).into()),
        _ => return None,
    };
    built.value("to", format!("{low}/{}", mask_text(mask)));
    Some(())
}

/// `struct xt_tproxy_target_info_v1`
fn tproxy(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    let (mark, mask) = given.mark("tproxy-mark")?.unwrap_or((0, 0));
    out.u32(mask);
    out.u32(mark);
    out.inet(given.address("on-ip")?.unwrap_or(unspecified(given.family)));
    out.be16(given.number("on-port")?);
    out.align(4);
    Ok(())
}

fn read_tproxy(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let [mask, mark] = [data.u32()?, data.u32()?];
    let host = data.inet(built.family)?;
    built.value("on-port", data.be16()?);
    built.value("on-ip", host);
    built.value("tproxy-mark", format!("{mark:#x}/{mask:#x}"));
    Some(())
}

/// `struct ip6t_npt_tginfo`, of which the kernel computes the adjustment.
fn npt(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    let mut lengths = Vec::new();
    for name in ["src-pfx", "dst-pfx"] {
        let (host, mask) = masked(given.need(name)?, given.family, name)?;
        out.inet(host);
        lengths.push(prefix_length(mask).ok_or_else(|| Mismatch::expected("a prefix").option(name))?);
    }
    out.bytes(&lengths);
    out.zeros(2);
    Ok(())
}

fn read_npt(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let hosts = [data.inet(built.family)?, data.inet(built.family)?];
    let lengths: [u8; 2] = data.array()?;
    for ((name, host), length) in ["src-pfx", "dst-pfx"].into_iter().zip(hosts).zip(lengths) {
        built.value(name, format!("{host}/{length}"));
    }
    Some(())
}

/// `NF_NAT_RANGE_*`
const MAP_IPS: u32 = 1 << 0;
const PROTO_SPECIFIED: u32 = 1 << 1;
const PROTO_OFFSET: u32 = 1 << 5;
const FLAGS: &[(&str, u32)] = &[("random", 1 << 2), ("random-fully", 1 << 4), ("persistent", 1 << 3)];
