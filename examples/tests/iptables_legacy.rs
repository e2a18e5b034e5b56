//! The `iptables-legacy` example against the real one: the same command lines to both, each in a namespace of
//! its own, with the same status and the same rules afterwards.

mod side_by_side;

use std::path::{Path, PathBuf};

use side_by_side::{Done, example, run_with};
use testns::{Netns, have};

/// Command lines; those of save and restore are of the example alone, the real tools have other names.
const LINES: [&str; 34] = [
    "-N WEB",
    "-N WEB",
    "-A WEB -p tcp --dport http -j ACCEPT",
    "-A WEB -m comment --comment two_words -j RETURN",
    "-I WEB -s 10.0.0.0/8,192.168.0.1 -j DROP",
    "-I INPUT 1 -i eth+ -j WEB",
    "-C WEB -p tcp --dport 80 -j ACCEPT",
    "-C WEB -p tcp --dport 81 -j ACCEPT",
    "-C NONE -j ACCEPT",
    "-R WEB 2 -p udp -j NFLOG --nflog-group 3",
    "-R WEB 9 -j DROP",
    "-D WEB 1",
    "-D WEB -m comment --comment two_words -j RETURN",
    "-D WEB -m comment --comment two_words -j RETURN",
    "-P FORWARD DROP",
    "-P WEB DROP",
    "-P INPUT RETURN",
    "-X WEB",
    "-E WEB SITE",
    "-S SITE",
    "-S NONE",
    "-S",
    "-Z SITE",
    "-t nat -A POSTROUTING -o eth0 -j MASQUERADE --random-fully",
    "-t nat -A PREROUTING -p tcp --dport 80 -j DNAT --to-destination 10.0.0.2:8080",
    "-t nat -S",
    "-t nat -F",
    "-t nat -S PREROUTING",
    "-t nonsense -S",
    "-A INPUT -j NONE",
    "-A INPUT -p tcp --dport 70000",
    "-F",
    "-X",
    "-S",
];

fn run(tool: &Path, line: &str) -> Done {
    // All network namespaces share the lock.
    run_with(tool, ["-w", "20"].into_iter().chain(line.split_whitespace()), "")
}

#[test]
fn command_lines_do_what_they_do_with_the_tool() {
    if !have(&["iptables-legacy"]) {
        return;
    }
    let (Some(ours), Some(theirs)) = (Netns::new(), Netns::new()) else { return };
    let (example, real) = (example("iptables-legacy"), PathBuf::from("iptables-legacy"));
    for line in LINES {
        let (done, wanted) = (ours.run(|| run(&example, line)), theirs.run(|| run(&real, line)));
        let failed = |done: &Done| done.status != Some(0);
        assert_eq!(failed(&done), failed(&wanted), "{line}: {done:?} {wanted:?}");
        assert_eq!(done.stdout, wanted.stdout, "{line}");
        assert_eq!(done.stderr.is_empty(), !failed(&done) || line.starts_with("-C WEB"), "{line}: {done:?}");
    }
}

#[test]
fn what_it_saves_it_restores() {
    let Some(namespace) = Netns::new() else { return };
    let example = example("iptables-legacy");
    let rules = "*nat\n:PREROUTING ACCEPT [0:0]\n:INPUT ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n\
                 [3:4] -A POSTROUTING -j MASQUERADE\nCOMMIT\n";
    namespace.run(|| {
        let arguments = |line: &'static str| ["-w", "20"].into_iter().chain(line.split_whitespace());
        let done = run_with(&example, arguments("restore -c"), rules);
        assert_eq!((done.status, done.stderr.as_str()), (Some(0), ""));
        assert_eq!(run_with(&example, arguments("save -c -t nat"), "").stdout, rules);
        let done = run_with(&example, arguments("restore"), "*nat\n-A NONE -j ACCEPT\nCOMMIT\n");
        assert_eq!(done.stderr, "iptables-legacy: table nat, line 2: there is no chain NONE\n");
    });
}
