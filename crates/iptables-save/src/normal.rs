//! The normal form of a rule: the spelling that iptables-save prints for it, whichever way it was written.
//!
//! Order, names and defaults are those that iptables-save 1.8.9 prints, as far as the words of a rule tell:
//! full names, numbers for services, `-m tcp` where `-p tcp` loads it, options in the order of the
//! table, defaults that are printed added, defaults that are not printed dropped.

mod matches;
mod options;
mod targets;

use std::borrow::Cow;

use crate::ext::{Extension, Family, find_match, find_target};
use crate::spec::{GENERIC, Module, OptionUse, Spec, Target, Values};
use crate::value::{Network, Value, networks};
use crate::{Error, Limits};
use options::Options;

/// Returns the words of a rule in their normal form: more than one rule where `-s` or `-d` list several
/// addresses.
///
/// Options of unknown modules and values that are not valid are kept as they are. So are the options of a
/// module when some exclude each other: no tool takes them, so there is no saved form. For the same reason a
/// module with a value that is not valid gets no defaults, and none of its options stands for another.
///
/// ```
/// use sluicegate_iptables_save::{Family, normalise};
/// let normal = |words| normalise(words, Family::Ipv4).unwrap();
/// assert_eq!(normal("-p tcp --dport http -j ACCEPT"), ["-p tcp -m tcp --dport 80 -j ACCEPT"]);
/// assert_eq!(normal("-j MARK --set-mark 1"), normal("-j MARK --set-xmark 0x1/0xffffffff"));
/// ```
///
/// # Errors
/// As [`Spec::read`] and [`Spec::normal`].
pub fn normalise(words: &str, family: Family) -> Result<Vec<String>, Error> {
    let specs = Spec::read_as(words, family)?.normal(family)?;
    specs.iter().map(Spec::to_words).collect()
}

impl Spec<'_> {
    /// Returns the normal form; see [`normalise`]. Counters are dropped.
    ///
    /// # Errors
    /// [`Error::Limit`] if the addresses of `-s` times those of `-d` are over [`Limits::RULES_OF_A_LINE`].
    pub fn normal(&self, family: Family) -> Result<Vec<Spec<'static>>, Error> {
        let count = |name| self.generic(name).and_then(|option| Some(option.value()?.split(',').count()));
        let rules = count("source").unwrap_or(1).saturating_mul(count("destination").unwrap_or(1));
        if rules > Limits::RULES_OF_A_LINE {
            let what = "the number of rules that the addresses of -s and -d make";
            return Err(Error::Limit { line: 1, what, found: rules, limit: Limits::RULES_OF_A_LINE });
        }
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
                    family: None,
                    generic,
                    matches: matches.clone(),
                    target: target.clone(),
                    counters: None,
                });
            }
        }
        Ok(specs)
    }

    /// Returns `-s` or `-d` once for each of its addresses; `None` for one that matches every address.
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
        "protocol" => match Value::Protocol.read(&value.to_ascii_lowercase(), Family::Ipv4) {
            Ok(all) if all == "0" => return None,
            Ok(name) => name,
            Err(_) => value.to_owned(),
        },
        "fragment" => return Some(build("fragment", []).negated(option.negated)),
        // Every interface: iptables saves nothing, negated or not.
        _ if value == "+" => return None,
        _ => value.to_owned(),
    };
    Some(build(&option.name, [value]).negated(option.negated))
}

