//! The client: commands and questions over a transport.

use std::collections::HashSet;
use std::hash::Hash;
use std::io;

use neli::consts::nl::NlmF;

use crate::command::Command;
use crate::daemon::{Daemon, Info, Timeouts};
use crate::destination::Destination;
use crate::error::{DecodeError, Error, Operation, Refusal, errno};
use crate::plan::{Listing, Table, plan};
use crate::service::{Service, ServiceId};
use crate::socket::{Socket, Transport};
use crate::wire::answer::Answer;
use crate::wire::message::{Address, Message, Messages, Query, encode_command, encode_query, service_nest};
use crate::wire::{self, FAMILY_VERSION, config, daemon, destination, service, top};

/// A connection to IPVS.
#[derive(Debug)]
pub struct Client<T = Socket> {
    transport: T,
    family: u16,
    sequence: u32,
    buffer: Vec<u8>,
}

impl Client<Socket> {
    /// Connects to the IPVS of the network namespace that the calling thread is in.
    ///
    /// Where the kernel may load modules, it loads `ip_vs` now if need be.
    ///
    /// # Errors
    /// [`Error::Absent`] when the kernel has no IPVS; [`Error::Io`] when no socket can be had.
    pub fn connect() -> Result<Self, Error> {
        let socket = Socket::open().map_err(|source| Error::Io { doing: "open a netlink socket", source })?;
        Self::over(socket)
    }
}

impl<T: Transport> Client<T> {
    /// Messages in one send. Each may be refused, and a receive buffer of the default size holds so many refusals.
    const PIPELINE: usize = 128;
    /// How often a listing is begun before the table is said to change too fast.
    const ATTEMPTS: u32 = 5;

    /// Connects over any transport; asks it for the number of the family.
    ///
    /// # Errors
    /// [`Error::Absent`] when there is no such family.
    pub fn over(transport: T) -> Result<Self, Error> {
        let mut client = Self { transport, family: 0, sequence: 0, buffer: Vec::new() };
        let sequence = client.next_sequence();
        wire::family::encode_query(&mut client.buffer, sequence);
        let mut family = None;
        let what = || "ask for the generic-netlink family IPVS".to_owned();
        client
            .answer(sequence, false, &what, &mut |message| {
                family = Some(wire::family::decode(&message)?);
                Ok(())
            })
            .map_err(|error| if error.is_not_found() { Error::Absent } else { error })?;
        client.family = family.ok_or(Error::Absent)?;
        Ok(client)
    }

    /// The transport, to look at a fake after its use.
    pub fn transport(&self) -> &T {
        &self.transport
    }

    /// Carries out one command.
    ///
    /// # Errors
    /// [`Error::Invalid`] before anything is sent, [`Error::Refused`] when the kernel refuses it.
    pub fn run(&mut self, command: &Command) -> Result<(), Error> {
        self.run_all(std::slice::from_ref(command)).map_err(|error| match error {
            Error::SomeRefused { mut failed, more: false } if failed.len() == 1 => {
                Error::Refused(failed.remove(0))
            }
            error => error,
        })
    }

    /// Carries out commands, many in a send. Each is on its own: those after a refused one are carried out as well.
    ///
    /// # Errors
    /// [`Error::Invalid`] before anything is sent, when one of them cannot work; [`Error::SomeRefused`] with the refused
    /// ones.
    pub fn run_all(&mut self, commands: &[Command]) -> Result<(), Error> {
        commands.iter().try_for_each(Command::check)?;
        let (mut failed, mut more) = (Vec::new(), false);
        for (number, part) in commands.chunks(Self::PIPELINE).enumerate() {
            let place = number * Self::PIPELINE;
            more |= match self.run_part(place, part, &mut failed) {
                Err(Error::NoAnswer(what)) => {
                    self.check_unanswered(what, part)?;
                    false
                }
                answer => answer?,
            };
        }
        if failed.is_empty() && !more { Ok(()) } else { Err(Error::SomeRefused { failed, more }) }
    }

    /// The kernel answers everything but what ends with `EINTR`, and one thing does although it succeeded: to stop a daemon
    /// whose thread has not run yet. Then it is gone all the same.
    fn check_unanswered(&mut self, what: String, part: &[Command]) -> Result<(), Error> {
        match part.last() {
            Some(Command::StopDaemon(role)) if self.daemons()?.iter().all(|daemon| daemon.role != *role) => {
                Ok(())
            }
            _ => Err(Error::NoAnswer(what)),
        }
    }

