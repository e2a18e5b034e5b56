//! What comes out otherwise than nft 1.0.6 makes it, each with the reason. The lists are exact: what is
//! mended has to go, and what is new fails.

use crate::language::rules::Other;

/// Rules, scripts or wrong inputs that are not as nft has them, for one reason.
#[derive(Debug)]
pub(crate) struct Known {
    /// Why.
    pub(crate) reason: &'static str,
    /// File, what is otherwise (`other bytecode`, `listed otherwise` and so on), and the rule, the name of
    /// the script or the text of the input.
    pub(crate) of: &'static [(&'static str, &'static str, &'static str)],
}

/// Fails with what is otherwise and not known, and with what is known and no longer otherwise.
pub(crate) fn check(known: &[Known], others: &[Other<'_>]) {
    // Where nothing could be compared, nothing is known to be the same by now.
    if testns::Netns::new().is_none() {
        return;
    }
    let is = |known: &(&str, &str, &str), other: &Other<'_>| *known == (other.file, other.what, other.rule);
    let mut failed: Vec<String> = Vec::new();
    for other in others {
        if !known.iter().flat_map(|known| known.of).any(|known| is(known, other)) {
            failed.push(format!("{}: {}: {}\n{}", other.file, other.what, other.rule, other.detail));
        }
    }
    let count = failed.len();
    for Known { reason, of } in known {
        let mended = of.iter().filter(|known| !others.iter().any(|other| is(known, other)));
        failed.extend(mended.map(|(file, what, of)| format!("{file}: no longer {what}: {of}\n({reason})")));
    }
    assert!(failed.is_empty(), "{}\n{count} are otherwise and not known", failed.join("\n"));
}

/// How many things are otherwise.
pub(crate) fn count(known: &[Known]) -> usize {
    known.iter().map(|known| known.of.len()).sum()
}

/// Rules that are sent, listed or printed otherwise.
pub(crate) const RULES: &[Known] = &[
    Known {
        reason: "nft 1.0.6 does not know how wide a bit field is that is part of a key, and takes parts of \
            others for it.",
        of: &[
            ("concatenations", "listed otherwise", "vlan id . vlan pcp { 5 . 2 }"),
            ("fields-link", "listed otherwise", "vlan dei . iifname { 1 . \"eth0\" } counter"),
            ("fields-link", "listed otherwise", "vlan dei . ip saddr { 1 . 10.0.0.1 }"),
            ("fields-link", "listed otherwise", "vlan pcp . iifname { 5 . \"eth0\" }"),
            ("fields-network", "listed otherwise", "ip6 dscp . tcp dport { cs6 . 80 }"),
            ("fields-network", "other bytecode", "ip6 dscp . tcp dport { cs6 . 80 }"),
            ("fields-network", "listed otherwise", "tcp dport . ip version vmap { 80 . 0x2 : drop }"),
            ("fields-network", "listed otherwise", "vlan dei . meta mark { 0 . 1 } counter accept"),
            ("fields-network", "listed otherwise", "vlan pcp . meta l4proto { 0 . tcp }"),
            ("fields-transport", "listed otherwise", "ip saddr . tcp doff vmap { 10.0.0.1 . 0xf : drop }"),
            (
                "fields-transport",
                "listed otherwise",
                "meta l4proto . tcp option mptcp subtype vmap { tcp . 15 : goto other }",
            ),
            ("fields-transport", "listed otherwise", "tcp option mptcp subtype . meta l4proto { 0x5 . tcp }"),
        ],
    },
    Known {
        reason: "nft 1.0.6 copies a number of a header into a mark as it is: byte-swapped.",
        of: &[("statements", "other bytecode", "ct mark set vlan id")],
    },
    Known {
        reason: "nft hashes out of other registers.",
        of: &[("fields-meta", "other bytecode", "jhash ip saddr mod 16 . meta mark { 9 . 1 }")],
    },
    Known {
        reason: "`warn` is the kernel's own level, which nft, too, leaves out when it lists.",
        of: &[
            (
                "mixed",
                "not read as printed",
                "tcp dport 22 tcp flags syn / fin,syn,rst,ack ct count over 3 limit rate 5/minute burst 5 packets log level warn prefix \"ssh \" counter reject with tcp reset",
            ),
            ("statements", "not read as printed", "log level warn"),
            ("statements", "not read as printed", "log level warn prefix \"reversed\""),
        ],
    },
    Known {
        reason: "nft lists both numbers where only one was given.",
        of: &[
            ("statements", "not read as printed", "synproxy mss 1460"),
            ("statements", "not read as printed", "synproxy wscale 5"),
        ],
    },
];

/// Random rules that are sent, listed, printed or refused otherwise.
pub(crate) const RANDOM: &[Known] = &[];

/// Scripts that make something else.
pub(crate) const SCRIPTS: &[Known] = &[Known {
    reason: "nft 1.0.6 forgets the index of a rule where the same input replaces one.",
    of: &[("systematic", "listed otherwise", "rules moved about 1")],
}];

/// Rules whose listing by nft is not read back to what is listed.
pub(crate) const LISTINGS: &[Known] = &[
    Known {
        reason: "nft leaves out a protocol that it takes for one that others imply: what it lists matches more, as \
            packets with extension headers, VLAN tags, or of IPv6.",
        of: &[
            ("firewalls", "listing read otherwise", "ip6 nexthdr ipv6-icmp icmpv6 type nd-redirect"),
            ("mixed", "listing read otherwise", "ether type 0x800 ip protocol udp udp dport 67-68"),
            ("mixed", "listing read otherwise", "ip6 nexthdr ipv6-icmp icmpv6 type echo-request"),
            ("programs-hosts", "listing read otherwise", "ether type ip ip saddr != 192.168.122.10 drop"),
            (
                "programs-hosts",
                "listing read otherwise",
                "ether type ip6 ip6 saddr != fe80::5054:ff:feaa:bbcc drop",
            ),
            (
                "programs-kubernetes",
                "listing read otherwise",
                "meta l4proto icmpv6 icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } accept",
            ),
        ],
    },
    Known {
        reason: "nft folds the bits that are flipped, and moves the field down all the same. It lists that as a \
            field that is compared in its place.",
        of: &[
            ("fields-link", "listing read otherwise", "vlan dei ^ 1 == 0x1"),
            ("fields-network", "listing read otherwise", "ip version xor 0x8 == 8"),
            ("fields-network", "listing read otherwise", "vlan pcp ^ 0x3 == 1"),
        ],
    },
    Known {
        reason: "nft 1.0.6 lists `<` and `>` that follow each other as a range, even of two fields.",
        of: &[(
            "mixed",
            "listing read otherwise",
            "ip saddr eq 10.0.0.1 ip daddr ne 10.0.0.2 ip ttl lt 5 ip length gt 10 ip id le 5 ip length ge 6",
        )],
    },
    Known {
        reason: "nft 1.0.6 lists words that it does not read itself: `unknown`, `[invalid type]`, a shift in \
            a key.",
        of: &[
            (
                "concatenations",
                "listing refused",
                "ether daddr . vlan id . ip protocol { 00:11:22:33:44:55 . 5 . tcp }",
            ),
            ("concatenations", "listing refused", "ip dscp . ip saddr { ef . 10.0.0.1 }"),
            ("concatenations", "listing refused", "vlan id . vlan pcp { 5 . 2 }"),
            ("fields-link", "listing refused", "ip dscp . ip saddr { af32 . 10.0.0.1 } counter"),
            ("fields-link", "listing refused", "vlan dei . iifname { 1 . \"eth0\" } counter"),
            ("fields-link", "listing refused", "vlan dei . ip saddr { 1 . 10.0.0.1 }"),
            ("fields-link", "listing refused", "vlan pcp . iifname { 5 . \"eth0\" }"),
            ("fields-network", "listing refused", "add @dyn_frag_more_fragments { frag more-fragments }"),
            ("fields-network", "listing refused", "frag id & 15 eq 1"),
            ("fields-network", "listing refused", "frag more-fragments vmap { 0 : drop, 1 : accept }"),
            ("fields-network", "listing refused", "hbh hdrlength and 127 == 0x1 accept"),
            ("fields-network", "listing refused", "iifname . ip dscp vmap { \"eth0\" . af42 : jump other }"),
            ("fields-network", "listing refused", "ip dscp . iifname { cs6 . \"eth0\" } log"),
            ("fields-network", "listing refused", "ip6 dscp . tcp dport { cs6 . 80 }"),
            ("fields-network", "listing refused", "rt seg-left & 0x7f > 1 drop"),
            ("fields-network", "listing refused", "rt seg-left and 15 == 1 drop"),
            ("fields-network", "listing refused", "rt type and 0x3 == 1"),
            ("fields-network", "listing refused", "rt type and 3 == 1 accept"),
            ("fields-network", "listing refused", "rt type and 3 eq 1 counter accept"),
            ("fields-network", "listing refused", "srh tag & 1 == 1 accept"),
            ("fields-network", "listing refused", "srh tag & 32768 == 0x8000 counter"),
            ("fields-network", "listing refused", "tcp dport . ip version vmap { 80 . 0x2 : drop }"),
            ("fields-network", "listing refused", "vlan dei . meta mark { 0 . 1 } counter accept"),
            ("fields-network", "listing refused", "vlan pcp . meta l4proto { 0 . tcp }"),
            ("fields-transport", "listing refused", "dccp type . iifname { sync . \"eth0\" } counter"),
            (
                "fields-transport",
                "listing refused",
                "iifname . dccp type vmap { \"eth0\" . dataack : continue }",
            ),
            ("fields-transport", "listing refused", "ip saddr . tcp doff vmap { 10.0.0.1 . 0xf : drop }"),
            (
                "fields-transport",
                "listing refused",
                "meta l4proto . tcp option mptcp subtype vmap { tcp . 15 : goto other }",
            ),
            ("fields-transport", "listing refused", "tcp option mptcp subtype & 0x1 == 1 counter accept"),
            ("fields-transport", "listing refused", "tcp option mptcp subtype . meta l4proto { 0x5 . tcp }"),
            ("fields-transport", "listing refused", "tcp option mptcp subtype vmap { 5-9 : return }"),
            ("fields-transport", "listing read otherwise", "update @dyn_dccp_type { dccp type }"),
        ],
    },
    Known {
        reason: "nft lists less than it was told.",
        of: &[
            ("mixed", "listing read otherwise", "ct l3proto ipv4 ct protocol tcp"),
            ("sets", "listing read otherwise", "add @dyn { ip saddr counter packets 1 bytes 2 }"),
            ("statements", "listing read otherwise", "meta nfproto ipv4 tcp dport 80 reject with tcp reset"),
            ("statements", "listing read otherwise", "synproxy mss 1460"),
            ("statements", "listing read otherwise", "synproxy wscale 5"),
        ],
    },
    Known {
        reason: "nft lists two keys for the addresses of a connection in the same words.",
        of: &[
            ("mixed", "listing read otherwise", "ct original saddr fe80::1"),
            ("conntrack", "listing read otherwise", "ct original daddr 10.0.0.0/8"),
            ("conntrack", "listing read otherwise", "ct original daddr 10.0.0.1"),
            ("conntrack", "listing read otherwise", "ct original saddr 10.0.0.1"),
            ("conntrack", "listing read otherwise", "ct original saddr ::1"),
            ("conntrack", "listing read otherwise", "ct reply daddr != 10.0.0.1"),
            ("conntrack", "listing read otherwise", "ct reply daddr ::1"),
            ("conntrack", "listing read otherwise", "ct reply saddr 10.0.0.1"),
        ],
    },
    Known {
        reason: "nft 1.0.6 lists a masked comparison as one with a prefix, which it refuses itself.",
        of: &[
            ("fields-link", "listing refused", "arp saddr ip and 255.255.255.0 > 10.0.0.0 drop"),
            ("fields-meta", "listing refused", "ct reply ip6 daddr & ffff:ffff:: > 2001:db8:: comment \"x\""),
            ("fields-meta", "listing refused", "rt ip6 nexthop & ffff:ffff:: > 2001:db8:: counter accept"),
            ("fields-network", "listing refused", "ip saddr & 255.255.255.0 > 10.0.0.0 return"),
        ],
    },
    Known {
        reason: "nft 1.0.6 leaves out the port that comes from a map.",
        of: &[
            ("nat", "listing refused", "tcp dport 80 tproxy ip to :tcp dport map @ports"),
            ("nat", "listing refused", "tcp dport 80 tproxy ip to :tcp dport map { 80 : 23, 443 : 24 }"),
        ],
    },
    Known {
        reason: "nft 1.0.6 copies a number of a header into a mark as it is, and lists what it then does.",
        of: &[("statements", "listing read otherwise", "ct mark set vlan id")],
    },
];

/// Inputs that are not refused as nft refuses them.
pub(crate) const WRONG: &[Known] = &[
    Known {
        reason: "A match of any of several protocols tells none of them. nft 1.0.6 takes the last one that was \
            written for that of all packets: in the other order it takes the same rule.",
        of: &[
            ("matches", "taken", "add rule inet t c meta nfproto { ipv4, ipv6 } ip saddr 1.1.1.1"),
            ("matches", "taken", "add rule inet t c meta nfproto { ipv6, ipv4 } ip6 saddr ::1"),
            (
                "matches",
                "taken",
                "add rule inet t c meta nfproto { ipv4, ipv6 } reject with icmp type host-unreachable",
            ),
            ("matches", "taken", "add rule inet t c ether type { ip, ip6 } ip saddr 1.1.1.1"),
            ("matches", "taken", "add rule inet t c ct l3proto { ipv4, ipv6 } ip saddr 1.1.1.1"),
            ("matches", "taken", "add rule bridge t c meta protocol { ip, ip6 } ip saddr 1.1.1.1"),
            ("matches", "taken", "add rule bridge t c ether type { ip, ip6 } ip saddr 1.1.1.1"),
        ],
    },
    Known {
        reason: "To nft's grammar an unknown word may be a name: it goes on to the first token that cannot \
            follow one. Here the words are underlined up to there, but not where the mistake is another one \
            to us.",
        of: &[
            ("mutations", "refused elsewhere", "add rule inet t c ct direction {reply} {"),
            ("mutations", "refused elsewhere", "add rule inet t c meta rtclassid 0 {"),
            ("mutations", "refused elsewhere", "add rule inet t c icmpv6 max-delay 0x2 {"),
        ],
    },
    Known {
        reason: "nft notices this mistake of the input at another place.",
        of: &[
            (
                "mutations",
                "refused elsewhere",
                "add rule ip6 t c ip6 saddr fc00::/7 , 2001:db8:1::/48 , 2001:db8::/32 }",
            ),
            (
                "mutations",
                "refused elsewhere",
                "add rule inet t c meter m4 { ip saddr { . tcp dport limit rate 5/minute }",
            ),
            (
                "objects",
                "refused elsewhere",
                "table ip u { set s { type ipv4_addr; elements = { 22 : accept }; }\n}",
            ),
            ("objects", "refused elsewhere", "table ip u { flowtable f { hook input priority 0; }\n}"),
            ("text", "refused elsewhere", "define a = { 5\nadd rule ip t c tcp dport $a"),
            (
                "types",
                "refused elsewhere",
                "add rule inet t c icmpv6 parameter-problem . tcp dport { 300 . 80 } return",
            ),
        ],
    },
    Known {
        reason: "nft's grammar takes any word for a constant, and refuses what stands behind it; here the \
            word that is not a constant is underlined.",
        of: &[
            ("matches", "refused elsewhere", "add rule ip t c @th,16,0 5"),
            ("mutations", "refused elsewhere", "add rule arp t c arp saddr ip ip & 255.0.0.255 10.0.0.1"),
            ("mutations", "refused elsewhere", "add rule inet t c symhash mod 0xzz != {5} accept"),
            (
                "mutations",
                "refused elsewhere",
                "add rule inet t c meta iifgroup and foo 3 eq 1 comment \"x\"",
            ),
            ("statements", "refused elsewhere", "add rule ip t c meta priority set x:y"),
        ],
    },
    Known {
        reason: "Earlier versions of nft take it, and so do we.",
        of: &[
            ("statements", "taken", "add rule ip t c tcp option eol kind 1"),
            ("statements", "taken", "add rule ip t c tcp option maxseg kind 1"),
            ("types", "taken", "add rule inet t c tcp option sack-perm kind 4"),
        ],
    },
    Known {
        reason: "Later versions of nft take it, and so do we.",
        of: &[
            ("matches", "taken", "add rule ip t c tcp dport << 3 == 5"),
            ("statements", "taken", "add rule ip t c meta mark set tcp dport"),
            (
                "types",
                "taken",
                "add rule inet t c meta mark set rt type map { 23 : 0x1, 0x2 : 0x2, 0x21 : 0x3 }",
            ),
            ("types", "taken", "add rule inet t c icmpv6 parameter-problem or 2147483647 == 1"),
            (
                "types",
                "taken",
                "add rule inet t c meta mark set rt type map { 0 : 0x1, 5 : 0x2, 0x01 : 0x3 }",
            ),
            ("types", "taken", "add rule inet t c meta mark lshift 8 == 256"),
            ("types", "taken", "add rule inet t c meta mark rshift 8 == 1"),
            ("types", "taken", "add rule inet t c limit rate until 10/second accept"),
            (
                "types",
                "taken",
                "add rule inet t c meta mark set rt seg-left map { 0xa : 0x1, 0x5 : 0x2, 1 : 0x3 }",
            ),
            (
                "types",
                "taken",
                "add rule inet t c meta mark set fib saddr . iif oifname map { docker0 : 0x1, \"eth0.100\" : \
                    0x2, \"enp3s0\" : 0x3 }",
            ),
            ("types", "taken", "add rule inet t c icmpv6 parameter-problem vmap { 0x2328 : continue }"),
            ("types", "taken", "add rule inet t c rt2 addr ::1"),
            (
                "types",
                "taken",
                "add rule inet t c meta mark set srh tag map { 5 : 0x1, 200 : 0x2, 32767 : 0x3 }",
            ),
            ("types", "taken", "add rule inet t c tcp option mptcp subtype mp-capable"),
            ("types", "taken", "add rule inet t c icmpv6 parameter-problem 9 log"),
            ("types", "taken", "add rule inet t c last"),
            (
                "types",
                "taken",
                "add rule inet t c meta mark set frag id map { 255 : 0x1, 127 : 0x2, 32767 : 0x3 }",
            ),
            ("types", "taken", "add rule inet t c icmpv6 parameter-problem vmap { 300-1234 : return }"),
            (
                "types",
                "taken",
                "add rule inet t c ct original ip daddr . ct original proto-dst vmap { 10.0.0.1 . 80 : \
                    accept }",
            ),
            ("types", "taken", "add rule inet t c limit rate until 10/second"),
            ("types", "taken", "add rule inet t c icmpv6 parameter-problem { 300-1234 }"),
            ("types", "taken", "add rule inet t c meta mark set @th,16,16"),
            ("types", "taken", "add rule inet t c meta mark >> 8 == 1"),
            (
                "types",
                "taken",
                "add rule inet t c meta nfproto ipv6 fib saddr . mark . iif check missing drop",
            ),
            ("types", "taken", "add rule inet t c meta mark set fib daddr type map { local : 1 }"),
            (
                "types",
                "taken",
                "add rule inet t c meta mark set mh type map { fast-binding-acknowledgement : 0x1, \
                    home-agent-switch-message : 0x2, binding-refresh-request : 0x3 }",
            ),
            (
                "types",
                "taken",
                "add rule inet t c meta mark set dst nexthdr map { comp : 0x1, sctp : 0x2, icmpv6 : 0x3 }",
            ),
            ("types", "taken", "add rule inet t c icmpv6 parameter-problem != { 4294967295, 100, 9 } return"),
            ("types", "taken", "add rule inet t c (meta mark & 0xff00) >> 8 == 1"),
            ("types", "taken", "add rule inet t c icmpv6 parameter-problem 9-0454 accept"),
            ("types", "taken", "add rule inet t c icmpv6 parameter-problem <= 0xa comment \"x\""),
            ("types", "taken", "add rule inet t c meta mark set ip dscp << 2"),
            (
                "types",
                "taken",
                "add rule inet t c meta mark set ipsec in ip saddr map { 255.255.255.255 : 0x1, 127.0.0.1 : \
                    0x2, 8.8.8.8 : 0x3 }",
            ),
            ("types", "taken", "add rule inet t c meta mark << 8 == 0x100"),
            ("types", "taken", "add rule inet t c ct protocol tcp ct original proto-dst 80"),
            ("types", "taken", "add rule inet t c fib saddr . iif check exists"),
            (
                "types",
                "taken",
                "add rule inet t c meta mark set frag nexthdr map { tcp : 0x1, 47 : 0x2, ipip : 0x3 }",
            ),
        ],
    },
];
