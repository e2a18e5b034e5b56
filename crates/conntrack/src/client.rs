//! The client: sends commands over a transport.

use sluicegate_netlink::message::Message;
use sluicegate_netlink::{
    Batch, Dumping, Errno, KernelError, NetlinkFamily, Options, Socket, Transport, dump, exchange,
};

use crate::wire::STATS_GLOBAL_ENTRIES;
use crate::{
    Error, Expectation, ExpectationKey, ExpectationStatistic, Family, Filter, Flow, FlowChange, FlowKey,
    Flows, NewFlow, PerCpu, Statistic, Tuple, message,
};

/// A client of the kernel's connection tracking. Each method returns when the kernel has carried out its
/// command.
///
/// ```no_run
/// use sluicegate_conntrack::{Client, Filter, Protocol};
///
/// let mut client = Client::open()?;
/// let udp = Filter::default().protocol(Protocol::UDP);
/// for flow in client.list(&udp)? {
///     println!("{flow}"); // as `conntrack -L` prints it
/// }
/// # Ok::<(), sluicegate_conntrack::Error>(())
/// ```
#[derive(Debug)]
pub struct Client<T = Socket> {
    transport: T,
    sequence: u32,
}

/// A list of flows that the kernel keeps.
///
/// ```no_run
/// use sluicegate_conntrack::{Client, Filter, Table};
///
/// let waiting = Client::open()?.list_table(Table::Dying, &Filter::default())?; // `conntrack -L dying`
/// println!("{} flows are deleted and still in use", waiting.len());
/// # Ok::<(), sluicegate_conntrack::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Table {
    /// The tracked flows.
    #[default]
    Conntrack,
    /// The flows that are deleted but still in use. From Linux 6.1 on it is empty unless an event is waiting
    /// to be delivered.
    Dying,
    /// The flows whose first packet has not been processed completely. It is always empty from Linux 6.1 on.
    Unconfirmed,
}

/// The result of a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Deleted {
    /// The number of flows that were deleted.
    pub deleted: usize,
    /// The number of flows that did not exist any more.
    pub gone: usize,
}

impl Client {
    /// Opens a socket in the network namespace of the calling thread.
    ///
    /// # Errors
    /// [`Error::Netlink`] when the kernel has no netfilter.
    pub fn open() -> Result<Self, Error> {
        let socket = Socket::open(NetlinkFamily::NETFILTER, &Options::default());
        socket.map(Self::with_transport).map_err(Error::of("open"))
    }
}

impl<T: Transport> Client<T> {
    /// Uses a transport of the caller's: a socket, or one for tests.
    pub fn with_transport(transport: T) -> Self {
        Self { transport, sequence: 1 }
    }

    /// Returns the transport.
    pub fn into_transport(self) -> T {
        self.transport
    }

    /// Returns the flows that match the filter, in the kernel's order, which has no meaning. All flows match
    /// an empty filter.
    ///
    /// The table changes while it is read: a flow that is created or deleted meanwhile may or may not be
    /// listed.
    ///
    /// # Errors
    /// [`Error::MixedFamilies`]; [`Error::Netlink`], for which see [`Error::is_permission_denied`] and
    /// [`Error::is_unsupported`].
    pub fn list(&mut self, filter: &Filter) -> Result<Vec<Flow>, Error> {
        self.list_table(Table::Conntrack, filter)
    }

