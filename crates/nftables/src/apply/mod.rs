//! Applies transactions: in one batch where it fits the send buffer, in several where that buffer may not
//! grow.

pub(crate) mod auto_merge;
pub(crate) mod echo;
pub(crate) mod encode;
mod opening;
pub(crate) mod resolve;

use std::collections::HashSet;

use sluicegate_netlink::message::Flags;
use sluicegate_netlink::{Batch, Errno, KernelError, Transport, exchange};

pub use crate::apply::echo::Applied;
use crate::apply::encode::Encoder;
use crate::apply::resolve::Resolved;
use crate::error::{Error, Failure};
use crate::object::{ElementData, HookOwner, SetId};
use crate::read::event::Event;
use crate::read::{self, Generation};
use crate::sort;
use crate::transaction::{Flush, HandleId, Object, Operation, Target, Transaction};
use crate::wire::message::{NFT_MSG_GETGEN, SUBSYSTEM};

/// The options with which a transaction is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ApplyOptions {
    /// Applies the transaction only to this generation of the ruleset; see
    /// [`read::generation`](crate::read::generation).
    pub generation: Option<u32>,
    /// Only checks the transaction: nothing is applied, and the batch is never split. The kernel then reports
    /// most errors, but not those that it detects when it commits (loops of jumps, a changed generation).
    pub check: bool,
    /// Requests an event from the kernel for each change (`NLM_F_ECHO`, `nft --echo`), for
    /// [`Applied::handle`] and [`Applied::events`]. This costs a message of some hundred bytes for every
    /// object, rule and element.
    pub echo: bool,
}

impl ApplyOptions {
    /// Applies the transaction only to this generation of the ruleset; see
    /// [`read::generation`](crate::read::generation).
    #[must_use]
    pub fn generation(mut self, generation: u32) -> Self {
        self.generation = Some(generation);
        self
    }

    /// Only checks the transaction ([`check`](Self::check)).
    #[must_use]
    pub fn check(mut self) -> Self {
        self.check = true;
        self
    }

    /// Requests an event from the kernel for each change ([`echo`](Self::echo)).
    #[must_use]
    pub fn echo(mut self) -> Self {
        self.echo = true;
        self
    }
}

impl Transaction {
    /// Applies the transaction: all of it, or nothing.
    ///
    /// If the transport's send buffer is too small and may not grow (without `CAP_NET_ADMIN` in the initial
    /// user namespace), the transaction is sent in several batches; see [`Applied::batches`]. If even those
    /// do not fit, or the transaction is only to be checked, nothing is sent
    /// ([`TooBig`](sluicegate_netlink::Error::TooBig)).
    ///
    /// ```no_run
    /// use sluicegate_nftables::netlink::{Options, NetlinkFamily, Socket};
    /// use sluicegate_nftables::{Family, Table, TableId, Transaction};
    ///
    /// let table = TableId::new(Family::INET, "filter".parse()?);
    /// let mut transaction = Transaction::new();
    /// transaction.add(Table::new(table));
    /// let mut socket = Socket::open(NetlinkFamily::NETFILTER, &Options::default())?;
    /// let applied = transaction.apply(&mut socket)?;
    /// println!("generation {}", applied.generation);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Statement`], [`Error::Index`] and [`Error::Rename`] before anything is sent,
    /// [`Error::Rejected`] with every refused operation, [`Error::Netlink`].
    pub fn apply(&self, transport: &mut (impl Transport + ?Sized)) -> Result<Applied, Error> {
        self.apply_with(transport, ApplyOptions::default())
    }

    /// Applies the transaction with the given options.
    ///
    /// # Errors
    /// As [`apply`](Self::apply), and [`Error::GenerationChanged`].
    pub fn apply_with(
        &self,
        transport: &mut (impl Transport + ?Sized),
        options: ApplyOptions,
    ) -> Result<Applied, Error> {
        let candidates = auto_merge::candidates(self);
        let mut resolved = Resolved::default();
        let merging = resolved.query_merging(self, &candidates, transport)?;
        if merging.is_empty() && self.indexed().next().is_none() && self.renamed().next().is_none() {
            return self.apply_placed(transport, &mut resolved, options);
        }
        let mut tries = TRIES;
        loop {
            tries -= 1;
            let listed = read::generation(transport)?.id;
            // Asks again, because everything that is encoded has to be of this generation.
            let mut resolved = Resolved::default();
            let merging = resolved.query_merging(self, &candidates, transport)?;
            resolved.merge(self, &merging, transport)?;
            resolved.resolve(self, transport)?;
            let generation = Some(options.generation.unwrap_or(listed));
            match self.apply_placed(transport, &mut resolved, ApplyOptions { generation, ..options }) {
                Err(Error::GenerationChanged { .. }) if options.generation.is_none() && tries > 0 => {}
                result => return result,
            }
        }
    }

