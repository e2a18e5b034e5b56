//! An in-memory `nf_tables` for unit tests of programs that use this crate: it needs no root, no kernel and
//! no Linux.
//!
//! [`Fake`] is a [`Transport`], like a socket: it accepts the messages that are sent to the kernel, and
//! answers as the kernel does. Whatever talks to the kernel runs against it unchanged:
//! [`Transaction::apply`](crate::Transaction::apply), [`read`](mod@crate::read), [`probe`](crate::probe).
//!
//! ```
//! use sluicegate_nftables::fake::Fake;
//! use sluicegate_nftables::lang::{Match, Payload, Verdict};
//! use sluicegate_nftables::{Chain, Family, Port, Table, TableId, Transaction};
//!
//! // The code under test takes any transport.
//! fn open_port(
//!     kernel: &mut dyn sluicegate_netlink::Transport,
//!     port: u16,
//! ) -> Result<(), Box<dyn std::error::Error>> {
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
//! // An operation that the kernel refuses is refused with the same error.
//! let mut tx = Transaction::new();
//! tx.delete(TableId::new(Family::INET, "absent".parse()?));
//! assert!(tx.apply(&mut kernel).unwrap_err().is_not_found());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Several sockets and events
//!
//! [`Fake::open`] opens another socket to the same kernel, as another program would have it. A socket that
//! has [joined](Fake::join) the group of events receives those of every commit, so monitors can be tested,
//! and programs that compete with others. Each socket may be used on its own thread. A table with
//! [`TableFlags::OWNER`](crate::TableFlags::OWNER) belongs to the socket that created it: others are refused
//! with `EPERM`, and it is deleted when that socket is dropped, unless it has
//! [`PERSIST`](crate::TableFlags::PERSIST).
//!
//! ```
//! use sluicegate_nftables::fake::Fake;
//! use sluicegate_nftables::monitor::{Change, Event, GROUP, Monitor};
//! use sluicegate_nftables::{Errno, Family, Table, TableFlags, TableId, Transaction};
//!
//! let mut ours = Fake::new();
//! let mut watching = ours.open();
//! watching.join(GROUP)?;
//! let mut monitor = Monitor::with_transport(watching);
//!
//! let table = TableId::new(Family::INET, "ours".parse()?);
//! let mut tx = Transaction::new();
//! tx.add(Table::new(table.clone()).flags(TableFlags::OWNER));
//! tx.apply(&mut ours)?;
//! let events = monitor.events()?;
//! let [Event::Table(Change::New, table_event)] = &events[..] else { panic!("{events:?}") };
//! assert_eq!(table_event.owner, Some(ours.port()));
//! assert!(matches!(&monitor.events()?[..], [Event::Generation(_)]));
//!
//! let mut others = ours.open();
//! let mut tx = Transaction::new();
//! tx.delete(table);
//! assert_eq!(tx.apply(&mut others).unwrap_err().failures()[0].error.errno, Errno::EPERM);
//! drop(ours);
//! assert!(others.ruleset().tables.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Faults
//!
//! [`Fake::inject`] makes the next transaction, dump or event fail as it occasionally does on a real machine,
//! so that a unit test can cover how a reconciler recovers:
//!
//! ```
//! use sluicegate_nftables::netlink::Transport;
//! use sluicegate_nftables::fake::{Fake, Fault};
//! use sluicegate_nftables::{
//!     ApplyOptions, Chain, Errno, Error, Family, Flush, Table, TableId, Transaction, read,
//! };
//!
//! // The code under test: adds what is missing, but only to the ruleset that it has read.
//! fn reconcile(kernel: &mut dyn Transport, table: &TableId) -> Result<(), Error> {
//!     loop {
//!         let found = read::ruleset(kernel, table)?;
//!         let chain = table.chain("input".parse().unwrap());
//!         if found.chains.iter().any(|existing| existing.name == chain.name) {
//!             return Ok(());
//!         }
//!         let mut tx = Transaction::new();
//!         tx.add(Table::new(table.clone())).add(Chain::new(chain));
//!         let options = ApplyOptions::default().generation(found.generation);
//!         match tx.apply_with(kernel, options) {
//!             Err(error) if error.is_generation_changed() => {}
//!             result => return result.map(drop),
//!         }
//!     }
//! }
//!
//! let mut kernel = Fake::new();
//! let table = TableId::new(Family::INET, "demo".parse()?);
//!
//! // Another program changes the ruleset between our read and our write, and a dump has to be repeated.
//! let mut theirs = Transaction::new();
//! theirs.add(Table::new(table.clone()));
//! kernel.inject(Fault::Meanwhile(theirs));
//! kernel.inject(Fault::Interrupt);
//! reconcile(&mut kernel, &table)?;
//! assert_eq!(kernel.ruleset().chains.len(), 1);
//!
//! // Another program removes everything, and then the kernel runs out of memory.
//! let mut theirs = Transaction::new();
//! theirs.flush(Flush::Ruleset(Family::UNSPEC));
//! theirs.apply(&mut kernel.open())?;
//! kernel.inject(Fault::Refuse(Errno::ENOMEM));
//! assert_eq!(reconcile(&mut kernel, &table).unwrap_err().failures()[0].error.errno, Errno::ENOMEM);
//! assert!(kernel.ruleset().tables.is_empty());
//! reconcile(&mut kernel, &table)?;
//! assert_eq!(kernel.to_string(), "table inet demo {\n\tchain input {\n\t}\n}\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it implements
//!
//! Tables, chains, rules, sets, maps, elements, stateful objects and flowtables, with the behaviour of Linux
//! 6.18: which objects exist and which are in use, that a batch is applied as a whole or not at all, all
//! errors of a batch with the attribute at fault, handles and positions, sizes, overlaps of intervals, types
//! and lengths of elements, the targets and depth of jumps, hooks and types of base chains, the constraints
//! of each expression on its attributes, the family and the hook, uninitialized registers, the lifetime of
//! anonymous sets, generations, owners, events.
//!
//! It is compared with the kernel (`tests/it/fake`): both get random transactions of two programs, and the
//! result of each, the ruleset after it and every event have to be equal. Every kind of expression, valid and
//! invalid, is compared at every hook and in every type of chain. Flowtables are compared by individual test
//! cases.
//!
//! # How it works
//!
//! Nothing in this crate knows whether it talks to the fake or to a kernel: the fake decodes the messages, so
//! the encoders are tested along with it. It is always compiled, without a feature: it has no dependencies,
//! programs that do not use it do not link it, and tests need no flag.
//!
//! A batch is applied to a copy of the state, which shares chains and sets until they change. If the batch is
//! refused, the copy is dropped; what remains is what remains in the kernel too: handles are not reused, and
//! sets keep the size that they got because rules add elements. Objects in a table refer to each other by
//! handle, never by name, so that renaming needs no update. `fake/overlap.rs` knows the kernel's set
//! backends, because which elements overlap depends on them.
//!
//! # What it does not do
//!
//! No packets pass its rules: counters keep their initial values, dynamic sets stay empty, nothing is limited
//! or logged. Time passes only by [`Fake::advance`]; elements with `ct count`, which the kernel
//! garbage-collects, stay. There are no devices; a chain may name any, as in Linux 6.16 and newer.
//! Expressions, objects, helpers and flowtables that a kernel may lack are always available, as if all
//! modules were loaded.
//!
//! It does not check memory limits, the lengths inside an element that the kernel packs into 255 bytes,
//! security contexts of secmarks (the kernel's security modules do that), the data of xtables modules
//! (`match` and `target`), or whether a device can offload a rule. It does not report the backend of a set
//! (`read::Set::backend`) or the functions registered at hooks ([`read::hooks`]), like a kernel that is built
//! without that: most of them do not belong to nftables. Elements are listed in the order of their keys; the
//! order of a kernel's hash table is random.

