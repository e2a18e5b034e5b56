//! Registers.

use std::fmt;

use sluicegate_netlink::attr::{Attribute, Writer};

use crate::expr::wire::{Fault, Value};

/// A register (`enum nft_registers`): 0 takes a verdict, 1 to 4 are 16 bytes each, 8 to 23 the same as four bytes each.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Register(pub u32);

impl Register {
    /// `NFT_REG_VERDICT`
    pub const VERDICT: Self = Self(0);

    /// The register that starts at a word (of four bytes, from 0), under the name that nft uses: the 16-byte one where
    /// there is one.
    #[must_use]
    pub const fn word(word: u32) -> Self {
        if word.is_multiple_of(4) { Self(1 + word / 4) } else { Self(8 + word) }
    }

    /// The word that it starts at; `None` for the verdict.
    #[must_use]
    pub const fn first_word(self) -> Option<u32> {
        match self.0 {
            1..=4 => Some((self.0 - 1) * 4),
            8..=23 => Some(self.0 - 8),
            _ => None,
        }
    }
}

impl fmt::Debug for Register {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "reg {}", self.0)
    }
}

wire_newtype! { Register u32 }
