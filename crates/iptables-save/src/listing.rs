//! A table as `iptables -L -n` lists it: a line for each rule, in columns, in words for people.

mod forms;
mod named;
mod own;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::net::IpAddr;

use crate::encoding::byte_len;
use crate::ext::Family;
use crate::spec::{OptionUse, Spec};
use crate::tree::{Chain, Counters, Rule, Table};
use crate::value::protocol_number;
use crate::{Error, find_target};

/// Lists tables as `iptables -L -n` does, or as `iptables -L` with [`Names`].
///
/// Without these, addresses, ports and protocols are numbers: nothing is looked up. The words are those of iptables
/// 1.8.9, which differ from those of iptables-save for nearly every extension. What a save does not have
/// cannot be listed either: `-i +`, which the legacy tool shows, is no option of a rule that is saved.
///
/// ```
/// use sluicegate_iptables_save::{Family, Listing, Save};
///
/// let save = Save::parse("*filter\n:WEB - [0:0]\n-A WEB -p tcp -m tcp --dport 80 -j ACCEPT\nCOMMIT\n")?;
/// let mut listing = Listing::new(Family::Ipv4);
/// listing.line_numbers = true;
/// let expected = "\
/// Chain WEB (0 references)
/// num  target     prot opt source               destination         
/// 1    ACCEPT     6    --  0.0.0.0/0            0.0.0.0/0            tcp dpt:80
/// ";
/// assert_eq!(listing.table(save.table("filter").unwrap())?, expected);
/// # Ok::<(), sluicegate_iptables_save::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Listing {
    /// The family of the tables.
    pub family: Family,
    /// Shows counters and interfaces, as `-v` does.
    pub verbose: bool,
    /// Shows counters in full, as `-x` does.
    pub exact: bool,
    /// Shows the number of each rule in its chain, as `--line-numbers` does.
    pub line_numbers: bool,
    /// Shows names in the place of numbers, as the tool does without `-n`.
    pub names: Option<Names>,
    /// How many rules jump to a chain that is listed alone. Without it, those of the table are counted.
    pub references: Option<usize>,
}

/// Where names of hosts, services, users and groups are looked up.
#[derive(Debug, Clone, Copy)]
pub struct Names {
    /// The name of an address.
    pub host: fn(IpAddr) -> Option<String>,
    /// The name of a port of a protocol, such as `tcp`.
    pub service: fn(u16, &str) -> Option<String>,
    /// The name of a user.
    pub user: fn(u32) -> Option<String>,
    /// The name of a group.
    pub group: fn(u32) -> Option<String>,
}

impl Listing {
    /// Returns a listing without counters and numbers.
    #[must_use]
    pub fn new(family: Family) -> Self {
        Self { family, verbose: false, exact: false, line_numbers: false, names: None, references: None }
    }

    /// Returns all chains of a table with their rules, as `-L` lists them.
    ///
    /// # Errors
    /// [`Error`] for a rule whose words cannot be read.
    pub fn table(&self, table: &Table<'_>) -> Result<String, Error> {
        let mut lines: HashMap<&str, Lines> = HashMap::new();
        let mut references: HashMap<String, usize> = HashMap::new();
        for rule in table.rules() {
            let spec = self.read(rule)?;
            if let Some(target) = spec.as_ref().and_then(Spec::target_name) {
                match references.get_mut(target) {
                    Some(count) => *count += 1,
                    None => drop(references.insert(target.to_owned(), 1)),
                }
            }
            self.add(lines.entry(rule.chain()).or_default(), rule, spec.as_ref());
        }
        let mut text = String::new();
        for (at, chain) in table.chains().enumerate() {
            text.extend((at > 0).then_some('\n'));
            text.push_str(&self.head(chain, references.get(chain.name()).copied().unwrap_or_default()));
            text.push_str(lines.get(chain.name()).map_or("", |lines| &lines.text));
        }
        Ok(text)
    }

    /// Returns one chain of a table, as `-L CHAIN` lists it; `None` if there is no such chain.
    ///
    /// # Errors
    /// As [`Listing::table`].
    pub fn chain(&self, table: &Table<'_>, name: &str) -> Result<Option<String>, Error> {
        let Some(chain) = table.chain(name) else { return Ok(None) };
        let used = match self.references {
            Some(references) => references,
            None => self.references_in(table, name)?,
        };
        let mut lines = Lines { text: self.head(chain, used), rules: 0 };
        for rule in table.rules().filter(|rule| rule.chain() == name) {
            self.add(&mut lines, rule, self.read(rule)?.as_ref());
        }
        Ok(Some(lines.text))
    }

