//! Open a port and drop the rest: a firewall as values.

use std::error::Error;

use sluicegate_nftables::lang::{CtKey, CtState, Expression, Match, MetaKey, Payload, Verdict};
use sluicegate_nftables::netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::{
    Chain, ChainType, Family, Hook, Policy, Port, Priority, Protocol, Table, TableId, Transaction,
};

pub fn main() -> Result<(), Box<dyn Error>> {
    let table = TableId::new(Family::INET, "firewall".parse()?);
    let input = table.chain("input".parse()?);
    let mut change = Transaction::new();
    change.add(Table::new(table));
    let base = Chain::base(input.clone(), ChainType::Filter, Hook::Input, Priority::FILTER);
    change.add(base.policy(Policy::Drop));
    let known = CtState::ESTABLISHED | CtState::RELATED;
    change.add(input.rule().then(Match::new(CtKey::STATE, known)).then(Verdict::Accept));
    change.add(input.rule().then(Match::new(MetaKey::IIFNAME, "lo")).then(Verdict::Accept));
    // Without ICMPv6 no IPv6: a neighbour's address is asked for by it.
    let icmp = Expression::set([Protocol::ICMP, Protocol::ICMPV6]);
    change.add(input.rule().then(Match::new(MetaKey::L4PROTO, icmp)).then(Verdict::Accept));
    change.add(input.rule().then(Match::new(Payload::TCP_DPORT, Port(22))).then(Verdict::Accept));

    let mut kernel = Socket::open(NetlinkFamily::NETFILTER, &Options::default())?;
    change.apply(&mut kernel)?; // all of it, or nothing
    print!("{change}"); // what `nft -f` would read
    Ok(())
}
