//! A table in memory: read from the kernel's entries, changed, and written as entries again.
//!
//! Rules that nobody touches stay the bytes that the kernel gave. Jumps are kept as chains, since the
//! kernel's offsets change with every rule before them.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use sluicegate_iptables_save::{Counters, Family};

use super::layout::{
    Entry, ErrorEntry, Info, REPLACE, counters_at, entry_size, error_size, standard_entry, standard_size,
    table_request, verdict_at,
};
use crate::Error;
use crate::rule::Action;

/// A table.
#[derive(Debug, Clone)]
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
    /// Chains keep their place, so that jumps can name it; a deleted one leaves it empty.
    chains: Vec<Option<Chain>>,
    by_name: HashMap<String, ChainId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ChainId(usize);

#[derive(Debug, Clone)]
pub(super) struct Chain {
    pub(super) name: String,
    /// The number of the hook of a built-in chain.
    pub(super) hook: Option<usize>,
    pub(super) policy: i32,
    pub(super) policy_counters: Carry,
    /// The counters of the policy when the table was read.
    pub(super) policy_seen: Counters,
    pub(super) rules: Vec<Rule>,
}

#[derive(Debug, Clone)]
pub(super) struct Rule {
    bytes: Bytes,
    pub(super) jump: Jump,
    pub(super) counters: Carry,
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
pub(super) enum Carry {
    /// Those of an entry of the old table, by its number.
    Old(usize),
    /// Those of an old entry without what was read of them: counters that are set to zero while packets pass.
    Since(usize, Counters),
    Set(Counters),
}

/// A table as `IPT_SO_SET_REPLACE` takes it.
pub(super) struct Written {
    /// The request, whose counters are still to be filled in.
    pub(super) request: Vec<u8>,
    /// For each entry where its counters come from; `None` for those that have none.
    pub(super) carried: Vec<Option<Carry>>,
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
        let mut ruleset = Self {
            family,
            table: table.to_owned(),
            changed: false,
            valid_hooks: info.valid_hooks,
            old: Vec::new(),
            entries_at,
            old_entries: info.entries,
            chains: Vec::new(),
            by_name: HashMap::new(),
        };
        let starts = ruleset.read_chains(answer.get(entries_at..).unwrap_or_default(), info)?;
        ruleset.old = answer;
        ruleset.resolve_jumps(&starts)?;
        Ok(ruleset)
    }

    fn malformed(&self, offset: usize, reason: &'static str) -> Error {
        Error::Malformed { table: self.table.clone(), offset, reason }
    }

    /// Reads chains and rules, and returns where the first rule of each user-defined chain is.
    fn read_chains(&mut self, old: &[u8], info: &Info) -> Result<HashMap<usize, ChainId>, Error> {
        let hooks = (0..HOOKS.len()).filter(|hook| info.valid_hooks & 1 << hook != 0);
        let at_hook = |offsets: &[u32; 5], offset: usize| {
            hooks.clone().find(|hook| offsets.get(*hook).is_some_and(|at| *at as usize == offset))
        };
        let mut starts = HashMap::new();
        let (mut offset, mut number) = (0, 0);
        let mut open: Option<ChainId> = None;
        while offset < old.len() {
            let entry = old.get(offset..).and_then(|bytes| Entry::first(bytes, self.family));
            let entry = entry.ok_or_else(|| self.malformed(offset, "expected an entry"))?;
            let next = offset + entry.bytes.len();
            if let Some(hook) = at_hook(&info.starts, offset) {
                let name = HOOKS.get(hook).copied().unwrap_or_default().to_owned();
                open = Some(self.insert(Chain { hook: Some(hook), ..Chain::new(name) }));
            }
            if let Some(name) = entry.error_name() {
                self.close_user_chain(open, offset)?;
                // The last entry of all ends the table.
                open = (next < old.len()).then(|| self.insert(Chain::new(name)));
                starts.extend(open.map(|open| (next, open)));
            } else {
                let chain = open.and_then(|open| self.chains.get_mut(open.0)?.as_mut());
                let is_policy = at_hook(&info.policies, offset).is_some();
                match chain {
                    None => return Err(self.malformed(offset, "an entry outside of a chain")),
                    Some(chain) if is_policy && chain.hook.is_some() => {
                        chain.policy = entry.verdict().unwrap_or_default();
                        chain.policy_counters = Carry::Old(number);
                        chain.policy_seen = entry.counters();
                        open = None;
                    }
                    Some(chain) => chain.rules.push(Rule {
                        bytes: Bytes::Old(offset..next),
                        // Resolved when all chains are known.
                        jump: Jump::None,
                        counters: Carry::Old(number),
                    }),
                }
            }
            offset = next;
            number += 1;
        }
        if number == info.entries as usize {
            Ok(starts)
        } else {
            Err(self.malformed(offset, "the number of entries is another one"))
        }
    }

