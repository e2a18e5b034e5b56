//! Brings iptables to where the plan is, with the smallest input of `iptables-restore --noflush`.
//!
//! The first sync compares the plan with what `iptables-save` shows and sends the difference. From then on the applied state is in
//! memory, and a sync sends what changed. The kernel has no count of changes to ask here, as nftables has: the canary, an
//! empty chain in table mangle, tells when somebody has flushed everything. Input that does not fit what is there (a
//! rule to be deleted is not) is refused by the tool as a whole; then everything is compared once more.
//!
//! Tools run in the network namespace of the thread that calls. Each family has its own tool, and is brought along by itself.

pub mod counters;
mod host;
mod probe;

use std::collections::BTreeSet;
use std::fmt;
use std::time::{Duration, Instant};

use sluicegate_iptables_save::restore::{BackEnd, Restore, Tool, Tools};
use sluicegate_iptables_save::{
    self as save, Action, Entry, Item, Rule, Save, State, Table, diff, find_target, normalise,
};

use super::addresses;
use crate::Error;
use crate::model::{Changes, Cluster, Family, ServiceName};
use crate::plan::iptables::{
    CANARY, CANARY_TABLES, FIREWALL, Feature, Jump, Planner, RuleCounts, Settings, Support, is_ours, jumps,
    tool_family,
};

use super::{Cleaned, Found};

/// Applies plans by the tools of one or both families.
#[derive(Debug)]
pub struct Applier {
    settings: Settings,
    sides: Vec<Side>,
}

/// One family.
#[derive(Debug)]
struct Side {
    tool: Tool,
    /// The same family's tool of the other back end, which packets pass as well.
    other: Option<Tool>,
    support: Option<Support>,
    planner: Option<Planner>,
    compared: Option<Instant>,
}

/// What one sync did in each family.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Synced {
    /// Each family by itself.
    pub families: Vec<FamilySynced>,
}

/// What one sync did in one family.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FamilySynced {
    /// IPv4 or IPv6.
    pub family: Family,
    /// The kernel interface.
    pub back_end: BackEnd,
    /// How the change was found.
    pub found: Found,
    /// Chains that were made, emptied or deleted.
    pub chains: usize,
    /// Rules that were added or deleted one by one.
    pub rules: usize,
    /// Bytes of input.
    pub bytes: usize,
    /// Time that the tools took.
    pub tool: Duration,
    /// Rules that are ours, jumps to them aside.
    pub total: RuleCounts,
    /// Rules of ours that were written.
    pub written: RuleCounts,
    /// The tool refused the change alone, so that everything was compared.
    pub was_refused: bool,
    /// What is not as it should be, and what that means.
    pub notices: Vec<String>,
}

impl Applier {
    /// Applies by these tools, one of each family.
    #[must_use]
    pub fn new(tools: Vec<Tool>, settings: Settings) -> Self {
        let sides = tools.into_iter().map(|tool| Side::new(tool, None));
        Self { settings, sides: sides.collect() }
    }

    /// Looks for the tools of `families`: of the back end that is asked for, or the one that `iptables-restore` itself uses.
    ///
    /// # Errors
    /// [`Error::Iptables`] when a family has none.
    pub fn find(back_end: Option<BackEnd>, families: &[Family], settings: Settings) -> Result<Self, Error> {
        let side = |family: &Family| find_tool(*family, back_end).map(|(tool, other)| Side::new(tool, other));
        let sides = families.iter().map(side);
        Ok(Self { sides: sides.collect::<Result<_, _>>()?, settings })
    }

    /// Brings the kernel to what `cluster` wants. What was applied last is trusted for an hour, in a large cluster for as long as
    /// the canary lives; then everything is compared.
    ///
    /// # Errors
    /// [`Error::Flag`] when the settings cannot be planned. [`Error::Iptables`] when a tool fails: the table it failed in holds what
    /// it held before, and the next sync compares everything.
    pub fn sync(&mut self, cluster: &mut Cluster, now: Instant) -> Result<Synced, Error> {
        let changes = cluster.take_changes();
        self.sync_changes(cluster, &changes, now)
    }

    /// The same for one who has taken the changes already: `changes` are those since the last sync, or since one that failed.
    ///
    /// # Errors
    /// As [`sync`](Self::sync), and [`Error::Refused`] where the tool names a rule of a service.
    pub fn sync_changes(
        &mut self,
        cluster: &Cluster,
        changes: &Changes,
        now: Instant,
    ) -> Result<Synced, Error> {
        let mut synced = Synced::default();
        let mut failed = None;
        for side in &mut self.sides {
            // One family that fails must not keep the other from its services.
            match side.sync(&self.settings, cluster, changes, now) {
                Ok(family) => synced.families.push(family),
                Err(error) => failed = Some(Error::both(failed, refusal(error))),
            }
        }
        failed.map_or(Ok(synced), Err)
    }

