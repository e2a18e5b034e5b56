//! The events that the kernel sends of each commit, and to whoever asks for an echo.

use sluicegate_netlink::DecodeError;
use sluicegate_netlink::message::{Flags, Message};

use crate::family::Family;
use crate::name::Name;
use crate::object::element::wire::{NFTA_SET_ELEM_LIST_SET, NFTA_SET_ELEM_LIST_TABLE};
use crate::read;
use crate::read::trace::Trace;
use crate::wire::decode::{name, need};
use crate::wire::message::*;

/// A change of the ruleset, as the kernel sends it:
/// [`Follower::apply`](crate::monitor::Follower::apply) turns it into the typed language. The events of one
/// commit arrive together, and [`Event::Generation`] ends them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A table.
    Table(Change, read::Table),
    /// A chain.
    Chain(Change, read::Chain),
    /// A rule.
    Rule(RuleChange, read::Rule),
    /// A set or a map.
    Set(Change, read::Set),
    /// Elements of a set or a map.
    Elements(Change, SetName, Vec<read::Element>),
    /// A stateful object.
    Object(Change, read::Object),
    /// A flowtable.
    Flowtable(Change, read::Flowtable),
    /// A commit is complete; carries the new generation of the ruleset.
    Generation(read::Generation),
    /// Events were lost (`ENOBUFS`): the ruleset has to be read again.
    Overrun,
    /// A step of a traced packet; sent to sockets that have joined
    /// [`TRACE_GROUP`](crate::monitor::TRACE_GROUP).
    Trace(Box<Trace>),
    /// A message that this crate does not know: its command (`nfnl_msg_type`).
    Unknown(u8),
}

/// Whether an object was added or deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Change {
    /// Added or changed.
    New,
    /// Created, by an operation that fails if the object exists (`NLM_F_EXCL`). Kernels before 5.13 report
    /// [`New`](Self::New).
    Created,
    /// Deleted.
    Deleted,
}

/// Whether a rule was added, and where, or deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RuleChange {
    /// Added.
    New(RulePosition),
    /// Inserted (without `NLM_F_APPEND`) after another rule: before the one that followed it. A rule that is
    /// inserted before all others is [`New`](Self::New).
    Inserted(RulePosition),
    /// Deleted.
    Deleted,
}

/// The position of a new rule in its chain, once all rules of the commit are in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RulePosition {
    /// Before all other rules.
    First,
    /// After the rule with this handle, and before another one.
    After(u64),
    /// After all other rules.
    Last,
    /// The position of the rule whose deletion was reported just before, which was the first or the last:
    /// the new rule replaces it.
    Replaced,
}

/// The set that elements belong to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SetName {
    /// The family of its table.
    pub family: Family,
    /// Its table.
    pub table: Name,
    /// Its name.
    pub set: Name,
}

