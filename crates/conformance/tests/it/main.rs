//! The tests of the crate from outside: one program, a module for each subject.

#[cfg(feature = "libnftnl")]
mod expressions;
mod ipvs;
#[cfg(feature = "libnftnl")]
mod libnftnl;
#[cfg(feature = "libnftnl")]
mod verbs;
