//! The tool `nft` against the real nft 1.0.6: the same command lines to both, each in a namespace of its
//! own, and the same output and exit status. Messages have words of their own, but are there exactly where
//! nft has one.

use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::side_by_side::{Done, run_and_tell, run_with};
use testns::Netns;

use crate::tool;

const RULESET: &str = "
table inet t {
	comment \"tc\"
	counter c1 { packets 3 bytes 4; }
	counter c2 { comment \"x\"; }
	quota q { over 5 mbytes; }
	limit l { rate 5/second; }
	ct helper h { type \"ftp\" protocol tcp; }
	set s { type ipv4_addr; elements = { 1.2.3.4, 5.6.7.8 }; }
	set iv { type ipv4_addr; flags interval; elements = { 10.0.0.0/8, 192.168.0.1-192.168.0.9 }; }
	set p { type inet_proto; elements = { tcp, udp, 99 }; }
	set loopback { type ipv4_addr; elements = { 127.0.0.1 }; }
	map m { type ipv4_addr : verdict; elements = { 1.2.3.4 : accept }; }
	set d { type ipv4_addr; flags dynamic; size 10; timeout 1h; }
	chain in { type filter hook input priority 0; policy drop; comment \"cc\"
		tcp dport { 22, 80 } counter accept comment \"r\"
		iif \"lo\" accept
		ip saddr @s limit name \"l\" drop
		meta skuid 0 counter name c1
		meta l4proto tcp ip dscp cs1 limit rate 5/second accept
	}
	map marks { type ipv4_addr : mark; flags dynamic; size 10; }
	chain adds {
		add @marks { ip saddr : 7 }
	}
	chain r {
		meter mm { ip saddr limit rate 5/second }
	}
	set bits { type ct_state . tcp_flag; elements = { new . syn | ack }; }
	set masks { type tcp_flag; elements = { syn | ack, 0x40 }; }
	chain named {
		ct state established,related accept
		ct state != established,related
		ct state & (established | related) == established
		ct status & snat == snat
		ct event set new,destroy
		tcp flags syn,ack / syn,ack,fin
		tcp flags & (syn | ack) > 0
		tcp flags { syn, fin | ack } tcp flags vmap { syn : accept }
		tcp flags set syn
		meta mark set ct state map { new : 1, established | related : 2 }
		fib saddr . iif oif exists
		tcp option sack-perm missing
		meta time > \"2024-01-01 00:00:00\" meta hour \"22:00\"-\"05:00\"
		meta day \"Monday\" meta hour { \"10:00\"-\"12:00\" } ct expiration 1h
		icmp type echo-request ip dscp ef
		reject with icmp type host-unreachable
	}
	chain proxied {
		tcp dport 80 tproxy ip to 127.0.0.1:50080 accept
	}
	chain rejects {
		reject with icmpv6 type no-route
	}
	chain admin {
		reject with icmpx type admin-prohibited
	}
}
table ip x {
	chain y {
		type nat hook postrouting priority srcnat + 5
	}
}
table ip z {
	set s { type inet_service; elements = { 22 }; }
}
";

/// Command lines whose words are split at blanks; `;` and braces are nft's.
const LINES: &[&str] = &[
    "list tables",
    "list tables inet",
    "list table ip z",
    "list table nope",
    "list table inet t",
    "list ruleset",
    "list ruleset ip",
    "list ruleset arp",
    "list chains",
    "list chains ip",
    "list chain inet t in",
    "list chain inet t nope",
    "list sets",
    "list sets inet",
    "list set inet t s",
    "list set inet t iv",
    "list set ip z nope",
    "list maps",
    "list map inet t m",
    "list chain inet t adds",
    "list meters",
    "list meter inet t mm",
    "list flowtables",
    "list counters",
    "list counters table inet t",
    "list counter inet t c1",
    "list counter inet t nope",
    "list quotas",
    "list quota inet t q",
    "list limits",
    "list limit inet t l",
    "list ct helpers table inet t",
    "list ct helper inet t h",
    "list secmarks",
    "list synproxys",
    "list hooks",
    "list hooks ip",
    "list hooks ip6",
    "list hooks inet",
    "list hooks arp",
    "list hooks bridge",
    "list hooks netdev",
    "list hooks netdev device lo",
    "list hooks ip device lo",
    "list hooks device lo",
    "get element inet t s { 1.2.3.4 }",
    "get element inet t s { 1.2.3.4, 5.6.7.8 }",
    "get element inet t s { 9.9.9.9 }",
    "get element inet t iv { 10.1.2.3 }",
    "get element inet t m { 1.2.3.4 }",
    "get element inet t nope { 1.2.3.4 }",
    "-s list ruleset",
    "-t list ruleset",
    "-a list ruleset",
    "-sat list ruleset",
    "-a list chain inet t in",
    "-a list tables",
    "-a list chains",
    "-a list sets",
    "-a list counters",
    "-n list table inet t",
    "-n list ruleset",
    "-nn list ruleset",
    "-T list ruleset",
    "-nt list ruleset",
    "-nn list chain inet t in",
    "-y list chains",
    "-p list set inet t p",
    "-T list set inet t d",
    "-S list set ip z s",
    "-S list chain inet t in",
    "-u list chain inet t in",
    "-N list set inet t loopback",
    "-N list table ip z",
    "-N list chain inet t proxied",
    "--reversedns --guid list ruleset",
    "-j list ruleset",
    "-j list tables",
    "-j list table inet t",
    "-j list chains",
    "-j list chain inet t in",
    "-j list sets",
    "-j list chain inet t adds",
    "-j list set inet t s",
    "-j list maps",
    "-j list meters",
    "-j list counters",
    "-j list counter inet t c1",
    "-j list quotas",
    "-j list limits",
    "-j list ct helper inet t h",
    "-j list flowtables",
    "-j -t list sets",
    "-j -n list set inet t p",
    "-j -n list chain inet t named",
    "-j -n list set inet t bits",
    "-j -T list chain inet t named",
    "-j get element inet t s { 1.2.3.4 }",
    "--json --stateless list ruleset",
    "--handle list ruleset",
    "reset counters",
    "reset counter inet t c1",
    "-j reset counters",
    "reset quotas",
    "reset quota inet t q",
    "add table ip n",
    "add chain ip n c { type filter hook input priority 5 ; policy accept ; }",
    "add rule ip n c tcp dport 22 accept",
    "insert rule ip n c ip saddr 1.2.3.4 drop",
    "add rule ip n c index 0 ip saddr { 1.1.1.1, 2.2.2.2 } counter",
    "add set ip n s { type ipv4_addr ; flags interval ; }",
    "add element ip n s { 10.0.0.0/8, 192.168.0.0-192.168.0.9 }",
    "delete element ip n s { 10.0.0.0/8 }",
    "add rule ip n c ip saddr @s accept ; add rule ip n c drop",
    "list table ip n",
    "flush chain ip n c",
    "flush set ip n s",
    "rename chain ip n c d",
    "list table ip n",
    "delete chain ip n d",
    "delete table ip n",
    "-c add table ip n",
    "-c add rule ip x nope accept",
    "list tables",
    "-e add rule ip x y accept",
    "-e -a add rule ip x y accept",
    "-j -e add rule ip x y accept",
    "-e insert rule ip x y ip saddr 10.0.0.0/8 counter",
    "-e add element ip z s { 80, 443 }",
    "-e add set ip z t { type ipv4_addr ; timeout 1h ; }",
    "-j -e add table ip ww",
    "add table",
    "add tabel ip t",
    "delete table ip nope",
    "create table ip x",
    "add rule ip x nope accept",
    "add rule ip x y tcp dport foo",
    "add rule ip x y tcp dport 99999",
    "add rule ip x y ct state foo",
    "flush ruleset foo",
    "list foo",
    "-f /nonexistent",
    "-D novalue list tables",
    "-D p=22 list tables",
    "-D p=22 add table ip $p",
    "-D p=22",
    "-D p=22 -f -",
    "-D p=22 -D p=23 -f -",
    "-D p= -f -",
    "-D =22 -f -",
    "-d nonsense list tables",
    "-d",
    "-x",
    "--nonsense",
    "",
    "-h",
    "--help",
    "-v",
    "--version",
    "describe tcp dport",
    "describe ct state",
    "describe tcp flags",
    "describe meta mark",
    "describe meta day",
    "describe rt ip6 nexthop",
    "describe ip saddr",
    "describe ipv4_addr",
    "describe icmp_type",
    "describe fib_addrtype",
    "describe dscp",
    "describe pkt_type",
    "describe ct_state",
    "describe inet_proto",
    "describe exthdr frag",
    "describe ip6 nexthdr",
    "describe tcp option maxseg",
    "describe sctp chunk data",
    "describe foo",
    "describe 5",
    "describe accept",
    "describe ip foo",
    "flush ruleset",
    "list ruleset",
];

fn real() -> PathBuf {
    "nft".into()
}

fn run(tool: &Path, line: &str, input: &str) -> Done {
    run_with(tool, line.split_whitespace(), input)
}

/// Whoever made a commit has another number, and another time of the day.
fn plain(done: Done) -> Done {
    let line = |line: &str| match line.split_once(" by process ") {
        Some((before, _)) => before.to_owned(),
        None => line.to_owned(),
    };
    let stdout = done.stdout.lines().map(|text| line(text) + "\n").collect();
    Done { stdout, ..done }
}

#[test]
fn command_lines_do_and_print_what_those_of_nft_do() {
    if !testns::have(&["nft"]) {
        return;
    }
    let (Some(first), Some(second)) = (Netns::new(), Netns::new()) else { return };
    let ours = tool("nft");
    for (namespace, tool) in [(&first, &real()), (&second, &ours)] {
        let loaded = namespace.run(|| run(tool, "-f -", RULESET));
        assert_eq!((loaded.status, loaded.stderr.as_str()), (Some(0), ""), "{}", tool.display());
    }
    let mut failed = Vec::new();
    for line in LINES {
        let mut nft = plain(first.run(|| run(&real(), line, "")));
        // Of what nft 1.0.6 has no JSON for it says so, and prints it as text.
        nft.stderr = nft.stderr.replace("warning: stmt ops map have no json callback\n", "");
        let done = plain(second.run(|| run(&ours, line, "")));
        let same = (nft.status, &nft.stdout) == (done.status, &done.stdout);
        if !same || nft.stderr.is_empty() != done.stderr.is_empty() {
            failed.push(format!("nft {line}\n  nft: {nft:?}\n  ours: {done:?}"));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// What a script lists behind its changes is listed with them.
#[test]
fn a_script_lists_what_it_has_made() {
    if !testns::have(&["nft"]) {
        return;
    }
    for script in [
        "add table ip t { chain c { }; }\nlist table ip t\nlist chains\n",
        "add table ip t\nadd set ip t s { type mark; elements = { 5 }; }\nlist sets\n",
        "add table ip t\nadd table ip u\ndelete table ip t\nlist tables\n",
    ] {
        let (Some(first), Some(second)) = (Netns::new(), Netns::new()) else { return };
        let nft = first.run(|| run(&real(), "-f -", script));
        let ours = second.run(|| run(&tool("nft"), "-f -", script));
        assert_eq!((nft.status, nft.stdout), (ours.status, ours.stdout), "{script}{}", ours.stderr);
    }
}

/// What the kernel refuses is underlined in the text, as what the parser refuses is.
#[test]
fn what_the_kernel_refuses_is_told_with_its_line() {
    let Some(namespace) = Netns::new() else { return };
    let text = "table inet t {
\tchain c {
\t\ttcp dport 22 accept
\t\tjump nowhere
\t}
}
add rule inet t c ip saddr 10.0.0.1 drop
delete table ip nope
";
    let first = namespace.run(|| run(&tool("nft"), "-f -", text));
    assert_eq!(first.status, Some(1));
    assert!(first.stderr.starts_with("/dev/stdin:4:8-14: Error: "), "{}", first.stderr);
    assert!(
        first.stderr.contains("\n  jump nowhere\n       ^^^^^^^\n(chain inet t nowhere"),
        "{}",
        first.stderr
    );
    let words = namespace.run(|| run(&tool("nft"), "add rule inet t c accept", ""));
    assert!(words.stderr.contains("\nadd rule inet t c accept\n              ^\n"), "{}", words.stderr);
}

/// Of a rule, the statement that the kernel refuses is underlined, where nft underlines it or a part of it.
#[test]
fn the_statement_that_the_kernel_refuses_is_underlined() {
    if !testns::have(&["nft"]) {
        return;
    }
    for (before, refused) in [
        ("", "meta ibrname \"br0\""),
        ("tcp dport 22 ", "numgen random mod 2 offset 4294967295 5"),
        ("tcp dport { 22, 23 } counter ", "symhash mod 0 0"),
        ("ip saddr 10.0.0.1 ", "limit rate 99999999999 mbytes/second"),
        ("counter ", "jump nowhere"),
    ] {
        let Some(namespace) = Netns::new() else { return };
        let text = format!("table ip t {{ chain c {{ }}\n}}\nadd rule ip t c {before}{refused}\n");
        let done = [real(), tool("nft")].map(|tool| namespace.run(|| run(&tool, "-f -", &text)));
        let [nft, ours] = done.map(|done| {
            let marks = done.stderr.lines().rfind(|line| line.contains('^')).map(str::to_owned);
            marks.unwrap_or_else(|| panic!("{refused}: {}", done.stderr))
        });
        let start = "add rule ip t c ".len() + before.len();
        let place = |marks: &str| marks.find('^').zip(marks.rfind('^'));
        let wide = Some((start, start + refused.len() - 1));
        let is_inside =
            place(&nft).zip(wide).is_some_and(|((from, to), (first, last))| first <= from && to <= last);
        assert!(is_inside, "{refused}: {nft}");
        assert!(
            place(&ours).is_some_and(|(from, to)| start <= from && to < start + refused.len()),
            "{refused}: {ours}"
        );
    }
}

/// Of a list of elements, those that the kernel refuses are underlined, at the columns of nft.
#[test]
fn an_element_that_the_kernel_refuses_is_told_with_its_place() {
    let Some(namespace) = Netns::new() else { return };
    let world = "table ip t {
\tset s { type ipv4_addr; size 2; elements = { 1.1.1.1, 1.1.1.2 }; }
\tmap vm { type ipv4_addr : verdict; }
}
";
    assert_eq!(namespace.run(|| run(&tool("nft"), "-f -", world)).status, Some(0));
    let scripts = [
        ("add element ip t s { 1.1.1.1,\n\t1.1.1.3 comment \"x\" }\n", "2:2-8"),
        ("define more = { 1.1.1.1, 1.1.1.4 }\nadd element ip t s $more\n", "1:26-32"),
        ("add element ip t vm { 1.1.1.1 : drop, 1.1.1.2 : goto nope }\n", "1:39-45"),
        ("delete element ip t s { 1.1.1.1, 9.9.9.9, 1.1.1.2 }\n", "1:34-40"),
    ];
    for (script, place) in scripts {
        let done = namespace.run(|| run(&tool("nft"), "-f -", script));
        let (line, columns) = place.split_once(':').expect("a line and columns");
        let (first, last) = columns.split_once('-').expect("two columns");
        let [line, first, last] = [line, first, last].map(|n| n.parse::<usize>().expect("a number"));
        assert!(
            done.stderr.contains(&format!("/dev/stdin:{line}:{first}-{last}: Error: ")),
            "{}",
            done.stderr
        );
        let marked = done.stderr.lines().filter(|line| line.contains('^')).collect::<Vec<_>>();
        let width = marked.first().map_or(0, |marks| marks.matches('^').count());
        assert_eq!((marked.len(), width), (1, last - first + 1), "{}", done.stderr);
        if testns::have(&["nft"]) {
            let theirs = namespace.run(|| run(&real(), "-f -", script));
            assert!(theirs.stderr.contains(&format!(":{place}: Error")), "{}", theirs.stderr);
        }
    }
}

/// The files that come with nft, all of which either takes.
#[test]
fn the_files_that_come_with_nft_make_the_same_ruleset() {
    if !testns::have(&["nft", "ip"]) {
        return;
    }
    let Ok(files) = std::fs::read_dir("/usr/share/doc/nftables/examples") else {
        testns::skip("the examples of nft are not installed");
        return;
    };
    let mut files: Vec<_> = files.flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "nft"));
    files.push("/etc/nftables.conf".into());
    files.sort();
    for file in files.iter().filter(|file| file.exists()) {
        let path = file.display().to_string();
        let done = [real(), tool("nft")].map(|tool| {
            let namespace = Netns::new()?;
            Some(namespace.run(|| {
                let _ = testns::sh("ip link add eth0 type veth peer name eth1");
                let done = run_with(&tool, ["-f", path.as_str()], "");
                (done.status, testns::sh("nft list ruleset"))
            }))
        });
        let [Some(nft), Some(ours)] = done else { return };
        assert_eq!(nft, ours, "{path}");
    }
}

/// Wrong command lines are refused in the words of nft, and what stands behind `-h` or `-V` is not looked at.
#[test]
fn wrong_options_are_refused_as_nft_refuses_them() {
    if !testns::have(&["nft"]) {
        return;
    }
    let Some(namespace) = Netns::new() else { return };
    for line in [
        "-x",
        "--foo",
        "-f",
        "-D",
        "--file",
        "--define",
        "--handle=3 list tables",
        "--numeric=1 list tables",
        "--n list tables",
        "--numeric-foo list tables",
        "-D a=1 list tables",
        "-d foo list tables",
        "-x -V",
        "-v -x",
        "--help -x",
        "-c",
        "",
    ] {
        let [nft, ours] = [real(), tool("nft")].map(|tool| namespace.run(|| run(&tool, line, "")));
        // getopt(3) names the program by its path.
        let path = real().display().to_string();
        let words = |done: &Done| (done.stderr.replace(&path, "nft"), done.stdout.replace(&path, "nft"));
        assert_eq!((nft.status, words(&nft)), (ours.status, words(&ours)), "{line}");
    }
    for line in ["list tables -a", "add rule ip t c -n accept", "-s list ruleset --json"] {
        let [nft, ours] = [real(), tool("nft")].map(|tool| namespace.run(|| run(&tool, line, "")));
        for done in [nft, ours] {
            assert_eq!(done.status, Some(1), "{line}");
            assert!(done.stderr.contains("options must be specified before commands"), "{}", done.stderr);
        }
    }
    let [nft, ours] = [real(), tool("nft")].map(|tool| namespace.run(|| run(&tool, "-V -x", "")));
    assert_eq!((nft.status, nft.stdout.lines().next()), (ours.status, ours.stdout.lines().next()));
    let subjects = |done: &Done| -> Vec<String> {
        done.stdout.lines().skip(1).filter_map(|line| Some(line.split_once(':')?.0.to_owned())).collect()
    };
    let ours = subjects(&ours);
    assert!(subjects(&nft).iter().all(|subject| ours.contains(subject)), "{ours:?}");
}

/// Dates with the offset of each, hours with that of now.
#[test]
fn times_are_those_of_the_time_zone() {
    if !testns::have(&["nft"]) {
        return;
    }
    const TIMES: &str = "table ip t {
	chain c {
		meta time \"2024-07-01 12:00\"
		meta time \"2024-01-01 12:00\"
		meta time \"2024-03-31 01:30\"
		meta time \"2024-03-31 02:30\"
		meta time \"2024-10-27 01:30\"
		meta time \"2024-10-27 02:30\"
		meta time < \"2045-07-01 12:00\"
		meta hour \"12:00\"
		meta hour \"00:30\"
		meta hour \"15:00\"-\"16:30\"
	}
}
";
    let zones =
        ["Europe/Berlin", "America/New_York", "Asia/Kolkata", "UTC-2", "CET-1CEST,M3.5.0,M10.5.0/3", ""];
    for zone in zones {
        let zone = format!("TZ={zone}");
        let made = [real(), tool("nft")].map(|tool| {
            let tool = tool.display().to_string();
            let namespace = Netns::new()?;
            let run = |words: &[&str], input: &str| {
                let words = [zone.as_str(), tool.as_str()].into_iter().chain(words.iter().copied());
                let done = namespace.run(|| run_with(Path::new("env"), words, input));
                assert_eq!((done.status, done.stderr.as_str()), (Some(0), ""), "{zone} {tool}");
                done.stdout
            };
            run(&["-f", "-"], TIMES);
            Some([run(&["list", "ruleset"], ""), namespace.run(|| testns::sh("TZ=UTC nft list ruleset"))])
        });
        let [Some(nft), Some(ours)] = made else { return };
        assert_eq!(nft, ours, "{zone}");
    }
}

