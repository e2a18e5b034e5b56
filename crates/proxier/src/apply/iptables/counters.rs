//! The counters of nfacct that two rules of iptables mode count with: made, and read, by netlink.
//!
//! They are objects of their own in the kernel (`nfnetlink_acct`), which belong to the network namespace and live on when the rules
//! are written anew. Many kernels have none.

use sluicegate_netlink::message::Flags;
use sluicegate_netlink::{Batch, Error, Options, Protocol, Socket, Transport, exchange};

/// Makes and reads counters over one transport.
///
/// ```no_run
/// use sluicegate_proxier::apply::iptables::counters::Counters;
/// use sluicegate_proxier::plan::iptables::INVALID_COUNTER;
///
/// let dropped = Counters::open()?.packets(INVALID_COUNTER)?;
/// println!("{} packets were invalid", dropped.unwrap_or(0));
/// # Ok::<(), sluicegate_netlink::Error>(())
/// ```
#[derive(Debug)]
pub struct Counters<T = Socket>(T);

impl Counters {
    /// Opens a socket in the current network namespace.
    ///
    /// # Errors
    /// When there is no netfilter.
    pub fn open() -> Result<Self, Error> {
        Socket::open(Protocol::NETFILTER, &Options::default()).map(Self)
    }
}

impl<T: Transport> Counters<T> {
    /// Speaks over any transport.
    pub const fn new(transport: T) -> Self {
        Self(transport)
    }

    /// Makes a counter, unless there is one of this name: up to 31 bytes.
    ///
    /// # Errors
    /// What the kernel says; of one without nfacct that is `EINVAL`.
    pub fn ensure(&mut self, name: &str) -> Result<(), Error> {
        match self.ask(ACCT_NEW, Flags::CREATE | Flags::EXCL, name) {
            Err(error) if error.is_already_exists() => Ok(()),
            other => other.map(drop),
        }
    }

    /// The packets that a counter has counted; none where there is no such counter, or no nfacct.
    ///
    /// # Errors
    /// What else the kernel says.
    pub fn packets(&mut self, name: &str) -> Result<Option<u64>, Error> {
        match self.ask(ACCT_GET, Flags::empty(), name) {
            Err(error) if error.is_not_found() || error.kernel_code() == Some(INVALID) => Ok(None),
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
/// `EINVAL`: nfnetlink's word for a subsystem that is not there.
const INVALID: i32 = 22;

#[cfg(test)]
mod tests {
    use sluicegate_netlink::scripted::{self, Script};

    use super::*;

    /// A kernel that answers one question so.
    fn kernel(answer: Vec<u8>) -> Counters<Script> {
        let mut kernel = Script::new();
        kernel.expect_any().reply(answer);
        Counters::new(kernel)
    }

    /// What the kernel says of a counter, by its uAPI header: name, packets, bytes and use.
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
    fn a_counter_is_read_and_one_that_is_not_there_is_none() {
        assert_eq!(kernel(counter(1 << 40)).packets("ct_state_invalid_dropped_pkts").unwrap(), Some(1 << 40));
        for code in [2, INVALID] {
            assert_eq!(kernel(scripted::error(1, code, None, None)).packets("x").unwrap(), None);
        }
        assert!(kernel(scripted::error(1, 1, None, None)).packets("x").unwrap_err().is_permission_denied());
    }

    #[test]
    fn one_that_is_there_already_is_as_good_as_a_new_one() {
        assert!(kernel(scripted::ack(1)).ensure("x").is_ok());
        assert!(kernel(scripted::error(1, 17, None, None)).ensure("x").is_ok());
        assert_eq!(
            kernel(scripted::error(1, INVALID, None, None)).ensure("x").unwrap_err().kernel_code(),
            Some(INVALID)
        );
    }
}
