//! Add an iptables rule unless it is there, in whichever words it was written: `iptables -C || iptables -A`.

use std::error::Error;

use sluicegate_xtables::Family;
use sluicegate_xtables::iptables_save::Save;
use sluicegate_xtables::nft::{Client, Restore}; // or `legacy`, which has the same

pub fn main() -> Result<(), Box<dyn Error>> {
    let client = Client::open(Family::Ipv4)?;
    for rule in ["-p tcp --dport ssh -j ACCEPT", "-p tcp -m tcp --dport 22 -j ACCEPT"] {
        if client.check("filter", "INPUT", rule)? {
            println!("`{rule}` is there");
            continue;
        }
        // Other rules stay, unless `Restore::default().flush()` is asked for.
        let input = format!("*filter\n-A INPUT {rule}\nCOMMIT\n");
        client.restore(&Save::parse(&input)?, Restore::default())?;
        println!("`{rule}` was added");
    }
    print!("{}", client.list("filter", false)?);
    Ok(())
}
