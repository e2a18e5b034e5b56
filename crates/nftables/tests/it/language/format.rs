//! The files of the corpus: contexts with rules, scripts, wrong inputs.

/// A table with a chain, and the rules that are tried in that chain.
pub(crate) struct Context<'a> {
    /// The file that it is in.
    pub(crate) file: &'static str,
    pub(crate) family: &'a str,
    /// What the table is called: `t0`, `t1` and so on in the order of the file.
    pub(crate) table: String,
    /// `type filter hook input priority 0;`, or nothing for a regular chain.
    chain: &'a str,
    /// The other things in the table.
    with: Vec<&'a str>,
    /// What a kernel has to have.
    pub(crate) needs: Option<&'a str>,
    pub(crate) rules: Vec<&'a str>,
}

impl<'a> Context<'a> {
    /// All contexts of a file of rules.
    pub(crate) fn all(file: &'static str, text: &'a str) -> Vec<Self> {
        let mut contexts: Vec<Self> = Vec::new();
        for line in text.lines() {
            if let Some(family) = line.strip_prefix("#! table ") {
                let table = format!("t{}", contexts.len());
                let (chain, with, needs, rules) = ("", Vec::new(), None, Vec::new());
                contexts.push(Self { file, family, table, chain, with, needs, rules });
                continue;
            }
            let Some(context) = contexts.last_mut() else { continue };
            if let Some(what) = line.strip_prefix("#! needs ") {
                context.needs = Some(what);
            } else if line.starts_with("#! chain type ") {
                context.chain = line.trim_start_matches("#! chain ");
            } else if let Some(other) = line.strip_prefix("#! ") {
                context.with.push(other);
            } else if !line.starts_with('#') && !line.is_empty() {
                context.rules.push(line);
            }
        }
        contexts
    }

    /// The table as a block, with some of the rules.
    pub(crate) fn script<'r>(&self, rules: impl IntoIterator<Item = &'r str>) -> String {
        let mut text = format!("table {} {} {{\n", self.family, self.table);
        self.with.iter().for_each(|line| text += &format!("\t{line}\n"));
        text += &format!("\tchain c {{\n\t\t{}\n", self.chain);
        rules.into_iter().for_each(|rule| text += &format!("\t\t{rule}\n"));
        text + "\t}\n}\n"
    }

    /// A command that adds one rule.
    pub(crate) fn command(&self, rule: &str) -> String {
        format!("add rule {} {} c {rule}\n", self.family, self.table)
    }
}

/// A script, in one or more steps, with the texts that it includes.
pub(crate) struct Script<'a> {
    pub(crate) file: &'static str,
    pub(crate) name: &'a str,
    pub(crate) needs: Option<&'a str>,
    pub(crate) steps: Vec<String>,
    pub(crate) files: Vec<(&'a str, String)>,
}

impl<'a> Script<'a> {
    pub(crate) fn all(file: &'static str, text: &'a str) -> Vec<Self> {
        let mut scripts: Vec<Self> = Vec::new();
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("#! script ") {
                let (steps, files) = (vec![String::new()], Vec::new());
                scripts.push(Self { file, name, needs: None, steps, files });
                continue;
            }
            let Some(script) = scripts.last_mut() else { continue };
            if let Some(name) = line.strip_prefix("#! file ") {
                script.files.push((name, String::new()));
            } else if let Some(what) = line.strip_prefix("#! needs ") {
                script.needs = Some(what);
            } else if line == "#! then" {
                script.steps.push(String::new());
            } else {
                let file = script.files.last_mut().map(|(_, text)| text);
                let text = file.or_else(|| script.steps.last_mut()).expect("a script has a step");
                *text += &format!("{line}\n");
            }
        }
        scripts
    }
}

/// An input that is refused, and how nft 1.0.6 refuses it.
#[derive(Debug)]
pub(crate) struct Wrong<'a> {
    pub(crate) file: &'static str,
    pub(crate) verdict: &'a str,
    pub(crate) text: String,
}

impl<'a> Wrong<'a> {
    pub(crate) fn all(file: &'static str, text: &'a str) -> Vec<Self> {
        let mut inputs: Vec<Self> = Vec::new();
        for line in text.lines() {
            if let Some(verdict) = line.strip_prefix("@ ") {
                inputs.push(Self { file, verdict, text: String::new() });
            } else if let Some(input) = inputs.last_mut() {
                if !input.text.is_empty() {
                    input.text.push('\n');
                }
                input.text += line;
            }
        }
        inputs
    }
}

macro_rules! files {
    ($directory:literal: $($name:literal)*) => {
        [$(($name, include_str!(concat!($directory, "/", $name, ".nft")))),*]
    };
}

pub(crate) const RULES: &[(&str, &str)] = &files!("rules":
    "bridge" "concatenations" "conntrack" "expressions" "fields-link" "fields-meta" "fields-network"
        "fields-transport" "firewalls" "matches" "mixed" "nat" "programs-hosts"
        "programs-kubernetes" "queue" "sets" "statements" "time" "verdicts");

pub(crate) const SCRIPTS: &[(&str, &str)] =
    &files!("scripts": "commands" "definitions" "programs" "systematic");

pub(crate) const WRONG: &[(&str, &str)] =
    &files!("wrong": "keywords" "matches" "mutations" "objects" "statements" "text" "types");

pub(crate) fn contexts() -> Vec<Context<'static>> {
    RULES.iter().flat_map(|(file, text)| Context::all(file, text)).collect()
}

pub(crate) fn scripts() -> Vec<Script<'static>> {
    SCRIPTS.iter().flat_map(|(file, text)| Script::all(file, text)).collect()
}

pub(crate) fn wrong() -> Vec<Wrong<'static>> {
    WRONG.iter().flat_map(|(file, text)| Wrong::all(file, text)).collect()
}

#[test]
fn the_corpus_is_as_large_as_it_has_to_be() {
    let rules: std::collections::BTreeSet<_> = contexts()
        .iter()
        .flat_map(|context| context.rules.iter().map(|rule| (context.family.to_owned(), (*rule).to_owned())))
        .collect();
    assert!(rules.len() >= 2500, "{} rules", rules.len());
    assert!(scripts().len() >= 150, "{} scripts", scripts().len());
    assert!(wrong().len() >= 500, "{} wrong inputs", wrong().len());
}
