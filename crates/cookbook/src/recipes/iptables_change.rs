//! Change a chain of iptables to what is wanted: only the lines that differ, and no chain of others.

use std::error::Error;

use sluicegate_xtables::Family;
use sluicegate_xtables::iptables_save::{Save, State, diff};
use sluicegate_xtables::nft::{Client, Restore};

const BEFORE: &str = "*filter\n:WEB - [0:0]\n-A FORWARD -j WEB\n-A WEB -s 192.0.2.0/24 -j DROP\n\
                      -A WEB -p tcp --dport 80 -j ACCEPT\nCOMMIT\n";
const WANTED: &str = "*filter\n:WEB - [0:0]\n-A WEB -s 192.0.2.0/24 -j DROP\n\
                      -A WEB -p tcp --dport http -j ACCEPT\n-A WEB -p tcp --dport https -j ACCEPT\nCOMMIT\n";

pub fn main() -> Result<(), Box<dyn Error>> {
    let client = Client::open(Family::Ipv4)?;
    client.restore(&Save::parse(BEFORE)?, Restore::default())?;

    let now = client.list("filter", false)?.to_string();
    let (now, wanted) = (State::of(&Save::parse(&now)?)?, State::of(&Save::parse(WANTED)?)?);
    let changes = diff(&now, &wanted, |table, chain| table == "filter" && chain == "WEB")?;
    print!("{changes}"); // what `iptables-restore --noflush` would read
    client.apply(&changes)?;
    Ok(())
}
