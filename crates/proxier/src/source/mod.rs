//! Services, EndpointSlices, Nodes and ServiceCIDRs: read once from manifests, or followed as files or an API
//! server change.
//!
//! - [`read`] and [`read_str`] parse manifests, YAML or JSON. A file may hold several documents, and a
//!   document may be a `List` (or a `ServiceList`, ...). Objects of other kinds are not an error: they are
//!   counted by kind, so that a misspelt kind is reported. The caller gets one object at a time, so reading a
//!   large cluster needs little memory beside the text of one file.
//! - [`watch`] (feature `daemon`) follows files and directories, `kube` (feature `kube`) an API server. Both
//!   send [`update::Update`]s.

mod document;
pub(crate) mod entry;
mod error;
mod json;
#[cfg(feature = "kube")]
pub mod kube;
mod manifests;
#[cfg(feature = "daemon")]
pub mod observer;
#[cfg(feature = "daemon")]
pub mod update;
#[cfg(feature = "daemon")]
mod watch;

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::ops::ControlFlow;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::ServiceCIDR;
use nix::fcntl::OFlag;

use crate::Visible;
use crate::yaml::{self, Fault};
use document::Flow;

pub use error::{Error, ManifestError};
pub use manifests::{Manifests, Problem};
#[cfg(feature = "daemon")]
pub use watch::watch;

/// Reads every manifest under `paths` and passes each object to `sink`, in order. Returns what kinds it
/// ignored.
///
/// A directory stands for the files in it (not in its subdirectories) whose names end in `.yaml`, `.yml` or
/// `.json`, but for hidden ones, sorted by name. A file that is named is read whatever its name, but it must be a
/// regular file of at most 1 GiB. It is read as JSON when its name ends in `.json`, or when its name ends in
/// neither `.yaml` nor `.yml` and its text is JSON, not YAML in braces (`{apiVersion: v1, ...}`).
///
/// # Errors
/// [`Error::Read`] when a file or directory cannot be read, [`Error::Manifests`] with *every* document that
/// does not parse. Objects that do parse were passed on by then. Do not use them: a missing object looks like
/// a deleted one.
pub fn read<P: AsRef<Path>>(paths: &[P], sink: impl FnMut(Manifest)) -> Result<Ignored, Error> {
    let mut sink = Each(sink);
    let mut ignored = Ignored::default();
    let mut problems = Vec::new();
    for path in expand(paths)? {
        let text = read_text(&path)?;
        Reader::new(&path, &mut ignored, &mut problems).read(&text, &mut sink);
    }
    if problems.is_empty() { Ok(ignored) } else { Err(Error::Manifests(problems)) }
}

/// Reads the documents of one text, as [`read`] does with a file. `name` is the name of the file in messages.
///
/// # Errors
/// [`Error::Manifests`] with every document that does not parse.
///
/// ```
/// use sluicegate_proxier::source::{self, Object};
///
/// let text = "kind: Service\napiVersion: v1\n---\nkind: Secret\napiVersion: v1\n";
/// let mut services = 0;
/// let ignored = source::read_str("example.yaml", text, |manifest| {
///     services += usize::from(matches!(manifest.object, Object::Service(_)));
/// })?;
/// assert_eq!(services, 1);
/// assert_eq!(ignored.to_string(), "1 v1 Secret");
/// # Ok::<(), sluicegate_proxier::source::Error>(())
/// ```
pub fn read_str(name: &str, text: &str, sink: impl FnMut(Manifest)) -> Result<Ignored, Error> {
    parse(Path::new(name), text, &mut Each(sink))
}

/// Reads the documents of the text of a file.
fn parse(file: &Path, text: &str, sink: &mut dyn Sink) -> Result<Ignored, Error> {
    let mut ignored = Ignored::default();
    let mut problems = Vec::new();
    Reader::new(file, &mut ignored, &mut problems).read(text, sink);
    if problems.is_empty() { Ok(ignored) } else { Err(Error::Manifests(problems)) }
}

/// An object and where it was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// The object of the document, or of an item of a list.
    pub object: Object,
    /// Where the object begins.
    pub origin: Origin,
    /// The paths of the fields that its kind does not have, as `spec.ports[0].prot`: slips, or of a newer API.
    pub unknown: Vec<String>,
}

/// An object of a kind that a service proxy reads.
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
    /// The path of the file, as the caller gave it.
    pub file: Arc<Path>,
    /// The number of the document in the file, from 1. Empty documents count.
    pub document: usize,
    /// The line in the file, from 1.
    pub line: usize,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.display().to_string();
        write!(f, "{}, document {}, line {}", Visible(&file), self.document, self.line)
    }
}

/// The number of objects of other kinds, by API version and kind. Displays as `2 v1 Secret, 1 apps/v1
/// Deployment`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ignored(BTreeMap<String, usize>);

impl Ignored {
    /// Returns true when every object was of a kind that is read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns each API version and kind (`apps/v1 Deployment`) with its number of objects.
    pub fn iter(&self) -> impl Iterator<Item = (&str, usize)> {
        self.0.iter().map(|(kind, count)| (kind.as_str(), *count))
    }
}

