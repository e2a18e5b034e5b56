//! The behaviour of a rule as bytes that are equal exactly when two rules behave alike: its expressions as
//! the kernel dumps them, without their state, with the content of the anonymous sets and chains of the rule
//! in place of their names.

use std::collections::HashMap;

use sluicegate_netlink::TooLong;
use sluicegate_netlink::attr::{self, Attributes};

use crate::compile::lower::{AnonymousSet, Before, Lowered};
use crate::expr::complete::complete;
use crate::expr::data::NFT_DATA_VERDICT;
use crate::expr::wire::NFTA_LIST_ELEM;
use crate::expr::{Data, DynsetFlags, Expr, Immediate, Invert, Last, LookupFlags, VerdictCode};
use crate::family::Family;
use crate::name::{Comment, Name};
use crate::object::element::Form;
use crate::object::{Element, ElementData, SetFlags};
use crate::read;
use crate::reconcile::elements::{Found, from_kernel, from_wanted};
use crate::reconcile::kernel::Kernel;
use crate::sort;
use crate::tree::stateful::stateful;
use crate::tree::{Statement, Verdict};

/// Encodes the bodies of rules of one table.
pub(super) struct Bodies<'a> {
    pub(super) family: Family,
    /// Returns whether a set defines expressions for all its elements; then those of a rule that adds
    /// elements are not listed.
    pub(super) defines_state: &'a dyn Fn(&Name) -> bool,
}

/// Rule bodies, one after the other.
type Bytes = Vec<u8>;

