//! Where the commands of a script and their elements are: recorded only when a refusal of the kernel is
//! led back to the text.

use std::collections::HashMap;

use crate::lang::parse::lexer::Span;
use crate::object::Element;
use crate::object::element::order;

/// The places of a script.
#[derive(Debug, Default)]
pub(crate) struct Places {
    /// Where each command is.
    pub(crate) commands: Vec<Span>,
    /// The keys of the elements that have been read for the current command.
    keys: Vec<Span>,
    /// The keys of the elements of each command, by where the command starts.
    elements: HashMap<usize, Vec<Span>>,
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

    /// Keeps the keys beside their elements when these are merged: the key of a merged element is the first
    /// of its parts.
    pub(crate) fn merge(&mut self, before: &[Element], after: &[Element]) {
        let mut sorted: Vec<_> = before.iter().zip(&self.keys).collect();
        sorted.sort_by(|(one, _), (other, _)| order(one, other));
        let mut parts = sorted.into_iter();
        let place = |element: &Element| parts.find(|(part, _)| part.key() == element.key());
        self.keys = after.iter().filter_map(place).map(|(_, span)| *span).collect();
    }

    /// Returns where an element of a command is.
    pub(crate) fn element(&self, command: Span, index: usize) -> Option<Span> {
        self.elements.get(&command.start)?.get(index).copied()
    }
}
