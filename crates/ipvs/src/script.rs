//! A transport that plays a script: for tests of this crate and of those who use it, without a kernel.

use std::collections::VecDeque;
use std::io;

use crate::socket::Transport;

/// A fake kernel: takes every send, keeps it, and answers with what it was told.
///
/// The first request of a [`Client`](crate::Client) asks for the number of the family; [`Script::new`] answers that one.
///
/// ```
/// use sluicegate_ipvs::{Client, Command, Script};
///
/// let mut script = Script::new();
/// script.acknowledge();
/// let mut client = Client::over(script)?;
/// client.run(&Command::Flush)?;
/// assert_eq!(client.transport().sent().len(), 2);
/// # Ok::<(), sluicegate_ipvs::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Script {
    steps: VecDeque<Vec<Answer>>,
    sent: Vec<Vec<u8>>,
    /// Answers to what was sent, ready to be received.
    ready: VecDeque<io::Result<Vec<u8>>>,
    current: Vec<u8>,
}

#[derive(Debug)]
enum Answer {
    /// Messages whose sequence numbers are put in: that of the last request, or of the request with this index.
    Messages(Vec<(Option<usize>, Vec<u8>)>),
    Error(io::Error),
}

impl Script {
    /// The number that the family has in this fake.
    pub const FAMILY: u16 = 0x1d;

    /// A kernel with IPVS.
    #[must_use]
    pub fn new() -> Self {
        let mut script = Self::default();
        let mut family = message(GENL_ID_CTRL, 0, &[1, 2, 0, 0]);
        family.extend_from_slice(&[6, 0, 1, 0]);
        family.extend_from_slice(&Self::FAMILY.to_ne_bytes());
        family.extend_from_slice(&[0, 0]);
        set_length(&mut family);
        script.answer(&family);
        script
    }

    /// A kernel without.
    #[must_use]
    pub fn without_ipvs() -> Self {
        let mut script = Self::default();
        script.refuse(&[(0, ENOENT)]);
        script
    }

    /// The next send is answered by the acknowledgement of its last message.
    pub fn acknowledge(&mut self) {
        self.refuse(&[]);
    }

    /// The next send is answered by errors for the messages with these indices, and by the acknowledgement of the last
    /// message, unless that has an error.
    pub fn refuse(&mut self, errors: &[(usize, i32)]) {
        let mut messages: Vec<_> =
            errors.iter().map(|(index, errno)| (Some(*index), error(-errno))).collect();
        messages.push((None, error(0)));
        self.steps.push_back(vec![Answer::Messages(messages)]);
    }

    /// The next send is answered by these whole messages. Their sequence numbers are replaced by that of its last message.
    pub fn answer(&mut self, messages: &[u8]) {
        self.steps.push_back(vec![Answer::Messages(vec![(None, messages.to_vec())])]);
    }

    /// The next receive after the last send of the script so far fails like this.
    pub fn fail(&mut self, error: io::Error) {
        match self.steps.back_mut() {
            Some(step) => step.push(Answer::Error(error)),
            None => self.steps.push_back(vec![Answer::Error(error)]),
        }
    }

    /// What was sent, a buffer a send.
    #[must_use]
    pub fn sent(&self) -> &[Vec<u8>] {
        &self.sent
    }
}

impl Transport for Script {
    fn send(&mut self, messages: &[u8]) -> io::Result<()> {
        let sequences = sequences(messages);
        self.sent.push(messages.to_vec());
        self.ready.clear();
        for answer in self.steps.pop_front().unwrap_or_default() {
            self.ready.push_back(match answer {
                Answer::Error(error) => Err(error),
                Answer::Messages(messages) => Ok(number(messages, &sequences)),
            });
        }
        Ok(())
    }

    fn receive(&mut self) -> io::Result<&[u8]> {
        self.current = self.ready.pop_front().unwrap_or_else(|| Err(io::ErrorKind::WouldBlock.into()))?;
        Ok(&self.current)
    }
}

/// The answers with the sequence numbers of what they answer.
fn number(messages: Vec<(Option<usize>, Vec<u8>)>, sequences: &[[u8; 4]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (index, mut message) in messages {
        let sequence =
            index.map_or(sequences.last(), |index| sequences.get(index)).copied().unwrap_or_default();
        let mut at = 0;
        while let Some(length) = length_at(&message, at) {
            for (to, from) in message.iter_mut().skip(at + 8).zip(sequence) {
                *to = from;
            }
            at += length;
        }
        bytes.extend(message);
    }
    bytes
}

fn sequences(messages: &[u8]) -> Vec<[u8; 4]> {
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(length) = length_at(messages, at) {
        found.extend(messages.get(at + 8..).and_then(|rest| rest.first_chunk::<4>()));
        at += length;
    }
    found
}

/// The padded length of the message at `at`, if one is there.
fn length_at(messages: &[u8], at: usize) -> Option<usize> {
    let length = u32::from_ne_bytes(*messages.get(at..)?.first_chunk()?);
    usize::try_from(length).ok().filter(|length| *length >= 16).map(|length| length.next_multiple_of(4))
}

fn message(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
    let mut message = vec![0; 4];
    message.extend(kind.to_ne_bytes());
    message.extend(flags.to_ne_bytes());
    message.extend([0; 8]);
    message.extend(body);
    set_length(&mut message);
    message
}

fn set_length(message: &mut [u8]) {
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    for (to, from) in message.iter_mut().zip(length.to_ne_bytes()) {
        *to = from;
    }
}

/// `struct nlmsgerr`, with the header of an empty request.
fn error(code: i32) -> Vec<u8> {
    const NLMSG_ERROR: u16 = 2;
    let mut body = code.to_ne_bytes().to_vec();
    body.extend(16u32.to_ne_bytes());
    body.extend([0; 12]);
    message(NLMSG_ERROR, 0, &body)
}

/// `GENL_ID_CTRL` of `linux/genetlink.h`.
const GENL_ID_CTRL: u16 = 16;
const ENOENT: i32 = 2;
