//! How the attributes of an expression are written and read: one trait for a value, one for a field that may be absent.

use sluicegate_netlink::DecodeError;
use sluicegate_netlink::attr::{Attribute, Writer};

use crate::expr::{Data, Expr};
use crate::name::Name;

/// A value that fills an attribute.
pub(crate) trait Value: Sized {
    fn write(&self, w: &mut Writer<'_>, kind: u16);
    fn read(attribute: &Attribute<'_>) -> Result<Self, DecodeError>;
}

/// A field of an expression: a value that must be there, one that may be, or a list.
pub(crate) trait Field: Sized {
    fn put(&self, w: &mut Writer<'_>, kind: u16);
    fn get(found: Option<&Attribute<'_>>, what: &'static str) -> Result<Self, DecodeError>;
}

impl<T: Value> Field for T {
    fn put(&self, w: &mut Writer<'_>, kind: u16) {
        self.write(w, kind);
    }

    fn get(found: Option<&Attribute<'_>>, what: &'static str) -> Result<Self, DecodeError> {
        T::read(found.ok_or(DecodeError::Missing { what })?)
    }
}

impl<T: Value> Field for Option<T> {
    fn put(&self, w: &mut Writer<'_>, kind: u16) {
        if let Some(value) = self {
            value.write(w, kind);
        }
    }

    fn get(found: Option<&Attribute<'_>>, _: &'static str) -> Result<Self, DecodeError> {
        found.map(T::read).transpose()
    }
}

/// A list of expressions (`NFTA_LIST_ELEM` each); absent when empty.
impl Field for Vec<Expr> {
    fn put(&self, w: &mut Writer<'_>, kind: u16) {
        if !self.is_empty() {
            let mut list = w.nest(kind);
            for expr in self {
                expr.encode(&mut list, NFTA_LIST_ELEM);
            }
        }
    }

    fn get(found: Option<&Attribute<'_>>, _: &'static str) -> Result<Self, DecodeError> {
        found.map_or(Ok(Self::new()), |list| list.attributes().map(|a| Expr::decode(&a?)).collect())
    }
}

macro_rules! numbers {
    ($($rust:ty: $put:ident $get:ident;)*) => {$(
        impl Value for $rust {
            fn write(&self, w: &mut Writer<'_>, kind: u16) {
                w.$put(kind, *self);
            }

            fn read(attribute: &Attribute<'_>) -> Result<Self, DecodeError> {
                attribute.$get()
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

    fn read(attribute: &Attribute<'_>) -> Result<Self, DecodeError> {
        attribute.str().map(Self::held)
    }
}

impl Value for String {
    fn write(&self, w: &mut Writer<'_>, kind: u16) {
        w.put_str(kind, self);
    }

    fn read(attribute: &Attribute<'_>) -> Result<Self, DecodeError> {
        attribute.str().map(str::to_owned)
    }
}

/// Bytes as they are.
impl Value for Vec<u8> {
    fn write(&self, w: &mut Writer<'_>, kind: u16) {
        w.put(kind, self);
    }

    fn read(attribute: &Attribute<'_>) -> Result<Self, DecodeError> {
        Ok(attribute.payload.to_vec())
    }
}

impl Value for Data {
    fn write(&self, w: &mut Writer<'_>, kind: u16) {
        self.encode(w, kind);
    }

    fn read(attribute: &Attribute<'_>) -> Result<Self, DecodeError> {
        Self::decode(attribute)
    }
}

/// `NFTA_LIST_ELEM`
pub(crate) const NFTA_LIST_ELEM: u16 = 1;
