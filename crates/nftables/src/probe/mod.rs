//! Finds out what the kernel supports by asking it: with a batch that is only checked, or a request for
//! something that does not exist.
//!
//! Version numbers are not reliable: distributions backport features, and leave others out. Therefore the
//! kernel is asked, in one of four ways:
//!
//! * **Does it accept the operation?** A batch that uses the feature is sent without its end. The kernel
//!   checks every message, and then aborts the batch.
//! * **Does it refuse an invalid value?** A kernel ignores unknown attributes: the comment of a table is
//!   accepted by every kernel, and dropped before 5.10. But a known attribute is checked first. So the
//!   request has the attribute with a value that is never valid (user data longer than `NFT_USERDATA_MAXLEN`,
//!   256 bytes; a number of one byte), and a kernel that knows the attribute reports `ERANGE` for it.
//! * **Does it know the name** of an expression, or the kind of an object? Both are sent without attributes:
//!   `ENOENT` means that the kernel does not know the name even after trying to load a module for it; any
//!   other error (usually `EINVAL`) is about the missing attributes.
//! * **Does it know the message?** A reset is requested in a table that does not exist: the answer is
//!   `ENOENT`, or `EINVAL` if the kernel does not know the message.
//!
//! This cannot find differences in behaviour that every kernel accepts, for example that since Linux 6.12 the
//! timeout of an element can be changed.
//!
//! ```no_run
//! use sluicegate_nftables::netlink::{Options, NetlinkFamily, Socket};
//! use sluicegate_nftables::probe::{Feature, supports};
//!
//! let mut socket = Socket::open(NetlinkFamily::NETFILTER, &Options::default())?;
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

/// Returns whether this kernel has a feature. The kernel may load a module to find out, as it would for a
/// rule; nothing else changes.
///
/// # Errors
/// If the kernel cannot be asked (no permission, no `nf_tables`), does not answer, or reports an unrelated
/// error.
pub fn supports(transport: &mut (impl Transport + ?Sized), feature: Feature) -> Result<bool, Error> {
    feature.question().ask(transport)
}

/// Returns whether this kernel has an expression with this name ([`Expr::NAMES`](crate::expr::Expr::NAMES))
/// for rules of a family. It may lack newer attributes of the expression.
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

/// Returns whether this kernel has stateful objects of this kind for tables of a family.
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
