//! What of ours stands among the rules of others: the jumps from built-in chains, and one rule in a chain of
//! the kubelet's. Lines are added and deleted there one by one, by their words; nothing is emptied.

use sluicegate_iptables_save::{
    self as save, Action, Command, Entry, Item, Rule, Save, State, Table, Verb, diff, find_target, normalise,
};

use super::{CANARY_TABLES, FIREWALL, Jump};

/// Adds to `input` what brings the jumps from built-in chains to `wanted`: those that are missing are
/// inserted, and those to a chain that `is_ours` which are not wanted, or stand there twice, are deleted, as
/// an earlier version, other settings or another mode leaves them behind.
pub(crate) fn change_jumps(
    input: &mut Save<'static>,
    state: &State<'_>,
    wanted: impl Iterator<Item = Jump>,
    is_ours: impl Fn(&str, &str) -> bool,
) -> Result<(), save::Error> {
    let family = state.family();
    let mut missing: Vec<(Jump, Vec<String>)> = Vec::new();
    for jump in wanted {
        let normal = normalise(&jump.words, family)?;
        missing.push((jump, normal));
    }
    let mut found: Vec<(Jump, Vec<String>)> = Vec::new();
    for (table, chain) in BUILT_IN {
        for rule in state.rules(table, chain).unwrap_or_default() {
            // What cannot be read is not ours.
            let Some(normal) = names_ours(rule).then(|| normalise(rule.text(), family).ok()).flatten() else {
                continue;
            };
            let is_it = |(jump, words): &(Jump, Vec<String>)| {
                (jump.table, jump.from) == (table, chain) && *words == normal
            };
            if let Some(at) = missing.iter().position(is_it) {
                found.push(missing.remove(at));
            } else if goes_to(rule, |target| is_ours(table, target)) {
                let stale = Rule::new(Action::Delete, chain, rule.text().to_owned())?;
                add_first(input, table, Entry::Rule(stale))?;
            }
        }
    }
    for (jump, _) in missing {
        let rule = Rule::new(Action::Insert(None), jump.from, jump.words)?;
        add(input, jump.table, Entry::Rule(rule))?;
    }
    Ok(())
}

/// Adds to `input` what makes sure that [`FIREWALL`] has the rule of these words, and that there is such a
/// chain. Whatever else stands in it is the kubelet's.
pub(super) fn ensure_guard(
    input: &mut Save<'static>,
    state: &State<'_>,
    words: &str,
) -> Result<(), save::Error> {
    let family = state.family();
    let Some(rules) = state.rules("filter", FIREWALL) else {
        // A chain line would empty the chain if the kubelet made it meanwhile; this fails, and is tried
        // again.
        add(input, "filter", Entry::Command(Command::new(Verb::New(FIREWALL.into()))?))?;
        return append_guard(input, words);
    };
    let wanted = normalise(words, family)?;
    let is_it = |rule: &Rule<'_>| normalise(rule.text(), family).is_ok_and(|normal| normal == wanted);
    if rules.iter().any(is_it) { Ok(()) } else { append_guard(input, words) }
}

fn append_guard(input: &mut Save<'static>, words: &str) -> Result<(), save::Error> {
    let rule = Rule::new(Action::Append, FIREWALL, words.to_owned())?;
    add(input, "filter", Entry::Rule(rule))
}

/// Returns what deletes the jumps to the chains that go, and then those. `current` loses its jumps on the
/// way.
pub(crate) fn removal(
    current: &mut Save<'_>,
    goes: impl Fn(&str, &str) -> bool,
) -> Result<Save<'static>, save::Error> {
    let jumps = take_jumps(current, &goes);
    let state = State::of(current)?;
    let none = State::of_family(&Save::default(), state.family())?;
    let mut input = diff(&state, &none, &goes)?.into_save();
    for (table, rule) in jumps.into_iter().rev() {
        let rule = Rule::new(Action::Delete, rule.chain().to_owned(), rule.text().to_owned())?;
        add_first(&mut input, table, Entry::Rule(rule))?;
    }
    Ok(input)
}

/// Takes the jumps from built-in chains to those for which `goes` is true out of a save, with their tables.
/// To compare the rest, so that a jump to a chain of ours does not keep it from being deleted.
pub(crate) fn take_jumps<'a>(
    save: &mut Save<'a>,
    goes: impl Fn(&str, &str) -> bool,
) -> Vec<(&'static str, Rule<'a>)> {
    let mut jumps = Vec::new();
    for table in save.tables_mut() {
        let name = CANARY_TABLES.into_iter().find(|known| *known == table.name());
        let Some(name) = name else { continue };
        let mut kept = Vec::with_capacity(table.entries.len());
        for entry in table.entries.drain(..) {
            match entry {
                Entry::Rule(rule) if is_jump(name, &rule, &goes) => jumps.push((name, rule)),
                other => kept.push(other),
            }
        }
        table.entries = kept;
    }
    jumps
}

/// Adds a line to a table of the input, filter before nat.
fn add(input: &mut Save<'static>, name: &'static str, entry: Entry<'static>) -> Result<(), save::Error> {
    table_of(input, name)?.entries.push(entry);
    Ok(())
}

