//! Permanent rules and openings for a while, as firewalld has them: a reload keeps the first alone.

use std::error::Error;
use std::time::Duration;

use sluicegate_nftables::netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::reconcile::{self, sync};
use sluicegate_nftables::{Element, Family, InterfaceName, Port, Protocol, TableId, Transaction};

const PERMANENT: &str = "
    table inet zones {
        set ports {
            type ifname . inet_proto . inet_service; flags timeout;
            elements = { eth0 . tcp . 443, wlan0 . tcp . 22, wlan0 . udp . 5353 }
        }
        chain input {
            type filter hook input priority filter; policy drop;
            ct state established,related accept
            iifname lo accept
            meta l4proto { icmp, ipv6-icmp } accept
            iifname . meta l4proto . th dport @ports accept
        }
    }
";

pub fn main() -> Result<(), Box<dyn Error>> {
    let mut kernel = Socket::open(NetlinkFamily::NETFILTER, &Options::default())?;
    let permanent = Transaction::parse(PERMANENT)?.into_content()?;
    sync(&mut kernel, &permanent, &reconcile::Options::default())?;

    // `firewall-cmd --add-port=8080/tcp --timeout=10m`: the kernel takes it away by itself.
    let ports = TableId::new(Family::INET, "zones".parse()?).set("ports".parse()?);
    let eth0: InterfaceName = "eth0".parse()?;
    let opening = Element::new((eth0, Protocol::TCP, Port(8080)));
    let mut change = Transaction::new();
    change.add_element(&ports, opening.timeout(Duration::from_secs(600)));
    change.apply(&mut kernel)?;
    print!("{change}");

    // `firewall-cmd --reload`: one transaction, so that no packet meets half of the rules.
    let reload = sync(&mut kernel, &permanent, &reconcile::Options::default())?;
    print!("# reload: {}\n{}", reload.difference, reload.difference.transaction);
    Ok(())
}
