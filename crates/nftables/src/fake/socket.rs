//! The state that the sockets of one fake kernel share, the messages queued for each, and the injected
//! faults.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use sluicegate_netlink::message::{Flags, HEADER, Message, Messages, NFNL_MSG_BATCH_BEGIN};
use sluicegate_netlink::scripted::{ack, done, error};
use sluicegate_netlink::{Errno, Error, Wait};

use crate::fake::batch::{self, Notification, Outcome, Sender};
use crate::fake::dump;
use crate::fake::element;
use crate::fake::message::{Refusal, refusal};
use crate::fake::state::State;
use crate::object::TableFlags;
use crate::transaction::Transaction;

/// A fault to inject, which a real kernel shows now and then; see [`Fake::inject`](super::Fake::inject).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Fault {
    /// The next transaction is refused with this error, reported for its first operation.
    Refuse(Errno),
    /// The transaction of another program is applied just before the next one. If the next one requires a
    /// generation, it fails with [`Error::GenerationChanged`](crate::Error::GenerationChanged); otherwise it
    /// may find that objects it refers to are gone. The injected transaction must have no rules with an
    /// index, and rename chains by handle only: no kernel is queried for it, and one that would need that
    /// changes nothing.
    Meanwhile(Transaction),
    /// The ruleset changes during the next dump (`NLM_F_DUMP_INTR`), which has to be repeated;
    /// [`read`](mod@crate::read) does that.
    Interrupt,
    /// The listeners are too slow: their queued events are lost, and they are notified of the loss
    /// ([`Event::Overrun`](crate::monitor::Event::Overrun)).
    Overrun,
}

/// A kernel and its sockets.
#[derive(Debug, Clone)]
pub(super) struct Kernel {
    pub(super) state: Arc<State>,
    sockets: BTreeMap<u32, Queue>,
    ports: u32,
    refusals: VecDeque<Fault>,
    interrupts: usize,
}

/// The messages queued for a socket.
#[derive(Debug, Clone, Default)]
struct Queue {
    datagrams: VecDeque<Vec<u8>>,
    listens: bool,
    overrun: bool,
    limit: Option<usize>,
}

impl Kernel {
    pub(super) fn new(state: Arc<State>) -> Self {
        Self { state, sockets: BTreeMap::new(), ports: 0, refusals: VecDeque::new(), interrupts: 0 }
    }

    /// Opens a socket, and returns its port.
    pub(super) fn open(&mut self) -> u32 {
        self.ports += 1;
        self.sockets.insert(self.ports, Queue::default());
        self.ports
    }

    /// Closes a socket: the tables that it owns are deleted, or stay without an owner if they persist.
    pub(super) fn close(&mut self, port: u32) {
        self.sockets.remove(&port);
        if self.state.tables.iter().all(|table| table.owner != Some(port)) {
            return;
        }
        let state = Arc::make_mut(&mut self.state);
        let stays = TableFlags::PERSIST.bits();
        state.tables.retain(|table| table.owner != Some(port) || table.flags & stays != 0);
        for table in state.tables.iter_mut().filter(|table| table.owner == Some(port)) {
            table.owner = None;
            table.flags &= !TableFlags::OWNER.bits();
        }
    }

    pub(super) fn listen(&mut self, port: u32) {
        self.queue(port).listens = true;
    }

    pub(super) fn limit(&mut self, port: u32, bytes: usize) {
        self.queue(port).limit = Some(bytes);
    }

    pub(super) fn send_limit(&self, port: u32) -> Option<usize> {
        self.sockets.get(&port)?.limit
    }

    pub(super) fn inject(&mut self, fault: Fault) {
        match fault {
            Fault::Refuse(_) | Fault::Meanwhile(_) => self.refusals.push_back(fault),
            Fault::Interrupt => self.interrupts += 1,
            Fault::Overrun => {
                for queue in self.sockets.values_mut().filter(|queue| queue.listens) {
                    queue.datagrams.clear();
                    queue.overrun = true;
                }
            }
        }
    }

    /// Advances the clock.
    pub(super) fn advance(&mut self, millis: u64) {
        let state = Arc::make_mut(&mut self.state);
        for table in &mut state.tables {
            for at in 0..table.sets.len() {
                let Some(set) = table.sets.get_mut(at).map(Arc::make_mut) else { continue };
                let expired = set.store.advance(millis);
                expired.iter().for_each(|element| element::release(table, element));
            }
        }
    }

    pub(super) fn send(&mut self, port: u32, datagram: &[u8]) -> Result<(), Error> {
        if let Some(limit) = self.send_limit(port).filter(|limit| datagram.len() > *limit) {
            return Err(Error::TooBig { size: datagram.len(), limit });
        }
        let messages: Vec<Message<'_>> = Messages::new(datagram).map_while(Result::ok).collect();
        if messages.first().is_some_and(|first| first.header.kind == NFNL_MSG_BATCH_BEGIN) {
            self.batch(port, &messages);
        } else {
            messages.iter().for_each(|message| self.ask(port, message));
        }
        Ok(())
    }

    pub(super) fn receive(&mut self, port: u32, wait: Wait) -> Result<Option<Vec<u8>>, Error> {
        let queue = self.queue(port);
        if std::mem::take(&mut queue.overrun) {
            return Err(Error::Overrun);
        }
        match (queue.datagrams.pop_front(), wait) {
            (None, Wait::Answer) => Err(Error::TimedOut(std::time::Duration::ZERO)),
            (datagram, _) => Ok(datagram),
        }
    }

