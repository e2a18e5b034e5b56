//! The plan against what the kernel holds.
//!
//! The plan is taken as it would be sent: encoded, and read back by the decoders that read the kernel's dumps. So both sides
//! are of one kind, and only what the kernel fills in by itself has to be evened out.

use std::collections::{BTreeMap, HashMap, HashSet};

use sluicegate_netlink::message::Messages;
use sluicegate_nftables::SetFlags;
use sluicegate_nftables::expr::{self, Bytes, Data, Expr, Lookup, NatFlags};
use sluicegate_nftables::read::{self, Ruleset};
use sluicegate_nftables::{
    self as nft, ApplyOptions, ChainId, Element, ElementData, Flush, Key, Name, Object, Operation, Rule, Set,
    SetId, TableId, Target, Transaction,
};

use crate::model::Family;

/// What a comparison found.
pub(super) enum Comparison {
    /// The kernel holds nothing of ours.
    Absent,
    /// This brings the kernel along; these sets keep the size that they have there.
    Differs { transaction: Transaction, sizes: Vec<(Family, String, u32)> },
    /// What the kernel holds under our name is built differently.
    Foreign,
}

/// Compares a script that makes everything with what the kernel holds, a ruleset for each family.
pub(super) fn compare(script: &Transaction, held: &[Ruleset]) -> Result<Comparison, nft::Error> {
    if held.iter().all(|ruleset| ruleset.tables.is_empty()) {
        return Ok(Comparison::Absent);
    }
    let wanted = Wanted::of(script)?;
    let mut work = Work::default();
    for ruleset in held {
        let Some(table) = ruleset.tables.first() else { return Ok(Comparison::Foreign) };
        let id = TableId::new(table.family, table.name.clone());
        if work.sets(&id, &wanted, ruleset).is_none() || work.chains(&id, &wanted, ruleset).is_none() {
            return Ok(Comparison::Foreign);
        }
    }
    let sizes = std::mem::take(&mut work.sizes);
    Ok(Comparison::Differs { transaction: work.transaction(), sizes })
}

/// The parts of a script by their names, as they were written and as they are sent.
struct Wanted<'a> {
    sets: HashMap<(nft::Family, &'a str), WantedSet<'a>>,
    chains: HashMap<(nft::Family, &'a str), WantedChain<'a>>,
}

struct WantedSet<'a> {
    set: &'a Set,
    sent: read::Set,
    elements: HashMap<ElementKey, &'a Element>,
}

struct WantedChain<'a> {
    chain: &'a nft::Chain,
    sent: read::Chain,
    rules: Vec<(&'a Rule, Body)>,
}

/// The bytes of a key, and of the end of its range.
type ElementKey = (Bytes, Option<Bytes>);

impl<'a> Wanted<'a> {
    fn of(script: &'a Transaction) -> Result<Self, nft::Error> {
        let mut sent = Sent::of(script)?;
        let mut wanted = Self { sets: HashMap::new(), chains: HashMap::new() };
        for operation in script.operations() {
            match operation {
                Operation::Add(Object::Set(set)) => {
                    let key = (set.id.table.family, set.id.name.as_str());
                    if let Some(sent) = sent.sets.remove(&(key.0, key.1.to_owned())) {
                        wanted.sets.insert(key, WantedSet { set, sent, elements: HashMap::new() });
                    }
                }
                Operation::Add(Object::Chain(chain)) => {
                    let key = (chain.id.table.family, chain.id.name.as_str());
                    if let Some(sent) = sent.chains.remove(&(key.0, key.1.to_owned())) {
                        wanted.chains.insert(key, WantedChain { chain, sent, rules: Vec::new() });
                    }
                }
                Operation::Add(Object::Elements(elements)) => {
                    let id = &elements.set;
                    if let Some(set) = wanted.sets.get_mut(&(id.table.family, id.name.as_str())) {
                        set.elements.extend(elements.list.iter().map(|element| (key_of(element), element)));
                    }
                }
                Operation::Add(Object::Rule(rule)) => {
                    let key = (rule.chain.table.family, rule.chain.name.as_str());
                    if let (Some(chain), Some(sent)) = (wanted.chains.get_mut(&key), sent.rules.next()) {
                        chain.rules.push((rule, sent));
                    }
                }
                _ => {}
            }
        }
        Ok(wanted)
    }
}

/// What a rule says: its expressions, the content of the sets without a name that they look into, and its comment.
#[derive(PartialEq, Eq)]
struct Body {
    expressions: Vec<Expr>,
    anonymous: Vec<Anonymous>,
    user_data: Vec<u8>,
}

/// A set that belongs to one rule. Its name is chosen by the kernel and says nothing.
#[derive(Clone, PartialEq, Eq)]
struct Anonymous {
    flags: SetFlags,
    key_type: u32,
    key_len: u32,
    data_type: Option<u32>,
    /// In order.
    elements: Vec<AnonymousElement>,
}

