//! Messages by what they say.

use std::fmt;

use sluicegate_netlink::DecodeError;
use sluicegate_netlink::attr::Attributes;

/// An attribute with all that is in it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Node {
    /// Its type.
    pub kind: u16,
    /// The payload.
    pub content: Content,
}

/// The payload of an attribute.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Content {
    /// Bytes.
    Bytes(Vec<u8>),
    /// Other attributes.
    Nested(Vec<Node>),
}

/// Reads attributes; those of different types are sorted, as their order says nothing. Those of one type keep
/// theirs: they are a list.
///
/// # Errors
/// When the bytes are not attributes.
pub fn read(bytes: &[u8]) -> Result<Vec<Node>, DecodeError> {
    let mut nodes = Vec::new();
    for attribute in Attributes::new(bytes) {
        let attribute = attribute?;
        let content = match attribute.nested {
            true => Content::Nested(read(attribute.payload)?),
            false => Content::Bytes(attribute.payload.to_vec()),
        };
        nodes.push(Node { kind: attribute.kind, content });
    }
    nodes.sort_by_key(|node| node.kind);
    Ok(nodes)
}

impl Node {
    /// Returns the attributes in it; none where it holds bytes.
    pub fn children(&mut self) -> &mut [Self] {
        match &mut self.content {
            Content::Nested(nodes) => nodes,
            Content::Bytes(_) => &mut [],
        }
    }
}

/// One attribute a line.
#[must_use]
pub fn lines(nodes: &[Node]) -> Vec<String> {
    nodes.iter().flat_map(|node| node.to_string().lines().map(str::to_owned).collect::<Vec<_>>()).collect()
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.kind)?;
        match &self.content {
            Content::Bytes(bytes) => {
                bytes.iter().try_for_each(|byte| write!(f, " {byte:02x}"))?;
                let text = bytes.strip_suffix(&[0]).unwrap_or(bytes);
                let printable = text.len() > 3 && text.iter().all(u8::is_ascii_graphic);
                if printable { write!(f, "  {:?}", String::from_utf8_lossy(text)) } else { Ok(()) }
            }
            Content::Nested(nodes) => lines(nodes).iter().try_for_each(|line| write!(f, "\n  {line}")),
        }
    }
}
