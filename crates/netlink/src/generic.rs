//! Generic netlink (`linux/genetlink.h`): the header of its messages, and the number of a family that has a
//! name.
//!
//! A family of generic netlink (IPVS, nl80211, ...) gets its number when its module is loaded, so
//! a client asks for it first:
//!
//! ```no_run
//! use sluicegate_netlink::{Batch, NetlinkFamily, Options, Socket, dump, generic, message::Flags};
//!
//! let mut socket = Socket::open(NetlinkFamily::GENERIC, &Options::default())?;
//! let ipvs = generic::family(&mut socket, "IPVS")?;
//! let mut request = Batch::new();
//! let get_service = generic::Header { command: 4, version: 1 }; // IPVS_CMD_GET_SERVICE
//! drop(request.generic(ipvs, get_service, Flags::DUMP, 0));
//! let services = dump(&mut socket, &request, |message| Ok(Some(message.generic()?.1.count())))?;
//! println!("{} services", services.len());
//! # Ok::<(), sluicegate_netlink::Error>(())
//! ```

use crate::attr::Attributes;
use crate::message::{self, Flags, Message};
use crate::{Batch, DecodeError, Error, MessageWriter, Transport, exchange};

/// `struct genlmsghdr`, which stands between `nlmsghdr` and the attributes. Its reserved field is always 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// `cmd`: a command of the family.
    pub command: u8,
    /// `version`: of the family's protocol.
    pub version: u8,
}

impl Header {
    /// Returns the bytes of the header.
    #[must_use]
    pub const fn bytes(self) -> [u8; GENL_HDRLEN] {
        [self.command, self.version, 0, 0]
    }
}

impl Batch {
    /// Opens a message to a family of generic netlink: [`message`](Self::message) with `genlmsghdr` written.
    ///
    /// `family` is the number that [`family`] found.
    #[inline]
    pub fn generic(&mut self, family: u16, header: Header, flags: Flags, object: u64) -> MessageWriter<'_> {
        let mut message = self.message(family, flags | Flags::REQUEST, object);
        message.raw(&header.bytes());
        message
    }
}

impl<'a> Message<'a> {
    /// Splits the payload of a message of generic netlink into its `genlmsghdr` and its attributes.
    ///
    /// # Errors
    /// When the payload is shorter than `genlmsghdr`.
    pub fn generic(&self) -> Result<(Header, Attributes<'a>), DecodeError> {
        let Some(([command, version, ..], rest)) = self.payload.split_first_chunk::<GENL_HDRLEN>() else {
            return Err(DecodeError::Short {
                what: "genlmsghdr",
                need: GENL_HDRLEN,
                have: self.payload.len(),
                offset: message::HEADER,
            });
        };
        let header = Header { command: *command, version: *version };
        Ok((header, Attributes::at(rest, message::HEADER + GENL_HDRLEN)))
    }
}

/// Asks the kernel for the number of a family (`CTRL_CMD_GETFAMILY`). A kernel that may load modules loads
/// the one that provides the family.
///
/// # Errors
/// One for which [`Error::is_not_found`] returns true, if the kernel does not have the family.
pub fn family(transport: &mut (impl Transport + ?Sized), name: &str) -> Result<u16, Error> {
    let mut request = Batch::new();
    let header = Header { command: CTRL_CMD_GETFAMILY, version: CTRL_VERSION };
    request.generic(GENL_ID_CTRL, header, Flags::ACK, 0).put_str(CTRL_ATTR_FAMILY_NAME, name);
    let mut number = None;
    let report = exchange(transport, &[&request], |message| {
        let (_, attributes) = message.generic()?;
        number = attributes.find(CTRL_ATTR_FAMILY_ID)?.map(|attribute| attribute.u16()).transpose()?;
        Ok(())
    })?;
    if let Some(error) = report.errors.into_iter().next() {
        return Err(error.into());
    }
    number.ok_or_else(|| DecodeError::Missing { what: "CTRL_ATTR_FAMILY_ID" }.into())
}

/// Returns the answer to [`family`], with its acknowledgement, for scripts and tests.
#[must_use]
pub fn family_answer(sequence: u32, number: u16) -> Vec<u8> {
    let header = Header { command: CTRL_CMD_NEWFAMILY, version: CTRL_ANSWER_VERSION };
    let mut answer = Batch::starting_at(sequence);
    let mut message = answer.message(GENL_ID_CTRL, Flags::empty(), 0);
    message.raw(&header.bytes());
    message.put_u16(CTRL_ATTR_FAMILY_ID, number);
    drop(message);
    let mut bytes = answer.bytes().expect("a message of 28 bytes").to_vec();
    bytes.extend(crate::scripted::ack(sequence));
    bytes
}

