//! List the ruleset as JSON, as `nft -j list ruleset` does, and load JSON.

use std::error::Error;

use sluicegate_nftables::netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::{Family, ListOptions, Transaction, json, read};

const JSON: &str = r#"{ "nftables": [
    { "add": { "table": { "family": "inet", "name": "t" } } },
    { "add": { "chain": { "family": "inet", "table": "t", "name": "c" } } },
    { "add": { "rule": { "family": "inet", "table": "t", "chain": "c", "expr": [
        { "match": { "op": "==", "left": { "payload": { "protocol": "tcp", "field": "dport" } }, "right": 22 } },
        { "accept": null }
    ] } } }
] }"#;

pub fn main() -> Result<(), Box<dyn Error>> {
    let mut kernel = Socket::open(NetlinkFamily::NETFILTER, &Options::default())?;
    let change = Transaction::from_json(JSON)?;
    change.apply(&mut kernel)?;
    print!("{change}");
    let tables = read::ruleset(&mut kernel, Family::UNSPEC)?.content();
    println!("{}", json::ruleset(&tables, &ListOptions::default()));
    Ok(())
}
