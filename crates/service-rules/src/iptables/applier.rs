//! Applies plans to iptables with the smallest input of `iptables-restore --noflush`.
//!
//! The first sync compares the plan with the output of `iptables-save` and sends the difference. From then on
//! the applied state is in memory, and a sync sends the changes. There is no generation as in nftables: the
//! canary, an empty chain in table mangle, shows whether another program has flushed everything. The tool
//! refuses input that does not match the kernel's rules (a rule to delete does not exist) as a whole; then
//! everything is compared again.
//!
//! Tools run in the network namespace of the calling thread. Each family has its own tool, and is synced
//! separately.

use std::time::{Duration, Instant};

use sluicegate_iptables_save::restore::{BackEnd, Restore, Tool, Tools};
use sluicegate_iptables_save::{self as save, Action, Entry, Save, State, Table, diff};
use sluicegate_services::{Changes, Cluster, Family, ServiceName};

use super::jumps::{change_jumps, ensure_guard, list, removal, take_jumps};
use super::planner::tool_family;
use super::synced::back_end;
use super::{
    CANARY, CANARY_TABLES, FamilySynced, Feature, Planner, RuleCounts, Settings, Support, Synced, host,
    is_ours, jumps, probe,
};
use crate::summary::counted;
use crate::{Cleaned, Error, Found, addresses};

/// Applies plans with the tools of one or both families.
#[derive(Debug)]
pub struct Applier {
    settings: Settings,
    sides: Vec<Side>,
}

/// The state of one family.
#[derive(Debug)]
struct Side {
    tool: Tool,
    /// The tool of the other back end, whose rules apply to packets as well.
    other: Option<Tool>,
    support: Option<Support>,
    planner: Option<Planner>,
    compared: Option<Instant>,
}

impl Applier {
    /// Creates an applier over these tools, one of each family.
    #[must_use]
    pub fn new(tools: Vec<Tool>, settings: Settings) -> Self {
        let sides = tools.into_iter().map(|tool| Side::new(tool, None));
        Self { settings, sides: sides.collect() }
    }

    /// Looks for the tools of `families`: of the given back end, or of that of `iptables-restore` itself.
    ///
    /// # Errors
    /// [`Error::NoTool`] when a family has none.
    pub fn find(back_end: Option<BackEnd>, families: &[Family], settings: Settings) -> Result<Self, Error> {
        let side = |family: &Family| find_tool(*family, back_end).map(|(tool, other)| Side::new(tool, other));
        let sides = families.iter().map(side);
        Ok(Self { sides: sides.collect::<Result<_, _>>()?, settings })
    }

    /// Programs the services of `cluster`. Everything is compared with the kernel after an hour, and in a
    /// large cluster only if the canary is missing.
    ///
    /// # Errors
    /// [`Error::Services`] when the settings cannot be planned. [`Error::Iptables`] when a tool fails: the
    /// table it failed in is as before, and the next sync compares everything.
    pub fn sync(&mut self, cluster: &mut Cluster, now: Instant) -> Result<Synced, Error> {
        let changes = cluster.take_changes();
        self.sync_changes(cluster, &changes, now)
    }

    /// Syncs as [`sync`](Self::sync) does, with changes that the caller has taken from the cluster: those
    /// since the last call.
    ///
    /// # Errors
    /// As [`sync`](Self::sync), and [`Error::Refused`] if the tool names a rule of a service.
    pub fn sync_changes(
        &mut self,
        cluster: &Cluster,
        changes: &Changes,
        now: Instant,
    ) -> Result<Synced, Error> {
        let mut synced = Synced::default();
        let mut failed = None;
        for side in &mut self.sides {
            // A failure in one family must not prevent changes in the other.
            match side.sync(&self.settings, cluster, changes, now) {
                Ok(family) => synced.families.push(family),
                Err(error) => failed = Some(Error::both(failed, refusal(error))),
            }
        }
        failed.map_or(Ok(synced), Err)
    }

    /// Discards the applied state: the next sync compares everything with the kernel.
    pub fn invalidate(&mut self) {
        self.sides.iter_mut().for_each(|side| side.planner = None);
    }

    /// Returns the settings for changes; the next sync compares everything.
    pub fn settings_mut(&mut self) -> &mut Settings {
        self.invalidate();
        &mut self.settings
    }

