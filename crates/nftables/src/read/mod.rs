//! What the kernel holds: tables, chains, rules, sets, elements, objects and flowtables as dumps give them.
//!
//! These are observations: they carry handles, counters and times that nobody can ask for. Each is read by a function of
//! its own, filtered by table; [`ruleset`] reads a whole table, or all of them, as of one generation.
//!
//! One object alone is read by its name, a rule by its handle ([`table`], [`chain`], [`rule`], [`set`], [`element`], [`object`], [`flowtable`]): `None`
//! is that there is none.
//!
//! `reset` of nft(8) is here as well: to the kernel it is a question that sets back what it has answered. It is no operation of a transaction:
//! it is not undone when something else fails. [`reset_objects`], [`reset_rules`] and [`reset_elements`] are about many, [`reset_object`],
//! [`reset_rule`] and [`reset_element`] about one.
//!
//! [`find`] looks up an element by its value, and an interval whole.
//!
//! [`hooks`] lists whatever is registered to see packets, as `nft list hooks` does: chains, and what is none of nftables' as well.
//!
//! A dump whose objects changed while it was read is started again, and never taken as the whole
//! ([`sluicegate_netlink::dump`]). Text in user data (comments, types) was written by whoever made the object: it is
//! shown, never believed.
//!
//! ```no_run
//! use sluicegate_netlink::{Options, Protocol, Socket};
//! use sluicegate_nftables::{Family, read};
//!
//! let mut socket = Socket::open(Protocol::NETFILTER, &Options::default())?;
//! for rule in read::rules(&mut socket, Family::INET, Some("filter"), Some("input"))? {
//!     println!("{} {:?}", rule.handle, rule.expressions);
//! }
//! # Ok::<(), sluicegate_netlink::Error>(())
//! ```

mod chain;
mod element;
mod find;
mod flowtable;
mod generation;
mod hook;
mod machine;
mod object;
mod rule;
mod set;
mod table;
mod user_data;

use sluicegate_netlink::attr::{Attribute, Attributes};
use sluicegate_netlink::message::{Flags, Message};
use sluicegate_netlink::{
    Batch, DecodeError, Error, MessageWriter, Transport, dump_into, dump_once, exchange,
};

pub use chain::{Chain, ChainFlags, Hook, chain, chains};
pub use element::{Element, ElementFlags, Wanted, element, elements, reset_element, reset_elements};
pub use find::{find, find_and_reset};
pub use flowtable::{Flowtable, flowtable, flowtables};
pub use generation::{Generation, generation};
pub(crate) use hook::tells_hooks;
pub use hook::{HookListing, RegisteredBy, RegisteredHook, hook, hooks};
pub use machine::{interfaces, machine};
pub use object::{Object, object, objects, reset_object, reset_objects};
pub use rule::{Rule, reset_rule, reset_rules, rule, rules};
pub use set::{Set, set, sets};
pub use table::{Table, table, tables};
pub use user_data::UserData;

use crate::Family;

/// All that one table, or the whole kernel, holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ruleset {
    /// The generation as of which this is.
    pub generation: u32,
    /// The tables.
    pub tables: Vec<Table>,
    /// The chains of these tables.
    pub chains: Vec<Chain>,
    /// Their rules, in the order of each chain.
    pub rules: Vec<Rule>,
    /// The sets and maps, each with its elements.
    pub sets: Vec<(Set, Vec<Element>)>,
    /// The stateful objects.
    pub objects: Vec<Object>,
    /// The flowtables.
    pub flowtables: Vec<Flowtable>,
}

/// Reads everything of one family ([`Family::UNSPEC`]: of all), or of one table, as of one generation.
///
/// Without such a table the result is empty.
///
/// # Errors
/// When the kernel refuses, or somebody commits faster than this reads ([`Error::Interrupted`]).
pub fn ruleset(
    transport: &mut (impl Transport + ?Sized),
    family: Family,
    table: Option<&str>,
) -> Result<Ruleset, Error> {
    for _ in 0..TRIES {
        let before = generation(transport)?.id;
        let read = ruleset_once(transport, family, table, before);
        if generation(transport)?.id == before {
            return read;
        }
    }
    Err(Error::Interrupted(TRIES))
}

fn ruleset_once(
    transport: &mut (impl Transport + ?Sized),
    family: Family,
    table: Option<&str>,
    generation: u32,
) -> Result<Ruleset, Error> {
    let mut all = tables(transport, family)?;
    all.retain(|held| table.is_none_or(|wanted| held.name.as_str() == wanted));
    if all.is_empty() {
        return Ok(Ruleset { generation, ..Ruleset::default() });
    }
    let mut with_elements = Vec::new();
    for set in sets(transport, family, table)? {
        let content = elements(transport, set.family, set.table.as_str(), set.name.as_str())?;
        with_elements.push((set, content));
    }
    Ok(Ruleset {
        generation,
        chains: chains(transport, family, table)?,
        rules: rules(transport, family, table, None)?,
        sets: with_elements,
        objects: objects(transport, family, table)?,
        flowtables: flowtables(transport, family, table)?,
        tables: all,
    })
}

const TRIES: u32 = 8;

/// Asks for one object, which `write` names; `None` where there is none.
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

/// Asks for a dump of one kind of object; `write` adds the filter.
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
    // What was reset must not be read again.
    let repeatable = ![object::NFT_MSG_GETOBJ_RESET, rule::NFT_MSG_GETRULE_RESET].contains(&command);
    if repeatable { dump_into(transport, &request, decode) } else { dump_once(transport, &request, decode) }
}

fn split(message: Message<'_>) -> Result<(Family, Attributes<'_>), DecodeError> {
    let (header, attributes) = message.netfilter()?;
    Ok((Family(header.family), attributes))
}

/// The value of an attribute that every object of its kind has.
pub(crate) fn need<T>(value: Option<T>, what: &'static str) -> Result<T, DecodeError> {
    value.ok_or(DecodeError::Missing { what })
}

pub(crate) fn name(attribute: &Attribute<'_>) -> Result<crate::Name, DecodeError> {
    attribute.str().map(crate::Name::held)
}

fn expressions(list: &Attribute<'_>) -> Result<Vec<crate::expr::Expr>, DecodeError> {
    // Walking the headers twice is cheaper than moving what is decoded as the list grows.
    let mut expressions = Vec::with_capacity(list.attributes().count());
    for element in list.attributes() {
        crate::expr::Expr::decode_onto(&element?, &mut expressions)?;
    }
    Ok(expressions)
}

/// `NFTA_LIST_ELEM`.
const NFTA_LIST_ELEM: u16 = 1;
/// `NFNL_SUBSYS_NFTABLES`.
const SUBSYSTEM: u8 = 10;

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
            let _ = RegisteredHook::decode(Family::IP, attributes()).map(|hook| HookListing(&[hook]).to_string());
            let _ = UserData::new(&bytes).count();
        }
    }
}
