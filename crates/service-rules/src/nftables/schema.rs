//! The schema of one family's table: its name, its sets and maps, and expressions that depend on the family.

use std::net::IpAddr;
use std::num::NonZeroU32;

use ipnet::IpNet;
use sluicegate_nftables as nft;
use sluicegate_nftables::expr::{CtKey, MetaKey, NatFlags, NumgenMode};
use sluicegate_nftables::lang::{
    Counter, CtState, Expression, Jhash, Mangle, Match, Numgen, Payload, PortNat, Reject, Statement, Verdict,
};
use sluicegate_nftables::{
    Comment, DataType, Flowtable, InterfaceName, Name, Priority, Rule, Set, SetFlags, SetId, TableId,
};
use sluicegate_services::{Family, LocalDetector, NodePorts, Protocol};

use super::element::{Choice, Container, Path, Scope};
use super::settings::Device;
use super::{Counting, Layout};
use crate::scheduling::{MAGLEV_SEED, SOURCE_HASH_SEED};

/// The settings of one family's table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TableSettings {
    pub(super) family: Family,
    pub(super) layout: Layout,
    pub(super) masquerade_all: bool,
    /// The bit of the packet mark that requests masquerading.
    pub(super) mark: u32,
    pub(super) detector: LocalDetector,
    pub(super) node_ports: NodePorts,
    /// The protocols whose packets to node ports on loopback addresses are rejected.
    pub(super) rejected_on_localhost: Vec<Protocol>,
    /// The networks from which cluster IPs are allocated.
    pub(super) service_cidrs: Vec<IpNet>,
    pub(super) counting: Counting,
    /// The number of packets after which a connection leaves the chains.
    pub(super) fastpath: Option<NonZeroU32>,
    /// The devices of the flowtable.
    pub(super) devices: Vec<Device>,
}

/// Creates the objects of one table.
#[derive(Clone, Debug)]
pub(super) struct Schema {
    pub(super) settings: TableSettings,
    pub(super) table: TableId,
}

impl Schema {
    pub(super) fn new(settings: TableSettings) -> Self {
        let family = nft_family(settings.family);
        Self { settings, table: TableId::new(family, fixed_name(TABLE)) }
    }

    pub(super) fn table(&self) -> nft::Table {
        nft::Table::new(self.table.clone()).comment(comment("rules for kube-proxy"))
    }

    /// Returns the flowtable with these devices.
    pub(super) fn flowtable(&self, devices: impl IntoIterator<Item = InterfaceName>) -> Flowtable {
        Flowtable::new(self.table.flowtable(fixed_name(FLOWTABLE)), Priority::FILTER).devices(devices)
    }

    /// Returns the id of a set or map.
    pub(super) fn set_id(&self, container: Container) -> SetId {
        let name = fixed_name(container.name());
        if container.is_map() { self.table.map(name) } else { self.table.set(name) }
    }

    /// Returns the containers that the table has, or has when there are elements for them.
    pub(super) fn containers(&self) -> impl Iterator<Item = Container> + use<> {
        let (layout, node_ports) = (self.settings.layout, self.settings.node_ports != NodePorts::All);
        let rejects = !self.settings.rejected_on_localhost.is_empty();
        Container::ALL.into_iter().filter(move |container| match container {
            Container::NodeportIps => node_ports,
            Container::LocalhostNodePorts => rejects,
            Container::Firewall => layout == Layout::Chains,
            Container::Endpoints(..)
            | Container::StickyIds(..)
            | Container::StickyEndpoints(..)
            | Container::Affinity(..)
            | Container::Masquerade(_)
            | Container::MasqueradeLocal(_)
            | Container::Restricted
            | Container::Allowed
            | Container::Balancers(..)
            | Container::Dispatch(_, Path::Shortcut) => layout == Layout::Maps,
            _ => true,
        })
    }

