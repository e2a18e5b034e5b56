//! The chains that exist for services: their names and rules.

use std::collections::HashMap;
use std::time::Duration;

use ipnet::IpNet;
use sluicegate_chain_names as names;
use sluicegate_nftables as nft;
use sluicegate_nftables::expr::MetaKey;
use sluicegate_nftables::lang::{
    AddressType, Expression, Mangle, Match, Nat, SetOp, SetUpdate, Statement, Verdict, Vmap,
};
use sluicegate_nftables::{Name, Rule, Set, SetFlags, SetId};
use sluicegate_services::{PortName, Protocol};

use super::element::{Balance, ChainId, Choice, Container, EndpointAddr, Path, PortChain, Scope};
use super::port::ChainPlan;
use super::schema::{CARRIER, Schema, comment, drop, fixed_name, networks, nft_family, nft_protocol};

/// Creates the names of chains, and caches those that many elements share.
#[derive(Debug, Default)]
pub(super) struct Names {
    balancers: HashMap<Balance, Name>,
}

impl Names {
    /// Returns the name of a chain.
    pub(super) fn chain(&mut self, id: &ChainId) -> Name {
        match id {
            ChainId::Balance(balance) => {
                self.balancers.entry(*balance).or_insert_with(|| balancer(balance)).clone()
            }
            ChainId::Port(port, kind) => port_chain(port, *kind),
        }
    }
}

/// Returns the name of a balancing chain: `lb-tcp-5`, `shortcut-nodeport-lb-udp-2`, `round-robin-lb-tcp-5-17`,
/// `source-hash-lb-tcp-5`, `maglev-lb-tcp-251`, or `sticky-lb-tcp-5-10800s` under session affinity.
fn balancer(Balance { scope, path, protocol, count, choice }: &Balance) -> Name {
    let path = if *path == Path::Shortcut { "shortcut-" } else { "" };
    let scope = if *scope == Scope::NodePort { "nodeport-" } else { "" };
    fixed_name(&match choice {
        Choice::Random => format!("{path}{scope}lb-{protocol}-{count}"),
        Choice::RoundRobin(turn) => format!("{path}{scope}round-robin-lb-{protocol}-{count}-{turn}"),
        Choice::SourceHash => format!("{path}{scope}source-hash-lb-{protocol}-{count}"),
        Choice::Maglev => format!("{path}{scope}maglev-lb-{protocol}-{count}"),
        Choice::Affinity(seconds) => format!("{path}{scope}sticky-lb-{protocol}-{count}-{seconds}s"),
    })
}

/// Returns the name of a chain of a service port, which is kube-proxy's.
pub(super) fn port_chain(port: &PortName, kind: PortChain) -> Name {
    let owner = owner(port);
    let chains = owner.nftables();
    let text = match kind {
        PortChain::Service => chains.service(),
        PortChain::Local => chains.local(),
        PortChain::External => chains.external(),
        PortChain::Firewall => chains.firewall(),
        PortChain::Endpoint(backend) => owner.nftables_endpoint(&endpoint(backend)).chain(),
    };
    fixed_name(text.as_str())
}

/// Returns the set of the clients that session affinity binds to an endpoint.
pub(super) fn affinity_set(schema: &Schema, port: &PortName, backend: EndpointAddr) -> SetId {
    let text = owner(port).nftables_endpoint(&endpoint(backend)).affinity();
    schema.table.set(fixed_name(text.as_str()))
}

/// Returns the definition of an affinity set, whose elements expire after this time without a connection.
pub(super) fn affinity(schema: &Schema, port: &PortName, backend: EndpointAddr, seconds: u32) -> Set {
    Set::new(affinity_set(schema, port, backend), schema.address_type())
        .flags(SetFlags::DYNAMIC)
        // Without a size: the kernel would at once allocate a hash table for so many elements, 1 MB for
        // 65535. It limits a dynamic set to 65535 elements by itself.
        .timeout(Duration::from_secs(seconds.into()))
}

fn owner(port: &PortName) -> names::ServicePort<'_> {
    let protocol = match port.protocol {
        Protocol::Tcp => names::Protocol::Tcp,
        Protocol::Udp => names::Protocol::Udp,
        Protocol::Sctp => names::Protocol::Sctp,
    };
    names::ServicePort::new(port.service.namespace(), port.service.name(), &port.port, protocol)
        .expect("the names of services and ports are DNS labels")
}