    /// Lists another table as [`list`](Self::list) does.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    pub fn list_table(&mut self, table: Table, filter: &Filter) -> Result<Vec<Flow>, Error> {
        filter.check()?;
        self.select(table, filter, |flow| filter.matches(&flow).then_some(flow))
    }

    /// Returns the flows of a table that match the filter one after the other, as the kernel sends them: for
    /// tables that are too large to be kept in memory, and to show the first ones at once.
    ///
    /// ```no_run
    /// use sluicegate_conntrack::{Client, Filter, Table};
    ///
    /// let mut client = Client::open()?;
    /// for flow in client.flows(Table::Conntrack, &Filter::default())? {
    ///     println!("{}", flow?);
    /// }
    /// # Ok::<(), sluicegate_conntrack::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`list`](Self::list); those of the kernel come from the iterator.
    pub fn flows(&mut self, table: Table, filter: &Filter) -> Result<Flows<'_, T>, Error> {
        Flows::new(self, table, filter)
    }

    /// Lists all flows of one family or both, and sets their counters to zero.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    pub fn list_and_zero(&mut self, family: Option<Family>) -> Result<Vec<Flow>, Error> {
        let filter = Filter { family, ..Filter::default() };
        let batch = self.request(|batch| message::list(batch, Table::Conntrack, true, &filter, false));
        // Never repeated: the first dump has reset the counters.
        let mut found = Vec::new();
        let report = exchange(&mut self.transport, &[&batch], |message| {
            found.push(Flow::decode(message)?);
            Ok(())
        });
        let report = report.map_err(Error::of("list"))?;
        refused("list", report.errors)?;
        if report.lost {
            return Err(Error::Netlink { command: "list", source: sluicegate_netlink::Error::Overrun });
        }
        Ok(found)
    }

    /// Returns the flow that has this tuple in either direction.
    ///
    /// # Errors
    /// [`Error::is_not_found`] when there is no such flow.
    pub fn get(&mut self, tuple: &Tuple, zone: Option<u16>) -> Result<Flow, Error> {
        let mut found = None;
        self.tell(
            "get",
            |batch| message::get(batch, tuple, zone),
            |message| {
                found = Some(Flow::decode(message)?);
                Ok(())
            },
        )?;
        found.ok_or(Error::Answer { command: "get", attribute: "CTA_TUPLE_ORIG" })
    }

    /// Returns the number of flows.
    ///
    /// # Errors
    /// [`Error::Netlink`].
    pub fn count(&mut self) -> Result<u32, Error> {
        let mut count = None;
        self.tell("count", message::count, |message| {
            let (_, attributes) = message.netfilter()?;
            let attribute = attributes.find(STATS_GLOBAL_ENTRIES)?;
            count = attribute.map(|attribute| attribute.be32()).transpose()?;
            Ok(())
        })?;
        count.ok_or(Error::Answer { command: "count", attribute: "CTA_STATS_GLOBAL_ENTRIES" })
    }

    /// Returns the statistics of flows, by processor.
    ///
    /// # Errors
    /// [`Error::Netlink`].
    pub fn statistics(&mut self) -> Result<Vec<PerCpu<Statistic>>, Error> {
        let batch = self.request(message::statistics);
        let read = |message: Message<'_>| Ok(Some(PerCpu::decode(message, Statistic)?));
        dump(&mut self.transport, &batch, read).map_err(Error::of("statistics"))
    }

    /// Returns the statistics of expectations, by processor.
    ///
    /// # Errors
    /// [`Error::Netlink`].
    pub fn expectation_statistics(&mut self) -> Result<Vec<PerCpu<ExpectationStatistic>>, Error> {
        let batch = self.request(message::expectation_statistics);
        let read = |message: Message<'_>| Ok(Some(PerCpu::decode(message, ExpectationStatistic)?));
        dump(&mut self.transport, &batch, read).map_err(Error::of("statistics"))
    }

    /// Returns the number of expectations: flows that a helper has announced.
    ///
    /// # Errors
    /// [`Error::Netlink`].
    pub fn count_expectations(&mut self) -> Result<usize, Error> {
        let batch = self.request(|batch| message::expectations(batch, None));
        let found = dump(&mut self.transport, &batch, |_| Ok(Some(())));
        found.map(|found| found.len()).map_err(Error::of("count"))
    }

    /// Returns the expectations of a family, or of both, in the kernel's order, which has no meaning.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    pub fn expectations(&mut self, family: Option<Family>) -> Result<Vec<Expectation>, Error> {
        let batch = self.request(|batch| message::expectations(batch, family));
        let read = |message: Message<'_>| Ok(Some(Expectation::decode(message)?));
        dump(&mut self.transport, &batch, read).map_err(Error::of("list"))
    }

    /// Returns the expectation that covers this tuple: a flow with it would be the expected one.
    ///
    /// # Errors
    /// [`Error::is_not_found`] when there is none.
    pub fn get_expectation(&mut self, tuple: &Tuple, zone: Option<u16>) -> Result<Expectation, Error> {
        let mut found = None;
        self.tell(
            "get",
            |batch| message::get_expectation(batch, tuple, zone),
            |message| {
                found = Some(Expectation::decode(message)?);
                Ok(())
            },
        )?;
        found.ok_or(Error::Answer { command: "get", attribute: "CTA_EXPECT_TUPLE" })
    }

    /// Deletes one expectation: that which covers the tuple of the key, if it has the id of the key.
    ///
    /// # Errors
    /// [`Error::Flow`] when the kernel refuses; [`Error::is_not_found`] when there is none.
    pub fn delete_expectation(&mut self, key: &ExpectationKey) -> Result<(), Error> {
        let command = "delete expectation";
        let deleted = self.tell(command, |batch| message::delete_expectation(batch, key), |_| Ok(()));
        deleted.map_err(|error| match error {
            Error::Netlink { command, source } => {
                let ExpectationKey { expected: original, zone, id } = *key;
                Error::Flow { command, flow: Box::new(FlowKey { original, zone, id }), more: 0, source }
            }
            error => error,
        })
    }

    /// Deletes all expectations of this network namespace.
    ///
    /// # Errors
    /// [`Error::Netlink`].
    pub fn flush_expectations(&mut self) -> Result<(), Error> {
        self.tell("flush", message::flush_expectations, |_| Ok(()))
    }

    /// Creates flows. It continues after a flow that is refused.
    ///
    /// # Errors
    /// [`Error::Flow`] with the first flow that was refused; [`Error::is_already_exists`] when there is one
    /// with one of its tuples.
    pub fn create(&mut self, flows: &[NewFlow]) -> Result<(), Error> {
        let errors = self.pipeline("create", flows, message::create)?;
        let keys = errors.into_iter().filter_map(|(n, error)| Some((flows.get(n)?.key(), error)));
        first_refusal("create", keys.collect())
    }

    /// Changes existing flows. It continues after a flow that is refused.
    ///
    /// The kernel finds a flow by its original tuple and zone and ignores the id: if the flow was deleted
    /// since it was listed, and another was created with the same tuple, that one is changed.
    ///
    /// # Errors
    /// [`Error::Flow`] with the first flow that was refused; [`Error::is_not_found`] when it does not exist
    /// any more.
    pub fn update(&mut self, changes: &[(FlowKey, FlowChange)]) -> Result<(), Error> {
        let errors = self.pipeline("update", changes, message::update)?;
        let keys = errors.into_iter().filter_map(|(n, error)| Some((changes.get(n)?.0, error)));
        first_refusal("update", keys.collect())
    }

    /// Deletes exactly these flows. It continues after a flow that is refused. A flow that does not exist any
    /// more is not an error.
    ///
    /// # Errors
    /// [`Error::Flow`] with the first flow that was refused.
    pub fn delete(&mut self, flows: &[FlowKey]) -> Result<Deleted, Error> {
        let errors = self.pipeline("delete", flows, message::delete)?;
        let count = errors.len();
        let refused = |(n, error): (usize, KernelError)| match error.errno {
            Errno::ENOENT => None,
            _ => Some((*flows.get(n)?, error)),
        };
        first_refusal("delete", errors.into_iter().filter_map(refused).collect())?;
        Ok(Deleted { deleted: flows.len().saturating_sub(count), gone: count })
    }

    /// Deletes the flows that match the filter, and returns them as they were listed.
    ///
    /// They are listed, compared with the filter here, and deleted by tuple and id, so that no other flow is
    /// deleted.
    ///
    /// # Errors
    /// [`Error::NoCriterion`] when all flows match the filter: use [`flush`](Self::flush) for that.
    /// [`Error::Flow`] when the kernel refuses.
    pub fn delete_matching(&mut self, filter: &Filter) -> Result<Vec<Flow>, Error> {
        if filter.is_empty() {
            return Err(Error::NoCriterion);
        }
        let flows = self.list(filter)?;
        let keys: Vec<_> = flows.iter().map(Flow::key).collect();
        let errors = self.pipeline("delete", &keys, message::delete)?;
        let mut gone: Vec<usize> = Vec::new();
        let mut refused = Vec::new();
        for (n, error) in errors {
            match keys.get(n) {
                Some(key) if error.errno != Errno::ENOENT => refused.push((*key, error)),
                _ => gone.push(n),
            }
        }
        first_refusal("delete", refused)?;
        let here = flows.into_iter().enumerate().filter(|(n, _)| gone.binary_search(n).is_err());
        Ok(here.map(|(_, flow)| flow).collect())
    }

    /// Deletes all flows of this network namespace, of one family or of both.
    ///
    /// Before Linux 5.3 the kernel ignores the family and deletes the flows of both.
    ///
    /// # Errors
    /// [`Error::Netlink`].
    pub fn flush(&mut self, family: Option<Family>) -> Result<(), Error> {
        self.tell("flush", |batch| message::flush(batch, family), |_| Ok(()))
    }

    /// Returns the results of `keep` for the flows of a table. The filter only reduces the number of flows
    /// that the kernel sends; `keep` decides which of them are returned.
    pub(crate) fn select<R>(
        &mut self,
        table: Table,
        filter: &Filter,
        mut keep: impl FnMut(Flow) -> Option<R>,
    ) -> Result<Vec<R>, Error> {
        let mut narrow = table == Table::Conntrack;
        loop {
            let batch = self.request(|batch| message::list(batch, table, false, filter, narrow));
            let found = dump(&mut self.transport, &batch, |message| Ok(keep(Flow::decode(message)?)));
            match found {
                // A kernel that supports filters, but not this one: compare all flows here.
                Err(error) if narrow && refuses_filter(&error) => narrow = false,
                found => return found.map_err(Error::of("list")),
            }
        }
    }

    pub(crate) fn start_list(
        &mut self,
        table: Table,
        filter: &Filter,
        narrow: bool,
    ) -> Result<Dumping, Error> {
        let batch = self.request(|batch| message::list(batch, table, false, filter, narrow));
        Dumping::start(&mut self.transport, &batch).map_err(Error::of("list"))
    }

    pub(crate) fn transport(&mut self) -> &mut T {
        &mut self.transport
    }

    fn request(&mut self, write: impl FnOnce(&mut Batch)) -> Batch {
        let mut batch = Batch::starting_at(self.sequence);
        write(&mut batch);
        self.sequence = next(batch.next_sequence());
        batch
    }

    fn tell(
        &mut self,
        command: &'static str,
        write: impl FnOnce(&mut Batch),
        on_data: impl FnMut(Message<'_>) -> Result<(), sluicegate_netlink::Error>,
    ) -> Result<(), Error> {
        let batch = self.request(write);
        let report = exchange(&mut self.transport, &[&batch], on_data).map_err(Error::of(command))?;
        refused(command, report.errors)?;
        if report.lost {
            return Err(Error::Netlink { command, source: sluicegate_netlink::Error::Overrun });
        }
        Ok(())
    }

    /// Sends a message for each item, many in one datagram, and returns the refusals with the indices of the
    /// items, in order.
    fn pipeline<I>(
        &mut self,
        command: &'static str,
        items: &[I],
        write: impl Fn(&mut Batch, &I, u64, bool),
    ) -> Result<Vec<(usize, KernelError)>, Error> {
        let mut errors = Vec::new();
        for (n, chunk) in items.chunks(PIPELINE).enumerate() {
            let batch = self.request(|batch| {
                for (i, item) in chunk.iter().enumerate() {
                    let number = u64::try_from(n * PIPELINE + i).unwrap_or(u64::MAX);
                    write(batch, item, number, i + 1 == chunk.len());
                }
            });
            let report = exchange(&mut self.transport, &[&batch], |_| Ok(())).map_err(Error::of(command))?;
            if report.lost {
                return Err(Error::Netlink { command, source: sluicegate_netlink::Error::Overrun });
            }
            for error in report.errors {
                match batch.object(&error).and_then(|number| usize::try_from(number).ok()) {
                    Some(number) => errors.push((number, error)),
                    None => return Err(Error::Netlink { command, source: error.into() }),
                }
            }
        }
        Ok(errors)
    }
}

pub(crate) fn refuses_filter(error: &sluicegate_netlink::Error) -> bool {
    matches!(error.errno(), Some(Errno::EINVAL | Errno::EOPNOTSUPP))
}

fn refused(command: &'static str, errors: Vec<KernelError>) -> Result<(), Error> {
    match errors.into_iter().next() {
        None => Ok(()),
        Some(error) => Err(Error::Netlink { command, source: error.into() }),
    }
}

fn first_refusal(command: &'static str, refused: Vec<(FlowKey, KernelError)>) -> Result<(), Error> {
    let more = refused.len().saturating_sub(1);
    match refused.into_iter().next() {
        None => Ok(()),
        Some((flow, error)) => Err(Error::Flow { command, flow: Box::new(flow), more, source: error.into() }),
    }
}

/// Returns the next sequence number, which is low enough that those of a batch do not overflow.
fn next(sequence: u32) -> u32 {
    if sequence > u32::MAX / 2 { 1 } else { sequence }
}

/// The number of messages in a datagram. A receive buffer of the default size has room for this number of
/// refusals, so that none is lost.
const PIPELINE: usize = 128;
