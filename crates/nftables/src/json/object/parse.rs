//! Objects: tables, chains, rules and what else a ruleset has, in JSON.

use std::time::Duration;

use crate::Protocol;
use crate::expr::ObjectKind;
use crate::family::Family;
use crate::json::node::{Node, Parsed};
use crate::json::scope::{Scope, Within};
use crate::json::statement::{self, parse_limit};
use crate::name::{Comment, InterfaceName, Name, SecurityContext};
use crate::object::*;
use crate::tree::{Connlimit, Counter, Quota, Synproxy};

const FAMILIES: [(&str, Family); 6] = [
    ("ip", Family::IP),
    ("ip6", Family::IP6),
    ("inet", Family::INET),
    ("arp", Family::ARP),
    ("bridge", Family::BRIDGE),
    ("netdev", Family::NETDEV),
];

/// A family that has to be given.
pub(in crate::json) fn family(of: &Node<'_>) -> Parsed<Family> {
    of.need("family", "a family")?.word("a family", &FAMILIES)
}

/// A table, as its members say that are in it.
pub(in crate::json) fn table_id(of: &Node<'_>) -> Parsed<TableId> {
    let node = of.need("table", "the name of a table")?;
    Ok(TableId::new(family(of)?, name(&node, "the name of a table")?))
}

/// A name.
pub(in crate::json) fn name(node: &Node<'_>, expected: &str) -> Parsed<Name> {
    checked_name(node, node.text(expected)?, expected)
}

/// A name that the kernel can have. JSON can say names that nft's text cannot.
pub(in crate::json) fn checked_name(node: &Node<'_>, text: &str, expected: &str) -> Parsed<Name> {
    match Name::new(text) {
        Ok(name) => Ok(name),
        Err(_) if (1..=255).contains(&text.len()) && !text.contains('\0') => Ok(Name::from_kernel(text)),
        Err(error) => Err(node.wrong(&format!("{expected} ({})", error.reason))),
    }
}

/// The name of what is in a table.
pub(in crate::json) fn own_name(of: &Node<'_>) -> Parsed<Name> {
    name(&of.need("name", "a name")?, "a name")
}

/// A comment, if there is one.
pub(in crate::json) fn comment(of: &Node<'_>) -> Parsed<Option<Comment>> {
    let Some(node) = of.given("comment") else { return Ok(None) };
    let comment = Comment::from_script(node.text("a comment")?);
    comment.map(Some).map_err(|error| node.wrong(&format!("a comment ({})", error.reason)))
}

/// The flags of the member `flags`: a word, or a list of them.
pub(in crate::json) fn flags<T: Copy>(of: &Node<'_>, what: &str, words: &[(&str, T)]) -> Parsed<Vec<T>> {
    let Some(node) = of.given("flags") else { return Ok(Vec::new()) };
    node.one_or_more().iter().map(|flag| flag.word(what, words)).collect()
}

/// A time in seconds.
pub(in crate::json) fn seconds(node: &Node<'_>) -> Parsed<Duration> {
    if let Some(seconds) = node.value.as_u64() {
        return Ok(Duration::from_secs(seconds));
    }
    // In whole milliseconds, which is what there is; a fraction of a second is not exact.
    let seconds = node.value.as_f64().filter(|seconds| (0.0..MAX_SECONDS).contains(seconds));
    let seconds = seconds.ok_or_else(|| node.wrong("a time in seconds"))?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is in range")]
    Ok(Duration::from_millis((seconds * 1000.0).round() as u64))
}

/// Up to here a fraction of a second is exact to the millisecond.
const MAX_SECONDS: f64 = 9e12;

/// Devices: a name, or a list of names.
pub(in crate::json) fn devices(of: &Node<'_>) -> Parsed<Vec<InterfaceName>> {
    let Some(node) = of.given("dev") else { return Ok(Vec::new()) };
    let device = |node: &Node<'_>| {
        InterfaceName::new(node.text("the name of a device")?)
            .map_err(|error| node.wrong(&format!("the name of a device ({})", error.reason)))
    };
    let mut devices: Vec<_> = node.one_or_more().iter().map(device).collect::<Parsed<_>>()?;
    // Their order means nothing: they come in the order in which nft lists them.
    devices.sort_unstable();
    Ok(devices)
}

/// A handle.
pub(in crate::json) fn handle(of: &Node<'_>) -> Parsed<Option<u64>> {
    of.given("handle").map(|node| node.number("a handle")).transpose()
}

