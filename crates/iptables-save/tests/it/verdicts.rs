//! Lines that cannot be rules: refused by the check, and by both back ends of the real tool. (That what the
//! check accepts can be a rule is shown by `parity`, which restores all of it.)

use sluicegate_iptables_save::{Family, Place, check, check_line};
use testns::{feed, have, netns, sh};

fn lines() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    include_str!("../../testdata/refused.v4").lines().filter(|line| !line.starts_with('#')).map(|line| {
        let (place, words) = line.split_once(':').expect("TABLE CHAIN: WORDS");
        let (table, chain) = place.split_once(' ').expect("TABLE CHAIN");
        (table, chain, words.trim_start_matches(' '))
    })
}

#[test]
fn the_check_refuses_what_the_tool_refuses() {
    let mut count = 0;
    for (table, chain, words) in lines() {
        let error = check(words, Place { table, chain, family: Family::Ipv4 });
        assert!(error.is_err(), "{table} {chain}: {words}");
        count += 1;
    }
    assert!(count > 700, "{count}");
}

#[test]
fn the_tool_refuses_what_the_check_refuses() {
    for back_end in ["legacy", "nft"] {
        let restore = format!("iptables-{back_end}-restore");
        if !have(&[&restore, "ipset"]) {
            return;
        }
        netns(|| {
            let _ =
                sh("ipset create s1 hash:ip counters timeout 100; ipset create s2 hash:ip; ipset create s3 \
                 hash:ip skbinfo");
            for (table, chain, words) in lines() {
                let output = feed(
                    &[&restore, "--noflush"],
                    &format!("*{table}\n:T - [0:0]\n:U - [0:0]\n-A {chain} {words}\nCOMMIT\n"),
                );
                assert!(!output.status.success(), "{restore} accepts {table} {chain}: {words}");
            }
        });
    }
}

#[test]
fn reasons_say_where_and_what() {
    for (line, reason) in [
        (
            "-t nat -A PREROUTING -p tcp --dport 99999 -j ACCEPT",
            "line 1, column 37: `99999`: expected a port from 0 to 65535, or the name of a service \
             (--destination-port)",
        ),
        ("-t nat -A PREROUTING -p tcp --dportx 80", "line 1, column 29: `--dportx`: no such option"),
        (
            "-A INPUT --dport 80 -j ACCEPT",
            "line 1, column 10: `--dport`: an option of -m dccp or -m sctp or -m tcp or -m udp, which does \
             not stand before it",
        ),
        (
            "-A INPUT --to-ports 80 -j ACCEPT",
            "line 1, column 10: `--to-ports`: an option of -j MASQUERADE or -j REDIRECT, which does not \
             stand before it",
        ),
        (
            "-A INPUT -s 10.0.0.256 -j ACCEPT",
            "line 1, column 13: `10.0.0.256`: expected an IPv4 address, with a mask if wanted",
        ),
        (
            "-A INPUT -s fd00::/129",
            "line 1, column 13: `fd00::/129`: expected a mask from 0 to 128, or written as an IPv6 address",
        ),
        (
            "-A INPUT -m mark --mark 0x1ffffffff",
            "line 1, column 25: `0x1ffffffff`: expected a mark of 32 bits, with a mask if wanted, as in \
             `0x4000/0x4000` (--mark)",
        ),
        ("-A INPUT -m comment ! --comment x", "line 1, column 21: `!`: `--comment` cannot be negated"),
        ("-A INPUT ! -j ACCEPT", "line 1, column 10: `!`: `--jump` cannot be negated"),
        ("-A INPUT -j ACCEPT !", "line 1, column 20: `!`: nothing follows that could be negated"),
        (
            "-A INPUT -m set --match-set s1",
            "line 1, column 17: `--match-set`: expected 2 values of `--match-set`, there are 1",
        ),
        ("-A INPUT -p tcp --dport", "line 1, column 17: `--dport`: expected a value of `--destination-port`"),
        (
            "-A A-CHAIN-NAME-OF-MORE-THAN-28-BYTES -j ACCEPT",
            "line 1, column 4: `A-CHAIN-NAME-OF-MORE-THAN-28-BYTES`: expected the name of a chain, of at most \
             28 bytes, found 34 bytes",
        ),
        (
            "-t nat -A PREROUTING -j DROP",
            "line 1, column 25: `DROP`: table nat is not for filtering and takes no DROP",
        ),
        (
            "-A INPUT -j DNAT --to-destination 10.0.0.1",
            "line 1, column 18: DNAT works in table nat alone, not in filter",
        ),
        (
            "-t nat -A POSTROUTING -j DNAT --to-destination 10.0.0.1",
            "line 1, column 31: DNAT works in PREROUTING, OUTPUT alone, not in POSTROUTING",
        ),
        (
            "-A INPUT -m multiport --dports 80",
            "line 1, column 23: multiport needs -p tcp or -p udp or -p udplite or -p sctp or -p dccp",
        ),
        (
            "-A INPUT -m recent --seconds 5",
            "line 1, column 20: recent needs --set or --rcheck or --update or --remove",
        ),
        ("-A INPUT -m nosuch", "line 1, column 10: `-m`: no match is called `nosuch`"),
        (
            "-A INPUT -m ttl --ttl-eq 1 --ttl-lt 2",
            "line 1, column 17: `--ttl-eq` and `--ttl-lt` exclude each other",
        ),
        (
            "-A INPUT --ctstate NEW",
            "line 1, column 10: `--ctstate`: an option of -m conntrack, which does not stand before it",
        ),
        ("-A INPUT foo", "line 1, column 10: `foo`: expected an option: this word belongs to none"),
        ("-t nope -A X", "line 1, column 4: `nope`: expected a table: filter, nat, mangle, raw, security"),
        ("-A INPUT -i eth0 -i eth1", "line 1, column 18: `-i`: `--in-interface` stands twice"),
        ("-A INPUT -m comment --comment \"x", "line 1, column 31: `\"x`: the quotation is not closed"),
        ("-A OUTPUT -i eth0", "line 1, column 14: `eth0`: -i cannot be used in OUTPUT"),
        ("foo", "line 1, column 1: `foo`: expected a command, as in `-A CHAIN`"),
        ("-t nat", "line 1, column 7: expected a command, as in `-A CHAIN`"),
    ] {
        assert_eq!(check_line(line).expect_err(line).to_string(), reason, "{line}");
    }
}

