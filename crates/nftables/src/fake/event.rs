//! The events that a commit sends to listeners: each change in the order of the transaction, encoded as the
//! kernel does.
//!
//! For a deleted object the kernel reports only name and handle, but for rules and elements everything. An
//! object that the transaction both creates and deletes has two events. Anonymous sets have events like
//! others; the elements of a deleted set have none.

use std::sync::Arc;

use sluicegate_netlink::attr::{self, Writer};
use sluicegate_netlink::message::{Flags, Header, NfGenMsg, encode};

use crate::expr::wire::*;
use crate::fake::device::Device;
use crate::fake::encode::*;
use crate::fake::set::Set;
use crate::fake::state::{Chain, Flowtable, Object, Table};
use crate::fake::store::Element;
use crate::object::chain::wire::*;
use crate::object::element::wire::*;
use crate::object::flowtable::wire::*;
use crate::object::set::wire::*;
use crate::object::stateful::wire::*;
use crate::wire::message::*;

/// An event of a commit.
#[derive(Debug, Clone)]
pub(super) struct Event {
    pub(super) change: Change,
    pub(super) subject: Subject,
}

/// Whether the object was added or deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    New,
    Deleted,
}

/// The object of an event.
#[derive(Debug, Clone)]
pub(super) enum Subject {
    Table,
    /// A chain by its handle; for changes of an existing one, with the devices that were added or removed.
    Chain(u64, Option<Vec<Device>>),
    /// A rule, by the handle of its chain and its own number.
    Rule(u64, u64),
    Set(u64),
    /// An element, with the handle of its set.
    Element(u64, Box<Element>),
    Object(u64),
    /// A flowtable by its handle; for changes of an existing one, with the devices that were added or
    /// removed.
    Flowtable(u64, Option<Vec<Device>>),
}

/// The header of the request that caused an event, and the generation that its commit creates.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cause {
    pub(super) sequence: u32,
    pub(super) flags: Flags,
    pub(super) port: u32,
    pub(super) generation: u32,
}

/// Encodes the message of an event; `None` if the object no longer exists.
pub(super) fn message(table: &Table, event: &Event, cause: Cause) -> Option<Vec<u8>> {
    let Event { change, subject } = event;
    let new = *change == Change::New;
    let flags = cause.flags & (Flags::CREATE | Flags::EXCL);
    match subject {
        Subject::Table => Some(encoded(new_or_gone(new, 0), flags, table, cause, |w| {
            if new { write_table(table, w) } else { write_table_name(table, w) }
        })),
        Subject::Chain(handle, devices) => {
            let chain = chain(table, *handle)?;
            Some(encoded(new_or_gone(new, NFT_MSG_NEWCHAIN), flags, table, cause, |w| {
                if new || devices.is_some() {
                    write_chain(table, chain, devices.as_deref(), w);
                } else {
                    w.put_str(NFTA_CHAIN_TABLE, &table.name);
                    w.put_str(NFTA_CHAIN_NAME, &chain.name);
                    w.put_be64(NFTA_CHAIN_HANDLE, chain.handle);
                }
            }))
        }
        Subject::Rule(of, number) => rule(table, *of, *number, new, cause),
        Subject::Set(handle) => {
            let set = set(table, *handle)?;
            Some(encoded(new_or_gone(new, NFT_MSG_NEWSET), flags, table, cause, |w| {
                if new {
                    write_set(table, set, w);
                } else {
                    w.put_str(NFTA_SET_TABLE, &table.name);
                    w.put_str(NFTA_SET_NAME, &set.name);
                    w.put_be64(NFTA_SET_HANDLE, set.handle);
                }
            }))
        }
        Subject::Element(of, element) => {
            let set = set(table, *of)?;
            // The kernel sends these events with the sequence number 0.
            let cause = Cause { sequence: 0, ..cause };
            Some(encoded(new_or_gone(new, NFT_MSG_NEWSETELEM), flags, table, cause, |w| {
                w.put_str(NFTA_SET_ELEM_LIST_TABLE, &table.name);
                w.put_str(NFTA_SET_ELEM_LIST_SET, &set.name);
                let mut list = w.nest(NFTA_SET_ELEM_LIST_ELEMENTS);
                write_element(table, set, element, &mut list.nest(NFTA_LIST_ELEM));
            }))
        }
        Subject::Object(handle) => {
            let object = object(table, *handle)?;
            Some(encoded(new_or_gone(new, NFT_MSG_NEWOBJ), flags, table, cause, |w| {
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
        Subject::Flowtable(handle, devices) => {
            let flowtable = flowtable(table, *handle)?;
            Some(encoded(new_or_gone(new, NFT_MSG_NEWFLOWTABLE), flags, table, cause, |w| {
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

/// Encodes the message that ends the events of a commit.
pub(super) fn generation(cause: Cause, process: &str) -> Vec<u8> {
    let table = None;
    encoded_in(NFT_MSG_NEWGEN, Flags::empty(), table, cause, |w| {
        write_generation(cause.generation, process, w);
    })
}

fn rule(table: &Table, of: u64, number: u64, new: bool, cause: Cause) -> Option<Vec<u8>> {
    let chain = chain(table, of)?;
    let at = chain.rules.iter().position(|rule| rule.number == number)?;
    let rule = chain.rules.get(at)?;
    // The kernel reports the position of a rule that is neither the first nor the last: the handle of the
    // rule before it.
    let inside = new && at > 0 && at + 1 < chain.rules.len();
    let before = chain.rules.get(at.wrapping_sub(1)).filter(|_| inside).map(|rule| rule.handle);
    let mut flags = cause.flags & (Flags::CREATE | Flags::EXCL);
    // The kernel reports a replacement as an addition.
    flags.set(Flags::APPEND, cause.flags.intersects(Flags::APPEND | Flags::REPLACE));
    Some(encoded(new_or_gone(new, NFT_MSG_NEWRULE), flags, table, cause, |w| {
        write_rule(table, chain, rule, before, w);
    }))
}

/// Returns the message type of an addition, or that of the deletion, which is higher by two.
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
    // Everything in the event came in a message that was at least as long.
    encode(header, &payload.unwrap_or_default())
}

/// Returns a chain, even if the transaction deletes it.
pub(super) fn chain(table: &Table, handle: u64) -> Option<&Chain> {
    let deleted =
        || table.pending.deleted.chains.iter().map(Arc::as_ref).find(|chain| chain.handle == handle);
    table.chain(handle).or_else(deleted)
}

fn set(table: &Table, handle: u64) -> Option<&Set> {
    let deleted = || table.pending.deleted.sets.iter().map(Arc::as_ref).find(|set| set.handle == handle);
    table.set(handle).or_else(deleted)
}

fn object(table: &Table, handle: u64) -> Option<&Object> {
    table.objects.iter().chain(&table.pending.deleted.objects).find(|object| object.handle == handle)
}

fn flowtable(table: &Table, handle: u64) -> Option<&Flowtable> {
    table.flowtables.iter().chain(&table.pending.deleted.flowtables).find(|f| f.handle == handle)
}
