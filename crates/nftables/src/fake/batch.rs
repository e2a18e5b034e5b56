//! A batch: every message is tried on a copy, all refusals are collected, and only a copy without any takes the place of what was.

use std::sync::Arc;

use sluicegate_netlink::message::{
    Flags, Header, Message, NFNL_BATCH_GENID, NFNL_MSG_BATCH_BEGIN, NFNL_MSG_BATCH_END,
};

use crate::fake::dump::PROCESS;
use crate::fake::event::{Cause, Change, Event, What};
use crate::fake::message::{
    Attrs, Done, EINVAL, EOPNOTSUPP, ERESTART, Refusal, Request, SUBSYSTEM, command, refusal, refuse,
};
use crate::fake::pending::{Checks, Later, Pending, Step};
use crate::fake::state::{Chain, State, Table};
use crate::fake::{chain, checks, element, event, flowtable, object, rule, set, table};

/// A transaction under way.
pub(super) struct Work {
    pub(super) state: State,
    /// What was changed; a commit without any makes no new generation.
    pub(super) changes: usize,
    /// Numbers that messages have given: of a table's sets and chains, and of a chain's rules; each with the handle.
    pub(super) set_ids: Vec<(u64, u32, u64)>,
    pub(super) chain_ids: Vec<(u64, u32, u64)>,
    pub(super) rule_ids: Vec<(u64, u32, u64)>,
    /// When a table that is made now is checked.
    pub(super) checks_of_new: Checks,
    /// Tables that were deleted, and how many handles they had given.
    pub(super) deleted: Vec<(u64, u64)>,
    /// Sets, each with its table, that have got a size because a rule was to add elements.
    pub(super) sized: Vec<(u64, u64)>,
    /// Whether it asks for what no device does, which is known only when devices are told.
    pub(super) not_of_devices: bool,
    /// Whether somebody listens.
    pub(super) told: bool,
    /// What the commit does, each with its table, the number of its message and that one's flags.
    steps: Vec<(u64, u32, Flags, Step)>,
    /// Tables that are gone, for those who listen.
    gone: Vec<Table>,
}

/// Who sends a batch, and whether anybody listens.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sender {
    pub(super) port: u32,
    pub(super) told: bool,
}

/// What came of a batch.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) answers: Vec<Answer>,
    /// For those who listen, and for the sender, if that asked for it (`NLM_F_ECHO`).
    pub(super) events: Vec<Told>,
}

/// An event.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) message: Vec<u8>,
    /// Whether the message that caused it asked for it.
    pub(super) echo: bool,
}

/// An answer to a message of a batch: its sequence number and, unless it is an acknowledgement, the refusal.
pub(super) type Answer = (u32, Option<Refusal>);

