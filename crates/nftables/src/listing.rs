//! What the kernel holds, back in the typed language, and printed as `nft -s list ruleset` prints it.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use sluicegate_netlink::attr::Attributes;

use crate::datatype::{DataType, Order};
use crate::expr::{Data, Expr, ObjectKind};
use crate::family::Family;
use crate::key::{Key, Part, Protocol};
use crate::lang::Statement;
use crate::lang::raise::{Sets, raise};
use crate::lang::raise_statement::{state, synproxy};
use crate::name::{Comment, InterfaceName, Name};
use crate::object::element::{sortable, successor, turned_back};
use crate::object::set::{DATA_TYPEOF, KEY_TYPEOF, TypeLine};
use crate::object::*;
use crate::read;

/// A table and all that is in it, in the typed language.
///
/// Printed, it is what `nft -s list ruleset` says of it: without handles, counts and times that are left. Rules that the language has no words
/// for hold [`Statement::Raw`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableContent {
    /// The table.
    pub table: Table,
    /// Its stateful objects; those of kinds that have no words are left out.
    pub objects: Vec<StatefulObject>,
    /// Its named sets and maps with their elements.
    pub sets: Vec<(Set, Vec<Element>)>,
    /// Its flowtables.
    pub flowtables: Vec<Flowtable>,
    /// Its chains with their rules, each with its handle.
    pub chains: Vec<(Chain, Vec<Rule>)>,
}

impl read::Ruleset {
    /// Everything in the typed language, table by table.
    ///
    /// ```no_run
    /// use sluicegate_netlink::{Options, Protocol, Socket};
    /// use sluicegate_nftables::{Family, read};
    ///
    /// let mut socket = Socket::open(Protocol::NETFILTER, &Options::default())?;
    /// for table in read::ruleset(&mut socket, Family::UNSPEC, None)?.content() {
    ///     print!("{table}"); // as `nft -s list ruleset`
    /// }
    /// # Ok::<(), sluicegate_netlink::Error>(())
    /// ```
    #[must_use]
    pub fn content(&self) -> Vec<TableContent> {
        self.tables.iter().map(|table| self.table_content(table)).collect()
    }

    fn table_content(&self, held: &read::Table) -> TableContent {
        let id = TableId::new(held.family, held.name.clone());
        let mut table = Table::new(id.clone());
        table.flags = TableFlags::from_bits_retain(held.flags.bits());
        table.comment = comment(held.comment());
        let own = |family: Family, name: &Name| family == held.family && *name == held.name;

        let mut sets: Sets = HashMap::new();
        let mut named = Vec::new();
        for (set, elements) in self.sets.iter().filter(|(set, _)| own(set.family, &set.table)) {
            let typed = set_of(&id, set);
            let elements = elements_of(&typed, elements);
            if !typed.is_anonymous() {
                named.push((typed.clone(), elements.clone()));
            }
            sets.insert(set.name.clone(), (typed, elements));
        }
        let mut rules: HashMap<&Name, Vec<&read::Rule>> = HashMap::new();
        for rule in self.rules.iter().filter(|rule| own(rule.family, &rule.table)) {
            rules.entry(&rule.chain).or_default().push(rule);
        }
        let chains = self.chains.iter().filter(|chain| own(chain.family, &chain.table)).map(|chain| {
            let typed = chain_of(&id, chain);
            let rules = rules.get(&chain.name).into_iter().flatten();
            let rules = rules.map(|rule| rule_of(&typed.id, rule, &sets)).collect();
            (typed, rules)
        });
        TableContent {
            chains: chains.collect(),
            objects: self
                .objects
                .iter()
                .filter(|o| own(o.family, &o.table))
                .filter_map(|o| object_of(&id, o))
                .collect(),
            flowtables: self
                .flowtables
                .iter()
                .filter(|f| own(f.family, &f.table))
                .map(|f| flowtable_of(&id, f))
                .collect(),
            sets: named,
            table,
        }
    }
}

fn comment(text: Option<&str>) -> Option<Comment> {
    text.map(Comment::lossy)
}