/// Key, end of a range, data and flags of an element.
type AnonymousElement = (Bytes, Option<Bytes>, Option<Data>, u32);

impl Anonymous {
    fn new(set: &read::Set, elements: &[read::Element]) -> Self {
        let mut anonymous = Self {
            flags: set.flags,
            key_type: set.key_type,
            key_len: set.key_len,
            data_type: set.data_type,
            elements: Vec::new(),
        };
        anonymous.extend(elements);
        anonymous
    }

    fn extend(&mut self, elements: &[read::Element]) {
        let content = |e: &read::Element| (e.key.clone(), e.key_end.clone(), e.data.clone(), e.flags.bits());
        self.elements.extend(elements.iter().map(content));
        self.elements.sort_by(|a, b| (&a.0, &a.1, a.3).cmp(&(&b.0, &b.1, b.3)));
    }
}

impl Body {
    /// `find` gives the set without a name that a lookup means.
    fn new(
        mut expressions: Vec<Expr>,
        user_data: Vec<u8>,
        find: impl Fn(&Lookup) -> Option<Anonymous>,
    ) -> Self {
        let mut anonymous = Vec::new();
        for expression in &mut expressions {
            if let Expr::Lookup(lookup) = expression
                && let Some(set) = find(lookup)
            {
                anonymous.push(set);
                if let Ok(name) = Name::new("anonymous") {
                    lookup.set = name;
                }
            }
        }
        Self { expressions: normal(expressions), anonymous, user_data }
    }

    fn held(rule: &read::Rule, sets: &HashMap<&str, &(read::Set, Vec<read::Element>)>) -> Self {
        Self::new(rule.expressions.clone(), rule.user_data.clone(), |lookup| {
            let (set, elements) = sets.get(lookup.set.as_str())?;
            set.flags.contains(SetFlags::ANONYMOUS).then(|| Anonymous::new(set, elements))
        })
    }
}

/// A script as it would be sent, read back.
struct Sent {
    sets: HashMap<(nft::Family, String), read::Set>,
    chains: HashMap<(nft::Family, String), read::Chain>,
    /// In the order of the script.
    rules: std::vec::IntoIter<Body>,
}

impl Sent {
    fn of(script: &Transaction) -> Result<Self, nft::Error> {
        let batch = script.encode(ApplyOptions::default())?;
        let bytes = batch.bytes().map_err(sluicegate_netlink::Error::from)?;
        let (mut sets, mut chains, mut rules) = (HashMap::new(), HashMap::new(), Vec::new());
        let mut anonymous: HashMap<u32, Anonymous> = HashMap::new();
        let fail = |error| nft::Error::from(sluicegate_netlink::Error::from(error));
        for message in Messages::new(bytes) {
            let message = message.map_err(fail)?;
            let (header, attributes) = message.netfilter().map_err(fail)?;
            let family = nft::Family(header.family);
            let number = |kind| attributes.clone().find(kind)?.map(|id| id.be32()).transpose();
            match message.header.kind {
                NFT_MSG_NEWCHAIN => {
                    let chain = read::Chain::decode(family, attributes).map_err(fail)?;
                    chains.insert((family, chain.name.to_string()), chain);
                }
                NFT_MSG_NEWRULE => {
                    let rule = read::Rule::decode(family, attributes).map_err(fail)?;
                    let find = |lookup: &Lookup| anonymous.get(&lookup.set_id?).cloned();
                    rules.push(Body::new(rule.expressions, rule.user_data, find));
                }
                NFT_MSG_NEWSET => {
                    let set = read::Set::decode(family, attributes.clone()).map_err(fail)?;
                    if set.flags.contains(SetFlags::ANONYMOUS) {
                        let id = number(NFTA_SET_ID).map_err(fail)?;
                        anonymous.extend(id.map(|id| (id, Anonymous::new(&set, &[]))));
                    } else {
                        sets.insert((family, set.name.to_string()), set);
                    }
                }
                NFT_MSG_NEWSETELEM => {
                    let id = number(NFTA_SET_ELEM_LIST_SET_ID).map_err(fail)?;
                    if let Some(set) = id.and_then(|id| anonymous.get_mut(&id)) {
                        set.extend(&read::Element::decode_list(attributes).map_err(fail)?);
                    }
                }
                _ => {}
            }
        }
        Ok(Self { sets, chains, rules: rules.into_iter() })
    }
}

