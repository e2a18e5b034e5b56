//! Reads the ruleset of the kernel: tables, chains, rules, sets, elements, objects and flowtables.
//!
//! The types of this module describe what the kernel reports, including handles, counters and times, which
//! cannot be requested. Each kind of object has its own function, with a filter for one table; [`ruleset`]
//! reads a whole table, or all of them, as of one generation.
//!
//! A single object is read by the id that the operations of a transaction take, a rule by its chain and
//! handle ([`table`], [`chain`], [`rule`], [`set`], [`element`], [`object`], [`flowtable`]). The result is
//! `None` if it does not exist.
//!
//! `reset` of nft(8) is here as well: to the kernel it is a request that resets the state it reports. It
//! cannot be part of a transaction, and is not undone when something else fails. [`reset_objects`],
//! [`reset_rules`] and [`reset_elements`] reset many objects, [`reset_object`], [`reset_rule`] and
//! [`reset_element`] a single one.
//!
//! [`find`] looks up an element by its value, and an interval as a whole.
//!
//! [`hooks`] lists all functions that are registered to process packets, as `nft list hooks` does: those of
//! chains and those that do not belong to nftables.
//!
//! If objects change during a dump, the dump is repeated; an incomplete one is never returned
//! ([`sluicegate_netlink::dump`]). User data (comments, types) were written by the program that created the
//! object, and are not trusted.
//!
//! ```no_run
//! use sluicegate_nftables::netlink::{Options, NetlinkFamily, Socket};
//! use sluicegate_nftables::{Family, TableId, read};
//!
//! let mut socket = Socket::open(NetlinkFamily::NETFILTER, &Options::default())?;
//! let input = TableId::new(Family::INET, "filter".parse()?).chain("input".parse()?);
//! for rule in read::chain_rules(&mut socket, &input)? {
//!     println!("{} {:?}", rule.handle, rule.expressions);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod chain;
mod element;
pub(crate) mod event;
mod find;
mod flowtable;
mod generation;
mod hook;
mod list_options;
mod object;
mod rule;
mod set;
mod table;
pub(crate) mod trace;
pub(crate) mod typed_set;

use sluicegate_netlink::attr::Attributes;
use sluicegate_netlink::message::{Flags, Message};
use sluicegate_netlink::{Batch, DecodeError, MessageWriter, Transport, dump_into, dump_once, exchange};

use crate::error::Error;
pub use crate::object::element::query::ElementQuery;
pub use crate::object::userdata::UserData;
pub use chain::{Chain, ChainFlags, Hook, chain, chains};
pub use element::{Element, ElementDetails, ElementFlags, element, elements, reset_element, reset_elements};
pub use event::{Change, Event, GROUP, RuleChange, RulePosition, SetName, TRACE_GROUP};
pub use find::{find, find_and_reset};
pub use flowtable::{Flowtable, flowtable, flowtables};
pub use generation::{Generation, generation};
pub(crate) use hook::supports_hooks;
pub use hook::{HookListing, RegisteredBy, RegisteredHook, hook, hooks};
pub use list_options::{interfaces, list_options};
pub use object::{Object, object, objects, reset_object, reset_objects};
pub use rule::{Rule, chain_rules, reset_chain_rules, reset_rule, reset_rules, rule, rules};
pub use set::{Set, set, sets};
pub use table::{Table, table, tables};
pub use trace::{Trace, TraceConntrack, TraceDevice, TraceStep};

use crate::wire::message::{NFT_MSG_GETOBJ_RESET, NFT_MSG_GETRULE_RESET, SUBSYSTEM};
use crate::{Family, TableId, Within};

/// The ruleset of one table, one family or the whole kernel.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Ruleset {
    /// The generation of this ruleset.
    pub generation: u32,
    /// The tables.
    pub tables: Vec<Table>,
    /// The chains of these tables.
    pub chains: Vec<Chain>,
    /// The rules of these tables, in the order of each chain.
    pub rules: Vec<Rule>,
    /// The sets and maps, each with its elements.
    pub sets: Vec<(Set, Vec<Element>)>,
    /// The stateful objects.
    pub objects: Vec<Object>,
    /// The flowtables.
    pub flowtables: Vec<Flowtable>,
}

impl Ruleset {
    /// Creates a ruleset of tables that are empty, to be completed with objects that were read one by one.
    #[must_use]
    pub fn new(tables: Vec<Table>) -> Self {
        Self { tables, ..Self::default() }
    }

    /// Appends the ruleset of other tables. The generation stays the same.
    pub fn append(&mut self, mut other: Self) {
        self.tables.append(&mut other.tables);
        self.chains.append(&mut other.chains);
        self.rules.append(&mut other.rules);
        self.sets.append(&mut other.sets);
        self.objects.append(&mut other.objects);
        self.flowtables.append(&mut other.flowtables);
    }
}

