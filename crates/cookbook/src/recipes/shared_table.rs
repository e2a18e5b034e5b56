//! Edit a table that another program shares: our chain is kept as we want it, theirs is not touched.

use std::error::Error;

use sluicegate_nftables::netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::reconcile::{self, Foreign};
use sluicegate_nftables::{Family, Transaction, read};

const THEIRS: &str = "
    table ip filter {
        chain input { type filter hook input priority filter; tcp dport 22 counter accept; }
        chain ours { tcp dport 1234 accept; }
    }
";
const WANTED: &str = "
    table ip filter {
        chain ours { tcp dport 80 accept; tcp dport 443 accept; }
    }
";

pub fn main() -> Result<(), Box<dyn Error>> {
    let mut kernel = Socket::open(NetlinkFamily::NETFILTER, &Options::default())?;
    Transaction::parse(THEIRS)?.apply(&mut kernel)?;

    // Ours is the chain `ours` with its rules. Whatever else there is stays.
    let keep = |found: Foreign<'_>| !matches!(found, Foreign::Rule(rule) if &*rule.chain == "ours");
    let options = reconcile::Options::default().keep(&keep);
    let wanted = Transaction::parse(WANTED)?.into_content()?;
    println!("# {}", reconcile::sync(&mut kernel, &wanted, &options)?.difference);
    for table in read::ruleset(&mut kernel, Family::IP)?.content() {
        print!("{table}");
    }
    Ok(())
}
