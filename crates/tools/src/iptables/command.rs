//! One command of iptables(8).

use std::borrow::Cow;

use sluicegate_iptables_save as save;
use sluicegate_iptables_save::{
    Action, Command, Counters, Entry, Item, Listing, Place, Rule, Save, Table, Verb, check_words, encode,
    find_target, quote_if_needed, split,
};
use sluicegate_xtables::legacy::Restore;
use sluicegate_xtables::{BackEnd, Error, ForeignReason, View};

use super::arguments::{self, Arguments};
use super::client::Client;
use super::failure::{self, Asked, Failure, parameter};
use super::restore::tell_removed;
use super::{Tool, help, hosts, incompatible};
use crate::output::print;

pub(super) fn run(tool: &Tool, words: &[String]) -> Result<(), Failure> {
    let mut arguments = arguments::read(words, tool.family)?;
    match arguments.ends {
        Some('V') => return Ok(print(format!("{} {}\n", tool.name, tool.version()))?),
        Some(_) => {
            let text = help::text(tool.family, &arguments.extensions);
            return Ok(print(format!("{} {}\n\n{text}", tool.name, tool.version()))?);
        }
        None => (),
    }
    let table = arguments.table.take().unwrap_or_else(|| "filter".to_owned());
    let command = arguments.command.unwrap_or_default();
    let chain = arguments.chain.clone().unwrap_or_default();
    // A rule that is deleted by its number is not looked for.
    let said = match (command, arguments.number) {
        ('D', Some(_)) => '#',
        ('Z', Some(_)) => 'z',
        _ => command,
    };
    let asked = Asked { back_end: tool.back_end, family: tool.family, command: said, chain: &chain };
    let told = |error| failure::of(&error, asked);
    let wait = arguments.wait.flatten();
    let client = Client::open(tool.back_end, tool.family, wait).map_err(told)?;
    let run = Run { tool, client: &client, table: &table, arguments: &arguments, asked };
    match command {
        'L' => run.list()?,
        'S' => run.rules()?,
        'C' => return run.check(),
        _ => return run.change(command),
    }
    if arguments.zero { run.change('Z') } else { Ok(()) }
}

struct Run<'a> {
    tool: &'a Tool,
    client: &'a Client,
    table: &'a str,
    arguments: &'a Arguments,
    asked: Asked<'a>,
}

