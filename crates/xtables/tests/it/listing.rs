//! Tables as `-L` lists them, against the tools of both back ends and families, byte for byte.

use crate::tool::{Tool, each_in_its_chain};
use sluicegate_iptables_save::{Listing, Table};
use sluicegate_xtables::{BackEnd, legacy, nft};
use testns::{netns, sh};

impl Tool {
    fn list(self, table: &str) -> Table<'static> {
        let listed = match self.back_end {
            BackEnd::Nft => nft::Client::open(self.family).and_then(|client| client.list(table, true)),
            BackEnd::Legacy => legacy::Client::open(self.family).and_then(|client| client.list(table, true)),
        };
        listed.expect("a table")
    }
}

fn tools() -> impl Iterator<Item = Tool> {
    BackEnd::BOTH.into_iter().flat_map(Tool::of).filter(|tool| tool.here())
}

/// iptables-legacy shows `-i +` of a rule that it saves without it. iptables-nft does not list eui64, which has
/// no options; the legacy tool does. Of the types of ICMP, 255 with and without a code are saved as the same.
fn is_known(line: &str) -> bool {
    line.contains("--  +      *") || line.contains("eui64") || line.ends_with("type 255 code 255")
}

#[test]
fn the_corpus_is_listed_as_the_tool_lists_it() {
    for tool in tools() {
        netns(|| {
            tool.sets();
            let input = each_in_its_chain(&tool.corpus());
            tool.restore(&input, &["--noflush"]);
            let mut listing = Listing::new(tool.family);
            (listing.verbose, listing.line_numbers) = (true, true);
            let mut different = Vec::new();
            for table in input.lines().filter_map(|line| line.strip_prefix('*')) {
                let ours = listing.table(&tool.list(table)).unwrap();
                let theirs = sh(&format!("{} -t {table} -L -v -n --line-numbers", tool.name("")));
                assert_eq!(ours.lines().count(), theirs.lines().count());
                let pairs = ours.lines().zip(theirs.lines());
                let pairs = pairs
                    .filter(|(ours, theirs)| ours != theirs && !is_known(ours) && !is_known(theirs))
                    .map(|(ours, theirs)| format!("  {ours:?}\n  {theirs:?}\n"));
                different.extend(pairs);
            }
            let shown: String = different.iter().take(60).map(String::as_str).collect();
            assert!(different.is_empty(), "{}: {} lines differ:\n{shown}", tool.name(""), different.len());
        });
    }
}

#[test]
fn columns_counters_and_references_are_those_of_the_tool() {
    for tool in tools() {
        netns(|| {
            tool.restore(
                "*filter\n:INPUT DROP [100000:99999999]\n:X - [0:0]\n:Y - [0:0]\n\
                 -A INPUT -p tcp ! -i a+ -m tcp --dport 80 -j X\n-A INPUT ! -p 99 -j X\n\
                 [99999:100000] -A X -g Y\n[100001:9999500] -A X -j DROP\n[1:12345678901234567] -A X\n\
                 [9999499:9999500000] -A X -j ACCEPT\n-A Y -j LOG\nCOMMIT\n",
                &["--counters"],
            );
            let table = tool.list("filter");
            for words in
                ["", "-v", "-x", "-v -x", "--line-numbers", "-v --line-numbers", "-v -x --line-numbers"]
            {
                let mut listing = Listing::new(tool.family);
                listing.verbose = words.contains("-v");
                listing.exact = words.contains("-x");
                listing.line_numbers = words.contains("--line");
                let list = |what: &str| sh(&format!("{} -n -L {what} {words}", tool.name("")));
                assert_eq!(listing.table(&table).unwrap(), list(""), "{} {words}", tool.name(""));
                assert_eq!(listing.chain(&table, "X").unwrap(), Some(list("X")), "{} {words}", tool.name(""));
                assert_eq!(listing.rule(&table, "X", 2).unwrap(), list("X 2"), "{} {words}", tool.name(""));
                assert_eq!(listing.rule(&table, "X", 9).unwrap(), "");
            }
            assert_eq!(Listing::new(tool.family).chain(&table, "NONE").unwrap(), None);
        });
    }
}
