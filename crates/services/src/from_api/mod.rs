//! Conversion from the objects of the Kubernetes API, as `k8s-openapi` has them; feature `k8s-openapi`.
//!
//! It compiles with every version of the API that `k8s-openapi` knows, and so uses nothing that only some of
//! them have but inside the macros that `k8s-openapi` gives for that.

mod node;
mod service;
mod slice;

use crate::{Invalid, NotServed};

/// An object of the API that was reduced to what a proxy needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Converted<N, T> {
    /// The name of the object.
    pub name: N,
    /// Its value, or why it is not for this proxy.
    pub admission: Admission<T>,
    /// The items of the object that are invalid, and left out of the value.
    pub left_out: Vec<Invalid>,
    /// The valid addresses of the object that are not served here.
    pub not_served: Vec<NotServed>,
}

/// Whether a valid object is for this proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission<T> {
    /// The object is to be proxied.
    Accepted(T),
    /// The object is valid, but not for this proxy; the text says why.
    Ignored(&'static str),
}

impl<N, T> Converted<N, T> {
    const fn ignored(name: N, why: &'static str) -> Self {
        Self { name, admission: Admission::Ignored(why), left_out: Vec::new(), not_served: Vec::new() }
    }
}

impl<T> Admission<T> {
    /// Returns the value of an object that is to be proxied.
    pub fn accepted(self) -> Option<T> {
        match self {
            Self::Accepted(value) => Some(value),
            Self::Ignored(_) => None,
        }
    }
}
