//! Where the commands of a script are, with the statements of rules and the elements of sets: recorded only
//! when a refusal of the kernel is led back to the text.

use std::collections::HashMap;

use crate::object::Element;
use crate::object::element::order;
use crate::sort;
use crate::text::parse::lexer::Span;

/// The places of a script.
#[derive(Debug, Default)]
pub(crate) struct Places {
    /// Where each command is.
    pub(crate) commands: Vec<Span>,
    /// The keys of the elements that have been read for the current command.
    keys: Vec<Span>,
    /// The keys of the elements of each command, by where the command starts.
    elements: HashMap<usize, Vec<Span>>,
    /// The statements of the rule that has been read last.
    statements: Vec<Span>,
    /// The statements of each rule, by where its command starts.
    rules: HashMap<usize, Vec<Span>>,
}

impl Places {
    /// Notes where the key of the next element is.
    pub(crate) fn key(&mut self, span: Span) {
        self.keys.push(span);
    }

    /// Notes that the keys noted last are of the command that starts here.
    pub(crate) fn keys_of(&mut self, command: Span) {
        let keys = std::mem::take(&mut self.keys);
        if !keys.is_empty() {
            self.elements.insert(command.start, keys);
        }
    }

    /// Notes where the statements of the rule are that has just been read.
    pub(crate) fn statements(&mut self, spans: Vec<Span>) {
        self.statements = spans;
    }

    /// Notes that the statements noted last are of the rule that starts here.
    pub(crate) fn statements_of(&mut self, rule: Span) {
        let statements = std::mem::take(&mut self.statements);
        if !statements.is_empty() {
            self.rules.insert(rule.start, statements);
        }
    }

    /// Keeps the keys beside their elements when these are merged: the key of a merged element is the first
    /// of its parts.
    pub(crate) fn merge(&mut self, before: &[Element], after: &[Element]) {
        let mut sorted: Vec<_> = before.iter().zip(&self.keys).collect();
        sort::by(&mut sorted, |(one, _), (other, _)| order(one, other));
        let mut parts = sorted.into_iter();
        let place = |element: &Element| parts.find(|(part, _)| part.key() == element.key());
        self.keys = after.iter().filter_map(place).map(|(_, span)| *span).collect();
    }

    /// Returns where an element of a command is.
    pub(crate) fn element(&self, command: Span, index: usize) -> Option<Span> {
        self.elements.get(&command.start)?.get(index).copied()
    }

    /// Returns where a statement of a rule is.
    pub(crate) fn statement(&self, rule: Span, index: usize) -> Option<Span> {
        self.rules.get(&rule.start)?.get(index).copied()
    }
}
