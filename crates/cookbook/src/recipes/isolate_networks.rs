//! Isolate container networks from each other, as netavark does: each may leave, none may enter another.

use std::error::Error;

use sluicegate_nftables::netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::{Element, Family, InterfaceName, TableId, Transaction};

const RULES: &str = "
    table inet isolation {
        set bridges { type ifname; }
        set itself { type ifname . ifname; }
        chain forward {
            type filter hook forward priority filter - 5;
            ct state established,related accept
            iifname @bridges oifname @bridges jump between
        }
        chain between {
            iifname . oifname @itself accept
            counter drop
        }
    }
";

pub fn main() -> Result<(), Box<dyn Error>> {
    let mut kernel = Socket::open(NetlinkFamily::NETFILTER, &Options::default())?;
    Transaction::parse(RULES)?.apply(&mut kernel)?;
    let table = TableId::new(Family::INET, "isolation".parse()?);
    let (bridges, itself) = (table.set("bridges".parse()?), table.set("itself".parse()?));
    let mut change = Transaction::new();
    for name in ["podman0", "podman1"] {
        let name: InterfaceName = name.parse()?;
        change.add_element(&bridges, Element::new(name.clone()));
        change.add_element(&itself, Element::new((name.clone(), name)));
    }
    change.apply(&mut kernel)?;
    print!("{change}");
    Ok(())
}
