//! What bash, zsh and fish offer by the script that `completions` prints: each shell is driven as its users do.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::{PROGRAM, tool};

/// What a shell offers at the end of a line, in the order of names, where the kernel has what [`make`] makes.
const OFFERED: &[(&str, &[&str])] = &[
    ("nft mon", &["monitor"]),
    ("nft list ta", &["table", "tables"]),
    ("nft list table inet ", &["gate", "guard"]),
    ("nft -a list chain inet gate i", &["in", "inner"]),
    ("nft add chain inet gate i", &[]),
    ("nft add rule inet gate inn", &["inner"]),
    ("nft add rule inet gate in jump inn", &["inner"]),
    ("nft add rule inet gate in ip saddr @bl", &["@black"]),
    ("nft add element inet gate bl", &["black", "blue"]),
    ("nft list set inet gate bl", &["black"]),
    ("nft list map inet gate bl", &["blue"]),
    ("nft reset counter inet gate ", &["hits"]),
    ("nft delete table gate", &[]),
    ("nft list table ip fil", &["filter"]),
    ("nft -f rul", &["rules.nft"]),
    ("sluicegate-tools nft list chain inet gate inn", &["inner"]),
    ("iptables -t nat -A POST", &["POSTROUTING"]),
    ("iptables -S BLO", &["BLOCKED"]),
    ("iptables -A INPUT -j BLO", &["BLOCKED"]),
    ("iptables -t nat -A PREROUTING -j BLO", &[]),
    ("ip6tables -S BLO", &[]),
    ("iptables -A INPUT -m connt", &["conntrack"]),
    ("iptables -A INPUT -i l", &["lo"]),
    ("ipset add hos", &["hosts-of-a", "hosts-of-b"]),
    ("ipset swap hosts-of-a hosts-of-", &["hosts-of-a", "hosts-of-b"]),
    ("conntrack -L --pro", &["--proto"]),
];

/// Names that a shell would take for more than a word are there, and are not offered.
fn make() {
    let sets = testns::try_sh(
        "ipset create hosts-of-a hash:ip && ipset create hosts-of-b hash:ip && ipset create 'hosts;x' hash:ip",
    );
    assert!(sets.status.success(), "{}", String::from_utf8_lossy(&sets.stderr));
    for (name, words) in [
        (
            "nft",
            "add table inet gate; add table inet guard; add chain inet gate in; add chain inet gate inner; \
                 add set inet gate black { type ipv4_addr; }; add counter inet gate hits; \
                 add map inet gate blue { type ipv4_addr : mark; }",
        ),
        ("iptables-nft", "-N BLOCKED"),
    ] {
        let words = if name == "nft" { vec![words] } else { words.split(' ').collect() };
        let made = Command::new(tool(name)).args(words).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }
}

/// `step` is 1, or more for a shell that takes long to start.
fn compare(shell: &str, script: &str, step: usize, drive: impl Fn(&Path, &str) -> Command + Sync) {
    if !testns::have(&[shell, "ipset"]) {
        return;
    }
    testns::netns(|| {
        make();
        let folder = folder();
        let printed = Command::new(PROGRAM).args(["completions", shell]).output().unwrap();
        assert!(printed.status.success());
        fs::write(folder.join(script), printed.stdout).unwrap();
        fs::write(folder.join("rules.nft"), "").unwrap();
        for (line, expected) in OFFERED.iter().step_by(step) {
            let mut command = drive(&folder, line);
            let path = Path::new(PROGRAM).parent().unwrap().display().to_string();
            let path = format!("{path}:{}", std::env::var("PATH").unwrap_or_default());
            command.current_dir(&folder).env("PATH", path).env("HOME", &folder).env("TERM", "dumb");
            let output = command.env("SLUICEGATE_IPTABLES", "nft").stdin(Stdio::null()).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success() && said.is_empty(), "{shell}: {line}: {said}");
            let output = String::from_utf8_lossy(&output.stdout);
            let mut offered: Vec<_> =
                output.lines().filter_map(|line| line.split_whitespace().next()).collect();
            offered.sort_unstable();
            offered.dedup();
            assert_eq!(offered, *expected, "{shell} offers for `{line}`");
        }
        fs::remove_dir_all(folder).unwrap();
    });
}

fn folder() -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("complete-{}-{number}", std::process::id());
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// `COMP_WORDS` are what readline makes of the line; what it replaces begins behind a `@` or `:`, and is printed
/// with what stands before it, so that the words are whole again.
#[test]
fn bash_offers_the_names_that_the_kernel_has() {
    let drive = r#"
        . ./.script
        COMP_LINE=$1; COMP_POINT=${#COMP_LINE}
        tool=${COMP_LINE%% *}
        [[ $(complete -p "$tool") == *"-o default -F "* ]] || exit 3
        _sluicegate_tools
        last=${COMP_LINE##* }; kept=
        [[ $last == *[:@]* ]] && kept=${last%"${last##*[:@]}"}
        # Where a function offers nothing, `-o default` has bash offer files.
        (( ${#COMPREPLY[@]} )) || mapfile -t COMPREPLY < <(compgen -f -- "$last")
        for offered in "${COMPREPLY[@]}"; do printf '%s\n' "$kept$offered"; done"#;
    compare("bash", ".script", 1, |_, line| {
        let mut bash = Command::new("bash");
        bash.args(["--norc", "-c", drive, "-", line]);
        bash
    });
}

#[test]
fn fish_offers_the_names_that_the_kernel_has() {
    compare("fish", ".script", 1, |_, line| {
        let mut fish = Command::new("fish");
        fish.args(["--no-config", "-c", &format!("source .script; complete -C {line:?}")]);
        fish
    });
}

#[test]
fn zsh_offers_the_names_that_the_kernel_has() {
    compare("zsh", "_sluicegate-tools", 4, testns::zsh);
}
