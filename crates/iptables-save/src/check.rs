//! Checks whether words can be a rule, as iptables and the kernel would, without asking either.

use std::borrow::Cow;

use crate::condition::{ChainNameFault, Condition};
use crate::encoding::byte_len;
use crate::ext::{Extension, Family, OptionRow, Whole, find_match, find_target};
use crate::spec::{Module, OptionUse, Spec};
use crate::value::{networks, protocol_number};
use crate::words::{column, split};
use crate::{Action, Error, Limits, Rule, RuleFault};

/// The place where a rule is to stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place<'a> {
    /// `filter`, `nat`, `mangle`, `raw`, `security`.
    pub table: &'a str,
    /// The chain.
    pub chain: &'a str,
    /// iptables or ip6tables.
    pub family: Family,
}

/// A rule that [`check_line`] found to be possible.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckedLine<'a> {
    /// The table of `-t`; `filter` without one.
    pub table: String,
    /// The operation of the line, with chain and words.
    pub rule: Rule<'a>,
    /// The family that the rule is for; IPv4 if it can be for both.
    pub family: Family,
}

/// Checks one command line of iptables without the name of the tool: `-t nat -A PREROUTING -p tcp ... -j DNAT
/// ...`.
///
/// The family is that of `-4` or `-6`, else IPv4 if the rule can be one of iptables, else IPv6.
///
/// ```
/// use sluicegate_iptables_save::check_line;
///
/// assert!(check_line("-A INPUT -p tcp --dport 22 -j ACCEPT").is_ok());
/// let error = check_line("-A INPUT --dport 22 -j ACCEPT").unwrap_err();
/// assert!(error.to_string().starts_with("line 1, column 10: "), "{error}");
/// ```
///
/// # Errors
/// [`Error::Syntax`] or [`Error::Rule`] with the column in `line` and the reason.
pub fn check_line(line: &str) -> Result<CheckedLine<'static>, Error> {
    let line = line.trim_end_matches(['\n', '\r']);
    let (table, rest) = take_table(line)?;
    let rule = Rule::parse(&rest)?.into_owned();
    let shift = rest.strip_suffix(rule.text()).map_or(0, |before| before.chars().count());
    let check = |family| {
        let place = Place { table: &table, chain: rule.chain(), family };
        check(rule.text(), place).map(|_| family).map_err(|error| moved(error, shift, line))
    };
    let family = if matches!(rule.action(), Action::DeleteNumber(_)) && rule.text().is_empty() {
        Family::Ipv4
    } else {
        match (asked_family(rule.text()), crate::read::guess_family(rule.text())) {
            (Some(family), _) => check(family)?,
            (None, Family::Ipv6) => check(Family::Ipv6)?,
            (None, Family::Ipv4) => {
                check(Family::Ipv4).or_else(|error| check(Family::Ipv6).map_err(|_| error))?
            }
        }
    };
    Ok(CheckedLine { table, rule, family })
}

/// Returns the family that `-4` or `-6` asks for.
fn asked_family(words: &str) -> Option<Family> {
    words.split([' ', '\t']).find_map(|word| match word {
        "-4" | "--ipv4" => Some(Family::Ipv4),
        "-6" | "--ipv6" => Some(Family::Ipv6),
        _ => None,
    })
}

/// Reads the words of a rule and checks them for a place: options, values, and what table, chain, protocol
/// and the other options allow. Whether chains, sets and interfaces exist is not asked.
///
/// A value of which iptables reads the beginning alone, or a number that it cuts to fewer bits, is refused:
/// the rule would not mean what was written. Text that it cuts, as a long prefix or comment, is accepted.
///
/// # Errors
/// [`Error::Rule`] with the column in `words` and the reason.
pub fn check<'a>(words: &'a str, place: Place<'_>) -> Result<Spec<'a>, Error> {
    check_with(&Checker { words, place, leaves_to_kernel: false })
}

