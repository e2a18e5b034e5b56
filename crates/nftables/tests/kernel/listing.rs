//! What we read back and print, against `nft -s list ruleset`.

use sluicegate_netlink::{Options, Protocol, Socket};
use sluicegate_nftables::{Family, read};

use crate::cases;
use crate::parity::{difference, normal};

#[test]
fn a_ruleset_is_listed_as_nft_lists_it() {
    if !testns::have(&["nft"]) {
        return;
    }
    let mut failed = Vec::new();
    for case in cases::all().into_iter().filter(shows_no_numbers) {
        let Some(namespace) = testns::Netns::new() else { return };
        let script = case.transaction.to_string();
        namespace.run(|| {
            if !testns::feed(&["nft", "-f", "-"], &script).status.success() {
                // The parity test says why.
                return;
            }
            let nft = normal(&testns::sh("nft -s list ruleset"));
            let ours = normal(&listing());
            if nft != ours {
                failed.push(format!("{}:\n{}", case.name, difference(&nft, &ours)));
            }
        });
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// What is listed can be loaded, and is then listed alike.
#[test]
fn a_listing_is_a_script() {
    if !testns::have(&["nft"]) {
        return;
    }
    for case in cases::all() {
        let (Some(first), Some(second)) = (testns::Netns::new(), testns::Netns::new()) else { return };
        let script = case.transaction.to_string();
        if !first.run(|| testns::feed(&["nft", "-f", "-"], &script)).status.success() {
            continue;
        }
        let listed = first.run(listing);
        let output = second.run(|| testns::feed(&["nft", "-f", "-"], &listed));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {said}\n{listed}", case.name);
        assert_eq!(normal(&second.run(listing)), normal(&listed), "{}", case.name);
    }
}

/// nft asks the machine for the names of interfaces; we show their numbers.
fn shows_no_numbers(case: &cases::Case) -> bool {
    case.name != "interfaces by number"
}

fn listing() -> String {
    let mut socket = Socket::open(Protocol::NETFILTER, &Options::default()).expect("a socket");
    let ruleset = read::ruleset(&mut socket, Family::UNSPEC, None).expect("a ruleset");
    ruleset.content().iter().map(ToString::to_string).collect()
}
