//! The frontends and endpoints that listed rules have, ours or kube-proxy's.

use std::net::SocketAddr;

use sluicegate_iptables_save::{Save, Table, split};
use sluicegate_services::{Family, Frontend, Protocol};

use crate::flows::Programmed;

/// Returns the frontends whose flows may become stale, and their endpoints.
pub(super) fn programmed(current: &Save<'_>, family: Family) -> Programmed {
    let mut programmed = Programmed::default();
    for rule in current.table("nat").into_iter().flat_map(Table::rules) {
        let text = rule.text();
        // Splitting all rules into words would take longer than the comparison does.
        let protocol = [(Protocol::Udp, "-p udp"), (Protocol::Sctp, "-p sctp")];
        let Some((protocol, _)) = protocol.into_iter().find(|(_, words)| text.contains(words)) else {
            continue;
        };
        let Ok(words) = split(text).collect::<Result<Vec<_>, _>>() else { continue };
        let after = |option: &str| {
            let mut words = words.iter().skip_while(|word| word.text != option);
            words.nth(1).map(|word| &*word.text)
        };
        if rule.chain().starts_with("KUBE-SEP-") {
            let to = after("--to-destination").and_then(|to| to.parse::<SocketAddr>().ok());
            programmed.endpoints.extend(to);
            continue;
        }
        let Some(port) = after("--dport").and_then(|port| port.parse().ok()) else { continue };
        match (rule.chain(), after("-d")) {
            ("KUBE-SERVICES", Some(address)) => {
                let ip = address.split('/').next().and_then(|ip| ip.parse().ok());
                programmed.frontends.extend(ip.map(|ip| Frontend::Address(ip, protocol, port)));
            }
            ("KUBE-NODEPORTS", _) => {
                programmed.frontends.insert(Frontend::NodePort(family, protocol, port));
            }
            _ => {}
        }
    }
    programmed
}