/// Adds a line before all others of its table: a chain can only be deleted once nothing jumps to it.
fn add_first(
    input: &mut Save<'static>,
    name: &'static str,
    entry: Entry<'static>,
) -> Result<(), save::Error> {
    table_of(input, name)?.entries.insert(0, entry);
    Ok(())
}

fn table_of<'i>(
    input: &'i mut Save<'static>,
    name: &'static str,
) -> Result<&'i mut Table<'static>, save::Error> {
    if input.table(name).is_none() {
        let at = if name == "filter" { 0 } else { input.items.len() };
        input.items.insert(at, Item::Table(Table::new(name)?));
    }
    let table = input.tables_mut().find(|table| table.name() == name);
    Ok(table.expect("a table of this name is there, or was added above"))
}

/// A rule of a built-in chain that jumps to a chain of ours which goes.
fn is_jump(table: &str, rule: &Rule<'_>, goes: impl Fn(&str, &str) -> bool) -> bool {
    !goes(table, rule.chain())
        && BUILT_IN.iter().any(|(_, chain)| *chain == rule.chain())
        && names_ours(rule)
        && goes_to(rule, |target| goes(table, target))
}

/// Every chain of ours has a name that begins so. Reading a rule costs more than looking for it.
fn names_ours(rule: &Rule<'_>) -> bool {
    rule.text().contains("KUBE-")
}

/// Returns whether the rule jumps to such a chain. A rule that cannot be read is not one of ours.
fn goes_to(rule: &Rule<'_>, is_ours: impl Fn(&str) -> bool) -> bool {
    let Ok(spec) = rule.spec() else { return false };
    let target = spec.target_name();
    target.is_some_and(|target| is_ours(target) && find_target(target, save::Family::Ipv4).is_none())
}

/// The tables that have jumps of ours, with their built-in chains.
const BUILT_IN: [(&str, &str); 7] = [
    ("filter", "INPUT"),
    ("filter", "FORWARD"),
    ("filter", "OUTPUT"),
    ("nat", "PREROUTING"),
    ("nat", "INPUT"),
    ("nat", "OUTPUT"),
    ("nat", "POSTROUTING"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::{Support, is_ours, jumps};

    fn changes(rules: &str, guard: Option<&str>) -> String {
        let text = format!("*filter\n:KUBE-SERVICES - [0:0]\n:KUBE-FORWARD - [0:0]\n{rules}COMMIT\n");
        let save = Save::parse(&text).unwrap();
        let state = State::of_family(&save, save::Family::Ipv4).unwrap();
        let mut input = Save::default();
        if let Some(words) = guard {
            ensure_guard(&mut input, &state, words).unwrap();
        }
        let support = Support::default();
        let forward = jumps(&support, false).filter(|jump| jump.to == "KUBE-FORWARD");
        change_jumps(&mut input, &state, forward, is_ours).unwrap();
        input.to_string()
    }

    const FORWARD: &str = "-A FORWARD -m comment --comment \"kubernetes forwarding rules\" -j KUBE-FORWARD\n";

    #[test]
    fn a_jump_is_made_once_and_those_with_other_conditions_go() {
        assert_eq!(changes("", None), format!("*filter\n{}COMMIT\n", FORWARD.replace("-A", "-I")));
        assert_eq!(changes(FORWARD, None), "");
        let stale = "-A FORWARD -j KUBE-FORWARD\n-A OUTPUT -m conntrack --ctstate NEW -j KUBE-SERVICES\n";
        let deleted = changes(&format!("{stale}{FORWARD}{FORWARD}"), None);
        let mut lines: Vec<_> = deleted.lines().collect();
        lines.sort_unstable();
        assert_eq!(
            lines,
            [
                "*filter",
                "-D FORWARD -j KUBE-FORWARD",
                FORWARD.replace("-A", "-D").trim(),
                "-D OUTPUT -m conntrack --ctstate NEW -j KUBE-SERVICES",
                "COMMIT"
            ]
        );
        let theirs = ":MINE - [0:0]\n-A INPUT -m comment --comment KUBE-FORWARD -j ACCEPT\n\
            -A MINE -j KUBE-SERVICES\n-A INPUT -j KUBE-FIREWALL\n";
        assert_eq!(changes(&format!(":KUBE-FIREWALL - [0:0]\n{theirs}{FORWARD}"), None), "");
    }

    #[test]
    fn the_guard_is_added_to_what_the_kubelet_has_there() {
        let guard = Some("-s 10.0.0.1 -j DROP");
        let added = "-A KUBE-FIREWALL -s 10.0.0.1 -j DROP\n";
        assert_eq!(changes(FORWARD, guard), format!("*filter\n-N KUBE-FIREWALL\n{added}COMMIT\n"));
        let theirs = format!(
            "{FORWARD}:KUBE-FIREWALL - [0:0]\n-A KUBE-FIREWALL -m mark --mark 0x8000/0x8000 -j DROP\n"
        );
        assert_eq!(changes(&theirs, guard), format!("*filter\n{added}COMMIT\n"));
        assert_eq!(changes(&format!("{theirs}-A KUBE-FIREWALL -s 10.0.0.1/32 -j DROP\n"), guard), "");
    }
}
