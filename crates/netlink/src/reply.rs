//! The kernel's answers: acknowledgements, errors and ends of dumps, and the state of a conversation.

use crate::attr::{Attributes, align};
use crate::message::{
    Flags, HEADER, Header, Message, Messages, NLMSG_DONE, NLMSG_ERROR, NLMSG_NOOP, NLMSG_OVERRUN,
};
use crate::{DecodeError, Errno, Error};

/// The kind of one message of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reply<'a> {
    /// An object, or another message of the subsystem.
    Data(Message<'a>),
    /// The request with this sequence number succeeded.
    Ack {
        /// The request's sequence number.
        sequence: u32,
    },
    /// The request that the error names was refused.
    Error(KernelError),
    /// The end of a dump.
    Done {
        /// The request's sequence number.
        sequence: u32,
    },
    /// The kernel dropped messages (`NLMSG_OVERRUN`).
    Overrun,
    /// No operation (`NLMSG_NOOP`).
    Noop,
}

impl<'a> Reply<'a> {
    /// Reads the kind of a message.
    ///
    /// # Errors
    /// When an error, acknowledgement or end of a dump is too short. Data is not examined.
    pub fn read(message: Message<'a>) -> Result<Self, DecodeError> {
        let sequence = message.header.sequence;
        Ok(match message.header.kind {
            NLMSG_NOOP => Self::Noop,
            NLMSG_OVERRUN => Self::Overrun,
            NLMSG_ERROR => match KernelError::read(message)? {
                Some(error) => Self::Error(error),
                None => Self::Ack { sequence },
            },
            // A dump that fails half way has the error in the code of its NLMSG_DONE.
            NLMSG_DONE => match code(message.payload) {
                Ok(code) if code < 0 => Self::Error(KernelError::new(sequence, Errno(code.saturating_neg()))),
                _ => Self::Done { sequence },
            },
            _ => Self::Data(message),
        })
    }
}

/// A request that the kernel refused: `NLMSG_ERROR` with the attributes of the extended acknowledgement.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct KernelError {
    /// The sequence number of the message that was refused.
    pub sequence: u32,
    /// The error as a positive number. From 4096 on it is a code of the subsystem's own (ipset), not an error
    /// number.
    pub errno: Errno,
    /// `NLMSGERR_ATTR_MSG`: the kernel's message; netfilter seldom sends one.
    pub message: Option<String>,
    /// `NLMSGERR_ATTR_OFFS`: where the offending attribute starts, in bytes from the message's `nlmsghdr`.
    pub offset: Option<u32>,
    /// `NLMSGERR_ATTR_MISS_TYPE`: the type of an attribute that is required and absent.
    pub missing: Option<u32>,
    /// The payload of the refused request (without `nlmsghdr`), if the kernel sent it back; empty if it was
    /// capped (`NETLINK_CAP_ACK`).
    pub request: Vec<u8>,
}

impl KernelError {
    /// Returns an error without the attributes of an extended acknowledgement.
    #[must_use]
    pub fn new(sequence: u32, errno: Errno) -> Self {
        Self { sequence, errno, ..Self::default() }
    }

    /// Reads `NLMSG_ERROR`; `None` for an acknowledgement.
    fn read(message: Message<'_>) -> Result<Option<Self>, DecodeError> {
        let code = code(message.payload)?;
        if code == 0 {
            return Ok(None);
        }
        let mut error = Self::new(message.header.sequence, Errno(code.saturating_neg()));
        let rest = message.payload.get(4..).unwrap_or_default();
        let Some(original) = rest.first_chunk::<HEADER>() else {
            return Err(short("nlmsgerr", 4 + HEADER, message.payload.len()));
        };
        let echoed = if message.header.flags.contains(Flags::CAPPED) { HEADER } else { length(original) };
        let Some(request) = rest.get(HEADER..echoed) else {
            return Err(short("the request in nlmsgerr", echoed, rest.len()));
        };
        error.request = request.to_vec();
        if message.header.flags.contains(Flags::ACK_TLVS) {
            error.read_report(rest.get(align(echoed)..).unwrap_or_default())?;
        }
        Ok(Some(error))
    }

    fn read_report(&mut self, attributes: &[u8]) -> Result<(), DecodeError> {
        for attribute in Attributes::new(attributes) {
            let attribute = attribute?;
            match attribute.kind {
                NLMSGERR_ATTR_MSG => self.message = Some(attribute.str()?.to_owned()),
                NLMSGERR_ATTR_OFFS => self.offset = Some(attribute.u32()?),
                NLMSGERR_ATTR_MISS_TYPE => self.missing = Some(attribute.u32()?),
                _ => {}
            }
        }
        Ok(())
    }
}

impl std::error::Error for KernelError {}

