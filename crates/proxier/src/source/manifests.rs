//! The objects of manifests that are read once: which of them a cluster takes, and what is wrong with the others.

use std::collections::HashSet;
use std::fmt;

use sluicegate_services::{Cluster, Invalid, Node, Service, ServiceName, Slice, SliceName};

use super::entry::{Entry, LeftOut, Validated, write_left_out};
use super::{Manifest, Origin};

/// The valid objects of manifests, and the problems of all.
#[derive(Debug, Default)]
pub struct Manifests {
    /// Every valid Node.
    pub nodes: Vec<Node>,
    /// The objects that are valid but not proxied, each with the reason: `Service demo/db: headless`.
    pub passed_over: Vec<String>,
    /// The fields that objects have and their kinds have not, each with its place.
    pub unknown: Vec<String>,
    /// The objects and items of objects that are invalid, and left out.
    pub problems: Vec<Problem>,
    entries: Vec<Entry>,
    names: HashSet<String>,
}

/// An object, or an item of one, that was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The place of its manifest.
    pub origin: Origin,
    /// What is wrong with it.
    pub invalid: Invalid,
    /// The service that is left out as a whole because of it.
    pub left_out: Option<ServiceName>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.origin)?;
        write_left_out(f, &self.invalid, self.left_out.as_ref())
    }
}

impl Manifests {
    /// Takes one object of a manifest.
    pub fn add(&mut self, manifest: Manifest) {
        let Manifest { object, origin, unknown } = manifest;
        let unknown = unknown.into_iter().map(|field| format!("{origin}: {field}: there is no such field"));
        self.unknown.extend(unknown);
        let Validated { entry, ignored, left_out } = Validated::of(&object);
        if let Some(object) = entry.as_ref().and_then(|entry| self.duplicate(entry, ignored)) {
            let invalid =
                Invalid::new(object, "metadata.name", "duplicate: the first manifest of this name is used");
            self.problems.push(Problem { origin, invalid, left_out: None });
            return;
        }
        let problem =
            |LeftOut { invalid, service }| Problem { origin: origin.clone(), invalid, left_out: service };
        self.problems.extend(left_out.into_iter().map(problem));
        match entry {
            Some(Entry::Node(node)) => self.nodes.push(*node),
            Some(entry) => {
                let passed_over = ignored.and_then(|why| Some(format!("{}: {why}", named(&entry)?)));
                self.passed_over.extend(passed_over);
                // What keeps nothing takes nobody's place: there may be a valid manifest of its name.
                if !entry.is_empty() {
                    self.entries.push(entry);
                }
            }
            None => {}
        }
    }

    /// Returns the valid Services that are to be proxied, in the order of the manifests.
    pub fn services(&self) -> impl Iterator<Item = (&ServiceName, &Service)> {
        self.entries.iter().filter_map(|entry| match entry {
            Entry::Service { name, service, .. } => Some((name, service.as_deref()?)),
            _ => None,
        })
    }

    /// Returns the valid slices, in the order of the manifests.
    pub fn slices(&self) -> impl Iterator<Item = (&SliceName, &Slice)> {
        self.entries.iter().filter_map(|entry| match entry {
            Entry::Slice { name, slice } => Some((name, slice.as_ref()?)),
            _ => None,
        })
    }

    /// Returns the cluster that the manifests describe, seen from `node`, and what was left out.
    #[must_use]
    pub fn into_cluster(self, node: Node) -> (Cluster, Vec<Problem>) {
        let mut cluster = Cluster::new(node);
        self.entries.into_iter().for_each(|entry| entry.put(&mut cluster));
        (cluster, self.problems)
    }

    /// Returns the object if one of its kind and name was taken before, and notes the name. An object that is
    /// invalid as a whole takes no name, so that a valid one of the same name is used.
    fn duplicate(&mut self, entry: &Entry, ignored: Option<&str>) -> Option<String> {
        let owner = match entry {
            Entry::Service { service, .. } if service.is_some() || ignored.is_some() => None,
            Entry::Slice { slice: Some(slice), .. } => Some(&slice.service),
            _ => return None,
        };
        let object = named(entry)?;
        let text = owner.map_or_else(|| object.clone(), |owner| format!("{object} of Service {owner}"));
        (!self.names.insert(object)).then_some(text)
    }
}

/// Returns the kind and name of a Service or an EndpointSlice.
fn named(entry: &Entry) -> Option<String> {
    match entry {
        Entry::Service { name, .. } => Some(format!("Service {name}")),
        Entry::Slice { name, .. } => Some(format!("EndpointSlice {name}")),
        Entry::Node(_) | Entry::ServiceCidr { .. } => None,
    }
}

#[cfg(test)]
mod tests;
