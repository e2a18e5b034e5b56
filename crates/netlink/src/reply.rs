//! The kernel's answers: what a message says beside data, and the course of a conversation.

use crate::attr::{Attributes, align};
use crate::error::errno_name;
use crate::message::{
    Flags, HEADER, Header, Message, Messages, NLMSG_DONE, NLMSG_ERROR, NLMSG_NOOP, NLMSG_OVERRUN,
};
use crate::{DecodeError, Error};

/// What one message of an answer is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reply<'a> {
    /// An object, or whatever else the subsystem answers.
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
    /// The kernel dropped something (`NLMSG_OVERRUN`).
    Overrun,
    /// Nothing (`NLMSG_NOOP`).
    Noop,
}

impl<'a> Reply<'a> {
    /// Reads what a message is.
    ///
    /// # Errors
    /// When an error, acknowledgement or end is cut short. Data is not looked into.
    pub fn read(message: Message<'a>) -> Result<Self, DecodeError> {
        let sequence = message.header.sequence;
        Ok(match message.header.kind {
            NLMSG_NOOP => Self::Noop,
            NLMSG_OVERRUN => Self::Overrun,
            NLMSG_ERROR => match KernelError::read(message)? {
                Some(error) => Self::Error(error),
                None => Self::Ack { sequence },
            },
            // A dump that fails half way says so in the code of its end.
            NLMSG_DONE => match code(message.payload) {
                Ok(code) if code < 0 => Self::Error(KernelError::new(sequence, code.saturating_neg())),
                _ => Self::Done { sequence },
            },
            _ => Self::Data(message),
        })
    }
}

/// A request that the kernel refused: `NLMSG_ERROR` with what the extended acknowledgement adds to it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct KernelError {
    /// The sequence number of the message that was refused.
    pub sequence: u32,
    /// The errno, positive. Codes from 4096 on are a subsystem's own (ipset), not errnos.
    pub code: i32,
    /// `NLMSGERR_ATTR_MSG`: the kernel's own words; netfilter seldom has any.
    pub message: Option<String>,
    /// `NLMSGERR_ATTR_OFFS`: where the offending attribute starts, in bytes from the message's `nlmsghdr`.
    pub offset: Option<u32>,
    /// `NLMSGERR_ATTR_MISS_TYPE`: the type of an attribute that is required and absent.
    pub missing: Option<u32>,
    /// The refused request's payload (without `nlmsghdr`), where the kernel sent it back; empty when it was capped.
    pub request: Vec<u8>,
}

impl KernelError {
    /// An error without extended report.
    #[must_use]
    pub fn new(sequence: u32, code: i32) -> Self {
        Self { sequence, code, ..Self::default() }
    }

    /// Reads `NLMSG_ERROR`; `None` for an acknowledgement.
    fn read(message: Message<'_>) -> Result<Option<Self>, DecodeError> {
        let code = code(message.payload)?;
        if code == 0 {
            return Ok(None);
        }
        let mut error = Self::new(message.header.sequence, code.saturating_neg());
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
        match errno_name(self.code) {
            Some(name) => {
                let text = std::io::Error::from_raw_os_error(self.code).to_string();
                let words = text.split(" (os error").next().unwrap_or_default();
                write!(f, "{name} ({words})")?;
            }
            None => write!(f, "error {}", self.code)?,
        }
        if let Some(message) = &self.message {
            write!(f, ": {message}")?;
        }
        if let Some(missing) = self.missing {
            write!(f, ", attribute {missing} is missing")?;
        }
        Ok(())
    }
}

/// The course of a conversation: which requests have been answered, and how. Fed with datagrams, it does no IO itself,
/// so that a blocking and an asynchronous transport share it.
#[derive(Debug)]
pub struct Conversation {
    first: u32,
    last: u32,
    port: Option<u32>,
    finished: bool,
    report: Report,
}