pub(in crate::json) fn table(of: &Node<'_>) -> Parsed<Table> {
    let words =
        [("dormant", TableFlags::DORMANT), ("owner", TableFlags::OWNER), ("persist", TableFlags::PERSIST)];
    let id = TableId::new(family(of)?, own_name(of)?);
    let flag = |node: &Node<'_>| match FAMILIES.iter().any(|(word, _)| node.value == *word) {
        // nft 1.0.6 prints names of families for flags, and reads none.
        true => Ok(TableFlags::empty()),
        false => node.word("a flag of a table", &words),
    };
    let flags: Vec<_> = match of.given("flags") {
        Some(node) => node.one_or_more().iter().map(flag).collect::<Parsed<_>>()?,
        None => Vec::new(),
    };
    let flags = flags.into_iter().fold(TableFlags::empty(), |all, flag| all | flag);
    Ok(Table { id, flags, comment: comment(of)? })
}

pub(in crate::json) fn chain(of: &Node<'_>) -> Parsed<Chain> {
    let id = table_id(of)?.chain(own_name(of)?);
    let base = ["type", "hook", "prio"].iter().any(|name| of.has(name));
    let base = if base { Some(base_chain(of, id.table.family)?) } else { None };
    // A base chain that exists already; nft 1.0.6 ignores a policy that comes alone.
    let policy = if base.is_none() { policy(of)? } else { None };
    Ok(Chain { id, base, policy, comment: comment(of)?, counter: None })
}

fn base_chain(of: &Node<'_>, family: Family) -> Parsed<BaseChain> {
    let kind = of.need("type", "what the chain is for")?;
    let kind = match kind.text("what the chain is for")? {
        "filter" => ChainType::Filter,
        "nat" => ChainType::Nat,
        "route" => ChainType::Route,
        _ => return Err(kind.unknown("what the chain is for", &["filter", "nat", "route"])),
    };
    let names: Vec<_> = Hook::ALL.iter().map(|hook| (hook.to_string(), *hook)).collect();
    let hooks: Vec<_> = names.iter().map(|(name, hook)| (name.as_str(), *hook)).collect();
    let hook_node = of.need("hook", "a hook")?;
    let hook = hook_node.word("a hook", &hooks)?;
    if hook.number(family).is_none() {
        return Err(hook_node.wrong(&format!("a hook of family {family}")));
    }
    let base = BaseChain {
        kind,
        hook,
        priority: priority(&of.need("prio", "a priority")?, family, hook)?,
        policy: policy(of)?,
        devices: devices(of)?,
        offload: !flags(of, "a flag of a chain", &[("offload", ())])?.is_empty(),
    };
    base.check_written(family)
        .map_err(|error| hook_node.wrong(&format!("a hook as its devices say ({error})")))?;
    Ok(base)
}

fn policy(of: &Node<'_>) -> Parsed<Option<Policy>> {
    let policies = [("accept", Policy::Accept), ("drop", Policy::Drop)];
    of.given("policy").map(|policy| policy.word("a policy", &policies)).transpose()
}

/// A number, or the name of one.
fn priority(node: &Node<'_>, family: Family, hook: Hook) -> Parsed<Priority> {
    if let Some(text) = node.value.as_str() {
        return Priority::from_name(text, family, hook).ok_or_else(|| node.wrong("a priority"));
    }
    let number = node.value.as_i64().and_then(|number| i32::try_from(number).ok());
    number.map(Priority).ok_or_else(|| node.wrong("a priority"))
}

/// A rule without its place.
pub(in crate::json) fn rule(of: &Node<'_>, scope: &Scope<'_>) -> Parsed<Rule> {
    let table = table_id(of)?;
    let chain = table.chain(name(&of.need("chain", "the name of a chain")?, "the name of a chain")?);
    let within = Within { scope, table: &table };
    Ok(Rule {
        statements: statement::list(&of.need("expr", "a list of statements")?, within)?.into(),
        comment: comment(of)?,
        ..Rule::new(chain)
    })
}

pub(in crate::json) fn flowtable(of: &Node<'_>) -> Parsed<Flowtable> {
    let id = table_id(of)?.flowtable(own_name(of)?);
    of.need("hook", "ingress")?.word("a hook", &[("ingress", ())])?;
    let words = [("offload", FlowtableFlags::OFFLOAD), ("counter", FlowtableFlags::COUNTER)];
    let flags = flags(of, "a flag of a flowtable", &words)?;
    Ok(Flowtable {
        id,
        priority: priority(&of.need("prio", "a priority")?, Family::NETDEV, Hook::Ingress)?,
        devices: devices(of)?,
        flags: flags.into_iter().fold(FlowtableFlags::empty(), |all, flag| all | flag),
    })
}

