//! What the sockets of one fake kernel share, what waits for each of them, and what goes wrong on demand.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use sluicegate_netlink::message::{Flags, HEADER, Message, Messages, NFNL_MSG_BATCH_BEGIN};
use sluicegate_netlink::scripted::{ack, done, error};
use sluicegate_netlink::{Error, Wait};

use crate::fake::batch::{self, Outcome, Sender, Told};
use crate::fake::dump;
use crate::fake::element;
use crate::fake::message::{Refusal, refusal};
use crate::fake::state::State;
use crate::object::TableFlags;
use crate::transaction::Transaction;

/// What a real kernel does now and then, and a test wants now; see [`Fake::inject`](super::Fake::inject).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Fault {
    /// The next transaction is refused with this error (a positive errno, such as 12, `ENOMEM`). Its first operation is blamed.
    Refuse(i32),
    /// Somebody else's transaction is applied just before the next one. One that is bound to a generation then ends as
    /// [`Error::GenerationChanged`](crate::Error::GenerationChanged); another one may find that what it is about is gone. Theirs has no rule
    /// with an index and renames no chain but by its handle: nothing is asked for it, and such a one changes nothing.
    Meanwhile(Transaction),
    /// Something changes while the next list is read (`NLM_F_DUMP_INTR`): it has to be read again, which [`read`](mod@crate::read) does.
    Interrupt,
    /// Whoever listens to events is too slow: what waits for them is lost, and they are told so
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

/// What waits for a socket.
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

    /// A socket; gives its port.
    pub(super) fn open(&mut self) -> u32 {
        self.ports += 1;
        self.sockets.insert(self.ports, Queue::default());
        self.ports
    }

    /// A socket is closed: its tables go with it, or stay without an owner.
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

    /// Lets time pass.
    pub(super) fn advance(&mut self, millis: u64) {
        let state = Arc::make_mut(&mut self.state);
        for table in &mut state.tables {
            for at in 0..table.sets.len() {
                let Some(set) = table.sets.get_mut(at).map(Arc::make_mut) else { continue };
                let gone = set.store.advance(millis);
                gone.iter().for_each(|element| element::release(table, element));
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
                let told = self.told();
                batch::apply(&mut self.state, messages, Sender { port, told })
            }
        };
        self.tell(&outcome.events, port);
        for (sequence, refusal) in outcome.answers {
            let answer = refusal.map_or_else(|| ack(sequence), |refusal| refused(sequence, refusal));
            self.answer(port, answer);
        }
    }

    /// A transaction of nobody's socket. One that is refused changes nothing, as it would be.
    fn foreign(&mut self, transaction: &Transaction) {
        let Ok(batch) = transaction.encode(crate::ApplyOptions::default()) else { return };
        let Ok(bytes) = batch.bytes() else { return };
        let messages: Vec<Message<'_>> = Messages::new(bytes).map_while(Result::ok).collect();
        let told = self.told();
        let outcome = batch::apply(&mut self.state, &messages, Sender { port: FOREIGN, told });
        self.tell(&outcome.events, FOREIGN);
    }

    fn told(&self) -> bool {
        self.sockets.values().any(|queue| queue.listens)
    }

    /// Gives the events of a commit to all who listen; its end comes in a datagram of its own. Those that the sender has asked for, it gets
    /// whether it listens or not.
    fn tell(&mut self, events: &[Told], sender: u32) {
        let mut datagrams: Vec<(bool, Vec<u8>)> = Vec::new();
        for (i, Told { message, echo }) in events.iter().enumerate() {
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
            let told = datagrams.iter().filter(|(echo, _)| queue.listens || *echo && *port == sender);
            queue.datagrams.extend(told.map(|(_, datagram)| datagram.clone()));
        }
    }

    /// Answers what is asked outside of a batch.
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

    /// Several messages of a list share a datagram, as the kernel's do.
    fn put(&mut self, port: u32, mut message: Vec<u8>) {
        address(&mut message, port);
        let queue = self.queue(port);
        match queue.datagrams.back_mut() {
            Some(last) if last.len() + message.len() <= DATAGRAM => last.extend_from_slice(&message),
            _ => queue.datagrams.push_back(message),
        }
    }

    /// An acknowledgement or a refusal has a datagram of its own.
    fn answer(&mut self, port: u32, mut message: Vec<u8>) {
        address(&mut message, port);
        self.queue(port).datagrams.push_back(message);
    }
}

/// Sets in a message's header whom it is for.
fn address(message: &mut [u8], port: u32) {
    debug_assert!(message.len() >= HEADER, "a message has a header");
    if let Some(field) = message.get_mut(12..16) {
        field.copy_from_slice(&port.to_ne_bytes());
    }
}

fn refused(sequence: u32, refusal: Refusal) -> Vec<u8> {
    let offset = refusal.offset.and_then(|offset| u32::try_from(offset).ok());
    error(sequence, refusal.code, None, offset)
}

/// Sets the flag in a message's header that says so.
fn interrupt(message: &mut [u8]) {
    debug_assert!(message.len() >= HEADER, "a message has a header");
    let flags = message.get_mut(6..8).and_then(|bytes| <&mut [u8; 2]>::try_from(bytes).ok());
    if let Some(flags) = flags {
        *flags = (u16::from_ne_bytes(*flags) | Flags::DUMP_INTR.bits()).to_ne_bytes();
    }
}

/// The kernel's datagrams are of at most so many bytes; those with events of fewer (`NLMSG_GOODSIZE`).
const DATAGRAM: usize = 32 * 1024;
const EVENTS: usize = 3776;
/// No socket has this port.
const FOREIGN: u32 = u32::MAX;
