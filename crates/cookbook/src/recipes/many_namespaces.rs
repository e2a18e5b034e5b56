//! Program many network namespaces at once: the kernel locks each by itself.

use std::error::Error;
use std::thread::{self, ScopedJoinHandle};

use nix::sched::{CloneFlags, unshare};
use sluicegate_nftables::netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::{Family, Transaction, read};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// What each container gets.
fn program(container: usize) -> Result<usize> {
    unshare(CloneFlags::CLONE_NEWNET)?;
    let mut kernel = Socket::open(NetlinkFamily::NETFILTER, &Options::default())?;
    let rules: String =
        (0..=container).map(|n| format!("add rule ip t c tcp dport {} accept\n", 8000 + n)).collect();
    Transaction::parse(&format!("add table ip t\nadd chain ip t c\n{rules}"))?.apply(&mut kernel)?;
    Ok(read::rules(&mut kernel, Family::IP)?.len())
}

pub fn main() -> std::result::Result<(), Box<dyn Error>> {
    let results: Vec<Result<usize>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|container| scope.spawn(move || program(container))).collect();
        let ended = threads.into_iter().map(ScopedJoinHandle::join);
        ended.map(|end| end.unwrap_or_else(|_| Err("the thread panicked".into()))).collect()
    });
    for (container, rules) in results.into_iter().enumerate() {
        println!("rules of container {container}: {}", rules.map_err(|error| error.to_string())?);
    }
    Ok(())
}
