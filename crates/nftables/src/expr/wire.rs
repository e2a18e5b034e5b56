//! Encodes and decodes the attributes of expressions: one trait for a value, one for a field that may be
//! absent.

use sluicegate_netlink::DecodeError;
use sluicegate_netlink::attr::{Attribute, Writer};

use crate::expr::{Expr, Register};
use crate::name::Name;
use crate::wire::attributes::{AttributeType, Enumeration, attributes};

/// The reason why a value cannot be decoded.
#[derive(Debug)]
pub(crate) enum Fault {
    /// An attribute or value that this crate cannot represent; a newer kernel may use it.
    Newer,
    /// Bytes that the kernel would not accept either.
    Malformed(DecodeError),
}

impl From<DecodeError> for Fault {
    fn from(error: DecodeError) -> Self {
        Self::Malformed(error)
    }
}

/// The value of an attribute.
pub(crate) trait Value: Sized {
    fn write(&self, w: &mut Writer<'_>, kind: u16);
    fn read(attribute: &Attribute<'_>) -> Result<Self, Fault>;

    /// Calls a function with each register in the value; most values have none.
    fn visit_registers(&mut self, _visit: &mut dyn FnMut(&mut Register)) {}
}

/// A field of an expression: a required value, an optional one, or a list.
pub(crate) trait Field: Sized {
    /// The type that one attribute decodes to.
    type Found;

    fn put(&self, w: &mut Writer<'_>, kind: u16);
    fn read(attribute: &Attribute<'_>) -> Result<Self::Found, Fault>;
    fn found(found: Option<Self::Found>, what: &'static str) -> Result<Self, Fault>;
    fn registers(&mut self, visit: &mut dyn FnMut(&mut Register));
}

impl<T: Value> Field for T {
    type Found = T;

    #[inline]
    fn put(&self, w: &mut Writer<'_>, kind: u16) {
        self.write(w, kind);
    }

    #[inline]
    fn read(attribute: &Attribute<'_>) -> Result<T, Fault> {
        T::read(attribute)
    }

    #[inline]
    fn found(found: Option<T>, what: &'static str) -> Result<Self, Fault> {
        found.ok_or(Fault::Malformed(DecodeError::Missing { what }))
    }

    fn registers(&mut self, visit: &mut dyn FnMut(&mut Register)) {
        self.visit_registers(visit);
    }
}

impl<T: Value> Field for Option<T> {
    type Found = T;

    #[inline]
    fn put(&self, w: &mut Writer<'_>, kind: u16) {
        if let Some(value) = self {
            value.write(w, kind);
        }
    }

    #[inline]
    fn read(attribute: &Attribute<'_>) -> Result<T, Fault> {
        T::read(attribute)
    }

    #[inline]
    fn found(found: Self, _: &'static str) -> Result<Self, Fault> {
        Ok(found)
    }

    fn registers(&mut self, visit: &mut dyn FnMut(&mut Register)) {
        if let Some(value) = self {
            value.visit_registers(visit);
        }
    }
}

/// A list of expressions (`NFTA_LIST_ELEM` each); absent when empty.
impl Field for Vec<Expr> {
    type Found = Self;

    fn put(&self, w: &mut Writer<'_>, kind: u16) {
        if !self.is_empty() {
            let mut list = w.nest(kind);
            for expr in self {
                expr.encode(&mut list, NFTA_LIST_ELEM);
            }
        }
    }

    fn read(list: &Attribute<'_>) -> Result<Self, Fault> {
        let mut exprs = Self::new();
        for item in list.attributes() {
            let item = item?;
            if item.kind != NFTA_LIST_ELEM {
                return Err(Fault::Newer);
            }
            exprs.push(Expr::decode_inner(&item)?);
        }
        // An empty list is encoded by leaving the attribute out, so this one could not be reproduced.
        if exprs.is_empty() { Err(Fault::Newer) } else { Ok(exprs) }
    }

    fn found(found: Option<Self>, _: &'static str) -> Result<Self, Fault> {
        Ok(found.unwrap_or_default())
    }

    fn registers(&mut self, visit: &mut dyn FnMut(&mut Register)) {
        self.iter_mut().for_each(|expr| expr.registers(visit));
    }
}

macro_rules! numbers {
    ($($rust:ty: $put:ident $get:ident;)*) => {$(
        impl Value for $rust {
            fn write(&self, w: &mut Writer<'_>, kind: u16) {
                w.$put(kind, *self);
            }

            fn read(attribute: &Attribute<'_>) -> Result<Self, Fault> {
                Ok(attribute.$get()?)
            }
        }
    )*};
}

numbers! {
    u8: put_u8 u8;
    u16: put_be16 be16;
    u32: put_be32 be32;
    u64: put_be64 be64;
}

impl Value for Name {
    fn write(&self, w: &mut Writer<'_>, kind: u16) {
        w.put_str(kind, self);
    }

    fn read(attribute: &Attribute<'_>) -> Result<Self, Fault> {
        Ok(Self::from_kernel(&attribute.text()?))
    }
}

impl Value for String {
    fn write(&self, w: &mut Writer<'_>, kind: u16) {
        w.put_str(kind, self);
    }

    fn read(attribute: &Attribute<'_>) -> Result<Self, Fault> {
        Ok(attribute.text()?.into_owned())
    }
}

impl Value for Box<str> {
    fn write(&self, w: &mut Writer<'_>, kind: u16) {
        w.put_str(kind, self);
    }

    fn read(attribute: &Attribute<'_>) -> Result<Self, Fault> {
        Ok(attribute.text()?.into())
    }
}

/// Raw bytes.
impl Value for Vec<u8> {
    fn write(&self, w: &mut Writer<'_>, kind: u16) {
        w.put(kind, self);
    }

    fn read(attribute: &Attribute<'_>) -> Result<Self, Fault> {
        Ok(attribute.payload.to_vec())
    }
}

/// Declares a list entry (`NFTA_LIST_ELEM`) with other contents than an expression.
pub(crate) const fn list_of(nested: Enumeration) -> AttributeType {
    AttributeType { number: NFTA_LIST_ELEM, name: "NFTA_LIST_ELEM", nested }
}

attributes! {
    /// A list of expressions.
    EXPRESSIONS: "enum nft_list_attributes, linux/netfilter/nf_tables.h" {
        NFTA_LIST_ELEM = 1 => EXPRESSION,
    }

    EXPRESSION: "enum nft_expr_attributes, linux/netfilter/nf_tables.h" {
        NFTA_EXPR_NAME = 1,
        NFTA_EXPR_DATA = 2,
    }

    COUNTER: "enum nft_counter_attributes, linux/netfilter/nf_tables.h" {
        NFTA_COUNTER_BYTES = 1,
        NFTA_COUNTER_PACKETS = 2,
    }

    QUOTA: "enum nft_quota_attributes, linux/netfilter/nf_tables.h" {
        NFTA_QUOTA_BYTES = 1,
        NFTA_QUOTA_FLAGS = 2,
        NFTA_QUOTA_PAD = 3,
        NFTA_QUOTA_CONSUMED = 4,
    }

    IMMEDIATE: "enum nft_immediate_attributes, linux/netfilter/nf_tables.h" {
        NFTA_IMMEDIATE_DREG = 1,
        NFTA_IMMEDIATE_DATA = 2,
    }
}

/// Decodes a list of expressions.
pub(crate) fn expressions(list: &Attribute<'_>) -> Result<Vec<Expr>, DecodeError> {
    // Counting the attributes first is cheaper than moving decoded expressions when the list grows.
    let mut expressions = Vec::with_capacity(list.attributes().count());
    for element in list.attributes() {
        Expr::decode_onto(&element?, &mut expressions)?;
    }
    Ok(expressions)
}
