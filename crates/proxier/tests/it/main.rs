//! The tests of the crate from outside: one program, a module for each subject.

mod cleanup;
mod cli;
mod commands;
mod deploy;
mod doctor;
mod explain;
mod faults;
mod flags;
#[cfg(feature = "cli")]
mod guest;
mod kernel;
#[cfg(feature = "kube")]
mod kube;
mod localhost;
mod lock;
mod memory;
mod robust;
mod run;
mod status;