/// What has to be done, by the order in which it has to be.
#[derive(Default)]
struct Work {
    new_sets: Vec<Set>,
    new_chains: Vec<nft::Chain>,
    flushed: Vec<ChainId>,
    rules: Vec<Rule>,
    added: BTreeMap<SetKey, (SetId, Vec<Element>)>,
    deleted: BTreeMap<SetKey, (SetId, Vec<Element>)>,
    old_chains: Vec<ChainId>,
    old_sets: Vec<SetId>,
    sizes: Vec<(Family, String, u32)>,
}

/// Orders sets by family and name.
type SetKey = (u8, String);

impl Work {
    /// Compares the sets and their elements. `None` when a set that must keep its content is of another kind.
    fn sets(&mut self, table: &TableId, wanted: &Wanted<'_>, held: &Ruleset) -> Option<()> {
        let mut seen = HashSet::new();
        for (set, elements) in &held.sets {
            if set.flags.contains(SetFlags::ANONYMOUS) {
                continue;
            }
            seen.insert(set.name.as_str());
            match wanted.sets.get(&(set.family, set.name.as_str())) {
                Some(want) => self.set(want, set, elements)?,
                None => self.old_sets.push(table.set(set.name.clone())),
            }
        }
        let family = table.family;
        let absent = wanted.sets.iter().filter(|((of, name), _)| *of == family && !seen.contains(name));
        for (_, want) in absent {
            self.new_sets.push(want.set.clone());
            let all = want.elements.values().map(|element| (*element).clone());
            self.added_to(&want.set.id).extend(all);
        }
        Some(())
    }

    fn set(&mut self, want: &WantedSet<'_>, held: &read::Set, elements: &[read::Element]) -> Option<()> {
        if !same_kind(&want.sent, held) {
            return None;
        }
        if let (Some(_), Some(size)) = (want.sent.size, held.size) {
            let room = usize::try_from(size).unwrap_or(usize::MAX);
            if want.elements.len() > room {
                return None;
            }
            let family = if held.family == nft::Family::IP6 { Family::V6 } else { Family::V4 };
            self.sizes.push((family, held.name.to_string(), size));
        }
        // What the packet path fills is not ours to compare.
        if held.flags.contains(SetFlags::DYNAMIC) {
            return Some(());
        }
        let mut kept = HashSet::new();
        for element in elements {
            let key = (element.key.clone(), element.key_end.clone());
            match want.elements.get(&key) {
                Some(wanted) if same_data(wanted, element) => {
                    kept.insert(key);
                }
                _ => {
                    let element = rebuild(want.set, element)?;
                    self.deleted_from(&want.set.id).push(element);
                }
            }
        }
        let missing = want.elements.iter().filter(|(key, _)| !kept.contains(*key));
        let missing: Vec<_> = missing.map(|(_, element)| (*element).clone()).collect();
        if !missing.is_empty() {
            self.added_to(&want.set.id).extend(missing);
        }
        Some(())
    }

    /// Compares chains and rules. `None` when a base chain is hooked elsewhere, which cannot be mended.
    fn chains(&mut self, table: &TableId, wanted: &Wanted<'_>, held: &Ruleset) -> Option<()> {
        let mut rules: HashMap<&str, Vec<&read::Rule>> = HashMap::new();
        for rule in &held.rules {
            rules.entry(rule.chain.as_str()).or_default().push(rule);
        }
        let sets: HashMap<_, _> = held.sets.iter().map(|held| (held.0.name.as_str(), held)).collect();
        let mut seen = HashSet::new();
        for chain in &held.chains {
            seen.insert(chain.name.as_str());
            let id = table.chain(chain.name.clone());
            let Some(want) = wanted.chains.get(&(chain.family, chain.name.as_str())) else {
                self.old_chains.push(id);
                continue;
            };
            if want.sent.hook != chain.hook || want.sent.kind != chain.kind {
                return None;
            }
            let held = rules.remove(chain.name.as_str()).unwrap_or_default();
            let same = want.rules.len() == held.len()
                && want.rules.iter().zip(held).all(|((_, body), held)| *body == Body::held(held, &sets));
            if !same {
                self.flushed.push(id);
                self.rules.extend(want.rules.iter().map(|(rule, _)| (*rule).clone()));
            }
        }
        let family = table.family;
        let absent = wanted.chains.iter().filter(|((of, name), _)| *of == family && !seen.contains(name));
        for (_, want) in absent {
            self.new_chains.push(want.chain.clone());
            self.rules.extend(want.rules.iter().map(|(rule, _)| (*rule).clone()));
        }
        Some(())
    }

