//! The normal form of a rule: the one spelling that all spellings share which iptables saves alike.
//!
//! Order, names and defaults are those that iptables-save 1.8.9 prints, as far as the words of a rule tell: full names,
//! numbers for services, `-m tcp` for what `-p tcp` brought along, options in the order of the table, defaults that are
//! printed added, defaults that are not printed dropped.

mod matches;
mod options;
mod targets;

use std::borrow::Cow;

use crate::Error;
use crate::ext::{Extension, Family, find_match, find_target};
use crate::spec::{GENERIC, Module, OptionUse, Spec, Target, Values};
use crate::value::{Network, Value, networks};
use options::Options;

/// The words of a rule in their normal form: more than one rule where `-s` or `-d` list several addresses.
///
/// Words that no option of a known module takes, and values that are not right, are kept as they are; so are the options of a
/// module that exclude each other, of which nothing is saved as no tool takes them.
///
/// ```
/// use sluicegate_iptables_save::{Family, normalise};
/// let normal = |words| normalise(words, Family::V4).unwrap();
/// assert_eq!(normal("-p tcp --dport http -j ACCEPT"), ["-p tcp -m tcp --dport 80 -j ACCEPT"]);
/// assert_eq!(normal("-j MARK --set-mark 1"), normal("-j MARK --set-xmark 0x1/0xffffffff"));
/// ```
///
/// # Errors
/// As [`Spec::read`].
pub fn normalise(words: &str, family: Family) -> Result<Vec<String>, Error> {
    let specs = Spec::read_as(words, family)?.normal(family);
    specs.iter().map(Spec::to_words).collect()
}

impl Spec<'_> {
    /// The normal form; see [`normalise`]. Counters are dropped.
    #[must_use]
    pub fn normal(&self, family: Family) -> Vec<Spec<'static>> {
        let matches: Vec<_> = self.matches.iter().map(|module| match_module(module, family)).collect();
        let target = self.target.as_ref().map(|target| target_module(target, family));
        let sources = self.addresses("source", family);
        let destinations = self.addresses("destination", family);
        let mut specs = Vec::with_capacity(sources.len() * destinations.len());
        for source in &sources {
            for destination in &destinations {
                let mut generic: Vec<_> = source.iter().chain(destination).cloned().collect();
                generic.extend(
                    GENERIC.iter().skip(2).filter_map(|(name, _)| plain_generic(self.generic(name)?)),
                );
                specs.push(Spec {
                    generic,
                    matches: matches.clone(),
                    target: target.clone(),
                    counters: None,
                });
            }
        }
        specs
    }

    /// `-s` or `-d`, once for each of its addresses; `None` where it says nothing.
    fn addresses(&self, name: &str, family: Family) -> Vec<Option<OptionUse<'static>>> {
        let Some(option) = self.generic(name) else { return vec![None] };
        let value = option.value().unwrap_or_default();
        let one = |value: String| Some(build(name, [value]).negated(option.negated));
        match networks(value, family) {
            Err(_) => vec![one(value.to_owned())],
            Ok(networks) => networks
                .into_iter()
                .map(|network| one(network.normal()).filter(|_| option.negated || !network.is_all()))
                .collect(),
        }
    }
}

