//! Formats sets and maps in nft's syntax.

use std::fmt;

use crate::datatype::DataType;
use crate::object::{Set, SetData, SetPolicy, SetType};
use crate::tree::Expression;
use crate::wording::{Wording, Words};

impl fmt::Display for SetType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Typeof(expression) => expression.fmt(f),
            Self::Queue => f.write_str("queue"),
            Self::Types(types) => write_types(f, types.iter().copied()),
            Self::Parts(parts) => write_types(f, parts.iter().map(|part| part.data_type())),
        }
    }
}

fn write_types(f: &mut fmt::Formatter<'_>, types: impl Iterator<Item = DataType>) -> fmt::Result {
    for (i, of) in types.enumerate() {
        write!(f, "{}{of}", if i > 0 { " . " } else { "" })?;
    }
    Ok(())
}

/// `type a . b : c`, or `typeof a . b : c`.
pub(crate) struct TypeLine<'a>(pub(crate) &'a Set);

impl fmt::Display for TypeLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Set { key, data, .. } = self.0;
        f.write_str(if matches!(key, SetType::Typeof(_)) { "typeof " } else { "type " })?;
        key.fmt(f)?;
        match data {
            None => Ok(()),
            Some(SetData::Value(of)) => write!(f, " : {of}"),
            Some(SetData::Interval(of)) => write!(f, " : interval {of}"),
            Some(SetData::Verdict) => f.write_str(" : verdict"),
            Some(SetData::Object(kind)) => write!(f, " : {kind}"),
        }
    }
}

/// Formats the argument of an nft command: `set ip t s { type ipv4_addr ; size 10 ; }`.
impl fmt::Display for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {{ {} ;", self.word(), self.id, TypeLine(self))?;
        for line in self.properties(Wording::SCRIPT) {
            write!(f, " {line} ;")?;
        }
        f.write_str(" }")
    }
}

impl Set {
    /// Returns the properties between the type and the elements, in nft's order.
    pub(crate) fn properties(&self, with: Wording<'_>) -> Vec<String> {
        let flags = self.flag_names();
        let policy = match self.policy {
            Some(SetPolicy::Memory) => Some("policy memory".to_owned()),
            _ => None,
        };
        let with = with.for_new_elements();
        let statements: Vec<_> =
            self.statements.iter().map(|statement| statement.worded(with).to_string()).collect();
        let mut lines: Vec<String> = [
            policy,
            self.size.map(|size| format!("size {size}")),
            (!flags.is_empty()).then(|| format!("flags {}", flags.join(","))),
            (!statements.is_empty()).then(|| statements.join(" ")),
            self.auto_merge.then(|| "auto-merge".to_owned()),
            self.timeout.map(|timeout| format!("timeout {}", with.time(timeout))),
            self.gc_interval.map(|interval| format!("gc-interval {}", with.time(interval))),
        ]
        .into_iter()
        .flatten()
        .collect();
        lines.extend(self.comment.as_ref().map(|comment| format!("comment {comment}")));
        lines
    }
}

impl Set {
    /// Returns how its elements are worded: what is raw payload, in hexadecimal.
    pub(crate) fn worded_elements<'w>(&self, with: Wording<'w>) -> Wording<'w> {
        let raw = |of: &SetType| match of {
            SetType::Typeof(of) => raw_parts(of),
            _ => 0,
        };
        let data = match &self.data {
            Some(SetData::Value(of)) => raw(of),
            _ => 0,
        };
        with.with_raw_parts([raw(&self.key), data])
    }
}

/// Returns the parts of an expression that are raw payload, one bit each.
fn raw_parts(of: &Expression) -> u8 {
    match of {
        Expression::Concat(list) => {
            list.iter().take(8).enumerate().fold(0, |bits, (i, part)| bits | raw_parts(part) << i)
        }
        Expression::Binary(binary) => raw_parts(&binary.left),
        Expression::RawPayload(_) => 1,
        _ => 0,
    }
}
