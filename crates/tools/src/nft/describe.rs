//! `describe`: what an expression gives, and the names of its values.

use sluicegate_nftables::DataType;
use sluicegate_nftables::Description;
use sluicegate_nftables::expr::{CtKey, FibResult, MetaKey};
use sluicegate_nftables::lang::Expression;
use sluicegate_nftables::lang::exthdr::Exthdr;

use super::names::protocols;

/// What nft says of an expression or a data type.
pub(crate) fn describe(of: &Description) -> String {
    match of {
        // Types of expressions that nft knows by no name.
        Description::Type(DataType::CT_EVENT | DataType::CT_LABEL) => invalid("symbol"),
        Description::Type(of) => about(&format!("datatype {}", of.name()), *of, None),
        Description::Expression(of) => {
            // The presence of a header is described as its first field.
            let first = match of {
                Expression::Exthdr(of) if of.is_presence() => {
                    Exthdr::at(of.op(), of.kind(), 0, 8, false).map(Expression::from)
                }
                _ => None,
            };
            let of = first.as_ref().unwrap_or(of);
            let Some(part) = of.part().filter(|_| !is_untyped(of)) else {
                return invalid(kind(of));
            };
            let of_type = part.data_type();
            let bits = match of {
                Expression::Payload(field) => field.bits(),
                Expression::Exthdr(field) => field.bits(),
                Expression::RawPayload(raw) => raw.bits,
                Expression::Meta(MetaKey::NFTRACE) => 1,
                _ => u16::try_from(part.bytes() * 8).unwrap_or(u16::MAX),
            };
            let name = match of {
                Expression::Fib(fib) if fib.result == FibResult::OIFNAME => "string",
                _ => of_type.name(),
            };
            let mut text = about(&format!("{} expression, datatype {name}", kind(of)), of_type, Some(bits));
            match of {
                Expression::RawPayload(_) => {
                    text = text.replacen("(integer), ", "(integer) (basetype integer), ", 1);
                }
                Expression::Ct(_) => {
                    text = text.replacen("(Relative time of packet reception)", "(relative time)", 1);
                }
                Expression::Fib(_) if name == "string" => {
                    text = text.replacen("(network interface name) (basetype string)", "(string)", 1);
                }
                _ => {}
            }
            text
        }
    }
}

/// What nft 1.0.6 has no type for: constants, and addresses whose family is not said.
fn is_untyped(of: &Expression) -> bool {
    match of {
        Expression::Value(_) => true,
        Expression::Ct(ct) if ct.family.is_none() => {
            [CtKey::SADDR, CtKey::DADDR, CtKey::PROTO_SRC, CtKey::PROTO_DST].contains(&ct.key)
        }
        _ => false,
    }
}

/// Without an end of the line, as nft.
fn invalid(kind: &str) -> String {
    format!("{kind} expression, datatype invalid (invalid)")
}

fn kind(of: &Expression) -> &'static str {
    match of {
        Expression::Payload(_) | Expression::RawPayload(_) | Expression::Inner(_) => "payload",
        Expression::Exthdr(_) => "exthdr",
        Expression::Meta(_) => "meta",
        Expression::Ct(_) => "ct",
        Expression::Rt(_) => "rt",
        Expression::Socket(_) => "socket",
        Expression::Osf(_) => "osf",
        Expression::Fib(_) => "fib",
        Expression::Numgen(_) => "numgen",
        Expression::Jhash(_) | Expression::Symhash(_) => "hash",
        Expression::Ipsec(_) => "xfrm",
        Expression::Binary(_) => "binop",
        Expression::Concat(_) => "concat",
        Expression::Map(_) => "map",
        _ => "symbol",
    }
}

