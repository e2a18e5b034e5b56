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
//! # Two programs, and one that listens
//!
//! [`Fake::open`] gives another socket to the same kernel, as another program would have it. One that has [joined](Fake::join) the group
//! of events is told of every commit: so a monitor can be tested, and a program that meets others. Each socket may be on a thread of its
//! own. A table with [`TableFlags::OWNER`](crate::TableFlags::OWNER) belongs to the socket that made it: others are refused with `EPERM`,
//! and it goes when that socket is dropped, unless it has [`PERSIST`](crate::TableFlags::PERSIST).
//!
//! ```
//! use sluicegate_nftables::fake::Fake;
//! use sluicegate_nftables::monitor::{Change, Event, GROUP, Monitor};
//! use sluicegate_nftables::{Family, Table, TableFlags, TableId, Transaction};
//!
//! let mut ours = Fake::new();
//! let mut watching = ours.open();
//! watching.join(GROUP)?;
//! let mut monitor = Monitor::new(watching);
//!
//! let table = TableId::new(Family::INET, "ours".parse()?);
//! let mut tx = Transaction::new();
//! tx.add(Table::new(table.clone()).flags(TableFlags::OWNER));
//! tx.apply(&mut ours)?;
//! assert!(matches!(&monitor.events()?[..], [Event::Table(Change::New, made)] if made.owner == Some(ours.port())));
//! assert!(matches!(&monitor.events()?[..], [Event::Generation(_)]));
//!
//! let mut others = ours.open();
//! let mut tx = Transaction::new();
//! tx.delete(table);
//! assert_eq!(tx.apply(&mut others).unwrap_err().failures()[0].error.code, 1); // EPERM
//! drop(ours);
//! assert!(others.ruleset().tables.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What goes wrong on a real machine
//!
//! [`Fake::inject`] makes the next transaction, list or event go wrong as it does on a real machine now and then. So a reconciler's
//! worst days are a unit test:
//!
//! ```
//! use sluicegate_netlink::Transport;
//! use sluicegate_nftables::fake::{Fake, Fault};
//! use sluicegate_nftables::{ApplyOptions, Chain, Error, Family, Flush, Table, TableId, Transaction, read};
//!
//! // The code under test: makes what is missing, on the ruleset that it has read and no other.
//! fn reconcile(kernel: &mut dyn Transport, table: &TableId) -> Result<(), Error> {
//!     loop {
//!         let held = read::ruleset(kernel, table.family, Some(&table.name))?;
//!         let chain = table.chain("input".parse().unwrap());
//!         if held.chains.iter().any(|held| held.name == chain.name) {
//!             return Ok(());
//!         }
//!         let mut tx = Transaction::new();
//!         tx.add(Table::new(table.clone())).add(Chain::new(chain));
//!         match tx.apply_with(kernel, ApplyOptions { generation: Some(held.generation), ..Default::default() }) {
//!             Err(error) if error.is_generation_changed() => {}
//!             result => return result.map(drop),
//!         }
//!     }
//! }
//!
//! let mut kernel = Fake::new();
//! let table = TableId::new(Family::INET, "demo".parse()?);
//!
//! // Somebody changes the ruleset between our reading and our writing, and a list has to be read twice.
//! let mut theirs = Transaction::new();
//! theirs.add(Table::new(table.clone()));
//! kernel.inject(Fault::Meanwhile(theirs));
//! kernel.inject(Fault::Interrupt);
//! reconcile(&mut kernel, &table)?;
//! assert_eq!(kernel.ruleset().chains.len(), 1);
//!
//! // Somebody removes everything, and then the kernel has no memory left.
//! let mut theirs = Transaction::new();
//! theirs.flush(Flush::Ruleset(Family::UNSPEC));
//! theirs.apply(&mut kernel.open())?;
//! kernel.inject(Fault::Refuse(12));
//! assert_eq!(reconcile(&mut kernel, &table).unwrap_err().failures()[0].error.code, 12);
//! assert!(kernel.ruleset().tables.is_empty());
//! reconcile(&mut kernel, &table)?;
//! assert_eq!(kernel.to_string(), "table inet demo {\n\tchain input {\n\t}\n}\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it knows
//!
//! Tables, chains, rules, sets, maps, elements, stateful objects and flowtables, with the rules of Linux 6.18: what exists and what is missing, what is
//! in use and by whom, that all of a batch happens or nothing, all errors of a batch with the attribute that is to blame, handles and
//! positions, sizes, overlaps of intervals, types and lengths of elements, where jumps may lead and how deep, hooks and types of base chains,
//! what each expression demands of itself, of the family and of the hook, registers that nobody has written, the lives of sets without a name, generations, owners, events. It is held to the kernel's behaviour by random
//! transactions of two programs that both are given (`tests/fake`): what comes of each, all that is held after it, and every event are
//! equal; by every kind of expression, right and wrong, in every place that a chain can have; and, as to flowtables, by cases one by one.
//!
//! # What it does not do
//!
//! No packet ever meets its rules: nothing counts but what was given to begin with, dynamic sets stay empty, nothing is
//! limited or logged. Time passes only by [`Fake::advance`]; elements that carry `ct count` stay, which the kernel removes by and by.
//! There are no devices; a chain may name any, as in Linux 6.16 and newer. Every module is loaded: expressions,
//! objects, helpers and flowtables that a real kernel may lack are there. Limits of memory, and
//! the lengths inside of an element that the kernel packs into 255 bytes, are not known. Any security context will do for a secmark, which in a
//! kernel is a matter of its security modules; and what `match` and `target` say to the modules of xtables is not checked, nor whether a device
//! can do what is offloaded to it. How a kernel keeps the elements of a set has no name here (`read::Set::backend`).
//! What is registered at hooks ([`read::hooks`]) it cannot tell, as a kernel that is built without that: most of it is none of nftables'.
//! Elements come in the order of their keys; the kernel's order of a hash is random.

