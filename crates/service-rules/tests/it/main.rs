//! The tests of the crate from outside: one program, a module for each subject.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[cfg(feature = "nftables")]
mod examples;
#[cfg(any(feature = "nftables", feature = "ipvs"))]
mod faulty;
#[cfg(all(feature = "nftables", feature = "iptables", feature = "ipvs"))]
mod flows;
mod fourth_mode;
#[cfg(feature = "ipvs")]
mod guest;
#[cfg(feature = "iptables")]
mod iptables;
#[cfg(feature = "ipvs")]
mod ipvs;
#[cfg(any(feature = "nftables", feature = "iptables"))]
mod manifests;
#[cfg(feature = "nftables")]
mod nftables;
#[cfg(all(feature = "nftables", feature = "iptables", feature = "ipvs"))]
mod ordered;
#[cfg(feature = "nftables")]
mod refused;
#[cfg(any(feature = "nftables", feature = "iptables"))]
mod toggles;
