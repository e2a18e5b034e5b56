//! How the attributes of an expression are written and read: one trait for a value, one for a field that may be absent.

use sluicegate_netlink::DecodeError;
use sluicegate_netlink::attr::{Attribute, Writer};

use crate::expr::Expr;
use crate::name::Name;

/// Why a value could not be read.
#[derive(Debug)]
pub(crate) enum Fault {
    /// It says more than our types can.
    Newer,
    /// The kernel would not take it either.
    Malformed(DecodeError),
}

impl From<DecodeError> for Fault {
    fn from(error: DecodeError) -> Self {
        Self::Malformed(error)
    }
}

/// A value that fills an attribute.
pub(crate) trait Value: Sized {
    fn write(&self, w: &mut Writer<'_>, kind: u16);
    fn read(attribute: &Attribute<'_>) -> Result<Self, Fault>;
}

/// A field of an expression: a value that must be there, one that may be, or a list.
pub(crate) trait Field: Sized {
    /// What one attribute gives.
    type Found;

    fn put(&self, w: &mut Writer<'_>, kind: u16);
    fn read(attribute: &Attribute<'_>) -> Result<Self::Found, Fault>;
    fn found(found: Option<Self::Found>, what: &'static str) -> Result<Self, Fault>;
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
        // None is said by leaving the list out.
        if exprs.is_empty() { Err(Fault::Newer) } else { Ok(exprs) }
    }

    fn found(found: Option<Self>, _: &'static str) -> Result<Self, Fault> {
        Ok(found.unwrap_or_default())
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
        Ok(Self::held(attribute.str()?))
    }
}

impl Value for String {
    fn write(&self, w: &mut Writer<'_>, kind: u16) {
        w.put_str(kind, self);
    }

    fn read(attribute: &Attribute<'_>) -> Result<Self, Fault> {
        Ok(attribute.str()?.to_owned())
    }
}

impl Value for Box<str> {
    fn write(&self, w: &mut Writer<'_>, kind: u16) {
        w.put_str(kind, self);
    }

    fn read(attribute: &Attribute<'_>) -> Result<Self, Fault> {
        Ok(attribute.str()?.into())
    }
}

/// Bytes as they are.
impl Value for Vec<u8> {
    fn write(&self, w: &mut Writer<'_>, kind: u16) {
        w.put(kind, self);
    }

    fn read(attribute: &Attribute<'_>) -> Result<Self, Fault> {
        Ok(attribute.payload.to_vec())
    }
}

/// `NFTA_LIST_ELEM`
pub(crate) const NFTA_LIST_ELEM: u16 = 1;
