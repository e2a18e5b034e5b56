//! What we read back and print, against `nft list ruleset` with its options.

use sluicegate_netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::{Family, ListOptions, TimeZone, Transaction, read};

use crate::kernel::cases;
use crate::kernel::parity::{difference, normal};

#[test]
fn a_ruleset_is_listed_as_nft_lists_it() {
    if !testns::have(&["nft"]) {
        return;
    }
    let failed: Vec<String> = cases::all().iter().filter_map(|case| lists_as_nft(case).err()).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Loads a case by nft, and compares our listing with its own.
pub(crate) fn lists_as_nft(case: &cases::Case) -> Result<(), String> {
    let Some(namespace) = testns::Netns::new() else { return Ok(()) };
    let script = case.transaction.to_string();
    namespace.run(|| {
        if !testns::feed(&["nft", "-f", "-"], &script).status.success() {
            // The parity test says why.
            return Ok(());
        }
        let forms = [("-a", true, true), ("", true, false), ("-s", false, false)];
        // An older kernel changes what is read, which the fullest form shows. Emulated, each takes nft half a second.
        let forms = if testns::guest().is_some() { &forms[..1] } else { &forms[..] };
        for &(flags, state, handles) in forms {
            let mut options = list_options();
            (options.state, options.handles) = (state, handles);
            let nft = normal(&testns::sh(&format!("TZ=UTC nft {flags} list ruleset")));
            let ours = normal(&listing(&options));
            if nft != ours {
                return Err(format!("{} {flags}:\n{}", case.name, difference(&nft, &ours)));
            }
        }
        Ok(())
    })
}

/// Rules of nft 1.0.6 that its own listing makes others of, or nothing: prefixes of types with names, of the first
/// bytes of a field, and bits that were toggled.
#[test]
fn what_nft_makes_of_bits_is_listed_as_what_it_is() {
    if !testns::have(&["nft"]) {
        return;
    }
    let made = |text: &str, load: &(dyn Fn(&str) + Sync)| {
        let namespace = testns::Netns::new()?;
        Some(namespace.run(|| {
            load(text);
            let mut socket = Socket::open(NetlinkFamily::NETFILTER, &Options::default()).unwrap();
            let rules = read::ruleset(&mut socket, Family::UNSPEC).unwrap().rules;
            (format!("{:?}", rules[0].expressions), listing(&ListOptions::default()))
        }))
    };
    let by_nft = |text: &str| assert!(testns::feed(&["nft", "-f", "-"], text).status.success(), "{text}");
    let by_us = |text: &str| {
        let mut socket = Socket::open(NetlinkFamily::NETFILTER, &Options::default()).unwrap();
        drop(Transaction::parse(text).unwrap().apply(&mut socket).unwrap());
    };
    for (family, rule, listed) in [
        ("bridge", "ether type 0x800/8", "ether type 0x0800/8"),
        ("inet", "meta protocol 0x800/8", "meta protocol 0x0800/8"),
        ("ip6", "frag id 0x12345678/16", "frag id 305397760/16"),
        ("inet", "@th,0,24 0xabcdef/8", "@th,0,8 0xab"),
        ("ip", "ip dscp ^ 3 == 7", "ip dscp ^ cs0 == 0x04"),
        ("ip", "tcp dport ^ 3 { 1, 7 }", "tcp dport { 2, 4 }"),
    ] {
        let text = format!("table {family} t {{\n chain c {{\n  {rule}\n }}\n}}\n");
        let Some((nft, list)) = made(&text, &by_nft) else { return };
        assert!(list.contains(listed), "{rule}: {list}");
        let Some((ours, _)) = made(&list, &by_us) else { return };
        assert_eq!(nft, ours, "{rule}");
    }
    // nft sends a mask of one byte for two, and lists `& 0x8`.
    let text = "table bridge t {\n chain c {\n  vlan id 0x800/1\n }\n}\n";
    let Some((_, list)) = made(text, &by_nft) else { return };
    assert!(list.contains("vlan id & 2048 == 2048"), "{list}");
}

/// Two hours before UTC: POSIX counts westwards.
#[test]
fn times_are_listed_in_the_time_zone_of_the_reader() {
    if !testns::have(&["nft"]) {
        return;
    }
    let mut options = ListOptions::default();
    options.time_zone = Some(TimeZone::fixed(2 * 60 * 60));
    for case in cases::times::cases() {
        let (Some(first), Some(second)) = (testns::Netns::new(), testns::Netns::new()) else { return };
        let loaded = first.run(|| testns::feed(&["nft", "-f", "-"], &case.transaction.to_string()));
        assert!(loaded.status.success(), "{}", String::from_utf8_lossy(&loaded.stderr));
        let nft = normal(&first.run(|| testns::sh("TZ=UTC-2 nft -s list ruleset")));
        let text = first.run(|| listing(&options));
        assert_eq!(nft, normal(&text), "{}", case.name);
        assert!(text.contains('"'), "no time in {text}");
        // Read in that time zone it means the same.
        let loaded = second.run(|| testns::feed(&["env", "TZ=UTC-2", "nft", "-f", "-"], &text));
        assert!(loaded.status.success(), "{}", String::from_utf8_lossy(&loaded.stderr));
        let plain = |namespace: &testns::Netns| normal(&namespace.run(|| listing(&ListOptions::default())));
        assert_eq!(plain(&first), plain(&second), "{}", case.name);
    }
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
        let listed = first.run(here);
        let output = second.run(|| testns::feed(&["env", "TZ=UTC", "nft", "-f", "-"], &listed));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {said}\n{listed}", case.name);
        assert_eq!(normal(&second.run(here)), normal(&listed), "{}", case.name);
    }
}

fn listing(options: &ListOptions) -> String {
    let ruleset = read::ruleset(&mut open(NetlinkFamily::NETFILTER), Family::UNSPEC).expect("a ruleset");
    ruleset.content().iter().map(|table| table.display(options).to_string()).collect()
}

/// Names as this machine has them, but times in UTC.
fn here() -> String {
    listing(&list_options())
}

fn list_options() -> ListOptions {
    read::list_options(&mut open(NetlinkFamily::ROUTE)).expect("names")
}

fn open(family: NetlinkFamily) -> Socket {
    Socket::open(family, &Options::default()).expect("a socket")
}
