//! A table in memory: read from the kernel's entries, changed, and written as entries again.
//!
//! A change touches a few chains of thousands. So reading looks for no more than where chains begin and which
//! entries jump; the rules of a chain are read one by one when a line needs them. Chains that nobody touches
//! stay the bytes that the kernel gave, and runs of them are copied as a whole. Of those bytes only the jumps
//! change, since the kernel's offsets change with every rule before them.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use sluicegate_iptables_save::{Counters, Family, decode, encode};

use super::layout::{
    Entry, ErrorEntry, Info, REPLACE, counters_at, entry_size, error_size, standard_entry, standard_size,
    table_request, verdict_at,
};
use super::scan::{Offsets, OldChain, OldJump, Scan};
use super::socket::RawCounters;
use crate::Error;
use crate::extension::Mismatch;
use crate::rule::Action;

/// A table.
#[derive(Debug)]
pub(super) struct Ruleset {
    pub(super) family: Family,
    pub(super) table: String,
    /// Whether anything was changed since the table was read.
    pub(super) changed: bool,
    valid_hooks: u32,
    /// The answer of the kernel: the entries begin at `entries_at`.
    old: Vec<u8>,
    entries_at: usize,
    old_entries: u32,
    old_size: u32,
    /// Chains keep their place, so that jumps can name it; a deleted one leaves it empty. Those of the kernel
    /// come first, in its order.
    chains: Vec<Option<Chain>>,
    /// For each chain of the kernel where its first rule is.
    starts: Vec<u32>,
    /// The names of the user-defined chains of the kernel, in their order: that of names, as iptables writes
    /// them, or else all chains are indexed.
    names: Vec<Range<usize>>,
    is_sorted: bool,
    /// The jumps of the kernel's entries, in order.
    jumps: Vec<OldJump>,
    /// The chains that do not have their name from the kernel, or all, once they are indexed.
    by_name: HashMap<String, ChainId>,
    is_indexed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ChainId(usize);

#[derive(Debug)]
pub(super) struct Chain {
    name: Name,
    /// The number of the hook of a built-in chain.
    pub(super) hook: Option<usize>,
    pub(super) policy: i32,
    pub(super) policy_counters: CounterMap,
    /// The counters of the policy when the table was read.
    pub(super) policy_seen: Counters,
    /// Where the kernel has it.
    old: Option<OldChain>,
    /// Its rules, if they were looked at one by one. Otherwise those that the kernel has.
    rules: Option<Vec<Rule>>,
}

#[derive(Debug)]
enum Name {
    /// A part of what the kernel gave.
    Old(Range<usize>),
    New(String),
}

#[derive(Debug, Clone)]
pub(super) struct Rule {
    bytes: Bytes,
    pub(super) jump: Jump,
    pub(super) counters: CounterMap,
}

#[derive(Debug, Clone)]
enum Bytes {
    /// A part of what the kernel gave.
    Old(Range<usize>),
    New(Vec<u8>),
}

/// Where a rule leads, as far as offsets are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Jump {
    /// A verdict or an extension: the bytes say it.
    None,
    /// To the next rule.
    Next,
    Chain(ChainId),
}

/// The counters of an entry once the table is replaced, which starts all of them at zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CounterMap {
    /// Those of an entry of the old table, by its number.
    Old(usize),
    /// Those of an old entry without what was read of them: counters that are set to zero while packets pass.
    Since(usize, Counters),
    Set(Counters),
}

/// The chains that rules jump to.
#[derive(Debug)]
pub(super) struct Used {
    /// Where those begin that untouched chains jump to.
    old: Offsets,
    chains: HashSet<ChainId>,
}

/// A table as `IPT_SO_SET_REPLACE` takes it.
pub(super) struct Written {
    /// The request, whose counters are still to be filled in.
    pub(super) request: Vec<u8>,
    /// Where the counters of its entries come from, in order.
    counter_maps: Vec<Mapped>,
    /// The number of entries, and their size in bytes.
    pub(super) size: (u32, u32),
}

enum Mapped {
    /// Those of so many entries of the old table, from one on.
    Run(Range<usize>),
    /// Those of one entry; `None` if it has none.
    One(Option<CounterMap>),
}

