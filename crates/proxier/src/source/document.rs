//! The documents of a manifest file, their kinds, and the objects of lists.

use k8s_openapi::Resource;
use k8s_openapi::api::core::v1::{Node, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::ServiceCIDR;
use serde::de::DeserializeOwned;

use super::{Object, json};
use crate::yaml::{self, Fault};

/// Splits a file into documents, and parses each on demand. Empty documents (blank, or only comments) count,
/// as they do for a reader of the file.
pub(super) fn split(text: &str, is_json: bool) -> Box<dyn Iterator<Item = Result<Document<'_>, Fault>> + '_> {
    if is_json {
        return Box::new(json::documents(text));
    }
    Box::new(yaml_parts(text).into_iter().map(|(line, part)| yaml::parse(part, line).map(Document::from)))
}

/// A document before its kind is known.
pub(super) enum Document<'a> {
    Empty,
    Yaml(yaml::Node),
    Json(json::Value<'a>),
}

impl From<Option<yaml::Node>> for Document<'_> {
    fn from(node: Option<yaml::Node>) -> Self {
        match node {
            // `null` says as much as nothing.
            None | Some(yaml::Node { value: yaml::Value::Null, .. }) => Self::Empty,
            Some(node) => Self::Yaml(node),
        }
    }
}

impl Document<'_> {
    /// Returns the objects of the document: one, or those of a list, which may be an array without a head.
    pub(super) fn objects(self) -> Result<Vec<Item>, Fault> {
        match self {
            Self::Empty => Ok(Vec::new()),
            Self::Yaml(node) => objects(&node),
            Self::Json(value) => objects(&value),
        }
    }
}

/// An object, or why it cannot be read.
pub(super) struct Item {
    pub(super) line: usize,
    pub(super) content: Result<Content, Fault>,
}

pub(super) enum Content {
    Object(Object),
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
    /// Returns the elements of `items`.
    fn items(&self) -> Result<Vec<Self>, Fault>;
    /// Deserializes the value. `path` is its path in messages (`items[3]`, or empty).
    fn typed<T: DeserializeOwned>(&self, path: &str) -> Result<T, Fault>;
}

impl Value for yaml::Node {
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

    fn items(&self) -> Result<Vec<Self>, Fault> {
        match self.get("items").map(|node| (&node.value, node)) {
            None | Some((yaml::Value::Null, _)) => Ok(Vec::new()),
            Some((yaml::Value::Sequence(items), _)) => Ok(items.to_vec()),
            Some((_, node)) => Err(node.fault("items: expected a list".to_owned())),
        }
    }

    fn typed<T: DeserializeOwned>(&self, path: &str) -> Result<T, Fault> {
        yaml::typed(self, path)
    }
}

fn string(node: &yaml::Node, key: &str) -> Result<Option<String>, Fault> {
    match node.get(key).map(|node| (&node.value, node)) {
        None | Some((yaml::Value::Null, _)) => Ok(None),
        Some((yaml::Value::String(text), _)) => Ok(Some(text.clone())),
        Some((_, node)) => Err(node.fault(format!("{key}: expected a string"))),
    }
}

#[derive(Clone, Default)]
pub(super) struct Head {
    pub(super) api_version: Option<String>,
    pub(super) kind: Option<String>,
}

fn objects<V: Value>(value: &V) -> Result<Vec<Item>, Fault> {
    if let Some(elements) = value.elements()? {
        let elements = elements.into_iter().enumerate();
        let nothing = Head::default();
        return Ok(elements.map(|(index, item)| list_item(&item, &nothing, &format!("[{index}]"))).collect());
    }
    let head = value.head()?;
    let Some(kind) = &head.kind else {
        return Err(Fault {
            line: value.line(),
            column: None,
            reason: "the document has no kind".to_owned(),
        });
    };
    // Every list kind of the API ends so, and no other kind does; `v1 List` itself may mix kinds.
    let Some(element) = kind.strip_suffix("List") else {
        return Ok(vec![object(value, &head, "")]);
    };
    let fallback = Head {
        api_version: head.api_version.clone(),
        kind: Some(element.to_owned()).filter(|kind| !kind.is_empty()),
    };
    let items = value.items()?.into_iter().enumerate();
    Ok(items.map(|(index, item)| list_item(&item, &fallback, &format!("items[{index}]"))).collect())
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
    let (version, kind) = (head.api_version.as_deref().unwrap_or(""), head.kind.as_deref().unwrap_or(""));
    let content = if is::<Service>(version, kind) {
        value.typed(path).map(|object| Content::Object(Object::Service(object)))
    } else if is::<EndpointSlice>(version, kind) {
        value.typed(path).map(|object| Content::Object(Object::EndpointSlice(object)))
    } else if is::<Node>(version, kind) {
        value.typed(path).map(|object| Content::Object(Object::Node(object)))
    } else if is::<ServiceCIDR>(version, kind) {
        value.typed(path).map(|object| Content::Object(Object::ServiceCidr(object)))
    } else {
        Ok(Content::Other(format!("{version} {kind}").trim_start().to_owned()))
    };
    Item { line: value.line(), content }
}

fn is<R: Resource>(api_version: &str, kind: &str) -> bool {
    R::API_VERSION == api_version && R::KIND == kind
}

/// Splits at lines that begin with `---`, as Kubernetes does. Returns each part with its first line.
fn yaml_parts(text: &str) -> Vec<(usize, &str)> {
    let mut parts = Vec::new();
    let (mut start, mut start_line, mut offset) = (0, 1, 0);
    for (index, line) in text.split_inclusive('\n').enumerate() {
        if let Some(rest) = line.strip_prefix("---")
            && (rest.is_empty() || rest.starts_with(char::is_whitespace))
        {
            if !is_prologue(&text[start..offset]) || !parts.is_empty() {
                parts.push((start_line, &text[start..offset]));
            }
            // What follows the marker on its own line belongs to the document.
            (start, start_line) = (offset + "---".len(), index + 1);
        }
        offset += line.len();
    }
    parts.push((start_line, &text[start..]));
    parts
}

/// Returns true for text before the first marker that is not a document: blank, comments, or `%YAML`
/// directives.
fn is_prologue(text: &str) -> bool {
    text.lines().map(str::trim).all(|line| line.is_empty() || line.starts_with(['#', '%']))
}