fn endpoint(backend: EndpointAddr) -> names::Endpoint {
    names::Endpoint::new(backend.ip, backend.port.try_into().expect("an endpoint's port is not 0"))
}

/// Returns the rules of a chain; `plan` is the content if it is a chain of a service port.
pub(super) fn rules(schema: &Schema, name: &Name, id: &ChainId, plan: Option<&ChainPlan>) -> Vec<Rule> {
    let rule = |statements| schema.rule(name, statements);
    match (id, plan) {
        (ChainId::Balance(balance), _) => match balance.choice {
            Choice::Affinity(seconds) => {
                sticky_statements(schema, balance, seconds).into_iter().map(rule).collect()
            }
            choice => vec![rule(spread_statements(schema, balance, choice))],
        },
        (ChainId::Port(port, kind), Some(plan)) => port_rules(schema, name, port, *kind, plan),
        (ChainId::Port(..), None) => Vec::new(),
    }
}

/// Returns `meta l4proto tcp meta priority set none dnat ip to ip daddr . tcp dport . numgen random mod 5 map
/// @endpoints-tcp`. The priority had the code of the chain.
fn spread_statements(schema: &Schema, balance: &Balance, choice: Choice) -> Vec<Statement> {
    let Balance { scope, path, protocol, count, .. } = *balance;
    let map = container_name(Container::Endpoints(scope, path, protocol));
    let number = schema.number(choice, protocol, count);
    let endpoint = schema.numbered_key(scope, protocol, number).map(&map);
    let to = Nat::to_concat(nft_family(schema.settings.family), endpoint);
    vec![is_protocol(protocol), Mangle::new(CARRIER, 0u32).into(), Statement::dnat(to)]
}

/// Returns the rules that all frontends with session affinity, this number of endpoints and this timeout
/// share. The first sends a known client to its endpoint, unless that no longer exists. Otherwise the client
/// is forgotten, because `update` does not change the value of an element, and is bound to the endpoint that a
/// hash of its address chooses. If the map of clients is full, which the clients of one service can make it,
/// its rule ends, and the next one sends the connection all the same: to where the hash sends that client as
/// long as the service has the same endpoints.
fn sticky_statements(schema: &Schema, balance: &Balance, seconds: u32) -> [Vec<Statement>; 5] {
    let Balance { scope, path, protocol, count, .. } = *balance;
    let clients = container_name(Container::Affinity(scope, protocol));
    let client = || schema.client_key(scope, protocol);
    let id = || Expression::from(CARRIER);
    let known = Mangle::new(CARRIER, client().map(&clients));
    let drawn = schema
        .start_key(scope, protocol, count)
        .map(&container_name(Container::StickyIds(scope, path, protocol)));
    let bind = || {
        let timeout = Some(Duration::from_secs(seconds.into()));
        SetUpdate { value: Some(id()), timeout, ..SetUpdate::update(&clients, client()) }
    };
    let forget = SetUpdate { op: SetOp::Delete, timeout: None, ..bind() };
    let send = || {
        let map = container_name(Container::StickyEndpoints(scope, path, protocol));
        let endpoint = schema.sticky_key(scope, protocol).map(&map);
        Statement::dnat(Nat::to_concat(nft_family(schema.settings.family), endpoint))
    };
    let is_protocol = || is_protocol(protocol);
    [
        vec![is_protocol(), known.into(), bind().into(), send()],
        vec![is_protocol(), forget.into()],
        vec![is_protocol(), Mangle::new(CARRIER, drawn).into()],
        vec![is_protocol(), bind().into()],
        vec![is_protocol(), send()],
    ]
}

