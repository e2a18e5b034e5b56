//! Load a file with what it takes from the machine: names of interfaces, variables.

use std::error::Error;

use sluicegate_nftables::lang::parse::ParseOptions;
use sluicegate_nftables::netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::{Family, Transaction, read};

/// `/etc/nftables.conf`, say. It empties everything first, as most do: in one commit, so no packet meets nothing.
const FILE: &str = "
    flush ruleset
    define trusted = { lo }
    table inet firewall {
        chain input { type filter hook input priority filter; iif $trusted tcp dport $port accept; }
    }
";

pub fn main() -> Result<(), Box<dyn Error>> {
    let mut kernel = Socket::open(NetlinkFamily::NETFILTER, &Options::default())?;
    let mut options = ParseOptions::default();
    let mut links = Socket::open(NetlinkFamily::ROUTE, &Options::default())?;
    for (index, name) in read::interfaces(&mut links)? {
        options.interfaces.insert(name.as_str().to_owned(), index);
    }
    options.defines.push(("port".to_owned(), "2222".to_owned())); // nft's `-D`
    Transaction::parse_with(FILE, &options)?.apply(&mut kernel)?;

    let with_names = read::list_options(&mut links)?;
    for table in read::ruleset(&mut kernel, Family::UNSPEC)?.content() {
        print!("{}", table.display(&with_names));
    }
    Ok(())
}
