//! Transactions and events in tasks of tokio, against this machine's kernel, in a namespace of its own.

#![cfg(feature = "tokio")]

use std::time::Duration;

use sluicegate_netlink::tokio::AsyncSocket;
use sluicegate_netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::monitor::{Change, Event, GROUP, Monitor};
use sluicegate_nftables::{ApplyOptions, Chain, Family, Table, TableId, Transaction, read};
use tokio::time::timeout;

fn in_a_runtime(test: impl AsyncFnOnce() + Send) {
    testns::netns(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(test());
    });
}

fn socket(group: Option<u32>) -> AsyncSocket {
    let mut socket = Socket::open(NetlinkFamily::NETFILTER, &Options::default()).expect("a socket");
    if let Some(group) = group {
        socket.join(group).expect("the group can be joined");
    }
    AsyncSocket::new(socket).expect("a socket of the runtime")
}

fn table() -> TableId {
    TableId::new(Family::IP, "t".parse().expect("a name"))
}

#[test]
fn a_task_applies_lists_and_hears_of_it() {
    in_a_runtime(async || {
        let (mut monitor, socket) = (Monitor::with_transport(socket(Some(GROUP))), socket(None));
        assert!(timeout(Duration::from_millis(20), monitor.next()).await.is_err(), "nothing has happened");

        let mut transaction = Transaction::new();
        transaction.add(Table::new(table()));
        let (events, applied) =
            tokio::join!(monitor.next(), transaction.apply_async(&socket, ApplyOptions::default()));
        let (mut events, applied) = (events.expect("events"), applied.expect("it can be applied"));
        while !events.iter().any(|event| matches!(event, Event::Generation(_))) {
            events.extend(
                timeout(Duration::from_secs(20), monitor.next()).await.expect("in time").expect("events"),
            );
        }
        assert!(matches!(&events[0], Event::Table(Change::New, listed) if listed.name == table().name));
        assert!(matches!(&events[1], Event::Generation(g) if g.id == applied.generation));

        let listed = socket.run(|socket| read::ruleset(socket, Family::IP)).await.expect("a ruleset");
        assert_eq!((listed.generation, listed.tables.len()), (applied.generation, 1));
    });
}

#[test]
fn a_task_is_told_the_handles_of_what_it_made() {
    in_a_runtime(async || {
        let chain = table().chain("c".parse().expect("a name"));
        let mut transaction = Transaction::new();
        transaction.add(Table::new(table())).add(Chain::new(chain.clone()));
        transaction.add(chain.rule()).add(chain.rule());
        // A socket that hears of all events as well.
        let socket = socket(Some(GROUP));
        let echo = ApplyOptions::default().echo();
        let applied = transaction.apply_async(&socket, echo).await.expect("it can be applied");
        let listed = socket.run(|socket| read::rules(socket, Family::IP)).await.expect("rules");
        assert_eq!([2, 3].map(|n| applied.handle(n)), [0, 1].map(|i| listed.get(i).map(|rule| rule.handle)));
        assert_eq!(applied.events.len(), 4);
    });
}

#[test]
fn a_refused_transaction_names_its_operation() {
    in_a_runtime(async || {
        let mut transaction = Transaction::new();
        transaction.delete(table());
        let refused = transaction.apply_async(&socket(None), ApplyOptions::default()).await;
        let error = refused.expect_err("there is no such table");
        assert!(error.is_not_found(), "{error}");
    });
}