/// Applies a batch, or only checks it where its end is missing.
pub(super) fn apply(state: &mut Arc<State>, messages: &[Message<'_>], sender: Sender) -> Outcome {
    let Some((begin, messages)) = messages.split_first() else { return Outcome::default() };
    let start = begin.header.sequence;
    match generation(begin) {
        Err(refusal) => return Outcome::refused(start, refusal),
        Ok(Some(wanted)) if wanted != 0 && wanted != state.generation => {
            return Outcome::refused(start, refusal(ERESTART));
        }
        Ok(_) => {}
    }
    let echo = messages.iter().any(|message| message.header.flags.contains(Flags::ECHO));
    let sender = Sender { told: sender.told || echo, ..sender };
    let (mut work, mut answers, end) = Work::run(State::clone(state), messages, sender, Checks::None);
    if !failed(&answers)
        && let Err((table, refusal)) = work.check()
    {
        // The kernel says whose fault it was by doing it all again, with a check after each message.
        keep_traces(state, &work);
        let mut again = State::clone(state);
        again.tables.iter_mut().filter(|t| t.handle == table).for_each(|t| t.checks = Checks::AtOnce);
        (work, answers, _) = Work::run(again, messages, sender, Checks::AtOnce);
        if !failed(&answers) {
            answers.push((start, Some(refusal)));
        }
    }
    let Some(end) = end.filter(|_| !failed(&answers)) else {
        keep_traces(state, &work);
        return Outcome { answers, events: Vec::new() };
    };
    // What is found only now is the first message's fault.
    let first = messages.first().unwrap_or(end);
    if work.has_loose_ends() {
        keep_traces(state, &work);
        return Outcome::refused(first.header.sequence, refusal(EINVAL));
    }
    if work.not_of_devices {
        keep_traces(state, &work);
        return Outcome::refused(first.header.sequence, refusal(EOPNOTSUPP));
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
    /// Tries all messages; returns the end of the batch, if it has one.
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
            not_of_devices: false,
            told: sender.told,
            steps: Vec::new(),
            gone: Vec::new(),
        };
        work.state.tables.iter_mut().for_each(|table| table.pending.told = sender.told);
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

    /// Takes over what a message leaves to the end.
    fn gather(&mut self, message: &Message<'_>) {
        let (sequence, flags) = (message.header.sequence, message.header.flags);
        for table in self.state.tables.iter_mut().chain(&mut self.gone) {
            let steps = table.pending.steps.drain(..);
            self.steps.extend(steps.map(|step| (table.handle, sequence, flags, step)));
        }
    }

    /// Of a table that has been taken out.
    pub(super) fn table_is_gone(&mut self, mut table: Table) {
        self.deleted.push((table.handle, table.handles));
        self.changes += 1;
        table::tell_gone(&mut table);
        table.pending.doomed = true;
        if self.told {
            self.gone.push(table);
        }
    }

    fn message(&mut self, message: &Message<'_>, port: u32) -> Done {
        let [subsystem, command] = message.header.kind.to_be_bytes();
        if subsystem != SUBSYSTEM || !message.header.flags.contains(Flags::REQUEST) {
            return refuse(EINVAL);
        }
        let (header, attributes) = message.netfilter().map_err(|_| refusal(EINVAL))?;
        let request = Request {
            command,
            flags: message.header.flags,
            family: header.family,
            port,
            attrs: Attrs::read(attributes)?,
        };
        request.check_lengths()?;
        match command {
            command::NEWTABLE => table::add(self, &request),
            command::DELTABLE | command::DESTROYTABLE => table::delete(self, &request),
            command::NEWCHAIN => chain::add(self, &request),
            command::DELCHAIN | command::DESTROYCHAIN => chain::delete(self, &request),
            command::NEWRULE => rule::add(self, &request),
            command::DELRULE | command::DESTROYRULE => rule::delete(self, &request),
            command::NEWSET => set::add(self, &request),
            command::DELSET | command::DESTROYSET => set::delete(self, &request),
            command::NEWSETELEM => element::add(self, &request),
            command::DELSETELEM | command::DESTROYSETELEM => element::delete(self, &request),
            command::NEWOBJ => object::add(self, &request),
            command::DELOBJ | command::DESTROYOBJ => object::delete(self, &request),
            command::NEWFLOWTABLE => flowtable::add(self, &request),
            command::DELFLOWTABLE | command::DESTROYFLOWTABLE => flowtable::delete(self, &request),
            _ => refuse(EINVAL),
        }
    }

    /// Checks each table in which something has changed that matters; returns the first at fault.
    fn check(&mut self) -> Result<(), (u64, Refusal)> {
        for table in self.state.tables.iter_mut().filter(|table| table.checks != Checks::None) {
            checks::table(table).map_err(|refusal| (table.handle, refusal))?;
        }
        Ok(())
    }

    /// Whether a set without a name, or a chain of a rule's own, has no rule.
    fn has_loose_ends(&self) -> bool {
        let loose = |table: &Table| {
            table.sets.iter().any(|set| set.fresh && set.is_anonymous() && set.bindings.is_empty())
                || table.chains.iter().any(|chain| chain.flags & chain::BINDING != 0 && !chain.bound)
        };
        self.state.tables.iter().any(loose)
    }

    /// Makes it so; gives what those who listen are told.
    fn commit(&mut self, first: &Message<'_>, port: u32) -> Vec<Told> {
        let generation = self.state.generation;
        let generation = if self.changes > 0 { generation.checked_add(1).unwrap_or(1) } else { generation };
        self.state.generation = generation;
        let mut events = Vec::new();
        for (table, sequence, flags, step) in std::mem::take(&mut self.steps) {
            let mut tables = self.state.tables.iter_mut().chain(&mut self.gone);
            let Some(table) = tables.find(|held| held.handle == table) else { continue };
            match step {
                Step::Settle(later) => settle(table, later),
                Step::Tell(event) => {
                    let message = event::message(table, &event, Cause { sequence, flags, port, generation });
                    let echo = flags.contains(Flags::ECHO);
                    events.extend(message.map(|message| Told { message, echo }));
                    pass(table, &event);
                }
            }
        }
        if self.told && self.changes > 0 {
            // The kernel takes the first message for the one that asked.
            let Header { sequence, flags, .. } = first.header;
            let message = event::generation(Cause { sequence, flags, port, generation }, PROCESS);
            events.push(Told { message, echo: flags.contains(Flags::ECHO) });
        }
        for table in &mut self.state.tables {
            table.pending = Pending::default();
            table.checks = Checks::None;
            // Whatever has been touched is no longer shared with the state before.
            for chain in table.chains.iter_mut().filter_map(Arc::get_mut) {
                chain.rules.retain(|rule| rule.active);
            }
            for set in table.sets.iter_mut().filter_map(Arc::get_mut) {
                set.fresh = false;
                set.bindings.retain(|binding| !binding.gone);
                set.store.commit();
            }
        }
        events
    }
}

/// A rule that is gone is no longer before or behind another; a set that is there is no longer new; an element that is gone is not counted.
fn pass(table: &mut Table, event: &Event) {
    if let Event { change: Change::New, what: What::Set(set) } = event
        && let Ok(set) = table.set_mut(*set)
    {
        set.fresh = false;
    }
    if let Event { change: Change::Gone, what: What::Element(set, element) } = event
        && let Ok(set) = table.set_mut(*set)
        && !element.is_catch_all()
    {
        set.store.told();
    }
    let Event { change: Change::Gone, what: What::Rule(chain, number) } = event else { return };
    let keep = |chain: &mut Chain| chain.rules.retain(|rule| rule.number != *number);
    if let Ok(chain) = table.chain_mut(*chain) {
        return keep(chain);
    }
    let gone = table.pending.gone.chains.iter_mut().filter(|held| held.handle == *chain);
    gone.map(Arc::make_mut).for_each(keep);
}

fn settle(table: &mut Table, later: Later) {
    match later {
        Later::Rename { chain, name } => table.rename_chain(chain, name),
        Later::Policy { chain, policy } => {
            if let Some(base) = table.chain_mut(chain).ok().and_then(|chain| chain.base.as_mut()) {
                base.policy = policy;
            }
        }
        Later::Set { set, timeout, gc_interval, size } => {
            if let Ok(set) = table.set_mut(set) {
                (set.timeout, set.gc_interval) = (timeout, gc_interval);
                set.size = if size > 0 { size } else { set.size };
            }
        }
        Later::Element { set, element, timeout, left } => {
            if let Ok(set) = table.set_mut(set) {
                set.store.renew(element, timeout, left);
            }
        }
        Later::Object { object, data } => {
            if let Some(object) = table.objects.iter_mut().find(|held| held.handle == object) {
                object::update(object, data);
            }
        }
    }
}

/// What even a refused transaction leaves: handles that it has used are not used again, and sets that it was to make grow keep the size
/// that they have got for that.
fn keep_traces(state: &mut Arc<State>, work: &Work) {
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

/// The most elements that rules may add where a set has no size.
pub(super) const GROWN: u32 = 0xffff;

fn failed(answers: &[Answer]) -> bool {
    answers.iter().any(|(_, refusal)| refusal.is_some())
}

/// The generation that a batch is for, if it says so.
fn generation(begin: &Message<'_>) -> Result<Option<u32>, Refusal> {
    let (header, attributes) = begin.netfilter().map_err(|_| refusal(EINVAL))?;
    if begin.header.kind != NFNL_MSG_BATCH_BEGIN {
        return refuse(EINVAL);
    }
    if header.resource != u16::from(SUBSYSTEM) {
        return refuse(EOPNOTSUPP);
    }
    Attrs::read(attributes)?.be32(NFNL_BATCH_GENID)
}