impl Ruleset {
    /// Reads the entries that the kernel gave, which begin at `entries_at` of its answer.
    pub(super) fn read(
        family: Family,
        table: &str,
        info: &Info,
        answer: Vec<u8>,
        entries_at: usize,
    ) -> Result<Self, Error> {
        let entries = answer.get(entries_at..).unwrap_or_default();
        let scan = Scan::new(family, entries, info).map_err(|(offset, reason)| Error::Malformed {
            table: table.to_owned(),
            offset,
            reason,
        })?;
        let user = scan.chains.iter().filter(|chain| chain.hook.is_none());
        let names = user.map(|chain| chain.name.clone()).collect();
        let chains = scan.chains.into_iter().map(|old| Some(Chain::read(old, entries, family)));
        let mut ruleset = Self {
            family,
            table: table.to_owned(),
            changed: false,
            valid_hooks: info.valid_hooks,
            chains: chains.collect(),
            old: answer,
            entries_at,
            old_entries: info.entries,
            old_size: info.size,
            starts: scan.starts,
            names,
            is_sorted: scan.is_sorted,
            jumps: scan.jumps,
            by_name: HashMap::new(),
            is_indexed: false,
        };
        if !ruleset.is_sorted {
            ruleset.index();
        }
        Ok(ruleset)
    }

    fn malformed(&self, offset: usize, reason: &'static str) -> Error {
        Error::Malformed { table: self.table.clone(), offset, reason }
    }

    fn entries(&self) -> &[u8] {
        self.old.get(self.entries_at..).unwrap_or_default()
    }

    fn insert(&mut self, chain: Chain) -> ChainId {
        let id = ChainId(self.chains.len());
        self.by_name.insert(self.name(&chain).into_owned(), id);
        self.chains.push(Some(chain));
        id
    }

    /// Returns the name of a chain.
    pub(super) fn name<'a>(&'a self, chain: &'a Chain) -> Cow<'a, str> {
        match &chain.name {
            Name::Old(range) => decode(self.entries().get(range.clone()).unwrap_or_default()),
            Name::New(name) => Cow::Borrowed(name),
        }
    }

    fn name_bytes<'a>(&'a self, chain: &'a Chain) -> Cow<'a, [u8]> {
        match &chain.name {
            Name::Old(range) => Cow::Borrowed(self.entries().get(range.clone()).unwrap_or_default()),
            Name::New(name) => encode(name),
        }
    }

    /// Returns the chains in the order of the kernel's entries: built-in ones by their hooks, the others by
    /// name.
    pub(super) fn in_order(&self) -> Vec<ChainId> {
        let all = self.chains.iter().enumerate();
        let all = all.filter_map(|(at, chain)| Some((ChainId(at), chain.as_ref()?)));
        let (mut built_in, mut order, mut others) = (Vec::new(), Vec::new(), Vec::new());
        for (id, chain) in all {
            match (&chain.name, chain.hook) {
                (_, Some(hook)) => built_in.push((hook, id)),
                (Name::Old(_), None) if self.is_sorted => order.push((id, chain)),
                _ => others.push((id, chain)),
            }
        }
        built_in.sort_unstable();
        others.sort_by(|(_, a), (_, b)| self.name_bytes(a).cmp(&self.name_bytes(b)));
        let mut ids: Vec<_> = built_in.into_iter().map(|(_, id)| id).collect();
        ids.reserve(order.len() + others.len());
        let mut others = others.into_iter().peekable();
        for (id, chain) in order {
            let before = |other: &(ChainId, &Chain)| self.name_bytes(other.1) < self.name_bytes(chain);
            while let Some((other, _)) = others.next_if(before) {
                ids.push(other);
            }
            ids.push(id);
        }
        ids.extend(others.map(|(id, _)| id));
        ids
    }

    /// Makes names be found by their hash from now on, which pays for thousands of lines.
    pub(super) fn index(&mut self) {
        if std::mem::replace(&mut self.is_indexed, true) {
            return;
        }
        let all = self.chains.iter().enumerate();
        let all = all.filter_map(|(at, chain)| Some((self.name(chain.as_ref()?).into_owned(), ChainId(at))));
        self.by_name = all.collect();
    }