    fn apply_placed(
        &self,
        transport: &mut (impl Transport + ?Sized),
        resolved: &mut Resolved,
        options: ApplyOptions,
    ) -> Result<Applied, Error> {
        let all = || 0..self.operations().len();
        let (mut whole, sets_to_query) = self.batch(all(), resolved, options)?;
        if resolved.query_intervals(&sets_to_query, transport)? {
            whole = self.batch(all(), resolved, options)?.0;
        }
        let size = whole.bytes().map_err(sluicegate_netlink::Error::from)?.len();
        let limit = transport.send_limit(size);
        let mut applied = Applied::default();
        // The kernel discards a batch that is only checked, so a later batch would not find what an earlier
        // one adds: such a transaction cannot be split.
        let pieces = size > limit && !options.check;
        let pieces = pieces.then(|| self.split(limit, resolved, options)).transpose()?;
        // If a single batch is still too large, none must be applied without it. Sending the transaction
        // whole makes the transport return the error.
        let Some(pieces) = pieces.filter(|pieces| pieces.iter().all(|piece| piece.len() <= limit)) else {
            self.send(transport, &whole, options, &mut applied)?;
            return Ok(applied);
        };
        let mut options = options;
        for piece in pieces {
            self.send(transport, &piece, options, &mut applied)?;
            // Only the first batch can depend on the generation: each batch that is applied changes it.
            options.generation = None;
        }
        Ok(applied)
    }

    /// Applies the transaction without blocking the task that awaits it (feature `tokio`). Dropping the
    /// future does not cancel the transaction.
    ///
    /// To read listings, or to call any other function that takes a transport, see
    /// [`AsyncSocket::run`](sluicegate_netlink::tokio::AsyncSocket::run).
    ///
    /// ```
    /// use sluicegate_nftables::netlink::tokio::AsyncSocket;
    /// use sluicegate_nftables::{Applied, ApplyOptions, Error, Family, Table, TableId, Transaction, read};
    ///
    /// async fn make_table(socket: &AsyncSocket, id: TableId) -> Result<Applied, Error> {
    ///     let mut transaction = Transaction::new();
    ///     transaction.add(Table::new(id));
    ///     let applied = transaction.apply_async(socket, ApplyOptions::default()).await?;
    ///     let tables = socket.run(|socket| read::tables(socket, Family::UNSPEC)).await?;
    ///     println!("{} tables", tables.len());
    ///     Ok(applied)
    /// }
    /// ```
    ///
    /// # Errors
    /// As [`apply_with`](Self::apply_with).
    #[cfg(feature = "tokio")]
    pub async fn apply_async(
        self,
        socket: &sluicegate_netlink::tokio::AsyncSocket,
        options: ApplyOptions,
    ) -> Result<Applied, Error> {
        socket.run(move |socket| self.apply_with(socket, options)).await
    }

    /// Returns the transaction as one batch, without asking a kernel.
    ///
    /// For sets that the transaction does not create, the batch assumes that they have no intervals, unless a
    /// range among the elements shows otherwise. If such a set does have intervals, a single key would be
    /// stored as a range up to the next key ([`Element::range`](crate::Element::range)), and rules would not
    /// find marks, user ids and other numbers in host byte order.
    ///
    /// # Errors
    /// [`Error::Statement`] for what the kernel has no expressions for, [`Error::Index`] for a rule with an
    /// index, [`Error::Rename`] for a rename without the chain's handle.
    pub fn encode(&self, options: ApplyOptions) -> Result<Batch, Error> {
        Ok(self.batch(0..self.operations().len(), &Resolved::merging_alone(self), options)?.0)
    }

