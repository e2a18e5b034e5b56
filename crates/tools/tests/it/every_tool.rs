//! What holds for every tool: it answers `--help`, takes or refuses arguments that are not UTF-8 with a message,
//! and neither a full disk nor a reader who goes away makes it panic.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use testns::Netns;

use crate::{PROGRAM, tool};

/// A command line for each tool that prints something and changes nothing outside of this namespace.
const PRINTING: &[(&str, &[&str])] = &[
    ("conntrack", &["-C"]),
    ("ipset", &["version"]),
    ("iptables-nft", &["--help"]),
    ("iptables-legacy", &["--help"]),
    ("ip6tables", &["--help"]),
    ("ipvsadm", &["-v"]),
    ("nft", &["describe", "tcp dport"]),
];

fn full() -> File {
    OpenOptions::new().write(true).open("/dev/full").expect("a device that is full")
}

fn command(name: &str, words: &[&str]) -> Command {
    let mut command = Command::new(tool(name));
    command.args(words).stdin(Stdio::null());
    command
}

#[test]
fn every_tool_answers_help() {
    let Some(namespace) = Netns::new() else { return };
    namespace.run(|| {
        for (name, _) in PRINTING {
            let output = command(name, &["--help"]).output().expect("the tool runs");
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
            assert!(text.to_lowercase().contains("usage") || text.lines().count() > 10, "{name}: {text}");
        }
    });
}

#[test]
fn no_tool_panics_where_nobody_reads_or_nothing_can_be_written() {
    let Some(namespace) = Netns::new() else { return };
    namespace.run(|| {
        for (name, own) in PRINTING {
            for words in [own, &["--help"][..]] {
                let usual = command(name, words).output().expect("the tool runs").status.code();
                let disk = command(name, words).stdout(full()).output().expect("the tool runs");
                let said = String::from_utf8_lossy(&disk.stderr);
                assert!(!said.contains("panicked"), "{name} {words:?}: {said}");
                assert!(
                    disk.status.code().is_some_and(|code| code != 0),
                    "{name} {words:?}: full, and no word of it"
                );
                let (reader, writer) = std::io::pipe().expect("a pipe");
                drop(reader);
                let closed = command(name, words).stdout(writer).output().expect("the tool runs");
                let said = String::from_utf8_lossy(&closed.stderr);
                assert!(!said.contains("panicked"), "{name} {words:?}: {said}");
                assert_eq!(closed.status.code(), usual, "{name} {words:?} without a reader: {said}");
            }
            let wrong = command(name, &["--nosuch"]).stderr(full()).stdout(full()).status().expect("it runs");
            assert!(wrong.code().is_some_and(|code| code != 101), "{name} --nosuch: {wrong}");
        }
    });
}

#[test]
fn no_tool_panics_at_an_argument_that_is_not_utf8() {
    let Some(namespace) = Netns::new() else { return };
    namespace.run(|| {
        for (name, _) in PRINTING {
            for arguments in [&[&b"\xff"[..]][..], &[b"list", b"\xe9"], &[b"-f", b"/\xff"]] {
                let output = Command::new(tool(name))
                    .args(arguments.iter().map(|argument| OsStr::from_bytes(argument)))
                    .stdin(Stdio::null())
                    .output()
                    .expect("the tool runs");
                let error = String::from_utf8_lossy(&output.stderr);
                assert!(!error.contains("panicked") && output.status.code().is_some(), "{name}: {error}");
                assert!(!(error.is_empty() && output.stdout.is_empty()), "{name} says nothing");
            }
        }
    });
}

#[test]
fn an_unknown_name_is_answered_with_those_that_are_known() {
    for words in [&[][..], &["nosuch"], &["nft8", "list", "ruleset"]] {
        let output = Command::new(PROGRAM).args(words).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(said.contains("expected the name of a tool") && said.contains("ip6tables-restore"), "{said}");
    }
    let output = Command::new(PROGRAM).args(["nft", "describe", "tcp dport"]).output().expect("it runs");
    assert!(output.status.success() && output.stdout.starts_with(b"payload expression"));
}