    pub(super) fn find(&self, name: &str) -> Option<ChainId> {
        if let Some(found) = self.by_name.get(name) {
            return Some(*found);
        }
        if self.is_indexed {
            return None;
        }
        let built_in = self.starts.len() - self.names.len();
        let hooked = self.chains.iter().take(built_in).flatten().position(|chain| self.name(chain) == name);
        if let Some(at) = hooked {
            return Some(ChainId(at));
        }
        let name = encode(name);
        let named = |range: &Range<usize>| self.entries().get(range.clone()).unwrap_or_default();
        let at = self.names.binary_search_by(|range| named(range).cmp(&name)).ok()?;
        let id = ChainId(built_in + at);
        // It may be gone, or have another name by now.
        self.chain(id).filter(|chain| matches!(chain.name, Name::Old(_))).map(|_| id)
    }

    pub(super) fn chain(&self, id: ChainId) -> Option<&Chain> {
        self.chains.get(id.0)?.as_ref()
    }

    /// Returns a chain to be changed.
    pub(super) fn chain_mut(&mut self, id: ChainId) -> Option<&mut Chain> {
        self.changed = true;
        self.chains.get_mut(id.0)?.as_mut()
    }

    pub(super) fn chain_ids(&self) -> impl Iterator<Item = ChainId> + use<> {
        let ids: Vec<_> =
            (0..self.chains.len()).filter(|at| self.chains.get(*at).is_some_and(Option::is_some)).collect();
        ids.into_iter().map(ChainId)
    }

    /// Adds a user-defined chain; the name is not that of another.
    pub(super) fn create(&mut self, name: &str) -> ChainId {
        self.changed = true;
        self.insert(Chain::new(name.to_owned()))
    }

    pub(super) fn remove(&mut self, id: ChainId) {
        self.changed = true;
        if let Some(chain) = self.chains.get_mut(id.0).and_then(Option::take) {
            let name = self.name(&chain).into_owned();
            self.by_name.remove(&name);
        }
    }

    pub(super) fn rename(&mut self, id: ChainId, name: &str) {
        self.changed = true;
        let Some(old) = self.chain(id).map(|chain| self.name(chain).into_owned()) else { return };
        self.by_name.remove(&old);
        if let Some(Some(chain)) = self.chains.get_mut(id.0) {
            chain.name = Name::New(name.to_owned());
            self.by_name.insert(name.to_owned(), id);
        }
    }

    /// Returns how many rules a chain has.
    pub(super) fn count(&self, id: ChainId) -> usize {
        self.chain(id).map_or(0, |chain| match (&chain.rules, &chain.old) {
            (Some(rules), _) => rules.len(),
            (None, old) => old.as_ref().map_or(0, |old| old.numbers.len()),
        })
    }

