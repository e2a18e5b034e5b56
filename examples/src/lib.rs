//! The examples of the repository: programs in `examples/`, and the guide for those who start tools today,
//! whose code is compiled here.
#![doc = include_str!("../../GUIDE.md")]
