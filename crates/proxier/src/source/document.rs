//! One document of a manifest file: where it begins, what kind of object it holds, and the objects of a list.

use k8s_openapi::Resource;
use k8s_openapi::api::core::v1::{Node, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::ServiceCIDR;
use serde::de::DeserializeOwned;

use super::{Object, json, yaml};

/// Splits a file into documents, each parsed when it is asked for. Empty documents (blank, or only comments) stay, so that
/// numbers are those a person counts.
pub(super) fn split(text: &str, is_json: bool) -> Box<dyn Iterator<Item = Result<Document<'_>, Fault>> + '_> {
    if is_json {
        return Box::new(json::documents(text));
    }
    Box::new(yaml_parts(text).into_iter().map(|(line, part)| yaml::parse(part, line).map(Document::from)))
}

/// A document before it is known what it holds.
pub(super) enum Document<'a> {
    Empty,
    Yaml(yaml::Node),
    Json(json::Value<'a>),
}

impl From<Option<yaml::Node>> for Document<'_> {
    fn from(node: Option<yaml::Node>) -> Self {
        node.map_or(Self::Empty, Self::Yaml)
    }
}

impl Document<'_> {
    /// The objects of the document: one, or those of a list.
    pub(super) fn objects(self) -> Result<Vec<Item>, Fault> {
        match self {
            Self::Empty => Ok(Vec::new()),
            Self::Yaml(node) => objects(&node),
            Self::Json(value) => objects(&value),
        }
    }
}

/// One object, or what is wrong with it.
pub(super) struct Item {
    pub(super) line: usize,
    pub(super) content: Result<Content, Fault>,
}

pub(super) enum Content {
    Object(Object),
    /// API version and kind of an object that is not read.
    Other(String),
}

/// What is wrong, and where in the file.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) line: usize,
    pub(crate) column: Option<usize>,
    pub(crate) reason: String,
}

/// A parsed value of either format.
pub(super) trait Value: Sized {
    /// The line on which it begins.
    fn line(&self) -> usize;
    /// `apiVersion` and `kind`; either may be missing.
    fn head(&self) -> Result<Head, Fault>;
    /// The elements of `items`, which must be a list.
    fn items(&self) -> Result<Vec<Self>, Fault>;
    /// The value as a typed object. `path` names it in messages (`items[3]`, or nothing).
    fn typed<T: DeserializeOwned>(&self, path: &str) -> Result<T, Fault>;
}

#[derive(Clone, Default)]
pub(super) struct Head {
    pub(super) api_version: Option<String>,
    pub(super) kind: Option<String>,
}

fn objects<V: Value>(value: &V) -> Result<Vec<Item>, Fault> {
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

/// Cuts at lines that begin with `---`, as Kubernetes does, and tells each part's first line.
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

/// Before the first marker: nothing, comments, or `%YAML` directives make no document.
fn is_prologue(text: &str) -> bool {
    text.lines().map(str::trim).all(|line| line.is_empty() || line.starts_with(['#', '%']))
}