fn chain_of(table: &TableId, held: &read::Chain) -> Chain {
    let base = held.hook.as_ref().and_then(|hook| {
        Some(BaseChain {
            kind: match held.kind.as_deref()? {
                "filter" => ChainType::Filter,
                "nat" => ChainType::Nat,
                "route" => ChainType::Route,
                other => ChainType::Other(Name::held(other)),
            },
            hook: Hook::ALL.into_iter().find(|h| h.number(held.family) == Some(hook.number))?,
            priority: Priority(hook.priority),
            policy: match held.policy {
                Some(0) => Some(Policy::Drop),
                Some(_) => Some(Policy::Accept),
                None => None,
            },
            devices: devices_of(&hook.devices),
        })
    });
    Chain { id: table.chain(held.name.clone()), base, comment: comment(held.comment()) }
}

/// The kernel says a single device twice, by itself and in a list.
fn devices_of(names: &[String]) -> Vec<InterfaceName> {
    let mut devices: Vec<_> = names.iter().map(|device| InterfaceName::held(device)).collect();
    devices.dedup();
    devices
}

fn rule_of(chain: &ChainId, held: &read::Rule, sets: &Sets) -> Rule {
    Rule {
        statements: raise(held.family, sets, &held.expressions),
        comment: comment(held.comment()),
        handle: Some(held.handle),
        ..Rule::new(chain.clone())
    }
}

fn set_of(table: &TableId, held: &read::Set) -> Set {
    let flags = SetFlags::from_bits_retain(held.flags.bits());
    let map = flags.intersects(SetFlags::MAP | SetFlags::OBJECT);
    let id = SetId { table: table.clone(), name: held.name.clone(), map };
    let mut set = Set::new(id, type_of(held, KEY_TYPEOF, held.key_type, held.key_len, &held.fields));
    set.data = match (held.data_type, held.object_kind) {
        (_, Some(kind)) => Some(SetData::Object(kind)),
        (Some(NFT_DATA_VERDICT), _) => Some(SetData::Verdict),
        (Some(code), _) => {
            Some(SetData::Value(type_of(held, DATA_TYPEOF, code, held.data_len.unwrap_or(0), &[])))
        }
        (None, None) => None,
    };
    set.flags = flags - (SetFlags::MAP | SetFlags::OBJECT | SetFlags::CONCAT | SetFlags::EXPR);
    set.timeout = held.timeout.filter(|t| *t != 0).map(Duration::from_millis);
    set.gc_interval = held.gc_interval.filter(|t| *t != 0).map(|t| Duration::from_millis(t.into()));
    set.size = held.size.filter(|size| *size != 0);
    set.policy = held.policy.filter(|policy| *policy == 1).map(|_| SetPolicy::Memory);
    let merge = read::UserData::new(&held.user_data).find(MERGE_ELEMENTS);
    set.auto_merge = merge.is_some_and(|value| value.iter().any(|byte| *byte != 0));
    set.statements = held.expressions.iter().filter_map(state_of).collect();
    set.comment = comment(held.comment());
    set
}

/// A type as its maker noted it, else by nft's numbers and the lengths.
fn type_of(held: &read::Set, note: u8, code: u32, length: u32, fields: &[u32]) -> SetType {
    if let Some(expression) = read::UserData::new(&held.user_data).find(note).and_then(typeof_data::decode) {
        return SetType::Typeof(expression);
    }
    let mut ids = Vec::new();
    let mut rest = code;
    while rest != 0 {
        ids.push(u8::try_from(rest & 0x3f).unwrap_or(0));
        rest >>= 6;
    }
    ids.reverse();
    let types: Option<Vec<_>> = ids.iter().map(|id| DataType::from_id(*id)).collect();
    let fits = |types: &[DataType]| {
        let bytes = |of: &DataType| u32::try_from(of.bytes()).unwrap_or(0);
        match types {
            [only] => bytes(only) == length,
            several => several.iter().map(|of| bytes(of).next_multiple_of(4)).sum::<u32>() == length,
        }
    };
    let integer = |bytes: u32| Part::Integer {
        bytes: u8::try_from(bytes.clamp(1, 16)).unwrap_or(16),
        order: order(held),
    };
    match types {
        Some(types) if fits(&types) => SetType::Types(types),
        // Integers have any width, and so does what other programs keep without a type.
        Some(types) if types.len() == 1 => SetType::Parts(vec![integer(length)]),
        Some(types) if types.len() == fields.len() => {
            let part = |(of, bytes): (&DataType, &u32)| {
                if u32::try_from(of.bytes()) == Ok(*bytes) { Part::Type(*of) } else { integer(*bytes) }
            };
            SetType::Parts(types.iter().zip(fields).map(part).collect())
        }
        _ if !fields.is_empty() => SetType::Parts(fields.iter().map(|bytes| integer(*bytes)).collect()),
        _ => SetType::Parts(words(length).map(integer).collect()),
    }
}

