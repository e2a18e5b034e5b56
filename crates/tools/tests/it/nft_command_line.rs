//! The command line of nft beside nft 1.0.6: errors with their places, what `--echo` prints, `describe`.

use std::path::Path;

use testns::{Netns, have};

use crate::side_by_side::{Done, run_with};
use crate::tool;

/// What is there before each command.
const START: &str = "\
table inet f {
	set s { type ipv4_addr; elements = { 192.0.2.1, 192.0.2.2 }; }
	set p { type inet_service; flags interval; elements = { 80-90 }; }
	set d { type ipv4_addr; size 16; flags dynamic; }
	map m { type ipv4_addr : inet_service; elements = { 192.0.2.1 : 5 }; }
	map v { type ipv4_addr : verdict; elements = { 192.0.2.1 : drop }; }
	counter k { packets 5 bytes 6 }
	quota q { over 10 mbytes }
	limit l { rate 5/second }
	chain c { type filter hook input priority 0; policy accept; }
	chain e { tcp dport 22 counter packets 3 bytes 4 accept comment \"x\"; jump g; }
	chain g { }
}
table ip n { chain post { type nat hook postrouting priority 100; }
	chain x { }
}
";

/// Commands that fail and change nothing.
const ERRORS: &[&str] = &[
    "delete table inet nosuch",
    "create table inet f",
    "delete chain inet f g",
    "delete chain inet f nosuch",
    "delete chain inet nosuch c",
    "delete set inet f nosuch",
    "delete map inet f nosuch",
    "delete set inet nosuch s",
    "add rule inet f nosuch accept",
    "add rule inet nosuch c accept",
    "insert rule inet f nosuch accept",
    "add rule inet f c ip saddr @nosuch drop",
    "add rule inet f c ip saddr vmap @nosuch",
    "add rule inet f c jump nosuch",
    "add rule inet f c goto nosuch",
    "delete rule inet f c handle 99",
    "replace rule inet f c handle 99 accept",
    "add rule inet f c handle 99 accept",
    "add rule inet f c position 99 accept",
    "add rule inet f c index 9 accept",
    "insert rule inet f c index 9 accept",
    "delete element inet f s { 203.0.113.9 }",
    "delete element inet f nosuch { 203.0.113.9 }",
    "add element inet f nosuch { 203.0.113.9 }",
    "create element inet f s { 192.0.2.1 }",
    "add element inet f p { 85-95 }",
    "add element inet f p { 85 }",
    "add element inet f m { 192.0.2.1 : 6 }",
    "create chain inet f c",
    "create set inet f s { type ipv4_addr; }",
    "add set inet f s { type ipv6_addr; }",
    "create map inet f m { type ipv4_addr : inet_service; }",
    "create counter inet f k",
    "add counter inet nosuch k",
    "delete counter inet f nosuch",
    "delete quota inet f nosuch",
    "delete limit inet f nosuch",
    "delete ct helper inet f nosuch",
    "delete flowtable inet f nosuch",
    "delete table inet handle 99",
    "delete chain inet f handle 99",
    "delete set inet f handle 99",
    "flush chain inet f nosuch",
    "flush set inet f nosuch",
    "flush table inet nosuch",
    "flush map inet f nosuch",
    "add chain inet nosuch c",
    "add rule inet f c counter name nosuch",
    "add rule inet f c quota name nosuch",
    "add rule inet f c limit name nosuch",
    "add rule inet f c ct helper set nosuch",
    "add rule inet f c flow add @nosuch",
    "list table inet nosuch",
    "list chain inet f nosuch",
    "list chain inet nosuch c",
    "list set inet f nosuch",
    "list set inet nosuch s",
    "list set inet f m",
    "list map inet f s",
    "list map inet f nosuch",
    "list counter inet f nosuch",
    "list quota inet f nosuch",
    "list limit inet f nosuch",
    "list flowtable inet f nosuch",
    "list ct helper inet f nosuch",
    "list meter inet f nosuch",
    "list meter inet f d",
    "get element inet f nosuch { 85 }",
    "get element inet nosuch s { 85 }",
    "reset counters table inet nosuch",
    "add rule inet f c set add ip saddr @nosuch",
    "add rule inet f c ct timeout set nosuch",
    "add element inet f v { 192.0.2.9 : jump nosuch }",
    "create element inet f p { 80-90 }",
];

