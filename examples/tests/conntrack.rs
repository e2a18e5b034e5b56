//! The `conntrack` example against the real conntrack: the same command lines to both over the same flows, in one namespace,
//! and the same output, messages and exit status, byte for byte.

mod side_by_side;

use std::path::{Path, PathBuf};

use side_by_side::{Done, example, run_with};
use testns::Netns;

fn ours() -> PathBuf {
    example("conntrack")
}

fn real() -> PathBuf {
    "conntrack".into()
}

fn run(tool: &Path, line: &str) -> Done {
    run_with(tool, line.split_whitespace().map(|word| if word == "''" { "" } else { word }), "")
}

/// Timeouts run, and so does the time that a flow has been there.
fn still(done: Done) -> Done {
    let mut stdout = String::new();
    for line in done.stdout.lines() {
        let mut rest = line.to_owned();
        for (before, after) in [
            (" delta-time=", " "),
            ("<timeout>", "<"),
            ("<deltatime>", "<"),
            ("-A -t ", " "),
            ("-D -t ", " "),
        ] {
            if let Some((head, tail)) = rest.split_once(before) {
                let end = tail.find(after).unwrap_or(tail.len());
                rest = format!("{head}{before}N{}", &tail[end..]);
            }
        }
        // The third word of a line, the fifth of an extended one.
        let place = if rest.starts_with("ipv") { 4 } else { 2 };
        let words: Vec<_> = rest.split(' ').filter(|word| !word.is_empty()).collect();
        if let Some(timeout) = words.get(place).filter(|word| word.bytes().all(|b| b.is_ascii_digit())) {
            rest = rest.replacen(&format!(" {timeout} "), " N ", 1);
        }
        stdout += &rest;
        stdout.push('\n');
    }
    Done { stdout, ..done }
}

/// Flows of every protocol, with translations, marks, zones and states.
const FLOWS: &str = "
    -I -p udp -s 10.0.0.1 -d 10.96.0.10 --sport 1000 --dport 53 -r 10.244.0.5 -q 10.0.0.1 --reply-port-src 53 --reply-port-dst 1000 -t 300 -u ASSURED,SEEN_REPLY
    -I -p udp -s 10.0.0.2 -d 10.96.0.10 --sport 1000 --dport 53 -t 300 -w 5 -m 19
    -I -p udp -s 10.0.0.4 -d 10.96.0.10 --sport 1000 --dport 53 -t 300 --orig-zone 6
    -I -p udp -s 10.0.0.4 -d 10.96.0.10 --sport 1007 --dport 53 -t 300 --reply-zone 8 -m 3
    -I -p tcp -s 10.0.0.1 -d 10.96.0.10 --sport 1000 --dport 80 -t 300 --state ESTABLISHED -g 10.1.1.1:8080
    -I -p tcp -s 10.0.0.3 -d 10.96.0.10 --sport 1001 --dport 80 -t 300 --state SYN_SENT -n 10.5.5.5:99 -u FIXED_TIMEOUT,SEEN_REPLY
    -I -p tcp -s fd00::1 -d fd00::2 --sport 1001 --dport 80 -t 300 --state TIME_WAIT -m 3
    -I -p udp -s fd00::1 -d fd00::2 --sport 1000 --dport 80 -t 300 -m 3 -w 7
    -I -p udp -s ::10.0.0.1 -d ::5 --sport 1000 --dport 80 -t 300
    -I -p icmp -s 10.0.0.1 -d 10.96.0.10 --icmp-type 8 --icmp-code 0 --icmp-id 77 -t 300
    -I -p icmpv6 -s fd00::1 -d fd00::3 --icmpv6-type 128 --icmpv6-code 0 --icmpv6-id 77 -t 300
    -I -p sctp -s 10.0.0.4 -d 10.96.0.10 --sport 1000 --dport 53 -t 300 --orig-vtag 1 --reply-vtag 2 --state COOKIE_WAIT
    -I -p udplite -s 10.0.0.4 -d 10.96.0.10 --sport 1000 --dport 53 -t 300
    -I -p gre -s 10.0.0.4 -d 10.96.0.10 --srckey 10 --dstkey 20 -t 300
    -I -p 89 -s 10.0.0.4 -d 10.96.0.10 -t 300
";

/// Makes flows with the real tool. Kernels differ in the protocols that they track: what one cannot make is not there for
/// either tool.
fn make(lines: &str) {
    let made = lines.trim().lines().filter(|line| run(&real(), line).status == Some(0)).count();
    assert!(made >= 10, "{made} flows could be made");
}