    /// Returns the rules of a chain.
    pub(super) fn rules(&self, id: ChainId) -> Cow<'_, [Rule]> {
        match self.chain(id).map(|chain| (&chain.rules, &chain.old)) {
            Some((Some(rules), _)) => Cow::Borrowed(rules),
            Some((None, Some(old))) => Cow::Owned(self.old_rules(old)),
            _ => Cow::Borrowed(&[]),
        }
    }

    /// Returns the rules of a chain to be changed.
    pub(super) fn rules_mut(&mut self, id: ChainId) -> Option<&mut Vec<Rule>> {
        if self.chain(id).is_some_and(|chain| chain.rules.is_none()) {
            let rules = self.rules(id).into_owned();
            self.chain_mut(id)?.rules = Some(rules);
        }
        self.chain_mut(id)?.rules.as_mut()
    }

    /// Removes all rules of a chain.
    pub(super) fn clear(&mut self, id: ChainId) {
        if let Some(chain) = self.chain_mut(id) {
            chain.rules = Some(Vec::new());
        }
    }

    fn old_rules(&self, old: &OldChain) -> Vec<Rule> {
        let mut jumps = self.jumps_in(&old.rules).iter().peekable();
        let mut rules = Vec::with_capacity(old.numbers.len());
        let mut at = old.rules.start;
        for number in old.numbers.clone() {
            let bytes = self.entries().get(at..old.rules.end).unwrap_or_default();
            let Some(entry) = Entry::first(bytes, self.family) else { break };
            let next = at + entry.bytes.len();
            let jump = jumps.next_if(|jump| jump.at() < next).map_or(Jump::None, |jump| match jump.to() {
                None => Jump::Next,
                Some(to) => self.starts.binary_search(&to).map_or(Jump::None, |at| Jump::Chain(ChainId(at))),
            });
            rules.push(Rule { bytes: Bytes::Old(at..next), jump, counters: CounterMap::Old(number) });
            at = next;
        }
        rules
    }

    /// Returns the jumps of the kernel's entries in a range.
    fn jumps_in(&self, range: &Range<usize>) -> &[OldJump] {
        let from = self.jumps.partition_point(|jump| jump.at() < range.start);
        let rest = self.jumps.get(from..).unwrap_or_default();
        rest.get(..rest.partition_point(|jump| jump.at() < range.end)).unwrap_or_default()
    }

    /// Returns the chains that rules jump to.
    pub(super) fn used(&self) -> Used {
        let mut used = Used { old: Offsets::new(self.entries().len()), chains: HashSet::new() };
        let mut jumps = self.jumps.iter().peekable();
        for chain in self.chains.iter().take(self.starts.len()) {
            let untouched = chain.as_ref().filter(|chain| chain.rules.is_none());
            let Some(old) = untouched.and_then(|chain| chain.old.as_ref()) else { continue };
            while jumps.next_if(|jump| jump.at() < old.rules.start).is_some() {}
            while let Some(jump) = jumps.next_if(|jump| jump.at() < old.rules.end) {
                jump.to().into_iter().for_each(|to| used.old.insert(to as usize));
            }
        }
        for rule in self.chains.iter().flatten().filter_map(|chain| chain.rules.as_ref()).flatten() {
            if let Jump::Chain(id) = rule.jump {
                used.chains.insert(id);
            }
        }
        used
    }

    /// Returns how many of the kernel's rules jump to a chain.
    pub(super) fn references(&self, id: ChainId) -> usize {
        let start = self.starts.get(id.0);
        self.jumps.iter().filter(|jump| jump.to().is_some() && jump.to() == start.copied()).count()
    }

    pub(super) fn is_used(&self, used: &Used, id: ChainId) -> bool {
        used.chains.contains(&id)
            || self.starts.get(id.0).is_some_and(|start| used.old.contains(*start as usize))
    }

    /// Returns the bytes of a rule, of which the verdict of a jump has no meaning.
    pub(super) fn bytes<'a>(&'a self, rule: &'a Rule) -> &'a [u8] {
        match &rule.bytes {
            Bytes::Old(range) => self.entries().get(range.clone()).unwrap_or_default(),
            Bytes::New(bytes) => bytes,
        }
    }

    pub(super) fn entry<'a>(&'a self, rule: &'a Rule) -> Option<Entry<'a>> {
        Entry::first(self.bytes(rule), self.family)
    }

    /// Returns the counters that a rule has, or will have.
    pub(super) fn counters(&self, rule: &Rule) -> Counters {
        match rule.counters {
            CounterMap::Set(counters) => counters,
            CounterMap::Since(..) => Counters::default(),
            CounterMap::Old(_) => self.entry(rule).map(Entry::counters).unwrap_or_default(),
        }
    }

    pub(super) fn old_entries(&self) -> u32 {
        self.old_entries
    }

    /// Returns how large the table was when it was read: the number of entries, and their size in bytes.
    pub(super) fn old_size(&self) -> (u32, u32) {
        (self.old_entries, self.old_size)
    }

    /// Returns the table as a request to replace the old one.
    pub(super) fn write(&self) -> Result<Written, Error> {
        let order = self.in_order();
        let layout = Layout::new(self, &order);
        let wrong = |reason| self.malformed(layout.size, reason);
        let mut request =
            table_request(&self.table, REPLACE).map_err(|_| wrong("expected a shorter name of a table"))?;
        request.reserve(layout.size);
        let mut writer = Writer {
            ruleset: self,
            layout: &layout,
            request,
            counter_maps: Vec::new(),
            run: None,
            entries: 0,
        };
        let head = ErrorEntry::new(self.family);
        let end = standard_entry(self.family, RETURN);
        for chain in order.iter().filter_map(|id| self.chain(*id)) {
            if let Some(old) = chain.untouched() {
                writer.extend_run(old.whole.clone(), old.all_numbers());
                continue;
            }
            if chain.hook.is_none() {
                writer.end_run();
                head.write(&self.name(chain), &mut writer.request);
                writer.one(None);
            }
            match (&chain.rules, &chain.old) {
                (Some(rules), _) => {
                    writer.end_run();
                    rules.iter().try_for_each(|rule| writer.rule(rule))?;
                }
                (None, Some(old)) => writer.extend_run(old.rules.clone(), old.numbers.clone()),
                (None, None) => (),
            }
            writer.end_run();
            match chain.policy {
                RETURN => writer.request.extend_from_slice(&end),
                policy => writer.request.extend(standard_entry(self.family, policy)),
            }
            writer.one(chain.hook.map(|_| chain.policy_counters));
        }
        writer.end_run();
        head.write("ERROR", &mut writer.request);
        writer.one(None);
        let Writer { mut request, counter_maps, entries, .. } = writer;
        let size = u32::try_from(layout.size).map_err(|_| wrong("expected a table of at most 4 GiB"))?;
        let entries = u32::try_from(entries).unwrap_or(u32::MAX);
        let (starts, policies) = (layout.hooks, layout.policies);
        let info = Info { valid_hooks: self.valid_hooks, starts, policies, entries, size };
        info.write_replace(&mut request);
        Ok(Written { request, counter_maps, size: (entries, size) })
    }
}