fn match_module(module: &Module<'_>, family: Family) -> Module<'static> {
    let extension = find_match(&module.name, family).filter(|extension| !contradict(extension, module));
    let Some(extension) = extension else { return owned(module) };
    let (mut options, valid) = own_options(extension, module, family);
    if valid {
        matches::fix(extension.name, &mut options, family);
    }
    in_order(extension, &mut options);
    Module { name: Cow::Borrowed(extension.name), options: options.list, implicit: false }
}

fn target_module(target: &Target<'_>, family: Family) -> Target<'static> {
    let extension = find_target(&target.module.name, family)
        .filter(|extension| !target.goto && !contradict(extension, &target.module));
    let Some(extension) = extension else {
        return Target { module: owned(&target.module), goto: target.goto };
    };
    let (mut options, valid) = own_options(extension, &target.module, family);
    if valid {
        targets::fix(extension.name, &mut options, family);
    }
    in_order(extension, &mut options);
    Target {
        module: Module { name: Cow::Borrowed(extension.name), options: options.list, implicit: false },
        goto: false,
    }
}

/// Returns whether options exclude each other, or one is repeated that may occur once. The meaning is
/// undefined then: `! --connlimit-upto 1` is another `--connlimit-above`.
fn contradict(extension: &Extension, module: &Module<'_>) -> bool {
    let rows: Vec<_> = module.options.iter().filter_map(|option| extension.option(&option.name)).collect();
    rows.iter().enumerate().any(|(at, row)| {
        rows.iter().take(at).any(|other| row.excludes(other) || !row.repeatable && row.name == other.name)
    })
}

/// Returns the options with full names and normal values, and whether all values are valid.
fn own_options(extension: &'static Extension, module: &Module<'_>, family: Family) -> (Options, bool) {
    let mut valid = true;
    let list = module.options.iter().map(|option| own_option(extension, option, family, &mut valid));
    (Options { list: list.collect() }, valid)
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

fn own_option(
    extension: &Extension,
    option: &OptionUse<'_>,
    family: Family,
    valid: &mut bool,
) -> OptionUse<'static> {
    let row = extension.option(&option.name);
    let values = option.values.as_slice().iter().enumerate().map(|(at, word)| {
        let normal = row.and_then(|row| row.values.get(at)?.read(word, family).ok());
        normal.unwrap_or_else(|| {
            *valid = false;
            word.clone().into_owned()
        })
    });
    build(row.map_or(&*option.name, |row| row.name), values).negated(option.negated)
}

/// Returns an option that owns its words.
fn build(name: &str, values: impl IntoIterator<Item = String>) -> OptionUse<'static> {
    OptionUse::new(name.to_owned(), values.into_iter().map(Cow::Owned))
}

fn owned(module: &Module<'_>) -> Module<'static> {
    Module { implicit: false, ..module.clone().into_owned() }
}

impl Network {
    /// Returns the spelling of `NETMAP --to`, which has a mask even for one address.
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
    fn lists_of_addresses_multiply_up_to_a_limit() {
        let list = |count| (0..count).map(|at| format!("10.0.0.{at}")).collect::<Vec<_>>().join(",");
        let words = |count| format!("-s {} -d {} -j ACCEPT", list(count), list(count));
        assert_eq!(normalise(&words(32), Family::Ipv4).unwrap().len(), 1024);
        let error = normalise(&words(33), Family::Ipv4).unwrap_err();
        assert!(error.is_limit());
        assert_eq!(
            error.to_string(),
            "line 1: the number of rules that the addresses of -s and -d make is 1089, over the limit of 1024"
        );
    }

    #[test]
    fn a_module_with_a_value_that_is_not_valid_is_kept() {
        for words in ["-m dscp --dscp-class 63", "-j DSCP --set-dscp-class 0x3f", "-m limit --limit none"] {
            assert_eq!(normalise(words, Family::Ipv4).unwrap(), [words]);
        }
    }

    #[test]
    fn options_that_exclude_each_other_are_kept() {
        for words in [
            "-m connlimit ! --connlimit-upto 1 --connlimit-above 2",
            "-m connlimit ! --connlimit-upto 1 --connlimit-upto 2",
            "-p tcp -m tcp --tcp-flags SYN SYN --syn",
            "-j MARK --set-mark 1 --or-mark 2",
        ] {
            assert_eq!(normalise(words, Family::Ipv4).unwrap(), [words]);
        }
        let more = "-m connlimit --connlimit-above 1 --connlimit-mask 32 --connlimit-saddr";
        assert_eq!(normalise("-m connlimit ! --connlimit-upto 1", Family::Ipv4).unwrap(), [more]);
    }
}
