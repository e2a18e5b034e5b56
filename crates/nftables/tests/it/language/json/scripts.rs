//! The scripts of the corpus in JSON.

use serde_json::{Value, json};
use sluicegate_nftables::{Operation, TableContent, Transaction};

use crate::beside;
use crate::language::format::{Script, scripts};
use crate::language::json::{Listed, known, listing, nft};
use crate::language::kernel::{self, namespace};
use crate::language::rules::Other;
use crate::language::scripts::{code, difference, load_by_nft};

#[test]
fn what_scripts_make_is_the_same_in_json() {
    if !testns::have(&["nft", "ip"]) {
        return;
    }
    let scripts = scripts();
    let here: Vec<_> = scripts.iter().filter(|script| script.needs.is_none_or(kernel::has)).collect();
    let places = || Some((namespace()?, namespace()?));
    let results = beside::each(&here, places, |(first, second), script| {
        let other = |(what, detail)| Other { file: script.file, rule: script.name, what, detail };
        compare(script, first, second).into_iter().map(other).collect::<Vec<_>>()
    });
    let others: Vec<_> = results.into_iter().flatten().collect();
    println!("{} of {} scripts are otherwise", others.len(), scripts.len());
    crate::language::known::check(known::SCRIPTS, &others);
}

/// What a namespace has.
struct Loaded {
    text: String,
    code: String,
}

impl Loaded {
    fn read() -> Self {
        Self { text: in_order(&kernel::without_numbers(&kernel::listing())), code: code(&kernel::ruleset()) }
    }

    fn difference(&self, there: &Self) -> Option<String> {
        if self.text != there.text {
            return Some(difference(&self.text, &there.text));
        }
        (self.code != there.code).then(|| difference(&self.code, &there.code))
    }
}

/// A listing with its blocks in the order of their names: a transaction adds chains in the order in which
/// they lead to each other.
fn in_order(listing: &str) -> String {
    let (mut table, mut block, mut blocks) = ("", String::new(), Vec::new());
    for line in listing.lines().filter(|line| !line.is_empty()) {
        if line.starts_with("table ") {
            table = line;
        }
        block += &format!("{line}\n");
        let opens = line.starts_with('\t') && line.ends_with('{');
        let within = line.starts_with("\t\t");
        if !opens && !within {
            blocks.push(format!("{table} {block}"));
            block.clear();
        }
    }
    blocks.sort_unstable();
    blocks.concat()
}

fn compare(
    script: &Script<'_>,
    first: &testns::Netns,
    second: &testns::Netns,
) -> Vec<(&'static str, String)> {
    let mut others = Vec::new();
    let (listed, ours, content, loaded) = first.run(|| {
        load_by_nft(script);
        let content = kernel::ruleset().content();
        let ours = Listed::by_us(&content, &kernel::machine());
        (Listed::by_nft(&listing()), ours, content, Loaded::read())
    });
    // The time that elements have left differs from one program to the next.
    let text = |of: &Listed| without_expires(&of.text);
    let pairs = listed.iter().zip(&ours).filter(|(theirs, ours)| text(theirs) != text(ours));
    let differing: Vec<_> =
        pairs.map(|(theirs, ours)| format!("nft:  {}\nours: {}", theirs.text, ours.text)).collect();
    if !differing.is_empty() || listed.len() != ours.len() {
        others.push(("listed otherwise", differing.join("\n")));
    }

    let document = json!({"nftables": completed(&listed, &content)}).to_string();
    let read = second.run(|| {
        kernel::nft("flush ruleset\n").expect("nothing refuses that");
        let options = kernel::machine().options();
        let transaction = Transaction::from_json_with(&document, &options)
            .map_err(|error| ("refused by our reader", error.to_string()))?;
        kernel::apply(&transaction).map_err(|error| ("not sent", format!("{error}\n{transaction}")))?;
        loaded.difference(&Loaded::read()).map_or(Ok(()), |detail| Err(("read otherwise", detail)))
    });
    others.extend(read.err().map(|(what, detail)| (what, format!("{detail}\n{document}"))));

    let commands: Vec<Value> = content
        .iter()
        .flat_map(|table| table.to_transaction().operations().to_vec())
        .map(|operation| operation.to_json().into())
        .collect();
    let written = second.run(|| {
        kernel::nft("flush ruleset\n").expect("nothing refuses that");
        nft(&commands).map_err(|error| ("refused by nft", error))?;
        loaded.difference(&Loaded::read()).map_or(Ok(()), |detail| Err(("read otherwise by nft", detail)))
    });
    others.extend(written.err().map(|(what, detail)| (what, format!("{detail}\n{}", json!(commands)))));
    others
}

pub(super) fn without_expires(text: &str) -> String {
    let mut parts = text.split("\"expires\": ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.trim_start_matches(|c: char| c.is_ascii_digit()))
}

/// The objects of a listing, with the members of our own commands that nft 1.0.6 leaves out of its listing:
/// comments, devices, flags, and of what expressions a type is.
fn completed(listed: &[Listed], content: &[TableContent]) -> Vec<Value> {
    let operations: Vec<Operation> =
        content.iter().flat_map(|table| table.to_transaction().operations().to_vec()).collect();
    let ours: Vec<Value> = operations
        .iter()
        .map(|operation| Value::from(operation.to_json())["add"].clone())
        .filter(|of| of["rule"].is_null() && of["element"].is_null())
        .collect();
    let place = |value: &Value| Listed { text: String::new(), value: value.clone() }.place();
    let complete = |listed: &Listed| {
        let mut value = listed.value.clone();
        let (kind, _) = listed.object();
        let Some(ours) = ours.iter().find(|of| place(of) == listed.place()) else { return value };
        for (name, ours) in ours[kind].as_object().into_iter().flatten() {
            let is_lossy = matches!(name.as_str(), "type" | "map" | "flags" | "gc-interval" | "timeout");
            if is_lossy || value[kind].get(name).is_none() {
                value[kind][name] = ours.clone();
            }
        }
        value
    };
    listed.iter().map(complete).collect()
}
