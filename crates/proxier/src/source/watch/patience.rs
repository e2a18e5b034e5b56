//! Removals that wait for a moment: what is gone from a file is often back in the next write.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use sluicegate_services::{Service, Slice};

use crate::source::Object;
use crate::source::update::{ObjectName, Update};

/// The removals that wait: deletions, and objects without anything valid in place of what may be in use.
#[derive(Debug, Default)]
pub(super) struct Patience {
    held: BTreeMap<ObjectName, (Instant, Update)>,
}

impl Patience {
    /// Passes on the updates of one look at the files. Removals wait, unless it `is_sure` that they are meant:
    /// others have come in their place.
    pub(super) fn pass(
        &mut self,
        updates: impl IntoIterator<Item = Update>,
        is_sure: bool,
        now: Instant,
        send: &mut dyn FnMut(Update),
    ) {
        for update in updates {
            match name(&update) {
                Some(name) if !is_sure && removes(&update) => {
                    // A file that is written all the time does not keep what is gone.
                    let due = self.held.get(&name).map_or(now + WAIT, |(due, _)| *due);
                    self.held.insert(name, (due, update));
                    continue;
                }
                Some(name) => drop(self.held.remove(&name)),
                None => {}
            }
            send(update);
        }
    }

    /// Passes on the removals that have waited for long enough.
    pub(super) fn end(&mut self, now: Instant, send: &mut dyn FnMut(Update)) {
        let (due, held): (BTreeMap<_, _>, _) =
            std::mem::take(&mut self.held).into_iter().partition(|(_, (due, _))| *due <= now);
        self.held = held;
        due.into_values().for_each(|(_, update)| send(update));
    }

    /// Returns when the next removal has waited for long enough.
    pub(super) fn next(&self) -> Option<Instant> {
        self.held.values().map(|(due, _)| *due).min()
    }
}

fn name(update: &Update) -> Option<ObjectName> {
    match update {
        Update::Apply(object) => Some(ObjectName::of(object)),
        Update::Delete(name) => Some(name.clone()),
        _ => None,
    }
}

/// Returns whether nothing valid is left of an object after this update. One that is valid and of no use here (a
/// headless Service, another proxy's) is meant.
fn removes(update: &Update) -> bool {
    match update {
        Update::Delete(_) => true,
        Update::Apply(Object::Service(object)) => Service::from_api(object).is_err(),
        Update::Apply(Object::EndpointSlice(object)) => Slice::from_api(object).is_err(),
        _ => false,
    }
}

/// How long a removal waits.
pub(super) const WAIT: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source;

    fn service(name: &str, spec: &str) -> Update {
        let text = format!("{{apiVersion: v1, kind: Service, metadata: {{name: {name}}}, spec: {{{spec}}}}}");
        let mut found = None;
        source::read_str("test.yaml", &text, |manifest| found = Some(manifest.object)).unwrap();
        Update::Apply(found.unwrap())
    }

    fn gone(name: &str) -> Update {
        Update::Delete(ObjectName::Service { namespace: "default".to_owned(), name: name.to_owned() })
    }

    #[test]
    fn what_is_back_in_time_was_never_gone() {
        let valid = |name| service(name, "clusterIP: 10.96.0.1, ports: [{port: 80}]");
        let mut patience = Patience::default();
        let (start, mut sent) = (Instant::now(), Vec::new());
        let mut send = |update| sent.push(update);
        patience.pass([gone("a"), gone("b"), service("c", "clusterIP: 10.96.0")], false, start, &mut send);
        assert_eq!(patience.next(), Some(start + WAIT));
        patience.end(start + WAIT / 2, &mut send);
        // Gone once more: it has waited since the first time.
        patience.pass([gone("b")], false, start + WAIT / 2, &mut send);
        patience.pass([valid("a"), valid("c")], false, start + WAIT / 2, &mut send);
        patience.end(start + WAIT, &mut send);
        assert_eq!(patience.next(), None);
        // Something else has come in its place.
        patience.pass([gone("a"), valid("d")], true, start, &mut send);
        assert_eq!(sent, [valid("a"), valid("c"), gone("b"), gone("a"), valid("d")]);
    }
}
