//! `completions SHELL`, the script by which a shell completes the words of the tools, and `complete`, which that
//! script asks: the names that the kernel has now, of tables, chains, sets, services and what else a word may be.
//!
//! Asking changes nothing. The legacy tables of iptables are made by whoever reads them, so only those that are
//! there are read; and the script calls this program alone, never the tool whose words are completed, since that
//! might be another program, which would carry them out.

mod conntrack;
mod ipset;
mod iptables;
pub(crate) mod ipvsadm;
mod nft;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use crate::output::{print, tell};
use crate::{NAMES, PROGRAM, printed};

/// Prints the script for a shell.
pub(crate) fn script(arguments: &[OsString]) -> ExitCode {
    let shell = arguments.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    let tools = [&[PROGRAM][..], &NAMES].concat().join(" ");
    let script = match shell.as_str() {
        "bash" => include_str!("script.bash"),
        "zsh" => include_str!("script.zsh"),
        "fish" => include_str!("script.fish"),
        _ => {
            let usage = format!("usage: {PROGRAM} completions bash|zsh|fish");
            tell(format_args!("{PROGRAM}: expected the name of a shell, found `{shell}`\n{usage}"));
            return ExitCode::from(2);
        }
    };
    printed(&script.replace("TOOLS", &tools))
}

/// Prints what the last word may be, a line each, by the name of the tool and the words behind it. What cannot be
/// found out is not offered, and no error: nobody would see it.
pub(crate) fn main(arguments: &[OsString]) -> ExitCode {
    let words: Vec<_> = arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let mut lines = String::new();
    for word in offered(&words) {
        lines.push_str(&word);
        lines.push('\n');
    }
    if print(lines).is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn offered(words: &[String]) -> Vec<String> {
    let Some((tool, [before @ .., last])) = words.split_first() else { return Vec::new() };
    let before: Vec<_> = before.iter().map(String::as_str).collect();
    let tool = Path::new(tool).file_name().unwrap_or_default().to_string_lossy();
    let mut found = match &*tool {
        "nft" => nft::offered(&before, last),
        "ipset" => ipset::offered(&before),
        "ipvsadm" => ipvsadm::offered(&before),
        "conntrack" => conntrack::offered(&before),
        PROGRAM => match before.split_first() {
            None => {
                let own = ["chain-names", "completions", "install", "man"];
                NAMES.into_iter().chain(own).map(str::to_owned).collect()
            }
            Some((&"completions", [])) => texts(["bash", "fish", "zsh"]),
            // By the first word it is that tool.
            Some(_) => return offered(&words[1..]),
        },
        name if name.contains("-save") || name.contains("-restore") => Vec::new(),
        name if NAMES.contains(&name) => iptables::offered(name, &before),
        _ => Vec::new(),
    };
    found.retain(|word| word.starts_with(last.as_str()) && is_plain(word));
    found.sort_unstable();
    found.dedup();
    found
}

/// Whether no shell takes a word for more than one, or for anything but itself: the kernel's names may hold a
/// blank or `;`, and what is offered stands in the command line unquoted.
fn is_plain(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_alphanumeric() || "_-.:/[],@%+".contains(c))
}

/// The interfaces of this network namespace.
fn interfaces() -> Vec<String> {
    let table = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    table.lines().filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned())).collect()
}

fn texts<'a>(words: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    words.into_iter().map(str::to_owned).collect()
}

/// Protocols that have ports, or are met as often.
const PROTOCOLS: [&str; 6] = ["tcp", "udp", "sctp", "icmp", "icmpv6", "dccp"];

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(line: &str) -> Vec<String> {
        super::offered(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn the_words_of_the_languages_are_offered_where_they_may_stand() {
        assert_eq!(offered("nft li"), ["list"]);
        assert_eq!(offered("/usr/sbin/nft -a list ru"), ["rule", "rules", "ruleset"]);
        assert_eq!(offered("nft -f "), [""; 0]);
        assert_eq!(offered("sluicegate-tools ipset cr"), ["create"]);
        assert_eq!(offered("ipset create new hash:ip,m"), ["hash:ip,mac", "hash:ip,mark"]);
        assert_eq!(offered("iptables -A INPUT -m connm"), ["connmark"]);
        assert_eq!(offered("iptables -A INPUT -m multiport --dp"), ["--dports"]);
        assert_eq!(offered("ip6tables -t ra"), ["raw"]);
        assert_eq!(offered("ipvsadm -A -t 10.0.0.1:80 -s wr"), ["wrr"]);
        assert_eq!(offered("conntrack -L -p ud"), ["udp"]);
        assert_eq!(offered("sluicegate-tools completions f"), ["fish"]);
        assert_eq!(offered("sluicegate-tools"), [""; 0]);
        assert_eq!(offered("cat "), [""; 0]);
    }

    #[test]
    fn no_shell_is_given_more_than_a_word() {
        for word in ["a b", "a;reboot", "$(x)", "`x`", "a'b", "a\nb", "a\\b", "*", "ä"] {
            assert!(!is_plain(word), "{word:?}");
        }
        assert!(is_plain("[fd00::1]:80") && is_plain("KUBE-SVC-ABC"));
    }
}