/// A length in pieces that a part can have.
fn words(length: u32) -> impl Iterator<Item = u32> {
    // NFT_DATA_VALUE_MAXLEN
    let length = length.min(64);
    (0..length / 16).map(|_| 16).chain((!length.is_multiple_of(16)).then_some(length % 16))
}

fn order(held: &read::Set) -> Order {
    const BIG_ENDIAN: u32 = 2;
    let noted = read::UserData::new(&held.user_data).find(0).and_then(|value| value.try_into().ok());
    if noted.map(u32::from_ne_bytes) == Some(BIG_ENDIAN) { Order::Network } else { Order::Host }
}

fn elements_of(set: &Set, held: &[read::Element]) -> Vec<Element> {
    let parts = set.key.parts();
    let interval = set.flags.contains(SetFlags::INTERVAL) && parts.len() == 1;
    let mut typed: Vec<(Element, bool)> =
        held.iter().filter_map(|element| element_of(set, &parts, element)).collect();
    if !interval {
        typed.sort_by_cached_key(|(element, _)| (element.is_catch_all(), sortable(element.key())));
        return typed.into_iter().map(|(element, _)| element).collect();
    }
    // Intervals are starts and ends; an end sorts before a start at the same place.
    typed.sort_by_cached_key(|(element, end)| (element.is_catch_all(), sortable(element.key()), !end));
    let mut out: Vec<Element> = Vec::new();
    let mut open: Option<Element> = None;
    for (element, end) in typed {
        if element.is_catch_all() {
            out.extend(open.take().map(|start| close(start, None)));
            out.push(element);
            continue;
        }
        if let Some(start) = open.take() {
            out.push(close(start, Some(*element.key())));
        }
        if !end {
            open = Some(element);
        }
    }
    out.extend(open.map(|start| close(start, None)));
    out
}

/// An interval that ends before a key, or with the last one.
fn close(start: Element, behind: Option<Key>) -> Element {
    let last = match behind {
        Some(key) => predecessor(&key),
        None => None,
    };
    let end = last.unwrap_or_else(|| start.key().last_of_type());
    if end == *start.key() { start } else { start.to(end) }
}

/// The key before: the one whose successor this is.
fn predecessor(key: &Key) -> Option<Key> {
    let mut before = *key;
    before.decrement();
    (successor(&before).as_ref() == Some(key)).then_some(before)
}

fn element_of(set: &Set, parts: &[Part], held: &read::Element) -> Option<(Element, bool)> {
    let turned = set.flags.contains(SetFlags::INTERVAL);
    let key_of = |bytes: &[u8]| match turned {
        true => Key::decode(parts, &turned_back(parts, bytes)),
        false => Key::decode(parts, bytes),
    };
    let mut element = if held.flags.contains(read::ElementFlags::CATCHALL) {
        Element::catch_all()
    } else {
        Element::new(key_of(&held.key)?)
    };
    if let Some(end) = held.key_end.as_deref().and_then(key_of).filter(|end| end != element.key()) {
        element = element.to(end);
    }
    element = match (&held.data, &held.object, &set.data) {
        (Some(Data::Verdict(verdict)), _, _) => element.verdict(verdict.clone()),
        (Some(Data::Value(bytes)), _, Some(SetData::Value(of))) => data_of(element, &of.parts(), bytes)?,
        (_, Some(name), _) => element.object(name.clone()),
        _ => element,
    };
    if let Some(timeout) = held.timeout.filter(|timeout| set.timeout != Some(Duration::from_millis(*timeout)))
    {
        element = element.timeout(Duration::from_millis(timeout));
    }
    if let Some(expiration) = held.expiration {
        element = element.expires(Duration::from_millis(expiration));
    }
    if let Some(comment) = comment(held.comment()) {
        element = element.comment(comment);
    }
    for statement in held.expressions.iter().filter_map(state_of) {
        element = element.statement(statement);
    }
    Some((element, held.flags.contains(read::ElementFlags::INTERVAL_END)))
}