    /// The last entry of a user-defined chain is its return to the caller.
    fn close_user_chain(&mut self, open: Option<ChainId>, offset: usize) -> Result<(), Error> {
        let Some(Some(chain)) = open.and_then(|open| self.chains.get_mut(open.0)) else { return Ok(()) };
        match (chain.hook, chain.rules.pop()) {
            (None, Some(_)) => Ok(()),
            _ => Err(self.malformed(offset, "a chain without an end")),
        }
    }

    fn resolve_jumps(&mut self, starts: &HashMap<usize, ChainId>) -> Result<(), Error> {
        let family = self.family;
        let old = self.old.get(self.entries_at..).unwrap_or_default();
        for chain in self.chains.iter_mut().flatten() {
            for rule in &mut chain.rules {
                let Bytes::Old(range) = &rule.bytes else { continue };
                let entry = old.get(range.clone()).and_then(|bytes| Entry::first(bytes, family));
                let Some(target) = entry.and_then(Entry::verdict).and_then(|to| usize::try_from(to).ok())
                else {
                    continue;
                };
                rule.jump = match starts.get(&target) {
                    Some(chain) => Jump::Chain(*chain),
                    None if target == range.end => Jump::Next,
                    None => {
                        let reason = "a jump to where no chain starts";
                        return Err(Error::Malformed {
                            table: self.table.clone(),
                            offset: range.start,
                            reason,
                        });
                    }
                };
            }
        }
        Ok(())
    }

    fn insert(&mut self, chain: Chain) -> ChainId {
        let id = ChainId(self.chains.len());
        self.by_name.insert(chain.name.clone(), id);
        self.chains.push(Some(chain));
        id
    }

    /// Returns the chains in the order of the kernel's entries: built-in ones by their hooks, the others by
    /// name.
    pub(super) fn in_order(&self) -> Vec<(ChainId, &Chain)> {
        let all =
            self.chains.iter().enumerate().filter_map(|(at, chain)| Some((ChainId(at), chain.as_ref()?)));
        let mut chains: Vec<_> = all.collect();
        chains.sort_by(|(_, a), (_, b)| {
            let rank = |chain: &Chain| chain.hook.unwrap_or(usize::MAX);
            rank(a).cmp(&rank(b)).then_with(|| a.name.as_bytes().cmp(b.name.as_bytes()))
        });
        chains
    }

