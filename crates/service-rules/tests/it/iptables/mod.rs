//! The iptables plan, loaded by iptables-restore in a network namespace with both back ends: parity with
//! kube-proxy, and every change compared with a fresh load.

mod apply;
mod changes;
mod disturbed;
mod example;
mod faulty_tables;
mod guards;
mod injected;
mod random;
mod variants;
mod world;