    /// Returns the input that [`sync`](Self::sync) would send in each family after comparing with the kernel.
    /// Changes nothing: features that only a trial could detect are assumed to exist, except for `nfacct`,
    /// which is assumed to be missing unless a rule has it.
    ///
    /// # Errors
    /// As [`sync`](Self::sync).
    pub fn difference(&self, cluster: &Cluster) -> Result<Vec<(Family, Save<'static>)>, Error> {
        self.sides.iter().map(|side| side.difference(&self.settings, cluster)).collect()
    }

    /// Removes our chains and jumps with every tool, and returns what was removed. Chain KUBE-FIREWALL and
    /// the jumps to it remain, as the kubelet uses them too. [`Error::Iptables`] means that a tool failed, or
    /// that rules of other programs refer to our chains.
    pub fn cleanup(&mut self) -> Cleaned {
        let mut cleaned = Cleaned::default();
        for side in &mut self.sides {
            side.planner = None;
            cleaned.add(side.cleanup());
        }
        cleaned
    }

    /// Returns the features of the tool and the kernel for a family, once a sync has probed them.
    #[must_use]
    pub fn support(&self, family: Family) -> Option<&Support> {
        self.sides.iter().find(|side| side.family() == family)?.support.as_ref()
    }
}

/// Finds all installed tools, to clean up whichever was used.
///
/// # Errors
/// [`Error::Iptables`] when none is installed.
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

pub(crate) fn find_tool(family: Family, back_end: Option<BackEnd>) -> Result<(Tool, Option<Tool>), Error> {
    let tools = Tools::find(tool_family(family)).map_err(iptables("looking for iptables"))?;
    let installed = [&tools.usual, &tools.nft, &tools.legacy].into_iter().flatten();
    let tool = installed.clone().find(|tool| back_end.is_none_or(|wanted| tool.back_end() == wanted));
    let Some(tool) = tool.cloned() else {
        return Err(Error::NoTool { family });
    };
    let other = installed.clone().find(|other| other.back_end() != tool.back_end()).cloned();
    Ok((tool, other))
}

impl Side {
    const fn new(tool: Tool, other: Option<Tool>) -> Self {
        Self { tool, other, support: None, planner: None, compared: None }
    }

