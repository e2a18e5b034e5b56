//! The binary forms of extensions: what the kernel has for the options of a match or target.
//!
//! A [`Codec`] is a row for one revision of one extension: its size, how much of it the tool compares, and
//! its encoder and decoder, which stand side by side in a file of `matches/` or `targets/`. Layouts are those
//! of `linux/netfilter/xt_*.h`, `linux/netfilter_ipv4/ipt_*.h` and `linux/netfilter_ipv6/ip6t_*.h`; revisions
//! and defaults are those that iptables 1.8.9 uses.

mod matches;
mod mismatch;
pub(crate) mod options;
mod targets;
pub(crate) mod wire;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::OnceLock;

use sluicegate_iptables_save::{Family, Module, find_match, find_target};

pub use mismatch::{Mismatch, SetMismatch};
use options::{Built, Given};
use wire::{Reader, Writer, xt_align};

/// Whether an extension is a match or a target: the two have names of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A match, loaded by `-m` or by `-p`.
    Match,
    /// A target, named by `-j`.
    Target,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::Match { "match" } else { "target" })
    }
}

/// The names and numbers of ipset's sets: a rule has a set by name, the kernel by number.
pub trait Sets {
    /// Returns the number of a set whose addresses are of the family, or of none.
    ///
    /// # Errors
    /// The reason why there is none.
    fn index(&self, name: &str, family: Family) -> Result<u16, SetMismatch>;

    /// Returns the name of a set, if there is one of that number.
    fn name(&self, index: u16) -> Option<String>;
}

/// A [`Sets`] that knows no sets, for rules that name none.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoSets;

impl Sets for NoSets {
    fn index(&self, name: &str, _: Family) -> Result<u16, SetMismatch> {
        Err(SetMismatch::Unknown { name: name.to_owned() })
    }

    fn name(&self, _: u16) -> Option<String> {
        None
    }
}

/// The binary form of one revision of an extension.
#[derive(Clone, Copy)]
pub struct Codec {
    name: &'static str,
    kernel_name: &'static str,
    kind: Kind,
    family: Option<Family>,
    revision: u8,
    size: usize,
    compared: usize,
    without: (usize, usize),
    encode: Encode,
    decode: Decode,
}

type Encode = fn(&Given<'_>, &mut Writer) -> Result<(), Mismatch>;
type Decode = fn(&mut Reader<'_>, &mut Built<'_>) -> Option<()>;

/// A match or target as the kernel has it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Binary {
    /// The name in the kernel, of at most 28 bytes: `state` is `conntrack` there.
    pub name: Cow<'static, str>,
    /// The revision of the structure.
    pub revision: u8,
    /// The structure, filled up to `XT_ALIGN`.
    pub data: Vec<u8>,
}

/// Returns the codecs of all extensions.
pub fn codecs() -> impl Iterator<Item = &'static Codec> {
    matches::all().chain(targets::all())
}

/// Returns the codecs that can write an extension, by the name that stands in a rule; newest revision first.
///
/// ```
/// use sluicegate_xtables::{Family, Kind, codecs_of};
///
/// let newest = codecs_of(Kind::Match, "conntrack", Family::Ipv4).next().expect("it is known");
/// assert_eq!(newest.revision(), 3);
/// assert_eq!(codecs_of(Kind::Match, "contrack", Family::Ipv4).count(), 0);
/// ```
pub fn codecs_of(kind: Kind, name: &str, family: Family) -> impl Iterator<Item = &'static Codec> {
    let named = index().in_rules.get(name).into_iter().flatten().copied();
    named.filter(move |codec| codec.kind == kind && codec.is_for(family))
}

/// Returns the codec that reads what the kernel has under this name and revision, if there is one.
#[must_use]
pub fn codec_for(kind: Kind, kernel_name: &str, revision: u8, family: Family) -> Option<&'static Codec> {
    let mut named = index().in_kernel.get(kernel_name)?.iter().copied();
    named.find(|codec| codec.kind == kind && codec.revision == revision && codec.is_for(family))
}

/// The codecs by their names: every rule of a table looks some up.
struct Index {
    in_rules: HashMap<&'static str, Vec<&'static Codec>>,
    in_kernel: HashMap<&'static str, Vec<&'static Codec>>,
}

fn index() -> &'static Index {
    static INDEX: OnceLock<Index> = OnceLock::new();
    INDEX.get_or_init(|| {
        let mut index = Index { in_rules: HashMap::new(), in_kernel: HashMap::new() };
        for codec in codecs() {
            index.in_rules.entry(codec.name).or_default().push(codec);
            index.in_kernel.entry(codec.kernel_name).or_default().push(codec);
        }
        index
    })
}

/// Whether a kernel has a revision of an extension, by its name there, for those that it was asked for.
#[derive(Debug, Default)]
pub(crate) struct Revisions(HashMap<String, Vec<(Kind, u8, bool)>>);

impl Revisions {
    pub(crate) fn get(&self, kind: Kind, name: &str, revision: u8) -> Option<bool> {
        let mut known = self.0.get(name)?.iter();
        known.find(|known| (known.0, known.1) == (kind, revision)).map(|(.., found)| *found)
    }

    pub(crate) fn insert(&mut self, kind: Kind, name: &str, revision: u8, found: bool) {
        self.0.entry(name.to_owned()).or_default().push((kind, revision, found));
    }
}

