//! The tests of the crate from outside: one program, a module for each subject.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod differential;
#[cfg(libnftnl)]
mod expressions;
mod ipvs;
#[cfg(libnftnl)]
mod libnftnl;
#[cfg(libnftnl)]
mod verbs;

#[cfg(not(libnftnl))]
#[test]
fn our_bytes_are_compared_with_those_of_libnftnl() {
    testns::skip("not installed: libnftnl >= 1.2.4 and libmnl (Debian: libnftnl-dev libmnl-dev pkg-config)");
}