    /// Trusts nothing that was applied: the next sync compares everything with what the kernel holds.
    pub fn distrust(&mut self) {
        self.sides.iter_mut().for_each(|side| side.planner = None);
    }

    /// What the operator decides; after a change the next sync compares everything.
    pub fn settings_mut(&mut self) -> &mut Settings {
        self.distrust();
        &mut self.settings
    }

    /// The input that [`sync`](Self::sync) would send in each family, found by comparing with the kernel. Changes nothing: what
    /// only a trial would show to be missing counts as there, `nfacct` as missing unless some rule has it.
    ///
    /// # Errors
    /// As [`sync`](Self::sync).
    pub fn difference(&self, cluster: &Cluster) -> Result<Vec<(Family, Save<'static>)>, Error> {
        self.sides.iter().map(|side| side.difference(&self.settings, cluster)).collect()
    }

    /// Removes everything that is ours by every tool, and says what there was. Chain KUBE-FIREWALL and the jumps to it stay: the
    /// kubelet uses them too. [`Error::Iptables`] tells of a tool that fails, or of rules of others that refer to chains of ours.
    pub fn cleanup(&mut self) -> Cleaned {
        let mut cleaned = Cleaned::default();
        for side in &mut self.sides {
            side.planner = None;
            cleaned.add(side.cleanup());
        }
        cleaned
    }

    /// What tool and kernel of a family lack, once a sync has found out.
    #[must_use]
    pub fn support(&self, family: Family) -> Option<&Support> {
        self.sides.iter().find(|side| side.family() == family)?.support.as_ref()
    }
}

/// Every tool that is installed, for a cleanup of all that may have been used.
///
/// # Errors
/// [`Error::Iptables`] when there is none at all.
pub fn all_tools() -> Result<Vec<Tool>, Error> {
    let found = Family::BOTH.map(|family| Tools::find(tool_family(family)));
    let (mut tools, mut failed) = (Vec::new(), None);
    for found in found {
        match found {
            Ok(found) => tools.extend(found.legacy.into_iter().chain(found.nft)),
            Err(error) => failed = Some(error),
        }
    }
    match failed {
        Some(error) if tools.is_empty() => Err(iptables("looking for iptables")(error)),
        _ => Ok(tools),
    }
}

pub(super) fn find_tool(family: Family, back_end: Option<BackEnd>) -> Result<(Tool, Option<Tool>), Error> {
    let tools = Tools::find(tool_family(family)).map_err(iptables("looking for iptables"))?;
    let installed = [&tools.usual, &tools.nft, &tools.legacy].into_iter().flatten();
    let tool = installed.clone().find(|tool| back_end.is_none_or(|wanted| tool.back_end() == wanted));
    let Some(tool) = tool.cloned() else {
        let reason = format!("no iptables-restore of that kind is installed for {family}");
        return Err(Error::Flag { flag: "--iptables-backend".to_owned(), reason });
    };
    let other = installed.clone().find(|other| other.back_end() != tool.back_end()).cloned();
    Ok((tool, other))
}

impl Side {
    const fn new(tool: Tool, other: Option<Tool>) -> Self {
        Self { tool, other, support: None, planner: None, compared: None }
    }

    fn family(&self) -> Family {
        if self.tool.family() == save::Family::V4 { Family::V4 } else { Family::V6 }
    }

    fn sync(
        &mut self,
        settings: &Settings,
        cluster: &Cluster,
        changes: &Changes,
        now: Instant,
    ) -> Result<FamilySynced, Error> {
        let mut synced = FamilySynced {
            family: self.family(),
            back_end: self.tool.back_end(),
            found: Found::Changed,
            chains: 0,
            rules: 0,
            bytes: 0,
            tool: Duration::ZERO,
            total: RuleCounts::default(),
            written: RuleCounts::default(),
            was_refused: false,
            notices: Vec::new(),
        };
        let fresh = self.compared.is_some_and(|then| now.saturating_duration_since(then) < TRUSTED);
        if let Some(mut planner) = self.planner.take().filter(|planner| fresh || planner.is_large())
            && let Some(input) = self.change(&mut planner, settings, cluster, changes)?
        {
            match self.restore(&input, &mut synced) {
                Ok(()) => {
                    synced.total = planner.rule_counts();
                    self.planner = Some(planner);
                    return Ok(synced);
                }
                // Somebody has changed our chains: what was applied last is there no more.
                Err(error) if error.is_not_found() || error.cause().is_some() => synced.was_refused = true,
                Err(error) => return Err(iptables("programming the services")(error)),
            }
        }
        synced.found = Found::Compared;
        self.sync_all(settings, cluster, &mut synced)?;
        self.compared = Some(now);
        Ok(synced)
    }