impl Written {
    /// Returns the counters of the entries, from those of the old ones; `None` if all are zero.
    pub(super) fn counters(&self, old: &[RawCounters]) -> Option<Vec<RawCounters>> {
        let of = |number: usize| old.get(number).copied().unwrap_or_default();
        let mut counters = Vec::new();
        for mapped in &self.counter_maps {
            match mapped {
                Mapped::Run(numbers) => {
                    counters.extend_from_slice(old.get(numbers.clone()).unwrap_or_default());
                }
                Mapped::One(None) => counters.push(RawCounters::default()),
                Mapped::One(Some(CounterMap::Set(Counters { packets, bytes }))) => {
                    counters.push(RawCounters { packets: *packets, bytes: *bytes });
                }
                Mapped::One(Some(CounterMap::Old(number))) => counters.push(of(*number)),
                Mapped::One(Some(CounterMap::Since(number, seen))) => {
                    let now = of(*number);
                    counters.push(RawCounters {
                        packets: now.packets.saturating_sub(seen.packets),
                        bytes: now.bytes.saturating_sub(seen.bytes),
                    });
                }
            }
        }
        counters.iter().any(|counters| *counters != RawCounters::default()).then_some(counters)
    }
}

/// Where chains are in the new table.
struct Layout {
    /// Where the first rule of each chain is, by its number; `u32::MAX` for one that is gone.
    starts: Vec<u32>,
    /// From which old start on chains moved by how much: where that differs from the chain before.
    moves: Vec<(u32, Option<u32>)>,
    hooks: [u32; 5],
    policies: [u32; 5],
    size: usize,
}

impl Layout {
    fn new(ruleset: &Ruleset, order: &[ChainId]) -> Self {
        let family = ruleset.family;
        let mut layout = Self {
            starts: vec![u32::MAX; ruleset.chains.len()],
            moves: Vec::new(),
            hooks: [0; 5],
            policies: [0; 5],
            size: 0,
        };
        // Offsets over 4 GiB are refused with the size of the whole.
        let short = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
        let mut at = 0;
        for (id, chain) in order.iter().filter_map(|id| Some((*id, ruleset.chain(*id)?))) {
            at += match (chain.untouched(), chain.hook) {
                (Some(old), _) => old.rules.start - old.whole.start,
                (None, None) => error_size(family),
                (None, Some(_)) => 0,
            };
            let start = at;
            at += match (&chain.rules, &chain.old) {
                (Some(rules), _) => rules.iter().map(|rule| ruleset.bytes(rule).len()).sum(),
                (None, old) => old.as_ref().map_or(0, |old| old.rules.len()),
            };
            layout.starts.get_mut(id.0).into_iter().for_each(|place| *place = short(start));
            if let Some(hook) = chain.hook
                && let Some((start_at, policy_at)) =
                    layout.hooks.get_mut(hook).zip(layout.policies.get_mut(hook))
            {
                (*start_at, *policy_at) = (short(start), short(at));
            }
            at += chain.untouched().map_or(standard_size(family), |old| old.whole.end - old.rules.end);
        }
        layout.size = at + error_size(family);
        for (old, new) in ruleset.starts.iter().zip(&layout.starts) {
            let by = (*new != u32::MAX).then(|| new.wrapping_sub(*old));
            if layout.moves.last().is_none_or(|(_, last)| *last != by) {
                layout.moves.push((*old, by));
            }
        }
        layout
    }

