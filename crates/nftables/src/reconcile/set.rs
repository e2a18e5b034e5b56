//! Compares sets and maps, and determines which differences can be changed in place.

use sluicegate_netlink::attr::{self, Attributes};

use crate::error::Error;
use crate::expr::Expr;
use crate::expr::data::NFT_DATA_VERDICT;
use crate::family::Family;
use crate::object::{Set, TableId};
use crate::read;
use crate::read::typed_set::set_of;
use crate::reconcile::body::write_expr;
use crate::reconcile::{Options, Reason};

/// The action for a wanted set that exists already.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// It stays; if its size differs, this is the size in the kernel.
    Same(Option<u32>),
    /// Its timeouts are changed in place, and its size to this value.
    Updated(Option<u32>),
    Replaced(Reason),
}

/// Compares a set that is to contain `elements` elements with the existing one.
pub(super) fn compare(
    wanted: &Set,
    elements: usize,
    kernel: &read::Set,
    options: &Options<'_>,
) -> Result<Action, Error> {
    let table = &wanted.id.table;
    let sent = as_sent(wanted)?;
    let types = [
        (sent.flags == kernel.flags, Reason::Flags),
        (
            sent.key_type == kernel.key_type
                && sent.key_len == kernel.key_len
                && sent.fields == kernel.fields,
            Reason::KeyType,
        ),
        (
            sent.data_type == kernel.data_type
                && (sent.data_len == kernel.data_len || sent.data_type == Some(NFT_DATA_VERDICT))
                && sent.object_kind == kernel.object_kind,
            Reason::DataType,
        ),
        (sent.policy.unwrap_or(0) == kernel.policy.unwrap_or(0), Reason::Policy),
        (carry_same(table.family, &sent.expressions, &kernel.expressions)?, Reason::Statements),
    ];
    if let Some((_, reason)) = types.into_iter().find(|(same, _)| !same) {
        return Ok(Action::Replaced(reason));
    }
    if let Some(reason) = notes(wanted, &sent, kernel, table) {
        return Ok(Action::Replaced(reason));
    }
    let times = |set: &read::Set| (set.timeout.unwrap_or(0), set.gc_interval.unwrap_or(0));
    let is_same_time = times(&sent) == times(kernel);
    let size = size(wanted.size, kernel.size, elements, options);
    match size {
        Size::Replaced => Ok(Action::Replaced(Reason::Size)),
        // The new size takes effect when the transaction commits, so the elements have to fit the old one
        // too.
        Size::Updated if !options.update_sets || !fits(elements, kernel.size) => {
            Ok(Action::Replaced(Reason::Size))
        }
        _ if !is_same_time && !options.update_sets => Ok(Action::Replaced(Reason::Timeout)),
        Size::Updated => Ok(Action::Updated(wanted.size)),
        Size::Kept(size) if !is_same_time => Ok(Action::Updated(Some(size))),
        Size::Same if !is_same_time => Ok(Action::Updated(wanted.size)),
        Size::Kept(size) => Ok(Action::Same(Some(size))),
        Size::Same => Ok(Action::Same(None)),
    }
}

enum Size {
    Same,
    /// The different size is accepted.
    Kept(u32),
    Updated,
    Replaced,
}

fn size(wanted: Option<u32>, kernel: Option<u32>, elements: usize, options: &Options<'_>) -> Size {
    let (wanted, kernel) = (wanted.filter(|size| *size > 0), kernel.filter(|size| *size > 0));
    if wanted == kernel {
        return Size::Same;
    }
    let room = kernel.is_some() && fits(elements, kernel);
    match (wanted, kernel) {
        // The kernel gives this size to a set without one if rules add elements.
        (None, Some(OF_DYNAMIC)) => Size::Same,
        (_, Some(kernel)) if options.keep_sizes && room => Size::Kept(kernel),
        (Some(_), _) => Size::Updated,
        // A size cannot be removed.
        (None, _) => Size::Replaced,
    }
}

/// Returns whether a set with this size, or without one, has room for so many elements.
fn fits(elements: usize, size: Option<u32>) -> bool {
    let size = size.filter(|size| *size > 0).and_then(|size| usize::try_from(size).ok());
    size.is_none_or(|size| elements <= size)
}

/// Compares nft's user data. Other programs may encode the same types differently, so the decoded types are
/// compared.
fn notes(wanted: &Set, sent: &read::Set, kernel: &read::Set, table: &TableId) -> Option<Reason> {
    if sent.user_data == kernel.user_data {
        return None;
    }
    let typed = set_of(table, kernel);
    if typed.comment != wanted.comment {
        return Some(Reason::Comment);
    }
    let same = typed.key == wanted.key && typed.data == wanted.data && typed.auto_merge == wanted.auto_merge;
    (!same).then_some(Reason::Notes)
}

fn carry_same(family: Family, ours: &[Expr], theirs: &[Expr]) -> Result<bool, Error> {
    let body = |exprs: &[Expr]| {
        let mut out = Vec::new();
        exprs.iter().try_for_each(|expr| write_expr(expr.clone(), family, &mut out)).map(|()| out)
    };
    let (ours, theirs) = (body(ours), body(theirs));
    Ok(ours.map_err(too_long)? == theirs.map_err(too_long)?)
}

/// Returns the set as it would be read from the kernel.
fn as_sent(set: &Set) -> Result<read::Set, Error> {
    let bytes = attr::encode(|w| set.encode(w, 0)).map_err(too_long)?;
    let sent = read::Set::decode(set.id.table.family, Attributes::new(&bytes));
    Ok(sent.map_err(sluicegate_netlink::Error::from)?)
}

pub(super) fn too_long(error: sluicegate_netlink::TooLong) -> Error {
    sluicegate_netlink::Error::from(error).into()
}

/// `USHRT_MAX`: the size that the kernel gives to a set without one when a rule is added that adds elements
/// to it.
const OF_DYNAMIC: u32 = 65_535;
