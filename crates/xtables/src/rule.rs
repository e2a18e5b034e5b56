//! Rules between words and bytes, whatever back end they are for.

use std::borrow::Cow;

use sluicegate_iptables_save::{
    Action as LineAction, Chain, Counters, Family, Module, OptionUse, Place, Rule as Line, Spec, Target,
    check, check_words, find_target, printable,
};

use crate::entry::{read_head, says_head, write_head};
use crate::extension::{Binary, Codec, Kind, Mismatch, Sets, codecs_of, decode_extension};
use crate::plain::{self, Then};

/// A rule as the kernel has it, but for offsets and counters.
///
/// ```
/// use sluicegate_iptables_save::{Chain, Family, Place};
/// use sluicegate_xtables::{Action, Kernel, Kind, NoSets, Rule, Sets};
///
/// struct Everything;
///
/// impl Kernel for Everything {
///     fn has(&self, _: Kind, _: &str, _: u8) -> bool {
///         true
///     }
///     fn sets(&self) -> &dyn Sets {
///         &NoSets
///     }
/// }
///
/// let place = Place { table: "filter", chain: "INPUT", family: Family::Ipv4 };
/// let rules = Rule::compile("-p tcp --dport http -j ACCEPT", place, &Everything)?;
/// assert_eq!(rules[0].matches[0].name, "tcp");
/// assert_eq!(rules[0].action, Action::Verdict(-2));
/// assert_eq!(rules[0].words(Family::Ipv4, &NoSets)?, "-p tcp -m tcp --dport 80 -j ACCEPT");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rule {
    /// `struct ipt_ip` or `struct ip6t_ip6`.
    pub head: Vec<u8>,
    /// The matches, in order.
    pub matches: Vec<Binary>,
    /// What is done with a packet that matches.
    pub action: Action,
}

/// The action of a rule: its target or verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Nothing: the next rule is looked at. A rule that only counts.
    Continue,
    /// A verdict as the standard target has it, which is negative: `-NF_ACCEPT - 1`.
    Verdict(i32),
    /// `-j` or `-g` with a chain.
    Chain(String),
    /// A target extension.
    Target(Binary),
}

/// What the kernel has: revisions of extensions, and sets.
pub trait Kernel {
    /// Returns whether the kernel has this revision of an extension, under the name that the kernel uses.
    fn has(&self, kind: Kind, name: &str, revision: u8) -> bool;

    /// Returns the sets.
    fn sets(&self) -> &dyn Sets;
}

impl Rule {
    /// Reads the words of a rule, checks them for their place, and encodes them: more than one rule where
    /// `-s` or `-d` list several addresses.
    ///
    /// # Errors
    /// [`CompileError::Words`] for words that cannot be a rule, [`CompileError::Unsupported`] for an
    /// extension that the kernel or this crate does not have, [`CompileError::Value`] for what a structure
    /// cannot hold.
    pub fn compile(words: &str, place: Place<'_>, kernel: &dyn Kernel) -> Result<Vec<Self>, CompileError> {
        Ok(Self::compile_for_legacy(words, place, kernel)?.0)
    }

    /// The same, and where the words say that the counters start (`-c`), which is no part of a rule.
    pub(crate) fn compile_for_legacy(
        words: &str,
        place: Place<'_>,
        kernel: &dyn Kernel,
    ) -> Result<(Vec<Self>, Option<Counters>), CompileError> {
        match plain::compile(words, place, kernel) {
            Some(rule) => Ok((vec![rule], None)),
            None => Self::compile_in_general(words, place, kernel),
        }
    }

    pub(crate) fn compile_in_general(
        words: &str,
        place: Place<'_>,
        kernel: &dyn Kernel,
    ) -> Result<(Vec<Self>, Option<Counters>), CompileError> {
        let written = check(words, place)?;
        Ok((Self::of(&written, place.family, kernel)?, written.counters))
    }

    /// The same for the nft back end, whose kernel takes what the legacy one refuses: `TRACE` outside of the
    /// table raw, `TCPMSS` without `--syn`.
    pub(crate) fn compile_for_nft(
        words: &str,
        place: Place<'_>,
        kernel: &dyn Kernel,
    ) -> Result<(Vec<Self>, Option<Counters>), CompileError> {
        if let Some(rule) = plain::compile(words, place, kernel) {
            return Ok((vec![rule], None));
        }
        let written = match check(words, place) {
            Err(error @ sluicegate_iptables_save::Error::Place { .. }) => {
                let written = check_words(words, place)?;
                match written.target_name() {
                    Some("TRACE" | "TCPMSS") => written,
                    _ => return Err(error.into()),
                }
            }
            checked => checked?,
        };
        Ok((Self::of(&written, place.family, kernel)?, written.counters))
    }

    fn of(written: &Spec<'_>, family: Family, kernel: &dyn Kernel) -> Result<Vec<Self>, CompileError> {
        written.normal(family)?.iter().map(|spec| Self::encode(spec, written, family, kernel)).collect()
    }

