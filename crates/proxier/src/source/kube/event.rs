//! What a watch says: one JSON object a line, each an event.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::watched::{self, Watched};
use crate::source::Object;
use crate::source::update::ObjectName;

/// The lines of an answer, out of pieces that are cut anywhere.
#[derive(Debug, Default)]
pub(super) struct Lines {
    buffer: Vec<u8>,
    /// Up to here there is no end of line.
    searched: usize,
}

impl Lines {
    /// Takes one more piece.
    ///
    /// # Errors
    /// When a line is longer than any object can be: etcd's limit for one is 1.5 MiB.
    pub(super) fn push(&mut self, piece: &[u8]) -> Result<(), String> {
        self.buffer.extend_from_slice(piece);
        if self.buffer.len() > LONGEST && !self.buffer.contains(&b'\n') {
            return Err(format!("a line of the watch is longer than {LONGEST} bytes"));
        }
        Ok(())
    }

    /// The next line that is complete, if one is. What is no line yet when the connection ends is no event.
    pub(super) fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            let Some(at) = self.buffer.iter().skip(self.searched).position(|byte| *byte == b'\n') else {
                self.searched = self.buffer.len();
                return None;
            };
            let rest = self.buffer.split_off(self.searched + at + 1);
            let line = std::mem::replace(&mut self.buffer, rest);
            self.searched = 0;
            if !line.trim_ascii().is_empty() {
                return Some(line);
            }
        }
    }
}

/// The longest line, in bytes.
const LONGEST: usize = 16 << 20;

/// One event.
#[derive(Debug)]
pub(super) enum Event {
    /// `ADDED`, `MODIFIED`.
    Apply(Object, String),
    /// `DELETED`, also when an object ceases to match the selectors.
    Delete(ObjectName, String),
    /// `BOOKMARK`: everything up to this version was sent.
    Bookmark(String),
    /// `ERROR`.
    Error(Box<Status>),
    /// An object that cannot be read: why, and the version after it.
    Unreadable(String, String),
}

impl Event {
    /// Reads a line.
    ///
    /// # Errors
    /// When the line is no event.
    pub(super) fn decode<K: Watched>(line: &[u8]) -> Result<Self, String> {
        let line: Line<'_> =
            serde_json::from_slice(line).map_err(|e| format!("a line of the watch is no event: {e}"))?;
        match &*line.r#type {
            "ADDED" | "MODIFIED" => changed::<K>(line.object),
            "DELETED" => {
                let head = Head::read(line.object)?;
                Ok(Self::Delete(watched::name(K::KIND, head.namespace, head.name), head.resource_version))
            }
            "BOOKMARK" => Ok(Self::Bookmark(Head::read(line.object)?.resource_version)),
            "ERROR" => {
                let status =
                    serde_json::from_str(line.object.get()).map_err(|e| format!("an ERROR event: {e}"))?;
                Ok(Self::Error(Box::new(status)))
            }
            other => Err(format!("the watch has an event of the unknown type {other:?}")),
        }
    }
}

fn changed<K: Watched>(raw: &RawValue) -> Result<Event, String> {
    let head = Head::read(raw)?;
    match object::<K>(raw) {
        Ok(object) => Ok(Event::Apply(object, head.resource_version)),
        Err(reason) => Ok(Event::Unreadable(reason, head.resource_version)),
    }
}

/// Reads one object of a list or an event.
///
/// # Errors
/// Which object it is, and why it cannot be read.
pub(super) fn object<K: Watched>(raw: &RawValue) -> Result<Object, String> {
    let head = Head::read(raw)?;
    let name = watched::name(K::KIND, head.namespace, head.name);
    let mut object: K = serde_json::from_str(raw.get()).map_err(|e| format!("{name} cannot be read: {e}"))?;
    // Half of an object's bytes, and of no use here.
    object.meta_mut().managed_fields = None;
    Ok(object.into_object())
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

/// What every object has; a bookmark has the version alone.
struct Head {
    namespace: Option<String>,
    name: String,
    resource_version: String,
}

impl Head {
    fn read(raw: &RawValue) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Object {
            #[serde(default)]
            metadata: Metadata,
        }
        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        struct Metadata {
            namespace: Option<String>,
            name: String,
            resource_version: String,
        }
        let object: Object =
            serde_json::from_str(raw.get()).map_err(|e| format!("an object has no metadata: {e}"))?;
        let Metadata { namespace, name, resource_version } = object.metadata;
        Ok(Self { namespace, name, resource_version })
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Service;

    use super::*;

    fn decode(line: &str) -> Result<Event, String> {
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
                while let Some(line) = lines.next() {
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
        assert!(lines.push(b"x").unwrap_err().contains("longer than"));
    }

    #[test]
    fn every_type_of_event_is_known() {
        let web = r#"{"metadata":{"namespace":"demo","name":"web","resourceVersion":"7"}}"#;
        for r#type in ["ADDED", "MODIFIED"] {
            let event = decode(&format!(r#"{{"type":"{type}","object":{web}}}"#));
            assert!(matches!(event, Ok(Event::Apply(Object::Service(_), version)) if version == "7"));
        }
        let Ok(Event::Delete(name, version)) = decode(&format!(r#"{{"object":{web},"type":"DELETED"}}"#))
        else {
            panic!("no deletion");
        };
        assert_eq!((name.to_string().as_str(), version.as_str()), ("Service demo/web", "7"));
        let bookmark =
            r#"{"type":"BOOKMARK","object":{"kind":"Service","metadata":{"resourceVersion":"12"}}}"#;
        assert!(matches!(decode(bookmark), Ok(Event::Bookmark(version)) if version == "12"));
        let error = r#"{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","code":410,"reason":"Expired"}}"#;
        assert!(matches!(decode(error), Ok(Event::Error(status)) if status.code == Some(410)));
        assert!(decode(&format!(r#"{{"type":"RENAMED","object":{web}}}"#)).unwrap_err().contains("RENAMED"));
    }

    #[test]
    fn an_object_that_cannot_be_read_is_named_and_its_version_is_kept() {
        let event = decode(
            r#"{"type":"ADDED","object":{"metadata":{"namespace":"demo","name":"odd","resourceVersion":"9"},"spec":{"ports":80}}}"#,
        );
        let Ok(Event::Unreadable(reason, version)) = event else { panic!("{event:?}") };
        assert!(reason.starts_with("Service demo/odd cannot be read: invalid type"), "{reason}");
        assert_eq!(version, "9");
    }

    #[test]
    fn half_an_event_is_none() {
        let whole = r#"{"type":"ADDED","object":{"metadata":{"name":"web","resourceVersion":"7"}}}"#;
        for length in 0..whole.len() {
            assert!(decode(&whole[..length]).is_err(), "{}", &whole[..length]);
        }
    }
}