impl Run<'_> {
    fn told(&self, error: &Error) -> Failure {
        failure::of(error, self.asked)
    }

    fn words(&self) -> Result<String, Failure> {
        let words = self.arguments.words.iter().map(|word| quote_if_needed(word).map(Cow::into_owned));
        let words = words.collect::<Result<Vec<_>, _>>().map_err(|error| parameter(error.to_string()))?;
        Ok(words.join(" "))
    }

    /// Checks the words of a rule before the chain is looked for, as the tool does. What the kernel demands of
    /// the place is left to it.
    fn judge(&self, words: &str) -> Result<(), Failure> {
        let place = Place { table: self.table, chain: self.asked.chain, family: self.tool.family };
        if BUILT_IN.contains(&place.chain) || !TABLES.contains(&place.table) {
            return Ok(());
        }
        let of_tool = Place { chain: "X", ..place };
        match check_words(words, of_tool) {
            Err(error @ save::Error::Rule { .. }) => Err(failure::rule(&error.into(), self.asked)),
            _ => Ok(()),
        }
    }

    fn check(&self) -> Result<(), Failure> {
        let words = self.words()?;
        self.judge(&words)?;
        match self.client.check(self.table, self.asked.chain, &words) {
            Ok(true) => self.say_rule(&words),
            // The tool looks for the target first.
            Ok(false) | Err(Error::Line { .. }) if !self.target_exists(&words) => Err(self.no_target(&words)),
            Err(error) => Err(self.told(&error)),
            Ok(false) => Err(Failure::other("Bad rule (does a matching rule exist in that chain?).")),
        }
    }

    /// Returns whether what a rule jumps to is a target or a chain.
    fn target_exists(&self, words: &str) -> bool {
        let Some(name) = target_of(words) else { return true };
        let is_verdict = ["ACCEPT", "DROP", "QUEUE", "RETURN"].contains(&&*name);
        is_verdict
            || find_target(&name, self.tool.family).is_some()
            || self.client.check(self.table, &name, "").is_ok()
    }

    fn no_target(&self, words: &str) -> Failure {
        failure::no_target(&target_of(words).unwrap_or_default(), self.tool.back_end)
    }

    /// Carries out one line, as part of an input of iptables-restore.
    fn change(&self, command: char) -> Result<(), Failure> {
        let Arguments { chain, argument, counters, .. } = self.arguments;
        // Behind a list the number is that of the rule listed, and all counters are zeroed, unless it is `-Z`'s own.
        let number = self.arguments.number.filter(|_| !self.arguments.zero || self.arguments.zeroes_rule);
        let name = || chain.clone().unwrap_or_default().into();
        let optional = || chain.clone().map(Into::into);
        let argument = argument.as_deref().unwrap_or_default();
        let action = match command {
            'A' => Some(Action::Append),
            'I' => Some(Action::Insert(Some(number.unwrap_or(1)))),
            'R' => Some(Action::Replace(number.unwrap_or(1))),
            'D' => Some(number.map_or(Action::Delete, Action::DeleteNumber)),
            _ => None,
        };
        let mut words = String::new();
        let entry = if let Some(action) = action {
            words = self.words()?;
            self.judge(&words)?;
            // No chain of such a name can be made.
            let missing = |_| match action {
                Action::Delete => Failure::other("Bad rule (does a matching rule exist in that chain?)."),
                _ => Failure::other("No chain/target/match by that name."),
            };
            let mut rule = Rule::new(action, self.asked.chain.to_owned(), words.clone()).map_err(missing)?;
            rule.set_counters(*counters);
            Entry::Rule(rule)
        } else {
            let verb = match command {
                'N' => Verb::New(name()),
                'X' => Verb::DeleteChain(optional()),
                'F' => Verb::Flush(optional()),
                'Z' => Verb::Zero(optional(), number),
                'E' => {
                    arguments::new_name(argument, self.tool.family)?;
                    Verb::Rename(name(), argument.to_owned().into())
                }
                _ => {
                    if self.table == "nat" && argument == "DROP" {
                        return Err(parameter(
                            "\nThe \"nat\" table is not intended for filtering, the use of DROP is therefore \
                             inhibited.\n\n",
                        ));
                    }
                    // The nft back end of the tool takes counters here, and leaves them as they are.
                    let counters = counters.filter(|_| self.tool.back_end == BackEnd::Legacy);
                    Verb::Policy(name(), argument.to_owned().into(), counters)
                }
            };
            // New names were checked before, and no chain has another such name.
            let missing = |_| Failure::other("No chain/target/match by that name.");
            Entry::Command(Command::new(verb).map_err(missing)?)
        };
        if command == 'F' {
            tell_removed(self.client, self.tool, self.table, chain.as_deref());
        }
        let chains = if self.arguments.verbose { self.chains(command)? } else { Vec::new() };
        let none = |error: sluicegate_iptables_save::Error| parameter(error.to_string());
        let mut table = Table::new(self.table.to_owned()).map_err(none)?;
        table.entries.push(entry);
        let input = Save { items: vec![Item::Table(table)] };
        let done = self.client.restore(&input, Restore::default().counters());
        if let Err(error) = done {
            let is_of_line = matches!(error, Error::Line { .. });
            if is_of_line && command == 'D' && self.asked.command == 'D' && !self.target_exists(&words) {
                return Err(self.no_target(&words));
            }
            if let (Error::Line { name, .. }, 'X') = (&error, command) {
                let busy = chains.iter().position(|chain| chain == name);
                let tried = chains.iter().take(busy.map_or(0, |at| at + 1));
                tried.into_iter().try_for_each(|chain| print(format!("Deleting chain `{chain}'\n")))?;
            }
            return Err(self.told(&error));
        }
        let verb = match command {
            'F' => "Flushing",
            'X' => "Deleting",
            'Z' => "Zeroing",
            'D' if number.is_some() => return Ok(()),
            'A' | 'I' | 'R' | 'D' => return self.say_rule(&words),
            _ => return Ok(()),
        };
        Ok(chains.iter().try_for_each(|chain| print(format!("{verb} chain `{chain}'\n")))?)
    }

    /// Returns the chains that a command is for, of all if it names none.
    fn chains(&self, command: char) -> Result<Vec<String>, Failure> {
        if let Some(chain) = &self.arguments.chain {
            return Ok(if self.arguments.number.is_some() { Vec::new() } else { vec![chain.clone()] });
        }
        if !matches!(command, 'F' | 'X' | 'Z') {
            return Ok(Vec::new());
        }
        let view = self.client.view(self.table).map_err(|error| self.told(&error))?;
        let chains = view.table.chains().filter(|chain| command != 'X' || chain.policy().is_none());
        Ok(chains.map(|chain| chain.name().to_owned()).collect())
    }

    /// Prints the rule that a verbose command was about.
    fn say_rule(&self, words: &str) -> Result<(), Failure> {
        if !self.arguments.verbose {
            return Ok(());
        }
        let listing = Listing::new(self.tool.family);
        let rules = sluicegate_iptables_save::normalise(words, self.tool.family);
        for words in rules.map_err(|error| parameter(error.to_string()))? {
            let rule = Rule::new(Action::Append, "X", words).map_err(|error| parameter(error.to_string()))?;
            let line = listing.single(&rule).map_err(|error| parameter(error.to_string()))?;
            print(encode(&line))?;
        }
        Ok(())
    }

    fn rules(&self) -> Result<(), Failure> {
        let view = self.view()?;
        let Arguments { chain, number, verbose, .. } = self.arguments;
        let wanted = |name: &str| chain.as_deref().is_none_or(|chain| chain == name);
        let mut text = String::new();
        if number.is_none() {
            for chain in view.table.chains().filter(|chain| wanted(chain.name())) {
                match chain.policy() {
                    Some(policy) => {
                        let Counters { packets, bytes } = chain.counters().unwrap_or_default();
                        let counters =
                            if *verbose { format!(" -c {packets} {bytes}") } else { String::new() };
                        text.push_str(&format!("-P {} {policy}{counters}\n", chain.name()));
                    }
                    None => text.push_str(&format!("-N {}\n", chain.name())),
                }
            }
        }
        let rules = view.table.rules().filter(|rule| wanted(rule.chain()));
        let at = |index: usize| number.is_none_or(|number| usize::try_from(number) == Ok(index));
        for (_, rule) in (1..).zip(rules).filter(|(index, _)| at(*index)) {
            if rule.is_foreign() {
                text.push_str(&format!("# {}: {}\n", rule.chain(), rule.text().trim_start_matches("# ")));
                continue;
            }
            let words = match rule.counters().filter(|_| *verbose) {
                None => Cow::Borrowed(rule.text()),
                Some(counters) => Cow::Owned(with_counters(rule.text(), counters)),
            };
            // What no packet matches, iptables-legacy 1.8.9 lists as all packets; the save has it whole.
            let words = match self.tool.back_end {
                BackEnd::Legacy => without_no_interface(rule, words),
                BackEnd::Nft => words,
            };
            text.extend(["-A ", rule.chain(), " ", words.trim_end()]);
            text.truncate(text.trim_end().len());
            text.push('\n');
        }
        print(encode(&text))?;
        self.is_whole(&view)
    }

    fn list(&self) -> Result<(), Failure> {
        let Arguments { chain, number, .. } = self.arguments;
        let view = self.view()?;
        let mut listing = Listing::new(self.tool.family);
        listing.references = view.references;
        listing.verbose = self.arguments.verbose;
        listing.exact = self.arguments.exact;
        listing.line_numbers = self.arguments.line_numbers;
        listing.names = (!self.arguments.numeric).then(hosts::names);
        let text = match (chain, number) {
            (None, _) => listing.table(&view.table),
            (Some(chain), None) => listing.chain(&view.table, chain).map(Option::unwrap_or_default),
            (Some(chain), Some(number)) => {
                let number = usize::try_from(*number).unwrap_or(usize::MAX);
                listing.rule(&view.table, chain, number)
            }
        };
        print(encode(&text.map_err(|error| Failure::other(error.to_string()))?))?;
        self.is_whole(&view)
    }

    /// Fails behind a list in which a comment stands for a rule of iptables itself, whose options cannot be
    /// shown. What nft wrote is known to have no words.
    fn is_whole(&self, view: &View) -> Result<(), Failure> {
        let first = view.foreign.iter().find(|foreign| matches!(foreign.reason, ForeignReason::Structure(_)));
        first.map_or(Ok(()), |foreign| Err(incompatible(self.table, foreign)))
    }

    /// Reads what is to be listed. A chain with something that has no words is not; of all chains, what has
    /// none is told.
    fn view(&self) -> Result<View, Failure> {
        self.tool.warn_of_legacy();
        let (table, chain) = (self.table, self.arguments.chain.as_deref());
        let view = match chain {
            Some(chain) => self.client.view_chain(table, chain).map_err(|error| self.told(&error))?,
            None => Some(self.client.view(table).map_err(|error| self.told(&error))?),
        };
        let exists = |view: &View| chain.is_none_or(|chain| view.table.chain(chain).is_some());
        let Some(view) = view.filter(exists) else {
            return Err(match self.tool.back_end {
                BackEnd::Nft => Failure::incompatible(chain.unwrap_or_default(), table),
                BackEnd::Legacy => Failure::other("No chain/target/match by that name."),
            });
        };
        if let Some(chain) = chain {
            let in_it =
                view.foreign.iter().find(|foreign| foreign.number.is_some() && foreign.chain == chain);
            return match in_it {
                Some(foreign) => Err(incompatible(table, foreign)),
                None => Ok(view),
            };
        }
        if view.foreign.iter().any(|foreign| foreign.reason == ForeignReason::BaseChain) {
            print(format!(
                "# Table `{table}' contains incompatible base-chains, use 'nft' tool to list them.\n"
            ))?;
        }
        for foreign in view.foreign.iter().filter(|foreign| foreign.reason != ForeignReason::BaseChain) {
            self.tool.tell(&format!("Warning: no words for {foreign}"));
        }
        Ok(view)
    }
}