    /// Returns where a chain begins that began at `old`; an offset that the kernel refuses if it is gone.
    fn moved(&self, old: u32) -> u32 {
        let before = self.moves.partition_point(|(from, _)| *from <= old);
        let by = before.checked_sub(1).and_then(|at| self.moves.get(at)?.1);
        by.map_or(u32::MAX, |by| old.wrapping_add(by))
    }
}

/// Writes entries, runs of old ones as a whole.
struct Writer<'a> {
    ruleset: &'a Ruleset,
    layout: &'a Layout,
    request: Vec<u8>,
    counter_maps: Vec<Mapped>,
    /// Old entries that are still to be written, with their numbers.
    run: Option<(Range<usize>, Range<usize>)>,
    entries: usize,
}

impl Writer<'_> {
    fn extend_run(&mut self, bytes: Range<usize>, numbers: Range<usize>) {
        match &mut self.run {
            Some((run, run_numbers)) if run.end == bytes.start => {
                run.end = bytes.end;
                run_numbers.end = numbers.end;
            }
            _ => {
                self.end_run();
                self.run = Some((bytes, numbers));
            }
        }
    }

    fn end_run(&mut self) {
        let Some((bytes, numbers)) = self.run.take() else { return };
        let at = self.request.len();
        self.request.extend_from_slice(self.ruleset.entries().get(bytes.clone()).unwrap_or_default());
        let moved = u32::try_from(at.wrapping_sub(REPLACE).wrapping_sub(bytes.start) & 0xffff_ffff);
        for jump in self.ruleset.jumps_in(&bytes) {
            let place = at + jump.at() - bytes.start;
            let Some(place) = self.request.get_mut(place..place + 4) else { continue };
            let to = match jump.to() {
                Some(to) => self.layout.moved(to),
                None => {
                    let old = <[u8; 4]>::try_from(&*place).map_or(0, u32::from_ne_bytes);
                    old.wrapping_add(moved.unwrap_or_default())
                }
            };
            place.copy_from_slice(&to.to_ne_bytes());
        }
        self.entries += numbers.len();
        self.counter_maps.push(Mapped::Run(numbers));
    }

    fn one(&mut self, map: Option<CounterMap>) {
        self.entries += 1;
        self.counter_maps.push(Mapped::One(map));
    }

    fn rule(&mut self, rule: &Rule) -> Result<(), Error> {
        let family = self.ruleset.family;
        let bytes = self.ruleset.bytes(rule);
        let start = self.request.len();
        self.request.extend_from_slice(bytes);
        self.one(Some(rule.counters));
        let target = match rule.jump {
            Jump::None => return Ok(()),
            Jump::Next => u32::try_from(self.request.len() - REPLACE).unwrap_or(u32::MAX),
            Jump::Chain(id) => self.layout.starts.get(id.0).copied().unwrap_or(u32::MAX),
        };
        let place = verdict_at(bytes, family)
            .and_then(|place| self.request.get_mut(start + place.start..start + place.end));
        match place {
            Some(place) => {
                place.copy_from_slice(&target.to_ne_bytes());
                Ok(())
            }
            None => Err(self.ruleset.malformed(start, "expected a standard target")),
        }
    }
}

impl Chain {
    fn new(name: String) -> Self {
        Self {
            name: Name::New(name),
            hook: None,
            policy: RETURN,
            policy_counters: CounterMap::Set(Counters::default()),
            policy_seen: Counters::default(),
            old: None,
            rules: Some(Vec::new()),
        }
    }

