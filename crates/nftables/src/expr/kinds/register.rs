//! The registers of expressions.

use std::fmt;

use sluicegate_netlink::attr::{Attribute, Writer};

use crate::expr::wire::{Fault, Value};

/// A register (`enum nft_registers`): 0 is the verdict register, 1 to 4 are 16 bytes each, 8 to 23 are the
/// same space as words of four bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Register(pub u32);

impl Register {
    /// `NFT_REG_VERDICT`
    pub const VERDICT: Self = Self(0);

    /// Returns the register that starts at a 32-bit word, from 0, with the number that nft uses: that of the
    /// 16-byte register if one starts there.
    #[must_use]
    pub const fn word(word: u32) -> Self {
        if word.is_multiple_of(4) { Self(1 + word / 4) } else { Self(8 + word) }
    }

    /// Returns the 32-bit word at which the register starts; `None` for the verdict register.
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

impl Value for Register {
    fn write(&self, w: &mut Writer<'_>, kind: u16) {
        self.0.write(w, kind);
    }

    fn read(attribute: &Attribute<'_>) -> Result<Self, Fault> {
        u32::read(attribute).map(Self)
    }

    fn visit_registers(&mut self, visit: &mut dyn FnMut(&mut Self)) {
        visit(self);
    }
}

#[cfg(test)]
impl crate::expr::sample::Sample for Register {
    fn sample(source: &mut crate::expr::sample::Source) -> Self {
        Self(<u32 as crate::expr::sample::Sample>::sample(source))
    }
}
