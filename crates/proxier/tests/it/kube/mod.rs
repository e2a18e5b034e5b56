//! The Kubernetes API source against an API server of our own, in a namespace, that fails in every way it
//! knows.

mod daemon;
mod faults;
mod follow;
mod random;
mod rights;
mod server;
mod tls;
mod watching;
