//! The rules of one service port: those in chains that all services share, and its own chains.

use std::net::IpAddr;

use ipnet::IpNet;
use sluicegate_chain_names as names;
use sluicegate_services::{Categorized, Endpoint, PortName, Protocol, ServicePort};

use super::Feature;
use super::fixed::{LOCALHOST_COUNTER, MARK_MASQ, Shared};
use super::words::Style;

/// The plan of one service port in one family.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PortPlan {
    /// Its rules in each shared chain.
    shared: [Vec<String>; Shared::ALL.len()],
    /// Its own chains, all in table nat, with their rules.
    pub(super) chains: Vec<(names::XtName, Vec<String>)>,
    /// The number of its endpoints in any state.
    pub(super) endpoints: usize,
}

impl PortPlan {
    /// Returns the number of rules in the chains of the service port.
    pub(super) fn own_rules(&self) -> usize {
        self.chains.iter().map(|(_, rules)| rules.len()).sum()
    }

    /// Plans `port` with its categorized endpoints.
    pub(super) fn new(style: &Style, port: &ServicePort<'_>, endpoints: &Categorized<'_>) -> Self {
        let mut plan = Self { endpoints: port.endpoints.len(), ..Self::default() };
        if port.name.protocol != Protocol::Sctp || style.has(Feature::Sctp) {
            Context::new(style, port, endpoints).plan(&mut plan);
        }
        plan
    }

    /// Returns its rules in a shared chain.
    pub(super) fn shared(&self, chain: Shared) -> &[String] {
        &self.shared[chain as usize]
    }

    fn add(&mut self, chain: Shared, words: String) {
        self.shared[chain as usize].push(words);
    }
}

/// The decisions that several rules of a service port share.
struct Context<'a> {
    style: &'a Style,
    port: &'a ServicePort<'a>,
    endpoints: &'a Categorized<'a>,
    chains: names::IptablesNames,
    /// The reachable endpoints with their chains.
    targets: Vec<Target<'a>>,
    /// `demo/web:http`
    name: String,
    /// `-m tcp -p tcp`
    protocol: String,
    /// Who may use the load balancer's addresses; `None` for everybody.
    ranges: Option<Vec<&'a IpNet>>,
    has_internal: bool,
    has_external: bool,
}

/// An endpoint with the name of its chain, which is stored because it is computed by a hash.
struct Target<'a> {
    endpoint: &'a Endpoint,
    chain: names::XtName,
    /// `10.0.0.1:80`
    address: names::Endpoint,
}

impl<'a> Context<'a> {
    fn new(style: &'a Style, port: &'a ServicePort<'a>, endpoints: &'a Categorized<'a>) -> Self {
        let (service, no_local) = (port.service, endpoints.local.is_empty());
        let owner = owner(&port.name);
        let protocol = port.name.protocol;
        Self {
            style,
            port,
            endpoints,
            chains: owner.iptables(),
            targets: endpoints.all_reachable().iter().map(|endpoint| Target::new(&owner, endpoint)).collect(),
            name: port.name.to_string(),
            protocol: format!("-m {protocol} -p {protocol}"),
            ranges: service.source_ranges(port.family).map(Iterator::collect),
            has_internal: endpoints.has_any && !(service.internal_local && no_local),
            has_external: endpoints.has_any && !(service.external_local && no_local),
        }
    }

    fn plan(&self, plan: &mut PortPlan) {
        self.cluster_ip(plan);
        self.external_ips(plan);
        self.load_balancer(plan);
        self.node_port(plan);
        self.own_chains(plan);
    }

    /// Adds the rule for the cluster IP, or the one that rejects its traffic if there are no endpoints.
    fn cluster_ip(&self, plan: &mut PortPlan) {
        let Some(ip) = self.port.cluster_ip else { return };
        let front = self.front(ip);
        if self.has_internal {
            let comment = self.comment("cluster IP");
            plan.add(Shared::Services, format!("{comment}{front} -j {}", self.internal_chain()));
        } else {
            plan.add(Shared::FilterServices, self.refusal(&front));
        }
    }

    fn external_ips(&self, plan: &mut PortPlan) {
        for ip in &self.port.external_ips {
            let front = self.front(*ip);
            if self.endpoints.has_any {
                let comment = self.comment("external IP");
                plan.add(Shared::Services, format!("{comment}{front} -j {}", self.chains.external()));
            }
            if !self.has_external {
                plan.add(Shared::ExternalServices, self.refusal(&front));
            }
        }
    }

    fn load_balancer(&self, plan: &mut PortPlan) {
        let target = if self.has_firewall() { self.chains.firewall() } else { self.chains.external() };
        for ip in &self.port.load_balancer_ips {
            let front = self.front(*ip);
            if self.endpoints.has_any {
                let comment = self.comment("loadbalancer IP");
                plan.add(Shared::Services, format!("{comment}{front} -j {target}"));
            }
            if self.has_firewall() {
                let comment = self.comment(&format!("traffic not accepted by {target}"));
                plan.add(Shared::ProxyFirewall, format!("{comment}{front} -j DROP"));
            }
            if !self.has_external {
                plan.add(Shared::ExternalServices, self.refusal(&front));
            }
        }
    }

