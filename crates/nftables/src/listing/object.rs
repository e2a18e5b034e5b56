//! Converts stateful objects to the typed language.

use crate::listing::comment;
use crate::object::*;
use crate::read;

/// Converts an object that the kernel listed; `None` if its kind is unknown, or its data are malformed.
pub(crate) fn object_of(table: &TableId, from_kernel: &read::Object) -> Option<StatefulObject> {
    let config = from_kernel.config()?;
    let id = table.object(from_kernel.object_kind, from_kernel.name.clone());
    Some(StatefulObject { id, config, comment: comment(from_kernel.comment()) })
}
