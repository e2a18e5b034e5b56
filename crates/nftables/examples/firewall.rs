//! Builds a small firewall as a value, prints it as nft text, and applies it by netlink when asked to.
//!
//! ```text
//! cargo run -p sluicegate-nftables --example firewall         # prints what `nft -f` reads
//! unshare -rn target/debug/examples/firewall --apply          # one netlink batch, in a namespace of its own
//! ```

use std::io::{self, Write as _};

use sluicegate_nftables::lang::{CtKey, CtState, Match, Payload, Verdict};
use sluicegate_nftables::netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::{Chain, ChainType, Family, Hook, Policy, Priority, Table, TableId, Transaction};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let table = TableId::new(Family::INET, "demo".parse()?);
    let input = table.chain("input".parse()?);
    let mut transaction = Transaction::new();
    transaction.add(Table::new(table));
    transaction
        .add(Chain::base(input.clone(), ChainType::Filter, Hook::Input, Priority(0)).policy(Policy::Drop));
    let known = CtState::ESTABLISHED | CtState::RELATED;
    transaction.add(input.rule().then(Match::new(CtKey::STATE, known)).then(Verdict::Accept));
    transaction.add(input.rule().then(Match::new(Payload::TCP_DPORT, 22)).then(Verdict::Accept));

    let mut out = io::stdout().lock();
    write!(out, "{transaction}")?;
    if std::env::args_os().any(|argument| argument == "--apply") {
        let mut socket = Socket::open(NetlinkFamily::NETFILTER, &Options::default())?;
        let applied = transaction.apply(&mut socket)?;
        writeln!(out, "# applied: the ruleset is now of generation {}", applied.generation)?;
    }
    Ok(())
}
