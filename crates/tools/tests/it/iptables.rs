//! iptables, iptables-save and iptables-restore beside the real ones of both back ends and families: the same
//! command lines to both, each in a namespace of its own, with the same status, the same output, and the same
//! rules afterwards.

use std::path::{Path, PathBuf};
use std::process::Command;

use testns::{Netns, have, sh};

use crate::side_by_side::{Done, run_with};
use crate::tool;

/// The rules that each list of command lines begins with.
const RULES: &str = "*filter\n:bar - [0:0]\n:foo - [0:0]\n[3:4] -A INPUT -s 192.0.2.1/32 -j ACCEPT\n\
    [5:6] -A INPUT -p tcp -m tcp --dport 22 -j foo\n[7:8] -A foo -m comment --comment \"a b\" -j RETURN\n\
    COMMIT\n*nat\n[0:0] -A PREROUTING -p tcp -m tcp --dport 1 -j ACCEPT\n[0:0] -A OUTPUT -s 192.0.2.2/32\n\
    COMMIT\n";

/// Command lines of iptables, one after the other on the same rules. Of those with `=` before them the
/// first line of standard error is the same, too.
const LINES: &[&str] = &[
    "-V",
    "-S",
    "-v -S",
    "-S INPUT 1",
    "-S INPUT 9",
    "-SINPUT",
    "--list-rules=INPUT",
    "-L",
    "-L -n",
    "-nvL --line-numbers",
    "-nxvL INPUT 1",
    "-L foo -n",
    "=-S NONE",
    "=-L NONE -n",
    "-tnat -S",
    "--table=nat -S OUTPUT",
    "--tab nat -S",
    "-S -t nat",
    "-w5 -S INPUT",
    "--wait=5 -S INPUT",
    "-w 5 -S INPUT",
    "=-w x -S INPUT",
    "-4 -S INPUT",
    "=-6 -A INPUT -j DROP",
    "=--ipv6 -A INPUT -j DROP",
    "=",
    "=-A",
    "=-A INPUT --nonsense",
    "=-A INPUT -k",
    "=-A INPUT -j ACCEPT extra",
    "=-A INPUT -m nosuch",
    "=-A INPUT -A OUTPUT -j DROP",
    "=-L -F",
    "=-n -A INPUT -j DROP",
    "=-S -n",
    "=-L -j DROP",
    "=-c 1 2 -F",
    "=-A INPUT -c 7 -j DROP",
    "=-A INPUT -c x y -j DROP",
    "=-A INPUT -j DROP !",
    "=-A INPUT ! -j DROP",
    "=-A INPUT -s 1.1.1.1 -s 2.2.2.2",
    "=-A INPUT -s nosuch.invalid",
    "=-A INPUT -s1.1.1.1 -j DROP",
    "=-A INPUT -o eth0",
    "=-A INPUT -p tcp --dport",
    "=-A INPUT --dport 22",
    "=-A NONE -j ACCEPT",
    "=-A INPUT -j NONE",
    "=-C INPUT -j NONE",
    "=-C INPUT -s 192.0.2.9 -j ACCEPT",
    "=-C NONE -j ACCEPT",
    "=-D INPUT -s 192.0.2.9 -j ACCEPT",
    "=-D NONE -j ACCEPT",
    "=-D NONE 1",
    "=-D INPUT 9",
    "=-D INPUT 0",
    "=-D INPUT 1 -j ACCEPT",
    "=-D INPUT 1 --garbage",
    "=-I INPUT 9 -j DROP",
    "=-I INPUT x -j DROP",
    "=-R INPUT 9 -j DROP",
    "=-R INPUT -j DROP",
    "=-R INPUT 1 -s 1.1.1.1,2.2.2.2 -j DROP",
    "=-N foo",
    "=-N INPUT",
    "=-N LOG",
    "=-N abcdefghijklmnopqrstuvwxyzabc",
    "=-X NONE",
    "=-X foo",
    "=-F NONE",
    "=-Z NONE",
    "=-P foo DROP",
    "=-P NONE DROP",
    "=-P INPUT REJECT",
    "=-P INPUT",
    "=-E foo bar",
    "=-E NONE new",
    "=-t nosuch -S",
    "=-t nat -P OUTPUT DROP",
    "-A INPUT -p tcp --dport 22,80 -j ACCEPT",
    "-A INPUT -p tcp --dport 70000",
    "-A INPUT -j REJECT --reject-with tcp-reset",
    "-A INPUT -j DNAT --to-destination 1.1.1.1",
    "-A INPUT -m sctp --dport 5",
    "-A INPUT -j TOS --set-tos 4",
    // What is wrong with the words comes before the chain that is not there.
    "=-A NONE -p nosuch",
    "=-A NONE -m comment --comment x --comment y",
    "=-A NONE -m cluster --cluster-total-nodes 99 --cluster-hash-seed 1 --cluster-local-node 1",
    "-t mangle -A FORWARD -p tcp --syn -j TCPMSS",
    "-A foo -j foo",
    "-A foo -j INPUT",
    "-A INPUT -j TRACE",
    "-t mangle -A FORWARD -p tcp -j TCPMSS --set-mss 42",
    "-A INPUT -j NFQUEUE --queue-balance :4",
    "-A INPUT -p dccp --dport : -j DROP",
    "-A INPUT -s localhost -j ACCEPT",
    "-A INPUT -c 7 8 -j DROP",
    "-v -A INPUT -p tcp --dport 22 -m comment --comment hi -j foo",
    "-v -I INPUT 1 -f ! -s 1.1.1.1 -j LOG",
    "-v -A FORWARD -s 1.1.1.1,2.2.2.2 -p tcp -i lo -j DROP",
    "-v -D FORWARD -s 1.1.1.1 -p tcp -i lo -j DROP",
    "-A INPUT -m comment --comment -D -j DROP",
    "-A INPUT -m comment --comment=-t -j DROP",
    "--app INPUT --jump DROP",
    "-AFORWARD -j DROP",
    "-DFORWARD 1",
    "-D OUTPUT 1 -tnat",
    "-A FORWARD ! -i + -j DROP",
    "-nvL",
    "-L INPUT",
    "-L -Z -n",
    "-Z -L -v -n",
    "-v -Z",
    "-v -N new",
    "-v -X new",
    "-v -P FORWARD DROP",
    "-v -F INPUT",
    "-v -F",
    "-v -X",
    "-S",
    "-t nat -S",
];

