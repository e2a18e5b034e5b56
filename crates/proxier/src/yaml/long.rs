//! Documents that are too long for a tree: what they are, and the elements of their list one at a time.

use std::ops::ControlFlow;

use saphyr_parser::Event;

use super::{Builder, Fault, Keys, Node, Value, key_text};

/// Returns the root of a document with nothing in it but the scalars that it has itself: a mapping with those
/// of its entries, an empty sequence, or a scalar. The whole text is checked for its syntax.
///
/// Returns `None` for an empty document, and where an alias or a merge key decides what the root has.
pub(crate) fn outline(text: &str, first_line: usize) -> Result<Option<Node>, Fault> {
    let root = Builder::new(text, first_line).document(|builder, event, span| match event {
        Event::MappingStart(..) => {
            let entries = builder.scalars()?;
            Ok(entries.map(|entries| builder.at(span, Value::Mapping(entries.into()))))
        }
        Event::SequenceStart(..) => {
            builder.skip()?;
            Ok(Some(builder.at(span, Value::Sequence([].into()))))
        }
        event => builder.node(event, span, 0).map(Some),
    });
    root.map(Option::flatten)
}

/// Passes the elements of a document to `sink`, one at a time, until it breaks: those of a sequence, or those
/// of the entry `items` of a mapping, which may be null.
pub(crate) fn elements(
    text: &str,
    first_line: usize,
    sink: &mut dyn FnMut(Node) -> ControlFlow<()>,
) -> Result<ControlFlow<()>, Fault> {
    let mut builder = Builder::new(text, first_line);
    let mut flow = ControlFlow::Continue(());
    let walked = builder.document(|builder, event, span| {
        flow = match event {
            Event::MappingStart(..) => builder.items(sink)?,
            Event::SequenceStart(..) => builder.each(1, sink)?,
            event => return builder.node(event, span, 0).map(drop),
        };
        // The rest is not read: there is no other way out than an error.
        if flow.is_break() { Err(builder.fault(span, "stopped")) } else { Ok(()) }
    });
    match walked {
        Err(fault) if flow.is_continue() => Err(fault),
        _ => Ok(flow),
    }
}

impl Builder<'_> {
    /// Returns the entries of a mapping whose values are scalars, or `None` where they cannot be told without
    /// the rest.
    fn scalars(&mut self) -> Result<Option<Vec<(Node, Node)>>, Fault> {
        let (mut entries, mut is_plain) = (Vec::new(), true);
        loop {
            let (event, span) = self.next()?;
            if event == Event::MappingEnd {
                return Ok(is_plain.then_some(entries));
            }
            is_plain &= matches!(event, Event::Scalar(..));
            let key = self.node(event, span, 1)?;
            is_plain &= key_text(&key) != "<<";
            match self.next()? {
                (Event::MappingStart(..) | Event::SequenceStart(..), _) => self.skip()?,
                (event @ Event::Scalar(..), span) => entries.push((key, self.node(event, span, 1)?)),
                (Event::Alias(_), _) => is_plain = false,
                (_, span) => return Err(self.fault(span, "expected a value")),
            }
        }
    }

    /// Skips what is left of a sequence or mapping that began.
    fn skip(&mut self) -> Result<(), Fault> {
        let mut depth = 1;
        while depth > 0 {
            match self.next()? {
                (Event::MappingStart(..) | Event::SequenceStart(..), _) => depth += 1,
                (Event::MappingEnd | Event::SequenceEnd, _) => depth -= 1,
                (Event::StreamEnd, span) => return Err(self.fault(span, "expected a value")),
                _ => {}
            }
        }
        Ok(())
    }

    /// Passes on the elements of the entry `items` of a mapping.
    fn items(&mut self, sink: &mut dyn FnMut(Node) -> ControlFlow<()>) -> Result<ControlFlow<()>, Fault> {
        let mut keys = Keys::default();
        let mut entries: Vec<(Node, Node)> = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if event == Event::MappingEnd {
                return Ok(ControlFlow::Continue(()));
            }
            let key = self.node(event, span, 1)?;
            if !keys.add(&entries, &key) {
                return Err(key.fault(format!("the key {} comes twice", key_text(&key))));
            }
            let is_items = key_text(&key) == "items";
            let nothing = self.at(span, Value::Null);
            entries.push((key, nothing));
            match self.next()? {
                (Event::SequenceStart(..), _) if is_items => {
                    if self.each(2, sink)?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
                (event, span) => {
                    let value = self.node(event, span, 1)?;
                    if is_items && !matches!(value.value, Value::Null) {
                        return Err(value.fault("items: expected a list".to_owned()));
                    }
                }
            }
        }
    }

    /// Passes on the elements of a sequence that began, which are so deep.
    fn each(
        &mut self,
        depth: usize,
        sink: &mut dyn FnMut(Node) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, Fault> {
        loop {
            let (event, span) = self.next()?;
            if event == Event::SequenceEnd {
                return Ok(ControlFlow::Continue(()));
            }
            let element = self.node(event, span, depth)?;
            if sink(element).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
    }
}
