//! An element by its value, as `nft get element` finds it: intervals whole.

use sluicegate_netlink::{Error, Transport};

use super::element::{Element as Held, ElementFlags, Wanted, element, reset_element};
use super::{TRIES, generation};
use crate::key::Key;
use crate::listing::elements_of;
use crate::object::element::{Form, sortable, successor, wire_key};
use crate::object::{Element, Set};

/// Looks up the element of a set that has a key, or all keys of a range, or is the catch-all; `None` when the set has none. What else is
/// said of the wanted element does not matter.
///
/// A key of a set of intervals finds the interval that it is in. As `nft get element`, but for what nft 1.0.6 gets wrong: the last interval, intervals that
/// meet, intervals of maps, the catch-all of a set of intervals, and ranges of concatenations that reach out of the element.
///
/// ```no_run
/// use sluicegate_netlink::{Options, Protocol, Socket};
/// use sluicegate_nftables::{DataType, Element, Family, Set, SetFlags, TableId, read};
///
/// let mut socket = Socket::open(Protocol::NETFILTER, &Options::default())?;
/// let set = TableId::new(Family::INET, "filter".parse()?).set("blocked".parse()?);
/// let set = Set::new(set, DataType::IPV4_ADDR).flags(SetFlags::INTERVAL);
/// let address = std::net::Ipv4Addr::new(10, 1, 2, 3);
/// if let Some(element) = read::find(&mut socket, &set, &Element::new(address))? {
///     println!("{address} is in {element}");
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// When the kernel refuses for another reason than that, or does not answer; [`Error::Interrupted`] when somebody commits faster than the two ends
/// of an interval are read.
pub fn find(
    transport: &mut (impl Transport + ?Sized),
    set: &Set,
    wanted: &Element,
) -> Result<Option<Element>, Error> {
    search(transport, set, wanted, false)
}

/// Looks up an element as [`find`] does and sets its counters and quotas back to nought, as `nft reset element`. Since Linux 6.5.
///
/// # Errors
/// As [`find`]; `EINVAL` from an older kernel.
pub fn find_and_reset(
    transport: &mut (impl Transport + ?Sized),
    set: &Set,
    wanted: &Element,
) -> Result<Option<Element>, Error> {
    search(transport, set, wanted, true)
}

fn search(
    transport: &mut (impl Transport + ?Sized),
    set: &Set,
    wanted: &Element,
    reset: bool,
) -> Result<Option<Element>, Error> {
    let form = if wanted.is_catch_all() { Form::Plain } else { Form::of(set) };
    let key = wire_key(wanted.key(), form != Form::Plain);
    let ask = |transport: &mut _, wanted: Wanted<'_>, reset: bool| {
        let (table, name) = (&set.id.table, &set.id.name);
        let get = if reset { reset_element } else { element };
        get(transport, table.family, &table.name, name, wanted)
    };
    let mut found = Vec::new();
    match form {
        Form::Plain if wanted.is_catch_all() => found.extend(ask(transport, Wanted::CatchAll, reset)?),
        Form::Plain => found.extend(ask(transport, Wanted::Key(&key), reset)?),
        Form::Concat => {
            let end = wire_key(wanted.end().unwrap_or(wanted.key()), true);
            // What reaches out of the element is not to be set back.
            let held = ask(transport, Wanted::Range(&key, &end), false)?;
            if holds(set, held.as_slice(), wanted) && reset {
                found.extend(ask(transport, Wanted::Range(&key, &end), true)?);
            } else {
                found.extend(held);
            }
        }
        Form::Interval => {
            found = interval(transport, wanted.key(), &ask)?;
            if reset && holds(set, &found, wanted) {
                let end = found.pop().filter(|held| held.flags.contains(ElementFlags::INTERVAL_END));
                found = ask(transport, Wanted::Key(&key), true)?.into_iter().chain(end).collect();
            }
        }
    }
    Ok(elements_of(set, &found).into_iter().find(|element| contains(element, wanted)))
}

/// The start of the interval that a key is in, and its end unless that is the last key of all: both of one generation.
fn interval<T: Transport + ?Sized>(
    transport: &mut T,
    key: &Key,
    ask: &impl Fn(&mut T, Wanted<'_>, bool) -> Result<Option<Held>, Error>,
) -> Result<Vec<Held>, Error> {
    for _ in 0..TRIES {
        let before = generation(transport)?.id;
        let bytes = wire_key(key, true);
        let start = ask(transport, Wanted::Key(&bytes), false)?;
        let end = match (&start, successor(key).map(|behind| wire_key(&behind, true))) {
            (None, _) => None,
            // Within an interval no other begins or ends.
            (Some(start), _) if *start.key != *bytes => ask(transport, Wanted::End(&bytes), false)?,
            // At its start another one may end. Behind it this one may end, and another one begin: that is its end then.
            (Some(_), Some(behind)) => match ask(transport, Wanted::Key(&behind), false)? {
                Some(next) if *next.key == *behind => {
                    Some(Held { key: next.key, flags: ElementFlags::INTERVAL_END, ..Held::default() })
                }
                _ => ask(transport, Wanted::End(&behind), false)?,
            },
            (Some(_), None) => None,
        };
        let found = start.into_iter().chain(end).collect();
        if generation(transport)?.id == before {
            return Ok(found);
        }
    }
    Err(Error::Interrupted(TRIES))
}

fn holds(set: &Set, held: &[Held], wanted: &Element) -> bool {
    elements_of(set, held).iter().any(|element| contains(element, wanted))
}

/// Whether an element has all keys of another.
fn contains(element: &Element, wanted: &Element) -> bool {
    if element.is_catch_all() || wanted.is_catch_all() {
        return element.is_catch_all() && wanted.is_catch_all();
    }
    let last = |element: &Element| *element.end().unwrap_or(element.key());
    let (low, high) = (part_values(element.key()), part_values(&last(element)));
    let (from, to) = (part_values(wanted.key()), part_values(&last(wanted)));
    low.len() == from.len()
        && low.iter().zip(&from).all(|(low, from)| low <= from)
        && high.iter().zip(&to).all(|(high, to)| to <= high)
}

/// The parts of a key, each by bytes that sort as its values do.
fn part_values(key: &Key) -> Vec<Vec<u8>> {
    let mut all = sortable(key).into_iter();
    key.parts().map(|(_, value)| all.by_ref().take(value.len()).collect()).collect()
}
