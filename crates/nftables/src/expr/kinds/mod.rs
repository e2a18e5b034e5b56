//! The numbers and flags of expressions (`linux/netfilter/nf_tables.h`). Numbers are newtypes with named
//! constants, so that values of a newer kernel are preserved; flags keep bits without a name.

mod flags;
mod numbers;
mod register;
mod types;

pub use flags::*;
pub use numbers::*;
pub use register::Register;