/// As [`check`], but leaves to the kernel what it refuses in this place ([`Error::Place`]): iptables-nft takes
/// some of it that iptables-legacy refuses.
///
/// # Errors
/// As [`check`], but for [`Error::Place`].
pub fn check_words<'a>(words: &'a str, place: Place<'_>) -> Result<Spec<'a>, Error> {
    check_with(&Checker { words, place, leaves_to_kernel: true })
}

fn check_with<'a>(checker: &Checker<'a, '_>) -> Result<Spec<'a>, Error> {
    let Checker { words, place, .. } = *checker;
    checker.place()?;
    checker.sizes()?;
    let spec = Spec::read_strictly(words, place.family)?;
    if let Some(only) = spec.family.filter(|only| *only != place.family) {
        let (word, tool) = if only == Family::Ipv4 { ("-4", "iptables") } else { ("-6", "ip6tables") };
        return Err(checker.wrong_rule(word, format!("the rule is for {tool} alone")));
    }
    checker.generic(&spec)?;
    for module in &spec.matches {
        if let Some(extension) = find_match(&module.name, place.family) {
            checker.module(extension, module, &spec)?;
        }
    }
    checker.target(&spec)?;
    Ok(spec)
}

/// Replaces `-t TABLE` in a line by blanks, so that the rest keeps its columns.
fn take_table(line: &str) -> Result<(String, String), Error> {
    let mut words = split(line);
    // What stands behind a long option is its value, even if it looks like `-t`.
    let mut value = false;
    while let Some(word) = words.next().transpose()? {
        let attached = match word.text.strip_prefix("--table") {
            Some(rest) => rest.strip_prefix('='),
            None => word.text.strip_prefix("-t").filter(|table| !table.is_empty()),
        };
        let is_table = word.text.starts_with("-t")
            || matches!(&*word.text, "--table")
            || word.text.starts_with("--table=");
        if value || !is_table {
            value = word.text.starts_with("--") && !word.text.contains('=');
            continue;
        }
        let table = match attached {
            Some(table) => table.to_owned(),
            None => match words.next().transpose()? {
                Some(table) => table.text.into_owned(),
                None => {
                    return Err(rule_error(line, word.offset, &word.text, "expected the name of a table"));
                }
            },
        };
        let end = line.len() - words.rest().len();
        let gap = " ".repeat(column(line, end) - column(line, word.offset));
        let before = line.get(..word.offset).unwrap_or_default();
        return Ok((table, format!("{before}{gap}{}", words.rest())));
    }
    Ok(("filter".to_owned(), line.to_owned()))
}

/// Returns the error of the words of a rule, with the column of the whole line. Table and chain stand before
/// the words.
fn moved(mut error: Error, shift: usize, line: &str) -> Error {
    if let Error::Rule { column: at, word, .. } | Error::Place { column: at, word, .. } = &mut error {
        let before = || {
            split(line).flatten().find(|found| found.text == *word).map(|found| column(line, found.offset))
        };
        *at = if *at == 1 { before().unwrap_or(shift + 1) } else { *at + shift };
    }
    error
}

fn rule_error(line: &str, offset: usize, word: &str, reason: &str) -> Error {
    let (word, reason) = (word.to_owned(), reason.to_owned());
    Error::Rule { line: 1, column: column(line, offset), word, reason, fault: Box::new(RuleFault::Other) }
}

struct Checker<'w, 'p> {
    words: &'w str,
    place: Place<'p>,
    leaves_to_kernel: bool,
}

impl Checker<'_, '_> {
    /// Returns an error at the word behind the option, or at the option itself.
    fn wrong(&self, option: &OptionUse<'_>, word: &str, reason: impl Into<String>) -> Error {
        let start = option.offset as usize;
        rule_error(self.words, self.find(word, start).unwrap_or(start), word, &reason.into())
    }

    /// Refuses what the kernel refuses, unless that is left to it.
    fn refused(&self, error: Error) -> Result<(), Error> {
        match error {
            _ if self.leaves_to_kernel => Ok(()),
            Error::Rule { line, column, word, reason, fault } => {
                Err(Error::Place { line, column, word, reason, fault })
            }
            error => Err(error),
        }
    }

