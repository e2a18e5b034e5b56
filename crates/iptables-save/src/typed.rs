//! Types for every match and target of iptables-extensions(8): build, read, compare.
//!
//! Each is a plain structure, one field an option. [`Typed::module`] builds the module for a [`Spec`],
//! [`Typed::of`] reads one; two rules say the same of a match when the structures are equal. An option that a
//! structure has no field for is an error, so that nothing of a rule is overlooked. [`AnyMatch`] and
//! [`AnyTarget`] are one type for all of them, to look at rules that others wrote.
//!
//! ```
//! use sluicegate_iptables_save::typed::{Typed as _, matches, targets};
//! use sluicegate_iptables_save::{Spec, Target};
//!
//! let mut spec = Spec::default();
//! spec.matches.push(matches::Comment { comment: "default/web:http".into() }.module());
//! let mark = targets::Mark { set_xmark: Some("0x4000/0x4000".parse().unwrap()), ..Default::default() };
//! spec.target = Some(mark.into());
//! let words = spec.to_words().unwrap();
//! assert_eq!(words, "-m comment --comment \"default/web:http\" -j MARK --set-xmark 0x4000/0x4000");
//!
//! let spec = Spec::read(&words).unwrap();
//! assert_eq!(matches::Comment::of(&spec.matches[0]).unwrap().comment, "default/web:http");
//! ```
//!
//! [`Spec`]: crate::Spec

mod any;
mod field;
pub mod matches;
pub mod targets;
mod words;

use std::borrow::Cow;

use crate::spec::{Module, OptionUse, Target};
use crate::{Error, Spec};
pub use any::{AnyExtension, AnyMatch, AnyTarget};
use field::Field;
pub use field::{Not, Optional};
pub use words::{
    Addresses, List, MacAddress, MarkMask, Nat, NatPorts, OpenSpan, Port, Ports, Probability, SetUse, Span,
};

/// A match that is used, negated or not, without a value.
type Flag = Option<Not<()>>;

/// A match or target as a structure.
pub trait Typed: Sized {
    /// The name of the extension.
    const NAME: &'static str;

    /// Reads a module of that name.
    ///
    /// # Errors
    /// [`Error::Value`] if it is another module, an option has no field, or a value is not right.
    fn of(module: &Module<'_>) -> Result<Self, Error>;

    /// Returns the module, for [`Spec::matches`] or as a [`Target`].
    fn module(&self) -> Module<'static>;
}

impl Spec<'_> {
    /// Returns the first match of the type of `T`, read; `None` if the rule has none.
    ///
    /// # Errors
    /// As [`Typed::of`].
    pub fn typed_match<T: Typed>(&self) -> Result<Option<T>, Error> {
        self.find(T::NAME).map(T::of).transpose()
    }

    /// Returns the target, read as a `T`; `None` if it is another target.
    ///
    /// # Errors
    /// As [`Typed::of`].
    pub fn typed_target<T: Typed>(&self) -> Result<Option<T>, Error> {
        let target = self.target.as_ref().filter(|target| target.module.name == T::NAME && !target.goto);
        target.map(|target| T::of(&target.module)).transpose()
    }
}

/// A target that needs no extension: a verdict, a jump, or a goto.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Jump {
    /// `-j ACCEPT`
    Accept,
    /// `-j DROP`
    Drop,
    /// `-j RETURN`
    Return,
    /// `-j CHAIN`
    Chain(String),
    /// `-g CHAIN`
    Goto(String),
}

impl Jump {
    /// Reads a target that has no options: `None` for one that has, or that is an extension.
    #[must_use]
    pub fn of(target: &Target<'_>) -> Option<Self> {
        let name = &*target.module.name;
        let extension = [crate::Family::Ipv4, crate::Family::Ipv6]
            .iter()
            .any(|family| crate::find_target(name, *family).is_some());
        Some(match name {
            _ if target.goto => Self::Goto(name.to_owned()),
            _ if extension || !target.module.options.is_empty() => return None,
            "ACCEPT" => Self::Accept,
            "DROP" => Self::Drop,
            "RETURN" => Self::Return,
            chain => Self::Chain(chain.to_owned()),
        })
    }
}

impl From<Jump> for Target<'static> {
    fn from(jump: Jump) -> Self {
        let (name, goto) = match jump {
            Jump::Accept => ("ACCEPT".to_owned(), false),
            Jump::Drop => ("DROP".to_owned(), false),
            Jump::Return => ("RETURN".to_owned(), false),
            Jump::Chain(chain) => (chain, false),
            Jump::Goto(chain) => (chain, true),
        };
        Target { module: Module::new(name), goto }
    }
}

impl<T: Typed> From<T> for Target<'static> {
    fn from(typed: T) -> Self {
        Self { module: typed.module(), goto: false }
    }
}

/// Refuses another module, and options that are not in `known`.
fn expect(module: &Module<'_>, name: &str, known: &[&str]) -> Result<(), Error> {
    let wrong = |reason: String| Err(Error::Value { module: name.to_owned(), reason });
    let families = [crate::Family::Ipv4, crate::Family::Ipv6];
    let is_known = |family: &crate::Family| {
        crate::find_match(&module.name, *family).is_some_and(|known| known.name == name)
    };
    if module.name != name && !families.iter().any(is_known) {
        return wrong(format!("the module is {}", module.name));
    }
    match module.options.iter().find(|option| !known.contains(&&*option.name)) {
        Some(option) => wrong(format!("--{} has no field", option.name)),
        None => Ok(()),
    }
}