/// What versions of nft after 1.0.6 reset: each shows what there was, and leaves nothing.
#[test]
fn rules_and_elements_are_reset_in_one_step() {
    const COUNTED: &str = "table ip t {
	set s { type ipv4_addr; counter; elements = { 10.0.0.1 counter packets 5 bytes 6, 10.0.0.2 counter packets 7 bytes 8 }; }
	chain c {
		tcp dport 22 counter packets 1 bytes 2 accept
		counter packets 3 bytes 4
	}
}
";
    let Some(namespace) = Netns::new() else { return };
    let ours = tool("nft");
    for (line, shown, left) in [
        ("reset rules", &["packets 1 bytes 2", "packets 3 bytes 4"][..], "5 7"),
        ("reset rules table ip t", &["packets 1 bytes 2", "packets 3 bytes 4"], "5 7"),
        ("reset rules chain ip t c", &["packets 1 bytes 2", "packets 3 bytes 4"], "5 7"),
        ("reset rule ip t c handle 4", &["packets 3 bytes 4"], "1 5 7"),
        ("reset set ip t s", &["packets 5 bytes 6", "packets 7 bytes 8"], "1 3"),
        ("reset element ip t s { 10.0.0.2 }", &["packets 7 bytes 8"], "1 3 5"),
    ] {
        let (done, after) = namespace.run(|| {
            let loaded = run(&ours, "-f -", &format!("flush ruleset\n{COUNTED}"));
            assert_eq!((loaded.status, loaded.stderr.as_str()), (Some(0), ""));
            (run(&ours, line, ""), run(&ours, "list ruleset", "").stdout)
        });
        assert_eq!((done.status, done.stderr.as_str()), (Some(0), ""), "{line}");
        let packets = |text: &str| -> Vec<String> {
            let parts = text.split("packets ").skip(1);
            parts.map(|part| part.split(',').next().unwrap_or_default().trim().to_owned()).collect()
        };
        for counts in shown {
            assert!(done.stdout.contains(counts), "{line}: {}", done.stdout);
        }
        assert_eq!(packets(&done.stdout).len(), shown.len(), "{line}: {}", done.stdout);
        let kept: Vec<String> = packets(&after)
            .iter()
            .filter_map(|counts| counts.split(' ').next().map(str::to_owned))
            .filter(|packets| packets != "0")
            .collect();
        let mut kept = kept;
        kept.sort();
        assert_eq!(kept.join(" "), left, "{line}: {after}");
    }
}

