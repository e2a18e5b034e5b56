//! What a commit tells those who listen: each change in the order of the transaction, as the kernel words it.
//!
//! Of what is deleted the kernel says only the name and the handle, of rules and elements all. What a transaction makes and deletes again is told
//! both ways. Sets without a name are told like others; the elements of a set that goes are not told.

use std::sync::Arc;

use sluicegate_netlink::attr::{self, Writer};
use sluicegate_netlink::message::{Flags, Header, NfGenMsg, encode};

use crate::expr::wire::NFTA_LIST_ELEM;
use crate::fake::chain::*;
use crate::fake::device::Device;
use crate::fake::element::{LIST_ELEMENTS, LIST_SET, LIST_TABLE};
use crate::fake::flowtable::*;
use crate::fake::message::{SUBSYSTEM, command};
use crate::fake::object::*;
use crate::fake::set::*;
use crate::fake::shown::*;
use crate::fake::state::{Chain, Flowtable, Object, Table};
use crate::fake::store::Element;

/// Something that a commit tells.
#[derive(Debug, Clone)]
pub(super) struct Event {
    pub(super) change: Change,
    pub(super) what: What,
}

/// Whether it is there now, or gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    New,
    Gone,
}

/// What has changed.
#[derive(Debug, Clone)]
pub(super) enum What {
    Table,
    /// A chain; of one that was there, only the devices that it gets or loses are told.
    Chain(u64, Option<Vec<Device>>),
    /// A rule by its chain and its number.
    Rule(u64, u64),
    Set(u64),
    /// An element and the handle of its set.
    Element(u64, Box<Element>),
    Object(u64),
    /// A flowtable; of one that was there, only the devices that it gets or loses are told.
    Flowtable(u64, Option<Vec<Device>>),
}

/// The header of the request that an event comes from, and the generation that its commit makes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cause {
    pub(super) sequence: u32,
    pub(super) flags: Flags,
    pub(super) port: u32,
    pub(super) generation: u32,
}

/// The message of an event; `None` for what is not there at all.
pub(super) fn message(table: &Table, event: &Event, cause: Cause) -> Option<Vec<u8>> {
    let Event { change, what } = event;
    let new = *change == Change::New;
    let made = cause.flags & (Flags::CREATE | Flags::EXCL);
    match what {
        What::Table => Some(encoded(new_or_gone(new, 0), made, table, cause, |w| {
            if new { write_table(table, w) } else { write_table_name(table, w) }
        })),
        What::Chain(handle, devices) => {
            let chain = chain(table, *handle)?;
            Some(encoded(new_or_gone(new, command::NEWCHAIN), made, table, cause, |w| {
                if new || devices.is_some() {
                    write_chain(table, chain, devices.as_deref(), w);
                } else {
                    w.put_str(NFTA_CHAIN_TABLE, &table.name);
                    w.put_str(NFTA_CHAIN_NAME, &chain.name);
                    w.put_be64(NFTA_CHAIN_HANDLE, chain.handle);
                }
            }))
        }
        What::Rule(of, number) => rule(table, *of, *number, new, cause),
        What::Set(handle) => {
            let set = set(table, *handle)?;
            Some(encoded(new_or_gone(new, command::NEWSET), made, table, cause, |w| {
                if new {
                    write_set(table, set, w);
                } else {
                    w.put_str(NFTA_SET_TABLE, &table.name);
                    w.put_str(NFTA_SET_NAME, &set.name);
                    w.put_be64(NFTA_SET_HANDLE, set.handle);
                }
            }))
        }
        What::Element(of, element) => {
            let set = set(table, *of)?;
            // The kernel gives these no number.
            let cause = Cause { sequence: 0, ..cause };
            Some(encoded(new_or_gone(new, command::NEWSETELEM), made, table, cause, |w| {
                w.put_str(LIST_TABLE, &table.name);
                w.put_str(LIST_SET, &set.name);
                let mut list = w.nest(LIST_ELEMENTS);
                write_element(table, set, element, &mut list.nest(NFTA_LIST_ELEM));
            }))
        }
        What::Object(handle) => {
            let object = object(table, *handle)?;
            Some(encoded(new_or_gone(new, command::NEWOBJ), made, table, cause, |w| {
                if new {
                    write_object(table, object, w);
                } else {
                    w.put_str(NFTA_OBJ_TABLE, &table.name);
                    w.put_str(NFTA_OBJ_NAME, &object.name);
                    w.put_be32(NFTA_OBJ_TYPE, object.kind);
                    w.put_be64(NFTA_OBJ_HANDLE, object.handle);
                }
            }))
        }
        What::Flowtable(handle, devices) => {
            let flowtable = flowtable(table, *handle)?;
            Some(encoded(new_or_gone(new, command::NEWFLOWTABLE), made, table, cause, |w| {
                if new || devices.is_some() {
                    write_flowtable(table, flowtable, devices.as_deref(), w);
                } else {
                    w.put_str(NFTA_FLOWTABLE_TABLE, &table.name);
                    w.put_str(NFTA_FLOWTABLE_NAME, &flowtable.name);
                    w.put_be64(NFTA_FLOWTABLE_HANDLE, flowtable.handle);
                }
            }))
        }
    }
}

