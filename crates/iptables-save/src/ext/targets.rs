//! Target extensions `AUDIT` to `ULOG`.

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

pub(super) static TARGETS: &[Extension] = &[
    ext("AUDIT", &[opt("type", &[V::OneOfAnyCase(&["accept", "drop", "reject"])]).must()]),
    ext("CHECKSUM", &[flag("checksum-fill").must()]).tables(&["mangle"]),
    ext("CLASSIFY", &[opt("set-class", &[V::Class]).must()]).chains(&["OUTPUT", "FORWARD", "POSTROUTING"]),
    ext(
        "CLUSTERIP",
        &[
            flag("new"),
            opt(
                "hashmode",
                &[V::OneOf(&["sourceip", "sourceip-sourceport", "sourceip-sourceport-destport"])],
            ),
            opt("clustermac", &[V::Mac]),
            opt("total-nodes", &[V::Int(1, 16)]),
            opt("local-node", &[V::Int(1, 16)]),
            opt("hash-init", &[V::U32]),
        ],
    )
    .v4()
    .chains(&["INPUT"])
    .whole(rules::clusterip),
    ext(
        "CONNMARK",
        &[
            opt("set-xmark", &[V::Mark]).group(1),
            opt("set-mark", &[V::Mark]).group(1),
            opt("and-mark", &[V::U32]).group(1),
            opt("or-mark", &[V::U32]).group(1),
            opt("xor-mark", &[V::U32]).group(1),
            flag("save-mark").group(1),
            flag("restore-mark").group(1),
            opt("left-shift-mark", &[V::Int(0, 31)]),
            opt("right-shift-mark", &[V::Int(0, 31)]),
            opt("nfmask", &[V::U32]),
            opt("ctmask", &[V::U32]),
            opt("mask", &[V::U32]),
        ],
    )
    .whole(rules::connmark),
    ext("CONNSECMARK", &[flag("save").group(1), flag("restore").group(1)])
        .tables(&["mangle", "security"])
        .whole(rules::one_of_them),
    ext(
        "CT",
        &[
            flag("notrack"),
            opt("helper", &[V::Text(15)]).unquoted(),
            opt("timeout", &[V::Text(31)]).unquoted(),
            opt("ctevents", &[V::ExactListOf(l::CONNTRACK_EVENTS)]),
            opt("expevents", &[V::ExactListOf(&["new"])]),
            opt("zone-orig", &[V::Zone]),
            opt("zone-reply", &[V::Zone]),
            opt("zone", &[V::Zone]),
        ],
    )
    .tables(&["raw"]),
    ext("DNAT", &[opt("to-destination", &[V::NatDestination]).must(), flag("random"), flag("persistent")])
        .tables(&["nat"])
        .chains(&["PREROUTING", "OUTPUT"])
        .whole(rules::nat_ports),
    ext("DNPT", &[opt("src-pfx", &[V::HostMask]).must(), opt("dst-pfx", &[V::HostMask]).must()])
        .v6()
        .tables(&["mangle"])
        .chains(&["PREROUTING", "OUTPUT"])
        .whole(rules::prefix_translation),
    ext(
        "DSCP",
        &[opt("set-dscp", &[V::Hex(2, 63)]).group(1), opt("set-dscp-class", &[V::DscpClass]).group(1)],
    )
    .tables(&["mangle"])
    .whole(rules::one_of_them),
    ext(
        "ECN",
        &[
            flag("ecn-tcp-remove").group(1),
            opt("ecn-tcp-cwr", &[V::Int(0, 1)]).group(1),
            opt("ecn-tcp-ece", &[V::Int(0, 1)]).group(1),
            opt("ecn-ip-ect", &[V::Int(0, 3)]),
        ],
    )
    .v4()
    .tables(&["mangle"])
    .whole(rules::ecn_target),
    ext(
        "HL",
        &[
            opt("hl-set", &[V::U8]).group(1),
            opt("hl-dec", &[V::Int(1, 255)]).group(1),
            opt("hl-inc", &[V::Int(1, 255)]).group(1),
        ],
    )
    .v6()
    .tables(&["mangle"])
    .whole(rules::one_of_them),
    ext(
        "HMARK",
        &[
            opt("hmark-tuple", &[V::ListOf(&["src", "dst", "sport", "dport", "spi", "proto", "ct"])]),
            opt("hmark-src-prefix", &[V::PrefixMask]),
            opt("hmark-dst-prefix", &[V::PrefixMask]),
            opt("hmark-sport-mask", &[V::Hex(4, 65535)]),
            opt("hmark-dport-mask", &[V::Hex(4, 65535)]),
            opt("hmark-spi-mask", &[V::Hex(8, u32::MAX as u64)]),
            opt("hmark-sport", &[V::Hex(4, 65535)]),
            opt("hmark-dport", &[V::Hex(4, 65535)]),
            opt("hmark-spi", &[V::Hex(8, u32::MAX as u64)]),
            opt("hmark-proto-mask", &[V::Hex(2, 65535)]),
            opt("hmark-rnd", &[V::Hex(8, u32::MAX as u64)]),
            opt("hmark-mod", &[V::Int(1, u32::MAX as u64)]).must(),
            opt("hmark-offset", &[V::U32]),
        ],
    )
    .whole(rules::hmark),
    ext(
        "IDLETIMER",
        &[
            // The kernel counts milliseconds in an int.
            opt("timeout", &[V::Int(1, 2_147_482)]).must(),
            opt("label", &[V::CutFileName(27)]).unquoted().must(),
            flag("alarm"),
        ],
    ),
    ext(
        "LED",
        &[
            opt("led-trigger-id", &[V::Text(16)]).must(),
            opt("led-delay", &[V::LedDelay]),
            flag("led-always-blink"),
        ],
    ),
    ext(
        "LOG",
        &[
            opt("log-prefix", &[V::Cut(29)]),
            opt("log-level", &[V::LogLevel]),
            flag("log-tcp-sequence"),
            flag("log-tcp-options"),
            flag("log-ip-options"),
            flag("log-uid"),
            flag("log-macdecode"),
        ],
    )
    .whole(rules::log_prefix),
    ext(
        "MARK",
        &[
            opt("set-xmark", &[V::Mark]).group(1),
            opt("set-mark", &[V::Mark]).group(1),
            opt("and-mark", &[V::U32]).group(1),
            opt("or-mark", &[V::U32]).group(1),
            opt("xor-mark", &[V::U32]).group(1),
        ],
    )
    .whole(rules::one_of_them),
    ext("MASQUERADE", &[opt("to-ports", &[V::NatPorts]), flag("random"), flag("random-fully")])
        .tables(&["nat"])
        .chains(&["POSTROUTING"])
        .whole(rules::nat_ports),
    ext("NETMAP", &[opt("to", &[V::HostMask]).must()])
        .tables(&["nat"])
        .chains(&["PREROUTING", "POSTROUTING", "OUTPUT", "INPUT"])
        .whole(rules::netmap),
    ext(
        "NFLOG",
        &[
            // The legacy back end cuts it to 63 bytes, the nft back end to 127.
            opt("nflog-prefix", &[V::Cut(127)]),
            opt("nflog-group", &[V::U16]),
            opt("nflog-range", &[V::U32]).group(1),
            opt("nflog-size", &[V::U32]).group(1),
            opt("nflog-threshold", &[V::U16]),
        ],
    )
    .whole(rules::log_prefix),
    ext(
        "NFQUEUE",
        &[
            opt("queue-num", &[V::U16]).group(1),
            opt("queue-balance", &[V::QueueRange]).group(1),
            flag("queue-bypass"),
            flag("queue-cpu-fanout").needs("queue-balance"),
        ],
    ),
    ext("NOTRACK", &[]).tables(&["raw"]),
    ext(
        "RATEEST",
        &[
            opt("rateest-name", &[V::Cut(15)]).unquoted().must(),
            opt("rateest-interval", &[V::RateTime]).must(),
            opt("rateest-ewmalog", &[V::RateTime]).must(),
        ],
    )
    .whole(rules::rateest_target),
    ext("REDIRECT", &[opt("to-ports", &[V::NatPorts]), flag("random")])
        .tables(&["nat"])
        .chains(&["PREROUTING", "OUTPUT"])
        .whole(rules::nat_ports),
    ext("REJECT", &[opt("reject-with", &[V::RejectWith])])
        .tables(&["filter"])
        .chains(&["INPUT", "FORWARD", "OUTPUT"])
        .in_kernel(rules::reject),
    ext("SECMARK", &[opt("selctx", &[V::Text(255)]).unquoted().must()]).tables(&["mangle", "security"]),
    ext(
        "SET",
        &[
            opt("add-set", &[V::SetName, V::SetFlags]),
            flag("exist").needs("add-set"),
            opt("timeout", &[V::U32]).needs("add-set"),
            opt("del-set", &[V::SetName, V::SetFlags]),
            opt("map-set", &[V::SetName, V::SetFlags]),
            flag("map-mark").needs("map-set"),
            flag("map-prio").needs("map-set"),
            flag("map-queue").needs("map-set"),
        ],
    )
    .whole(rules::set_target),
    ext(
        "SNAT",
        &[opt("to-source", &[V::NatSource]).must(), flag("random"), flag("random-fully"), flag("persistent")],
    )
    .tables(&["nat"])
    .chains(&["POSTROUTING", "INPUT"])
    .whole(rules::nat_ports),
    ext("SNPT", &[opt("src-pfx", &[V::HostMask]).must(), opt("dst-pfx", &[V::HostMask]).must()])
        .v6()
        .tables(&["mangle"])
        .chains(&["INPUT", "POSTROUTING"])
        .whole(rules::prefix_translation),
    ext(
        "SYNPROXY",
        &[flag("sack-perm"), flag("timestamp"), opt("wscale", &[V::U8]), opt("mss", &[V::U16]), flag("ecn")],
    )
    .protocols(&["tcp"])
    .chains(&["INPUT", "FORWARD"]),
    ext("TCPMSS", &[opt("set-mss", &[V::SegmentSize]).group(1), flag("clamp-mss-to-pmtu").group(1)])
        .protocols(&["tcp"])
        .whole(rules::one_of_them)
        .in_kernel(rules::tcpmss),
    ext("TCPOPTSTRIP", &[opt("strip-options", &[V::TcpOptions])]).tables(&["mangle"]).protocols(&["tcp"]),
    ext("TEE", &[opt("gateway", &[V::Host]).must(), opt("oif", &[V::InterfaceName])]),
    ext(
        "TOS",
        &[
            opt("set-tos", &[V::Tos]).group(1),
            opt("and-tos", &[V::U8]).group(1),
            opt("or-tos", &[V::U8]).group(1),
            opt("xor-tos", &[V::U8]).group(1),
        ],
    )
    .tables(&["mangle"])
    .whole(rules::one_of_them),
    ext(
        "TPROXY",
        &[opt("on-port", &[V::ServicePort]).must(), opt("on-ip", &[V::Host]), opt("tproxy-mark", &[V::Mark])],
    )
    .tables(&["mangle"])
    .chains(&["PREROUTING"])
    .protocols(&["tcp", "udp"]),
    ext("TRACE", &[]).tables(&["raw"]),
    ext(
        "TTL",
        &[
            opt("ttl-set", &[V::U8]).group(1),
            opt("ttl-dec", &[V::Int(1, 255)]).group(1),
            opt("ttl-inc", &[V::Int(1, 255)]).group(1),
        ],
    )
    .v4()
    .tables(&["mangle"])
    .whole(rules::one_of_them),
    ext(
        "ULOG",
        &[
            opt("ulog-prefix", &[V::Text(31)]),
            opt("ulog-nlgroup", &[V::Int(1, 32)]),
            opt("ulog-cprange", &[V::Int(0, u64::MAX)]),
            opt("ulog-qthreshold", &[V::Int(1, 50)]),
        ],
    )
    .v4(),
];
