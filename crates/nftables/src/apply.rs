//! Sending a transaction: one batch where it fits, several where the send buffer may not grow.

use std::collections::{BTreeSet, HashSet};

use sluicegate_netlink::message::Flags;
use sluicegate_netlink::{Batch, KernelError, Transport, exchange};

use crate::echo::Applied;
use crate::encode::{Encoder, SUBSYSTEM};
use crate::error::{ERESTART, Error, Failure};
use crate::monitor::Event;
use crate::object::{ElementData, HookOwner, SetId};
use crate::place::Places;
use crate::read::{self, Generation};
use crate::transaction::{Flush, HandleId, Object, Operation, Target, Transaction};

/// How a transaction is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ApplyOptions {
    /// Apply it only on this generation of the ruleset; see [`read::generation`](crate::read::generation).
    pub generation: Option<u32>,
    /// Only check it: nothing is applied, and it is never split. The kernel finds most errors, but not those it finds at commit (loops, generation).
    pub check: bool,
    /// Have the kernel say what it makes of each operation (`NLM_F_ECHO`, `nft --echo`): [`Applied::handle`], [`Applied::events`]. It
    /// costs a message of some hundred bytes for every object, rule and element.
    pub echo: bool,
}

impl Transaction {
    /// Applies it: all of it, or nothing.
    ///
    /// Where the transport's send buffer is too small and may not grow (without `CAP_NET_ADMIN` in the first user namespace), it is
    /// sent in several batches: see [`Applied::batches`]. Where not even they fit, or it is only to be checked, nothing is sent
    /// ([`TooBig`](sluicegate_netlink::Error::TooBig)).
    ///
    /// ```no_run
    /// use sluicegate_netlink::{Options, Protocol, Socket};
    /// use sluicegate_nftables::{Family, Table, TableId, Transaction};
    ///
    /// let table = TableId::new(Family::INET, "filter".parse()?);
    /// let mut transaction = Transaction::new();
    /// transaction.add(Table::new(table));
    /// let mut socket = Socket::open(Protocol::NETFILTER, &Options::default())?;
    /// let applied = transaction.apply(&mut socket)?;
    /// println!("generation {}", applied.generation);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Statement`], [`Error::Index`] and [`Error::Rename`] before anything is sent, [`Error::Rejected`] with every refused operation, [`Error::Netlink`].
    pub fn apply(&self, transport: &mut (impl Transport + ?Sized)) -> Result<Applied, Error> {
        self.apply_with(transport, ApplyOptions::default())
    }

    /// Applies it under conditions.
    ///
    /// # Errors
    /// As [`apply`](Self::apply), and [`Error::GenerationChanged`].
    pub fn apply_with(
        &self,
        transport: &mut (impl Transport + ?Sized),
        options: ApplyOptions,
    ) -> Result<Applied, Error> {
        if self.indexed().next().is_none() && self.renamed().next().is_none() {
            return self.apply_placed(transport, &mut Places::default(), options);
        }
        let mut tries = TRIES;
        loop {
            tries -= 1;
            let listed = read::generation(transport)?.id;
            let mut places = Places::find(self, transport)?;
            let generation = Some(options.generation.unwrap_or(listed));
            match self.apply_placed(transport, &mut places, ApplyOptions { generation, ..options }) {
                Err(Error::GenerationChanged { .. }) if options.generation.is_none() && tries > 0 => {}
                result => return result,
            }
        }
    }

    fn apply_placed(
        &self,
        transport: &mut (impl Transport + ?Sized),
        places: &mut Places,
        options: ApplyOptions,
    ) -> Result<Applied, Error> {
        let all = || 0..self.operations().len();
        let (mut whole, doubts) = self.batch(all(), places, options)?;
        if places.ask(&doubts, transport)? {
            whole = self.batch(all(), places, options)?.0;
        }
        let size = whole.bytes().map_err(sluicegate_netlink::Error::from)?.len();
        let limit = transport.send_limit(size);
        let mut applied = Applied::default();
        // A piece relies on those before it: what is only checked cannot be checked piece by piece.
        let pieces = size > limit && !options.check;
        let pieces = pieces.then(|| self.split(limit, places, options)).transpose()?;
        // Where one would not fit either, the others are not to be left behind: the transport refuses the whole.
        let Some(pieces) = pieces.filter(|pieces| pieces.iter().all(|piece| piece.len() <= limit)) else {
            self.send(transport, &whole, options, &mut applied)?;
            return Ok(applied);
        };
        let mut options = options;
        for piece in pieces {
            self.send(transport, &piece, options, &mut applied)?;
            // The condition was for the first; each one changes the generation.
            options.generation = None;
        }
        Ok(applied)
    }

    /// Applies it without blocking the task that waits for it (feature `tokio`). Whoever stops waiting does not stop it.
    ///
    /// For listings, and whatever else takes a transport, see [`AsyncSocket::run`](sluicegate_netlink::tokio::AsyncSocket::run).
    ///
    /// ```
    /// use sluicegate_netlink::tokio::AsyncSocket;
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

