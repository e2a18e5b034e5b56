//! Removals that wait for a moment: what is gone from a file is often back in the next write.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::ServicePort;
use sluicegate_services::{Service, Slice};

use crate::source::Object;
use crate::source::update::{ObjectName, Update};

/// The removals that wait: deletions, and objects without anything valid in place of what may be in use. One
/// does not wait where another object claims what this one has: they would be in conflict.
#[derive(Debug, Default)]
pub(super) struct DelayedRemovals {
    held: BTreeMap<ObjectName, (Instant, Update)>,
    /// The claims of those that are held.
    wanted: HashMap<u64, HashSet<ObjectName>>,
    /// What each object claims, by the hash of its name. By hashes, as there may be very many; one that is
    /// shared by chance makes a removal early.
    claims: HashMap<u64, Box<[u64]>>,
    /// What the objects claim that the large file which is being read has no longer.
    going: HashSet<u64>,
    /// Objects of that file that claim the same: they wait until the others are deleted.
    aside: Vec<Update>,
    hasher: RandomState,
}

impl DelayedRemovals {
    /// Notes what an object claims that is passed on without this.
    pub(super) fn note(&mut self, update: &Update) {
        let Some(name) = name(update) else { return };
        let key = self.hasher.hash_one(&name);
        match update {
            Update::Apply(object) => drop(self.claims.insert(key, claims(object, &self.hasher))),
            _ => drop(self.claims.remove(&key)),
        }
    }

    /// Begins a large file, which no longer has these objects.
    pub(super) fn begin(&mut self, going: &[ObjectName]) {
        let claims = going.iter().filter_map(|name| self.claims.get(&self.hasher.hash_one(name)));
        self.going = claims.flatten().copied().collect();
        self.aside.clear();
    }

    /// Passes on an object of a large file while that is being read. One that takes the place of another which
    /// the file has no longer is kept for [`Self::take_aside`]: before that is deleted, they would be in
    /// conflict.
    pub(super) fn pass_part(&mut self, update: Update, now: Instant, send: &mut dyn FnMut(Update)) {
        if self.replaces(&update) {
            self.aside.push(update);
        } else {
            self.pass([update], false, now, send);
        }
    }

    fn replaces(&self, update: &Update) -> bool {
        let Update::Apply(object) = update else { return false };
        if self.going.is_empty() || removes(update) {
            return false;
        }
        // What a slice claims it shares with others of its service: one that was there replaces none.
        let is_known = || self.claims.contains_key(&self.hasher.hash_one(ObjectName::of(object)));
        let is_slice = matches!(object, Object::EndpointSlice(_));
        (!is_slice || !is_known())
            && claims(object, &self.hasher).iter().any(|claim| self.going.contains(claim))
    }

    /// Returns the objects that were kept, to be passed on with the deletions that a large file ends with.
    pub(super) fn take_aside(&mut self) -> Vec<Update> {
        self.going.clear();
        std::mem::take(&mut self.aside)
    }

    /// Passes on the updates of one look at the files. Removals wait, unless it `is_sure` that they are meant.
    pub(super) fn pass(
        &mut self,
        updates: impl IntoIterator<Item = Update>,
        is_sure: bool,
        now: Instant,
        send: &mut dyn FnMut(Update),
    ) {
        let updates: Vec<Update> = updates.into_iter().collect();
        let mut claimed = HashSet::new();
        for update in updates.iter().filter(|update| !removes(update)) {
            let Update::Apply(object) = update else { continue };
            let name = ObjectName::of(object);
            // A slice that was there claims nothing of others that have gone: they may still be written.
            let is_slice = matches!(object, Object::EndpointSlice(_));
            if !is_slice || !self.claims.contains_key(&self.hasher.hash_one(&name)) {
                claimed.extend(claims(object, &self.hasher));
            }
            self.release(&name);
        }
        let replaced: Vec<_> = claimed.iter().filter_map(|claim| self.wanted.get(claim)).flatten().collect();
        for name in replaced.into_iter().cloned().collect::<HashSet<_>>() {
            if let Some((_, update)) = self.release(&name) {
                self.send(update, send);
            }
        }
        for update in updates {
            match name(&update) {
                Some(name) if !is_sure && removes(&update) && !self.is_replaced(&name, &claimed) => {
                    // A file that is written all the time does not keep what is gone.
                    let due = self.held.get(&name).map_or(now + WAIT, |(due, _)| *due);
                    let of = self.claims.get(&self.hasher.hash_one(&name));
                    for claim in of.into_iter().flatten() {
                        self.wanted.entry(*claim).or_default().insert(name.clone());
                    }
                    self.held.insert(name, (due, update));
                }
                Some(name) => {
                    self.release(&name);
                    self.send(update, send);
                }
                None => send(update),
            }
        }
    }

