//! NAT for containers: what leaves their network gets the machine's address.

use std::error::Error;
use std::net::Ipv4Addr;

use sluicegate_nftables::lang::{Expression, Match, MetaKey, Payload, PortNat, Statement};
use sluicegate_nftables::netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::{Chain, ChainType, Family, Hook, Priority, Table, TableId, Transaction};

pub fn main() -> Result<(), Box<dyn Error>> {
    let containers = Expression::prefix(Ipv4Addr::new(10, 88, 0, 0), 16);
    let table = TableId::new(Family::INET, "containers".parse()?);
    let postrouting = table.chain("postrouting".parse()?);

    let mut change = Transaction::new();
    change.add(Table::new(table));
    change.add(Chain::base(postrouting.clone(), ChainType::Nat, Hook::Postrouting, Priority::SRCNAT));
    change.add(
        postrouting
            .rule()
            .then(Match::new(Payload::IP_SADDR, containers.clone()))
            .then(Match::not(Payload::IP_DADDR, containers))
            .then(Match::not(MetaKey::OIFNAME, "podman0"))
            .then(Statement::masquerade(PortNat::default())),
    );
    change.apply(&mut Socket::open(NetlinkFamily::NETFILTER, &Options::default())?)?;
    print!("{change}");
    Ok(())
}
