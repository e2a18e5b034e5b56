//! The client: sends commands and requests for objects over a transport.

use std::collections::HashSet;
use std::hash::Hash;

use sluicegate_netlink::message::{Flags, Message};
use sluicegate_netlink::reply::Conversation;
use sluicegate_netlink::{
    Batch, Errno, Error as NetlinkError, KernelError, MOST_OVERRUNS, NetlinkFamily, Options, Report, Socket,
    Transport, Wait, discard, generic,
};

use crate::command::Command;
use crate::daemon::{Daemon, Info, Timeouts};
use crate::destination::Destination;
use crate::diff::{Listing, Table, diff};
use crate::error::{DecodeError, Error, Operation, Problem, Refusal};
use crate::service::{Service, ServiceId};
use crate::wire::message::{Query, attributes, encode_command, encode_query, nest};
use crate::wire::{FAMILY_NAME, config, daemon, destination, service, top};

/// A connection to IPVS.
///
/// ```no_run
/// use sluicegate_ipvs::Client;
///
/// for listing in Client::open()?.list(|_| true)? {
///     println!("{}: {} destinations", listing.service.id, listing.destinations.len());
/// }
/// # Ok::<(), sluicegate_ipvs::Error>(())
/// ```
#[derive(Debug)]
pub struct Client<T = Socket> {
    transport: T,
    /// The number of the family in this kernel.
    family: u16,
    /// The requests of one datagram; the memory is reused.
    batch: Batch,
    /// The answers of one datagram; the memory is reused.
    buffer: Vec<u8>,
    /// Whether the last conversation failed before its end, so that answers to it may be queued.
    is_unfinished: bool,
}

impl Client<Socket> {
    /// Opens a socket to the IPVS of the calling thread's network namespace.
    ///
    /// A kernel that may load modules loads `ip_vs` if necessary.
    ///
    /// # Errors
    /// [`Error::Absent`] when the kernel has no IPVS; [`Error::Netlink`] when the socket cannot be opened.
    pub fn open() -> Result<Self, Error> {
        let socket = Socket::open(NetlinkFamily::GENERIC, &Options::default());
        Self::with_transport(socket.map_err(netlink("open a netlink socket"))?)
    }
}

impl<T: Transport> Client<T> {
    /// The number of messages in a datagram. Each may be refused, and a receive buffer of the default size
    /// has room for this number of refusals.
    const PIPELINE: usize = 128;
    /// The number of attempts at a listing before [`Error::Interrupted`].
    const ATTEMPTS: u32 = 5;

    /// Uses a transport of the caller's, which it asks for the number of the family IPVS.
    ///
    /// # Errors
    /// [`Error::Absent`] if the kernel has no such family.
    pub fn with_transport(mut transport: T) -> Result<Self, Error> {
        let family = generic::family(&mut transport, FAMILY_NAME).map_err(|error| match error.errno() {
            Some(Errno::ENOENT) => Error::Absent,
            _ => netlink("ask for the generic-netlink family IPVS")(error),
        })?;
        // The request for the family had sequence number 1.
        Ok(Self { transport, family, batch: Batch::starting_at(2), buffer: Vec::new(), is_unfinished: false })
    }

    /// Returns the transport, for tests that examine what was sent.
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

    /// Carries out commands, many in one datagram. Each succeeds or fails alone: those after a refused one
    /// are carried out as well.
    ///
    /// # Errors
    /// [`Error::Invalid`] before anything is sent, when one of them cannot work; [`Error::SomeRefused`] with
    /// the refused commands.
    pub fn run_all(&mut self, commands: &[Command]) -> Result<(), Error> {
        commands.iter().try_for_each(Command::check)?;
        let (mut failed, mut more) = (Vec::new(), false);
        for (number, part) in commands.chunks(Self::PIPELINE).enumerate() {
            let place = number * Self::PIPELINE;
            more |= self.run_part(place, part, &mut failed)?;
        }
        if failed.is_empty() && !more { Ok(()) } else { Err(Error::SomeRefused { failed, more }) }
    }

    /// Checks whether unanswered commands succeeded.
    ///
    /// The kernel answers all commands but those that end with `EINTR` (`netlink_rcv_skb` skips the
    /// acknowledgement), and one command does so although it succeeded: stopping a daemon whose thread has
    /// not run yet. The daemon is stopped then.
    fn check_unanswered(&mut self, part: &[Command]) -> Result<(), Error> {
        let last = part.last();
        match last {
            Some(Command::StopDaemon(role)) if self.daemons()?.iter().all(|daemon| daemon.role != *role) => {
                Ok(())
            }
            _ => Err(Error::NoAnswer(last.map_or_else(String::new, Command::summary))),
        }
    }

