//! What comes out otherwise in JSON, each with its reason. The lists are exact.

use crate::language::known::Known;

/// Rules that we print otherwise than nft.
pub(crate) const LISTED: &[Known] = &[
    Known {
        reason: "nft leaves out a protocol that it takes for one that others imply: what it lists matches more, as \
            packets with extension headers, VLAN tags, or of IPv6.",
        of: &[
            ("firewalls", "listed otherwise", "ip6 nexthdr ipv6-icmp icmpv6 type nd-redirect"),
            ("mixed", "listed otherwise", "ether type 0x800 ip protocol udp udp dport 67-68"),
            ("mixed", "listed otherwise", "ip6 nexthdr ipv6-icmp icmpv6 type echo-request"),
            ("programs-hosts", "listed otherwise", "ether type ip ip saddr != 192.168.122.10 drop"),
            (
                "programs-hosts",
                "listed otherwise",
                "ether type ip6 ip6 saddr != fe80::5054:ff:feaa:bbcc drop",
            ),
            (
                "programs-kubernetes",
                "listed otherwise",
                "meta l4proto icmpv6 icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } accept",
            ),
        ],
    },
    Known {
        reason: "nft 1.0.6 shifts bits across bytes in the order of the network: what it sends has no words.",
        of: &[("fields-network", "listed otherwise", "ip6 dscp . tcp dport { cs6 . 80 }")],
    },
    Known {
        reason: "nft folds the bits that are flipped, and moves the field down all the same. It lists that as a \
            field that is compared in its place.",
        of: &[
            ("fields-link", "listed otherwise", "vlan dei ^ 1 == 0x1"),
            ("fields-network", "listed otherwise", "ip version xor 0x8 == 8"),
            ("fields-network", "listed otherwise", "vlan pcp ^ 0x3 == 1"),
        ],
    },
    Known {
        reason: "nft 1.0.6 lists `<` and `>` that follow each other as a range, even of two fields.",
        of: &[(
            "mixed",
            "listed otherwise",
            "ip saddr eq 10.0.0.1 ip daddr ne 10.0.0.2 ip ttl lt 5 ip length gt 10 ip id le 5 ip length ge 6",
        )],
    },
    Known {
        reason: "nft takes a field of IGMP that is compared together with another for a port.",
        of: &[("mixed", "listed otherwise", "igmp mrt 5 igmp checksum 1")],
    },
    Known {
        reason: "nft 1.0.6 lists a key with bits of a byte as shifted, and takes parts of other values for \
            its values.",
        of: &[
            (
                "concatenations",
                "listed otherwise",
                "ether daddr . vlan id . ip protocol { 00:11:22:33:44:55 . 5 . tcp }",
            ),
            ("concatenations", "listed otherwise", "vlan id . vlan pcp { 5 . 2 }"),
            ("fields-link", "listed otherwise", "vlan dei . iifname { 1 . \"eth0\" } counter"),
            ("fields-link", "listed otherwise", "vlan dei . ip saddr { 1 . 10.0.0.1 }"),
            ("fields-link", "listed otherwise", "vlan pcp . iifname { 5 . \"eth0\" }"),
            ("fields-network", "listed otherwise", "tcp dport . ip version vmap { 80 . 0x2 : drop }"),
            ("fields-network", "listed otherwise", "vlan dei . meta mark { 0 . 1 } counter accept"),
            ("fields-network", "listed otherwise", "vlan pcp . meta l4proto { 0 . tcp }"),
            ("fields-transport", "listed otherwise", "ip saddr . tcp doff vmap { 10.0.0.1 . 0xf : drop }"),
        ],
    },
    Known {
        reason: "nft tells apart two keys for the addresses of a connection that are the same in a table of \
            one family.",
        of: &[("conntrack", "listed otherwise", "ct original daddr 10.0.0.0/8")],
    },
    Known {
        reason: "nft drops the match of the IP version, without which it does not read its key.",
        of: &[("expressions", "listed otherwise", "meta nfproto ipv4 ct original saddr 10.0.0.1")],
    },
    Known {
        reason: "nft 1.0.6 lists a masked comparison as one with a prefix, which is possible for equality \
            only.",
        of: &[
            ("fields-link", "listed otherwise", "arp saddr ip and 255.255.255.0 > 10.0.0.0 drop"),
            (
                "fields-meta",
                "listed otherwise",
                "ct reply ip6 daddr & ffff:ffff:: > 2001:db8:: comment \"x\"",
            ),
            ("fields-meta", "listed otherwise", "rt ip6 nexthop & ffff:ffff:: > 2001:db8:: counter accept"),
            ("fields-network", "listed otherwise", "ip saddr & 255.255.255.0 > 10.0.0.0 return"),
        ],
    },
    Known {
        reason: "nft 1.0.6 does not recognise bits of a byte that are calculated with: it lists how they are \
            loaded.",
        of: &[
            ("fields-link", "listed otherwise", "vlan dei & 0x1 eq 1 comment \"x\""),
            ("fields-link", "listed otherwise", "vlan dei and 1 > 1 return"),
            ("fields-link", "listed otherwise", "vlan pcp & 0x3 1 log"),
            ("fields-link", "listed otherwise", "vlan pcp & 1 == 0x1 comment \"x\""),
            ("fields-link", "listed otherwise", "vlan pcp and 4 eq 4"),
            ("fields-network", "listed otherwise", "ip version & 0x3 == 1 counter accept"),
            ("fields-network", "listed otherwise", "ip version & 7 eq 0x1 comment \"x\""),
            ("fields-network", "listed otherwise", "ip version and 0x8 != 8"),
            ("fields-network", "listed otherwise", "ip version and 7 1 drop"),
            ("fields-network", "listed otherwise", "ip6 version & 0x1 eq 1 counter accept"),
            ("fields-network", "listed otherwise", "ip6 version & 7 != 0x1 log"),
            ("fields-network", "listed otherwise", "ip6 version or 0x7 == 1"),
            ("fields-network", "listed otherwise", "ip6 version or 0x8 == 0x8"),
            ("fields-network", "listed otherwise", "vlan dei & 1 == 0x1 counter"),
            ("fields-network", "listed otherwise", "vlan pcp & 1 > 0x1 counter"),
            ("fields-transport", "listed otherwise", "tcp doff & 0xf != 1 counter"),
            ("fields-transport", "listed otherwise", "tcp doff and 7 != 0x1 log"),
            ("fields-transport", "listed otherwise", "tcp doff or 7 == 1"),
        ],
    },
    Known {
        reason: "nft takes bytes at the place of an address for one, and does not list the members of a set \
            as addresses.",
        of: &[("fields-meta", "listed otherwise", "@nh,96,32 { 32767, 300, 1500 }")],
    },
    Known {
        reason: "nft 1.0.6 does not recognise a field of an extension header that is masked: `unknown`.",
        of: &[
            ("fields-network", "listed otherwise", "add @dyn_frag_more_fragments { frag more-fragments }"),
            ("fields-network", "listed otherwise", "frag id & 15 eq 1"),
            ("fields-network", "listed otherwise", "frag more-fragments vmap { 0 : drop, 1 : accept }"),
            ("fields-network", "listed otherwise", "hbh hdrlength and 127 == 0x1 accept"),
            ("fields-network", "listed otherwise", "rt seg-left & 0x7f > 1 drop"),
            ("fields-network", "listed otherwise", "rt seg-left and 15 == 1 drop"),
            ("fields-network", "listed otherwise", "rt type and 0x3 == 1"),
            ("fields-network", "listed otherwise", "rt type and 3 == 1 accept"),
            ("fields-network", "listed otherwise", "rt type and 3 eq 1 counter accept"),
            ("fields-network", "listed otherwise", "srh tag & 1 == 1 accept"),
            ("fields-network", "listed otherwise", "srh tag & 32768 == 0x8000 counter"),
            (
                "fields-transport",
                "listed otherwise",
                "meta l4proto . tcp option mptcp subtype vmap { tcp . 15 : goto other }",
            ),
            ("fields-transport", "listed otherwise", "tcp option mptcp subtype & 0x1 == 1 counter accept"),
            ("fields-transport", "listed otherwise", "tcp option mptcp subtype . meta l4proto { 0x5 . tcp }"),
            ("fields-transport", "listed otherwise", "tcp option mptcp subtype vmap { 5-9 : return }"),
        ],
    },
    Known {
        reason: "nft 1.0.6 copies a number of a header into a mark as it is, and lists what it then does.",
        of: &[("statements", "listed otherwise", "ct mark set vlan id")],
    },
    Known {
        reason: "nft leaves out a match that it takes for implied.",
        of: &[
            ("mixed", "listed otherwise", "ct l3proto ipv4 ct protocol tcp"),
            ("statements", "listed otherwise", "meta nfproto ipv4 tcp dport 80 reject with tcp reset"),
        ],
    },
];