    fn encode(
        spec: &Spec<'_>,
        written: &Spec<'_>,
        family: Family,
        kernel: &dyn Kernel,
    ) -> Result<Self, CompileError> {
        let head = write_head(spec, written, family)?;
        let mut matches = Vec::with_capacity(spec.matches.len());
        for (module, written) in spec.matches.iter().zip(&written.matches) {
            matches.push(encode_module(Kind::Match, module, written, family, kernel)?);
        }
        let action = match (&spec.target, &written.target) {
            (Some(target), Some(written)) => match verdict(target) {
                Some(verdict) => Action::Verdict(verdict),
                None if target.goto || find_target(&target.module.name, family).is_none() => {
                    Action::Chain(target.module.name.clone().into_owned())
                }
                None => {
                    let module = (&target.module, &written.module);
                    Action::Target(encode_module(Kind::Target, module.0, module.1, family, kernel)?)
                }
            },
            _ => Action::Continue,
        };
        Ok(Self { head, matches, action })
    }

    /// Returns the words of the rule, as iptables-save prints them.
    ///
    /// # Errors
    /// [`NoWords`] if the words would be those of another rule.
    pub fn words(&self, family: Family, sets: &dyn Sets) -> Result<String, NoWords> {
        self.plain_words(family, sets).map_or_else(|| self.words_in_general(family, sets), Ok)
    }

    pub(crate) fn plain_words(&self, family: Family, sets: &dyn Sets) -> Option<String> {
        fn parts(Binary { name, revision, data }: &Binary) -> (Cow<'_, str>, u8, &[u8]) {
            (Cow::Borrowed(name), *revision, data)
        }
        let then = match &self.action {
            Action::Continue => Then::Continue,
            Action::Verdict(verdict) => Then::Verdict(*verdict),
            Action::Chain(name) => Then::Chain(name),
            Action::Target(Binary { name, revision, data }) => Then::Target(name, *revision, data),
        };
        plain::words(&self.head, self.matches.iter().map(parts), then, family, sets)
    }

    pub(crate) fn words_in_general(&self, family: Family, sets: &dyn Sets) -> Result<String, NoWords> {
        Ok(crate::print::words(&self.spec(family, sets)?)?)
    }

    /// Returns the options of the rule, in the spelling and order of iptables-save.
    ///
    /// # Errors
    /// [`NoWords`] if the options would be those of another rule.
    pub fn spec(&self, family: Family, sets: &dyn Sets) -> Result<Spec<'static>, NoWords> {
        let mut first = None;
        let spec = self.shown(family, sets, &mut first);
        if let Some(no_words) = first {
            return Err(no_words);
        }
        if let Action::Chain(name) = &self.action {
            let goto = spec.target.as_ref().is_some_and(|target| target.goto);
            if !is_chain(name, (!goto).then_some(family)) {
                return Err(NoWords::Chain(name.clone()));
            }
        }
        if !says_head(&spec, &self.head, family) {
            return Err(NoWords::Head);
        }
        Ok(spec)
    }

    /// Returns the rule for people, with a remark in the place of options that cannot be shown, as the tool
    /// has it for a revision that it does not know.
    pub(crate) fn remarked(&self, family: Family, sets: &dyn Sets) -> Spec<'static> {
        self.shown(family, sets, &mut None)
    }

    /// Returns the options, with a remark in the place of those that cannot be shown, of which `first` becomes
    /// the first.
    fn shown(&self, family: Family, sets: &dyn Sets, first: &mut Option<NoWords>) -> Spec<'static> {
        let mut spec = Spec::default();
        let (generic, goto) = read_head(&self.head, family).unwrap_or_default();
        spec.generic = generic;
        let mut read = |kind, binary: &Binary| {
            let Binary { name, revision, data } = binary;
            decode_extension(kind, name, *revision, data, family, sets).unwrap_or_else(|| {
                let (name, revision) = (name.clone().into_owned(), *revision);
                let options = REMARK.iter().map(|word| OptionUse::new(*word, [])).collect();
                let module = Module { options, ..Module::new(name.clone()) };
                first.get_or_insert(NoWords::Extension { kind, name, revision });
                module
            })
        };
        spec.matches = self.matches.iter().map(|binary| read(Kind::Match, binary)).collect();
        let module = match &self.action {
            Action::Continue => None,
            Action::Verdict(verdict) => Some(Module::new(verdict_name(*verdict))),
            Action::Chain(chain) => Some(Module::new(chain.clone())),
            Action::Target(binary) => Some(read(Kind::Target, binary)),
        };
        spec.target = module.map(|module| Target { module, goto });
        spec
    }
}

