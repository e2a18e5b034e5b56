//! Parity with the real tools, both back ends and both families, over the rules in `testdata`, in namespaces.

use std::collections::BTreeMap;

use sluicegate_iptables_save::{Family, Place, Rule, Save, check, normalise};
use testns::{feed, have, netns, sh};

/// A rule of the corpus.
struct Case {
    table: String,
    chain: String,
    words: String,
}

#[derive(Clone, Copy)]
struct Tool {
    family: Family,
    back_end: &'static str,
}

const TOOLS: [Tool; 4] = [
    Tool { family: Family::Ipv4, back_end: "legacy" },
    Tool { family: Family::Ipv4, back_end: "nft" },
    Tool { family: Family::Ipv6, back_end: "legacy" },
    Tool { family: Family::Ipv6, back_end: "nft" },
];

impl Tool {
    fn name(self, what: &str) -> String {
        let family = if self.family == Family::Ipv4 { "iptables" } else { "ip6tables" };
        format!("{family}-{}{what}", self.back_end)
    }

    fn corpus(self) -> Vec<Case> {
        let text = match self.family {
            Family::Ipv4 => include_str!("../../testdata/rules.v4"),
            Family::Ipv6 => include_str!("../../testdata/rules.v6"),
        };
        let text = testns::own_timers(text);
        text.lines().filter(|line| !line.starts_with('#')).map(Case::read).collect()
    }

    /// Runs `test` in a namespace that has the sets and the rate estimator which the corpus refers to.
    fn with(self, test: impl FnOnce(Self) + Send) {
        if !have(&[&self.name("-restore"), &self.name("-save"), "ipset"]) {
            return;
        }
        netns(|| {
            let family = if self.family == Family::Ipv4 { "inet" } else { "inet6" };
            let _ = sh(&format!(
                "ipset create s1 hash:ip family {family} counters timeout 100; ipset create s2 hash:ip \
                 family {family}; \
                 ipset create s3 hash:ip family {family} skbinfo"
            ));
            self.restore(
                "*mangle\n:RE - [0:0]\n-A RE -j RATEEST --rateest-name RE1 --rateest-interval \
                          250ms --rateest-ewmalog 500ms\nCOMMIT\n",
            );
            test(self);
        });
    }

    fn restore(self, input: &str) {
        let output = feed(&[&self.name("-restore"), "--noflush"], input);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {error}\n{}", self.name("-restore"), line_of(input, &error));
    }

    /// Returns what is saved, without comments, which have the date.
    fn save(self) -> String {
        sh(&self.name("-save"))
    }
}

impl Case {
    fn read(line: &str) -> Self {
        let (place, words) = line.split_once(':').expect("TABLE CHAIN: WORDS");
        let (table, chain) = place.split_once(' ').expect("TABLE CHAIN");
        let owned = |text: &str| text.trim_start_matches(' ').to_owned();
        Self { table: owned(table), chain: owned(chain), words: owned(words) }
    }
}

/// Returns the line of the input that an error message names.
fn line_of<'a>(input: &'a str, error: &str) -> &'a str {
    let number = error.split("line").nth(1).map(|rest| rest.trim_start_matches([':', ' ']));
    let number =
        number.and_then(|rest| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse::<usize>().ok());
    number.and_then(|number| input.lines().nth(number.checked_sub(1)?)).unwrap_or_default()
}

/// Returns an input with every rule in a chain of its own, named after the number of the rule, so that what
/// is saved of it can be found.
fn each_in_its_chain(cases: &[Case]) -> String {
    let mut tables: BTreeMap<&str, (String, String)> = BTreeMap::new();
    for (number, case) in cases.iter().enumerate() {
        let (chains, rules) = tables
            .entry(case.table.as_str())
            .or_insert_with(|| (":T - [0:0]\n:U - [0:0]\n".to_owned(), String::new()));
        chains.push_str(&format!(":R{number:04} - [0:0]\n"));
        rules.push_str(&format!("-A R{number:04} {}\n", case.words));
    }
    tables.iter().map(|(table, (chains, rules))| format!("*{table}\n{chains}{rules}COMMIT\n")).collect()
}

fn without_comments(save: &str) -> String {
    save.lines().filter(|line| !line.starts_with('#')).map(|line| format!("{line}\n")).collect()
}