    /// Sends some commands in one datagram. The kernel answers each refusal, and acknowledges the last
    /// command. Returns true if answers were lost.
    fn run_part(&mut self, place: usize, part: &[Command], failed: &mut Vec<Refusal>) -> Result<bool, Error> {
        self.restart_batch();
        for (index, command) in part.iter().enumerate() {
            let flags = if index + 1 == part.len() { Flags::ACK } else { Flags::empty() };
            encode_command(&mut self.batch, self.family, flags, command, index as u64);
        }
        let (report, answered) = self.exchange(false, &mut |_| {})?;
        for error in report.errors {
            let index = self.batch.object(&error).and_then(|index| usize::try_from(index).ok());
            let Some((index, command)) = index.and_then(|index| Some((index, part.get(index)?))) else {
                continue;
            };
            let operation = Operation::Command { index: place + index, command: Box::new(*command) };
            failed.push(refusal(operation, error));
        }
        if !answered && !report.lost {
            self.check_unanswered(part)?;
        }
        // The last answer may be among the lost ones.
        Ok(report.lost)
    }

    /// Returns all services, in the order of the kernel.
    ///
    /// # Errors
    /// [`Error::Interrupted`] when the table changes during each attempt.
    pub fn services(&mut self) -> Result<Vec<Service>, Error> {
        let decode = |message: &Message<'_>, family| service::decode(nest(message, family, top::SERVICE)?);
        self.dump(&Query::Services, decode, |service| service.id)
    }

    /// Returns one service.
    ///
    /// # Errors
    /// [`Error::Refused`], with [`Error::is_not_found`], when it does not exist.
    pub fn service(&mut self, id: &ServiceId) -> Result<Service, Error> {
        let decode = |message: &Message<'_>, family| service::decode(nest(message, family, top::SERVICE)?);
        self.get(&Query::Service(*id), decode)
    }

    /// Returns the destinations of a service, in the order of the kernel.
    ///
    /// # Errors
    /// [`Error::Refused`], with [`Error::is_not_found`], when there is no such service: the kernel itself
    /// would answer with an empty list. [`Error::Interrupted`] when the table changes during each attempt.
    pub fn destinations(&mut self, service: &ServiceId) -> Result<Vec<Destination>, Error> {
        let destinations = self.destinations_or_none(service)?;
        if destinations.is_empty() {
            self.service(service)?;
        }
        Ok(destinations)
    }

