//! Adds a rule of iptables unless it is there, whoever wrote it and in whichever words, and prints the chain.
//!
//! ```text
//! unshare -rn target/debug/examples/ensure-rule    # or as root, in a namespace
//! ```

use std::error::Error;
use std::io::{self, Write as _};

use sluicegate_xtables::Family;
use sluicegate_xtables::iptables_save::Save;
use sluicegate_xtables::nft::{Client, Restore}; // or `legacy`, which has the same

const CHAIN: &str = "INPUT";
const RULE: &str = "-p tcp --dport ssh -m conntrack --ctstate NEW -j ACCEPT";

fn main() -> Result<(), Box<dyn Error>> {
    let client = Client::open(Family::Ipv4)?;
    let is_there = client.check("filter", CHAIN, RULE)?;
    if !is_there {
        // All other rules stay: `Restore::default().flush()` would remove them first.
        let input = format!("*filter\n-A {CHAIN} {RULE}\nCOMMIT\n");
        client.restore(&Save::parse(&input)?, Restore::default())?;
    }
    let mut out = io::stdout().lock();
    writeln!(out, "# {}", if is_there { "the rule is there" } else { "the rule was added" })?;
    Ok(write!(out, "{}", client.list("filter", false)?)?)
}