    /// One send. Every refusal is answered; success only by the acknowledgement of the last command. True when answers
    /// were lost.
    fn run_part(&mut self, place: usize, part: &[Command], failed: &mut Vec<Refusal>) -> Result<bool, Error> {
        self.buffer.clear();
        let first = self.sequence.wrapping_add(1);
        for (at, command) in part.iter().enumerate() {
            let to = Address { family: self.family, version: FAMILY_VERSION, sequence: self.next_sequence() };
            let flags = if at + 1 == part.len() { NlmF::ACK } else { NlmF::empty() };
            encode_command(&mut self.buffer, to, flags, command);
        }
        let what = || part.last().map_or_else(String::new, Command::summary);
        self.exchange(first, part.len(), &what, &mut |index, answer, _| {
            let last = index + 1 == part.len();
            match (answer, part.get(index)) {
                (Answer::Error { errno, message }, Some(command)) => {
                    let operation = Operation::Command { index: place + index, command: Box::new(*command) };
                    failed.push(Refusal { operation, errno, message });
                    Ok(last)
                }
                (Answer::Ack, _) => Ok(last),
                _ => Ok(false),
            }
        })
    }

    /// All services, in the order of the kernel.
    ///
    /// # Errors
    /// [`Error::Interrupted`] when the table changes all the time.
    pub fn services(&mut self) -> Result<Vec<Service>, Error> {
        self.list(&Query::Services, |message| service::decode(service_nest(message)?), |service| service.id)
    }

    /// One service.
    ///
    /// # Errors
    /// [`Error::Refused`], with [`Error::is_not_found`], when there is none.
    pub fn service(&mut self, id: &ServiceId) -> Result<Service, Error> {
        let query = Query::Service(*id);
        let mut found = None;
        self.ask(&query, &mut |message| {
            found = Some(service::decode(service_nest(&message)?)?);
            Ok(())
        })?;
        found.ok_or_else(|| Error::NoAnswer(query.describe()))
    }

    /// The destinations of a service, in the order of the kernel.
    ///
    /// # Errors
    /// [`Error::Refused`], with [`Error::is_not_found`], when there is no such service: the kernel itself would answer
    /// with an empty list. [`Error::Interrupted`] when the table changes all the time.
    pub fn destinations(&mut self, service: &ServiceId) -> Result<Vec<Destination>, Error> {
        let destinations = self.destinations_or_none(service)?;
        if destinations.is_empty() {
            self.service(service)?;
        }
        Ok(destinations)
    }

