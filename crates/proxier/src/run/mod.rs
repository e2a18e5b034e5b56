//! The daemon: keeps the kernel where the objects of a source say, until it is told to stop.

mod observer;

pub use observer::{Observer, Sent, SyncReport};