    /// Returns a chain of the kernel.
    fn read(old: OldChain, entries: &[u8], family: Family) -> Self {
        let policy = old.hook.and_then(|_| Entry::first(entries.get(old.rules.end..old.whole.end)?, family));
        Self {
            name: match old.hook {
                Some(hook) => Name::New(HOOKS.get(hook).copied().unwrap_or_default().to_owned()),
                None => Name::Old(old.name.clone()),
            },
            hook: old.hook,
            policy: policy.and_then(Entry::verdict).unwrap_or(if old.hook.is_some() { 0 } else { RETURN }),
            policy_counters: match old.hook {
                Some(_) => CounterMap::Old(old.numbers.end),
                None => CounterMap::Set(Counters::default()),
            },
            policy_seen: policy.map(Entry::counters).unwrap_or_default(),
            old: Some(old),
            rules: None,
        }
    }

    /// Returns where the kernel has the chain, if it stays as it is there.
    fn untouched(&self) -> Option<&OldChain> {
        let is_named = matches!(self.name, Name::Old(_)) || self.hook.is_some();
        let has_policy = self.hook.is_none() || matches!(self.policy_counters, CounterMap::Old(_));
        self.old.as_ref().filter(|_| self.rules.is_none() && is_named && has_policy)
    }

    /// Returns the counters that the policy has, or will have.
    pub(super) fn counters(&self) -> Counters {
        match self.policy_counters {
            CounterMap::Set(counters) => counters,
            CounterMap::Since(..) => Counters::default(),
            CounterMap::Old(_) => self.policy_seen,
        }
    }
}

impl Rule {
    /// Returns a new rule; `jump` is that of its action.
    pub(super) fn new(bytes: Vec<u8>, jump: Jump, counters: Counters) -> Self {
        Self { bytes: Bytes::New(bytes), jump, counters: CounterMap::Set(counters) }
    }
}

/// Encodes a rule; the verdict of a jump is filled in when the table is written.
pub(super) fn encode_rule(rule: &crate::rule::Rule, family: Family) -> Result<Vec<u8>, Mismatch> {
    let matches: Vec<_> =
        rule.matches.iter().map(|binary| (&*binary.name, binary.revision, &binary.data[..])).collect();
    let verdict = match &rule.action {
        Action::Target(binary) => {
            return super::layout::write_entry(
                family,
                &rule.head,
                &matches,
                (&binary.name, binary.revision, &binary.data),
            );
        }
        Action::Verdict(verdict) => *verdict,
        Action::Continue | Action::Chain(_) => 0,
    };
    super::layout::write_entry(family, &rule.head, &matches, ("", 0, &verdict.to_ne_bytes()))
}

/// Returns whether two rules are the same for `-D` and `-C`: heads, matches and target, without offsets,
/// counters and what the kernel keeps for itself.
pub(super) fn is_same(a: &[u8], b: &[u8], jumps: [Jump; 2], family: Family) -> bool {
    let head = crate::entry::head_size(family);
    if a.len() != b.len() || a.get(..head) != b.get(..head) || jumps[0] != jumps[1] {
        return false;
    }
    let (Some(first), Some(second)) = (Entry::first(a, family), Entry::first(b, family)) else {
        return false;
    };
    if first.target != second.target {
        return false;
    }
    let equal = |kind, a: super::layout::Extension<'_>, b: super::layout::Extension<'_>| {
        let codec = crate::extension::codec_for(kind, &a.name(), a.revision, family);
        let same = match codec {
            Some(codec) => codec.identity(a.data) == codec.identity(b.data),
            None => a.data == b.data,
        };
        a.name == b.name && a.revision == b.revision && same
    };
    let matches = first.matches().zip(second.matches()).all(|pair| match pair {
        (Some(a), Some(b)) => equal(crate::Kind::Match, a, b),
        _ => false,
    });
    let target = match (first.target_extension(), second.target_extension()) {
        // The verdict of a jump is an offset.
        (Some(a), Some(b)) if jumps[0] != Jump::None => a.name == b.name,
        (Some(a), Some(b)) => equal(crate::Kind::Target, a, b),
        _ => false,
    };
    matches && target
}

/// The built-in chains by the numbers of their hooks (`NF_INET_*`).
pub(super) const HOOKS: [&str; 5] = ["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"];
/// `XT_RETURN`
const RETURN: i32 = -5;

const _: () = assert!(counters_at(Family::Ipv4) + 16 == entry_size(Family::Ipv4));

