//! The attribute that a kernel error refers to, with the names of `linux/netfilter/nf_tables.h`.

use std::fmt;

use sluicegate_netlink::attr::Attributes;
use sluicegate_netlink::message::{Header, Message};

use crate::expr::wire::NFTA_EXPR_NAME;
use crate::name::Name;
use crate::object::chain::wire::CHAIN;
use crate::object::element::wire::ELEMENT_LIST;
use crate::object::flowtable::wire::FLOWTABLE;
use crate::object::generation::GENERATION;
use crate::object::rule::wire::RULE;
use crate::object::set::wire::SET;
use crate::object::stateful::wire::OBJECT;
use crate::object::table::wire::TABLE;
use crate::wire::attributes::Enumeration;
use crate::wire::message::*;

/// The place of an attribute in a message: the attribute, and the nested attributes that contain it.
///
/// Prints as `NFTA_RULE_EXPRESSIONS/NFTA_LIST_ELEM[2]`; the number is the index of a list entry, from 0. An
/// attribute without a known name prints as its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttributePath {
    steps: Vec<Step>,
    /// The expression on the way: its number in the rule or element, and its name.
    expression: Option<(usize, Name)>,
}

/// One attribute of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Step {
    kind: u16,
    name: Option<&'static str>,
    /// Index in its list, from 0.
    index: Option<usize>,
}

impl AttributePath {
    /// Returns the types (`nla_type`) of the attributes on the path, the outermost first.
    #[must_use]
    pub fn kinds(&self) -> Vec<u16> {
        self.steps.iter().map(|step| step.kind).collect()
    }

    /// Returns the expression that contains the attribute, if one does: its index in the rule or element,
    /// from 0, and its name in the kernel.
    #[must_use]
    pub fn expression(&self) -> Option<(usize, &str)> {
        self.expression.as_ref().map(|(index, name)| (*index, name.as_str()))
    }

    /// Returns the name, type and list index of each step.
    pub(super) fn steps(&self) -> impl Iterator<Item = (Option<&'static str>, u16, Option<usize>)> + '_ {
        self.steps.iter().map(|step| (step.name, step.kind, step.index))
    }

    /// Returns the path of the attribute at an offset, counted from the start of the message's header; `None`
    /// if there is no attribute.
    pub(crate) fn find(header: Header, payload: &[u8], offset: u32) -> Option<Self> {
        let (_, attributes) = Message { header, payload }.netfilter().ok()?;
        let [_, command] = header.kind.to_be_bytes();
        let mut path = Self { steps: Vec::new(), expression: None };
        path.descend(attributes, usize::try_from(offset).ok()?, attributes_of(command));
        (!path.steps.is_empty()).then_some(path)
    }

    fn descend(&mut self, attributes: Attributes<'_>, offset: usize, known: Enumeration) {
        let mut before = 0;
        for attribute in attributes {
            let Ok(attribute) = attribute else { return };
            let (kind, behind) = (attribute.kind, attribute.offset + HEADER + attribute.payload.len());
            if offset >= behind.next_multiple_of(HEADER) {
                before += 1;
                continue;
            }
            if offset < attribute.offset {
                return;
            }
            let is_listed = known.first().is_some_and(|first| LISTED.contains(&first.name));
            let known = known.iter().find(|known| known.number == kind);
            let index = is_listed.then_some(before);
            self.steps.push(Step { kind, name: known.map(|known| known.name), index });
            let inner = known.map_or(&[][..], |known| known.nested);
            let is_expression = inner
                .first()
                .is_some_and(|first| first.number == NFTA_EXPR_NAME && first.name == "NFTA_EXPR_NAME");
            if let (true, Some(index)) = (is_expression, index) {
                let name = attribute.attributes().find(NFTA_EXPR_NAME).ok().flatten();
                self.expression = name.and_then(|name| Some((index, Name::from_kernel(&name.text().ok()?))));
            }
            if attribute.nested && offset > attribute.offset {
                self.descend(attribute.attributes(), offset, inner);
            }
            return;
        }
    }
}

impl fmt::Display for AttributePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, step) in self.steps.iter().enumerate() {
            let slash = if i > 0 { "/" } else { "" };
            match step.name {
                Some(name) => write!(f, "{slash}{name}")?,
                None => write!(f, "{slash}{}", step.kind)?,
            }
            if let Some(index) = step.index {
                write!(f, "[{index}]")?;
            }
        }
        Ok(())
    }
}

