//! What needs a kernel: each test in a network namespace of its own.

mod cases;
mod errors;
mod listing;
mod parity;
mod verbs;
mod watching;