/// Those of restore, each on the rules above, with the input below.
const RESTORES: &[&str] = &[
    "",
    "-n",
    "--noflush",
    "--test",
    "-t",
    "-nv",
    "-v",
    "-T nat",
    "-Tnat",
    "--table=nat",
    "-T nosuch",
    "-c",
    "--garbage",
    "-k",
    "-4",
    "-n -k",
    "-V",
    "nosuchfile",
    "-w 5",
    "--wait=5",
    "-M /bin/true",
];

const INPUT: &str = "*filter\n-4 -A INPUT -s 192.0.2.5 -j ACCEPT\n-6 -A INPUT -p tcp --dport 23 -j ACCEPT\n\
    -A INPUT -j DROP\nCOMMIT\n*nat\n-A OUTPUT -j ACCEPT\nCOMMIT\n";

const SAVES: &[&str] = &[
    "",
    "-c",
    "--counters",
    "-t nat",
    "-tnat",
    "--table=nat",
    "-t nosuch",
    "--garbage",
    "extra",
    "-V",
    "-ct nat",
    "-4",
    "-M /bin/true",
    "-d",
];

fn run(tool: &Path, line: &str, input: &str) -> Done {
    run_with(tool, line.split_whitespace(), input)
}

/// Runs a command line with both, in their namespaces, and compares.
fn compare(spaces: [&Netns; 2], name: &str, line: &str, input: &str) {
    let (ours, theirs) = (tool(name), PathBuf::from(name));
    let (same_error, line) = line.strip_prefix('=').map_or((false, line), |line| (true, line));
    let done = spaces[0].run(|| run(&ours, line, input));
    let wanted = spaces[1].run(|| run(&theirs, line, input));
    let lines = |text: &str| -> String {
        text.lines().filter(|line| !line.starts_with('#')).map(|line| format!("{line}\n")).collect()
    };
    assert_eq!(done.status, wanted.status, "{name} {line}: {done:?}, the tool {wanted:?}");
    assert_eq!(lines(&done.stdout), lines(&wanted.stdout), "{name} {line}");
    if same_error {
        // The tool does not say its name everywhere.
        let first = |text: &str| {
            let line = text.lines().next().unwrap_or_default();
            let names_tool = line.starts_with("iptables");
            line.split_once(": ").filter(|_| names_tool).map_or(line, |(_, rest)| rest).to_owned()
        };
        assert_eq!(first(&done.stderr), first(&wanted.stderr), "{name} {line}");
    }
}

