//! The kernel's description of its sets.

use crate::{CreateOptions, Entry, Family, Reason, SetName, SetSpec, SetType};

/// A set as the kernel describes it.
///
/// A set to create is described by a [`SetSpec`]; [`spec`](Self::spec) converts to one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SetInfo {
    /// Its name.
    pub name: SetName,
    /// Its type.
    pub kind: SetType,
    /// Its family.
    pub family: Family,
    /// The revision of the type that it was created with.
    pub revision: u8,
    /// Its index, from protocol 7 on.
    pub index: Option<u16>,
    /// Its options, including those that the kernel chose.
    pub options: CreateOptions,
    /// Its size in memory, in bytes.
    pub memory: u32,
    /// The number of rules and lists that refer to it. A set with references cannot be destroyed.
    pub references: u32,
    /// The number of its entries, from Linux 4.9 on. Entries whose timeout has just passed may still be
    /// counted.
    pub entries: Option<u32>,
}

impl SetInfo {
    /// Returns the specification that creates a set like this one.
    ///
    /// # Errors
    /// When it has a name or options that no command can give.
    pub fn spec(&self) -> Result<SetSpec, Reason> {
        let name = SetName::new(&self.name.to_text())?;
        SetSpec::new(name, self.kind, self.family, self.options.clone())
    }
}

/// A set and its entries, in the kernel's order.
///
/// ```no_run
/// use sluicegate_ipset::Client;
///
/// for listing in Client::open()?.list(None)? {
///     println!("{}: {} entries, {} bytes", listing.info.name, listing.entries.len(), listing.info.memory);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Listing {
    /// The set.
    pub info: SetInfo,
    /// Its entries.
    pub entries: Vec<Entry>,
}

/// A set of which only the head is listed, as `ipset list -terse` does.
impl From<SetInfo> for Listing {
    fn from(info: SetInfo) -> Self {
        Self { info, entries: Vec::new() }
    }
}

/// The type, family and revision of a set, as [`Client::header`](crate::Client::header) returns them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Header {
    /// Its type.
    pub kind: SetType,
    /// Its family.
    pub family: Family,
    /// The revision of the type that it was created with.
    pub revision: u8,
}

/// The revisions of a type that a kernel has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Revisions {
    /// The oldest revision.
    pub min: u8,
    /// The newest revision.
    pub max: u8,
}