fn about(start: &str, of: DataType, bits: Option<u16>) -> String {
    let (title, base) = TITLES
        .iter()
        .find(|(name, _, _)| *name == of.name())
        .map_or(("", ""), |(_, title, base)| (title, base));
    let base = if base.is_empty() { String::new() } else { format!(" (basetype {base})") };
    let bits = bits.unwrap_or_else(|| match of {
        _ if UNSIZED.contains(&of.name()) => 0,
        DataType::BOOLEAN => 1,
        of => of.bits(),
    });
    let width = match of {
        DataType::STRING | DataType::IFNAME if start.contains("expression") => {
            format!("{} characters", bits / 8)
        }
        _ => format!("{bits} bits"),
    };
    let mut text = format!("{start} ({title}){base}, {width}\n");
    if of == DataType::INET_PROTO {
        // Those that the machine names, without a line above them.
        let protocols = protocols();
        text.extend(protocols.iter().map(|(number, name)| format!("\t{name:<30}\t{number}\n")));
        return text;
    }
    if of.symbols().is_empty() {
        return text;
    }
    let decimal =
        matches!(of, DataType::DAY | DataType::ICMP_TYPE | DataType::ICMPV6_TYPE | DataType::IGMP_TYPE)
            || DECIMAL.contains(&of.name());
    let digits = of.bytes() * 2;
    text.push_str(&format!(
        "\npre-defined symbolic constants (in {}):\n",
        if decimal { "decimal" } else { "hexadecimal" }
    ));
    for (name, value) in of.symbols() {
        text.push_str(&match decimal {
            true => format!("\t{name:<30}\t{value:>20}\n"),
            // Of a type, nft 1.0.6 prints the bytes of these as a number of the machine.
            false
                if start.starts_with("datatype")
                    && [DataType::ETHER_TYPE, DataType::ARP_OP].contains(&of) =>
            {
                format!("\t{name:<30}\t0x{:0digits$x}\n", u16::try_from(*value).unwrap_or_default().to_be())
            }
            false => format!("\t{name:<30}\t0x{value:0digits$x}\n"),
        });
    }
    text
}

/// The names of nft's datatypes, and their base types.
const TITLES: &[(&str, &str, &str)] = &[
    ("verdict", "netfilter verdict", ""),
    ("nf_proto", "netfilter protocol", "integer"),
    ("bitmask", "bitmask", "integer"),
    ("integer", "integer", ""),
    ("string", "string", ""),
    ("ll_addr", "link layer address", "integer"),
    ("ipv4_addr", "IPv4 address", "integer"),
    ("ipv6_addr", "IPv6 address", "integer"),
    ("ether_addr", "Ethernet address", "link layer address, integer"),
    ("ether_type", "Ethernet protocol", "integer"),
    ("arp_op", "ARP operation", "integer"),
    ("inet_proto", "Internet protocol", "integer"),
    ("inet_service", "internet network service", "integer"),
    ("icmp_type", "ICMP type", "integer"),
    ("tcp_flag", "TCP flag", "bitmask, integer"),
    ("dccp_pkttype", "DCCP packet type", "integer"),
    ("mh_type", "Mobility Header Type", "integer"),
    ("time", "Relative time of packet reception", "integer"),
    ("mark", "packet mark", "integer"),
    ("iface_index", "network interface index", "integer"),
    ("iface_type", "network interface type", "integer"),
    ("realm", "routing realm", "integer"),
    ("classid", "TC classid", "integer"),
    ("uid", "user ID", "integer"),
    ("gid", "group ID", "integer"),
    ("ct_state", "conntrack state", "bitmask, integer"),
    ("ct_dir", "conntrack direction", "integer"),
    ("ct_status", "conntrack status", "bitmask, integer"),
    ("icmpv6_type", "ICMPv6 type", "integer"),
    ("ct_label", "conntrack label", "bitmask, integer"),
    ("pkt_type", "packet type", "integer"),
    ("icmp_code", "icmp code", "integer"),
    ("icmpv6_code", "icmpv6 code", "integer"),
    ("icmpx_code", "icmpx code", "integer"),
    ("devgroup", "devgroup name", "integer"),
    ("dscp", "Differentiated Services Code Point", "integer"),
    ("ecn", "Explicit Congestion Notification", "integer"),
    ("fib_addrtype", "fib address type", "integer"),
    ("boolean", "boolean type", "integer"),
    ("ct_event", "conntrack event bits", "bitmask, integer"),
    ("ifname", "network interface name", "string"),
    ("igmp_type", "IGMP type", "integer"),
    ("hour", "Hour of day of packet reception", "integer"),
    ("day", "Day of week of packet reception", "integer"),
    ("cgroupsv2", "cgroupsv2 path", "integer"),
];
/// Types of any width.
const UNSIZED: &[&str] = &["bitmask", "integer", "string", "ll_addr"];
/// Types whose names nft lists with decimal numbers.
const DECIMAL: &[&str] = &[
    "nf_proto",
    "mh_type",
    "ct_dir",
    "pkt_type",
    "icmp_code",
    "icmpv6_code",
    "icmpx_code",
    "fib_addrtype",
    "boolean",
];
