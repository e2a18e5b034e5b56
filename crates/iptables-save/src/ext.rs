//! The table of extensions: their options, how many words each takes, which can be negated, the order
//! in which iptables-save prints them, and where the kernel allows it. The data is in `matches_a.rs` to
//! `targets.rs`.
//!
//! Source: iptables-extensions(8) and the option tables of the 1.8.9 plug-ins; tables, hooks and protocols as
//! the kernel registers them (net/netfilter, net/ipv4/netfilter, net/ipv6/netfilter; tested on 6.18).

mod matches_a;
mod matches_m;
mod rules;
mod targets;

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::spec::{Module, Spec};
use crate::value::Value;

/// An extension of iptables-extensions(8): a match or a target.
///
/// ```
/// use sluicegate_iptables_save::{Family, find_match};
///
/// let multiport = find_match("multiport", Family::Ipv4).expect("iptables has it");
/// assert!(multiport.options().iter().any(|option| option.name() == "dports"));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Extension {
    pub(crate) name: &'static str,
    pub(crate) aliases: &'static [&'static str],
    pub(crate) families: Families,
    pub(crate) options: &'static [OptionRow],
    pub(crate) tables: &'static [&'static str],
    pub(crate) chains: &'static [&'static str],
    pub(crate) protocols: &'static [&'static str],
    pub(crate) whole: fn(&Whole<'_>) -> rules::Checked,
    /// What the kernel demands besides, in this place.
    pub(crate) in_kernel: fn(&Whole<'_>) -> rules::Checked,
}

/// An option of an extension.
#[derive(Debug, Clone, Copy)]
pub struct OptionRow {
    pub(crate) name: &'static str,
    pub(crate) aliases: &'static [&'static str],
    pub(crate) values: &'static [Value],
    /// The last value may be left out.
    pub(crate) optional: bool,
    pub(crate) negatable: bool,
    pub(crate) required: bool,
    pub(crate) repeatable: bool,
    /// Options of one group exclude each other; 0 means no group. Bits: an option may be of several.
    pub(crate) group: u8,
    pub(crate) needs: Option<&'static str>,
    /// The tool prints its text as it is, without quotes.
    unquoted: bool,
}

/// The address family that a rule is for: iptables or ip6tables.
///
/// A type of its own rather than that of `sluicegate-netlink`: this crate works on text and depends on no
/// other crate of the project. The variants have the same names.
///
/// ```
/// use sluicegate_iptables_save::{Family, Rule};
///
/// let rule = Rule::parse("-A INPUT -4 -s 192.0.2.0/24 -j DROP")?;
/// assert!(rule.is_for(Family::Ipv4) && !rule.is_for(Family::Ipv6));
/// # Ok::<(), sluicegate_iptables_save::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Family {
    /// iptables
    Ipv4,
    /// ip6tables
    Ipv6,
}

/// The families that an extension exists for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Families {
    Both,
    Ipv4,
    Ipv6,
}

/// The input of a check of an extension as a whole.
pub(crate) struct Whole<'a> {
    pub(crate) extension: &'static Extension,
    pub(crate) module: &'a Module<'a>,
    pub(crate) spec: &'a Spec<'a>,
    pub(crate) family: Family,
    pub(crate) table: &'a str,
    pub(crate) chain: &'a str,
}

/// Returns the match extension of that name (`tcp`, `icmpv6`, ...), if it is known for the family.
#[must_use]
pub fn find_match(name: &str, family: Family) -> Option<&'static Extension> {
    static INDEX: OnceLock<Index> = OnceLock::new();
    INDEX.get_or_init(|| index(all_matches())).get(&(name, family)).copied()
}

/// Returns the target extension of that name (`DNAT`, ...), if it is known for the family. `ACCEPT`, `DROP`,
/// `RETURN` and chains are not extensions.
#[must_use]
pub fn find_target(name: &str, family: Family) -> Option<&'static Extension> {
    static INDEX: OnceLock<Index> = OnceLock::new();
    INDEX.get_or_init(|| index(all_targets())).get(&(name, family)).copied()
}

