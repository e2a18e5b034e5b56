//! The nfacct counters of two rules of iptables mode, created and read over netlink.
//!
//! They are separate kernel objects (`nfnetlink_acct`), which belong to the network namespace and persist
//! when the rules are replaced. Many kernels do not have them.

use sluicegate_netlink::message::Flags;
use sluicegate_netlink::{Batch, Errno, Error, NetlinkFamily, Options, Socket, Transport, exchange};

/// Creates and reads counters over a transport.
///
/// ```no_run
/// use sluicegate_service_rules::iptables::counters::Counters;
/// use sluicegate_service_rules::iptables::INVALID_COUNTER;
///
/// let dropped = Counters::open()?.packets(INVALID_COUNTER)?;
/// println!("{} packets were invalid", dropped.unwrap_or(0));
/// # Ok::<(), sluicegate_netlink::Error>(())
/// ```
#[derive(Debug)]
pub struct Counters<T = Socket>(T);

impl Counters {
    /// Opens a socket in the network namespace of the calling thread.
    ///
    /// # Errors
    /// [`Error`] if the kernel has no netfilter.
    pub fn open() -> Result<Self, Error> {
        Socket::open(NetlinkFamily::NETFILTER, &Options::default()).map(Self)
    }
}

impl<T: Transport> Counters<T> {
    /// Uses a transport of the caller's.
    pub const fn with_transport(transport: T) -> Self {
        Self(transport)
    }

    /// Creates a counter unless it exists. A name has up to 31 bytes.
    ///
    /// # Errors
    /// The kernel's error; a kernel without nfacct returns `EINVAL`.
    pub fn ensure(&mut self, name: &str) -> Result<(), Error> {
        match self.ask(ACCT_NEW, Flags::CREATE | Flags::EXCL, name) {
            Err(error) if error.is_already_exists() => Ok(()),
            other => other.map(drop),
        }
    }

    /// Returns the packets of a counter; `None` if it does not exist, or if the kernel has no nfacct.
    ///
    /// # Errors
    /// Any other error of the kernel.
    pub fn packets(&mut self, name: &str) -> Result<Option<u64>, Error> {
        match self.ask(ACCT_GET, Flags::empty(), name) {
            Err(error) if error.is_not_found() || error.errno() == Some(INVALID) => Ok(None),
            other => other,
        }
    }

    fn ask(&mut self, command: u8, flags: Flags, name: &str) -> Result<Option<u64>, Error> {
        let mut batch = Batch::new();
        let mut message = batch.netfilter(SUBSYSTEM, command, flags | Flags::ACK, 0, 0);
        message.put_str(NAME, name);
        drop(message);
        let mut packets = None;
        let report = exchange(&mut self.0, &[&batch], |message| {
            let (_, attributes) = message.netfilter()?;
            packets = attributes.find(PACKETS)?.map(|attribute| attribute.be64()).transpose()?;
            Ok(())
        })?;
        match report.errors.into_iter().next() {
            Some(error) => Err(error.into()),
            None => Ok(packets),
        }
    }
}

/// `NFNL_SUBSYS_ACCT` (`linux/netfilter/nfnetlink.h`).
const SUBSYSTEM: u8 = 7;
/// `NFNL_MSG_ACCT_NEW` (`linux/netfilter/nfnetlink_acct.h`).
const ACCT_NEW: u8 = 0;
/// `NFNL_MSG_ACCT_GET` (`linux/netfilter/nfnetlink_acct.h`).
const ACCT_GET: u8 = 1;
/// `NFACCT_NAME` (`linux/netfilter/nfnetlink_acct.h`).
const NAME: u16 = 1;
/// `NFACCT_PKTS` (`linux/netfilter/nfnetlink_acct.h`), be64.
const PACKETS: u16 = 2;
/// The error of nfnetlink for a subsystem that does not exist.
const INVALID: Errno = Errno::EINVAL;

#[cfg(test)]
mod tests {
    use sluicegate_netlink::scripted::{self, Script};

    use super::*;

    /// Returns counters of a kernel that answers one request in this way.
    fn kernel(answer: Vec<u8>) -> Counters<Script> {
        let mut kernel = Script::new();
        kernel.expect_any().reply(answer);
        Counters::with_transport(kernel)
    }

    /// Returns the kernel's answer for a counter, as in the uAPI header: name, packets, bytes and use.
    fn counter(packets: u64) -> Vec<u8> {
        let mut batch = Batch::new();
        let mut message = batch.netfilter(SUBSYSTEM, ACCT_NEW, Flags::empty(), 0, 0);
        message.put_str(NAME, "ct_state_invalid_dropped_pkts");
        message.put_be64(PACKETS, packets);
        message.put_be64(3, packets * 60);
        message.put_be32(4, 1);
        drop(message);
        let mut answer = batch.bytes().unwrap().to_vec();
        answer.extend(scripted::ack(1));
        answer
    }

    #[test]
    fn a_counter_is_read_and_one_that_does_not_exist_is_none() {
        assert_eq!(kernel(counter(1 << 40)).packets("ct_state_invalid_dropped_pkts").unwrap(), Some(1 << 40));
        for errno in [Errno::ENOENT, INVALID] {
            assert_eq!(kernel(scripted::error(1, errno, None, None)).packets("x").unwrap(), None);
        }
        assert!(
            kernel(scripted::error(1, Errno::EPERM, None, None))
                .packets("x")
                .unwrap_err()
                .is_permission_denied()
        );
    }

    #[test]
    fn a_counter_that_exists_already_is_not_an_error() {
        assert!(kernel(scripted::ack(1)).ensure("x").is_ok());
        assert!(kernel(scripted::error(1, Errno::EEXIST, None, None)).ensure("x").is_ok());
        assert_eq!(
            kernel(scripted::error(1, INVALID, None, None)).ensure("x").unwrap_err().errno(),
            Some(INVALID)
        );
    }
}