    fn batch(&mut self, port: u32, messages: &[Message<'_>]) {
        let outcome = match self.refusals.pop_front() {
            Some(Fault::Refuse(code)) => {
                let blamed = messages.get(1).or(messages.first());
                let sequence = blamed.map_or(0, |message| message.header.sequence);
                Outcome::refused(sequence, refusal(code))
            }
            fault => {
                if let Some(Fault::Meanwhile(transaction)) = fault {
                    self.foreign(&transaction);
                }
                let notify = self.has_listeners();
                batch::apply(&mut self.state, messages, Sender { port, notify })
            }
        };
        self.notify(&outcome.events, port);
        for (sequence, refusal) in outcome.answers {
            let answer = refusal.map_or_else(|| ack(sequence), |refusal| refused(sequence, refusal));
            self.answer(port, answer);
        }
    }

    /// Applies a transaction of another program. A refused one changes nothing, as in the kernel.
    fn foreign(&mut self, transaction: &Transaction) {
        let Ok(batch) = transaction.encode(crate::ApplyOptions::default()) else { return };
        let Ok(bytes) = batch.bytes() else { return };
        let messages: Vec<Message<'_>> = Messages::new(bytes).map_while(Result::ok).collect();
        let notify = self.has_listeners();
        let outcome = batch::apply(&mut self.state, &messages, Sender { port: FOREIGN, notify });
        self.notify(&outcome.events, FOREIGN);
    }

    fn has_listeners(&self) -> bool {
        self.sockets.values().any(|queue| queue.listens)
    }

    /// Queues the events of a commit for all listeners; its end is a datagram of its own. The sender also
    /// gets the events that it requested, whether it listens or not.
    fn notify(&mut self, events: &[Notification], sender: u32) {
        let mut datagrams: Vec<(bool, Vec<u8>)> = Vec::new();
        for (i, Notification { message, echo }) in events.iter().enumerate() {
            match datagrams.last_mut() {
                Some((same, last))
                    if same == echo && i + 1 < events.len() && last.len() + message.len() <= EVENTS =>
                {
                    last.extend_from_slice(message);
                }
                _ => datagrams.push((*echo, message.clone())),
            }
        }
        for (port, queue) in &mut self.sockets {
            let wanted = datagrams.iter().filter(|(echo, _)| queue.listens || *echo && *port == sender);
            queue.datagrams.extend(wanted.map(|(_, datagram)| datagram.clone()));
        }
    }

    /// Answers a request outside of a batch.
    fn ask(&mut self, port: u32, message: &Message<'_>) {
        let sequence = message.header.sequence;
        let all = message.header.flags.contains(Flags::DUMP);
        let interrupted = all && self.interrupts > 0;
        self.interrupts -= usize::from(interrupted);
        match dump::answer(&mut self.state, message) {
            Ok(mut messages) => {
                messages.extend(all.then(|| done(sequence)));
                for mut message in messages {
                    if interrupted {
                        interrupt(&mut message);
                    }
                    self.put(port, message);
                }
                if !all && message.header.flags.contains(Flags::ACK) {
                    self.answer(port, ack(sequence));
                }
            }
            Err(refusal) => self.answer(port, refused(sequence, refusal)),
        }
    }

    fn queue(&mut self, port: u32) -> &mut Queue {
        self.sockets.entry(port).or_default()
    }

    /// Queues a message of a dump. As in the kernel, several of them share a datagram.
    fn put(&mut self, port: u32, mut message: Vec<u8>) {
        address(&mut message, port);
        let queue = self.queue(port);
        match queue.datagrams.back_mut() {
            Some(last) if last.len() + message.len() <= DATAGRAM => last.extend_from_slice(&message),
            _ => queue.datagrams.push_back(message),
        }
    }

    /// Queues an acknowledgement or a refusal, in a datagram of its own.
    fn answer(&mut self, port: u32, mut message: Vec<u8>) {
        address(&mut message, port);
        self.queue(port).datagrams.push_back(message);
    }
}

/// Writes the port of the receiver into the header of a message.
fn address(message: &mut [u8], port: u32) {
    debug_assert!(message.len() >= HEADER, "a message has a header");
    if let Some(field) = message.get_mut(12..16) {
        field.copy_from_slice(&port.to_ne_bytes());
    }
}

fn refused(sequence: u32, refusal: Refusal) -> Vec<u8> {
    let offset = refusal.offset.and_then(|offset| u32::try_from(offset).ok());
    error(sequence, refusal.errno, None, offset)
}

/// Sets `NLM_F_DUMP_INTR` in the header of a message.
fn interrupt(message: &mut [u8]) {
    debug_assert!(message.len() >= HEADER, "a message has a header");
    let flags = message.get_mut(6..8).and_then(|bytes| <&mut [u8; 2]>::try_from(bytes).ok());
    if let Some(flags) = flags {
        *flags = (u16::from_ne_bytes(*flags) | Flags::DUMP_INTR.bits()).to_ne_bytes();
    }
}

/// The maximum size of the kernel's datagrams; those with events are smaller (`NLMSG_GOODSIZE`).
const DATAGRAM: usize = 32 * 1024;
const EVENTS: usize = 3776;
/// A port that no socket has.
const FOREIGN: u32 = u32::MAX;
