//! Applies a batch: every message is tried on a copy of the state, all refusals are collected, and the copy
//! replaces the state only if there are none.

use std::sync::Arc;

use sluicegate_netlink::Errno;
use sluicegate_netlink::message::{
    Flags, Header, Message, NFNL_BATCH_GENID, NFNL_MSG_BATCH_BEGIN, NFNL_MSG_BATCH_END,
};

use crate::fake::dump::PROCESS;
use crate::fake::event::{Cause, Change, Event, Subject};
use crate::fake::message::{Attrs, Done, Refusal, Request, refusal, refuse};
use crate::fake::pending::{Checks, Deferred, Pending, Step};
use crate::fake::state::{Chain, State, Table};
use crate::fake::{chain, checks, element, event, flowtable, object, rule, set, table};
use crate::wire::message::*;

/// A transaction in progress.
pub(super) struct Work {
    pub(super) state: State,
    /// The number of changes so far; a commit without changes creates no new generation.
    pub(super) changes: usize,
    /// The numbers that messages assigned to sets and chains of a table, and to rules of a chain, each with
    /// the table or chain and the handle.
    pub(super) set_ids: Vec<(u64, u32, u64)>,
    pub(super) chain_ids: Vec<(u64, u32, u64)>,
    pub(super) rule_ids: Vec<(u64, u32, u64)>,
    /// If the chains of a table that the transaction creates are checked.
    pub(super) checks_of_new: Checks,
    /// Deleted tables, each with the number of handles that it had assigned.
    pub(super) deleted: Vec<(u64, u64)>,
    /// Sets, each with its table, that got a size because a rule adds elements.
    pub(super) sized: Vec<(u64, u64)>,
    /// Whether the transaction requests something that no device supports, which the kernel finds out when it
    /// calls the drivers.
    pub(super) offload_fails: bool,
    /// Whether a socket listens to events.
    pub(super) notify: bool,
    /// The steps of the commit, each with its table and the sequence number and flags of its message.
    steps: Vec<(u64, u32, Flags, Step)>,
    /// Deleted tables, for the events of the commit.
    deleted_tables: Vec<Table>,
}

/// The sender of a batch, and whether any socket listens to events.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sender {
    pub(super) port: u32,
    pub(super) notify: bool,
}

/// The result of a batch.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) answers: Vec<Answer>,
    /// The events for listeners, and for the sender if it requested them (`NLM_F_ECHO`).
    pub(super) events: Vec<Notification>,
}

/// An event of a commit.
#[derive(Debug)]
pub(super) struct Notification {
    pub(super) message: Vec<u8>,
    /// Whether the message that caused it requested an echo.
    pub(super) echo: bool,
}

/// The answer to a message of a batch: its sequence number and, unless it is an acknowledgement, the refusal.
pub(super) type Answer = (u32, Option<Refusal>);

