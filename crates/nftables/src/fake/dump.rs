//! Answers requests: dumps, single objects, the generation.

use std::sync::Arc;

use sluicegate_netlink::Errno;
use sluicegate_netlink::attr::{self, Attribute, Writer};
use sluicegate_netlink::message::{Flags, Header, Message, NfGenMsg, encode};

use crate::expr::data::*;
use crate::expr::wire::*;
use crate::fake::encode::*;
use crate::fake::message::{Attrs, Refusal, refusal, refuse};
use crate::fake::reset::{self, Counted};
use crate::fake::set::Set;
use crate::fake::state::{Chain, State, Table};
use crate::fake::store::Element;
use crate::name::Name;
use crate::object::chain::wire::*;
use crate::object::element::wire::*;
use crate::object::flowtable::wire::*;
use crate::object::rule::wire::*;
use crate::object::set::wire::*;
use crate::object::stateful::wire::*;
use crate::object::table::wire::*;
use crate::wire::message::*;

/// Returns the messages that answer a request, without the acknowledgement or the end of a dump.
pub(super) fn answer(state: &mut Arc<State>, message: &Message<'_>) -> Result<Vec<Vec<u8>>, Refusal> {
    let [subsystem, command] = message.header.kind.to_be_bytes();
    if subsystem != SUBSYSTEM {
        return refuse(Errno::EINVAL);
    }
    let (messages, counted) = list(state, command, message)?;
    if [NFT_MSG_GETRULE_RESET, NFT_MSG_GETSETELEM_RESET, NFT_MSG_GETOBJ_RESET].contains(&command) {
        reset::all(Arc::make_mut(state), &counted);
    }
    Ok(messages)
}

/// Returns the answers, and which of the listed objects may contain counters to reset.
fn list(state: &State, command: u8, message: &Message<'_>) -> Result<(Vec<Vec<u8>>, Vec<Counted>), Refusal> {
    let (header, attributes) = message.netfilter().map_err(|_| refusal(Errno::EINVAL))?;
    let mut listing = Listing {
        state,
        attrs: Attrs::read(attributes)?,
        family: header.family,
        all: message.header.flags.contains(Flags::DUMP),
        sequence: message.header.sequence,
        messages: Vec::new(),
        counted: Vec::new(),
    };
    match command {
        NFT_MSG_GETGEN => {
            listing.push(NFT_MSG_NEWGEN, 0, |w| write_generation(state.generation, PROCESS, w));
        }
        NFT_MSG_GETTABLE => listing.tables()?,
        NFT_MSG_GETCHAIN => listing.chains()?,
        NFT_MSG_GETRULE | NFT_MSG_GETRULE_RESET => listing.rules()?,
        NFT_MSG_GETSET => listing.sets()?,
        NFT_MSG_GETSETELEM | NFT_MSG_GETSETELEM_RESET => listing.elements()?,
        NFT_MSG_GETOBJ | NFT_MSG_GETOBJ_RESET => listing.objects()?,
        NFT_MSG_GETFLOWTABLE => listing.flowtables()?,
        // Changes are accepted in batches only.
        _ => return refuse(Errno::EINVAL),
    }
    Ok((listing.messages, listing.counted))
}

struct Listing<'s, 'a> {
    state: &'s State,
    attrs: Attrs<'a>,
    family: u8,
    /// Whether the request is a dump (`NLM_F_DUMP`) or for one object.
    all: bool,
    sequence: u32,
    messages: Vec<Vec<u8>>,
    counted: Vec<Counted>,
}

