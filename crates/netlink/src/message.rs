//! Message headers (`struct nlmsghdr`, `struct nfgenmsg`) and the iterator over the messages of a datagram.

use bitflags::bitflags;

use crate::DecodeError;
use crate::attr::{Attributes, align};

bitflags! {
    /// Flags of a message (`NLM_F_*` of `linux/netlink.h`). The meaning of some bits depends on the kind of
    /// request.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct Flags: u16 {
        /// `NLM_F_REQUEST`: the message is a request.
        const REQUEST = 0x01;
        /// `NLM_F_MULTI`: the message is one of several; `NLMSG_DONE` ends them.
        const MULTI = 0x02;
        /// `NLM_F_ACK`: acknowledge the request if it succeeds.
        const ACK = 0x04;
        /// `NLM_F_ECHO`: send the notification that the request causes to the sender as well.
        const ECHO = 0x08;
        /// `NLM_F_DUMP_INTR`: the dump is inconsistent, because objects changed meanwhile.
        const DUMP_INTR = 0x10;
        /// `NLM_F_DUMP_FILTERED`: the dump was filtered as asked.
        const DUMP_FILTERED = 0x20;
        /// `NLM_F_REPLACE` of a request that creates an object.
        const REPLACE = 0x100;
        /// `NLM_F_EXCL` of a request that creates an object.
        const EXCL = 0x200;
        /// `NLM_F_CREATE` of a request that creates an object.
        const CREATE = 0x400;
        /// `NLM_F_APPEND` of a request that creates an object.
        const APPEND = 0x800;
        /// `NLM_F_DUMP` (`NLM_F_ROOT | NLM_F_MATCH`) of a request that reads.
        const DUMP = 0x300;
        /// `NLM_F_NONREC` of a request that deletes: not recursively.
        const NONREC = 0x100;
        /// `NLM_F_BULK` of a request that deletes.
        const BULK = 0x200;
        /// `NLM_F_CAPPED` of an error: the request's payload was left out.
        const CAPPED = 0x100;
        /// `NLM_F_ACK_TLVS` of an error: extended acknowledgement attributes follow.
        const ACK_TLVS = 0x200;

        const _ = !0;
    }
}

/// `struct nlmsghdr` without the length, which is that of the payload and the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// `nlmsg_type`; for netfilter `subsystem << 8 | command`.
    pub kind: u16,
    /// `nlmsg_flags`.
    pub flags: Flags,
    /// `nlmsg_seq`.
    pub sequence: u32,
    /// `nlmsg_pid`: the port id of the socket.
    pub port: u32,
}

/// Bytes of `struct nlmsghdr` (`NLMSG_HDRLEN`).
pub const HEADER: usize = 16;
/// `NLMSG_NOOP`: no operation.
pub const NLMSG_NOOP: u16 = 1;
/// `NLMSG_ERROR`: an error, or an acknowledgement where its code is 0.
pub const NLMSG_ERROR: u16 = 2;
/// `NLMSG_DONE`: the end of a multipart message.
pub const NLMSG_DONE: u16 = 3;
/// `NLMSG_OVERRUN`: data was lost.
pub const NLMSG_OVERRUN: u16 = 4;

/// A message that was read: its header and its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    /// The header.
    pub header: Header,
    /// The bytes after the header, without padding.
    pub payload: &'a [u8],
}

impl<'a> Message<'a> {
    /// Splits the payload of a netfilter message into its `nfgenmsg` and its attributes.
    ///
    /// # Errors
    /// When the payload is shorter than `nfgenmsg`.
    pub fn netfilter(&self) -> Result<(NfGenMsg, Attributes<'a>), DecodeError> {
        let Some(([family, version, r0, r1], rest)) = self.payload.split_first_chunk::<NFGENMSG>() else {
            return Err(DecodeError::Short {
                what: "nfgenmsg",
                need: NFGENMSG,
                have: self.payload.len(),
                offset: HEADER,
            });
        };
        let header =
            NfGenMsg { family: *family, version: *version, resource: u16::from_be_bytes([*r0, *r1]) };
        Ok((header, Attributes::at(rest, HEADER + NFGENMSG)))
    }
}

/// `struct nfgenmsg` of `linux/netfilter/nfnetlink.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NfGenMsg {
    /// `nfgen_family`: an address family (`AF_INET`) or one of netfilter's own (`NFPROTO_INET`).
    pub family: u8,
    /// `version`: always 0 (`NFNETLINK_V0`).
    pub version: u8,
    /// `res_id`: the subsystem in a batch's frame, 0 or a generation elsewhere.
    pub resource: u16,
}

impl NfGenMsg {
    /// Returns the header's bytes.
    #[must_use]
    pub fn bytes(self) -> [u8; NFGENMSG] {
        let [r0, r1] = self.resource.to_be_bytes();
        [self.family, self.version, r0, r1]
    }
}