/// Applies a batch, or only checks it if it lacks the end message.
pub(super) fn apply(state: &mut Arc<State>, messages: &[Message<'_>], sender: Sender) -> Outcome {
    let Some((begin, messages)) = messages.split_first() else { return Outcome::default() };
    let start = begin.header.sequence;
    match generation(begin) {
        Err(refusal) => return Outcome::refused(start, refusal),
        Ok(Some(wanted)) if wanted != 0 && wanted != state.generation => {
            return Outcome::refused(start, refusal(Errno::ERESTART));
        }
        Ok(_) => {}
    }
    let echo = messages.iter().any(|message| message.header.flags.contains(Flags::ECHO));
    let sender = Sender { notify: sender.notify || echo, ..sender };
    let (mut work, mut answers, end) = Work::run(State::clone(state), messages, sender, Checks::None);
    if !failed(&answers)
        && let Err((table, refusal)) = work.check()
    {
        // To find the message at fault, the kernel repeats the transaction with a check after each message.
        keep_side_effects(state, &work);
        let mut retried = State::clone(state);
        retried.tables.iter_mut().filter(|t| t.handle == table).for_each(|t| t.checks = Checks::AtOnce);
        (work, answers, _) = Work::run(retried, messages, sender, Checks::AtOnce);
        if !failed(&answers) {
            answers.push((start, Some(refusal)));
        }
    }
    let Some(end) = end.filter(|_| !failed(&answers)) else {
        keep_side_effects(state, &work);
        return Outcome { answers, events: Vec::new() };
    };
    // The kernel reports errors that it finds only at the commit for the first message.
    let first = messages.first().unwrap_or(end);
    if work.has_unbound_objects() {
        keep_side_effects(state, &work);
        return Outcome::refused(first.header.sequence, refusal(Errno::EINVAL));
    }
    if work.offload_fails {
        keep_side_effects(state, &work);
        return Outcome::refused(first.header.sequence, refusal(Errno::EOPNOTSUPP));
    }
    let events = work.commit(first, sender.port);
    *state = Arc::new(work.state);
    if end.header.flags.contains(Flags::ACK) {
        answers.push((end.header.sequence, None));
    }
    Outcome { answers, events }
}

impl Outcome {
    pub(super) fn refused(sequence: u32, refusal: Refusal) -> Self {
        Self { answers: vec![(sequence, Some(refusal))], events: Vec::new() }
    }
}

impl Work {
    /// Tries all messages, and returns the one that ends the batch, if there is one.
    fn run<'m, 'd>(
        state: State,
        messages: &'m [Message<'d>],
        sender: Sender,
        checks_of_new: Checks,
    ) -> (Self, Vec<Answer>, Option<&'m Message<'d>>) {
        let mut work = Self {
            state,
            changes: 0,
            set_ids: Vec::new(),
            chain_ids: Vec::new(),
            rule_ids: Vec::new(),
            checks_of_new,
            deleted: Vec::new(),
            sized: Vec::new(),
            offload_fails: false,
            notify: sender.notify,
            steps: Vec::new(),
            deleted_tables: Vec::new(),
        };
        work.state.tables.iter_mut().for_each(|table| table.pending.notify = sender.notify);
        let mut answers = Vec::new();
        for message in messages {
            if message.header.kind == NFNL_MSG_BATCH_END {
                return (work, answers, Some(message));
            }
            let done = work.message(message, sender.port);
            work.gather(message);
            if done.is_err() || message.header.flags.contains(Flags::ACK) {
                answers.push((message.header.sequence, done.err()));
            }
        }
        (work, answers, None)
    }

    /// Collects what a message leaves to the end of the batch.
    fn gather(&mut self, message: &Message<'_>) {
        let (sequence, flags) = (message.header.sequence, message.header.flags);
        for table in self.state.tables.iter_mut().chain(&mut self.deleted_tables) {
            let steps = table.pending.steps.drain(..);
            self.steps.extend(steps.map(|step| (table.handle, sequence, flags, step)));
        }
    }

    /// Records that a table was deleted.
    pub(super) fn record_deleted_table(&mut self, mut table: Table) {
        self.deleted.push((table.handle, table.handles));
        self.changes += 1;
        table::record_deleted(&mut table);
        table.pending.table_deleted = true;
        if self.notify {
            self.deleted_tables.push(table);
        }
    }

    fn message(&mut self, message: &Message<'_>, port: u32) -> Done {
        let [subsystem, command] = message.header.kind.to_be_bytes();
        if subsystem != SUBSYSTEM || !message.header.flags.contains(Flags::REQUEST) {
            return refuse(Errno::EINVAL);
        }
        let (header, attributes) = message.netfilter().map_err(|_| refusal(Errno::EINVAL))?;
        let request = Request {
            command,
            flags: message.header.flags,
            family: header.family,
            port,
            attrs: Attrs::read(attributes)?,
        };
        request.check_lengths()?;
        match command {
            NFT_MSG_NEWTABLE => table::add(self, &request),
            NFT_MSG_DELTABLE | NFT_MSG_DESTROYTABLE => table::delete(self, &request),
            NFT_MSG_NEWCHAIN => chain::add(self, &request),
            NFT_MSG_DELCHAIN | NFT_MSG_DESTROYCHAIN => chain::delete(self, &request),
            NFT_MSG_NEWRULE => rule::add(self, &request),
            NFT_MSG_DELRULE | NFT_MSG_DESTROYRULE => rule::delete(self, &request),
            NFT_MSG_NEWSET => set::add(self, &request),
            NFT_MSG_DELSET | NFT_MSG_DESTROYSET => set::delete(self, &request),
            NFT_MSG_NEWSETELEM => element::add(self, &request),
            NFT_MSG_DELSETELEM | NFT_MSG_DESTROYSETELEM => element::delete(self, &request),
            NFT_MSG_NEWOBJ => object::add(self, &request),
            NFT_MSG_DELOBJ | NFT_MSG_DESTROYOBJ => object::delete(self, &request),
            NFT_MSG_NEWFLOWTABLE => flowtable::add(self, &request),
            NFT_MSG_DELFLOWTABLE | NFT_MSG_DESTROYFLOWTABLE => flowtable::delete(self, &request),
            _ => refuse(Errno::EINVAL),
        }
    }

    /// Checks each table with a relevant change, and returns the first one at fault.
    fn check(&mut self) -> Result<(), (u64, Refusal)> {
        for table in self.state.tables.iter_mut().filter(|table| table.checks != Checks::None) {
            checks::table(table).map_err(|refusal| (table.handle, refusal))?;
        }
        Ok(())
    }

    /// Returns whether an anonymous set or chain is used by no rule.
    fn has_unbound_objects(&self) -> bool {
        let loose = |table: &Table| {
            table.sets.iter().any(|set| set.is_new && set.is_anonymous() && set.bindings.is_empty())
                || table.chains.iter().any(|chain| chain.flags & chain::BINDING != 0 && !chain.bound)
        };
        self.state.tables.iter().any(loose)
    }

    /// Commits the changes, and returns the events for listeners.
    fn commit(&mut self, first: &Message<'_>, port: u32) -> Vec<Notification> {
        let generation = self.state.generation;
        let generation = if self.changes > 0 { generation.checked_add(1).unwrap_or(1) } else { generation };
        self.state.generation = generation;
        let mut events = Vec::new();
        for (table, sequence, flags, step) in std::mem::take(&mut self.steps) {
            let mut tables = self.state.tables.iter_mut().chain(&mut self.deleted_tables);
            let Some(table) = tables.find(|existing| existing.handle == table) else { continue };
            match step {
                Step::Apply(change) => apply_deferred(table, change),
                Step::Notify(event) => {
                    let message = event::message(table, &event, Cause { sequence, flags, port, generation });
                    let echo = flags.contains(Flags::ECHO);
                    events.extend(message.map(|message| Notification { message, echo }));
                    update_after_event(table, &event);
                }
            }
        }
        if self.notify && self.changes > 0 {
            // The kernel attributes the event of a new generation to the first message.
            let Header { sequence, flags, .. } = first.header;
            let message = event::generation(Cause { sequence, flags, port, generation }, PROCESS);
            events.push(Notification { message, echo: flags.contains(Flags::ECHO) });
        }
        for table in &mut self.state.tables {
            table.pending = Pending::default();
            table.checks = Checks::None;
            // Whatever was changed is no longer shared with the previous state.
            for chain in table.chains.iter_mut().filter_map(Arc::get_mut) {
                chain.rules.retain(|rule| rule.active);
            }
            for set in table.sets.iter_mut().filter_map(Arc::get_mut) {
                set.is_new = false;
                set.bindings.retain(|binding| !binding.rule_deleted);
                set.store.commit();
            }
        }
        events
    }
}

