//! Delete what may not be there, and tell "not there" from every other refusal.

use std::error::Error;

use sluicegate_nftables::netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::{Family, Table, TableId, Transaction};

pub fn main() -> Result<(), Box<dyn Error>> {
    let mut kernel = Socket::open(NetlinkFamily::NETFILTER, &Options::default())?;
    let table = TableId::new(Family::INET, "old-firewall".parse()?);

    let mut delete = Transaction::new();
    delete.delete(table.clone());
    match delete.apply(&mut kernel) {
        Ok(_) => println!("deleted"),
        Err(error) if error.is_not_found() => println!("was not there: {error}"),
        Err(error) => return Err(error.into()),
    }

    // Adding what is there already changes nothing. From Linux 6.3 on, `destroy` does the same by itself.
    let mut gone = Transaction::new();
    gone.add(Table::new(table.clone()));
    gone.delete(table);
    gone.apply(&mut kernel)?;
    println!("deleted, or was not there");
    Ok(())
}
