//! The result of a transaction that was applied, as the kernel reported it.

use sluicegate_netlink::{Batch, Errno, KernelError};

use crate::read::event::{Change, Event, RuleChange};
use crate::wire::tag::untag;

/// The result of a transaction that was applied.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Applied {
    /// The generation of the ruleset afterwards. With [`ApplyOptions::echo`](crate::ApplyOptions::echo) it is
    /// the one that the transaction created; without, it may be that of another program that committed in
    /// between.
    pub generation: u32,
    /// The number of batches that were sent: more than one if the send buffer was too small. Each was then
    /// applied by itself; the last one contains what makes packets reach the new rules.
    pub batches: usize,
    /// With [`ApplyOptions::echo`](crate::ApplyOptions::echo), what was added and deleted, in the order of
    /// the operations (batch by batch), including the anonymous sets and chains of rules; one event for each
    /// element. Empty when the transaction was only checked.
    pub events: Vec<Event>,
    /// Whether some of these events did not fit the receive buffer
    /// ([`Options::receive_buffer`](sluicegate_netlink::Options::receive_buffer)): the transaction is
    /// applied, but the last events are missing.
    pub lost: bool,
    /// The index of each operation that added an object, in ascending order, and the object's handle.
    handles: Vec<(usize, u64)>,
}

impl Applied {
    /// Returns the handle of the rule, chain, set, object, flowtable or table that an operation added;
    /// `operation` is its index in the transaction, from 0. A rule is deleted or replaced by its handle.
    ///
    /// `None` without [`ApplyOptions::echo`](crate::ApplyOptions::echo), for elements, which have no handles,
    /// and if the kernel sends no event because the object existed already.
    ///
    /// ```
    /// use sluicegate_nftables::fake::Fake;
    /// use sluicegate_nftables::lang::Verdict;
    /// use sluicegate_nftables::{ApplyOptions, Chain, Family, RuleId, Table, TableId, Transaction};
    ///
    /// # let mut kernel = Fake::new();
    /// let chain = TableId::new(Family::INET, "filter".parse()?).chain("input".parse()?);
    /// let mut tx = Transaction::new();
    /// tx.add(Table::new(chain.table.clone())).add(Chain::new(chain.clone()));
    /// tx.add(chain.rule().then(Verdict::Accept));
    /// let applied = tx.apply_with(&mut kernel, ApplyOptions::default().echo())?;
    /// let handle = applied.handle(2).expect("the kernel tells of a rule");
    ///
    /// let mut tx = Transaction::new();
    /// tx.delete(RuleId { chain, handle });
    /// tx.apply(&mut kernel)?;
    /// assert!(kernel.ruleset().rules.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn handle(&self, operation: usize) -> Option<u64> {
        let at = self.handles.binary_search_by_key(&operation, |(operation, _)| *operation).ok()?;
        self.handles.get(at).map(|(_, handle)| *handle)
    }

    /// Records an event that a message of a batch caused.
    pub(crate) fn record(&mut self, batch: &Batch, sequence: u32, event: Event) {
        if let Event::Generation(generation) = event {
            self.generation = generation.id;
            return;
        }
        let tag = batch.object(&KernelError::new(sequence, Errno(0)));
        if let Some(((operation, _), handle)) = tag.and_then(untag).zip(event.new_handle()) {
            // The events of a rule's anonymous sets and chains come first; the last event is the rule's.
            match self.handles.binary_search_by_key(&operation, |(operation, _)| *operation) {
                Ok(at) => self.handles.get_mut(at).into_iter().for_each(|(_, earlier)| *earlier = handle),
                Err(at) => self.handles.insert(at, (operation, handle)),
            }
        }
        self.events.push(event);
    }
}