    fn node_port(&self, plan: &mut PortPlan) {
        if let Some(port) = self.port.node_port {
            let (comment, protocol) = (self.style.comment(&self.name), &self.protocol);
            let target = self.chains.external();
            if self.endpoints.has_any {
                if self.style.localhost && self.style.has(Feature::Nfacct) {
                    plan.add(
                        Shared::NodePorts,
                        format!(
                            "{comment}{protocol} -d 127.0.0.0/8 --dport {port} -m nfacct --nfacct-name \
                                {LOCALHOST_COUNTER} -j {target}"
                        ),
                    );
                }
                plan.add(Shared::NodePorts, format!("{comment}{protocol} --dport {port} -j {target}"));
            }
            if !self.has_external && self.style.has(Feature::Addrtype) {
                let front = format!("-m addrtype --dst-type LOCAL {protocol} --dport {port}");
                plan.add(Shared::ExternalServices, self.refusal(&front));
            }
        }
        if let Some(port) = self.port.health_check_node_port {
            let comment = self.comment("health check node port");
            plan.add(Shared::FilterNodePorts, format!("{comment}-m tcp -p tcp --dport {port} -j ACCEPT"));
        }
    }

    fn own_chains(&self, plan: &mut PortPlan) {
        let uses_external = self.endpoints.has_any && self.port.externally_accessible();
        if uses_external {
            plan.chains.push((self.chains.external(), self.external()));
        }
        if self.has_firewall() {
            plan.chains.push((self.chains.firewall(), self.firewall()));
        }
        let policies =
            [(self.chains.service(), &self.endpoints.cluster), (self.chains.local(), &self.endpoints.local)];
        for (chain, endpoints) in policies.into_iter().filter(|(_, endpoints)| !endpoints.is_empty()) {
            let mut rules = Vec::with_capacity(endpoints.len() + 1);
            if self.has_internal && chain == self.internal_chain() {
                rules.extend(self.masquerade_internal());
            }
            self.balance(endpoints, &mut rules);
            plan.chains.push((chain, rules));
        }
        plan.chains.extend(self.targets.iter().map(|target| (target.chain, self.endpoint(target))));
    }

    /// Returns the rule that marks traffic to the cluster IP for masquerading, if one is needed.
    fn masquerade_internal(&self) -> Option<String> {
        let elsewhere = match self.style.local() {
            _ if self.style.masquerade_all => String::new(),
            Some(local) => format!(" ! {local}"),
            None => return None,
        };
        let front = self.front(self.port.cluster_ip?);
        Some(format!("{}{front}{elsewhere} -j {MARK_MASQ}", self.comment("cluster IP")))
    }

    /// Returns the chain of traffic to external, load-balancer and node addresses.
    fn external(&self) -> Vec<String> {
        let (name, all) = (&self.name, self.chains.service());
        let mut rules = Vec::new();
        if self.port.service.external_local {
            if let Some(pods) = self.style.local() {
                let comment =
                    self.style.comment(format_args!("pod traffic for {name} external destinations"));
                rules.push(format!("{comment}{pods} -j {all}"));
            }
            if self.style.has(Feature::Addrtype) {
                for (verb, target) in [("masquerade", MARK_MASQ), ("route", all.as_str())] {
                    let comment = self
                        .style
                        .comment(format_args!("{verb} LOCAL traffic for {name} external destinations"));
                    rules.push(format!("{comment}-m addrtype --src-type LOCAL -j {target}"));
                }
            }
        } else {
            let comment =
                self.style.comment(format_args!("masquerade traffic for {name} external destinations"));
            rules.push(format!("{comment}-j {MARK_MASQ}"));
        }
        if self.has_external {
            let local = self.port.service.external_local;
            rules.push(format!("-j {}", if local { self.chains.local() } else { all }));
        }
        rules
    }

    /// Returns the chain that checks which clients may use the load balancer's addresses.
    fn firewall(&self) -> Vec<String> {
        let (comment, target) = (self.comment("loadbalancer IP"), self.chains.external());
        let covers_node =
            self.style.node_ip.is_some_and(|ip| self.ranges.iter().flatten().any(|net| net.contains(&ip)));
        let ranges = self.ranges.iter().flatten().map(ToString::to_string);
        // If the node itself may use such an address, its packets to it have that address as source.
        let own = self.port.load_balancer_ips.iter().filter(|_| covers_node);
        let sources = ranges.chain(own.map(ToString::to_string));
        let mut rules: Vec<_> = sources.map(|source| format!("{comment}-s {source} -j {target}")).collect();
        let note = self
            .style
            .comment(format_args!("other traffic to {} will be dropped by KUBE-PROXY-FIREWALL", self.name));
        if !note.is_empty() {
            rules.push(note.trim_end().to_owned());
        }
        rules
    }

