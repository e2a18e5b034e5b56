//! Formats elements in nft's syntax.

use std::fmt::{self, Display};

use sluicegate_netlink::text::decode;

use crate::datatype::DataType;
use crate::key::text::write_part;
use crate::key::{Key, Part};
use crate::object::element::wire::in_network_order;
use crate::object::{Element, ElementData, Elements};
use crate::wording::{Wording, Words};

/// Formats the value in nft's syntax: `1.2.3.4 . tcp . 80 comment "x" : goto c`.
impl Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, Wording::SCRIPT)
    }
}

impl Words for Element {
    fn write(&self, f: &mut fmt::Formatter<'_>, with: Wording<'_>) -> fmt::Result {
        Printed { element: self, key_only: false, with }.fmt(f)
    }
}

/// An element to be printed; for a deletion only its key.
struct Printed<'a> {
    element: &'a Element,
    key_only: bool,
    with: Wording<'a>,
}

impl Display for Printed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { element, with, .. } = *self;
        match element.end() {
            _ if element.is_catch_all() => f.write_str("*")?,
            Some(end) => write_interval(f, &element.key(), &end, with)?,
            None => element.key().write(f, with)?,
        }
        if self.key_only {
            return Ok(());
        }
        for statement in element.statements() {
            write!(f, " {}", statement.worded(with))?;
        }
        match element.get_timeout() {
            None => {}
            // `0s` would mean the timeout of the set.
            Some(Element::NEVER) => f.write_str(" timeout never")?,
            Some(timeout) => write!(f, " timeout {}", with.time(timeout))?,
        }
        if let Some(expires) = element.get_expires().filter(|_| with.shows_state(true)) {
            write!(f, " expires {}", with.time(expires))?;
        }
        if let Some(comment) = element.get_comment() {
            write!(f, " comment {comment}")?;
        }
        match element.data() {
            ElementData::None => Ok(()),
            ElementData::Value(value) => write!(f, " : {}", value.worded(with.data())),
            ElementData::Range(low, high) => {
                f.write_str(" : ")?;
                write_data_interval(f, &low, &high, with.data())
            }
            ElementData::Verdict(verdict) => write!(f, " : {verdict}"),
            ElementData::Object(name) => write!(f, " : {}", name.quoted()),
        }
    }
}

/// Writes an interval of data. A single address has to be written as a prefix for nft to read it as an
/// interval; nft lists it so too, unless there are several parts.
fn write_data_interval(f: &mut fmt::Formatter<'_>, low: &Key, high: &Key, with: Wording<'_>) -> fmt::Result {
    if low != high {
        return write_interval(f, low, high, with);
    }
    let several = low.types().len() > 1;
    for (i, (part, value)) in low.parts().enumerate() {
        if i > 0 {
            f.write_str(" . ")?;
        }
        write_part(f, part, value, with)?;
        if part.data_type().has_prefixes() && (!several || with.is_script()) {
            write!(f, "/{}", part.bytes() * 8)?;
        }
    }
    Ok(())
}

/// Writes a range part by part: as a single value, as a prefix if it is one, else as both bounds.
fn write_interval(f: &mut fmt::Formatter<'_>, low: &Key, high: &Key, with: Wording<'_>) -> fmt::Result {
    let several = low.types().len() > 1;
    for (i, ((part, low), (_, high))) in low.parts().zip(high.parts()).enumerate() {
        if i > 0 {
            f.write_str(" . ")?;
        }
        if let Some(stem) = wildcard(part, low, high) {
            write!(f, "\"{stem}*\"")?;
            continue;
        }
        let with = with.part(i);
        match prefix_length(part, low, high).filter(|_| !several || !with.avoids_prefix(part)) {
            _ if low == high => write_part(f, part, low, with)?,
            Some(length) => {
                write_part(f, part, low, with)?;
                write!(f, "/{length}")?;
            }
            None => {
                write_part(f, part, low, with.bare())?;
                f.write_str("-")?;
                write_part(f, part, high, with.bare())?;
            }
        }
    }
    Ok(())
}

