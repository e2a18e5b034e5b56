//! The example programs from outside: one program, a module for each subject.

mod arguments;
mod cni_portmap;
mod commands;