impl std::fmt::Display for KernelError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.errno.name() {
            Some(name) => write!(f, "{name} ({})", self.errno.description())?,
            None => write!(f, "error {}", self.errno)?,
        }
        if let Some(message) = &self.message {
            write!(f, ": {message}")?;
        }
        if let Some(missing) = self.missing {
            write!(f, ": expected attribute {missing}, found none")?;
        }
        Ok(())
    }
}

/// The state of a conversation: whether its last request has been answered, and the errors so far.
///
/// It is given datagrams and does no input or output itself, so that blocking and asynchronous transports can
/// share it.
#[derive(Debug)]
pub struct Conversation {
    first: u32,
    last: u32,
    port: Option<u32>,
    finished: bool,
    report: Report,
}

/// The outcome of a conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Every refusal, in the order in which the kernel gave them.
    pub errors: Vec<KernelError>,
    /// The receive buffer overflowed: there may be more errors than these.
    pub lost: bool,
    /// A dump was inconsistent (`NLM_F_DUMP_INTR`).
    pub interrupted: bool,
}

impl Conversation {
    /// Expects answers to the messages `first` to `last`; the answer to `last` is the end.
    ///
    /// So `last` must be one that is always answered: it asks for an acknowledgement, or is a dump.
    #[must_use]
    pub fn new(first: u32, last: u32) -> Self {
        Self { first, last, port: None, finished: false, report: Report::default() }
    }

    /// Accepts only messages for this port as answers, if the port is known.
    ///
    /// Notifications for the port that have no sequence number are then data, too.
    pub fn answers_to(&mut self, port: Option<u32>) {
        self.port = port;
    }

    /// Processes one datagram; data goes to `on_data`. Answers to other requests are ignored.
    ///
    /// # Errors
    /// When a message is malformed, and the errors of `on_data`.
    pub fn datagram(
        &mut self,
        bytes: &[u8],
        mut on_data: impl FnMut(Message<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        for message in Messages::new(bytes) {
            let message = message?;
            if !self.is_for_us(message.header) {
                continue;
            }
            self.report.interrupted |=
                message.header.flags.contains(Flags::DUMP_INTR) && message.header.kind != NLMSG_ERROR;
            match Reply::read(message)? {
                Reply::Data(data) => on_data(data)?,
                Reply::Ack { sequence } | Reply::Done { sequence } => self.answered(sequence),
                Reply::Error(error) => {
                    self.answered(error.sequence);
                    self.report.errors.push(error);
                }
                Reply::Overrun => self.report.lost = true,
                Reply::Noop => {}
            }
        }
        Ok(())
    }

    /// Records that messages were lost (`ENOBUFS`).
    pub fn lost(&mut self) {
        self.report.lost = true;
    }

    /// Returns whether the last message has been answered.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// Returns whether messages have been lost.
    #[must_use]
    pub fn has_lost(&self) -> bool {
        self.report.lost
    }

    /// Returns the outcome of the conversation.
    #[must_use]
    pub fn into_report(self) -> Report {
        self.report
    }

    fn is_for_us(&self, header: Header) -> bool {
        let numbered = (self.first..=self.last).contains(&header.sequence);
        // nf_tables notifies of elements without a sequence number, even if our own request caused it.
        self.port.map_or(numbered, |port| port == header.port && (numbered || header.sequence == 0))
    }

    fn answered(&mut self, sequence: u32) {
        self.finished |= sequence == self.last;
    }
}

/// `NLMSGERR_ATTR_MSG`.
pub(crate) const NLMSGERR_ATTR_MSG: u16 = 1;
/// `NLMSGERR_ATTR_OFFS`.
pub(crate) const NLMSGERR_ATTR_OFFS: u16 = 2;
/// `NLMSGERR_ATTR_MISS_TYPE`.
const NLMSGERR_ATTR_MISS_TYPE: u16 = 5;

fn code(payload: &[u8]) -> Result<i32, DecodeError> {
    payload.first_chunk().map(|code| i32::from_ne_bytes(*code)).ok_or(short("error code", 4, payload.len()))
}

fn length(header: &[u8; HEADER]) -> usize {
    let [l0, l1, l2, l3, ..] = *header;
    usize::try_from(u32::from_ne_bytes([l0, l1, l2, l3])).unwrap_or(usize::MAX).max(HEADER)
}

fn short(what: &'static str, need: usize, have: usize) -> DecodeError {
    DecodeError::Short { what, need, have, offset: HEADER }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted;
    use proptest::prelude::*;

    // Captured on Linux 6.18.44 (x86-64): the answer to a transaction whose third message is NFT_MSG_NEWRULE
    // for the table "t" and a chain "nochain" that does not exist; the offset is that of NFTA_RULE_CHAIN.
    const CAPPED: &str =
        "2c00000002000003030000003930 0000 feffffff 28000000060a010c0300000000000000 080002001c000000";
    const UNCAPPED: &str = "44000000020000020300000039300000 feffffff 28000000060a010c0300000000000000 \
        02000000 0600010074000000 0c0002006e6f636861696e00 080002001c000000";

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
        let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        digits.chunks(2).map(pair).collect()
    }

