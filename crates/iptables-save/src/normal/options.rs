//! A list of options that can be looked up, set and dropped by name.

use super::build;
use crate::spec::OptionUse;
use crate::value::integer;

pub(super) struct Options {
    pub(super) list: Vec<OptionUse<'static>>,
}

impl Options {
    pub(super) fn has(&self, name: &str) -> bool {
        self.list.iter().any(|option| option.name == name)
    }

    pub(super) fn value(&self, name: &str) -> Option<&str> {
        self.list.iter().find(|option| option.name == name)?.values.first()
    }

    pub(super) fn number(&self, name: &str) -> Option<u64> {
        integer(self.value(name)?)
    }

    pub(super) fn is_negated(&self, name: &str) -> bool {
        self.list.iter().any(|option| option.name == name && option.negated)
    }

    pub(super) fn drop(&mut self, name: &str) {
        self.list.retain(|option| option.name != name);
    }

    /// Drops an option that has the value which is the default.
    pub(super) fn drop_default(&mut self, name: &str, value: &str) {
        self.list
            .retain(|option| option.name != name || option.negated || option.values.first() != Some(value));
    }

    /// The same, negated or not.
    pub(super) fn drop_value(&mut self, name: &str, value: &str) {
        self.list.retain(|option| option.name != name || option.values.first() != Some(value));
    }

    /// Sets an option in its place, or adds it behind the others.
    pub(super) fn set(&mut self, name: &str, value: impl Into<String>) {
        let option = build(name, [value.into()]);
        match self.list.iter_mut().find(|option| option.name == name) {
            Some(place) => *place = option.negated(place.negated),
            None => self.list.push(option),
        }
    }

    /// Adds an option unless it is there.
    pub(super) fn default(&mut self, name: &str, value: &str) {
        if !self.has(name) {
            self.set(name, value);
        }
    }

    pub(super) fn default_flag(&mut self, name: &str) {
        if !self.has(name) {
            self.list.push(build(name, []));
        }
    }

    /// Gives an option another name and value, and keeps its negation.
    pub(super) fn replace(&mut self, name: &str, other: &str, values: impl IntoIterator<Item = String>) {
        if let Some(option) = self.list.iter_mut().find(|option| option.name == name) {
            *option = build(other, values).negated(option.negated);
        }
    }

    pub(super) fn flip(&mut self, name: &str) {
        self.list
            .iter_mut()
            .filter(|option| option.name == name)
            .for_each(|option| option.negated = !option.negated);
    }
}
