//! The macro that generates types, encoder and decoder from the table of expressions.

use sluicegate_netlink::DecodeError;
use sluicegate_netlink::attr::{Attribute, HEADER, NLA_F_NESTED, Writer, align};

use crate::expr::wire::{Fault, NFTA_EXPR_DATA, NFTA_EXPR_NAME, Value};
use crate::expr::{Expr, Register};
use crate::name::Name;

/// An expression that this crate does not know, or not completely: one of a newer kernel, one with an
/// attribute that this crate does not know (at any depth), or one with text that is not UTF-8. Dropping those
/// could change its meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unknown {
    /// `NFTA_EXPR_NAME`
    pub name: Name,
    /// The payload of `NFTA_EXPR_DATA`.
    pub data: Option<Vec<u8>>,
    /// Other attributes than these two, header included. No kernel has any so far.
    pub rest: Vec<u8>,
}

impl Unknown {
    /// Creates an expression with this name and this payload of `NFTA_EXPR_DATA`.
    #[must_use]
    pub fn new(name: Name, data: Vec<u8>) -> Self {
        Self { name, data: Some(data), rest: Vec::new() }
    }
}

impl Expr {
    /// Appends the expression as an attribute of this type.
    pub fn encode(&self, w: &mut Writer<'_>, kind: u16) {
        let mut expr = w.nest(kind);
        expr.put_str(NFTA_EXPR_NAME, self.name());
        match self {
            // The bytes are written as they were received: their structure is not known.
            Self::Unknown(unknown) => {
                if let Some(data) = &unknown.data {
                    expr.put(NFTA_EXPR_DATA | NLA_F_NESTED, data);
                }
                expr.raw(&unknown.rest);
            }
            // libnftnl writes no `NFTA_EXPR_DATA` for `notrack`, not even an empty one.
            Self::Notrack(_) => {}
            known => known.encode_data(&mut expr.nest(NFTA_EXPR_DATA)),
        }
    }

    /// Decodes an attribute that [`encode`](Self::encode) or the kernel wrote. An expression that its own
    /// type cannot represent completely becomes [`Unknown`].
    ///
    /// # Errors
    /// If the bytes are not attributes, or there is no name.
    pub fn decode(attribute: &Attribute<'_>) -> Result<Self, DecodeError> {
        let mut one = Vec::with_capacity(1);
        Self::decode_onto(attribute, &mut one)?;
        one.pop().ok_or(DecodeError::Missing { what: "NFTA_EXPR_NAME" })
    }

    /// Decodes an expression as [`decode`](Self::decode) does and appends it to a list.
    #[inline]
    pub(crate) fn decode_onto(attribute: &Attribute<'_>, list: &mut Vec<Self>) -> Result<(), DecodeError> {
        let parts = Parts::read(attribute)?;
        match parts.typed(list) {
            Ok(()) => Ok(()),
            Err(_) => parts.unknown(list),
        }
    }

    /// Decodes an expression as [`decode`](Self::decode) does, but returns an error, as from the kernel,
    /// where an attribute that it knows has the wrong size or one that it needs is absent.
    #[cfg(feature = "fake")]
    pub(crate) fn decode_strictly(attribute: &Attribute<'_>) -> Result<Self, DecodeError> {
        Self::strictly(Parts::read(attribute)?)
    }

    fn strictly(parts: Parts<'_>) -> Result<Self, DecodeError> {
        let mut one = Vec::with_capacity(1);
        match parts.typed(&mut one) {
            Ok(()) => {}
            Err(Fault::Newer) => parts.unknown(&mut one)?,
            Err(Fault::Malformed(error)) => return Err(error),
        }
        one.pop().ok_or(DecodeError::Missing { what: "NFTA_EXPR_NAME" })
    }

    /// Decodes an expression inside another one, strictly: a malformed attribute is an error.
    ///
    /// An expression that contains others is never inside another one in any kernel. Without this check,
    /// bytes that nest thousands of them would overflow the stack.
    pub(crate) fn decode_inner(attribute: &Attribute<'_>) -> Result<Self, Fault> {
        let parts = Parts::read(attribute)?;
        if HOLDERS.contains(&parts.name()) {
            return Err(Fault::Newer);
        }
        match Self::strictly(parts)? {
            // Only the outer expression can preserve the order of such attributes.
            Self::Unknown(unknown) if !unknown.rest.is_empty() => Err(Fault::Newer),
            expr => Ok(expr),
        }
    }