mod batch;
mod carried;
mod chain;
mod checks;
mod complete;
mod conntrack;
mod demand;
mod device;
mod dump;
mod element;
mod element_attrs;
mod event;
mod expression;
mod flowtable;
mod message;
mod object;
mod offload;
mod overlap;
mod pending;
mod register;
mod reset;
mod rule;
mod set;
mod shape;
mod shown;
mod socket;
mod state;
mod store;
mod table;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sluicegate_netlink::{Error, Transport, Wait};

use crate::Family;
use crate::monitor;
use crate::read::{self, Ruleset};
pub use socket::Fault;
use socket::Kernel;

/// A socket to an in-memory `nf_tables`; see [the module](self).
///
/// [`Fake::open`] gives another socket to the same kernel. A clone is a socket to a kernel of its own that holds the same; it costs
/// nothing until one of them changes.
#[derive(Debug)]
pub struct Fake {
    kernel: Arc<Mutex<Kernel>>,
    port: u32,
}

impl Fake {
    /// A kernel without tables, and a socket to it.
    #[must_use]
    pub fn new() -> Self {
        Self::with(Kernel::new(Arc::default()))
    }

    fn with(mut kernel: Kernel) -> Self {
        let port = kernel.open();
        Self { kernel: Arc::new(Mutex::new(kernel)), port }
    }

    /// Another socket to the same kernel: another program's, or a monitor's. It may be used on another thread.
    #[must_use]
    pub fn open(&self) -> Self {
        let port = self.kernel().open();
        Self { kernel: Arc::clone(&self.kernel), port }
    }

    /// Makes it get the events of all commits from now on, as a socket that has joined a group; there is only [`monitor::GROUP`].
    /// Nothing ever waits: where no event is left, [`Monitor::events`](monitor::Monitor::events) is empty at once.
    ///
    /// # Errors
    /// For another group.
    pub fn join(&mut self, group: u32) -> Result<(), Error> {
        if group != monitor::GROUP {
            let source = std::io::Error::from_raw_os_error(message::EINVAL);
            return Err(Error::Io { operation: "NETLINK_ADD_MEMBERSHIP", source });
        }
        self.kernel().listen(self.port);
        Ok(())
    }

    /// Makes something go wrong, once, for whichever socket comes to it first. Several of a kind come one after the other.
    pub fn inject(&self, fault: Fault) {
        self.kernel().inject(fault);
    }

    /// Everything that the kernel holds, as [`read::ruleset`] reads it.
    ///
    /// # Panics
    /// When that cannot be read, which would be a mistake of this crate: a test is not to take it for an empty ruleset.
    #[must_use]
    pub fn ruleset(&self) -> Ruleset {
        let mut reader = Self::with(Kernel::new(Arc::clone(&self.kernel().state)));
        read::ruleset(&mut reader, Family::UNSPEC, None).expect("what the fake holds can be read")
    }

    /// The generation: 1 at first, and one more after each transaction that changed something.
    #[must_use]
    pub fn generation(&self) -> u32 {
        self.kernel().state.generation
    }

    /// Its port, by which the kernel knows the owner of a table.
    #[must_use]
    pub fn port(&self) -> u32 {
        self.port
    }

    /// Lets time pass: elements whose timeout ends are gone. That is no new generation, and no event.
    pub fn advance(&mut self, time: Duration) {
        self.kernel().advance(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
    }

    /// Takes no datagram of more bytes, as a socket whose send buffer may not grow: larger transactions are split.
    pub fn limit_send(&mut self, bytes: usize) {
        self.kernel().limit(self.port, bytes);
    }

    /// A panic of another thread leaves nothing half done: states are replaced whole.
    fn kernel(&self) -> MutexGuard<'_, Kernel> {
        self.kernel.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Fake {
    fn default() -> Self {
        Self::new()
    }
}

/// A socket to a kernel of its own; what was injected, and waits, is there as well.
impl Clone for Fake {
    fn clone(&self) -> Self {
        Self { kernel: Arc::new(Mutex::new(self.kernel().clone())), port: self.port }
    }
}

/// Closes the socket. A table that belongs to it goes too, unless it persists.
impl Drop for Fake {
    fn drop(&mut self) {
        self.kernel().close(self.port);
    }
}

impl Transport for Fake {
    fn send(&mut self, datagram: &[u8]) -> Result<(), Error> {
        self.kernel().send(self.port, datagram)
    }

    fn receive(&mut self, buffer: &mut Vec<u8>, wait: Wait) -> Result<bool, Error> {
        buffer.clear();
        let datagram = self.kernel().receive(self.port, wait)?;
        buffer.extend_from_slice(datagram.as_deref().unwrap_or_default());
        Ok(datagram.is_some())
    }

    fn send_limit(&mut self, _size: usize) -> usize {
        self.kernel().send_limit(self.port).unwrap_or(usize::MAX)
    }

    fn port(&self) -> Option<u32> {
        Some(self.port)
    }
}

/// As `nft -s list ruleset` lists it.
impl fmt::Display for Fake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.ruleset().content().iter().try_for_each(|table| table.fmt(f))
    }
}
