//! A cluster from short manifests, and the listing of nft for comparison.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::manifests::Manifests;
use sluicegate_nftables::Transaction;
use sluicegate_service_rules::nftables::{Layout, Planner, Settings};
use sluicegate_services::{Cluster, DetectLocal, Family, Node, NodePortAddresses};

/// A cluster and its planner. The clock advances by two seconds with each sync, so that unused chains are
/// deleted.
pub(crate) struct World {
    pub(crate) cluster: Cluster,
    pub(crate) planner: Planner,
    pub(crate) now: Instant,
}

impl World {
    pub(crate) fn new(settings: &Settings, manifests: &str) -> Self {
        let mut cluster = cluster(manifests);
        cluster.take_changes();
        let planner = Planner::new(settings, &cluster, None).expect("the settings are good");
        Self { cluster, planner, now: Instant::now() }
    }

    /// Loads the whole plan.
    pub(crate) fn load(&mut self) {
        run_nft(&self.planner.replacement());
    }

    /// Replaces the objects of the cluster by those of `manifests`. Returns the transaction that was sent.
    pub(crate) fn become_(&mut self, manifests: &str) -> Transaction {
        let wanted = Manifests::read(manifests);
        let services: BTreeSet<_> = wanted.services.iter().map(|(name, _)| name.clone()).collect();
        let gone: Vec<_> =
            self.cluster.service_names().filter(|name| !services.contains(name)).cloned().collect();
        gone.iter().for_each(|name| self.cluster.set_service(name, None));
        let slices: BTreeSet<_> = wanted.slices.iter().map(|(name, _)| name.clone()).collect();
        let gone: Vec<_> =
            self.cluster.slice_names().filter(|name| !slices.contains(name)).cloned().collect();
        gone.iter().for_each(|name| self.cluster.set_slice(name, None));
        wanted
            .services
            .into_iter()
            .for_each(|(name, service)| self.cluster.set_service(&name, Some(service)));
        wanted.slices.into_iter().for_each(|(name, slice)| self.cluster.set_slice(&name, Some(slice)));
        self.sync()
    }

    /// Deletes stale chains, then sends the changes.
    pub(crate) fn sync(&mut self) -> Transaction {
        self.now += Duration::from_secs(2);
        let stale = self.planner.remove_stale(self.now);
        if !stale.is_empty() {
            // An old kernel may still count references of deleted elements to the chain.
            std::thread::sleep(Duration::from_millis(50));
            run_nft(&stale);
        }
        let changes = self.cluster.take_changes();
        let transaction = self.planner.sync(&self.cluster, &changes, self.now);
        run_nft(&transaction);
        transaction
    }

    /// Deletes stale chains without another change.
    pub(crate) fn settle(&mut self) {
        self.sync();
        self.sync();
        assert!(!self.planner.has_stale());
    }
}

pub(crate) fn cluster(manifests: &str) -> Cluster {
    let mut found = Manifests::read(manifests);
    let node = found.nodes.pop().unwrap_or_else(|| Node { name: "test-node".to_owned(), ..Node::default() });
    let mut cluster = found.into_cluster(node);
    cluster.set_service_cidr("kubernetes", &["172.30.0.0/16".parse().expect("a CIDR")]);
    cluster
}

/// The settings of the worked example.
pub(crate) fn settings(layout: Layout) -> Settings {
    let cidr = |text: &str| text.parse().expect("a CIDR");
    Settings {
        layout,
        families: Family::BOTH.into(),
        detect_local: DetectLocal::ClusterCidrs(vec![cidr("10.244.0.0/16"), cidr("fd00:10:244::/56")]),
        node_port_addresses: NodePortAddresses::every(),
        ..Settings::default()
    }
}

pub(crate) fn run_nft(transaction: &Transaction) {
    run_nft_text(&transaction.to_string());
}

pub(crate) fn run_nft_text(script: &str) {
    let output = testns::feed(&["nft", "-f", "-"], script);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{errors}\nscript:\n{script}");
}

/// Returns the listing of a table as sorted lines, one for each element, without sizes.
pub(crate) fn listing(table: &str) -> Vec<String> {
    let text = testns::sh(&format!("nft -s list table {table}"));
    let mut lines = BTreeSet::new();
    let (mut block, mut rule, mut in_elements) = (String::new(), 0, false);
    for line in text.lines().map(str::trim) {
        let opens = line.ends_with('{')
            && ["table ", "chain ", "set ", "map "].iter().any(|word| line.starts_with(word));
        if opens {
            (block, rule) = (line.to_owned(), 0);
            lines.insert(line.to_owned());
            continue;
        }
        in_elements |= line.starts_with("elements = {");
        if in_elements {
            let items = line.trim_start_matches("elements = {").trim_end_matches('}');
            in_elements = !line.ends_with('}');
            for item in items
                .split(", ")
                .map(|item| item.trim().trim_end_matches(','))
                .filter(|item| !item.is_empty())
            {
                lines.insert(format!("{block} {item}"));
            }
        } else if !line.is_empty() && line != "}" && !line.starts_with("size ") {
            // Rules are numbered to keep their order.
            rule += 1;
            lines.insert(format!("{block} {rule} {line}"));
        }
    }
    lines.into_iter().collect()
}

/// Returns the lines that only one of two listings has.
pub(crate) fn difference(a: &[String], b: &[String]) -> String {
    let only = |x: &[String], y: &[String], sign: &str| -> String {
        x.iter().filter(|line| !y.contains(line)).map(|line| format!("{sign} {line}\n")).collect()
    };
    only(a, b, "-") + &only(b, a, "+")
}