impl Event {
    /// Decodes one message; `None` if it is not about nftables.
    ///
    /// # Errors
    /// If it is malformed.
    pub fn decode(message: Message<'_>) -> Result<Option<Self>, DecodeError> {
        let [subsystem, command] = message.header.kind.to_be_bytes();
        if subsystem != SUBSYSTEM {
            return Ok(None);
        }
        let (header, attributes) = message.netfilter()?;
        let family = Family(header.family);
        let flags = message.header.flags;
        let change = |new: u8| match command == new {
            true if flags.contains(Flags::EXCL) => Change::Created,
            true => Change::New,
            false => Change::Deleted,
        };
        Ok(Some(match command {
            NFT_MSG_NEWTABLE | NFT_MSG_DELTABLE => {
                Self::Table(change(NFT_MSG_NEWTABLE), read::Table::decode(family, attributes)?)
            }
            NFT_MSG_NEWCHAIN | NFT_MSG_DELCHAIN => {
                Self::Chain(change(NFT_MSG_NEWCHAIN), read::Chain::decode(family, attributes)?)
            }
            NFT_MSG_NEWRULE => {
                let rule = read::Rule::decode(family, attributes)?;
                let position = RulePosition::of(&rule, flags);
                let is_inserted = flags.contains(Flags::CREATE) && !flags.contains(Flags::APPEND);
                let change = match position {
                    RulePosition::After(_) if is_inserted => RuleChange::Inserted(position),
                    _ => RuleChange::New(position),
                };
                Self::Rule(change, rule)
            }
            NFT_MSG_DELRULE => Self::Rule(RuleChange::Deleted, read::Rule::decode(family, attributes)?),
            NFT_MSG_NEWSET | NFT_MSG_DELSET => {
                Self::Set(change(NFT_MSG_NEWSET), read::Set::decode(family, attributes)?)
            }
            NFT_MSG_NEWSETELEM | NFT_MSG_DELSETELEM => {
                let of = |kind, what| -> Result<Name, DecodeError> {
                    name(&need(attributes.clone().find(kind)?, what)?)
                };
                let set = SetName {
                    family,
                    table: of(NFTA_SET_ELEM_LIST_TABLE, "NFTA_SET_ELEM_LIST_TABLE")?,
                    set: of(NFTA_SET_ELEM_LIST_SET, "NFTA_SET_ELEM_LIST_SET")?,
                };
                Self::Elements(change(NFT_MSG_NEWSETELEM), set, read::Element::decode_list(attributes)?)
            }
            NFT_MSG_NEWGEN => Self::Generation(read::Generation::decode(attributes)?),
            NFT_MSG_TRACE => Self::Trace(Box::new(Trace::decode(family, attributes)?)),
            NFT_MSG_NEWOBJ | NFT_MSG_DELOBJ => {
                Self::Object(change(NFT_MSG_NEWOBJ), read::Object::decode(family, attributes)?)
            }
            NFT_MSG_NEWFLOWTABLE | NFT_MSG_DELFLOWTABLE => {
                Self::Flowtable(change(NFT_MSG_NEWFLOWTABLE), read::Flowtable::decode(family, attributes)?)
            }
            other => Self::Unknown(other),
        }))
    }

    /// Returns the family and the name of the table that the event is about, or that contains its object;
    /// `None` for the end of a commit.
    #[must_use]
    pub fn table(&self) -> Option<(Family, &Name)> {
        Some(match self {
            Self::Table(_, table) => (table.family, &table.name),
            Self::Chain(_, chain) => (chain.family, &chain.table),
            Self::Rule(_, rule) => (rule.family, &rule.table),
            Self::Set(_, set) => (set.family, &set.table),
            Self::Elements(_, set, _) => (set.family, &set.table),
            Self::Object(_, object) => (object.family, &object.table),
            Self::Flowtable(_, flowtable) => (flowtable.family, &flowtable.table),
            Self::Trace(trace) => (trace.family, &trace.table),
            Self::Generation(_) | Self::Overrun | Self::Unknown(_) => return None,
        })
    }
}

impl RulePosition {
    /// Returns the position of the rule of an event. The kernel reports the handle of the preceding rule,
    /// and uses flags where there is no preceding or no following rule (`nf_tables_rule_notify`):
    /// `NLM_F_APPEND` for a rule at the end. A replacement has the same flags, but not `NLM_F_CREATE`.
    fn of(rule: &read::Rule, flags: Flags) -> Self {
        match rule.position {
            Some(handle) => Self::After(handle),
            None if !flags.contains(Flags::APPEND) => Self::First,
            None if flags.contains(Flags::CREATE) => Self::Last,
            None => Self::Replaced,
        }
    }
}

/// `NFNLGRP_NFTRACE`: the multicast group of [`Event::Trace`], for packets on which a rule has set `meta
/// nftrace`.
pub const TRACE_GROUP: u32 = 9;

/// `NFNLGRP_NFTABLES`: the multicast group of all other events.
pub const GROUP: u32 = 7;
