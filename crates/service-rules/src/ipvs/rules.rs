//! The iptables rules of IPVS mode: masquerading, forwarding, and the clients of load balancers' addresses.
//!
//! Their number does not depend on the number of services, since they match sets. Only load balancers'
//! addresses that the node may not use have rules of their own. A rule whose set is empty is omitted if
//! kube-proxy omits it.

use sluicegate_iptables_save::{Action, Entry, Item, Save};

use super::port::Vip;
use super::set::Set;
use crate::iptables::{CANARY, Jump, chain, rule, table};
use sluicegate_services::{Family, LocalDetector};

/// The settings and sets that determine the rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Style {
    pub(super) family: Family,
    pub(super) mark: u32,
    pub(super) masquerade_all: bool,
    pub(super) random_fully: bool,
    pub(super) detector: LocalDetector,
}

/// The chains of each table, with their rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rules {
    nat: Vec<(&'static str, String)>,
    filter: Vec<(&'static str, String)>,
}

impl Rules {
    pub(super) fn new<'v>(
        style: &Style,
        is_empty: &dyn Fn(Set) -> bool,
        refused: impl Iterator<Item = &'v Vip>,
    ) -> Self {
        let mut writer = Writer { style, is_empty, rules: Self { nat: Vec::new(), filter: Vec::new() } };
        writer.nat();
        writer.filter(refused);
        writer.rules
    }

    /// Returns the input of `iptables-restore --noflush` that creates all chains and rules.
    pub(super) fn input(&self) -> Save<'static> {
        let item = |name, chains: &[&'static str], rules: &[(&'static str, String)]| {
            let mut entries: Vec<Entry<'static>> = chains.iter().map(|name| chain((*name).into())).collect();
            let append = |(chain, words): &(&'static str, String)| {
                rule(Action::Append, (*chain).into(), words.clone().into())
            };
            entries.extend(rules.iter().map(append));
            Item::Table(table(name, entries))
        };
        Save { items: vec![item("nat", &NAT, &self.nat), item("filter", &FILTER, &self.filter)] }
    }
}

struct Writer<'a> {
    style: &'a Style,
    is_empty: &'a dyn Fn(Set) -> bool,
    rules: Rules,
}

