//! The chains that do not depend on services: base chains, and the checks that they jump to in order.

use sluicegate_nftables as nft;
use sluicegate_nftables::expr::{CtKey, MetaKey};
use sluicegate_nftables::lang::{
    AddressType, CtStatus, Expression, Mangle, Match, MatchOp, Payload, Statement,
};
use sluicegate_nftables::{Chain, ChainType, Hook, Priority, Rule};
use sluicegate_services::{LocalDetector, NodePorts};

use super::Layout;
use super::element::{Container, Path, Scope};
use super::localhost;
use super::schema::{
    CARRIER, FLOWTABLE, OWN_PRIORITY_BIT, Schema, comment, drop, fixed_name, is_new, jump, masquerade,
    networks, nft_protocol, reject,
};

/// A chain with its rules, and the sets that these use.
#[derive(Clone, Debug)]
pub(super) struct BaseContent {
    pub(super) chain: Chain,
    pub(super) rules: Vec<Rule>,
    pub(super) uses: Vec<Container>,
}

/// Returns the chains of `schema`, base chains last, because they make the others reachable.
pub(super) fn chains(schema: &Schema) -> Vec<BaseContent> {
    let mut chains = vec![
        reject_chain(schema),
        firewall_check(schema),
        endpoints_check(schema, Scope::Address),
        endpoints_check(schema, Scope::NodePort),
        cluster_ips_check(schema),
        masquerading(schema),
    ];
    if schema.settings.layout == Layout::Maps {
        chains.extend([
            node_traffic(schema, Scope::NodePort),
            nodeports(schema),
            node_traffic(schema, Scope::Address),
        ]);
    }
    if !schema.settings.rejected_on_localhost.is_empty() {
        chains.push(localhost_check(schema));
    }
    chains.push(services(schema));
    chains.extend(hooks(schema));
    chains
}

/// Builds the rules of one chain.
struct Builder<'a> {
    schema: &'a Schema,
    content: BaseContent,
}

impl<'a> Builder<'a> {
    fn new(schema: &'a Schema, name: &str) -> Self {
        let chain = Chain::new(schema.table.chain(fixed_name(name)));
        Self { schema, content: BaseContent { chain, rules: Vec::new(), uses: Vec::new() } }
    }

    fn rule(mut self, statements: impl IntoIterator<Item = Statement>) -> Self {
        let name = self.content.chain.id.name.clone();
        self.content.rules.push(self.schema.rule(&name, statements));
        self
    }

    /// Sets the comment of the last rule.
    fn comment(mut self, text: &str) -> Self {
        if let Some(rule) = self.content.rules.last_mut() {
            rule.comment = Some(comment(text));
        }
        self
    }

    /// Records that the last rule uses a set.
    fn uses(mut self, container: Container) -> Self {
        self.content.uses.push(container);
        self
    }

    /// Adds a rule that sends what these statements let through to the chain of its frontend.
    fn dispatch(self, conditions: impl IntoIterator<Item = Statement>, scope: Scope, path: Path) -> Self {
        let schema = self.schema;
        let builder = self
            .rule(conditions.into_iter().chain(schema.dispatch(scope, path)))
            .uses(Container::Dispatch(scope, path));
        match schema.settings.layout {
            Layout::Maps => builder.uses(Container::Balancers(scope, path)),
            Layout::Chains => builder,
        }
    }

    fn build(self) -> BaseContent {
        self.content
    }
}

fn reject_chain(schema: &Schema) -> BaseContent {
    let mut builder = Builder::new(schema, "reject-chain");
    let text = "helper for @no-endpoint-services / @no-endpoint-nodeports";
    builder.content.chain.comment = Some(comment(text));
    builder.rule([reject()]).build()
}

/// Returns the chain that checks, before the destination is rewritten, whether a client may use the address
/// of a load balancer.
fn firewall_check(schema: &Schema) -> BaseContent {
    let builder = Builder::new(schema, "firewall-check");
    let key = schema.frontend_key(Scope::Address);
    if schema.settings.layout == Layout::Chains {
        return builder.rule([schema.verdict_of(key, Container::Firewall)]).uses(Container::Firewall).build();
    }
    let source =
        Expression::concat(schema.frontend_parts(Scope::Address).into_iter().chain([schema.saddr()]));
    let allowed = Expression::named(&fixed_name(Container::Allowed.name()));
    builder
        .rule([schema.is_in(key, Container::Restricted), Match::not(source, allowed).into(), drop()])
        .uses(Container::Restricted)
        .uses(Container::Allowed)
        .build()
}

/// Returns the chain that rejects or drops traffic to frontends without endpoints.
fn endpoints_check(schema: &Schema, scope: Scope) -> BaseContent {
    let container = Container::NoEndpoint(scope);
    let verdict = schema.verdict_of(schema.frontend_key(scope), container);
    match (scope, &schema.settings.node_ports) {
        (Scope::Address, _) => Builder::new(schema, "service-endpoints-check").rule([verdict]),
        (Scope::NodePort, NodePorts::All) => {
            Builder::new(schema, "nodeport-endpoints-check").rule([schema.not_loopback(), verdict])
        }
        (Scope::NodePort, NodePorts::On(_)) => Builder::new(schema, "nodeport-endpoints-check")
            .rule([schema.is_in(schema.daddr(), Container::NodeportIps), verdict])
            .uses(Container::NodeportIps),
    }
    .uses(container)
    .build()
}

