//! The checks of a whole table before a commit: that no path of jumps from a base chain is too long (a loop
//! is endless), and that every expression can be reached only from hooks where it works.

use std::collections::HashMap;

use sluicegate_netlink::Errno;

use crate::Family;
use crate::expr::{Expr, Fib, FibFlags, FibResult, Meta, MetaKey, NatType, ObjectKind, RtKey};
use crate::fake::element::reference;
use crate::fake::message::{Done, refuse};
use crate::fake::set::Set;
use crate::fake::state::{Base, Chain, Reference, StoredExpr, Table};
use crate::fake::validate::is_inet;

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

/// Returns whether an expression makes the kernel walk the chains.
pub(super) fn is_checked(expr: &Expr) -> bool {
    let refers = matches!(expr, Expr::Immediate(_) | Expr::Lookup(_) | Expr::Objref(_));
    refers || [Family::INET, Family::NETDEV].iter().any(|family| place_of(expr, *family).is_some())
}

struct Walk<'t> {
    family: Family,
    chains: HashMap<u64, &'t Chain>,
    sets: HashMap<u64, &'t Set>,
    /// The depth at which a chain was reached from a base chain of this type and hook.
    seen: HashMap<(u64, &'t str, u32), usize>,
}

impl<'t> Walk<'t> {
    fn chain(&mut self, base: &'t Base, chain: &'t Chain, level: usize) -> Done {
        if level == MAX_JUMPS {
            return refuse(Errno::EMLINK);
        }
        let key = (chain.handle, base.kind.as_str(), base.hook);
        if level > 0 {
            if chain.base.is_some() {
                return refuse(Errno::ELOOP);
            }
            if self.seen.get(&key).is_some_and(|depth| *depth >= level) {
                return Ok(());
            }
        }
        for stored in chain.rules().flat_map(|rule| &rule.exprs) {
            if self.place_of(stored).is_some_and(|place| !place.allows(base)) {
                return refuse(Errno::EOPNOTSUPP);
            }
            match stored.refers {
                Some(Reference::Chain(next)) => self.jump(base, next, level)?,
                Some(Reference::Set(set)) if matches!(&stored.expr, Expr::Lookup(_)) => {
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

    /// Returns where an expression works. A reference to a synproxy object, or to a map of them, works where
    /// the statement does.
    fn place_of(&self, stored: &StoredExpr) -> Option<Place> {
        let kind = match (&stored.expr, stored.refers) {
            (Expr::Objref(_), Some(Reference::Set(set))) => {
                self.sets.get(&set).map(|set| ObjectKind(set.shape.object_kind))
            }
            (Expr::Objref(reference), _) => reference.kind,
            _ => None,
        };
        match kind {
            Some(ObjectKind::SYNPROXY) => Some(place_of_synproxy(self.family)),
            _ => place_of(&stored.expr, self.family),
        }
    }

    fn jump(&mut self, base: &'t Base, to: u64, level: usize) -> Done {
        match self.chains.get(&to).copied() {
            Some(chain) => self.chain(base, chain, level + 1),
            None => Ok(()),
        }
    }
}

/// The chains in which an expression works.
struct Place {
    /// Only in chains of type `nat`.
    nat: bool,
    /// The hooks, one bit each.
    hooks: u32,
}

impl Place {
    fn allows(&self, base: &Base) -> bool {
        (!self.nat || base.kind.as_str() == "nat") && self.hooks & 1 << base.hook != 0
    }
}

/// Returns the hooks at which an expression works, or `None` if it works at all of them. In families other
/// than those of the internet protocols, the same hook numbers mean other hooks.
fn place_of(expr: &Expr, family: Family) -> Option<Place> {
    let nat = |hooks| Some(Place { nat: true, hooks });
    let only = |hooks| Some(Place { nat: false, hooks });
    let inet = is_inet(family);
    let inet_only = |hooks| only(if inet { hooks } else { NOWHERE });
    match expr {
        Expr::Nat(e) if e.of == NatType::SNAT => nat(POST | IN),
        Expr::Nat(_) | Expr::Redir(_) => nat(PRE | OUT),
        Expr::Masq(_) => nat(POST),
        Expr::Tproxy(_) => inet_only(PRE),
        Expr::Reject(_) => match family {
            Family::BRIDGE => only(PRE | IN),
            Family::NETDEV => only(DEVICE_IN),
            Family::INET => only(PRE | IN | FORWARD | OUT | INGRESS),
            _ => only(PRE | IN | FORWARD | OUT),
        },
        Expr::Synproxy(_) => Some(place_of_synproxy(family)),
        Expr::FlowOffload(_) => inet_only(FORWARD),
        Expr::Queue(_) if family == Family::BRIDGE => only(ALL),
        Expr::Queue(_) => inet_only(ALL),
        Expr::Osf(_) if family == Family::IP6 => only(NOWHERE),
        Expr::Osf(_) => inet_only(PRE | IN | FORWARD),
        Expr::Socket(_) => only(PRE | IN | OUT),
        Expr::Rt(e) if e.key == RtKey::MTU => inet_only(FORWARD | OUT | POST),
        Expr::Rt(_) => (!inet).then_some(Place { nat: false, hooks: NOWHERE }),
        Expr::Xfrm(e) if e.direction == 0 => only(PRE | IN | FORWARD),
        Expr::Xfrm(_) => only(FORWARD | OUT | POST),
        Expr::Fib(e) => only(place_of_fib(e, family)),
        Expr::Meta(e) => place_of_meta(e, family).map(|hooks| Place { nat: false, hooks }),
        _ => None,
    }
}

fn place_of_synproxy(family: Family) -> Place {
    Place { nat: false, hooks: if is_inet(family) { IN | FORWARD } else { NOWHERE } }
}

/// Returns the hooks of a `fib` expression: a lookup by the input or output device needs a hook at which that
/// device is known.
fn place_of_fib(e: &Fib, family: Family) -> u32 {
    let incoming = e.result != FibResult::ADDRTYPE || e.flags.contains(FibFlags::IIF);
    let outgoing = !incoming && e.flags.contains(FibFlags::OIF);
    match (family, incoming, outgoing) {
        (Family::NETDEV, true, _) => DEVICE_IN,
        (Family::NETDEV, _, true) => DEVICE_OUT,
        (Family::NETDEV, ..) => DEVICE_IN | DEVICE_OUT,
        (_, true, _) => PRE | IN | FORWARD,
        (_, _, true) => OUT | POST | FORWARD,
        _ => ALL,
    }
}

fn place_of_meta(e: &Meta, family: Family) -> Option<u32> {
    let inet = is_inet(family);
    match (e.key, e.dreg.is_some()) {
        (MetaKey::IPSEC, true) if inet => Some(PRE | IN | FORWARD),
        (MetaKey::IPSEC, true) if family == Family::NETDEV => Some(DEVICE_IN),
        (MetaKey::SDIF | MetaKey::SDIFNAME, true) if inet => Some(IN | FORWARD),
        (MetaKey::IPSEC | MetaKey::SDIF | MetaKey::SDIFNAME, true) => Some(NOWHERE),
        (MetaKey::PKTTYPE, false) if family == Family::ARP => Some(NOWHERE),
        (MetaKey::PKTTYPE | MetaKey::BROUTE, false) => Some(PRE),
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
/// All hooks of the internet protocols.
const ALL: u32 = PRE | IN | FORWARD | OUT | POST;
/// `NF_NETDEV_INGRESS`, `NF_NETDEV_EGRESS`
const DEVICE_IN: u32 = 1;
const DEVICE_OUT: u32 = 1 << 1;
/// An expression that works in no base chain.
const NOWHERE: u32 = 0;