    fn send(&mut self, update: Update, send: &mut dyn FnMut(Update)) {
        self.note(&update);
        send(update);
    }

    fn is_replaced(&self, name: &ObjectName, claimed: &HashSet<u64>) -> bool {
        let of = self.claims.get(&self.hasher.hash_one(name));
        of.into_iter().flatten().any(|claim| claimed.contains(claim))
    }

    /// Holds a removal no longer.
    fn release(&mut self, name: &ObjectName) -> Option<(Instant, Update)> {
        let held = self.held.remove(name)?;
        for claim in self.claims.get(&self.hasher.hash_one(name)).into_iter().flatten() {
            if let Some(names) = self.wanted.get_mut(claim) {
                names.remove(name);
                if names.is_empty() {
                    self.wanted.remove(claim);
                }
            }
        }
        Some(held)
    }

    /// Passes on the removals that have waited for long enough.
    pub(super) fn end(&mut self, now: Instant, send: &mut dyn FnMut(Update)) {
        let due = self.held.iter().filter(|(_, (due, _))| *due <= now);
        for name in due.map(|(name, _)| name.clone()).collect::<Vec<_>>() {
            if let Some((_, update)) = self.release(&name) {
                self.send(update, send);
            }
        }
    }

    /// Returns when the next removal has waited for long enough.
    pub(super) fn next(&self) -> Option<Instant> {
        self.held.values().map(|(due, _)| *due).min()
    }
}