    /// Returns the definition of a set or map, with a size if one is given.
    pub(super) fn set(&self, container: Container, size: Option<u32>) -> Set {
        let id = self.set_id(container);
        let address = self.address_type();
        let frontend = match container.scope() {
            Scope::Address => vec![address, DataType::INET_PROTO, DataType::INET_SERVICE],
            Scope::NodePort => vec![DataType::INET_PROTO, DataType::INET_SERVICE],
        };
        let types = nft::SetType::Types;
        let set = match container {
            Container::ClusterIps | Container::NodeportIps => Set::new(id, address),
            Container::Hairpin => {
                Set::new(id, [address, address, DataType::INET_PROTO, DataType::INET_SERVICE])
            }
            Container::Masquerade(_)
            | Container::MasqueradeLocal(_)
            | Container::Restricted
            | Container::LocalhostNodePorts => Set::new(id, types(frontend)),
            Container::Allowed => {
                let key = frontend.into_iter().chain([address]).collect();
                Set::new(id, types(key)).flags(SetFlags::INTERVAL)
            }
            Container::Endpoints(scope, _, protocol) => {
                // The modulus does not matter for the type.
                let key = self.endpoint_key(scope, protocol, 2);
                Set::map(id, key, Expression::concat([self.daddr(), dport(protocol)]))
            }
            Container::StickyIds(scope, _, protocol) => {
                Set::map(id, self.endpoint_key(scope, protocol, 2), Expression::from(CARRIER))
            }
            Container::StickyEndpoints(scope, _, protocol) => {
                let key = self.sticky_key(scope, protocol);
                Set::map(id, key, Expression::concat([self.daddr(), dport(protocol)]))
            }
            // It has no size, for which the kernel would at once allocate memory.
            Container::Affinity(scope, protocol) => {
                Set::map(id, self.client_key_type(scope, protocol), Expression::from(CARRIER))
                    .flags(SetFlags::DYNAMIC | SetFlags::TIMEOUT)
            }
            Container::Balancers(..) => {
                Set::verdict_map(id, types(vec![DataType::INET_PROTO, DataType::CLASSID]))
            }
            Container::Dispatch(..) if self.settings.layout == Layout::Maps => {
                Set::map(id, types(frontend), types(vec![DataType::CLASSID]))
            }
            Container::Firewall | Container::NoEndpoint(_) | Container::Dispatch(..) => {
                Set::verdict_map(id, types(frontend))
            }
        };
        let set = set.comment(comment(container.comment()));
        let set = match self.settings.counting.has(container) && self.settings.layout == Layout::Maps {
            true => set.statement(Counter::default()),
            false => set,
        };
        // The set type for intervals of concatenations (pipapo) does not use a size.
        match size.filter(|_| container != Container::Allowed) {
            Some(size) => set.size(size),
            None => set,
        }
    }

    pub(super) fn address_type(&self) -> DataType {
        match self.settings.family {
            Family::Ipv4 => DataType::IPV4_ADDR,
            Family::Ipv6 => DataType::IPV6_ADDR,
        }
    }

    /// `ip daddr`
    pub(super) fn daddr(&self) -> Expression {
        match self.settings.family {
            Family::Ipv4 => Payload::IP_DADDR.into(),
            Family::Ipv6 => Payload::IP6_DADDR.into(),
        }
    }

    /// `ip saddr`
    pub(super) fn saddr(&self) -> Expression {
        match self.settings.family {
            Family::Ipv4 => Payload::IP_SADDR.into(),
            Family::Ipv6 => Payload::IP6_SADDR.into(),
        }
    }

    /// Returns `ip daddr . meta l4proto . th dport`, or the same without the address for node ports.
    pub(super) fn frontend_key(&self, scope: Scope) -> Expression {
        Expression::concat(self.frontend_parts(scope))
    }

    /// Returns `ip daddr . tcp dport . numgen random mod COUNT`, or the same without the address for node
    /// ports.
    pub(super) fn endpoint_key(&self, scope: Scope, protocol: Protocol, count: u32) -> Expression {
        self.numbered_key(scope, protocol, Expression::random(count))
    }

    /// Returns `ip daddr . tcp dport . NUMBER`, or the same without the address for node ports.
    pub(super) fn numbered_key(&self, scope: Scope, protocol: Protocol, number: Expression) -> Expression {
        let address = (scope == Scope::Address).then(|| self.daddr());
        Expression::concat(address.into_iter().chain([dport(protocol), number]))
    }

    /// Returns the expression that chooses the number of an endpoint, below `modulus`: `numgen random mod 5`,
    /// `numgen inc mod 5`, `jhash ip saddr mod 5 seed 0x4`, `jhash ip saddr . tcp sport mod 251 seed 0x5`.
    ///
    /// The hashes have a seed, which all nodes share; the kernel would make up one otherwise.
    pub(super) fn number(&self, choice: Choice, protocol: Protocol, modulus: u32) -> Expression {
        let jhash =
            |of, seed| Expression::Jhash(Box::new(Jhash { of, modulus, seed: Some(seed), offset: 0 }));
        match choice {
            Choice::Random => Expression::random(modulus),
            Choice::RoundRobin(_) => {
                Expression::Numgen(Numgen { mode: NumgenMode::INCREMENTAL, modulus, offset: 0 })
            }
            Choice::SourceHash | Choice::Affinity(_) => jhash(self.saddr(), SOURCE_HASH_SEED),
            Choice::Maglev => jhash(Expression::concat([self.saddr(), sport(protocol)]), MAGLEV_SEED),
        }
    }

