//! Transactions that between them use every construct, for the tests that compare ways of loading them.

mod bits;
mod expressions;
pub(crate) mod fields;
mod matches;
mod members;
mod names;
mod neighbours;
pub(crate) mod objects;
mod order;
mod services;
mod statements;
pub(crate) mod times;

use std::net::Ipv4Addr;

use sluicegate_nftables::expr::ExthdrOp;
use sluicegate_nftables::lang::exthdr::Exthdr;
use sluicegate_nftables::lang::*;
use sluicegate_nftables::*;

pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) transaction: Transaction,
}

pub(crate) fn all() -> Vec<Case> {
    let groups = [
        objects::cases(),
        services::cases(),
        matches::cases(),
        members::cases(),
        names::cases(),
        neighbours::cases(),
        bits::cases(),
        expressions::cases(),
        fields::cases(),
        statements::cases(),
        times::cases(),
    ];
    groups.into_iter().flatten().collect()
}

/// What nft 1.0.6 cannot read or list, or sends otherwise than is right.
pub(crate) fn newer() -> Vec<Case> {
    [fields::newer(), members::newer(), expressions::newer(), order::newer()].into_iter().flatten().collect()
}

pub(crate) fn name(name: &str) -> Name {
    Name::new(name).unwrap()
}

pub(crate) fn comment(text: &str) -> Comment {
    Comment::new(text).unwrap()
}

/// A table of its own with one regular chain `c`, and what `fill` puts there.
fn case(case: &'static str, family: Family, fill: impl FnOnce(&mut Transaction, &TableId, &ChainId)) -> Case {
    let table = TableId::new(family, name("t"));
    let chain = table.chain(name("c"));
    let mut transaction = Transaction::new();
    transaction.add(Table::new(table.clone())).add(Chain::new(chain.clone()));
    fill(&mut transaction, &table, &chain);
    Case { name: case, transaction }
}

/// Rules in such a chain, each of some statements.
fn rules(name: &'static str, family: Family, list: impl IntoIterator<Item = Vec<Statement>>) -> Case {
    case(name, family, |tx, _, chain| {
        for statements in list {
            tx.add(chain.rule().then_all(statements));
        }
    })
}

pub(crate) fn ip(a: u8, b: u8, c: u8, d: u8) -> Ipv4Addr {
    Ipv4Addr::new(a, b, c, d)
}

fn port(port: u16) -> Expression {
    Port(port).into()
}

fn exthdr(op: ExthdrOp, header: &str, field: &str) -> Expression {
    Exthdr::find(op, header, field).unwrap().into()
}
