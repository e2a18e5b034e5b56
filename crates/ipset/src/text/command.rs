//! Commands that change sets, typed.

use std::collections::HashMap;
use std::fmt;

use super::{EntryWords, ParseError, Statement, Verb};
use crate::{Entry, Family, Names, Reason, SetName, SetSpec, SetType};

/// A line of a restore file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Line {
    /// Its number, from 1.
    pub number: u32,
    /// Whether `-exist` applies: adding an existing entry, or deleting one that does not exist, is not an
    /// error.
    pub exist: bool,
    /// The command.
    pub command: Command,
}

/// A command of a restore file.
///
/// [`Display`](fmt::Display) writes the line.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Command {
    /// `create`.
    Create(SetSpec),
    /// `add SETNAME ENTRY`.
    Add(SetName, Entry),
    /// `del SETNAME ENTRY`.
    Delete(SetName, Entry),
    /// `test SETNAME ENTRY`.
    Test(SetName, Entry),
    /// `destroy`, one set or all.
    Destroy(Option<SetName>),
    /// `flush`, one set or all.
    Flush(Option<SetName>),
    /// `rename FROM TO`.
    Rename(SetName, SetName),
    /// `swap FROM TO`.
    Swap(SetName, SetName),
}

impl Command {
    /// Converts a statement into a command; `None` for statements that change nothing (`list`, `help`, ...).
    ///
    /// `type_of` returns the type and family of a set.
    ///
    /// # Errors
    /// The word that is not valid, but never [`Reason::MissingOption`].
    pub fn from_statement(
        statement: Statement<'_>,
        names: &dyn Names,
        type_of: impl FnOnce(&SetName) -> Option<(SetType, Family)>,
    ) -> Result<Option<Self>, ParseError> {
        Ok(Some(match statement {
            Statement::Create(spec) => Self::Create(spec),
            Statement::Destroy(set) => Self::Destroy(set),
            Statement::Flush(set) => Self::Flush(set),
            Statement::Rename(from, to) => Self::Rename(from, to),
            Statement::Swap(from, to) => Self::Swap(from, to),
            Statement::Entry(words) => Self::from_entry(&words, names, type_of)?,
            _ => return Ok(None),
        }))
    }

    fn from_entry(
        words: &EntryWords<'_>,
        names: &dyn Names,
        type_of: impl FnOnce(&SetName) -> Option<(SetType, Family)>,
    ) -> Result<Self, ParseError> {
        let set = words.set;
        let (kind, family) =
            type_of(&set).ok_or_else(|| words.element.wrong(Reason::UnknownSet(set.to_string())))?;
        let entry = words.read(kind, family, names)?;
        Ok(match words.verb {
            Verb::Add => Self::Add(set, entry),
            Verb::Delete => Self::Delete(set, entry),
            Verb::Test => Self::Test(set, entry),
        })
    }

    /// Records the types of the sets after this command, and returns whether they changed.
    pub(super) fn follow(&self, sets: &mut HashMap<SetName, Option<(SetType, Family)>>) -> bool {
        match self {
            Self::Create(spec) => {
                sets.insert(spec.name(), Some((spec.set_type(), spec.family())));
            }
            Self::Destroy(Some(set)) => {
                sets.insert(*set, None);
            }
            Self::Destroy(None) => sets.values_mut().for_each(|kind| *kind = None),
            Self::Rename(from, to) => {
                if let Some(kind) = sets.insert(*from, None) {
                    sets.insert(*to, kind);
                }
            }
            // Sets of different types cannot be swapped.
            Self::Swap(..) | Self::Add(..) | Self::Delete(..) | Self::Test(..) | Self::Flush(_) => {
                return false;
            }
        }
        true
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create(spec) => spec.fmt(f),
            Self::Add(set, entry) => write!(f, "add {} {entry}", set.quoted()),
            Self::Delete(set, entry) => write!(f, "del {} {}", set.quoted(), entry.element()),
            Self::Test(set, entry) => {
                let nomatch = if entry.options().nomatch { " nomatch" } else { "" };
                write!(f, "test {} {}{nomatch}", set.quoted(), entry.element())
            }
            Self::Destroy(None) => f.write_str("destroy"),
            Self::Destroy(Some(set)) => write!(f, "destroy {}", set.quoted()),
            Self::Flush(None) => f.write_str("flush"),
            Self::Flush(Some(set)) => write!(f, "flush {}", set.quoted()),
            Self::Rename(from, to) => write!(f, "rename {} {}", from.quoted(), to.quoted()),
            Self::Swap(from, to) => write!(f, "swap {} {}", from.quoted(), to.quoted()),
        }
    }
}
