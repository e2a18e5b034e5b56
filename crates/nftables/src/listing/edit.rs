//! Edits the content of a table: what an editor of rules does to what it has read or made.

use std::collections::HashMap;

use crate::check::KnownSets;
use crate::compile::lower::{Before, Intervals, Lowered, lower};
use crate::compile::raise::{Sets, TableContext, raise};
use crate::error::{ContentProblem, Error};
use crate::expr::{Data, Expr, Verdict, VerdictCode};
use crate::listing::{TableContent, insert_bound_rules};
use crate::name::Name;
use crate::object::element::sortable;
use crate::object::{Chain, Rule};
use crate::sort;
use crate::tree::{BoundRule, Counter, Statement};

impl TableContent {
    /// Returns the rules of a chain, in order; `None` if the table has no such chain.
    #[must_use]
    pub fn rules(&self, chain: &str) -> Option<&[Rule]> {
        self.chains.iter().find(|(of, _)| of.id.name.as_str() == chain).map(|(_, rules)| &**rules)
    }

    /// Returns the rules of a chain to change them.
    pub fn rules_mut(&mut self, chain: &str) -> Option<&mut Vec<Rule>> {
        self.chains.iter_mut().find(|(of, _)| of.id.name.as_str() == chain).map(|(_, rules)| rules)
    }

    /// Adds a chain unless the table has one of that name, and returns its rules. A chain that is there stays
    /// as it is: its hook, policy and comment are not compared.
    pub fn ensure_chain(&mut self, chain: Chain) -> &mut Vec<Rule> {
        let found = self.chains.iter().position(|(of, _)| of.id.name == chain.id.name);
        let index = found.unwrap_or_else(|| {
            self.chains.push((chain, Vec::new()));
            self.chains.len() - 1
        });
        &mut self.chains[index].1
    }

    /// Puts a rule at the end of its chain.
    ///
    /// ```
    /// use sluicegate_nftables::lang::{Counter, Match, Payload, Verdict};
    /// use sluicegate_nftables::{Chain, Family, Port, Table, TableContent, TableId};
    ///
    /// let input = TableId::new(Family::INET, "guard".parse()?).chain("input".parse()?);
    /// let ssh = input.rule().then(Match::new(Payload::TCP_DPORT, Port(22)));
    /// let mut content = TableContent::new(Table::new(input.table.clone()));
    /// content.ensure_chain(Chain::new(input.clone()));
    /// content.append(ssh.clone().then(Verdict::Accept))?;
    /// content.insert(ssh.clone().then(Counter::default()))?;
    /// assert!(!content.ensure_rule(ssh.clone().then(Verdict::Accept))?);
    /// assert!(content.remove(&ssh.then(Counter { packets: 7, bytes: 420 }))?);
    /// let listed = "table inet guard {\n\tchain input {\n\t\ttcp dport 22 accept\n\t}\n}\n";
    /// assert_eq!(content.to_string(), listed);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Content`] if the table is not that of the rule, or has no such chain.
    pub fn append(&mut self, rule: Rule) -> Result<(), Error> {
        self.rules_of(&rule)?.push(rule);
        Ok(())
    }