/// Command lines that echo.
const ECHOES: &[&[&str]] = &[
    &["-e", "add", "table", "inet", "z"],
    &["-e", "create", "table", "inet", "z"],
    &["-a", "-e", "add", "table", "inet", "z"],
    &["-e", "add", "chain", "inet", "f", "z"],
    &["-a", "-e", "add", "chain", "inet", "f", "z"],
    &["-e", "create", "chain", "inet", "f", "z"],
    &["-e", "add", "chain", "inet", "f", "z", "{ type filter hook input priority 5; policy drop; }"],
    &["-e", "add", "rule", "inet", "f", "c", "tcp", "dport", "22", "accept"],
    &["-a", "-e", "add", "rule", "inet", "f", "c", "tcp", "dport", "22", "accept"],
    &["-a", "-e", "insert", "rule", "inet", "f", "e", "tcp", "dport", "22", "accept"],
    &["-a", "-e", "add", "rule", "inet", "f", "e", "position", "8", "tcp", "dport", "22", "accept"],
    &["-a", "-e", "add", "rule", "inet", "f", "e", "index", "0", "tcp", "dport", "22", "accept"],
    &["-a", "-e", "insert", "rule", "inet", "f", "e", "index", "1", "tcp", "dport", "22", "accept"],
    &["-e", "add", "rule", "inet", "f", "c", "tcp", "dport", "{ 22, 80 }", "accept"],
    &["-a", "-e", "add", "rule", "inet", "f", "c", "tcp", "dport", "vmap", "{ 22 : accept, 80 : drop }"],
    &["-e", "add", "element", "inet", "f", "s", "{ 192.0.2.9, 192.0.2.10 }"],
    &["-e", "add", "element", "inet", "f", "s", "{ 192.0.2.1 }"],
    &["-e", "create", "element", "inet", "f", "s", "{ 192.0.2.9 }"],
    &["-e", "add", "element", "inet", "f", "p", "{ 100-110 }"],
    &["-e", "add", "element", "inet", "f", "m", "{ 192.0.2.9 : 80 }"],
    &["-e", "add", "element", "inet", "f", "v", "{ 192.0.2.9 : jump g }"],
    &["-e", "add", "set", "inet", "f", "z", "{ type ipv4_addr; flags timeout; timeout 5m; }"],
    &["-a", "-e", "add", "set", "inet", "f", "z", "{ type ipv4_addr; elements = { 1.2.3.4 }; }"],
    &["-e", "add", "map", "inet", "f", "z", "{ type ipv4_addr : mark; }"],
    &["-e", "add", "counter", "inet", "f", "z"],
    &["-e", "add", "counter", "inet", "f", "z", "{ packets 1 bytes 2 }"],
    &["-a", "-e", "add", "counter", "inet", "f", "z"],
    &["-e", "add", "quota", "inet", "f", "z", "10", "mbytes"],
    &["-e", "add", "quota", "inet", "f", "z", "{ over 10 mbytes }"],
    &["-e", "add", "limit", "inet", "f", "z", "{ rate 10/second }"],
    &["-e", "add", "ct", "helper", "inet", "f", "z", "{ type \"ftp\" protocol tcp; }"],
    &[
        "-e",
        "add",
        "ct",
        "timeout",
        "ip",
        "n",
        "ctt",
        "{ protocol udp; l3proto ip; policy = { unreplied : 15, replied : 12 }; }",
    ],
    &[
        "-e",
        "add",
        "ct",
        "expectation",
        "ip",
        "n",
        "z",
        "{ protocol tcp; dport 9876; timeout 1m; size 12; l3proto ip; }",
    ],
    &["-e", "add", "secmark", "inet", "f", "z", "{ \"system_u:object_r:http_t:s0\" }"],
    &["-e", "add", "synproxy", "inet", "f", "z", "{ mss 1460; wscale 7; timestamp sack-perm; }"],
    &["-e", "add", "flowtable", "inet", "f", "z", "{ hook ingress priority 0; devices = { lo }; }"],
    &["-e", "delete", "element", "inet", "f", "s", "{ 192.0.2.1 }"],
    &["-e", "delete", "counter", "inet", "f", "k"],
    &["-e", "delete", "rule", "inet", "f", "e", "handle", "14"],
    &["-e", "delete", "chain", "inet", "f", "c"],
    &["-e", "delete", "table", "inet", "f"],
    &["-e", "delete", "set", "inet", "f", "s"],
    &["-e", "flush", "ruleset"],
    &["-e", "flush", "chain", "inet", "f", "e"],
    &["-e", "flush", "set", "inet", "f", "s"],
    &["-e", "rename", "chain", "inet", "f", "g", "y"],
    &["-e", "replace", "rule", "inet", "f", "e", "handle", "14", "accept"],
    &["-a", "-e", "replace", "rule", "inet", "f", "e", "handle", "14", "accept"],
    &["-e", "add table inet z; add chain inet z c; add rule inet z c accept; delete table ip n"],
    &["-j", "-e", "add", "rule", "inet", "f", "c", "tcp", "dport", "22", "accept"],
    &["-j", "-e", "add", "table", "inet", "z"],
    &["-j", "-a", "-e", "add", "set", "inet", "f", "z", "{ type ipv4_addr; }"],
    &["-j", "-e", "add", "element", "inet", "f", "s", "{ 1.2.3.4 }"],
    &["-j", "-e", "delete", "element", "inet", "f", "s", "{ 192.0.2.1 }"],
    &["-e", "replace", "rule", "inet", "f", "e", "handle", "12", "accept"],
    &["-e", "flush", "table", "inet", "f"],
    &["-e", "flush chain inet f e; add rule inet f e accept"],
    &["-e", "add rule inet f e accept; flush chain inet f c"],
    &["-e", "delete counter inet f k; add counter inet f k"],
    &["-e", "add", "table", "inet", "f"],
    &["-e", "add", "counter", "inet", "f", "z", "{ comment \"a b\"; }"],
    &["-j", "-e", "replace", "rule", "inet", "f", "e", "handle", "12", "accept"],
    &["-j", "-e", "create", "table", "inet", "z"],
    &["-j", "-e", "insert", "rule", "inet", "f", "e", "index", "1", "accept"],
    &["-j", "-e", "insert", "rule", "inet", "f", "e", "accept"],
    &["-j", "-e", "flush", "chain", "inet", "f", "e"],
];

