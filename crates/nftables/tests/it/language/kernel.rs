//! Two namespaces, one for nft and one for us, and what is in them.

use std::collections::HashMap;
use std::sync::OnceLock;

use sluicegate_netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::expr::Expr;
use sluicegate_nftables::lang::parse::ParseOptions;
use sluicegate_nftables::read::{self, Ruleset};
use sluicegate_nftables::{
    ApplyOptions, DataType, Family, ListOptions, Set, SetId, TableContent, Transaction,
};

/// A namespace with the devices `d0` and `d1`.
pub(crate) fn namespace() -> Option<testns::Netns> {
    let namespace = testns::Netns::new()?;
    namespace.run(|| drop(testns::sh("ip link add d0 type veth peer name d1")));
    Some(namespace)
}

pub(crate) fn open(family: NetlinkFamily) -> Socket {
    Socket::open(family, &Options::default()).expect("a socket")
}

/// Loads a script by nft, inside a namespace.
pub(crate) fn nft(script: &str) -> Result<(), String> {
    let output = testns::feed(&["env", "TZ=UTC", "nft", "-f", "-"], script);
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

/// Applies a transaction inside a namespace.
pub(crate) fn apply(transaction: &Transaction) -> Result<(), String> {
    transaction.apply(&mut open(NetlinkFamily::NETFILTER)).map(drop).map_err(|error| error.to_string())
}

/// Asks the kernel whether it would take a transaction.
pub(crate) fn check(socket: &mut Socket, transaction: &Transaction) -> Result<(), String> {
    let options = ApplyOptions::default().check();
    transaction.apply_with(socket, options).map(drop).map_err(|error| error.to_string())
}

/// What a parser is told of the machine that a namespace is on: links, names of numbers, users and hosts,
/// as nft finds them.
pub(crate) struct Machine {
    list: ListOptions,
    symbols: Vec<((DataType, String), u64)>,
}

/// Asks this machine and the namespace.
pub(crate) fn machine() -> Machine {
    let list = read::list_options(&mut open(NetlinkFamily::ROUTE)).expect("names");
    let mut symbols = Vec::new();
    for (file, of) in [("passwd", DataType::UID), ("group", DataType::GID)] {
        let text = std::fs::read_to_string(format!("/etc/{file}")).unwrap_or_default();
        let lines = text.lines().filter_map(|line| {
            let mut fields = line.split(':');
            let (name, _, number) = (fields.next()?, fields.next()?, fields.next()?);
            Some(((of, name.to_owned()), number.parse().ok()?))
        });
        symbols.extend(lines);
    }
    Machine { list, symbols }
}

impl Machine {
    /// Names for listings, with the state of objects.
    #[cfg(feature = "json")]
    pub(crate) fn list_options(&self) -> ListOptions {
        let mut options = self.list.clone();
        options.state = true;
        options
    }

    pub(crate) fn options(&self) -> ParseOptions<'static> {
        let mut options = ParseOptions::from(&self.list);
        options.symbols.extend(self.symbols.iter().cloned());
        options.hosts = Some(&hosts);
        options
    }
}

/// The only host that rules of the corpus name.
fn hosts(name: &str) -> Vec<std::net::IpAddr> {
    if name == "localhost" { vec![[127, 0, 0, 1].into()] } else { Vec::new() }
}

/// A set or map that the kernel holds.
pub(crate) fn find(content: &[TableContent], id: &SetId) -> Option<Set> {
    let sets = content.iter().flat_map(|table| &table.sets);
    sets.map(|(set, _)| set).find(|set| (&set.id.table, &set.id.name) == (&id.table, &id.name)).cloned()
}

/// `nft -s list ruleset`, inside a namespace.
pub(crate) fn listing() -> String {
    testns::sh("TZ=UTC nft -s list ruleset")
}

pub(crate) fn ruleset() -> Ruleset {
    read::ruleset(&mut open(NetlinkFamily::NETFILTER), Family::UNSPEC).expect("a ruleset")
}

/// What the kernel runs for each rule, by table and chain, without what differs from load to load: the
/// names of sets without names are replaced by
/// what is in them.
pub(crate) fn bytecode(all: &Ruleset) -> HashMap<(Family, String, String), Vec<String>> {
    let mut sets = HashMap::new();
    for (set, elements) in &all.sets {
        let mut elements: Vec<_> = elements
            .iter()
            .map(|element| {
                let data = without_numbers(&format!("{:?}", element.data));
                let notes = &element.details().user_data;
                format!(
                    "{:?}-{:?}:{data}{:?}{notes:?}",
                    element.key,
                    element.details().key_end,
                    element.flags
                )
            })
            .collect();
        elements.sort_unstable();
        // What nft notes for itself, types above all, is seen in what it lists.
        let content = format!("<{:?} {} {elements:?}>", set.flags, set.key_len);
        sets.insert((set.family, set.table.as_str(), set.name.as_str()), content);
    }
    let mut rules: HashMap<_, Vec<_>> = HashMap::new();
    for rule in &all.rules {
        let mut text = String::new();
        for expression in &rule.expressions {
            // Where nft reorders the bytes of a whole key, it does so with single bytes, too, which does
            // nothing.
            if matches!(expression, Expr::Byteorder(byteorder) if byteorder.len == 1) {
                continue;
            }
            let written = without_numbers(&format!("{expression:?}"));
            text += &format!("  {written}");
            if let Expr::Lookup(lookup) = expression
                && lookup.set.as_str().starts_with("__")
            {
                let content = sets.get(&(rule.family, rule.table.as_str(), lookup.set.as_str()));
                text += content.map_or("", String::as_str);
            }
            text.push('\n');
        }
        text += &format!("  {:?}\n", rule.user_data);
        let chain = (rule.family, rule.table.as_str().to_owned(), rule.chain.as_str().to_owned());
        rules.entry(chain).or_default().push(text);
    }
    rules
}

/// Without the numbers that the kernel gives to sets and chains without names.
pub(crate) fn without_numbers(text: &str) -> String {
    ["__chain", "__set", "__map"].iter().fold(text.to_owned(), |text, word| {
        let mut parts = text.split(word);
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |text, part| text + word + part.trim_start_matches(|c: char| c.is_ascii_digit()))
    })
}

/// Whether this kernel has what a part of the corpus needs. nft is asked with a rule that needs it.
pub(crate) fn has(what: &str) -> bool {
    let Some((_, script, answer)) = NEEDS.iter().find(|(name, ..)| *name == what) else {
        panic!("nobody knows how to ask for {what}");
    };
    *answer.get_or_init(|| {
        let has = namespace().is_some_and(|namespace| namespace.run(|| nft(script)).is_ok());
        if !has {
            testns::lacks(what);
        }
        has
    })
}

static NEEDS: [(&str, &str, OnceLock<bool>); 4] = [
    ("queue", "table inet t { chain c { queue; }; }\n", OnceLock::new()),
    ("bridge_ct", "table bridge t { chain c { ct state new; }; }\n", OnceLock::new()),
    ("bridge_meta", "table bridge t { chain c { meta ibrpvid 1; }; }\n", OnceLock::new()),
    (
        "flowtables",
        "table inet t { flowtable f { hook ingress priority 0; devices = { lo }; }; }\n",
        OnceLock::new(),
    ),
];
