//! Variables: `define`, `redefine`, `undefine` and `$name`.

use std::collections::HashMap;

use crate::text::parse::lexer::Span;

/// Where in the script a variable is looked up: its scope, and how many definitions came before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Moment {
    scope: usize,
    time: usize,
}

/// The value of a variable: a piece of text, and where the variables in it are looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Value {
    pub(crate) span: Span,
    pub(crate) moment: Moment,
}

/// When a variable got a value; `None` where it was undefined.
type Definition = (usize, Option<Value>);

/// All definitions, by name and scope, in order. A scope is that of the script, of a table or of a chain, and
/// has another around it.
#[derive(Debug)]
pub(crate) struct Variables {
    definitions: HashMap<String, HashMap<usize, Vec<Definition>>>,
    outer: Vec<Option<usize>>,
    time: usize,
}

impl Default for Variables {
    fn default() -> Self {
        Self { definitions: HashMap::new(), outer: vec![None], time: 0 }
    }
}

impl Variables {
    /// A new scope within another.
    pub(crate) fn open(&mut self, within: Moment) -> Moment {
        self.outer.push(Some(within.scope));
        Moment { scope: self.outer.len() - 1, time: self.time }
    }

    /// The same scope, now.
    pub(crate) fn now(&self, moment: Moment) -> Moment {
        Moment { time: self.time, ..moment }
    }

    /// Whether a variable has a value in this very scope.
    pub(crate) fn has(&self, name: &str, at: Moment) -> bool {
        self.own(name, at.scope, self.time).is_some()
    }

    /// Gives a variable a value, or none.
    pub(crate) fn define(&mut self, name: &str, at: Moment, value: Option<Value>) {
        self.time += 1;
        let scopes = self.definitions.entry(name.to_owned()).or_default();
        scopes.entry(at.scope).or_default().push((self.time, value));
    }

    /// The value of a variable.
    pub(crate) fn find(&self, name: &str, at: Moment) -> Option<Value> {
        let mut scope = Some(at.scope);
        while let Some(own) = scope {
            if let Some(value) = self.own(name, own, at.time) {
                return Some(value);
            }
            scope = self.outer.get(own).copied().flatten();
        }
        None
    }

    /// The names that there are.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.definitions.keys().map(String::as_str)
    }

    fn own(&self, name: &str, scope: usize, time: usize) -> Option<Value> {
        let definitions = self.definitions.get(name)?.get(&scope)?;
        let before = definitions.partition_point(|(defined, _)| *defined <= time);
        definitions.get(before.checked_sub(1)?)?.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(start: usize) -> Value {
        Value { span: Span { start, end: start + 1 }, moment: Moment::default() }
    }

    #[test]
    fn a_variable_has_the_value_that_it_had_then() {
        let mut variables = Variables::default();
        let script = Moment::default();
        variables.define("x", script, Some(value(1)));
        assert!(variables.has("x", script));
        let then = variables.now(script);
        variables.define("x", script, Some(value(2)));
        assert_eq!(variables.find("x", then), Some(value(1)));
        assert_eq!(variables.find("x", variables.now(script)), Some(value(2)));
        variables.define("x", script, None);
        assert_eq!(variables.find("x", variables.now(script)), None);
    }

    #[test]
    fn an_inner_scope_hides_an_outer_one() {
        let mut variables = Variables::default();
        let script = Moment::default();
        variables.define("x", script, Some(value(1)));
        let table = variables.open(script);
        assert!(!variables.has("x", table));
        variables.define("x", table, Some(value(2)));
        assert_eq!(variables.find("x", variables.now(table)), Some(value(2)));
        assert_eq!(variables.find("x", variables.now(script)), Some(value(1)));
        let other = variables.open(script);
        assert_eq!(variables.find("x", variables.now(other)), Some(value(1)));
    }
}