/// Returns the chain that rejects and counts the packets of this node to node ports on loopback addresses.
fn localhost_check(schema: &Schema) -> BaseContent {
    let mut builder = Builder::new(schema, LOCALHOST).uses(Container::LocalhostNodePorts);
    for protocol in &schema.settings.rejected_on_localhost {
        builder = builder.rule([
            Match::new(schema.daddr(), schema.loopback()).into(),
            Match::new(MetaKey::L4PROTO, nft_protocol(*protocol)).into(),
            schema.is_in(schema.frontend_key(Scope::NodePort), Container::LocalhostNodePorts),
            localhost::count(*protocol),
            localhost::reject(*protocol),
        ]);
    }
    builder.build()
}

/// Returns the chain that rejects traffic to cluster IPs. Packets still have such a destination only if the
/// port or the service does not exist.
fn cluster_ips_check(schema: &Schema) -> BaseContent {
    let builder = Builder::new(schema, "cluster-ips-check")
        .rule([schema.is_in(schema.daddr(), Container::ClusterIps), reject()])
        .comment("Reject traffic to invalid ports of ClusterIPs")
        .uses(Container::ClusterIps);
    if schema.settings.service_cidrs.is_empty() {
        return builder.build();
    }
    let unallocated = Match::new(schema.daddr(), networks(&schema.settings.service_cidrs));
    builder.rule([unallocated.into(), drop()]).comment("Drop traffic to unallocated ClusterIPs").build()
}

fn masquerading(schema: &Schema) -> BaseContent {
    let mark = nft::Mark(schema.settings.mark);
    let marked = Match::not(Expression::from(MetaKey::MARK).and(mark), nft::Mark(0));
    let unmark = Mangle::new(MetaKey::MARK, Expression::from(MetaKey::MARK).xor(mark));
    let translated = Match::new(CtKey::STATUS, CtStatus::DNAT);
    let pair = Expression::concat([
        schema.saddr(),
        schema.daddr(),
        MetaKey::L4PROTO.into(),
        Payload::TH_DPORT.into(),
    ]);
    Builder::new(schema, "masquerading")
        .rule([marked.into(), unmark.into(), masquerade()])
        .rule([translated.into(), schema.is_in(pair, Container::Hairpin), masquerade()])
        .uses(Container::Hairpin)
        .build()
}

/// Returns the chain that rewrites destinations. In layout `maps`, its rules do for all services what
/// kube-proxy does in a chain for each: mark, short-circuit, choose an endpoint.
fn services(schema: &Schema) -> BaseContent {
    let mut builder = Builder::new(schema, "services");
    let cluster_ip = schema.is_in(schema.daddr(), Container::ClusterIps);
    if schema.settings.masquerade_all {
        builder = builder
            .rule([cluster_ip, schema.mark_for_masquerade()])
            .comment("masquerade all clusterIP traffic")
            .uses(Container::ClusterIps);
    } else if let Some(outside) = schema.pods(false) {
        builder = builder
            .rule([cluster_ip, outside, schema.mark_for_masquerade()])
            .comment("masquerade clusterIP traffic from outside cluster")
            .uses(Container::ClusterIps);
    }
    let maps = schema.settings.layout == Layout::Maps;
    if maps {
        builder = marks_and_shortcuts(builder, Scope::Address);
    }
    builder = builder.dispatch([], Scope::Address, Path::Main);
    let (is_node_port, address) = match schema.settings.node_ports {
        NodePorts::All => (vec![to_this_node(), schema.not_loopback()], None),
        NodePorts::On(_) => {
            (vec![schema.is_in(schema.daddr(), Container::NodeportIps)], Some(Container::NodeportIps))
        }
    };
    builder = match maps {
        true => builder.rule(is_node_port.into_iter().chain([jump(NODEPORTS)])),
        false => builder.dispatch(is_node_port, Scope::NodePort, Path::Main),
    };
    address.into_iter().fold(builder, Builder::uses).build()
}

/// Returns the chain for connections to node ports. Layout `maps`.
fn nodeports(schema: &Schema) -> BaseContent {
    marks_and_shortcuts(Builder::new(schema, NODEPORTS), Scope::NodePort)
        .dispatch([], Scope::NodePort, Path::Main)
        .build()
}

/// Adds the rules that mark packets for masquerading, and that send pods and the node itself to all endpoints
/// if other clients may use only those of this node. Layout `maps`.
fn marks_and_shortcuts<'a>(mut builder: Builder<'a>, scope: Scope) -> Builder<'a> {
    let schema = builder.schema;
    let marked = Container::Masquerade(scope);
    builder = builder
        .rule([schema.is_in(schema.frontend_key(scope), marked), schema.mark_for_masquerade()])
        .comment("masquerade")
        .uses(marked);
    if schema.settings.detector != LocalDetector::None
        && let Some(pods) = schema.pods(true)
    {
        builder = builder.dispatch([pods], scope, Path::Shortcut).comment("short-circuit pod traffic");
    }
    let local = Match::new(Expression::FIB_SADDR_TYPE, AddressType::LOCAL);
    builder.rule([local.into(), jump(node_chain(scope))]).comment("short-circuit local traffic")
}