/// Updates the table after an event was built: a deleted rule no longer has neighbours, a new set is no
/// longer new, and a deleted element is no longer counted.
fn update_after_event(table: &mut Table, event: &Event) {
    if let Event { change: Change::New, subject: Subject::Set(set) } = event
        && let Ok(set) = table.set_mut(*set)
    {
        set.is_new = false;
    }
    if let Event { change: Change::Deleted, subject: Subject::Element(set, element) } = event
        && let Ok(set) = table.set_mut(*set)
        && !element.is_catch_all()
    {
        set.store.finish_deletion();
    }
    let Event { change: Change::Deleted, subject: Subject::Rule(chain, number) } = event else { return };
    let keep = |chain: &mut Chain| chain.rules.retain(|rule| rule.number != *number);
    if let Ok(chain) = table.chain_mut(*chain) {
        return keep(chain);
    }
    let deleted = table.pending.deleted.chains.iter_mut().filter(|existing| existing.handle == *chain);
    deleted.map(Arc::make_mut).for_each(keep);
}

fn apply_deferred(table: &mut Table, change: Deferred) {
    match change {
        Deferred::Rename { chain, name } => table.rename_chain(chain, name),
        Deferred::Policy { chain, policy } => {
            if let Some(base) = table.chain_mut(chain).ok().and_then(|chain| chain.base.as_mut()) {
                base.policy = policy;
            }
        }
        Deferred::Set { set, timeout, gc_interval, size } => {
            if let Ok(set) = table.set_mut(set) {
                (set.timeout, set.gc_interval) = (timeout, gc_interval);
                set.size = if size > 0 { size } else { set.size };
            }
        }
        Deferred::Element { set, element, timeout, left } => {
            if let Ok(set) = table.set_mut(set) {
                set.store.renew(element, timeout, left);
            }
        }
        Deferred::Object { object, data } => {
            if let Some(object) = table.objects.iter_mut().find(|existing| existing.handle == object) {
                object::update(object, data);
            }
        }
    }
}

/// Keeps what even a refused transaction leaves behind: handles are not reused, and sets keep the size that
/// they got because a rule adds elements.
fn keep_side_effects(state: &mut Arc<State>, work: &Work) {
    let state = Arc::make_mut(state);
    state.table_handles = work.state.table_handles;
    for table in &mut state.tables {
        let tried = work.state.tables.iter().find(|tried| tried.handle == table.handle);
        let deleted = work.deleted.iter().find(|(handle, _)| *handle == table.handle);
        let used = tried.map(|tried| tried.handles).or(deleted.map(|(_, handles)| *handles));
        table.handles = used.unwrap_or(table.handles);
        let handle = table.handle;
        for (_, set) in work.sized.iter().filter(|(of, _)| *of == handle) {
            if let Ok(set) = table.set_mut(*set) {
                set.size = GROWN;
            }
        }
    }
}

/// The maximum number of elements that rules may add to a set without a size.
pub(super) const GROWN: u32 = 0xffff;

fn failed(answers: &[Answer]) -> bool {
    answers.iter().any(|(_, refusal)| refusal.is_some())
}

/// Returns the generation that a batch requires, if it does.
fn generation(begin: &Message<'_>) -> Result<Option<u32>, Refusal> {
    let (header, attributes) = begin.netfilter().map_err(|_| refusal(Errno::EINVAL))?;
    if begin.header.kind != NFNL_MSG_BATCH_BEGIN {
        return refuse(Errno::EINVAL);
    }
    if header.resource != u16::from(SUBSYSTEM) {
        return refuse(Errno::EOPNOTSUPP);
    }
    Attrs::read(attributes)?.be32(NFNL_BATCH_GENID)
}