/// Reads the ruleset of one table, of one family, or of all families with [`Family::UNSPEC`], as of one
/// generation.
///
/// If the table does not exist, the result is empty.
///
/// If the kernel refuses, or other programs commit faster than this reads ([`Interrupted`](sluicegate_netlink::Error::Interrupted)).
///
/// ```
/// use sluicegate_nftables::{Family, Transaction, fake::Fake, read};
///
/// let mut kernel = Fake::new(); // or a `Socket`
/// Transaction::parse("add table ip web; add chain ip web input")?.apply(&mut kernel)?;
/// let ruleset = read::ruleset(&mut kernel, Family::UNSPEC)?;
/// assert_eq!(ruleset.chains.len(), 1);
/// for table in ruleset.content() {
///     print!("{table}"); // as nft lists it
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn ruleset(
    transport: &mut (impl Transport + ?Sized),
    within: impl Into<Within>,
) -> Result<Ruleset, Error> {
    let within = within.into();
    for _ in 0..TRIES {
        let before = generation(transport)?.id;
        let read = ruleset_once(transport, &within, before);
        if generation(transport)?.id == before {
            return read;
        }
    }
    Err(sluicegate_netlink::Error::Interrupted(TRIES).into())
}

fn ruleset_once(
    transport: &mut (impl Transport + ?Sized),
    within: &Within,
    generation: u32,
) -> Result<Ruleset, Error> {
    let mut all = tables(transport, within.family())?;
    all.retain(|table| within.has(&table.name));
    if all.is_empty() {
        return Ok(Ruleset { generation, ..Ruleset::default() });
    }
    let mut with_elements = Vec::new();
    for set in sets(transport, within)? {
        let content =
            elements(transport, &TableId::new(set.family, set.table.clone()).set(set.name.clone()))?;
        with_elements.push((set, content));
    }
    Ok(Ruleset {
        generation,
        chains: chains(transport, within)?,
        rules: rules(transport, within)?,
        sets: with_elements,
        objects: objects(transport, within)?,
        flowtables: flowtables(transport, within)?,
        tables: all,
    })
}

const TRIES: u32 = 8;

/// Requests one object, which `write` names; `None` if it does not exist.
fn one<T>(
    transport: &mut (impl Transport + ?Sized),
    command: u8,
    family: Family,
    write: impl FnOnce(&mut MessageWriter<'_>),
    mut decode: impl FnMut(Family, Attributes<'_>) -> Result<T, DecodeError>,
) -> Result<Option<T>, Error> {
    let mut request = Batch::new();
    write(&mut request.netfilter(SUBSYSTEM, command, Flags::ACK, family.0, 0));
    let mut found = None;
    let report = exchange(transport, &[&request], |message| {
        let (family, attributes) = split(message)?;
        found = Some(decode(family, attributes)?);
        Ok(())
    })?;
    match report.errors.into_iter().map(Error::from).next() {
        Some(error) if error.is_not_found() => Ok(None),
        Some(error) => Err(error),
        None => Ok(found),
    }
}

/// Requests a dump of one kind of object; `write` adds the filter.
fn list<T>(
    transport: &mut (impl Transport + ?Sized),
    command: u8,
    family: Family,
    write: impl FnOnce(&mut MessageWriter<'_>),
    mut decode: impl FnMut(Family, Attributes<'_>) -> Result<T, DecodeError>,
    keep: impl Fn(&T) -> bool,
) -> Result<Vec<T>, Error> {
    let mut request = Batch::new();
    write(&mut request.netfilter(SUBSYSTEM, command, Flags::DUMP, family.0, 0));
    let decode = |message: Message<'_>, list: &mut Vec<T>| {
        let (family, attributes) = split(message)?;
        let object = decode(family, attributes)?;
        if keep(&object) {
            list.push(object);
        }
        Ok(())
    };
    // A second dump would not show what the first one has reset.
    let repeatable = ![NFT_MSG_GETOBJ_RESET, NFT_MSG_GETRULE_RESET].contains(&command);
    let list = match repeatable {
        true => dump_into(transport, &request, decode),
        false => dump_once(transport, &request, decode),
    };
    Ok(list?)
}

fn split(message: Message<'_>) -> Result<(Family, Attributes<'_>), DecodeError> {
    let (header, attributes) = message.netfilter()?;
    Ok((Family(header.family), attributes))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sluicegate_netlink::attr::Attributes;

    use super::*;

    proptest! {
        #[test]
        fn no_input_makes_a_decoder_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let attributes = || Attributes::new(&bytes);
            let _ = Table::decode(Family::IP, attributes());
            let _ = Chain::decode(Family::IP, attributes());
            let _ = Rule::decode(Family::IP, attributes());
            let _ = Set::decode(Family::IP, attributes());
            let _ = Element::decode_list(attributes());
            let _ = Object::decode(Family::IP, attributes());
            let _ = Flowtable::decode(Family::IP, attributes());
            let _ = Generation::decode(attributes());
            let hook = RegisteredHook::decode(Family::IP, attributes());
            let _ = hook.map(|hook| HookListing(&[hook]).to_string());
            let _ = UserData::new(&bytes).count();
        }
    }
}