    /// Decodes the data of an expression of this name; stateful objects have the same attributes. Unknown
    /// attributes are ignored: the caller keeps the bytes.
    pub(crate) fn decode_bytes(name: &str, data: &[u8]) -> Result<Self, DecodeError> {
        let attribute = Attribute { kind: NFTA_EXPR_DATA, nested: true, payload: data, offset: 0 };
        let mut one = Vec::with_capacity(1);
        match Self::decode_data(name.as_bytes(), Some(&attribute), false, &mut one) {
            Ok(()) => {}
            Err(Fault::Newer) => one.push(Unknown::new(Name::from_kernel(name), data.to_vec()).into()),
            Err(Fault::Malformed(error)) => return Err(error),
        }
        one.pop().ok_or(DecodeError::Missing { what: "NFTA_EXPR_NAME" })
    }
}

/// The attributes of an expression (`enum nft_expr_attributes`).
struct Parts<'a> {
    name: Attribute<'a>,
    data: Option<Attribute<'a>>,
    /// All other attributes, headers included.
    rest: Vec<u8>,
}

impl<'a> Parts<'a> {
    #[inline]
    fn read(attribute: &Attribute<'a>) -> Result<Self, DecodeError> {
        let (mut name, mut data, mut rest) = (None, None, Vec::new());
        for inner in attribute.attributes() {
            let inner = inner?;
            match inner.kind {
                NFTA_EXPR_NAME if name.is_none() => name = Some(inner),
                NFTA_EXPR_DATA if data.is_none() => data = Some(inner),
                _ => keep(&mut rest, attribute, &inner),
            }
        }
        Ok(Self { name: name.ok_or(DecodeError::Missing { what: "NFTA_EXPR_NAME" })?, data, rest })
    }

    #[inline]
    fn typed(&self, list: &mut Vec<Expr>) -> Result<(), Fault> {
        if !self.rest.is_empty() {
            return Err(Fault::Newer);
        }
        Expr::decode_data(self.name(), self.data.as_ref(), true, list)
    }

    #[inline]
    fn name(&self) -> &'a [u8] {
        self.name.payload.strip_suffix(&[0]).unwrap_or(self.name.payload)
    }

    #[cold]
    fn unknown(self, list: &mut Vec<Expr>) -> Result<(), DecodeError> {
        let name = Name::from_kernel(&self.name.text()?);
        let data = self.data.map(|data| data.payload.to_vec());
        list.push(Unknown { name, data, rest: self.rest }.into());
        Ok(())
    }
}

/// Appends an attribute nested in another one to `rest`: header, payload and padding, which the last
/// attribute of a nest may lack.
pub(crate) fn keep(rest: &mut Vec<u8>, outer: &Attribute<'_>, inner: &Attribute<'_>) {
    let from = outer.payload.get(inner.offset - outer.offset - HEADER..).unwrap_or_default();
    rest.extend_from_slice(from.get(..align(HEADER + inner.payload.len())).unwrap_or(from));
    rest.resize(align(rest.len()), 0);
}

/// Appends an attribute to `rest` as [`keep`] does, for an attribute that is not in a nest.
pub(crate) fn keep_alone(rest: &mut Vec<u8>, attribute: &Attribute<'_>) {
    // The length was a `u16` when it was received.
    let length = u16::try_from(HEADER + attribute.payload.len()).unwrap_or(u16::MAX);
    let nested = if attribute.nested { NLA_F_NESTED } else { 0 };
    rest.extend_from_slice(&length.to_ne_bytes());
    rest.extend_from_slice(&(attribute.kind | nested).to_ne_bytes());
    rest.extend_from_slice(attribute.payload);
    rest.resize(align(rest.len()), 0);
}

impl From<Unknown> for Expr {
    fn from(expr: Unknown) -> Self {
        Self::Unknown(Box::new(expr))
    }
}

impl Value for Box<Expr> {
    fn write(&self, w: &mut Writer<'_>, kind: u16) {
        self.encode(w, kind);
    }

    fn read(attribute: &Attribute<'_>) -> Result<Self, Fault> {
        Expr::decode_inner(attribute).map(Self::new)
    }

    fn visit_registers(&mut self, visit: &mut dyn FnMut(&mut Register)) {
        self.registers(visit);
    }
}

/// Empty attributes that align 64-bit numbers on some architectures (`NFTA_*_PAD`).
pub(crate) const PADDING: &[(&str, u16)] =
    &[("counter", 3), ("dynset", 8), ("last", 3), ("limit", 6), ("quota", 3)];
/// Expressions that contain other expressions.
const HOLDERS: [&[u8]; 2] = [b"dynset", b"inner"];