/// All rules as the real tool saves them.
fn saved(name: &str) -> String {
    sh(&format!("{name}-save -c | grep -v '^#' | sort"))
}

#[test]
fn command_lines_do_what_they_do_with_the_tool() {
    for name in ["iptables-nft", "iptables-legacy"].into_iter().filter(|name| have(&[name])) {
        let (Some(ours), Some(theirs)) = (Netns::new(), Netns::new()) else { return };
        let spaces = [&ours, &theirs];
        let restore = PathBuf::from(format!("{name}-restore"));
        spaces.iter().for_each(|space| {
            let _ = space.run(|| run(&restore, "-c -w 20", RULES));
        });
        for line in LINES {
            compare(spaces, name, line, "");
        }
        assert_eq!(ours.run(|| saved(name)), theirs.run(|| saved(name)));
    }
}

#[test]
fn saves_and_restores_do_what_they_do_with_the_tool() {
    let names = ["iptables-nft", "iptables-legacy", "ip6tables-nft"];
    for name in names.into_iter().filter(|name| have(&[name])) {
        let (Some(ours), Some(theirs)) = (Netns::new(), Netns::new()) else { return };
        let spaces = [&ours, &theirs];
        let restore = PathBuf::from(format!("{name}-restore"));
        let v6 = |text: &str| match name.starts_with("ip6") {
            true => text.replace("192.0.2.", "2001:db8::").replace("/32", "/128"),
            false => text.to_owned(),
        };
        for line in RESTORES {
            spaces.iter().for_each(|space| {
                let _ = space.run(|| run(&restore, "-c", &v6(RULES)));
            });
            compare(spaces, &format!("{name}-restore"), line, &v6(INPUT));
            assert_eq!(ours.run(|| saved(name)), theirs.run(|| saved(name)), "{name}-restore {line}");
        }
        for line in SAVES {
            compare(spaces, &format!("{name}-save"), line, "");
        }
    }
}

#[test]
fn what_iptables_has_no_words_for_is_listed_by_no_words() {
    let Some(space) = Netns::new() else { return };
    if !have(&["nft"]) {
        return;
    }
    let (command, save) = (tool("iptables-nft"), tool("iptables-nft-save"));
    space.run(|| {
        let _ = sh(
            "nft 'add table ip filter; add chain ip filter INPUT { type filter hook input priority 0; }; \
             add chain ip filter foo; add rule ip filter foo ip saddr 192.0.2.1 drop; \
             add rule ip filter INPUT tcp dport { 22, 80 } accept'",
        );
        let all = run(&command, "-S", "");
        assert_eq!(
            (all.status, all.stdout.as_str()),
            (
                Some(0),
                "-P INPUT ACCEPT\n-P FORWARD ACCEPT\n-P OUTPUT ACCEPT\n-N foo\n\
                 # INPUT: tcp dport { 22, 80 } accept\n-A foo -s 192.0.2.1/32 -j DROP\n"
            )
        );
        assert!(all.stderr.contains("no words for chain INPUT, rule 1: a set: tcp dport { 22, 80 } accept"));
        assert_eq!(run(&command, "-S foo", "").stdout, "-N foo\n-A foo -s 192.0.2.1/32 -j DROP\n");
        let one = run(&command, "-S INPUT", "");
        assert_eq!((one.status, one.stdout.as_str()), (Some(3), ""));
        let saved = run(&save, "", "");
        assert_eq!(
            (saved.status, saved.stdout.as_str()),
            (Some(3), "# Table `filter' is incompatible, use 'nft' tool.\n")
        );
        // What is changed beside it leaves it as it is, and what removes it says so.
        assert_eq!(run(&command, "-I INPUT 2 -j DROP", "").status, Some(0));
        assert!(sh("nft list chain ip filter INPUT").contains("tcp dport { 22, 80 } accept"));
        let removes = "removes from table `filter' what others wrote";
        assert!(run(&command, "-F INPUT", "").stderr.contains(removes));
        let restore = tool("iptables-nft-restore");
        let table = "*filter\nCOMMIT\n";
        let _ = sh("nft add rule ip filter INPUT tcp dport { 22, 80 } accept");
        for (line, is_told) in [("--test", false), ("-n", false), ("", true)] {
            let done = run(&restore, line, table);
            assert_eq!(
                (done.status, done.stderr.contains(removes)),
                (Some(0), is_told),
                "{line}: {}",
                done.stderr
            );
        }
        assert!(!sh("nft list ruleset").contains("dport"));
    });
}

