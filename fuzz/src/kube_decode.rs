//! Responses of an API server, in pieces of any size: nothing panics, every object that is read goes into the
//! model, and the lines do not depend on the pieces.
use sluicegate_proxier::run::{ThisNode, World};
use sluicegate_proxier::source::kube::decode::{self, Event, Lines, List};
use sluicegate_proxier::source::update::{Kind, Update};

pub(crate) fn run(data: &[u8]) {
    let Some((&choice, text)) = data.split_first() else { return };
    let kind = Kind::ALL[usize::from(choice) % Kind::ALL.len()];
    let mut world = World::new(ThisNode { name: "node".to_owned(), ..ThisNode::default() });

    let mut list = List::default();
    if decode::page(kind, text, &mut list).is_ok() {
        assert!(!list.version.is_empty());
    }
    world.apply(Update::Replace(kind, list.objects));

    let whole = lines(text, text.len().max(1));
    assert_eq!(lines(text, usize::from(choice / 4) + 1), whole);
    for line in &whole {
        match decode::event(kind, line) {
            Ok(Event::Apply(object, _)) => drop(world.apply(Update::Apply(object))),
            Ok(Event::Delete(name, _)) => drop(world.apply(Update::Delete(name))),
            Ok(Event::Bookmark(_) | Event::Error(_) | Event::Unreadable(..)) => {}
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    let _ = world.take_changes();
}

fn lines(text: &[u8], size: usize) -> Vec<Vec<u8>> {
    let (mut lines, mut found) = (Lines::default(), Vec::new());
    for piece in text.chunks(size) {
        lines.push(piece).expect("a fuzzer's line is shorter than 16 MiB");
        found.extend(std::iter::from_fn(|| lines.next_line()));
    }
    found
}