/// What is described.
const DESCRIBED: &[&str] = &[
    "boolean",
    "meta mark",
    "ct state",
    "tcp flags",
    "nosuch",
    "ip nosuch",
    "iifname",
    "meta iif",
    "fib daddr type",
    "ct direction",
    "exthdr hbh",
    "ipv4_addr",
    "ether type",
    "arp operation",
    "meta skuid",
    "meta day",
    "ct event",
    "ct label",
    "tcp option maxseg size",
    "ip dscp",
    "ip6 flowlabel",
    "@th,16,16",
    "socket transparent",
    "osf name",
    "rt classid",
    "meta time",
    "meta hour",
    "meta pkttype",
    "meta cpu",
    "ct mark",
    "ct status",
    "ct zone",
    "ct helper",
    "ct original saddr",
    "ct expiration",
    "ct avgpkt",
    "verdict",
    "bitmask",
    "string",
    "ll_addr",
    "iface_type",
    "pkt_type",
    "realm",
    "dscp",
    "time",
    "cgroupsv2",
    "devgroup",
    "uid",
    "gid",
    "cpu",
    "day",
    "hour",
    "ct_id",
    "icmpx_code",
    "icmp_code",
    "icmpv6_type",
    "igmp_type",
    "mh_type",
    "tcp_flag",
    "dccp_pkttype",
    "fib_addrtype",
    "ct_dir",
    "nf_proto",
    "mark",
    "integer",
    "in_addr",
    "ip saddr",
    "ip version",
    "ip hdrlength",
    "ip frag-off",
    "ip6 saddr",
    "ip6 ecn",
    "ip ecn",
    "ether saddr",
    "vlan id",
    "vlan type",
    "vlan pcp",
    "arp htype",
    "arp saddr ip",
    "icmp code",
    "icmpv6 type",
    "icmpv6 code",
    "igmp type",
    "tcp sequence",
    "tcp doff",
    "udp length",
    "udplite checksum",
    "sctp dport",
    "sctp chunk init",
    "sctp chunk init num-inbound-streams",
    "dccp type",
    "dccp sport",
    "comp cpi",
    "ah spi",
    "esp spi",
    "th dport",
    "tcp option mptcp subtype",
    "tcp option sack left",
    "tcp option timestamp tsval",
    "ip option lsrr addr",
    "ip option ra value",
    "hbh nexthdr",
    "rt type",
    "rt0 addr[1]",
    "frag id",
    "dst nexthdr",
    "mh type",
    "srh flags",
    "exthdr frag",
    "meta length",
    "meta protocol",
    "meta nfproto",
    "meta l4proto",
    "meta priority",
    "meta iifgroup",
    "meta oifname",
    "meta iiftype",
    "meta cgroup",
    "meta random",
    "meta rtclassid",
    "meta secmark",
    "meta ibrname",
    "meta ibrpvid",
    "meta ibrvproto",
    "meta sdif",
    "meta sdifname",
    "meta ipsec",
    "meta iifkind",
    "meta skgid",
    "ct packets",
    "ct bytes",
    "ct original bytes",
    "ct l3proto",
    "ct protocol",
    "ct id",
    "ct eventmask",
    "ct secmark",
    "ct original ip saddr",
    "ct reply ip6 daddr",
    "ct original proto-src",
    "ct count",
    "ct original zone",
    "ct reply packets",
    "rt ip nexthop",
    "rt ip6 nexthop",
    "rt mtu",
    "rt ipsec",
    "fib saddr . iif oif",
    "fib daddr oifname",
    "socket mark",
    "socket wildcard",
    "socket cgroupv2 level 1",
    "osf ttl skip name",
    "osf version",
    "numgen inc mod 2",
    "numgen random mod 10 offset 5",
    "jhash ip saddr mod 2",
    "symhash mod 2",
    "ipsec in reqid",
    "ipsec out ip saddr",
    "ip saddr . tcp dport",
    "meta mark and 0xff",
    "ip saddr and 255.255.255.0",
    "mark or 1",
    "tcp dport lshift 2",
    "@nh,0,8",
    "@ll,0,48",
    "@th,0,1",
    "@ih,0,32",
    "22",
    "1.2.3.4",
    "::1",
    "established",
    "tcp",
    "ip",
    "accept",
    "drop",
    "icmp_type",
    "icmpv6_code",
    "ct_state",
    "ct_status",
    "ct_event",
    "ct_label",
    "ifname",
    "iface_index",
    "inet_service",
    "ether_type",
    "ether_addr",
    "ipv6_addr",
    "arp_op",
    "policy_type",
    "xinteger",
    "queue_type",
    "symbol",
    "concat",
    "ip protocol . tcp dport . ip saddr",
    "ipv4_addr . inet_service",
    "meta mark set 1",
    "tcp dport 22",
    "ip saddr 1.2.3.4",
    "iif",
    "skuid",
    "oif",
    "pkttype",
    "length",
    "nfproto",
    "l4proto",
    "cgroup",
    "rtclassid",
    "secpath",
];