fn plain_generic(option: &OptionUse<'_>) -> Option<OptionUse<'static>> {
    let value = option.value().unwrap_or_default();
    let value = match &*option.name {
        "protocol" => match Value::Protocol.read(&value.to_ascii_lowercase(), Family::V4) {
            Ok(all) if all == "0" => return None,
            Ok(name) => name,
            Err(_) => value.to_owned(),
        },
        "fragment" => return Some(build("fragment", []).negated(option.negated)),
        // Every interface: nothing is asked, and nothing is saved, negated or not.
        _ if value == "+" => return None,
        _ => value.to_owned(),
    };
    Some(build(&option.name, [value]).negated(option.negated))
}

fn match_module(module: &Module<'_>, family: Family) -> Module<'static> {
    let extension = find_match(&module.name, family).filter(|extension| !contradict(extension, module));
    let Some(extension) = extension else { return owned(module) };
    let mut options = own_options(extension, module, family);
    matches::fix(extension.name, &mut options, family);
    in_order(extension, &mut options);
    Module { name: Cow::Borrowed(extension.name), options: options.list, implicit: false }
}

fn target_module(target: &Target<'_>, family: Family) -> Target<'static> {
    let extension = find_target(&target.module.name, family)
        .filter(|extension| !target.goto && !contradict(extension, &target.module));
    let Some(extension) = extension else {
        return Target { module: owned(&target.module), goto: target.goto };
    };
    let mut options = own_options(extension, &target.module, family);
    targets::fix(extension.name, &mut options, family);
    in_order(extension, &mut options);
    Target {
        module: Module { name: Cow::Borrowed(extension.name), options: options.list, implicit: false },
        goto: false,
    }
}

/// Whether there are options that exclude each other, or one twice that may stand once. What stands for what is not defined
/// then: `! --connlimit-upto 1` is another `--connlimit-above`.
fn contradict(extension: &Extension, module: &Module<'_>) -> bool {
    let rows: Vec<_> = module.options.iter().filter_map(|option| extension.option(&option.name)).collect();
    rows.iter().enumerate().any(|(at, row)| {
        rows.iter().take(at).any(|other| row.excludes(other) || !row.repeatable && row.name == other.name)
    })
}

/// The options with full names and normal values.
fn own_options(extension: &'static Extension, module: &Module<'_>, family: Family) -> Options {
    Options { list: module.options.iter().map(|option| own_option(extension, option, family)).collect() }
}

/// Sorts options as the table has them; those of a policy within its elements.
fn in_order(extension: &'static Extension, options: &mut Options) {
    let rank = |option: &OptionUse<'_>| {
        extension.options.iter().position(|row| row.name == option.name).unwrap_or(extension.options.len())
    };
    match extension.name {
        "policy" => options.list = elements(std::mem::take(&mut options.list), rank),
        _ => options.list.sort_by_key(rank),
    }
}

fn elements(
    list: Vec<OptionUse<'static>>,
    rank: impl Fn(&OptionUse<'_>) -> usize,
) -> Vec<OptionUse<'static>> {
    let (head, rest): (Vec<_>, Vec<_>) =
        list.into_iter().partition(|option| matches!(&*option.name, "dir" | "pol" | "strict"));
    let mut sorted = head;
    sorted.sort_by_key(&rank);
    for element in rest.split_inclusive(|option| option.name == "next") {
        let mut element = element.to_vec();
        element.sort_by_key(&rank);
        sorted.extend(element);
    }
    sorted
}

fn own_option(extension: &Extension, option: &OptionUse<'_>, family: Family) -> OptionUse<'static> {
    let row = extension.option(&option.name);
    let values = option.values.as_slice().iter().enumerate().map(|(at, word)| {
        let normal = row.and_then(|row| row.values.get(at)?.read(word, family).ok());
        normal.unwrap_or_else(|| word.clone().into_owned())
    });
    build(row.map_or(&*option.name, |row| row.name), values).negated(option.negated)
}

/// An option that owns its words.
fn build(name: &str, values: impl IntoIterator<Item = String>) -> OptionUse<'static> {
    OptionUse::new(name.to_owned(), values.into_iter().map(Cow::Owned))
}

fn owned(module: &Module<'_>) -> Module<'static> {
    let options = module.options.iter().map(|option| {
        let values = option.values.as_slice().iter().map(|value| value.clone().into_owned());
        build(&option.name, values).negated(option.negated)
    });
    Module { name: Cow::Owned(module.name.clone().into_owned()), options: options.collect(), implicit: false }
}

impl Network {
    /// The spelling of `NETMAP --to`, which has a mask even for one address.
    pub(crate) fn normal_of(word: &str, family: Family) -> Option<String> {
        Self::read(word, family).ok().map(Self::normal)
    }
}

impl Values<'_> {
    fn first(&self) -> Option<&str> {
        self.as_slice().first().map(|value| &**value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_exclude_each_other_are_kept() {
        for words in [
            "-m connlimit ! --connlimit-upto 1 --connlimit-above 2",
            "-m connlimit ! --connlimit-upto 1 --connlimit-upto 2",
            "-p tcp -m tcp --tcp-flags SYN SYN --syn",
            "-j MARK --set-mark 1 --or-mark 2",
        ] {
            assert_eq!(normalise(words, Family::V4).unwrap(), [words]);
        }
        let more = "-m connlimit --connlimit-above 1 --connlimit-mask 32 --connlimit-saddr";
        assert_eq!(normalise("-m connlimit ! --connlimit-upto 1", Family::V4).unwrap(), [more]);
    }
}
