//! The tables of the kernel behind a layer that fails on request, as a kernel without memory, a kernel without
//! a module, or a process that is killed makes them fail; or beside which another program acts.

use std::sync::{Arc, Mutex, MutexGuard};

use sluicegate_iptables_save::{Save, Table};
use sluicegate_service_rules::iptables::{self, BackEnd, Tables, tool_family};
use sluicegate_services::Family;
use sluicegate_xtables::netlink::Errno;
use sluicegate_xtables::{CompileError, Error, Kind, Unsupported};

/// What goes wrong.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Fault {
    #[default]
    Nothing,
    /// The kernel has no memory for any change.
    NoMemory,
    /// The kernel has no match of this name.
    NoMatch(&'static str),
    /// One change or listing fails, after so many others.
    Once(Moment, usize),
    /// Nothing fails, but another program acts before or after the next change.
    Act(Moment, fn(BackEnd)),
}

/// When a change or a listing fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// Before a change.
    Before,
    /// When the first table of a change is done, and no other.
    Between,
    /// When all of a change is done.
    After,
    /// While the tables are listed.
    Listing,
}

pub(crate) const MOMENTS: [Moment; 4] = [Moment::Before, Moment::Between, Moment::After, Moment::Listing];

/// The tables of one family and back end, and the way in which they fail at the moment.
#[derive(Debug)]
pub(crate) struct FaultyTables {
    pub(crate) back_end: BackEnd,
    family: Family,
    fault: Arc<Mutex<Fault>>,
}

impl FaultyTables {
    pub(crate) fn new(name: &str, family: Family) -> Self {
        Self { back_end: name.parse().expect("a back end"), family, fault: Arc::default() }
    }

    /// Opens the tables, for an applier.
    pub(crate) fn open(&self) -> Vec<Box<dyn Tables>> {
        let opened = iptables::open(Some(self.back_end), &[self.family]).expect("sockets");
        let wrap = |real| Box::new(Opened { real, fault: Arc::clone(&self.fault) }) as Box<dyn Tables>;
        opened.into_iter().map(wrap).collect()
    }

    /// Makes them fail like this from now on.
    pub(crate) fn set(&self, fault: Fault) {
        *self.fault.lock().expect("nobody panics with it") = fault;
    }

    /// Returns whether nothing goes wrong any more.
    pub(crate) fn is_over(&self) -> bool {
        matches!(*self.fault.lock().expect("nobody panics with it"), Fault::Nothing)
    }
}

#[derive(Debug)]
struct Opened {
    real: Box<dyn Tables>,
    fault: Arc<Mutex<Fault>>,
}

impl Opened {
    fn fault(&self) -> MutexGuard<'_, Fault> {
        self.fault.lock().expect("nobody panics with it")
    }

    /// Counts down to the call that fails; when it does, if it is this one.
    fn comes(&self, is_listing: bool) -> Option<Moment> {
        let mut fault = self.fault();
        match *fault {
            Fault::NoMemory if !is_listing => Some(Moment::Before),
            Fault::Once(moment, after) if (moment == Moment::Listing) == is_listing => {
                *fault = after.checked_sub(1).map_or(Fault::Nothing, |left| Fault::Once(moment, left));
                (after == 0).then_some(moment)
            }
            _ => None,
        }
    }

    /// Lets the other program act, if it does so now.
    fn act(&self, now: Moment) {
        let mut fault = self.fault();
        if let Fault::Act(moment, act) = *fault
            && moment == now
        {
            *fault = Fault::Nothing;
            drop(fault);
            act(self.real.back_end());
        }
    }

    fn failure(&self) -> Error {
        Error::Kernel {
            operation: "replacing",
            table: "filter".to_owned(),
            family: tool_family(self.real.family()),
            errno: Errno::ENOMEM,
            reason: "there is not enough memory".to_owned(),
        }
    }

    /// Refuses a rule with a match that is missing.
    fn lacks(&self, words: &str) -> Result<(), Error> {
        let Fault::NoMatch(name) = *self.fault() else { return Ok(()) };
        if !words.contains(&format!("-m {name} ")) {
            return Ok(());
        }
        let lack = Unsupported::new(Kind::Match, name, "the kernel does not have it in revision 0");
        Err(Error::Rule {
            table: "filter".to_owned(),
            chain: "X".to_owned(),
            line: 0,
            rule: words.to_owned(),
            source: Box::new(CompileError::Unsupported(lack)),
        })
    }
}

impl Tables for Opened {
    fn family(&self) -> Family {
        self.real.family()
    }

    fn back_end(&self) -> BackEnd {
        self.real.back_end()
    }

    fn list(&mut self) -> Result<Save<'static>, Error> {
        if self.comes(true).is_some() { Err(self.failure()) } else { self.real.list() }
    }

    fn apply(&mut self, input: &Save<'_>) -> Result<(), Error> {
        input.tables().flat_map(Table::rules).try_for_each(|rule| self.lacks(rule.text()))?;
        let Some(moment) = self.comes(false) else {
            self.act(Moment::Before);
            self.real.apply(input)?;
            self.act(Moment::After);
            return Ok(());
        };
        match moment {
            Moment::Between => {
                let first = Save { items: input.items.iter().take(1).cloned().collect() };
                self.real.apply(&first)?;
            }
            Moment::After => self.real.apply(input)?,
            Moment::Before | Moment::Listing => {}
        }
        Err(self.failure())
    }

    fn has_chain(&mut self, table: &str, chain: &str) -> Result<bool, Error> {
        self.real.has_chain(table, chain)
    }

    fn is_disturbed(&mut self) -> Result<bool, Error> {
        self.real.is_disturbed()
    }

    fn has_extensions(&mut self, table: &str, words: &str) -> Result<bool, Error> {
        match self.lacks(words) {
            Ok(()) => self.real.has_extensions(table, words),
            Err(_) => Ok(false),
        }
    }
}