    fn wrong_rule(&self, word: &str, reason: impl Into<String>) -> Error {
        rule_error(self.words, self.find(word, 0).unwrap_or(0), word, &reason.into())
    }

    /// Returns the position of the first occurrence of a word from `start` on.
    fn find(&self, word: &str, start: usize) -> Option<usize> {
        let found = split(self.words.get(start..)?).flatten().find(|found| found.text == word)?;
        Some(start + found.offset)
    }

    fn place(&self) -> Result<(), Error> {
        let Place { table, chain, .. } = self.place;
        let Some((_, built_in)) = TABLES.iter().find(|(name, _)| *name == table) else {
            let names: Vec<_> = TABLES.iter().map(|(name, _)| *name).collect();
            return Err(self.wrong_rule(table, format!("expected a table: {}", names.join(", "))));
        };
        chain_name(chain).map_err(|fault| self.wrong_rule(chain, fault.to_string()))?;
        if BUILT_IN.contains(&chain) && !built_in.contains(&chain) {
            return Err(self.wrong_rule(chain, format!("table {table} has no built-in chain {chain}")));
        }
        Ok(())
    }

    /// Checks that the line is within the limits of iptables-restore.
    fn sizes(&self) -> Result<(), Error> {
        let over = |what, found, limit| Err(Error::Limit { line: 1, what, found, limit });
        if byte_len(self.words) >= Limits::RESTORE_LINE {
            return over("the rule, in bytes,", byte_len(self.words), Limits::RESTORE_LINE);
        }
        let mut count = 0;
        for word in split(self.words) {
            let word = word?;
            count += 1;
            if byte_len(&word.text) > Limits::RESTORE_WORD {
                return over("a word, in bytes,", byte_len(&word.text), Limits::RESTORE_WORD);
            }
        }
        if count > Limits::RESTORE_WORDS {
            return over("the number of words", count, Limits::RESTORE_WORDS);
        }
        Ok(())
    }

    fn generic(&self, spec: &Spec<'_>) -> Result<(), Error> {
        for option in &spec.generic {
            let value = option.value().unwrap_or_default();
            let checked = match &*option.name {
                "protocol" => self.protocol(value, option.negated),
                "source" | "destination" => self.networks(value, option.negated),
                "in-interface" => self.interface(value, "-i", &["POSTROUTING", "OUTPUT"]),
                "out-interface" => self.interface(value, "-o", &["PREROUTING", "INPUT"]),
                _ if self.place.family == Family::Ipv6 => {
                    Err((RuleFault::Other, "-f is of iptables alone; use -m frag".into()))
                }
                _ => Ok(()),
            };
            checked.map_err(|(fault, reason)| self.wrong(option, value, reason).with_fault(fault))?;
        }
        Ok(())
    }

    fn protocol(&self, value: &str, negated: bool) -> Generic {
        // `-p` makes words small, which are names in capitals in /etc/protocols.
        let number = protocol_number(value).filter(|_| !NAMES_IN_CAPITALS.contains(&&*value.to_lowercase()));
        match number {
            None => Err((RuleFault::Protocol, "expected a protocol by name or number".into())),
            Some(0) if negated => {
                Err((RuleFault::NoProtocol, "no packet has a protocol other than all".into()))
            }
            Some(_) => Ok(()),
        }
    }

    fn networks(&self, value: &str, negated: bool) -> Generic {
        let networks = networks(value, self.place.family)?;
        match networks.len() {
            2.. if negated => Err((RuleFault::NegatedAddresses, "`!` goes with a single address".into())),
            _ => Ok(()),
        }
    }

    fn interface(&self, value: &str, option: &str, not_in: &[&str]) -> Generic {
        if not_in.contains(&self.place.chain) {
            return Err((
                RuleFault::Other,
                format!("{option} cannot be used in {}", self.place.chain).into(),
            ));
        }
        match byte_len(value) {
            0 => Err((RuleFault::NoInterface, "expected the name of an interface".into())),
            1..=15 => Ok(()),
            _ => {
                let reason = "expected the name of an interface, of at most 15 bytes";
                Err((RuleFault::LongInterface, reason.into()))
            }
        }
    }

