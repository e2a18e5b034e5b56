//! The chains that do not belong to a service, their rules, and the jumps to them.

use sluicegate_services::{Family, NodePorts};

use super::words::Style;
use super::{Feature, Support};

/// A chain in which every service may have rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shared {
    /// filter: cluster IPs without endpoints.
    FilterServices,
    /// filter: other addresses without endpoints.
    ExternalServices,
    /// filter: health checks.
    FilterNodePorts,
    /// filter: clients outside of a load balancer's source ranges.
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

    /// Returns the table and the name of the chain.
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

    /// Returns the shared chains of a table.
    pub(super) fn of(table: &str) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(move |chain| chain.place().0 == table)
    }
}

/// The rules that do not depend on services.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fixed {
    /// The chains of table filter with their rules; those that services share are empty.
    pub(super) filter: Vec<(&'static str, Vec<String>)>,
    /// The chains of table nat.
    pub(super) nat: Vec<(&'static str, Vec<String>)>,
    /// The last rule of chain KUBE-SERVICES in table nat.
    pub(super) tail: Vec<String>,
    /// The words of the rule in [`FIREWALL`], where one is needed.
    pub(super) guard: Option<String>,
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
            ],
            nat: vec![
                empty(SERVICES),
                empty(NODE_PORTS),
                (POSTROUTING, postrouting(style, mark)),
                (MARK_MASQ, mark_masq(style, mark)),
            ],
            tail: tail(family, style, node_ports),
            guard: style.localhost.then(|| guard(style)),
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

/// With `route_localnet`, others on the link could reach what listens on loopback alone. The kubelet makes
/// the same rule, so that neither may spell it otherwise.
fn guard(style: &Style) -> String {
    let comment = style.comment("block incoming localnet connections");
    format!(
        "{comment}-d 127.0.0.0/8 ! -s 127.0.0.0/8 -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP"
    )
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
                Family::Ipv4 if style.localhost => "",
                Family::Ipv4 => " ! -d 127.0.0.0/8",
                Family::Ipv6 => " ! -d ::1/128",
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
    /// Our chain.
    pub to: &'static str,
    /// The specification of the rule.
    pub words: String,
}

/// Returns every jump, in the order in which kube-proxy makes them; each goes in front of what is there, so
/// the last of them is met first. Those to [`FIREWALL`] are among them where node ports are answered on
/// `localhost`.
pub fn jumps(support: &Support, localhost: bool) -> impl Iterator<Item = Jump> {
    let wanted = JUMPS.iter().filter(move |(_, _, to, ..)| *to != FIREWALL || localhost);
    wanted.map(|(table, from, to, new, comment)| {
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
}

/// Returns whether a chain is ours to change and delete, whoever made it. [`FIREWALL`] is not.
#[must_use]
pub fn is_ours(table: &str, chain: &str) -> bool {
    match table {
        "nat" => {
            [SERVICES, NODE_PORTS, POSTROUTING, MARK_MASQ, CANARY, PROBE].contains(&chain)
                || PREFIXES.iter().any(|prefix| chain.starts_with(prefix))
        }
        "filter" => {
            [SERVICES, EXTERNAL_SERVICES, FORWARD, NODE_PORTS, PROXY_FIREWALL, CANARY, PROBE].contains(&chain)
        }
        "mangle" => [CANARY, PROBE].contains(&chain),
        _ => false,
    }
}

/// The kubelet's chain. Where node ports are answered on 127.0.0.1, there is a rule in it that keeps loopback
/// from the link, and it is jumped to; whatever else stands in it is not ours, and everything stays when our
/// own chains are removed.
pub const FIREWALL: &str = "KUBE-FIREWALL";
/// An empty chain in each table. If it is missing, another program has flushed the table.
pub const CANARY: &str = "KUBE-PROXY-CANARY";
/// The chain in which the probe for features puts rules, which no packet meets.
pub(super) const PROBE: &str = "KUBE-PROXY-PROBE";
/// The tables that have a [`CANARY`].
pub const CANARY_TABLES: [&str; 3] = ["mangle", "nat", "filter"];
/// The nfacct object that counts the invalid packets that kube-proxy drops.
pub const INVALID_COUNTER: &str = "ct_state_invalid_dropped_pkts";
/// The nfacct object that counts the packets to node ports on loopback.
pub const LOCALHOST_COUNTER: &str = "localhost_nps_accepted_pkts";

const SERVICES: &str = "KUBE-SERVICES";
const EXTERNAL_SERVICES: &str = "KUBE-EXTERNAL-SERVICES";
const FORWARD: &str = "KUBE-FORWARD";
const NODE_PORTS: &str = "KUBE-NODEPORTS";
const PROXY_FIREWALL: &str = "KUBE-PROXY-FIREWALL";
const POSTROUTING: &str = "KUBE-POSTROUTING";
pub(super) const MARK_MASQ: &str = "KUBE-MARK-MASQ";
const PREFIXES: [&str; 5] = ["KUBE-SVC-", "KUBE-SVL-", "KUBE-SEP-", "KUBE-FW-", "KUBE-EXT-"];

/// The table, built-in chain, target chain, whether only new connections match, and the comment of each jump.
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
