//! Keeps a table of its own equal to what is wanted, by the smallest change.
//!
//! ```text
//! unshare -rn target/debug/examples/reconcile 22 80=10.0.0.0/8 -- 22 443   # or --fake
//! ```
//!
//! Each list of ports, separated by `--`, is what is wanted at that time: the second sync touches only what
//! differs from the first.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::net::Ipv4Addr;

use sluicegate_nftables::fake::Fake;
use sluicegate_nftables::lang::{Counter, CtState, Expression, Match, Payload, Verdict};
use sluicegate_nftables::netlink::{NetlinkFamily, Socket, Transport};
use sluicegate_nftables::reconcile::{self, Options};
use sluicegate_nftables::{
    Chain, ChainType, DataType, Element, Family, Hook, Policy, Port, Priority, Set, SetFlags, Table,
    TableContent, TableId, expr::CtKey,
};

const USAGE: &str = "usage: reconcile [--fake] PORT[=ADDRESS/LENGTH]... [-- PORT...]...

Makes the table inet reconcile-example open these TCP ports, to all or to the addresses of a prefix, and \
closes
all others. After --, the same for another list: of the table only what differs is changed.
--fake does so in memory, without a kernel.";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Result<Vec<_>, _> = std::env::args_os().skip(1).map(OsString::into_string).collect();
    let mut arguments: Vec<String> =
        arguments.map_err(|word| format!("expected an argument in UTF-8, found {}", word.display()))?;
    if arguments.iter().any(|argument| argument == "--help" || argument == "-h") {
        return Ok(writeln!(io::stdout(), "{USAGE}")?);
    }
    let is_fake = arguments.first().is_some_and(|first| first == "--fake");
    let mut kernel: Box<dyn Transport> = match is_fake {
        true => Box::new(Fake::new()),
        false => Box::new(Socket::open(NetlinkFamily::NETFILTER, &Default::default())?),
    };
    arguments.drain(..usize::from(is_fake));
    for ports in arguments.split(|argument| argument == "--") {
        let synced = reconcile::sync(&mut *kernel, &[wanted(ports)?], &Options::default())?;
        writeln!(io::stdout(), "# {}\n{}", synced.difference, synced.difference.transaction)?;
    }
    Ok(())
}

/// The table in which these ports are open: one set of those open to all, one of those open to some.
fn wanted(ports: &[String]) -> Result<TableContent, Box<dyn std::error::Error>> {
    let table = TableId::new(Family::INET, "reconcile-example".parse()?);
    let (open, input) = (table.set("open".parse()?), table.chain("input".parse()?));
    let (mut to_all, mut rules) = (Vec::new(), Vec::new());
    let established = Match::new(CtKey::STATE, CtState::ESTABLISHED);
    rules.push(input.rule().then(established).then(Verdict::Accept));
    rules.push(
        input
            .rule()
            .then(Match::new(Payload::TCP_DPORT, Expression::named(&open.name)))
            .then(Verdict::Accept),
    );
    for port in ports {
        let Some((port, prefix)) = port.split_once('=') else {
            to_all.push(Element::new(Port(port.parse().map_err(|_| format!("{port:?} is not a port"))?)));
            continue;
        };
        let (address, length) = prefix.split_once('/').ok_or("expected PORT=ADDRESS/LENGTH")?;
        let prefix = Expression::prefix(address.parse::<Ipv4Addr>()?, length.parse()?);
        let from = Match::new(Payload::IP_SADDR, prefix);
        let to = Match::new(Payload::TCP_DPORT, Port(port.parse()?));
        rules.push(input.rule().then(from).then(to).then(Counter::default()).then(Verdict::Accept));
    }
    let chain = Chain::base(input, ChainType::Filter, Hook::Input, Priority::FILTER).policy(Policy::Drop);
    let ports = Set::new(open, DataType::INET_SERVICE).flags(SetFlags::INTERVAL);
    Ok(TableContent::new(Table::new(table)).set(ports, to_all).chain(chain, rules))
}