    /// Returns the batch, and the existing sets whose flags decide how their elements are encoded: with
    /// intervals or without.
    fn batch(
        &self,
        operations: impl IntoIterator<Item = usize>,
        resolved: &Resolved,
        options: ApplyOptions,
    ) -> Result<(Batch, Vec<SetId>), Error> {
        let mut encoder = Encoder::new(self, resolved, options);
        for index in operations {
            encoder.operation(index)?;
        }
        let mut sets_to_query = std::mem::take(&mut encoder.sets_to_query);
        sort::by(&mut sets_to_query, Ord::cmp);
        sets_to_query.dedup();
        Ok((if options.check { encoder.batch } else { encoder.finish() }, sets_to_query))
    }

    fn send(
        &self,
        transport: &mut (impl Transport + ?Sized),
        batch: &Batch,
        options: ApplyOptions,
        applied: &mut Applied,
    ) -> Result<(), Error> {
        // Before Linux 6.10 the kernel does not acknowledge the end of a batch, so a request for the
        // generation follows it: every kernel answers that after the batch.
        let mut last = Batch::starting_at(batch.next_sequence());
        drop(last.netfilter(SUBSYSTEM, NFT_MSG_GETGEN, Flags::ACK, 0, 0));
        let (mut generation, mut events) = (None, Vec::new());
        let mut report = exchange(transport, &[batch, &last], |message| {
            if message.header.sequence == last.first_sequence() {
                let (_, attributes) = message.netfilter()?;
                generation = Some(Generation::decode(attributes)?.id);
            } else if options.echo {
                events.extend(Event::decode(message)?.map(|event| (message.header.sequence, event)));
            }
            Ok(())
        })?;
        // Without the capability, the kernel refuses both the batch and the request for the generation. The
        // second error adds nothing to the first.
        let of_batch = |error: &KernelError| error.sequence != last.first_sequence();
        if report.errors.iter().any(of_batch) {
            report.errors.retain(of_batch);
        }
        if let Some(expected) = options.generation
            && report.errors.iter().any(|error| error.errno == Errno::ERESTART)
        {
            return Err(Error::GenerationChanged { expected });
        }
        if !report.errors.is_empty() {
            let failure = |error: KernelError| Failure::new(self, batch, error);
            let failures = report.errors.into_iter().map(failure).collect();
            // After an overrun the kernel queues nothing until user space has read everything. If the answer
            // to the last request arrived, no error was lost.
            let more = report.lost && generation.is_none();
            return Err(Error::Rejected { failures, more, applied: applied.batches });
        }
        applied.generation = match generation {
            Some(generation) => generation,
            // Echo messages come before the answers. If some arrived, the batch was applied, and the rest of
            // the messages did not fit the receive buffer.
            None if report.lost && !events.is_empty() => {
                applied.lost = true;
                read::generation(transport)?.id
            }
            None if report.lost => return Err(sluicegate_netlink::Error::Overrun.into()),
            None => {
                let missing = sluicegate_netlink::DecodeError::Missing { what: "NFTA_GEN_ID" };
                return Err(sluicegate_netlink::Error::from(missing).into());
            }
        };
        applied.batches += 1;
        events.into_iter().for_each(|(sequence, event)| applied.record(batch, sequence, event));
        Ok(())
    }

    /// Splits the transaction into batches that each fit the send buffer. The first batches add what no
    /// packet reaches yet: tables, chains without hooks, sets, elements of sets and data maps. The last batch
    /// has everything that changes which rules packets meet.
    fn split(
        &self,
        limit: usize,
        resolved: &Resolved,
        mut options: ApplyOptions,
    ) -> Result<Vec<Batch>, Error> {
        let hidden = self.hidden();
        let message = (limit / 2).min(u16::MAX.into());
        let mut batches = Vec::new();
        let mut encoder = self.encoder(message, resolved, options);
        for index in (0..self.operations().len()).filter(|i| hidden.contains(i)) {
            let mut position = Some(0);
            while let Some(from) = position {
                if encoder.batch.len() + message + FRAME > limit {
                    // Only the first batch can depend on the generation: each batch that is applied changes
                    // it.
                    options.generation = None;
                    batches.push(
                        std::mem::replace(&mut encoder, self.encoder(message, resolved, options)).finish(),
                    );
                }
                position = encoder.piece(index, from)?;
            }
        }
        batches.push(encoder.finish());
        options.generation = None;
        let visible = (0..self.operations().len()).filter(|i| !hidden.contains(i));
        batches.push(self.batch(visible, resolved, options)?.0);
        Ok(batches)
    }