fn real() -> &'static Path {
    Path::new("/usr/sbin/nft")
}

/// Whether the tool is there that the project follows; another version words some of this otherwise.
fn has_nft() -> bool {
    if !have(&["nft"]) {
        return false;
    }
    let version = run_with(real(), ["-v"], "").stdout;
    version.starts_with("nftables v1.0.6") || {
        testns::skip(&format!("nft 1.0.6 is compared with, found {version}"));
        false
    }
}

/// Without what is ours alone, the lines in parentheses, and without nft's suggestions.
fn comparable(error: &str) -> Vec<String> {
    let lines = error.lines().filter(|line| !line.starts_with('('));
    let plain = |line: &str| match line.strip_prefix("Error: ") {
        Some(message) => message
            .trim_start_matches("Could not process rule: ")
            .split("; did you mean")
            .next()
            .unwrap_or_default()
            .to_owned(),
        None => line.to_owned(),
    };
    lines.map(plain).collect()
}

#[test]
fn errors_have_the_words_and_the_places_of_nft() {
    if !has_nft() {
        return;
    }
    let Some(namespace) = Netns::new() else { return };
    namespace.run(|| {
        assert_eq!(run_with(real(), ["-f", "-"], START).status, Some(0));
        let mut different = Vec::new();
        for line in ERRORS {
            let [theirs, ours] = [real(), &tool("nft")].map(|tool| run_with(tool, line.split(' '), ""));
            if (theirs.status, comparable(&theirs.stderr)) != (ours.status, comparable(&ours.stderr)) {
                different.push(format!("{line}\n{}{}", theirs.stderr, ours.stderr));
            }
            assert_ne!(theirs.status, Some(0), "{line}");
        }
        assert!(different.is_empty(), "{}", different.join("\n"));
    });
}

