//! Save all rules to a file and load them again, as `iptables-save` and `iptables-restore` do.

use std::error::Error;
use std::fs;

use sluicegate_nftables::netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::{Family, Transaction, read};

const RULES: &str = "
    table inet firewall {
        set admins { type ipv4_addr; elements = { 192.0.2.7 }; }
        chain input { type filter hook input priority filter; tcp dport 22 ip saddr @admins accept; }
    }
";

pub fn main() -> Result<(), Box<dyn Error>> {
    // A folder of our own: in /tmp, another user may have put a link where the file is to be.
    let folder = std::env::temp_dir().join(format!("rules-{}", std::process::id()));
    fs::create_dir(&folder)?;
    let file = folder.join("rules.nft");
    let mut kernel = Socket::open(NetlinkFamily::NETFILTER, &Options::default())?;
    Transaction::parse(RULES)?.apply(&mut kernel)?;

    let tables = read::ruleset(&mut kernel, Family::UNSPEC)?.content();
    fs::write(&file, tables.iter().map(ToString::to_string).collect::<String>())?;

    // At the next start. What is there then is replaced in the same commit: no packet meets an empty ruleset.
    let script = format!("flush ruleset\n{}", fs::read_to_string(&file)?);
    Transaction::parse(&script)?.apply(&mut kernel)?;
    print!("{}", fs::read_to_string(&file)?);
    Ok(fs::remove_dir_all(&folder)?)
}
