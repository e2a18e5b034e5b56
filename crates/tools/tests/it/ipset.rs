//! The tool `ipset` against the real ipset: the same command lines to both, each in a namespace of its
//! own, and the same listings of the same sets.

use std::path::{Path, PathBuf};

use crate::side_by_side::{Done, run_with};
use testns::Netns;

use crate::tool;

fn ours() -> PathBuf {
    tool("ipset")
}

fn real() -> PathBuf {
    "ipset".into()
}

fn run(tool: &Path, arguments: &[String], input: &str) -> Done {
    run_with(tool, arguments.iter().map(String::as_str), input)
}

/// A command line of a table: words with spaces in single quotes, and the lines of standard input behind
/// `<<`.
fn split(line: &str) -> (Vec<String>, String) {
    let (line, input) = line.split_once("<<").map_or((line, String::new()), |(line, input)| {
        (line, input.trim_start().replace("\\n", "\n").replace("\\r", "\r").replace("\\t", "\t"))
    });
    let mut words = Vec::new();
    for (place, part) in line.split('\'').enumerate() {
        if place % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    (words, input)
}

/// The kernel chooses the seed and with it the order of a hash, and timeouts run: neither is compared.
fn normal(text: &str) -> Vec<String> {
    let mut lines: Vec<_> = text
        .lines()
        .map(|line| line.split(" initval ").next().unwrap_or_default().replace("<initval>", " ").to_owned())
        .collect();
    lines.sort();
    lines
}

/// Runs the command lines with a tool in a new namespace, and what is there afterwards.
fn play(tool: &Path, lines: &[&str]) -> Option<(Vec<Done>, Vec<String>)> {
    let namespace = Netns::new()?;
    Some(namespace.run(|| {
        let done = lines
            .iter()
            .map(|line| {
                let (words, input) = split(line);
                run(tool, &words, &input)
            })
            .collect();
        let left = run(&real(), &["save".to_owned()], "");
        (done, normal(&left.stdout))
    }))
}

/// Both tools do the same with these command lines: status, standard output, and the sets afterwards.
fn alike(lines: &str) {
    if !testns::have(&["ipset"]) {
        return;
    }
    let lines: Vec<_> = lines.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let (Some((theirs, their_sets)), Some((ours, our_sets))) = (play(&real(), &lines), play(&ours(), &lines))
    else {
        return;
    };
    let mut wrong = Vec::new();
    for ((line, theirs), ours) in lines.iter().zip(&theirs).zip(&ours) {
        // The words of messages and of help are each tool's own.
        let free = ["help", "-h", "version", "-v"].iter().any(|word| line.starts_with(word));
        if theirs.status != ours.status || (!free && normal(&theirs.stdout) != normal(&ours.stdout)) {
            wrong.push(format!("ipset {line}\n  theirs: {theirs:?}\n  ours:   {ours:?}"));
        }
        let quiet = line.split_whitespace().any(|word| word == "-q" || word == "-quiet");
        let said = |done: &Done| !done.stderr.is_empty();
        if !quiet && said(theirs) != said(ours) && !line.contains("/nonexistent") {
            wrong.push(format!("ipset {line}\n  theirs: {theirs:?}\n  ours:   {ours:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let differing = their_sets.iter().zip(&our_sets).find(|(theirs, ours)| theirs != ours);
    assert_eq!((differing, their_sets.len()), (None, our_sets.len()));
}

/// Both tools list the same sets alike, byte for byte, in the kernel's order.
fn listed_alike(restore: &str) {
    if !testns::have(&["ipset"]) {
        return;
    }
    let Some(namespace) = Netns::new() else { return };
    namespace.run(|| {
        let made = run(&real(), &["restore".to_owned()], restore);
        assert_eq!(made.status, Some(0), "{made:?}");
        for line in [
            "list",
            "save",
            "list -s",
            "save -s",
            "list -t",
            "list -n",
            "-o xml list",
            "-o save list",
            "save -o plain",
            "list -o xml -s",
            "list -t -o xml",
            "list -n -o xml",
            "save -t",
            "save -n",
            "list -r",
            "l",
            "lis",
            "--list",
            "-L",
            "-S",
            "s",
            "list a",
            "save a",
            "list nosuch",
            "save nosuch",
            "list -n nosuch",
            "list -t a",
            "list -n a",
        ] {
            let (words, _) = split(line);
            let (theirs, ours) = (run(&real(), &words, ""), run(&ours(), &words, ""));
            assert_eq!((&theirs.status, &theirs.stdout), (&ours.status, &ours.stdout), "ipset {line}");
        }
        // What we save, the real tool restores, and the other way round.
        let (theirs, ours_text) =
            (run(&real(), &["save".to_owned()], ""), run(&ours(), &["save".to_owned()], ""));
        for (reader, text) in [(real(), &ours_text.stdout), (ours(), &theirs.stdout)] {
            for line in ["destroy m", "destroy"] {
                let destroyed = run(&ours(), &split(line).0, "");
                assert_eq!(destroyed.status, Some(0), "{destroyed:?}");
            }
            let restored = run(&reader, &["restore".to_owned()], text);
            assert_eq!(restored.status, Some(0), "{restored:?}");
            let again = run(&real(), &["save".to_owned()], "");
            assert_eq!(normal(&again.stdout), normal(&theirs.stdout));
        }
    });
}

#[test]
fn words_of_the_command_line_mean_the_same() {
    alike(
        "
        create h hash:ip
        -N i hash:ip
        n j nethash
        new k iphash
        --create l hash:ip
        c m hash:ip
        -A h 1.1.1.1
        a h 1.1.1.2
        --add h 1.1.1.3
        -T h 1.1.1.1
        t h 1.1.1.9
        -D h 1.1.1.1
        d h 1.1.1.2
        de h 1.1.1.3
        -E h h2
        e h2 h3
        ren h3 h
        -W h i
        w h i
        sw h i
        -F h
        f
        x m
        -X l
        des k
        foo
        -
        create
        create x
        create x nosuch
        add
        add h
        rename h
        swap h
        list h i
        flush h i
        destroy h i
        restore foo
        list -o
        -o foo list
        -f
        list -n -n
        -n
        -v
        version
        -h
        help
        help hash:ip
        help nosuch
        quit
        -q foo
        -q list nosuch
        -q add h foo
        -q test h 1.1.1.1
        -q test h 9.9.9.9
        list -q
        save -f /nonexistent/x
        restore -f /nonexistent
        -exist create h hash:ip
        -! create h hash:ip
        create h hash:ip -exist
        create h hash:ip
        -exist create h hash:ip maxelem 5
        -exist create h hash:net
        add h 3.3.3.3
        add h 3.3.3.3
        add -exist h 3.3.3.3
        add h 3.3.3.3 -!
        del h 3.3.3.4
        -exist del h 3.3.3.4
        --exist del h 3.3.3.4
        destroy nosuch
        -exist destroy nosuch
        flush nosuch
        rename nosuch a
        rename h i
        rename h h
        swap h nosuch
        swap nosuch h
        swap h j
        create 0123456789012345678901234567890 hash:ip
        create 01234567890123456789012345678901 hash:ip
        add 01234567890123456789012345678901 1.1.1.1
        destroy
    ",
    );
}

#[test]
fn options_of_create_mean_the_same() {
    alike(
        "
        create a1 hash:ip hashsize 100 maxelem 7 timeout 0 counters comment skbinfo forceadd bucketsize 4 \
        initval 0x12
        create a2 hash:ip --hashsize 64
        create a3 hash:ip hashsize abc
        create a4 hash:ip hashsize 99999999999
        create a5 hash:ip hashsize
        create a6 hash:ip hashsize 64 hashsize 128
        create a7 hash:ip maxelem 0x10
        create a8 hash:ip maxelem 010
        create a9 hash:ip bucketsize 3
        create a10 hash:ip bucketsize 1000
        create a11 hash:ip hashsize 0
        create a12 hash:ip timeout -1
        create a13 hash:ip timeout 2147483
        create a14 hash:ip timeout 2147484
        create a15 hash:ip nomatch
        create a16 hash:ip foo
        create a17 hash:ip family inet
        create a18 hash:ip family inet6
        create a19 hash:ip family ipv6
        create a20 hash:ip -6
        create a21 hash:ip -4
        create a22 hash:ip family foo
        create a23 hash:ip family any
        create a24 hash:ip family inet family inet6
        create a25 hash:ip -4 -6
        create a26 hash:ip counters counters
        create b1 hash:ip netmask 24
        create b2 hash:ip netmask 33
        create b3 hash:ip netmask 0
        create b4 hash:ip netmask 64 -6
        create b5 hash:ip -6 netmask 129
        create b6 hash:ip bitmask 255.0.255.0
        create b7 hash:ip bitmask ffff::ffff -6
        create b8 hash:ip bitmask 255.0.255.0 netmask 24
        create b9 hash:ip bitmask foo
        create b10 hash:ip bitmask 0.0.0.0
        create b11 hash:ip,port bitmask 255.255.0.0
        create b12 hash:ip,port netmask 16
        create b13 hash:net netmask 16
        create b14 hash:net,iface netmask 5
        create c1 hash:ip probes 5 resize 5
        create c2 hash:ip gc 5
        create c3 hash:net gc 5
        create c4 hash:net probes 5
        create c5 hash:ip,port probes 5 from 1 to 2 network 3
        create c6 hash:net,port probes 5
        create c7 hash:ip,port,ip from 1
        create c8 hash:ip,port,net network 3
        create c9 hash:net,iface probes 4
        create d1 bitmap:ip range 10.0.0.0/24
        create d2 bitmap:ip range 10.0.0.0-10.0.1.7 netmask 30
        create d3 bitmap:ip,mac range 10.0.0.0/24
        create d4 bitmap:port range 0-1024
        create d5 bitmap:ip from 10.0.0.1 to 10.0.0.9
        create d6 ipmap network 10.0.0.0/24
        create d7 portmap from 1 to 9
        create d8 bitmap:port range tcp:1-9
        create d9 bitmap:port range 9-1
        create d10 bitmap:ip range 10.0.0.0/24 family inet
        create d11 bitmap:ip range 10.0.0.0/24 -6
        create d12 bitmap:port range 5
        create d13 bitmap:ip
        create d14 bitmap:ip range 10.0.0.0/8
        create d15 bitmap:ip range 10.0.0.1
        create d16 bitmap:ip range foo
        create d17 bitmap:port range udp:1-9
        create d18 bitmap:port range http-https
        create d19 bitmap:port range 1-99999
        create d20 bitmap:ip range 10.0.0.9-10.0.0.1
        create d21 bitmap:ip,mac range 10.0.0.0/24 timeout 5 counters comment skbinfo
        create d22 bitmap:ip range 10.0.0.0/24 hashsize 5
        create d23 macipmap network 10.0.0.0/24
        create d24 bitmap:ip range 1::/120
        create d25 bitmap:port network 1
        create e1 list:set size 4
        create e2 setlist
        create e3 list:set size 0
        create e4 list:set timeout 10 counters comment skbinfo
        create e5 list:set family inet
        create f1 iptree
        create f2 iptreemap timeout 5
        create f3 ipporthash
        create f4 ipportiphash
        create f5 ipportnethash
        create f6 netporthash
        create f7 netifacehash -6
        create f8 hash:ip,mark
        create f9 hash:mac
        create f10 hash:nosuch
    ",
    );
}

#[test]
fn elements_with_addresses_mean_the_same() {
    alike(
        "
        create n hash:net
        create i hash:ip
        create i6 hash:ip -6
        create n6 hash:net -6
        create b bitmap:ip range 10.0.0.0/24
        create m bitmap:ip,mac range 10.0.0.0/24
        add m 10.0.0.5,1:2:3:4:5:f
        add m 10.0.0.6,001:2:3:4:5:6
        add m 10.0.0.7,1:2:3:4:5:fff
        add m 10.0.0.7,1-2-3-4-5-6
        add m 10.0.0.7,1:2:3:4:5
        add n 10.0.0.0/8
        add n 10.1.1.1
        add n 1.1.1.0-1.1.1.6
        add n 0.0.0.0/0
        add n 1.2.3.4/24
        add n 10.0.0.1,5
        add n 1.1.1.1/24-2
        add n 1.1.1.1-1.1.1.2/24
        add n [10.0.0.1]
        add n [10.0.0.1]-[10.0.0.3]
        add n [10.0.0.1-[10.0.0.3]
        add n 1.2.3
        add n 0x0a.1
        add n 010.1
        add n 1.2.3.4.5
        add n 256.1.1.1
        add n 1.1.1.1/0x10
        add n localhost
        add n ' 1.1.1.1'
        add n 1.1.1.1/-1
        add n 1.1.1.1/a
        add n 7.7.7.0/24 nomatch
        add n 7.7.7.0/24 wildcard
        del n 10.1.1.1 timeout 3
        del n 10.1.1.1 nomatch
        del n 10.1.1.1
        test n 10.0.0.1
        test n 10.0.0.0/8
        test n 7.7.7.1
        test n 7.7.7.1 nomatch
        test n 10.0.0.0-10.0.0.5
        test n 9.9.9.9
        add i 1.1.1.0/24
        add i 2.2.2.1-2.2.2.9
        add i 0.0.0.0
        add i 1.1.1.0/0
        add i 1.1.1.0/33
        add i 1.1.1.0/
        add i -
        add i 1.1.1.1-
        add i 1.1.1.300
        add i ''
        add i foo.invalid
        add i ::1
        add i 3.3.3.3/32
        test i 1.1.1.1
        test i 1.1.1.0/24
        test i 1.1.1.1-1.1.1.4
        test i 8.8.8.8
        add i6 1::/64
        add i6 1::-2::
        add i6 1::/128
        add i6 ::1.2.3.4
        add i6 ::ffff:1.2.3.4
        add i6 ::5:6
        add i6 10.0.0.1
        add i6 FE80::1
        add i6 ::
        test i6 1::
        test i6 2::
        add n6 1::/64
        add n6 1::-2::
        add n6 ::/0
        add n6 2001:db8::1/129
        add n6 2001:db8::/32 nomatch
        test n6 1::5
        add b 10.0.0.1
        add b 10.0.0.4-10.0.0.6
        add b 10.0.0.8/30
        add b 10.0.1.0
        add b 10.0.0.1,AA:BB:CC:DD:EE:FF
        test b 10.0.0.1
        test b 10.0.0.1-10.0.0.3
        test b 10.0.0.0/30
        del b 10.0.0.4-10.0.0.5
        add m 10.0.0.1
        add m 10.0.0.2,aa:bb:cc:dd:ee:0f
        add m 10.0.0.2-10.0.0.4
        add m 10.0.0.3/32
        add m 10.0.0.2,xx
        add m 10.0.0.2,aa:bb:cc:dd:ee
        add m 10.0.0.2,aa-bb-cc-dd-ee-ff
        add m 10.0.0.9,aa:bb:cc:dd:ee:fg
        test m 10.0.0.2,aa:bb:cc:dd:ee:0f
        test m 10.0.0.2,aa:bb:cc:dd:ee:0e
        test m 10.0.0.2
        del m 10.0.0.1
        add nosuch 1.1.1.1
    ",
    );
}

#[test]
fn elements_with_ports_mean_the_same() {
    alike(
        "
        create h hash:ip,port
        create np hash:net,port -6
        create ppi hash:ip,port,ip
        create ppn hash:ip,port,net
        create p bitmap:port range 0-1024
        add h 10.0.0.1
        add h 10.0.0.1,99999
        add h 10.0.0.1,6:80
        add h 10.0.0.1,TCP:81
        add h 10.0.0.1,Tcp:81
        add h 10.0.0.1,http
        add h 10.0.0.1,udp:domain
        add h 10.0.0.1,17:domain
        add h 10.0.0.1,icmp:ping
        add h 10.0.0.1,icmp:pi
        add h 10.0.0.1,icmp:8/0
        add h 10.0.0.1,icmp:200/7
        add h 10.0.0.1,icmp:8
        add h 10.0.0.1,icmp:nosuch
        add h 10.0.0.1,icmpv6:ping
        add h 10.0.0.1,gre:0
        add h 10.0.0.1,gre:1
        add h 10.0.0.1,200:0
        add h 10.0.0.1,300:0
        add h 10.0.0.1,vrrp:0
        add h 10.0.0.1,0:0
        add h 10.0.0.1,0
        add h 10.0.0.0/30,80
        add h 10.0.0.8-10.0.0.10,80-82
        add h 10.0.0.10-10.0.0.8,90
        add h 10.0.1.1,0x50
        add h 10.0.1.1,010
        add h 10.0.1.1,[90]-92
        add h 192.168,7
        add h ::1,80
        add h 10.0.0.1,80,5
        add h 10.0.0.1,80 nomatch
        test h 10.0.0.0/30,80
        test h 10.0.0.1,80
        test h 10.0.0.1,80-82
        test h 10.0.0.99,80
        test h 10.0.0.1/32,80
        del h 10.0.0.8-10.0.0.9,81
        add np 1::/64,icmpv6:ping
        add np 1::/64,ipv6-icmp:135/0
        add np 1::/64,icmpv6:1/9
        add np 1::/64,udplite:5
        add np 1::/64,sctp:5-7
        add np 1::/64,tcp:7-5
        add np 1::/64,5-
        add np 1::/64,-5
        add np 1::/64,:5
        add np 1::/64,tcp:
        add np 1::/64,icmpv6:256/0
        add np 1::/64,ICMPv6:neighbour-solicitation
        add np 1::/64,tcp:http-86
        add np 1::/64,tcp:[http]-[86]
        add np 1::/64,[http-alt]
        add np 1::/64,http-alt
        add np 1::/64,udp:http
        add np 1::/64,80 nomatch
        test np 1::5,udplite:5
        add ppi 1.2.3.4,80,5.6.7.8
        add ppi 1.2.3.0/30,80-81,5.6.7.8
        add ppi 1.2.3.4,80,5.6.7.0/24
        add ppi 1.2.3.4,80
        add ppi 1.2.3.4,80,1.1.1.1,1
        test ppi 1.2.3.4,80,5.6.7.8
        add ppn 1.2.3.4,udp:80,5.6.7.0/24
        add ppn 1.2.3.4,udp:80,5.6.8.0-5.6.8.10
        add ppn 1.2.3.4,udp:81,5.6.7.0/24 nomatch
        test ppn 1.2.3.4,udp:80,5.6.7.9
        add p 80
        add p udp:53
        add p 1025
        add p 5-7
        add p http-90
        add p sctp:5
        add p foo
        test p 80
        test p tcp:80
        test p 80-90
        del p 5-6
    ",
    );
}

/// Where the kernel does not have a type, both must say so alike.
#[test]
fn types_that_a_kernel_may_lack_mean_the_same() {
    alike(
        "
        create m hash:mac
        create im hash:ip,mac
        create im6 hash:ip,mac -6
        create nn hash:net,net
        create ik hash:ip,mark
        create ikm hash:ip,mark markmask 0xff
        create npn hash:net,port,net
        create npn6 hash:net,port,net -6
        create x2 hash:ip,mark markmask 0
        create x3 hash:net,net netmask 24
        create x4 hash:ip bitmask 255.255.0.0
        create x5 hash:ip,port netmask 24
        create x6 hash:net,net bitmask 255.255.0.0
        create x7 netnethash
        create x8 ipmarkhash markmask 0x1 markmask 2
        create x9 netportnethash
        create x10 ipmachash
        add m 01:02:03:04:05:06
        add m 00:00:00:00:00:00
        add m 01:02:03:04:05
        add m 1.1.1.1
        test m 01:02:03:04:05:06
        test m 01:02:03:04:05:07
        add im 1.1.1.1,01:02:03:04:05:06
        add im 1.1.1.0/30,01:02:03:04:05:06
        add im 1.1.1.1-1.1.1.3,01:02:03:04:05:06
        add im 1.1.1.1/32,01:02:03:04:05:06
        add im 1.1.1.1
        test im 1.1.1.1,01:02:03:04:05:06
        test im 1.1.1.1/32,01:02:03:04:05:06
        add im6 1::1,01:02:03:04:05:06
        add nn 10.0.0.0/8,11.0.0.0/8
        add nn 10.0.0.0/0,11.0.0.0/8
        add nn 10.0.0.1,11.0.0.0-11.0.0.6
        add nn 10.0.0.0-10.0.0.2,11.0.0.0-11.0.0.6 nomatch
        add nn 10.0.0.1
        test nn 10.5.5.5,11.0.0.3
        test nn 10.5.5.5-10.5.5.8,11.0.0.3
        add ik 1.1.1.1,0x63
        add ik 1.1.1.0/30,555
        add ik 1.1.1.1,4294967296
        add ik 1.1.1.1,foo
        add ikm 1.1.1.1,0x1263
        test ik 1.1.1.1,99
        test ik 1.1.1.0/30,99
        add npn 10.0.0.0/8,tcp:80,11.0.0.0/8
        add npn 0.0.0.0/0,tcp:80,0.0.0.0/0
        add npn 10.0.0.0-10.0.0.5,80-81,11.0.0.0-11.0.0.2
        test npn 10.0.0.1,80,11.0.0.1
        test npn 10.0.0.1,80-81,11.0.0.1
        add npn6 1::/64,80,2::/64
        add npn6 1::/64,80,2::-3::
    ",
    );
}

#[test]
fn options_of_entries_mean_the_same() {
    alike("
        create t hash:ip timeout 1000 counters comment skbinfo
        create u hash:ip
        create f hash:net,iface
        add u 1.1.1.1 timeout 3
        add u 1.1.1.1 packets 3
        add u 1.1.1.1 comment x
        add u 1.1.1.1 skbmark 0x1
        add u 1.1.1.1 foo
        add u 1.1.1.1 timeout
        add u 1.1.1.1 timeout 1 timeout 2
        add t 1.1.1.1 timeout 2147484
        add t 1.1.1.1 timeout 0
        add t 1.1.1.2 timeout 0 packets 1 bytes 2 comment 'hi there' skbmark 0x10/0xff skbprio 1:10 skbqueue 5
        add t 1.1.1.3 skbmark foo
        add t 1.1.1.3 skbprio foo
        add t 1.1.1.3 skbqueue 70000
        add t 1.1.1.6 packets 18446744073709551615
        add t 1.1.1.6 packets 18446744073709551614 timeout 0
        add t 1.1.1.6 packets -1
        add t 1.1.1.7 comment 'a\"b'
        add t 1.1.1.8 comment '' timeout 0
        add t 1.1.1.9 --timeout 0 --comment x
        add t 1.1.1.10 packets 1 packets 2
        add -exist t 1.1.1.2 timeout 0 comment other
        add t 1.1.1.12 timeout 0 comment \
        123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345
        add t 1.1.1.13 timeout 0 comment \
        1234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456
        add f 1.2.3.0/24,eth0
        add f 1.2.3.0/24,physdev:eth1 nomatch
        add f 1.2.4.0/24,eth wildcard
        add f 1.2.4.0/24,0123456789abcdef
        add f 1.2.4.0/24,0123456789abcde
        add f '1.3.4.0/24,a b'
        add f '1.3.4.0/24,physdev:a b'
        add f '1.3.4.0/24, a'
        add f 1.3.4.0/24,a/b
        test f '1.3.4.0/24,a b'
        add f 1.2.4.0/24
        add f 1.2.5.0-1.2.5.9,eth0
        test f 1.2.3.5,eth0
        test f 1.2.3.5,physdev:eth1
        test f 1.2.3.5,physdev:eth1 nomatch
        test f 1.2.4.5,eth3 wildcard
        del f 1.2.3.0/24,eth0
    ");
}

#[test]
fn lists_of_sets_mean_the_same() {
    alike(
        "
        create a hash:ip
        create b hash:ip
        create c hash:ip
        create d hash:ip
        create e hash:ip
        create l list:set
        create t list:set timeout 100 comment
        add l a
        add l b before a
        add l c after a
        add l d before nosuch
        add l nosuch
        add l l
        add l b
        add l d before e
        test l a
        test l b before a
        test l a before b
        test l c after a
        test l d
        del l c after b
        add l d,before,a
        add l d,foo,a
        add l d,before
        add l e after a before a
        add l e foo
        add t a timeout 0 comment 'the first'
        add t b timeout 0
        destroy a
        destroy
        rename a z
        swap a e
        del l a
        flush l
        destroy l
        destroy t
        destroy a
    ",
    );
}

#[test]
fn restore_files_mean_the_same() {
    for file in [
        "restore << create a hash:ip\\nadd a 1.1.1.1\\nadd a 1.1.1.2\\nadd a bad\\nadd a 1.1.1.3\\n",
        "restore << create a hash:ip\\nadd a 1.1.1.1\\nadd a 1.1.1.2\\nfoo\\n",
        "restore << create a hash:ip\\nadd a 1.1.1.1\\nadd a 1.1.1.1\\nadd a 1.1.1.3\\n",
        "restore << create a hash:ip\\nadd -exist a 1.1.1.1\\nadd a 1.1.1.1\\nadd a 1.1.1.3\\n",
        "-R -exist << create a hash:ip\\nadd a 1.1.1.1\\nadd a 1.1.1.1\\nadd a 1.1.1.3\\n",
        "-! restore << create a hash:ip\\ncreate a hash:ip\\ndel a 1.1.1.1\\n",
        "restore << # c\\n\\n  create a hash:ip\\r\\nCOMMIT\\nadd a 1.1.1.1",
        "restore << create a hash:ip comment\\nadd a 1.1.1.1 comment \"x y\\n",
        "restore << create a hash:ip comment\\nadd a 1.1.1.1 comment \"x y\"\\nadd a 1.1.1.2 comment x\"y \
         z\"w\\n",
        "restore << create a hash:ip\\nadd b 1.1.1.1\\n",
        "restore << restore\\n",
        "restore << version\\n",
        "restore << help\\n",
        "restore << create a hash:ip\\nquit\\nadd a 1.1.1.2\\n",
        "restore << create a hash:ip\\nquit now\\nadd a 1.1.1.2\\n",
        "restore << create a hash:ip\\nq\\nno command\\n",
        "restore << create a hash:ip\\n-q quit\\nadd a 1.1.1.2\\n",
        "restore << create a hash:ip\\nexit\\n",
        "restore << create a hash:net,iface\\nadd a 10.0.0.0/8,\"a b\"\\nadd a \"10.1.0.0/16,c d\"\\n",
        "restore << create a hash:net,iface\\nadd a 10.0.0.0/8,a b\\n",
        "restore << create a hash:ip\\nadd a 1.1.1.1\\ncreate a hash:net\\n",
        "restore << create a hash:ip\\ndel a 1.1.1.1\\n",
        "restore << create a hash:ip\\ndestroy a\\nadd a 1.1.1.1\\n",
        "restore << create a hash:ip\\nrename a b\\nadd b 1.1.1.1\\nswap b c\\n",
        "restore << create a hash:ip\\ncreate b hash:ip\\nadd a 1.1.1.1\\nadd b 2.2.2.2\\nadd a 1.1.1.1\\n",
        "restore << create a bitmap:port range 1-10\\nadd a 5\\nadd a 11\\n",
        "restore << create a hash:ip\\nadd a 1.1.1.1\\nflush a\\nadd a 1.1.1.2\\nflush\\nadd a 1.1.1.3\\n",
        "restore << create a hash:ip\\nadd a 1.1.1.1\\nadd a 1.1.1.2\\ndel a 1.1.1.1\\n",
        "restore << create a hash:ip maxelem 2\\nadd a 1.1.1.1\\nadd a 1.1.1.2\\nadd a 1.1.1.3\\nadd a \
         1.1.1.4\\n",
        "restore << -N a iphash\\n-A a 1.1.1.1\\n-A a 1.1.1.2\\n-D a 1.1.1.1\\nCOMMIT\\n",
        "restore << \\tadd\\ta\\t1.1.1.1\\n",
        "restore << create a hash:ip\\n add a 1.1.1.1 foo\\n",
        "restore << create a hash:ip hashsize\\n",
        "restore << create a hash:nosuch\\n",
        "restore <<",
        "restore << create a hash:net,iface\\nadd a 10.0.0.0/8,eth0\\nadd a 10.0.0.0/8,eth0 nomatch\\n",
        "restore << create a list:set\\ncreate b hash:ip\\nadd a b\\nadd a c\\n",
    ] {
        alike(file);
    }
}

#[test]
fn a_large_restore_stops_where_the_real_one_does() {
    // So large that it need not grow: where buckets overflow, and with it the size, depends on the seed.
    let mut file = String::from("restore << create a hash:ip hashsize 8192\\n");
    for n in 0..4000 {
        // The 3001st is there already. (Not a full set: when a hash is full depends on its seed.)
        let n = if n == 3000 { 17 } else { n };
        file.push_str(&format!("add a 10.0.{}.{}\\n", n / 250, n % 250 + 1));
    }
    alike(&file);
}

#[test]
fn listings_are_the_same_bytes() {
    listed_alike(
        "create a hash:ip timeout 0 counters comment skbinfo
create b hash:ip,port family inet6 counters
create c hash:net
create d hash:net,iface
create e bitmap:ip range 10.0.0.0/16 netmask 24
create f bitmap:ip,mac range 10.0.0.0/24 comment
create g bitmap:port range 0-1024
create h hash:ip,port,ip
create i hash:ip,port,net
create j hash:net,port
create k hash:ip bitmask 255.255.0.255
create l hash:ip netmask 64 family inet6
create m list:set size 16 counters
create n hash:ip
create o hash:net family inet6
add a 10.0.0.1 comment \"one  two\" skbmark 0x1/0xff skbprio 1:2 skbqueue 3
add a 10.0.0.2 packets 5 bytes 500
add a 10.0.0.3 skbmark 0xffffffff
add a 9.0.0.3
add a 100.0.0.3
add b ::1,80
add b ::1.2.3.4,udp:53-60
add b 2001:db8::1,icmpv6:echo-request
add b 2001:db8::1,icmpv6:99/1
add b 2001:db8::1,gre:0
add b 2001:db8:0:1::,sctp:7
add c 10.0.0.0/8
add c 10.0.0.0/16
add c 10.0.0.0/24 nomatch
add c 10.0.0.1
add c 192.168.0.0-192.168.3.77
add d 10.0.0.0/8,eth0
add d 10.0.0.0/8,physdev:eth1
add d 10.0.0.0/8,br wildcard
add d 0.0.0.0/0,eth0 nomatch
add e 10.0.5.7
add e 10.0.7.0/24
add f 10.0.0.1
add f 10.0.0.2,01:02:03:04:05:06 comment x
add g 1-20
add h 10.0.0.0/28,tcp:80-82,10.1.0.1
add i 10.0.0.0/30,80,10.0.0.0/8
add i 10.0.0.0/30,80,10.0.0.1
add j 10.0.0.0/8,icmp:ping
add j 10.0.0.0/9,icmp:100/3
add j 10.0.0.0/9,tcp:1-9
add k 10.9.8.7
add l 1:2:3:4:5::
add m a
add m b packets 3 bytes 4
add n 127.0.0.1
add o fe80::/10
add o fe80::/64
add o ::/1
add o fe80::1
",
    );
}

#[test]
fn without_arguments_a_command_line_is_read_from_standard_input() {
    let Some(namespace) = Netns::new() else { return };
    namespace.run(|| {
        assert_eq!(run(&ours(), &[], "create a hash:ip comment\n").status, Some(0));
        assert_eq!(run(&ours(), &[], "add a 1.1.1.1 comment \"two words\"\nadd a 1.1.1.2\n").status, Some(0));
        let listed = run(&ours(), &[], "save a");
        assert!(listed.stdout.ends_with("\nadd a 1.1.1.1 comment \"two words\"\n"), "{listed:?}");
        assert_eq!(run(&ours(), &[], "").status, Some(2));
        assert_eq!(run(&ours(), &[], "add a 1.1.1.3 comment \"open").status, Some(2));
    });
}

#[test]
fn bytes_that_are_not_utf8_are_listed_and_restored_as_they_are() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    use std::process::Command;

    let Some(namespace) = Netns::new() else { return };
    namespace.run(|| {
        let run = |tool: &Path, arguments: &[&[u8]]| {
            let arguments = arguments.iter().map(|argument| OsStr::from_bytes(argument));
            let output = Command::new(tool).args(arguments).output().expect("the program runs");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            output.stdout
        };
        run(&ours(), &[b"create", b"caf\xe9", b"hash:ip", b"comment"]);
        run(&ours(), &[b"add", b"caf\xe9", b"192.0.2.1", b"comment", b"na\xefve \xc3\xa9"]);
        let saved = run(&real(), &[b"save"]);
        let has = |part: &[u8]| saved.windows(part.len()).any(|found| found == part);
        assert!(has(b"add caf\xe9 192.0.2.1 comment \"na\xefve \xc3\xa9\""), "{}", saved.escape_ascii());
        assert_eq!(run(&ours(), &[b"save"]).escape_ascii().to_string(), saved.escape_ascii().to_string());
        assert_eq!(run(&ours(), &[b"list"]), run(&real(), &[b"list"]));
        run(&real(), &[b"destroy"]);
        let file = std::env::temp_dir().join(format!("sluicegate-ipset-{}", std::process::id()));
        std::fs::write(&file, &saved).expect("a file");
        run(&ours(), &[b"restore", b"-file", file.as_os_str().as_bytes()]);
        std::fs::remove_file(&file).expect("it was written");
        assert_eq!(run(&real(), &[b"save"]), saved);
    });
}

/// What the real ipset does not do well: it forgets what it has read before `quit`, stores another value than
/// the one that overflows, and cannot read back an interface with a space.
#[test]
fn nothing_is_forgotten_and_nothing_becomes_another_value() {
    if !testns::have(&["ipset"]) {
        return;
    }
    let (ours, real) = (ours(), real());
    let [Some(there), Some(back)] = [Netns::new(), Netns::new()] else { return };
    let saved = there.run(|| {
        let restore = |tool: &Path, text: &str| run(tool, &["restore".to_owned()], text);
        let entries =
            |set: &str| run(&real, &["save".to_owned(), set.to_owned()], "").stdout.lines().count() - 1;
        let text = "create S hash:ip\nadd S 1.1.1.1\nadd S 1.1.1.2\nquit\nadd S 1.1.1.3\n";
        assert_eq!(restore(&real, &text.replace('S', "theirs")).status, Some(0));
        assert_eq!(restore(&ours, &text.replace('S', "ours")).status, Some(0));
        assert_eq!((entries("theirs"), entries("ours")), (0, 2));

        assert_eq!(restore(&real, "create s hash:ip skbinfo\n").status, Some(0));
        for option in
            ["skbprio 1:10000", "skbprio 10000:1", "skbmark 0x1ffffffff", "skbprio 1:2:3", "skbprio -1:1"]
        {
            let words: Vec<_> = format!("add s 1.1.1.1 {option}").split(' ').map(str::to_owned).collect();
            let refused = run(&ours, &words, "");
            assert_eq!((refused.status, entries("s")), (Some(1), 0), "{option}: {refused:?}");
            assert_eq!(run(&real, &words, "").status, Some(0), "{option}");
            let saved = run(&real, &["save".to_owned(), "s".to_owned()], "").stdout;
            assert!(!saved.contains(option), "{saved}");
            let _ = run(&real, &["flush".to_owned()], "");
        }

        let text = "create n hash:net,iface\nadd n 10.0.0.0/8,\"a b\"\n";
        assert_eq!(restore(&real, text).status, Some(0));
        let theirs = run(&real, &["save".to_owned(), "n".to_owned()], "").stdout;
        assert_ne!(restore(&real, &theirs.replace(" n ", " m ")).status, Some(0), "{theirs}");
        run(&ours, &["save".to_owned(), "n".to_owned()], "").stdout
    });
    back.run(|| {
        assert_eq!(run(&real, &["restore".to_owned()], &saved).status, Some(0), "{saved}");
        assert!(run(&real, &["save".to_owned()], "").stdout.contains("add n 10.0.0.0/8,a b\n"));
    });
}
