//! The chains that do not belong to a service, what stands in them, and how packets get there.

use super::words::Style;
use super::{Feature, Support};
use crate::model::{Family, NodePorts};

/// A chain in which every service may have rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shared {
    /// filter: cluster IPs without endpoints.
    FilterServices,
    /// filter: other addresses without endpoints.
    ExternalServices,
    /// filter: health checks.
    FilterNodePorts,
    /// filter: what a load balancer's source ranges do not admit.
    ProxyFirewall,
    /// nat: addresses of services.
    Services,
    /// nat: node ports.
    NodePorts,
}

impl Shared {
    pub(super) const ALL: [Self; 6] = [
        Self::FilterServices,
        Self::ExternalServices,
        Self::FilterNodePorts,
        Self::ProxyFirewall,
        Self::Services,
        Self::NodePorts,
    ];

    /// Table and chain.
    pub(super) const fn place(self) -> (&'static str, &'static str) {
        match self {
            Self::FilterServices => ("filter", SERVICES),
            Self::ExternalServices => ("filter", EXTERNAL_SERVICES),
            Self::FilterNodePorts => ("filter", NODE_PORTS),
            Self::ProxyFirewall => ("filter", PROXY_FIREWALL),
            Self::Services => ("nat", SERVICES),
            Self::NodePorts => ("nat", NODE_PORTS),
        }
    }

    /// The shared chains of a table.
    pub(super) fn of(table: &str) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(move |chain| chain.place().0 == table)
    }
}

