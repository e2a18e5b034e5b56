//! Chain types, hooks and the names of priorities in every family, as nft has them.

use std::time::{Duration, Instant};

use sluicegate_netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::*;

use crate::kernel::cases::name;
use crate::kernel::parity::{difference, normal};

const FAMILIES: [Family; 6] =
    [Family::IP, Family::IP6, Family::INET, Family::ARP, Family::BRIDGE, Family::NETDEV];
/// Every name that some family has, and one that none has.
const NAMES: [&str; 8] = ["raw", "mangle", "dstnat", "filter", "security", "srcnat", "out", "first"];

fn table(family: Family) -> TableId {
    TableId::new(family, name("t"))
}

fn chain(family: Family, n: usize, kind: ChainType, hook: Hook, priority: i32) -> Chain {
    let base = Chain::base(table(family).chain(name(&format!("c{n}"))), kind, hook, Priority(priority));
    match hook {
        Hook::Ingress | Hook::Egress => base.devices([InterfaceName::new("lo").expect("a name")]),
        _ => base,
    }
}

/// Families, with the hooks that they have.
fn hooks() -> impl Iterator<Item = (Family, Hook)> {
    let all = FAMILIES.into_iter().flat_map(|family| Hook::ALL.iter().map(move |hook| (family, *hook)));
    all.filter(|(family, hook)| hook.number(*family).is_some())
}

#[test]
fn names_of_priorities_are_legal_where_nft_takes_them() {
    if !testns::have(&["nft"]) {
        return;
    }
    testns::netns(|| {
        for (family, hook) in hooks() {
            let device = if matches!(hook, Hook::Ingress | Hook::Egress) { " device lo" } else { "" };
            let mut script = format!("add table {family} t\n");
            for (n, name) in NAMES.iter().enumerate() {
                script += &format!(
                    "add chain {family} t c{n} {{ type filter hook {hook}{device} priority {name}; }}\n"
                );
            }
            let said = testns::feed(&["nft", "-c", "-f", "-"], &script).stderr;
            let said = String::from_utf8_lossy(&said).into_owned();
            for (n, name) in NAMES.iter().enumerate() {
                let taken = !said.contains(&format!("/dev/stdin:{}:", n + 2));
                let known = Priority::from_name(name, family, hook).is_some();
                assert_eq!(known, taken, "priority {name} of hook {hook} in family {family}\n{said}");
            }
        }
    });
}

#[test]
fn priorities_are_listed_by_the_names_that_nft_lists() {
    if !testns::have(&["nft"]) {
        return;
    }
    for family in FAMILIES {
        testns::netns(|| {
            let mut tx = Transaction::new();
            tx.add(Table::new(table(family)));
            let near = |named: i32| [-11, -10, -1, 0, 1, 10, 11].map(|by| named + by);
            let mut priorities: Vec<_> =
                [-300, -200, -150, -100, 0, 50, 100, 300].into_iter().flat_map(near).collect();
            priorities.extend([i32::MIN, i32::MAX, -401]);
            let own = hooks().filter(|(of, _)| *of == family);
            for (n, (hook, priority)) in
                own.flat_map(|(_, hook)| priorities.iter().map(move |p| (hook, *p))).enumerate()
            {
                tx.add(chain(family, n, ChainType::Filter, hook, priority));
            }
            let mut socket = Socket::open(NetlinkFamily::NETFILTER, &Options::default()).expect("a socket");
            tx.apply(&mut socket).unwrap_or_else(|error| panic!("{family}: {error}"));
            let listed = read::ruleset(&mut socket, family).expect("a ruleset").content();
            let ours = normal(&listed.iter().map(ToString::to_string).collect::<String>());
            let nft = normal(&testns::sh("nft -s list ruleset"));
            assert!(nft == ours, "{family}:\n{}", difference(&nft, &ours));
        });
    }
}

/// Every type with every hook of every family: the kernel takes what nft's documentation (and
/// `nft_chain_filter.c` and its like) has, and nothing else.
#[test]
fn types_of_chains_are_for_some_hooks_of_some_families() {
    let internet = |family| matches!(family, Family::IP | Family::IP6 | Family::INET);
    testns::netns(|| {
        for (family, hook) in hooks() {
            for kind in [ChainType::Filter, ChainType::Nat, ChainType::Route] {
                let legal = match kind {
                    ChainType::Nat => internet(family) && !matches!(hook, Hook::Forward | Hook::Ingress),
                    ChainType::Route => internet(family) && hook == Hook::Output,
                    _ => true,
                };
                let mut tx = Transaction::new();
                tx.add(Table::new(table(family))).add(chain(family, 0, kind.clone(), hook, 0));
                let mut socket =
                    Socket::open(NetlinkFamily::NETFILTER, &Options::default()).expect("a socket");
                let options = ApplyOptions::default().check();
                let result = tx.apply_with(&mut socket, options);
                assert_eq!(result.is_ok(), legal, "{family} {kind:?} {hook}: {result:?}");
                if let Err(error) = result {
                    assert_eq!(error.failures()[0].operation, Some(1), "{error}");
                }
            }
        }
    });
}

/// A table's flags: hooked in or not, somebody's own, and what becomes of it when that somebody goes.
#[test]
fn a_table_of_a_socket_goes_with_it_unless_it_is_to_stay() {
    testns::netns(|| {
        let open = || Socket::open(NetlinkFamily::NETFILTER, &Options::default()).expect("a socket");
        let made = |n: &str, flags| Table::new(TableId::new(Family::IP, name(n))).flags(flags);
        let mut reader = open();
        let mut tables = || {
            let listed = read::tables(&mut reader, Family::UNSPEC).expect("tables");
            listed.iter().map(|t| (t.name.to_string(), t.flags.bits(), t.owner.is_some())).collect::<Vec<_>>()
        };
        let mut owner = open();
        let persist = probe::supports(&mut owner, probe::Feature::TablePersist).expect("it answers");
        let mut tx = Transaction::new();
        tx.add(made("off", TableFlags::DORMANT)).add(made("mine", TableFlags::OWNER));
        if persist {
            tx.add(made("stays", TableFlags::OWNER | TableFlags::PERSIST));
        }
        tx.apply(&mut owner).expect("three tables");
        let stays = [("stays".to_owned(), 6, true)];
        let all = [("off".to_owned(), 1, false), ("mine".to_owned(), 2, true)];
        assert_eq!(tables(), [&all[..], if persist { &stays } else { &[] }].concat());
        // Nobody else changes it.
        let mut tx = Transaction::new();
        tx.add(Chain::new(TableId::new(Family::IP, name("mine")).chain(name("c"))));
        let error = tx.apply(&mut open()).expect_err("it is another's");
        assert!(error.is_permission_denied(), "{error}");
        drop(owner);
        let stays = [("stays".to_owned(), 4, false)];
        let left = [&all[..1], if persist { &stays } else { &[] }].concat();
        // A program that another test starts holds the socket, too, for a moment.
        let until = Instant::now() + Duration::from_secs(10);
        while tables() != left && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(tables(), left);
    });
}
