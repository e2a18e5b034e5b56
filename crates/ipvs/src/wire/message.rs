//! Requests to IPVS, and the attributes of its answers.

use sluicegate_netlink::attr::Attributes;
use sluicegate_netlink::message::{Flags, Message};
use sluicegate_netlink::{Batch, generic};

use super::{FAMILY_VERSION, cmd, config, daemon, destination, service};
use crate::command::Command;
use crate::error::Problem;
use crate::service::ServiceId;

/// Appends a command to a batch. `family` is the number of the generic netlink family, `object` the number
/// that [`Batch::object`] returns for an error of the message.
pub(crate) fn encode_command(batch: &mut Batch, family: u16, flags: Flags, command: &Command, object: u64) {
    let header = generic::Header { command: number(command), version: FAMILY_VERSION };
    let mut message = batch.generic(family, header, flags, object);
    match command {
        Command::AddService { id, config } | Command::EditService { id, config } => {
            service::encode(&mut message, id, Some(config));
        }
        Command::DeleteService { id } | Command::ZeroService { id } => {
            service::encode(&mut message, id, None);
        }
        Command::AddDestination { service, id, config }
        | Command::EditDestination { service, id, config } => {
            service::encode(&mut message, service, None);
            destination::encode(&mut message, id, Some(config));
        }
        Command::DeleteDestination { service, id } => {
            service::encode(&mut message, service, None);
            destination::encode(&mut message, id, None);
        }
        Command::ZeroAll | Command::Flush => {}
        Command::SetTimeouts(timeouts) => config::encode_timeouts(&mut message, timeouts),
        Command::StartDaemon(daemon) => daemon::encode(&mut message, daemon),
        Command::StopDaemon(role) => daemon::encode_role(&mut message, *role),
    }
}

/// Returns the number of a command in the generic-netlink header.
const fn number(command: &Command) -> u8 {
    match command {
        Command::AddService { .. } => cmd::NEW_SERVICE,
        Command::EditService { .. } => cmd::SET_SERVICE,
        Command::DeleteService { .. } => cmd::DEL_SERVICE,
        Command::AddDestination { .. } => cmd::NEW_DEST,
        Command::EditDestination { .. } => cmd::SET_DEST,
        Command::DeleteDestination { .. } => cmd::DEL_DEST,
        Command::ZeroService { .. } | Command::ZeroAll => cmd::ZERO,
        Command::Flush => cmd::FLUSH,
        Command::SetTimeouts(_) => cmd::SET_CONFIG,
        Command::StartDaemon(_) => cmd::NEW_DAEMON,
        Command::StopDaemon(_) => cmd::DEL_DAEMON,
    }
}

/// A request for objects.
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
    /// Returns true when the answer is a dump: any number of messages up to `NLMSG_DONE`.
    pub(crate) fn is_dump(&self) -> bool {
        matches!(self, Self::Services | Self::Destinations(_) | Self::Daemons)
    }

    /// Returns the name of the object in the answer, for errors.
    pub(crate) const fn object(&self) -> &'static str {
        match self {
            Self::Services | Self::Service(_) => "service",
            Self::Destinations(_) => "destination",
            Self::Daemons => "sync daemon",
            Self::Timeouts => "timeouts",
            Self::Info => "info",
        }
    }

    /// Returns the name of the requested objects, for errors.
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

/// Appends a request for objects to a batch.
pub(crate) fn encode_query(batch: &mut Batch, family: u16, query: &Query) {
    let command = match query {
        Query::Services | Query::Service(_) => cmd::GET_SERVICE,
        Query::Destinations(_) => cmd::GET_DEST,
        Query::Daemons => cmd::GET_DAEMON,
        Query::Timeouts => cmd::GET_CONFIG,
        Query::Info => cmd::GET_INFO,
    };
    let flags = if query.is_dump() { Flags::DUMP } else { Flags::empty() };
    let header = generic::Header { command, version: FAMILY_VERSION };
    let mut message = batch.generic(family, header, flags, 0);
    if let Query::Service(id) | Query::Destinations(id) = query {
        service::encode(&mut message, id, None);
    }
}

/// Returns the attributes of an answer, which has to be a message of IPVS.
pub(crate) fn attributes<'a>(message: &Message<'a>, family: u16) -> Result<Attributes<'a>, Problem> {
    if message.header.kind != family {
        return Err(Problem::MessageType(message.header.kind));
    }
    Ok(message.generic()?.1)
}

/// Returns the attributes nested in `kind`, the only attribute of an answer about one object.
pub(crate) fn nest<'a>(message: &Message<'a>, family: u16, kind: u16) -> Result<Attributes<'a>, Problem> {
    let nest = attributes(message, family)?.find(kind)?.ok_or(Problem::Missing(kind))?;
    Ok(nest.attributes())
}

#[cfg(test)]
mod tests {
    use sluicegate_netlink::message::Messages;

    use super::*;
    use crate::text::{self, Invocation};
    use crate::wire::top;

    /// The types on the way to an attribute, and its payload.
    type Flat = Vec<(Vec<u16>, Vec<u8>)>;

    /// Returns all attributes of a message with the path of their types, sorted: the kernel accepts any
    /// order.
    fn flat(attributes: Attributes<'_>, path: &[u16], nests: usize) -> Flat {
        let mut all = Vec::new();
        for attribute in attributes {
            let attribute = attribute.unwrap();
            let path = [path, &[attribute.kind]].concat();
            if nests > 0 && attribute.kind <= top::DAEMON {
                all.extend(flat(attribute.attributes(), &path, nests - 1));
            } else {
                all.push((path, attribute.payload.to_vec()));
            }
        }
        all.sort();
        all
    }

    fn message_of(bytes: &[u8]) -> (u8, Flat) {
        let message = Messages::new(bytes).next().unwrap().unwrap();
        let (header, attributes) = message.generic().unwrap();
        (header.command, flat(attributes, &[], 1))
    }

    #[test]
    fn requests_have_the_attributes_of_those_of_ipvsadm() {
        let captured = include_str!("../../testdata/requests.hex");
        let mut count = 0;
        for block in captured.split("> ").skip(1) {
            let (line, hex) = block.split_once('\n').unwrap();
            let theirs: Vec<u8> =
                hex.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
            let words: Vec<_> = line.split(' ').collect();
            let Ok(Invocation::Change(command)) = text::parse_args(&words) else { panic!("{line}") };
            let mut ours = Batch::new();
            encode_command(&mut ours, 0x1c, Flags::ACK, &command, 0);
            let (ours, mut theirs) = (message_of(ours.bytes().unwrap()), message_of(&theirs));
            // libipvs also sends attributes without effect: an empty configuration, and tunnel type 0.
            theirs.1.retain(|(path, payload)| {
                let sent = ours.1.iter().any(|(ours, _)| ours == path);
                let matters = matches!(command, Command::AddService { .. })
                    || (matches!(command, Command::AddDestination { .. })
                        && path[0] == top::DEST
                        && payload.iter().any(|byte| *byte != 0));
                sent || matters
            });
            assert_eq!(ours, theirs, "{line}");
            count += 1;
        }
        assert_eq!(count, 9);
    }
}