/// What a set or an element carries. Of a state that a newer kernel knows more of, that much as has a word; what was read keeps the rest.
fn state_of(expr: &Expr) -> Option<Statement> {
    match expr {
        Expr::Unknown(newer) => state(&Expr::decode_bytes(&newer.name, &newer.data).ok()?),
        known => state(known),
    }
}

fn data_of(element: Element, parts: &[Part], bytes: &[u8]) -> Option<Element> {
    if let Some(value) = Key::decode(parts, bytes) {
        return Some(element.value(value));
    }
    let (low, high) = bytes.split_at_checked(bytes.len() / 2)?;
    Some(element.value_range(Key::decode(parts, low)?, Key::decode(parts, high)?))
}

fn object_of(table: &TableId, held: &read::Object) -> Option<StatefulObject> {
    let config = match held.object_kind {
        ObjectKind::COUNTER => stateful_config(held, "counter")?,
        ObjectKind::QUOTA => stateful_config(held, "quota")?,
        ObjectKind::LIMIT => stateful_config(held, "limit")?,
        ObjectKind::SYNPROXY => match decode_as(held, "synproxy")? {
            Expr::Synproxy(s) => ObjectConfig::Synproxy(synproxy(&s)),
            _ => return None,
        },
        ObjectKind::CT_HELPER | ObjectKind::CT_TIMEOUT | ObjectKind::CT_EXPECT => conntrack_config(held)?,
        ObjectKind::SECMARK => {
            let context = Attributes::new(&held.data).find(1).ok()??;
            ObjectConfig::Secmark(Comment::lossy(context.str().ok()?))
        }
        _ => return None,
    };
    let id = table.object(held.object_kind, held.name.clone());
    Some(StatefulObject { id, config, comment: comment(held.comment()) })
}

fn decode_as(held: &read::Object, name: &str) -> Option<Expr> {
    Expr::decode_bytes(name, &held.data).ok()
}

fn stateful_config(held: &read::Object, name: &str) -> Option<ObjectConfig> {
    Some(match state(&decode_as(held, name)?)? {
        Statement::Counter(counter) => ObjectConfig::Counter(counter),
        Statement::Quota(quota) => ObjectConfig::Quota(quota),
        Statement::Limit(limit) => ObjectConfig::Limit(limit),
        _ => return None,
    })
}

fn conntrack_config(held: &read::Object) -> Option<ObjectConfig> {
    let attribute = |kind| Attributes::new(&held.data).find(kind).ok().flatten();
    let family = |kind| {
        let number = attribute(kind).and_then(|a| a.be16().ok()).and_then(|n| u8::try_from(n).ok());
        number.filter(|n| *n != 0).map(Family)
    };
    let protocol = |kind| attribute(kind).and_then(|a| a.u8().ok()).map(Protocol);
    Some(match held.object_kind {
        ObjectKind::CT_HELPER => ObjectConfig::CtHelper {
            helper: Name::held(attribute(1)?.str().ok()?),
            family: family(2),
            protocol: protocol(3)?,
        },
        ObjectKind::CT_TIMEOUT => {
            let protocol = protocol(2)?;
            let mut policy = Vec::new();
            for state in attribute(3)?.attributes() {
                let state = state.ok()?;
                let index = usize::from(state.kind).checked_sub(1)?;
                let time = Duration::from_secs(state.be32().ok()?.into());
                // The kernel fills in what was not asked for; so nft takes these times for none.
                let usual = stateful::usual_timeouts(protocol).get(index).copied().map(Duration::from_secs);
                if let Some(name) = timeout_states(protocol).get(index).filter(|_| usual != Some(time)) {
                    policy.push((*name, time));
                }
            }
            ObjectConfig::CtTimeout { family: family(1), protocol, policy }
        }
        _ => ObjectConfig::CtExpectation {
            family: family(1),
            protocol: protocol(2)?,
            port: attribute(3)?.be16().ok()?,
            timeout: Duration::from_millis(attribute(4)?.u32().ok()?.into()),
            size: attribute(5)?.u8().ok()?,
        },
    })
}

fn flowtable_of(table: &TableId, held: &read::Flowtable) -> Flowtable {
    Flowtable {
        id: table.flowtable(held.name.clone()),
        priority: Priority(held.priority),
        devices: devices_of(&held.devices),
        flags: FlowtableFlags::from_bits_retain(held.flags.bits()),
    }
}

