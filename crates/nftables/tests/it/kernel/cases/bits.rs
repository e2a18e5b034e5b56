//! Masks of bits: any of them, all of them, in sets and maps.

use sluicegate_nftables::expr::CtKey;

use super::*;

pub(super) fn cases() -> Vec<Case> {
    // nft lists the members of a set that are masks of several bits in no order, so there is one of each.
    let sets = case("sets of masks of bits", Family::IP, |tx, t, chain| {
        let set = t.set(name("seen"));
        let key = |flags: TcpFlags| {
            let mut key = Key::new();
            key.append(DataType::TCP_FLAG.into(), &[flags.bits()]);
            Element::new(key)
        };
        tx.add(Set::new(set.clone(), DataType::TCP_FLAG));
        tx.add(Elements::new(&set, [key(TcpFlags::FIN | TcpFlags::SYN), key(TcpFlags::RST)]));
        tx.add(chain.rule().then(Match::new(Payload::TCP_FLAGS, Expression::named(&set.name))));
    });
    vec![rules("masks of bits", Family::IP, list()), sets]
}

fn list() -> Vec<Vec<Statement>> {
    let flags = || Expression::from(Payload::TCP_FLAGS);
    let state = || Expression::from(CtKey::STATE);
    let both = TcpFlags::FIN | TcpFlags::SYN;
    let three = both | TcpFlags::RST;
    let known = CtState::ESTABLISHED | CtState::RELATED;
    let with = |left: Expression, op, right: Expression| vec![Statement::from(Match::with(left, op, right))];
    vec![
        with(flags(), MatchOp::In, both.into()),
        with(flags(), MatchOp::None, both.into()),
        with(flags(), MatchOp::Eq, both.into()),
        with(flags(), MatchOp::Neq, both.into()),
        with(flags(), MatchOp::Neq, TcpFlags::SYN.into()),
        with(flags(), MatchOp::Gt, both.into()),
        with(flags(), MatchOp::In, Expression::range(TcpFlags::FIN, both)),
        with(flags().and(three), MatchOp::Eq, both.into()),
        with(flags().and(three), MatchOp::Neq, both.into()),
        with(state(), MatchOp::In, known.into()),
        with(state(), MatchOp::None, known.into()),
        with(state(), MatchOp::Neq, known.into()),
        with(state(), MatchOp::Eq, CtState::NEW.into()),
        with(CtKey::STATUS.into(), MatchOp::Neq, (CtStatus::SNAT | CtStatus::DNAT).into()),
        vec![Vmap::new(flags(), vec![(both.into(), Verdict::Accept)]).into()],
        vec![Vmap::new(state(), vec![(known.into(), Verdict::Accept)]).into()],
        vec![Mangle::new(flags(), both).into()],
    ]
}
