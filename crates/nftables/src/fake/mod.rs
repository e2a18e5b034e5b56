//! An in-memory `nf_tables`, for unit tests of programs that use this crate: no root, no kernel, no Linux.
//!
//! [`Fake`] is a [`Transport`], like a socket: it takes the very messages that are sent to the kernel, and answers as the
//! kernel does. So all that talks to the kernel runs against it unchanged: [`Transaction::apply`](crate::Transaction::apply), [`read`](mod@crate::read),
//! [`probe`](crate::probe).
//!
//! ```
//! use sluicegate_nftables::fake::Fake;
//! use sluicegate_nftables::lang::{Match, Payload, Verdict};
//! use sluicegate_nftables::{Chain, Family, Port, Table, TableId, Transaction};
//!
//! // The code under test takes any transport.
//! fn open_port(kernel: &mut dyn sluicegate_netlink::Transport, port: u16) -> Result<(), Box<dyn std::error::Error>> {
//!     let chain = TableId::new(Family::INET, "demo".parse()?).chain("open".parse()?);
//!     let mut tx = Transaction::new();
//!     tx.add(Table::new(chain.table.clone())).add(Chain::new(chain.clone()));
//!     tx.add(chain.rule().then(Match::new(Payload::TCP_DPORT, Port(port))).then(Verdict::Accept));
//!     tx.apply(kernel)?;
//!     Ok(())
//! }
//!
//! let mut kernel = Fake::new();
//! open_port(&mut kernel, 22)?;
//! assert_eq!(kernel.to_string(), "\
//! table inet demo {
//! \tchain open {
//! \t\ttcp dport 22 accept
//! \t}
//! }
//! ");
//!
//! // What the kernel refuses is refused, with the same error.
//! let mut tx = Transaction::new();
//! tx.delete(TableId::new(Family::INET, "absent".parse()?));
//! assert!(tx.apply(&mut kernel).unwrap_err().is_not_found());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it knows
//!
//! Tables, chains, rules, sets, maps, elements, stateful objects and flowtables, with the rules of Linux 6.18: what exists and what is missing, what is
//! in use and by whom, that all of a batch happens or nothing, all errors of a batch with the attribute that is to blame, handles and
//! positions, sizes, overlaps of intervals, types and lengths of elements, where jumps may lead and how deep, hooks and types of base chains,
//! registers that nobody has written, the lives of sets without a name, generations. It is held to the kernel's behaviour by random
//! transactions that both are given (`tests/fake.rs`).
//!
//! # What it does not do
//!
//! No packet ever meets its rules: counters stay (requests to reset them are refused with `EINVAL`), dynamic sets stay empty, nothing is
//! limited or logged. Time passes only by [`Fake::advance`]. There are no devices; a chain may name any, as in Linux 6.16 and newer. Every module is loaded: expressions,
//! objects, helpers and flowtables that a real kernel may lack are there. Nobody else is there: no events are sent, and a table with an
//! owner is its owner's. Limits of memory, and the lengths inside of an element that the kernel packs into 255 bytes, are not known. What depends on
//! the widths of `meta`, `ct` and similar registers is not checked, nor the data of helpers, timeouts, expectations and secmarks.
//! Elements come in the order of their keys; the kernel's order of a hash is random.

mod batch;
mod chain;
mod checks;
mod dump;
mod element;
mod expression;
mod message;
mod object;
mod rule;
mod set;
mod shown;
mod state;
mod store;
mod table;

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use sluicegate_netlink::message::{Flags, Message, Messages, NFNL_MSG_BATCH_BEGIN};
use sluicegate_netlink::scripted::{ack, done, error};
use sluicegate_netlink::{Error, Transport, Wait};

use crate::Family;
use crate::read::{self, Ruleset};
use message::Refusal;
use state::State;

/// An in-memory `nf_tables`; see [the module](self).
///
/// A clone is a kernel of its own that holds the same; it costs nothing until one of them changes.
#[derive(Debug, Clone, Default)]
pub struct Fake {
    state: Arc<State>,
    answers: VecDeque<Vec<u8>>,
    limit: Option<usize>,
}

