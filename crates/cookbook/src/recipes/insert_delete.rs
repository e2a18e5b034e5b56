//! Insert a rule before the others, and delete one of them: `iptables -I` and `iptables -D`.

use std::error::Error;

use sluicegate_nftables::netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::{Family, Rule, RuleId, TableId, Transaction, read};

const RULES: &str = "
    table inet firewall {
        chain input { type filter hook input priority filter; tcp dport 22 accept; tcp dport 23 accept; }
    }
";

pub fn main() -> Result<(), Box<dyn Error>> {
    let mut kernel = Socket::open(NetlinkFamily::NETFILTER, &Options::default())?;
    Transaction::parse(RULES)?.apply(&mut kernel)?;
    let chain = TableId::new(Family::INET, "firewall".parse()?).chain("input".parse()?);

    // A rule is known by its handle, which stays the same however many come before it.
    let unwanted = Rule::parse(&chain, "tcp dport 23 accept")?;
    let rules = read::ruleset(&mut kernel, Family::INET)?.content();
    let found = rules[0].rules("input").unwrap_or_default().iter().find(|rule| rule.same_as(&unwanted));
    let handle = found.and_then(|rule| rule.handle).ok_or("no such rule")?;

    let mut change = Transaction::new();
    change.insert(Rule::parse(&chain, "ip saddr 192.0.2.7 drop")?); // `add` would put it at the end
    change.delete(RuleId { chain, handle });
    change.apply(&mut kernel)?;
    for rule in read::ruleset(&mut kernel, Family::INET)?.content()[0].rules("input").unwrap_or_default() {
        println!("{rule}");
    }
    Ok(())
}
