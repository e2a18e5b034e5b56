//! Every construct as what is wanted of a kernel that has another one: the difference makes the one the
//! other, by netlink and as a script of nft's.

use sluicegate_netlink::{NetlinkFamily, Options as SocketOptions, Socket};
use sluicegate_nftables::reconcile::{self, Options};
use sluicegate_nftables::{Family, TableContent, read};

use crate::kernel::parity::{self, LIST, apply, listing};
use crate::kernel::{cases, needs};

fn socket() -> Socket {
    Socket::open(NetlinkFamily::NETFILTER, &SocketOptions::default()).expect("a socket of our own namespace")
}

/// The content of a case, which the transaction itself tells.
fn content(case: &cases::Case) -> Vec<TableContent> {
    case.transaction.clone().into_content().unwrap_or_else(|error| panic!("{}: {error}", case.name))
}

/// Tables that are not wanted go here: the next case may be of another family.
fn options() -> Options<'static> {
    Options::default().keep(&|_| false)
}

#[test]
fn every_construct_is_reached_from_another_one() {
    let cases: Vec<_> = cases::all().into_iter().filter(|case| needs::met(case.name)).collect();
    let failures: Vec<String> = cases
        .iter()
        .zip(cases.iter().cycle().skip(1))
        .filter_map(|(before, case)| reach(before, case).err().map(|e| format!("{}: {e}", case.name)))
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

fn reach(before: &cases::Case, case: &cases::Case) -> Result<(), String> {
    let names = [testns::Netns::new(), testns::Netns::new(), testns::Netns::new()];
    let [Some(synced), Some(scripted), Some(created)] = names else { return Ok(()) };
    let wanted = content(case);
    let load = || apply(&before.transaction);
    synced.run(load)?;
    scripted.run(load)?;

    let script = scripted.run(|| {
        let kernel = read::ruleset(&mut socket(), Family::UNSPEC).map_err(|error| error.to_string())?;
        let difference =
            reconcile::difference(&wanted, &kernel, &options()).map_err(|error| error.to_string())?;
        Ok::<_, String>(difference.transaction.to_string())
    })?;
    let say = |what: &str| format!("{what}\n{script}");
    synced.run(|| {
        let sync = || reconcile::sync(&mut socket(), &wanted, &options());
        let first = sync().map_err(|error| say(&error.to_string()))?;
        if let Some(refused) = first.difference.replaced.iter().find(|replaced| is_refusal(&replaced.reason))
        {
            return Err(say(&refused.to_string()));
        }
        let again = sync().map_err(|error| say(&error.to_string()))?.difference;
        if again.is_empty() { Ok(()) } else { Err(say(&format!("and then {again}\n{}", again.transaction))) }
    })?;
    created.run(|| apply(&case.transaction))?;

    let wanted = created.run(|| listing(LIST));
    let reached = synced.run(|| listing(LIST));
    if sorted(&reached) != sorted(&wanted) {
        return Err(say(&parity::difference(&reached, &wanted)));
    }
    if testns::guest().is_some() {
        // What nft makes of a script is the same in every kernel, and takes it long where that is emulated.
        return Ok(());
    }
    let output = scripted.run(|| testns::feed(&["nft", "-f", "-"], &script));
    if !output.status.success() {
        return Err(say(&format!("nft: {}", String::from_utf8_lossy(&output.stderr))));
    }
    let by_nft = scripted.run(|| listing(LIST));
    if sorted(&by_nft) != sorted(&wanted) {
        return Err(say(&format!("nft: {}", parity::difference(&by_nft, &wanted))));
    }
    Ok(())
}

fn is_refusal(reason: &reconcile::Reason) -> bool {
    matches!(reason, reconcile::Reason::Refused(_))
}

/// What stayed comes before what is new, whatever their order in the transaction that creates all.
fn sorted(listing: &[String]) -> Vec<String> {
    let mut lines = listing.to_vec();
    lines.sort();
    lines
}
