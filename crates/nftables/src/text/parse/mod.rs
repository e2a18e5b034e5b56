//! Parses nft's language: scripts and rules as text, to the typed tree.
//!
//! [`Transaction::parse`](crate::Transaction::parse) reads a script as `nft -f` does,
//! [`Rule::parse`](crate::Rule::parse) the statements of one rule. The result is what a program would build
//! with the types: constants have the type of the expression that they are compared with, and matches that
//! nft implies are left out, as they are added when the rule is sent. Text that nft refuses is refused, with
//! its position ([`ParseError`]).
//!
//! ```
//! use sluicegate_nftables::lang::{Match, Payload, Verdict};
//! use sluicegate_nftables::{Family, Port, Rule, TableId};
//!
//! let chain = TableId::new(Family::INET, "filter".parse()?).chain("input".parse()?);
//! let rule = Rule::parse(&chain, "tcp dport ssh accept")?;
//! assert_eq!(rule, chain.rule().then(Match::new(Payload::TCP_DPORT, Port(22))).then(Verdict::Accept));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The parser opens no file and queries no name service: [`ParseOptions`] contains everything that a text
//! refers to. No text causes a panic or a stack overflow.
//!
//! Time and memory are proportional to the size of the text. Elements of sets and maps take at most five
//! times their text, unless they are as short as ports: an element has 48 bytes. So do rules, unless they are as
//! short as `tcp dport 80 accept`: an operation has 152 bytes, and statements are stored packed
//! ([`Statements`](crate::lang::Statements)) until somebody looks at them.

mod block;
mod chain;
mod command;
pub(crate) mod constant;
mod element;
mod error;
mod expression;
mod lexer;
mod nat;
mod object;
mod options;
mod parser;
mod phrase;
mod places;
mod plain;
mod primary;
mod query;
mod right;
pub(crate) mod script;
mod services;
mod set;
mod source;
mod state;
mod statement;
pub(crate) mod suggest;
mod table;
pub(crate) mod time;
mod update;
mod variable;

pub use error::{Mistake, ParseError};
pub use options::{Hosts, Include, ParseOptions, Sets};
pub use script::Script;
pub use source::Included;

use crate::family::Family;
use crate::name::Name;
use crate::object::{ChainId, Rule, TableId};
use crate::text::parse::lexer::Kind;
use crate::text::parse::parser::{Parsed, Parser};
use crate::text::parse::source::{Includes, Source};
use crate::tree::{Expression, Statement, Verdict};

impl Rule {
    /// Parses the statements of a rule, and its comment: `tcp dport 22 accept comment "ssh"`.
    ///
    /// # Errors
    /// [`ParseError`] if the text is not a rule.
    pub fn parse(chain: &ChainId, text: &str) -> Result<Self, ParseError> {
        Self::parse_with(chain, text, &ParseOptions::default())
    }

    /// Parses as [`parse`](Self::parse) does, with options for names, sets and files that the text refers
    /// to.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    #[allow(clippy::redundant_closure_for_method_calls, reason = "a path would be of one lifetime only")]
    pub fn parse_with(chain: &ChainId, text: &str, options: &ParseOptions<'_>) -> Result<Self, ParseError> {
        let (statements, comment) = read(text, Some(&chain.table), options, |parser| parser.rule_body())?;
        Ok(Self { statements, comment, ..Self::new(chain.clone()) })
    }
}

impl Statement {
    /// Parses one statement of a rule in a table of a family: `tcp dport 22`.
    ///
    /// # Errors
    /// [`ParseError`] if the text is not a statement.
    pub fn parse(family: Family, text: &str) -> Result<Self, ParseError> {
        Self::parse_with(family, text, &ParseOptions::default())
    }

    /// Parses as [`parse`](Self::parse) does, with options for names, sets and files that the text refers
    /// to.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    #[allow(clippy::redundant_closure_for_method_calls, reason = "as above")]
    pub fn parse_with(family: Family, text: &str, options: &ParseOptions<'_>) -> Result<Self, ParseError> {
        let table = TableId::new(family, Name::from_kernel(""));
        read(text, Some(&table), options, |parser| parser.statement())
    }
}

/// Parses a packet expression: `ip daddr . tcp dport`. Without a table, the types of constants in it are not
/// known.
impl std::str::FromStr for Expression {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        read(text, None, &ParseOptions::default(), |parser| parser.value(&[]))
    }
}

#[allow(clippy::redundant_closure_for_method_calls, reason = "as above")]
impl std::str::FromStr for Verdict {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        read(text, None, &ParseOptions::default(), |parser| parser.verdict())
    }
}

/// Parses a text that consists of a single item.
fn read<T>(
    text: &str,
    table: Option<&TableId>,
    options: &ParseOptions<'_>,
    what: impl FnOnce(&mut Parser<'_, '_>) -> Parsed<T>,
) -> Result<T, ParseError> {
    let sources = [Source { name: None, text, base: 0 }];
    let includes = Includes::new();
    let mut parser = Parser::new(&sources, &includes, options);
    parser.table = table.cloned();
    parser.newlines();
    let result = what(&mut parser).and_then(|value| {
        while parser.eat(Kind::Newline) || parser.eat(Kind::Semicolon) {}
        if parser.is(Kind::End) { Ok(value) } else { Err(parser.expected("the end of the text")) }
    });
    match result {
        Ok(value) => Ok(value),
        Err(problem) => Err(ParseError { mistakes: vec![problem.mistake(&sources)], is_cut: false }),
    }
}