impl Writer<'_> {
    fn nat(&mut self) {
        let loopback = if self.style.family == Family::Ipv4 { "127.0.0.0/8" } else { "::1/128" };
        self.add_nat(SERVICES, format!("-s {loopback} -j RETURN"));
        for (set, chain, protocol, directions, target) in BY_SET {
            if !(self.is_empty)(*set) && *chain != PROXY_FIREWALL && *chain != SOURCE_RANGES {
                let words = self.by_set(*set, protocol, directions, target);
                self.add_nat(chain, words);
            }
        }
        self.cluster_ips();
        self.external_ips();
        self.add_nat(SERVICES, format!("-m addrtype --dst-type LOCAL -j {NODE_PORT}"));
        self.add_nat(LOAD_BALANCER, format!("-j {MARK_MASQ}"));
        for set in [Set::ClusterIp, Set::LoadBalancer] {
            if !(self.is_empty)(set) {
                let words = format!("{} dst,dst -j ACCEPT", self.match_set(set));
                self.add_nat(SERVICES, words);
            }
        }
        let mark = self.style.mark;
        let random = if self.style.random_fully { " --random-fully" } else { "" };
        self.add_nat(POSTROUTING, format!("-m mark ! --mark 0x{mark:08x}/0x{mark:08x} -j RETURN"));
        self.add_nat(POSTROUTING, format!("-j MARK --xor-mark 0x{mark:08x}"));
        self.add_nat(
            POSTROUTING,
            format!("{} -j MASQUERADE{random}", comment("kubernetes service traffic requiring SNAT")),
        );
        self.add_nat(MARK_MASQ, format!("-j MARK --or-mark 0x{mark:08x}"));
    }

    /// Adds the rules that mark traffic to cluster IPs from sources other than pods. Without a local detector
    /// they match only packets whose source is the address of a service, such as those of the node to its own
    /// addresses.
    fn cluster_ips(&mut self) {
        if (self.is_empty)(Set::ClusterIp) {
            return;
        }
        let from = match &self.style.detector {
            _ if self.style.masquerade_all => "dst,dst".to_owned(),
            LocalDetector::None => "src,dst".to_owned(),
            LocalDetector::Cidr(net) => format!("dst,dst ! -s {net}"),
            LocalDetector::Interface(name) => format!("dst,dst ! -i {name}"),
            LocalDetector::InterfacePrefix(prefix) => format!("dst,dst ! -i {prefix}+"),
        };
        let words = format!("{} {from} -j {MARK_MASQ}", self.commented(Set::ClusterIp));
        self.add_nat(SERVICES, words);
    }

    fn external_ips(&mut self) {
        for set in [Set::ExternalIp, Set::ExternalIpLocal] {
            if (self.is_empty)(set) {
                continue;
            }
            let start = format!("{} dst,dst", self.commented(set));
            if set == Set::ExternalIp {
                self.add_nat(SERVICES, format!("{start} -j {MARK_MASQ}"));
            }
            for who in [
                "-m physdev ! --physdev-is-in -m addrtype ! --src-type LOCAL",
                "-m addrtype --dst-type LOCAL",
            ] {
                self.add_nat(SERVICES, format!("{start} {who} -j ACCEPT"));
            }
        }
    }

    fn filter<'v>(&mut self, refused: impl Iterator<Item = &'v Vip>) {
        for (set, chain, protocol, directions, target) in BY_SET {
            if !(self.is_empty)(*set) && (*chain == PROXY_FIREWALL || *chain == SOURCE_RANGES) {
                let words = self.by_set(*set, protocol, directions, target);
                self.add_filter(chain, words);
            }
        }
        self.add_filter(SOURCE_RANGES, "-j DROP".to_owned());
        refused.for_each(|vip| self.add_filter(OUT_FILTER, vip.to_string()));
        let mark = self.style.mark;
        let rules = comment("kubernetes forwarding rules");
        self.add_filter(FORWARD, format!("{rules} -m mark --mark 0x{mark:08x}/0x{mark:08x} -j ACCEPT"));
        let rules = comment("kubernetes forwarding conntrack rule");
        self.add_filter(FORWARD, format!("{rules} -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT"));
        let health = self.by_set(Set::HealthCheckNodePort, "", "dst", "ACCEPT");
        self.add_filter(NODE_PORT, health);
        for (set, directions) in [
            (Set::LoadBalancer, "dst,dst"),
            (Set::ClusterIp, "dst,dst"),
            (Set::ExternalIp, "dst,dst"),
            (Set::ExternalIpLocal, "dst,dst"),
            (Set::HealthCheckNodePort, "dst"),
        ] {
            let words = format!("{} {directions} -j RETURN", self.match_set(set));
            self.add_filter(IPVS_FILTER, words);
        }
        let others = self.match_set(Set::IpvsIps);
        self.add_filter(IPVS_FILTER, format!("-m conntrack --ctstate NEW {others} dst -j REJECT"));
    }

    fn by_set(&self, set: Set, protocol: &str, directions: &str, target: &str) -> String {
        format!("{protocol}{} {directions} -j {target}", self.commented(set))
    }

    fn commented(&self, set: Set) -> String {
        format!("{} {}", comment(set.comment()), self.match_set(set))
    }

    fn match_set(&self, set: Set) -> String {
        format!("-m set --match-set {}", set.name(self.style.family))
    }

    fn add_nat(&mut self, chain: &'static str, words: String) {
        self.rules.nat.push((chain, words));
    }

    fn add_filter(&mut self, chain: &'static str, words: String) {
        self.rules.filter.push((chain, words));
    }
}

fn comment(text: &str) -> String {
    format!("-m comment --comment \"{text}\"")
}

/// Returns the jumps from built-in chains, in the order in which kube-proxy adds them; each is inserted in
/// front of the existing rules.
pub fn jumps() -> impl Iterator<Item = Jump> {
    JUMPS.iter().map(|(table, from, to, text)| Jump {
        table,
        from,
        to,
        words: format!("{} -j {to}", comment(text)),
    })
}