impl fmt::Display for Ignored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, (kind, count)) in self.0.iter().enumerate() {
            write!(f, "{}{count} {}", if n == 0 { "" } else { ", " }, Visible(kind).clipped())?;
        }
        Ok(())
    }
}

/// Takes what a file has, in order.
trait Sink {
    /// Returns whether to parse a document, or that nothing more is wanted.
    fn wants(&mut self, _text: &str, _origin: &dyn Fn() -> Origin) -> ControlFlow<(), bool> {
        ControlFlow::Continue(true)
    }

    /// Takes an object.
    fn take(&mut self, manifest: Manifest) -> Flow;

    /// Is told of an item that is not passed on. Returns whether to go on.
    fn passed_over(&mut self) -> Flow {
        Flow::Continue(())
    }
}

/// Takes every object.
struct Each<F>(F);

impl<F: FnMut(Manifest)> Sink for Each<F> {
    fn take(&mut self, manifest: Manifest) -> Flow {
        (self.0)(manifest);
        Flow::Continue(())
    }
}

struct Reader<'a> {
    file: Arc<Path>,
    ignored: &'a mut Ignored,
    problems: &'a mut Vec<ManifestError>,
}

impl<'a> Reader<'a> {
    fn new(file: &Path, ignored: &'a mut Ignored, problems: &'a mut Vec<ManifestError>) -> Self {
        Self { file: Arc::from(file), ignored, problems }
    }

    fn read(&mut self, text: &str, sink: &mut dyn Sink) {
        for (index, document) in document::split(text, self.is_json(text)).enumerate() {
            let number = index + 1;
            let outcome = document.and_then(|document| {
                let origin =
                    || Origin { file: Arc::clone(&self.file), document: number, line: document.line() };
                match sink.wants(document.text(), &origin) {
                    ControlFlow::Break(()) => return Ok(Flow::Break(())),
                    ControlFlow::Continue(false) => return Ok(Flow::Continue(())),
                    ControlFlow::Continue(true) => {}
                }
                document.objects(&mut |item| self.take(number, item, sink))
            });
            match outcome {
                Ok(Flow::Continue(())) => {}
                Ok(Flow::Break(())) => return,
                Err(fault) => self.reject(number, fault),
            }
        }
    }

    fn is_json(&self, text: &str) -> bool {
        match self.file.extension().and_then(|e| e.to_str()) {
            Some("json") => true,
            Some("yaml" | "yml") => false,
            _ => document::looks_like_json(text),
        }
    }

    fn take(&mut self, document: usize, item: document::Item, sink: &mut dyn Sink) -> Flow {
        match item.content {
            Ok(document::Content::Object(object, unknown)) => {
                let origin = Origin { file: Arc::clone(&self.file), document, line: item.line };
                return sink.take(Manifest { object, origin, unknown });
            }
            Ok(document::Content::Other(kind)) => *self.ignored.0.entry(kind).or_default() += 1,
            Err(fault) => self.reject(document, fault),
        }
        sink.passed_over()
    }

    fn reject(&mut self, document: usize, fault: Fault) {
        self.problems.push(ManifestError::new(Arc::clone(&self.file), document, fault));
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
            let entry = entry.map_err(unreadable)?;
            let file = entry.path();
            let kind = entry.file_type().map_err(unreadable)?;
            let is_directory = kind.is_dir() || kind.is_symlink() && file.is_dir();
            if is_manifest(&file) && !is_directory {
                found.push(file);
            }
        }
        found.sort();
        files.append(&mut found);
    }
    Ok(files)
}

/// Returns true for the names of manifests in a directory. Hidden files are none, as for the kubelet: editors
/// and other programs keep copies and locks in them.
fn is_manifest(file: &Path) -> bool {
    let is_hidden = file.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    !is_hidden && matches!(file.extension().and_then(|e| e.to_str()), Some("yaml" | "yml" | "json"))
}

fn read_text(path: &Path) -> Result<String, Error> {
    let bytes = read_bytes(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
    yaml::decode(bytes).map_err(|fault| Error::Manifests(vec![ManifestError::new(Arc::from(path), 1, fault)]))
}

/// Reads a regular file. Others may have no end, or block the reader: opening a FIFO waits for a writer.
fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::options().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        let found = file_type(metadata.file_type());
        return Err(io::Error::other(format!("expected a regular file, found {found}")));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len().min(LARGEST_FILE)).unwrap_or_default());
    // The file may grow while it is read.
    file.take(LARGEST_FILE + 1).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > LARGEST_FILE) {
        return Err(io::Error::other(format!("expected a file of at most {LARGEST_FILE} bytes, found more")));
    }
    Ok(bytes)
}

fn file_type(file_type: fs::FileType) -> &'static str {
    match file_type {
        other if other.is_fifo() => "a FIFO",
        other if other.is_char_device() || other.is_block_device() => "a device",
        other if other.is_socket() => "a socket",
        other if other.is_dir() => "a directory",
        _ => "something else",
    }
}

/// The largest file that is read, in bytes: many times the Services and EndpointSlices of the largest
/// clusters.
const LARGEST_FILE: u64 = 1 << 30;

#[cfg(test)]
mod tests;