    /// All of it in an order that the kernel takes: what is referred to is made first and deleted last.
    fn transaction(self) -> Transaction {
        let mut transaction = Transaction::new();
        for set in self.new_sets {
            transaction.add(set);
        }
        let (hooked, inner): (Vec<_>, Vec<_>) =
            self.new_chains.into_iter().partition(|chain| chain.base.is_some());
        for chain in inner.into_iter().chain(hooked) {
            transaction.add(chain);
        }
        for chain in self.flushed.iter().chain(&self.old_chains) {
            transaction.flush(Flush::Chain(chain.clone()));
        }
        for rule in self.rules {
            transaction.add(rule);
        }
        for (set, list) in self.deleted.into_values() {
            transaction.delete(nft::Elements { set, list });
        }
        for (set, list) in self.added.into_values().filter(|(_, list)| !list.is_empty()) {
            transaction.add(nft::Elements { set, list });
        }
        for chain in self.old_chains {
            transaction.delete(Target::Chain(chain));
        }
        for set in self.old_sets {
            transaction.delete(Target::Set(set));
        }
        transaction
    }

    fn added_to(&mut self, set: &SetId) -> &mut Vec<Element> {
        &mut self.added.entry(set_key(set)).or_insert_with(|| (set.clone(), Vec::new())).1
    }

    fn deleted_from(&mut self, set: &SetId) -> &mut Vec<Element> {
        &mut self.deleted.entry(set_key(set)).or_insert_with(|| (set.clone(), Vec::new())).1
    }
}

fn set_key(set: &SetId) -> SetKey {
    (set.table.family.0, set.name.to_string())
}

/// Whether a set can take the place of another: all but its size, of which more is as good.
fn same_kind(wanted: &read::Set, held: &read::Set) -> bool {
    wanted.flags == held.flags
        && wanted.key_type == held.key_type
        && wanted.key_len == held.key_len
        && wanted.data_type == held.data_type
        && (wanted.data_len == held.data_len || wanted.data_type == Some(VERDICT_TYPE))
        && wanted.timeout == held.timeout
        && wanted.fields == held.fields
        && wanted.user_data == held.user_data
}

fn key_of(element: &Element) -> ElementKey {
    (element.key().bytes().into(), element.end().map(|end| end.bytes().into()))
}

/// Whether an element gives the same; its comment does not matter.
fn same_data(wanted: &Element, held: &read::Element) -> bool {
    match (wanted.data(), &held.data) {
        (ElementData::None, None) => held.object.is_none(),
        (ElementData::Value(wanted), Some(Data::Value(held))) => wanted.bytes() == held.as_slice(),
        (ElementData::Verdict(wanted), Some(Data::Verdict(held))) => wanted == held,
        _ => false,
    }
}

/// An element of the kernel's as one that can be deleted: its key alone.
fn rebuild(set: &Set, held: &read::Element) -> Option<Element> {
    let parts = set.key.parts();
    let key = Key::decode(&parts, &held.key)?;
    match &held.key_end {
        Some(end) => Some(Element::range(key, Key::decode(&parts, end)?)),
        None => Some(Element::new(key)),
    }
}

/// Evens out what the kernel fills in or leaves out.
fn normal(mut expressions: Vec<Expr>) -> Vec<Expr> {
    for expression in &mut expressions {
        match expression {
            Expr::Lookup(lookup) => {
                lookup.set_id = None;
                lookup.flags = lookup.flags.filter(|flags| !flags.is_empty());
            }
            Expr::Dynset(dynset) => {
                dynset.set_id = None;
                dynset.timeout = dynset.timeout.filter(|timeout| *timeout != 0);
                dynset.flags = dynset.flags.filter(|flags| !flags.is_empty());
            }
            Expr::Numgen(numgen) => numgen.offset = numgen.offset.filter(|offset| *offset != 0),
            Expr::Bitwise(bitwise) => bitwise.op = bitwise.op.or(Some(expr::BitwiseOp::BOOL)),
            Expr::Nat(nat) => {
                nat.addr_max = nat.addr_max.or(nat.addr_min);
                nat.proto_max = nat.proto_max.or(nat.proto_min);
                let flags = nat.flags.unwrap_or(NatFlags::empty());
                let own = flags - (NatFlags::MAP_IPS | NatFlags::PROTO_SPECIFIED);
                nat.flags = Some(own).filter(|flags| !flags.is_empty());
            }
            _ => {}
        }
    }
    expressions
}

const NFT_MSG_NEWCHAIN: u16 = 0x0a03;
const NFT_MSG_NEWRULE: u16 = 0x0a06;
const NFT_MSG_NEWSET: u16 = 0x0a09;
const NFT_MSG_NEWSETELEM: u16 = 0x0a0c;
/// `NFTA_SET_ID`
const NFTA_SET_ID: u16 = 10;
/// `NFTA_SET_ELEM_LIST_SET_ID`
const NFTA_SET_ELEM_LIST_SET_ID: u16 = 4;
/// `NFT_DATA_VERDICT`: the kernel reports a length for it that nobody asked for.
const VERDICT_TYPE: u32 = 0xffff_ff00;
