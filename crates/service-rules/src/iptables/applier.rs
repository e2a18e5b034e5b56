//! Applies plans to the rules of iptables with the smallest change, lines as of `iptables-restore --noflush`.
//!
//! The first sync compares the plan with the rules of the kernel and sends the difference. From then on the
//! applied state is in memory, and a sync sends the changes. The canary, an empty chain in table mangle,
//! shows whether another program has flushed everything. Lines that do not match the kernel's rules (a rule
//! to delete does not exist) are refused as a whole; then everything is compared again.
//!
//! No program is started. Sockets belong to the network namespace of the thread that opens them. Each family
//! is synced separately.

use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use sluicegate_iptables_save::{self as save, Action, Entry, Save, State, Table, diff};
use sluicegate_services::{Changes, Cluster, Family, NodePorts, ServiceName};
use sluicegate_xtables::{self as xtables, BackEnd};

use super::jumps::{change_jumps, ensure_guard, removal, take_jumps};
use super::planner::tool_family;
use super::programmed::programmed;
use super::{
    CANARY, CANARY_TABLES, FamilySynced, Feature, Generation, Planner, RuleCounts, Settings, Support, Synced,
    Tables, host, is_ours, jumps, probe, tables,
};
use crate::flows::Programmed;
use crate::summary::counted;
use crate::{Cleaned, Error, Found, addresses};

/// Applies plans to the rules of one or both families.
#[derive(Debug)]
pub struct Applier {
    settings: Settings,
    sides: Vec<Side>,
    /// The generation of `nf_tables` that this and commits which were ignored led to; `None` in the legacy
    /// back end.
    generation: Option<u32>,
}

/// The state of one family.
#[derive(Debug)]
struct Side {
    tables: Box<dyn Tables>,
    /// The rules of the other back end, which apply to packets as well.
    other: Option<Box<dyn Tables>>,
    support: Option<Support>,
    planner: Option<Planner>,
    compared: Option<Instant>,
    /// What comparisons found before a sync changed it.
    found: Programmed,
}

impl Applier {
    /// Opens sockets in the network namespace of the calling thread, for the rules of `families`: in the
    /// given back end, or in that of [`choose`](super::choose).
    ///
    /// # Errors
    /// [`Error::Iptables`] when a capability is missing, or the kernel has no netfilter.
    pub fn open(back_end: Option<BackEnd>, families: &[Family], settings: Settings) -> Result<Self, Error> {
        let opening = iptables("opening the tables of iptables");
        let tables = tables::open(back_end, families).map_err(&opening)?;
        let other = |tables: &dyn Tables| match tables.back_end() {
            BackEnd::Legacy => BackEnd::Nft,
            BackEnd::Nft => BackEnd::Legacy,
        };
        let mut sides = Vec::with_capacity(tables.len());
        for tables in tables {
            let other = tables::open(Some(other(&*tables)), &[tables.family()]).map_err(&opening)?;
            sides.push(Side { other: other.into_iter().next(), ..Side::new(tables) });
        }
        Ok(Self { settings, sides, generation: None })
    }

    /// Creates an applier over these tables, each of another family.
    #[must_use]
    pub fn with_tables(tables: Vec<Box<dyn Tables>>, settings: Settings) -> Self {
        Self { settings, sides: tables.into_iter().map(Side::new).collect(), generation: None }
    }

    /// Programs the services of `cluster`. Everything is compared with the kernel after an hour, and in a
    /// large cluster only if the canary is missing.
    ///
    /// # Errors
    /// [`Error::Services`] when the settings cannot be planned. [`Error::Iptables`] when the kernel refuses a
    /// change: the table of it is as before, and the next sync compares everything.
    pub fn sync(&mut self, cluster: &mut Cluster, now: Instant) -> Result<Synced, Error> {
        let changes = cluster.take_changes();
        self.sync_changes(cluster, &changes, now)
    }

