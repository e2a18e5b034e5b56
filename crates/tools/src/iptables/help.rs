//! What `-h` prints: our own text, and of the matches and targets before it what iptables prints, as far as
//! programs read it: firewalld has the types of ICMP from there, others look for an option.

use std::fmt::Write as _;

use super::arguments::options;
use sluicegate_iptables_save::{Extension, Family, all_targets, icmp_types};

/// Returns the text, for these matches and targets.
pub(super) fn text(family: Family, extensions: &[&'static Extension]) -> String {
    let mut text = match family {
        Family::Ipv4 => USAGE.to_owned(),
        Family::Ipv6 => USAGE.replace("iptables", "ip6tables"),
    };
    for (long, letter) in options() {
        let _ = match letter {
            // It has no letter of its own.
            '0' => writeln!(text, "  --{long}"),
            letter => writeln!(text, "  --{long}\t-{letter}"),
        };
    }
    for extension in extensions.iter().rev() {
        let is_target = all_targets().any(|target| std::ptr::eq(target, *extension));
        let kind = if is_target { "target" } else { "match" };
        let name = if extension.name() == "icmp6" { "icmpv6" } else { extension.name() };
        let _ = writeln!(text, "\n{name} {kind} options:");
        for row in extension.options() {
            let not = if row.negatable() { "[!] " } else { "" };
            let value = if row.arity() > 0 { " value" } else { "" };
            for option in std::iter::once(row.name()).chain(row.aliases().iter().copied()) {
                let _ = writeln!(text, "{not}--{option}{value}");
            }
        }
        match extension.name() {
            "icmp" | "icmp6" => types(&mut text, family),
            _ => (),
        }
    }
    text
}

/// Writes the types with their other names in parentheses, and the codes of each below it.
fn types(text: &mut String, family: Family) {
    text.push_str(match family {
        Family::Ipv4 => "Valid ICMP Types:\nany",
        Family::Ipv6 => "Valid ICMPv6 Types:",
    });
    let mut before = None;
    for (name, kind, code) in icmp_types(family) {
        if before == Some((kind, code)) {
            let _ = write!(text, " ({name})");
        } else {
            let _ = write!(text, "\n{}{name}", if code.is_some() { "   " } else { "" });
        }
        before = Some((kind, code));
    }
    text.push('\n');
}

const USAGE: &str = "\
Usage: iptables -[ACD] chain rule-specification [options]
       iptables -I chain [rulenum] rule-specification [options]
       iptables -R chain rulenum rule-specification [options]
       iptables -D chain rulenum [options]
       iptables -[LS] [chain [rulenum]] [options]
       iptables -[FZ] [chain] [options]
       iptables -[NX] chain
       iptables -E old-chain-name new-chain-name
       iptables -P chain target [options]
       iptables -h (print this help information)

Options:
";
