//! What the kernel holds: tables, chains, rules, sets, elements, objects and flowtables as dumps give them.
//!
//! These are observations: they carry handles, counters and times that nobody can ask for. Each is read by a function of
//! its own, filtered by table; [`ruleset`] reads a whole table, or all of them, as of one generation.
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
mod flowtable;
mod generation;
mod object;
mod rule;
mod set;
mod table;
mod user_data;

use sluicegate_netlink::attr::{Attribute, Attributes};
use sluicegate_netlink::message::{Flags, Message};
use sluicegate_netlink::{Batch, DecodeError, Error, MessageWriter, Transport, dump, dump_once};

pub use chain::{Chain, ChainFlags, Hook, chains};
pub use element::{Element, ElementFlags, element, elements, reset_elements};
pub use flowtable::{Flowtable, FlowtableFlags, flowtables};
pub use generation::{Generation, generation};
pub use object::{Object, objects, reset_objects};
pub use rule::{Rule, reset_rules, rules};
pub use set::{Set, SetFlags, sets};
pub use table::{Table, TableFlags, tables};
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
    let decode = |message: Message<'_>| {
        let (family, attributes) = split(message)?;
        let object = decode(family, attributes)?;
        Ok(keep(&object).then_some(object))
    };
    // What was reset must not be read again.
    let repeatable = ![object::NFT_MSG_GETOBJ_RESET, rule::NFT_MSG_GETRULE_RESET].contains(&command);
    if repeatable { dump(transport, &request, decode) } else { dump_once(transport, &request, decode) }
}

fn split(message: Message<'_>) -> Result<(Family, Attributes<'_>), DecodeError> {
    let (header, attributes) = message.netfilter()?;
    Ok((Family(header.family), attributes))
}

/// The value of an attribute that every object of its kind has.
fn need<T>(value: Option<T>, what: &'static str) -> Result<T, DecodeError> {
    value.ok_or(DecodeError::Missing { what })
}

fn name(attribute: &Attribute<'_>) -> Result<crate::Name, DecodeError> {
    attribute.str().map(crate::Name::held)
}

fn expressions(list: &Attribute<'_>) -> Result<Vec<crate::expr::Expr>, DecodeError> {
    // Walking the headers twice is cheaper than moving what is decoded as the list grows.
    let mut expressions = Vec::with_capacity(list.attributes().count());
    for element in list.attributes() {
        expressions.push(crate::expr::Expr::decode(&element?)?);
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
            let _ = UserData::new(&bytes).count();
        }
    }
}
