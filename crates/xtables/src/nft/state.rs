//! Tables as the kernel has them, as far as they were read, and as they are to be.
//!
//! Only what a change names is read: a chain when a line names it, its rules when one is searched for or
//! counted. What was read stays known as long as the ruleset is of the same generation.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use sluicegate_iptables_save::{Counters, Family};
use sluicegate_nftables::expr::kind::Immediate;
use sluicegate_nftables::expr::{Data, Expr};
use sluicegate_nftables::lang::Verdict;
use sluicegate_nftables::{Comment, Policy, read};

use super::builtin::BaseChain;
use super::decode::{Decoded, decode};
use crate::extension::{Binary, Kind, codec_for};
use crate::rule::Action;

/// What is known of the ruleset of one generation.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) generation: Option<u32>,
    pub(super) tables: HashMap<String, KnownTable>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct KnownTable {
    pub(super) exists: bool,
    /// Whether all chains are known.
    pub(super) whole: bool,
    /// Chains by name; `None` for one that does not exist.
    pub(super) chains: HashMap<String, Option<KnownChain>>,
}

/// A chain of the kernel.
#[derive(Debug, Clone)]
pub(super) struct KnownChain {
    /// Whether it has a hook.
    pub(super) is_base: bool,
    pub(super) is_accepting: bool,
    /// Its rules, if they were read.
    pub(super) rules: Option<Arc<Vec<Arc<OldRule>>>>,
}

/// A rule of the kernel.
#[derive(Debug)]
pub(super) struct OldRule {
    pub(super) handle: u64,
    pub(super) key: Key,
    /// The chain that it jumps to.
    pub(super) jump: Option<String>,
}

/// What two rules that are the same for `-D` and `-C` have in common; `None` for a rule that no words
/// describe.
pub(super) type Key = Option<Box<[u8]>>;

/// A rule that is new to the kernel.
#[derive(Debug, Clone)]
pub(super) struct NewRule {
    pub(super) exprs: Vec<Expr>,
    /// What nft wrote into its user data: iptables has a match for comments.
    pub(super) comment: Option<Comment>,
    pub(super) jump: Option<String>,
    /// The line of the input.
    pub(super) line: usize,
}

/// A table that lines are carried out on.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) name: String,
    /// Whether the kernel has it.
    pub(super) existed: bool,
    /// Whether it is deleted first, with all that it has.
    pub(super) flushed: bool,
    /// Whether a line needs it to exist.
    pub(super) needed: bool,
    /// The chains that lines named.
    pub(super) chains: BTreeMap<String, Chain>,
    /// The names in the kernel of those that are renamed.
    pub(super) renamed: BTreeSet<String>,
}

/// A chain that lines named.
#[derive(Debug, Clone)]
pub(super) struct Chain {
    /// As the kernel has it.
    pub(super) was: Option<KnownChain>,
    /// Its name in the kernel, and its handle, if it is renamed.
    pub(super) renamed: Option<(String, u64)>,
    /// Whether it exists after the lines so far.
    pub(super) exists: bool,
    pub(super) base: Option<&'static BaseChain>,
    pub(super) policy: Option<(Policy, Counters)>,
    pub(super) rules: Rules,
    /// The line that made it or changed its policy.
    pub(super) line: usize,
}

/// The rules of a chain after the lines so far.
#[derive(Debug, Clone)]
pub(super) enum Rules {
    /// Those of the kernel, whatever they are, and new ones before and behind them.
    Kernel { first: VecDeque<NewRule>, then: Vec<NewRule> },
    /// All of them, one by one.
    List(Vec<Entry>),
}

#[derive(Debug, Clone)]
pub(super) enum Entry {
    Old(Arc<OldRule>),
    New(Box<NewRule>),
}

impl Entry {
    /// Returns whether the rule is the same as one with this key.
    pub(super) fn is(&self, key: &[u8], family: Family) -> bool {
        match self {
            Self::Old(rule) => rule.key.as_deref() == Some(key),
            Self::New(rule) => rule.key(family).as_deref() == Some(key),
        }
    }
}