    pub(super) fn find(&self, name: &str) -> Option<ChainId> {
        self.by_name.get(name).copied()
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
            self.by_name.remove(&chain.name);
        }
    }

    pub(super) fn rename(&mut self, id: ChainId, name: &str) {
        self.changed = true;
        if let Some(Some(chain)) = self.chains.get_mut(id.0) {
            self.by_name.remove(&chain.name);
            chain.name = name.to_owned();
            self.by_name.insert(name.to_owned(), id);
        }
    }

    /// Returns the chains that rules jump to.
    pub(super) fn used(&self) -> HashSet<ChainId> {
        let jumps = self.chains.iter().flatten().flat_map(|chain| chain.rules.iter().map(|rule| rule.jump));
        jumps.filter_map(|jump| if let Jump::Chain(id) = jump { Some(id) } else { None }).collect()
    }

    /// Returns the bytes of a rule, of which the verdict of a jump has no meaning.
    pub(super) fn bytes<'a>(&'a self, rule: &'a Rule) -> &'a [u8] {
        match &rule.bytes {
            Bytes::Old(range) => {
                let old = self.old.get(self.entries_at..).unwrap_or_default();
                old.get(range.clone()).unwrap_or_default()
            }
            Bytes::New(bytes) => bytes,
        }
    }

    pub(super) fn entry<'a>(&'a self, rule: &'a Rule) -> Option<Entry<'a>> {
        Entry::first(self.bytes(rule), self.family)
    }

    /// Returns the counters that a rule has, or will have.
    pub(super) fn counters(&self, rule: &Rule) -> Counters {
        match rule.counters {
            Carry::Set(counters) => counters,
            Carry::Since(..) => Counters::default(),
            Carry::Old(_) => self.entry(rule).map(Entry::counters).unwrap_or_default(),
        }
    }

    pub(super) fn old_entries(&self) -> u32 {
        self.old_entries
    }

    /// Returns the table as a request to replace the old one.
    pub(super) fn write(&self) -> Result<Written, Error> {
        let chains = self.in_order();
        let (starts, policies, by_id, size) = self.offsets(&chains);
        let wrong = |reason| self.malformed(size, reason);
        let mut request =
            table_request(&self.table, REPLACE).map_err(|_| wrong("expected a shorter name of a table"))?;
        request.reserve(size);
        let mut carried = Vec::with_capacity(self.old_entries as usize);
        let head = ErrorEntry::new(self.family);
        let end = standard_entry(self.family, RETURN);
        for (_, chain) in &chains {
            if chain.hook.is_none() {
                head.write(&chain.name, &mut request);
                carried.push(None);
            }
            for rule in &chain.rules {
                self.write_rule(rule, &by_id, &mut request)?;
                carried.push(Some(rule.counters));
            }
            match chain.policy {
                RETURN => request.extend_from_slice(&end),
                policy => request.extend(standard_entry(self.family, policy)),
            }
            carried.push(chain.hook.map(|_| chain.policy_counters));
        }
        head.write("ERROR", &mut request);
        carried.push(None);
        let total = u32::try_from(size).map_err(|_| wrong("expected a table of at most 4 GiB"))?;
        let count = u32::try_from(carried.len()).unwrap_or(u32::MAX);
        let info = Info { valid_hooks: self.valid_hooks, starts, policies, entries: count, size: total };
        info.write_replace(&mut request);
        Ok(Written { request, carried })
    }

    /// Returns where the chains of the hooks start and end, where the rules of each chain start, and the size
    /// of all entries.
    #[allow(clippy::type_complexity, reason = "used once")]
    fn offsets(&self, chains: &[(ChainId, &Chain)]) -> ([u32; 5], [u32; 5], Vec<u32>, usize) {
        let (mut starts, mut policies) = ([0; 5], [0; 5]);
        let mut by_id = vec![0; self.chains.len()];
        let mut at = 0;
        let short = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
        for (id, chain) in chains {
            at += if chain.hook.is_none() { error_size(self.family) } else { 0 };
            let start = at;
            at += chain.rules.iter().map(|rule| self.bytes(rule).len()).sum::<usize>();
            if let Some(place) = by_id.get_mut(id.0) {
                *place = short(start);
            }
            if let Some(hook) = chain.hook
                && let Some((start_at, policy_at)) = starts.get_mut(hook).zip(policies.get_mut(hook))
            {
                (*start_at, *policy_at) = (short(start), short(at));
            }
            at += standard_size(self.family);
        }
        (starts, policies, by_id, at + error_size(self.family))
    }

    fn write_rule(&self, rule: &Rule, by_id: &[u32], request: &mut Vec<u8>) -> Result<(), Error> {
        let bytes = self.bytes(rule);
        let start = request.len();
        request.extend_from_slice(bytes);
        let target = match rule.jump {
            Jump::None => return Ok(()),
            Jump::Next => u32::try_from(request.len() - REPLACE).unwrap_or(u32::MAX),
            Jump::Chain(id) => by_id.get(id.0).copied().unwrap_or(u32::MAX),
        };
        let place = verdict_at(bytes, self.family)
            .and_then(|place| request.get_mut(start + place.start..start + place.end));
        match place {
            Some(place) => {
                place.copy_from_slice(&target.to_ne_bytes());
                Ok(())
            }
            None => Err(self.malformed(start, "expected a standard target")),
        }
    }
}

impl Chain {
    fn new(name: String) -> Self {
        let policy_counters = Carry::Set(Counters::default());
        let policy_seen = Counters::default();
        Self { name, hook: None, policy: RETURN, policy_counters, policy_seen, rules: Vec::new() }
    }

    /// Returns the counters that the policy has, or will have.
    pub(super) fn counters(&self) -> Counters {
        match self.policy_counters {
            Carry::Set(counters) => counters,
            Carry::Since(..) => Counters::default(),
            Carry::Old(_) => self.policy_seen,
        }
    }
}

impl Rule {
    /// Returns a new rule; `jump` is that of its action.
    pub(super) fn new(bytes: Vec<u8>, jump: Jump, counters: Counters) -> Self {
        Self { bytes: Bytes::New(bytes), jump, counters: Carry::Set(counters) }
    }
}

/// Encodes a rule; the verdict of a jump is filled in when the table is written.
pub(super) fn encode_rule(rule: &crate::rule::Rule, family: Family) -> Result<Vec<u8>, String> {
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
