//! nftables for Rust.
#![forbid(unsafe_code)]
#![allow(dead_code, reason = "the encoder that uses it is not there yet")]

mod datatype;
pub mod expr;
mod family;
mod key;
pub mod lang;
mod name;
mod object;
mod transaction;

pub use datatype::{DataType, Order};
pub use family::{Family, UnknownFamily};
pub use key::{EtherAddr, Key, KeyPart, Mark, Number, Part, Port, Protocol};
pub use name::{Comment, InterfaceName, Name, NameError, NameProblem};
pub use object::*;
pub use transaction::{Flush, Object, Operation, Target, Transaction};
