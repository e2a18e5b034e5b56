//! A batch: every message is tried on a copy, all refusals are collected, and only a copy without any takes the place of what was.

use std::sync::Arc;

use sluicegate_netlink::message::{
    Flags, Message, NFNL_BATCH_GENID, NFNL_MSG_BATCH_BEGIN, NFNL_MSG_BATCH_END,
};

use crate::fake::message::{
    Attrs, Done, EINVAL, EOPNOTSUPP, ERESTART, Refusal, Request, SUBSYSTEM, command, refusal, refuse,
};
use crate::fake::state::{Checks, Later, Pending, State, Table};
use crate::fake::{chain, checks, element, object, rule, set, table};

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
}

/// An answer to a message of a batch: its sequence number and, unless it is an acknowledgement, the refusal.
pub(super) type Answer = (u32, Option<Refusal>);

/// Applies a batch, or only checks it where its end is missing.
pub(super) fn apply(state: &mut Arc<State>, messages: &[Message<'_>]) -> Vec<Answer> {
    let Some((begin, messages)) = messages.split_first() else { return Vec::new() };
    let start = begin.header.sequence;
    match generation(begin) {
        Err(refusal) => return vec![(start, Some(refusal))],
        Ok(Some(wanted)) if wanted != 0 && wanted != state.generation => {
            return vec![(start, Some(refusal(ERESTART)))];
        }
        Ok(_) => {}
    }
    let (mut work, mut answers, end) = Work::run(State::clone(state), messages, Checks::None);
    if !failed(&answers)
        && let Err((table, refusal)) = work.check()
    {
        // The kernel says whose fault it was by doing it all again, with a check after each message.
        keep_traces(state, &work);
        let mut again = State::clone(state);
        again.tables.iter_mut().filter(|t| t.handle == table).for_each(|t| t.checks = Checks::AtOnce);
        (work, answers, _) = Work::run(again, messages, Checks::AtOnce);
        if !failed(&answers) {
            answers.push((start, Some(refusal)));
        }
    }
    let Some(end) = end.filter(|_| !failed(&answers)) else {
        keep_traces(state, &work);
        return answers;
    };
    if work.has_loose_ends() {
        keep_traces(state, &work);
        return vec![(start, Some(refusal(EINVAL)))];
    }
    work.commit();
    *state = Arc::new(work.state);
    if end.header.flags.contains(Flags::ACK) {
        answers.push((end.header.sequence, None));
    }
    answers
}

impl Work {
    /// Tries all messages; returns the end of the batch, if it has one.
    fn run<'m, 'd>(
        state: State,
        messages: &'m [Message<'d>],
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
        };
        let mut answers = Vec::new();
        for message in messages {
            if message.header.kind == NFNL_MSG_BATCH_END {
                return (work, answers, Some(message));
            }
            let done = work.message(message);
            if done.is_err() || message.header.flags.contains(Flags::ACK) {
                answers.push((message.header.sequence, done.err()));
            }
        }
        (work, answers, None)
    }

    fn message(&mut self, message: &Message<'_>) -> Done {
        let [subsystem, command] = message.header.kind.to_be_bytes();
        if subsystem != SUBSYSTEM || !message.header.flags.contains(Flags::REQUEST) {
            return refuse(EINVAL);
        }
        let (header, attributes) = message.netfilter().map_err(|_| refusal(EINVAL))?;
        let request = Request {
            command,
            flags: message.header.flags,
            family: header.family,
            attrs: Attrs::read(attributes)?,
        };
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
            command::NEWFLOWTABLE => object::add_flowtable(self, &request),
            command::DELFLOWTABLE | command::DESTROYFLOWTABLE => object::delete_flowtable(self, &request),
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

    fn commit(&mut self) {
        for table in &mut self.state.tables {
            let Pending { later, .. } = std::mem::take(&mut table.pending);
            later.into_iter().for_each(|later| settle(table, later));
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
        if self.changes > 0 {
            self.state.generation = self.state.generation.checked_add(1).unwrap_or(1);
        }
    }
}

fn settle(table: &mut Table, later: Later) {
    match later {
        Later::Rename { chain, name } => table.rename_chain(chain, name),
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
                object.data = data;
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