/// Bytes of `struct nfgenmsg`.
pub const NFGENMSG: usize = 4;
/// `NFNL_MSG_BATCH_BEGIN`: opens a batch that is applied as a whole or not at all.
pub const NFNL_MSG_BATCH_BEGIN: u16 = 0x10;
/// `NFNL_MSG_BATCH_END`: closes it. A batch without it is a dry run.
pub const NFNL_MSG_BATCH_END: u16 = 0x11;
/// `NFNL_BATCH_GENID`: attribute of `NFNL_MSG_BATCH_BEGIN`, be32: apply only on this generation.
pub const NFNL_BATCH_GENID: u16 = 1;

/// The messages of one datagram.
///
/// Ends with one error if the length of a header exceeds the remaining bytes.
#[derive(Debug, Clone)]
pub struct Messages<'a> {
    rest: &'a [u8],
    offset: usize,
}

impl<'a> Messages<'a> {
    /// Reads a datagram.
    #[must_use]
    pub fn new(datagram: &'a [u8]) -> Self {
        Self { rest: datagram, offset: 0 }
    }

    fn split(&mut self) -> Result<Message<'a>, DecodeError> {
        let (rest, offset) = (self.rest, self.offset);
        let Some((header, _)) = rest.split_first_chunk::<HEADER>() else {
            return Err(DecodeError::Short { what: "nlmsghdr", need: HEADER, have: rest.len(), offset });
        };
        let [l0, l1, l2, l3, k0, k1, f0, f1, s0, s1, s2, s3, p0, p1, p2, p3] = *header;
        let claims = u32::from_ne_bytes([l0, l1, l2, l3]);
        let length = usize::try_from(claims).unwrap_or(usize::MAX);
        let Some(payload) = rest.get(HEADER..length) else {
            return Err(DecodeError::Length { what: "nlmsghdr", claims: length, have: rest.len(), offset });
        };
        let step = align(length).min(rest.len());
        self.rest = rest.get(step..).unwrap_or_default();
        self.offset = offset + step;
        let header = Header {
            kind: u16::from_ne_bytes([k0, k1]),
            flags: Flags::from_bits_retain(u16::from_ne_bytes([f0, f1])),
            sequence: u32::from_ne_bytes([s0, s1, s2, s3]),
            port: u32::from_ne_bytes([p0, p1, p2, p3]),
        };
        Ok(Message { header, payload })
    }
}

impl<'a> Iterator for Messages<'a> {
    type Item = Result<Message<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let item = self.split();
        if item.is_err() {
            self.rest = &[];
        }
        Some(item)
    }
}

/// Encodes one message, for scripts and tests. Programs use a [`Batch`](crate::Batch).
///
/// # Panics
/// When the payload exceeds 4 GiB.
#[must_use]
pub fn encode(header: Header, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(HEADER + payload.len()).expect("a message under 4 GiB");
    let mut bytes = Vec::with_capacity(align(HEADER + payload.len()));
    bytes.extend_from_slice(&length.to_ne_bytes());
    bytes.extend_from_slice(&header.kind.to_ne_bytes());
    bytes.extend_from_slice(&header.flags.bits().to_ne_bytes());
    bytes.extend_from_slice(&header.sequence.to_ne_bytes());
    bytes.extend_from_slice(&header.port.to_ne_bytes());
    bytes.extend_from_slice(payload);
    bytes.resize(align(bytes.len()), 0);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header() -> impl Strategy<Value = Header> {
        let fields = (any::<u16>(), any::<u16>(), any::<u32>(), any::<u32>());
        fields.prop_map(|(kind, flags, sequence, port)| Header {
            kind,
            flags: Flags::from_bits_retain(flags),
            sequence,
            port,
        })
    }

    fn bytes(limit: usize) -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(any::<u8>(), 0..limit)
    }

    proptest! {
        #[test]
        fn messages_are_read_back(list in prop::collection::vec((header(), bytes(40)), 0..10)) {
            let bytes: Vec<u8> = list.iter().flat_map(|(header, payload)| encode(*header, payload)).collect();
            let read: Vec<_> =
                Messages::new(&bytes).map(|m| m.map(|m| (m.header, m.payload.to_vec())).unwrap()).collect();
            prop_assert_eq!(read, list);
        }

        #[test]
        fn no_input_makes_the_reader_panic_or_run_on(bytes in bytes(200)) {
            prop_assert!(Messages::new(&bytes).count() <= bytes.len() / HEADER + 1);
        }
    }

    #[test]
    fn a_length_beyond_the_datagram_is_refused() {
        let mut bytes = encode(Header { kind: 3, flags: Flags::MULTI, sequence: 1, port: 0 }, &[0; 4]);
        bytes[0] = 24;
        assert!(matches!(
            Messages::new(&bytes).next(),
            Some(Err(DecodeError::Length { claims: 24, have: 20, .. }))
        ));
    }
}