    /// Returns `ip daddr . tcp dport . jhash ip saddr . ip daddr . tcp dport mod COUNT`, or the same without
    /// the address for node ports and IPv6: the number of the endpoint that a client starts with.
    ///
    /// It depends on the client alone, so that one that is not remembered, because others have filled the map
    /// of clients, comes to the same endpoint each time.
    pub(super) fn start_key(&self, scope: Scope, protocol: Protocol, count: u32) -> Expression {
        let address = (scope == Scope::Address).then(|| self.daddr());
        let of = match self.settings.family {
            Family::Ipv4 => self.client(scope, protocol),
            // For both addresses twice there are not enough registers.
            Family::Ipv6 => self.client(Scope::NodePort, protocol),
        };
        let start = Expression::Jhash(Box::new(Jhash { of, modulus: count, seed: Some(3), offset: 0 }));
        Expression::concat(address.into_iter().chain([dport(protocol), start]))
    }

    /// Returns `ip daddr . tcp dport . meta priority`, or the same without the address for node ports.
    pub(super) fn sticky_key(&self, scope: Scope, protocol: Protocol) -> Expression {
        let address = (scope == Scope::Address).then(|| self.daddr());
        Expression::concat(address.into_iter().chain([dport(protocol), CARRIER.into()]))
    }

    /// Returns `ip saddr . ip daddr . tcp dport`, or the same without the destination for node ports. With
    /// IPv6 it is two hashes of that, `jhash ... . jhash ...`: nft before 1.0.8 aborts when it loads a rule
    /// that updates a map with a key of more than 16 bytes.
    pub(super) fn client_key(&self, scope: Scope, protocol: Protocol) -> Expression {
        let client = self.client(scope, protocol);
        match self.settings.family {
            Family::Ipv4 => client,
            Family::Ipv6 => {
                let hash = |seed| {
                    let of = client.clone();
                    Expression::Jhash(Box::new(Jhash { of, modulus: u32::MAX, seed: Some(seed), offset: 0 }))
                };
                Expression::concat([hash(1), hash(2)])
            }
        }
    }

    /// Returns `ip saddr . ip daddr . tcp dport`, or the same without the destination for node ports.
    fn client(&self, scope: Scope, protocol: Protocol) -> Expression {
        let address = (scope == Scope::Address).then(|| self.daddr());
        Expression::concat([self.saddr()].into_iter().chain(address).chain([dport(protocol)]))
    }

    /// Returns an expression with the type of [`client_key`](Self::client_key). For the type of a hash nft
    /// 1.0.6 has no words that it can read again, so that of `numgen` is used, which is the same.
    fn client_key_type(&self, scope: Scope, protocol: Protocol) -> Expression {
        match self.settings.family {
            Family::Ipv4 => self.client_key(scope, protocol),
            Family::Ipv6 => Expression::concat([Expression::random(2), Expression::random(2)]),
        }
    }

    pub(super) fn frontend_parts(&self, scope: Scope) -> Vec<Expression> {
        let port = [MetaKey::L4PROTO.into(), Payload::TH_DPORT.into()];
        match scope {
            Scope::Address => [self.daddr()].into_iter().chain(port).collect(),
            Scope::NodePort => port.into(),
        }
    }

    /// `mark set mark or BIT`
    pub(super) fn mark_for_masquerade(&self) -> Statement {
        let mark = Expression::from(MetaKey::MARK).or(nft::Mark(self.settings.mark));
        Mangle::new(MetaKey::MARK, mark).into()
    }

    /// Returns a match for traffic from pods, or with `local` false for other traffic; `None` without a local
    /// detector.
    pub(super) fn pods(&self, local: bool) -> Option<Statement> {
        let (left, right): (Expression, Expression) = match &self.settings.detector {
            LocalDetector::None => return None,
            LocalDetector::Cidr(net) => (self.saddr(), prefix(*net)),
            LocalDetector::Interface(name) => {
                (MetaKey::IIFNAME.into(), InterfaceName::new(name.as_str()).ok()?.into())
            }
            LocalDetector::InterfacePrefix(stem) => {
                (MetaKey::IIFNAME.into(), InterfaceName::new(&format!("{stem}*")).ok()?.into())
            }
        };
        Some(if local { Match::new(left, right) } else { Match::not(left, right) }.into())
    }

    /// `ip daddr != 127.0.0.0/8`
    pub(super) fn not_loopback(&self) -> Statement {
        Match::not(self.daddr(), self.loopback()).into()
    }

