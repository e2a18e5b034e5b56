//! The matrix without a packet: what the explanation of each case says, against the reference.

use std::collections::BTreeSet;

use sluicegate_proxier::Mode;
use sluicegate_service_rules::explain::{Choice, Question, Settings, Source as Seen, Verdict, explain};
use sluicegate_services::{Cluster, DetectLocal, Family, NodePortAddresses, Protocol};

use super::reference::{Client, Endpoints, Expectation, Front, Place, Source, Variation, variations};
use super::services;

/// One case: a client, an address of a service, a protocol, a family.
struct Case<'a> {
    index: usize,
    variation: &'a Variation,
    front: Front,
    client: Client,
    family: Family,
    protocol: Protocol,
}

impl Case<'_> {
    /// Asserts that the explanation says what the reference expects.
    fn check(&self, cluster: &Cluster, settings: &Settings) {
        let question = Question {
            from: services::source(self.client, self.family),
            from_port: None,
            interface: None,
            to: services::target(self.index, self.front, self.family),
            protocol: self.protocol,
        };
        let explanation = explain(cluster, settings, &question).expect("an answer");
        let (front, client, mode) = (self.front, self.client, settings.mode);
        let expected = self.variation.expect(front, client, mode);
        let found = match &explanation.verdict {
            Verdict::Forwarded { choices, sticky, .. } => {
                let by: BTreeSet<Place> = choices.iter().map(services::place_of).collect();
                assert_eq!(by.len(), choices.len(), "{explanation}");
                choices.iter().for_each(|choice| self.check_choice(choice, choices.len(), mode));
                Expectation::Answered { by, sticky: sticky.is_some() }
            }
            Verdict::Refused(_) => Expectation::Refused,
            Verdict::Dropped(_) => Expectation::Dropped,
            // Packets of the node that no rule stops leave for nowhere, which the reference cannot tell from
            // packets that are dropped.
            Verdict::Untouched(_)
                if mode == Mode::Iptables && self.variation.endpoints == Endpoints::None =>
            {
                assert_eq!(client, Client::Node, "{explanation}");
                Expectation::Dropped
            }
            Verdict::Untouched(_) => panic!("{explanation}"),
        };
        assert_eq!(found, expected, "{:?} {front:?} {client:?}\n{explanation}", self.variation);
    }

    fn check_choice(&self, choice: &Choice, count: usize, mode: Mode) {
        let wanted = match self.variation.source(self.front, self.client, services::place_of(choice), mode) {
            Source::Client => Seen::Client,
            Source::Node => Seen::Node,
            Source::Target => Seen::Destination,
        };
        assert_eq!(choice.source, wanted, "{:?} {:?} {:?} {mode}", self.variation, self.front, self.client);
        let share = 1.0 / f64::from(u32::try_from(count).expect("few endpoints"));
        assert!((choice.probability.expect("a probability") - share).abs() < f64::EPSILON, "{choice}");
    }
}

fn settings(mode: Mode) -> Settings {
    let node_port_addresses = match mode {
        Mode::Nftables => NodePortAddresses::default(),
        Mode::Iptables | Mode::Ipvs => NodePortAddresses::every(),
    };
    let detect_local = DetectLocal::ClusterCidrs(services::cluster_cidrs());
    Settings { mode, detect_local, node_port_addresses, ..Settings::default() }
}

#[test]
fn every_case_is_explained_as_the_documentation_has_it_in_every_mode() {
    let variations = variations();
    let cluster = services::cluster(&variations);
    for mode in Mode::ALL {
        let (settings, mut cases) = (settings(mode), 0);
        for (index, variation) in variations.iter().enumerate() {
            for (front, client) in
                Front::ALL.into_iter().flat_map(|front| Client::ALL.map(|client| (front, client)))
            {
                for (family, protocol) in Family::BOTH
                    .into_iter()
                    .flat_map(|family| [Protocol::Tcp, Protocol::Udp].map(|protocol| (family, protocol)))
                {
                    let case = Case { index, variation, front, client, family, protocol };
                    case.check(&cluster, &settings);
                    cases += 1;
                }
            }
        }
        assert_eq!(cases, 11_200, "{mode}");
    }
}
