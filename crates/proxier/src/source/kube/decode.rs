//! Decodes the responses of an API server: pages of lists, and the lines of watches. Values in, values out.

use k8s_openapi::api::core::v1::{Node, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::ServiceCIDR;

use super::request::take_page;
use crate::source::update::{Kind, ObjectName};

pub use super::event::{Event, Lines};
pub use super::request::List;

/// A response, or an object in one, that is not what the API has in its place.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Malformed {
    /// A page is not a list.
    #[error("expected a list in the response: {0}")]
    List(
        /// What is wrong with it.
        #[source]
        serde_json::Error,
    ),
    /// A list has no version that a watch could go on from.
    #[error("the list has no resourceVersion to watch from")]
    ListWithoutVersion,
    /// A line of a watch has no end.
    #[error("a line of the watch is longer than {most} bytes")]
    LongLine {
        /// The most bytes.
        most: usize,
    },
    /// A line of a watch is not an event.
    #[error("expected an event in a line of the watch: {0}")]
    Line(
        /// What is wrong with it.
        #[source]
        serde_json::Error,
    ),
    /// An event of a type that the API does not have.
    #[error("expected an event of type ADDED, MODIFIED, DELETED, BOOKMARK or ERROR, found {0:?}")]
    Type(
        /// The type.
        String,
    ),
    /// An `ERROR` event without a status.
    #[error("an ERROR event: {0}")]
    Status(
        /// What is wrong with it.
        #[source]
        serde_json::Error,
    ),
    /// An event from which a watch could not go on.
    #[error("an event has no resourceVersion")]
    EventWithoutVersion,
    /// Something that is not an object.
    #[error("an object has no metadata: {0}")]
    Metadata(
        /// What is wrong with it.
        #[source]
        serde_json::Error,
    ),
    /// An object of another kind.
    #[error("expected an object of kind {expected}, found {found}")]
    Kind {
        /// The version and kind that were asked for.
        expected: String,
        /// Those of the object.
        found: String,
    },
    /// An object whose fields have other types than its kind has.
    #[error("{name} cannot be read: {source}")]
    Object {
        /// Which one.
        name: ObjectName,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

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
}