impl Event {
    /// Returns the handle of the object that the event adds.
    fn new_handle(&self) -> Option<u64> {
        match self {
            Self::Table(Change::New | Change::Created, table) => Some(table.handle),
            Self::Chain(Change::New | Change::Created, chain) => Some(chain.handle),
            Self::Rule(RuleChange::New(_) | RuleChange::Inserted(_), rule) => Some(rule.handle),
            Self::Set(Change::New | Change::Created, set) => Some(set.handle),
            Self::Object(Change::New | Change::Created, object) => Some(object.handle),
            Self::Flowtable(Change::New | Change::Created, flowtable) => Some(flowtable.handle),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use sluicegate_netlink::attr;
    use sluicegate_netlink::message::{Flags, Header, encode};
    use sluicegate_netlink::scripted::{self, Script};

    use super::*;
    use crate::{ApplyOptions, Error, Family, Name, Table, TableId, Transaction};

    /// Returns a message as the kernel sends it: a new table with a handle (command 0), or a new generation
    /// (command 15).
    fn event_message(command: u8, sequence: u32, number: u32) -> Vec<u8> {
        let payload = attr::encode(|w| {
            w.raw(&[Family::IP.0, 0, 0, 0]);
            if command == 15 {
                return w.put_be32(1, number);
            }
            w.put_str(1, "t");
            w.put_be64(4, number.into());
        });
        let kind = u16::from_be_bytes([10, command]);
        encode(Header { kind, flags: Flags::empty(), sequence, port: 7 }, &payload.expect("it is short"))
    }

    fn two_tables() -> Transaction {
        let mut tx = Transaction::new();
        for name in ["t", "u"] {
            tx.add(Table::new(TableId::new(Family::IP, Name::from_kernel(name))));
        }
        tx
    }

    fn apply(kernel: &mut Script) -> Result<Applied, Error> {
        two_tables().apply_with(kernel, ApplyOptions::default().echo())
    }

    // Messages 1 and 4 begin and end the batch, 2 and 3 add the tables, 5 requests the generation.

    #[test]
    fn events_are_led_back_to_their_operations_and_give_the_generation() {
        let mut kernel = Script::new();
        kernel
            .expect_any()
            .reply([event_message(0, 2, 20), event_message(0, 3, 21)].concat())
            .reply(event_message(15, 2, 4));
        kernel.expect_any().reply(event_message(15, 5, 6)).reply(scripted::ack(5));
        let applied = apply(&mut kernel).unwrap();
        assert_eq!([0, 1, 2].map(|n| applied.handle(n)), [Some(20), Some(21), None]);
        // Another program committed twice before the request for the generation was answered.
        assert_eq!((applied.generation, applied.events.len(), applied.lost), (4, 2, false));
        kernel.finish();
    }

    #[test]
    fn what_did_not_fit_the_receive_buffer_is_said_to_be_lost() {
        let mut kernel = Script::new();
        kernel.expect_any().overrun().reply(event_message(0, 2, 20));
        kernel.expect_any();
        kernel.expect_any().reply(event_message(15, 1, 4)).reply(scripted::ack(1));
        let applied = apply(&mut kernel).unwrap();
        assert_eq!([0, 1].map(|n| applied.handle(n)), [Some(20), None]);
        assert_eq!((applied.generation, applied.events.len(), applied.lost), (4, 1, true));
        kernel.finish();
    }

    #[test]
    fn a_loss_after_the_answer_lost_nothing_of_it() {
        let mut kernel = Script::new();
        kernel.expect_any().overrun().reply(scripted::error(2, Errno::EPERM, None, None));
        kernel.expect_any().reply(event_message(15, 5, 6)).reply(scripted::ack(5));
        assert!(matches!(apply(&mut kernel), Err(Error::Rejected { more: false, .. })));
        let mut kernel = Script::new();
        kernel.expect_any().overrun();
        kernel.expect_any().reply(event_message(15, 5, 6)).reply(scripted::ack(5));
        assert_eq!(apply(&mut kernel).unwrap().generation, 6);
    }

    #[test]
    fn where_nothing_came_nothing_is_claimed() {
        let mut kernel = Script::new();
        kernel.expect_any().overrun();
        kernel.expect_any();
        let overrun = Error::Netlink(sluicegate_netlink::Error::Overrun);
        assert_eq!(apply(&mut kernel).unwrap_err().to_string(), overrun.to_string());
        let mut kernel = Script::new();
        kernel.expect_any().overrun().reply(scripted::error(2, Errno::EPERM, None, None));
        kernel.expect_any();
        assert!(matches!(apply(&mut kernel), Err(Error::Rejected { more: true, .. })));
    }
}