    fn module(
        &self,
        extension: &'static Extension,
        module: &Module<'_>,
        spec: &Spec<'_>,
    ) -> Result<(), Error> {
        for option in &module.options {
            if let Some(row) = extension.option(&option.name) {
                self.option(extension, row, option)?;
                self.exclusions(extension, row, option, module)?;
            }
        }
        let wrong = |reason: String| {
            let reason = format!("{} {reason}", extension.name);
            match module.options.first() {
                Some(option) => self.wrong(option, "", reason),
                None => self.wrong_rule("", reason),
            }
        };
        if let Some(row) =
            extension.options.iter().find(|row| row.required && module.option(row.name).is_none())
        {
            let fault = RuleFault::Required { extension: extension.name, option: row.name };
            return Err(wrong(format!("needs --{}", row.name)).with_fault(fault));
        }
        let Place { table, chain, family } = self.place;
        if !extension.tables.is_empty() && !extension.tables.contains(&table) {
            let tables = extension.tables.join(" and ");
            self.refused(wrong(format!("works in table {tables} alone, not in {table}")))?;
        }
        if !extension.chains.is_empty() && BUILT_IN.contains(&chain) && !extension.chains.contains(&chain) {
            let chains = extension.chains.join(", ");
            self.refused(wrong(format!("works in {chains} alone, not in {chain}")))?;
        }
        if !has_protocol(extension, spec) {
            let fault = RuleFault::NeedsProtocol { extension: extension.name };
            let error = wrong(format!("needs -p {}", extension.protocols.join(" or -p "))).with_fault(fault);
            // Here the tool itself looks.
            match extension.name {
                "multiport" => return Err(error),
                _ => self.refused(error)?,
            }
        }
        let whole = Whole { extension, module, spec, family, table, chain };
        let unmet = |condition: Condition| {
            let error = wrong(condition.to_string());
            error.with_fault(RuleFault::Condition { extension: extension.name, condition })
        };
        (extension.whole)(&whole).map_err(unmet)?;
        (extension.in_kernel)(&whole).or_else(|condition| self.refused(unmet(condition)))
    }

    fn option(
        &self,
        extension: &'static Extension,
        row: &'static OptionRow,
        option: &OptionUse<'_>,
    ) -> Result<(), Error> {
        for (kind, value) in row.values.iter().zip(option.values.as_slice()) {
            kind.read(value, self.place.family).map_err(|reason| {
                let error = self.wrong(option, value, format!("{reason} (--{})", row.name));
                error.with_fault(kind.fault(extension.name, row.name, value))
            })?;
        }
        Ok(())
    }

    fn exclusions(
        &self,
        extension: &'static Extension,
        row: &'static OptionRow,
        option: &OptionUse<'_>,
        module: &Module<'_>,
    ) -> Result<(), Error> {
        let other =
            extension.options.iter().find(|other| row.excludes(other) && module.option(other.name).is_some());
        if let Some(other) = other {
            let reason = format!("`--{}` and `--{}` exclude each other", row.name, other.name);
            let place = |row: &OptionRow| extension.options.iter().position(|of| of.name == row.name);
            let (first, second) = if place(row) < place(other) { (row, other) } else { (other, row) };
            let fault =
                RuleFault::Exclusive { extension: extension.name, option: second.name, other: first.name };
            return Err(self.wrong(option, "", reason).with_fault(fault));
        }
        match row.needs {
            Some(needs) if module.option(needs).is_none() => {
                let fault = RuleFault::Alone { extension: extension.name, option: row.name, needs };
                Err(self.wrong(option, "", format!("`--{}` needs `--{needs}`", row.name)).with_fault(fault))
            }
            _ => Ok(()),
        }
    }