#[test]
fn what_can_be_a_rule_passes() {
    for line in [
        "-t nat -A PREROUTING -p tcp --dport 80 -j DNAT --to-destination 10.0.0.1:8080",
        "-A INPUT",
        "-A INPUT -j",
        "-t filter -I FORWARD 3 -m conntrack --ctstate EST,REL -j ACCEPT",
        "-A INPUT -p ipv6-icmp -j ACCEPT",
        "-t nat -A POSTROUTING -s fd00::/64 -j MASQUERADE --random-fully",
        "-D INPUT 4",
        "-A PREROUTING -t nat -p tcp --dport 80 -j REDIRECT --to-ports 8080",
        "-A INPUT -m comment --comment -t -j ACCEPT",
        "  --table=mangle   -A X -j MARK --set-mark 1  ",
        // The nft back end keeps 127 bytes of it, the legacy one 63.
        "-A X -j NFLOG --nflog-prefix \
         a-prefix-of-71-bytes-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    ] {
        let verdict = check_line(line);
        assert_eq!(verdict.is_ok(), line != "-A INPUT -j", "{line}: {verdict:?}");
    }
}

#[test]
fn names_in_capitals_are_taken_where_the_tool_takes_them() {
    if !have(&["iptables-nft", "ip6tables-nft"]) {
        return;
    }
    netns(|| {
        for (tool, line) in [
            ("iptables-nft", "-t raw -A PREROUTING -j CT --ctevents new,destroy"),
            ("iptables-nft", "-t raw -A PREROUTING -j CT --ctevents NEW"),
            ("iptables-nft", "-t raw -A PREROUTING -j CT --ctevents new,Destroy"),
            ("iptables-nft", "-t raw -A PREROUTING -j CT --expevents new"),
            ("iptables-nft", "-t raw -A PREROUTING -j CT --expevents NEW"),
            ("iptables-nft", "-A INPUT -m conntrack --ctproto all"),
            ("iptables-nft", "-A INPUT -m conntrack --ctproto ALL"),
            ("iptables-nft", "-A INPUT -m conntrack --ctproto All"),
            ("iptables-nft", "-A INPUT -m conntrack --ctproto TCP"),
            ("iptables-nft", "-A INPUT -p ALL"),
            ("iptables-nft", "-A INPUT -p dccp -m dccp --dccp-types Request"),
            (
                "iptables-nft",
                "-A INPUT -m hashlimit --hashlimit-name x --hashlimit-upto 1/s --hashlimit-mode srcip",
            ),
            (
                "iptables-nft",
                "-A INPUT -m hashlimit --hashlimit-name x --hashlimit-upto 1/s --hashlimit-mode SRCIP",
            ),
            ("iptables-nft", "-t mangle -A INPUT -j HMARK --hmark-tuple SRC --hmark-mod 1 --hmark-rnd 1"),
            ("ip6tables-nft", "-A INPUT -m ipv6header --header auth"),
            ("ip6tables-nft", "-A INPUT -m ipv6header --header Auth"),
        ] {
            let theirs = testns::try_sh(&format!("{tool} {line}"));
            let said = String::from_utf8_lossy(&theirs.stderr);
            assert_eq!(check_line(line).is_ok(), theirs.status.success(), "{line}: {said}");
        }
    });
}