    /// Puts a rule at the start of its chain.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    pub fn insert(&mut self, rule: Rule) -> Result<(), Error> {
        self.rules_of(&rule)?.insert(0, rule);
        Ok(())
    }

    /// Puts a rule at the end of its chain, unless the chain has the same one: [`same_as`](Rule::same_as), or
    /// another spelling that the kernel would list alike ([`normalised`](Self::normalised)). Returns whether
    /// the rule was added.
    ///
    /// # Errors
    /// As [`append`](Self::append), and as [`normalised`](Self::normalised) for the rule itself.
    pub fn ensure_rule(&mut self, rule: Rule) -> Result<bool, Error> {
        if self.find(&rule)?.is_some() {
            return Ok(false);
        }
        self.append(rule)?;
        Ok(true)
    }

    /// Removes the first rule of the chain that is the same, as [`ensure_rule`](Self::ensure_rule) compares.
    /// Returns whether there was one.
    ///
    /// # Errors
    /// As [`ensure_rule`](Self::ensure_rule).
    pub fn remove(&mut self, rule: &Rule) -> Result<bool, Error> {
        let Some(index) = self.find(rule)? else { return Ok(false) };
        self.rules_of(rule)?.remove(index);
        Ok(true)
    }

    /// Returns a rule as the kernel would list it in this table: matches that others imply are gone, constants
    /// have the form of a listing, and the members of anonymous sets are in order. Named sets have to be in the
    /// table: with one that is not, the rule is a [`Statement::Raw`].
    ///
    /// # Errors
    /// [`Error::Content`] if the rule cannot be sent.
    pub fn normalised(&self, rule: &Rule) -> Result<Rule, Error> {
        let known: KnownSets<'_> = self.sets.iter().map(|(set, _)| (&set.id, set)).collect();
        let statements = rule.statements.read();
        let lowered = lower(&self.table.id, &statements, &known, &Intervals::new(), &mut 0);
        let Lowered { mut exprs, before, .. } = lowered.map_err(|refused| {
            Error::content(format!("rule {rule}"), ContentProblem::Statement(Box::new(refused.cause)))
        })?;
        let table = &self.table.id;
        let named = self.sets.iter().map(|(set, _)| (set.id.name.clone(), (set.clone(), Vec::new())));
        let mut sets: Sets = named.collect();
        let mut bound: HashMap<Name, Vec<BoundRule>> = HashMap::new();
        let mut rules = Vec::new();
        for object in before {
            match object {
                Before::Set(anonymous) => {
                    let name = anonymous_name("set", anonymous.number);
                    let (set, mut elements) = (anonymous.set, anonymous.elements);
                    sort::by_key(&mut elements, |element| (element.is_catch_all(), sortable(&element.key())));
                    sets.insert(name, (set, elements));
                }
                Before::Chain(number) => {
                    bound.insert(anonymous_name("chain", number), Vec::new());
                }
                Before::Rule { chain, exprs, comment } => rules.push((chain, exprs, comment)),
            }
        }
        let context = TableContext::new(table, &sets);
        for (chain, mut exprs, comment) in rules {
            exprs.iter_mut().for_each(name_anonymous);
            let statements = raise(&context, &exprs);
            let rules = bound.entry(anonymous_name("chain", chain)).or_default();
            rules.push(BoundRule { statements, comment });
        }
        exprs.iter_mut().for_each(name_anonymous);
        let mut statements = raise(&context, &exprs);
        insert_bound_rules(&mut statements, |name| bound.get(name).cloned());
        Ok(Rule { statements: statements.into(), ..rule.clone() })
    }

    fn find(&self, rule: &Rule) -> Result<Option<usize>, Error> {
        let Some(rules) = self.rules(rule.chain.name.as_str()) else { return Ok(None) };
        if let Some(index) = rules.iter().position(|other| other.same_as(rule)) {
            return Ok(Some(index));
        }
        let normal = self.normalised(rule)?;
        // A rule of the table that cannot be sent is not the same as one that can.
        let is_same = |other: &Rule| self.normalised(other).is_ok_and(|other| other.same_as(&normal));
        Ok(rules.iter().position(is_same))
    }

    fn rules_of(&mut self, rule: &Rule) -> Result<&mut Vec<Rule>, Error> {
        if rule.chain.table != self.table.id {
            let here = format!("table {}", self.table.id);
            return Err(Error::content(format!("rule {}", rule.chain), ContentProblem::Elsewhere(here)));
        }
        let missing = || {
            let chain = format!("chain {}", rule.chain);
            Error::content(format!("rule {}", rule.chain), ContentProblem::Missing(chain))
        };
        self.rules_mut(rule.chain.name.as_str()).ok_or_else(missing)
    }
}

impl Rule {
    /// Returns whether two rules of a chain do the same in the same words: their statements and comments are
    /// equal. Handles, places and what has been counted are not compared.
    ///
    /// The kernel lists some statements in another form than they were written in:
    /// [`TableContent::normalised`] gives that form.
    #[must_use]
    pub fn same_as(&self, other: &Self) -> bool {
        let (left, right) = (self.statements.read(), other.statements.read());
        self.chain == other.chain
            && self.comment == other.comment
            && left.len() == right.len()
            && left
                .iter()
                .zip(right.iter())
                .all(|(left, right)| left == right || uncounted(left.clone()) == uncounted(right.clone()))
    }
}

/// Returns the statement as if nothing had been counted yet.
fn uncounted(statement: Statement) -> Statement {
    match statement {
        Statement::Counter(_) => Counter::default().into(),
        Statement::Quota(mut quota) => {
            quota.used = 0;
            quota.into()
        }
        Statement::Last(mut last) => {
            last.used = None;
            last.into()
        }
        Statement::Bound(mut chain) => {
            for rule in &mut chain.rules {
                rule.statements = std::mem::take(&mut rule.statements).into_iter().map(uncounted).collect();
            }
            Statement::Bound(chain)
        }
        other => other,
    }
}

