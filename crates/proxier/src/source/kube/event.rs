//! The events of a watch: one JSON object in each line.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::decode::Malformed;
use super::request::clip;
use super::watched::{self, Watched};
use crate::source::Object;
use crate::source::update::ObjectName;

/// Splits the pieces of a response into lines.
#[derive(Debug, Default)]
pub struct Lines {
    buffer: Vec<u8>,
    /// Where the first line begins that was not returned.
    start: usize,
    /// The end of what follows it without a newline.
    searched: usize,
}

impl Lines {
    /// Appends a piece.
    ///
    /// # Errors
    /// [`Malformed`] when a line is longer than any object can be: the limit of etcd is 1.5 MiB.
    pub fn push(&mut self, piece: &[u8]) -> Result<(), Malformed> {
        self.buffer.drain(..self.start);
        self.searched -= self.start;
        self.start = 0;
        self.buffer.extend_from_slice(piece);
        if self.buffer.len() > LONGEST && !self.buffer.contains(&b'\n') {
            return Err(Malformed::LongLine { most: LONGEST });
        }
        Ok(())
    }

    /// Returns the next complete line, if there is one. An incomplete line at the end of a connection is not
    /// an event.
    pub fn next_line(&mut self) -> Option<Vec<u8>> {
        loop {
            let rest = self.buffer.get(self.searched..)?;
            let Some(at) = rest.iter().position(|byte| *byte == b'\n') else {
                self.searched = self.buffer.len();
                return None;
            };
            let end = self.searched + at + 1;
            let line = self.buffer.get(self.start..end)?;
            (self.start, self.searched) = (end, end);
            if !line.trim_ascii().is_empty() {
                return Some(line.to_vec());
            }
        }
    }
}

/// The longest line, in bytes.
const LONGEST: usize = 16 << 20;

/// An event of a watch.
#[derive(Debug)]
pub enum Event {
    /// `ADDED`, `MODIFIED`.
    Apply(Object, String),
    /// `DELETED`, also when an object ceases to match the selectors.
    Delete(ObjectName, String),
    /// `BOOKMARK`: every event up to this version was sent.
    Bookmark(String),
    /// `ERROR`.
    Error(Box<Status>),
    /// An object that cannot be decoded: the reason, and its version.
    Unreadable(Malformed, String),
}

impl Event {
    /// Decodes a line.
    ///
    /// # Errors
    /// When the line is not an event.
    pub(super) fn decode<K: Watched>(line: &[u8]) -> Result<Self, Malformed> {
        let line: Line<'_> = serde_json::from_slice(line).map_err(Malformed::Line)?;
        match &*line.r#type {
            "ADDED" | "MODIFIED" => changed::<K>(line.object),
            "DELETED" => {
                let head = Head::with_kind::<K>(line.object)?;
                Ok(Self::Delete(watched::name(K::KIND, head.namespace, head.name), head.resource_version))
            }
            "BOOKMARK" => Ok(Self::Bookmark(Head::with_kind::<K>(line.object)?.resource_version)),
            "ERROR" => {
                let status = serde_json::from_str(line.object.get()).map_err(Malformed::Status)?;
                Ok(Self::Error(Box::new(status)))
            }
            other => Err(Malformed::Type(clip(other).to_owned())),
        }
    }
}

fn changed<K: Watched>(raw: &RawValue) -> Result<Event, Malformed> {
    let head = Head::with_kind::<K>(raw)?;
    match object::<K>(raw) {
        Ok(object) => Ok(Event::Apply(object, head.resource_version)),
        Err(reason) => Ok(Event::Unreadable(reason, head.resource_version)),
    }
}

/// Decodes an object of a list or an event.
///
/// # Errors
/// The name of the object, and why it cannot be decoded.
pub(super) fn object<K: Watched>(raw: &RawValue) -> Result<Object, Malformed> {
    let head = Head::of::<K>(raw)?;
    let name = watched::name(K::KIND, head.namespace, head.name);
    let unreadable = |source| Malformed::Object { name, source };
    let mut object: K = serde_json::from_str(raw.get()).map_err(unreadable)?;
    // Managed fields are half of the memory of an object, and not used.
    object.meta_mut().managed_fields = None;
    Ok(object.into_object())
}