/// The kinds of stateful objects by their words.
pub(in crate::json) const KINDS: [(&str, ObjectKind); 10] = [
    ("counter", ObjectKind::COUNTER),
    ("quota", ObjectKind::QUOTA),
    ("ct helper", ObjectKind::CT_HELPER),
    ("limit", ObjectKind::LIMIT),
    ("ct count", ObjectKind::CONNLIMIT),
    ("tunnel", ObjectKind::TUNNEL),
    ("ct timeout", ObjectKind::CT_TIMEOUT),
    ("secmark", ObjectKind::SECMARK),
    ("ct expectation", ObjectKind::CT_EXPECT),
    ("synproxy", ObjectKind::SYNPROXY),
];

pub(in crate::json) fn stateful(of: &Node<'_>, kind: ObjectKind) -> Parsed<StatefulObject> {
    let id = table_id(of)?.object(kind, own_name(of)?);
    Ok(StatefulObject { id, config: configuration(of, kind)?, comment: comment(of)? })
}

fn configuration(of: &Node<'_>, kind: ObjectKind) -> Parsed<ObjectConfig> {
    let number = |name: &str| match of.given(name) {
        Some(node) => node.number64("a number"),
        None => Ok(0),
    };
    let inverse = of.given("inv").map_or(Ok(false), |node| node.is_true());
    Ok(match kind {
        ObjectKind::COUNTER => Counter { packets: number("packets")?, bytes: number("bytes")? }.into(),
        ObjectKind::QUOTA => Quota { bytes: number("bytes")?, used: number("used")?, over: inverse? }.into(),
        ObjectKind::LIMIT => parse_limit(of)?.into(),
        ObjectKind::SYNPROXY => {
            let names = flags(of, "a flag of synproxy", &[("timestamp", true), ("sack-perm", false)])?;
            ObjectConfig::Synproxy(Synproxy {
                mss: Some(of.need("mss", "a number")?.number("a number of 16 bits")?),
                wscale: Some(of.need("wscale", "a number")?.number("a number up to 255")?),
                timestamp: names.contains(&true),
                sack_perm: names.contains(&false),
            })
        }
        ObjectKind::CT_HELPER => ObjectConfig::CtHelper {
            helper: name(&of.need("type", "the name of a helper")?, "the name of a helper")?,
            protocol: protocol(of)?,
            family: l3_protocol(of)?,
        },
        ObjectKind::CT_TIMEOUT => {
            let protocol = protocol(of)?;
            ObjectConfig::CtTimeout { protocol, family: l3_protocol(of)?, policy: timeouts(of, protocol)? }
        }
        ObjectKind::CT_EXPECT => ObjectConfig::CtExpectation {
            protocol: protocol(of)?,
            port: of.need("dport", "a port")?.number("a port")?,
            timeout: Duration::from_millis(of.need("timeout", "a time in milliseconds")?.number("a time")?),
            size: of.need("size", "a number")?.number("a number up to 255")?,
            family: l3_protocol(of)?,
        },
        ObjectKind::SECMARK => {
            let node = of.need("context", "a security context")?;
            let context = SecurityContext::new(node.text("a security context")?);
            context.map_err(|error| node.wrong(&format!("a security context ({})", error.reason)))?.into()
        }
        ObjectKind::CONNLIMIT => {
            Connlimit { count: of.need("val", "a number")?.number("a number")?, over: inverse? }.into()
        }
        _ => super::tunnel::parse(of)?.into(),
    })
}

fn protocol(of: &Node<'_>) -> Parsed<Protocol> {
    let node = of.need("protocol", "a protocol")?;
    if node.value.is_u64() {
        return Ok(Protocol(node.number("a protocol")?));
    }
    let text = node.text("a protocol")?;
    let number = crate::DataType::INET_PROTO.value_of(text).and_then(|number| u8::try_from(number).ok());
    number.map(Protocol).ok_or_else(|| node.unknown("a protocol", &["tcp", "udp"]))
}

fn l3_protocol(of: &Node<'_>) -> Parsed<Option<Family>> {
    of.given("l3proto").map(|node| node.word("a family", &FAMILIES)).transpose()
}

fn timeouts(of: &Node<'_>, protocol: Protocol) -> Parsed<Vec<(&'static str, Duration)>> {
    let node = of.need("policy", "states and seconds")?;
    if node.value.is_null() {
        // nft lists so that all times are the kernel's own.
        return Ok(Vec::new());
    }
    let states = timeout_states(protocol);
    let members = node.value.as_object().ok_or_else(|| node.wrong("states and seconds"))?;
    let time = |name: &String| {
        let state = states.iter().find(|state| *state == name);
        let state =
            state.ok_or_else(|| node.unknown_word(&format!("a state of {protocol}"), name, states))?;
        let seconds = node.need(name, "seconds")?.number("seconds")?;
        Ok((*state, Duration::from_secs(seconds)))
    };
    let mut times: Vec<_> = members.keys().map(time).collect::<Parsed<_>>()?;
    times.sort_by_key(|(of, _)| states.iter().position(|state| state == of));
    Ok(times)
}
