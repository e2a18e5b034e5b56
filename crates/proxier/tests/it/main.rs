//! The tests of the crate from outside: one program, a module for each subject.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod cleanup;
mod cli;
mod commands;
mod config;
mod deploy;
mod doctor;
mod explain;
mod faults;
mod flags;
mod gates;
#[cfg(feature = "cli")]
mod guest;
mod kernel;
#[cfg(feature = "kube")]
mod kube;
mod localhost;
mod lock;
mod memory;
mod neighbours;
mod node;
mod robust;
mod run;
mod schedulers;
mod schemas;
mod service_metrics;
mod status;