/// Runs `test` in a namespace where counters and times are kept, or skips.
fn prepared(test: impl FnOnce() + Send) {
    if !testns::have(&["conntrack", "sysctl"]) {
        return;
    }
    let version = run(&real(), "-V").stdout;
    if !version.contains(" v1.4.7 ") {
        return testns::skip(&format!("compared with conntrack 1.4.7, and here is {}", version.trim()));
    }
    let Some(namespace) = Netns::new() else { return };
    namespace.run(|| {
        let _ =
            testns::sh("sysctl -qw net.netfilter.nf_conntrack_acct=1 net.netfilter.nf_conntrack_timestamp=1");
        test();
    });
}

/// Both tools do the same with each of these command lines, which change nothing.
fn alike(lines: &str) {
    let mut wrong = Vec::new();
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let theirs = still(run(&real(), line));
        let ours = still(run(&ours(), line));
        if theirs != ours {
            wrong.push(format!(
                "conntrack {line}\n  theirs: {:?} {}{}\n  ours:   {:?} {}{}",
                theirs.status, theirs.stderr, theirs.stdout, ours.status, ours.stderr, ours.stdout
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn lists_are_the_same() {
    prepared(|| {
        make(FLOWS);
        alike(
            "-L
            --dump
            --dum
            -L conntrack
            -L conn
            -L dying
            -L unconfirmed
            -L -o extended
            -L -o extended,id
            -L -o id -o EXT
            -L -o ktimestamp
            -L -o timestamp
            -L -o xml
            -L -o xml,ktimestamp
            -L -o xml -p 99
            -L -o save
            -L -p udp
            -L -pudp
            -L -p UDP
            -L -p 17
            -L -p udp -p tcp
            -L --protonum tcp
            -L --proto=tcp
            -L -p icmp
            -L -p icmpv6
            -L -p ipv6-icmp
            -L -p gre
            -L -p sctp
            -L -p ospf
            -L -p 89
            -L -p 0
            -L -p udp --dport 53
            -L -p udp --sport 1000 --dport 53
            -L -p udp --orig-port-src 1007
            -L -p udp --orig-port-dst 80
            -L -p udp --reply-port-src 53
            -L -p udp --reply-port-dst 1007
            -L -p tcp --state ESTABLISHED
            -L -p tcp --state TIME_WAIT
            -L -p tcp --state CLOSE
            -L -p sctp --state COOKIE_WAIT
            -L -p sctp --dport 53
            -L -p gre --srckey 10
            -L -p icmp --icmp-type 8
            -L -p icmp --icmp-id 77
            -L -p icmp --icmp-id 78
            -L -p icmpv6 --icmpv6-type 128
            -L -s 10.0.0.1
            -L --src 10.0.0.1
            -L --orig-src 10.0.0.1
            -L -s 10.0.0.1 -d 10.96.0.10
            -L -d 10.96.0.10
            -L --dst=10.96.0.10
            -L --orig-dst 10.96.0.10 -p udp
            -L -r 10.244.0.5
            -L --reply-src 10.244.0.5
            -L -q 10.5.5.5
            -L --reply-dst 10.0.0.1
            -L -s 10.0.0.0/30
            -L -s 10.0.0.2/31
            -L -s 10.0.0.2/0
            -L -s fd00::/64
            -L -s fd00::1
            -L -d fd00::2
            -L -s 10.0.0.7 --mask-src 255.255.255.0
            -L -d 10.96.0.77 --mask-dst 255.255.255.0 -p tcp
            -L -f ipv4
            -L -f ipv6
            -L -f ipv6 -p tcp
            -L -m 3
            -L -m 0x3
            -L -m 3/3
            -L -m 0x10/0x10
            -L --mark=19
            -L -m 0
            -L -w 5
            -L --zone 7
            -L -w 0
            -L --orig-zone 6
            -L --orig-zone 0
            -L --reply-zone 8
            -L --reply-zone 5
            -L -u ASSURED
            -L -u assured
            -L -u SEEN_REPLY
            -L -u ASSURED,SEEN_REPLY
            -L -u FIXED_TIMEOUT
            -L -u UNREPLIED
            -L -u EXPECTED
            -L -u OFFLOAD
            -L -u HW_OFFLOAD
            -L -u UNSET
            -L -u SRC_NAT
            -L -n
            -L -g
            -L -j
            -L -n -g
            -L -n 10.5.5.5
            -L -n10.5.5.5
            -L --src-nat 10.5.5.5
            -L --src-nat=10.5.5.5
            -L -n 10.5.5.5:99
            -L -n 10.5.5.5:98
            -L -n 10.5.5.6
            -L -n fd00::1
            -L -g 10.1.1.1
            -L -g 10.1.1.1:8080
            -L -g 10.1.1.1:8081
            -L --dst-nat 10.244.0.5
            -L --any-nat 10.1.1.1
            -L -j 10.5.5.5
            -L --any-nat
            -L -p udp -d 10.96.0.10 --dport 53 -u ASSURED -o extended,id
            -C
            -C conntrack
            --count
            -V
            --version",
        );
    });
}

#[test]
fn what_is_no_command_is_refused_in_the_same_words() {
    prepared(|| {
        make(FLOWS);
        alike(
            "-L --frob
            -L -x
            -L --or
            -L --orig 1.1.1.1
            -L -s
            -L -p
            -L --src
            -L -p foo
            -L -p 256
            -L -p 6x
            -L --dport 5
            -L --state ESTABLISHED
            -L -p udp --state ESTABLISHED
            -L -p tcp --state established
            -L -p tcp --state FOO
            -L -s foo
            -L -s 10.0.0.1 -d fd00::1
            -L -f ipv6 -s 10.0.0.1
            -L -f ipv5
            -L -f arp
            -L -s 10.0.0.0/33
            -L -s fd00::/129
            -L -s 10.0.0.1/255.255.255.252
            -L --mask-src 255.255.255.0
            -L -u CONFIRMED
            -L -u ''
            -L -u ASSURED,
            -L -o foo
            -L -o extended,
            -L -o save -o xml
            -L -o extended,save
            -L -t 3
            -L -i 5
            -L -e NEW
            -L -b 100
            -L --tuple-src 1.1.1.1
            -L -n foo
            -L -n 10.0.0.1:99999
            -L -z -p udp
            -L -z -s 10.0.0.1
            -L foo
            -L -L
            -L -D
            -D -p udp -F
            -s 10.0.0.1
            -p udp
            -D -z
            -F -s 10.0.0.1
            -F -p udp
            -F -o xml
            -F foo
            -C -p udp
            -G
            -G -s 10.0.0.1
            -G -p udp
            -G -p udp -s 10.0.0.1 -d 10.96.0.10
            -G -p udp -s 10.0.0.1 -d 10.96.0.10 --sport 1000
            -G -p udp -s 10.0.0.1 -d 10.96.0.10 --sport 1000 --dport 53 -m 5
            -G -p icmp -s 10.0.0.1 -d 10.96.0.10
            -G -p icmp -s 10.0.0.1 -d 10.96.0.10 --icmp-type 8
            -G -p icmpv6 -s fd00::1 -d fd00::3 --icmpv6-type 128
            -G -p udp -s 10.0.0.9",
        );
    });
}

#[test]
fn one_flow_is_got_the_same_way() {
    prepared(|| {
        make(FLOWS);
        alike(
            "-G -p udp -s 10.0.0.1 -d 10.96.0.10 --sport 1000 --dport 53
            -G -p udp -s 10.0.0.9 -d 10.96.0.10 --sport 1000 --dport 53
            -G -p udp -s 10.0.0.2 -d 10.96.0.10 --sport 1000 --dport 53 -w 5
            -G -f ipv6 -p udp -s ::10.0.0.1 -d ::5 --sport 1000 --dport 80
            -G -p tcp -s fd00::1 -d fd00::2 --sport 1001 --dport 80 -o extended,id
            -G -p icmp -s 10.0.0.1 -d 10.96.0.10 --icmp-type 8 --icmp-code 0 --icmp-id 77
            -G -p gre -s 10.0.0.4 -d 10.96.0.10 --srckey 10 --dstkey 20
            -G -p 89 -s 10.0.0.4 -d 10.96.0.10
            -G -p udp -s 10.0.0.1 -d 10.96.0.10 --sport 1000 --dport 53 -o save",
        );
    });
}

/// Each line deletes from the same flows, made anew for either tool.
#[test]
fn the_same_flows_are_deleted() {
    prepared(|| {
        let lines = "-D -p udp -d 10.96.0.10 --dport 53
            --delete --proto udp --orig-src 1.1.1.1
            -D conntrack -p udp -w 5
            -D -p icmp -o save
            -D -p tcp -o xml
            -D -f ipv6
            -D -f ipv6 -o extended
            -D -m 3
            -D -s 10.0.0.4
            -D -s 10.0.0.0/30 -p tcp
            -D -g
            -D -n 10.5.5.5
            -D --orig-zone 6
            -D --reply-zone 8
            -D -p gre
            -D -p sctp
            -D -i 5
            -D -d fd00::2
            -D -p tcp --state TIME_WAIT
            -D -w 99";
        for line in lines.lines().map(str::trim) {
            let mut done = [real(), ours()].map(|tool| {
                let _ = run(&real(), "-F");
                make(FLOWS);
                let done = still(run(&tool, line));
                let left = still(run(&real(), "-L"));
                // The order is that of a hash that takes in the id, which is another for each.
                let sorted = |done: &Done| {
                    let mut lines: Vec<_> = done.stdout.lines().map(without_id).collect();
                    lines.sort();
                    lines
                };
                (done.status, done.stderr.clone(), sorted(&done), sorted(&left))
            });
            let [theirs, ours] = &mut done;
            assert_eq!(theirs, ours, "conntrack {line}");
        }
    });
}

fn without_id(line: &str) -> String {
    match line.split_once("<id>") {
        Some((head, tail)) => format!("{head}{}", tail.split_once("</id>").map_or(tail, |(_, tail)| tail)),
        None => line.to_owned(),
    }
}

#[test]
fn flush_empties_the_table_and_of_a_family_its_part() {
    prepared(|| {
        for line in ["-F", "--flush", "-F conntrack"] {
            make(FLOWS);
            let ours = run(&ours(), line);
            assert_eq!((ours, run(&real(), "-C").stdout), (run(&real(), line), "0\n".to_owned()), "{line}");
        }
        make(FLOWS);
        // The real tool says the same and empties all of it.
        let done = run(&ours(), "-F -f ipv4");
        assert_eq!(
            (done.status, done.stderr),
            (
                Some(0),
                "conntrack v1.4.7 (conntrack-tools): connection tracking table has been emptied.\n"
                    .to_owned()
            )
        );
        let left = run(&ours(), "-L");
        assert!(
            left.stdout.lines().count() >= 4
                && left
                    .stdout
                    .lines()
                    .all(|line| line.contains("src=fd00::") || line.contains("src=::10.0.0.1")),
            "{}",
            left.stdout
        );
    });
}

/// Where the real tool deletes everything, or takes a word for what it is not.
#[test]
fn nothing_is_deleted_by_accident() {
    prepared(|| {
        make(FLOWS);
        let before = run(&real(), "-C").stdout;
        for line in [
            "-D",
            "delete",
            "-D conntrack",
            "-D -o id",
            "-D -m 0/0",
            "-Ds 10.0.0.1",
            "-D -p udp 10.0.0.1",
            "-D -m foo",
            "-D -w foo",
            "-D -w 65536",
            "-D -p udp --dport dns",
            "-D -p udp --dport 65589",
            "-D -t 300",
            "-D -- -s 10.0.0.1",
        ] {
            let done = run(&ours(), line);
            assert_eq!((done.status, done.stdout.as_str()), (Some(2), ""), "conntrack {line}: {done:?}");
            assert!(done.stderr.ends_with("for more information.\n"), "conntrack {line}: {done:?}");
        }
        assert_eq!(run(&real(), "-C").stdout, before);
    });
}

/// The real tool forgets the status, and deletes all flows.
#[test]
fn a_deletion_heeds_the_status() {
    prepared(|| {
        make(FLOWS);
        let replied = run(&real(), "-L -u SEEN_REPLY").stdout.lines().count();
        assert_eq!(run(&ours(), "-D -u UNREPLIED").status, Some(0));
        let left = run(&real(), "-L").stdout;
        assert!(left.lines().count() == replied && !left.contains("[UNREPLIED]"), "{left}");
        assert_eq!(run(&ours(), "-D -u ASSURED").status, Some(0));
        assert!(!run(&real(), "-L").stdout.contains("[ASSURED]"));
    });
}

#[test]
fn words_do_as_well_as_letters() {
    prepared(|| {
        make(FLOWS);
        let same = |ours_line: &str, real_line: &str| {
            assert_eq!(still(run(&ours(), ours_line)), still(run(&real(), real_line)), "{ours_line}");
        };
        same("list", "-L");
        same("list -p udp -o extended", "-L -p udp -o extended");
        same("count", "-C");
        same(
            "get -p udp -s 10.0.0.1 -d 10.96.0.10 --sport 1000 --dport 53",
            "-G -p udp -s 10.0.0.1 -d 10.96.0.10 --sport 1000 --dport 53",
        );
        assert_eq!(run(&ours(), "delete -p tcp -f ipv4").status, Some(0));
        assert_eq!(run(&ours(), "delete -p tcp -f ipv4").status, Some(1));
        assert_eq!(run(&ours(), "flush").status, Some(0));
        assert_eq!(run(&real(), "-C").stdout, "0\n");
    });
}
