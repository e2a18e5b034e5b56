//! The attribute that the kernel blames, by the names that `linux/netfilter/nf_tables.h` has for it and what it is in.

use std::fmt;

use sluicegate_netlink::attr::Attributes;
use sluicegate_netlink::message::{Header, Message};

use crate::name::Name;

/// Where in a message something is: an attribute, and those that it is in.
///
/// Prints as `NFTA_RULE_EXPRESSIONS/NFTA_LIST_ELEM[2]`: of several of one type in a list, the number from 0. An attribute that has no name here prints
/// as its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttributePath {
    steps: Vec<Step>,
    /// The expression on the way: its number in the rule or element, and its name.
    expression: Option<(usize, Name)>,
}

/// One attribute on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Step {
    kind: u16,
    name: Option<&'static str>,
    /// Which of its type, in a list.
    index: Option<usize>,
}

impl AttributePath {
    /// The types of the attributes (`nla_type`), the outermost first.
    #[must_use]
    pub fn kinds(&self) -> Vec<u16> {
        self.steps.iter().map(|step| step.kind).collect()
    }

    /// The expression that is blamed, if it is one of a rule or of an element: which, from 0, and its name in the kernel.
    #[must_use]
    pub fn expression(&self) -> Option<(usize, &str)> {
        self.expression.as_ref().map(|(index, name)| (*index, name.as_str()))
    }

