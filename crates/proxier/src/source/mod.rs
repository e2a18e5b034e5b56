//! Reads manifests: Services, EndpointSlices, Nodes and ServiceCIDRs from YAML or JSON, files or directories.
//!
//! The only file of [`source`](self) that touches the file system; the rest turns text into objects. A file may hold
//! several documents, and a document may be a `List` (or a `ServiceList`, ...). Objects of other kinds are no error:
//! they are counted by kind, so that a misspelt kind does not vanish in silence.
//!
//! Objects are handed over one at a time, so that reading a large cluster needs the memory of one file.

mod deserialize;
mod document;
mod json;
#[cfg(feature = "kube")]
pub mod kube;
pub mod update;
mod watch;
pub(crate) mod yaml;

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::ServiceCIDR;

use crate::Error;

pub use watch::watch;

/// Reads every manifest under `paths` and hands each object to `sink`, in order.
///
/// A directory stands for the files in it (not in its own directories) whose names end in `.yaml`, `.yml` or `.json`,
/// sorted by name. A file that is named is read whatever its name; it is taken for JSON when its name ends in `.json`,
/// or when it ends in neither `.yaml` nor `.yml` and begins with `{`.
///
/// # Errors
/// [`Error::Read`] for what cannot be read, [`Error::Manifests`] with *every* document that does not parse. The
/// objects that do parse have been handed over by then; they must not be used, because what is missing would look
/// like something that was deleted.
pub fn read<P: AsRef<Path>>(paths: &[P], mut sink: impl FnMut(Manifest)) -> Result<Ignored, Error> {
    let mut ignored = Ignored::default();
    let mut problems = Vec::new();
    for path in expand(paths)? {
        let text = read_text(&path)?;
        let mut reader =
            Reader { file: Arc::from(path.as_path()), ignored: &mut ignored, problems: &mut problems };
        reader.read(&text, &mut sink);
    }
    if problems.is_empty() { Ok(ignored) } else { Err(Error::Manifests(problems)) }
}

/// Reads the documents of one text, as [`read`] does with a file; `name` stands for the file in messages.
///
/// # Errors
/// [`Error::Manifests`] with every document that does not parse.
///
/// ```
/// use sluicegate_proxier::source::{self, Object};
///
/// let mut services = 0;
/// let ignored = source::read_str("example.yaml", "kind: Service\napiVersion: v1\n---\nkind: Secret\napiVersion: v1\n", |manifest| {
///     services += usize::from(matches!(manifest.object, Object::Service(_)));
/// })?;
/// assert_eq!(services, 1);
/// assert_eq!(ignored.to_string(), "1 v1 Secret");
/// # Ok::<(), sluicegate_proxier::Error>(())
/// ```
pub fn read_str(name: &str, text: &str, mut sink: impl FnMut(Manifest)) -> Result<Ignored, Error> {
    let mut ignored = Ignored::default();
    let mut problems = Vec::new();
    Reader { file: Arc::from(Path::new(name)), ignored: &mut ignored, problems: &mut problems }
        .read(text, &mut sink);
    if problems.is_empty() { Ok(ignored) } else { Err(Error::Manifests(problems)) }
}

/// An object and where it was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// What the document, or the item of a list, holds.
    pub object: Object,
    /// Where it begins.
    pub origin: Origin,
}

/// The kinds of objects that a service proxy reads.
#[derive(Clone, Debug, PartialEq)]
pub enum Object {
    /// `v1` `Service`.
    Service(Box<Service>),
    /// `discovery.k8s.io/v1` `EndpointSlice`.
    EndpointSlice(Box<EndpointSlice>),
    /// `v1` `Node`.
    Node(Box<Node>),
    /// `networking.k8s.io/v1` `ServiceCIDR`.
    ServiceCidr(Box<ServiceCIDR>),
}

/// A place in a manifest file: `services.yaml, document 3, line 40`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// The file, as it was named.
    pub file: Arc<Path>,
    /// Which document of the file, from 1. Empty documents count.
    pub document: usize,
    /// The line in the file, from 1.
    pub line: usize,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, document {}, line {}", self.file.display(), self.document, self.line)
    }
}

