//! Commits as `nft monitor` prints them.

use crate::monitor::Commit;
use crate::monitor::follower::Reported;
use crate::object::set::TypeLine;
use crate::object::{BaseChain, Chain, ObjectConfig, Rule, Set, SetFlags, StatefulObject, Table};
use crate::transaction::{Flush, HandleId, Object, Operation, Target, Transaction};
use crate::wording::{ListOptions, Wording, Words};

impl Commit {
    /// Returns the lines that `nft monitor` prints for the commit, with names from `options`; the last line
    /// contains the generation and the process that committed it.
    ///
    /// Sets and chains that belong to a rule have no line of their own: they are printed within the rule.
    /// The deletion of such a set has one where the kernel does not say what it was.
    #[must_use]
    pub fn lines(&self, options: &ListOptions) -> Vec<String> {
        let with = Wording::new(options);
        let reported = self.reported.iter().filter(|reported| reported.has_line());
        let mut lines: Vec<String> = reported.map(|reported| reported.line(with)).collect();
        lines.push(self.generation_line());
        lines
    }

    /// Returns the lines that `nft --echo` prints where this transaction made the commit: those about what it
    /// adds and replaces, and not those about what it deletes, flushes or renames. The last one is that of the
    /// generation, which the kernel reports where the transaction starts with an addition.
    #[must_use]
    pub fn echo_lines(&self, sent: &Transaction, options: &ListOptions) -> Vec<String> {
        let with = Wording::new(options);
        let reported = self.echoed(sent).filter(|reported| reported.has_line());
        let mut lines: Vec<String> = reported.map(|reported| reported.line(with)).collect();
        let asks = |operation: &Operation| {
            use Operation::{Add, Create, Insert, Replace};
            matches!(operation, Add(_) | Create(_) | Insert(_) | Replace(_))
        };
        lines.extend(sent.operations().first().filter(|first| asks(first)).map(|_| self.generation_line()));
        lines
    }

    fn generation_line(&self) -> String {
        let generation = &self.generation;
        let by = match (generation.process, &generation.process_name) {
            (Some(process), Some(name)) => format!(" by process {process} ({name})"),
            _ => String::new(),
        };
        format!("# new generation {}{by}", generation.id)
    }
}

impl Reported {
    fn has_line(&self) -> bool {
        let is_set = matches!(self.operation, Operation::Delete(Target::Set(_)));
        !self.is_internal || is_set && self.deleted.is_none()
    }

    fn line(&self, with: Wording<'_>) -> String {
        let handle = match (with.options.handles, self.handle) {
            (true, Some(handle)) => Some(format!("# handle {handle}")),
            _ => None,
        };
        let behind = |text: String| match &handle {
            Some(handle) => format!("{text} {handle}"),
            None => text,
        };
        let verb = self.verb;
        let inside = handle.as_ref().map(|handle| format!(" {handle}")).unwrap_or_default();
        match &self.operation {
            Operation::Add(Object::Table(table)) => behind(format!("{verb} {}", of_table(table))),
            Operation::Add(Object::Chain(chain)) => behind(format!("{verb} {}", of_chain(chain, with))),
            Operation::Rename(rename) => behind(format!("add chain {} {}", rename.chain.table, rename.name)),
            Operation::Add(Object::Rule(rule)) => behind(format!("{verb} {}", of_rule(rule, with))),
            Operation::Insert(rule) => behind(format!("insert {}", of_rule(rule, with))),
            Operation::Add(Object::Set(set)) => format!("{verb} {}", of_set(set, &inside, with)),
            Operation::Add(Object::Stateful(object)) => {
                format!("{verb} {}", of_object(object, &inside, with))
            }
            Operation::Add(Object::Elements(elements)) => {
                let list: Vec<_> =
                    elements.list.iter().map(|element| element.worded(with).to_string()).collect();
                format!("{verb} element {} {{ {} }}", elements.set, list.join(", "))
            }
            Operation::Delete(Target::Elements(elements)) => {
                let list: Vec<_> =
                    elements.list.iter().map(|element| element.worded(with).to_string()).collect();
                format!("delete element {} {{ {} }}", elements.set, list.join(", "))
            }
            Operation::Add(Object::Flowtable(flowtable)) => {
                format!(
                    "{verb} flowtable {} {{{inside} {}; }}",
                    flowtable.id,
                    flowtable.properties(with).join("; ")
                )
            }
            Operation::Delete(Target::Table(_) | Target::Handle(HandleId::Table(..))) => {
                behind(self.operation.to_string())
            }
            // nft calls a map a set here, even where the kernel says that it is one.
            Operation::Delete(Target::Set(id)) => format!("delete set {id}"),
            Operation::Flush(Flush::Ruleset(_)) => self.operation.to_string(),
            other => other.to_string(),
        }
    }
}

/// nft 1.0.6 does not print comments here.
fn of_table(of: &Table) -> String {
    let flags = of.flag_names();
    match flags.is_empty() {
        true => format!("table {}", of.id),
        false => format!("table {} {{ flags {}; }}", of.id, flags.join(",")),
    }
}

fn of_chain(of: &Chain, with: Wording<'_>) -> String {
    let Some(base) = &of.base else { return format!("chain {}", of.id) };
    // nft 1.0.6 prints no devices here either.
    let base = BaseChain { devices: Vec::new(), ..base.clone() };
    let header = base.header(of.id.table.family, with);
    let policy = base.policy.map(|policy| format!(" policy {policy};")).unwrap_or_default();
    format!("chain {} {{ {header};{policy} }}", of.id)
}

fn of_rule(of: &Rule, with: Wording<'_>) -> String {
    let place = of.position.map(|position| format!(" handle {position}")).unwrap_or_default();
    format!("rule {}{place} {}", of.chain, of.body_with(with.options))
}

fn of_set(of: &Set, handle: &str, with: Wording<'_>) -> String {
    let mut lines = vec![TypeLine(of).to_string()];
    let mut declared = of.clone();
    if of.flags.contains(SetFlags::CONSTANT) {
        (declared.size, declared.policy) = (None, None);
    }
    lines.extend(declared.properties(with));
    format!("{} {} {{{handle} {}; }} ", of.word(), of.id, lines.join("; "))
}

fn of_object(of: &StatefulObject, handle: &str, with: Wording<'_>) -> String {
    let mut lines: Vec<_> = of.comment.iter().map(|comment| format!("comment {comment}")).collect();
    lines.extend(of.config.properties(false, with));
    // nft 1.0.6 separates the parts of some kinds.
    let text = match of.config {
        ObjectConfig::CtHelper { .. }
        | ObjectConfig::CtTimeout { .. }
        | ObjectConfig::CtExpectation { .. } => {
            let comment = of.comment.iter().map(|comment| format!("comment {comment} "));
            comment.chain([of.config.properties(false, with).join("; ")]).collect()
        }
        _ => lines.join(" "),
    };
    let end = match of.config {
        ObjectConfig::Counter(_)
        | ObjectConfig::Quota(_)
        | ObjectConfig::Limit(_)
        | ObjectConfig::Secmark(_) => "",
        _ => ";",
    };
    format!("{} {{{handle} {text}{end} }} ", of.id)
}