    fn destinations_or_none(&mut self, service: &ServiceId) -> Result<Vec<Destination>, Error> {
        let decode = |message: &Message<'_>, family| {
            destination::decode(nest(message, family, top::DEST)?, service.family())
        };
        self.dump(&Query::Destinations(*service), decode, |destination| destination.id)
    }

    /// Returns the services for which `filter` returns true, with their destinations, in the order of the
    /// kernel.
    ///
    /// A service that is deleted meanwhile may be listed without destinations.
    ///
    /// # Errors
    /// [`Error::Interrupted`] when the table changes during each attempt.
    pub fn list(&mut self, mut filter: impl FnMut(&ServiceId) -> bool) -> Result<Vec<Listing>, Error> {
        let mut services = self.services()?;
        services.retain(|service| filter(&service.id));
        let with_destinations = |service: Service| {
            let destinations = self.destinations_or_none(&service.id)?;
            Ok(Listing { service, destinations })
        };
        services.into_iter().map(with_destinations).collect()
    }

    /// Makes the services for which `filter` returns true equal those of `desired`, and returns the commands
    /// that it sent.
    ///
    /// It reads the table once, and sends only the differences: first additions and changes, then deletions,
    /// so that a service is never without its destinations. Services for which `filter` returns false are not
    /// changed; they belong to other programs.
    ///
    /// Destinations that are no longer wanted lose their connections at once; with [`Drain`](crate::Drain)
    /// these can end first.
    ///
    /// # Errors
    /// [`Error::SomeRefused`] when the kernel refuses some commands, as when another program changes the same
    /// services at the same time. Call it again then.
    pub fn sync(
        &mut self,
        desired: &Table,
        filter: impl FnMut(&ServiceId) -> bool,
    ) -> Result<Vec<Command>, Error> {
        let actual = self.list(filter)?.into_iter().collect();
        let commands = diff(desired, &actual);
        self.run_all(&commands)?;
        Ok(commands)
    }

    /// Returns the running sync daemons: none, one, or one of each role.
    ///
    /// # Errors
    /// [`Error::Refused`] without `CAP_NET_ADMIN`.
    pub fn daemons(&mut self) -> Result<Vec<Daemon>, Error> {
        let decode = |message: &Message<'_>, family| daemon::decode(nest(message, family, top::DAEMON)?);
        self.dump(&Query::Daemons, decode, |daemon| daemon.role)
    }

    /// Returns the timeouts of connections, in seconds.
    ///
    /// # Errors
    /// [`Error::Refused`] without `CAP_NET_ADMIN`.
    pub fn timeouts(&mut self) -> Result<Timeouts, Error> {
        let decode = |message: &Message<'_>, family| config::decode_timeouts(attributes(message, family)?);
        self.get(&Query::Timeouts, decode)
    }

    /// Returns the version of IPVS and the size of its connection table.
    ///
    /// # Errors
    /// [`Error::Refused`] without `CAP_NET_ADMIN`.
    pub fn info(&mut self) -> Result<Info, Error> {
        let decode = |message: &Message<'_>, family| config::decode_info(attributes(message, family)?);
        self.get(&Query::Info, decode)
    }

    /// Requests a complete dump. The kernel continues a dump by counting items, so that a change meanwhile
    /// skips or repeats one. It then sets `NLM_F_DUMP_INTR`, or an item appears twice, and the dump is
    /// repeated.
    fn dump<I, K: Eq + Hash>(
        &mut self,
        query: &Query,
        decode: impl Fn(&Message<'_>, u16) -> Result<I, Problem>,
        key: impl Fn(&I) -> K,
    ) -> Result<Vec<I>, Error> {
        for _ in 0..Self::ATTEMPTS {
            let (mut items, mut seen, mut repeated) = (Vec::new(), HashSet::new(), false);
            let whole = self.ask(query, &decode, &mut |item| {
                repeated |= !seen.insert(key(&item));
                items.push(item);
            })?;
            if whole && !repeated {
                return Ok(items);
            }
        }
        Err(Error::Interrupted { objects: query.describe(), attempts: Self::ATTEMPTS })
    }

    /// Requests one object.
    fn get<I>(
        &mut self,
        query: &Query,
        decode: impl Fn(&Message<'_>, u16) -> Result<I, Problem>,
    ) -> Result<I, Error> {
        let mut found = None;
        self.ask(query, &decode, &mut |item| found = Some(item))?;
        found.ok_or_else(|| Error::NoAnswer(query.describe()))
    }

    /// Sends one request for objects, and passes them to `take`. Returns false if the answer is incomplete.
    ///
    /// A dump is read to its end even if an item cannot be decoded: the kernel would otherwise refuse the
    /// next dump.
    fn ask<I>(
        &mut self,
        query: &Query,
        decode: &impl Fn(&Message<'_>, u16) -> Result<I, Problem>,
        take: &mut dyn FnMut(I),
    ) -> Result<bool, Error> {
        self.restart_batch();
        let family = self.family;
        encode_query(&mut self.batch, family, query);
        let (mut malformed, mut any) = (None, false);
        let (report, answered) = self.exchange(!query.is_dump(), &mut |message| {
            any = true;
            match decode(&message, family) {
                Ok(item) => take(item),
                Err(problem) => drop(malformed.get_or_insert(problem)),
            }
        })?;
        let mut torn = report.interrupted || report.lost;
        for error in report.errors {
            if query.is_dump() && error.errno == Errno::EINTR {
                torn = true;
            } else {
                let operation = Operation::Query(format!("list {}", query.describe()));
                return Err(Error::Refused(refusal(operation, error)));
            }
        }
        if let Some(problem) = malformed {
            return Err(DecodeError { object: query.object(), problem }.into());
        }
        if !answered && !torn && (query.is_dump() || !any) {
            return Err(Error::NoAnswer(format!("list {}", query.describe())));
        }
        Ok(!torn)
    }

    /// Sends the batch and reads the answers until its last message is answered; with `one`, until the first
    /// data. Data goes to `on_data`. Returns the report, and whether that end was reached.
    ///
    /// It does not wait: the kernel has processed the request when `send` returns, and processes a dump while
    /// it is read.
    fn exchange(&mut self, one: bool, on_data: &mut dyn FnMut(Message<'_>)) -> Result<(Report, bool), Error> {
        if self.is_unfinished {
            discard(&mut self.transport, &mut self.buffer);
        }
        self.is_unfinished = true;
        let last = self.batch.next_sequence() - 1;
        let mut talk = Conversation::new(self.batch.first_sequence(), last);
        talk.answers_to(self.transport.port());
        let bytes = self.batch.bytes().map_err(NetlinkError::from).map_err(netlink("encode"))?;
        self.transport.send(bytes).map_err(netlink("send to the kernel"))?;
        let (mut finished, mut overruns) = (false, 0);
        while !finished && overruns < MOST_OVERRUNS {
            match self.transport.receive(&mut self.buffer, Wait::No) {
                Ok(true) => overruns = 0,
                Ok(false) => break,
                Err(NetlinkError::Overrun) => {
                    overruns += 1;
                    talk.lost();
                    continue;
                }
                Err(error) => return Err(netlink("receive from the kernel")(error)),
            }
            let mut data = false;
            talk.datagram(&self.buffer, |message| {
                data = true;
                on_data(message);
                Ok(())
            })
            .map_err(netlink("receive from the kernel"))?;
            finished = talk.is_finished() || (one && data);
        }
        self.is_unfinished = !finished;
        Ok((talk.into_report(), finished))
    }

    /// Empties the batch. Sequence numbers continue, so that a late answer to an earlier request is not
    /// mistaken for one to this.
    fn restart_batch(&mut self) {
        let next = self.batch.next_sequence();
        self.batch.restart(if next > SEQUENCE_MAX { 1 } else { next });
    }
}

fn netlink(operation: &'static str) -> impl Fn(NetlinkError) -> Error {
    move |source| Error::Netlink { operation, source }
}

fn refusal(operation: Operation, error: KernelError) -> Refusal {
    Refusal { operation, errno: error.errno, message: error.message }
}

/// The sequence number after which they start again at 1.
const SEQUENCE_MAX: u32 = u32::MAX / 2;
