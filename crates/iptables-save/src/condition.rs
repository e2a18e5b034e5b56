//! The conditions of extensions on their options taken together, as values.

use std::borrow::Cow;

/// A condition of a match or target on its options taken together, or on the rest of the rule, that a rule
/// does not meet. Options are named as iptables-extensions(8) does, without dashes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Condition {
    /// One of these options is needed.
    #[error("needs {}", options(.0))]
    OneOf(Vec<&'static str>),
    /// An option needs another one, or something else in the rule.
    #[error("--{option} needs {needs}")]
    Needs {
        /// The option.
        option: &'static str,
        /// What it needs, in words: `-p tcp`, `--new`.
        needs: &'static str,
    },
    /// An option does not go with others.
    #[error("--{option} does not go with {other}")]
    Excludes {
        /// The option.
        option: &'static str,
        /// The others, in words: `--mode nth`.
        other: &'static str,
    },
    /// An option that can match nothing in this built-in chain, as an interface that packets leave through in
    /// `INPUT`.
    #[error("--{option} is of no use in {chain}")]
    NoUse {
        /// The option.
        option: &'static str,
        /// The chain.
        chain: String,
    },
    /// A value that does not fit to another option.
    #[error("--{option}: expected {expected}, found `{found}`")]
    Value {
        /// The option.
        option: &'static str,
        /// What fits, in words.
        expected: Cow<'static, str>,
        /// The value.
        found: String,
    },
    /// A name that is no service of the rule's protocol.
    #[error("expected a port, or a service of the protocol, found `{0}`")]
    Service(String),
    /// An option that stands twice in one element of `-m policy`.
    #[error("--{0} stands twice in a policy element")]
    Repeated(String),
    /// More elements of `-m policy` than `XT_POLICY_MAX_ELEM` (`linux/netfilter/xt_policy.h`).
    #[error("expected at most four policy elements, found {0}")]
    PolicyElements(usize),
    /// `TCPMSS` in a rule that takes other packets than SYN.
    #[error("needs -p tcp --syn, or --tcp-flags that demand SYN")]
    Syn,
}

fn options(names: &[&str]) -> String {
    names.iter().map(|name| format!("--{name}")).collect::<Vec<_>>().join(" or ")
}

/// Why a name cannot be that of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ChainNameFault {
    #[error("expected the name of a chain")]
    Empty,
    #[error("expected the name of a chain, of at most {LONGEST} bytes, found {0} bytes")]
    Long(usize),
    #[error("expected the name of a chain, which starts with neither `-` nor `!`")]
    Start,
    #[error("expected the name of a chain, which has no blanks and no control characters")]
    Blank,
}

const LONGEST: usize = crate::Limits::CHAIN_NAME;