#[test]
fn what_is_echoed_is_what_nft_echoes() {
    if !has_nft() {
        return;
    }
    let [Some(first), Some(second)] = [Netns::new(), Netns::new()] else { return };
    let mut different = Vec::new();
    for line in ECHOES {
        let done = [(&first, real()), (&second, &tool("nft"))].map(|(namespace, tool)| {
            namespace.run(|| {
                // Handles start anew with a table.
                assert_eq!(run_with(real(), ["flush", "ruleset"], "").status, Some(0));
                assert_eq!(run_with(real(), ["-f", "-"], START).status, Some(0));
                let done = run_with(tool, line.iter().copied(), "");
                let generation = |line: &str| line.starts_with("# new generation");
                let lines = done.stdout.lines().map(|line| match generation(line) {
                    true => "# new generation",
                    false => line,
                });
                (lines.collect::<Vec<_>>().join("\n"), done.status)
            })
        });
        if done[0] != done[1] {
            different.push(format!("{line:?}\n{}\n{}", done[0].0, done[1].0));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}

/// A document comes back as it was, with the handles of what is new.
#[test]
fn a_document_is_echoed_with_its_handles() {
    if !has_nft() {
        return;
    }
    let [Some(first), Some(second)] = [Netns::new(), Netns::new()] else { return };
    let document = r#"{"nftables": [{"metainfo": {"json_schema_version": 1}},
        {"create": {"table": {"family": "inet", "name": "t"}}}, {"add": {"table": {"name": "f", "family": "inet"}}},
        {"add": {"chain": {"family": "inet", "table": "t", "name": "c"}}},
        {"add": {"set": {"family": "inet", "table": "t", "name": "s", "type": "ipv4_addr", "elem": ["1.2.3.4"]}}},
        {"add": {"element": {"family": "inet", "table": "t", "name": "s", "elem": ["1.2.3.5"]}}},
        {"add": {"rule": {"family": "inet", "table": "t", "chain": "c", "expr": [{"match": {"op": "==",
          "left": {"payload": {"protocol": "tcp", "field": "dport"}}, "right": {"set": [22, 80]}}}, {"accept": null}]}}},
        {"insert": {"rule": {"family": "inet", "table": "t", "chain": "c", "expr": [{"drop": null}]}}},
        {"replace": {"rule": {"family": "inet", "table": "f", "chain": "e", "handle": 12, "expr": [{"drop": null}]}}},
        {"delete": {"rule": {"family": "inet", "table": "f", "chain": "e", "handle": 13}}},
        {"add": {"counter": {"family": "inet", "table": "t", "name": "k"}}}, {"table": {"family": "ip", "name": "bare"}},
        {"flush": {"chain": {"family": "inet", "table": "f", "name": "e"}}}]}"#;
    for options in
        [&["-j", "-e", "-f", "-"][..], &["-j", "-e", "-a", "-f", "-"], &["-j", "-e", "-c", "-f", "-"]]
    {
        let [theirs, ours]: [Done; 2] =
            [(&first, real()), (&second, &tool("nft"))].map(|(namespace, tool)| {
                namespace.run(|| {
                    assert_eq!(run_with(real(), ["flush", "ruleset"], "").status, Some(0));
                    assert_eq!(run_with(real(), ["-f", "-"], START).status, Some(0));
                    run_with(tool, options.iter().copied(), document)
                })
            });
        assert_eq!(theirs, ours, "{options:?}");
    }
}

#[test]
fn descriptions_are_those_of_nft() {
    if !has_nft() {
        return;
    }
    let Some(namespace) = Netns::new() else { return };
    namespace.run(|| {
        let mut different = Vec::new();
        for of in DESCRIBED {
            let words = || ["describe"].into_iter().chain(of.split(' '));
            let [theirs, ours] = [real(), &tool("nft")].map(|tool| run_with(tool, words(), ""));
            if (theirs.status, &theirs.stdout) != (ours.status, &ours.stdout) {
                different.push(format!("{of}\n{}\n{}", theirs.stdout, ours.stdout));
            }
        }
        assert!(different.is_empty(), "{}", different.join("\n"));
    });
}