    /// The input for a change since the last sync, unless somebody has flushed the tables.
    fn change(
        &self,
        planner: &mut Planner,
        settings: &Settings,
        cluster: &Cluster,
        changes: &Changes,
    ) -> Result<Option<Save<'static>>, Error> {
        let mangle = self.tool.save(Some("mangle"), false).map_err(iptables("looking for the canary"))?;
        let canary = Save::parse(&mangle).map_err(iptables("reading iptables-save"))?;
        if canary.table("mangle").and_then(|table| table.chain(CANARY)).is_none() {
            return Ok(None);
        }
        planner.set_local_addresses(addresses::of_interfaces()?);
        if settings.answers_localhost(self.family(), cluster) {
            host::route_localnet()?;
        }
        planner.sync(cluster, changes).map(Some)
    }

    fn sync_all(
        &mut self,
        settings: &Settings,
        cluster: &Cluster,
        synced: &mut FamilySynced,
    ) -> Result<(), Error> {
        let started = Instant::now();
        let support = match self.support.take() {
            Some(support) => support,
            None => probe::by_trial(&self.tool)?,
        };
        for feature in support.missing().filter(|feature| *feature != Feature::RandomFully) {
            synced.notices.push(format!("{feature} is missing here: {}", feature.without()));
        }
        self.support = Some(support.clone());
        let settings = host::settings(settings);
        if settings.answers_localhost(self.family(), cluster) {
            host::route_localnet()?;
        }
        let planner =
            Planner::new(self.family(), &settings, support, cluster, Some(addresses::of_interfaces()?))?;
        let text = self.tool.save(None, false).map_err(iptables("listing what there is"))?;
        synced.tool = started.elapsed();
        let current = Save::parse(&text).map_err(iptables("reading iptables-save"))?;
        let input = compare(&current, &planner)?;
        self.restore(&input, synced).map_err(iptables("programming the services"))?;
        self.canary(&current, synced);
        self.look_at_the_other(synced)?;
        synced.total = planner.rule_counts();
        self.planner = Some(planner);
        Ok(())
    }

    /// Makes the canary of table mangle, which nothing else of ours needs.
    fn canary(&self, current: &Save<'_>, synced: &mut FamilySynced) {
        if current.table("mangle").and_then(|table| table.chain(CANARY)).is_some() {
            return;
        }
        let input = format!("*mangle\n:{CANARY} - [0:0]\nCOMMIT\n");
        if let Err(error) = self.tool.restore(&input, HOW) {
            let notice = format!("no canary in table mangle, so everything is compared each time: {error}");
            synced.notices.push(notice);
        }
    }

    /// Rules of ours in the other back end, from before a switch, would go on working beside the new ones.
    fn look_at_the_other(&self, synced: &mut FamilySynced) -> Result<(), Error> {
        let Some(other) = &self.other else { return Ok(()) };
        let text = other.save(None, false).map_err(iptables("looking at the other back end"))?;
        let save = Save::parse(&text).map_err(iptables("reading iptables-save"))?;
        let ours = |table: &Table<'_>| {
            table.chains().any(|chain| chain.name() != FIREWALL && is_ours(table.name(), chain.name()))
        };
        if save.tables().any(ours) {
            let other = back_end(other.back_end());
            synced
                .notices
                .push(format!("back end {other} holds rules of a service proxy too; `cleanup` removes them"));
        }
        Ok(())
    }

    fn difference(&self, settings: &Settings, cluster: &Cluster) -> Result<(Family, Save<'static>), Error> {
        let text = self.tool.save(None, false).map_err(iptables("listing what there is"))?;
        let current = Save::parse(&text).map_err(iptables("reading iptables-save"))?;
        let support = match &self.support {
            Some(support) => support.clone(),
            None => probe::by_test(&self.tool, text.contains("-m nfacct "))?,
        };
        let settings = host::settings(settings);
        let planner =
            Planner::new(self.family(), &settings, support, cluster, Some(addresses::of_interfaces()?))?;
        Ok((self.family(), compare(&current, &planner)?))
    }

    fn restore(&self, input: &Save<'_>, synced: &mut FamilySynced) -> Result<(), save::Error> {
        if input.items.is_empty() {
            return Ok(());
        }
        let text = input.to_string();
        let started = Instant::now();
        self.tool.restore(&text, HOW)?;
        synced.tool += started.elapsed();
        synced.bytes += text.len();
        for table in input.tables() {
            for entry in &table.entries {
                match entry {
                    Entry::Rule(rule) => {
                        synced.rules += 1;
                        synced.written.add(table.name(), usize::from(rule.action() != Action::Delete));
                    }
                    _ => synced.chains += 1,
                }
            }
        }
        Ok(())
    }

    fn cleanup(&self) -> Result<Option<String>, Error> {
        let text = self.tool.save(None, false).map_err(iptables("listing what there is"))?;
        let mut current = Save::parse(&text).map_err(iptables("reading iptables-save"))?;
        let goes = |table: &str, chain: &str| is_ours(table, chain) && chain != FIREWALL;
        let input = removal(&mut current, goes).map_err(iptables("finding what is ours"))?;
        if input.items.is_empty() {
            return Ok(None);
        }
        self.tool.restore(&input.to_string(), HOW).map_err(iptables("removing what is ours"))?;
        let count = |wanted: fn(&Entry<'_>) -> bool| {
            input.tables().flat_map(|table| &table.entries).filter(|entry| wanted(entry)).count()
        };
        let chains = count(|entry| matches!(entry, Entry::Command(_)));
        let rules = count(|entry| matches!(entry, Entry::Rule(_)));
        let (family, back_end) = (self.family(), back_end(self.tool.back_end()));
        Ok(Some(format!("{chains} chains and {rules} jumps to them ({family}, {back_end})")))
    }
}

