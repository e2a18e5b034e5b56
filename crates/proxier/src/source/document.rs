//! The documents of a manifest file, their kinds, and the objects of lists.

use std::iter;
use std::ops::ControlFlow;

use k8s_openapi::Resource;
use k8s_openapi::api::core::v1::{Node, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::ServiceCIDR;
use serde::de::DeserializeOwned;
use strsim::osa_distance as distance;

use super::{Object, json};
use crate::Visible;
use crate::yaml::{self, Fault};

/// Splits a file into documents, which are parsed on demand. Empty documents (blank, or only comments) count,
/// as they do for a reader of the file.
pub(super) fn split(text: &str, is_json: bool) -> Box<dyn Iterator<Item = Result<Document<'_>, Fault>> + '_> {
    if is_json {
        return Box::new(json::documents(text).map(|next| next.map(Document::Json)));
    }
    Box::new(yaml_parts(text).map(|(line, text)| Ok(Document::Yaml { line, text })))
}

/// Returns whether a text that nothing names YAML is to be read as JSON. Text that is neither is, where its first
/// key is quoted, since then an error of JSON says more.
pub(super) fn looks_like_json(text: &str) -> bool {
    let Some(inside) = text.trim_start().strip_prefix('{') else { return false };
    // YAML has keys without quotes, and lines between documents; no text of JSON begins a line so.
    if !inside.trim_start().starts_with(['"', '}']) || text.contains("\n---") {
        return false;
    }
    json::documents(text).all(|value| value.is_ok())
        || yaml_parts(text).any(|(line, part)| yaml::parse(part, line).is_err())
}

/// A document before it is parsed.
pub(super) enum Document<'a> {
    Yaml { line: usize, text: &'a str },
    Json(json::Value<'a>),
}

/// Whether to go on.
pub(super) type Flow = ControlFlow<()>;

impl Document<'_> {
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Yaml { text, .. } => text,
            Self::Json(value) => value.text(),
        }
    }

    /// Returns the line on which the document begins.
    pub(super) fn line(&self) -> usize {
        match self {
            Self::Yaml { line, .. } => *line,
            Self::Json(value) => value.line(),
        }
    }

    /// Passes the objects of the document to `sink`, one at a time: one, or those of a list, which may be an
    /// array without a head.
    pub(super) fn objects(&self, sink: &mut dyn FnMut(Item) -> Flow) -> Result<Flow, Fault> {
        match self {
            Self::Yaml { line, text } => {
                if text.len() > LONG
                    && let Some(flow) = long(text, *line, sink)?
                {
                    return Ok(flow);
                }
                match yaml::parse(text, *line)? {
                    // `null` says as much as nothing.
                    None | Some(yaml::Node { value: yaml::Value::Null, .. }) => Ok(Flow::Continue(())),
                    Some(node) => objects(&node, sink),
                }
            }
            Self::Json(value) if value.text() == "null" => Ok(Flow::Continue(())),
            Self::Json(value) => {
                value.check_keys()?;
                objects(value, sink)
            }
        }
    }
}

/// An object, or why it cannot be read.
pub(super) struct Item {
    pub(super) line: usize,
    pub(super) content: Result<Content, Fault>,
}

pub(super) enum Content {
    /// An object, and the paths of the fields that its kind does not have.
    Object(Object, Vec<String>),
    /// API version and kind of an object that is not read.
    Other(String),
}

/// A parsed value, YAML or JSON.
pub(super) trait Value: Sized {
    /// Returns the line on which it begins.
    fn line(&self) -> usize;
    /// Returns `apiVersion` and `kind`; either may be missing.
    fn head(&self) -> Result<Head, Fault>;
    /// Returns the elements, if the value is an array.
    fn elements(&self) -> Result<Option<Vec<Self>>, Fault>;
    /// Returns the elements of `items`, if there are any or none is said.
    fn items(&self) -> Result<Option<Vec<Self>>, Fault>;
    /// Deserializes the value. `path` is its path in messages (`items[3]`, or empty).
    /// Also returns the paths of the fields that its type does not have.
    fn typed<T: DeserializeOwned>(&self, path: &str) -> Result<(T, Vec<String>), Fault>;
}

/// The fields of an object that its kind does not have, by their paths.
#[derive(Default)]
pub(super) struct Unknown {
    pub(super) fields: Vec<String>,
}

