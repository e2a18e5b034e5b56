//! Chains of every type, hook and priority, with devices and without.

use sluicegate_nftables::*;

use super::Bytes;
use crate::kernel::cases::name;

/// The base chains that there are at first.
pub(super) fn usual(t: &TableId) -> Vec<Chain> {
    let base = |n: &str, kind, hook| Chain::base(t.chain(name(n)), kind, hook, Priority(0));
    match t.family {
        Family::NETDEV => vec![
            base("in", ChainType::Filter, Hook::Ingress).devices([device("lo"), device("d0")]),
            base("post", ChainType::Filter, Hook::Egress).devices([device("d1")]),
        ],
        Family::IP | Family::IP6 | Family::INET => {
            vec![base("in", ChainType::Filter, Hook::Input), base("post", ChainType::Nat, Hook::Postrouting)]
        }
        _ => vec![base("in", ChainType::Filter, Hook::Input), base("post", ChainType::Filter, Hook::Output)],
    }
}

pub(super) fn chain_name(bytes: &mut Bytes<'_>) -> Name {
    name(bytes.pick(&["a", "b", "c", "d", "in", "post", "a", "b", "e"]))
}

pub(super) fn chain(t: &TableId, bytes: &mut Bytes<'_>) -> Chain {
    let id = t.chain(name(bytes.pick(&["a", "b", "c", "d", "in", "post", "a", "b"])));
    let comment = bytes.comment();
    let mut chain = match bytes.below(5) {
        0 | 1 => Chain::new(id),
        // As it is, or nearly.
        2 => match usual(t).into_iter().find(|chain| chain.id == id) {
            Some(chain) => with_policy(with_devices(chain, bytes), bytes),
            None => Chain::new(id),
        },
        _ => base(id, bytes),
    };
    chain.comment = comment;
    chain
}

fn base(id: ChainId, bytes: &mut Bytes<'_>) -> Chain {
    let kind = bytes.pick(&[
        ChainType::Filter,
        ChainType::Nat,
        ChainType::Route,
        ChainType::Filter,
        ChainType::Filter,
        ChainType::Nat,
        ChainType::Other(name("other")),
    ]);
    // Of the family most of the time: others have no number there, and nothing can be sent.
    let hooks: Vec<Hook> =
        Hook::ALL.iter().copied().filter(|hook| hook.number(id.table.family).is_some()).collect();
    let hook = bytes.pick(&hooks);
    let priority = bytes.pick(&[0, 0, 0, 10, -200, -199, -201, i32::MIN, i32::MAX]);
    let chain = Chain::base(id, kind, hook, Priority(priority));
    with_policy(with_devices(chain, bytes), bytes)
}

fn with_policy(chain: Chain, bytes: &mut Bytes<'_>) -> Chain {
    match bytes.below(4) {
        0 => chain.policy(Policy::Drop),
        1 => chain.policy(Policy::Accept),
        _ => chain,
    }
}

/// Devices where they belong, and seldom elsewhere.
fn with_devices(chain: Chain, bytes: &mut Bytes<'_>) -> Chain {
    let takes = chain.base.as_ref().is_some_and(|base| [Hook::Ingress, Hook::Egress].contains(&base.hook));
    if takes || bytes.one_in(20) { chain.devices(devices(bytes)) } else { chain }
}

/// Devices that are there or not, seldom one twice.
pub(super) fn devices(bytes: &mut Bytes<'_>) -> Vec<InterfaceName> {
    let count = bytes.below(4);
    let mut devices: Vec<InterfaceName> =
        (0..count).map(|_| device(bytes.pick(&["lo", "d0", "d1", "d*", "e0"]))).collect();
    if !bytes.one_in(6) {
        devices.sort();
        devices.dedup();
    }
    devices
}

fn device(name: &str) -> InterfaceName {
    InterfaceName::new(name).expect("a name")
}
