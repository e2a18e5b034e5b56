//! The list of a rule's statements. A parsed rule stores them packed, because rulesets have many rules: as
//! typed nodes they take eight times their text.

#[cfg(feature = "text")]
mod nodes;
#[cfg(feature = "text")]
mod pack;

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;
#[cfg(feature = "text")]
use std::sync::OnceLock;

use crate::tree::Statement;
#[cfg(feature = "text")]
use pack::Pack;

/// The statements of a rule: a list that is read like a slice.
///
/// The statements of a parsed rule are stored packed, in about the size of their text. They are unpacked, and
/// stay so, when they are looked at for the first time; sending, printing and comparing rules leaves them
/// packed.
///
/// ```
/// use sluicegate_nftables::lang::{Counter, Statement, Verdict};
/// use sluicegate_nftables::{Family, Rule, TableId};
///
/// let chain = TableId::new(Family::INET, "filter".parse()?).chain("input".parse()?);
/// let mut rule = Rule::parse(&chain, "tcp dport 22 accept")?;
/// assert!(matches!(&rule.statements[..], [Statement::Match(_), Statement::Verdict(Verdict::Accept)]));
/// rule.statements.to_mut().insert(1, Counter::default().into());
/// assert_eq!(rule.to_string(), "rule inet filter input tcp dport 22 counter accept");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Statements(Store);

enum Store {
    List(Vec<Statement>),
    #[cfg(feature = "text")]
    Packed {
        bytes: Box<[u8]>,
        list: OnceLock<Box<[Statement]>>,
    },
}

impl Statements {
    /// Packs statements; if one of them cannot be packed, they are stored as they are. The buffer is used
    /// again for each rule.
    #[cfg(feature = "text")]
    pub(crate) fn pack(statements: &mut Vec<Statement>, buffer: &mut Vec<u8>) -> Self {
        buffer.clear();
        let packed = statements.iter().try_for_each(|statement| statement.pack(buffer));
        if packed.is_none() {
            return statements.drain(..).collect();
        }
        statements.clear();
        Self(Store::Packed { bytes: buffer.as_slice().into(), list: OnceLock::new() })
    }

    /// Returns the statements without keeping them unpacked.
    pub(crate) fn read(&self) -> Cow<'_, [Statement]> {
        match &self.0 {
            Store::List(list) => Cow::Borrowed(list),
            #[cfg(feature = "text")]
            Store::Packed { bytes, list } => match list.get() {
                Some(list) => Cow::Borrowed(list),
                None => Cow::Owned(unpack(bytes)),
            },
        }
    }

    /// Returns the statements as a list that can be changed.
    pub fn to_mut(&mut self) -> &mut Vec<Statement> {
        #[cfg(feature = "text")]
        if let Store::Packed { .. } = &self.0 {
            self.0 = Store::List(self.read().into_owned());
        }
        match &mut self.0 {
            Store::List(list) => list,
            #[cfg(feature = "text")]
            Store::Packed { .. } => unreachable!("it has just been replaced by a list"),
        }
    }

    /// Appends a statement.
    pub fn push(&mut self, statement: impl Into<Statement>) {
        self.to_mut().push(statement.into());
    }
}

/// Unpacks what [`Statements::pack`] has packed.
#[cfg(feature = "text")]
fn unpack(mut bytes: &[u8]) -> Vec<Statement> {
    let mut list = Vec::new();
    while !bytes.is_empty() {
        let Some(statement) = Statement::unpack(&mut bytes) else {
            debug_assert!(false, "statements that were not packed by `pack`");
            break;
        };
        list.push(statement);
    }
    list
}

impl Deref for Statements {
    type Target = [Statement];

    fn deref(&self) -> &[Statement] {
        match &self.0 {
            Store::List(list) => list,
            #[cfg(feature = "text")]
            Store::Packed { bytes, list } => list.get_or_init(|| unpack(bytes).into()),
        }
    }
}

impl Default for Statements {
    fn default() -> Self {
        Self(Store::List(Vec::new()))
    }
}

impl Clone for Statements {
    fn clone(&self) -> Self {
        Self(match &self.0 {
            Store::List(list) => Store::List(list.clone()),
            #[cfg(feature = "text")]
            Store::Packed { bytes, .. } => Store::Packed { bytes: bytes.clone(), list: OnceLock::new() },
        })
    }
}

impl PartialEq for Statements {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            // A statement has only one packed form.
            #[cfg(feature = "text")]
            (Store::Packed { bytes, .. }, Store::Packed { bytes: other, .. }) => bytes == other,
            _ => self.read() == other.read(),
        }
    }
}

impl Eq for Statements {}

impl fmt::Debug for Statements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.read().fmt(f)
    }
}

impl From<Vec<Statement>> for Statements {
    fn from(list: Vec<Statement>) -> Self {
        Self(Store::List(list))
    }
}

impl From<Statements> for Vec<Statement> {
    fn from(mut statements: Statements) -> Self {
        std::mem::take(statements.to_mut())
    }
}

impl FromIterator<Statement> for Statements {
    fn from_iter<I: IntoIterator<Item = Statement>>(statements: I) -> Self {
        Self(Store::List(statements.into_iter().collect()))
    }
}

impl Extend<Statement> for Statements {
    fn extend<I: IntoIterator<Item = Statement>>(&mut self, statements: I) {
        self.to_mut().extend(statements);
    }
}

impl IntoIterator for Statements {
    type Item = Statement;
    type IntoIter = std::vec::IntoIter<Statement>;

    fn into_iter(self) -> Self::IntoIter {
        Vec::from(self).into_iter()
    }
}

impl<'a> IntoIterator for &'a Statements {
    type Item = &'a Statement;
    type IntoIter = std::slice::Iter<'a, Statement>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{Counter, Verdict};

    fn packed(mut statements: Vec<Statement>) -> Statements {
        Statements::pack(&mut statements, &mut Vec::new())
    }

    #[test]
    fn packed_statements_equal_those_in_a_list() {
        let list = vec![Counter { packets: 1, bytes: u64::MAX }.into(), Verdict::Drop.into()];
        let packed = packed(list.clone());
        assert_eq!(packed, Statements::from(list.clone()));
        assert_eq!(packed.clone(), packed);
        assert_eq!(&packed[..], list);
        assert_ne!(packed, Statements::default());
    }

    #[test]
    fn reading_leaves_them_packed() {
        let statements = packed(vec![Verdict::Drop.into()]);
        assert_eq!((statements.read().len(), format!("{statements:?}").len()), (1, 15));
        assert!(matches!(&statements.0, Store::Packed { list, .. } if list.get().is_none()));
    }

    #[test]
    fn packed_statements_can_be_changed() {
        let mut statements = packed(vec![Counter::default().into()]);
        statements.push(Verdict::Accept);
        assert_eq!(statements.len(), 2);
        assert_eq!(statements.into_iter().last(), Some(Verdict::Accept.into()));
    }

    #[test]
    fn low_level_expressions_stay_a_list() {
        let list = vec![Verdict::Accept.into(), Statement::Raw(Vec::new())];
        assert_eq!(packed(list.clone()).read(), Cow::<[_]>::Borrowed(&list));
    }
}
