//! Encodes the request of each command.

use std::net::IpAddr;

use sluicegate_netlink::Batch;
use sluicegate_netlink::attr::Writer;
use sluicegate_netlink::message::{Flags, NfGenMsg};

use crate::client::Table;
use crate::expectation::cta_expect;
use crate::wire::{EXPECTATIONS, SUBSYSTEM, command, cta, expectation, filter, nat};
use crate::{AddressPort, ExpectationKey, Family, Filter, FlowChange, FlowKey, NewFlow, Tuple};

/// Requests the flows of a table. With `narrow`, the kernel omits some that do not match the filter.
pub(crate) fn list(batch: &mut Batch, table: Table, zero: bool, wanted: &Filter, narrow: bool) {
    let command = match table {
        Table::Conntrack if zero => command::GET_CTRZERO,
        Table::Conntrack => command::GET,
        Table::Dying => command::GET_DYING,
        Table::Unconfirmed => command::GET_UNCONFIRMED,
    };
    let family = wanted.effective_family().map_or(0, Family::number);
    let mut message = batch.netfilter(SUBSYSTEM, command, Flags::DUMP, family, 0);
    if !narrow {
        return;
    }
    if let Some((_, tuple, flags)) = wanted.kernel_part() {
        tuple.encode(&mut message, cta::TUPLE_ORIG);
        let mut nest = message.nest(cta::FILTER);
        nest.put_u32(filter::ORIG_FLAGS, flags);
        nest.put_u32(filter::REPLY_FLAGS, 0);
    }
    if let Some(mark) = wanted.mark {
        message.put_be32(cta::MARK, mark.value);
        message.put_be32(cta::MARK_MASK, mark.mask);
    }
    let status = wanted.status;
    let mask = status.set | status.unset;
    if !mask.is_empty() {
        message.put_be32(cta::STATUS, status.set.bits());
        message.put_be32(cta::STATUS_MASK, mask.bits());
    }
}

/// Requests one flow.
pub(crate) fn get(batch: &mut Batch, tuple: &Tuple, zone: Option<u16>) {
    let mut message = batch.netfilter(SUBSYSTEM, command::GET, Flags::ACK, tuple.family().number(), 0);
    tuple.encode(&mut message, cta::TUPLE_ORIG);
    if let Some(zone) = zone {
        message.put_be16(cta::ZONE, zone);
    }
}

/// Creates a flow; `object` is its number in the caller's list.
pub(crate) fn create(batch: &mut Batch, flow: &NewFlow, object: u64, ack: bool) {
    let flags = Flags::CREATE | Flags::EXCL | if ack { Flags::ACK } else { Flags::empty() };
    let family = flow.original.family().number();
    let mut message = batch.netfilter(SUBSYSTEM, command::NEW, flags, family, object);
    flow.original.encode(&mut message, cta::TUPLE_ORIG);
    flow.reply.encode(&mut message, cta::TUPLE_REPLY);
    message.put_be32(cta::STATUS, flow.status.bits());
    message.put_be32(cta::TIMEOUT, flow.timeout);
    if let Some(mark) = flow.mark {
        message.put_be32(cta::MARK, mark);
    }
    if let Some(info) = flow.protocol_info {
        info.encode(&mut message, cta::PROTOINFO);
    }
    if let Some(zone) = flow.zone {
        message.put_be16(cta::ZONE, zone);
    }
    for (kind, translation) in [(cta::NAT_SRC, flow.source_nat), (cta::NAT_DST, flow.destination_nat)] {
        if let Some(translation) = translation.filter(|it| *it != AddressPort::default()) {
            translate(&mut message, kind, translation);
        }
    }
}

/// Writes the range of a translation, to an address and a port if they are given. A range without an end has
/// one element.
fn translate(message: &mut Writer<'_>, kind: u16, AddressPort { address, port }: AddressPort) {
    let mut range = message.nest(kind);
    match address {
        Some(IpAddr::V4(address)) => range.put(nat::V4_MINIP, &address.octets()),
        Some(IpAddr::V6(address)) => range.put(nat::V6_MINIP, &address.octets()),
        None => {}
    }
    if let Some(port) = port {
        let mut ports = range.nest(nat::PROTO);
        ports.put_be16(nat::PORT_MIN, port);
        ports.put_be16(nat::PORT_MAX, port);
    }
}