/// Rules whose JSON by nft is not read back to what it was.
pub(crate) const READ: &[Known] = &[
    Known {
        reason: "nft 1.0.6 lists a key with bits of a byte as shifted, and takes parts of other values for \
            its values.",
        of: &[
            (
                "concatenations",
                "refused by our reader",
                "ether daddr . vlan id . ip protocol { 00:11:22:33:44:55 . 5 . tcp }",
            ),
            ("concatenations", "other bytecode", "vlan id . vlan pcp { 5 . 2 }"),
            ("fields-link", "other bytecode", "vlan dei . iifname { 1 . \"eth0\" } counter"),
            ("fields-link", "other bytecode", "vlan dei . ip saddr { 1 . 10.0.0.1 }"),
            ("fields-link", "other bytecode", "vlan pcp . iifname { 5 . \"eth0\" }"),
            ("fields-network", "other bytecode", "ip6 dscp . tcp dport { cs6 . 80 }"),
            ("fields-network", "other bytecode", "tcp dport . ip version vmap { 80 . 0x2 : drop }"),
            ("fields-network", "other bytecode", "vlan dei . meta mark { 0 . 1 } counter accept"),
            ("fields-network", "other bytecode", "vlan pcp . meta l4proto { 0 . tcp }"),
            ("fields-transport", "other bytecode", "ip saddr . tcp doff vmap { 10.0.0.1 . 0xf : drop }"),
        ],
    },
    Known {
        reason: "nft leaves out the match that says the IP version: the key says it here.",
        of: &[("expressions", "other bytecode", "meta nfproto ipv4 ct original saddr 10.0.0.1")],
    },
    Known {
        reason: "nft 1.0.6 copies a number of a header into a mark as it is: byte-swapped.",
        of: &[("statements", "other bytecode", "ct mark set vlan id")],
    },
    Known {
        reason: "nft 1.0.6 lists a masked comparison as one with a prefix, which is possible for equality \
            only.",
        of: &[
            ("fields-link", "not sent", "arp saddr ip and 255.255.255.0 > 10.0.0.0 drop"),
            ("fields-meta", "not sent", "ct reply ip6 daddr & ffff:ffff:: > 2001:db8:: comment \"x\""),
            ("fields-meta", "not sent", "rt ip6 nexthop & ffff:ffff:: > 2001:db8:: counter accept"),
            ("fields-network", "not sent", "ip saddr & 255.255.255.0 > 10.0.0.0 return"),
        ],
    },
    Known {
        reason: "nft hashes out of other registers.",
        of: &[("fields-meta", "other bytecode", "jhash ip saddr mod 16 . meta mark { 9 . 1 }")],
    },
    Known {
        reason: "nft 1.0.6 does not recognise a field of an extension header that is masked: `unknown`.",
        of: &[
            (
                "fields-network",
                "refused by our reader",
                "add @dyn_frag_more_fragments { frag more-fragments }",
            ),
            ("fields-network", "refused by our reader", "frag id & 15 eq 1"),
            ("fields-network", "refused by our reader", "frag more-fragments vmap { 0 : drop, 1 : accept }"),
            ("fields-network", "refused by our reader", "hbh hdrlength and 127 == 0x1 accept"),
            ("fields-network", "refused by our reader", "rt seg-left & 0x7f > 1 drop"),
            ("fields-network", "refused by our reader", "rt seg-left and 15 == 1 drop"),
            ("fields-network", "refused by our reader", "rt type and 0x3 == 1"),
            ("fields-network", "refused by our reader", "rt type and 3 == 1 accept"),
            ("fields-network", "refused by our reader", "rt type and 3 eq 1 counter accept"),
            ("fields-network", "refused by our reader", "srh tag & 1 == 1 accept"),
            ("fields-network", "refused by our reader", "srh tag & 32768 == 0x8000 counter"),
            (
                "fields-transport",
                "refused by our reader",
                "meta l4proto . tcp option mptcp subtype vmap { tcp . 15 : goto other }",
            ),
            (
                "fields-transport",
                "refused by our reader",
                "tcp option mptcp subtype & 0x1 == 1 counter accept",
            ),
            (
                "fields-transport",
                "refused by our reader",
                "tcp option mptcp subtype . meta l4proto { 0x5 . tcp }",
            ),
            ("fields-transport", "refused by our reader", "tcp option mptcp subtype vmap { 5-9 : return }"),
        ],
    },
];

