//! What may come back: data, "done", or `struct nlmsgerr { int error; struct nlmsghdr msg; }` with what the kernel adds
//! to it (`NETLINK_EXT_ACK`).

use neli::consts::nl::{NlmF, Nlmsg};

use super::attributes::{Attributes, align};
use super::message::Message;
use crate::error::{DecodeError, Problem};

/// `NLMSGERR_ATTR_MSG` of `linux/netlink.h`: a string.
const MESSAGE: u16 = 1;

/// One message of the kernel, sorted.
#[derive(Debug)]
pub(crate) enum Answer<'a> {
    /// A message of the family, or of the control family.
    Data(Message<'a>),
    /// The end of a dump.
    Done,
    /// The command was carried out.
    Ack,
    /// The command was refused.
    Error { errno: i32, message: Option<String> },
    /// Answers were lost.
    Overrun,
}

impl<'a> Answer<'a> {
    pub(crate) fn sort(message: Message<'a>) -> Result<Self, DecodeError> {
        /// The number of a message type of netlink itself.
        const fn is(kind: u16, wanted: u16) -> bool {
            kind == wanted
        }
        let (noop, error, done, overrun): (u16, u16, u16, u16) =
            (Nlmsg::Noop.into(), Nlmsg::Error.into(), Nlmsg::Done.into(), Nlmsg::Overrun.into());
        match message.kind {
            kind if is(kind, error) => sort_error(&message),
            kind if is(kind, done) => Ok(sort_done(&message)),
            kind if is(kind, overrun) => Ok(Self::Overrun),
            kind if is(kind, noop) || kind < 16 => {
                Err(DecodeError { object: "netlink message", problem: Problem::MessageType(kind) })
            }
            _ => Ok(Self::Data(message)),
        }
    }
}

fn sort_error<'a>(message: &Message<'a>) -> Result<Answer<'a>, DecodeError> {
    const OBJECT: &str = "netlink error";
    let Some((code, request)) = message.body.split_first_chunk::<4>() else {
        return Err(DecodeError {
            object: OBJECT,
            problem: Problem::Short { have: message.body.len(), need: 4 },
        });
    };
    match i32::from_ne_bytes(*code) {
        0 => Ok(Answer::Ack),
        // Never i32::MIN from a kernel, whose codes are small.
        code => Ok(Answer::Error { errno: code.saturating_neg(), message: kernel_message(message, request) }),
    }
}

/// The end of a dump may carry an error: a negative number instead of zero (Linux 4.?; ENOMEM and its like).
fn sort_done<'a>(message: &Message<'a>) -> Answer<'a> {
    match message.body.first_chunk::<4>().map(|code| i32::from_ne_bytes(*code)) {
        Some(code) if code < 0 => Answer::Error { errno: code.saturating_neg(), message: None },
        _ => Answer::Done,
    }
}

/// The words of an extended acknowledgement, if it has any. They follow the request, or its header alone when that was
/// capped; that they cannot be found must not hide the error itself.
fn kernel_message(message: &Message<'_>, request: &[u8]) -> Option<String> {
    const HEADER: usize = 16;
    if !message.flags.contains(NlmF::ACK_TLVS) {
        return None;
    }
    let skip = if message.flags.contains(NlmF::CAPPED) {
        HEADER
    } else {
        align(usize::try_from(u32::from_ne_bytes(*request.first_chunk()?)).ok()?)
    };
    Attributes::new("extended acknowledgement", request.get(skip..)?)
        .map_while(Result::ok)
        .find(|attribute| attribute.kind == MESSAGE)
        .and_then(|attribute| attribute.text().ok())
        .map(str::to_owned)
}