impl From<NewRule> for Entry {
    fn from(rule: NewRule) -> Self {
        Self::New(Box::new(rule))
    }
}

impl Chain {
    pub(super) fn new(was: Option<KnownChain>, base: Option<&'static BaseChain>) -> Self {
        let exists = was.is_some();
        let rules = Rules::Kernel { first: VecDeque::new(), then: Vec::new() };
        Self { was, renamed: None, exists, base, policy: None, rules, line: 0 }
    }

    /// Returns whether it is one of those that packets enter at a hook.
    pub(super) fn is_base(&self) -> bool {
        self.base.is_some() || self.was.as_ref().is_some_and(|was| was.is_base)
    }

    pub(super) fn flush(&mut self) {
        self.rules = Rules::List(Vec::new());
    }

    pub(super) fn policy_now(&self) -> Policy {
        let in_kernel = match &self.was {
            Some(was) if !was.is_accepting => Policy::Drop,
            _ => Policy::Accept,
        };
        self.policy.map_or(in_kernel, |(policy, _)| policy)
    }

    /// Returns the name that the kernel has for it until the batch is committed.
    pub(super) fn kernel_name<'a>(&'a self, name: &'a str) -> &'a str {
        self.renamed.as_ref().map_or(name, |(old, _)| old)
    }
}

/// Reads a rule of the kernel.
pub(super) fn old_rule(rule: &read::Rule, family: Family, links: &dyn Fn(u32) -> Option<String>) -> OldRule {
    let decoded = decode(&rule.expressions, rule.comment().as_deref(), family, links).ok();
    let jumps = rule.expressions.iter().find_map(|expr| match expr {
        Expr::Immediate(Immediate { data: Data::Verdict(Verdict::Jump(to) | Verdict::Goto(to)), .. }) => {
            Some(to.as_str().to_owned())
        }
        _ => None,
    });
    OldRule { handle: rule.handle, key: decoded.map(|decoded| key_of(&decoded, family)), jump: jumps }
}

impl NewRule {
    /// Returns what it has in common with the rules that are the same, as the kernel will give it back.
    pub(super) fn key(&self, family: Family) -> Key {
        let comment = self.comment.as_ref().map(Comment::as_str);
        let decoded = decode(&self.exprs, comment, family, &|_| None).ok()?;
        Some(key_of(&decoded, family))
    }
}

/// Returns the chain that a rule jumps to.
pub(super) fn jump_of(action: &Action) -> Option<String> {
    match action {
        Action::Chain(chain) => Some(chain.clone()),
        _ => None,
    }
}

/// Returns what decides whether a rule is the same as another: all but counters and what the kernel keeps in
/// the structures for itself.
fn key_of(decoded: &Decoded, family: Family) -> Box<[u8]> {
    let rule = &decoded.rule;
    let mut key = rule.head.clone();
    let mut add = |kind, binary: &Binary| {
        let codec = codec_for(kind, &binary.name, binary.revision, family);
        let same = codec.map_or([&binary.data[..], &[]], |codec| codec.identity(&binary.data));
        key.extend(binary.name.as_bytes());
        key.extend([0, binary.revision]);
        key.extend((binary.data.len()).to_ne_bytes());
        key.extend(same.concat());
    };
    rule.matches.iter().for_each(|binary| add(Kind::Match, binary));
    if let Action::Target(binary) = &rule.action {
        add(Kind::Target, binary);
        key.extend(decoded.long_prefix.iter().flat_map(|prefix| prefix.bytes()));
    }
    match &rule.action {
        Action::Continue => key.push(0),
        Action::Verdict(verdict) => {
            key.push(1);
            key.extend(verdict.to_ne_bytes());
        }
        Action::Chain(chain) => {
            key.push(2);
            key.extend(chain.as_bytes());
        }
        Action::Target(_) => key.push(3),
    }
    key.into()
}
