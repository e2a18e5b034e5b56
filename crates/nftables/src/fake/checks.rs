//! What the kernel checks of a table as a whole before it commits: that no way from a base chain is too long (a loop is endless),
//! and that no expression is met where it cannot work.

use std::collections::HashMap;

use crate::Family;
use crate::expr::{Expr, FibFlags, FibResult, NatType, RtKey};
use crate::fake::element::reference;
use crate::fake::message::{Done, ELOOP, EMLINK, EOPNOTSUPP, refuse};
use crate::fake::set::Set;
use crate::fake::state::{Base, Chain, Reference, Table};

/// Walks all chains that packets can reach.
pub(super) fn table(table: &Table) -> Done {
    let mut walk = Walk {
        family: Family(table.family),
        chains: table.chains.iter().map(|chain| (chain.handle, chain.as_ref())).collect(),
        sets: table.sets.iter().map(|set| (set.handle, set.as_ref())).collect(),
        seen: HashMap::new(),
    };
    for chain in &table.chains {
        if let Some(base) = &chain.base {
            walk.chain(base, chain, 0)?;
        }
    }
    Ok(())
}

/// Whether an expression makes the kernel walk the chains.
pub(super) fn is_checked(expr: &Expr) -> bool {
    matches!(expr, Expr::Immediate(_) | Expr::Lookup(_)) || place_of(expr, Family::IP).is_some()
}

struct Walk<'t> {
    family: Family,
    chains: HashMap<u64, &'t Chain>,
    sets: HashMap<u64, &'t Set>,
    /// How deep a chain has been walked from a base chain of this type and hook.
    seen: HashMap<(u64, &'t str, u32), usize>,
}

impl<'t> Walk<'t> {
    fn chain(&mut self, base: &'t Base, chain: &'t Chain, level: usize) -> Done {
        if level == MAX_JUMPS {
            return refuse(EMLINK);
        }
        let key = (chain.handle, base.kind.as_str(), base.hook);
        if level > 0 {
            if chain.base.is_some() {
                return refuse(ELOOP);
            }
            if self.seen.get(&key).is_some_and(|depth| *depth >= level) {
                return Ok(());
            }
        }
        for held in chain.rules().flat_map(|rule| &rule.exprs) {
            if place_of(&held.expr, self.family).is_some_and(|place| !place.allows(base)) {
                return refuse(EOPNOTSUPP);
            }
            match held.refers {
                Some(Reference::Chain(next)) => self.jump(base, next, level)?,
                Some(Reference::Set(set)) if matches!(&held.expr, Expr::Lookup(_)) => {
                    let Some(set) = self.sets.get(&set).copied().filter(|set| set.is_verdict_map()) else {
                        continue;
                    };
                    for element in set.store.iter() {
                        if let Some(Reference::Chain(next)) = reference(element) {
                            self.jump(base, next, level)?;
                        }
                    }
                }
                _ => {}
            }
        }
        let depth = self.seen.entry(key).or_default();
        *depth = level.max(*depth);
        Ok(())
    }

    fn jump(&mut self, base: &'t Base, to: u64, level: usize) -> Done {
        match self.chains.get(&to).copied() {
            Some(chain) => self.chain(base, chain, level + 1),
            None => Ok(()),
        }
    }
}

/// Where an expression can work.
struct Place {
    /// Only in chains of type `nat`.
    nat: bool,
    /// The hooks, a bit each.
    hooks: u32,
}

impl Place {
    fn allows(&self, base: &Base) -> bool {
        (!self.nat || base.kind.as_str() == "nat") && self.hooks & 1 << base.hook != 0
    }
}

/// Where an expression can work; `None` where that is everywhere. Hooks of the same number mean another place in families that are
/// not of the internet protocols; there only `reject` and `fwd` are bound to one.
fn place_of(expr: &Expr, family: Family) -> Option<Place> {
    let nat = |hooks| Some(Place { nat: true, hooks });
    let only = |hooks| Some(Place { nat: false, hooks });
    match expr {
        Expr::Nat(e) if e.of == NatType::SNAT => nat(POST | IN),
        Expr::Nat(_) | Expr::Redir(_) => nat(PRE | OUT),
        Expr::Masq(_) => nat(POST),
        Expr::Tproxy(_) => only(PRE),
        Expr::Reject(_) => match family {
            Family::BRIDGE => only(PRE | IN),
            Family::NETDEV => only(PRE),
            Family::INET => only(PRE | IN | FORWARD | OUT | INGRESS),
            _ => only(PRE | IN | FORWARD | OUT),
        },
        Expr::Synproxy(_) => only(IN | FORWARD),
        Expr::FlowOffload(_) => only(FORWARD),
        Expr::Osf(_) => only(PRE | IN | FORWARD),
        Expr::Socket(_) => only(PRE | IN | OUT),
        Expr::Rt(e) if e.key != RtKey::CLASSID => only(FORWARD | OUT | POST),
        Expr::Xfrm(e) if e.direction == 0 => only(PRE | IN | FORWARD),
        Expr::Xfrm(_) => only(FORWARD | OUT | POST),
        Expr::Fib(e) => match e.result {
            FibResult::OIF | FibResult::OIFNAME => only(PRE | IN | FORWARD),
            FibResult::ADDRTYPE if e.flags.contains(FibFlags::IIF) => only(PRE | IN | FORWARD),
            FibResult::ADDRTYPE if e.flags.contains(FibFlags::OIF) => only(OUT | POST | FORWARD),
            _ => None,
        },
        _ => None,
    }
}

/// `NFT_JUMP_STACK_SIZE`
const MAX_JUMPS: usize = 16;
const PRE: u32 = 1;
const IN: u32 = 1 << 1;
const FORWARD: u32 = 1 << 2;
const OUT: u32 = 1 << 3;
const POST: u32 = 1 << 4;
const INGRESS: u32 = 1 << 5;