#[test]
fn the_corpus_is_large_and_every_rule_of_it_passes_the_check() {
    for family in [Family::Ipv4, Family::Ipv6] {
        let cases = Tool { family, back_end: "" }.corpus();
        assert!(cases.len() >= 1000, "{}", cases.len());
        for case in cases {
            let place = Place { table: &case.table, chain: &case.chain, family };
            if let Err(error) = check(&case.words, place) {
                panic!("{} {}: {}: {error}", case.table, case.chain, case.words);
            }
        }
    }
}

#[test]
fn a_save_renders_identically_and_restores_to_the_same_save() {
    for tool in TOOLS {
        tool.with(|tool| {
            tool.restore(&each_in_its_chain(&tool.corpus()));
            let saved = tool.save();
            let rendered = Save::parse(&saved).expect("what the tool saves can be read").to_string();
            assert_eq!(rendered, saved);
            assert!(saved.lines().filter(|line| line.starts_with("-A R")).count() >= 1000);
            tool.restore(&without_own_flush(&rendered));
            assert_eq!(without_comments(&tool.save()), without_comments(&saved), "{}", tool.name(""));
        });
    }
}

#[test]
fn the_typed_view_rendered_again_saves_the_same() {
    for tool in TOOLS {
        tool.with(|tool| {
            tool.restore(&each_in_its_chain(&tool.corpus()));
            let saved = tool.save();
            let mut save = Save::parse(&saved).expect("what the tool saves can be read");
            for table in save.tables_mut() {
                for rule in table.rules_mut() {
                    let spec = rule.spec().unwrap_or_else(|error| panic!("{}: {error}", rule.text()));
                    let words = spec.to_words().expect("words of the tool can be quoted");
                    rule.set_text(words).expect("words are of one line");
                }
            }
            tool.restore(&without_own_flush(&save.to_string()));
            assert_eq!(without_comments(&tool.save()), without_comments(&saved), "{}", tool.name(""));
        });
    }
}

#[test]
fn normal_forms_are_equal_exactly_when_saves_are() {
    for tool in TOOLS {
        tool.with(|tool| {
            let cases = tool.corpus();
            tool.restore(&each_in_its_chain(&cases));
            let text = tool.save();
            let save = Save::parse(&text).expect("what the tool saves can be read");
            let mut saved: BTreeMap<usize, Vec<&Rule<'_>>> = BTreeMap::new();
            for rule in save.tables().flat_map(sluicegate_iptables_save::Table::rules) {
                if let Some(number) = rule.chain().strip_prefix('R').and_then(|number| number.parse().ok()) {
                    saved.entry(number).or_default().push(rule);
                }
            }
            let mut saves_of: BTreeMap<Vec<String>, (String, usize)> = BTreeMap::new();
            let mut wrong = Vec::new();
            for (number, case) in cases.iter().enumerate() {
                let mut normal = normalise(&case.words, tool.family).expect("the corpus can be read");
                // It has no effect, and the nft back end forgets it.
                if tool.back_end == "nft" && case.words.contains("--nflog-range") {
                    normal = vec!["-j NFLOG".to_owned()];
                }
                let rules = saved.get(&number).map(Vec::as_slice).unwrap_or_default();
                let texts: Vec<_> = rules.iter().map(|rule| rule.text()).collect();
                let again: Vec<_> = texts
                    .iter()
                    .flat_map(|text| normalise(text, tool.family).expect("a saved rule can be read"))
                    .collect();
                if normal != again {
                    wrong.push(format!(
                        "{}\n  saved  {texts:?}\n  normal {normal:?}\n  again  {again:?}",
                        case.words
                    ));
                }
                let text = texts.join("\n");
                let (first, other) = saves_of.entry(normal).or_insert_with(|| (text.clone(), number));
                if *first != text {
                    wrong.push(format!(
                        "{} and {}: one normal form, two saves:\n  {first}\n  {text}",
                        cases[*other].words, case.words
                    ));
                }
            }
            assert!(
                wrong.is_empty(),
                "{} of {} ({}):\n{}",
                wrong.len(),
                cases.len(),
                tool.name(""),
                wrong.join("\n")
            );
        });
    }
}

/// Returns a save without the chain of the rate estimator, which has to stay: a save flushes the chains that
/// it names even when it is restored with `--noflush`.
fn without_own_flush(save: &str) -> String {
    save.lines()
        .filter(|line| !line.starts_with(":RE ") && !line.starts_with("-A RE "))
        .map(|line| format!("{line}\n"))
        .collect()
}