#[test]
fn a_script_may_include_files_and_use_definitions() {
    let Some(namespace) = Netns::new() else { return };
    let directory = std::env::temp_dir().join(format!("nft-example-{}", std::process::id()));
    std::fs::create_dir_all(directory.join("rules.d")).expect("a directory");
    let write = |name: &str, text: &str| std::fs::write(directory.join(name), text).expect("a file");
    write("rules.d/1.nft", "add chain ip t a\n");
    write("rules.d/2.nft", "add chain ip t b\nadd rule ip t b tcp dport $ports accept\n");
    write("rules.d/.hidden.nft", "this is no rule\n");
    write("ports.nft", "define ports = { 22, 80 }\n");
    let script = "include \"ports.nft\"\nadd table ip t\ninclude \"rules.d/*.nft\"\ninclude \
                  \"none/*.nft\"\nadd rule ip t a ip saddr $host drop\n";
    write("main.nft", script);
    let main = directory.join("main.nft").display().to_string();
    let includes = directory.display().to_string();
    let done =
        namespace.run(|| run_with(&tool("nft"), ["-I", &includes, "-D", "host=10.0.0.1", "-f", &main], ""));
    assert_eq!((done.status, done.stderr.as_str()), (Some(0), ""));
    let listed = namespace.run(|| run(&tool("nft"), "list ruleset", "")).stdout;
    assert_eq!(
        listed,
        "table ip t {\n\tchain a {\n\t\tip saddr 10.0.0.1 drop\n\t}\n\n\tchain b {\n\t\ttcp dport { 22, 80 \
         } accept\n\t}\n}\n"
    );
    let wrong =
        namespace.run(|| run_with(&tool("nft"), ["-I", &includes, "-f", "-"], "include \"nope.nft\"\n"));
    assert_eq!(wrong.status, Some(1));
    assert!(wrong.stderr.contains("cannot include \"nope.nft\": no such file"), "{}", wrong.stderr);
    let _ = std::fs::remove_dir_all(directory);
}