    fn destinations_or_none(&mut self, service: &ServiceId) -> Result<Vec<Destination>, Error> {
        let decode = |message: &Message<'_>| {
            destination::decode(message.nest("destination", top::DEST)?, service.family())
        };
        self.list(&Query::Destinations(*service), decode, |destination| destination.id)
    }

    /// All services that `filter` wants, with their destinations, in the order of the kernel.
    ///
    /// A service that disappears meanwhile may be listed without destinations.
    ///
    /// # Errors
    /// [`Error::Interrupted`] when the table changes all the time.
    pub fn listing(&mut self, mut filter: impl FnMut(&ServiceId) -> bool) -> Result<Vec<Listing>, Error> {
        let mut services = self.services()?;
        services.retain(|service| filter(&service.id));
        let with_destinations = |service: Service| {
            let destinations = self.destinations_or_none(&service.id)?;
            Ok(Listing { service, destinations })
        };
        services.into_iter().map(with_destinations).collect()
    }

    /// Makes the services that `filter` wants be those of `desired`, and says what it did for that.
    ///
    /// Reads the table once, and sends only what differs: first what is new or changed, then deletions, so that a service
    /// is never without its destinations. Services that `filter` does not want are not touched; they are somebody else's.
    ///
    /// Destinations that are no longer wanted lose their connections at once; see [`Drain`](crate::Drain) for a way that
    /// lets them end.
    ///
    /// # Errors
    /// [`Error::SomeRefused`] when the kernel refuses some of it, as when somebody else changes the same services at the
    /// same time: do it again.
    pub fn sync(
        &mut self,
        desired: &Table,
        filter: impl FnMut(&ServiceId) -> bool,
    ) -> Result<Vec<Command>, Error> {
        let actual = self.listing(filter)?.into_iter().collect();
        let commands = plan(desired, &actual);
        self.run_all(&commands)?;
        Ok(commands)
    }

    /// The sync daemons that run: none, one, or one of each role.
    ///
    /// # Errors
    /// [`Error::Refused`] without the needed rights.
    pub fn daemons(&mut self) -> Result<Vec<Daemon>, Error> {
        let decode = |message: &Message<'_>| daemon::decode(message.nest("sync daemon", top::DAEMON)?);
        self.list(&Query::Daemons, decode, |daemon| daemon.role)
    }

    /// The time-outs of connections, in seconds.
    ///
    /// # Errors
    /// [`Error::Refused`] without the needed rights.
    pub fn timeouts(&mut self) -> Result<Timeouts, Error> {
        let mut found = None;
        self.ask(&Query::Timeouts, &mut |message| {
            found = Some(config::decode_timeouts(message.attributes("timeouts")?)?);
            Ok(())
        })?;
        found.ok_or_else(|| Error::NoAnswer(Query::Timeouts.describe()))
    }

    /// The version of IPVS and the size of its connection table.
    ///
    /// # Errors
    /// [`Error::Refused`] without the needed rights.
    pub fn info(&mut self) -> Result<Info, Error> {
        let mut found = None;
        self.ask(&Query::Info, &mut |message| {
            found = Some(config::decode_info(message.attributes("info")?)?);
            Ok(())
        })?;
        found.ok_or_else(|| Error::NoAnswer(Query::Info.describe()))
    }

    /// A whole dump. The kernel continues a dump by counting, so that a change meanwhile skips or repeats an item: it says
    /// so by a flag, or an item comes twice; then all is asked again.
    fn list<I, K: Eq + Hash>(
        &mut self,
        query: &Query,
        decode: impl Fn(&Message<'_>) -> Result<I, DecodeError>,
        key: impl Fn(&I) -> K,
    ) -> Result<Vec<I>, Error> {
        for _ in 0..Self::ATTEMPTS {
            let (mut items, mut seen, mut repeated) = (Vec::new(), HashSet::new(), false);
            let torn = self.ask(query, &mut |message| {
                let item = decode(&message)?;
                repeated |= !seen.insert(key(&item));
                items.push(item);
                Ok(())
            })?;
            if !torn && !repeated {
                return Ok(items);
            }
        }
        Err(Error::Interrupted { what: query.describe(), attempts: Self::ATTEMPTS })
    }

    /// One question. True when the answer is not whole.
    fn ask(
        &mut self,
        query: &Query,
        take: &mut dyn FnMut(Message<'_>) -> Result<(), DecodeError>,
    ) -> Result<bool, Error> {
        self.buffer.clear();
        let sequence = self.next_sequence();
        let to = Address { family: self.family, version: FAMILY_VERSION, sequence };
        encode_query(&mut self.buffer, to, query);
        self.answer(sequence, query.is_dump(), &|| format!("list {}", query.describe()), take)
    }

    /// The answer to the one question in the buffer. A dump is read to its end even if an item cannot be decoded: the
    /// kernel would refuse the next one otherwise.
    fn answer(
        &mut self,
        sequence: u32,
        dump: bool,
        what: &dyn Fn() -> String,
        take: &mut dyn FnMut(Message<'_>) -> Result<(), DecodeError>,
    ) -> Result<bool, Error> {
        let (mut torn, mut wrong) = (false, None);
        let lost = self.exchange(sequence, 1, what, &mut |_, answer, flags| {
            torn |= flags.contains(NlmF::DUMP_INTR);
            match answer {
                Answer::Data(message) => {
                    if let Err(error) = take(message) {
                        wrong.get_or_insert(error);
                    }
                    Ok(!dump)
                }
                Answer::Error { errno: errno::EINTR, .. } if dump => {
                    torn = true;
                    Ok(true)
                }
                Answer::Error { errno, message } => {
                    Err(Error::Refused(Refusal { operation: Operation::Query(what()), errno, message }))
                }
                Answer::Done | Answer::Ack => Ok(true),
                Answer::Overrun => Ok(false),
            }
        })?;
        match wrong {
            Some(error) => Err(error.into()),
            None => Ok(torn || lost),
        }
    }

    /// Sends the buffer, and gives the answers to its `count` messages from sequence number `first` on, each with its
    /// index, to `take`, until that says that it was the last one. True when answers were lost.
    fn exchange(
        &mut self,
        first: u32,
        count: usize,
        what: &dyn Fn() -> String,
        take: &mut dyn FnMut(usize, Answer<'_>, NlmF) -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        self.transport
            .send(&self.buffer)
            .map_err(|source| Error::Io { doing: "send to the kernel", source })?;
        let mut lost = false;
        loop {
            let bytes = match self.transport.receive() {
                Ok(bytes) => bytes,
                Err(error) if error.raw_os_error() == Some(errno::ENOBUFS) => {
                    lost = true;
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // What would have been the last answer may be among the lost ones.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && lost => return Ok(true),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Err(Error::NoAnswer(what()));
                }
                Err(source) => return Err(Error::Io { doing: "receive from the kernel", source }),
            };
            for message in Messages::new(bytes) {
                let message = message?;
                let index = usize::try_from(message.sequence.wrapping_sub(first)).unwrap_or(usize::MAX);
                if index >= count {
                    // The answer to a request that was given up earlier.
                    continue;
                }
                let flags = message.flags;
                let answer = Answer::sort(message)?;
                lost |= matches!(answer, Answer::Overrun);
                if take(index, answer, flags)? {
                    return Ok(lost);
                }
            }
        }
    }

    fn next_sequence(&mut self) -> u32 {
        self.sequence = self.sequence.wrapping_add(1);
        self.sequence
    }
}