/// From what iptables-save shows to the plan, its canaries and its jumps.
fn compare(current: &Save<'_>, planner: &Planner) -> Result<Save<'static>, Error> {
    let comparing = iptables("comparing with the plan");
    let family = tool_family(planner.family());
    let mut desired = planner.input();
    for table in desired.tables_mut().filter(|table| CANARY_TABLES.contains(&table.name())) {
        table.entries.insert(0, Entry::Chain(save::Chain::new(CANARY, None, None).map_err(&comparing)?));
    }
    let state = State::of_family(current, family).map_err(&comparing)?;
    let desired = State::of_family(&desired, family).map_err(&comparing)?;
    // The canary of mangle is made apart: a kernel may lack that table.
    let owned = |table: &str, chain: &str| table != "mangle" && is_ours(table, chain);
    let mut input = diff(&state, &desired, owned).map_err(&comparing)?;
    for jump in jumps(planner.support()) {
        if !has_jump(&state, &jump, family).map_err(&comparing)? {
            let rule = Rule::new(Action::Insert(None), jump.from, jump.words).map_err(&comparing)?;
            add(&mut input, jump.table, Entry::Rule(rule)).map_err(&comparing)?;
        }
    }
    Ok(input)
}

pub(super) fn has_jump(state: &State<'_>, jump: &Jump, family: save::Family) -> Result<bool, save::Error> {
    let wanted = normalise(&jump.words, family)?;
    let Some(rules) = state.rules(jump.table, jump.from) else { return Ok(false) };
    for rule in rules.iter().filter(|rule| rule.text().contains(jump.to)) {
        if normalise(rule.text(), family)? == wanted {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Adds a line to a table of the input, filter before nat.
pub(super) fn add(
    input: &mut Save<'static>,
    name: &'static str,
    entry: Entry<'static>,
) -> Result<(), save::Error> {
    if input.table(name).is_none() {
        let at = if name == "filter" { 0 } else { input.items.len() };
        input.items.insert(at, Item::Table(Table::new(name)?));
    }
    if let Some(table) = input.tables_mut().find(|table| table.name() == name) {
        table.entries.push(entry);
    }
    Ok(())
}

/// What deletes the jumps to the chains that go, and then those. `current` loses its jumps on the way.
pub(super) fn removal(
    current: &mut Save<'_>,
    goes: impl Fn(&str, &str) -> bool,
) -> Result<Save<'static>, save::Error> {
    let mut jumps = Vec::new();
    for table in current.tables_mut() {
        let name = CANARY_TABLES.into_iter().find(|known| *known == table.name());
        let Some(name) = name else { continue };
        let mut kept = Vec::with_capacity(table.entries.len());
        for entry in table.entries.drain(..) {
            match entry {
                Entry::Rule(rule) if is_jump(name, &rule, &goes)? => jumps.push((name, rule)),
                other => kept.push(other),
            }
        }
        table.entries = kept;
    }
    let state = State::of(current)?;
    let none = State::of_family(&Save::default(), state.family())?;
    let mut input = diff(&state, &none, &goes)?;
    for (table, rule) in jumps.into_iter().rev() {
        let rule = Rule::new(Action::Delete, rule.chain().to_owned(), rule.text().to_owned())?;
        if input.table(table).is_none() {
            add(&mut input, table, Entry::Rule(rule))?;
        } else if let Some(table) = input.tables_mut().find(|other| other.name() == table) {
            table.entries.insert(0, Entry::Rule(rule));
        }
    }
    Ok(input)
}

/// A rule of a built-in chain that jumps to a chain of ours which goes.
fn is_jump(table: &str, rule: &Rule<'_>, goes: impl Fn(&str, &str) -> bool) -> Result<bool, save::Error> {
    if goes(table, rule.chain()) || !rule.text().contains("KUBE-") {
        return Ok(false);
    }
    let built_in = ["INPUT", "FORWARD", "OUTPUT", "PREROUTING", "POSTROUTING"].contains(&rule.chain());
    let spec = rule.spec()?;
    let target = spec.target_name();
    let ours = |target: &str| goes(table, target) && find_target(target, save::Family::V4).is_none();
    Ok(built_in && target.is_some_and(ours))
}

/// The same error with the service whose rule was refused, where the tool tells the rule.
fn refusal(error: Error) -> Error {
    let Error::Iptables { source, .. } = &error else { return error };
    let save::Error::Refused(refused) = source.as_ref() else { return error };
    match refused.text.as_deref().and_then(service_of) {
        Some(service) => Error::Refused { services: vec![(service, source.to_string())] },
        None => error,
    }
}

/// The service that a rule names in its comment, as each rule of a service does: `demo/web:http cluster IP`.
fn service_of(line: &str) -> Option<ServiceName> {
    let (_, rest) = line.strip_prefix("-A ")?.split_once("--comment ")?;
    let comment = rest.trim_start_matches('"');
    let end = comment.find([':', ' ', '"']).unwrap_or(comment.len());
    let (namespace, name) = comment.get(..end)?.split_once('/')?;
    ServiceName::new(namespace, name)
}

pub(super) fn iptables(doing: &'static str) -> impl Fn(save::Error) -> Error {
    move |source| Error::Iptables { doing, source: Box::new(source) }
}

/// The name of a back end, as `--iptables-backend` takes it.
pub(super) const fn back_end(back_end: BackEnd) -> &'static str {
    match back_end {
        BackEnd::Legacy => "legacy",
        _ => "nft",
    }
}

impl Synced {
    /// What is not as it should be, each thing once.
    pub fn notices(&self) -> impl Iterator<Item = String> + '_ {
        let all = self
            .families
            .iter()
            .flat_map(|synced| synced.notices.iter().map(|notice| format!("{}: {notice}", synced.family)));
        all.collect::<BTreeSet<_>>().into_iter()
    }
}

impl fmt::Display for Synced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let families: Vec<_> = self.families.iter().map(ToString::to_string).collect();
        f.write_str(&families.join("; "))
    }
}