    /// `127.0.0.0/8`, `::1`
    pub(super) fn loopback(&self) -> Expression {
        match self.settings.family {
            Family::Ipv4 => Expression::prefix(IpAddr::from([127, 0, 0, 0]), 8),
            Family::Ipv6 => IpAddr::from(std::net::Ipv6Addr::LOCALHOST).into(),
        }
    }

    /// Returns a match with one of our sets.
    pub(super) fn is_in(&self, key: Expression, container: Container) -> Statement {
        Match::new(key, Expression::named(&fixed_name(container.name()))).into()
    }

    /// Returns a lookup in one of our verdict maps.
    pub(super) fn verdict_of(&self, key: Expression, container: Container) -> Statement {
        nft::lang::Vmap::new(key, &fixed_name(container.name())).into()
    }

    /// Returns the statements that send a packet to the chain of its frontend; the rule ends if it has none.
    ///
    /// In layout `maps` a frontend has the code of a chain, which leads to the verdict. With verdicts of
    /// their own, each new one would make the kernel walk all others to look for loops.
    pub(super) fn dispatch(&self, scope: Scope, path: Path) -> Vec<Statement> {
        let (frontend, container) = (self.frontend_key(scope), Container::Dispatch(scope, path));
        if self.settings.layout == Layout::Chains {
            return vec![self.verdict_of(frontend, container)];
        }
        let code = Mangle::new(CARRIER, frontend.map(&fixed_name(container.name())));
        let balancer = Expression::concat([MetaKey::L4PROTO.into(), CARRIER.into()]);
        vec![code.into(), self.verdict_of(balancer, Container::Balancers(scope, path))]
    }

    /// Returns a rule of a chain of the table.
    pub(super) fn rule(&self, chain: &Name, statements: impl IntoIterator<Item = Statement>) -> Rule {
        let rule = Rule::new(self.table.chain(chain.clone()));
        statements.into_iter().fold(rule, Rule::then)
    }
}

impl Container {
    /// Returns whether it is a map.
    pub(super) const fn is_map(self) -> bool {
        matches!(
            self,
            Self::Endpoints(..)
                | Self::StickyIds(..)
                | Self::StickyEndpoints(..)
                | Self::Affinity(..)
                | Self::Firewall
                | Self::NoEndpoint(_)
                | Self::Balancers(..)
                | Self::Dispatch(..)
        )
    }

    /// Returns whether its key begins with an address.
    pub(super) const fn scope(self) -> Scope {
        match self {
            Self::Endpoints(scope, ..)
            | Self::StickyIds(scope, ..)
            | Self::StickyEndpoints(scope, ..)
            | Self::Affinity(scope, _)
            | Self::Masquerade(scope)
            | Self::MasqueradeLocal(scope)
            | Self::NoEndpoint(scope)
            | Self::Balancers(scope, _)
            | Self::Dispatch(scope, _) => scope,
            Self::LocalhostNodePorts => Scope::NodePort,
            _ => Scope::Address,
        }
    }

    /// Returns its comment in the kernel.
    const fn comment(self) -> &'static str {
        match self {
            Self::ClusterIps => "Active ClusterIPs",
            Self::NodeportIps => "IPs that accept NodePort traffic",
            Self::Hairpin => "service hairpin connections",
            Self::Endpoints(Scope::Address, Path::Main, _) => "endpoints of service-ips by number",
            Self::Endpoints(Scope::Address, Path::Shortcut, _) => "endpoints of shortcut-ips by number",
            Self::Endpoints(Scope::NodePort, Path::Main, _) => "endpoints of service-nodeports by number",
            Self::Endpoints(Scope::NodePort, Path::Shortcut, _) => {
                "endpoints of shortcut-nodeports by number"
            }
            Self::StickyIds(..) => "ids of endpoints by number, for session affinity",
            Self::StickyEndpoints(..) => "endpoints by id, for session affinity",
            Self::Affinity(..) => "clients and the ids of their endpoints",
            Self::Masquerade(Scope::Address) => "external IPs whose traffic is masqueraded",
            Self::Masquerade(Scope::NodePort) => "node ports whose traffic is masqueraded",
            Self::MasqueradeLocal(Scope::Address) => {
                "external IPs for which the node masquerades its own traffic"
            }
            Self::MasqueradeLocal(Scope::NodePort) => {
                "node ports for which the node masquerades its own traffic"
            }
            Self::Restricted => "destinations that are subject to LoadBalancerSourceRanges",
            Self::Allowed => "sources that LoadBalancerSourceRanges allow",
            Self::Firewall => "destinations that are subject to LoadBalancerSourceRanges",
            Self::NoEndpoint(Scope::Address) => {
                "vmap to drop or reject packets to services with no endpoints"
            }
            Self::NoEndpoint(Scope::NodePort) => {
                "vmap to drop or reject packets to service nodeports with no endpoints"
            }
            Self::LocalhostNodePorts => "node ports that are rejected on loopback addresses",
            Self::Balancers(..) => "chains by protocol and number of endpoints",
            Self::Dispatch(Scope::Address, Path::Main) => "ClusterIP, ExternalIP and LoadBalancer IP traffic",
            Self::Dispatch(Scope::NodePort, Path::Main) => "NodePort traffic",
            Self::Dispatch(Scope::Address, Path::Shortcut) => "pod and node traffic to IPs of policy Local",
            Self::Dispatch(Scope::NodePort, Path::Shortcut) => {
                "pod and node traffic to node ports of policy Local"
            }
        }
    }
}

