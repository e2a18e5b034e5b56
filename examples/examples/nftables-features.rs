//! Prints what this kernel's nftables can do, asked by batches that are checked and thrown away.
//!
//! ```text
//! unshare -rn target/debug/examples/nftables-features    # or as root
//! ```

use sluicegate_nftables::Family;
use sluicegate_nftables::expr::Expr;
use sluicegate_nftables::netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::probe::{Feature, has_expression, supports};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if examples::asks_for_help() {
        return Ok(examples::print(
            "usage: nftables-features\n\nPrints what this kernel's nftables can do.\n",
        )?);
    }
    let mut socket = Socket::open(NetlinkFamily::NETFILTER, &Options::default())?;
    for feature in Feature::ALL {
        let answer = if supports(&mut socket, *feature)? { "yes" } else { "no" };
        examples::print(format!("{feature:?}: {answer}\n"))?;
    }
    for family in [Family::IP, Family::BRIDGE, Family::NETDEV] {
        let mut names = Vec::new();
        for name in Expr::NAMES {
            if has_expression(&mut socket, family, name)? {
                names.push(*name);
            }
        }
        examples::print(format!("expressions of family {family}: {}\n", names.join(" ")))?;
    }
    Ok(())
}
