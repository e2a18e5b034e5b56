//! Lowers the typed language to the kernel's expressions: adds implied matches, allocates registers, creates
//! anonymous sets. The bytecode is that of nft 1.0.6 for the same text, so that every version of nft lists it
//! in that form.

mod bound;
mod fold;
pub(crate) mod imply;
mod inner;
mod load;
mod lookup;
mod mangle;
mod matching;
mod merge;
mod nat;
pub(crate) mod sets;
mod statement;

use std::collections::HashSet;

use crate::check::judge::Judge;
use crate::check::{Definitions, KnownSets, LowerError};
use crate::datatype::DataType;
use crate::expr::{self, BitwiseOp, ByteorderOp, CmpOp, Data, Expr, Register};
use crate::family::Family;
use crate::name::{Comment, Name};
use crate::object::{Element, Set, SetId, TableId};
use crate::tree::Statement;
pub(crate) use inner::shape;
#[cfg(feature = "json")]
pub(crate) use sets::set_element;
pub(crate) use statement::element_expr;

/// Lowers the statements of a rule. `numbers` is the last number of an anonymous set or chain in the batch.
///
/// `sets` are the sets whose definition is known, `intervals` other sets that have intervals: before a lookup
/// in these, numbers in host byte order are byte-swapped.
pub(crate) fn lower(
    table: &TableId,
    statements: &[Statement],
    sets: &KnownSets<'_>,
    intervals: &Intervals,
    numbers: &mut u32,
) -> Result<Lowered, Refused> {
    let mut lower = Lower::new(table, sets, intervals, numbers);
    match lower.rule(statements) {
        Ok(()) => Ok(lower.out),
        Err(cause) => Err(Refused { statement: lower.statement, cause }),
    }
}

/// Why a rule cannot be lowered.
#[derive(Debug)]
pub(crate) struct Refused {
    /// The index of the statement at fault, from 0.
    pub(crate) statement: usize,
    pub(crate) cause: LowerError,
}

/// Lowers the statements of a rule that refers to no named set of known type.
#[cfg(test)]
pub(crate) fn lower_alone(table: &TableId, statements: &[Statement]) -> Result<Lowered, LowerError> {
    let lowered = lower(table, statements, &KnownSets::new(), &Intervals::new(), &mut 0);
    lowered.map_err(|refused| refused.cause)
}

/// The kernel's expressions of a rule, and the objects that have to be created before it, in this order.
#[derive(Debug, Default)]
pub(crate) struct Lowered {
    pub(crate) exprs: Vec<Expr>,
    pub(crate) before: Vec<Before>,
    /// Sets whose flags have to be queried: whether they have intervals decides how a key is loaded.
    pub(crate) sets_to_query: Vec<SetId>,
}

/// An object that belongs to one rule and is created before it.
#[derive(Debug)]
pub(crate) enum Before {
    /// An anonymous set.
    Set(Box<AnonymousSet>),
    /// An anonymous chain, by its number in the batch.
    Chain(u32),
    /// A rule of an anonymous chain.
    Rule { chain: u32, exprs: Vec<Expr>, comment: Option<Comment> },
}

/// A set that belongs to one rule. The kernel chooses its name; until then it has a number in the batch.
#[derive(Debug)]
pub(crate) struct AnonymousSet {
    pub(crate) number: u32,
    pub(crate) set: Set,
    pub(crate) elements: Vec<Element>,
    /// nft's number of the key type, if the keys are wider than that type.
    pub(crate) key_type: Option<DataType>,
}

/// Existing sets and maps that have intervals, each as the id of a set.
pub(crate) type Intervals = HashSet<SetId>;

pub(crate) struct Lower<'a> {
    pub(crate) table: &'a TableId,
    pub(crate) out: Lowered,
    sets: &'a KnownSets<'a>,
    intervals: &'a Intervals,
    numbers: &'a mut u32,
    /// What earlier matches of the rule have determined: the link-layer header, the network and the transport
    /// protocol.
    link: imply::Link,
    /// The number of VLAN tags after the first one.
    inner_tags: u16,
    network: Option<u64>,
    transport: Option<u64>,
    /// Whether the rule belongs to an anonymous chain.
    in_anonymous_chain: bool,
    icmp: imply::IcmpTypes,
    /// The protocols of the encapsulated packet that earlier matches have determined.
    inside: inner::Inside,
    /// Comparisons that can still be merged.
    comparisons: Vec<merge::Comparison>,
    /// Whether the comparisons before the first other statement have been merged.
    is_merged: bool,
    /// Judges each statement before it is lowered, whatever it was read from.
    judge: Judge<'a>,
    /// The index of the statement that is lowered.
    statement: usize,
}