    fn encoder<'t>(&'t self, message: usize, resolved: &'t Resolved, options: ApplyOptions) -> Encoder<'t> {
        let mut encoder = Encoder::new(self, resolved, options);
        encoder.limit_messages(message);
        encoder
    }

    /// Returns the operations that only add what no packet reaches before another operation of the
    /// transaction refers to it.
    fn hidden(&self) -> HashSet<usize> {
        let created = self.sets();
        let (mut emptied, mut deleted) = (HashSet::new(), HashSet::new());
        let (mut objects, mut flowtables, mut unsure) = (HashSet::new(), HashSet::new(), HashSet::new());
        for operation in self.operations() {
            match operation {
                Operation::Flush(Flush::Set(set)) => {
                    emptied.insert(set);
                }
                Operation::Rename(rename) => {
                    unsure.insert(&rename.chain.table);
                }
                _ => {}
            }
            match operation.deleted() {
                Some(Target::Elements(elements)) => {
                    emptied.insert(&elements.set);
                }
                Some(Target::Set(set)) => {
                    emptied.insert(set);
                }
                Some(Target::Chain(chain)) => {
                    deleted.insert(chain);
                }
                Some(Target::Stateful(object)) => {
                    objects.insert(object);
                }
                Some(Target::Flowtable(flowtable)) => {
                    flowtables.insert(flowtable);
                }
                Some(Target::Devices(devices)) => {
                    if let HookOwner::Flowtable(flowtable) = &devices.hook {
                        flowtables.insert(flowtable);
                    }
                }
                // A handle does not tell the name, so any name of the table may be free afterwards.
                Some(Target::Handle(handle)) => unsure.extend(handle.in_table()),
                _ => {}
            }
        }
        // A table that is deleted and added again has to be replaced in one batch: no packet must pass
        // without its rules.
        let replaced = self.operations().iter().any(|operation| {
            matches!(operation, Operation::Flush(Flush::Ruleset(_)))
                || matches!(operation.deleted(), Some(Target::Table(_) | Target::Handle(HandleId::Table(..))))
        });
        let is_hidden = |operation: &Operation| match operation {
            Operation::Add(object) | Operation::Create(object) => match object {
                Object::Table(_) => true,
                object if unsure.contains(object.in_table()) => false,
                Object::Set(set) => !emptied.contains(&set.id),
                Object::Chain(chain) => chain.base.is_none() && !deleted.contains(&chain.id),
                Object::Elements(elements) => {
                    let data = elements.list.iter().all(|e| matches!(e.data(), ElementData::Value(_)));
                    !emptied.contains(&elements.set) && (data || created.contains_key(&elements.set))
                }
                Object::Stateful(object) => !objects.contains(&object.id),
                Object::Flowtable(flowtable) => !flowtables.contains(&flowtable.id),
                Object::Rule(_) => false,
            },
            _ => false,
        };
        let all = self.operations().iter().enumerate();
        all.filter(|(_, operation)| !replaced && is_hidden(operation)).map(|(i, _)| i).collect()
    }
}

/// The number of attempts to apply a transaction when another program keeps changing the ruleset.
const TRIES: u32 = 8;
/// Bytes reserved for the message that ends a batch.
const FRAME: usize = 32;

#[cfg(test)]
mod tests {
    use sluicegate_netlink::scripted::{self, Script};

    use super::*;
    use crate::{Family, Name, Table, TableId};

    #[test]
    fn a_right_that_is_missing_is_said_once() {
        let mut transaction = Transaction::new();
        transaction.add(Table::new(TableId::new(Family::IP, Name::from_kernel("t"))));
        let mut kernel = Script::new();
        // The batch has messages 1 to 3; 4 asks for the generation.
        kernel.expect_any().reply(scripted::error(1, Errno::EPERM, None, None));
        kernel.expect_any().reply(scripted::error(4, Errno::EPERM, None, None));
        let error = transaction.apply(&mut kernel).unwrap_err();
        assert!(error.is_permission_denied());
        assert_eq!(
            error.to_string(),
            "commit the batch: EPERM (CAP_NET_ADMIN is missing in the user namespace that owns this network \
             namespace)"
        );
    }
}