/// `tcp dport`
fn dport(protocol: Protocol) -> Expression {
    match protocol {
        Protocol::Tcp => Payload::TCP_DPORT,
        Protocol::Udp => Payload::UDP_DPORT,
        Protocol::Sctp => Payload::SCTP_DPORT,
    }
    .into()
}

/// `tcp sport`
fn sport(protocol: Protocol) -> Expression {
    match protocol {
        Protocol::Tcp => Payload::TCP_SPORT,
        Protocol::Udp => Payload::UDP_SPORT,
        Protocol::Sctp => Payload::SCTP_SPORT,
    }
    .into()
}

/// `ct state new`
pub(super) fn is_new() -> Statement {
    Match::new(CtKey::STATE, CtState::NEW).into()
}

/// `masquerade fully-random`
pub(super) fn masquerade() -> Statement {
    Statement::masquerade(PortNat { flags: NatFlags::FULLY_RANDOM, ..PortNat::default() })
}

pub(super) fn jump(chain: &str) -> Statement {
    Verdict::Jump(fixed_name(chain)).into()
}

pub(super) fn reject() -> Statement {
    Reject::Default.into()
}

pub(super) fn drop() -> Statement {
    Verdict::Drop.into()
}

/// Returns `10.0.0.0/8`; the address for a network of a single address.
pub(super) fn prefix(net: IpNet) -> Expression {
    if net.prefix_len() == net.max_prefix_len() {
        return net.addr().into();
    }
    Expression::prefix(net.network(), net.prefix_len())
}

/// Returns a network, or an anonymous set of several. Overlapping networks are merged, as a set requires.
pub(super) fn networks(nets: &[IpNet]) -> Expression {
    match IpNet::aggregate(&nets.to_vec()).as_slice() {
        [one] => prefix(*one),
        many => Expression::set(many.iter().copied().map(prefix)),
    }
}

pub(super) const fn nft_family(family: Family) -> nft::Family {
    match family {
        Family::Ipv4 => nft::Family::IP,
        Family::Ipv6 => nft::Family::IP6,
    }
}

pub(super) const fn nft_protocol(protocol: Protocol) -> nft::Protocol {
    nft::Protocol(protocol.number())
}

/// Returns a name that is known to be valid.
pub(super) fn fixed_name(name: &str) -> Name {
    Name::new(name).expect("the table's own names are names")
}

/// Returns a comment that is known to be valid.
pub(super) fn comment(text: &str) -> Comment {
    Comment::lossy(text)
}

/// The place for a number that one map gives and another takes, in layout `maps`: the code of a chain, and
/// under session affinity the id of an endpoint.
///
/// A value that a map gives cannot be part of another lookup's key: nft 1.0.6 aborts when it lists such a
/// rule. So it is stored in the packet's priority, which decides about nothing before the packet leaves the
/// node, and which a balancing chain or [`base`](super::base) then resets. (The mark belongs to others: network
/// plug-ins and routing policies.) Only the first packet of a connection is concerned, and for one that is
/// forwarded with IPv4 the kernel sets the priority anew in any case.
pub(super) const CARRIER: MetaKey = MetaKey::PRIORITY;

/// The bit of every number that a packet may still have when it leaves. Priorities of other origin do not
/// have it: `SO_PRIORITY` and the classes of tc use handles below 8000:.
pub(super) const OWN_PRIORITY_BIT: u32 = 0x8000_0000;

/// The name of the flowtable.
pub(super) const FLOWTABLE: &str = "ft";

/// The name of the tables, in families `ip` and `ip6`: kube-proxy's.
pub const TABLE: &str = "kube-proxy";
