//! Devices that come to a hook and go from it, while it stays.

use sluicegate_netlink::{Errno, NetlinkFamily, Options, Socket};
use sluicegate_nftables::lang::Verdict;
use sluicegate_nftables::probe::{Feature, supports};
use sluicegate_nftables::*;

use crate::kernel::cases::name;
use crate::kernel::parity::{difference, normal};

/// In a namespace with the devices `lo`, `one` and `two`.
fn with_devices(test: impl FnOnce(&mut Socket) + Send) {
    testns::netns(|| {
        assert_eq!(testns::sh("ip link add one type veth peer name two"), "");
        test(&mut Socket::open(NetlinkFamily::NETFILTER, &Options::default()).expect("a socket"));
    });
}

fn apply(
    socket: &mut Socket,
    fill: impl FnOnce(&mut Transaction) -> &mut Transaction,
) -> Result<Applied, Error> {
    let mut tx = Transaction::new();
    fill(&mut tx);
    tx.apply(socket)
}

fn device(name: &str) -> InterfaceName {
    InterfaceName::new(name).expect("a name")
}

fn chain() -> ChainId {
    TableId::new(Family::NETDEV, name("t")).chain(name("c"))
}

fn on<const N: usize>(devices: [&str; N]) -> Chain {
    Chain::base(chain(), ChainType::Filter, Hook::Ingress, Priority(0)).devices(devices.map(device))
}

fn listed(socket: &mut Socket) -> Vec<String> {
    let chain = read::chain(socket, &TableId::new(Family::NETDEV, name("t")).chain(name("c")))
        .expect("it answers")
        .expect("it stays");
    let mut devices = chain.hook.expect("a hook").devices;
    // A single device is told twice.
    devices.sort_unstable();
    devices.dedup();
    devices
}

#[test]
fn a_chain_gets_and_loses_devices() {
    with_devices(|socket| {
        let added =
            apply(socket, |tx| tx.add(Table::new(chain().table)).add(on(["lo", "one"])).add(chain().rule()));
        added.expect("a chain on two devices");
        assert_eq!(listed(socket), ["lo", "one"]);
        let deleted = apply(socket, |tx| tx.delete(chain().devices([device("lo")])));
        if supports(socket, Feature::DeviceDeletion).expect("it answers") {
            deleted.expect("it is one of them");
            assert_eq!(listed(socket), ["one"]);
            apply(socket, |tx| tx.add(on(["two", "lo"]))).expect("they are added");
            assert_eq!(listed(socket), ["lo", "one", "two"]);
            apply(socket, |tx| tx.delete(chain().devices([device("one"), device("two")]))).expect("they go");
            let error =
                apply(socket, |tx| tx.delete(chain().devices([device("one")]))).expect_err("it is gone");
            assert!(error.is_not_found(), "{error}");
        } else {
            // Such a kernel would have deleted the chain.
            let error = deleted.expect_err("it cannot be done");
            assert_eq!(
                (error.failures()[0].operation, error.failures()[0].error.errno),
                (Some(0), Errno::EINVAL),
                "{error}"
            );
            assert!(error.to_string().contains("it would have deleted the chain"), "{error}");
            assert_eq!(listed(socket), ["lo", "one"]);
        }
        let rules = read::chain_rules(socket, &TableId::new(Family::NETDEV, name("t")).chain(name("c")))
            .expect("rules");
        assert_eq!(rules.len(), 1, "the rules stay");
        assert_eq!(
            apply(socket, |tx| tx.add(chain().rule().then(Verdict::Accept))).map(|a| a.batches).ok(),
            Some(1)
        );
    });
}

/// Names that start alike: any device that has, or gets, such a name.
#[test]
fn a_chain_is_on_all_devices_whose_names_start_alike() {
    with_devices(|socket| {
        let added = apply(socket, |tx| tx.add(Table::new(chain().table)).add(on(["o*", "two"])));
        if !supports(socket, Feature::DevicePrefix).expect("it answers") {
            let error = added.expect_err("it is no name");
            assert_eq!(error.failures()[0].operation, Some(1), "{error}");
            return;
        }
        added.expect("it is taken");
        assert_eq!(listed(socket), ["o*", "two"]);
        let ruleset = read::ruleset(socket, Family::NETDEV).expect("a ruleset").content().remove(0);
        let base = ruleset.chains[0].0.base.clone().expect("a base chain");
        assert_eq!(base.devices.iter().filter_map(InterfaceName::prefix).collect::<Vec<_>>(), ["o"]);
        apply(socket, |tx| tx.delete(chain().devices([device("o*")]))).expect("it is one of them");
        assert_eq!(listed(socket), ["two"]);
    });
}

