//! JSON manifests: one value, or several one after another, each with its place in the file.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::document::{self, Document, Fault, Head};

/// The values of a JSON text. After one that is not JSON nothing more can be found.
pub(super) fn documents(text: &str) -> impl Iterator<Item = Result<Document<'_>, Fault>> {
    // Not fused by itself: after an error it would report the same one for ever.
    let stream = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    let mut failed = false;
    stream.map_while(move |next| {
        let ended = std::mem::replace(&mut failed, next.is_err());
        (!ended).then(|| match next {
            Ok(raw) => Ok(Document::Json(Value { text, raw })),
            Err(e) => Err(fault(Place { line: 1, column: 1 }, &e, "")),
        })
    })
}

/// A JSON value inside the text of its file.
pub(super) struct Value<'a> {
    text: &'a str,
    raw: &'a RawValue,
}

impl Value<'_> {
    fn place(&self) -> Place {
        // Both are slices of one text: the raw value is a window of the file.
        let offset = (self.raw.get().as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize);
        let before = self.text.get(..offset).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Place { line: 1 + before.matches('\n').count(), column: 1 + offset - line_start }
    }
}

impl document::Value for Value<'_> {
    fn line(&self) -> usize {
        self.place().line
    }

    fn head(&self) -> Result<Head, Fault> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase", expecting = "an object with apiVersion and kind")]
        struct Fields {
            api_version: Option<String>,
            kind: Option<String>,
        }
        let fields: Fields = serde_json::from_str(self.raw.get()).map_err(|e| fault(self.place(), &e, ""))?;
        Ok(Head { api_version: fields.api_version, kind: fields.kind })
    }

    fn items(&self) -> Result<Vec<Self>, Fault> {
        #[derive(Deserialize)]
        struct Fields<'a> {
            #[serde(borrow)]
            items: Option<Vec<&'a RawValue>>,
        }
        let fields: Fields<'_> =
            serde_json::from_str(self.raw.get()).map_err(|e| fault(self.place(), &e, ""))?;
        Ok(fields.items.unwrap_or_default().into_iter().map(|raw| Value { text: self.text, raw }).collect())
    }

    fn typed<T: DeserializeOwned>(&self, path: &str) -> Result<T, Fault> {
        serde_json::from_str(self.raw.get()).map_err(|e| fault(self.place(), &e, path))
    }
}

#[derive(Clone, Copy)]
struct Place {
    line: usize,
    column: usize,
}

/// Moves `serde_json`'s place, which counts from the beginning of the value, to the file.
fn fault(start: Place, error: &serde_json::Error, path: &str) -> Fault {
    let (line, column) = match error.line() {
        0 | 1 => (start.line, start.column + error.column().saturating_sub(1)),
        n => (start.line + n - 1, error.column()),
    };
    let text = error.to_string();
    let reason = text.rsplit_once(" at line ").map_or(text.as_str(), |(reason, _)| reason);
    let reason = if path.is_empty() { reason.to_owned() } else { format!("{path}: {reason}") };
    Fault { line, column: Some(column.max(1)), reason }
}
