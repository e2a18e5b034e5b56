//! Planners: from the model to what the kernel should hold. Pure: no kernel, no clock.

pub mod iptables;
pub mod ipvs;
pub mod nftables;
