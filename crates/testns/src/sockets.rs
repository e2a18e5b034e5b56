//! Netlink sockets as the kernel lists them: whether a program listens already, and whether it is gone.

/// A socket of nfnetlink: one row of `/proc/net/netlink` (proc(5)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NetfilterSocket {
    /// Its port, which is that of the process for a process's first socket.
    pub port: u32,
    /// Whether it has joined a group that the kernel sends to: from then on it receives notifications. The
    /// last group, 32, is the lock of a proxier, to which nothing is sent.
    pub listens: bool,
    /// Bytes that have come and wait to be read.
    pub waiting: u64,
}

/// Returns the sockets of nfnetlink in the network namespace of this thread.
///
/// # Panics
/// When the kernel's list cannot be read.
#[must_use]
pub fn netfilter_sockets() -> Vec<NetfilterSocket> {
    let rows = std::fs::read_to_string("/proc/thread-self/net/netlink").expect("a list of sockets");
    rows.lines().filter_map(socket).collect()
}

fn socket(row: &str) -> Option<NetfilterSocket> {
    // The socket, its protocol, its port, its groups as a mask, and the bytes that wait.
    let words: Vec<&str> = row.split_whitespace().collect();
    let [_, NETLINK_NETFILTER, port, groups, waiting, ..] = words[..] else { return None };
    let listens = u32::from_str_radix(groups, 16).ok()? & 0x7fff_ffff != 0;
    Some(NetfilterSocket { port: port.parse().ok()?, listens, waiting: waiting.parse().ok()? })
}

const NETLINK_NETFILTER: &str = "12";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_read_and_other_protocols_are_left_out() {
        let head = "sk               Eth Pid        Groups   Rmem     Wmem     Dump  Locks    Drops    Inode";
        assert_eq!(socket(head), None);
        let row = "00000000c5ef6f4b 12  4711       00000040 768      0        0     2        0        29563";
        assert_eq!(socket(row), Some(NetfilterSocket { port: 4711, listens: true, waiting: 768 }));
        let quiet =
            "00000000c5ef6f4b 12  4711       00000000 0        0        0     2        0        29563";
        assert_eq!(socket(quiet), Some(NetfilterSocket { port: 4711, listens: false, waiting: 0 }));
        let lock = "00000000c5ef6f4b 12  4711       80000000 0        0        0     2        0        29563";
        assert_eq!(socket(lock), Some(NetfilterSocket { port: 4711, listens: false, waiting: 0 }));
        let route =
            "00000000c5ef6f4b 0   4711       00000040 0        0        0     2        0        29563";
        assert_eq!(socket(route), None);
    }
}