fn read<T: Field>(module: &Module<'_>, name: &'static str, option: &'static str) -> Result<T, Error> {
    let found = module.options.iter().find(|found| found.name == option);
    let found = found.map(|found| with_plain_numbers(name, found));
    T::read(found.as_ref())
        .map_err(|reason| Error::Value { module: name.to_owned(), reason: format!("--{option}: {reason}") })
}

/// Returns an option with ports and ranges of addresses in the spelling of iptables-save: one match takes
/// `010` for 8, another for 10.
fn with_plain_numbers<'o>(name: &str, option: &OptionUse<'o>) -> OptionUse<'o> {
    let families = [crate::Family::Ipv4, crate::Family::Ipv6];
    let plain = |word: &Cow<'o, str>| {
        let spelling = families.iter().find_map(|family| {
            let extension = crate::find_match(name, *family).or_else(|| crate::find_target(name, *family))?;
            let kind = extension.option(&option.name)?.values.first()?;
            kind.has_numbers().then(|| kind.read(word, *family).ok())?
        });
        spelling.map_or_else(|| word.clone(), Cow::Owned)
    };
    let values = option.values.as_slice().iter().map(plain);
    OptionUse::new(option.name.clone(), values).negated(option.negated)
}

fn write<T: Field>(field: &T, option: &'static str, options: &mut Vec<OptionUse<'static>>) {
    options.extend(field.write().map(|(negated, values)| {
        OptionUse::new(option, values.into_iter().map(Cow::Owned)).negated(negated)
    }));
}

/// Declares a structure with a field for each option.
macro_rules! typed {
    ($(
        $(#[$about:meta])* $type:ident = $name:literal {
            $($(#[$field_about:meta])* $field:ident: $kind:ty = $option:literal,)*
        }
    )*) => {$(
        $(#[$about])*
        #[derive(Debug, Clone, Default, PartialEq, Eq)]
        pub struct $type {
            $($(#[$field_about])* pub $field: $kind,)*
        }

        impl $crate::typed::Typed for $type {
            const NAME: &'static str = $name;

            fn of(module: &$crate::Module<'_>) -> Result<Self, $crate::Error> {
                $crate::typed::expect(module, $name, &[$($option),*])?;
                Ok(Self { $($field: $crate::typed::read(module, $name, $option)?,)* })
            }

            fn module(&self) -> $crate::Module<'static> {
                #[allow(unused_mut, reason = "some have no options")]
                let mut options = Vec::new();
                $($crate::typed::write(&self.$field, $option, &mut options);)*
                $crate::Module { options, ..$crate::Module::new($name) }
            }
        }
    )*};
}
use typed;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Family, Place, check};

    #[test]
    fn what_is_built_passes_the_check_and_reads_back() {
        let tcp = matches::Tcp {
            destination_port: Some(Not::plain("80:90".parse().unwrap())),
            ..Default::default()
        };
        let recent = matches::Recent {
            rcheck: Some(Not::plain(())),
            seconds: Some(10_800),
            reap: true,
            name: Some("KUBE-SEP-A".into()),
            rsource: true,
            ..Default::default()
        };
        let mut spec = Spec::default();
        spec.generic.push(OptionUse::new("protocol", ["tcp".into()]));
        spec.matches = vec![tcp.module(), recent.module()];
        spec.target = Some(
            targets::Dnat {
                to_destination: "10.0.0.2-10.0.0.3:80".parse().unwrap(),
                random: true,
                persistent: false,
            }
            .into(),
        );
        let words = spec.to_words().unwrap();
        assert_eq!(
            words,
            "-p tcp -m tcp --dport 80:90 -m recent --rcheck --seconds 10800 --reap --name KUBE-SEP-A \
             --rsource \
             -j DNAT --to-destination 10.0.0.2-10.0.0.3:80 --random"
        );
        let place = Place { table: "nat", chain: "X", family: Family::Ipv4 };
        let read = check(&words, place).unwrap();
        assert_eq!(read.typed_match::<matches::Tcp>().unwrap(), Some(tcp));
        assert_eq!(read.typed_match::<matches::Recent>().unwrap(), Some(recent));
        assert_eq!(read.typed_match::<matches::Mark>().unwrap(), None);
        assert_eq!(
            read.typed_target::<targets::Dnat>().unwrap().unwrap().to_destination.to_string(),
            "10.0.0.2-10.0.0.3:80"
        );
    }

    #[test]
    fn an_option_without_a_field_and_a_wrong_value_are_errors() {
        let spec = Spec::read("-m tcp --nonsense 1").unwrap();
        let error = matches::Tcp::of(&spec.matches[0]).unwrap_err();
        assert_eq!(error.to_string(), "tcp: --nonsense has no field");
        let spec = Spec::read("-m mark --mark x").unwrap();
        let error = spec.typed_match::<matches::Mark>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "mark: --mark: expected a mark of 32 bits, with a mask if wanted, as in `0x4000/0x4000`"
        );
    }

    #[test]
    fn jumps_are_told_from_extensions() {
        let target = |words| Spec::read(words).unwrap().target.map(|target| Jump::of(&target)).unwrap();
        assert_eq!(target("-j RETURN"), Some(Jump::Return));
        assert_eq!(target("-j KUBE-X"), Some(Jump::Chain("KUBE-X".into())));
        assert_eq!(target("-g KUBE-X"), Some(Jump::Goto("KUBE-X".into())));
        assert_eq!(target("-j MASQUERADE"), None);
    }
}