/// A document that does not parse, or an object whose fields have the wrong types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestError {
    /// Where the trouble is: the line is that of the offending text, not of the document.
    pub origin: Origin,
    /// The column, from 1, where it is known.
    pub column: Option<usize>,
    /// What is wrong, with the path to the field where there is one.
    pub reason: String,
}

impl fmt::Display for ManifestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.origin)?;
        if let Some(column) = self.column {
            write!(f, ", column {column}")?;
        }
        write!(f, ": {}", self.reason)
    }
}

/// How many objects were passed over, by API version and kind. Displays as `2 v1 Secret, 1 apps/v1 Deployment`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ignored(BTreeMap<String, usize>);

impl Ignored {
    /// True when every object was of a kind that is read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// API version and kind (`apps/v1 Deployment`), and how many there were.
    pub fn iter(&self) -> impl Iterator<Item = (&str, usize)> {
        self.0.iter().map(|(kind, count)| (kind.as_str(), *count))
    }
}

impl fmt::Display for Ignored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, (kind, count)) in self.0.iter().enumerate() {
            write!(f, "{}{count} {kind}", if n == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

struct Reader<'a> {
    file: Arc<Path>,
    ignored: &'a mut Ignored,
    problems: &'a mut Vec<ManifestError>,
}

impl Reader<'_> {
    fn read(&mut self, text: &str, sink: &mut dyn FnMut(Manifest)) {
        for (number, part) in document::split(text, self.is_json(text)).enumerate() {
            let outcome = part.and_then(document::Document::objects);
            match outcome {
                Ok(found) => found.into_iter().for_each(|item| self.take(number + 1, item, sink)),
                Err(fault) => self.reject(number + 1, fault),
            }
        }
    }

    fn is_json(&self, text: &str) -> bool {
        match self.file.extension().and_then(|e| e.to_str()) {
            Some("json") => true,
            Some("yaml" | "yml") => false,
            _ => text.trim_start().starts_with('{'),
        }
    }

    fn take(&mut self, document: usize, item: document::Item, sink: &mut dyn FnMut(Manifest)) {
        match item.content {
            Ok(document::Content::Object(object)) => {
                let origin = Origin { file: Arc::clone(&self.file), document, line: item.line };
                sink(Manifest { object, origin });
            }
            Ok(document::Content::Other(kind)) => *self.ignored.0.entry(kind).or_default() += 1,
            Err(fault) => self.reject(document, fault),
        }
    }

    fn reject(&mut self, document: usize, fault: document::Fault) {
        let origin = Origin { file: Arc::clone(&self.file), document, line: fault.line };
        self.problems.push(ManifestError { origin, column: fault.column, reason: fault.reason });
    }
}

fn expand<P: AsRef<Path>>(paths: &[P]) -> Result<Vec<PathBuf>, Error> {
    let mut files = Vec::new();
    for path in paths {
        let path = path.as_ref();
        let unreadable = |source| Error::Read { path: path.to_owned(), source };
        if !fs::metadata(path).map_err(unreadable)?.is_dir() {
            files.push(path.to_owned());
            continue;
        }
        let mut found = Vec::new();
        for entry in fs::read_dir(path).map_err(unreadable)? {
            let file = entry.map_err(unreadable)?.path();
            if is_manifest(&file) && !file.is_dir() {
                found.push(file);
            }
        }
        found.sort();
        files.append(&mut found);
    }
    Ok(files)
}

/// By its name.
fn is_manifest(file: &Path) -> bool {
    matches!(file.extension().and_then(|e| e.to_str()), Some("yaml" | "yml" | "json"))
}

pub(crate) fn read_text(path: &Path) -> Result<String, Error> {
    let bytes = fs::read(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
    let mut text = String::from_utf8(bytes).map_err(|e| {
        let line = 1 + e.as_bytes()[..e.utf8_error().valid_up_to()].iter().filter(|b| **b == b'\n').count();
        let origin = Origin { file: Arc::from(path), document: 1, line };
        Error::Manifests(vec![ManifestError {
            origin,
            column: None,
            reason: "the text is not UTF-8".to_owned(),
        }])
    })?;
    if text.starts_with('\u{feff}') {
        text.drain(..'\u{feff}'.len_utf8());
    }
    Ok(text)
}

#[cfg(test)]
mod tests;
