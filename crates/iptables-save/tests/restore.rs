//! The runner against both back ends and both families, in namespaces; and against programs that misbehave.
#![cfg(feature = "restore")]

use sluicegate_iptables_save::restore::{BackEnd, Restore, RunLimits, Tool, Tools};
use sluicegate_iptables_save::{Cause, Error, Family, Save};
use testns::{have, netns};

fn each(test: impl Fn(&Tool) + Sync) {
    let tools = [
        "iptables-legacy-restore",
        "iptables-nft-restore",
        "ip6tables-legacy-restore",
        "ip6tables-nft-restore",
    ];
    if !have(&tools) {
        return;
    }
    for family in [Family::V4, Family::V6] {
        let tools = Tools::find(family).expect("tools are installed");
        for tool in [tools.legacy.expect("legacy"), tools.nft.expect("nft")] {
            netns(|| test(&tool));
        }
    }
}

fn refusal(tool: &Tool, input: &str) -> (Option<usize>, Option<String>, Cause) {
    match tool.restore(input, Restore { noflush: true, ..Restore::default() }) {
        Err(Error::Refused(refusal)) => {
            assert!(!refusal.message.is_empty());
            (refusal.line, refusal.text, refusal.cause)
        }
        other => panic!("{:?} {input}: {other:?}", tool.back_end()),
    }
}

#[test]
fn what_is_restored_is_saved_with_its_counters() {
    each(|tool| {
        let input = "*mangle\n:X - [0:0]\n[3:4] -A X -j ACCEPT\nCOMMIT\n";
        tool.restore(
            input,
            Restore { counters: true, wait: Some(5), wait_interval: Some(1000), ..Restore::default() },
        )
        .expect("accepted");
        let saved = tool.save(Some("mangle"), true).expect("saved");
        // ip6tables-nft 1.8.9 loses the counters that it is given.
        let lost =
            (tool.family(), tool.back_end()) == (Family::V6, BackEnd::Nft) && tool.version() == (1, 8, 9);
        let counters = if lost { "[0:0]" } else { "[3:4]" };
        assert!(saved.contains(&format!("{counters} -A X -j ACCEPT\n")), "{saved}");
        assert!(Save::parse(&saved).is_ok());
        assert!(tool.holds_rules().expect("saved"));
    });
}

#[test]
fn a_dry_run_changes_nothing() {
    each(|tool| {
        let test = Restore { test: true, ..Restore::default() };
        tool.restore("*mangle\n-A INPUT -j ACCEPT\nCOMMIT\n", test).expect("can be read");
        assert!(!tool.holds_rules().expect("saved"));
        let error = tool.restore("*mangle\n-A INPUT --nonsense\nCOMMIT\n", test).expect_err("cannot be read");
        assert_eq!((error.line(), error.is_syntax()), (Some(2), true));
    });
}

#[test]
fn failures_name_line_rule_and_cause() {
    each(|tool| {
        let rule = "-A INPUT -p tcp --dport nope -j ACCEPT";
        let (line, text, cause) = refusal(tool, &format!("*filter\n{rule}\nCOMMIT\n"));
        assert_eq!((line, text.as_deref(), cause), (Some(2), Some(rule), Cause::Syntax));

        let (line, _, cause) = refusal(tool, "*filter\n\n-A INPUT -m nosuch -j ACCEPT\nCOMMIT\n");
        assert_eq!((line, cause), (Some(3), Cause::Unsupported));

        let (line, _, cause) = refusal(tool, "*filter\n-A NOWHERE -j ACCEPT\nCOMMIT\n");
        assert!(line.is_some());
        assert!(matches!(cause, Cause::Missing | Cause::Syntax), "{cause:?}");

        let (line, _, cause) = refusal(tool, "*filter\n-A INPUT -j ACCEPT\n");
        assert!(matches!((line, cause), (Some(3) | None, Cause::Syntax)), "{line:?} {cause:?}");

        // The kernel's refusal: the legacy back end knows of COMMIT alone.
        let (line, _, cause) = refusal(
            tool,
            "*filter\n-A INPUT -j TTL --ttl-set 5\nCOMMIT\n"
                .replace("TTL --ttl", if tool.family() == Family::V4 { "TTL --ttl" } else { "HL --hl" })
                .as_str(),
        );
        let wanted = if tool.back_end() == BackEnd::Legacy { 3 } else { 2 };
        assert_eq!((line, cause), (Some(wanted), Cause::Invalid));

        let (_, _, cause) = refusal(tool, "*filter\n:X - [0:0]\n-A INPUT -j X\n-X X\nCOMMIT\n");
        assert!(matches!(cause, Cause::Busy | Cause::Invalid | Cause::Syntax), "{cause:?}");
    });
}

#[test]
fn both_back_ends_are_reported_when_both_hold_rules() {
    if !have(&["iptables-legacy-restore", "iptables-nft-restore"]) {
        return;
    }
    let tools = Tools::find(Family::V4).expect("tools are installed");
    assert!(tools.usual.is_some());
    netns(|| {
        assert_eq!(tools.in_use().expect("saved").len(), 0);
        for (count, tool) in [&tools.legacy, &tools.nft].into_iter().flatten().enumerate() {
            tool.restore("*raw\n:X - [0:0]\nCOMMIT\n", Restore::default()).expect("accepted");
            assert_eq!(tools.in_use().expect("saved").len(), count + 1);
        }
    });
}

#[test]
fn output_is_limited() {
    each(|tool| {
        let short = tool.clone().with_limits(RunLimits { output: 10, ..RunLimits::default() });
        tool.restore("*filter\n:X - [0:0]\nCOMMIT\n", Restore::default()).expect("accepted");
        assert!(short.save(None, false).expect_err("too much").is_limit());
    });
}
