//! What the source of objects has told: for each kind, whether it was listed, when it was last heard of, and
//! what fails. Callers pass in the time.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::readyz::Condition;
use crate::source::update::Kind;

/// The state of the kinds that the source follows.
#[derive(Clone, Debug)]
pub(super) struct Sources {
    kinds: BTreeMap<Kind, State>,
    /// Whether the source is files, some of which were not usable before.
    has_files: bool,
    /// Since when files cannot be used, and why.
    unusable: Option<(Instant, String)>,
}

#[derive(Clone, Debug, Default)]
struct State {
    is_listed: bool,
    /// `None` for a source that asks nobody.
    heard: Option<Instant>,
    /// Since when it fails, and why.
    failing: Option<(Instant, String)>,
}

impl Default for Sources {
    /// Returns the kinds without which nothing is programmed.
    fn default() -> Self {
        let kinds = [Kind::Service, Kind::EndpointSlice].map(|kind| (kind, State::default())).into();
        Self { kinds, has_files: false, unusable: None }
    }
}

impl Sources {
    /// Records that all objects of a kind are known.
    pub(super) fn listed(&mut self, kind: Kind) {
        self.kinds.entry(kind).or_default().is_listed = true;
    }

    /// Records a message of the server about a kind.
    pub(super) fn heard(&mut self, kind: Kind, now: Instant) {
        let state = self.kinds.entry(kind).or_default();
        (state.heard, state.failing) = (Some(now), None);
    }

    /// Records a failure to list or watch a kind.
    pub(super) fn failed(&mut self, kind: Kind, reason: &str, now: Instant) {
        let state = self.kinds.entry(kind).or_default();
        let since = state.failing.take().map_or(now, |(since, _)| since);
        state.failing = Some((since, reason.to_owned()));
    }

    /// Records which files cannot be used, and why.
    pub(super) fn unusable(&mut self, files: &[String], now: Instant) {
        self.has_files = true;
        let since = self.unusable.take().map_or(now, |(since, _)| since);
        self.unusable = (!files.is_empty()).then(|| (since, files.join("; ")));
    }

    /// Returns one condition for each kind: it was listed, and does not fail for long. Another one is for
    /// files, if some could not be used.
    pub(super) fn conditions(&self, now: Instant) -> Vec<Condition> {
        let condition = |(kind, state): (&Kind, &State)| {
            let problem = match &state.failing {
                Some((since, why))
                    if !state.is_listed || now.saturating_duration_since(*since) >= LASTING =>
                {
                    Some(format!("for {} s: {why}", now.saturating_duration_since(*since).as_secs()))
                }
                _ if !state.is_listed => Some("not listed yet".to_owned()),
                _ => None,
            };
            Condition::new(resource(*kind), problem)
        };
        let is_listed = self.kinds.values().all(|state| state.is_listed);
        let files = self.has_files.then(|| {
            let lasting =
                self.unusable.as_ref().map(|(since, why)| (now.saturating_duration_since(*since), why));
            // What is written anew is usable in a moment; until then its last objects are.
            let problem = lasting.filter(|(lasts, _)| !is_listed || *lasts >= LASTING);
            Condition::new(
                "manifests",
                problem.map(|(lasts, why)| format!("for {} s: {why}", lasts.as_secs())),
            )
        });
        self.kinds.iter().map(condition).chain(files).collect()
    }

    /// Returns for each kind its resource, whether it was listed, and the time since it was last heard of.
    pub(super) fn resources(
        &self,
        now: Instant,
    ) -> impl Iterator<Item = (&'static str, bool, Option<Duration>)> {
        self.kinds.iter().map(move |(kind, state)| {
            let silent = state.heard.map(|heard| now.saturating_duration_since(heard));
            (resource(*kind), state.is_listed, silent)
        })
    }
}

/// Returns the name of the resource in the API.
const fn resource(kind: Kind) -> &'static str {
    match kind {
        Kind::Service => "services",
        Kind::EndpointSlice => "endpointslices",
        Kind::Node => "nodes",
        Kind::ServiceCidr => "servicecidrs",
    }
}

/// The time after which a failure of what was listed makes it unready: a server that restarts is back sooner.
const LASTING: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_cannot_be_used_make_it_unready_after_a_minute() {
        let (start, mut sources) = (Instant::now(), Sources::default());
        let at = |seconds| start + Duration::from_secs(seconds);
        let last = |sources: &Sources, seconds| sources.conditions(at(seconds)).last().unwrap().to_string();
        assert!(!last(&sources, 0).contains("manifests"), "another source");
        sources.unusable(&["a.yaml: no".to_owned()], at(0));
        assert_eq!(last(&sources, 1), "[-]manifests failed: for 1 s: a.yaml: no", "nothing can be used yet");
        Kind::ALL.into_iter().for_each(|kind| sources.listed(kind));
        assert_eq!(last(&sources, 2), "[+]manifests ok");
        sources.unusable(&["a.yaml: no".to_owned(), "b.yaml: neither".to_owned()], at(30));
        assert_eq!(last(&sources, 59), "[+]manifests ok");
        assert_eq!(last(&sources, 60), "[-]manifests failed: for 60 s: a.yaml: no; b.yaml: neither");
        sources.unusable(&[], at(61));
        assert_eq!(last(&sources, 1000), "[+]manifests ok");
    }

    #[test]
    fn a_kind_is_ready_when_it_was_listed_until_it_fails_for_a_minute() {
        let (start, mut sources) = (Instant::now(), Sources::default());
        let at = |seconds| start + Duration::from_secs(seconds);
        let services = |sources: &Sources, seconds| sources.conditions(at(seconds))[0].to_string();
        assert_eq!(services(&sources, 0), "[-]services failed: not listed yet");
        sources.failed(Kind::Service, "403 Forbidden", at(1));
        sources.failed(Kind::Service, "403 Forbidden: no", at(5));
        assert_eq!(services(&sources, 9), "[-]services failed: for 8 s: 403 Forbidden: no");
        sources.heard(Kind::Service, at(10));
        sources.listed(Kind::Service);
        assert_eq!(services(&sources, 10_000), "[+]services ok");
        sources.failed(Kind::Service, "gone", at(20));
        assert_eq!(services(&sources, 79), "[+]services ok");
        assert_eq!(services(&sources, 80), "[-]services failed: for 60 s: gone");
        let resources: Vec<_> = sources.resources(at(30)).collect();
        assert_eq!(
            resources,
            [("services", true, Some(Duration::from_secs(20))), ("endpointslices", false, None)]
        );
    }
}