/// Returns what no other object can have at the same time: of a Service its addresses and node ports, of an
/// EndpointSlice its place beside the others of its service.
fn claims(object: &Object, hasher: &RandomState) -> Box<[u64]> {
    match object {
        Object::Service(object) => {
            let Some(spec) = &object.spec else { return Box::default() };
            let listed = spec.cluster_ips.iter().chain(&spec.external_ips).flatten();
            let balancer = object.status.as_ref().and_then(|status| status.load_balancer.as_ref());
            let ingress = balancer.and_then(|balancer| balancer.ingress.as_ref()).into_iter().flatten();
            let ips = listed.chain(&spec.cluster_ip).chain(ingress.filter_map(|ingress| ingress.ip.as_ref()));
            let ips: Vec<&str> = ips.map(String::as_str).filter(|ip| !matches!(*ip, "" | "None")).collect();
            let of_port = |port: &ServicePort| {
                let protocol = port.protocol.as_deref().unwrap_or("TCP");
                let node_port = port.node_port.filter(|number| *number != 0).map(|number| ("", number));
                let fronts = ips.iter().map(|ip| (*ip, port.port)).chain(node_port);
                fronts.map(|(ip, number)| hasher.hash_one((protocol, ip, number))).collect::<Vec<_>>()
            };
            spec.ports.iter().flatten().flat_map(of_port).collect()
        }
        Object::EndpointSlice(object) => {
            let labels = object.metadata.labels.as_ref();
            let service = labels.and_then(|labels| labels.get("kubernetes.io/service-name"));
            let namespace = object.metadata.namespace.as_deref().unwrap_or("default");
            service
                .map(|service| hasher.hash_one((namespace, service.as_str(), object.address_type.as_str())))
                .into_iter()
                .collect()
        }
        Object::Node(_) | Object::ServiceCidr(_) => Box::default(),
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
        let mut removals = DelayedRemovals::default();
        let (start, mut sent) = (Instant::now(), Vec::new());
        let mut send = |update| sent.push(update);
        removals.pass([gone("a"), gone("b"), service("c", "clusterIP: 10.96.0")], false, start, &mut send);
        assert_eq!(removals.next(), Some(start + WAIT));
        removals.end(start + WAIT / 2, &mut send);
        // Gone once more: it has waited since the first time.
        removals.pass([gone("b")], false, start + WAIT / 2, &mut send);
        removals.pass([valid("a"), valid("c")], false, start + WAIT / 2, &mut send);
        removals.end(start + WAIT, &mut send);
        assert_eq!(removals.next(), None);
        // It is certain.
        removals.pass([gone("a"), valid("d")], true, start, &mut send);
        assert_eq!(sent, [valid("a"), valid("c"), gone("b"), gone("a"), valid("d")]);
    }

    #[test]
    fn what_another_claims_does_not_wait() {
        let of = |name, last: u8, port: u16| {
            service(name, &format!("clusterIP: 10.96.0.{last}, ports: [{{port: 80, nodePort: {port}}}]"))
        };
        let mut removals = DelayedRemovals::default();
        let (start, mut sent) = (Instant::now(), Vec::new());
        let before = [of("a", 1, 30001), of("b", 2, 30002), of("c", 3, 30003), of("d", 4, 30004)];
        before.iter().for_each(|update| removals.note(update));
        let mut send = |update| sent.push(update);
        // In one look, by the address; a stranger is no reason.
        removals.pass([gone("a"), gone("b"), gone("c"), of("e", 1, 30005)], false, start, &mut send);
        // In the next one, by the node port; what is back is no stranger.
        removals.pass([of("f", 6, 30002), of("c", 3, 30003)], false, start + WAIT / 2, &mut send);
        // A service that was there takes the address of one that has gone.
        removals.pass([gone("d")], false, start + WAIT / 2, &mut send);
        removals.pass([of("c", 4, 30003)], false, start + WAIT / 2, &mut send);
        assert_eq!(removals.next(), None);
        let expected = [
            gone("a"),
            of("e", 1, 30005),
            gone("b"),
            of("f", 6, 30002),
            of("c", 3, 30003),
            gone("d"),
            of("c", 4, 30003),
        ];
        assert_eq!(sent, expected);
        assert!(removals.wanted.is_empty() && removals.claims.len() == 3, "{removals:?}");
    }

    #[test]
    fn an_object_of_a_large_file_waits_for_what_it_replaces() {
        let of = |name, last: u8| service(name, &format!("clusterIP: 10.96.0.{last}, ports: [{{port: 80}}]"));
        let (mut removals, mut sent, start) = (DelayedRemovals::default(), Vec::new(), Instant::now());
        [of("a", 1), of("b", 2)].iter().for_each(|update| removals.note(update));
        let mut send = |update| sent.push(update);
        let a = ObjectName::Service { namespace: "default".to_owned(), name: "a".to_owned() };
        removals.begin(&[a]);
        for update in [of("c", 1), of("d", 4), of("b", 1)] {
            removals.pass_part(update, start, &mut send);
        }
        let mut end = vec![gone("a")];
        end.extend(removals.take_aside());
        removals.pass(end, false, start, &mut send);
        removals.pass_part(of("e", 1), start, &mut send);
        assert_eq!(sent, [of("d", 4), gone("a"), of("c", 1), of("b", 1), of("e", 1)]);
        assert_eq!(removals.next(), None);
    }

    #[test]
    fn a_new_slice_of_a_service_stands_for_one_that_has_gone() {
        let slice = |name: &str, port: u16| {
            let text = format!(
                "{{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {{name: {name}, labels: \
                 {{kubernetes.io/service-name: web}}}}, addressType: IPv4, ports: [{{port: {port}}}], endpoints: []}}"
            );
            let mut found = None;
            source::read_str("test.yaml", &text, |manifest| found = Some(manifest.object)).unwrap();
            Update::Apply(found.unwrap())
        };
        let gone = |name: &str| {
            Update::Delete(ObjectName::EndpointSlice {
                namespace: "default".to_owned(),
                name: name.to_owned(),
            })
        };
        let (mut removals, mut sent, start) = (DelayedRemovals::default(), Vec::new(), Instant::now());
        ["web-1", "web-2"].iter().for_each(|name| removals.note(&slice(name, 80)));
        let mut send = |update| sent.push(update);
        // The half of a list.
        removals.pass([gone("web-2"), slice("web-1", 81)], false, start, &mut send);
        removals.pass([slice("web-3", 80)], false, start, &mut send);
        assert_eq!(sent, [slice("web-1", 81), gone("web-2"), slice("web-3", 80)]);
    }
}