    /// Syncs as [`sync`](Self::sync) does, with changes that the caller has taken from the cluster: those
    /// since the last call.
    ///
    /// # Errors
    /// As [`sync`](Self::sync), and [`Error::Refused`] for a rule of a service.
    pub fn sync_changes(
        &mut self,
        cluster: &Cluster,
        changes: &Changes,
        now: Instant,
    ) -> Result<Synced, Error> {
        let before = self.generation_and_commits()?;
        if before.is_some_and(|(now, _)| self.generation.is_some_and(|expected| expected != now)) {
            self.invalidate();
        }
        // Asked before the first sync too: from then on a change of another program is seen.
        self.is_disturbed()?;
        let mut synced = Synced::default();
        let mut failed = None;
        for side in &mut self.sides {
            // A failure in one family must not prevent changes in the other.
            match side.sync(&self.settings, cluster, changes, now) {
                Ok(family) => synced.families.push(family),
                Err(error) => failed = Some(Error::both(failed, error)),
            }
        }
        // Computed, as the generation that is read now may be that of another program's commit already.
        self.generation = match (before, self.generation_and_commits()?) {
            (Some((id, before)), Some((_, after))) => Some(id.wrapping_add(after.wrapping_sub(before))),
            _ => None,
        };
        failed.map_or(Ok(synced), Err)
    }

    /// Returns whether rules are in `nf_tables`, whose events tell of the changes of other programs.
    #[must_use]
    pub fn has_events(&self) -> bool {
        self.sides.iter().any(|side| side.tables.back_end() == BackEnd::Nft)
    }

    /// Returns `true` if no other program has committed to `nf_tables` since the last sync, except for
    /// commits that were [ignored](Self::ignore_commit); always in the legacy back end.
    ///
    /// # Errors
    /// [`Error::Iptables`] when the kernel cannot be asked.
    pub fn is_current(&mut self) -> Result<bool, Error> {
        let now = self.generation_and_commits()?.map(|(id, _)| id);
        Ok(now.is_none() || now == self.generation)
    }

    /// Records that the commit of another program led to this generation and changed no rule of ours.
    pub fn ignore_commit(&mut self, generation: u32) {
        if self.generation.is_some_and(|before| before.wrapping_add(1).max(1) == generation) {
            self.generation = Some(generation);
        }
    }

    /// Returns `true` if another program has made a table of the legacy back end larger or smaller since the last
    /// sync, or during it; the next sync compares everything then. There are no events of that, and this costs a
    /// few system calls.
    ///
    /// # Errors
    /// [`Error::Iptables`] when the kernel cannot be asked.
    pub fn is_disturbed(&mut self) -> Result<bool, Error> {
        let mut is_disturbed = false;
        for side in &mut self.sides {
            if side.tables.is_disturbed().map_err(iptables(LOOKING))? {
                // What is not known to be applied is compared anyway.
                is_disturbed |= side.planner.take().is_some();
            }
        }
        Ok(is_disturbed)
    }

    /// Returns the generation of `nf_tables`, and the number of commits that this has made.
    fn generation_and_commits(&mut self) -> Result<Option<(u32, u32)>, Error> {
        let mut found: Option<(u32, u32)> = None;
        for side in self.sides.iter_mut().filter(|side| side.tables.back_end() == BackEnd::Nft) {
            if let Some(Generation { id, commits }) = side.tables.generation().map_err(iptables(LOOKING))? {
                let before = found.map_or(0, |(_, before)| before);
                found = Some((id, before.wrapping_add(commits)));
            }
        }
        Ok(found)
    }

    /// Returns the tables of each family.
    pub(super) fn tables_mut(&mut self) -> impl Iterator<Item = &mut Box<dyn Tables>> {
        self.sides.iter_mut().map(|side| &mut side.tables)
    }

    /// Discards the applied state: the next sync compares everything with the kernel.
    pub fn invalidate(&mut self) {
        self.sides.iter_mut().for_each(|side| side.planner = None);
    }

    /// Takes the frontends that comparisons found in the kernel since the last call, before syncs changed
    /// them.
    pub fn take_found(&mut self) -> Programmed {
        let mut found = Programmed::default();
        self.sides.iter_mut().for_each(|side| found.append(std::mem::take(&mut side.found)));
        found
    }