#[cfg(test)]
mod tests {
    use super::*;

    const FAMILY: Family = Family::Ipv4;

    fn jump(to: usize) -> Vec<u8> {
        standard_entry(FAMILY, i32::try_from(to).unwrap())
    }

    /// Returns a table with the hook of FORWARD, which jumps to the first of two chains, and that to the
    /// other.
    fn table(names: [&str; 2]) -> (Vec<u8>, Info, [usize; 2]) {
        let (head, size) = (ErrorEntry::new(FAMILY), standard_size(FAMILY));
        let first = 2 * size + error_size(FAMILY);
        let second = first + 3 * size + error_size(FAMILY);
        let mut entries = [jump(first), standard_entry(FAMILY, -2)].concat();
        head.write(names[0], &mut entries);
        // A rule without a target leads to the next one.
        entries.extend([jump(first + size), jump(second), standard_entry(FAMILY, RETURN)].concat());
        head.write(names[1], &mut entries);
        entries.extend(standard_entry(FAMILY, RETURN));
        head.write("ERROR", &mut entries);
        let policy = u32::try_from(size).unwrap();
        let info = Info {
            valid_hooks: 1 << 2,
            starts: [0; 5],
            policies: [0, 0, policy, 0, 0],
            entries: 9,
            size: u32::try_from(entries.len()).unwrap(),
        };
        (entries, info, [first, second])
    }

    fn read((entries, info, _): &(Vec<u8>, Info, [usize; 2])) -> Result<Ruleset, Error> {
        Ruleset::read(FAMILY, "filter", info, entries.clone(), 0)
    }

    #[test]
    fn a_table_that_nobody_changes_is_written_as_it_was_read() {
        let table = table(["A", "B"]);
        let ruleset = read(&table).unwrap();
        assert_eq!(ruleset.find("B"), Some(ChainId(2)));
        assert_eq!((ruleset.find("FORWARD"), ruleset.find("C")), (Some(ChainId(0)), None));
        let jumps: Vec<_> = ruleset.rules(ChainId(1)).iter().map(|rule| rule.jump).collect();
        assert_eq!(jumps, [Jump::Next, Jump::Chain(ChainId(2))]);
        assert_eq!(ruleset.write().unwrap().request[REPLACE..], table.0);
    }

    #[test]
    fn chains_in_another_order_are_sorted_and_their_jumps_follow() {
        let mut ruleset = read(&table(["B", "A"])).unwrap();
        assert_eq!(ruleset.find("A"), Some(ChainId(2)));
        let used = ruleset.used();
        assert!(ruleset.is_used(&used, ChainId(1)) && ruleset.is_used(&used, ChainId(2)));
        ruleset.rules_mut(ChainId(0)).unwrap().truncate(0);
        let request = ruleset.write().unwrap().request[REPLACE..].to_vec();
        let info = Info { policies: [0; 5], entries: 8, size: 0, ..table(["A", "B"]).1 };
        let again = Ruleset::read(FAMILY, "filter", &info, request, 0).unwrap();
        let names: Vec<_> =
            again.chains.iter().flatten().map(|chain| again.name(chain).into_owned()).collect();
        assert_eq!(names, ["FORWARD", "A", "B"]);
        let jumps: Vec<_> = again.rules(ChainId(2)).iter().map(|rule| rule.jump).collect();
        assert_eq!(jumps, [Jump::Next, Jump::Chain(ChainId(1))]);
        let used = again.used();
        assert!(again.is_used(&used, ChainId(1)) && !again.is_used(&used, ChainId(2)));
    }

    #[test]
    fn what_is_not_a_table_is_refused() {
        let good = table(["A", "B"]);
        for end in 0..good.0.len() {
            assert!(read(&(good.0[..end].to_vec(), good.1.clone(), good.2)).is_err(), "{end}");
        }
        let mut astray = good.clone();
        let place = verdict_at(&astray.0, FAMILY).unwrap();
        astray.0[place].copy_from_slice(&u32::try_from(good.2[0] + 8).unwrap().to_ne_bytes());
        assert!(read(&astray).unwrap_err().to_string().contains("a jump to where no chain starts"));
        let more = Info { entries: 10, ..good.1.clone() };
        assert!(read(&(good.0, more, good.2)).is_err());
    }
}
