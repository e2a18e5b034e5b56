//! Formats the tree in nft's syntax: text that `nft -f` reads, in the form that `nft list` prints.

mod expression;
mod nat;
mod statement;

use std::fmt::{self, Display, Formatter};

use crate::wording::{Wording, Words};

#[cfg(feature = "json")]
pub(crate) use nat::prefix_of;
pub(crate) use statement::TypedUpdate;

macro_rules! as_script {
    ($($of:ty)*) => {$(
        impl Display for $of {
            fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
                self.write(f, Wording::SCRIPT)
            }
        }
    )*};
}

as_script! {
    crate::tree::Expression crate::tree::Jhash crate::tree::Statement crate::tree::Match crate::tree::Tproxy
        crate::tree::Dup
    crate::tree::Fwd crate::tree::Queue crate::tree::SetUpdate crate::tree::ObjectReference
    crate::tree::Counter crate::tree::Last crate::tree::Quota crate::tree::Reject
}