    fn family(&self) -> Family {
        if self.tool.family() == save::Family::Ipv4 { Family::Ipv4 } else { Family::Ipv6 }
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
            faults: Vec::new(),
            notices: Vec::new(),
        };
        let age = self.compared.map(|then| now.saturating_duration_since(then));
        let is_trusted = |planner: &Planner| {
            // What guards traffic and is missing is looked for again soon.
            let is_well = planner.faults().next().is_none();
            let most = if is_well { TRUSTED } else { TRUSTED_WITH_FAULTS };
            age.is_some_and(|age| age < most) || (is_well && planner.is_large())
        };
        if let Some(mut planner) = self.planner.take().filter(is_trusted)
            && let Some(input) = self.change(&mut planner, cluster, changes)?
        {
            match self.restore(&input, &mut synced) {
                Ok(()) => {
                    synced.total = planner.rule_counts();
                    synced.faults = planner.faults().collect();
                    self.planner = Some(planner);
                    return Ok(synced);
                }
                // Another program has changed our chains: the applied state no longer exists.
                Err(error) if error.is_not_found() || error.cause().is_some() => synced.was_refused = true,
                Err(error) => return Err(iptables("programming the services")(error)),
            }
        }
        synced.found = Found::Compared;
        self.sync_all(settings, cluster, &mut synced)?;
        self.compared = Some(now);
        Ok(synced)
    }

    /// Returns the input for a change since the last sync, unless another program has flushed the tables.
    fn change(
        &self,
        planner: &mut Planner,
        cluster: &Cluster,
        changes: &Changes,
    ) -> Result<Option<Save<'static>>, Error> {
        let mangle = self.tool.save(Some("mangle"), false).map_err(iptables("looking for the canary"))?;
        let canary = Save::parse(&mangle).map_err(iptables("reading iptables-save"))?;
        if canary.table("mangle").and_then(|table| table.chain(CANARY)).is_none() {
            return Ok(None);
        }
        planner.set_local_addresses(addresses::of_interfaces()?);
        let answered = planner.answers_localhost();
        let input = planner.sync(cluster, changes)?;
        if planner.answers_localhost() && !answered {
            // The guard and the jumps to it come with a comparison, and before the sysctl.
            return Ok(None);
        }
        if planner.answers_localhost() {
            host::route_localnet()?;
        }
        Ok(Some(input))
    }

    fn sync_all(
        &mut self,
        settings: &Settings,
        cluster: &Cluster,
        synced: &mut FamilySynced,
    ) -> Result<(), Error> {
        let started = Instant::now();
        // What was missing may have been loaded since; what was there is asked for again after a failure.
        let support = match self.support.take().filter(|support| support.missing().len() == 0) {
            Some(support) => support,
            None => probe::by_trial(&self.tool)?,
        };
        let is_told = |feature: &Feature| *feature != Feature::RandomFully && feature.unguarded().is_none();
        for feature in support.missing().filter(is_told) {
            synced.notices.push(format!("{feature} is missing here: {}", feature.without()));
        }
        let settings = host::settings(settings);
        let planner = Planner::new(
            self.family(),
            &settings,
            support.clone(),
            cluster,
            Some(addresses::of_interfaces()?),
        )?;
        let text = list(&self.tool).map_err(iptables("listing what there is"))?;
        synced.tool = started.elapsed();
        let current = Save::parse(&text).map_err(iptables("reading iptables-save"))?;
        let input = compare(&current, &planner)?;
        self.restore(&input, synced).map_err(iptables("programming the services"))?;
        if planner.answers_localhost() {
            // Not before the rule that keeps the link from what listens on loopback alone.
            host::route_localnet()?;
        }
        self.canary(&current, synced);
        self.look_at_the_other(synced);
        synced.total = planner.rule_counts();
        synced.faults = planner.faults().collect();
        self.support = Some(support);
        self.planner = Some(planner);
        Ok(())
    }

    /// Creates the canary of table mangle, in which there are no other chains of ours.
    fn canary(&self, current: &Save<'_>, synced: &mut FamilySynced) {
        if current.table("mangle").and_then(|table| table.chain(CANARY)).is_some() {
            return;
        }
        let input = format!("*mangle\n:{CANARY} - [0:0]\nCOMMIT\n");
        if let Err(error) = self.tool.apply_text(&input, HOW) {
            let notice = format!("no canary in table mangle, so everything is compared each time: {error}");
            synced.notices.push(notice);
        }
    }

    /// Rules of ours in the other back end, from before a switch, would go on working beside the new ones. It
    /// is only a hint, so that a back end which cannot be looked at is one too: only root may list the tables
    /// of the legacy one.
    fn look_at_the_other(&self, synced: &mut FamilySynced) {
        let Some(other) = &self.other else { return };
        let name = back_end(other.back_end());
        let ours = |table: &Table<'_>| table.chains().any(|chain| is_ours(table.name(), chain.name()));
        let holds_ours = other.save(None, false).and_then(|text| Ok(Save::parse(&text)?.tables().any(ours)));
        match holds_ours {
            Ok(false) => {}
            Ok(true) => synced
                .notices
                .push(format!("back end {name} holds rules of a service proxy too; `cleanup` removes them")),
            Err(error) => synced.notices.push(format!(
                "back end {name} may hold rules of a service proxy too; it cannot be read: {error}"
            )),
        }
    }

    fn difference(&self, settings: &Settings, cluster: &Cluster) -> Result<(Family, Save<'static>), Error> {
        let text = list(&self.tool).map_err(iptables("listing what there is"))?;
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
        self.tool.apply_text(&text, HOW)?;
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
        let text = list(&self.tool).map_err(iptables("listing what there is"))?;
        let mut current = Save::parse(&text).map_err(iptables("reading iptables-save"))?;
        let input = removal(&mut current, is_ours).map_err(iptables("finding what is ours"))?;
        if input.items.is_empty() {
            return Ok(None);
        }
        self.tool.apply_text(&input.to_string(), HOW).map_err(iptables("removing what is ours"))?;
        let count = |wanted: fn(&Entry<'_>) -> bool| {
            input.tables().flat_map(|table| &table.entries).filter(|entry| wanted(entry)).count()
        };
        let chains = count(|entry| matches!(entry, Entry::Command(_)));
        let rules = count(|entry| matches!(entry, Entry::Rule(_)));
        let (family, back_end) = (self.family(), back_end(self.tool.back_end()));
        let (chains, jumps) = (counted(chains, "chain"), counted(rules, "jump"));
        Ok(Some(format!("{chains} and {jumps} to them ({family}, {back_end})")))
    }
}

