//! The selection of one element in a request.

use sluicegate_netlink::attr::Writer;

use crate::expr;
use crate::object::element::decode::ElementFlags;
use crate::object::element::wire::{NFTA_SET_ELEM_FLAGS, NFTA_SET_ELEM_KEY, NFTA_SET_ELEM_KEY_END};

/// Selects an element by the bytes of its key as the kernel stores them. [`find`](crate::read::find()) looks up by
/// value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ElementQuery<'a> {
    /// The element with this key. In an interval set, the start of the interval that contains the key.
    Key(&'a [u8]),
    /// In an interval set, the first end of an interval at this key or after it. If two intervals meet at the
    /// key, it may be the end of either.
    End(&'a [u8]),
    /// In a set of concatenations with intervals, the element that contains this key and this end. The kernel
    /// only looks up the first.
    Range(&'a [u8], &'a [u8]),
    /// The catch-all element.
    CatchAll,
}

impl<'a, K: AsRef<[u8]> + ?Sized> From<&'a K> for ElementQuery<'a> {
    fn from(key: &'a K) -> Self {
        Self::Key(key.as_ref())
    }
}

impl ElementQuery<'_> {
    pub(crate) fn encode(self, element: &mut Writer<'_>) {
        let mut put = |kind, key: &[u8]| expr::Data::Value(key.into()).encode(element, kind);
        match self {
            Self::Key(key) => put(NFTA_SET_ELEM_KEY, key),
            Self::Range(key, end) => {
                put(NFTA_SET_ELEM_KEY, key);
                put(NFTA_SET_ELEM_KEY_END, end);
            }
            Self::End(key) => {
                put(NFTA_SET_ELEM_KEY, key);
                element.put_be32(NFTA_SET_ELEM_FLAGS, ElementFlags::INTERVAL_END.bits());
            }
            Self::CatchAll => element.put_be32(NFTA_SET_ELEM_FLAGS, ElementFlags::CATCHALL.bits()),
        }
    }
}
