//! Ask what this kernel can do, not which version it has.

use std::error::Error;

use sluicegate_nftables::Family;
use sluicegate_nftables::netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::probe::{Feature, has_expression, supports};

pub fn main() -> Result<(), Box<dyn Error>> {
    let mut kernel = Socket::open(NetlinkFamily::NETFILTER, &Options::default())?;
    for feature in [Feature::InetNat, Feature::CatchAll, Feature::ConcatenatedIntervals, Feature::Numgen] {
        println!("{feature:?}: {}", supports(&mut kernel, feature)?);
    }
    for expression in ["masq", "hash", "fib", "teleport"] {
        println!("{expression}: {}", has_expression(&mut kernel, Family::IP, expression)?);
    }
    Ok(())
}