/// The name of an anonymous object of one rule. A `/` cannot be in a name that nft reads, so that no set of
/// the table is meant.
fn anonymous_name(kind: &str, number: u32) -> Name {
    Name::from_kernel(&format!("__{kind}/{number}"))
}

/// Names the anonymous sets and chains that an expression refers to by number.
fn name_anonymous(expr: &mut Expr) {
    match expr {
        Expr::Lookup(lookup) => {
            if let Some(number) = lookup.set_id.take() {
                lookup.set = anonymous_name("set", number);
            }
        }
        Expr::Dynset(dynset) => {
            if let Some(number) = dynset.set_id.take() {
                dynset.set = anonymous_name("set", number);
            }
        }
        Expr::Objref(reference) => {
            if let (Some(number), Some(set)) = (reference.set_id.take(), &mut reference.set) {
                *set = anonymous_name("set", number);
            }
        }
        Expr::Immediate(immediate) => {
            if let Data::ChainId(code, number) = &immediate.data {
                let chain = anonymous_name("chain", *number);
                let verdict =
                    if *code == VerdictCode::GOTO { Verdict::Goto(chain) } else { Verdict::Jump(chain) };
                immediate.data = Data::Verdict(verdict);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::{Table, TableId};
    use crate::{Element, Family, Port, Set};

    fn content() -> TableContent {
        let id = TableId::new(Family::INET, Name::from_kernel("t"));
        let mut content = TableContent::new(Table::new(id.clone()))
            .set(Set::new(id.set(Name::from_kernel("ports")), crate::DataType::INET_SERVICE), [])
            .set(
                Set::new(id.set(Name::from_kernel("some")), crate::DataType::INET_SERVICE),
                [Port(1).into()],
            );
        content.ensure_chain(Chain::new(id.chain(Name::from_kernel("c"))));
        content
    }

    fn rule(content: &TableContent, text: &str) -> Rule {
        Rule::parse(&content.table.id.chain(Name::from_kernel("c")), text).expect("a rule")
    }

    #[test]
    fn rules_are_the_same_in_every_spelling_that_is_listed_alike() {
        let pairs = [
            ("meta l4proto tcp tcp dport 22 accept", "tcp dport 22 accept"),
            ("tcp dport { 80, 443 } counter", "tcp dport { 443, 80 } counter packets 9 bytes 81"),
            ("tcp dport @ports quota 9 bytes used 3 bytes", "meta l4proto 6 tcp dport @ports quota 9 bytes"),
            ("jump { ip protocol tcp tcp dport 1 accept; }", "jump { ip protocol tcp tcp dport 1 accept; }"),
        ];
        for (one, other) in pairs {
            let mut content = content();
            let (one, other) = (rule(&content, one), rule(&content, other));
            assert!(content.ensure_rule(one.clone()).unwrap());
            assert!(!content.ensure_rule(other.clone()).unwrap(), "{other}");
            assert!(content.remove(&other).unwrap(), "{other}");
            assert_eq!(content.rules("c"), Some(&[][..]));
        }
    }

    #[test]
    fn rules_with_another_meaning_are_not_the_same() {
        let pairs = [
            ("tcp dport 22 accept", "tcp dport 23 accept"),
            ("tcp dport @ports accept", "tcp dport @some accept"),
            ("tcp dport { 80, 443 } accept", "tcp dport { 80, 444 } accept"),
            ("accept comment \"a\"", "accept comment \"b\""),
            ("quota 9 bytes", "quota 8 bytes"),
            ("jump { tcp dport 1 accept; }", "goto { tcp dport 1 accept; }"),
        ];
        for (one, other) in pairs {
            let mut content = content();
            let (one, other) = (rule(&content, one), rule(&content, other));
            assert!(content.ensure_rule(one).unwrap());
            assert!(!content.remove(&other).unwrap(), "{other}");
            assert!(content.ensure_rule(other).unwrap());
        }
    }

    #[test]
    fn a_rule_of_another_place_is_refused() {
        let mut content = content();
        let elsewhere = TableId::new(Family::IP, Name::from_kernel("t")).chain(Name::from_kernel("c"));
        let refused = content.append(elsewhere.rule().then(Verdict::Drop)).unwrap_err().to_string();
        assert_eq!(refused, "rule ip t c: it is listed in table inet t");
        let missing = content.table.id.chain(Name::from_kernel("d")).rule().then(Verdict::Drop);
        assert!(content.insert(missing.clone()).unwrap_err().to_string().contains("chain inet t d"));
        assert!(!content.remove(&missing).unwrap());
        assert_eq!(Element::from(Port(1)), content.elements("some")[0]);
    }
}
