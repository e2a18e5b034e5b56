//! A service with two endpoints in a table of its own: printed as nft text, or applied to this network namespace and listed.
//!
//! ```text
//! cargo run -q -p examples --example nftables              # prints the script; needs nothing
//! cargo run -q -p examples --example nftables -- apply     # applies it and lists the ruleset; needs CAP_NET_ADMIN
//! cargo run -q -p examples --example nftables -- list      # lists the ruleset as nft -s list ruleset does
//! cargo run -q -p examples --example nftables -- delete    # removes the table
//! ```
//!
//! Try it in a namespace of its own: `unshare -Urn cargo run -q -p examples --example nftables -- apply`.

use std::error::Error;
use std::net::Ipv4Addr;

use sluicegate_netlink::{Options, Protocol as NetlinkProtocol, Socket};
use sluicegate_nftables::expr::MetaKey;
use sluicegate_nftables::lang::{Expression, Match, Nat, Payload, Statement};
use sluicegate_nftables::{
    Chain, ChainType, DataType, Element, Family, Hook, Number, Port, Priority, Protocol, Set, Table, TableId,
    Transaction, read,
};

fn main() -> Result<(), Box<dyn Error>> {
    let table = TableId::new(Family::IP, "sluicegate-example".parse()?);
    match std::env::args().nth(1).as_deref() {
        None => print!("{}", service(&table)?),
        Some("apply") => {
            let applied = service(&table)?.apply(&mut socket()?)?;
            println!("# generation {}, in {} batch", applied.generation, applied.batches);
            list()?;
        }
        Some("list") => list()?,
        Some("delete") => {
            let mut transaction = Transaction::new();
            transaction.delete(&table);
            transaction.apply(&mut socket()?)?;
        }
        Some(other) => return Err(format!("{other:?} is none of apply, list and delete").into()),
    }
    Ok(())
}

/// TCP to 10.96.0.1:80 goes to one of two endpoints by chance.
fn service(table: &TableId) -> Result<Transaction, Box<dyn Error>> {
    let (addresses, endpoints) = (table.set("addresses".parse()?), table.map("endpoints".parse()?));
    let entry = table.chain("prerouting".parse()?);
    let address = Ipv4Addr::new(10, 96, 0, 1);

    // Which endpoint: by the address, and a random number.
    let key = Expression::concat([Payload::IP_DADDR.into(), Expression::random(2)]);
    let data = Expression::concat([Payload::IP_DADDR.into(), Payload::TH_DPORT.into()]);

    let mut transaction = Transaction::new();
    transaction.add(Table::new(table.clone()).comment("one service, two endpoints".parse()?));
    transaction.add(Set::new(addresses.clone(), [DataType::IPV4_ADDR, DataType::INET_SERVICE]).size(100));
    transaction.add(Set::map(endpoints.clone(), key.clone(), data).size(100));
    transaction.add(Chain::base(entry.clone(), ChainType::Nat, Hook::Prerouting, Priority::DSTNAT));
    transaction.flush(&entry);
    transaction.add_element(&addresses, (address, Port(80)));
    for (index, last) in [(0, 10), (1, 20)] {
        let endpoint = (Ipv4Addr::new(10, 244, 0, last), Port(8080));
        transaction.add_element(&endpoints, Element::new((address, Number(index))).value(endpoint));
    }
    let frontend = Expression::concat([Payload::IP_DADDR.into(), Payload::TH_DPORT.into()]);
    transaction.add(
        entry
            .rule()
            .then(Match::new(MetaKey::L4PROTO, Protocol::TCP))
            .then(Match::new(frontend, Expression::named(&addresses.name)))
            .then(Statement::Dnat(Nat::to_concat(Family::IP, key.map(&endpoints.name)))),
    );
    Ok(transaction)
}

fn list() -> Result<(), Box<dyn Error>> {
    for table in read::ruleset(&mut socket()?, Family::UNSPEC, None)?.content() {
        print!("{table}");
    }
    Ok(())
}

fn socket() -> Result<Socket, sluicegate_netlink::Error> {
    Socket::open(NetlinkProtocol::NETFILTER, &Options::default())
}
