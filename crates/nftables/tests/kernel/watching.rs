//! Events, and what a kernel says of itself.

use std::net::Ipv4Addr;

use sluicegate_netlink::{Options, Protocol, Socket};
use sluicegate_nftables::monitor::{Change, Event, GROUP, Monitor};
use sluicegate_nftables::probe::{Feature, supports};
use sluicegate_nftables::*;

use crate::cases::name;

#[test]
fn a_commit_is_seen_object_by_object_and_ends_with_its_generation() {
    testns::netns(|| {
        let options = Options::default();
        let mut socket = Socket::open(Protocol::NETFILTER, &options).expect("a socket");
        socket.join(GROUP).expect("the group can be joined");
        let mut monitor = Monitor::new(socket);

        let table = TableId::new(Family::IP, name("t"));
        let set = table.set(name("s"));
        let mut tx = Transaction::new();
        tx.add(Table::new(table.clone())).add(Set::new(set.clone(), DataType::IPV4_ADDR));
        tx.add_element(&set, Ipv4Addr::LOCALHOST);
        let mut sender = Socket::open(Protocol::NETFILTER, &options).expect("a socket");
        let applied = tx.apply(&mut sender).expect("it can be applied");

        let mut seen = Vec::new();
        while !seen.iter().any(|event| matches!(event, Event::Generation(_))) {
            let events = monitor.events().expect("events");
            assert!(!events.is_empty(), "nothing more came after {seen:?}");
            seen.extend(events);
        }
        assert!(matches!(&seen[0], Event::Table(Change::New, t) if t.name == name("t")));
        assert!(matches!(&seen[1], Event::Set(Change::New, s) if s.name == name("s")));
        assert!(
            matches!(&seen[2], Event::Elements(Change::New, s, e) if s.set == name("s") && e[0].key == [127, 0, 0, 1])
        );
        assert!(
            matches!(&seen[3], Event::Generation(g) if g.id == applied.generation && g.process.is_some())
        );
    });
}

#[test]
fn probing_changes_nothing_and_agrees_with_the_real_thing() {
    testns::netns(|| {
        let options = Options::default();
        let mut socket = Socket::open(Protocol::NETFILTER, &options).expect("a socket");
        let before = read::generation(&mut socket).expect("a generation").id;
        let known: Vec<_> = Feature::ALL.map(|f| (f, supports(&mut socket, f).expect("it answers"))).into();
        assert_eq!(read::generation(&mut socket).expect("a generation").id, before);
        let has = |feature| known.iter().any(|(f, yes)| *f == feature && *yes);
        // Every kernel that this project supports.
        for feature in [Feature::ConcatenatedIntervals, Feature::CatchAll, Feature::InetNat, Feature::Numgen]
        {
            assert!(has(feature), "{feature:?}");
        }
        let mut tx = Transaction::new();
        tx.destroy(TableId::new(Family::IP, name("nothing")));
        assert_eq!(tx.apply(&mut socket).is_ok(), has(Feature::Destroy));
    });
}