/// From what iptables-save shows to the plan, its canaries, its guard and its jumps.
fn compare(current: &Save<'_>, planner: &Planner) -> Result<Save<'static>, Error> {
    let comparing = iptables("comparing with the plan");
    let family = tool_family(planner.family());
    let mut desired = planner.input();
    for table in desired.tables_mut().filter(|table| CANARY_TABLES.contains(&table.name())) {
        table.entries.insert(0, Entry::Chain(save::Chain::new(CANARY, None, None).map_err(&comparing)?));
    }
    let state = State::of_family(current, family).map_err(&comparing)?;
    let desired = State::of_family(&desired, family).map_err(&comparing)?;
    // The canary of mangle is created separately, as a kernel may lack that table.
    let owned = |table: &str, chain: &str| table != "mangle" && is_ours(table, chain);
    let mut rest = current.clone();
    drop(take_jumps(&mut rest, is_ours));
    let rest = State::of_family(&rest, family).map_err(&comparing)?;
    let mut input = diff(&rest, &desired, owned).map_err(&comparing)?.into_save();
    if let Some(words) = planner.guard() {
        ensure_guard(&mut input, &state, words).map_err(&comparing)?;
    }
    let jumps = jumps(planner.support(), planner.answers_localhost());
    change_jumps(&mut input, &state, jumps, is_ours).map_err(&comparing)?;
    Ok(input)
}

/// Converts an error into one that names the service, if the tool names a refused rule.
fn refusal(error: Error) -> Error {
    let Error::Iptables { source, .. } = &error else { return error };
    let save::Error::Refused(refused) = source.as_ref() else { return error };
    match refused.text.as_deref().and_then(service_of) {
        Some(service) => Error::Refused { services: vec![(service, source.to_string())] },
        None => error,
    }
}

/// Returns the service in the comment of a rule, which each rule of a service has: `demo/web:http cluster
/// IP`.
fn service_of(line: &str) -> Option<ServiceName> {
    let (_, rest) = line.strip_prefix("-A ")?.split_once("--comment ")?;
    let comment = rest.trim_start_matches('"');
    let end = comment.find([':', ' ', '"']).unwrap_or(comment.len());
    let (namespace, name) = comment.get(..end)?.split_once('/')?;
    ServiceName::new(namespace, name).ok()
}

pub(crate) fn iptables(doing: &'static str) -> impl Fn(save::Error) -> Error {
    move |source| Error::Iptables { doing, source: Box::new(source) }
}

/// `--noflush --counters --wait=5`, as kube-proxy runs it.
pub(crate) const HOW: Restore = Restore { counters: true, test: false, wait: Some(5), wait_interval: None };
/// The time after which everything is compared again, as in kube-proxy.
pub(crate) const TRUSTED: Duration = Duration::from_secs(3600);
/// The same while something that guards traffic is missing.
const TRUSTED_WITH_FAULTS: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_of_a_service_is_recognised_by_its_comment() {
        let service = |line| service_of(line).map(|name| name.to_string());
        for line in [
            "-A KUBE-SERVICES -m comment --comment \"demo/web:http cluster IP\" -m tcp -p tcp -j KUBE-SVC-X",
            "-A KUBE-SEP-X -m comment --comment demo/web -s 10.0.0.1 -j KUBE-MARK-MASQ",
            "-A KUBE-SEP-X -m comment --comment demo/web:http -m tcp -p tcp -j DNAT --to-destination \
                10.0.0.1:80",
        ] {
            assert_eq!(service(line).as_deref(), Some("demo/web"), "{line}");
        }
        for line in [
            "-A KUBE-POSTROUTING -m comment --comment \"kubernetes service traffic requiring SNAT\" -j \
                MASQUERADE",
            "-A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP",
            ":KUBE-SVC-X - [0:0]",
            "COMMIT",
        ] {
            assert_eq!(service(line), None, "{line}");
        }
    }
}