/// Changes a flow; `object` is its number in the caller's list. Without `NLM_F_CREATE`, the kernel does not
/// create one.
pub(crate) fn update(batch: &mut Batch, (flow, change): &(FlowKey, FlowChange), object: u64, ack: bool) {
    let flags = if ack { Flags::ACK } else { Flags::empty() };
    let family = flow.original.family().number();
    let mut message = batch.netfilter(SUBSYSTEM, command::NEW, flags, family, object);
    flow.original.encode(&mut message, cta::TUPLE_ORIG);
    let numbers = [
        (cta::STATUS, change.status.map(|status| status.bits())),
        (cta::TIMEOUT, change.timeout),
        (cta::MARK, change.mark),
    ];
    for (kind, value) in numbers {
        if let Some(value) = value {
            message.put_be32(kind, value);
        }
    }
    if let Some(info) = change.protocol_info {
        info.encode(&mut message, cta::PROTOINFO);
    }
    if let Some(zone) = flow.zone {
        message.put_be16(cta::ZONE, zone);
    }
}

/// Deletes one flow; `object` is its number in the caller's list. The message always has a tuple: without one
/// it would be a flush.
pub(crate) fn delete(batch: &mut Batch, flow: &FlowKey, object: u64, ack: bool) {
    let flags = if ack { Flags::ACK } else { Flags::empty() };
    let family = flow.original.family().number();
    let mut message = batch.netfilter(SUBSYSTEM, command::DELETE, flags, family, object);
    flow.original.encode(&mut message, cta::TUPLE_ORIG);
    if let Some(id) = flow.id {
        message.put_be32(cta::ID, id);
    }
    if let Some(zone) = flow.zone {
        message.put_be16(cta::ZONE, zone);
    }
}

/// Deletes all flows, or those of one family. The kernel reads the family of messages of version 1 only
/// (since 5.3).
pub(crate) fn flush(batch: &mut Batch, family: Option<Family>) {
    let Some(family) = family else {
        drop(batch.netfilter(SUBSYSTEM, command::DELETE, Flags::ACK, 0, 0));
        return;
    };
    let kind = u16::from_be_bytes([SUBSYSTEM, command::DELETE]);
    let mut message = batch.message(kind, Flags::REQUEST | Flags::ACK, 0);
    message.raw(&NfGenMsg { family: family.number(), version: 1, resource: 0 }.bytes());
}

/// Requests the number of flows.
pub(crate) fn count(batch: &mut Batch) {
    drop(batch.netfilter(SUBSYSTEM, command::GET_STATS, Flags::ACK, 0, 0));
}

/// Requests the statistics of flows, by processor.
pub(crate) fn statistics(batch: &mut Batch) {
    drop(batch.netfilter(SUBSYSTEM, command::GET_STATS_CPU, Flags::DUMP, 0, 0));
}

/// Requests the statistics of expectations, by processor.
pub(crate) fn expectation_statistics(batch: &mut Batch) {
    drop(batch.netfilter(EXPECTATIONS, expectation::GET_STATS_CPU, Flags::DUMP, 0, 0));
}

/// Requests the expectations of a family, or all.
pub(crate) fn expectations(batch: &mut Batch, family: Option<Family>) {
    let family = family.map_or(0, Family::number);
    drop(batch.netfilter(EXPECTATIONS, expectation::GET, Flags::DUMP, family, 0));
}

/// Requests the expectation that covers a tuple.
pub(crate) fn get_expectation(batch: &mut Batch, tuple: &Tuple, zone: Option<u16>) {
    let key = ExpectationKey { expected: *tuple, zone, id: None };
    about_expectation(batch, expectation::GET, &key);
}

/// Deletes one expectation. The message always has a tuple: without one it would be a flush.
pub(crate) fn delete_expectation(batch: &mut Batch, key: &ExpectationKey) {
    about_expectation(batch, expectation::DELETE, key);
}

fn about_expectation(batch: &mut Batch, command: u8, key: &ExpectationKey) {
    let family = key.expected.family().number();
    let mut message = batch.netfilter(EXPECTATIONS, command, Flags::ACK, family, 0);
    key.expected.encode(&mut message, cta_expect::TUPLE);
    if let Some(id) = key.id {
        message.put_be32(cta_expect::ID, id);
    }
    if let Some(zone) = key.zone {
        message.put_be16(cta_expect::ZONE, zone);
    }
}

/// Deletes all expectations.
pub(crate) fn flush_expectations(batch: &mut Batch) {
    drop(batch.netfilter(EXPECTATIONS, expectation::DELETE, Flags::ACK, 0, 0));
}
