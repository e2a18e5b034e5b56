//! Both layouts send a packet to the same endpoints, and masquerade, drop and reject the same.
//!
//! The scripts of random clusters are read by a small interpreter: packets to every frontend pass the base
//! chains in the kernel's order, once for every number that `numgen` or a hash may give, and what may become of
//! them is compared. It knows the statements and expressions that the planner uses and panics on any other.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;

use proptest::test_runner::{Config, TestRunner};
use sluicegate_nftables::expr::{CtKey, MetaKey};
use sluicegate_nftables::lang::{
    BinaryOp, Expression, Mapping, Match, MatchOp, NatTarget, Payload, SetOp, Statement, Value, Verdict,
};
use sluicegate_nftables::{ElementData, Family, Key, Object, Operation, Order, Target, Transaction};
use sluicegate_service_rules::nftables::{Layout, Planner};
use sluicegate_services::Node;

use crate::nftables::changes::state;
use crate::nftables::world::{cluster, settings};

/// A value, one number for each part of a concatenation.
type Tuple = Vec<u128>;

/// A table of the script.
#[derive(Default)]
struct Table {
    chains: BTreeMap<String, Vec<Vec<Statement>>>,
    /// The lowest and the highest key of each element, and its value.
    sets: BTreeMap<String, Vec<(Tuple, Tuple, ElementData)>>,
}

impl Table {
    fn read(script: &Transaction, family: Family) -> Self {
        let mut table = Self::default();
        for operation in script.operations() {
            match operation {
                Operation::Add(Object::Table(_)) => {}
                Operation::Delete(Target::Table(id)) if id.family == family => table = Self::default(),
                Operation::Delete(Target::Table(_)) => {}
                Operation::Add(Object::Chain(chain)) if chain.id.table.family == family => {
                    table.chains.entry(chain.id.name.to_string()).or_default();
                }
                Operation::Add(Object::Rule(rule)) if rule.chain.table.family == family => {
                    let chain = table.chains.get_mut(rule.chain.name.as_str()).expect("the rule's chain");
                    chain.push(rule.statements.to_vec());
                }
                Operation::Add(Object::Set(set)) if set.id.table.family == family => {
                    table.sets.entry(set.id.name.to_string()).or_default();
                }
                Operation::Add(Object::Elements(elements)) if elements.set.table.family == family => {
                    let set = table.sets.get_mut(elements.set.name.as_str()).expect("the elements' set");
                    set.extend(elements.list.iter().map(|element| {
                        let low = tuple(&element.key());
                        (low.clone(), element.end().map_or(low, |end| tuple(&end)), element.data())
                    }));
                }
                Operation::Add(Object::Chain(_) | Object::Rule(_) | Object::Set(_) | Object::Elements(_)) => {
                }
                other => panic!("unknown operation {other:?}"),
            }
        }
        table
    }

    fn find(&self, set: &str, key: &[u128]) -> Option<&ElementData> {
        let inside = |(low, high): (&Tuple, &Tuple)| {
            assert_eq!(low.len(), key.len(), "the key of {set}");
            key.iter().zip(low.iter().zip(high)).all(|(part, (low, high))| (low..=high).contains(&part))
        };
        let set = self.sets.get(set).unwrap_or_else(|| panic!("no set {set}"));
        set.iter().find(|(low, high, _)| inside((low, high))).map(|(_, _, data)| data)
    }
}

fn tuple(key: &Key) -> Tuple {
    key.parts()
        .map(|(part, bytes)| {
            let fold = |number: u128, byte: &u8| number << 8 | u128::from(*byte);
            let little = part.order() == Order::Host && cfg!(target_endian = "little");
            if little { bytes.iter().rev().fold(0, fold) } else { bytes.iter().fold(0, fold) }
        })
        .collect()
}

fn number(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(ip) => u32::from(ip).into(),
        IpAddr::V6(ip) => ip.into(),
    }
}

/// The result for a packet: its destination or verdict.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    Dropped,
    Rejected,
    /// Its destination was not rewritten.
    Passed {
        masqueraded: bool,
    },
    Endpoint {
        ip: u128,
        port: u128,
        masqueraded: bool,
    },
}

