//! The command line of nft beside nft 1.0.6: errors with their places, what `--echo` prints, `describe`.

use std::path::Path;
use std::process::{Command, Stdio};

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

/// Names with a slip, for which nft 1.0.6 names the one that was meant.
const MISSPELT: &[&str] = &[
    "add chain inet filter x",
    "add rule inet filter input accept",
    "add rule ip filtre input accept",
    "add rule ip filter inpxt accept",
    "delete chain ip filter inputt",
    "delete rule ip filter inptu handle 3",
    "rename chain ip filter inptu y",
    "delete set ip filter blokced",
    "flush set ip filter blokced",
    "delete map ip filter port",
    "delete counter ip filter hitss",
    "delete element ip filter blockd { 192.0.2.1 }",
    "get element ip filter blockd { 192.0.2.1 }",
    "add element ip filter blockd { 192.0.2.1 }",
    "add rule ip filter input ip saddr @blockedd drop",
    "delete table inet filter",
    "delete table ip filtxr",
];

/// Others, for which it does not, with what we say.
const MISSPELT_TOO: &[(&str, &str)] = &[
    ("list table ip filtxr", "table ‘filter’ in family ip"),
    ("list table inet filter", "table ‘filter’ in family ip"),
    ("list chain ip filter inptu", "chain ‘input’ in table ip ‘filter’"),
    ("list set ip filter blokced", "set ‘blocked’ in table ip ‘filter’"),
    ("list map ip filter prots", "map ‘ports’ in table ip ‘filter’"),
    ("list counter ip filter hist", "obj ‘hits’ in table ip ‘filter’"),
    ("flush table ip filtxr", "table ‘filter’ in family ip"),
    ("flush chain ip filter inptu", "chain ‘input’ in table ip ‘filter’"),
];

/// One that nft names although it is another word, and one of a letter.
const NOT_MISSPELT: &[&str] =
    &["add rule ip filter i accept", "list chain ip filter xyz", "list set ip filter b"];

