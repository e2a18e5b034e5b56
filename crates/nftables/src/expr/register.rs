//! Normalizes register numbers as the kernel lists them: the first 32-bit word of a 16-byte register is
//! listed as that register, whichever of its two numbers was sent.

use crate::expr::{Expr, Register};

/// Replaces all register numbers of an expression by those that the kernel lists.
pub(crate) fn number(expr: &mut Expr) {
    expr.registers(&mut |Register(number)| {
        // NFT_REG32_00 to NFT_REG32_15
        if (8..=23).contains(number) && number.is_multiple_of(4) {
            *number = *number / 4 - 1;
        }
    });
}
