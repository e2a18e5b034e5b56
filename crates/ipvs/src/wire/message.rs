//! Netlink and generic-netlink headers: `struct nlmsghdr { u32 len; u16 type; u16 flags; u32 seq; u32 pid; }`, then
//! `struct genlmsghdr { u8 cmd; u8 version; u16 reserved; }`, in host order.

use neli::consts::nl::NlmF;

use super::attributes::{Attributes, Writer, align};
use super::{cmd, daemon, destination, service, top};
use crate::command::Command;
use crate::error::{DecodeError, Problem};
use crate::service::ServiceId;

/// `NLMSG_HDRLEN`
const HEADER: usize = 16;
/// `GENL_HDRLEN`
const GENL_HEADER: usize = 4;

/// Where a message goes, and how it is recognised in answers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Address {
    /// The number of the family, as the kernel gave it.
    pub(crate) family: u16,
    /// The version of the family's protocol.
    pub(crate) version: u8,
    /// Comes back in the answers.
    pub(crate) sequence: u32,
}

/// Appends one message, whose attributes `attributes` writes.
pub(crate) fn encode(
    buffer: &mut Vec<u8>,
    to: Address,
    cmd: u8,
    flags: NlmF,
    attributes: impl FnOnce(&mut Writer<'_>),
) {
    let start = buffer.len();
    buffer.extend_from_slice(&[0; 4]);
    buffer.extend_from_slice(&to.family.to_ne_bytes());
    buffer.extend_from_slice(&(flags | NlmF::REQUEST).bits().to_ne_bytes());
    buffer.extend_from_slice(&to.sequence.to_ne_bytes());
    buffer.extend_from_slice(&[0; 4]);
    buffer.extend_from_slice(&[cmd, to.version, 0, 0]);
    attributes(&mut Writer(buffer));
    let length = u32::try_from(buffer.len() - start).expect("a message of some hundred bytes");
    for (to, from) in buffer.iter_mut().skip(start).zip(length.to_ne_bytes()) {
        *to = from;
    }
}

/// Appends a command.
pub(crate) fn encode_command(buffer: &mut Vec<u8>, to: Address, flags: NlmF, command: &Command) {
    let mut message = |cmd, attributes: &dyn Fn(&mut Writer<'_>)| encode(buffer, to, cmd, flags, attributes);
    match command {
        Command::NewService { id, config } => {
            message(cmd::NEW_SERVICE, &|w| service::encode(w, id, Some(config)));
        }
        Command::SetService { id, config } => {
            message(cmd::SET_SERVICE, &|w| service::encode(w, id, Some(config)));
        }
        Command::DelService { id } => message(cmd::DEL_SERVICE, &|w| service::encode(w, id, None)),
        Command::NewDestination { service, id, config } => message(cmd::NEW_DEST, &|w| {
            service::encode(w, service, None);
            destination::encode(w, id, Some(config));
        }),
        Command::SetDestination { service, id, config } => message(cmd::SET_DEST, &|w| {
            service::encode(w, service, None);
            destination::encode(w, id, Some(config));
        }),
        Command::DelDestination { service, id } => message(cmd::DEL_DEST, &|w| {
            service::encode(w, service, None);
            destination::encode(w, id, None);
        }),
        Command::ZeroService { id } => message(cmd::ZERO, &|w| service::encode(w, id, None)),
        Command::ZeroAll => message(cmd::ZERO, &|_| {}),
        Command::Flush => message(cmd::FLUSH, &|_| {}),
        Command::SetTimeouts(timeouts) => {
            message(cmd::SET_CONFIG, &|w| super::config::encode_timeouts(w, timeouts));
        }
        Command::StartDaemon(it) => message(cmd::NEW_DAEMON, &|w| daemon::encode(w, it)),
        Command::StopDaemon(role) => message(cmd::DEL_DAEMON, &|w| daemon::encode_role(w, *role)),
    }
}

/// A question to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Query {
    Services,
    Service(ServiceId),
    Destinations(ServiceId),
    Daemons,
    Timeouts,
    Info,
}

impl Query {
    /// Whether the answer is a dump: any number of messages up to one that says "done".
    pub(crate) fn is_dump(&self) -> bool {
        matches!(self, Self::Services | Self::Destinations(_) | Self::Daemons)
    }

    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Services => "services".to_owned(),
            Self::Service(id) => format!("service {id}"),
            Self::Destinations(id) => format!("destinations of service {id}"),
            Self::Daemons => "sync daemons".to_owned(),
            Self::Timeouts => "timeouts".to_owned(),
            Self::Info => "version of IPVS".to_owned(),
        }
    }
}

/// Appends a question.
pub(crate) fn encode_query(buffer: &mut Vec<u8>, to: Address, query: &Query) {
    let flags = if query.is_dump() { NlmF::DUMP } else { NlmF::empty() };
    match query {
        Query::Services => encode(buffer, to, cmd::GET_SERVICE, flags, |_| {}),
        Query::Service(id) => encode(buffer, to, cmd::GET_SERVICE, flags, |w| service::encode(w, id, None)),
        Query::Destinations(id) => encode(buffer, to, cmd::GET_DEST, flags, |w| service::encode(w, id, None)),
        Query::Daemons => encode(buffer, to, cmd::GET_DAEMON, flags, |_| {}),
        Query::Timeouts => encode(buffer, to, cmd::GET_CONFIG, flags, |_| {}),
        Query::Info => encode(buffer, to, cmd::GET_INFO, flags, |_| {}),
    }
}