    fn read(bytes: &[u8]) -> Result<Reply<'_>, DecodeError> {
        Reply::read(Messages::new(bytes).next().unwrap().unwrap())
    }

    #[test]
    fn a_capped_error_gives_code_and_offset() {
        let bytes = bytes(CAPPED);
        let Reply::Error(error) = read(&bytes).unwrap() else { panic!("an error") };
        assert_eq!((error.sequence, error.errno, error.offset), (3, Errno::ENOENT, Some(28)));
        assert_eq!(error.request, []);
        assert_eq!(error.to_string(), "ENOENT (No such file or directory)");
    }

    #[test]
    fn an_error_that_is_not_capped_has_its_report_behind_the_request() {
        let bytes = bytes(UNCAPPED);
        let Reply::Error(error) = read(&bytes).unwrap() else { panic!("an error") };
        assert_eq!((error.sequence, error.errno, error.offset), (3, Errno::ENOENT, Some(28)));
        assert_eq!((error.request.len(), error.request.get(24)), (24, None));
        assert_eq!(error.request.get(16..23), Some(&b"nochain"[..]));
    }

    #[test]
    fn a_code_of_a_subsystem_keeps_its_number() {
        let bytes = scripted::error_with_request(9, Errno(4103), &[1, 2, 3, 4, 5]);
        let Reply::Error(error) = read(&bytes).unwrap() else { panic!("an error") };
        assert_eq!((error.errno, error.request.as_slice()), (Errno(4103), &[1, 2, 3, 4, 5][..]));
        assert_eq!(error.to_string(), "error 4103");
    }

    #[test]
    fn the_kernels_message_is_part_of_the_text() {
        let bytes = scripted::error(5, Errno::EINVAL, Some("Attribute failed policy validation"), Some(20));
        let Reply::Error(error) = read(&bytes).unwrap() else { panic!("an error") };
        assert_eq!(error.to_string(), "EINVAL (Invalid argument): Attribute failed policy validation");
    }

    #[test]
    fn an_end_with_a_code_is_an_error() {
        let mut done = scripted::done(4);
        done[16..20].copy_from_slice(&(-4i32).to_ne_bytes());
        assert!(matches!(
            read(&done),
            Ok(Reply::Error(KernelError { sequence: 4, errno: Errno::EINTR, .. }))
        ));
        assert_eq!(read(&scripted::done(4)), Ok(Reply::Done { sequence: 4 }));
        done[16..20].copy_from_slice(&i32::MIN.to_ne_bytes());
        assert!(matches!(read(&done), Ok(Reply::Error(KernelError { errno: Errno(i32::MAX), .. }))));
    }

    #[test]
    fn answers_to_other_requests_are_ignored() {
        let mut talk = Conversation::new(5, 6);
        talk.datagram(&[scripted::ack(4), scripted::error(9, Errno::EPERM, None, None)].concat(), |_| Ok(()))
            .unwrap();
        assert!(!talk.is_finished());
        talk.datagram(
            &[scripted::error(5, Errno::ENOENT, None, None), scripted::ack(6)].concat(),
            |_| Ok(()),
        )
        .unwrap();
        assert!(talk.is_finished());
        assert_eq!(talk.into_report().errors.iter().map(|e| e.errno).collect::<Vec<_>>(), [Errno::ENOENT]);
    }

    #[test]
    fn a_message_for_another_port_is_ignored_whatever_its_sequence_number() {
        let event = |sequence, port| {
            crate::message::encode(Header { kind: 99, flags: Flags::empty(), sequence, port }, &[1])
        };
        let mut seen = Vec::new();
        let mut talk = Conversation::new(5, 6);
        talk.answers_to(Some(7));
        let datagram =
            [event(5, 8), event(5, 7), event(5, 0), event(0, 0), event(0, 7), scripted::ack(6)].concat();
        talk.datagram(&datagram, |message| {
            seen.push((message.header.sequence, message.header.port));
            Ok(())
        })
        .unwrap();
        assert_eq!((seen, talk.is_finished()), (vec![(5, 7), (0, 7)], false));
    }

    proptest! {
        #[test]
        fn no_answer_makes_the_reader_panic(
            kind in 0u16..6,
            flags: u16,
            payload in prop::collection::vec(any::<u8>(), 0..80),
        ) {
            let header = Header { kind, flags: Flags::from_bits_retain(flags), sequence: 1, port: 0 };
            let bytes = crate::message::encode(header, &payload);
            let _ = Conversation::new(1, 1).datagram(&bytes, |_| Ok(()));
        }
    }
}
