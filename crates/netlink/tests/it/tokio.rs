//! The socket for tasks of tokio, against this machine's kernel, in a namespace of its own.

#![cfg(feature = "tokio")]

use std::time::Duration;

use sluicegate_netlink::message::{Flags, Messages};
use sluicegate_netlink::tokio::AsyncSocket;
use sluicegate_netlink::{Batch, Error, NetlinkFamily, Options, Socket, dump, exchange};
use tokio::time::timeout;

const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
const RTMGRP_LINK: u32 = 1;

fn in_a_runtime(test: impl AsyncFnOnce() + Send) {
    testns::netns(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(test());
    });
}

fn socket(join: Option<u32>) -> AsyncSocket {
    let mut socket = Socket::open(NetlinkFamily::ROUTE, &Options::default()).expect("a socket");
    if let Some(group) = join {
        socket.join(group).expect("a group that everybody may join");
    }
    AsyncSocket::new(socket).expect("a socket of the runtime")
}

fn get_links() -> Batch {
    let mut batch = Batch::new();
    batch.message(RTM_GETLINK, Flags::REQUEST | Flags::DUMP, 0).raw(&[0; 16]);
    batch
}

/// Sets loopback (index 1) down or up: `struct ifinfomsg` with a change of `IFF_UP`.
fn set_loopback(up: bool) -> Batch {
    let mut batch = Batch::new();
    let mut header = [0; 16];
    header[4] = 1;
    header[8] = u8::from(up);
    header[12] = 1;
    batch.message(RTM_NEWLINK, Flags::REQUEST | Flags::ACK, 0).raw(&header);
    batch
}

async fn links(socket: &AsyncSocket) -> Result<usize, Error> {
    socket.run(|socket| Ok(dump(socket, &get_links(), |m| Ok(Some(m.header.kind)))?.len())).await
}

#[test]
fn tasks_that_share_a_socket_take_turns() {
    in_a_runtime(async || {
        let socket = socket(None);
        let (a, b, c) = tokio::join!(links(&socket), links(&socket), links(&socket));
        assert_eq!((a.unwrap(), b.unwrap(), c.unwrap()), (1, 1, 1));
        assert!(socket.into_inner().is_some());
    });
}

#[test]
fn the_event_loop_waits_for_notifications() {
    in_a_runtime(async || {
        let (listener, sender) = (socket(Some(RTMGRP_LINK)), socket(None));
        let mut buffer = Vec::new();
        // Nothing is queued yet. A wait that is given up loses no later notification.
        assert!(timeout(Duration::from_millis(20), listener.receive(&mut buffer)).await.is_err());
        let change = sender.run(|socket| exchange(socket, &[&set_loopback(false)], |_| Ok(())));
        let (heard, changed) = tokio::join!(listener.receive(&mut buffer), change);
        heard.unwrap();
        assert_eq!(changed.unwrap().errors, []);
        let kinds: Vec<_> = Messages::new(&buffer).map(|m| m.unwrap().header.kind).collect();
        assert_eq!(kinds, [RTM_NEWLINK]);
    });
}

#[test]
fn dropping_the_future_leaves_the_socket_usable() {
    in_a_runtime(async || {
        let socket = socket(None);
        let (go_on, waiting) = std::sync::mpsc::channel();
        let slow = socket.run(move |socket| {
            waiting.recv().expect("the test lets it go on");
            dump(socket, &get_links(), |_| Ok(Some(())))
        });
        assert!(timeout(Duration::from_millis(5), slow).await.is_err());
        go_on.send(()).expect("the conversation waits");
        assert_eq!(links(&socket).await.unwrap(), 1);
    });
}

#[test]
fn an_error_of_the_conversation_is_returned() {
    in_a_runtime(async || {
        let refused: Result<(), Error> = socket(None).run(|_| Err(Error::Interrupted(8))).await;
        assert!(matches!(refused, Err(Error::Interrupted(8))));
    });
}
