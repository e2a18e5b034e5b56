//! What a kernel says of itself, against what is known of its version, and against the real thing.

use std::collections::HashMap;

use sluicegate_netlink::message::Messages;
use sluicegate_netlink::{NetlinkFamily, Options, Socket, Transport, Wait};
use sluicegate_nftables::expr::{Expr, ObjectKind};
use sluicegate_nftables::probe::{self, Feature, supports};
use sluicegate_nftables::*;

/// Of the kernel that is running.
pub(crate) fn version() -> (u32, u32) {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("a kernel has a release");
    let mut numbers = release.split(['.', '-']).map(|n| n.parse().expect("a number"));
    (numbers.next().expect("major"), numbers.next().expect("minor"))
}

/// The kernel from which on every kernel has it; those that a kernel can be built without are not here.
const SINCE: &[(Feature, (u32, u32))] = &[
    (Feature::Destroy, (6, 3)),
    (Feature::RuleReset, (6, 2)),
    (Feature::ElementReset, (6, 5)),
    (Feature::TableComment, (5, 10)),
    (Feature::ChainComment, (5, 10)),
    (Feature::RuleComment, (3, 15)),
    (Feature::SetComment, (4, 3)),
    (Feature::ObjectComment, (5, 10)),
    (Feature::TableOwner, (5, 12)),
    (Feature::TablePersist, (6, 9)),
    (Feature::BoundChains, (5, 9)),
    (Feature::InetNat, (5, 2)),
    (Feature::InetIngress, (5, 10)),
    (Feature::ChainWithoutDevice, (6, 4)),
    (Feature::DeviceDeletion, (6, 4)),
    (Feature::AbsentDevice, (6, 16)),
    (Feature::DevicePrefix, (6, 17)),
    (Feature::ConcatenatedIntervals, (5, 6)),
    (Feature::CatchAll, (5, 13)),
    (Feature::ElementExpressions, (5, 14)),
    (Feature::Last, (5, 14)),
    (Feature::Inner, (6, 2)),
    (Feature::InnerHeader, (5, 16)),
    (Feature::TcpOptionReset, (5, 18)),
    (Feature::SctpChunk, (5, 14)),
    (Feature::BitwiseRegisters, (6, 13)),
];

#[test]
fn what_is_found_is_what_this_version_is_known_to_have() {
    let version = version();
    testns::netns(|| {
        let mut socket = socket();
        let before = read::generation(&mut socket).expect("a generation").id;
        let found: HashMap<_, _> =
            Feature::ALL.iter().map(|f| (*f, supports(&mut socket, *f).expect("it answers"))).collect();
        assert_eq!(read::generation(&mut socket).expect("a generation").id, before, "nothing has changed");
        let wrong: Vec<_> = SINCE.iter().filter(|(f, since)| found[f] != (version >= *since)).collect();
        assert!(wrong.is_empty(), "{version:?}: not as expected: {wrong:?}");
    });
}

#[test]
fn names_of_expressions_and_kinds_of_objects_are_known_or_not() {
    testns::netns(|| {
        let mut socket = socket();
        for name in ["payload", "cmp", "immediate", "counter", "lookup"] {
            assert!(probe::has_expression(&mut socket, Family::IP, name).expect("it answers"), "{name}");
        }
        assert!(!probe::has_expression(&mut socket, Family::IP, "sluice").expect("it answers"));
        // Forwarding to a device is for packets that have come from one.
        let forwards =
            |family| probe::has_expression(&mut self::socket(), family, "fwd").expect("it answers");
        assert!(!forwards(Family::IP));
        // Every name of the table is accepted as a question.
        for name in Expr::NAMES {
            probe::has_expression(&mut socket, Family::INET, name).unwrap_or_else(|e| panic!("{name}: {e}"));
        }
        assert!(probe::has_object_kind(&mut socket, Family::IP, ObjectKind::COUNTER).expect("it answers"));
        assert!(!probe::has_object_kind(&mut socket, Family::IP, ObjectKind(77)).expect("it answers"));
        assert!(read::tables(&mut socket, Family::UNSPEC).expect("tables").is_empty());
    });
}

/// A kernel that does not know one attribute, and so ignores it: here it gets it under a number that none
/// knows.
struct Older<T> {
    inner: T,
    command: u8,
    attribute: u16,
}

impl<T: Transport> Transport for Older<T> {
    fn send(&mut self, datagram: &[u8]) -> Result<(), sluicegate_netlink::Error> {
        let mut bytes = datagram.to_vec();
        let mut start = 0;
        for message in Messages::new(datagram) {
            let message = message.expect("our own message");
            let of_tables = message.header.kind == u16::from_be_bytes([10, self.command]);
            for attribute in message.netfilter().into_iter().flat_map(|(_, attributes)| attributes) {
                let attribute = attribute.expect("our own attribute");
                if of_tables && attribute.kind == self.attribute {
                    let at = start + attribute.offset;
                    bytes[at + 2..at + 4].copy_from_slice(&0x3f00_u16.to_ne_bytes());
                }
            }
            start += (16 + message.payload.len()).next_multiple_of(4);
        }
        self.inner.send(&bytes)
    }

    fn receive(&mut self, buffer: &mut Vec<u8>, wait: Wait) -> Result<bool, sluicegate_netlink::Error> {
        self.inner.receive(buffer, wait)
    }

    fn send_limit(&mut self, size: usize) -> usize {
        self.inner.send_limit(size)
    }
}

/// What a kernel ignores, with the message and the attribute.
const IGNORED: &[(Feature, u8, u16)] = &[
    (Feature::TableComment, 0, 6),
    (Feature::ChainComment, 3, 12),
    (Feature::RuleComment, 6, 7),
    (Feature::SetComment, 9, 13),
    (Feature::ObjectComment, 18, 8),
    (Feature::BoundChains, 3, 11),
];

#[test]
fn what_a_kernel_ignores_it_does_not_have() {
    testns::netns(|| {
        for (feature, command, attribute) in IGNORED {
            let (command, attribute) = (*command, *attribute);
            let mut older = Older { inner: socket(), command, attribute };
            assert!(!supports(&mut older, *feature).expect("it answers"), "{feature:?}");
            // All else is there as before.
            let mut other = Older { inner: socket(), command, attribute: attribute + 1 };
            assert!(supports(&mut other, *feature).expect("it answers"), "{feature:?}");
        }
    });
}

#[test]
fn the_fake_has_what_it_keeps_and_an_older_one_would_not() {
    for (feature, command, attribute) in IGNORED {
        let (command, attribute) = (*command, *attribute);
        let mut fake = fake::Fake::new();
        assert!(supports(&mut fake, *feature).expect("it answers"), "{feature:?}");
        let mut older = Older { inner: fake, command, attribute };
        assert!(!supports(&mut older, *feature).expect("it answers"), "{feature:?}");
    }
}

fn socket() -> Socket {
    Socket::open(NetlinkFamily::NETFILTER, &Options::default()).expect("a socket")
}