    /// Returns one rule of a chain by its number from 1, as `-L CHAIN NUMBER` lists it: without a head.
    /// Empty if there is no such rule.
    ///
    /// # Errors
    /// As [`Listing::table`].
    pub fn rule(&self, table: &Table<'_>, chain: &str, number: usize) -> Result<String, Error> {
        let before = number.saturating_sub(1);
        let mut lines = Lines { text: String::new(), rules: before };
        if let Some(rule) = table.rules().filter(|rule| rule.chain() == chain).nth(before) {
            self.add(&mut lines, rule, self.read(rule)?.as_ref());
        }
        Ok(lines.text)
    }

    /// Returns a rule as `-A -v` prints it, in a line of its own without columns.
    ///
    /// # Errors
    /// As [`Listing::table`].
    pub fn single(&self, rule: &Rule<'_>) -> Result<String, Error> {
        let spec = Spec::read_as(rule.text(), self.family)?;
        let target = match spec.target_name() {
            Some("NOTRACK") => "CT",
            name => name.unwrap_or_default(),
        };
        let shown = |name: &str, any: &str| {
            let (not, value) = value(spec.generic(name), any);
            format!("{not}{value}")
        };
        let fragment = match spec.generic("fragment") {
            None => "--",
            Some(option) if option.negated => "!f",
            Some(_) => "-f",
        };
        let (everywhere, host) = match self.family {
            Family::Ipv4 => ("0.0.0.0/0", "/32"),
            Family::Ipv6 => ("::/0", "/128"),
        };
        let address = |name| {
            let shown = shown(name, everywhere);
            shown.strip_suffix(host).map_or(shown.clone(), str::to_owned)
        };
        let mut line = format!(
            "{target} {} opt {fragment} in{} out{} {}  ->{}  ",
            shown("protocol", "all"),
            shown("in-interface", "*"),
            shown("out-interface", "*"),
            address("source"),
            address("destination"),
        );
        self.extensions(&mut line, &spec);
        line.push('\n');
        Ok(line)
    }

    /// Reads the words of a rule, if it has any.
    fn read<'t>(&self, rule: &'t Rule<'_>) -> Result<Option<Spec<'t>>, Error> {
        if rule.is_foreign() {
            return Ok(None);
        }
        let spec = Spec::read_as(rule.text(), self.family);
        spec.map(Some).map_err(|error| error.on_line(rule.line().max(1)))
    }

    /// Returns how many rules jump to a chain.
    fn references_in(&self, table: &Table<'_>, chain: &str) -> Result<usize, Error> {
        let mut count = 0;
        // Most rules do not have the name.
        let may = |rule: &&Rule<'_>| chain.contains(['"', '\\']) || rule.text().contains(chain);
        for rule in table.rules().filter(may) {
            count += usize::from(self.read(rule)?.as_ref().and_then(Spec::target_name) == Some(chain));
        }
        Ok(count)
    }

    /// Returns the line that names the chain, and the names of the columns.
    fn head(&self, chain: &Chain<'_>, references: usize) -> String {
        let state = match chain.policy() {
            Some(policy) if self.verbose => {
                let Counters { packets, bytes } = chain.counters().unwrap_or_default();
                let [packets, bytes] = [packets, bytes].map(|count| self.count(count).trim().to_owned());
                format!("policy {policy} {packets} packets, {bytes} bytes")
            }
            Some(policy) => format!("policy {policy}"),
            None => format!("{references} references"),
        };
        let num = if self.line_numbers { "num  " } else { "" };
        let (counters, interfaces) = match (self.verbose, self.exact) {
            (false, _) => ("", ""),
            (true, false) => (" pkts bytes ", "in     out     "),
            (true, true) => ("    pkts      bytes ", "in     out     "),
        };
        let columns = format!("{num}{counters}target     prot opt {interfaces}");
        format!("Chain {} ({state})\n{columns}{:<19}  {:<19} \n", chain.name(), "source", "destination")
    }