/// The rules that do not depend on services.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fixed {
    /// Chains of table filter with their rules, those that services share without rules.
    pub(super) filter: Vec<(&'static str, Vec<String>)>,
    /// Chains of table nat.
    pub(super) nat: Vec<(&'static str, Vec<String>)>,
    /// What must be last in chain KUBE-SERVICES of table nat.
    pub(super) tail: Vec<String>,
}

impl Fixed {
    pub(super) fn new(
        family: Family,
        style: &Style,
        mark: u32,
        node_ports: &NodePorts,
        tcp_be_liberal: bool,
    ) -> Self {
        let empty = |chain| (chain, Vec::new());
        Self {
            filter: vec![
                empty(SERVICES),
                empty(EXTERNAL_SERVICES),
                (FORWARD, forward(style, mark, tcp_be_liberal)),
                empty(NODE_PORTS),
                empty(PROXY_FIREWALL),
                (FIREWALL, firewall(style)),
            ],
            nat: vec![
                empty(SERVICES),
                empty(NODE_PORTS),
                (POSTROUTING, postrouting(style, mark)),
                (MARK_MASQ, mark_masq(style, mark)),
            ],
            tail: tail(family, style, node_ports),
        }
    }

    pub(super) fn of(&self, table: &str) -> &[(&'static str, Vec<String>)] {
        if table == "nat" { &self.nat } else { &self.filter }
    }
}

fn forward(style: &Style, mark: u32, tcp_be_liberal: bool) -> Vec<String> {
    let mut rules = Vec::new();
    let conntrack = style.has(Feature::Conntrack);
    if conntrack && !tcp_be_liberal {
        let count = match style.has(Feature::Nfacct) {
            true => format!(" -m nfacct --nfacct-name {INVALID_COUNTER}"),
            false => String::new(),
        };
        rules.push(format!("-m conntrack --ctstate INVALID{count} -j DROP"));
    }
    if style.has(Feature::Masquerade) {
        let comment = style.comment("kubernetes forwarding rules");
        rules.push(format!("{comment}-m mark --mark 0x{mark:08x}/0x{mark:08x} -j ACCEPT"));
    }
    if conntrack {
        let comment = style.comment("kubernetes forwarding conntrack rule");
        rules.push(format!("{comment}-m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT"));
    }
    rules
}

/// With `route_localnet`, others on the link could reach what listens on loopback alone.
fn firewall(style: &Style) -> Vec<String> {
    if !style.localhost || !style.has(Feature::Conntrack) {
        return Vec::new();
    }
    let comment = style.comment("block incoming localnet connections");
    vec![format!(
        "{comment}-d 127.0.0.0/8 ! -s 127.0.0.0/8 -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP"
    )]
}

fn postrouting(style: &Style, mark: u32) -> Vec<String> {
    if !style.has(Feature::Masquerade) {
        return Vec::new();
    }
    let comment = style.comment("kubernetes service traffic requiring SNAT");
    let random = if style.has(Feature::RandomFully) { " --random-fully" } else { "" };
    vec![
        format!("-m mark ! --mark 0x{mark:08x}/0x{mark:08x} -j RETURN"),
        format!("-j MARK --xor-mark 0x{mark:08x}"),
        format!("{comment}-j MASQUERADE{random}"),
    ]
}

fn mark_masq(style: &Style, mark: u32) -> Vec<String> {
    match style.has(Feature::Masquerade) {
        true => vec![format!("-j MARK --or-mark 0x{mark:08x}")],
        false => Vec::new(),
    }
}

fn tail(family: Family, style: &Style, node_ports: &NodePorts) -> Vec<String> {
    let comment =
        style.comment("kubernetes service nodeports; NOTE: this must be the last rule in this chain");
    match node_ports {
        NodePorts::All if !style.has(Feature::Addrtype) => Vec::new(),
        NodePorts::All => {
            let except = match family {
                Family::V4 if style.localhost => "",
                Family::V4 => " ! -d 127.0.0.0/8",
                Family::V6 => " ! -d ::1/128",
            };
            vec![format!("{comment}-m addrtype --dst-type LOCAL{except} -j {NODE_PORTS}")]
        }
        NodePorts::On(addresses) => {
            let answered = addresses.iter().filter(|ip| !ip.is_loopback() || style.localhost);
            answered.map(|ip| format!("{comment}-d {ip} -j {NODE_PORTS}")).collect()
        }
    }
}

/// A rule in a built-in chain that sends packets to one of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Jump {
    /// The table of both chains.
    pub table: &'static str,
    /// The built-in chain.
    pub from: &'static str,
    /// The chain of ours.
    pub to: &'static str,
    /// The words of the rule.
    pub words: String,
}

/// Every jump, in the order in which kube-proxy makes them; each goes in front of what is there, so the last of them
/// is met first.
#[must_use]
pub fn jumps(support: &Support) -> Vec<Jump> {
    JUMPS
        .iter()
        .map(|(table, from, to, new, comment)| {
            let state = match *new && support.has(Feature::Conntrack) {
                true => "-m conntrack --ctstate NEW ",
                false => "",
            };
            let comment = match comment.is_empty() || !support.has(Feature::Comment) {
                true => String::new(),
                false => format!("-m comment --comment \"{comment}\" "),
            };
            Jump { table, from, to, words: format!("{state}{comment}-j {to}") }
        })
        .collect()
}

/// Whether a chain is ours to change and delete, whoever made it.
#[must_use]
pub fn is_ours(table: &str, chain: &str) -> bool {
    match table {
        "nat" => {
            [SERVICES, NODE_PORTS, POSTROUTING, MARK_MASQ, CANARY].contains(&chain)
                || PREFIXES.iter().any(|prefix| chain.starts_with(prefix))
        }
        "filter" => [SERVICES, EXTERNAL_SERVICES, FORWARD, NODE_PORTS, PROXY_FIREWALL, FIREWALL, CANARY]
            .contains(&chain),
        "mangle" => chain == CANARY,
        _ => false,
    }
}

/// Shared with the kubelet: its jumps and the chain itself stay when everything else is removed.
pub const FIREWALL: &str = "KUBE-FIREWALL";
/// An empty chain in each table: when it is gone, somebody has flushed the table.
pub const CANARY: &str = "KUBE-PROXY-CANARY";
/// The tables that have a [`CANARY`].
pub const CANARY_TABLES: [&str; 3] = ["mangle", "nat", "filter"];
/// Where kube-proxy counts the invalid packets that it drops.
pub const INVALID_COUNTER: &str = "ct_state_invalid_dropped_pkts";
/// Where kube-proxy counts what comes to node ports on loopback.
pub const LOCALHOST_COUNTER: &str = "localhost_nps_accepted_pkts";

const SERVICES: &str = "KUBE-SERVICES";
const EXTERNAL_SERVICES: &str = "KUBE-EXTERNAL-SERVICES";
const FORWARD: &str = "KUBE-FORWARD";
const NODE_PORTS: &str = "KUBE-NODEPORTS";
const PROXY_FIREWALL: &str = "KUBE-PROXY-FIREWALL";
const POSTROUTING: &str = "KUBE-POSTROUTING";
pub(super) const MARK_MASQ: &str = "KUBE-MARK-MASQ";
const PREFIXES: [&str; 5] = ["KUBE-SVC-", "KUBE-SVL-", "KUBE-SEP-", "KUBE-FW-", "KUBE-EXT-"];

/// Table, from, to, new connections only, comment.
#[rustfmt::skip]
const JUMPS: &[(&str, &str, &str, bool, &str)] = &[
    ("filter", "INPUT", EXTERNAL_SERVICES, true, "kubernetes externally-visible service portals"),
    ("filter", "FORWARD", EXTERNAL_SERVICES, true, "kubernetes externally-visible service portals"),
    ("filter", "INPUT", NODE_PORTS, false, "kubernetes health check service ports"),
    ("filter", "FORWARD", SERVICES, true, "kubernetes service portals"),
    ("filter", "OUTPUT", SERVICES, true, "kubernetes service portals"),
    ("filter", "FORWARD", FORWARD, false, "kubernetes forwarding rules"),
    ("filter", "INPUT", PROXY_FIREWALL, true, "kubernetes load balancer firewall"),
    ("filter", "OUTPUT", PROXY_FIREWALL, true, "kubernetes load balancer firewall"),
    ("filter", "FORWARD", PROXY_FIREWALL, true, "kubernetes load balancer firewall"),
    ("nat", "OUTPUT", SERVICES, false, "kubernetes service portals"),
    ("nat", "PREROUTING", SERVICES, false, "kubernetes service portals"),
    ("nat", "POSTROUTING", POSTROUTING, false, "kubernetes postrouting rules"),
    ("filter", "INPUT", FIREWALL, false, ""),
    ("filter", "OUTPUT", FIREWALL, false, ""),
];
