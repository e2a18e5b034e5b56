//! Looks up elements by value, as `nft get element` does: intervals as a whole.

use sluicegate_netlink::Transport;

use super::element::{Element as FromKernel, ElementFlags, element, reset_element};
use super::{TRIES, generation};
use crate::error::Error;
use crate::key::Key;
use crate::object::element::query::ElementQuery;
use crate::object::element::{Form, sortable, successor, wire_key};
use crate::object::{Element, Set};
use crate::read::typed_set::elements_of;

/// Looks up the element of a set that contains a key, or all keys of a range, or is the catch-all element;
/// `None` if the set has none. Other properties of the wanted element are ignored.
///
/// In an interval set, a key finds the interval that contains it. The result is that of `nft get element`,
/// except where nft 1.0.6 is wrong: for the last interval, adjacent intervals, intervals of maps, the
/// catch-all element of an interval set, and ranges of concatenations that extend beyond the element.
///
/// ```no_run
/// use sluicegate_nftables::netlink::{Options, NetlinkFamily, Socket};
/// use sluicegate_nftables::{DataType, Element, Family, Set, SetFlags, TableId, read};
///
/// let mut socket = Socket::open(NetlinkFamily::NETFILTER, &Options::default())?;
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
/// If the kernel refuses for another reason, or does not answer, or other programs commit faster than the two ends of
/// an interval are read ([`Interrupted`](sluicegate_netlink::Error::Interrupted)).
pub fn find(
    transport: &mut (impl Transport + ?Sized),
    set: &Set,
    wanted: &Element,
) -> Result<Option<Element>, Error> {
    search(transport, set, wanted, false)
}

/// Looks up an element as [`find`] does and resets its counters and quotas, as `nft reset element` does.
/// Since Linux 6.5.
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
    let key = wire_key(&wanted.key(), form != Form::Plain);
    let ask = |transport: &mut _, wanted: ElementQuery<'_>, reset: bool| {
        let get = if reset { reset_element } else { element };
        get(transport, &set.id, wanted)
    };
    let mut found = Vec::new();
    match form {
        Form::Plain if wanted.is_catch_all() => found.extend(ask(transport, ElementQuery::CatchAll, reset)?),
        Form::Plain => found.extend(ask(transport, ElementQuery::Key(&key), reset)?),
        Form::Concat => {
            let end = wire_key(&wanted.last(), true);
            // The first query does not reset: the range may extend beyond the element that the kernel finds.
            let from_kernel = ask(transport, ElementQuery::Range(&key, &end), false)?;
            if holds(set, from_kernel.as_slice(), wanted) && reset {
                found.extend(ask(transport, ElementQuery::Range(&key, &end), true)?);
            } else {
                found.extend(from_kernel);
            }
        }
        Form::Interval => {
            found = interval(transport, &wanted.key(), &ask)?;
            if reset && holds(set, &found, wanted) {
                let end =
                    found.pop().filter(|from_kernel| from_kernel.flags.contains(ElementFlags::INTERVAL_END));
                found = ask(transport, ElementQuery::Key(&key), true)?.into_iter().chain(end).collect();
            }
        }
    }
    Ok(elements_of(set, &found).into_iter().find(|element| contains(element, wanted)))
}

/// Returns the start of the interval that contains a key, and its end unless that is the last key of all;
/// both from one generation.
fn interval<T: Transport + ?Sized>(
    transport: &mut T,
    key: &Key,
    ask: &impl Fn(&mut T, ElementQuery<'_>, bool) -> Result<Option<FromKernel>, Error>,
) -> Result<Vec<FromKernel>, Error> {
    for _ in 0..TRIES {
        let before = generation(transport)?.id;
        let bytes = wire_key(key, true);
        let start = ask(transport, ElementQuery::Key(&bytes), false)?;
        let end = match (&start, successor(key).map(|behind| wire_key(&behind, true))) {
            (None, _) => None,
            // No other interval begins or ends inside of this one.
            (Some(start), _) if *start.key != *bytes => ask(transport, ElementQuery::End(&bytes), false)?,
            // At the start, another interval may end. After the start, this interval may end and another
            // begin: then that start is the end of this one.
            (Some(_), Some(behind)) => match ask(transport, ElementQuery::Key(&behind), false)? {
                Some(next) if *next.key == *behind => Some(FromKernel::end_of_interval(next.key)),
                _ => ask(transport, ElementQuery::End(&behind), false)?,
            },
            (Some(_), None) => None,
        };
        let found = start.into_iter().chain(end).collect();
        if generation(transport)?.id == before {
            return Ok(found);
        }
    }
    Err(sluicegate_netlink::Error::Interrupted(TRIES).into())
}

fn holds(set: &Set, from_kernel: &[FromKernel], wanted: &Element) -> bool {
    elements_of(set, from_kernel).iter().any(|element| contains(element, wanted))
}

/// Returns whether an element contains all keys of another.
fn contains(element: &Element, wanted: &Element) -> bool {
    if element.is_catch_all() || wanted.is_catch_all() {
        return element.is_catch_all() && wanted.is_catch_all();
    }
    let (low, high) = (part_values(&element.key()), part_values(&element.last()));
    let (from, to) = (part_values(&wanted.key()), part_values(&wanted.last()));
    low.len() == from.len()
        && low.iter().zip(&from).all(|(low, from)| low <= from)
        && high.iter().zip(&to).all(|(high, to)| to <= high)
}

/// Returns the parts of a key, each as bytes that sort in the order of the values.
fn part_values(key: &Key) -> Vec<Vec<u8>> {
    let mut all = sortable(key).into_iter();
    key.parts().map(|(_, value)| all.by_ref().take(value.len()).collect()).collect()
}