    /// Adds the line of a rule.
    fn add(&self, lines: &mut Lines, rule: &Rule<'_>, spec: Option<&Spec<'_>>) {
        lines.rules += 1;
        let line = &mut lines.text;
        if self.line_numbers {
            let _ = write!(line, "{:<4} ", lines.rules);
        }
        let Some(spec) = spec else {
            line.extend([rule.text(), "\n"]);
            return;
        };
        if self.verbose {
            let Counters { packets, bytes } = rule.counters().unwrap_or_default();
            line.extend([self.count(packets), self.count(bytes)]);
        }
        let target = match spec.target_name() {
            // The kernel has it as the target CT.
            Some("NOTRACK") => "CT",
            name => name.unwrap_or_default(),
        };
        column(line, target, 9);
        let (not, protocol) = value(spec.generic("protocol"), if self.names.is_some() { "all" } else { "0" });
        line.push(not);
        match protocol_number(protocol).filter(|_| self.names.is_none()) {
            Some(number) => column(line, &number.to_string(), 4),
            None => column(line, protocol, 4),
        }
        line.push_str(match spec.generic("fragment") {
            None => "-- ",
            Some(option) if option.negated => "!f ",
            Some(_) => "-f ",
        });
        if self.verbose {
            line.push(' ');
            for name in ["in-interface", "out-interface"] {
                let (not, interface) = value(spec.generic(name), "*");
                match not {
                    ' ' => column(line, interface, 6),
                    _ => column(line, &format!("!{interface}"), 6),
                }
            }
        }
        let (everywhere, host) = match self.family {
            Family::Ipv4 => ("0.0.0.0/0", "/32"),
            Family::Ipv6 => ("::/0", "/128"),
        };
        for name in ["source", "destination"] {
            let (not, network) = value(spec.generic(name), everywhere);
            let address = network.strip_suffix(host);
            let shown = match (self.names, address) {
                (Some(_), None) if network == everywhere => Some("anywhere".to_owned()),
                (Some(names), Some(address)) => address.parse().ok().and_then(names.host),
                _ => None,
            };
            line.push(not);
            column(line, shown.as_deref().or(address).unwrap_or(network), 19);
        }
        self.extensions(line, spec);
        line.push('\n');
    }

    fn extensions(&self, line: &mut String, spec: &Spec<'_>) {
        if spec.target.as_ref().is_some_and(|target| target.goto) {
            line.push_str("[goto] ");
        }
        for module in &spec.matches {
            match self.names {
                Some(names) => named::of_match(line, module, spec, self.family, names),
                None => forms::of_match(line, module, self.family),
            }
        }
        // A verdict and a chain have a column, and nothing to say beside it.
        let target = spec.target.as_ref().map(|target| &target.module);
        if let Some(module) = target.filter(|module| find_target(&module.name, self.family).is_some()) {
            match self.names {
                Some(_) => named::of_target(line, module, self.family),
                None => forms::of_target(line, module, self.family),
            }
        }
    }

    /// Returns a counter in its column.
    fn count(&self, number: u64) -> String {
        if self.exact {
            return format!("{number:>8} ");
        }
        let (mut number, mut rounds) = (number, 0);
        // Rounded half up each time; there is no letter behind T.
        while rounds < 4 && number > if rounds == 0 { 99_999 } else { 9_999 } {
            (number, rounds) = (number / 1000 + u64::from(number % 1000 >= 500), rounds + 1);
        }
        match ["K", "M", "G", "T"].get(usize::wrapping_sub(rounds, 1)) {
            Some(letter) => format!("{number:>4}{letter} "),
            None => format!("{number:>5} "),
        }
    }
}

/// The lines of rules of a chain, and how many rules these are.
#[derive(Default)]
struct Lines {
    text: String,
    rules: usize,
}

/// Returns `!` or a blank, and the value.
fn value<'a>(option: Option<&'a OptionUse<'_>>, default: &'a str) -> (char, &'a str) {
    let not = if option.is_some_and(|option| option.negated) { '!' } else { ' ' };
    (not, option.and_then(OptionUse::value).unwrap_or(default))
}

/// Writes a word and blanks behind it: the column of so many bytes, as the tool counts, and one.
fn column(line: &mut String, word: &str, width: usize) {
    const BLANKS: &str = "                    ";
    line.push_str(word);
    let left = width.saturating_sub(byte_len(word));
    line.push_str(BLANKS.get(..=left).unwrap_or(BLANKS));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Action;

    #[test]
    fn columns_are_as_wide_as_bytes_are_many() {
        let mut listing = Listing::new(Family::Ipv4);
        listing.verbose = true;
        let rule = Rule::new(Action::Append, "X", "-i eth\u{e9} ! -o a -j ACCEPT").unwrap();
        let mut table = Table::new("filter").unwrap();
        table.entries.push(crate::Entry::Rule(rule));
        let line = listing.rule(&table, "X", 1).unwrap();
        // iptables 1.8.9 counts bytes.
        assert!(line.contains("--  eth\u{e9}  !a     "), "{line}");
    }
}