mod batch;
mod chain;
mod checks;
mod conntrack;
mod device;
mod dump;
mod element;
mod element_attrs;
mod element_exprs;
mod encode;
mod event;
mod expression;
mod flowtable;
mod message;
mod object;
mod offload;
mod overlap;
mod pending;
mod reset;
mod rule;
mod set;
mod shape;
mod socket;
mod state;
mod store;
mod table;
mod validate;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sluicegate_netlink::{Error, Transport, Wait};

use crate::Family;
use crate::read::{self, Ruleset};
pub use socket::Fault;
use socket::Kernel;

/// A socket to an in-memory `nf_tables`; see [the module](self).
///
/// [`Fake::open`] opens another socket to the same kernel. A clone is a socket to a separate kernel with the
/// same ruleset; it takes no memory until one of them changes.
#[derive(Debug)]
pub struct Fake {
    kernel: Arc<Mutex<Kernel>>,
    port: u32,
}

impl Fake {
    /// Creates a kernel without tables, and a socket to it.
    #[must_use]
    pub fn new() -> Self {
        Self::with(Kernel::new(Arc::default()))
    }

    fn with(mut kernel: Kernel) -> Self {
        let port = kernel.open();
        Self { kernel: Arc::new(Mutex::new(kernel)), port }
    }