/// A rule that cannot be encoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// The words cannot be a rule in this place.
    #[error(transparent)]
    Words(#[from] sluicegate_iptables_save::Error),
    /// A value that the structure of the kernel cannot hold, or a set that does not exist.
    #[error("{}{cause}", of_module(.module))]
    Value {
        /// The match or target, by its name in the rule; `None` for what is in the head of every rule.
        module: Option<(Kind, String)>,
        /// The reason.
        cause: Mismatch,
    },
    /// An extension that this crate has no binary form of, or the kernel no module.
    #[error("{0}")]
    Unsupported(#[from] Unsupported),
}

impl From<Mismatch> for CompileError {
    fn from(cause: Mismatch) -> Self {
        Self::Value { module: None, cause }
    }
}

fn of_module(module: &Option<(Kind, String)>) -> String {
    module.as_ref().map_or_else(String::new, |(kind, name)| format!("{kind} {name}: "))
}

/// Why a rule has no words that would make the same rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoWords {
    /// A chain that `-j` cannot name, for its name is that of a target, or none.
    #[error("-j cannot name the chain {}", printable(.0))]
    Chain(String),
    /// A match or target whose structure no options of iptables 1.8.9 say, or whose revision is not known here.
    #[error("the {kind} {} in revision {revision} cannot be expressed as iptables options", printable(.name))]
    Extension {
        /// Whether it is a match or a target.
        kind: Kind,
        /// Its name in the kernel.
        name: String,
        /// The revision of its structure.
        revision: u8,
    },
    /// A condition on addresses, interfaces or the protocol that no options say.
    #[error("the addresses, interfaces or protocol of the entry cannot be expressed as iptables options")]
    Head,
    /// Text that no quoting can carry.
    #[error(transparent)]
    Text(#[from] sluicegate_iptables_save::Error),
}

/// An extension that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} {name}: {reason}")]
#[non_exhaustive]
pub struct Unsupported {
    /// Whether it is a match or a target.
    pub kind: Kind,
    /// Its name in the rule.
    pub name: String,
    /// Why it cannot be used.
    pub reason: String,
}

impl Unsupported {
    /// Creates the error for an extension that cannot be used, for implementations of [`Kernel`].
    #[must_use]
    pub fn new(kind: Kind, name: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { kind, name: name.into(), reason: reason.into() }
    }
}

fn encode_module(
    kind: Kind,
    module: &Module<'_>,
    written: &Module<'_>,
    family: Family,
    kernel: &dyn Kernel,
) -> Result<Binary, CompileError> {
    let codec = codec_of(kind, &module.name, family, kernel)?;
    codec.encode(module, written, family, kernel.sets()).map_err(|cause| CompileError::Value {
        module: Some((kind, module.name.clone().into_owned())),
        cause,
    })
}

/// Returns the newest revision that both sides have.
fn codec_of(
    kind: Kind,
    name: &str,
    family: Family,
    kernel: &dyn Kernel,
) -> Result<&'static Codec, Unsupported> {
    let mut known = codecs_of(kind, name, family);
    known.find(|codec| kernel.has(kind, codec.kernel_name(), codec.revision())).ok_or_else(|| {
        let revisions: Vec<_> =
            codecs_of(kind, name, family).map(|codec| codec.revision().to_string()).collect();
        let reason = match revisions.is_empty() {
            true => "its binary form is not known to this library".to_owned(),
            false => format!("the kernel does not have it in revision {}", revisions.join(" or ")),
        };
        Unsupported { kind, name: name.to_owned(), reason }
    })
}

/// Returns the verdict of a target that is neither a chain nor an extension.
fn verdict(target: &Target<'_>) -> Option<i32> {
    let found = VERDICTS.iter().find(|(name, _)| *name == target.module.name);
    found.filter(|_| !target.goto).map(|(_, verdict)| *verdict)
}

/// Returns the name of a verdict of the standard target.
pub(crate) fn verdict_name(verdict: i32) -> String {
    let known = VERDICTS.iter().find(|(_, known)| *known == verdict);
    known.map_or_else(|| verdict.to_string(), |(name, _)| (*name).to_owned())
}

/// Returns whether `-j` with this name is a jump, which it is not for the name of a target; `-g` always is.
pub(crate) fn is_chain(name: &str, jumps: Option<Family>) -> bool {
    let is_target =
        |family| VERDICTS.iter().any(|(verdict, _)| *verdict == name) || find_target(name, family).is_some();
    Chain::new(name, None, None).is_ok() && !jumps.is_some_and(is_target)
}

/// Stands in the place of options that cannot be shown.
const REMARK: [&str; 2] = ["[unsupported", "revision]"];
/// Verdicts of the standard target: `-NF_* - 1`, and `XT_RETURN`.
pub(crate) const VERDICTS: [(&str, i32); 4] = [("ACCEPT", -2), ("DROP", -1), ("RETURN", -5), ("QUEUE", -4)];

/// Returns where the counters of a line's rules start: where its words say (`-c`), or what stands in front of
/// it, if counters are taken (`iptables-restore -c`).
///
/// # Errors
/// The reason: both say so, or it is a line to find a rule, whose counters are whatever they have become. The
/// tools refuse these as well.
pub(crate) fn first_counters(
    line: &Line<'_>,
    in_words: Option<Counters>,
    are_taken: bool,
) -> Result<Counters, &'static str> {
    let in_front = line.counters().filter(|_| are_taken);
    if in_words.is_some() && in_front.is_some() {
        return Err("its counters are given in front of it and by `-c`");
    }
    if in_words.is_some() && matches!(line.action(), LineAction::Delete | LineAction::Check) {
        return Err("expected no `-c` with a command that finds a rule");
    }
    Ok(in_words.or(in_front).unwrap_or_default())
}