impl Fake {
    /// One without tables.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Everything that it holds, as [`read::ruleset`] reads it.
    #[must_use]
    pub fn ruleset(&self) -> Ruleset {
        let mut copy = Self { state: self.state.clone(), ..Self::default() };
        read::ruleset(&mut copy, Family::UNSPEC, None).unwrap_or_default()
    }

    /// The generation: 1 at first, and one more after each transaction that changed something.
    #[must_use]
    pub fn generation(&self) -> u32 {
        self.state.generation
    }

    /// Lets time pass: elements whose timeout ends are gone. That is no new generation.
    pub fn advance(&mut self, time: Duration) {
        let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let state = Arc::make_mut(&mut self.state);
        for table in &mut state.tables {
            for at in 0..table.sets.len() {
                let Some(set) = table.sets.get_mut(at).map(Arc::make_mut) else { continue };
                let gone = set.store.advance(millis);
                gone.iter().for_each(|element| element::release(table, element));
            }
        }
    }

    /// Takes no datagram of more bytes, as a socket whose send buffer may not grow: larger transactions are split.
    pub fn limit_send(&mut self, bytes: usize) {
        self.limit = Some(bytes);
    }

    /// Answers what is asked outside of a batch.
    fn ask(&mut self, message: &Message<'_>) {
        let sequence = message.header.sequence;
        let all = message.header.flags.contains(Flags::DUMP);
        match dump::answer(&self.state, message) {
            Ok(messages) => {
                messages.into_iter().for_each(|message| self.queue(message));
                if all {
                    self.queue(done(sequence));
                } else if message.header.flags.contains(Flags::ACK) {
                    self.queue(ack(sequence));
                }
            }
            Err(refusal) => self.queue(refused(sequence, refusal)),
        }
    }

    /// Several messages share a datagram, as the kernel's do.
    fn queue(&mut self, message: Vec<u8>) {
        match self.answers.back_mut() {
            Some(last) if last.len() + message.len() <= DATAGRAM => last.extend_from_slice(&message),
            _ => self.answers.push_back(message),
        }
    }
}

impl Transport for Fake {
    fn send(&mut self, datagram: &[u8]) -> Result<(), Error> {
        if let Some(limit) = self.limit.filter(|limit| datagram.len() > *limit) {
            return Err(Error::TooBig { size: datagram.len(), limit });
        }
        let messages: Vec<Message<'_>> = Messages::new(datagram).map_while(Result::ok).collect();
        if messages.first().is_some_and(|first| first.header.kind == NFNL_MSG_BATCH_BEGIN) {
            for (sequence, refusal) in batch::apply(&mut self.state, &messages) {
                self.queue(refusal.map_or_else(|| ack(sequence), |refusal| refused(sequence, refusal)));
            }
        } else {
            messages.iter().for_each(|message| self.ask(message));
        }
        Ok(())
    }

    fn receive(&mut self, buffer: &mut Vec<u8>, wait: Wait) -> Result<bool, Error> {
        buffer.clear();
        match (self.answers.pop_front(), wait) {
            (Some(datagram), _) => {
                buffer.extend_from_slice(&datagram);
                Ok(true)
            }
            (None, Wait::No) => Ok(false),
            (None, Wait::Answer) => Err(Error::TimedOut(Duration::ZERO)),
        }
    }

    fn send_limit(&mut self, _size: usize) -> usize {
        self.limit.unwrap_or(usize::MAX)
    }
}

/// As `nft -s list ruleset` lists it.
impl fmt::Display for Fake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.ruleset().content().iter().try_for_each(|table| table.fmt(f))
    }
}

fn refused(sequence: u32, refusal: Refusal) -> Vec<u8> {
    let offset = refusal.offset.and_then(|offset| u32::try_from(offset).ok());
    error(sequence, refusal.code, None, offset)
}

/// The kernel's datagrams are of at most so many bytes.
const DATAGRAM: usize = 32 * 1024;