/// groff names what it does not know of the page's language.
#[test]
fn the_page_of_the_program_is_one_and_names_every_tool() {
    let page = Command::new(PROGRAM).arg("man").output().expect("it runs");
    assert!(page.status.success() && page.stderr.is_empty());
    let text = String::from_utf8(page.stdout).expect("text");
    for name in
        ["nft,", "ip6tables\\-legacy\\-restore,", "conntrack.", env!("CARGO_PKG_VERSION"), ".SH EXAMPLES"]
    {
        assert!(text.contains(name), "{name}: {text}");
    }
    assert!(!text.contains("NAMES") && !text.contains("VERSION"), "{text}");
    let refused = Command::new(PROGRAM).args(["man", "nft"]).output().expect("it runs");
    assert_eq!(refused.status.code(), Some(2));
    if !testns::have(&["groff"]) {
        return;
    }
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sluicegate-tools.1");
    std::fs::write(&file, &text).expect("a file");
    let shown = Command::new("groff")
        .args(["-man", "-ww", "-Tutf8", "-rLL=120n"])
        .arg(&file)
        .output()
        .expect("it runs");
    assert!(shown.stderr.is_empty(), "{}", String::from_utf8_lossy(&shown.stderr));
    assert!(String::from_utf8_lossy(&shown.stdout).contains("conntrack in one program"));
}

#[test]
fn links_replace_no_other_file() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("taken");
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).expect("a directory");
    let install = || Command::new(PROGRAM).arg("install").arg(&directory).output().expect("it runs");
    std::fs::write(directory.join("ipset"), "another program").expect("a file");
    let refused = install();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("ipset: another file has this name"), "{said}");
    assert_eq!(std::fs::read_dir(&directory).expect("it is listed").count(), 1, "nothing is half done");
    std::fs::remove_file(directory.join("ipset")).expect("it is ours");
    assert!(install().status.success());
    assert!(install().status.success(), "a second time");
    assert_eq!(std::fs::read_dir(&directory).expect("it is listed").count(), 24);
}

#[test]
fn ipvsadm_names_the_option_that_was_meant() {
    let Some(namespace) = Netns::new() else { return };
    let words = ["-t", "192.0.2.1:80", "--add-servce"];
    let output = namespace.run(|| command("ipvsadm", &words).output().expect("it runs"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.starts_with("--add-servce: unknown option\n"), "{said}");
    assert!(said.contains("did you mean `--add-service`?"), "{said}");
    assert_eq!(output.status.code(), Some(255), "{said}");
}

#[test]
fn a_kernel_without_ipvs_is_told_in_the_words_of_ipvsadm() {
    if !testns::have(&["ipvsadm"]) || Path::new("/proc/net/ip_vs").exists() {
        return;
    }
    let Some(namespace) = Netns::new() else { return };
    namespace.run(|| {
        for words in [&[][..], &["-Ln"], &["-A", "-t", "192.0.2.1:80", "-s", "rr"], &["-S"], &["-C"]] {
            let theirs = Command::new("ipvsadm").args(words).output().expect("it runs");
            let ours = command("ipvsadm", words).output().expect("it runs");
            let (status, theirs) = (theirs.status.code(), String::from_utf8_lossy(&theirs.stderr));
            // What modprobe says, which the tool starts, stands before it. Where it could load the module, no
            // kernel without IPVS is left.
            let Some(at) = theirs.find("Can't initialize") else {
                return testns::lacks("a kernel that cannot load IPVS");
            };
            assert_eq!(ours.status.code(), status, "{words:?}");
            let said = String::from_utf8_lossy(&ours.stderr);
            assert!(said.starts_with(&theirs[at..]), "{words:?}: {said}");
        }
    });
}