/// The names of attributes that are list entries.
const LISTED: &[&str] = &["NFTA_LIST_ELEM", "NFTA_DEVICE_NAME"];
/// The size of an attribute's header, its length and type. Attributes are aligned to multiples of this size.
const HEADER: usize = 4;

/// Returns the attributes of a message of this type. Traces have none here: no request is one.
fn attributes_of(command: u8) -> Enumeration {
    match command {
        NFT_MSG_NEWTABLE | NFT_MSG_GETTABLE | NFT_MSG_DELTABLE | NFT_MSG_DESTROYTABLE => TABLE,
        NFT_MSG_NEWCHAIN | NFT_MSG_GETCHAIN | NFT_MSG_DELCHAIN | NFT_MSG_DESTROYCHAIN => CHAIN,
        NFT_MSG_NEWRULE | NFT_MSG_GETRULE | NFT_MSG_DELRULE | NFT_MSG_GETRULE_RESET | NFT_MSG_DESTROYRULE => {
            RULE
        }
        NFT_MSG_NEWSET | NFT_MSG_GETSET | NFT_MSG_DELSET | NFT_MSG_DESTROYSET => SET,
        NFT_MSG_NEWSETELEM
        | NFT_MSG_GETSETELEM
        | NFT_MSG_DELSETELEM
        | NFT_MSG_DESTROYSETELEM
        | NFT_MSG_GETSETELEM_RESET => ELEMENT_LIST,
        NFT_MSG_NEWGEN | NFT_MSG_GETGEN => GENERATION,
        NFT_MSG_NEWOBJ | NFT_MSG_GETOBJ | NFT_MSG_DELOBJ | NFT_MSG_GETOBJ_RESET | NFT_MSG_DESTROYOBJ => {
            OBJECT
        }
        NFT_MSG_NEWFLOWTABLE | NFT_MSG_GETFLOWTABLE | NFT_MSG_DELFLOWTABLE | NFT_MSG_DESTROYFLOWTABLE => {
            FLOWTABLE
        }
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sluicegate_netlink::attr::encode;

    use super::*;

    fn path(command: u8, payload: &[u8], offset: u32) -> Option<AttributePath> {
        let kind = u16::from_be_bytes([10, command]);
        let flags = sluicegate_netlink::message::Flags::REQUEST;
        AttributePath::find(Header { kind, flags, sequence: 1, port: 0 }, payload, offset)
    }

    /// Builds a message: 16 bytes `nlmsghdr` and 4 bytes `nfgenmsg` precede the attributes.
    fn rule() -> Vec<u8> {
        let attributes = encode(|w| {
            w.put_str(1, "t"); // 20
            w.put_str(2, "c"); // 28
            let mut list = w.nest(4); // 36
            for name in ["meta", "cmp"] {
                list.nest(1).put_str(1, name); // 40, 56
            }
        });
        [vec![2, 0, 0, 0], attributes.unwrap()].concat()
    }

    #[test]
    fn an_offset_is_an_attribute_with_all_that_it_is_in() {
        let path_at = |offset| path(6, &rule(), offset).map(|path| path.to_string());
        assert_eq!(path_at(20).as_deref(), Some("NFTA_RULE_TABLE"));
        assert_eq!(path_at(28).as_deref(), Some("NFTA_RULE_CHAIN"));
        assert_eq!(path_at(36).as_deref(), Some("NFTA_RULE_EXPRESSIONS"));
        assert_eq!(path_at(40).as_deref(), Some("NFTA_RULE_EXPRESSIONS/NFTA_LIST_ELEM[0]"));
        assert_eq!(path_at(44).as_deref(), Some("NFTA_RULE_EXPRESSIONS/NFTA_LIST_ELEM[0]/NFTA_EXPR_NAME"));
        assert_eq!(path_at(0), None);
        assert_eq!(path_at(4096), None);
        let second = path(6, &rule(), 56).unwrap();
        assert_eq!((second.expression(), second.kinds()), (Some((1, "cmp")), vec![4, 1]));
        // A message type without known attribute names.
        assert_eq!(path(99, &rule(), 28).unwrap().to_string(), "2");
    }

    proptest! {
        #[test]
        fn no_input_makes_it_panic(
            command in any::<u8>(),
            payload in prop::collection::vec(any::<u8>(), 0..200),
            offset in any::<u32>(),
        ) {
            let _ = path(command, &payload, offset % 256);
            let _ = path(command, &payload, offset);
        }
    }
}
