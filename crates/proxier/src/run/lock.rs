//! A lock that admits one proxier to a network namespace, since two would undo each other's work without end.
//!
//! The lock is a netlink socket that has joined a multicast group of `NETLINK_NETFILTER` that the kernel
//! never sends to. Joining takes `CAP_NET_ADMIN` in the network namespace, which whoever programs rules has,
//! and nobody else: another process cannot keep a proxier from starting, as it could by binding an abstract
//! Unix socket or by locking a file that it may open. `/proc/net/netlink` lists the members, of the network
//! namespace alone: two pods that share the network of a node see each other whatever files and processes
//! they see, and a proxier in another network namespace does not count. No file is needed, and the kernel
//! releases the lock when the process ends.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::thread;
use std::time::Duration;

use sluicegate_netlink::{NetlinkFamily, Options, Socket};

use super::Error;

/// The lock of a network namespace, released when this value is dropped.
#[derive(Debug)]
pub struct Lock {
    _socket: Socket,
}

impl Lock {
    /// Takes the lock of the network namespace of the calling thread.
    ///
    /// # Errors
    /// [`Error::Locked`] when another process has it, with its process ID where that is visible.
    /// [`Error::Lock`] without `CAP_NET_ADMIN`.
    pub fn take() -> Result<Self, Error> {
        let mut tries = 0;
        loop {
            let mut options = Options::default();
            // Nothing is ever received.
            options.receive_buffer = 4096;
            let mut socket = Socket::open(NetlinkFamily::NETFILTER, &options).map_err(failed)?;
            // First join, then look: of two that start at the same time, at least one sees the other.
            socket.join(GROUP).map_err(failed)?;
            let Some(holder) = other_member(&socket).map_err(Error::Lock)? else {
                return Ok(Self { _socket: socket });
            };
            drop(socket);
            tries += 1;
            if tries == TRIES {
                return Err(Error::Locked { holder: describe(holder) });
            }
            // Both may have seen each other, and given up. They wait for different times.
            thread::sleep(Duration::from_millis(u64::from(20 + std::process::id() % 61)));
        }
    }
}

/// Returns the inode of a member of the group that is not `own`.
fn other_member(own: &Socket) -> io::Result<Option<u64>> {
    let own = File::from(own.as_fd().try_clone_to_owned()?).metadata()?.ino();
    let list = fs::read_to_string("/proc/thread-self/net/netlink")?;
    Ok(members(&list).find(|inode| *inode != own))
}

/// Returns the inodes of the sockets that have joined [`GROUP`] and no other group, by `/proc/net/netlink`. A
/// program that joins every group to see everything is not a proxier.
fn members(list: &str) -> impl Iterator<Item = u64> {
    list.lines().filter_map(|line| {
        let mut columns = line.split_whitespace();
        let family: i32 = columns.nth(1)?.parse().ok()?;
        let groups = u32::from_str_radix(columns.nth(1)?, 16).ok()?;
        let inode = columns.last()?.parse().ok()?;
        (family == NetlinkFamily::NETFILTER.0 && groups == 1 << (GROUP - 1)).then_some(inode)
    })
}

/// Returns which process has the socket of this inode: `process 1234`.
fn describe(inode: u64) -> String {
    let socket = format!("socket:[{inode}]");
    let has_it = |process: &fs::DirEntry| {
        let files = fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten();
        files
            .map(|file| fs::read_link(file.path()))
            .any(|link| link.is_ok_and(|link| link.as_os_str() == socket.as_str()))
    };
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut numbered = processes
        .filter(|entry| entry.file_name().as_encoded_bytes().first().is_some_and(u8::is_ascii_digit));
    match numbered.find(has_it) {
        Some(process) => format!("process {}", process.file_name().display()),
        None => "a process of another user or PID namespace".to_owned(),
    }
}

fn failed(error: sluicegate_netlink::Error) -> Error {
    Error::Lock(io::Error::other(error))
}

/// The last group that a netlink family has at least. The kernel's own groups of `NETLINK_NETFILTER` are
/// numbered from 1 (`enum nfnetlink_groups`, 9 of them in Linux 6.18).
const GROUP: u32 = 32;
/// How often to look, before another member counts as a proxier that runs.
const TRIES: u32 = 3;

#[cfg(test)]
mod tests {
    use std::os::linux::net::SocketAddrExt as _;
    use std::os::unix::net::{SocketAddr, UnixListener};

    use super::*;

    #[test]
    fn a_second_lock_is_refused_by_name_of_its_holder_until_the_first_is_gone_and_namespaces_do_not_share_it()
    {
        testns::netns(|| {
            let first = Lock::take().expect("nobody has it");
            let refused = Lock::take().expect_err("it is taken").to_string();
            assert!(refused.contains(&format!("process {}", std::process::id())), "{refused}");
            testns::netns(|| drop(Lock::take().expect("another namespace has its own")));
            drop(first);
            Lock::take().expect("it is free again");
        });
    }

    #[test]
    fn an_abstract_socket_of_any_process_is_not_the_lock() {
        testns::netns(|| {
            let name = SocketAddr::from_abstract_name(b"sluicegate-proxier").unwrap();
            let _listener = UnixListener::bind_addr(&name).unwrap();
            Lock::take().expect("a socket of that name is nothing to it");
        });
    }

    #[test]
    fn only_members_of_the_one_group_count() {
        let list = "sk               Eth Pid        Groups   Rmem     Wmem     Dump  Locks    Drops    \
            Inode\n\
                    00000000e1298d8a 12  26667      80000000 0        0        0     2        0        7\n\
                    00000000e1298d8a 12  0          ffffffff 0        0        0     2        0        8\n\
                    00000000e1298d8a 0   0          80000000 0        0        0     2        0        9\n\
                    00000000e1298d8a 12  4294962900 00000040 0        0        0     2        0        10\n\
                    short\n\n";
        assert_eq!(members(list).collect::<Vec<_>>(), [7]);
    }
}