/// Returns the options of a match or target as iptables-save names them; `None` for what no codec can read, or
/// would not write again byte for byte.
///
/// ```
/// use sluicegate_iptables_save::Family;
/// use sluicegate_xtables::{Kind, NoSets, decode_extension};
///
/// let data = [&5_u32.to_ne_bytes()[..], &u32::MAX.to_ne_bytes(), &[1], &[0; 7]].concat();
/// let module = decode_extension(Kind::Match, "mark", 1, &data, Family::Ipv4, &NoSets).unwrap();
/// assert_eq!(module.value("mark"), Some("0x5"));
/// assert!(module.options[0].negated);
/// assert_eq!(decode_extension(Kind::Match, "mark", 1, &[5; 16], Family::Ipv4, &NoSets), None);
/// ```
#[must_use]
pub fn decode_extension(
    kind: Kind,
    kernel_name: &str,
    revision: u8,
    data: &[u8],
    family: Family,
    sets: &dyn Sets,
) -> Option<Module<'static>> {
    codec_for(kind, kernel_name, revision, family).and_then(|codec| codec.decode(data, family, sets))
}

impl Codec {
    /// Returns the name that stands in a rule: `state`, `NOTRACK`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the name that the kernel has for it: `conntrack`, `CT`.
    #[must_use]
    pub fn kernel_name(&self) -> &'static str {
        self.kernel_name
    }

    /// Returns whether it is a match or a target.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the revision of the structure.
    #[must_use]
    pub fn revision(&self) -> u8 {
        self.revision
    }

    /// Returns the size of the structure with the padding of `XT_ALIGN`.
    #[must_use]
    pub fn size(&self) -> usize {
        xt_align(self.size)
    }

    /// Returns how many bytes of the structure decide whether two rules are the same; the kernel keeps its
    /// own data behind them.
    #[must_use]
    pub fn compared(&self) -> usize {
        self.compared
    }

    fn is_for(&self, family: Family) -> bool {
        self.family.is_none_or(|own| own == family)
    }

    /// Writes a module. `module` is in the spelling of iptables-save
    /// ([`sluicegate_iptables_save::normalise`]), `written` the same as it stands in the rule.
    ///
    /// # Errors
    /// What is wrong with the options.
    pub fn encode(
        &self,
        module: &Module<'_>,
        written: &Module<'_>,
        family: Family,
        sets: &dyn Sets,
    ) -> Result<Binary, Mismatch> {
        let mut writer = Writer::with_capacity(self.size());
        (self.encode)(&Given { module, written, family, sets }, &mut writer)?;
        let mut data = writer.finish();
        if data.len() != self.size {
            return Err(Mismatch::Length { name: self.name, expected: self.size, found: data.len() });
        }
        data.resize(self.size(), 0);
        Ok(Binary { name: Cow::Borrowed(self.kernel_name), revision: self.revision, data })
    }

    /// Reads a structure; `None` if it says something that the options cannot, so that writing them again
    /// would change it.
    #[must_use]
    pub fn decode(&self, data: &[u8], family: Family, sets: &dyn Sets) -> Option<Module<'static>> {
        if data.len() != self.size() {
            return None;
        }
        let mut built = Built { module: Module::new(self.name), family, sets };
        let mut reader = Reader::new(data);
        (self.decode)(&mut reader, &mut built)?;
        let mut module = built.module;
        self.sort(&mut module, family);
        let writer =
            codecs_of(self.kind, &module.name, family).find(|codec| codec.revision == self.revision)?;
        let again = writer.encode(&module, &module, family, sets).ok()?;
        reader.is_same(&again.data, self.compared).then_some(module)
    }

    /// Puts options in the order in which iptables-save prints them; those of a policy repeat, and are in
    /// order.
    fn sort(&self, module: &mut Module<'_>, family: Family) {
        if module.options.len() < 2 {
            return;
        }
        let extension = match self.kind {
            Kind::Match => find_match(&module.name, family),
            Kind::Target => find_target(&module.name, family),
        };
        let Some(extension) = extension.filter(|_| module.name != "policy") else { return };
        let rows = extension.options();
        module.options.sort_by_key(|option| rows.iter().position(|row| row.name() == option.name));
    }

    const fn new(
        kind: Kind,
        name: &'static str,
        revision: u8,
        size: usize,
        encode: Encode,
        decode: Decode,
    ) -> Self {
        Self {
            name,
            kernel_name: name,
            kind,
            family: None,
            revision,
            size,
            compared: size,
            without: (0, 0),
            encode,
            decode,
        }
    }

    const fn v4(mut self) -> Self {
        self.family = Some(Family::Ipv4);
        self
    }

    const fn v6(mut self) -> Self {
        self.family = Some(Family::Ipv6);
        self
    }

    /// Sets the name that the kernel has, where it is another one.
    const fn kernel(mut self, name: &'static str) -> Self {
        self.kernel_name = name;
        self
    }

    /// Sets bytes that differ from one program to the next, and mean nothing.
    const fn without(mut self, bytes: Range<usize>) -> Self {
        self.without = (bytes.start, bytes.end);
        self
    }

    /// Returns what of a structure decides whether two rules are the same.
    pub(crate) fn identity<'a>(&self, data: &'a [u8]) -> [&'a [u8]; 2] {
        let (start, end) = self.without;
        [data.get(..start), data.get(end..self.compared)].map(|part| part.unwrap_or(data))
    }

    /// Sets where the kernel's own data start.
    const fn compared_to(mut self, offset: usize) -> Self {
        self.compared = offset;
        self
    }
}

impl fmt::Debug for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} revision {}, {} bytes", self.kind, self.kernel_name, self.revision, self.size)
    }
}
