//! A scripted kernel: it compares requests with those that a test expects, and gives the test's answers.
//!
//! For the tests of this workspace and of its users: neither root nor Linux is needed.
//!
//! ```
//! use sluicegate_netlink::{Errno, Batch, exchange, message::Flags, scripted::{self, Script}};
//!
//! let mut batch = Batch::new();
//! drop(batch.message(0x0610, Flags::REQUEST | Flags::ACK, 0));
//!
//! let mut kernel = Script::new();
//! kernel.expect(batch.bytes()?).reply(scripted::error(1, Errno::EEXIST, None, None));
//! let report = exchange(&mut kernel, &[&batch], |_| Ok(()))?;
//! assert_eq!(report.errors[0].errno, Errno::EEXIST);
//! kernel.finish();
//! # Ok::<(), sluicegate_netlink::Error>(())
//! ```

use std::collections::VecDeque;

use crate::attr;
use crate::message::{Flags, HEADER, Header, Messages, NLMSG_DONE, NLMSG_ERROR, encode};
use crate::reply::{NLMSGERR_ATTR_MSG, NLMSGERR_ATTR_OFFS};
use crate::{Errno, Error, Transport, Wait};

/// A [`Transport`] that follows a script: one step for each datagram that is sent.
///
/// ```
/// use sluicegate_netlink::scripted::{Script, ack};
/// use sluicegate_netlink::{Batch, exchange, message::Flags};
///
/// let mut batch = Batch::new();
/// drop(batch.message(0x0610, Flags::REQUEST | Flags::ACK, 0));
/// let mut kernel = Script::new();
/// kernel.expect_any().reply(ack(1));
/// assert!(exchange(&mut kernel, &[&batch], |_| Ok(()))?.errors.is_empty());
/// assert_eq!(kernel.sent(), [batch.bytes()?]);
/// # Ok::<(), sluicegate_netlink::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Script {
    steps: VecDeque<Step>,
    queue: VecDeque<Answer>,
    sent: Vec<Vec<u8>>,
    limit: Option<usize>,
}

impl Script {
    /// Returns a script without steps: any datagram that is sent is unexpected.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Expects these bytes as the next datagram. Answers are added to the step that this returns.
    pub fn expect(&mut self, datagram: &[u8]) -> &mut Step {
        self.step(Some(datagram.to_vec()))
    }

    /// Expects any datagram; [`sent`](Self::sent) returns it afterwards.
    pub fn expect_any(&mut self) -> &mut Step {
        self.step(None)
    }

    /// Puts a datagram into the receive queue before anything is sent.
    pub fn queued(&mut self, datagram: Vec<u8>) {
        self.queue.push_back(Answer::Datagram(datagram));
    }

    /// Refuses datagrams above this size, as a socket does whose send buffer cannot be enlarged.
    pub fn limit_send(&mut self, bytes: usize) {
        self.limit = Some(bytes);
    }

    /// Returns the datagrams that were sent so far.
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

/// One step of a [`Script`]: a datagram and the replies to it.
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

    /// Answers as [`reply`](Self::reply) does, but sets all sequence numbers of the datagram to that of the
    /// request's last message: for captured answers, and for tests that do not depend on sequence numbers.
    pub fn reply_to_last(&mut self, datagram: Vec<u8>) -> &mut Self {
        self.answers.push_back(Answer::Numbered(datagram, None));
        self
    }

    /// Answers as [`reply_to_last`](Self::reply_to_last) does, to the message of the request with this index.
    pub fn reply_to(&mut self, index: usize, datagram: Vec<u8>) -> &mut Self {
        self.answers.push_back(Answer::Numbered(datagram, Some(index)));
        self
    }

    /// Lets the receive buffer overflow at this point: the next read fails with `ENOBUFS`.
    pub fn overrun(&mut self) -> &mut Self {
        self.answers.push_back(Answer::Overrun);
        self
    }
}

