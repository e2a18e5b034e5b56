//! Send the containers' questions of names to a server of our own, as aardvark-dns needs.

use std::error::Error;

use sluicegate_nftables::lang::{Match, MetaKey, Payload, PortNat, Statement};
use sluicegate_nftables::netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::{Chain, ChainType, Family, Hook, Port, Priority, Table, TableId, Transaction};

pub fn main() -> Result<(), Box<dyn Error>> {
    let table = TableId::new(Family::INET, "dns".parse()?);
    let prerouting = table.chain("prerouting".parse()?);
    let mut change = Transaction::new();
    change.add(Table::new(table));
    change.add(Chain::base(prerouting.clone(), ChainType::Nat, Hook::Prerouting, Priority::DSTNAT));
    for protocol in [Payload::UDP_DPORT, Payload::TCP_DPORT] {
        change.add(
            prerouting
                .rule()
                .then(Match::new(MetaKey::IIFNAME, "podman0"))
                .then(Match::new(protocol, Port(53)))
                .then(Statement::redirect(PortNat::to(Port(1153)))),
        );
    }
    change.apply(&mut Socket::open(NetlinkFamily::NETFILTER, &Options::default())?)?;
    print!("{change}");
    Ok(())
}
