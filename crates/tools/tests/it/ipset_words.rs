//! What ipset says of errors: programs read it.

use std::path::Path;

use testns::{Netns, have};

use crate::side_by_side::run_with;
use crate::tool;

/// What is there before each command, as a restore file.
const START: &str = "\
create a hash:ip
add a 192.0.2.1
add a 192.0.2.2
create b hash:net,port timeout 60
create full hash:ip maxelem 1
add full 192.0.2.1
create l list:set
add l a
create bm bitmap:port range 1-100
create six hash:ip family inet6
create cnt hash:ip counters comment
";

/// Commands, with their standard input.
const COMMANDS: &[(&str, &str)] = &[
    ("add nope 192.0.2.1", ""),
    ("del nope 192.0.2.1", ""),
    ("test nope 192.0.2.1", ""),
    ("destroy nope", ""),
    ("list nope", ""),
    ("save nope", ""),
    ("flush nope", ""),
    ("rename nope x", ""),
    ("rename a b", ""),
    ("swap a nope", ""),
    ("swap a six", ""),
    ("swap a b", ""),
    ("swap nope a", ""),
    ("create a hash:ip", ""),
    ("create a hash:net", ""),
    ("-exist create a hash:ip", ""),
    ("-exist create a hash:net", ""),
    ("create x hash:nosuch", ""),
    ("create x nosuch", ""),
    ("create x", ""),
    ("create", ""),
    ("create x hash:ip nosuch 5", ""),
    ("create x hash:ip timeout", ""),
    ("create x hash:ip timeout abc", ""),
    ("create x hash:ip timeout -1", ""),
    ("create x hash:ip timeout 99999999999", ""),
    ("create x hash:ip hashsize abc", ""),
    ("create x hash:ip maxelem abc", ""),
    ("create x hash:ip family nosuch", ""),
    ("create x hash:ip family", ""),
    ("create abcdefghijklmnopqrstuvwxyzabcdefghij hash:ip", ""),
    ("create x bitmap:ip", ""),
    ("create x bitmap:port range 1", ""),
    ("create x bitmap:ip range 192.0.2.0/8", ""),
    ("create x bitmap:port range 5-1", ""),
    ("create x hash:ip counters counters", ""),
    ("create x hash:ip timeout 5 timeout 6", ""),
    ("create x list:set size 0", ""),
    ("create x hash:ip bucketsize 1", ""),
    ("add a 192.0.2.1", ""),
    ("-exist add a 192.0.2.1", ""),
    ("-! add a 192.0.2.1", ""),
    ("add a nosuch.invalid", ""),
    ("add a 192.0.2.1.5", ""),
    ("add a 192.0.2.1,80", ""),
    ("add a 2001:db8::1", ""),
    ("add a 192.0.2.300", ""),
    ("add a", ""),
    ("add", ""),
    ("add a 192.0.2.9 timeout 5", ""),
    ("add a 192.0.2.9 comment x", ""),
    ("add a 192.0.2.9 nosuch x", ""),
    ("add b 192.0.2.0/24", ""),
    ("add b 192.0.2.0/24,80", ""),
    ("add b 192.0.2.0/24,nosuch", ""),
    ("add b 192.0.2.0/24,tcp:80", ""),
    ("add b 192.0.2.0/24,nosuch:80", ""),
    ("add b 192.0.2.0/33,80", ""),
    ("add b 0.0.0.0/0,80", ""),
    ("add full 192.0.2.2", ""),
    ("-exist add full 192.0.2.2", ""),
    ("add l nope", ""),
    ("add l six", ""),
    ("add l six before nope", ""),
    ("add l six before a", ""),
    ("add l l", ""),
    ("add bm 500", ""),
    ("add bm abc", ""),
    ("add bm 5", ""),
    ("add six 192.0.2.1", ""),
    ("add six 2001:db8::1", ""),
    ("del a 192.0.2.9", ""),
    ("-exist del a 192.0.2.9", ""),
    ("del a", ""),
    ("del l six", ""),
    ("test a 192.0.2.9", ""),
    ("test a 192.0.2.1", ""),
    ("-q test a 192.0.2.9", ""),
    ("-q add nope 192.0.2.1", ""),
    ("test l a", ""),
    ("test l six", ""),
    ("test l nope", ""),
    ("test bm 7", ""),
    ("destroy a", ""),
    ("destroy b", ""),
    ("flush a", ""),
    ("list -nosuch", ""),
    ("-nosuch list", ""),
    ("nosuch", ""),
    ("nosuch a", ""),
    ("list -o nosuch", ""),
    ("list -o", ""),
    ("add cnt 192.0.2.1 packets 5 bytes 6 comment hi there", ""),
    ("add cnt 192.0.2.1 packets abc", ""),
    ("add cnt 192.0.2.1 comment", ""),
    ("restore", "create y hash:ip\nadd y 192.0.2.1\n"),
    ("restore", "create y hash:ip\nadd y 192.0.2.1\nadd y 192.0.2.1\n"),
    ("restore", "create y hash:ip\nadd y 192.0.2.1\nadd nope 192.0.2.1\n"),
    ("restore", "add nope 192.0.2.1\n"),
    ("restore", "create a hash:ip\n"),
    ("restore", "create y hash:nosuch\n"),
    ("restore", "create y hash:ip\nadd y nosuch.invalid\n"),
    ("restore", "create y hash:ip\nadd y\n"),
    ("restore", "create y hash:ip\nnosuch y\n"),
    ("restore", "create y hash:ip\ndestroy nope\n"),
    ("restore", "create y hash:ip\ndel y 192.0.2.1\n"),
    ("restore", "create y hash:ip\nlist nope\n"),
    ("restore", "swap a nope\n"),
    ("restore", "rename a b\n"),
    ("restore", "flush nope\n"),
    ("restore", "\n\n# c\nadd full 192.0.2.9\n"),
    ("restore", "add full 192.0.2.1\n"),
    ("restore", "add l nope\n"),
    ("restore", "add bm 500\n"),
    ("restore", "create y hash:ip timeout abc\n"),
    ("restore", "create y hash:ip foo bar\n"),
    ("restore", "test a 192.0.2.9\n"),
    ("restore", "quit\n"),
    ("-exist restore", "create a hash:ip\nadd a 192.0.2.1\ndel a 192.0.2.77\n"),
    ("-! restore", "create a hash:net\n"),
    ("-! restore", "destroy nope\n"),
    ("restore", "create y hash:ip\nCOMMIT\n"),
    ("restore", "restore\n"),
    ("-N old iphash", ""),
    ("-N old iphash --hashsize 64 --probes 5 --resize 30", ""),
    ("-N old ipmap --from 192.0.2.0 --to 192.0.2.255", ""),
    ("-N old ipmap --network 192.0.2.0/24", ""),
    ("-N old ipmap --network 192.0.2.0/24 --netmask 28", ""),
    ("-N old macipmap --network 192.0.2.0/24 --matchunset", ""),
    ("-N old portmap --from 1 --to 100", ""),
    ("-N old nethash --hashsize 64", ""),
    ("-N old ipporthash --from 192.0.2.0 --to 192.0.2.255", ""),
    ("-N old ipporthash --network 192.0.2.0/24", ""),
    ("-N old ipportiphash --from 192.0.2.0 --to 192.0.2.255", ""),
    ("-N old ipportnethash --network 192.0.2.0/24", ""),
    ("-N old ipmarkhash", ""),
    ("-N old iptree --timeout 5", ""),
    ("-N old iptreemap --gc 10", ""),
    ("-N old setlist --size 4", ""),
    ("-N old iphash --gc 300", ""),
    ("-N old iphash --timeout 5", ""),
    ("-N old ipmarkhash --hashsize 64", ""),
    ("-N old hash:ip --hashsize 64", ""),
    ("-N old netporthash", ""),
    ("-N old netportnethash", ""),
    ("-A a 192.0.2.7", ""),
    ("-D a 192.0.2.1", ""),
    ("-T a 192.0.2.1", ""),
    ("-X a", ""),
    ("-F a", ""),
    ("-E a zz", ""),
    ("-W a cnt", ""),
    ("-N", ""),
    ("add a -exist 192.0.2.1", ""),
    ("add a 192.0.2.1 -exist", ""),
    ("create z hash:ip comment skbinfo forceadd", ""),
    ("create z hash:ip,mark markmask 0", ""),
    ("create z hash:ip,mark markmask zz", ""),
    ("create z hash:net,iface", ""),
    ("add a 192.0.2.0/31", ""),
    ("add a 192.0.2.10-192.0.2.12", ""),
    ("add a 192.0.2.12-192.0.2.10", ""),
    ("add a 192.0.2.0/0", ""),
    ("add a 10.0.0.0/8", ""),
    ("del a 10.0.0.0/8", ""),
];

#[test]
fn errors_are_those_of_ipset() {
    if !have(&["ipset"]) {
        return;
    }
    let version = run_with(Path::new("ipset"), ["version"], "").stdout;
    if !version.starts_with("ipset v7.17,") {
        return testns::skip(&format!("ipset 7.17 is compared with, found {version}"));
    }
    let [Some(first), Some(second)] = [Netns::new(), Netns::new()] else { return };
    let real = Path::new("ipset");
    let mut different = Vec::new();
    for (line, input) in COMMANDS {
        let [theirs, ours] = [(&first, real), (&second, &*tool("ipset"))].map(|(namespace, tool)| {
            namespace.run(|| {
                // A list holds on to its sets until it is empty.
                assert_eq!(run_with(real, ["flush"], "").status, Some(0));
                assert_eq!(run_with(real, ["destroy"], "").status, Some(0));
                assert_eq!(run_with(real, ["restore"], START).stderr, "");
                run_with(tool, line.split(' '), input)
            })
        });
        if theirs != ours {
            different.push(format!("{line}\n{theirs:?}\n{ours:?}"));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}