    fn target(&self, spec: &Spec<'_>) -> Result<(), Error> {
        let Some(target) = &spec.target else { return Ok(()) };
        let Place { table, chain, family } = self.place;
        let name = &*target.module.name;
        target_name(name).map_err(|(fault, reason)| self.wrong_rule(name, reason).with_fault(fault))?;
        if name == chain && !BUILT_IN.contains(&chain) {
            let error = self.wrong_rule(name, "a chain that calls itself is a loop");
            self.refused(error.with_fault(RuleFault::OwnChain))?;
        }
        if TABLES.iter().any(|(known, chains)| *known == table && chains.contains(&name)) {
            let error = self.wrong_rule(name, "a built-in chain cannot be a target");
            self.refused(error.with_fault(RuleFault::BuiltInChain))?;
        }
        if table == "nat" && name == "DROP" {
            return Err(self.wrong_rule(name, "table nat is not for filtering and takes no DROP"));
        }
        if target.goto {
            return match VERDICTS.contains(&name) {
                true => Err(self.wrong_rule(name, "-g takes a chain").with_fault(RuleFault::NotAChain)),
                false => Ok(()),
            };
        }
        match find_target(name, family) {
            Some(extension) => self.module(extension, &target.module, spec),
            None => match find_target(name, if family == Family::Ipv4 { Family::Ipv6 } else { Family::Ipv4 })
            {
                Some(_) => {
                    let tool = if family == Family::Ipv4 { "ip6tables" } else { "iptables" };
                    let error = self.wrong_rule(name, format!("a target of {tool} alone"));
                    Err(error.with_fault(RuleFault::TargetName))
                }
                None => Ok(()),
            },
        }
    }
}

/// Returns whether a rule is of a protocol that the extension needs.
fn has_protocol(extension: &Extension, spec: &Spec<'_>) -> bool {
    let protocol = spec.generic("protocol").filter(|option| !option.negated);
    let number = protocol.and_then(|option| protocol_number(option.value()?));
    let is_right = |name: &&str| number.is_some() && protocol_number(name) == number;
    extension.protocols.is_empty() || extension.protocols.iter().any(is_right)
}

/// Checks the name of a chain.
pub(crate) fn chain_name(name: &str) -> Result<(), ChainNameFault> {
    match byte_len(name) {
        0 => return Err(ChainNameFault::Empty),
        1..=Limits::CHAIN_NAME => (),
        length => return Err(ChainNameFault::Long(length)),
    }
    if name.starts_with(['-', '!']) {
        return Err(ChainNameFault::Start);
    }
    if name.bytes().any(|byte| byte <= b' ' || byte == 0x7f) {
        return Err(ChainNameFault::Blank);
    }
    Ok(())
}

fn target_name(name: &str) -> Generic {
    match byte_len(name) {
        0 => Err((RuleFault::NoTarget, "expected the name of a target".into())),
        _ if name.starts_with('-') => {
            let reason = "expected the name of a target, which does not start with `-`";
            Err((RuleFault::TargetName, reason.into()))
        }
        1..=Limits::CHAIN_NAME if !name.contains(|c: char| c.is_ascii_whitespace()) => Ok(()),
        1..=Limits::CHAIN_NAME => Err((RuleFault::TargetName, "the name of a target has no blanks".into())),
        length => {
            let most = Limits::CHAIN_NAME;
            let reason = format!("the name of a target has at most {most} bytes, this one {length}");
            Err((RuleFault::LongTarget, reason.into()))
        }
    }
}

/// What a check of an option outside of extensions gives.
type Generic = Result<(), (RuleFault, Cow<'static, str>)>;

/// Second names of protocols.
const NAMES_IN_CAPITALS: [&str; 5] = ["ip-encap", "ipsec-esp", "ipsec-ah", "cphb", "ospfigp"];

/// Targets that are neither chains nor extensions.
pub(crate) const VERDICTS: [&str; 4] = ["ACCEPT", "DROP", "RETURN", "QUEUE"];

/// The built-in chains.
pub(crate) const BUILT_IN: [&str; 5] = ["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"];

/// The tables and their built-in chains.
pub(crate) const TABLES: [(&str, &[&str]); 5] = [
    ("filter", &["INPUT", "FORWARD", "OUTPUT"]),
    ("nat", &["PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"]),
    ("mangle", &BUILT_IN),
    ("raw", &["PREROUTING", "OUTPUT"]),
    ("security", &["INPUT", "FORWARD", "OUTPUT"]),
];
