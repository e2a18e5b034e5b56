//! The protocol of a rule, for modules of xtables (`enum nft_rule_compat_attributes`): the one that the rule
//! matches before the first module.
//!
//! Some modules are only valid in rules for certain protocols, for example `tcp` and `multiport`. The kernel
//! does not derive the protocol from the rule and does not list it; without this attribute it refuses such a
//! rule.

use std::collections::HashSet;

use sluicegate_netlink::attr::Writer;

use crate::expr::{Cmp, CmpOp, Data, Expr, Meta, MetaKey, Payload, PayloadBase, Register};
use crate::family::Family;
use crate::object::rule::wire::NFTA_RULE_COMPAT;
use crate::wire::attributes::attributes;

/// Appends the protocol, if a rule has modules and matches a protocol before the first of them.
pub(crate) fn encode(family: Family, exprs: &[Expr], w: &mut Writer<'_>) {
    let Some((protocol, inverted)) = protocol(family, exprs) else { return };
    let mut compat = w.nest(NFTA_RULE_COMPAT);
    compat.put_be32(NFTA_RULE_COMPAT_PROTO, protocol.into());
    compat.put_be32(NFTA_RULE_COMPAT_FLAGS, if inverted { NFT_RULE_COMPAT_F_INV } else { 0 });
}

/// Returns the protocol, and whether the match is inverted.
fn protocol(family: Family, exprs: &[Expr]) -> Option<(u16, bool)> {
    let module = exprs.iter().position(|expr| matches!(expr, Expr::XtMatch(_) | Expr::XtTarget(_)))?;
    let mut loaded: HashSet<Register> = HashSet::new();
    for expr in exprs.get(..module)? {
        let (into, is_protocol) = match expr {
            Expr::Meta(Meta { dreg: Some(dreg), key, .. }) => (*dreg, *key == key_of(family)),
            Expr::Payload(load @ Payload { dreg: Some(dreg), .. }) => (*dreg, is_field(family, load)),
            Expr::Cmp(Cmp { sreg, op, data: Data::Value(value) }) if loaded.contains(sreg) => {
                let inverted = match *op {
                    CmpOp::EQ => false,
                    CmpOp::NEQ => true,
                    _ => continue,
                };
                match **value {
                    [protocol] => return Some((protocol.into(), inverted)),
                    // In family bridge the protocol is in network byte order, as in the packet.
                    [high, low] => return Some((u16::from_ne_bytes([high, low]), inverted)),
                    _ => continue,
                }
            }
            Expr::Bitwise(bits) => (bits.dreg, false),
            _ => continue,
        };
        if is_protocol {
            loaded.insert(into);
        } else {
            loaded.remove(&into);
        }
    }
    None
}

fn key_of(family: Family) -> MetaKey {
    if family == Family::BRIDGE { MetaKey::PROTOCOL } else { MetaKey::L4PROTO }
}

fn is_field(family: Family, load: &Payload) -> bool {
    let place = (load.base, load.offset, load.len);
    match family {
        Family::IP => place == (PayloadBase::NETWORK, 9, 1),
        Family::IP6 => place == (PayloadBase::NETWORK, 6, 1),
        Family::BRIDGE => place == (PayloadBase::LINK, 12, 2),
        _ => false,
    }
}

/// `NFT_RULE_COMPAT_F_INV` of `enum nft_rule_compat_flags`.
const NFT_RULE_COMPAT_F_INV: u32 = 1 << 1;

attributes! {
    COMPAT: "enum nft_rule_compat_attributes, linux/netfilter/nf_tables.h" {
        NFTA_RULE_COMPAT_PROTO = 1,
        NFTA_RULE_COMPAT_FLAGS = 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::XtMatch;
    use crate::name::Name;
    use crate::object::TableId;
    use crate::transaction::Transaction;
    use crate::tree::{Match, Payload as Field, Statement};
    use crate::{ApplyOptions, Chain, Table};
    use sluicegate_netlink::Protocol;
    use sluicegate_netlink::message::Messages;

    fn module() -> Statement {
        let module = XtMatch { name: "tcp".into(), revision: 0, info: vec![0; 16] };
        Statement::Raw(vec![module.into()])
    }

    /// Returns the attribute for a rule with these statements, as it is sent to the kernel.
    fn said(family: Family, statements: Vec<Statement>) -> Option<Vec<u8>> {
        let chain = TableId::new(family, Name::from_kernel("t")).chain(Name::from_kernel("c"));
        let mut tx = Transaction::new();
        tx.add(Table::new(chain.table.clone())).add(Chain::new(chain.clone()));
        tx.add(statements.into_iter().fold(chain.rule(), crate::Rule::then));
        let batch = tx.encode(ApplyOptions::default()).unwrap();
        let messages = Messages::new(batch.bytes().unwrap()).map(Result::unwrap);
        let rule = messages.into_iter().find(|message| message.header.kind == 10 << 8 | 6).unwrap();
        let (_, attributes) = rule.netfilter().unwrap();
        attributes.find(NFTA_RULE_COMPAT).unwrap().map(|compat| compat.payload.to_vec())
    }

    fn compat(protocol: u8, flags: u8) -> Option<Vec<u8>> {
        let mut bytes = vec![8, 0, 1, 0, 0, 0, 0, protocol, 8, 0, 2, 0, 0, 0, 0, flags];
        if cfg!(target_endian = "big") {
            bytes[..4].copy_from_slice(&[0, 8, 0, 1]);
            bytes[8..12].copy_from_slice(&[0, 8, 0, 2]);
        }
        Some(bytes)
    }

    /// The values are those that iptables-nft 1.8.9 and ebtables-nft send for `-p tcp`, `! -p tcp` and
    /// `-p ip` with a module.
    #[test]
    fn the_protocol_is_said_as_iptables_says_it() {
        let l4proto = || Statement::from(Match::new(MetaKey::L4PROTO, Protocol::TCP));
        assert_eq!(said(Family::IP, vec![l4proto(), module()]), compat(6, 0));
        assert_eq!(
            said(Family::IP6, vec![Match::not(MetaKey::L4PROTO, Protocol::TCP).into(), module()]),
            compat(6, 2)
        );
        let field = |field, protocol| Statement::from(Match::new(field, protocol));
        assert_eq!(said(Family::IP, vec![field(Field::IP_PROTOCOL, Protocol::TCP), module()]), compat(6, 0));
        assert_eq!(
            said(Family::IP6, vec![field(Field::IP6_NEXTHDR, Protocol::UDP), module()]),
            compat(17, 0)
        );
        if cfg!(target_endian = "little") {
            let ip = Match::new(Field::ETHER_TYPE, 0x0800_u32);
            assert_eq!(said(Family::BRIDGE, vec![ip.into(), module()]), compat(8, 0));
        }
    }

    #[test]
    fn nothing_is_said_where_nothing_asks_or_is_known() {
        let l4proto = || Statement::from(Match::new(MetaKey::L4PROTO, Protocol::TCP));
        assert_eq!(said(Family::IP, vec![l4proto()]), None);
        assert_eq!(said(Family::IP, vec![module()]), None);
        assert_eq!(said(Family::IP, vec![module(), l4proto()]), None);
        let mark = Statement::from(Match::new(MetaKey::MARK, 6_u32));
        assert_eq!(said(Family::IP, vec![mark, module()]), None);
    }
}