impl Unknown {
    /// Notes the path of a field, as `spec.ports[0].prot`.
    pub(super) fn note(&mut self, path: &serde_ignored::Path<'_>) {
        if self.fields.len() == MOST_UNKNOWN {
            return;
        }
        let mut text = String::new();
        // `?` is an optional value, which is no part of the document.
        for part in path.to_string().split('.').filter(|part| *part != "?") {
            match part.bytes().all(|b| b.is_ascii_digit()) {
                true => text += &format!("[{part}]"),
                false if text.is_empty() => text.push_str(part),
                false => text += &format!(".{part}"),
            }
        }
        self.fields.push(Visible(&text).clipped());
    }
}

/// The most unknown fields of an object that are named.
const MOST_UNKNOWN: usize = 20;

impl Value for yaml::Node<'_> {
    fn line(&self) -> usize {
        self.line
    }

    fn head(&self) -> Result<Head, Fault> {
        if !matches!(self.value, yaml::Value::Mapping(_)) {
            return Err(self.fault("expected an object with apiVersion and kind".to_owned()));
        }
        Ok(Head { api_version: string(self, "apiVersion")?, kind: string(self, "kind")? })
    }

    fn elements(&self) -> Result<Option<Vec<Self>>, Fault> {
        match &self.value {
            yaml::Value::Sequence(items) => Ok(Some(items.to_vec())),
            _ => Ok(None),
        }
    }

    fn items(&self) -> Result<Option<Vec<Self>>, Fault> {
        match self.get("items").map(|node| (&node.value, node)) {
            None | Some((yaml::Value::Null, _)) => Ok(None),
            Some((yaml::Value::Sequence(items), _)) => Ok(Some(items.to_vec())),
            Some((_, node)) => Err(node.fault("items: expected a list".to_owned())),
        }
    }

    fn typed<T: DeserializeOwned>(&self, path: &str) -> Result<(T, Vec<String>), Fault> {
        let mut unknown = Unknown::default();
        let object = yaml::typed(self, path, |path| unknown.note(&path))?;
        Ok((object, unknown.fields))
    }
}

fn string(node: &yaml::Node<'_>, key: &str) -> Result<Option<String>, Fault> {
    match node.get(key).map(|node| (&node.value, node)) {
        None | Some((yaml::Value::Null, _)) => Ok(None),
        Some((yaml::Value::String(text), _)) => Ok(Some(text.clone().into_owned())),
        Some((_, node)) => Err(node.fault(format!("{key}: expected a string"))),
    }
}

#[derive(Clone, Default)]
pub(super) struct Head {
    pub(super) api_version: Option<String>,
    pub(super) kind: Option<String>,
}

impl Head {
    /// Returns the head that an item may leave out, if this is the head of a list. Every list kind of the API
    /// ends so, and no other kind does; `v1 List` itself may mix kinds.
    fn element(&self) -> Option<Self> {
        let kind = self.kind.as_deref()?.strip_suffix("List")?;
        let kind = Some(kind.to_owned()).filter(|kind| !kind.is_empty());
        Some(Self { api_version: self.api_version.clone(), kind })
    }

    /// Refuses a list without `items`, as a writer leaves it that stopped there: it does not say that there is
    /// nothing. A kind of others may be called so and be no list.
    fn without_items(&self, line: usize) -> Result<Flow, Fault> {
        let is_mixed = self.texts() == (Service::API_VERSION, "List");
        if is_mixed || self.element().is_some_and(|element| element.is_read()) {
            let reason = format!("items: expected the list of {}, found none", self.texts().1);
            return Err(Fault { line, column: None, reason });
        }
        Ok(Flow::Continue(()))
    }

    /// Returns true for the head of an object that is read.
    fn is_read(&self) -> bool {
        let (version, kind) = self.texts();
        is::<Service>(version, kind)
            || is::<EndpointSlice>(version, kind)
            || is::<Node>(version, kind)
            || is::<ServiceCIDR>(version, kind)
    }

    fn texts(&self) -> (&str, &str) {
        (self.api_version.as_deref().unwrap_or(""), self.kind.as_deref().unwrap_or(""))
    }
}

