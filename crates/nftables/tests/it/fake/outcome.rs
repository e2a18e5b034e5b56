//! What came of a transaction, and what is held then, in a form that can be compared.

use sluicegate_netlink::message::{Flags, Messages};
use sluicegate_netlink::{Transport, Wait};
use sluicegate_nftables::expr::kind::Immediate;
use sluicegate_nftables::expr::{Data, Expr};
use sluicegate_nftables::lang::Verdict;
use sluicegate_nftables::monitor::{Change, Event};
use sluicegate_nftables::*;

use crate::fake::history::{Question, Step};

/// The operation, the element in it, the error, and the place that is to blame.
pub(crate) type Refusal = (Option<usize>, Option<usize>, Errno, Option<u32>);

/// What came of a transaction.
#[derive(Debug, PartialEq)]
pub(crate) enum Outcome {
    /// By so much the generation moved on.
    Applied(u32),
    /// Each refusal.
    Refused(Vec<Refusal>),
    GenerationChanged,
    /// Why nothing was sent.
    Unsayable(String),
}

impl Outcome {
    pub(crate) fn of(transport: &mut impl Transport, step: &Step) -> Self {
        let before = read::generation(transport).expect("the generation can be asked for").id;
        let generation = step.bound.then_some(if step.stale { before + 1 } else { before });
        let mut options = ApplyOptions::default();
        (options.generation, options.check) = (generation, step.check);
        match step.transaction.apply_with(transport, options) {
            Ok(applied) => Self::Applied(applied.generation.wrapping_sub(before)),
            Err(Error::GenerationChanged { .. }) => Self::GenerationChanged,
            Err(Error::Rejected { failures, .. }) => Self::Refused(
                failures.iter().map(|f| (f.operation, f.element, f.error.errno, f.error.offset)).collect(),
            ),
            Err(error @ Error::Netlink(_)) => panic!("{error}"),
            Err(error) => Self::Unsayable(error.to_string()),
        }
    }
}

/// Asks something, and gives what is told; or why nothing was.
pub(crate) fn answer(transport: &mut impl Transport, question: &Question) -> String {
    fn notified<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
        result.map_or_else(|error| format!("{:?}", error.errno()), |found| format!("{found:?}"))
    }
    fn same<T>(mut found: T, mut make: impl FnMut(&mut T)) -> T {
        make(&mut found);
        found
    }
    let elements = |elements: Vec<read::Element>| {
        same(elements, |elements| {
            same_elements(elements);
            elements.sort_by_cached_key(|element| format!("{element:?}"));
        })
    };
    let within = |one: &bool, table: &TableId| match one {
        true => Within::from(table),
        false => table.family.into(),
    };
    match question {
        Question::ResetRules(t, one) => {
            let rules = read::reset_rules(transport, within(one, t));
            notified(rules.map(|rules| same(rules, |rules| rules.iter_mut().for_each(same_rule))))
        }
        Question::ResetRule(c, handle) => {
            let rule = read::reset_rule(transport, c, *handle);
            notified(rule.map(|rule| same(rule, |rule| rule.iter_mut().for_each(same_rule))))
        }
        Question::ResetObjects(t, one) => {
            let objects = read::reset_objects(transport, within(one, t));
            notified(objects)
        }
        Question::ResetElements(s) => notified(read::reset_elements(transport, s).map(elements)),
        Question::Element(s, key, reset) => {
            let found = match reset {
                true => read::reset_element(transport, s, key),
                false => read::element(transport, s, key),
            };
            notified(found.map(|found| elements(found.into_iter().collect())))
        }
        Question::Find(set, wanted, reset) => {
            let found = match reset {
                true => read::find_and_reset(transport, set, wanted),
                false => read::find(transport, set, wanted),
            };
            // How much of its time is gone is chance.
            let gone = |element: Element| match element.get_expires() {
                Some(_) => element.expires(std::time::Duration::ZERO),
                None => element,
            };
            notified(found.map(|found| found.map(gone)))
        }
        Question::Object(o) => {
            let object = read::object(transport, o);
            notified(object)
        }
        Question::Set(s) => {
            let set = read::set(transport, s);
            notified(set.map(|set| same(set, |set| set.iter_mut().for_each(same_set))))
        }
        Question::Chain(c) => notified(read::chain(transport, c)),
    }
}