fn port_rules(schema: &Schema, name: &Name, port: &PortName, kind: PortChain, plan: &ChainPlan) -> Vec<Rule> {
    let rule = |statements: Vec<Statement>| schema.rule(name, statements);
    match (plan, kind) {
        (ChainPlan::Spread(backends, choice), _) => {
            vec![rule(spread(schema, port.protocol, backends, *choice))]
        }
        (ChainPlan::Sticky { backends, .. }, _) => sticky(schema, name, port, backends),
        (ChainPlan::Endpoint { .. }, PortChain::Endpoint(backend)) => {
            let update = SetUpdate::update(&affinity_set(schema, port, backend).name, schema.saddr());
            let to = Nat::to_port(backend.ip, nft::Port(backend.port));
            vec![rule(vec![update.into()]), rule(vec![is_protocol(port.protocol), Statement::dnat(to)])]
        }
        (ChainPlan::Endpoint { .. }, _) => Vec::new(),
        (ChainPlan::External { shortcut, policy }, _) => external(schema, name, port, *shortcut, *policy),
        (ChainPlan::Firewall(allowed), _) => vec![rule(firewall(schema, allowed))],
    }
}

/// Returns `meta l4proto tcp dnat ip to numgen random mod 2 map { 0 : 10.0.0.1 . 80, 1 : 10.0.0.2 . 80 }`.
fn spread(schema: &Schema, protocol: Protocol, backends: &[EndpointAddr], choice: Choice) -> Vec<Statement> {
    let pairs = (0u32..).zip(backends).map(|(index, backend)| {
        (index.into(), Expression::concat([backend.ip.into(), nft::Port(backend.port).into()]))
    });
    let endpoint = schema.number(choice, protocol, count(backends)).map_anonymous(pairs);
    let to = Nat::to_concat(nft_family(schema.settings.family), endpoint);
    vec![is_protocol(protocol), Statement::dnat(to)]
}

/// Returns the rules of a chain with session affinity: known clients go to their endpoint, and others to a
/// random one.
fn sticky(schema: &Schema, name: &Name, port: &PortName, backends: &[EndpointAddr]) -> Vec<Rule> {
    let chain = |backend: &EndpointAddr| Verdict::Goto(port_chain(port, PortChain::Endpoint(*backend)));
    let known = backends.iter().map(|backend| {
        let clients = Expression::named(&affinity_set(schema, port, *backend).name);
        schema.rule(name, [Match::new(schema.saddr(), clients).into(), chain(backend).into()])
    });
    let pairs: Vec<_> =
        (0u32..).zip(backends).map(|(index, backend)| (Expression::from(index), chain(backend))).collect();
    let choice = Vmap::new(Expression::random(count(backends)), pairs);
    known.chain([schema.rule(name, [choice.into()])]).collect()
}

fn external(
    schema: &Schema,
    name: &Name,
    port: &PortName,
    shortcut: bool,
    policy: Option<PortChain>,
) -> Vec<Rule> {
    let goto = |kind| Statement::from(Verdict::Goto(port_chain(port, kind)));
    let rule = |statements: Vec<Statement>, text: &str| schema.rule(name, statements).comment(comment(text));
    let mut rules = Vec::new();
    if shortcut {
        let local = || Statement::from(Match::new(Expression::FIB_SADDR_TYPE, AddressType::LOCAL));
        let service = || goto(PortChain::Service);
        rules.extend(schema.pods(true).map(|pods| rule(vec![pods, service()], "short-circuit pod traffic")));
        rules.push(rule(vec![local(), schema.mark_for_masquerade()], "masquerade local traffic"));
        rules.push(rule(vec![local(), service()], "short-circuit local traffic"));
    } else {
        rules.push(rule(vec![schema.mark_for_masquerade()], "masquerade"));
    }
    rules.extend(policy.map(|kind| schema.rule(name, [goto(kind)])));
    rules
}

/// `ip saddr != { ... } drop`, or `drop` where no source is allowed: nft has no empty anonymous set.
fn firewall(schema: &Schema, allowed: &[IpNet]) -> Vec<Statement> {
    if allowed.is_empty() {
        return vec![drop()];
    }
    vec![Match::not(schema.saddr(), networks(allowed)).into(), drop()]
}

fn container_name(container: Container) -> Name {
    fixed_name(container.name())
}

fn is_protocol(protocol: Protocol) -> Statement {
    Match::new(MetaKey::L4PROTO, nft_protocol(protocol)).into()
}

fn count(backends: &[EndpointAddr]) -> u32 {
    u32::try_from(backends.len()).unwrap_or(u32::MAX)
}
