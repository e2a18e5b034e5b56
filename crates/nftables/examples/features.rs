//! Prints what this kernel's nftables can do, asked by batches that are checked and thrown away.
//!
//! ```text
//! unshare -rn cargo run -p sluicegate-nftables --example features    # or as root
//! ```

use std::io::{self, Write as _};

use sluicegate_nftables::Family;
use sluicegate_nftables::expr::Expr;
use sluicegate_nftables::netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::probe::{Feature, has_expression, supports};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut socket = Socket::open(NetlinkFamily::NETFILTER, &Options::default())?;
    let mut out = io::stdout().lock();
    for feature in Feature::ALL {
        let answer = if supports(&mut socket, *feature)? { "yes" } else { "no" };
        writeln!(out, "{feature:?}: {answer}")?;
    }
    for family in [Family::IP, Family::BRIDGE, Family::NETDEV] {
        let mut names = Vec::new();
        for name in Expr::NAMES {
            if has_expression(&mut socket, family, name)? {
                names.push(*name);
            }
        }
        writeln!(out, "expressions of family {family}: {}", names.join(" "))?;
    }
    Ok(())
}
