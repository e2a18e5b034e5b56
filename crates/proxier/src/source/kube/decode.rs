//! Decodes the responses of an API server: pages of lists, and the lines of watches. Values in, values out.

use k8s_openapi::api::core::v1::{Node, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::ServiceCIDR;

use super::request::take_page;
use crate::source::update::Kind;

pub use super::event::{Event, Lines};
pub use super::request::List;

/// A response that is not what the API has in its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub(super) String);

/// Adds a page of a list of objects of one kind to `list`. Returns the token of the next page, if there is
/// one.
///
/// An object that cannot be decoded is not an error: it is named in [`List::unreadable`].
///
/// ```
/// use sluicegate_proxier::source::kube::decode::{self, List};
/// use sluicegate_proxier::source::update::Kind;
///
/// let page = r#"{"metadata": {"resourceVersion": "7"}, "items": [{"metadata": {"name": "web"}}, {"spec": 1}]}"#;
/// let mut list = List::default();
/// assert_eq!(decode::page(Kind::Service, page.as_bytes(), &mut list)?, None);
/// assert_eq!((list.objects.len(), list.unreadable.len(), list.version.as_str()), (1, 1, "7"));
/// # Ok::<(), decode::Malformed>(())
/// ```
///
/// # Errors
/// [`Malformed`] when the text is not a list, or a list without a version.
pub fn page(kind: Kind, text: &[u8], list: &mut List) -> Result<Option<String>, Malformed> {
    match kind {
        Kind::Service => take_page::<Service>(text, list),
        Kind::EndpointSlice => take_page::<EndpointSlice>(text, list),
        Kind::Node => take_page::<Node>(text, list),
        Kind::ServiceCidr => take_page::<ServiceCIDR>(text, list),
    }
    .map_err(Malformed)
}

/// Decodes a line of a watch of objects of one kind.
///
/// # Errors
/// [`Malformed`] when the line is not an event.
pub fn event(kind: Kind, line: &[u8]) -> Result<Event, Malformed> {
    match kind {
        Kind::Service => Event::decode::<Service>(line),
        Kind::EndpointSlice => Event::decode::<EndpointSlice>(line),
        Kind::Node => Event::decode::<Node>(line),
        Kind::ServiceCidr => Event::decode::<ServiceCIDR>(line),
    }
    .map_err(Malformed)
}