/// A received message, after its first header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message<'a> {
    pub(crate) kind: u16,
    pub(crate) flags: NlmF,
    pub(crate) sequence: u32,
    pub(crate) body: &'a [u8],
}

impl<'a> Message<'a> {
    /// The attributes of a generic-netlink message.
    pub(crate) fn attributes(&self, object: &'static str) -> Result<Attributes<'a>, DecodeError> {
        match self.body.get(GENL_HEADER..) {
            Some(attributes) => Ok(Attributes::new(object, attributes)),
            None => Err(short("generic-netlink header", self.body.len(), GENL_HEADER)),
        }
    }

    /// The nest `kind`, which a message about one object consists of.
    pub(crate) fn nest(&self, object: &'static str, kind: u16) -> Result<Attributes<'a>, DecodeError> {
        for attribute in self.attributes(object)? {
            let attribute = attribute?;
            if attribute.kind == kind {
                return Ok(attribute.nested(object));
            }
        }
        Err(DecodeError { object, problem: Problem::Missing(kind) })
    }
}

/// Splits what was received into messages; a wrong length ends it with an error.
#[derive(Clone, Debug)]
pub(crate) struct Messages<'a>(&'a [u8]);

impl<'a> Messages<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }
}

impl<'a> Iterator for Messages<'a> {
    type Item = Result<Message<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let bytes = std::mem::take(&mut self.0);
        let Some((&[l0, l1, l2, l3, k0, k1, f0, f1, s0, s1, s2, s3, _, _, _, _], _)) =
            bytes.split_first_chunk::<HEADER>()
        else {
            return Some(Err(short("netlink header", bytes.len(), HEADER)));
        };
        let length = usize::try_from(u32::from_ne_bytes([l0, l1, l2, l3])).unwrap_or(usize::MAX);
        let Some(body) = bytes.get(HEADER..length) else {
            let problem = Problem::Length { length, room: bytes.len() };
            return Some(Err(DecodeError { object: "netlink message", problem }));
        };
        self.0 = bytes.get(align(length)..).unwrap_or_default();
        Some(Ok(Message {
            kind: u16::from_ne_bytes([k0, k1]),
            flags: NlmF::from_bits_retain(u16::from_ne_bytes([f0, f1])),
            sequence: u32::from_ne_bytes([s0, s1, s2, s3]),
            body,
        }))
    }
}

fn short(object: &'static str, have: usize, need: usize) -> DecodeError {
    DecodeError { object, problem: Problem::Short { have, need } }
}

/// The service nest of an answer to `GET_SERVICE`.
pub(crate) fn service_nest<'a>(message: &Message<'a>) -> Result<Attributes<'a>, DecodeError> {
    message.nest("service", top::SERVICE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{self, Invocation};

    /// The types on the way to an attribute, and its payload.
    type Flat = Vec<(Vec<u16>, Vec<u8>)>;

    /// All attributes of a message with the path of their types, sorted: order does not matter to the kernel.
    fn flat(attributes: Attributes<'_>, path: &[u16], nests: usize) -> Flat {
        let mut all = Vec::new();
        for attribute in attributes {
            let attribute = attribute.unwrap();
            let path = [path, &[attribute.kind]].concat();
            if nests > 0 && attribute.kind <= top::DAEMON {
                all.extend(flat(attribute.nested("nest"), &path, nests - 1));
            } else {
                all.push((path, attribute.payload.to_vec()));
            }
        }
        all.sort();
        all
    }

    fn message_of(bytes: &[u8]) -> (u8, Flat) {
        let message = Messages::new(bytes).next().unwrap().unwrap();
        (message.body[0], flat(message.attributes("message").unwrap(), &[], 1))
    }

    #[test]
    fn requests_say_what_those_of_ipvsadm_say() {
        let captured = include_str!("../../testdata/requests.hex");
        let mut count = 0;
        for block in captured.split("> ").skip(1) {
            let (line, hex) = block.split_once('\n').unwrap();
            let theirs: Vec<u8> =
                hex.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
            let words: Vec<_> = line.split(' ').collect();
            let Ok(Invocation::Change(command)) = text::parse_args(&words) else { panic!("{line}") };
            let mut ours = Vec::new();
            let to = Address { family: 0x1c, version: 1, sequence: 1 };
            encode_command(&mut ours, to, NlmF::ACK, &command);
            let (ours, mut theirs) = (message_of(&ours), message_of(&theirs));
            // libipvs also sends what does not matter: an empty configuration with a name, no tunnel without a tunnel.
            theirs.1.retain(|(path, payload)| {
                let sent = ours.1.iter().any(|(ours, _)| ours == path);
                let matters = matches!(command, Command::NewService { .. })
                    || (matches!(command, Command::NewDestination { .. })
                        && path[0] == top::DEST
                        && payload.iter().any(|byte| *byte != 0));
                sent || matters
            });
            assert_eq!(ours, theirs, "{line}");
            count += 1;
        }
        assert_eq!(count, 9);
    }

    #[test]
    fn what_is_left_of_a_buffer_is_not_ignored() {
        for bytes in [&[16, 0, 0, 0, 1][..], &[20, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], &[0; 16]] {
            assert!(Messages::new(bytes).next().unwrap().is_err(), "{bytes:?}");
        }
        let mut two = [0; 17];
        two[0] = 16;
        let mut messages = Messages::new(&two);
        assert!(messages.next().unwrap().is_ok());
    }
}