/// The tool takes lists of days in which one is missing, or is none.
#[test]
fn days_that_no_option_says_are_not_listed_as_any_day() {
    for name in ["iptables-legacy", "iptables-nft"].into_iter().filter(|name| have(&[name])) {
        let Some(space) = Netns::new() else { return };
        let (command, save) = (tool(name), tool(&format!("{name}-save")));
        let theirs = |line: &str| run(Path::new(name), line, "");
        space.run(|| {
            assert_eq!(theirs("-A INPUT -m time ! --monthdays 1,,2 -j ACCEPT").status, Some(0));
            // No day of the month is number 0.
            assert_eq!(run(&command, "-S", "").stdout, theirs("-S").stdout);
            for line in ["-m time --weekdays 8", "-m time ! --weekdays 1,2,3,4,5,6,7"] {
                assert_eq!(theirs(&format!("-A INPUT {line} -j ACCEPT")).status, Some(0), "{line}");
                for list in ["-S", "-L -n", "-S INPUT", "-L INPUT -n", "-S INPUT 2"] {
                    let done = run(&command, list, "");
                    assert_eq!(done.status, Some(3), "{list}: {done:?}");
                    assert!(
                        done.stderr
                            .contains("the match time in revision 0 cannot be expressed as iptables options")
                    );
                    let about = |text: &&str| text.contains("time") || text.contains("TIME");
                    let lines: Vec<_> = done.stdout.lines().filter(about).skip(1).collect();
                    assert!(lines.iter().all(|line| line.starts_with('#')), "{list}: {lines:?}");
                    assert_eq!(lines.len(), usize::from(!list.contains("INPUT")), "{list}: {done:?}");
                }
                let saved = run(&save, "-t filter", "");
                assert_eq!((saved.status, saved.stdout.contains("ACCEPT")), (Some(3), false), "{saved:?}");
                assert_eq!(run(&command, "-D INPUT 2", "").status, Some(0));
            }
            assert_eq!(run(&command, "-S", "").status, Some(0));
        });
    }
}

