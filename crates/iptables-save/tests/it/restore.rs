//! The runner against both back ends and both families, in namespaces; and against programs that misbehave.
#![cfg(feature = "restore")]

use sluicegate_iptables_save::restore::{BackEnd, Restore, RunLimits, Tool, Tools};
use sluicegate_iptables_save::{
    Cause, Error, Family, Owned, Position, Save, State, decode, diff, diff_owned, encode,
};
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
    for family in [Family::Ipv4, Family::Ipv6] {
        let tools = Tools::find(family).expect("tools are installed");
        for tool in [tools.legacy.expect("legacy"), tools.nft.expect("nft")] {
            netns(|| test(&tool));
        }
    }
}

fn refusal(tool: &Tool, input: &str) -> (Option<usize>, Option<String>, Cause) {
    match tool.apply_text(input, Restore::default()) {
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
        let mut how = Restore::default();
        (how.counters, how.wait, how.wait_interval) = (true, Some(5), Some(1000));
        tool.restore_text(input, how).expect("accepted");
        let saved = tool.save(Some("mangle"), true).expect("saved");
        // ip6tables-nft 1.8.9 loses the counters that it is given.
        let lost =
            (tool.family(), tool.back_end()) == (Family::Ipv6, BackEnd::Nft) && tool.version() == (1, 8, 9);
        let counters = if lost { "[0:0]" } else { "[3:4]" };
        assert!(saved.contains(&format!("{counters} -A X -j ACCEPT\n")), "{saved}");
        assert!(Save::parse(&saved).is_ok());
        assert!(tool.holds_rules().expect("saved"));
    });
}

#[test]
fn a_dry_run_changes_nothing() {
    each(|tool| {
        let mut test = Restore::default();
        test.test = true;
        tool.restore_text("*mangle\n-A INPUT -j ACCEPT\nCOMMIT\n", test).expect("can be read");
        assert!(!tool.holds_rules().expect("saved"));
        let error =
            tool.restore_text("*mangle\n-A INPUT --nonsense\nCOMMIT\n", test).expect_err("cannot be read");
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
        let wanted = if tool.back_end() == BackEnd::Legacy { Cause::Invalid } else { Cause::Missing };
        assert_eq!(cause, wanted);

        let (line, _, cause) = refusal(tool, "*filter\n-A INPUT -j ACCEPT\n");
        assert!(matches!((line, cause), (Some(3) | None, Cause::Syntax)), "{line:?} {cause:?}");

        // The kernel refuses; the legacy back end reports the line of COMMIT.
        let (line, _, cause) = refusal(
            tool,
            "*filter\n-A INPUT -j TTL --ttl-set 5\nCOMMIT\n"
                .replace("TTL --ttl", if tool.family() == Family::Ipv4 { "TTL --ttl" } else { "HL --hl" })
                .as_str(),
        );
        let wanted = if tool.back_end() == BackEnd::Legacy { 3 } else { 2 };
        assert_eq!((line, cause), (Some(wanted), Cause::Invalid));

        let (_, _, cause) = refusal(tool, "*filter\n:X - [0:0]\n-A INPUT -j X\n-X X\nCOMMIT\n");
        assert!(matches!(cause, Cause::Busy | Cause::Invalid | Cause::Syntax), "{cause:?}");
    });
}

#[test]
fn a_single_rule_is_appended_or_refused_with_the_reason() {
    each(|tool| {
        tool.restore_text("*filter\n:X - [0:0]\nCOMMIT\n", Restore::default()).expect("accepted");
        tool.append("filter", "X", "-m comment --comment \"two words\" -j ACCEPT").expect("accepted");
        let saved = tool.save(Some("filter"), false).expect("saved");
        assert!(saved.contains("-A X -m comment --comment \"two words\" -j ACCEPT\n"), "{saved}");
        let cause = |words| tool.append("filter", "X", words).expect_err("refused").cause();
        assert_eq!(cause("-m nosuch"), Some(Cause::Unsupported));
        assert_eq!(cause("-p nosuch"), Some(Cause::Unsupported));
        assert!(tool.append("filter", "X", "\"open").expect_err("no word").is_syntax());
        let missing = tool.append("filter", "NOWHERE", "-j ACCEPT").expect_err("refused");
        assert_eq!(missing.cause(), Some(Cause::Missing));
    });
}

#[test]
fn both_back_ends_are_reported_when_both_hold_rules() {
    if !have(&["iptables-legacy-restore", "iptables-nft-restore"]) {
        return;
    }
    let tools = Tools::find(Family::Ipv4).expect("tools are installed");
    assert!(tools.usual.is_some());
    netns(|| {
        assert_eq!(tools.in_use().expect("saved").len(), 0);
        for (count, tool) in [&tools.legacy, &tools.nft].into_iter().flatten().enumerate() {
            tool.restore_text("*raw\n:X - [0:0]\nCOMMIT\n", Restore::default()).expect("accepted");
            assert_eq!(tools.in_use().expect("saved").len(), count + 1);
        }
    });
}

#[test]
fn changes_leave_the_chains_of_others_and_a_save_replaces_them() {
    each(|tool| {
        tool.restore_text("*mangle\n:THEIRS - [0:0]\n-A THEIRS -j ACCEPT\nCOMMIT\n", Restore::default())
            .expect("accepted");
        let current = tool.state(None).expect("saved");
        let mut desired = current.clone();
        desired.ensure_chain("mangle", "MINE").expect("a name");
        desired.append_rule("mangle", "MINE", "-j RETURN").expect("a rule");
        let changes = diff(&current, &desired, |_, chain| chain == "MINE").expect("a difference");
        // Whatever the options, what `diff` returns is restored with `--noflush`.
        tool.apply(&changes, Restore::default()).expect("accepted");
        let saved = tool.save(Some("mangle"), false).expect("saved");
        assert!(saved.contains("-A THEIRS -j ACCEPT\n") && saved.contains("-A MINE -j RETURN\n"), "{saved}");
        tool.restore(changes.as_save(), Restore::default()).expect("accepted");
        assert!(!tool.save(Some("mangle"), false).expect("saved").contains("THEIRS"));
    });
}