    /// The one batch that it is, made without asking a kernel. Sets that the transaction does not make are taken to hold no intervals, unless a range
    /// says so: in one that does, single keys would be more than that ([`Element::range`](crate::Element::range)), and marks, user ids and other numbers
    /// in the host's order would not be found by rules.
    ///
    /// # Errors
    /// [`Error::Statement`] for what the kernel has no expressions or states for, [`Error::Index`] for one with an index, [`Error::Rename`] for a
    /// new name without the chain's handle.
    pub fn encode(&self, options: ApplyOptions) -> Result<Batch, Error> {
        Ok(self.batch(0..self.operations().len(), &Places::default(), options)?.0)
    }

    /// The batch, and the sets of which it would have to be known whether they hold intervals.
    fn batch(
        &self,
        operations: impl IntoIterator<Item = usize>,
        places: &Places,
        options: ApplyOptions,
    ) -> Result<(Batch, BTreeSet<SetId>), Error> {
        let mut encoder = Encoder::new(self, places, options);
        for index in operations {
            encoder.operation(index)?;
        }
        let doubts = std::mem::take(&mut encoder.doubts);
        Ok((if options.check { encoder.batch } else { encoder.finish() }, doubts))
    }

    fn send(
        &self,
        transport: &mut (impl Transport + ?Sized),
        batch: &Batch,
        options: ApplyOptions,
        applied: &mut Applied,
    ) -> Result<(), Error> {
        // Every kernel answers this; before 6.10 none acknowledges the end of a batch.
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
        // Without the right to, both are refused. The question is ours, and says nothing that the batch does not.
        let of_batch = |error: &KernelError| error.sequence != last.first_sequence();
        if report.errors.iter().any(of_batch) {
            report.errors.retain(of_batch);
        }
        if let Some(expected) = options.generation
            && report.errors.iter().any(|error| error.code == ERESTART)
        {
            return Err(Error::GenerationChanged { expected });
        }
        if !report.errors.is_empty() {
            let failure = |error: KernelError| Failure::new(self, batch, error);
            let failures = report.errors.into_iter().map(failure).collect();
            // Once something is lost the kernel queues nothing more until all is read: with this answer, all errors came.
            let more = report.lost && generation.is_none();
            return Err(Error::Rejected { failures, more, applied: applied.batches });
        }
        applied.generation = match generation {
            Some(generation) => generation,
            // What it made is told first: it was applied, and the rest of what it made did not fit the receive buffer.
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
        events.into_iter().for_each(|(sequence, event)| applied.tell(batch, sequence, event));
        Ok(())
    }

    /// Batches that each fit. What nobody can reach yet comes first: tables, chains without hooks, sets, elements of data;
    /// everything that switches packets over is in the last one.
    fn split(&self, limit: usize, places: &Places, mut options: ApplyOptions) -> Result<Vec<Batch>, Error> {
        let hidden = self.hidden();
        let message = (limit / 2).min(u16::MAX.into());
        let mut batches = Vec::new();
        let mut encoder = self.encoder(message, places, options);
        for index in (0..self.operations().len()).filter(|i| hidden.contains(i)) {
            let mut position = Some(0);
            while let Some(from) = position {
                if encoder.batch.len() + message + FRAME > limit {
                    // The condition is for the first batch; each one makes a new generation.
                    options.generation = None;
                    batches.push(
                        std::mem::replace(&mut encoder, self.encoder(message, places, options)).finish(),
                    );
                }
                position = encoder.piece(index, from)?;
            }
        }
        batches.push(encoder.finish());
        options.generation = None;
        let visible = (0..self.operations().len()).filter(|i| !hidden.contains(i));
        batches.push(self.batch(visible, places, options)?.0);
        Ok(batches)
    }

    fn encoder<'t>(&'t self, message: usize, places: &'t Places, options: ApplyOptions) -> Encoder<'t> {
        let mut encoder = Encoder::new(self, places, options);
        encoder.limit_messages(message);
        encoder
    }

    /// The operations that add something which no packet can meet before another operation of the transaction leads there.
    fn hidden(&self) -> HashSet<usize> {
        let made = self.sets();
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
                // Which name is free then is not known here.
                Some(Target::Handle(handle)) => unsure.extend(handle.in_table()),
                _ => {}
            }
        }
        // Whole tables that go and come again have to do so at once.
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
                    !emptied.contains(&elements.set) && (data || made.contains_key(&elements.set))
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

/// How often the kernel is asked anew because somebody else changed them meanwhile.
const TRIES: u32 = 8;
/// Room for the end of a batch.
const FRAME: usize = 32;
/// `NFT_MSG_GETGEN`
const NFT_MSG_GETGEN: u8 = 16;

#[cfg(test)]
mod tests {
    use sluicegate_netlink::scripted::{self, Script};

    use super::*;
    use crate::{Family, Name, Table, TableId};

    #[test]
    fn a_right_that_is_missing_is_said_once() {
        let mut transaction = Transaction::new();
        transaction.add(Table::new(TableId::new(Family::IP, Name::held("t"))));
        let mut kernel = Script::new();
        // The batch has messages 1 to 3; 4 asks for the generation.
        kernel.expect_any().reply(scripted::error(1, 1, None, None));
        kernel.expect_any().reply(scripted::error(4, 1, None, None));
        let error = transaction.apply(&mut kernel).unwrap_err();
        assert!(error.is_permission_denied());
        assert_eq!(
            error.to_string(),
            "commit the batch: EPERM (CAP_NET_ADMIN is missing in the namespace of this network)"
        );
    }
}
