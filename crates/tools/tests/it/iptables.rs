//! The tool `iptables` against the real ones of both back ends: the same command lines to both, each in a
//! namespace of its own, with the same status and the same rules afterwards.

use std::path::{Path, PathBuf};

use crate::side_by_side::{Done, run_with};
use testns::{Netns, have};

use crate::tool;

/// Command lines; those of save and restore are of the example alone, the real tools have other names.
const LINES: [&str; 43] = [
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
    "-L -n",
    "-L SITE -n -v",
    "-nvL --line-numbers",
    "-n -L SITE 1 -x -v",
    "-L SITE 9 -n",
    "-L SITE 0 -n",
    "-L NONE -n",
    "-Z SITE",
    "-t nat -A POSTROUTING -o eth0 -j MASQUERADE --random-fully",
    "-t nat -A PREROUTING -p tcp --dport 80 -j DNAT --to-destination 10.0.0.2:8080",
    "-t nat -S",
    "-t nat -nL",
    "-t nat -L POSTROUTING -v -n",
    "-t nat -F",
    "-t nat -S PREROUTING",
    "-t nonsense -S",
    "-A INPUT -j NONE",
    "-A INPUT -p tcp --dport 70000",
    "-F",
    "-X",
    "-S",
];

/// Runs a command line, `backend` being the arguments that choose one.
fn run(tool: &Path, backend: &[&str], line: &str) -> Done {
    // All network namespaces share the lock.
    let arguments = backend.iter().copied().chain(["-w", "20"]).chain(line.split_whitespace());
    run_with(tool, arguments, "")
}

#[test]
fn command_lines_do_what_they_do_with_the_tool() {
    for backend in ["nft", "legacy"] {
        let name = format!("iptables-{backend}");
        if !have(&[&name]) {
            continue;
        }
        let (Some(ours), Some(theirs)) = (Netns::new(), Netns::new()) else { return };
        let (example, real) = (tool("iptables"), PathBuf::from(name));
        for line in LINES {
            let done = ours.run(|| run(&example, &["--backend", backend], line));
            let wanted = theirs.run(|| run(&real, &[], line));
            let failed = |done: &Done| done.status != Some(0);
            assert_eq!(failed(&done), failed(&wanted), "{backend} {line}: {done:?} {wanted:?}");
            assert_eq!(done.stdout, wanted.stdout, "{backend} {line}");
            assert_eq!(
                done.stderr.is_empty(),
                !failed(&done) || line.starts_with("-C WEB"),
                "{line}: {done:?}"
            );
        }
    }
}

#[test]
fn what_it_saves_it_restores() {
    let Some(namespace) = Netns::new() else { return };
    let example = tool("iptables");
    let rules = "*nat\n:PREROUTING ACCEPT [0:0]\n:INPUT ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n\
                 [3:4] -A POSTROUTING -j MASQUERADE\nCOMMIT\n";
    namespace.run(|| {
        for backend in ["nft", "legacy"] {
            let run = |line: &str, input: &str| {
                let arguments = ["--backend", backend, "-w", "20"].into_iter().chain(line.split_whitespace());
                run_with(&example, arguments, input)
            };
            let done = run("restore -c", rules);
            assert_eq!((done.status, done.stderr.as_str()), (Some(0), ""));
            assert_eq!(run("save -c -t nat", "").stdout, rules);
            let done = run("restore", "*nat\n-A NONE -j ACCEPT\nCOMMIT\n");
            assert_eq!(done.stderr, "iptables: table nat, line 2: there is no chain NONE\n");
        }
    });
}

#[test]
fn under_the_name_of_a_tool_it_is_that_tool() {
    let Some(namespace) = Netns::new() else { return };
    let rules =
        "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n:X - [0:0]\nCOMMIT\n";
    let (restore, save) = (tool("ip6tables-legacy-restore"), tool("ip6tables-legacy-save"));
    namespace.run(|| {
        assert_eq!(run_with(&restore, ["-w", "20"], rules).status, Some(0));
        assert_eq!(run_with(&save, ["-t", "filter"], "").stdout, rules);
    });
}