/// Bytes of `struct genlmsghdr`.
pub const GENL_HDRLEN: usize = 4;
/// `GENL_ID_CTRL`: the family `nlctrl`, which knows all others and is the only one with a fixed number.
pub const GENL_ID_CTRL: u16 = 0x10;
/// `CTRL_CMD_NEWFAMILY`, as an answer describes a family.
const CTRL_CMD_NEWFAMILY: u8 = 1;
/// `CTRL_CMD_GETFAMILY`.
const CTRL_CMD_GETFAMILY: u8 = 3;
/// `CTRL_ATTR_FAMILY_ID`, a u16 in host order.
const CTRL_ATTR_FAMILY_ID: u16 = 1;
/// `CTRL_ATTR_FAMILY_NAME`, a string with NUL of at most 16 bytes (`GENL_NAMSIZ`).
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
/// The version that libnl and neli send; the kernel ignores the version of a request to `nlctrl`.
const CTRL_VERSION: u8 = 1;
/// The version that the kernel puts into its answers.
const CTRL_ANSWER_VERSION: u8 = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Errno;
    use crate::scripted::{self, Script};

    /// `nlmsghdr` (length, type, flags, sequence, port), `genlmsghdr` (command, version, reserved), the
    /// attribute, as `linux/genetlink.h` lays them out.
    #[cfg(target_endian = "little")]
    const REQUEST: [u8; 32] = [
        32, 0, 0, 0, 16, 0, 5, 0, 1, 0, 0, 0, 0, 0, 0, 0, 3, 1, 0, 0, 9, 0, 2, 0, b'I', b'P', b'V', b'S', 0,
        0, 0, 0,
    ];

    /// The answer of Linux 6.1.176 to ipvsadm 1.31, by `strace -e read=all`, up to `CTRL_ATTR_OPS`: the name,
    /// the number, version, header size, highest attribute. Length, sequence and port are put in here.
    #[cfg(target_endian = "little")]
    const ANSWER: [u8; 64] = [
        64, 0, 0, 0, 16, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 9, 0, 2, 0, b'I', b'P', b'V', b'S', 0,
        0, 0, 0, 6, 0, 1, 0, 0x1c, 0, 0, 0, 8, 0, 3, 0, 1, 0, 0, 0, 8, 0, 4, 0, 0, 0, 0, 0, 8, 0, 5, 0, 6, 0,
        0, 0,
    ];

    #[test]
    #[cfg(target_endian = "little")]
    fn the_number_of_a_family_is_requested_and_read() {
        let mut kernel = Script::new();
        kernel.expect(&REQUEST).reply(ANSWER.to_vec()).reply(scripted::ack(1));
        assert_eq!(family(&mut kernel, "IPVS").unwrap(), 0x1c);
        kernel.finish();
    }

    #[test]
    fn an_unknown_family_is_not_found() {
        let mut kernel = Script::new();
        kernel.expect_any().reply(scripted::error(1, Errno::ENOENT, None, None));
        assert!(family(&mut kernel, "IPVS").unwrap_err().is_not_found());
    }

    #[test]
    fn an_answer_without_a_number_is_an_error() {
        let mut kernel = Script::new();
        let header = message::Header { kind: GENL_ID_CTRL, flags: Flags::empty(), sequence: 1, port: 0 };
        let nothing = message::encode(header, &[1, 2, 0, 0]);
        kernel.expect_any().reply([nothing, scripted::ack(1)].concat());
        let error = family(&mut kernel, "IPVS").unwrap_err();
        assert_eq!(error.to_string(), "expected CTRL_ATTR_FAMILY_ID, found none");
    }

    #[test]
    fn a_header_is_read_as_it_was_written() {
        let header = Header { command: 7, version: 1 };
        let mut batch = Batch::new();
        batch.generic(0x1d, header, Flags::empty(), 0).put_u32(3, 9);
        let message = message::Messages::new(batch.bytes().unwrap()).next().unwrap().unwrap();
        assert_eq!((message.header.kind, message.header.flags), (0x1d, Flags::REQUEST));
        let (read, mut attributes) = message.generic().unwrap();
        assert_eq!((read, attributes.next().unwrap().unwrap().u32().unwrap()), (header, 9));
        assert_eq!(
            Message { payload: &[1, 1, 0], ..message }.generic().unwrap_err().to_string(),
            "expected 4 bytes of genlmsghdr at offset 16, found 3"
        );
    }

    #[test]
    fn the_answer_for_scripts_is_read_back() {
        let mut kernel = Script::new();
        kernel.expect_any().reply(family_answer(1, 77));
        assert_eq!(family(&mut kernel, "nl80211").unwrap(), 77);
    }
}