/// Returns all match extensions, of both families.
pub fn all_matches() -> impl Iterator<Item = &'static Extension> {
    matches_a::MATCHES.iter().chain(matches_m::MATCHES)
}

/// Returns all target extensions, of both families.
pub fn all_targets() -> impl Iterator<Item = &'static Extension> {
    targets::TARGETS.iter()
}

/// Extensions by name and family: each rule of a table looks several up.
type Index = HashMap<(&'static str, Family), &'static Extension>;

fn index(rows: impl Iterator<Item = &'static Extension>) -> Index {
    let mut index = Index::new();
    for row in rows {
        for name in row.aliases.iter().copied().chain([row.name]) {
            for family in [Family::Ipv4, Family::Ipv6].into_iter().filter(|of| row.families.include(*of)) {
                index.entry((name, family)).or_insert(row);
            }
        }
    }
    index
}

impl Extension {
    /// Returns the name of the extension.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the options of the extension, in the order in which iptables-save prints them.
    #[must_use]
    pub fn options(&self) -> &'static [OptionRow] {
        self.options
    }

    /// Returns whether it exists for the family.
    #[must_use]
    pub fn supports(&self, family: Family) -> bool {
        self.families.include(family)
    }

    /// Returns the option of that name or alias.
    #[must_use]
    pub fn option(&self, name: &str) -> Option<&'static OptionRow> {
        self.options.iter().find(|row| row.is(name))
    }

    const fn new(name: &'static str, options: &'static [OptionRow]) -> Self {
        Self {
            name,
            aliases: &[],
            families: Families::Both,
            options,
            tables: &[],
            chains: &[],
            protocols: &[],
            whole: rules::nothing_more,
            in_kernel: rules::nothing_more,
        }
    }

    const fn v4(mut self) -> Self {
        self.families = Families::Ipv4;
        self
    }

    const fn v6(mut self) -> Self {
        self.families = Families::Ipv6;
        self
    }

    const fn alias(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    /// Restricts it to the tables in which the kernel allows it.
    const fn tables(mut self, tables: &'static [&'static str]) -> Self {
        self.tables = tables;
        self
    }

    /// Restricts it to the built-in chains in which the kernel allows it.
    const fn chains(mut self, chains: &'static [&'static str]) -> Self {
        self.chains = chains;
        self
    }

    /// Restricts it to rules with `-p` and one of these.
    const fn protocols(mut self, protocols: &'static [&'static str]) -> Self {
        self.protocols = protocols;
        self
    }

    /// Sets the check of what the kernel demands of the rule.
    const fn in_kernel(mut self, check: fn(&Whole<'_>) -> rules::Checked) -> Self {
        self.in_kernel = check;
        self
    }

    /// Sets the check of the options taken together.
    const fn whole(mut self, check: fn(&Whole<'_>) -> rules::Checked) -> Self {
        self.whole = check;
        self
    }
}

impl OptionRow {
    /// Returns the name of the option, without dashes.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns whether iptables-save prints the value of this number as a string, in quotes unless it is plain.
    pub(crate) fn is_quoted(&self, value: usize) -> bool {
        !self.unquoted && self.values.get(value).is_some_and(|value| value.is_text())
    }

    /// Returns the other names of the option.
    #[must_use]
    pub fn aliases(&self) -> &'static [&'static str] {
        self.aliases
    }

    /// Returns the largest number of words that follow the option.
    #[must_use]
    pub fn arity(&self) -> usize {
        self.values.len()
    }

    /// Returns the least and the greatest number that it takes, if its value is a number in a range.
    #[must_use]
    pub fn range(&self) -> Option<(u64, u64)> {
        self.values.first().and_then(|value| value.range())
    }

    /// Returns whether the last of these words may be left out.
    #[must_use]
    pub fn is_optional(&self) -> bool {
        self.optional
    }

    /// Returns whether `!` may stand before it.
    #[must_use]
    pub fn negatable(&self) -> bool {
        self.negatable
    }

    /// Returns whether a rule can have only one of the two.
    pub(crate) fn excludes(&self, other: &Self) -> bool {
        self.group & other.group != 0 && self.name != other.name
    }

    pub(crate) fn is(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }

    const fn new(name: &'static str, values: &'static [Value]) -> Self {
        Self {
            name,
            aliases: &[],
            values,
            optional: false,
            negatable: false,
            required: false,
            repeatable: false,
            group: 0,
            needs: None,
            unquoted: false,
        }
    }

    const fn alias(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    const fn not(mut self) -> Self {
        self.negatable = true;
        self
    }

    const fn must(mut self) -> Self {
        self.required = true;
        self
    }

    const fn many(mut self) -> Self {
        self.repeatable = true;
        self
    }

    const fn maybe(mut self) -> Self {
        self.optional = true;
        self
    }

    const fn group(mut self, group: u8) -> Self {
        self.group = group;
        self
    }

    const fn unquoted(mut self) -> Self {
        self.unquoted = true;
        self
    }

    const fn needs(mut self, other: &'static str) -> Self {
        self.needs = Some(other);
        self
    }
}

impl Families {
    fn include(self, family: Family) -> bool {
        matches!((self, family), (Self::Both, _) | (Self::Ipv4, Family::Ipv4) | (Self::Ipv6, Family::Ipv6))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The headings of iptables-extensions(8) of iptables 1.8.9.
    const MATCHES: &str = "addrtype ah bpf cgroup cluster comment connbytes connlabel connlimit connmark \
        conntrack \
        cpu dccp devgroup dscp dst ecn esp eui64 frag hashlimit hbh helper hl icmp icmp6 iprange \
        ipv6header ipvs length limit mac mark mh multiport nfacct osf owner physdev pkttype \
        policy quota rateest realm recent rpfilter rt sctp set socket state statistic string tcp \
        tcpmss time tos ttl u32 udp";
    const TARGETS: &str = "AUDIT CHECKSUM CLASSIFY CLUSTERIP CONNMARK CONNSECMARK CT DNAT DNPT DSCP ECN HL \
        HMARK \
        IDLETIMER LED LOG MARK MASQUERADE NETMAP NFLOG NFQUEUE NOTRACK RATEEST REDIRECT REJECT \
        SECMARK SET SNAT SNPT SYNPROXY TCPMSS TCPOPTSTRIP TEE TOS TPROXY TRACE TTL ULOG";

    #[test]
    fn every_extension_of_the_man_page_is_known() {
        let both = [Family::Ipv4, Family::Ipv6];
        for name in MATCHES.split_whitespace() {
            assert!(both.iter().any(|family| find_match(name, *family).is_some()), "{name}");
        }
        for name in TARGETS.split_whitespace() {
            assert!(both.iter().any(|family| find_target(name, *family).is_some()), "{name}");
        }
    }

    #[test]
    fn the_corpus_has_every_option_that_the_kernel_of_the_tests_has() {
        let corpus = [include_str!("../testdata/rules.v4"), include_str!("../testdata/rules.v6")];
        let lines: Vec<_> = corpus.iter().flat_map(|corpus| corpus.lines()).collect();
        // Not in that kernel, or it needs a file, a helper or a policy that the tests do not set up.
        let missing = ["ipvs", "nfacct", "CLUSTERIP", "LED", "SECMARK", "ULOG"];
        let apart = [
            "path",
            "object-pinned",
            "helper",
            "timeout",
            "oif",
            "selctx",
            "ecn-tcp-cwr",
            "ecn-tcp-ece",
            "ecn-ip-ect",
        ];
        let used = |row: &OptionRow| {
            let mut names = std::iter::once(row.name).chain(row.aliases.iter().copied());
            names.any(|name| lines.iter().any(|line| line.contains(&format!("--{name}"))))
        };
        let extensions =
            all_matches().chain(all_targets()).filter(|extension| !missing.contains(&extension.name));
        let rows =
            extensions.flat_map(|extension| extension.options.iter().map(move |row| (extension.name, row)));
        let unused = rows.filter(|(_, row)| !apart.contains(&row.name) && !used(row));
        let unused: Vec<_> = unused.map(|(name, row)| format!("{name} --{}", row.name)).collect();
        assert!(unused.is_empty(), "{unused:?}");
    }
}
