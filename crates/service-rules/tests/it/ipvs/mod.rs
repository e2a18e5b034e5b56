//! The IPVS plan: parity with kube-proxy, the objects of each kind of service, and every change compared with
//! a fresh plan.

mod changes;
mod example;
mod services;