#[test]
fn a_ruleset_in_json_is_read_back() {
    if !testns::have(&["nft"]) {
        return;
    }
    let (Some(first), Some(second)) = (Netns::new(), Netns::new()) else { return };
    let ours = tool("nft");
    let json = first.run(|| {
        let _ = run(&ours, "-f -", RULESET);
        run(&ours, "-j list ruleset", "").stdout
    });
    let loaded = second.run(|| run(&ours, "-j -f -", &json));
    assert_eq!((loaded.status, loaded.stderr.as_str()), (Some(0), ""));
    // nft 1.0.6 does not list comments of tables and chains in JSON, nor that rules may change a set.
    let listed = |namespace: &Netns| {
        let text = namespace.run(|| run(&real(), "list ruleset", "")).stdout;
        let left_out = ["comment \"tc\"", "comment \"cc\"", "flags dynamic,timeout"];
        text.lines().filter(|line| !left_out.contains(&line.trim())).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(listed(&first), listed(&second));
    let query =
        second.run(|| run(&ours, "-j -f -", r#"{"nftables": [{"list": {"counters": {"family": "inet"}}}]}"#));
    assert!(query.stdout.contains(r#""name": "c2""#), "{query:?}");
    let wrong =
        second.run(|| run(&ours, "-j -f -", r#"{"nftables": [{"add": {"table": {"family": "x"}}}]}"#));
    assert_eq!(wrong.status, Some(1));
    assert!(wrong.stderr.contains("/nftables/0/add/table/family: expected a family"), "{}", wrong.stderr);
}

/// A line without the time after which an element expires.
fn without_time_left(line: &str) -> String {
    let mut words: Vec<&str> = line.split(' ').collect();
    let is_time = |word: &&str| matches!(*word, "expires" | "\"expires\":");
    if let Some(at) = words.iter().position(is_time).filter(|at| at + 1 < words.len()) {
        words.remove(at + 1);
    }
    words.join(" ")
}

/// What both say of the same changes, made by the real nft.
#[test]
fn a_monitor_says_what_nft_monitor_says() {
    if !testns::have(&["nft"]) {
        return;
    }
    for (options, words) in [
        ("", "monitor"),
        ("-a", "monitor"),
        ("", "monitor new rules"),
        ("", "monitor destroy"),
        ("-j", "monitor elements"),
        ("-j", "monitor new"),
    ] {
        let Some(namespace) = Netns::new() else { return };
        let arguments: Vec<&str> = options.split_whitespace().chain(words.split_whitespace()).collect();
        let [nft, ours] = namespace.run(|| {
            let tools = [real(), tool("nft")];
            let watches = tools.map(|tool| {
                let (sender, started) = channel();
                let arguments: Vec<String> = arguments.iter().map(|word| (*word).to_owned()).collect();
                let watch = namespace_thread(move || {
                    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
                    run_and_tell(&tool, &arguments, sender)
                });
                (watch, started.recv().expect("it starts"))
            });
            for (_, process) in &watches {
                wait_until_it_listens(*process);
            }
            let _ = run(&real(), "-f -", CHANGES);
            let _ = run(&real(), "-f -", MORE_CHANGES);
            std::thread::sleep(Duration::from_millis(300));
            for (_, process) in &watches {
                let _ = std::process::Command::new("kill").arg(process.to_string()).status();
            }
            watches.map(|(watch, _)| watch.join().expect("it ends").stdout)
        });
        // Word for word, but for the time that is left when each of the two looks.
        let lines = |text: &str| -> Vec<String> { text.lines().map(without_time_left).collect() };
        assert!(!nft.is_empty(), "nft says nothing");
        let (nft, ours) = (lines(&nft), lines(&ours));
        let differ: Vec<_> = nft.iter().zip(&ours).filter(|(nft, ours)| nft != ours).collect();
        assert!(
            differ.is_empty() && nft.len() == ours.len(),
            "nft {options} {words}: {differ:#?}\n{nft:#?}\n{ours:#?}"
        );
    }
}

/// What both say of the same packets: every step, and the headers.
#[test]
fn traced_packets_take_the_steps_that_nft_monitor_trace_says() {
    if !testns::have(&["nft", "ip"]) {
        return;
    }
    const TRACED: &str = "table inet t {
	chain pre { type filter hook prerouting priority -350; meta nftrace set 1; }
	chain in {
		type filter hook input priority 0; policy accept;
		udp dport 53 jump dns
		udp dport { 67, 68 } counter drop comment \"no leases\"
		meta mark set 5
	}
	chain dns {
		meta mark 7 accept
		counter return
	}
}
";
    let Some(namespace) = Netns::new() else { return };
    let [nft, ours] = namespace.run(|| {
        let _ = testns::sh("ip link set lo up");
        let loaded = run(&real(), "-f -", TRACED);
        assert_eq!((loaded.status, loaded.stderr.as_str()), (Some(0), ""));
        let watches = [real(), tool("nft")].map(|tool| {
            let (sender, started) = channel();
            let watch = namespace_thread(move || run_and_tell(&tool, &["monitor", "trace"], sender));
            (watch, started.recv().expect("it starts"))
        });
        for (_, process) in &watches {
            wait_until_it_listens(*process);
        }
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
        for port in [53, 67, 9999] {
            // Nobody listens: what comes back is traced as well.
            let _ = socket.send_to(b"x", ("127.0.0.1", port));
            std::thread::sleep(Duration::from_millis(100));
        }
        let other = std::net::UdpSocket::bind("[::1]:0").expect("a socket");
        let _ = other.send_to(&[0; 40], ("::1", 9999));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a listener");
        drop(std::net::TcpStream::connect(listener.local_addr().expect("an address")));
        std::thread::sleep(Duration::from_millis(300));
        for (_, process) in &watches {
            let _ = std::process::Command::new("kill").arg(process.to_string()).status();
        }
        watches.map(|(watch, _)| watch.join().expect("it ends").stdout)
    });
    assert!(nft.matches(" packet: ").count() > 9, "nft says too little: {nft}");
    // Each reads the rules when it starts to listen, or a packet later.
    let lines = |text: &str| text.replace("counter packets 1 bytes 29", "counter packets 0 bytes 0");
    assert_eq!(lines(&nft).lines().collect::<Vec<_>>(), lines(&ours).lines().collect::<Vec<_>>());
}

/// A thread is in the namespace of the one that starts it.
fn namespace_thread<T: Send + 'static>(
    run: impl FnOnce() -> T + Send + 'static,
) -> std::thread::JoinHandle<T> {
    std::thread::spawn(run)
}

fn wait_until_it_listens(process: u32) {
    // Ours joins its group before it reads what is there: a change that comes meanwhile is no event. It sleeps
    // when it has.
    let sleeps = || {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S'))
    };
    for _ in 0..2000 {
        let listens =
            || testns::netfilter_sockets().iter().any(|socket| socket.port == process && socket.listens);
        if listens() && sleeps() {
            std::thread::sleep(Duration::from_millis(5));
            if sleeps() {
                return;
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("process {process} does not join its group");
}

const CHANGES: &str = "
add table ip t
add chain ip t c { type filter hook input priority 0; policy drop; }
add chain ip t r
add set ip t s { type ipv4_addr; flags interval; }
add set ip t p { typeof tcp dport; counter; }
add map ip t m { type inet_service : verdict; }
add element ip t s { 1.2.3.4, 10.0.0.0/8, 7.7.7.1-7.7.7.9 comment \"z\" }
add element ip t p { 80 }
add element ip t m { 80 : accept, 22 : jump r }
add counter ip t cnt
add quota ip t q { over 5 mbytes }
add rule ip t c ip saddr @s tcp dport { 22, 80 } counter accept comment \"hi\"
add rule ip t c tcp dport vmap { 22: accept, 80 : drop }
insert rule ip t c reject
";
const MORE_CHANGES: &str = "
delete element ip t s { 10.0.0.0/8 }
delete element ip t p { 80 }
delete quota ip t q
flush chain ip t c
delete map ip t m
delete table ip t
";