/// `KIND "name" { fields }` declares an expression with its name in the kernel; with `KIND boxed "name"`,
/// [`Expr`] contains a box.
macro_rules! expressions {
    ($(
        $(#[$doc:meta])*
        $kind:ident $($boxed:ident)? $name:literal {
            $( $(#[$field_doc:meta])* $field:ident: $of:ty = $attribute:literal $c:literal, )*
        }
    )*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, PartialEq, Eq)]
            pub struct $kind {
                $( $(#[$field_doc])* #[doc = concat!("`", $c, "`")] pub $field: $of, )*
            }

            impl $kind {
                const NAME: &'static [u8] = $name.as_bytes();

                fn encode(
                    &self,
                    #[allow(unused_variables, reason = "some have no field")] w: &mut Writer<'_>,
                ) {
                    $( self.$field.put(w, $attribute); )*
                }

                fn registers(
                    &mut self,
                    #[allow(unused_variables, reason = "some have no field")]
                    visit: &mut dyn FnMut(&mut Register),
                ) {
                    $( Field::registers(&mut self.$field, visit); )*
                }

                /// Decodes the attributes. Returns [`Fault::Newer`] for an attribute that has no field, if
                /// the expression has to be complete (`whole`).
                #[inline(always)]
                fn decode(data: Option<&Attribute<'_>>, whole: bool) -> Result<Self, Fault> {
                    $( let mut $field = None; )*
                    if let Some(data) = data {
                        for attribute in data.attributes() {
                            let attribute = attribute?;
                            let more = match attribute.kind {
                                $( $attribute => {
                                    $field.replace(<$of as Field>::read(&attribute)?).is_some()
                                } )*
                                kind => !(attribute.payload.is_empty() && PADDING.contains(&($name, kind))),
                            };
                            if more && whole {
                                return Err(Fault::Newer);
                            }
                        }
                    }
                    Ok(Self { $( $field: <$of as Field>::found($field, $c)?, )* })
                }
            }

            #[cfg(test)]
            impl $crate::expr::sample::Sample for $kind {
                fn sample(
                    #[allow(unused_variables, reason = "some have no field")]
                    source: &mut $crate::expr::sample::Source,
                ) -> Self {
                    Self { $( $field: $crate::expr::sample::Sample::sample(source), )* }
                }
            }

            impl From<$kind> for Expr {
                fn from(expr: $kind) -> Self {
                    Self::$kind(expr.into())
                }
            }
        )*

        /// An expression.
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Expr {
            $( $(#[$doc])* $kind(expressions!(@ $kind $($boxed)?)), )*
            /// An expression that this crate does not know completely.
            Unknown(Box<Unknown>),
        }

        #[cfg(test)]
        impl Expr {
            /// Returns an arbitrary expression of every kind.
            pub(crate) fn samples(source: &mut $crate::expr::sample::Source) -> Vec<Self> {
                vec![$( <$kind as $crate::expr::sample::Sample>::sample(source).into(), )*]
            }
        }

        impl Expr {
            /// The names of all expressions that have a type in this crate.
            pub const NAMES: &'static [&'static str] = &[$($name),*];

            /// Returns the name of the expression in the kernel (`NFTA_EXPR_NAME`).
            #[must_use]
            pub fn name(&self) -> &str {
                match self {
                    $( Self::$kind(_) => $name, )*
                    Self::Unknown(unknown) => &unknown.name,
                }
            }

            /// Calls a function with each register of the expression, and of the expressions nested in it.
            pub(crate) fn registers(&mut self, visit: &mut dyn FnMut(&mut Register)) {
                match self {
                    $( Self::$kind(expr) => expr.registers(visit), )*
                    Self::Unknown(_) => {}
                }
            }

            pub(crate) fn encode_data(&self, w: &mut Writer<'_>) {
                match self {
                    $( Self::$kind(expr) => expr.encode(w), )*
                    Self::Unknown(unknown) => w.raw(unknown.data.as_deref().unwrap_or_default()),
                }
            }

            /// Decodes an expression of this name directly into a list: moving an expression takes as long as
            /// decoding it.
            ///
            /// Returns [`Fault::Newer`] for an unknown name.
            pub(crate) fn decode_data(
                name: &[u8],
                data: Option<&Attribute<'_>>,
                whole: bool,
                list: &mut Vec<Self>,
            ) -> Result<(), Fault> {
                match name {
                    $( $kind::NAME => list.push($kind::decode(data, whole)?.into()), )*
                    _ => return Err(Fault::Newer),
                }
                Ok(())
            }
        }
    };
    (@ $kind:ident) => { $kind };
    (@ $kind:ident boxed) => { Box<$kind> };
}
pub(crate) use expressions;
