//! JSON as libnftables-json(5) describes it, out and in (feature `json`).
//!
//! Out: [`TableContent::to_json`](crate::TableContent::to_json) and [`ruleset`] give what `nft -j list
//! ruleset` of nft 1.0.6 prints, its omissions included.
//! [`Commit::to_json`](crate::monitor::Commit::to_json) says commits as `nft -j monitor` does.
//! [`Transaction::to_json`](crate::Transaction::to_json) gives commands that `nft -j -f` reads; what nft
//! 1.0.6 leaves out of its listings is there under the name that later versions have for it (`typeof`, `dev`,
//! `comment`), so that nothing is lost.
//!
//! In: [`Transaction::from_json`](crate::Transaction::from_json) reads both. A [`JsonError`] lists every
//! mistake with its place in the document, what was expected there and what was found.
//!
//! A [`Value`] keeps the order of its members and prints as nft does: in one line, with a space
//! behind each comma and colon.
//!
//! ```
//! use sluicegate_nftables::Transaction;
//!
//! let text = r#"{"nftables": [
//!     {"add": {"table": {"family": "inet", "name": "filter"}}},
//!     {"add": {"chain": {"family": "inet", "table": "filter", "name": "input"}}},
//!     {"add": {"rule": {"family": "inet", "table": "filter", "chain": "input", "expr": [
//!         {"match": {"op": "in", "left": {"ct": {"key": "state"}}, "right": ["established", "related"]}},
//!         {"accept": null}
//!     ]}}}
//! ]}"#;
//! let transaction = Transaction::from_json(text)?;
//! assert_eq!(transaction.to_string(), "\
//! add table inet filter
//! add chain inet filter input
//! add rule inet filter input ct state established,related accept
//! ");
//! # Ok::<(), sluicegate_nftables::json::JsonError>(())
//! ```
//!
//! # Where `nft -j` 1.0.6 prints something else
//!
//! For about one rule in a hundred of the corpus, nft 1.0.6 prints something that the rule does not say.
//! These rules are printed as they are; `tests/it/language/json/known.rs` lists every one of them:
//!
//! | rule | what nft 1.0.6 prints |
//! |---|---|
//! | bits of a byte in a key: `vlan id . vlan pcp { 5 . 2 }` | a shifted key, and parts of other values |
//! | bits that are calculated with: `vlan dei & 0x1 == 1` | how they are loaded |
//! | a mask and an order: `arp saddr ip and 255.255.255.0 > 10.0.0.0` | a prefix, which is for equality |
//! | a masked field of an extension header: `frag id & 15 == 1` | `unknown` |
//! | a number of a header as a mark: `ct mark set vlan id` | what its bytecode does: byte-swapped |
//! | bytes in the place of an address: `@nh,96,32 { 300, 1500 }` | an address, and members that are none |
//! | `ct original daddr` in a table of one family | another key |
//! | `meta nfproto ipv4 ct original saddr 10.0.0.1` | no match of the version, which its own reader needs |
//! | `meta nfproto ipv4 tcp dport 80 reject with tcp reset` | no match that it takes for implied |
//! | flags of tables | names of families |

mod command;
mod constant;
mod element;
mod error;
#[cfg(feature = "monitor")]
mod event;
mod expression;
mod node;
mod object;
mod scope;
mod set;
mod statement;
mod style;
mod value;

pub use error::{JsonError, JsonMistake};
pub use object::ruleset;
pub use value::Value;

use std::borrow::Cow;

use value::object;

/// An object with members, of which those that are `None` are left out.
fn object<const N: usize>(members: [(&'static str, Option<Value>); N]) -> Value {
    Value::Object(members.into_iter().filter_map(|(name, value)| Some((name.into(), value?))).collect())
}

/// An object with one member.
fn single(name: impl Into<Cow<'static, str>>, value: impl Into<Value>) -> Value {
    Value::Object(vec![(name.into(), value.into())])
}

/// A list of flags: nothing where there are none, a string where there is one.
fn flags<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<Value> {
    let mut names: Vec<Value> = names.into_iter().map(Value::from).collect();
    match names.len() {
        0 => None,
        1 => names.pop(),
        _ => Some(Value::Array(names)),
    }
}