#[test]
fn a_name_with_a_slip_is_told_with_the_one_that_was_meant() {
    if !has_nft() {
        return;
    }
    testns::netns(|| {
        let start = "table ip filter {
            set blocked { type ipv4_addr; }
            map ports { type inet_service : verdict; }
            counter hits { }
            chain input { }
        }";
        assert!(testns::feed(&["nft", "-f", "-"], start).status.success());
        let meant = |line: &str, of: &Path| {
            let said = run_with(of, line.split(' '), "").stderr;
            said.lines().next().unwrap_or_default().to_owned()
        };
        for line in MISSPELT {
            let (theirs, ours) = (meant(line, real()), meant(line, &tool("nft")));
            assert!(theirs.contains("; did you mean "), "{line}: {theirs}");
            assert_eq!(ours, theirs, "{line}");
        }
        for (line, name) in MISSPELT_TOO {
            let expected = format!("Error: No such file or directory; did you mean {name}?");
            assert_eq!(meant(line, &tool("nft")), expected, "{line}");
        }
        for line in NOT_MISSPELT {
            let said = meant(line, &tool("nft"));
            assert!(said.contains("No such file") && !said.contains("did you mean"), "{line}: {said}");
        }
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

/// Rules of a chain of family inet that `-o` merges as nft 1.0.6 does, or leaves alone as it does.
const OPTIMIZED: &[&str] = &[
    "ip saddr 10.0.0.0/8 accept\nip saddr 192.168.0.0/16 drop",
    "tcp dport 22 accept\ntcp dport 80 accept",
    "tcp dport 22 accept\ntcp dport 80 accept\nudp dport 53 accept\nip saddr 1.1.1.1 drop\nip saddr 1.1.1.2 accept",
    "iifname \"eth0\" tcp dport 22 accept\niifname \"eth0\" tcp dport 80 accept",
    "iifname \"a\" ip saddr 1.1.1.1 ip daddr 2.2.2.2 accept\niifname \"b\" ip saddr 1.1.1.2 ip daddr 2.2.2.3 accept\niifname \"b\" ip saddr 1.1.1.2 ip daddr 2.2.2.4 drop",
    "tcp dport 22 counter accept\ntcp dport 80 counter accept",
    "tcp dport 22 log prefix \"a\" accept\ntcp dport 80 log prefix \"a\" accept\ntcp dport 81 log prefix \"b\" accept",
    "tcp dport 22 limit rate 5/second accept\ntcp dport 80 limit rate 5/second accept",
    "tcp dport 22 accept comment \"a\"\ntcp dport 80 accept comment \"b\"",
    "tcp dport 22 accept\ntcp dport 80 accept comment \"b\"",
    "tcp dport 22-25 accept\ntcp dport 80 accept\ntcp dport 85-90 accept",
    "ip saddr 10.0.0.0/8 accept\nip saddr 192.168.0.0/16 accept",
    "tcp dport { 22, 23 } accept\ntcp dport 80 accept\ntcp dport { 81, 82 } accept",
    "tcp dport { 22 } accept",
    "tcp dport != 22 accept\ntcp dport != 80 accept",
    "tcp dport < 22 accept\ntcp dport < 80 accept",
    "tcp dport 22 reject\ntcp dport 80 reject",
    "tcp dport 22 reject with tcp reset\ntcp dport 80 reject with tcp reset\ntcp dport 81 reject",
    "ip saddr 1.1.1.1 jump a\nip saddr 1.1.1.2 jump b\nip saddr 1.1.1.3 goto a\nip saddr 1.1.1.4 return",
    "tcp dport 22\ntcp dport 80",
    "tcp dport vmap { 22 : jump a, 23 : jump b }\ntcp dport vmap { 80 : accept, 81 : drop }",
    "ct state established accept\nct state related accept",
    "ct state invalid drop\nct state established,related accept",
    "meta mark 1 accept\nmeta mark 2 drop",
    "tcp dport 22 meta mark set 1\ntcp dport 80 meta mark set 1",
    "tcp dport 22 notrack\ntcp dport 80 notrack",
    "ip saddr 1.1.1.1 tcp dport 22 accept\ntcp dport 80 ip saddr 1.1.1.2 accept",
    "ip saddr 1.1.1.1 tcp dport 22 accept\nip saddr 1.1.1.2 accept\nip saddr 1.1.1.3 accept",
    "ip saddr @s accept\nip saddr 1.1.1.2 accept",
    "ip saddr @s accept\nip saddr @s drop",
    "ip saddr . tcp dport { 1.1.1.1 . 22 } accept\nip saddr . tcp dport { 1.1.1.1 . 23 } accept",
    "tcp dport 22 ip saddr { 1.1.1.1, 1.1.1.2 } accept\ntcp dport 80 ip saddr 1.1.1.3 accept",
    "iif lo accept\niifname \"x\" accept\niifname \"y\" accept",
    "iifname \"eth*\" accept\niifname \"x\" accept",
    "icmp type echo-request accept\nicmp type echo-reply accept",
    "meta l4proto tcp accept\nmeta l4proto udp accept",
    "ip protocol tcp accept\nip protocol udp drop",
    "meta mark and 0xff == 1 accept\nmeta mark and 0xff == 2 accept",
    "tcp dport 22 log\ntcp dport 80 log",
    "tcp dport 22 accept\ntcp dport 80 accept\ncounter\ntcp dport 81 drop\ntcp dport 82 drop",
    "tcp dport 22 counter name k accept\ntcp dport 80 counter name k accept",
    "tcp dport 22 accept",
    "tcp dport == 22 accept\ntcp dport 80 accept",
    "tcp dport == 22 accept\ntcp dport == 80 accept",
    "tcp dport 22-25 accept\ntcp dport 23 accept",
    "ip saddr 1.1.1.1 ip daddr 2.2.2.2 tcp dport 22 accept\nip saddr 1.1.1.2 ip daddr 2.2.2.3 tcp dport { 80, 81 } accept\nip saddr 1.1.1.4 ip daddr { 2.2.2.4, 2.2.2.5 } tcp dport 8 accept",
    "tcp dport 22 ct state new accept\ntcp dport 80 ct state new accept",
    "tcp dport 22 meta hour \"10:00\"-\"11:00\" accept\ntcp dport 80 meta hour \"12:00\"-\"13:00\" accept",
    "tcp dport 22 accept # x\n# c\ntcp dport 80 accept",
];

/// The same in chains of nat of family ip, with their hook.
const OPTIMIZED_NAT: &[(&str, &str)] = &[
    (
        "prerouting",
        "ip daddr 1.1.1.1 tcp dport 80 dnat to 10.0.0.1:8080\nip daddr 1.1.1.1 tcp dport 81 dnat to 10.0.0.2:8081",
    ),
    ("prerouting", "tcp dport 80 dnat to 10.0.0.1\ntcp dport 81 dnat to 10.0.0.2"),
    ("prerouting", "tcp dport 80 dnat to 10.0.0.1:80\ntcp dport 81 dnat to 10.0.0.2:90"),
    ("prerouting", "tcp dport 80 dnat to 10.0.0.1\ntcp dport 81 dnat to 10.0.0.1"),
    (
        "postrouting",
        "ip saddr 10.0.0.1 snat to 1.1.1.1\nip saddr 10.0.0.2 snat to 1.1.1.2\nip saddr 10.0.0.3 snat to 1.1.1.2 random",
    ),
    ("prerouting", "tcp dport { 80, 81 } dnat to 10.0.0.1\ntcp dport 82 dnat to 10.0.0.2"),
];

/// Rules that nft 1.0.6 makes something else of, or cannot load: they stay.
const UNTOUCHED: &[&str] = &[
    "ip saddr 1.1.1.1 counter accept\nip saddr 1.1.1.2 counter drop",
    "tcp dport 22 accept\ntcp dport 22 drop",
    "ip saddr 10.0.0.0/8 accept\nip saddr 10.1.0.0/16 drop",
    "tcp flags syn accept\ntcp flags ack accept",
    "tcp dport 22 counter packets 5 bytes 6 accept\ntcp dport 80 counter packets 0 bytes 0 accept",
    "ip saddr @s accept\nip saddr 1.1.1.2 accept",
    "tcp dport 22 limit rate 5/second accept\ntcp dport 80 limit rate 5/second accept",
];

fn inet(rules: &str) -> String {
    format!(
        "table inet t {{\n\tset s {{ type ipv4_addr; }}\n\tcounter k {{ }}\n\tchain a {{ }}\n\tchain b {{ }}\n\
         \tchain c {{\n{rules}\n\t}}\n}}\n"
    )
}

#[test]
fn rules_are_merged_as_nft_merges_them() {
    if !has_nft() {
        return;
    }
    let [Some(first), Some(second)] = [Netns::new(), Netns::new()] else { return };
    let nat = OPTIMIZED_NAT.iter().map(|(hook, rules)| {
        format!("table ip t {{\n\tchain c {{\n\t\ttype nat hook {hook} priority 0;\n{rules}\n\t}}\n}}\n")
    });
    let mut different = Vec::new();
    for text in OPTIMIZED.iter().map(|rules| inet(rules)).chain(nat) {
        let [theirs, ours] = [(&first, real()), (&second, &*tool("nft"))].map(|(namespace, tool)| {
            namespace.run(|| {
                let loaded = run_with(tool, ["-o", "-f", "-"], &text);
                let listed = run_with(real(), ["list", "ruleset"], "").stdout;
                assert_eq!(run_with(real(), ["flush", "ruleset"], "").status, Some(0));
                (loaded.status, listed)
            })
        });
        if theirs != ours {
            different.push(format!("{text}{theirs:?}\n{ours:?}"));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}

#[test]
fn rules_that_cannot_be_one_stay_as_they_are() {
    if !has_nft() {
        return;
    }
    let Some(namespace) = Netns::new() else { return };
    namespace.run(|| {
        for rules in UNTOUCHED {
            let [plain, optimized] = [&["-f", "-"][..], &["-o", "-f", "-"]].map(|options| {
                let loaded = run_with(&tool("nft"), options.iter().copied(), &inet(rules));
                assert_eq!((loaded.status, loaded.stderr.as_str()), (Some(0), ""), "{rules}");
                let listed = run_with(real(), ["list", "ruleset"], "").stdout;
                assert_eq!(run_with(real(), ["flush", "ruleset"], "").status, Some(0));
                listed
            });
            assert_eq!(plain, optimized, "{rules}");
        }
    });
}

/// Lines are read until `quit`; a mistake is told, a definition is kept, a block may have several lines.
#[test]
fn commands_are_read_line_by_line() {
    let Some(namespace) = Netns::new() else { return };
    namespace.run(|| {
        let lines = "add table x\nlist tables\ndefine p = 22\nadd chain x c {\n type filter hook input priority 0;\n}\n\
                     foo bar baz\nadd rule x c tcp dport $p accept\nlist chain x c\nquit\nadd table y\n";
        let done = run_with(&tool("nft"), ["-i"], lines);
        assert_eq!(done.status, Some(0));
        assert_eq!(
            done.stdout,
            "table ip x\ntable ip x {\n\tchain c {\n\t\ttype filter hook input priority filter; policy accept;\n\
             \t\ttcp dport 22 accept\n\t}\n}\n"
        );
        assert!(done.stderr.starts_with("Error: ") && done.stderr.contains("\nfoo bar baz\n"), "{}", done.stderr);
        assert_eq!(run_with(&tool("nft"), ["list", "tables"], "").stdout, "table ip x\n");
    });
}

/// Command lines whose debug output is compared.
const DEBUGGED: &[&[&str]] = &[
    &["--debug=netlink", "add", "rule", "inet", "f", "c", "tcp", "dport", "22", "accept"],
    &["-d", "netlink", "add", "rule", "inet", "f", "c", "tcp", "dport", "{ 22, 80 }", "accept"],
    &["-d", "netlink", "add", "rule", "inet", "f", "c", "ip", "saddr", "1.2.3.4", "counter", "jump", "g"],
    &["-d", "netlink", "add", "rule", "inet", "f", "c", "ct", "state", "established,related", "accept"],
    &["-d", "netlink", "add", "rule", "inet", "f", "c", "tcp", "dport", "vmap", "{ 22 : accept, 80 : drop }"],
    &["-d", "netlink", "add", "table", "inet", "z"],
    &["-d", "netlink", "list", "ruleset"],
    &["-d", "netlink", "list", "tables"],
    &["-d", "netlink", "delete", "rule", "inet", "f", "e", "handle", "12"],
    &["-d", "netlink", "insert", "rule", "inet", "f", "e", "accept"],
    &["-d", "netlink", "-c", "add", "rule", "inet", "f", "c", "accept"],
    &["-d", "netlink", "add", "rule", "inet", "f", "c", "limit", "rate", "5/second", "accept"],
    &["-d", "netlink", "add", "rule", "inet", "f", "c", "log", "prefix", "\"x\"", "level", "warn"],
    &["-d", "netlink", "add", "rule", "inet", "f", "c", "meta", "mark", "set", "5"],
    &["-d", "netlink", "add", "rule", "inet", "f", "c", "reject"],
    &["-d", "netlink", "add", "rule", "ip", "n", "post", "masquerade"],
    &["-d", "netlink", "add", "rule", "ip", "n", "post", "snat", "to", "1.2.3.4:80"],
    &["-d", "netlink", "add", "rule", "inet", "f", "c", "ip6", "saddr", "2001:db8::/32", "drop"],
    &["-d", "netlink", "add", "rule", "inet", "f", "c", "update", "@d", "{ ip saddr limit rate 1/second }"],
    &["-d", "netlink", "add", "rule", "inet", "f", "c", "iifname", "\"eth*\"", "drop"],
    &[
        "-d", "netlink", "add", "rule", "inet", "f", "c", "udp", "dport", "!=", "53", "ct", "mark", "set",
        "mark",
    ],
    &[
        "-d", "netlink", "add", "rule", "inet", "f", "c", "ip", "daddr", "@s", "quota", "over", "10",
        "mbytes", "drop",
    ],
    &["-d", "netlink", "add", "rule", "inet", "f", "c", "fib", "saddr", "type", "local", "drop"],
    &["-d", "netlink", "add", "rule", "inet", "f", "c", "ip", "dscp", "set", "cs1"],
    &["-d", "netlink", "add", "rule", "inet", "f", "c", "tcp", "flags", "syn", "/", "syn,ack"],
    &["-d", "netlink", "add", "rule", "inet", "f", "c", "counter", "name", "k"],
    &["-d", "netlink", "add", "rule", "inet", "f", "c", "queue", "to", "5"],
    &["-d", "netlink", "add", "rule", "inet", "f", "c", "numgen", "inc", "mod", "2", "0"],
    &["-d", "netlink", "add", "rule", "inet", "f", "c", "jhash", "ip", "saddr", "mod", "2", "seed", "5", "0"],
    &["-d", "netlink", "add", "rule", "inet", "f", "c", "ct", "helper", "set", "nosuch"],
    &["-d", "netlink", "add", "rule", "inet", "f", "c", "dup", "to", "1.2.3.4"],
    &["-d", "netlink", "add", "rule", "inet", "f", "c", "notrack"],
    &["-d", "netlink", "add", "rule", "inet", "f", "c", "tcp", "option", "maxseg", "size", "set", "1400"],
    &["-d", "netlink", "add", "rule", "inet", "f", "c", "rt", "classid", "5"],
    &["-d", "netlink", "add", "rule", "inet", "f", "c", "meta", "l4proto", "tcp", "tproxy", "to", ":80"],
    &["-d", "netlink", "add", "rule", "inet", "f", "c", "tcp", "dport", "1-100", "accept"],
    &[
        "-d",
        "netlink",
        "add",
        "rule",
        "inet",
        "f",
        "c",
        "ip",
        "saddr",
        ".",
        "tcp",
        "dport",
        "{ 1.2.3.4 . 80 }",
        "accept",
    ],
    &["-d", "netlink", "add", "rule", "inet", "f", "c", "ether", "saddr", "00:11:22:33:44:55", "accept"],
    &["-d", "netlink", "add", "rule", "inet", "f", "c", "ip", "saddr", "1.2.3.4", "comment", "\"ab\""],
    &["-d", "netlink", "add", "rule", "inet", "f", "c", "ip", "saddr", "1.2.3.4", "log"],
    &["-d", "netlink", "add", "rule", "inet", "f", "c", "log", "group", "2"],
    &[
        "-d",
        "netlink",
        "add",
        "rule",
        "inet",
        "f",
        "c",
        "ct",
        "direction",
        "original",
        "ct",
        "original",
        "packets",
        ">",
        "5",
    ],
    &["-d", "netlink", "add", "rule", "ip", "n", "post", "dnat", "to", "1.2.3.4"],
    &["-d", "netlink", "add", "rule", "ip", "n", "post", "snat", "to", "1.2.3.4-1.2.3.6:80-90", "random"],
    &["-d", "netlink", "add", "rule", "ip", "n", "post", "masquerade", "to", ":80-90", "random"],
    &["-d", "netlink", "add", "rule", "ip", "n", "post", "redirect", "to", ":80"],
    &["-d", "netlink", "add", "rule", "inet", "f", "c", "ct", "mark", "and", "0xff", "==", "3"],
    &["-d", "netlink", "add", "rule", "inet", "f", "c", "meta", "mark", "set", "mark", "lshift", "2"],
    &["-d", "netlink", "add", "rule", "inet", "f", "c", "socket", "mark", "5"],
    &["-d", "netlink", "add", "rule", "inet", "f", "c", "exthdr", "frag", "exists"],
    &["-d", "netlink", "add", "rule", "inet", "f", "c", "ip6", "nexthdr", "6"],
    &["-d", "netlink", "add", "rule", "inet", "f", "c", "tcp", "dport", "!=", "1-100"],
    &["-d", "netlink", "add", "rule", "inet", "f", "c", "meta", "hour", "\"10:00\"-\"11:00\""],
    &["-d", "netlink", "add", "rule", "inet", "f", "c", "ct", "count", "5"],
    &["-d", "netlink", "add", "rule", "inet", "f", "c", "limit", "rate", "over", "5", "kbytes/second"],
    &["-d", "netlink", "add", "rule", "inet", "f", "c", "queue", "num", "1-3", "bypass"],
    &["-d", "netlink", "add", "rule", "inet", "f", "c", "symhash", "mod", "2", "0"],
    &["-d", "netlink", "add", "rule", "inet", "f", "c", "numgen", "random", "mod", "2", "offset", "3", "4"],
    &["-d", "netlink", "add", "rule", "inet", "f", "c", "osf", "name", "\"Linux\""],
    &["-d", "netlink", "add", "rule", "inet", "f", "c", "ipsec", "in", "reqid", "5"],
    &["-d", "netlink", "add", "rule", "inet", "f", "c", "synproxy", "mss", "1460", "wscale", "7"],
    &["-d", "netlink", "add", "rule", "inet", "f", "c", "ip", "daddr", "@s", "last"],
    &["-d", "netlink", "add", "rule", "inet", "f", "c", "tcp", "dport", "@p"],
    &["-d", "netlink", "add", "rule", "inet", "f", "c", "ip", "saddr", "!=", "@s"],
    &[
        "-d",
        "netlink",
        "add",
        "rule",
        "inet",
        "f",
        "c",
        "meta",
        "mark",
        "set",
        "ip",
        "saddr",
        "map",
        "{ 1.2.3.4 : 5 }",
    ],
    &["-d", "netlink", "add", "rule", "inet", "f", "c", "goto", "g"],
    &["-d", "netlink", "add", "rule", "inet", "f", "c", "return"],
    &["-d", "netlink", "add", "rule", "inet", "f", "c", "continue"],
    &["-d", "netlink", "add", "rule", "inet", "f", "c", "ct", "zone", "set", "5"],
    &["-d", "netlink", "add", "rule", "inet", "f", "c", "reject", "with", "tcp", "reset"],
    &["-d", "netlink", "add", "rule", "inet", "f", "c", "add", "@d", "{ ip saddr timeout 5s }"],
];

#[test]
fn what_goes_over_netlink_is_shown_as_nft_shows_it() {
    if !has_nft() {
        return;
    }
    let [Some(first), Some(second)] = [Netns::new(), Netns::new()] else { return };
    let mut different = Vec::new();
    for line in DEBUGGED {
        let [theirs, ours] = [(&first, real()), (&second, &*tool("nft"))].map(|(namespace, tool)| {
            namespace.run(|| {
                assert_eq!(run_with(real(), ["flush", "ruleset"], "").status, Some(0));
                assert_eq!(run_with(real(), ["-f", "-"], START).status, Some(0));
                let done = run_with(tool, line.iter().copied(), "");
                // Elements come in the order of their hashes, which differ.
                let mut lines: Vec<_> = done.stdout.lines().map(str::to_owned).collect();
                lines.sort();
                (done.status, lines)
            })
        });
        if theirs != ours {
            different.push(format!("{line:?}\n{theirs:?}\n{ours:?}"));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}

#[test]
fn a_monitor_ends_when_its_reader_is_gone() {
    if !have(&["nft"]) {
        return;
    }
    testns::netns(|| {
        for words in [&["monitor"][..], &["-j", "monitor"]] {
            let mut monitor = Command::new(tool("nft"))
                .args(words)
                .stdout(Stdio::piped())
                .spawn()
                .expect("it was built with the test");
            drop(monitor.stdout.take());
            // It learns that nobody reads when it has something to say.
            let ended = (0..1_000).find_map(|n| {
                let _ = testns::sh(&format!("nft add table ip t{n}"));
                monitor.try_wait().expect("it is a child")
            });
            if ended.is_none() {
                monitor.kill().expect("it runs on");
            }
            assert!(ended.is_some_and(|status| status.success()), "{words:?}: {ended:?}");
        }
    });
}
