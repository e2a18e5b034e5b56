//! Elements of sets and maps: keys of a small space, where much overlaps, and all that one may carry.

use std::net::Ipv6Addr;

use sluicegate_nftables::expr::ObjectKind;
use sluicegate_nftables::lang::Counter;
use sluicegate_nftables::*;

use super::objects::NAMES;
use super::rules::verdict;
use super::sets::{ALL, Carried, Data, KINDS, Keys, set_id};
use super::{Bytes, seconds};
use crate::fake::address;
use crate::kernel::cases::name;

pub(super) fn elements(t: &TableId, bytes: &mut Bytes<'_>) -> Elements {
    let kind = bytes.below(KINDS);
    let of = if bytes.one_in(12) { bytes.below(KINDS) } else { kind };
    let count = bytes.below(3) + 1;
    let list: Vec<Element> = (0..count).map(|_| element(of, bytes)).collect();
    Elements::new(&set_id(t, kind), list)
}

/// A key as a set of this kind has them.
pub(super) fn key(kind: u8, bytes: &mut Bytes<'_>) -> Key {
    let n = bytes.below(16);
    one(ALL[usize::from(kind)].key, n, bytes.below(8))
}

pub(super) fn element(kind: u8, bytes: &mut Bytes<'_>) -> Element {
    let of = &ALL[usize::from(kind)];
    let (a, b) = (bytes.below(16), bytes.below(16));
    let (low, high) = if bytes.one_in(30) { (a.max(b), a.min(b)) } else { (a.min(b), a.max(b)) };
    let interval = of.flags.contains(SetFlags::INTERVAL);
    let element = if bytes.one_in(14) {
        Element::catch_all()
    } else if interval != bytes.one_in(40) {
        match of.key {
            Keys::Pair | Keys::Triple | Keys::Long => {
                let (p, q) = (bytes.below(8), bytes.below(8));
                Element::range(one(of.key, low, p.min(q)), one(of.key, high, p.max(q)))
            }
            _ => Element::range(one(of.key, low, 0), one(of.key, high, 0)),
        }
    } else {
        Element::new(one(of.key, a, b % 8))
    };
    with_more(with_data(element, of.data, bytes), kind, bytes)
}

fn one(keys: Keys, n: u8, second: u8) -> Key {
    let port = Port(u16::from(second));
    match keys {
        Keys::Address | Keys::Typeof => address(n).into(),
        Keys::Port if n == 15 => Port(u16::MAX).into(),
        Keys::Port => Port(u16::from(n)).into(),
        Keys::Protocol if n == 15 => Protocol(u8::MAX).into(),
        Keys::Protocol => Protocol(n).into(),
        Keys::Mark if n == 15 => Mark(u32::MAX).into(),
        // Of more than a byte, to see in which order the bytes count.
        Keys::Mark => Mark(u32::from(n) * 100).into(),
        Keys::Pair => (address(n), port).into(),
        Keys::Triple => (address(n), port, Mark(u32::from(n))).into(),
        Keys::Long => {
            let of = |n: u8| Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, n.into());
            (of(n), of(second), of(1), of(2)).into()
        }
    }
}

fn with_data(element: Element, data: Data, bytes: &mut Bytes<'_>) -> Element {
    let n = bytes.below(16);
    match data {
        _ if bytes.one_in(40) => element,
        Data::None => element,
        Data::Mark => element.value(Mark(u32::from(n % 2))),
        Data::Address if n == 0 => element.value(Port(1)),
        Data::Address => element.value(address(n)),
        Data::Pair => element.value((address(n % 4), Port(80))),
        Data::Range => element.value_range(address(n / 2), address(n)),
        Data::Verdict => element.verdict(verdict(bytes)),
        Data::Object(kind) => element.object(name(object_name(kind, bytes))),
    }
}

fn object_name(kind: ObjectKind, bytes: &mut Bytes<'_>) -> &'static str {
    match kind {
        _ if bytes.one_in(6) => bytes.pick(&NAMES),
        ObjectKind::QUOTA => "q",
        ObjectKind::LIMIT => "pace",
        ObjectKind::SYNPROXY => "shield",
        ObjectKind::CT_HELPER => "aide",
        _ => "n",
    }
}

/// A comment, times, and what it carries of its own.
fn with_more(element: Element, kind: u8, bytes: &mut Bytes<'_>) -> Element {
    let of = &ALL[usize::from(kind)];
    let timed = of.timeout.is_some() || of.flags.contains(SetFlags::TIMEOUT);
    let mut element = match bytes.comment() {
        Some(comment) => element.comment(comment),
        None => element,
    };
    if bytes.one_in(30) {
        element = element.comment(crate::kernel::cases::comment(&"long ".repeat(25)));
    }
    if timed != bytes.one_in(40) {
        let n = u64::from(bytes.below(16));
        element = match n {
            0..3 => element.timeout(seconds(7200 * (1 + n))),
            3..6 => element.expires(seconds(18_000 * (n - 2))),
            6 => element.timeout(seconds(7200)).expires(seconds(3600)),
            7 => element.timeout(seconds(u64::MAX / 1_000_000_000)),
            8 => element.timeout(Element::NEVER),
            _ => element,
        };
    }
    match bytes.below(10) {
        0 => element.statement(Counter { packets: 3, bytes: 4 }),
        1 => of.carries.iter().fold(element, |element, carried| element.statement(carried.statement())),
        2 => element.statement(bytes.pick(&[Carried::ByteLimit, Carried::Limit, Carried::Quota]).statement()),
        4 if bytes.one_in(4) => {
            element.statement(Carried::Limit.statement()).statement(Carried::Quota.statement())
        }
        _ => element,
    }
}
