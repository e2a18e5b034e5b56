//! The nftables plan, loaded by nft in a network namespace: parity with kube-proxy, and every change compared
//! with a fresh load.
//!
//! `nft` reads the printed plan, so that these tests do not depend on our own encoder.

#[path = "../faulty/mod.rs"]
mod faulty;
#[path = "../manifests/mod.rs"]
mod manifests;
#[path = "../toggles/mod.rs"]
mod toggles;

mod affinity;
mod changes;
mod example;
mod injected;
mod layouts;
mod owner;
mod world;