fn without_no_interface<'w>(rule: &Rule<'_>, mut words: Cow<'w, str>) -> Cow<'w, str> {
    if !rule.text().contains(" + ") {
        return words;
    }
    let options = [("in-interface", "! -i + "), ("out-interface", "! -o + ")];
    for (name, text) in options.into_iter().filter(|(_, text)| rule.text().contains(text)) {
        let spec = rule.spec().ok();
        let option = spec.as_ref().and_then(|spec| spec.generic(name));
        if option.is_some_and(|option| option.negated && option.value() == Some("+")) {
            words = Cow::Owned(words.replacen(text, "", 1));
        }
    }
    words
}

fn target_of(words: &str) -> Option<String> {
    let spec = sluicegate_iptables_save::Spec::read(words).ok()?;
    spec.target.map(|target| target.module.name.into_owned())
}

/// Writes counters before the target, where `-S -v` has them.
fn with_counters(words: &str, Counters { packets, bytes }: Counters) -> String {
    let counters = format!("-c {packets} {bytes}");
    let mut at = None;
    for word in split(words).flatten().filter(|word| !word.quoted && matches!(&*word.text, "-j" | "-g")) {
        at = at.or(Some(word.offset));
    }
    match at.and_then(|at| words.split_at_checked(at)) {
        Some((before, target)) => format!("{before}{counters} {target}"),
        None => format!("{words} {counters}").trim_start().to_owned(),
    }
}

const TABLES: [&str; 5] = ["filter", "nat", "mangle", "raw", "security"];
const BUILT_IN: [&str; 5] = ["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"];
