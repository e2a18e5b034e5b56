//! From the tree to text: the line that a node was read from, or for a changed one the form that
//! iptables-save prints.

use std::fmt::{self, Write as _};

use crate::tree::{Action, Chain, Command, Counters, Entry, Item, Rule, Save, Source, Table, Verb};
use crate::words::quote_if_needed;

impl fmt::Display for Save<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.items.iter().try_for_each(|item| item.fmt(f))
    }
}

impl fmt::Display for Item<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Table(table) => table.fmt(f),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.head {
            Source(line) if line.is_empty() => writeln!(f, "*{}", self.name)?,
            Source(line) => f.write_str(line)?,
        }
        self.entries.iter().try_for_each(|entry| entry.fmt(f))?;
        match &self.commit {
            Source(line) if line.is_empty() => f.write_str("COMMIT\n"),
            Source(line) => f.write_str(line),
        }
    }
}

impl fmt::Display for Entry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Chain(chain) => chain.fmt(f),
            Self::Rule(rule) => rule.fmt(f),
            Self::Command(command) => command.fmt(f),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.source.0.is_empty() {
            return f.write_str(&self.source.0);
        }
        write!(f, ":{} {}", self.name, self.policy.as_deref().unwrap_or("-"))?;
        if let Some(counters) = self.counters {
            write!(f, " {counters}")?;
        }
        f.write_char('\n')
    }
}

impl fmt::Display for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}:{}]", self.packets, self.bytes)
    }
}

impl fmt::Display for Rule<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.source.0.is_empty() {
            return f.write_str(&self.source.0);
        }
        if let Some(counters) = self.counters {
            write!(f, "{counters} ")?;
        }
        let letter = match self.action {
            Action::Append => 'A',
            Action::Insert(_) => 'I',
            Action::Replace(_) => 'R',
            Action::Delete | Action::DeleteNumber(_) => 'D',
            Action::Check => 'C',
        };
        f.write_char('-')?;
        f.write_char(letter)?;
        f.write_char(' ')?;
        f.write_str(&word(&self.chain))?;
        if let Action::Insert(Some(number)) | Action::Replace(number) | Action::DeleteNumber(number) =
            self.action
        {
            write!(f, " {number}")?;
        }
        if !self.words.is_empty() {
            f.write_char(' ')?;
            f.write_str(&self.words)?;
        }
        f.write_char('\n')
    }
}

impl fmt::Display for Command<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.source.0.is_empty() {
            return f.write_str(&self.source.0);
        }
        writeln!(f, "{}", self.verb)
    }
}

impl fmt::Display for Verb<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::New(chain) => write!(f, "-N {}", word(chain)),
            Self::DeleteChain(chain) => with_chain(f, "-X", chain.as_deref()),
            Self::Flush(chain) => with_chain(f, "-F", chain.as_deref()),
            Self::Policy(chain, target, None) => write!(f, "-P {} {}", word(chain), word(target)),
            Self::Policy(chain, target, Some(Counters { packets, bytes })) => {
                write!(f, "-P {} {} -c {packets} {bytes}", word(chain), word(target))
            }
            Self::Zero(chain, None) => with_chain(f, "-Z", chain.as_deref()),
            Self::Zero(chain, Some(number)) => {
                with_chain(f, "-Z", chain.as_deref())?;
                write!(f, " {number}")
            }
            Self::Rename(old, new) => write!(f, "-E {} {}", word(old), word(new)),
        }
    }
}

fn with_chain(f: &mut fmt::Formatter<'_>, verb: &str, chain: Option<&str>) -> fmt::Result {
    match chain {
        Some(chain) => write!(f, "{verb} {}", word(chain)),
        None => f.write_str(verb),
    }
}

/// Returns a chain name as a word. One that cannot be quoted was not read from a line; it is printed as an
/// empty word, which iptables-restore refuses, so that nothing is injected.
fn word(name: &str) -> std::borrow::Cow<'_, str> {
    quote_if_needed(name).unwrap_or("\"\"".into())
}
