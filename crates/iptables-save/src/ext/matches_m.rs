//! Match extensions `limit` to `udp`.

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

const PORTS: &[&str] = &["tcp", "udp", "udplite", "sctp", "dccp"];

pub(super) static MATCHES: &[Extension] = &[
    ext("limit", &[opt("limit", &[V::LimitRate]), opt("limit-burst", &[V::Int(0, 10_000)])]),
    ext("mac", &[opt("mac-source", &[V::Mac]).not().must()]).chains(&["PREROUTING", "INPUT", "FORWARD"]),
    ext("mark", &[opt("mark", &[V::Mark]).not().must()]),
    ext("mh", &[opt("mh-type", &[V::MhType]).not()]).alias(&["ipv6-mh"]).v6().protocols(&["ipv6-mh"]),
    ext(
        "multiport",
        &[
            opt("sports", &[V::Ports]).alias(&["source-ports"]).not().group(1),
            opt("dports", &[V::Ports]).alias(&["destination-ports"]).not().group(1),
            opt("ports", &[V::Ports]).not().group(1),
        ],
    )
    .protocols(PORTS)
    .whole(rules::multiport),
    ext("nfacct", &[opt("nfacct-name", &[V::Name(31)]).must()]),
    ext(
        "osf",
        &[
            opt("genre", &[V::Cut(31)]).unquoted().not().must(),
            opt("ttl", &[V::Int(0, 2)]),
            opt("log", &[V::Int(0, 2)]),
        ],
    )
    .v4()
    .protocols(&["tcp"])
    .chains(&["PREROUTING", "INPUT", "FORWARD"]),
    ext(
        "owner",
        &[
            flag("socket-exists").not(),
            opt("uid-owner", &[V::Owner]).not(),
            opt("gid-owner", &[V::Owner]).not(),
            flag("suppl-groups"),
        ],
    )
    .chains(&["OUTPUT", "POSTROUTING"])
    .whole(rules::owner),
    ext(
        "physdev",
        &[
            flag("physdev-is-in").not(),
            opt("physdev-in", &[V::Interface]).not(),
            flag("physdev-is-out").not(),
            opt("physdev-out", &[V::Interface]).not(),
            flag("physdev-is-bridged").not(),
        ],
    )
    .whole(rules::one_at_least),
    ext("pkttype", &[opt("pkt-type", &[V::PacketType]).not().must()]),
    ext(
        "policy",
        &[
            opt("dir", &[V::OneOf(&["in", "out"])]).must(),
            opt("pol", &[V::OneOf(&["none", "ipsec"])]),
            flag("strict"),
            opt("reqid", &[V::U32]).not().many(),
            opt("spi", &[V::Hex(1, u32::MAX as u64)]).not().many(),
            opt("proto", &[V::Protocol]).not().many(),
            opt("mode", &[V::OneOf(&["transport", "tunnel"])]).not().many(),
            opt("tunnel-dst", &[V::HostMask]).not().many(),
            opt("tunnel-src", &[V::HostMask]).not().many(),
            flag("next").many().needs("strict"),
        ],
    )
    .whole(rules::policy),
    ext("quota", &[opt("quota", &[V::Int(0, u64::MAX)]).not().must()]),
    ext(
        "rateest",
        &[
            opt("rateest1", &[V::Name(15)]).unquoted().alias(&["rateest"]),
            flag("rateest-delta"),
            opt("rateest-bps1", &[V::BitRate]).maybe(),
            opt("rateest-pps1", &[V::U32]).maybe(),
            flag("rateest-lt").not().group(1),
            flag("rateest-gt").not().group(1),
            flag("rateest-eq").not().group(1),
            opt("rateest2", &[V::Text(15)]).unquoted(),
            opt("rateest-bps2", &[V::BitRate]).alias(&["rateest-bps"]).maybe(),
            opt("rateest-pps2", &[V::U32]).alias(&["rateest-pps"]).maybe(),
        ],
    )
    .whole(rules::rateest),
    ext("realm", &[opt("realm", &[V::Realm]).not().must()]).v4().chains(&[
        "INPUT",
        "FORWARD",
        "OUTPUT",
        "POSTROUTING",
    ]),
    ext(
        "recent",
        &[
            flag("set").not().group(1),
            flag("rcheck").not().group(1),
            flag("update").not().group(1),
            flag("remove").not().group(1),
            // iptables prints larger ones as negative numbers, which it does not read.
            opt("seconds", &[V::Int(1, i32::MAX as u64)]),
            flag("reap").needs("seconds"),
            opt("hitcount", &[V::U32]),
            flag("rttl"),
            opt("name", &[V::FileName(199)]).unquoted(),
            opt("mask", &[V::Host]),
            flag("rsource").group(2),
            flag("rdest").group(2),
        ],
    )
    .whole(rules::recent),
    ext("rpfilter", &[flag("loose"), flag("validmark"), flag("accept-local"), flag("invert")])
        .tables(&["raw", "mangle"])
        .chains(&["PREROUTING"]),
    ext(
        "rt",
        &[
            opt("rt-type", &[V::U32]).not(),
            opt("rt-segsleft", &[V::Range(u32::MAX as u64)]).not(),
            opt("rt-len", &[V::U32]).not(),
            flag("rt-0-res"),
            opt("rt-0-addrs", &[V::Addresses]),
            flag("rt-0-not-strict"),
        ],
    )
    .v6()
    .whole(rules::rt),
    ext(
        "sctp",
        &[
            opt("source-port", &[V::PortRange]).alias(&["sport"]).not(),
            opt("destination-port", &[V::PortRange]).alias(&["dport"]).not(),
            opt("chunk-types", &[V::OneOf(&["all", "any", "only"]), V::SctpChunks]).not(),
        ],
    )
    .protocols(&["sctp"])
    .whole(rules::own_services),
    ext(
        "set",
        &[
            opt("match-set", &[V::SetName, V::SetFlags]).alias(&["set"]).not(),
            flag("return-nomatch"),
            flag("update-counters").not(),
            flag("update-subcounters").not(),
            opt("packets-eq", &[V::Int(0, u64::MAX)]).not().group(1),
            opt("packets-lt", &[V::Int(0, u64::MAX)]).group(1),
            opt("packets-gt", &[V::Int(0, u64::MAX)]).group(1),
            opt("bytes-eq", &[V::Int(0, u64::MAX)]).not().group(2),
            opt("bytes-lt", &[V::Int(0, u64::MAX)]).group(2),
            opt("bytes-gt", &[V::Int(0, u64::MAX)]).group(2),
        ],
    )
    .whole(rules::set),
    ext("socket", &[flag("transparent"), flag("nowildcard"), flag("restore-skmark")])
        .chains(&["PREROUTING", "INPUT"]),
    ext(
        "srh",
        &[
            opt("srh-next-hdr", &[V::U8]).not(),
            opt("srh-hdr-len-eq", &[V::U8]).not(),
            opt("srh-hdr-len-gt", &[V::U8]).not(),
            opt("srh-hdr-len-lt", &[V::U8]).not(),
            opt("srh-segs-left-eq", &[V::U8]).not(),
            opt("srh-segs-left-gt", &[V::U8]).not(),
            opt("srh-segs-left-lt", &[V::U8]).not(),
            opt("srh-last-entry-eq", &[V::U8]).not(),
            opt("srh-last-entry-gt", &[V::U8]).not(),
            opt("srh-last-entry-lt", &[V::U8]).not(),
            opt("srh-tag", &[V::U16]).not(),
            opt("srh-psid", &[V::HostMask]).not(),
            opt("srh-nsid", &[V::HostMask]).not(),
            opt("srh-lsid", &[V::HostMask]).not(),
        ],
    )
    .v6(),
    ext("state", &[opt("state", &[V::BeginningsOf(l::STATES)]).not().must()]),
    ext(
        "statistic",
        &[
            opt("mode", &[V::OneOf(&["random", "nth"])]).must(),
            opt("probability", &[V::Probability]).not().group(1),
            opt("every", &[V::Int(1, u32::MAX as u64)]).not().group(1).needs("packet"),
            opt("packet", &[V::U32]).needs("every"),
        ],
    )
    .whole(rules::statistic),
    ext(
        "string",
        &[
            opt("string", &[V::Name(128)]).not().group(1),
            opt("hex-string", &[V::HexString]).not().group(1),
            opt("algo", &[V::OneOf(&["bm", "kmp"])]).must(),
            opt("from", &[V::U16]),
            opt("to", &[V::U16]),
            flag("icase"),
        ],
    )
    .whole(rules::string),
    ext(
        "tcp",
        &[
            opt("source-port", &[V::PortRange]).alias(&["sport"]).not(),
            opt("destination-port", &[V::PortRange]).alias(&["dport"]).not(),
            opt("tcp-option", &[V::Int(1, 255)]).not(),
            flag("syn").not().group(1),
            opt("tcp-flags", &[V::TcpFlags, V::TcpFlags]).not().group(1),
        ],
    )
    .protocols(&["tcp"])
    .whole(rules::own_services),
    ext("tcpmss", &[opt("mss", &[V::RisingRange(u16::MAX as u64)]).not().must()]).protocols(&["tcp"]),
    ext(
        "time",
        &[
            opt("timestart", &[V::DayTime]),
            opt("timestop", &[V::DayTime]),
            opt("monthdays", &[V::MonthDays]).not(),
            opt("weekdays", &[V::WeekDays]).not(),
            opt("datestart", &[V::Date]),
            opt("datestop", &[V::Date]),
            flag("kerneltz").group(1).alias(&["localtz"]),
            flag("utc").group(1),
            flag("contiguous"),
        ],
    )
    .whole(rules::time),
    ext("tos", &[opt("tos", &[V::Tos]).not().must()]),
    ext(
        "ttl",
        &[
            opt("ttl-lt", &[V::U8]).group(1),
            opt("ttl-gt", &[V::U8]).group(1),
            opt("ttl-eq", &[V::U8]).alias(&["ttl"]).not().group(1),
        ],
    )
    .v4()
    .whole(rules::one_of_them),
    ext("u32", &[opt("u32", &[V::U32Tests]).not().must()]),
    ext(
        "udp",
        &[
            opt("source-port", &[V::ServicePortRange]).alias(&["sport"]).not(),
            opt("destination-port", &[V::ServicePortRange]).alias(&["dport"]).not(),
        ],
    )
    .protocols(&["udp"]),
];