fn objects<V: Value>(value: &V, sink: &mut dyn FnMut(Item) -> Flow) -> Result<Flow, Fault> {
    if let Some(elements) = value.elements()? {
        let nothing = Head::default();
        let mut elements = elements.into_iter().enumerate();
        return Ok(
            elements.try_for_each(|(index, item)| sink(list_item(&item, &nothing, &place(index, true))))
        );
    }
    let head = head(value)?;
    let Some(element) = head.element() else { return Ok(sink(object(value, &head, ""))) };
    let Some(items) = value.items()? else { return head.without_items(value.line()) };
    let mut items = items.into_iter().enumerate();
    Ok(items.try_for_each(|(index, item)| sink(list_item(&item, &element, &place(index, false)))))
}

/// Passes the objects of a long document to `sink`. Each item of a list is parsed when its turn comes: the
/// tree of all of them takes many times the text. Returns `None` for a document that has to be parsed as a
/// whole.
fn long(text: &str, line: usize, sink: &mut dyn FnMut(Item) -> Flow) -> Result<Option<Flow>, Fault> {
    let Some(outline) = yaml::outline(text, line)? else { return Ok(None) };
    let (element, is_array) = match &outline.value {
        yaml::Value::Sequence(_) => (Head::default(), true),
        yaml::Value::Mapping(_) => {
            let head = head(&outline)?;
            match head.element() {
                Some(element) => (element, false),
                None if head.is_read() => return Ok(None),
                None => return Ok(Some(sink(object(&outline, &head, "")))),
            }
        }
        _ => return Ok(None),
    };
    let mut index = 0;
    let flow = yaml::elements(text, line, &mut |item| {
        let flow = sink(list_item(&item, &element, &place(index, is_array)));
        index += 1;
        flow
    })?;
    match flow {
        Some(flow) => Ok(Some(flow)),
        None => head(&outline)?.without_items(line).map(Some),
    }
}

fn head<V: Value>(value: &V) -> Result<Head, Fault> {
    let head = value.head()?;
    if head.kind.is_none() {
        let reason = "the document has no kind".to_owned();
        return Err(Fault { line: value.line(), column: None, reason });
    }
    Ok(head)
}

/// The path of an item in messages.
fn place(index: usize, is_array: bool) -> String {
    if is_array { format!("[{index}]") } else { format!("items[{index}]") }
}

/// An item of `ServiceList` may leave out its own kind and API version, as the API server's answers do.
fn list_item<V: Value>(item: &V, fallback: &Head, path: &str) -> Item {
    let fail = |fault| Item { line: item.line(), content: Err(fault) };
    match item.head() {
        Err(fault) => fail(fault),
        Ok(Head { kind: Some(kind), api_version }) => {
            object(item, &Head { kind: Some(kind), api_version }, path)
        }
        Ok(_) if fallback.kind.is_some() => object(item, fallback, path),
        Ok(_) => fail(Fault { line: item.line(), column: None, reason: format!("{path} has no kind") }),
    }
}

fn object<V: Value>(value: &V, head: &Head, path: &str) -> Item {
    let (version, kind) = head.texts();
    let content = if is::<Service>(version, kind) {
        value.typed(path).map(|(object, unknown)| Content::Object(Object::Service(object), unknown))
    } else if is::<EndpointSlice>(version, kind) {
        value.typed(path).map(|(object, unknown)| Content::Object(Object::EndpointSlice(object), unknown))
    } else if is::<Node>(version, kind) {
        value.typed(path).map(|(object, unknown)| Content::Object(Object::Node(object), unknown))
    } else if is::<ServiceCIDR>(version, kind) {
        value.typed(path).map(|(object, unknown)| Content::Object(Object::ServiceCidr(object), unknown))
    } else {
        match mistake(version, kind) {
            None => Ok(Content::Other(format!("{version} {kind}"))),
            Some(reason) => {
                let place = if path.is_empty() { String::new() } else { format!("{path}: ") };
                Err(Fault { line: value.line(), column: None, reason: place + &reason })
            }
        }
    };
    Item { line: value.line(), content }
}

