//! The IPVS plan: parity with kube-proxy, what each kind of service needs, and every change against a fresh plan.

mod changes;
mod example;
mod services;