impl Bodies<'_> {
    /// Appends the body of one of the kernel's rules.
    pub(super) fn kernel(
        &self,
        kernel: &Kernel<'_>,
        rule: &read::Rule,
        out: &mut Bytes,
    ) -> Result<(), TooLong> {
        write_comment(rule.comment().map(|text| Comment::from_kernel(&text)).as_ref(), out);
        for expr in &rule.expressions {
            let mut expr = expr.clone();
            match &mut expr {
                Expr::Lookup(lookup) => {
                    if let Some((set, elements)) = kernel.anonymous(&lookup.set) {
                        lookup.set = own();
                        self.kernel_set(set, elements, out)?;
                    }
                }
                Expr::Objref(reference) => {
                    if let Some(name) = &mut reference.set
                        && let Some((set, elements)) = kernel.anonymous(name)
                    {
                        *name = own();
                        self.kernel_set(set, elements, out)?;
                    }
                }
                Expr::Dynset(dynset) => {
                    // The set is a named object, and the rule depends on its name only.
                    if let Some((set, _)) = kernel.anonymous(&dynset.set) {
                        self.kernel_set(set, &[], out)?;
                    }
                }
                Expr::Immediate(Immediate { data, .. }) => {
                    let (code, chain) = match data {
                        Data::Verdict(Verdict::Jump(chain)) => (VerdictCode::JUMP, &*chain),
                        Data::Verdict(Verdict::Goto(chain)) => (VerdictCode::GOTO, &*chain),
                        _ => (VerdictCode::CONTINUE, &own()),
                    };
                    if let Some(rules) = kernel.bound(chain) {
                        let at = open(CHAIN, out);
                        for rule in rules {
                            let at = open(RULE, out);
                            self.kernel(kernel, rule, out)?;
                            close(at, out);
                        }
                        close(at, out);
                        *data = Data::Code(code);
                    }
                }
                _ => {}
            }
            self.expr(expr, out)?;
        }
        Ok(())
    }

    /// Appends the body of a wanted rule.
    pub(super) fn wanted(
        &self,
        lowered: &Lowered,
        comment: Option<&Comment>,
        out: &mut Bytes,
    ) -> Result<(), TooLong> {
        let own = Own::of(lowered);
        self.wanted_rule(&own, &lowered.exprs, comment, out)
    }

    fn wanted_rule(
        &self,
        own: &Own<'_>,
        exprs: &[Expr],
        comment: Option<&Comment>,
        out: &mut Bytes,
    ) -> Result<(), TooLong> {
        write_comment(comment, out);
        for expr in exprs {
            let mut expr = expr.clone();
            match &mut expr {
                Expr::Lookup(lookup) => {
                    if let Some(set) = own.set(lookup.set_id) {
                        lookup.set = self::own();
                        self.wanted_set(set, out)?;
                    }
                }
                Expr::Objref(reference) => {
                    if let Some(set) = own.set(reference.set_id) {
                        reference.set = Some(self::own());
                        self.wanted_set(set, out)?;
                    }
                }
                Expr::Dynset(dynset) => {
                    if let Some(set) = own.set(dynset.set_id) {
                        self.wanted_set(set, out)?;
                    }
                }
                Expr::Immediate(Immediate { data, .. }) => {
                    if let Data::ChainId(code, number) = data
                        && let Some(rules) = own.chains.get(number)
                    {
                        let at = open(CHAIN, out);
                        for (exprs, comment) in rules {
                            let at = open(RULE, out);
                            self.wanted_rule(own, exprs, *comment, out)?;
                            close(at, out);
                        }
                        close(at, out);
                        *data = Data::Code(*code);
                    }
                }
                _ => {}
            }
            self.expr(expr, out)?;
        }
        Ok(())
    }

    fn expr(&self, mut expr: Expr, out: &mut Bytes) -> Result<(), TooLong> {
        match &mut expr {
            Expr::Lookup(lookup) => {
                lookup.set_id = None;
                lookup.flags = Some(lookup.flags.unwrap_or(LookupFlags::empty()));
            }
            Expr::Dynset(dynset) => {
                dynset.set_id = None;
                dynset.timeout = Some(dynset.timeout.unwrap_or(0));
                dynset.flags = Some(dynset.flags.unwrap_or(DynsetFlags::empty()) & DynsetFlags::INVERT);
                if (self.defines_state)(&dynset.set) {
                    dynset.expr = None;
                    dynset.exprs = Vec::new();
                }
            }
            Expr::Objref(reference) => {
                reference.set_id = None;
                if reference.set.is_some() {
                    (reference.kind, reference.name) = (None, None);
                }
            }
            _ => {}
        }
        write_expr(expr, self.family, out)
    }

    /// Size, policy and nft's user data are left out: the size follows from the elements, and the others do
    /// not change how the rule behaves.
    fn set(&self, set: &read::Set, out: &mut Bytes) -> Result<(), TooLong> {
        let numbers = [
            set.flags.bits(),
            set.key_type,
            set.key_len,
            set.data_type.unwrap_or(0),
            set.data_len.filter(|_| set.data_type != Some(NFT_DATA_VERDICT)).unwrap_or(0),
            set.object_kind.map_or(0, |kind| kind.0),
        ];
        numbers.iter().chain(&set.fields).for_each(|number| out.extend_from_slice(&number.to_ne_bytes()));
        let at = open(RULE, out);
        set.expressions.iter().try_for_each(|expr| write_expr(expr.clone(), self.family, out))?;
        close(at, out);
        Ok(())
    }

    fn kernel_set(
        &self,
        set: &read::Set,
        elements: &[read::Element],
        out: &mut Bytes,
    ) -> Result<(), TooLong> {
        let at = open(SET, out);
        self.set(set, out)?;
        let form = match (set.flags.contains(SetFlags::INTERVAL), set.fields.len() > 1) {
            (false, _) => Form::Plain,
            (true, false) => Form::Interval,
            (true, true) => Form::Concat,
        };
        let mut all = Vec::with_capacity(elements.len());
        for Found { range, element, .. } in from_kernel(form, elements) {
            let mut one = Vec::new();
            write_range(&range.start, range.end.as_deref(), &mut one);
            match (&element.data, &element.details().object) {
                (Some(data), _) => one.extend(attr::encode(|w| data.encode(w, 1))?),
                (None, Some(object)) => one.extend_from_slice(object.as_bytes()),
                (None, None) => {}
            }
            write_comment(element.comment().map(|text| Comment::from_kernel(&text)).as_ref(), &mut one);
            element
                .details()
                .expressions
                .iter()
                .try_for_each(|e| write_expr(e.clone(), self.family, &mut one))?;
            all.push(one);
        }
        write_sorted(all, out);
        close(at, out);
        Ok(())
    }

    fn wanted_set(&self, anonymous: &AnonymousSet, out: &mut Bytes) -> Result<(), TooLong> {
        let AnonymousSet { set, elements, key_type, .. } = anonymous;
        let at = open(SET, out);
        let sent = attr::encode(|w| set.encode_typed(w, 0, *key_type))?;
        if let Ok(sent) = read::Set::decode(self.family, Attributes::new(&sent)) {
            self.set(&sent, out)?;
        }
        let mut all = Vec::with_capacity(elements.len());
        for element in elements {
            let mut one = Vec::new();
            let range = from_wanted(Form::of(set), element);
            write_range(&range.start, range.end.as_deref(), &mut one);
            match element.data() {
                ElementData::None => {}
                ElementData::Object(object) => one.extend_from_slice(object.as_bytes()),
                ElementData::Verdict(verdict) => {
                    one.extend(attr::encode(|w| Data::Verdict(verdict).encode(w, 1))?);
                }
                ElementData::Value(value) => {
                    one.extend(attr::encode(|w| Data::Value(value.bytes().into()).encode(w, 1))?);
                }
                ElementData::Range(low, high) => {
                    let both = [low.bytes(), high.bytes()].concat();
                    one.extend(attr::encode(|w| Data::Value(both.into()).encode(w, 1))?);
                }
            }
            write_comment(element.get_comment(), &mut one);
            write_statements(statements_of(element, &set.statements), self.family, &mut one)?;
            all.push(one);
        }
        write_sorted(all, out);
        close(at, out);
        Ok(())
    }
}