    /// Each step's name, type and, in a list, number.
    pub(super) fn steps(&self) -> impl Iterator<Item = (Option<&'static str>, u16, Option<usize>)> + '_ {
        self.steps.iter().map(|step| (step.name, step.kind, step.index))
    }

    /// That of the attribute at an offset, counted from the message's header; `None` where there is none.
    pub(crate) fn find(header: Header, payload: &[u8], offset: u32) -> Option<Self> {
        let (_, attributes) = Message { header, payload }.netfilter().ok()?;
        let [_, command] = header.kind.to_be_bytes();
        let mut path = Self { steps: Vec::new(), expression: None };
        path.descend(attributes, usize::try_from(offset).ok()?, level(command));
        (!path.steps.is_empty()).then_some(path)
    }

    fn descend(&mut self, attributes: Attributes<'_>, offset: usize, level: Level) {
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
            let known = level.iter().find(|known| known.0 == kind);
            let index = level.first().is_some_and(|known| LISTED.contains(&known.1)).then_some(before);
            self.steps.push(Step { kind, name: known.map(|known| known.1), index });
            let inner = known.map_or(&[][..], |known| known.2);
            let is_expression = inner.first().is_some_and(|known| known.1 == "NFTA_EXPR_NAME");
            if let (true, Some(index)) = (is_expression, index) {
                let name = attribute.attributes().find(NFTA_EXPR_NAME).ok().flatten();
                self.expression = name.and_then(|name| Some((index, Name::held(name.str().ok()?))));
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

/// What there is in a message or a nest: type, name, and what is in that.
type Level = &'static [Known];
struct Known(u16, &'static str, Level);

/// By the command of a message.
fn level(command: u8) -> Level {
    match command {
        0..=2 | 26 => TABLE,
        3..=5 | 27 => CHAIN,
        6..=8 | 25 | 28 => RULE,
        9..=11 | 29 => SET,
        12..=14 | 30 | 33 | 34 => ELEMENTS,
        18..=21 | 31 => OBJECT,
        22..=24 | 32 => FLOWTABLE,
        _ => &[],
    }
}

macro_rules! levels {
    ($($(#[$doc:meta])* $level:ident { $($kind:literal $name:ident $(in $inner:ident)?,)* })*) => {
        $( $(#[$doc])* const $level: Level = &[$( Known($kind, stringify!($name), levels!(@ $($inner)?)) ),*]; )*
    };
    (@ $inner:ident) => { $inner };
    (@) => { &[] };
}

levels! {
    /// `enum nft_table_attributes`
    TABLE {
        1 NFTA_TABLE_NAME, 2 NFTA_TABLE_FLAGS, 3 NFTA_TABLE_USE, 4 NFTA_TABLE_HANDLE, 6 NFTA_TABLE_USERDATA, 7 NFTA_TABLE_OWNER,
    }
    /// `enum nft_chain_attributes`
    CHAIN {
        1 NFTA_CHAIN_TABLE, 2 NFTA_CHAIN_HANDLE, 3 NFTA_CHAIN_NAME, 4 NFTA_CHAIN_HOOK in HOOK, 5 NFTA_CHAIN_POLICY, 6 NFTA_CHAIN_USE,
        7 NFTA_CHAIN_TYPE, 8 NFTA_CHAIN_COUNTERS, 10 NFTA_CHAIN_FLAGS, 11 NFTA_CHAIN_ID, 12 NFTA_CHAIN_USERDATA,
    }
    /// `enum nft_hook_attributes`
    HOOK { 1 NFTA_HOOK_HOOKNUM, 2 NFTA_HOOK_PRIORITY, 3 NFTA_HOOK_DEV, 4 NFTA_HOOK_DEVS in DEVICES, }
    /// `enum nft_devices_attributes`
    DEVICES { 1 NFTA_DEVICE_NAME, 2 NFTA_DEVICE_PREFIX, }
    /// `enum nft_rule_attributes`
    RULE {
        1 NFTA_RULE_TABLE, 2 NFTA_RULE_CHAIN, 3 NFTA_RULE_HANDLE, 4 NFTA_RULE_EXPRESSIONS in EXPRESSIONS, 5 NFTA_RULE_COMPAT,
        6 NFTA_RULE_POSITION, 7 NFTA_RULE_USERDATA, 9 NFTA_RULE_ID, 10 NFTA_RULE_POSITION_ID, 11 NFTA_RULE_CHAIN_ID,
    }
    /// `enum nft_list_attributes`
    EXPRESSIONS { 1 NFTA_LIST_ELEM in EXPRESSION, }
    /// `enum nft_expr_attributes`
    EXPRESSION { 1 NFTA_EXPR_NAME, 2 NFTA_EXPR_DATA, }
    /// `enum nft_set_attributes`
    SET {
        1 NFTA_SET_TABLE, 2 NFTA_SET_NAME, 3 NFTA_SET_FLAGS, 4 NFTA_SET_KEY_TYPE, 5 NFTA_SET_KEY_LEN, 6 NFTA_SET_DATA_TYPE,
        7 NFTA_SET_DATA_LEN, 8 NFTA_SET_POLICY, 9 NFTA_SET_DESC in DESCRIPTION, 10 NFTA_SET_ID, 11 NFTA_SET_TIMEOUT,
        12 NFTA_SET_GC_INTERVAL, 13 NFTA_SET_USERDATA, 15 NFTA_SET_OBJ_TYPE, 16 NFTA_SET_HANDLE, 17 NFTA_SET_EXPR in EXPRESSION,
        18 NFTA_SET_EXPRESSIONS in EXPRESSIONS,
    }
    /// `enum nft_set_desc_attributes`
    DESCRIPTION { 1 NFTA_SET_DESC_SIZE, 2 NFTA_SET_DESC_CONCAT, }
    /// `enum nft_set_elem_list_attributes`
    ELEMENTS {
        1 NFTA_SET_ELEM_LIST_TABLE, 2 NFTA_SET_ELEM_LIST_SET, 3 NFTA_SET_ELEM_LIST_ELEMENTS in ELEMENT_LIST, 4 NFTA_SET_ELEM_LIST_SET_ID,
    }
    /// `enum nft_list_attributes`
    ELEMENT_LIST { 1 NFTA_LIST_ELEM in ELEMENT, }
    /// `enum nft_set_elem_attributes`
    ELEMENT {
        1 NFTA_SET_ELEM_KEY, 2 NFTA_SET_ELEM_DATA, 3 NFTA_SET_ELEM_FLAGS, 4 NFTA_SET_ELEM_TIMEOUT, 5 NFTA_SET_ELEM_EXPIRATION,
        6 NFTA_SET_ELEM_USERDATA, 7 NFTA_SET_ELEM_EXPR in EXPRESSION, 9 NFTA_SET_ELEM_OBJREF, 10 NFTA_SET_ELEM_KEY_END,
        11 NFTA_SET_ELEM_EXPRESSIONS in EXPRESSIONS,
    }
    /// `enum nft_object_attributes`
    OBJECT {
        1 NFTA_OBJ_TABLE, 2 NFTA_OBJ_NAME, 3 NFTA_OBJ_TYPE, 4 NFTA_OBJ_DATA, 5 NFTA_OBJ_USE, 6 NFTA_OBJ_HANDLE, 8 NFTA_OBJ_USERDATA,
    }
    /// `enum nft_flowtable_attributes`
    FLOWTABLE {
        1 NFTA_FLOWTABLE_TABLE, 2 NFTA_FLOWTABLE_NAME, 3 NFTA_FLOWTABLE_HOOK in FLOWTABLE_HOOK, 4 NFTA_FLOWTABLE_USE,
        5 NFTA_FLOWTABLE_HANDLE, 7 NFTA_FLOWTABLE_FLAGS,
    }
    /// `enum nft_flowtable_hook_attributes`
    FLOWTABLE_HOOK { 1 NFTA_FLOWTABLE_HOOK_NUM, 2 NFTA_FLOWTABLE_HOOK_PRIORITY, 3 NFTA_FLOWTABLE_HOOK_DEVS in DEVICES, }
}

/// What is numbered.
const LISTED: &[&str] = &["NFTA_LIST_ELEM", "NFTA_DEVICE_NAME"];
const NFTA_EXPR_NAME: u16 = 1;
/// Of an attribute: its length and its type. Attributes start at multiples of it.
const HEADER: usize = 4;

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

    /// `nlmsghdr` 16, `nfgenmsg` 4.
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
        let said = |offset| path(6, &rule(), offset).map(|path| path.to_string());
        assert_eq!(said(20).as_deref(), Some("NFTA_RULE_TABLE"));
        assert_eq!(said(28).as_deref(), Some("NFTA_RULE_CHAIN"));
        assert_eq!(said(36).as_deref(), Some("NFTA_RULE_EXPRESSIONS"));
        assert_eq!(said(40).as_deref(), Some("NFTA_RULE_EXPRESSIONS/NFTA_LIST_ELEM[0]"));
        assert_eq!(said(44).as_deref(), Some("NFTA_RULE_EXPRESSIONS/NFTA_LIST_ELEM[0]/NFTA_EXPR_NAME"));
        assert_eq!(said(0), None);
        assert_eq!(said(4096), None);
        let second = path(6, &rule(), 56).unwrap();
        assert_eq!((second.expression(), second.kinds()), (Some((1, "cmp")), vec![4, 1]));
        // Of a message without names here.
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