#[test]
fn bytes_that_are_not_utf8_are_told_as_escapes() {
    let Some(space) = Netns::new() else { return };
    if !have(&["nft"]) {
        return;
    }
    space.run(|| {
        let _ = sh(
            r#"printf 'table ip filter {\nchain INPUT {\ntype filter hook input priority 0\nlog prefix "a\351b"\n}\n}\n' |
               nft -f -"#,
        );
        for line in ["-S", "-L -n", "-F INPUT"] {
            let done = Command::new(tool("iptables-nft")).args(line.split(' ')).output().unwrap();
            assert_eq!(done.status.code(), Some(0), "{done:?}");
            for text in [&done.stdout, &done.stderr] {
                let text = std::str::from_utf8(text).expect("escapes alone");
                assert!(!text.contains(|c| c >= '\u{10ff80}'), "{text}");
            }
            let told = String::from_utf8(done.stderr).unwrap();
            assert!(told.contains(r#"log prefix "a\xe9b""#), "{told}");
        }
    });
}

#[test]
fn a_name_without_a_back_end_is_that_of_the_one_in_use() {
    if !have(&["iptables-nft", "iptables-legacy"]) {
        return;
    }
    let version = |variable: &str| {
        let mut command = Command::new(tool("iptables"));
        let done = command.arg("-V").env("SLUICEGATE_IPTABLES", variable).output().unwrap();
        let text = if done.status.success() { done.stdout } else { done.stderr };
        String::from_utf8(text).unwrap()
    };
    for (before, wanted) in [
        ("true", "nf_tables"),
        ("iptables-legacy -A INPUT -j ACCEPT", "legacy"),
        ("iptables-legacy -A INPUT -j ACCEPT; iptables-nft -A INPUT -j ACCEPT", "nf_tables"),
        ("iptables-legacy -A INPUT; iptables-legacy -A INPUT; ip6tables-nft -A INPUT", "legacy"),
        ("iptables-legacy -A INPUT; ip6tables-nft -t mangle -N KUBE-IPTABLES-HINT", "nf_tables"),
        ("iptables-nft -A INPUT; ip6tables-legacy -t mangle -N KUBE-KUBELET-CANARY", "legacy"),
    ] {
        let Some(space) = Netns::new() else { return };
        space.run(|| {
            let _ = sh(before);
            assert_eq!(version(""), format!("iptables v1.8.9 ({wanted})\n"), "{before}");
            assert_eq!(version("legacy"), "iptables v1.8.9 (legacy)\n");
            assert_eq!(version("nft"), "iptables v1.8.9 (nf_tables)\n");
            assert!(version("both").contains("expected nft or legacy, found both"));
        });
    }
}

/// As firewalld reads it: what stands behind "Valid ICMP Types:", names in parentheses being names as well.
fn types_in_help(tool: &Path, protocol: &str) -> Vec<String> {
    let done = run(tool, &format!("-p {protocol} --help"), "");
    assert_eq!(done.status, Some(0), "{}", done.stderr);
    let types = done.stdout.lines().skip_while(|line| !line.starts_with("Valid ICMP")).skip(1);
    let types = types.take_while(|line| !line.is_empty()).flat_map(str::split_whitespace);
    types.map(|word| word.trim_matches(['(', ')']).to_owned()).collect()
}

#[test]
fn help_has_the_types_of_icmp_that_the_tools_has() {
    for (name, protocol) in [("iptables-nft", "icmp"), ("ip6tables-nft", "ipv6-icmp")] {
        if !have(&[name]) {
            return;
        }
        let ours = types_in_help(&tool(name), protocol);
        assert!(ours.len() > 20, "{ours:?}");
        assert_eq!(ours, types_in_help(Path::new(name), protocol));
    }
}

#[test]
fn an_account_is_one_number_or_refused() {
    let passwd = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("passwd-{}", std::process::id()));
    std::fs::write(&passwd, b"one:x:7:7:Jos\xe9:/:/bin/sh\nmany:x:0-65535:7::/:\nnone:x::7::/:\nshort\n")
        .unwrap();
    testns::netns(|| {
        if !testns::own_mounts() {
            return testns::skip("mounts of its own are not permitted");
        }
        let _ = sh(&format!("mount --bind {} /etc/passwd", passwd.display()));
        let ours = tool("iptables-nft");
        for (name, status) in [("one", 0), ("many", 2), ("none", 2), ("short", 2), ("two", 2)] {
            let rule = format!("-A OUTPUT -m owner --uid-owner {name} -j DROP");
            assert_eq!(run(&ours, &rule, "").status, Some(status), "{name}");
            let input = format!("*filter\n{rule}\nCOMMIT\n");
            assert_eq!(run(&tool("iptables-nft-restore"), "-n", &input).status, Some(status), "{name}");
        }
        let rule = "-A OUTPUT -m owner --uid-owner 7 -j DROP\n";
        assert_eq!(run(&ours, "-S OUTPUT", "").stdout, format!("-P OUTPUT ACCEPT\n{rule}{rule}"));
        // A list has the name, as the tool's.
        let listed = run(&ours, "-L OUTPUT", "").stdout;
        assert!(listed.contains("owner UID match one\n"), "{listed}");
        assert_eq!(listed, run(Path::new("iptables-nft"), "-L OUTPUT", "").stdout);
    });
    std::fs::remove_file(passwd).unwrap();
}
