//! Whole scripts: parsed and sent by netlink in one namespace, loaded by nft in another.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use sluicegate_nftables::SetId;
use sluicegate_nftables::lang::parse::Included;
use sluicegate_nftables::read::Ruleset;

use crate::beside;
use crate::language::format::{Script, scripts};
use crate::language::kernel::{self, bytecode, namespace};
use crate::language::known;
use crate::language::rules::{Other, parse};

#[test]
fn scripts_make_what_nft_makes_of_them() {
    if !testns::have(&["nft", "ip"]) {
        return;
    }
    let scripts = scripts();
    let here: Vec<_> = scripts.iter().filter(|script| script.needs.is_none_or(kernel::has)).collect();
    let places = || Some((namespace()?, namespace()?));
    let results = beside::each(&here, places, |(by_nft, by_us), script| {
        let (what, detail) = compare(script, by_nft, by_us).err()?;
        Some(Other { file: script.file, rule: script.name, what, detail })
    });
    let others: Vec<_> = results.into_iter().flatten().collect();
    println!("{} of {} scripts are otherwise", others.len(), scripts.len());
    known::check(known::SCRIPTS, &others);
    assert!(known::count(known::SCRIPTS) * 100 <= scripts.len(), "more than one in a hundred is otherwise");
}

fn compare(
    script: &Script<'_>,
    by_nft: &testns::Netns,
    by_us: &testns::Netns,
) -> Result<(), (&'static str, String)> {
    by_nft.run(|| load_by_nft(script));
    by_us.run(|| {
        kernel::nft("flush ruleset\n").expect("nothing refuses that");
        for step in &script.steps {
            load(script, step)?;
        }
        Ok(())
    })?;
    let read = |namespace: &testns::Netns| namespace.run(|| (kernel::listing(), kernel::ruleset()));
    let ((their_text, theirs), (our_text, ours)) = (read(by_nft), read(by_us));
    if kernel::without_numbers(&their_text) != kernel::without_numbers(&our_text) {
        return Err(("listed otherwise", difference(&their_text, &our_text)));
    }
    let (their_code, our_code) = (code(&theirs), code(&ours));
    if their_code != our_code {
        return Err(("other bytecode", difference(&their_code, &our_code)));
    }
    Ok(())
}

/// Loads the steps of a script by nft, into an empty ruleset.
pub(crate) fn load_by_nft(script: &Script<'_>) {
    let directory = Directory::new(script);
    let path = directory.0.display();
    kernel::nft("flush ruleset\n").expect("nothing refuses that");
    for step in &script.steps {
        let command = format!("cd {path} && TZ=UTC nft -I {path} -f -");
        let output = testns::feed(&["sh", "-c", &command], step);
        assert!(output.status.success(), "{}: {}", script.name, String::from_utf8_lossy(&output.stderr));
    }
}

/// Parses one step of a script and sends it.
fn load(script: &Script<'_>, step: &str) -> Result<(), (&'static str, String)> {
    let include = |path: &str| {
        let file = script.files.iter().find(|(name, _)| *name == path);
        let included =
            file.map(|(name, text)| vec![Included { name: (*name).to_owned(), text: text.clone() }]);
        included.ok_or_else(|| Box::<dyn std::error::Error>::from("no such file"))
    };
    let held = kernel::ruleset().content();
    let sets = |id: &SetId| kernel::find(&held, id);
    let mut options = kernel::machine().options();
    options.include = Some(&include);
    options.sets = Some(&sets);
    let transaction = parse(step, &options).map_err(|error| ("refused by the parser", error))?;
    // What is printed has neither variables nor files.
    let printed = transaction.to_string();
    let again = parse(&printed, &options).map_err(|error| ("not read as printed", error))?;
    if again.to_string() != printed {
        return Err(("not read as printed", difference(&printed, &again.to_string())));
    }
    kernel::apply(&transaction).map_err(|error| ("not sent", error))
}

/// All bytecode as text, in order.
pub(crate) fn code(all: &Ruleset) -> String {
    let mut chains: Vec<_> = bytecode(all)
        .into_iter()
        .map(|((family, table, chain), rules)| {
            format!("{family} {table} {}\n{}", kernel::without_numbers(&chain), rules.join("\n"))
        })
        .collect();
    // What nft notes beside the elements of sets: comments, and intervals without an end.
    let sets = all.sets.iter().filter(|(set, _)| !set.name.as_str().starts_with("__"));
    chains.extend(sets.flat_map(|(set, elements)| {
        let notes = elements.iter().filter(|element| !element.details().user_data.is_empty());
        notes.map(|element| {
            format!(
                "{} {} {}: {:?} {:?}",
                set.family,
                set.table,
                set.name,
                element.key,
                element.details().user_data
            )
        })
    }));
    chains.sort_unstable();
    chains.join("\n")
}

pub(crate) fn difference(theirs: &str, ours: &str) -> String {
    let (their, our): (Vec<_>, Vec<_>) = (theirs.lines().collect(), ours.lines().collect());
    let missing = their.iter().filter(|line| !our.contains(line)).map(|line| format!("< {line}"));
    let added = our.iter().filter(|line| !their.contains(line)).map(|line| format!("> {line}"));
    let lines: Vec<_> = missing.chain(added).take(20).collect();
    if lines.is_empty() {
        format!("the same lines in another order:\n{theirs}\nours:\n{ours}")
    } else {
        lines.join("\n")
    }
}

/// The files that a script includes, for nft to read.
struct Directory(PathBuf);

impl Directory {
    fn new(script: &Script<'_>) -> Self {
        let name: String = script.name.chars().map(|c| if c.is_alphanumeric() { c } else { '-' }).collect();
        // Several tests load the same script.
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("nft-language-{}-{number}-{name}", std::process::id()));
        fs::create_dir_all(&path).expect("a directory");
        for (name, text) in &script.files {
            fs::write(path.join(name), text).expect("a file");
        }
        Self(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
