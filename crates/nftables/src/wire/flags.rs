//! Declares sets of flags.
//!
//! `bitflags!` with a struct writes a parser, a printer and their traits for each set, some 1,500 lines of code
//! before optimisation, of which `Debug` alone is used. [`flags!`] takes its other form, which writes the
//! operations alone, and prints all sets with one function.

use std::fmt::{self, Debug, Formatter};

/// Declares sets of flags as `bitflags!` does; `Debug` is made, and must not be derived.
macro_rules! flags {
    ($(
        $(#[$outer:meta])*
        $vis:vis struct $set:ident: $bits:ty {
            $( $(#[$inner:ident $($args:tt)*])* const $flag:tt = $value:expr; )*
        }
    )*) => {$(
        $(#[$outer])*
        $vis struct $set($bits);

        bitflags::bitflags! {
            impl $set: $bits {
                $( $(#[$inner $($args)*])* const $flag = $value; )*
            }
        }

        impl std::fmt::Debug for $set {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let names = &[$((stringify!($flag), $value)),*];
                let names: &[(&str, $bits)] = names;
                let names = names.iter().map(|&(name, bits)| (name, u64::from(bits)));
                $crate::wire::flags::debug(f, stringify!($set), u64::from(self.bits()), &mut { names })
            }
        }
    )*};
}
pub(crate) use flags;

/// Prints `Set(A | B | 0x40)`, with `0x0` for no flag, as `bitflags` does.
pub(crate) fn debug(
    f: &mut Formatter<'_>,
    set: &str,
    bits: u64,
    names: &mut dyn Iterator<Item = (&'static str, u64)>,
) -> fmt::Result {
    let mut text = String::new();
    let mut rest = bits;
    // `_` stands for the bits that have no name.
    for (name, flag) in names.filter(|(name, _)| *name != "_") {
        if bits & flag == flag && rest & flag != 0 {
            text += if text.is_empty() { "" } else { " | " };
            text += name;
            rest &= !flag;
        }
    }
    if rest != 0 || text.is_empty() {
        text += if text.is_empty() { "" } else { " | " };
        text += &format!("{rest:#x}");
    }
    f.debug_tuple(set).field(&Bare(&text)).finish()
}

/// Text that prints without quotes.
struct Bare<'a>(&'a str);

impl Debug for Bare<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

#[cfg(test)]
mod tests {
    use bitflags::bitflags;

    flags! {
        /// As ours are declared.
        #[derive(Clone, Copy, PartialEq, Eq)]
        struct Ours: u8 {
            const A = 1;
            const B = 2;
            const BOTH = 3;
            const C = 8;

            const _ = !0;
        }
    }

    mod theirs {
        super::bitflags! {
            #[derive(Debug, Clone, Copy, PartialEq, Eq)]
            pub(super) struct Ours: u8 {
                const A = 1;
                const B = 2;
                const BOTH = 3;
                const C = 8;

                const _ = !0;
            }
        }
    }

    #[test]
    fn flags_print_as_those_of_bitflags() {
        for bits in 0..=u8::MAX {
            let (ours, theirs) = (Ours::from_bits_retain(bits), theirs::Ours::from_bits_retain(bits));
            assert_eq!(format!("{ours:?} {ours:#?}"), format!("{theirs:?} {theirs:#?}"));
        }
    }
}