#[derive(Debug)]
enum Answer {
    Datagram(Vec<u8>),
    /// One whose messages answer the request's message with this index, or the last one.
    Numbered(Vec<u8>, Option<usize>),
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
        self.queue.extend(step.answers.into_iter().map(|answer| match answer {
            Answer::Numbered(bytes, index) => Answer::Datagram(numbered(bytes, datagram, index)),
            other => other,
        }));
        Ok(())
    }

    fn receive(&mut self, buffer: &mut Vec<u8>, wait: Wait) -> Result<bool, Error> {
        buffer.clear();
        match (self.queue.pop_front(), wait) {
            (Some(Answer::Datagram(datagram) | Answer::Numbered(datagram, _)), _) => {
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

/// Puts the sequence number of one message of a request into all messages of an answer. Bytes that are not a
/// complete message stay as they are.
fn numbered(mut answer: Vec<u8>, request: &[u8], index: Option<usize>) -> Vec<u8> {
    let mut asked = Messages::new(request).map_while(Result::ok);
    let message = match index {
        Some(index) => asked.nth(index),
        None => asked.last(),
    };
    let sequence = message.map_or(0, |message| message.header.sequence).to_ne_bytes();
    let lengths: Vec<_> =
        Messages::new(&answer).map_while(Result::ok).map(|message| HEADER + message.payload.len()).collect();
    let mut start = 0;
    for length in lengths {
        if let Some(field) = answer.get_mut(start + 8..start + 12) {
            field.copy_from_slice(&sequence);
        }
        start += attr::align(length);
    }
    answer
}

/// Returns an acknowledgement, as with `NETLINK_CAP_ACK`.
#[must_use]
pub fn ack(sequence: u32) -> Vec<u8> {
    refusal(sequence, Errno(0), Flags::CAPPED, &[])
}

/// Returns a refusal with this error number, with a message of the kernel and the offset of the offending
/// attribute, if any.
///
/// # Panics
/// When the message exceeds 64 KiB.
#[must_use]
pub fn error(sequence: u32, errno: Errno, message: Option<&str>, offset: Option<u32>) -> Vec<u8> {
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
    refusal(sequence, errno, flags, &report)
}

/// Returns a refusal that sends the request's payload back, as ipset does even with `NETLINK_CAP_ACK`.
#[must_use]
pub fn error_with_request(sequence: u32, errno: Errno, payload: &[u8]) -> Vec<u8> {
    let request = Header { kind: 0, flags: Flags::REQUEST, sequence, port: 0 };
    let mut body = (-errno.0).to_ne_bytes().to_vec();
    body.extend_from_slice(&encode(request, payload));
    encode(Header { kind: NLMSG_ERROR, flags: Flags::empty(), sequence, port: 0 }, &body)
}

/// Returns the end of a dump.
#[must_use]
pub fn done(sequence: u32) -> Vec<u8> {
    encode(Header { kind: NLMSG_DONE, flags: Flags::MULTI, sequence, port: 0 }, &0i32.to_ne_bytes())
}

fn refusal(sequence: u32, errno: Errno, flags: Flags, report: &[u8]) -> Vec<u8> {
    let request = Header { kind: 0, flags: Flags::REQUEST, sequence, port: 0 };
    let mut body = (-errno.0).to_ne_bytes().to_vec();
    body.extend_from_slice(encode(request, &[]).get(..HEADER).unwrap_or_default());
    body.extend_from_slice(report);
    encode(Header { kind: NLMSG_ERROR, flags, sequence, port: 0 }, &body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Batch;
    use crate::message::Message;

    #[test]
    fn answers_get_the_numbers_of_what_they_answer() {
        let mut batch = Batch::starting_at(7);
        for _ in 0..3 {
            drop(batch.message(1, Flags::REQUEST, 0));
        }
        let mut kernel = Script::new();
        let refused = error(0, Errno::EEXIST, Some("no"), None);
        // The last message is cut short, as what a kernel never sends.
        kernel.expect_any().reply_to(1, refused).reply_to_last([done(0), done(0), vec![9, 0, 0]].concat());
        kernel.send(batch.bytes().unwrap()).unwrap();
        let (mut numbers, mut lengths) = (Vec::new(), Vec::new());
        let mut buffer = Vec::new();
        while kernel.receive(&mut buffer, Wait::No).unwrap() {
            let whole = Messages::new(&buffer).map_while(Result::ok);
            numbers.extend(whole.map(|Message { header, .. }| header.sequence));
            lengths.push(buffer.len());
        }
        assert_eq!(numbers, [8, 9, 9]);
        assert_eq!(lengths.last(), Some(&(20 + 20 + 3)));
    }
}