#[test]
fn chains_and_rules_are_ensured_and_removed_by_their_words() {
    each(|tool| {
        let rules = |chain: &str| {
            let state = tool.state(Some("filter")).expect("saved");
            let rules = state.rules("filter", chain).expect("the chain is there");
            rules.iter().map(|rule| rule.text().to_owned()).collect::<Vec<_>>()
        };
        assert!(tool.ensure_chain("filter", "MINE").expect("made"));
        assert!(
            tool.ensure_rule("filter", "MINE", Position::Last, "-p tcp --dport http -j ACCEPT")
                .expect("made")
        );
        assert!(!tool.ensure_chain("filter", "MINE").expect("there"));
        assert!(
            !tool
                .ensure_rule("filter", "MINE", Position::Last, "-p 6 -m tcp --dport 80 -j ACCEPT")
                .expect("there")
        );
        assert_eq!(rules("MINE"), ["-p tcp -m tcp --dport 80 -j ACCEPT"]);
        assert!(tool.ensure_rule("filter", "INPUT", Position::Last, "-j DROP").expect("made"));
        assert!(
            tool.ensure_rule("filter", "INPUT", Position::First, "-m comment --comment mine -j MINE")
                .expect("made")
        );
        assert_eq!(rules("INPUT"), ["-m comment --comment mine -j MINE", "-j DROP"]);
        assert_eq!(tool.remove_rule("filter", "INPUT", "-j MINE").expect("looked"), 0);
        assert_eq!(
            tool.remove_rule("filter", "INPUT", "-m comment --comment mine -j MINE").expect("removed"),
            1
        );
        assert_eq!(rules("INPUT"), ["-j DROP"]);
        assert!(tool.remove_chain("filter", "MINE").expect("removed"));
        assert!(!tool.remove_chain("filter", "MINE").expect("looked"));
        let error = tool.ensure_rule("filter", "MINE", Position::Last, "-j DROP").expect_err("no chain");
        assert_eq!(error.to_string(), "table filter, chain MINE: is not there; a rule is wanted in it");
    });
}

#[test]
fn one_rule_of_ours_is_kept_in_a_chain_of_others() {
    each(|tool| {
        let theirs = "-A FORWARD -j LOG\n-A FORWARD -j MINE\n-A FORWARD -j MINE\n-A FORWARD -j DROP\n";
        let input = format!("*filter\n:MINE - [0:0]\n{theirs}COMMIT\n");
        tool.restore_text(&input, Restore::default()).expect("accepted");
        let owner = Owned::new(|_, chain| chain == "MINE", |_, rule| rule.has_target("MINE"));
        let bring_to = |desired: &State<'_>| {
            let changes =
                diff_owned(&tool.state(None).expect("saved"), desired, &owner).expect("a difference");
            tool.apply(&changes, Restore::default()).expect("accepted");
            let saved = tool.save(Some("filter"), false).expect("saved");
            saved.lines().filter(|line| line.starts_with("-A FORWARD")).map(str::to_owned).collect::<Vec<_>>()
        };
        let mut desired = State::new(tool.family());
        desired.ensure_chain("filter", "MINE").expect("a name");
        desired.append_rule("filter", "FORWARD", "-p udp -j MINE").expect("a rule");
        assert_eq!(
            bring_to(&desired),
            ["-A FORWARD -p udp -j MINE", "-A FORWARD -j LOG", "-A FORWARD -j DROP"]
        );
        assert_eq!(bring_to(&State::new(tool.family())), ["-A FORWARD -j LOG", "-A FORWARD -j DROP"]);
        assert!(!tool.save(None, false).expect("saved").contains("MINE"));
    });
}

#[test]
fn comments_that_are_not_utf8_are_restored_compared_and_deleted() {
    each(|tool| {
        let bytes = b"*filter\n:MINE - [0:0]\n-A INPUT -m comment --comment \"caf\xe9\" -j LOG\n\
                      -A MINE -m comment --comment \"\xff\xfe a\" -j DROP\nCOMMIT\n";
        let save = Save::parse_bytes(bytes).expect("bytes are text");
        tool.restore(&save, Restore::default()).expect("accepted");
        let saved = tool.save(Some("filter"), false).expect("saved");
        let holds = |saved: &str, bytes: &[u8]| encode(saved).windows(bytes.len()).any(|part| part == bytes);
        assert!(holds(&saved, b"--comment \"caf\xe9\" -j LOG") && holds(&saved, b"--comment \"\xff\xfe a\""));
        let (current, desired) = (tool.state(None).expect("saved"), State::of(&save).expect("rules"));
        assert!(diff(&current, &desired, |table, _| table == "filter").expect("compared").is_empty());
        let text = decode(b"-m comment --comment \"caf\xe9\" -j LOG");
        assert_eq!(tool.remove_rule("filter", "INPUT", &text).expect("removed"), 1);
        assert!(!holds(&tool.save(None, false).expect("saved"), b"caf"));
    });
}

#[test]
fn output_is_limited() {
    each(|tool| {
        let mut limits = RunLimits::default();
        limits.output = 10;
        let short = tool.clone().with_limits(limits);
        tool.restore_text("*filter\n:X - [0:0]\nCOMMIT\n", Restore::default()).expect("accepted");
        assert!(short.save(None, false).expect_err("too much").is_limit());
    });
}