/// As `nft -s list ruleset` prints it.
impl fmt::Display for TableContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "table {} {{", self.table.id)?;
        if let Some(comment) = &self.table.comment {
            writeln!(f, "\tcomment {comment}")?;
        }
        let flags = self.table.flag_names();
        if !flags.is_empty() {
            writeln!(f, "\tflags {}", flags.join(","))?;
        }
        let mut blocks = Vec::new();
        blocks.extend(self.objects.iter().map(object_block));
        blocks.extend(self.sets.iter().map(|(set, elements)| set_block(set, elements)));
        blocks.extend(
            self.flowtables.iter().map(|ft| block(&format!("flowtable {}", ft.id.name), &ft.properties())),
        );
        blocks.extend(self.chains.iter().map(|(chain, rules)| chain_block(chain, rules)));
        writeln!(f, "{}}}", blocks.join("\n"))
    }
}

fn block(title: &str, lines: &[String]) -> String {
    let mut text = format!("\t{title} {{\n");
    for line in lines {
        text.push_str("\t\t");
        text.push_str(line);
        text.push('\n');
    }
    text.push_str("\t}\n");
    text
}

fn object_block(object: &StatefulObject) -> String {
    let title = format!("{} {}", object.id.kind, object.id.name);
    let mut lines: Vec<_> = object.comment.iter().map(|comment| format!("comment {comment}")).collect();
    let stateless = match &object.config {
        ObjectConfig::Counter(_) => Vec::new(),
        ObjectConfig::Quota(quota) => vec![crate::lang::Quota { used: 0, ..*quota }.to_string()],
        other => other.properties(),
    };
    lines.extend(stateless);
    block(&title, &lines)
}

fn set_block(set: &Set, elements: &[Element]) -> String {
    let mut lines = vec![TypeLine(set).to_string()];
    let stateless = Set { statements: set.statements.iter().map(without_state).collect(), ..set.clone() };
    lines.extend(stateless.properties());
    if !elements.is_empty() {
        let per_line = match set.key.parts().as_slice() {
            [part] if matches!(part.data_type(), DataType::IPV4_ADDR | DataType::IPV6_ADDR) => 2,
            [_] => 5,
            _ => 1,
        };
        let texts: Vec<_> =
            elements.iter().map(|element| element.clone().without_state().to_string()).collect();
        let rows: Vec<_> = texts.chunks(per_line).map(|row| row.join(", ")).collect();
        lines.push(format!("elements = {{ {} }}", rows.join(",\n\t\t\t     ")));
    }
    block(&format!("{} {}", set.word(), set.id.name), &lines)
}

fn chain_block(chain: &Chain, rules: &[Rule]) -> String {
    let mut lines: Vec<_> = chain.comment.iter().map(|comment| format!("comment {comment}")).collect();
    if let Some(base) = &chain.base {
        let family = chain.id.table.family;
        let header = base.header(|priority, hook| priority.name(family, hook));
        let policy = base.policy.map(|policy| format!(" policy {policy};")).unwrap_or_default();
        lines.push(format!("{header};{policy}"));
    }
    lines.extend(rules.iter().map(|rule| {
        let statements = rule.statements.iter().map(without_state).collect();
        Rule { statements, ..rule.clone() }.body().to_string()
    }));
    block(&format!("chain {}", chain.id.name), &lines)
}

/// What has been counted is no part of what is configured.
fn without_state(statement: &Statement) -> Statement {
    match statement {
        Statement::Counter(_) => crate::lang::Counter::default().into(),
        Statement::Quota(quota) => crate::lang::Quota { used: 0, ..*quota }.into(),
        Statement::Set(update) => {
            let statements = update.statements.iter().map(without_state).collect();
            crate::lang::SetUpdate { statements, ..update.clone() }.into()
        }
        other => other.clone(),
    }
}

impl Element {
    fn without_state(mut self) -> Self {
        self.set_stateless(without_state);
        self
    }
}

/// `NFT_DATA_VERDICT`
const NFT_DATA_VERDICT: u32 = 0xffff_ff00;
/// `NFTNL_UDATA_SET_MERGE_ELEMENTS`
const MERGE_ELEMENTS: u8 = 2;
