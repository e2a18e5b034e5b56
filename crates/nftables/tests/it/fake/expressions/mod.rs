//! Every kind of expression in every place that a chain can have: the fake and the kernel take and refuse the
//! same ones.

mod changes;
mod loads;
mod numbers;

use std::collections::BTreeMap;

use sluicegate_nftables::expr::kind::*;
use sluicegate_nftables::expr::*;
use sluicegate_nftables::fake::Fake;
use sluicegate_nftables::*;

use crate::fake::history::Step;
use crate::fake::outcome::Outcome;
use crate::kernel::cases::name;

/// Whether a kernel may well have no module for it; the fake has them all. What the modules of xtables ask is
/// their own.
fn is_of_a_module(expr: &Expr, family: Family) -> bool {
    let bridge = family == Family::BRIDGE;
    match expr {
        Expr::Queue(_) | Expr::FlowOffload(_) | Expr::XtMatch(_) | Expr::XtTarget(_) => true,
        Expr::Exthdr(e) => e.op == Some(ExthdrOp::DCCP),
        Expr::Meta(e) => bridge && (MetaKey::IBRNAME..=MetaKey::IBRHWADDR).contains(&e.key),
        Expr::Nat(e) if e.family == u32::from(Family::BRIDGE.0) => true,
        Expr::Reject(_) | Expr::Ct(_) | Expr::Connlimit(_) | Expr::Synproxy(_) | Expr::Nat(_) => bridge,
        Expr::Dynset(e) => bridge && matches!(e.expr.as_deref(), Some(Expr::Connlimit(_))),
        _ => false,
    }
}

/// The registers that every rule fills first.
const FILLED: Register = Register(1);
const FILLED_TOO: Register = Register(2);
/// One that nothing has filled.
const EMPTY: Register = Register(3);

#[test]
fn each_expression_is_taken_and_refused_in_the_same_families() {
    in_every_place(|chains, socket, fake, differ| {
        let loose = &chains[0];
        let exprs: Vec<Expr> = expressions(loose.id.table.family);
        // So many refusals fit a socket's receive buffer.
        for some in exprs.chunks(64) {
            let mut transaction = Transaction::new();
            for expr in some {
                transaction.add(rule(&loose.id, [expr.clone()]));
            }
            let step = Step { transaction, check: true, ..Step::default() };
            let (ours, theirs) = (Outcome::of(fake, &step), Outcome::of(socket, &step));
            for (at, expr) in some.iter().enumerate() {
                differ.note(expr, &describe(loose), verdict_on(&ours, at), verdict_on(&theirs, at));
            }
        }
    });
}

/// Compares in each place that a chain can have, in a kernel and a fake that hold the same.
fn in_every_place(
    compare: impl Fn(&[Chain], &mut sluicegate_netlink::Socket, &mut Fake, &mut Differences) + Sync,
) {
    if !crate::fake::follows_this_kernel() {
        return;
    }
    testns::netns(|| {
        let (mut socket, mut fake) = (crate::fake::socket(), Fake::new());
        let mut differ = Differences::default();
        for chains in places() {
            lay_ground(&chains, &mut socket, &mut fake);
            compare(&chains, &mut socket, &mut fake, &mut differ);
        }
        differ.done();
    });
}

/// Why an operation is refused, and where, unless it is taken.
type Refused = Option<(Errno, Option<u32>)>;

