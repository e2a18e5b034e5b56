//! The match of IPsec policies, whose options repeat for each element of a policy.

use std::borrow::Cow;

use crate::Error;
use crate::spec::{Module, OptionUse};
use crate::typed::{Not, Typed, expect, read, write};

/// The IPsec policy that applies to the packet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    /// `in` for the policy that it was decapsulated by, `out` for the one that it will be encapsulated by.
    pub dir: String,
    /// `ipsec` (the default) or `none`.
    pub pol: Option<String>,
    /// The elements are the whole policy, in order; otherwise any of them has to be in it.
    pub strict: bool,
    /// The elements of the policy, at most four.
    pub elements: Vec<PolicyElement>,
}

/// An element of a policy: one transformation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PolicyElement {
    /// Request id.
    pub reqid: Option<Not<u32>>,
    /// Security parameter index.
    pub spi: Option<Not<u32>>,
    /// `ah`, `esp` or `ipcomp`.
    pub proto: Option<Not<String>>,
    /// `transport` or `tunnel`.
    pub mode: Option<Not<String>>,
    /// The end of the tunnel.
    pub tunnel_dst: Option<Not<String>>,
    /// The beginning of the tunnel.
    pub tunnel_src: Option<Not<String>>,
}

impl Typed for Policy {
    const NAME: &'static str = "policy";

    fn of(module: &Module<'_>) -> Result<Self, Error> {
        let name = Self::NAME;
        expect(module, name, &[&HEAD[..], &ELEMENT[..]].concat())?;
        let is_head = |option: &OptionUse<'_>| HEAD.contains(&&*option.name) && option.name != "next";
        let rest: Vec<_> = module.options.iter().filter(|option| !is_head(option)).cloned().collect();
        let element = |options: &[OptionUse<'_>]| {
            let part = Module { options: options.to_vec(), ..Module::new(name) };
            Ok(PolicyElement {
                reqid: read(&part, name, "reqid")?,
                spi: read(&part, name, "spi")?,
                proto: read(&part, name, "proto")?,
                mode: read(&part, name, "mode")?,
                tunnel_dst: read(&part, name, "tunnel-dst")?,
                tunnel_src: read(&part, name, "tunnel-src")?,
            })
        };
        let elements = match rest.is_empty() {
            true => Vec::new(),
            false => rest.split(|option| option.name == "next").map(element).collect::<Result<_, Error>>()?,
        };
        Ok(Self {
            dir: read(module, name, "dir")?,
            pol: read(module, name, "pol")?,
            strict: read(module, name, "strict")?,
            elements,
        })
    }

    fn module(&self) -> Module<'static> {
        let mut options = Vec::new();
        write(&self.dir, "dir", &mut options);
        write(&self.pol, "pol", &mut options);
        write(&self.strict, "strict", &mut options);
        for (at, element) in self.elements.iter().enumerate() {
            if at > 0 {
                options.push(OptionUse::new("next", []));
            }
            write(&element.reqid, "reqid", &mut options);
            write(&element.spi, "spi", &mut options);
            write(&element.proto, "proto", &mut options);
            write(&element.mode, "mode", &mut options);
            write(&element.tunnel_dst, "tunnel-dst", &mut options);
            write(&element.tunnel_src, "tunnel-src", &mut options);
        }
        Module { name: Cow::Borrowed(Self::NAME), options, implicit: false }
    }
}

/// The options of the policy as a whole.
const HEAD: [&str; 4] = ["dir", "pol", "strict", "next"];

/// The options of an element.
const ELEMENT: [&str; 6] = ["reqid", "spi", "proto", "mode", "tunnel-dst", "tunnel-src"];