/// The end of a chain's evaluation.
enum End {
    /// After the last rule.
    Through,
    Accept,
    Stop(Fate),
}

/// The first packet of a connection during its evaluation.
#[derive(Clone)]
struct Walk<'a> {
    table: &'a Table,
    source: u128,
    /// Whether the source is an address of the node.
    source_is_local: bool,
    destination: u128,
    node: u128,
    protocol: u128,
    port: u128,
    mark: u128,
    translated: bool,
    masqueraded: bool,
    /// The number that `numgen` returns, and that a hash of the client returns, which may be any and stays the
    /// same, and the modulus that it was given.
    draw: u32,
    hash: u32,
    of: u32,
    /// The elements that rules added to dynamic sets and maps, with their values.
    noted: BTreeMap<(String, Tuple), Option<Tuple>>,
    priority: u128,
}

impl Walk<'_> {
    /// Evaluates the base chains of the hooks that such a packet passes.
    fn fate(&mut self) -> Fate {
        let to_node = self.destination == self.node;
        let hooks: &[&str] = match (self.source_is_local, to_node) {
            (false, _) => &["filter-prerouting-pre-dnat", "nat-prerouting"],
            (true, _) => &["filter-output-pre-dnat", "nat-output", "filter-output"],
        };
        if let Some(fate) = self.hooks(hooks) {
            return fate;
        }
        let arrives = to_node && !self.translated;
        let hooks: &[&str] = match (self.source_is_local, arrives) {
            (false, true) => &["filter-input"],
            (false, false) => &["filter-forward", "nat-postrouting"],
            (true, true) => &["nat-postrouting", "filter-prerouting-pre-dnat", "filter-input"],
            (true, false) => &["nat-postrouting"],
        };
        let fate = self.hooks(hooks);
        if self.translated {
            assert_eq!(self.priority, 0, "the packet leaves with its own priority");
        }
        fate.unwrap_or(match self.translated {
            true => Fate::Endpoint { ip: self.destination, port: self.port, masqueraded: self.masqueraded },
            false => Fate::Passed { masqueraded: self.masqueraded },
        })
    }

    fn hooks(&mut self, names: &[&str]) -> Option<Fate> {
        names.iter().find_map(|name| match self.chain(name) {
            End::Stop(fate) => Some(fate),
            End::Accept | End::Through => None,
        })
    }

    fn chain(&mut self, name: &str) -> End {
        let table = self.table;
        let rules = table.chains.get(name).unwrap_or_else(|| panic!("no chain {name}"));
        for rule in rules {
            for statement in rule {
                let verdict = match statement {
                    Statement::Match(matched) if self.matches(matched) => continue,
                    Statement::Match(_) => break,
                    Statement::Verdict(verdict) => verdict.clone(),
                    Statement::Vmap(vmap) => match self.verdict(&vmap.key, &vmap.map) {
                        Some(verdict) => verdict,
                        None => break,
                    },
                    Statement::Reject(_) => return End::Stop(Fate::Rejected),
                    Statement::Masquerade(_) => {
                        self.masqueraded = true;
                        return End::Accept;
                    }
                    Statement::Dnat(nat) => match self.target(&nat.to) {
                        Some((ip, port)) => {
                            (self.destination, self.port, self.translated) = (ip, port, true);
                            return End::Accept;
                        }
                        None => break,
                    },
                    Statement::Mangle(mangle) if mangle.key == Expression::from(MetaKey::MARK) => {
                        self.mark = self.value(&mangle.value).expect("a mark")[0];
                        continue;
                    }
                    Statement::Mangle(mangle) if mangle.key == Expression::from(MetaKey::PRIORITY) => {
                        let Some(value) = self.value(&mangle.value) else { break };
                        self.priority = value[0];
                        continue;
                    }
                    Statement::Set(update) => {
                        assert!(self.table.sets.contains_key(update.set.as_str()), "no set {}", update.set);
                        let key = (update.set.to_string(), self.value(&update.key).expect("a key"));
                        let value = update.value.as_ref().map(|value| self.value(value).expect("a value"));
                        match update.op {
                            // The value of an element that exists stays.
                            SetOp::Update => {
                                self.noted.entry(key).or_insert(value);
                            }
                            SetOp::Delete => {
                                self.noted.remove(&key);
                            }
                            SetOp::Add => panic!("unknown statement {statement:?}"),
                        }
                        continue;
                    }
                    other => panic!("unknown statement {other:?}"),
                };
                match verdict {
                    Verdict::Drop => return End::Stop(Fate::Dropped),
                    Verdict::Goto(chain) => return self.chain(chain.as_str()),
                    Verdict::Jump(chain) => match self.chain(chain.as_str()) {
                        End::Through => {}
                        end => return end,
                    },
                    other => panic!("unknown verdict {other:?}"),
                }
            }
        }
        End::Through
    }

    fn matches(&mut self, Match { left, op, right }: &Match) -> bool {
        let Some(value) = self.value(left) else { return false };
        let flags = matches!(left, Expression::Ct(_));
        match op {
            MatchOp::In if flags => value[0] & self.value(right).expect("flags")[0] != 0,
            MatchOp::In => self.contains(right, &value),
            MatchOp::Neq if !flags => !self.contains(right, &value),
            MatchOp::Gte => value >= self.value(right).expect("a constant"),
            other => panic!("unknown comparison {other:?}"),
        }
    }

    fn contains(&mut self, right: &Expression, value: &[u128]) -> bool {
        match right {
            Expression::Named(set) => {
                self.table.find(set.as_str(), value).is_some()
                    || self.noted.contains_key(&(set.to_string(), value.to_vec()))
            }
            Expression::Set(members) => members.iter().any(|member| self.contains(member, value)),
            Expression::Prefix(prefix) => {
                let Value::Address(ip) = prefix.value else { panic!("unknown prefix {prefix:?}") };
                let host = (if ip.is_ipv4() { 32 } else { 128 }) - u32::from(prefix.length);
                value[0].checked_shr(host) == number(ip).checked_shr(host)
            }
            Expression::Value(_) => self.value(right).expect("a constant") == value,
            other => panic!("unknown right side {other:?}"),
        }
    }

    /// Returns the value of an expression; `None` if the packet does not have it, which ends the rule.
    fn value(&mut self, expression: &Expression) -> Option<Tuple> {
        let one = match expression {
            Expression::Concat(parts) => {
                let parts: Option<Vec<Tuple>> = parts.iter().map(|part| self.value(part)).collect();
                return Some(parts?.concat());
            }
            Expression::Map(map) => return self.mapped(&map.key, &map.map),
            Expression::Value(Value::Number(number)) => (*number).into(),
            Expression::Value(Value::Address(ip)) => number(*ip),
            Expression::Payload(field) => return self.field(*field).map(|value| vec![value]),
            Expression::Meta(MetaKey::L4PROTO) => self.protocol,
            Expression::Meta(MetaKey::MARK) => self.mark,
            Expression::Meta(MetaKey::PRIORITY) => self.priority,
            // `new`, and `dnat`
            Expression::Ct(ct) if ct.key == CtKey::STATE => 8,
            Expression::Ct(ct) if ct.key == CtKey::STATUS => {
                if self.translated {
                    0x20
                } else {
                    0
                }
            }
            // `local`, or `unicast`
            fib if *fib == Expression::FIB_SADDR_TYPE => {
                if self.source_is_local {
                    2
                } else {
                    1
                }
            }
            fib if *fib == Expression::FIB_DADDR_TYPE => {
                if self.destination == self.node {
                    2
                } else {
                    1
                }
            }
            Expression::Numgen(numgen) if numgen.offset == 0 => {
                assert_eq!(self.of, 1, "one draw a packet");
                self.of = numgen.modulus;
                (self.draw % numgen.modulus).into()
            }
            Expression::Jhash(jhash) if jhash.modulus != u32::MAX => {
                self.of = jhash.modulus;
                (self.hash % jhash.modulus).into()
            }
            // Of all numbers: it stands for what it is of.
            Expression::Jhash(jhash) => {
                let mut hasher = DefaultHasher::new();
                (self.value(&jhash.of)?, jhash.seed).hash(&mut hasher);
                u128::from(hasher.finish()) % u128::from(jhash.modulus)
            }
            Expression::Binary(binary) => {
                let (left, right) = (self.value(&binary.left)?[0], self.value(&binary.right)?[0]);
                match binary.op {
                    BinaryOp::And => left & right,
                    BinaryOp::Or => left | right,
                    BinaryOp::Xor => left ^ right,
                    other => panic!("unknown operator {other:?}"),
                }
            }
            other => panic!("unknown expression {other:?}"),
        };
        Some(vec![one])
    }

    fn field(&self, field: Payload) -> Option<u128> {
        let port_of = |protocol| (self.protocol == protocol).then_some(self.port);
        match field {
            Payload::IP_SADDR | Payload::IP6_SADDR => Some(self.source),
            Payload::IP_DADDR | Payload::IP6_DADDR => Some(self.destination),
            Payload::TH_DPORT => Some(self.port),
            Payload::TCP_DPORT => port_of(6),
            Payload::UDP_DPORT => port_of(17),
            Payload::SCTP_DPORT => port_of(132),
            other => panic!("unknown field {other:?}"),
        }
    }

    fn mapped(&mut self, key: &Expression, map: &Mapping<Expression>) -> Option<Tuple> {
        let value = self.value(key)?;
        match map {
            Mapping::Named(map) if self.noted.contains_key(&(map.to_string(), value.clone())) => {
                self.noted[&(map.to_string(), value)].clone()
            }
            Mapping::Named(map) => match self.table.find(map.as_str(), &value)? {
                ElementData::Value(data) => Some(tuple(data)),
                other => panic!("unknown data {other:?}"),
            },
            Mapping::Anonymous(pairs) => {
                let (_, data) = pairs.iter().find(|(key, _)| self.contains(key, &value))?;
                self.value(data)
            }
        }
    }

    fn verdict(&mut self, key: &Expression, map: &Mapping<Verdict>) -> Option<Verdict> {
        let value = self.value(key)?;
        match map {
            Mapping::Named(map) => match self.table.find(map.as_str(), &value)? {
                ElementData::Verdict(verdict) => Some(verdict.clone()),
                other => panic!("unknown data {other:?}"),
            },
            Mapping::Anonymous(pairs) => {
                pairs.iter().find(|(key, _)| self.contains(key, &value)).map(|(_, verdict)| verdict.clone())
            }
        }
    }

    fn target(&mut self, to: &NatTarget) -> Option<(u128, u128)> {
        let value = match to {
            NatTarget::Concat(of) => self.value(of)?,
            NatTarget::AddressPort(ip, port) => [self.value(ip)?, self.value(port)?].concat(),
            other => panic!("unknown target {other:?}"),
        };
        assert_eq!(value.len(), 2, "an address and a port");
        Some((value[0], value[1]))
    }

    /// Returns the results for it and for the next packet of the same client, for every number of `numgen`.
    fn fates(&self) -> BTreeSet<(Fate, Fate)> {
        let mut fates = BTreeSet::new();
        let (mut draw, mut of) = (0, 1);
        while draw < of {
            let mut first = Self { draw, hash: draw, ..self.clone() };
            let fate = first.fate();
            of = first.of;
            let mut second = Self { draw: draw + 1, hash: draw, noted: first.noted, ..self.clone() };
            fates.insert((fate, second.fate()));
            draw += 1;
        }
        fates
    }
}