/// Says what is wrong with API version and kind of an object that is not read, if that can hardly be an
/// object of another kind. Passing one over would delete what it describes.
fn mistake(version: &str, kind: &str) -> Option<String> {
    let read = [
        (Service::API_VERSION, Service::KIND),
        (EndpointSlice::API_VERSION, EndpointSlice::KIND),
        (Node::API_VERSION, Node::KIND),
        (ServiceCIDR::API_VERSION, ServiceCIDR::KIND),
    ];
    if version.is_empty() {
        let meant = read.iter().find(|(_, known)| *known == kind);
        let meant = meant.map(|(version, _)| format!(" {version}")).unwrap_or_default();
        return Some(format!("expected apiVersion{meant} of kind {kind}, found none"));
    }
    let group = |version: &str| version.split_once('/').map_or("", |(group, _)| group).to_lowercase();
    let is_near = |a: &str, b: &str| distance(a, b) <= 2;
    let is_closed = CLOSED.contains(&version);
    if let Some((right, _)) = read.iter().find(|(_, known)| *known == kind) {
        // The same kind of another group, as a Service of Knative, is another kind.
        // Of the group without a name, this is what it is called in speech.
        let is_core = version.starts_with("core/") && group(right).is_empty();
        let is_meant = is_closed || is_core || is_near(&group(right), &group(version));
        return is_meant.then(|| format!("expected apiVersion {right} of kind {kind}, found {version}"));
    }
    if KINDS.iter().any(|(of, kinds)| *of == version && kinds.contains(&kind)) {
        return None;
    }
    let is_meant = |(right, known): &&(&str, &str)| {
        is_near(&known.to_lowercase(), &kind.to_lowercase()) && is_near(&group(right), &group(version))
    };
    match read.iter().find(is_meant) {
        Some((_, known)) => Some(format!("{version} has no kind {kind}: did you mean {known}?")),
        None => is_closed.then(|| format!("{version} has no kind {kind}")),
    }
}

/// The versions whose kinds are all in [`KINDS`], and to which Kubernetes adds none.
const CLOSED: [&str; 2] = [Service::API_VERSION, EndpointSlice::API_VERSION];

/// The kinds of the API versions of those that are read, as of Kubernetes 1.36, without lists.
const KINDS: [(&str, &[&str]); 3] = [
    (
        Service::API_VERSION,
        &[
            "Binding",
            "ComponentStatus",
            "ConfigMap",
            "Endpoints",
            "Event",
            "LimitRange",
            "Namespace",
            "Node",
            "PersistentVolume",
            "PersistentVolumeClaim",
            "Pod",
            "PodTemplate",
            "ReplicationController",
            "ResourceQuota",
            "Secret",
            "Service",
            "ServiceAccount",
            "Status",
        ],
    ),
    (EndpointSlice::API_VERSION, &["EndpointSlice"]),
    (ServiceCIDR::API_VERSION, &["Ingress", "IngressClass", "IPAddress", "NetworkPolicy", "ServiceCIDR"]),
];

fn is<R: Resource>(api_version: &str, kind: &str) -> bool {
    R::API_VERSION == api_version && R::KIND == kind
}

/// Splits at lines that begin with `---`, as Kubernetes does. Returns each part with its first line.
fn yaml_parts(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let (mut rest, mut first_line, mut is_first) = (Some(text), 1, true);
    iter::from_fn(move || {
        loop {
            let text = rest.take()?;
            let start_line = first_line;
            let Some((part, lines, after)) = until_marker(text) else { return Some((start_line, text)) };
            // What follows the marker on its own line belongs to the document.
            (rest, first_line) = (Some(after), start_line + lines);
            if !is_first || !is_prologue(part) {
                is_first = false;
                return Some((start_line, part));
            }
        }
    })
}

/// Returns the text before the next marker, its number of lines, and what follows the marker.
fn until_marker(text: &str) -> Option<(&str, usize, &str)> {
    let at_start = text.starts_with("---").then_some(0);
    let later = text.match_indices("\n---").map(|(newline, _)| newline + 1);
    let mut markers = at_start.into_iter().chain(later).filter_map(|offset| {
        let (part, rest) = text.split_at_checked(offset)?;
        Some((part, rest.get("---".len()..)?))
    });
    let (part, after) =
        markers.find(|(_, after)| after.is_empty() || after.starts_with(char::is_whitespace))?;
    Some((part, part.bytes().filter(|byte| *byte == b'\n').count(), after))
}

/// Returns true for text before the first marker that is not a document: blank, comments, or `%YAML`
/// directives.
fn is_prologue(text: &str) -> bool {
    text.lines().map(str::trim).all(|line| line.is_empty() || line.starts_with(['#', '%']))
}

/// The length, in bytes, above which a document is not parsed as a whole, if it can be helped.
const LONG: usize = 1 << 20;