/// Returns the chain for traffic of the node itself to frontends with policy Local. Its packets may have a
/// source address that an endpoint on another node cannot answer to, so they are masqueraded. Layout `maps`.
fn node_traffic(schema: &Schema, scope: Scope) -> BaseContent {
    let marked = Container::MasqueradeLocal(scope);
    Builder::new(schema, node_chain(scope))
        .rule([schema.is_in(schema.frontend_key(scope), marked), schema.mark_for_masquerade()])
        .comment("masquerade local traffic")
        .uses(marked)
        .dispatch([], scope, Path::Shortcut)
        .build()
}

fn to_this_node() -> Statement {
    Match::new(Expression::FIB_DADDR_TYPE, AddressType::LOCAL).into()
}

/// Returns the base chains. Priorities are numbers, as older nft refuses `dstnat` in output hooks.
fn hooks(schema: &Schema) -> Vec<BaseContent> {
    let filter = |name, hook, priority, jumps: &[&str]| {
        let rules = jumps.iter().map(|chain| vec![is_new(), jump(chain)]);
        hook_chain(schema, name, ChainType::Filter, hook, priority, rules)
    };
    let nat = |name, hook, priority, chain| {
        hook_chain(schema, name, ChainType::Nat, hook, priority, [vec![jump(chain)]])
    };
    let fastpath = schema.settings.fastpath.map(|after| {
        let rule = vec![
            Match::new(CtKey::STATUS, CtStatus::DNAT).into(),
            Match::with(CtKey::PACKETS, MatchOp::Gt, u64::from(after.get())).into(),
            Statement::FlowAdd(fixed_name(FLOWTABLE)),
        ];
        hook_chain(schema, FASTPATH, ChainType::Filter, Hook::Forward, LAST, [rule])
    });
    // What comes from elsewhere to a loopback address the kernel drops before any chain of input.
    let from_node: &[&str] = match schema.settings.rejected_on_localhost.is_empty() {
        true => &["service-endpoints-check", "cluster-ips-check"],
        false => &["service-endpoints-check", "cluster-ips-check", LOCALHOST],
    };
    let hooks = vec![
        filter("filter-prerouting-pre-dnat", Hook::Prerouting, -110, &["firewall-check"]),
        filter("filter-output-pre-dnat", Hook::Output, -110, &["firewall-check"]),
        filter("filter-input", Hook::Input, 0, &["nodeport-endpoints-check", "service-endpoints-check"]),
        filter("filter-forward", Hook::Forward, 0, &["service-endpoints-check", "cluster-ips-check"]),
        filter("filter-output", Hook::Output, 0, from_node),
        nat_postrouting(schema),
        nat("nat-prerouting", Hook::Prerouting, -100, "services"),
        nat("nat-output", Hook::Output, -100, "services"),
    ];
    hooks.into_iter().chain(fastpath).collect()
}

/// Returns the base chain of `masquerading`. In layout `maps` it first resets the priority of packets in
/// which the rules for session affinity have left the id of an endpoint.
fn nat_postrouting(schema: &Schema) -> BaseContent {
    let reset = vec![
        Match::new(CtKey::STATUS, CtStatus::DNAT).into(),
        Match::with(CARRIER, MatchOp::Gte, OWN_PRIORITY_BIT).into(),
        Mangle::new(CARRIER, 0u32).into(),
    ];
    let reset = (schema.settings.layout == Layout::Maps).then_some(reset);
    let rules = reset.into_iter().chain([vec![jump("masquerading")]]);
    hook_chain(schema, "nat-postrouting", ChainType::Nat, Hook::Postrouting, 100, rules)
}

fn hook_chain(
    schema: &Schema,
    name: &str,
    kind: ChainType,
    hook: Hook,
    priority: i32,
    rules: impl IntoIterator<Item = Vec<Statement>>,
) -> BaseContent {
    let mut builder = Builder::new(schema, name);
    builder.content.chain = Chain::base(schema.table.chain(fixed_name(name)), kind, hook, Priority(priority));
    rules.into_iter().fold(builder, Builder::rule).build()
}

const fn node_chain(scope: Scope) -> &'static str {
    match scope {
        Scope::Address => "node-traffic",
        Scope::NodePort => "nodeports-from-node",
    }
}

/// The name of the chain whose rule hands connections to the flowtable.
pub const FASTPATH: &str = "fastpath";
/// Behind the chains of others in the hook forward, which are at 0 (`filter`) and 50 (`security`): what one of
/// them drops is never forwarded past it.
const LAST: i32 = 200;
const LOCALHOST: &str = "localhost-nodeports-check";
const NODEPORTS: &str = "nodeports";
