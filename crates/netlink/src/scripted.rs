//! A stand-in for the kernel: it checks what is sent to it and answers what the script says.
//!
//! For the tests of this workspace and of its users: neither root nor Linux is needed.
//!
//! ```
//! use sluicegate_netlink::{Batch, exchange, message::Flags, scripted::{self, Script}};
//!
//! let mut batch = Batch::new();
//! drop(batch.message(0x0610, Flags::REQUEST | Flags::ACK, 0));
//!
//! let mut kernel = Script::new();
//! kernel.expect(batch.bytes()?).reply(scripted::error(1, 17, None, None));
//! let report = exchange(&mut kernel, &[&batch], |_| Ok(()))?;
//! assert_eq!(report.errors[0].code, 17);
//! kernel.finish();
//! # Ok::<(), sluicegate_netlink::Error>(())
//! ```

use std::collections::VecDeque;

use crate::attr;
use crate::message::{Flags, HEADER, Header, NLMSG_DONE, NLMSG_ERROR, encode};
use crate::reply::{NLMSGERR_ATTR_MSG, NLMSGERR_ATTR_OFFS};
use crate::{Error, Transport, Wait};

/// A [`Transport`] that plays a script: one step a datagram that is sent.
#[derive(Debug, Default)]
pub struct Script {
    steps: VecDeque<Step>,
    queue: VecDeque<Answer>,
    sent: Vec<Vec<u8>>,
    limit: Option<usize>,
}

impl Script {
    /// A script without steps: anything sent is unexpected.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Expects these bytes as the next datagram; what it answers is added to the step that this returns.
    pub fn expect(&mut self, datagram: &[u8]) -> &mut Step {
        self.step(Some(datagram.to_vec()))
    }

    /// Expects any datagram; look at it afterwards through [`sent`](Self::sent).
    pub fn expect_any(&mut self) -> &mut Step {
        self.step(None)
    }

    /// Puts a datagram into the receive queue before anything is sent.
    pub fn queued(&mut self, datagram: Vec<u8>) {
        self.queue.push_back(Answer::Datagram(datagram));
    }

    /// Refuses datagrams above this size, as a socket whose send buffer cannot be raised.
    pub fn limit_send(&mut self, bytes: usize) {
        self.limit = Some(bytes);
    }

    /// What was sent so far.
    #[must_use]
    pub fn sent(&self) -> &[Vec<u8>] {
        &self.sent
    }

    /// Ends the script.
    ///
    /// # Panics
    /// When a datagram that was expected has not been sent, or an answer has not been read.
    pub fn finish(self) {
        assert!(self.steps.is_empty(), "{} expected datagrams were not sent", self.steps.len());
        assert!(self.queue.is_empty(), "{} answers were not read", self.queue.len());
    }

    fn step(&mut self, expected: Option<Vec<u8>>) -> &mut Step {
        self.steps.push_back(Step { expected, answers: VecDeque::new() });
        self.steps.back_mut().expect("a step was just added")
    }
}

/// One step of a [`Script`]: a datagram and what it is answered with.
#[derive(Debug)]
pub struct Step {
    expected: Option<Vec<u8>>,
    answers: VecDeque<Answer>,
}

impl Step {
    /// Answers with one datagram (of one or more messages: concatenate them).
    pub fn reply(&mut self, datagram: Vec<u8>) -> &mut Self {
        self.answers.push_back(Answer::Datagram(datagram));
        self
    }

    /// The receive buffer overflows here: the next read gives `ENOBUFS`.
    pub fn overrun(&mut self) -> &mut Self {
        self.answers.push_back(Answer::Overrun);
        self
    }
}

#[derive(Debug)]
enum Answer {
    Datagram(Vec<u8>),
    Overrun,
}

impl Transport for Script {
    /// # Panics
    /// When the datagram is not the one that the script expects.
    fn send(&mut self, datagram: &[u8]) -> Result<(), Error> {
        if let Some(limit) = self.limit.filter(|limit| datagram.len() > *limit) {
            return Err(Error::TooBig { size: datagram.len(), limit });
        }
        let step = self.steps.pop_front().unwrap_or_else(|| panic!("unexpected datagram: {datagram:02x?}"));
        if let Some(expected) = step.expected {
            assert_eq!(datagram, expected, "another datagram was expected");
        }
        self.sent.push(datagram.to_vec());
        self.queue.extend(step.answers);
        Ok(())
    }

    fn receive(&mut self, buffer: &mut Vec<u8>, wait: Wait) -> Result<bool, Error> {
        buffer.clear();
        match (self.queue.pop_front(), wait) {
            (Some(Answer::Datagram(datagram)), _) => {
                buffer.extend_from_slice(&datagram);
                Ok(true)
            }
            (Some(Answer::Overrun), _) => Err(Error::Overrun),
            (None, Wait::No) => Ok(false),
            (None, Wait::Answer) => Err(Error::TimedOut(std::time::Duration::ZERO)),
        }
    }

    fn send_limit(&mut self, _size: usize) -> usize {
        self.limit.unwrap_or(usize::MAX)
    }
}

/// An acknowledgement, as with `NETLINK_CAP_ACK`.
#[must_use]
pub fn ack(sequence: u32) -> Vec<u8> {
    refusal(sequence, 0, Flags::CAPPED, &[])
}

/// A refusal with this (positive) code, with the kernel's words and the offset of the offending attribute, if any.
///
/// # Panics
/// When the words pass 64 KiB.
#[must_use]
pub fn error(sequence: u32, code: i32, message: Option<&str>, offset: Option<u32>) -> Vec<u8> {
    let report = attr::encode(|w| {
        if let Some(message) = message {
            w.put_str(NLMSGERR_ATTR_MSG, message);
        }
        if let Some(offset) = offset {
            w.put_u32(NLMSGERR_ATTR_OFFS, offset);
        }
    })
    .expect("a message of the kernel is short");
    let flags = if report.is_empty() { Flags::CAPPED } else { Flags::CAPPED | Flags::ACK_TLVS };
    refusal(sequence, code, flags, &report)
}

/// A refusal that sends the request's payload back, as ipset does even with `NETLINK_CAP_ACK`.
#[must_use]
pub fn error_with_request(sequence: u32, code: i32, payload: &[u8]) -> Vec<u8> {
    let request = Header { kind: 0, flags: Flags::REQUEST, sequence, port: 0 };
    let mut body = (-code).to_ne_bytes().to_vec();
    body.extend_from_slice(&encode(request, payload));
    encode(Header { kind: NLMSG_ERROR, flags: Flags::empty(), sequence, port: 0 }, &body)
}

/// The end of a dump.
#[must_use]
pub fn done(sequence: u32) -> Vec<u8> {
    encode(Header { kind: NLMSG_DONE, flags: Flags::MULTI, sequence, port: 0 }, &0i32.to_ne_bytes())
}

fn refusal(sequence: u32, code: i32, flags: Flags, report: &[u8]) -> Vec<u8> {
    let request = Header { kind: 0, flags: Flags::REQUEST, sequence, port: 0 };
    let mut body = (-code).to_ne_bytes().to_vec();
    body.extend_from_slice(encode(request, &[]).get(..HEADER).unwrap_or_default());
    body.extend_from_slice(report);
    encode(Header { kind: NLMSG_ERROR, flags, sequence, port: 0 }, &body)
}