    /// Returns the addresses that answer node ports in a family.
    #[must_use]
    pub fn node_ports(&self, cluster: &Cluster, family: Family, local: &[IpAddr]) -> NodePorts {
        self.settings.node_port_addresses.resolve(family, cluster.node(), Some(local))
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
    pub fn difference(&mut self, cluster: &Cluster) -> Result<Vec<(Family, Save<'static>)>, Error> {
        self.sides.iter_mut().map(|side| side.difference(&self.settings, cluster)).collect()
    }

    /// Removes our chains and jumps, and returns what was removed. Chain KUBE-FIREWALL and the jumps to it
    /// remain, as the kubelet uses them too. [`Error::Iptables`] means that the kernel refused it,
    /// [`Error::Rules`] that rules of other programs refer to our chains.
    pub fn cleanup(&mut self) -> Cleaned {
        let mut cleaned = Cleaned::default();
        for side in &mut self.sides {
            side.planner = None;
            cleaned.add(side.cleanup(is_ours));
        }
        cleaned
    }

    /// Returns the features of the kernel for a family, once a sync has probed them.
    #[must_use]
    pub fn support(&self, family: Family) -> Option<&Support> {
        self.sides.iter().find(|side| side.family() == family)?.support.as_ref()
    }
}

/// Removes the chains and jumps of this mode from the current network namespace, in both families and
/// whichever back ends are in use, as [`Applier::cleanup`] does.
pub fn cleanup() -> Cleaned {
    cleanup_except(|_, _| false)
}

/// Removes them as [`cleanup`] does, but for the chains of a table that another mode uses.
pub fn cleanup_except(is_used: impl Fn(&str, &str) -> bool) -> Cleaned {
    let goes = |table: &str, chain: &str| is_ours(table, chain) && !is_used(table, chain);
    let mut cleaned = Cleaned::default();
    for tables in tables::open_used() {
        let opened = tables.map_err(iptables("opening the tables of iptables"));
        cleaned.add(opened.and_then(|tables| Side::new(tables).cleanup(goes)));
    }
    cleaned
}

impl Side {
    fn new(tables: Box<dyn Tables>) -> Self {
        Self {
            tables,
            other: None,
            support: None,
            planner: None,
            compared: None,
            found: Programmed::default(),
        }
    }

    fn family(&self) -> Family {
        self.tables.family()
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
            back_end: self.tables.back_end(),
            found: Found::Changed,
            chains: 0,
            rules: 0,
            bytes: 0,
            kernel: Duration::ZERO,
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
            match self.apply(&input, &mut synced) {
                Ok(()) => {
                    synced.total = planner.rule_counts();
                    synced.faults = planner.faults().collect();
                    self.planner = Some(planner);
                    return Ok(synced);
                }
                // Another program has changed our chains: the applied state no longer exists.
                Err(error) if error.is_refusal() => synced.was_refused = true,
                Err(error) => return Err(iptables(PROGRAMMING)(error)),
            }
        }
        synced.found = Found::Compared;
        self.sync_all(settings, cluster, &mut synced)?;
        self.compared = Some(now);
        Ok(synced)
    }

