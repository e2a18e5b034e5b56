//! The iptables plan, loaded by iptables-restore in a network namespace, by both back ends: parity with kube-proxy, and
//! every change against a fresh load.

mod apply;
mod changes;
mod example;
mod localhost;
mod random;
mod variants;
mod world;