/// All that is held, to the last attribute. Times that are left are not compared: how far they are gone is
/// chance, as is the order of a hash. Tables are counted for as long as there is a network namespace.
pub(crate) fn normalized(mut ruleset: read::Ruleset) -> read::Ruleset {
    ruleset.tables.iter_mut().for_each(same_table);
    ruleset.chains.iter_mut().for_each(|chain| same_chain_name(&mut chain.name));
    ruleset.rules.iter_mut().for_each(same_rule);
    for (set, elements) in &mut ruleset.sets {
        same_set(set);
        same_elements(elements);
        elements.sort_by_cached_key(|element| format!("{element:?}"));
    }
    ruleset
}

/// What a listener is told, with the flags of each message.
pub(crate) fn events(listener: &mut impl Transport) -> Vec<(Flags, Event)> {
    let (mut events, mut buffer) = (Vec::new(), Vec::new());
    while listener.receive(&mut buffer, Wait::No).expect("events can be read") {
        for message in Messages::new(&buffer) {
            let message = message.expect("a message");
            let event = Event::decode(message).expect("an event").expect("an event of nftables");
            events.push((message.header.flags, event));
        }
    }
    events
}

/// What was told, to be compared. Left out are times, generations, and who committed. The order in which the
/// elements of a set are emptied out is chance.
pub(crate) fn notified(mut events: Vec<(Flags, Event)>) -> Vec<(Flags, Event)> {
    events.iter_mut().for_each(|(_, event)| same(event));
    let key = |(_, event): &(Flags, Event)| match event {
        Event::Elements(Change::Deleted, set, elements) => Some((set.clone(), format!("{elements:?}"))),
        _ => None,
    };
    for run in events.chunk_by_mut(|a, b| key(a).map(|key| key.0) == key(b).map(|key| key.0)) {
        run.sort_by_cached_key(|event| key(event).map(|key| key.1));
    }
    events
}

/// Leaves out of an event what cannot be equal.
fn same(event: &mut Event) {
    match event {
        Event::Generation(generation) => {
            generation.id = 0;
            (generation.process, generation.process_name) = (None, None);
        }
        Event::Table(_, table) => same_table(table),
        Event::Chain(_, chain) => same_chain_name(&mut chain.name),
        Event::Rule(_, rule) => same_rule(rule),
        Event::Set(_, set) => same_set(set),
        Event::Elements(_, _, elements) => same_elements(elements),
        _ => {}
    }
}

fn same_table(table: &mut read::Table) {
    table.handle = 0;
    table.owner = table.owner.map(|_| 0);
}

/// The kernel numbers the chains that belong to rules for all namespaces.
fn same_chain_name(chain: &mut Name) {
    if chain.as_str().starts_with("__chain") {
        *chain = crate::kernel::cases::name("a_rules_own");
    }
}

fn same_rule(rule: &mut read::Rule) {
    same_chain_name(&mut rule.chain);
    for expr in &mut rule.expressions {
        if let Expr::Immediate(Immediate {
            data: Data::Verdict(Verdict::Jump(to) | Verdict::Goto(to)), ..
        }) = expr
        {
            same_chain_name(to);
        }
    }
}

/// The fake has no code of the kernel's to name.
fn same_set(set: &mut read::Set) {
    set.backend = None;
}

fn same_elements(elements: &mut [read::Element]) {
    for element in elements.iter_mut().filter(|element| element.details().expiration.is_some()) {
        element.details_mut().expiration = Some(0);
    }
}