/// Refuses what is not of kind `K`, or of `K` with `suffix`. Whether it may leave that open, as the items of a
/// list do, is `may_lack`.
///
/// # Errors
/// [`Malformed::Kind`].
pub(super) fn check_kind<K: Watched>(
    suffix: &str,
    version: Option<&str>,
    kind: Option<&str>,
    may_lack: bool,
) -> Result<(), Malformed> {
    let (right_version, right_kind) = (K::api_version(&()), format!("{}{suffix}", K::kind(&())));
    let is_right = |found: Option<&str>, right: &str| found.map_or(may_lack, |found| found == right);
    if is_right(version, &right_version) && is_right(kind, &right_kind) {
        return Ok(());
    }
    let found = format!("{} {}", version.unwrap_or_default(), kind.unwrap_or_default());
    let found = if found == " " { "none" } else { clip(&found) };
    Err(Malformed::Kind { expected: format!("{right_version} {right_kind}"), found: found.to_owned() })
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

/// The metadata of every object. A bookmark has only the version.
struct Head {
    namespace: Option<String>,
    name: String,
    resource_version: String,
}

impl Head {
    /// Reads the head of an object in an event, which says of which kind it is: client-go refuses one that
    /// does not.
    fn with_kind<K: Watched>(raw: &RawValue) -> Result<Self, Malformed> {
        Self::read::<K>(raw, false)
    }

    /// Reads the head of an item of a list, which has no kind of its own. An object of another one, as
    /// something between here and the API server mixes things up, is an error: a Pod that is deleted is no
    /// Service.
    fn of<K: Watched>(raw: &RawValue) -> Result<Self, Malformed> {
        Self::read::<K>(raw, true)
    }

    fn read<K: Watched>(raw: &RawValue, is_item: bool) -> Result<Self, Malformed> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Object<'a> {
            #[serde(default)]
            metadata: Metadata,
            #[serde(borrow)]
            kind: Option<Cow<'a, str>>,
            #[serde(borrow)]
            api_version: Option<Cow<'a, str>>,
        }
        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        struct Metadata {
            namespace: Option<String>,
            name: String,
            resource_version: String,
        }
        let object: Object<'_> = serde_json::from_str(raw.get()).map_err(Malformed::Metadata)?;
        check_kind::<K>("", object.api_version.as_deref(), object.kind.as_deref(), is_item)?;
        let Metadata { namespace, name, resource_version } = object.metadata;
        Ok(Self { namespace, name, resource_version })
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Service;

    use super::*;

    fn decode(line: &str) -> Result<Event, Malformed> {
        Event::decode::<Service>(line.as_bytes())
    }

    #[test]
    fn lines_are_found_however_they_are_cut() {
        let text = b"one\r\n\n  \ntwo\nthree";
        for size in 1..=text.len() {
            let mut lines = Lines::default();
            let mut found = Vec::new();
            for piece in text.chunks(size) {
                lines.push(piece).unwrap();
                while let Some(line) = lines.next_line() {
                    found.push(String::from_utf8(line).unwrap());
                }
            }
            assert_eq!(found, ["one\r\n", "two\n"], "in pieces of {size}");
        }
    }

    #[test]
    fn a_line_without_end_is_refused() {
        let mut lines = Lines::default();
        let piece = vec![b'x'; LONGEST];
        lines.push(&piece).unwrap();
        assert!(lines.push(b"x").unwrap_err().to_string().contains("longer than"));
    }

    #[test]
    fn every_type_of_event_is_known() {
        let web = r#"{"kind":"Service","apiVersion":"v1","metadata":{"namespace":"demo","name":"web","resourceVersion":"7"}}"#;
        for r#type in ["ADDED", "MODIFIED"] {
            let event = decode(&format!(r#"{{"type":"{type}","object":{web}}}"#));
            assert!(matches!(event, Ok(Event::Apply(Object::Service(_), version)) if version == "7"));
        }
        let Ok(Event::Delete(name, version)) = decode(&format!(r#"{{"object":{web},"type":"DELETED"}}"#))
        else {
            panic!("no deletion");
        };
        assert_eq!((name.to_string().as_str(), version.as_str()), ("Service demo/web", "7"));
        let bookmark = r#"{"type":"BOOKMARK","object":{"kind":"Service","apiVersion":"v1","metadata":{"resourceVersion":"12"}}}"#;
        assert!(matches!(decode(bookmark), Ok(Event::Bookmark(version)) if version == "12"));
        let error = r#"{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","code":410,"reason":"Expired"}}"#;
        assert!(matches!(decode(error), Ok(Event::Error(status)) if status.code == Some(410)));
        assert!(
            decode(&format!(r#"{{"type":"RENAMED","object":{web}}}"#))
                .unwrap_err()
                .to_string()
                .contains("RENAMED")
        );
    }

    #[test]
    fn an_object_that_cannot_be_read_is_named_and_its_version_is_kept() {
        let event = decode(
            r#"{"type":"ADDED","object":{"kind":"Service","apiVersion":"v1","metadata":{"namespace":"demo","name":"odd","resourceVersion":"9"},"spec":{"ports":80}}}"#,
        );
        let Ok(Event::Unreadable(reason, version)) = event else { panic!("{event:?}") };
        let reason = reason.to_string();
        assert!(reason.starts_with("Service demo/odd cannot be read: invalid type"), "{reason}");
        assert_eq!(version, "9");
    }

    #[test]
    fn an_object_of_another_kind_is_refused() {
        let line = |r#type: &str, kind: &str, version: &str| {
            format!(
                r#"{{"type":"{type}","object":{{"kind":"{kind}","apiVersion":"{version}","metadata":{{"name":"web","resourceVersion":"7"}}}}}}"#
            )
        };
        for r#type in ["ADDED", "MODIFIED", "DELETED", "BOOKMARK"] {
            assert!(decode(&line(r#type, "Service", "v1")).is_ok(), "{type}");
            let said = decode(&line(r#type, "Pod", "v1")).unwrap_err();
            assert_eq!(said.to_string(), "expected an object of kind v1 Service, found v1 Pod", "{type}");
            assert!(decode(&line(r#type, "Service", "serving.knative.dev/v1")).is_err(), "{type}");
            // Every event says of which kind its object is.
            for lacking in [r#""kind":"Service","#, r#""apiVersion":"v1","#] {
                let line = line(r#type, "Service", "v1").replace(lacking, "");
                assert!(matches!(decode(&line), Err(Malformed::Kind { .. })), "{line}");
            }
        }
    }

    #[test]
    fn a_truncated_event_is_refused() {
        let whole = r#"{"type":"ADDED","object":{"kind":"Service","apiVersion":"v1","metadata":{"name":"web","resourceVersion":"7"}}}"#;
        assert!(decode(whole).is_ok());
        for length in 0..whole.len() {
            assert!(decode(&whole[..length]).is_err(), "{}", &whole[..length]);
        }
    }
}