/// What became of an operation.
fn verdict_on(outcome: &Outcome, operation: usize) -> Refused {
    match outcome {
        Outcome::Refused(list) => list.iter().find(|r| r.0 == Some(operation)).map(|r| (r.2, r.3)),
        Outcome::Applied(_) => None,
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_expression_is_taken_and_refused_at_the_same_hooks() {
    in_every_place(|chains, socket, fake, differ| {
        let mut refused: BTreeMap<(String, Vec<usize>), Expr> = BTreeMap::new();
        let mut taken = vec![Vec::new(); chains.len()];
        for expr in expressions(chains[0].id.table.family) {
            let of = |fake: &mut Fake, chain: &Chain| only(fake, chain, std::slice::from_ref(&expr));
            if matches!(of(fake, &chains[0]), Outcome::Refused(_)) {
                continue;
            }
            let verdicts: Vec<_> = chains.iter().map(|chain| of(fake, chain)).collect();
            let is_refused = |at: &usize| matches!(verdicts[*at], Outcome::Refused(_));
            let places: Vec<usize> = (0..chains.len()).filter(is_refused).collect();
            (0..chains.len()).filter(|at| !is_refused(at)).for_each(|at| taken[at].push(expr.clone()));
            // One of those that are refused in the same places stands for all.
            refused.entry((expr.name().to_owned(), places)).or_insert(expr);
        }
        for (chain, mut exprs) in chains.iter().zip(taken) {
            // What is taken is taken together; what is not is found one by one.
            while let Outcome::Refused(list) = only(socket, chain, &exprs) {
                let (at, _, code, offset) = list[0];
                let wrong = exprs.remove(at.expect("an operation is to blame") - 2);
                differ.note(&wrong, &describe(chain), None, Some((code, offset)));
            }
            only(fake, chain, &exprs);
            differ.note_shown(chain, fake, socket);
        }
        for ((_, places), expr) in refused {
            for chain in places.iter().map(|at| &chains[*at]) {
                let exprs = std::slice::from_ref(&expr);
                let (ours, theirs) = (only(fake, chain, exprs), only(socket, chain, exprs));
                differ.note(&expr, &describe(chain), verdict_on(&ours, 2), verdict_on(&theirs, 2));
            }
        }
    });
}

/// Gives a chain a rule for each of these and no other.
fn only(kernel: &mut impl sluicegate_netlink::Transport, chain: &Chain, exprs: &[Expr]) -> Outcome {
    let mut transaction = Transaction::new();
    transaction.flush(chain.id.table.chain(name("loose"))).flush(chain.id.clone());
    for expr in exprs {
        transaction.add(rule(&chain.id, [expr.clone()]));
    }
    Outcome::of(kernel, &Step { transaction, ..Step::default() })
}

fn lay_ground(chains: &[Chain], socket: &mut sluicegate_netlink::Socket, fake: &mut Fake) {
    let mut ground = Transaction::new();
    ground.flush(Flush::Ruleset(Family::UNSPEC));
    ground.add(Table::new(chains[0].id.table.clone()));
    for chain in chains {
        ground.add(chain.clone());
    }
    fill(&mut ground, &chains[0].id.table);
    ground.apply(socket).expect("the kernel has such chains");
    ground.apply(fake).expect("the fake has such chains");
}

/// What is refused otherwise, and in which places.
#[derive(Default)]
struct Differences {
    compared: usize,
    found: BTreeMap<String, Vec<String>>,
}

impl Differences {
    fn note(&mut self, expr: &Expr, place: &str, ours: Refused, theirs: Refused) {
        self.compared += 1;
        if ours != theirs {
            let key = format!("{expr:?}: {ours:?} | {theirs:?}");
            self.found.entry(key).or_default().push(place.to_owned());
        }
    }

    /// What is shown of each rule of a chain.
    fn note_shown(&mut self, chain: &Chain, fake: &mut Fake, socket: &mut sluicegate_netlink::Socket) {
        let of = |kernel: &mut dyn sluicegate_netlink::Transport| {
            let rules = read::chain_rules(kernel, &chain.id);
            rules.expect("rules").into_iter().map(|rule| rule.expressions.last().cloned()).collect::<Vec<_>>()
        };
        let (ours, theirs) = (of(fake), of(socket));
        assert_eq!(ours.len(), theirs.len());
        self.compared += ours.len();
        for (ours, theirs) in ours.iter().zip(&theirs).filter(|(ours, theirs)| ours != theirs) {
            let key = format!("shown: {ours:?} | {theirs:?}");
            self.found.entry(key).or_default().push(describe(chain));
        }
    }

    fn done(self) {
        let line = |(key, places): (&String, &Vec<String>)| format!("{key}: {}", places.join(" "));
        let lines: Vec<String> = self.found.iter().map(line).collect();
        assert!(lines.is_empty(), "of {} (fake | kernel):\n{}", self.compared, lines.join("\n"));
        assert!(self.compared > 0);
    }
}

fn describe(chain: &Chain) -> String {
    format!("{}/{}", chain.id.table.family, chain.id.name)
}

/// A rule of expressions after those that fill registers.
fn rule(chain: &ChainId, exprs: impl IntoIterator<Item = Expr>) -> Rule {
    let fill = |dreg| Immediate { dreg, data: Data::Value(vec![1; 16].into()) }.into();
    let mut all = vec![fill(FILLED), fill(FILLED_TOO)];
    all.extend(exprs);
    let mut rule = chain.rule();
    rule.statements = vec![lang::Statement::Raw(all)].into();
    rule
}

/// What expressions refer to.
fn fill(tx: &mut Transaction, table: &TableId) {
    let counter = ObjectConfig::Counter(lang::Counter::default());
    tx.add(StatefulObject::new(table.object(ObjectKind::COUNTER, name("n")), counter));
    tx.add(Set::new(table.set(name("s")), DataType::IPV4_ADDR).flags(SetFlags::DYNAMIC));
    tx.add(Chain::new(table.chain(name("target"))));
}

/// The chains of each family: one without a hook, and one for each type and hook.
fn places() -> Vec<Vec<Chain>> {
    let inet = [Hook::Prerouting, Hook::Input, Hook::Forward, Hook::Output, Hook::Postrouting];
    let nat = [Hook::Prerouting, Hook::Input, Hook::Output, Hook::Postrouting];
    let families: [(Family, &[Hook]); 6] = [
        (Family::IP, &inet),
        (Family::IP6, &inet),
        (Family::INET, &inet),
        (Family::ARP, &[Hook::Input, Hook::Output]),
        (Family::BRIDGE, &inet),
        (Family::NETDEV, &[]),
    ];
    let mut all = Vec::new();
    for (family, hooks) in families {
        let table = TableId::new(family, name("t"));
        let chain = |kind: &ChainType, hook: &Hook| {
            let name = name(&format!("{}_{hook}", format!("{kind:?}").to_lowercase()));
            Chain::base(table.chain(name), kind.clone(), *hook, Priority(0))
        };
        let mut chains = vec![Chain::new(table.chain(name("loose")))];
        chains.extend(hooks.iter().map(|hook| chain(&ChainType::Filter, hook)));
        if [Family::IP, Family::IP6, Family::INET].contains(&family) {
            chains.extend(nat.iter().map(|hook| chain(&ChainType::Nat, hook)));
            chains.push(chain(&ChainType::Route, &Hook::Output));
        }
        if family == Family::NETDEV || family == Family::INET {
            let on = |hook| chain(&ChainType::Filter, &hook).devices(["lo".parse().expect("a name")]);
            chains.push(on(Hook::Ingress));
            if family == Family::NETDEV {
                chains.push(on(Hook::Egress));
            }
        }
        all.push(chains);
    }
    all
}

/// Every kind, with each of its keys, types and directions, known or not.
pub(crate) fn expressions(family: Family) -> Vec<Expr> {
    let mut all = Vec::new();
    loads::loads(&mut all);
    numbers::numbers(&mut all);
    changes::changes(&mut all);
    changes::verdicts(&mut all);
    all.retain(|expr| !is_of_a_module(expr, family));
    all
}

#[test]
fn each_expression_fills_as_much_of_a_register() {
    if !crate::fake::follows_this_kernel() {
        return;
    }
    testns::netns(|| {
        let (mut socket, mut fake) = (crate::fake::socket(), Fake::new());
        let mut differ = Differences::default();
        for family in [Family::IP, Family::IP6, Family::INET, Family::BRIDGE] {
            let table = TableId::new(family, name("t"));
            let chain = table.chain(name("loose"));
            let mut ground = Transaction::new();
            ground.flush(Flush::Ruleset(Family::UNSPEC)).add(Table::new(table.clone()));
            ground.add(Chain::new(chain.clone()));
            fill(&mut ground, &table);
            ground.apply(&mut socket).expect("the kernel has such chains");
            ground.apply(&mut fake).expect("the fake has such chains");
            let pairs = expressions(family).into_iter().filter_map(|expr| elsewhere(&expr));
            let rules: Vec<Vec<Expr>> = pairs
                .flat_map(|(here, end)| {
                    let read =
                        |len| Cmp { sreg: EMPTY, op: CmpOp::EQ, data: Data::Value(vec![1; len].into()) };
                    [vec![here.clone(), read(4).into()], vec![here.clone(), read(8).into()]]
                        .into_iter()
                        .chain([vec![here, read(16).into()], vec![end]])
                })
                .collect();
            for some in rules.chunks(64) {
                let mut transaction = Transaction::new();
                for exprs in some {
                    transaction.add(rule(&chain, exprs.clone()));
                }
                let step = Step { transaction, check: true, ..Step::default() };
                let (ours, theirs) = (Outcome::of(&mut fake, &step), Outcome::of(&mut socket, &step));
                for (at, exprs) in some.iter().enumerate() {
                    let place = format!("{family}, then {:?}", exprs.get(1));
                    differ.note(&exprs[0], &place, verdict_on(&ours, at), verdict_on(&theirs, at));
                }
            }
        }
        differ.done();
    });
}

/// The same into a register that is empty, and into the last.
fn elsewhere(expr: &Expr) -> Option<(Expr, Expr)> {
    let to = |dreg: Register| {
        let mut expr = expr.clone();
        match &mut expr {
            Expr::Payload(e) if e.dreg.is_some() && e.sreg.is_none() => e.dreg = Some(dreg),
            Expr::Meta(e) if e.dreg.is_some() => e.dreg = Some(dreg),
            Expr::Ct(e) if e.dreg.is_some() => e.dreg = Some(dreg),
            Expr::Exthdr(e) if e.dreg.is_some() && e.sreg.is_none() => e.dreg = Some(dreg),
            Expr::Rt(e) => e.dreg = dreg,
            Expr::Socket(e) => e.dreg = dreg,
            Expr::Osf(e) => e.dreg = dreg,
            Expr::Fib(e) => e.dreg = dreg,
            Expr::Xfrm(e) => e.dreg = dreg,
            Expr::Tunnel(e) => e.dreg = dreg,
            Expr::Numgen(e) => e.dreg = dreg,
            Expr::Hash(e) => e.dreg = dreg,
            Expr::Bitwise(e) => e.dreg = dreg,
            Expr::Byteorder(e) => e.dreg = dreg,
            _ => return None,
        }
        Some(expr)
    };
    Some((to(EMPTY)?, to(Register(23))?))
}