impl<'a> Lower<'a> {
    fn new(
        table: &'a TableId,
        sets: &'a KnownSets<'a>,
        intervals: &'a Intervals,
        numbers: &'a mut u32,
    ) -> Self {
        Self {
            table,
            out: Lowered::default(),
            sets,
            intervals,
            numbers,
            link: imply::Link::Unknown,
            inner_tags: 0,
            network: None,
            transport: None,
            icmp: imply::IcmpTypes::default(),
            in_anonymous_chain: false,
            inside: inner::Inside::default(),
            comparisons: Vec::new(),
            is_merged: false,
            judge: Judge::new(Definitions { table, sets }),
            statement: 0,
        }
    }

    fn rule(&mut self, statements: &[Statement]) -> Result<(), LowerError> {
        for (i, statement) in statements.iter().enumerate() {
            self.statement = i;
            self.judge.statement(statement)?;
            // nft drops such a match if another statement follows.
            if i + 1 < statements.len() && self.is_implied(statement) {
                continue;
            }
            self.statement(statement)?;
            // nft merges only comparisons of adjacent matches: a counter between them must count the packets
            // that pass the first one.
            if !matches!(statement, Statement::Match(_)) {
                self.merge_adjacent();
                self.is_merged = true;
            }
        }
        self.merge_adjacent();
        Ok(())
    }

    fn family(&self) -> Family {
        self.table.family
    }

    /// Returns the network protocol, if the table or an earlier match determines it.
    fn known_network(&self) -> Option<Family> {
        match self.family() {
            own @ (Family::IP | Family::IP6) => Some(own),
            // Tables of the other families see several network protocols, so an earlier match has to
            // determine it.
            _ => self.network.and_then(|number| u8::try_from(number).ok()).map(Family),
        }
    }

    fn push(&mut self, expr: impl Into<Expr>) {
        self.out.exprs.push(expr.into());
    }

    fn immediate(&mut self, bytes: Vec<u8>, word: u32) -> u32 {
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.push(expr::Immediate { dreg: Register::word(word), data: Data::Value(bytes.into()) });
        length
    }

    fn compare(&mut self, word: u32, op: CmpOp, bytes: Vec<u8>) {
        self.push(expr::Cmp { sreg: Register::word(word), op, data: Data::Value(bytes.into()) });
    }

    fn bitwise(&mut self, word: u32, mask: Vec<u8>, xor: Vec<u8>) {
        let register = Register::word(word);
        self.push(expr::Bitwise {
            sreg: register,
            dreg: register,
            len: u32::try_from(mask.len()).unwrap_or(u32::MAX),
            // `NFT_BITWISE_BOOL` requires both operands, even if one of them changes nothing.
            mask: Some(Data::Value(mask.into())),
            xor: Some(Data::Value(xor.into())),
            op: Some(BitwiseOp::BOOL),
            data: None,
            sreg2: None,
        });
    }

    fn shift_by(&mut self, word: u32, bytes: u32, op: BitwiseOp, by: u32) {
        let register = Register::word(word);
        self.push(expr::Bitwise {
            sreg: register,
            dreg: register,
            len: bytes,
            mask: None,
            xor: None,
            op: Some(op),
            // The number of bits of a shift is a `u32` in host byte order.
            data: Some(Data::Value(by.to_ne_bytes().into())),
            sreg2: None,
        });
    }

    /// Byte-swaps the words through which bits are shifted: one of two bytes, or several of four bytes. Each
    /// has its own expression, because Linux 6.12 does not accept several words in one.
    fn swap_words(&mut self, word: u32, op: ByteorderOp, len: u32) {
        if len == 2 {
            return self.byteorder(word, op, 2, 2);
        }
        (word..word + len.div_ceil(4)).for_each(|word| self.byteorder(word, op, 4, 4));
    }

    /// Byte-swaps numbers of `size` bytes in a register.
    fn byteorder(&mut self, word: u32, op: ByteorderOp, len: u32, size: u32) {
        let register = Register::word(word);
        self.push(expr::Byteorder { sreg: register, dreg: register, op, len, size });
    }

    /// Returns a named set or map, if its definition is known.
    fn set(&self, name: &Name) -> Option<&'a Set> {
        self.definitions().set(name)
    }

    /// Returns what the names in the rule refer to.
    fn definitions(&self) -> Definitions<'a> {
        Definitions { table: self.table, sets: self.sets }
    }
}