/// Returns whether a chain is one of this mode, even if another program created it. Iptables mode has chains
/// of the same names.
#[must_use]
pub fn is_ours(table: &str, chain: &str) -> bool {
    match table {
        "nat" => NAT.contains(&chain),
        "filter" => FILTER.contains(&chain),
        _ => false,
    }
}

/// Returns `true` if a chain is of this mode and not of iptables mode.
#[must_use]
pub fn is_ours_alone(table: &str, chain: &str) -> bool {
    is_ours(table, chain) && !crate::iptables::is_ours(table, chain) && chain != CANARY
}

const SERVICES: &str = "KUBE-SERVICES";
const POSTROUTING: &str = "KUBE-POSTROUTING";
const NODE_PORT: &str = "KUBE-NODE-PORT";
const LOAD_BALANCER: &str = "KUBE-LOAD-BALANCER";
const MARK_MASQ: &str = "KUBE-MARK-MASQ";
const FORWARD: &str = "KUBE-FORWARD";
const PROXY_FIREWALL: &str = "KUBE-PROXY-FIREWALL";
const SOURCE_RANGES: &str = "KUBE-SOURCE-RANGES-FIREWALL";
const IPVS_FILTER: &str = "KUBE-IPVS-FILTER";
const OUT_FILTER: &str = "KUBE-IPVS-OUT-FILTER";

const NAT: [&str; 5] = [SERVICES, POSTROUTING, NODE_PORT, LOAD_BALANCER, MARK_MASQ];
const FILTER: [&str; 6] = [FORWARD, NODE_PORT, PROXY_FIREWALL, SOURCE_RANGES, IPVS_FILTER, OUT_FILTER];

/// The set, chain, protocol, directions and target of each rule, in the order of evaluation, with the `LOCAL`
/// sets before the sets to which they are an exception.
#[rustfmt::skip]
const BY_SET: &[(Set, &str, &str, &str, &str)] = &[
    (Set::LoopBack, POSTROUTING, "", "dst,dst,src", "MASQUERADE"),
    (Set::LoadBalancer, SERVICES, "", "dst,dst", LOAD_BALANCER),
    (Set::LoadBalancerLocal, LOAD_BALANCER, "", "dst,dst", "RETURN"),
    (Set::NodePortLocalTcp, NODE_PORT, "-p tcp ", "dst", "RETURN"),
    (Set::NodePortTcp, NODE_PORT, "-p tcp ", "dst", MARK_MASQ),
    (Set::NodePortLocalUdp, NODE_PORT, "-p udp ", "dst", "RETURN"),
    (Set::NodePortUdp, NODE_PORT, "-p udp ", "dst", MARK_MASQ),
    (Set::NodePortLocalSctp, NODE_PORT, "-p sctp ", "dst,dst", "RETURN"),
    (Set::NodePortSctp, NODE_PORT, "-p sctp ", "dst,dst", MARK_MASQ),
    (Set::LoadBalancerFw, PROXY_FIREWALL, "", "dst,dst", SOURCE_RANGES),
    (Set::LoadBalancerSourceCidr, SOURCE_RANGES, "", "dst,dst,src", "RETURN"),
    (Set::LoadBalancerSourceIp, SOURCE_RANGES, "", "dst,dst,src", "RETURN"),
];

/// The table, built-in chain, target chain and comment of each jump.
#[rustfmt::skip]
const JUMPS: &[(&str, &str, &str, &str)] = &[
    ("nat", "OUTPUT", SERVICES, "kubernetes service portals"),
    ("nat", "PREROUTING", SERVICES, "kubernetes service portals"),
    ("nat", "POSTROUTING", POSTROUTING, "kubernetes postrouting rules"),
    ("filter", "FORWARD", FORWARD, "kubernetes forwarding rules"),
    ("filter", "INPUT", NODE_PORT, "kubernetes health check rules"),
    ("filter", "INPUT", PROXY_FIREWALL, "kube-proxy firewall rules"),
    ("filter", "FORWARD", PROXY_FIREWALL, "kube-proxy firewall rules"),
    ("filter", "INPUT", IPVS_FILTER, "kubernetes ipvs access filter"),
    ("filter", "OUTPUT", OUT_FILTER, "kubernetes ipvs access filter"),
];