    /// Returns the input for a change since the last sync, unless another program has flushed the tables.
    fn change(
        &mut self,
        planner: &mut Planner,
        cluster: &Cluster,
        changes: &Changes,
    ) -> Result<Option<Save<'static>>, Error> {
        for table in CANARY_TABLES {
            if !self.tables.has_chain(table, CANARY).map_err(iptables("looking for the canary"))? {
                return Ok(None);
            }
        }
        planner.set_local_addresses(addresses::interface_addresses()?);
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
        let current = self.tables.list().map_err(iptables("listing what there is"))?;
        // What was missing may have been loaded since; what was there is asked for again after a failure.
        let support = match self.support.take().filter(|support| support.missing().len() == 0) {
            Some(support) => support,
            None => probe::by_trial(&mut *self.tables, &current)?,
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
            Some(addresses::interface_addresses()?),
        )?;
        synced.kernel = started.elapsed();
        self.found.append(programmed(&current, self.family()));
        let mut has_canary = has_canary_in(&current);
        let mut input = compare(current, &planner)?;
        let mut attempts = 1..ATTEMPTS;
        loop {
            match self.apply(&input, synced) {
                // A chain or rule is not there, or is there already: no service is at fault, but another program
                // that has changed the tables since they were listed.
                Err(xtables::Error::Line { .. }) if attempts.next().is_some() => {
                    let current = self.tables.list().map_err(iptables("listing what there is"))?;
                    has_canary = has_canary_in(&current);
                    input = compare(current, &planner)?;
                }
                Err(error) if error.is_refusal() => break self.apply_by_lines(&input)?,
                done => break done.map_err(iptables(PROGRAMMING))?,
            }
        }
        if planner.answers_localhost() {
            // Not before the rule that keeps the link from what listens on loopback alone.
            host::route_localnet()?;
        }
        if !has_canary {
            self.canary(synced);
        }
        self.look_at_the_other(synced);
        synced.total = planner.rule_counts();
        synced.faults = planner.faults().collect();
        self.support = Some(support);
        self.planner = Some(planner);
        Ok(())
    }

    /// Creates the canary of table mangle, in which there are no other chains of ours.
    fn canary(&mut self, synced: &mut FamilySynced) {
        let input = format!("*mangle\n:{CANARY} - [0:0]\nCOMMIT\n");
        let input = Save::parse(&input).expect("a table with a chain");
        if let Err(error) = self.tables.apply(&input) {
            let notice = format!("no canary in table mangle, so everything is compared each time: {error}");
            synced.notices.push(notice);
        }
    }

    /// Rules of ours in the other back end, from before a switch, would go on working beside the new ones. It
    /// is only a hint, so that a back end which cannot be looked at is one too.
    fn look_at_the_other(&mut self, synced: &mut FamilySynced) {
        let Some(other) = &mut self.other else { return };
        let name = other.back_end();
        let ours = |table: &Table<'_>| table.chains().any(|chain| is_ours(table.name(), chain.name()));
        match other.list().map(|save| save.tables().any(ours)) {
            Ok(false) => {}
            // A kernel without it has no rules in it.
            Err(error) if error.is_unsupported() => {}
            Ok(true) => synced
                .notices
                .push(format!("back end {name} holds rules of a service proxy too; `cleanup` removes them")),
            Err(error) => synced.notices.push(format!(
                "back end {name} may hold rules of a service proxy too; it cannot be read: {error}"
            )),
        }
    }

    fn difference(
        &mut self,
        settings: &Settings,
        cluster: &Cluster,
    ) -> Result<(Family, Save<'static>), Error> {
        let current = self.tables.list().map_err(iptables("listing what there is"))?;
        let support = match &self.support {
            Some(support) => support.clone(),
            None => {
                let counts = |table: &Table<'_>| table.rules().any(|rule| rule.text().contains("-m nfacct "));
                probe::by_test(&mut *self.tables, current.tables().any(counts))?
            }
        };
        let settings = host::settings(settings);
        let planner = Planner::new(
            self.family(),
            &settings,
            support,
            cluster,
            Some(addresses::interface_addresses()?),
        )?;
        Ok((self.family(), compare(current, &planner)?))
    }

    fn apply(&mut self, input: &Save<'_>, synced: &mut FamilySynced) -> Result<(), xtables::Error> {
        if input.items.is_empty() {
            return Ok(());
        }
        let started = Instant::now();
        self.tables.apply(input)?;
        synced.kernel += started.elapsed();
        synced.bytes += text_len(input);
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

    /// Carries out what was refused as text, whose lines an error can name: the service of the line is the
    /// one without which the others can be programmed.
    fn apply_by_lines(&mut self, input: &Save<'_>) -> Result<(), Error> {
        let text = input.to_string();
        let lines = Save::parse(&text).map_err(rules("numbering the lines"))?;
        let Err(error) = self.tables.apply(&lines) else { return Ok(()) };
        let line = error.line().and_then(|line| text.lines().nth(line.checked_sub(1)?));
        let is_of_rule = !matches!(error, xtables::Error::Line { .. });
        match line.and_then(service_of).filter(|_| is_of_rule) {
            Some(service) => Err(Error::Refused { services: vec![(service, error.to_string())] }),
            None => Err(iptables(PROGRAMMING)(error)),
        }
    }

    fn cleanup(&mut self, goes: impl Fn(&str, &str) -> bool) -> Result<Option<String>, Error> {
        let mut current = self.tables.list().map_err(iptables("listing what there is"))?;
        let input = removal(&mut current, goes).map_err(rules("finding what is ours"))?;
        if input.items.is_empty() {
            return Ok(None);
        }
        self.tables.apply(&input).map_err(iptables("removing what is ours"))?;
        let count = |wanted: fn(&Entry<'_>) -> bool| {
            input.tables().flat_map(|table| &table.entries).filter(|entry| wanted(entry)).count()
        };
        let chains = count(|entry| matches!(entry, Entry::Command(_)));
        let rules = count(|entry| matches!(entry, Entry::Rule(_)));
        let (family, back_end) = (self.family(), self.tables.back_end());
        let (chains, jumps) = (counted(chains, "chain"), counted(rules, "jump"));
        Ok(Some(format!("{chains} and {jumps} to them ({family}, {back_end})")))
    }
}

