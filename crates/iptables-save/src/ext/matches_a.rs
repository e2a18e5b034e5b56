//! Match extensions `addrtype` to `length`.

use super::{Extension, OptionRow, rules};
use crate::value::{Value as V, lists as l};

const fn ext(name: &'static str, options: &'static [OptionRow]) -> Extension {
    Extension::new(name, options)
}

const fn opt(name: &'static str, values: &'static [V]) -> OptionRow {
    OptionRow::new(name, values)
}

const fn flag(name: &'static str) -> OptionRow {
    OptionRow::new(name, &[])
}

pub(super) static MATCHES: &[Extension] = &[
    ext(
        "addrtype",
        &[
            opt("src-type", &[V::BeginningsOf(l::ADDRESS_TYPES)]).not(),
            opt("dst-type", &[V::BeginningsOf(l::ADDRESS_TYPES)]).not(),
            flag("limit-iface-in").group(1),
            flag("limit-iface-out").group(1),
        ],
    )
    .whole(rules::addrtype),
    ext("ah", &[opt("ahspi", &[V::Range(u32::MAX as u64)]).not()]).v4().protocols(&["ah"]),
    ext(
        "ah",
        &[opt("ahspi", &[V::Range(u32::MAX as u64)]).not(), opt("ahlen", &[V::U32]).not(), flag("ahres")],
    )
    .v6(),
    ext(
        "bpf",
        &[
            opt("bytecode", &[V::Bytecode]).group(1),
            opt("object-pinned", &[V::Text(511)]).unquoted().group(1),
        ],
    )
    .whole(rules::one_of_them),
    ext("cgroup", &[opt("path", &[V::Text(511)]).not().group(1), opt("cgroup", &[V::U32]).not().group(1)])
        .whole(rules::one_of_them),
    ext(
        "cluster",
        &[
            opt("cluster-local-node", &[V::Int(1, 32)]).not().group(1),
            opt("cluster-local-nodemask", &[V::Hex(8, u32::MAX as u64)]).not().group(1),
            opt("cluster-total-nodes", &[V::Int(1, 32)]).must(),
            opt("cluster-hash-seed", &[V::Hex(8, u32::MAX as u64)]).must(),
        ],
    )
    .whole(rules::cluster),
    ext("comment", &[opt("comment", &[V::Cut(255)]).must()]),
    ext(
        "connbytes",
        &[
            opt("connbytes", &[V::OpenRange(u64::MAX)]).not().must(),
            opt("connbytes-mode", &[V::OneOf(&["packets", "bytes", "avgpkt"])]).must(),
            opt("connbytes-dir", &[V::OneOf(&["original", "reply", "both"])]).must(),
        ],
    ),
    ext("connlabel", &[opt("label", &[V::ConnLabel]).not().must(), flag("set")]),
    ext(
        "connlimit",
        &[
            opt("connlimit-upto", &[V::U32]).not().group(1),
            opt("connlimit-above", &[V::U32]).not().group(1),
            opt("connlimit-mask", &[V::PrefixMask]),
            flag("connlimit-saddr").group(2),
            flag("connlimit-daddr").group(2),
        ],
    )
    .whole(rules::connlimit),
    ext("connmark", &[opt("mark", &[V::Mark]).not().must()]),
    ext(
        "conntrack",
        &[
            opt("ctstate", &[V::BeginningsOf(l::CONNTRACK_STATES)]).not(),
            opt("ctproto", &[V::ProtocolNumber]).not(),
            opt("ctorigsrc", &[V::HostMask]).not(),
            opt("ctorigdst", &[V::HostMask]).not(),
            opt("ctreplsrc", &[V::HostMask]).not(),
            opt("ctrepldst", &[V::HostMask]).not(),
            opt("ctorigsrcport", &[V::ServicePortRange]).not(),
            opt("ctorigdstport", &[V::ServicePortRange]).not(),
            opt("ctreplsrcport", &[V::ServicePortRange]).not(),
            opt("ctrepldstport", &[V::ServicePortRange]).not(),
            opt("ctstatus", &[V::BeginningsOf(l::CONNTRACK_STATUSES)]).not(),
            opt("ctexpire", &[V::Range(u32::MAX as u64)]).not(),
            opt("ctdir", &[V::OneOfAnyCase(&["ORIGINAL", "REPLY"])]),
        ],
    )
    .whole(rules::one_at_least),
    ext("cpu", &[opt("cpu", &[V::U32]).not().must()]),
    ext(
        "dccp",
        &[
            opt("source-port", &[V::ServicePortRange]).alias(&["sport"]).not(),
            opt("destination-port", &[V::ServicePortRange]).alias(&["dport"]).not(),
            opt("dccp-types", &[V::ListOf(l::DCCP_TYPES)]).not(),
            opt("dccp-option", &[V::Int(1, 255)]).not(),
        ],
    )
    .protocols(&["dccp"]),
    ext("devgroup", &[opt("src-group", &[V::Group]).not(), opt("dst-group", &[V::Group]).not()])
        .whole(rules::devgroup),
    ext(
        "dscp",
        &[opt("dscp", &[V::Hex(2, 63)]).not().group(1), opt("dscp-class", &[V::DscpClass]).not().group(1)],
    )
    .whole(rules::one_of_them),
    ext("dst", &[opt("dst-len", &[V::U32]).not(), opt("dst-opts", &[V::HeaderOptions])]).v6(),
    ext(
        "ecn",
        &[flag("ecn-tcp-cwr").not(), flag("ecn-tcp-ece").not(), opt("ecn-ip-ect", &[V::Int(0, 3)]).not()],
    )
    .whole(rules::ecn),
    ext("esp", &[opt("espspi", &[V::Range(u32::MAX as u64)]).not()]).protocols(&["esp"]),
    ext("eui64", &[]).v6().chains(&["PREROUTING", "INPUT", "FORWARD"]),
    ext(
        "frag",
        &[
            opt("fragid", &[V::Range(u32::MAX as u64)]).not(),
            opt("fraglen", &[V::U32]).not(),
            flag("fragres"),
            flag("fragfirst"),
            flag("fragmore").group(1),
            flag("fraglast").group(1),
        ],
    )
    .v6(),
    ext(
        "hashlimit",
        &[
            opt("hashlimit-upto", &[V::Rate]).alias(&["hashlimit"]).not().group(1),
            opt("hashlimit-above", &[V::Rate]).not().group(1),
            opt("hashlimit-burst", &[V::Burst]),
            opt("hashlimit-mode", &[V::ExactListOf(&["srcip", "srcport", "dstip", "dstport"])]),
            opt("hashlimit-name", &[V::FileName(254)]).unquoted().must(),
            opt("hashlimit-htable-size", &[V::U32]),
            opt("hashlimit-htable-max", &[V::U32]),
            opt("hashlimit-htable-gcinterval", &[V::Int(1, u32::MAX as u64)]),
            opt("hashlimit-htable-expire", &[V::U32]),
            opt("hashlimit-srcmask", &[V::PrefixLength]),
            opt("hashlimit-dstmask", &[V::PrefixLength]),
            flag("hashlimit-rate-match"),
            opt("hashlimit-rate-interval", &[V::Seconds]),
        ],
    )
    .whole(rules::hashlimit),
    ext("hbh", &[opt("hbh-len", &[V::U32]).not(), opt("hbh-opts", &[V::HeaderOptions])]).v6(),
    ext("helper", &[opt("helper", &[V::Cut(29)]).not().must()]),
    ext(
        "hl",
        &[
            opt("hl-lt", &[V::U8]).group(1),
            opt("hl-gt", &[V::U8]).group(1),
            opt("hl-eq", &[V::U8]).alias(&["hl"]).not().group(1),
        ],
    )
    .v6()
    .whole(rules::one_of_them),
    ext("icmp", &[opt("icmp-type", &[V::IcmpType]).not().must()]).v4().protocols(&["icmp"]),
    ext("icmp6", &[opt("icmpv6-type", &[V::Icmp6Type]).not().must()])
        .alias(&["icmpv6", "ipv6-icmp"])
        .v6()
        .protocols(&["ipv6-icmp"]),
    ext("ipcomp", &[opt("ipcompspi", &[V::Range(u32::MAX as u64)]).not(), flag("compres")])
        .protocols(&["ipcomp"]),
    ext("iprange", &[opt("src-range", &[V::AddressRange]).not(), opt("dst-range", &[V::AddressRange]).not()])
        .whole(rules::one_at_least),
    ext("ipv6header", &[opt("header", &[V::ExactListOf(l::IPV6_HEADERS)]).not().must(), flag("soft")]).v6(),
    ext(
        "ipvs",
        &[
            flag("ipvs").not(),
            opt("vproto", &[V::ProtocolNumber]).not(),
            opt("vaddr", &[V::HostMask]).not(),
            opt("vport", &[V::ServicePort]).not(),
            opt("vdir", &[V::OneOfAnyCase(&["ORIGINAL", "REPLY"])]),
            opt("vmethod", &[V::OneOfAnyCase(&["GATE", "IPIP", "MASQ"])]).not(),
            opt("vportctl", &[V::ServicePort]).not(),
        ],
    )
    .whole(rules::one_at_least),
    ext("length", &[opt("length", &[V::Range(u16::MAX as u64)]).not().must()]),
];
