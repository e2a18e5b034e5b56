//! The nftables plan, loaded by nft in a network namespace: parity with kube-proxy, and every change compared
//! with a fresh load.
//!
//! `nft` reads the printed plan, so that these tests do not depend on our own encoder.

mod affinity;
mod changes;
mod counts;
mod example;
mod fastpath;
mod injected;
mod layouts;
mod localhost;
mod options;
mod owner;
mod scheduling;
mod world;
