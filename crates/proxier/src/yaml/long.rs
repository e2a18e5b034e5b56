//! Documents that are too long for a tree: what they are, and the elements of their list one at a time.

use std::ops::ControlFlow;

use saphyr_parser::Event;

use super::{Builder, Fault, Keys, Node, Value, at, fault, key_text};

/// Returns the root of a document with nothing in it but the scalars that it has itself: a mapping with those
/// of its entries, an empty sequence, or a scalar. The whole text is checked for its syntax.
///
/// Returns `None` for an empty document, and where an alias or a merge key decides what the root has.
pub(crate) fn outline(text: &str, first_line: usize) -> Result<Option<Node<'_>>, Fault> {
    let root = Builder::new(text, first_line).document(|builder, event, place| match event {
        Event::MappingStart(..) => {
            let entries = builder.scalars()?;
            Ok(entries.map(|entries| at(place, Value::Mapping(entries.into()))))
        }
        Event::SequenceStart(..) => {
            builder.skip()?;
            Ok(Some(at(place, Value::Sequence([].into()))))
        }
        event => builder.node(event, place, 0).map(Some),
    });
    root.map(Option::flatten)
}

/// Passes the elements of a document to `sink`, one at a time, until it breaks: those of a sequence, or those
/// of the entry `items` of a mapping. Returns `None` where that has none, or null.
pub(crate) fn elements<'a>(
    text: &'a str,
    first_line: usize,
    sink: &mut dyn FnMut(Node<'a>) -> ControlFlow<()>,
) -> Result<Option<ControlFlow<()>>, Fault> {
    let mut flow = None;
    let walked = Builder::new(text, first_line).document(|builder, event, place| {
        flow = match event {
            Event::MappingStart(..) => builder.items(sink)?,
            Event::SequenceStart(..) => Some(builder.each(1, sink)?),
            event => return builder.node(event, place, 0).map(drop),
        };
        // The rest is not read: there is no other way out than an error.
        if flow == Some(ControlFlow::Break(())) { Err(fault(place, "stopped")) } else { Ok(()) }
    });
    match walked {
        Err(fault) if flow != Some(ControlFlow::Break(())) => Err(fault),
        _ => Ok(flow),
    }
}

impl<'a> Builder<'a> {
    /// Returns the entries of a mapping whose values are scalars, or `None` where they cannot be told without
    /// the rest.
    fn scalars(&mut self) -> Result<Option<Vec<(Node<'a>, Node<'a>)>>, Fault> {
        let (mut entries, mut is_plain) = (Vec::new(), true);
        loop {
            let (event, place) = self.next()?;
            if event == Event::MappingEnd {
                return Ok(is_plain.then_some(entries));
            }
            is_plain &= matches!(event, Event::Scalar(..));
            let key = self.node(event, place, 1)?;
            is_plain &= key_text(&key) != "<<";
            match self.next()? {
                (Event::MappingStart(..) | Event::SequenceStart(..), _) => self.skip()?,
                (event @ Event::Scalar(..), place) => entries.push((key, self.node(event, place, 1)?)),
                (Event::Alias(_), _) => is_plain = false,
                (_, place) => return Err(fault(place, "expected a value")),
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
                (Event::StreamEnd, place) => return Err(fault(place, "expected a value")),
                _ => {}
            }
        }
        Ok(())
    }

    /// Passes on the elements of the entry `items` of a mapping, if there is one that is a list.
    fn items(
        &mut self,
        sink: &mut dyn FnMut(Node<'a>) -> ControlFlow<()>,
    ) -> Result<Option<ControlFlow<()>>, Fault> {
        let mut flow = None;
        let mut keys = Keys::default();
        let mut entries: Vec<(Node<'a>, Node<'a>)> = Vec::new();
        loop {
            let (event, place) = self.next()?;
            if event == Event::MappingEnd {
                return Ok(flow);
            }
            let key = self.node(event, place, 1)?;
            if !keys.add(&entries, &key) {
                return Err(key.fault(format!("the key {} comes twice", key_text(&key))));
            }
            let is_items = key_text(&key) == "items";
            let nothing = at(place, Value::Null);
            entries.push((key, nothing));
            match self.next()? {
                (Event::SequenceStart(..), _) if is_items => {
                    flow = Some(self.each(2, sink)?);
                    if flow == Some(ControlFlow::Break(())) {
                        return Ok(flow);
                    }
                }
                (event, place) => {
                    let value = self.node(event, place, 1)?;
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
        sink: &mut dyn FnMut(Node<'a>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, Fault> {
        loop {
            let (event, place) = self.next()?;
            if event == Event::SequenceEnd {
                return Ok(ControlFlow::Continue(()));
            }
            let element = self.node(event, place, depth)?;
            if sink(element).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
    }
}