/// How a conversation went.
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

    /// Takes for an answer only what comes for this port, where it is known; then also notifications for it that have no number.
    pub fn answers_to(&mut self, port: Option<u32>) {
        self.port = port;
    }

    /// Takes in one datagram; data goes to `on_data`. Answers to anybody else's messages are passed over.
    ///
    /// # Errors
    /// When a message is malformed, and whatever `on_data` returns.
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

    /// Notes that messages were lost (`ENOBUFS`).
    pub fn lost(&mut self) {
        self.report.lost = true;
    }

    /// Whether the last message has been answered.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// Whether messages were lost so far.
    #[must_use]
    pub fn has_lost(&self) -> bool {
        self.report.lost
    }

    /// What came of it.
    #[must_use]
    pub fn into_report(self) -> Report {
        self.report
    }

    fn is_for_us(&self, header: Header) -> bool {
        let numbered = (self.first..=self.last).contains(&header.sequence);
        // Of what a request of ours causes, nf_tables tells elements without a number.
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

    // Captured on Linux 6.18.44 (x86-64): the answer to a transaction whose third message is NFT_MSG_NEWRULE for the
    // table "t" and a chain "nochain" that does not exist; the offset is that of NFTA_RULE_CHAIN.
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
        assert_eq!((error.sequence, error.code, error.offset), (3, 2, Some(28)));
        assert_eq!(error.request, []);
        assert_eq!(error.to_string(), "ENOENT (No such file or directory)");
    }

    #[test]
    fn an_error_that_is_not_capped_has_its_report_behind_the_request() {
        let bytes = bytes(UNCAPPED);
        let Reply::Error(error) = read(&bytes).unwrap() else { panic!("an error") };
        assert_eq!((error.sequence, error.code, error.offset), (3, 2, Some(28)));
        assert_eq!((error.request.len(), error.request.get(24)), (24, None));
        assert_eq!(error.request.get(16..23), Some(&b"nochain"[..]));
    }

    #[test]
    fn a_code_of_a_subsystem_is_not_taken_for_an_errno() {
        let bytes = scripted::error_with_request(9, 4103, &[1, 2, 3, 4, 5]);
        let Reply::Error(error) = read(&bytes).unwrap() else { panic!("an error") };
        assert_eq!((error.code, error.request.as_slice()), (4103, &[1, 2, 3, 4, 5][..]));
        assert_eq!(error.to_string(), "error 4103");
    }

    #[test]
    fn the_kernels_words_are_kept() {
        let bytes = scripted::error(5, 22, Some("Attribute failed policy validation"), Some(20));
        let Reply::Error(error) = read(&bytes).unwrap() else { panic!("an error") };
        assert_eq!(error.to_string(), "EINVAL (Invalid argument): Attribute failed policy validation");
    }

    #[test]
    fn an_end_with_a_code_is_an_error() {
        let mut done = scripted::done(4);
        done[16..20].copy_from_slice(&(-4i32).to_ne_bytes());
        assert!(matches!(read(&done), Ok(Reply::Error(KernelError { sequence: 4, code: 4, .. }))));
        assert_eq!(read(&scripted::done(4)), Ok(Reply::Done { sequence: 4 }));
        done[16..20].copy_from_slice(&i32::MIN.to_ne_bytes());
        assert!(matches!(read(&done), Ok(Reply::Error(KernelError { code: i32::MAX, .. }))));
    }

    #[test]
    fn answers_to_others_are_passed_over() {
        let mut talk = Conversation::new(5, 6);
        talk.datagram(&[scripted::ack(4), scripted::error(9, 1, None, None)].concat(), |_| Ok(())).unwrap();
        assert!(!talk.is_finished());
        talk.datagram(&[scripted::error(5, 2, None, None), scripted::ack(6)].concat(), |_| Ok(())).unwrap();
        assert!(talk.is_finished());
        assert_eq!(talk.into_report().errors.iter().map(|e| e.code).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn what_another_port_caused_is_no_answer_whatever_its_number() {
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
        fn no_answer_makes_the_reader_panic(kind in 0u16..6, flags: u16, payload in prop::collection::vec(any::<u8>(), 0..80)) {
            let header = Header { kind, flags: Flags::from_bits_retain(flags), sequence: 1, port: 0 };
            let bytes = crate::message::encode(header, &payload);
            let _ = Conversation::new(1, 1).datagram(&bytes, |_| Ok(()));
        }
    }
}
