//! nft's language as text, with nft itself as the judge: what it reads is read by us to the same ruleset,
//! what it refuses is refused at the same words.
//!
//! * `rules/*.nft`: rules, one a line. A line `#! table FAMILY` starts a context. Lines `#! ...` behind it
//!   say what else is in its table; `chain type ...` makes the chain of the rules a base chain, and
//!   `#! needs WHAT` names a feature that not every kernel has.
//! * `scripts/*.nft`: whole scripts, each behind a line `#! script NAME`. `#! then` separates what is
//!   loaded one after another, `#! file NAME` starts a text that the script includes.
//! * `wrong/*.nft`: inputs that nft or the kernel refuses, each behind a line with the verdict of nft 1.0.6
//!   (see `wrong.rs`).
//!
//! All of it was tried with nft 1.0.6 on Linux 6.18 before it was taken in. What comes out otherwise than
//! nft makes it is listed in `known.rs`, each with its reason; the lists are exact.

mod constants;
#[cfg(feature = "json")]
mod doors;
mod format;
#[cfg(feature = "json")]
mod json;
mod kernel;
mod known;
mod listings;
mod mutations;
mod random;
mod rules;
mod scripts;
mod size;
mod wrong;
#[cfg(feature = "json")]
mod wrong_doors;