/// Rules whose JSON by us is not read by nft as what it was.
pub(crate) const WRITTEN: &[Known] = &[
    Known {
        reason: "nft 1.0.6 reads no JSON of sockets and options in keys and as values.",
        of: &[
            ("mixed", "refused by nft", "socket mark { 1, 2, 3 } meta mark set socket mark"),
            ("mixed", "refused by nft", "tcp option maxseg size vmap { 0-536 : drop, 537-65535 : accept }"),
            ("expressions", "refused by nft", "ct mark set socket mark"),
            ("expressions", "refused by nft", "meta mark set socket mark"),
            ("firewalls", "refused by nft", "socket mark 5 meta mark set socket mark"),
            ("expressions", "refused by nft", "socket mark vmap { 1 : accept }"),
            (
                "fields-meta",
                "refused by nft",
                "meta mark set socket mark map { 0xdeadbeef : 0x1, 255 : 0x2, 0 : 0x3 }",
            ),
            (
                "fields-meta",
                "refused by nft",
                "meta mark set socket mark map { 4096 : 0x1, 0xdeadbeef : 0x2, 0 : 0x3 }",
            ),
            (
                "fields-meta",
                "refused by nft",
                "socket mark vmap { 1 : return, 4096 : jump other, 0x10 : accept }",
            ),
            ("fields-meta", "refused by nft", "socket mark vmap { 1-5 : continue }"),
            ("fields-meta", "refused by nft", "socket mark vmap { 1-5 : jump other }"),
            ("fields-meta", "refused by nft", "socket transparent vmap { 0 : return, 1 : goto other }"),
            ("fields-meta", "refused by nft", "tcp dport . socket transparent vmap { 80 . 0x1 : continue }"),
            ("fields-meta", "refused by nft", "update @dyn_socket_transparent { socket transparent }"),
            ("fields-network", "refused by nft", "ip option ra value vmap { 0-7 : goto other }"),
            (
                "fields-network",
                "refused by nft",
                "ip option ra value vmap { 0x64 : continue, 9000 : jump other, 2 : accept, 255 : return }",
            ),
            (
                "fields-network",
                "refused by nft",
                "meta mark set ip option ra value map { 33 : 0x1, 65535 : 0x2, 1000 : 0x3 }",
            ),
            (
                "fields-transport",
                "refused by nft",
                "meta l4proto . tcp option mptcp subtype vmap { tcp . 15 : goto other }",
            ),
            (
                "fields-transport",
                "refused by nft",
                "meta mark . sctp chunk data stream vmap { 1 . 7 : drop }",
            ),
            (
                "fields-transport",
                "refused by nft",
                "meta mark set sctp chunk data stream map { 0x0000 : 0x1, 255 : 0x2, 10 : 0x3 }",
            ),
            (
                "fields-transport",
                "refused by nft",
                "meta mark set sctp chunk init init-tag map { 0 : 0x1, 0x21 : 0x2, 70000 : 0x3 }",
            ),
            (
                "fields-transport",
                "refused by nft",
                "meta mark set tcp option timestamp tsval map { 0x1000 : 0x1, 0 : 0x2, 5 : 0x3 }",
            ),
            (
                "fields-transport",
                "refused by nft",
                "meta mark set tcp option window count map { 0x21 : 0x1, 9 : 0x2, 0x17 : 0x3 }",
            ),
            ("fields-transport", "refused by nft", "sctp chunk data stream vmap { 256-32767 : goto other }"),
            (
                "fields-transport",
                "refused by nft",
                "sctp chunk init init-tag vmap { 0x000005dc : jump other }",
            ),
            (
                "fields-transport",
                "refused by nft",
                "tcp dport . tcp option timestamp tsval vmap { 80 . 200 : return }",
            ),
            (
                "fields-transport",
                "refused by nft",
                "tcp option maxseg size vmap { 0xffff : continue, 0 : return, 23 : jump other }",
            ),
            ("fields-transport", "refused by nft", "tcp option maxseg size vmap { 100-0x7fff : return }"),
            ("fields-transport", "refused by nft", "tcp option mptcp subtype vmap { 5-9 : return }"),
            ("fields-transport", "refused by nft", "tcp option sack left vmap { 0x40-65535 : return }"),
            (
                "fields-transport",
                "refused by nft",
                "tcp option sack left vmap { 0xff : goto other, 0x00000017 : drop, 127 : goto other }",
            ),
            ("fields-transport", "refused by nft", "tcp option timestamp tsval vmap { 2-0x7 : jump other }"),
            (
                "fields-transport",
                "refused by nft",
                "tcp option timestamp tsval vmap { 7 : continue, 0x11170 : jump other, 32767 : drop, 4096 : \
                    drop }",
            ),
            ("fields-transport", "refused by nft", "tcp option window count vmap { 0x7-23 : jump other }"),
            (
                "fields-transport",
                "refused by nft",
                "tcp option window count vmap { 10 : goto other, 200 : continue, 23 : drop, 0xf : drop }",
            ),
        ],
    },
    Known {
        reason: "nft 1.0.6 takes the address of a routing header for that of another header.",
        of: &[
            ("mixed", "refused by nft", "rt0 addr[1] fe80::1"),
            ("mixed", "refused by nft", "rt0 addr[2] ::1"),
            ("expressions", "refused by nft", "rt0 addr[1] ::1"),
        ],
    },
    Known {
        reason: "nft has the same JSON for an option and for its first byte.",
        of: &[
            ("expressions", "read otherwise by nft", "tcp option @6,0,8 6"),
            ("firewalls", "read otherwise by nft", "tcp option @254,0,8 1"),
        ],
    },
    Known {
        reason: "nft 1.0.6 has no JSON for elements that rules add to a map.",
        of: &[
            ("mixed", "refused by nft", "add @aff { ip saddr timeout 30s : ip daddr }"),
            ("mixed", "refused by nft", "update @aff { ip saddr : 10.0.0.1 } dnat to 10.0.0.1"),
            ("sets", "refused by nft", "add @dm { ip saddr : 1 }"),
            ("sets", "refused by nft", "add @dm { ip saddr : jhash ip daddr mod 8 }"),
            ("sets", "refused by nft", "add @dm { ip saddr : meta mark }"),
            ("sets", "refused by nft", "add @dm { ip saddr : numgen inc mod 8 }"),
            ("sets", "refused by nft", "add @dmp { ip saddr . tcp dport : ip daddr . tcp dport }"),
            ("sets", "refused by nft", "update @dm { ip saddr : 0x10 }"),
            ("sets", "refused by nft", "update @dm { ip saddr timeout 30s : 0x10 }"),
            ("sets", "refused by nft", "update @dmp { ip saddr . tcp dport : 10.0.0.1 . 80 }"),
            ("sets", "refused by nft", "update @dmp { ip saddr . tcp sport : ip daddr . tcp dport }"),
        ],
    },
    Known {
        reason: "nft has no JSON for a chain of a rule's own.",
        of: &[
            ("mixed", "refused by nft", "jump { tcp dport 22 accept; tcp dport 80 counter; }"),
            ("verdicts", "refused by nft", "goto { counter; return; }"),
            ("verdicts", "refused by nft", "iifname \"lo\" goto { accept; }"),
            ("verdicts", "refused by nft", "jump { accept; }"),
            ("verdicts", "refused by nft", "jump { counter drop; }"),
            ("verdicts", "refused by nft", "jump { counter; accept; }"),
            (
                "verdicts",
                "refused by nft",
                "jump { ip saddr { 10.0.0.1, 10.0.0.2 } accept; ip6 saddr { ::1, ::2 } accept; reject; }",
            ),
            (
                "verdicts",
                "refused by nft",
                "meta l4proto udp jump { udp dport 53 accept; udp dport 67 accept; udp dport 123 accept; }",
            ),
            ("verdicts", "refused by nft", "tcp dport 22 jump { ip saddr 10.0.0.0/8 accept; drop; }"),
            (
                "verdicts",
                "refused by nft",
                "tcp dport { 80, 443 } jump { ip saddr 192.168.0.0/16 counter accept; log prefix \"web: \" \
                    drop; }",
            ),
        ],
    },
];

