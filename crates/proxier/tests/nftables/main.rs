//! The nftables plan, loaded by nft in a network namespace: parity with kube-proxy, and every change against a fresh load.
//!
//! `nft` reads here what the planner prints, so that the kernel judges the plan and not our own sender.

mod changes;
mod example;
mod layouts;
mod world;
