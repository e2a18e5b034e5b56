//! Stop a guest after ten megabytes, and raise the limit.

use std::error::Error;

use sluicegate_nftables::expr::ObjectKind;
use sluicegate_nftables::netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::{Family, TableId, Transaction, read};

const RULES: &str = "
    table inet guests {
        quota anna { over 10 mbytes; }
        chain forward {
            type filter hook forward priority filter;
            ip daddr 10.1.0.7 quota name \"anna\" drop
        }
    }
";

pub fn main() -> Result<(), Box<dyn Error>> {
    let mut kernel = Socket::open(NetlinkFamily::NETFILTER, &Options::default())?;
    Transaction::parse(RULES)?.apply(&mut kernel)?;
    // Used up is zero again.
    let anna = TableId::new(Family::INET, "guests".parse()?).object(ObjectKind::QUOTA, "anna".parse()?);
    println!("reset: {}", read::reset_object(&mut kernel, &anna)?.is_some());
    // A limit of twice that, in the same place: rules need not change.
    Transaction::parse("add quota inet guests anna { over 20 mbytes; }")?.apply(&mut kernel)?;
    for table in read::ruleset(&mut kernel, Family::INET)?.content() {
        print!("{table}");
    }
    Ok(())
}