/// Scripts whose ruleset comes out otherwise.
pub(crate) const SCRIPTS: &[Known] = &[
    Known {
        reason: "For the flags of a table nft 1.0.6 prints names of families.",
        of: &[("commands", "listed otherwise", "tables with flags and comments")],
    },
    Known {
        reason: "nft 1.0.6 reads neither flags and comments of tables, comments of chains and sets, nor \
            `auto-merge`.",
        of: &[
            ("commands", "read otherwise by nft", "tables with flags and comments"),
            ("commands", "read otherwise by nft", "chains by command"),
            ("commands", "read otherwise by nft", "chain policy in parts"),
            ("programs", "read otherwise by nft", "service proxy in maps"),
            ("programs", "read otherwise by nft", "distribution's firewall"),
            ("programs", "read otherwise by nft", "policies of pods"),
            ("programs", "read otherwise by nft", "policy engine"),
            ("systematic", "read otherwise by nft", "overlaps merged"),
        ],
    },
    Known {
        reason: "nft 1.0.6 reads one device of a chain.",
        of: &[
            ("commands", "refused by nft", "chains at devices"),
            ("definitions", "refused by nft", "variables as devices"),
        ],
    },
    Known {
        reason: "nft 1.0.6 reads no `typeof`.",
        of: &[
            ("programs", "refused by nft", "keys of bytes behind the transport header"),
            ("commands", "refused by nft", "sets by command"),
            ("systematic", "refused by nft", "set with flags constant"),
            ("systematic", "refused by nft", "set with flags interval"),
            ("systematic", "refused by nft", "set with flags timeout"),
            ("systematic", "refused by nft", "set with flags interval,timeout"),
            ("systematic", "refused by nft", "set with flags constant, interval"),
            ("systematic", "refused by nft", "set with flags interval , timeout"),
            ("systematic", "refused by nft", "concatenated keys"),
            ("systematic", "refused by nft", "maps to all kinds"),
        ],
    },
    Known {
        reason: "nft 1.0.6 reads no flag `dynamic`.",
        of: &[
            ("programs", "refused by nft", "a set that a later rule changes becomes dynamic"),
            ("programs", "refused by nft", "a map that is there takes a constant"),
            ("programs", "refused by nft", "router"),
            ("programs", "refused by nft", "service proxy for IPv6 with affinity"),
            ("programs", "refused by nft", "load balancing"),
            ("systematic", "refused by nft", "set with flags dynamic"),
            ("systematic", "refused by nft", "set with flags dynamic,timeout"),
            ("systematic", "refused by nft", "state of elements"),
        ],
    },
    Known {
        reason: "nft leaves out a match that it takes for implied.",
        of: &[
            ("programs", "read otherwise", "container engine"),
            ("programs", "read otherwise by nft", "container engine"),
            ("programs", "read otherwise", "policy engine"),
        ],
    },
    Known {
        reason: "nft 1.0.6 does not recognise bits of a byte that are calculated with: it lists how they are \
            loaded.",
        of: &[("programs", "listed otherwise", "quality of service")],
    },
    Known {
        reason: "nft 1.0.6 reads neither expectations nor synproxies as objects.",
        of: &[
            ("programs", "refused by nft", "a bit of everything"),
            ("systematic", "refused by nft", "ct expectation by command"),
            ("systematic", "refused by nft", "ct expectation added, deleted, added again"),
            ("systematic", "refused by nft", "synproxy by command"),
            ("systematic", "refused by nft", "synproxy added, deleted, added again"),
        ],
    },
    Known {
        reason: "nft 1.0.6 does not read the times of a conntrack timeout.",
        of: &[
            ("systematic", "read otherwise by nft", "ct timeout by command"),
            ("systematic", "read otherwise by nft", "ct timeout added, deleted, added again"),
        ],
    },
    Known {
        reason: "nft 1.0.6 cuts milliseconds off.",
        of: &[("systematic", "read otherwise by nft", "timeouts")],
    },
    Known {
        reason: "nft 1.0.6 crashes on an element for all other keys.",
        of: &[("systematic", "refused by nft", "default elements")],
    },
];