fn has_canary_in(current: &Save<'_>) -> bool {
    current.table("mangle").and_then(|table| table.chain(CANARY)).is_some()
}

/// From the rules that there are to the plan, its canaries, its guard and its jumps.
fn compare(mut current: Save<'_>, planner: &Planner) -> Result<Save<'static>, Error> {
    let comparing = rules("comparing with the plan");
    let family = tool_family(planner.family());
    let mut desired = planner.input();
    for table in desired.tables_mut().filter(|table| CANARY_TABLES.contains(&table.name())) {
        table.entries.insert(0, Entry::Chain(save::Chain::new(CANARY, None, None).map_err(&comparing)?));
    }
    let shared = State::of_family(&of_others(&current), family).map_err(&comparing)?;
    let desired = State::of_family(&desired, family).map_err(&comparing)?;
    // The canary of mangle is created separately, as a kernel may lack that table.
    let owned = |table: &str, chain: &str| table != "mangle" && is_ours(table, chain);
    drop(take_jumps(&mut current, is_ours));
    forget_foreign(&mut current);
    let current = State::of_family(&current, family).map_err(&comparing)?;
    let mut input = diff(&current, &desired, owned).map_err(&comparing)?.into_save();
    if let Some(words) = planner.guard() {
        ensure_guard(&mut input, &shared, words).map_err(&comparing)?;
    }
    let jumps = jumps(planner.support(), planner.answers_localhost());
    change_jumps(&mut input, &shared, jumps, is_ours).map_err(&comparing)?;
    Ok(input)
}

/// Removes the chains of ours from a save that have rules for which there are no words: they are made anew.
fn forget_foreign(save: &mut Save<'_>) {
    for table in save.tables_mut() {
        let name = table.name().to_owned();
        let is_odd = |rule: &&save::Rule<'_>| rule.is_foreign() && is_ours(&name, rule.chain());
        let odd: BTreeSet<String> =
            table.rules().filter(is_odd).map(|rule| rule.chain().to_owned()).collect();
        if !odd.is_empty() {
            table.entries.retain(|entry| match entry {
                Entry::Chain(chain) => !odd.contains(chain.name()),
                Entry::Rule(rule) => !odd.contains(rule.chain()),
                _ => true,
            });
        }
    }
}

/// Returns the chains of others, in which single rules are ours: thousands of chains of ours are left out.
fn of_others<'a>(save: &Save<'a>) -> Save<'a> {
    let mut others = Save::default();
    for table in save.tables() {
        let is_other = |entry: &&Entry<'_>| match entry {
            Entry::Chain(chain) => !is_ours(table.name(), chain.name()),
            Entry::Rule(rule) => !is_ours(table.name(), rule.chain()),
            _ => true,
        };
        let mut part = Table::new(table.name().to_owned()).expect("the name of a table");
        part.entries = table.entries.iter().filter(is_other).cloned().collect();
        others.items.push(save::Item::Table(part));
    }
    others
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

/// Returns the length of lines as text.
pub(crate) fn text_len(input: &Save<'_>) -> usize {
    struct Length(usize);
    impl fmt::Write for Length {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0 += text.len();
            Ok(())
        }
    }
    let mut length = Length(0);
    let _ = fmt::write(&mut length, format_args!("{input}"));
    length.0
}

/// Names the operation that the kernel refused.
pub(crate) fn iptables(doing: &'static str) -> impl Fn(xtables::Error) -> Error {
    move |source| Error::Iptables { doing, source: Box::new(source) }
}

/// Names the operation that failed before the kernel was asked.
pub(crate) fn rules(doing: &'static str) -> impl Fn(save::Error) -> Error {
    move |source| Error::Rules { doing, source: Box::new(source) }
}

const LOOKING: &str = "looking whether other programs changed rules";
const PROGRAMMING: &str = "programming the services";
/// How often everything is compared if other programs change the tables between listing and changing them.
const ATTEMPTS: usize = 4;
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