/// The end of a commit's events.
pub(super) fn generation(cause: Cause, process: &str) -> Vec<u8> {
    let table = None;
    encoded_in(command::NEWGEN, Flags::empty(), table, cause, |w| {
        write_generation(cause.generation, process, w);
    })
}

fn rule(table: &Table, of: u64, number: u64, new: bool, cause: Cause) -> Option<Vec<u8>> {
    let chain = chain(table, of)?;
    let at = chain.rules.iter().position(|rule| rule.number == number)?;
    let rule = chain.rules.get(at)?;
    // Told is the rule before, if it is neither the first nor the last.
    let inside = new && at > 0 && at + 1 < chain.rules.len();
    let before = chain.rules.get(at.wrapping_sub(1)).filter(|_| inside).map(|rule| rule.handle);
    let mut flags = cause.flags & (Flags::CREATE | Flags::EXCL);
    // What replaces is told as added.
    flags.set(Flags::APPEND, cause.flags.intersects(Flags::APPEND | Flags::REPLACE));
    Some(encoded(new_or_gone(new, command::NEWRULE), flags, table, cause, |w| {
        write_rule(table, chain, rule, before, w);
    }))
}

/// The commands that tell of what is gone follow but one on those of what is new.
fn new_or_gone(new: bool, command: u8) -> u8 {
    if new { command } else { command + 2 }
}

fn encoded(
    command: u8,
    flags: Flags,
    table: &Table,
    cause: Cause,
    write: impl FnOnce(&mut Writer<'_>),
) -> Vec<u8> {
    encoded_in(command, flags, Some(table), cause, write)
}

fn encoded_in(
    command: u8,
    flags: Flags,
    table: Option<&Table>,
    cause: Cause,
    write: impl FnOnce(&mut Writer<'_>),
) -> Vec<u8> {
    let [_, _, r0, r1] = cause.generation.to_be_bytes();
    let family = table.map_or(0, |table| table.family);
    let header = NfGenMsg { family, version: 0, resource: u16::from_be_bytes([r0, r1]) };
    let payload = attr::encode(|w| {
        w.raw(&header.bytes());
        write(w);
    });
    let kind = u16::from_be_bytes([SUBSYSTEM, command]);
    let header = Header { kind, flags, sequence: cause.sequence, port: cause.port };
    // Whatever is told came in a message that was no longer than this one.
    encode(header, &payload.unwrap_or_default())
}

/// A chain, also one that its transaction deletes.
pub(super) fn chain(table: &Table, handle: u64) -> Option<&Chain> {
    let gone = || table.pending.gone.chains.iter().map(Arc::as_ref).find(|chain| chain.handle == handle);
    table.chain(handle).or_else(gone)
}

fn set(table: &Table, handle: u64) -> Option<&Set> {
    let gone = || table.pending.gone.sets.iter().map(Arc::as_ref).find(|set| set.handle == handle);
    table.set(handle).or_else(gone)
}

fn object(table: &Table, handle: u64) -> Option<&Object> {
    table.objects.iter().chain(&table.pending.gone.objects).find(|object| object.handle == handle)
}

fn flowtable(table: &Table, handle: u64) -> Option<&Flowtable> {
    table.flowtables.iter().chain(&table.pending.gone.flowtables).find(|f| f.handle == handle)
}