/// Names that nft reads in quotes only: words of its language, numbers, and what has a meaning of its own.
const ODD: [&str; 6] = ["1eth", "ip", "device", "0x1f", "a;b", "-x"];

#[test]
fn devices_of_any_name_are_in_scripts_that_nft_reads() {
    if !testns::have(&["nft", "ip"]) {
        return;
    }
    with_devices(|socket| {
        let mut tx = Transaction::new();
        tx.add(Table::new(chain().table)).add(on(ODD));
        for (n, odd) in ODD.into_iter().enumerate() {
            assert_eq!(testns::sh(&format!("ip link add '{odd}' type veth peer name odd{n}")), "");
            let mut alone = on([odd]);
            alone.id = chain().table.chain(name(&format!("c{n}")));
            tx.add(alone);
        }
        let output = testns::feed(&["nft", "-f", "-"], &tx.to_string());
        assert!(output.status.success(), "{tx}{}", String::from_utf8_lossy(&output.stderr));
        let listed = |socket: &mut Socket| {
            let listed = read::ruleset(socket, Family::NETDEV).expect("a ruleset").content();
            normal(&listed.iter().map(ToString::to_string).collect::<String>())
        };
        let (by_text, nft) = (listed(socket), normal(&testns::sh("nft -s list ruleset")));
        assert!(nft == by_text, "{}", difference(&nft, &by_text));
        apply(socket, |tx| tx.flush(Flush::Ruleset(Family::UNSPEC))).expect("nothing is left");
        tx.apply(socket).expect("the same by netlink");
        assert_eq!(listed(socket), by_text);
    });
}

/// Where the kernel has no flowtables, nft reads the text, and the kernel refuses what it says.
#[test]
fn flowtables_on_devices_of_any_name_are_in_scripts_that_nft_reads() {
    if !testns::have(&["nft", "ip"]) {
        return;
    }
    with_devices(|socket| {
        let id = TableId::new(Family::INET, name("t")).flowtable(name("f"));
        let mut made = Flowtable::new(id.clone(), Priority(0));
        made.devices = ODD.map(device).to_vec();
        for (n, odd) in ODD.into_iter().enumerate() {
            assert_eq!(testns::sh(&format!("ip link add '{odd}' type veth peer name odd{n}")), "");
        }
        let (mut add, mut delete) = (Transaction::new(), Transaction::new());
        add.add(Table::new(id.table.clone())).add(made);
        delete.delete(id.devices(ODD.map(device)));
        let has = supports(socket, Feature::Flowtable).expect("it answers");
        for tx in [add, delete] {
            let output = testns::feed(&["nft", "-f", "-"], &tx.to_string());
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.success(), has, "{tx}{said}");
            assert!(has || said.contains("Could not process rule"), "{tx}{said}");
        }
    });
}

#[test]
fn a_flowtable_loses_devices() {
    with_devices(|socket| {
        let id = TableId::new(Family::INET, name("t")).flowtable(name("f"));
        let mut made = Flowtable::new(id.clone(), Priority(0));
        made.devices = vec![device("one"), device("two")];
        let added = apply(socket, |tx| tx.add(Table::new(id.table.clone())).add(made));
        if !supports(socket, Feature::Flowtable).expect("it answers") {
            // A guest's kernel has them.
            assert!(added.is_err());
            return;
        }
        added.expect("a flowtable");
        apply(socket, |tx| tx.delete(id.devices([device("one")]))).expect("it is one of them");
        let listed = read::flowtable(socket, &TableId::new(Family::INET, name("t")).flowtable(name("f")))
            .expect("it answers");
        assert_eq!(listed.expect("it stays").devices, ["two"]);
    });
}