impl<'s> Listing<'s, '_> {
    fn push(&mut self, command: u8, family: u8, write: impl FnOnce(&mut Writer<'_>)) {
        let [_, _, r0, r1] = self.state.generation.to_be_bytes();
        let header = NfGenMsg { family, version: 0, resource: u16::from_be_bytes([r0, r1]) };
        let payload = attr::encode(|w| {
            w.raw(&header.bytes());
            write(w);
        });
        let flags = if self.all { Flags::MULTI } else { Flags::empty() };
        let kind = u16::from_be_bytes([SUBSYSTEM, command]);
        let header = Header { kind, flags, sequence: self.sequence, port: 0 };
        // Everything stored came in a message that was at least as long.
        self.messages.extend(payload.map(|payload| encode(header, &payload)));
    }

    /// Returns the tables that a request selects: those of the family, restricted to one name if the request
    /// has one; a request for one object has to name its table.
    fn wanted(&self, kind: u16) -> Result<Vec<&'s Table>, Refusal> {
        if !self.all {
            let at = self
                .state
                .find_table(self.family, &self.attrs, kind)
                .map_err(|r| r.at(self.attrs.get(kind)))?;
            return Ok(self.state.tables.get(at).into_iter().collect());
        }
        let name = self.attrs.name(kind)?;
        let family = |table: &&Table| self.family == 0 || table.family == self.family;
        let named = |table: &&Table| name.as_ref().is_none_or(|name| *name == table.name);
        Ok(self.state.tables.iter().filter(family).filter(named).collect())
    }

    /// Returns the objects of a list that have the requested name; an error if a request for one object finds
    /// none.
    fn one<'t, T>(
        &self,
        kind: u16,
        list: &'t [T],
        name: impl Fn(&T) -> &Name,
    ) -> Result<Vec<&'t T>, Refusal> {
        if self.all {
            return Ok(list.iter().collect());
        }
        let wanted = self.attrs.name(kind)?.ok_or(refusal(Errno::EINVAL))?;
        let found = list.iter().find(|item| *name(item) == wanted);
        Ok(vec![found.ok_or(refusal(Errno::ENOENT).at(self.attrs.get(kind)))?])
    }

    fn tables(&mut self) -> Result<(), Refusal> {
        let tables = if self.all { self.wanted(u16::MAX)? } else { self.wanted(NFTA_TABLE_NAME)? };
        for table in tables {
            self.push(NFT_MSG_NEWTABLE, table.family, |w| write_table(table, w));
        }
        Ok(())
    }

    fn chains(&mut self) -> Result<(), Refusal> {
        let tables = if self.all { self.wanted(u16::MAX)? } else { self.wanted(NFTA_CHAIN_TABLE)? };
        for table in tables {
            for chain in self.one(NFTA_CHAIN_NAME, &table.chains, |chain| &chain.name)? {
                self.push(NFT_MSG_NEWCHAIN, table.family, |w| write_chain(table, chain, None, w));
            }
        }
        Ok(())
    }

    fn rules(&mut self) -> Result<(), Refusal> {
        let chain_name = self.attrs.name(NFTA_RULE_CHAIN)?;
        for table in self.wanted(NFTA_RULE_TABLE)? {
            let wanted = |chain: &&Arc<Chain>| chain_name.as_ref().is_none_or(|n| *n == chain.name);
            let chains = table.chains.iter().filter(wanted);
            if !self.all {
                let chain = table.chain_named(self.attrs.get(NFTA_RULE_CHAIN))?;
                let handle = self.attrs.be64(NFTA_RULE_HANDLE)?.ok_or(refusal(Errno::EINVAL))?;
                let rule = chain.rules().find(|rule| rule.handle == handle);
                let rule = rule.ok_or(refusal(Errno::ENOENT).at(self.attrs.get(NFTA_RULE_HANDLE)))?;
                self.push(NFT_MSG_NEWRULE, table.family, |w| write_rule(table, chain, rule, None, w));
                self.counted.push(Counted::rule(table, chain, rule));
                continue;
            }
            for chain in chains {
                let mut before = None;
                for rule in chain.rules() {
                    self.push(NFT_MSG_NEWRULE, table.family, |w| write_rule(table, chain, rule, before, w));
                    self.counted.push(Counted::rule(table, chain, rule));
                    before = Some(rule.handle);
                }
            }
        }
        Ok(())
    }

    fn sets(&mut self) -> Result<(), Refusal> {
        if self.all && self.attrs.has(NFTA_SET_TABLE) {
            // The kernel looks the table up by its family and finds none for `NFPROTO_UNSPEC`.
            self.state
                .find_table(self.family, &self.attrs, NFTA_SET_TABLE)
                .map_err(|r| r.at(self.attrs.get(NFTA_SET_TABLE)))?;
        }
        for table in self.wanted(NFTA_SET_TABLE)? {
            for set in self.one(NFTA_SET_NAME, &table.sets, |set| &set.name)? {
                self.push(NFT_MSG_NEWSET, table.family, |w| write_set(table, set, w));
            }
        }
        Ok(())
    }

    /// Lists the elements of one set, or looks elements up.
    fn elements(&mut self) -> Result<(), Refusal> {
        let at = self
            .state
            .find_table(self.family, &self.attrs, NFTA_SET_ELEM_LIST_TABLE)
            .map_err(|r| r.at(self.attrs.get(NFTA_SET_ELEM_LIST_TABLE)))?;
        let Some(table) = self.state.tables.get(at) else { return Ok(()) };
        let attribute = self.attrs.get(NFTA_SET_ELEM_LIST_SET);
        let set = table.set_named(attribute).map_err(|r| r.at(attribute))?;
        if self.all {
            let elements: Vec<&Element> = set.store.iter().collect();
            self.counted.push(Counted::elements(table, set, &elements));
            for some in elements.chunks(ELEMENTS_A_MESSAGE) {
                self.element_list(table, set, some);
            }
            return Ok(());
        }
        let list = *self.attrs.need(NFTA_SET_ELEM_LIST_ELEMENTS)?;
        for item in list.attributes() {
            let item = item.map_err(|_| refusal(Errno::EINVAL))?;
            let found = look_up(set, &item).map_err(|r| r.at(Some(&item)))?;
            self.counted.push(Counted::elements(table, set, &[found]));
            self.element_list(table, set, &[found]);
        }
        Ok(())
    }

    fn element_list(&mut self, table: &Table, set: &Set, elements: &[&Element]) {
        self.push(NFT_MSG_NEWSETELEM, table.family, |w| {
            w.put_str(NFTA_SET_ELEM_LIST_TABLE, &table.name);
            w.put_str(NFTA_SET_ELEM_LIST_SET, &set.name);
            let mut list = w.nest(NFTA_SET_ELEM_LIST_ELEMENTS);
            for element in elements {
                write_element(table, set, element, &mut list.nest(NFTA_LIST_ELEM));
            }
        });
    }

    fn objects(&mut self) -> Result<(), Refusal> {
        let kind = self.attrs.be32(NFTA_OBJ_TYPE)?;
        for table in self.wanted(NFTA_OBJ_TABLE)? {
            if !self.all {
                let kind = kind.ok_or(refusal(Errno::EINVAL))?;
                let object = table.object_named(kind, self.attrs.get(NFTA_OBJ_NAME))?;
                self.push(NFT_MSG_NEWOBJ, table.family, |w| write_object(table, object, w));
                self.counted.push(Counted::object(table, object));
                continue;
            }
            for object in table.objects.iter().filter(|o| kind.is_none_or(|kind| kind == 0 || kind == o.kind))
            {
                self.push(NFT_MSG_NEWOBJ, table.family, |w| write_object(table, object, w));
                self.counted.push(Counted::object(table, object));
            }
        }
        Ok(())
    }

    fn flowtables(&mut self) -> Result<(), Refusal> {
        for table in self.wanted(NFTA_FLOWTABLE_TABLE)? {
            for flowtable in self.one(NFTA_FLOWTABLE_NAME, &table.flowtables, |f| &f.name)? {
                self.push(NFT_MSG_NEWFLOWTABLE, table.family, |w| {
                    write_flowtable(table, flowtable, None, w);
                });
            }
        }
        Ok(())
    }
}

fn look_up<'s>(set: &'s Set, item: &Attribute<'_>) -> Result<&'s Element, Refusal> {
    let attrs = Attrs::nested(Some(item))?;
    let flags = attrs.be32(NFTA_SET_ELEM_FLAGS)?.unwrap_or(0);
    if flags & crate::fake::store::CATCHALL != 0 {
        return set.store.catch_all.as_ref().ok_or(refusal(Errno::ENOENT));
    }
    let key = Attrs::nested(Some(attrs.need(NFTA_SET_ELEM_KEY)?))?;
    let key = key.need(NFTA_DATA_VALUE)?.payload;
    if key.len() != set.shape.key_len {
        return refuse(Errno::EINVAL);
    }
    let end = flags & crate::fake::store::INTERVAL_END != 0;
    set.store.find(key, end).ok_or(refusal(Errno::ENOENT))
}

/// An element takes at most about a kilobyte, and the length of the list is a `u16`.
const ELEMENTS_A_MESSAGE: usize = 50;
/// The name of the committing process in generation events.
pub(super) const PROCESS: &str = "fake";