impl fmt::Display for FamilySynced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): ", self.family, back_end(self.back_end))?;
        match self.bytes {
            0 => f.write_str("nothing to change"),
            bytes => write!(f, "{} chains and {} rules in {bytes} bytes", self.chains, self.rules),
        }
    }
}

/// `--noflush --counters --wait=5`, as kube-proxy runs it.
pub(super) const HOW: Restore =
    Restore { noflush: true, counters: true, test: false, wait: Some(5), wait_interval: None };
/// After this time everything is compared once more, as kube-proxy does.
pub(super) const TRUSTED: Duration = Duration::from_secs(3600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_of_a_service_is_known_by_its_comment() {
        let service = |line| service_of(line).map(|name| name.to_string());
        for line in [
            "-A KUBE-SERVICES -m comment --comment \"demo/web:http cluster IP\" -m tcp -p tcp -j KUBE-SVC-X",
            "-A KUBE-SEP-X -m comment --comment demo/web -s 10.0.0.1 -j KUBE-MARK-MASQ",
            "-A KUBE-SEP-X -m comment --comment demo/web:http -m tcp -p tcp -j DNAT --to-destination 10.0.0.1:80",
        ] {
            assert_eq!(service(line).as_deref(), Some("demo/web"), "{line}");
        }
        for line in [
            "-A KUBE-POSTROUTING -m comment --comment \"kubernetes service traffic requiring SNAT\" -j MASQUERADE",
            "-A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP",
            ":KUBE-SVC-X - [0:0]",
            "COMMIT",
        ] {
            assert_eq!(service(line), None, "{line}");
        }
    }
}