    /// Adds the rules that send a connection to the last endpoint of its client, or else to a random one.
    fn balance(&self, endpoints: &[&'a Endpoint], rules: &mut Vec<String>) {
        let affinity = self.port.service.affinity_seconds.filter(|_| self.style.has(Feature::Recent));
        if let Some(seconds) = affinity {
            rules.extend(self.targets(endpoints).map(|target @ Target { chain, .. }| {
                let comment = self.arrow(target);
                format!("{comment}-m recent --name {chain} --rcheck --seconds {seconds} --reap -j {chain}")
            }));
        }
        let count = endpoints.len();
        for (index, target) in self.targets(endpoints).enumerate() {
            let mut words = self.arrow(target);
            let last = index + 1 == count || !self.style.has(Feature::Statistic);
            if !last {
                words.push_str("-m statistic --mode random --probability ");
                words.push_str(&probability(count - index));
                words.push(' ');
            }
            words.push_str("-j ");
            words.push_str(target.chain.as_str());
            rules.push(words);
            if last {
                return;
            }
        }
    }

    /// Returns the chains of some of the reachable endpoints, in the same order.
    fn targets(&self, endpoints: &[&'a Endpoint]) -> impl Iterator<Item = &Target<'a>> {
        let mut rest = self.targets.iter();
        endpoints
            .iter()
            .filter_map(move |endpoint| rest.find(|target| std::ptr::eq(target.endpoint, *endpoint)))
    }

    /// Returns the chain of an endpoint: it masquerades connections of the endpoint to itself, records the
    /// client, and rewrites the destination.
    fn endpoint(&self, Target { chain, address, .. }: &Target<'_>) -> Vec<String> {
        let comment = self.style.endpoint_comment(&self.name);
        let affine = self.port.service.affinity_seconds.is_some() && self.style.has(Feature::Recent);
        let note = if affine { format!("-m recent --name {chain} --set ") } else { String::new() };
        let (protocol, to) = (self.protocol.as_str(), address.as_str());
        let ip = to.rsplit_once(':').map_or(to, |(ip, _)| ip).trim_matches(['[', ']']);
        vec![
            [&comment, "-s ", ip, " -j ", MARK_MASQ].concat(),
            [&comment, &note, protocol, " -j DNAT --to-destination ", to].concat(),
        ]
    }

    fn has_firewall(&self) -> bool {
        self.endpoints.has_any && !self.port.load_balancer_ips.is_empty() && self.ranges.is_some()
    }

    fn internal_chain(&self) -> names::XtName {
        if self.port.service.internal_local { self.chains.local() } else { self.chains.service() }
    }

    fn front(&self, ip: IpAddr) -> String {
        format!("{} -d {ip} --dport {}", self.protocol, self.port.port)
    }

    fn refusal(&self, front: &str) -> String {
        let (what, target) = match (self.endpoints.has_any, self.style.has(Feature::Reject)) {
            (true, _) => ("has no local endpoints", "DROP"),
            (false, true) => ("has no endpoints", "REJECT"),
            (false, false) => ("has no endpoints", "DROP"),
        };
        format!("{}{front} -j {target}", self.comment(what))
    }

    fn comment(&self, what: &str) -> String {
        self.style.comment(format_args!("{} {what}", self.name))
    }

    fn arrow(&self, target: &Target<'_>) -> String {
        self.style.endpoint_comment(format_args!("{} -> {}", self.name, target.address.as_str()))
    }
}

impl<'a> Target<'a> {
    fn new(owner: &names::ServicePort<'_>, endpoint: &'a Endpoint) -> Self {
        let port = endpoint.address.port().try_into().expect("an endpoint's port is not 0");
        let address = names::Endpoint::new(endpoint.address.ip(), port);
        Self { endpoint, chain: owner.iptables_endpoint(&address), address }
    }
}

fn owner(port: &PortName) -> names::ServicePort<'_> {
    let protocol = match port.protocol {
        Protocol::Tcp => names::Protocol::Tcp,
        Protocol::Udp => names::Protocol::Udp,
        Protocol::Sctp => names::Protocol::Sctp,
    };
    names::ServicePort::new(port.service.namespace(), port.service.name(), &port.port, protocol)
        .expect("the names of a service in the model are DNS labels")
}

/// Returns 1 / `count` with ten decimals, rounded as in C and Go.
fn probability(count: usize) -> String {
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    format!("{:.10}", 1.0 / f64::from(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_have_ten_decimals() {
        let texts: Vec<_> = [1, 2, 3, 5, 7].map(probability).into();
        assert_eq!(texts, ["1.0000000000", "0.5000000000", "0.3333333333", "0.2000000000", "0.1428571429"]);
    }
}