/// Returns the prefix of interface names if a range contains exactly the names with this prefix: then the
/// bytes after it are zeros in the lower and ones in the upper bound.
pub(crate) fn wildcard(part: Part, low: &[u8], high: &[u8]) -> Option<String> {
    let length = low.iter().zip(high).take_while(|(l, h)| l == h).count();
    let rest =
        |bytes: &[u8], byte: u8| bytes.get(length..).is_some_and(|rest| rest.iter().all(|b| *b == byte));
    let whole =
        part.data_type() == DataType::IFNAME && length < low.len() && rest(low, 0) && rest(high, 0xff);
    let stem = whole.then(|| decode(low.get(..length).unwrap_or_default()).into_owned());
    // `x\*` is a name that ends with `*`.
    stem.filter(|stem| !stem.ends_with('\\'))
}

/// Returns the number of leading bits that agree, if all others are 0 in `low` and 1 in `high`; only for
/// addresses and marks, which nft lists as prefixes.
pub(crate) fn prefix_length(part: Part, low: &[u8], high: &[u8]) -> Option<u32> {
    if !part.data_type().has_prefixes() {
        return None;
    }
    let (low, high) = (in_network_order(part, low), in_network_order(part, high));
    let mut length = 0;
    let mut ended = false;
    for (l, h) in low.iter().zip(&high) {
        let differ = l ^ h;
        let host = differ.count_ones();
        // The bits that differ must be the lowest ones of this byte, 0 in the lower and 1 in the upper bound,
        // and all bits of the bytes after it.
        let lowest = u8::try_from((1_u16 << host) - 1).ok()?;
        if differ != lowest || l & lowest != 0 || (ended && differ != 0xff) {
            return None;
        }
        length += 8 - host;
        ended |= differ != 0;
    }
    Some(length)
}

/// Formats the argument of an nft command: `element ip t s { 1.2.3.4, 5.6.7.8 }`.
impl Display for Elements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, false)
    }
}

impl Elements {
    pub(crate) fn write(&self, f: &mut fmt::Formatter<'_>, key_only: bool) -> fmt::Result {
        write!(f, "element {} {{ ", self.set)?;
        for (i, element) in self.list.iter().enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            Printed { element, key_only, with: Wording::SCRIPT }.fmt(f)?;
        }
        f.write_str(" }")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Protocol;
    use crate::key::Port;
    use crate::name::{Comment, Name};
    use crate::tree::Verdict;
    use std::net::Ipv4Addr;
    use std::time::Duration;

    #[test]
    fn elements_print_as_nft_reads_them() {
        let key = (Ipv4Addr::new(1, 2, 3, 4), Protocol::TCP, Port(80));
        let element = Element::new(key)
            .comment(Comment::new("demo/web").unwrap())
            .verdict(Verdict::Goto(Name::new("reject-chain").unwrap()));
        assert_eq!(element.to_string(), "1.2.3.4 . tcp . 80 comment \"demo/web\" : goto reject-chain");
    }

    #[test]
    fn what_never_goes_is_not_what_goes_at_once() {
        let after = |timeout| Element::new(Port(80)).timeout(timeout).to_string();
        assert_eq!(after(Element::NEVER), "80 timeout never");
        assert_eq!(after(Duration::from_nanos(1)), "80 timeout 1ms");
        assert_eq!(after(Duration::from_millis(1500)), "80 timeout 1s500ms");
    }

    #[test]
    fn ranges_print_as_prefixes_where_they_are() {
        let range = |a: [u8; 4], b: [u8; 4]| Element::range(Ipv4Addr::from(a), Ipv4Addr::from(b)).to_string();
        assert_eq!(range([10, 0, 0, 0], [10, 255, 255, 255]), "10.0.0.0/8");
        assert_eq!(range([10, 0, 0, 4], [10, 0, 0, 7]), "10.0.0.4/30");
        assert_eq!(range([10, 0, 0, 1], [10, 0, 0, 2]), "10.0.0.1-10.0.0.2");
        assert_eq!(range([10, 0, 0, 0], [10, 1, 0, 255]), "10.0.0.0-10.1.0.255");
        assert_eq!(range([1, 1, 1, 1], [1, 1, 1, 1]), "1.1.1.1");
        assert_eq!(range([0, 0, 0, 0], [255, 255, 255, 255]), "0.0.0.0/0");
    }
}