/// A rule of an anonymous chain.
type OwnRule<'l> = (&'l [Expr], Option<&'l Comment>);

/// The anonymous sets and chains of a lowered rule, by their numbers in the batch.
struct Own<'l> {
    sets: HashMap<u32, &'l AnonymousSet>,
    chains: HashMap<u32, Vec<OwnRule<'l>>>,
}

impl<'l> Own<'l> {
    fn of(lowered: &'l Lowered) -> Self {
        let mut own = Self { sets: HashMap::new(), chains: HashMap::new() };
        for before in &lowered.before {
            match before {
                Before::Set(set) => {
                    own.sets.insert(set.number, set);
                }
                Before::Chain(number) => {
                    own.chains.insert(*number, Vec::new());
                }
                Before::Rule { chain, exprs, comment } => {
                    own.chains.entry(*chain).or_default().push((exprs, comment.as_ref()));
                }
            }
        }
        own
    }

    fn set(&self, number: Option<u32>) -> Option<&'l AnonymousSet> {
        self.sets.get(&number?).copied()
    }
}

/// The statements of an element: its own, or those of its set.
pub(super) fn statements_of<'s>(element: &'s Element, of_set: &'s [Statement]) -> &'s [Statement] {
    if element.statements().is_empty() { of_set } else { element.statements() }
}

/// Appends statements as the kernel dumps them, without their state.
pub(super) fn write_statements(
    statements: &[Statement],
    family: Family,
    out: &mut Bytes,
) -> Result<(), TooLong> {
    statements.iter().filter_map(stateful).try_for_each(|expr| write_expr(expr, family, out))
}

/// Appends an expression as the kernel dumps it, without its state.
pub(super) fn write_expr(mut expr: Expr, family: Family, out: &mut Bytes) -> Result<(), TooLong> {
    forget(&mut expr);
    complete(&mut expr, family);
    write_bytes(EXPR, &attr::encode(|w| expr.encode(w, NFTA_LIST_ELEM))?, out);
    Ok(())
}

/// Removes the state from an expression: values that packets have changed.
fn forget(expr: &mut Expr) {
    match expr {
        Expr::Counter(counter) => (counter.bytes, counter.packets) = (None, None),
        Expr::Quota(quota) => {
            quota.consumed = None;
            quota.flags = quota.flags.map(|flags| flags & Invert::OVER);
        }
        Expr::Last(last) => *last = Last { set: None, msecs: None },
        Expr::Dynset(dynset) => {
            dynset.expr.as_deref_mut().into_iter().chain(&mut dynset.exprs).for_each(forget);
        }
        _ => {}
    }
}

fn write_comment(comment: Option<&Comment>, out: &mut Bytes) {
    if let Some(comment) = comment {
        write_bytes(COMMENT, comment.as_str().as_bytes(), out);
    }
}

fn write_range(start: &[u8], end: Option<&[u8]>, out: &mut Bytes) {
    write_bytes(RULE, start, out);
    if let Some(end) = end {
        write_bytes(SET, end, out);
    }
}

fn write_sorted(mut all: Vec<Bytes>, out: &mut Bytes) {
    sort::by(&mut all, Ord::cmp);
    all.iter().for_each(|one| write_bytes(RULE, one, out));
}

fn write_bytes(kind: u8, bytes: &[u8], out: &mut Bytes) {
    let at = open(kind, out);
    out.extend_from_slice(bytes);
    close(at, out);
}

/// Starts a section: its kind and a placeholder for its length. Returns the offset where it starts.
fn open(kind: u8, out: &mut Bytes) -> usize {
    out.extend_from_slice(&[kind, 0, 0, 0, 0, 0, 0, 0, 0]);
    out.len()
}

fn close(at: usize, out: &mut Bytes) {
    let length = (out.len() - at) as u64;
    if let Some(place) = out.get_mut(at - 8..at) {
        place.copy_from_slice(&length.to_ne_bytes());
    }
}

/// The name that stands for every anonymous set of a rule.
fn own() -> Name {
    Name::from_kernel("")
}

/// The kinds of sections.
const COMMENT: u8 = 1;
const CHAIN: u8 = 2;
const RULE: u8 = 3;
const SET: u8 = 4;
const EXPR: u8 = 5;
