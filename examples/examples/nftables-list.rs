//! Prints what the kernel holds, as `nft list ruleset` does, without nft.
//!
//! ```text
//! sudo target/debug/examples/nftables-list             # as nft -s list ruleset, times in UTC
//! sudo target/debug/examples/nftables-list +02:00      # times as two hours ahead of it
//! sudo target/debug/examples/nftables-list state       # with counts, as nft list ruleset
//! sudo target/debug/examples/nftables-list state handles   # as nft -a list ruleset
//! sudo target/debug/examples/nftables-list hooks             # as nft list hooks: who sees packets, and in which order
//! ```

use sluicegate_netlink::{Options, Protocol, Socket};
use sluicegate_nftables::{Family, read};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut route = Socket::open(Protocol::ROUTE, &Options::default())?;
    let mut netfilter = Socket::open(Protocol::NETFILTER, &Options::default())?;
    let mut options = read::machine(&mut route)?;
    for word in std::env::args().skip(1) {
        match word.as_str() {
            "state" => options.state = true,
            "handles" => options.handles = true,
            "hooks" => {
                let hooks = read::hooks(&mut netfilter, Family::UNSPEC, None)?;
                print!(
                    "{}",
                    read::HookListing(
                        &hooks.ok_or("this kernel cannot tell what is registered at its hooks")?
                    )
                );
                return Ok(());
            }
            zone => {
                let offset = seconds(zone);
                options.utc_offset = Some(offset.ok_or_else(|| {
                    format!("{zone:?} is neither state, handles, hooks nor an offset from UTC, as +02:00")
                })?);
            }
        }
    }
    for table in read::ruleset(&mut netfilter, Family::UNSPEC, None)?.content() {
        print!("{}", table.display(&options));
    }
    Ok(())
}

/// Of `+02:00` or `-05:30`.
fn seconds(zone: &str) -> Option<i32> {
    let sign = match zone.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, minutes) = zone.get(1..)?.split_once(':')?;
    let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
    ((0..24).contains(&hours) && (0..60).contains(&minutes)).then_some(sign * (hours * 3600 + minutes * 60))
}
