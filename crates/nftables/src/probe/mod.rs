//! What this kernel can do, found by asking it: each question is a batch that is checked and thrown away, or a request for what is not there.
//!
//! Version numbers say little: distributions carry features back, and leave others out. So the kernel is asked, in one of four ways:
//!
//! * **It takes it.** A batch that uses the feature is sent without its end. The kernel checks every message and then undoes it.
//! * **It refuses it.** A kernel ignores an attribute that it does not know: a comment for a table is accepted everywhere, and lost on a kernel before
//!   5.10. But an attribute that it knows it checks first of all. So the question holds that attribute with a value that can never be right (user data
//!   longer than `NFT_USERDATA_MAXLEN`, 256 bytes; a number of one byte), and a kernel that knows it answers `ERANGE` and points there.
//! * **It knows the name** of an expression, or the kind of an object. Both are sent without settings: `ENOENT` is the answer to a name that the kernel
//!   does not find even after it has tried to load the module of it; everything else (`EINVAL`, mostly) is about the settings.
//! * **It knows the message.** A reset is asked for in a table that does not exist: `ENOENT`; a kernel that lacks the message says `EINVAL`.
//!
//! What a kernel takes either way, and does otherwise, cannot be found so: that an element's timeout can be changed since Linux 6.12, for one.
//!
//! ```no_run
//! use sluicegate_netlink::{Options, Protocol, Socket};
//! use sluicegate_nftables::probe::{Feature, supports};
//!
//! let mut socket = Socket::open(Protocol::NETFILTER, &Options::default())?;
//! for feature in Feature::ALL {
//!     println!("{feature:?}: {}", supports(&mut socket, *feature)?);
//! }
//! # Ok::<(), sluicegate_nftables::Error>(())
//! ```

mod feature;
mod question;

use sluicegate_netlink::Transport;

use crate::error::Error;
use crate::expr::ObjectKind;
use crate::family::Family;

pub use feature::Feature;
use question::Question;

/// Whether this kernel can do something. It may load a module to find out, as it would for a real rule; nothing else changes.
///
/// # Errors
/// When it cannot be asked: no permission, no `nf_tables`, no answer, or one that is about something else.
pub fn supports(transport: &mut (impl Transport + ?Sized), feature: Feature) -> Result<bool, Error> {
    feature.question().ask(transport)
}

/// Whether this kernel has an expression of this name ([`Expr::NAMES`](crate::expr::Expr::NAMES)) for rules of a family. Not every part of an expression
/// is as old as the expression.
///
/// # Errors
/// As [`supports`].
pub fn has_expression(
    transport: &mut (impl Transport + ?Sized),
    family: Family,
    name: &str,
) -> Result<bool, Error> {
    Question::Expression(family, name).ask(transport)
}

/// Whether this kernel has stateful objects of this kind for tables of a family.
///
/// # Errors
/// As [`supports`].
pub fn has_object_kind(
    transport: &mut (impl Transport + ?Sized),
    family: Family,
    kind: ObjectKind,
) -> Result<bool, Error> {
    Question::Object(family, kind).ask(transport)
}
