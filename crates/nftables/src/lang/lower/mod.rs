//! From the typed language to the kernel's expressions: implied matches, registers, sets without a name. What comes out is
//! what nft 1.0.6 makes of the same text, so that every nft lists it as its own.

mod agree;
mod bound;
pub(crate) mod imply;
mod inner;
mod load;
mod lookup;
mod mangle;
mod matching;
mod nat;
mod neighbours;
mod sets;
mod statement;

use std::collections::{HashMap, HashSet};

use crate::datatype::DataType;
use crate::expr::{self, BitwiseOp, ByteorderOp, CmpOp, Data, Expr, Register};
use crate::family::Family;
use crate::lang::Statement;
use crate::name::{Comment, Name};
use crate::object::{Element, Set, SetId, TableId};
use crate::transaction::known;
pub(crate) use inner::{shape, tunnel_of};
pub(crate) use mangle::raw_checksum;
pub(crate) use statement::{carried, stateful, synproxy_expr};

/// Lowers the statements of a rule. `numbers` counts the sets and chains without a name of a batch.
///
/// `sets` are those that are known, `intervals` others that hold intervals: in these, numbers in host order are looked up the other way round.
pub(crate) fn lower(
    table: &TableId,
    statements: &[Statement],
    sets: &KnownSets<'_>,
    intervals: &Intervals,
    numbers: &mut u32,
) -> Result<Lowered, LowerError> {
    let mut lower = Lower::new(table, sets, intervals, numbers);
    lower.rule(statements)?;
    Ok(lower.out)
}

/// Lowers the statements of a rule that stands alone.
#[cfg(test)]
pub(crate) fn lower_alone(table: &TableId, statements: &[Statement]) -> Result<Lowered, LowerError> {
    lower(table, statements, &KnownSets::new(), &Intervals::new(), &mut 0)
}

/// A rule as the kernel takes it, and what has to be made before it, in this order.
#[derive(Debug, Default)]
pub(crate) struct Lowered {
    pub(crate) exprs: Vec<Expr>,
    pub(crate) before: Vec<Before>,
    /// The sets of which it would have to be known whether they hold intervals.
    pub(crate) doubts: Vec<SetId>,
}

/// What belongs to one rule.
#[derive(Debug)]
pub(crate) enum Before {
    /// A set without a name.
    Set(Box<AnonymousSet>),
    /// A chain without a name. In the batch it goes by its number.
    Chain(u32),
    /// A rule of that chain.
    Rule { chain: u32, exprs: Vec<Expr>, comment: Option<Comment> },
}

/// A set that belongs to one rule. The kernel chooses its name; in the batch it goes by its number.
#[derive(Debug)]
pub(crate) struct AnonymousSet {
    pub(crate) number: u32,
    pub(crate) set: Set,
    pub(crate) elements: Vec<Element>,
    /// nft's number of the type of its keys, where that is another than their width says.
    pub(crate) key_type: Option<DataType>,
}

/// A rule that the kernel has no expressions for, or that it would take and never find to match.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LowerError {
    /// A constant of another type, or too large a number.
    #[error("{value} is no {wanted}")]
    Constant {
        /// The constant.
        value: String,
        /// What its place takes.
        wanted: String,
    },
    /// Something of the packet where the kernel takes constants only.
    #[error("`{expression}` is not a constant")]
    NotConstant {
        /// What is there.
        expression: String,
    },
    /// A range whose end comes before its start.
    #[error("the range {range} ends before it starts")]
    Backwards {
        /// The range.
        range: String,
    },
    /// A prefix longer than what it is of.
    #[error("a prefix of {length} bits is longer than its address of {bits}")]
    PrefixLength {
        /// Bits of the prefix.
        length: u8,
        /// Bits of the address.
        bits: usize,
    },
    /// The kernel cannot do this.
    #[error("{what}: `{expression}`")]
    Unsupported {
        /// Why.
        what: &'static str,
        /// The expression or statement.
        expression: String,
    },
    /// What is looked up in a set or map, or put into one, is of another type than its keys. The kernel would take most of such rules, and they would never
    /// match. Types are compared where the transaction adds the set: the kernel does not keep them.
    #[error("`{expression}` is of type {has}, but the keys of @{set} are of type {wanted}")]
    KeyType {
        /// The set or map.
        set: Name,
        /// What is looked up in it.
        expression: String,
        /// The type of that, in nft's words.
        has: String,
        /// The type of the keys.
        wanted: String,
    },
    /// The values of a map are of another type than what they are used for, or what is put into it. As [`KeyType`](Self::KeyType).
    #[error("the values of @{map} are of type {has}, not {wanted}")]
    ValueType {
        /// The map.
        map: Name,
        /// The type of its values, in nft's words.
        has: String,
        /// The type that is wanted.
        wanted: String,
    },
    /// More than the sixteen words of registers hold.
    #[error("`{expression}` needs more than the 64 bytes of registers that there are")]
    Registers {
        /// The expression.
        expression: String,
    },
}

/// Sets by what names them.
pub(crate) type KnownSets<'a> = HashMap<&'a SetId, &'a Set>;

/// Sets and maps that hold intervals, each named as a set.
pub(crate) type Intervals = HashSet<SetId>;

pub(crate) struct Lower<'a> {
    pub(crate) table: &'a TableId,
    pub(crate) out: Lowered,
    sets: &'a KnownSets<'a>,
    intervals: &'a Intervals,
    numbers: &'a mut u32,
    /// The headers, network and transport protocol that earlier matches of the rule have fixed.
    link: imply::Link,
    /// VLAN tags inside the first one.
    inner_tags: u16,
    network: Option<u64>,
    transport: Option<u64>,
    /// Whether the rule is one of a chain that belongs to a rule.
    within: bool,
    icmp: imply::IcmpTypes,
    /// What they have fixed of the packet inside a tunnel's.
    inside: inner::Inside,
    /// Comparisons that may yet be joined.
    comparisons: Vec<neighbours::Comparison>,
    /// Whether those at the start of the rule have been.
    is_joined: bool,
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
            within: false,
            inside: inner::Inside::default(),
            comparisons: Vec::new(),
            is_joined: false,
        }
    }

    fn rule(&mut self, statements: &[Statement]) -> Result<(), LowerError> {
        for (i, statement) in statements.iter().enumerate() {
            if i + 1 < statements.len() && self.goes_without_saying(statement) {
                continue;
            }
            self.statement(statement)?;
            if !matches!(statement, Statement::Match(_)) {
                self.join_neighbours();
                self.is_joined = true;
            }
        }
        self.join_neighbours();
        Ok(())
    }

    fn family(&self) -> Family {
        self.table.family
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
            data: Some(Data::Value(by.to_ne_bytes().into())),
            sreg2: None,
        });
    }

    /// Turns words that bits are shifted through: one of two bytes, or some of four each. Linux 6.12 takes them only one by one.
    fn turn_words(&mut self, word: u32, op: ByteorderOp, len: u32) {
        if len == 2 {
            return self.byteorder(word, op, 2, 2);
        }
        (word..word + len.div_ceil(4)).for_each(|word| self.byteorder(word, op, 4, 4));
    }

    /// Turns numbers of `size` bytes in a register.
    fn byteorder(&mut self, word: u32, op: ByteorderOp, len: u32, size: u32) {
        let register = Register::word(word);
        self.push(expr::Byteorder { sreg: register, dreg: register, op, len, size });
    }

    /// A set or map with a name, if it is known.
    fn set(&self, name: &Name) -> Option<&'a Set> {
        known(self.sets, &self.table.set(name.clone()))
    }
}
