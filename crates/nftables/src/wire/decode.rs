//! What all decoders need.

use sluicegate_netlink::DecodeError;
use sluicegate_netlink::attr::Attribute;

use crate::name::Name;

/// Returns an attribute that every object of its kind has.
pub(crate) fn need<T>(value: Option<T>, what: &'static str) -> Result<T, DecodeError> {
    value.ok_or(DecodeError::Missing { what })
}

pub(crate) fn name(attribute: &Attribute<'_>) -> Result<Name, DecodeError> {
    attribute.text().map(|name| Name::from_kernel(&name))
}