    /// Opens another socket to the same kernel, for another program or a monitor. It may be used on another
    /// thread.
    #[must_use]
    pub fn open(&self) -> Self {
        let port = self.kernel().open();
        Self { kernel: Arc::clone(&self.kernel), port }
    }

    /// Joins a multicast group, so that the socket receives the events of all later commits; the only group
    /// is [`read::GROUP`]. Receiving never blocks: without events,
    /// [`Monitor::events`](crate::monitor::Monitor::events) is empty.
    ///
    /// # Errors
    /// If the group is another one.
    pub fn join(&mut self, group: u32) -> Result<(), Error> {
        if group != read::GROUP {
            let source = std::io::Error::from(sluicegate_netlink::Errno::EINVAL);
            return Err(Error::Io { operation: "NETLINK_ADD_MEMBERSHIP", source });
        }
        self.kernel().listen(self.port);
        Ok(())
    }

    /// Injects a fault. It happens once, to the first socket that it applies to. Several faults of the same
    /// kind happen one after the other.
    pub fn inject(&self, fault: Fault) {
        self.kernel().inject(fault);
    }

    /// Returns the whole ruleset, as [`read::ruleset`] does.
    ///
    /// # Panics
    /// If the ruleset cannot be read, which is a bug of this crate: a test must not mistake that for an empty
    /// ruleset.
    #[must_use]
    pub fn ruleset(&self) -> Ruleset {
        let mut reader = Self::with(Kernel::new(Arc::clone(&self.kernel().state)));
        read::ruleset(&mut reader, Family::UNSPEC).expect("the ruleset of the fake can be read")
    }

    /// Returns the generation of the ruleset: 1 at first, incremented by each transaction that changes
    /// something.
    #[must_use]
    pub fn generation(&self) -> u32 {
        self.kernel().state.generation
    }

    /// Returns the port of the socket, by which the kernel identifies the owner of a table.
    #[must_use]
    pub fn port(&self) -> u32 {
        self.port
    }

    /// Advances the clock: elements whose timeout ends are removed. This creates no new generation and no
    /// event.
    pub fn advance(&mut self, time: Duration) {
        self.kernel().advance(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
    }

    /// Limits the size of a datagram, as for a socket whose send buffer may not grow: larger transactions are
    /// split.
    pub fn limit_send(&mut self, bytes: usize) {
        self.kernel().limit(self.port, bytes);
    }

    /// Locks the state of the kernel. A panic of another thread leaves it consistent: the state is replaced
    /// as a whole.
    fn kernel(&self) -> MutexGuard<'_, Kernel> {
        self.kernel.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Fake {
    fn default() -> Self {
        Self::new()
    }
}

/// Creates a socket to a separate kernel; its pending faults are copied as well.
impl Clone for Fake {
    fn clone(&self) -> Self {
        Self { kernel: Arc::new(Mutex::new(self.kernel().clone())), port: self.port }
    }
}

/// Closes the socket. Tables that it owns are deleted, unless they persist.
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

/// Formats the ruleset as `nft -s list ruleset` does.
impl fmt::Display for Fake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.ruleset().content().iter().try_for_each(|table| table.fmt(f))
    }
}