/// Family, addresses of the node, and of clients: pods (one an endpoint), and others (one within the source
/// ranges); then what is connected to: cluster IPs, external IPs, the load balancer's, one that nothing has,
/// each of them `prefix`.
const NETWORKS: [(Family, &str, [&str; 4], [&str; 4]); 2] = [
    (
        Family::IP,
        "203.0.113.7",
        ["10.244.0.99", "10.244.0.1", "203.0.113.9", "192.0.2.1"],
        ["172.30.0.", "198.51.100.", "5.6.7.8", "172.30.9."],
    ),
    (
        Family::IP6,
        "fd00:3::7",
        ["fd00:10:244::99", "fd00:10:244::1", "fd00:4::9", "2001:db8::1"],
        ["fd00:172:30::", "fd00:6::", "fd00:5::8", "fd00:172:99::"],
    ),
];

fn script(layout: Layout, manifests: &str) -> Transaction {
    let mut cluster = cluster(manifests);
    let addresses = NETWORKS.map(|(_, node, ..)| node.parse().expect("an address")).to_vec();
    cluster.set_node(Node { addresses, ..cluster.node().clone() });
    cluster.take_changes();
    Planner::new(&settings(layout), &cluster, None).expect("the settings are good").script()
}

/// Visits all packets of interest, each with a description.
fn packets(network: usize, mut visit: impl FnMut(&str, Walk<'_>), table: &Table) {
    let (_, node, clients, targets) = NETWORKS[network];
    let address = |text: &str| number(text.parse().expect("an address"));
    let mut destinations: Vec<(String, u16)> = Vec::new();
    for target in targets {
        let whole = target.parse::<IpAddr>().is_ok() && !target.ends_with(':');
        let ips = (1..=4).map(|n| if whole { target.to_owned() } else { format!("{target}{n}") });
        let ips: BTreeSet<String> = ips.collect();
        destinations.extend(ips.iter().flat_map(|ip| [(ip.clone(), 80), (ip.clone(), 81)]));
    }
    destinations.extend((30000..30005).map(|port| (node.to_owned(), port)));
    for (destination, port) in destinations {
        // The node's packets to a load balancer may have that address as source.
        let sources = clients.map(|c| (c, false)).into_iter().chain([(node, true), (targets[2], true)]);
        for (source, source_is_local) in sources {
            for protocol in [6, 17, 132] {
                let walk = Walk {
                    table,
                    source: address(source),
                    source_is_local,
                    destination: address(&destination),
                    node: address(node),
                    protocol,
                    port: port.into(),
                    mark: 0,
                    translated: false,
                    masqueraded: false,
                    draw: 0,
                    hash: 0,
                    of: 1,
                    noted: BTreeMap::new(),
                    priority: 0,
                };
                visit(&format!("{source} to {destination} port {port}, protocol {protocol}"), walk);
            }
        }
    }
}

#[test]
fn both_layouts_send_every_packet_to_the_same_endpoints() {
    let seen = std::cell::RefCell::new(BTreeSet::new());
    let mut runner = TestRunner::new(Config { cases: 48, failure_persistence: None, ..Config::default() });
    let run = |manifests: String| {
        let scripts = [Layout::Maps, Layout::Chains].map(|layout| script(layout, &manifests));
        for (network, (family, ..)) in NETWORKS.iter().enumerate() {
            let [maps, chains] = scripts.each_ref().map(|script| Table::read(script, *family));
            let mut expected = Vec::new();
            packets(network, |_, walk| expected.push(walk.fates()), &chains);
            let mut expected = expected.into_iter();
            let compare = |what: &str, walk: Walk<'_>| {
                let fates = walk.fates();
                assert_eq!(Some(&fates), expected.next().as_ref(), "maps and chains differ: {what}");
                seen.borrow_mut().extend(fates.into_iter().map(|(fate, _)| match fate {
                    Fate::Endpoint { masqueraded, .. } => Fate::Endpoint { ip: 0, port: 0, masqueraded },
                    other => other,
                }));
            };
            packets(network, compare, &maps);
        }
        Ok(())
    };
    runner.run(&state("eirabnuls6x"), run).expect("the layouts agree");
    let endpoint = |masqueraded| Fate::Endpoint { ip: 0, port: 0, masqueraded };
    let wanted = [Fate::Dropped, Fate::Rejected, endpoint(false), endpoint(true)];
    assert!(wanted.iter().all(|fate| seen.borrow().contains(fate)), "not everything was tried: {seen:?}");
}
