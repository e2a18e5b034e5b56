//! A cluster from short manifests, and the state of iptables for comparison.

use std::collections::BTreeSet;

use crate::manifests::Manifests;
use sluicegate_iptables_save::Save;
use sluicegate_service_rules::iptables::{Feature, Planner, Settings, Support};
use sluicegate_services::{Cluster, DetectLocal, Family, Node};

/// The two back ends, by what stands between `iptables` and `-restore`.
pub(crate) const BACK_ENDS: [&str; 2] = ["legacy", "nft"];

/// A cluster, its planner, and the tool that loads the plan.
pub(crate) struct World {
    pub(crate) cluster: Cluster,
    pub(crate) planner: Planner,
    back_end: &'static str,
}

impl World {
    pub(crate) fn new(family: Family, back_end: &'static str, settings: &Settings, manifests: &str) -> Self {
        let mut cluster = cluster(manifests);
        cluster.take_changes();
        let planner =
            Planner::new(family, settings, support(), &cluster, None).expect("the settings are good");
        Self { cluster, planner, back_end }
    }

    /// Loads the whole plan.
    pub(crate) fn load(&mut self) {
        restore(self.planner.family(), self.back_end, &self.planner.input().to_string());
    }

    /// Replaces the objects of the cluster by those of `manifests`. Returns the input that was sent.
    pub(crate) fn become_(&mut self, manifests: &str) -> Save<'static> {
        let wanted = Manifests::read(manifests);
        let services: BTreeSet<_> = wanted.services.iter().map(|(name, _)| name.clone()).collect();
        let gone: Vec<_> =
            self.cluster.service_names().filter(|name| !services.contains(name)).cloned().collect();
        gone.iter().for_each(|name| self.cluster.set_service(name, None));
        let slices: BTreeSet<_> = wanted.slices.iter().map(|(name, _)| name.clone()).collect();
        let gone: Vec<_> =
            self.cluster.slice_names().filter(|name| !slices.contains(name)).cloned().collect();
        gone.iter().for_each(|name| self.cluster.set_slice(name, None));
        for (name, service) in wanted.services {
            self.cluster.set_service(&name, Some(service));
        }
        for (name, slice) in wanted.slices {
            self.cluster.set_slice(&name, Some(slice));
        }
        self.sync()
    }

    /// Sends the changes.
    pub(crate) fn sync(&mut self) -> Save<'static> {
        let changes = self.cluster.take_changes();
        let input = self.planner.sync(&self.cluster, &changes).expect("plans can be compared");
        restore(self.planner.family(), self.back_end, &input.to_string());
        input
    }
}

/// Returns the features that all kernels of the tests have: few have nfacct.
pub(crate) fn support() -> Support {
    Support::without([Feature::Nfacct, Feature::RandomFully])
}

pub(crate) fn cluster(manifests: &str) -> Cluster {
    let mut found = Manifests::read(manifests);
    let node = found.nodes.pop().unwrap_or_else(|| Node {
        name: "test-node".to_owned(),
        addresses: ["192.168.0.2", "fd00:192:168::2"].map(|ip| ip.parse().expect("an address")).into(),
        ..Node::default()
    });
    found.into_cluster(node)
}

/// The settings of the worked example.
pub(crate) fn settings() -> Settings {
    let cidr = |text: &str| text.parse().expect("a CIDR");
    Settings {
        detect_local: DetectLocal::ClusterCidrs(vec![cidr("10.244.0.0/16"), cidr("fd00:10:244::/56")]),
        ..Settings::default()
    }
}

/// `iptables-legacy-restore --noflush --counters`
pub(crate) fn restore(family: Family, back_end: &str, input: &str) {
    let tool = format!("{}-{back_end}-restore", stem(family));
    let output = testns::feed(&[&tool, "-w", "5", "--noflush", "--counters"], input);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{tool}: {errors}\ninput:\n{input}");
}

/// Returns the output of iptables-save without dates and counters, chains in the order of their names.
pub(crate) fn saved(family: Family, back_end: &str) -> Vec<String> {
    let text = testns::sh(&format!("{}-{back_end}-save", stem(family)));
    let mut lines: Vec<String> = Vec::new();
    let mut table = String::new();
    for line in text.lines().filter(|line| !line.starts_with('#') && *line != "COMMIT") {
        match line.strip_prefix('*') {
            Some(name) => table = name.to_owned(),
            None => lines.push(format!("{table} {}", line.split(" [").next().unwrap_or_default())),
        }
    }
    // A stable sort by chain, which keeps the order of rules inside each chain.
    lines.sort_by_key(|line| {
        let words: Vec<_> = line.split_whitespace().take(3).collect();
        match words.as_slice() {
            [table, "-A", chain] => format!("{table} -A {chain}"),
            _ => line.clone(),
        }
    });
    lines
}

fn stem(family: Family) -> &'static str {
    match family {
        Family::Ipv4 => "iptables",
        Family::Ipv6 => "ip6tables",
    }
}

/// Returns true if both back ends are installed for both families; otherwise skips the test.
pub(crate) fn have_iptables() -> bool {
    testns::have(&[
        "iptables-legacy-restore",
        "iptables-nft-restore",
        "ip6tables-legacy-restore",
        "ip6tables-nft-restore",
    ])
}

/// Returns the lines that only one of two listings has.
pub(crate) fn difference(a: &[String], b: &[String]) -> String {
    let only = |x: &[String], y: &[String], sign: &str| -> String {
        x.iter().filter(|line| !y.contains(line)).map(|line| format!("{sign} {line}\n")).collect()
    };
    only(a, b, "-") + &only(b, a, "+")
}
