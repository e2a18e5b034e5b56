//! The rooms of the crate, each a folder or a file of `src`, and the order in which they lie: a file uses what
//! is in its own room or below it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The rooms from the lowest to the highest. ARCHITECTURE.md says what is in each.
const ROOMS: &[&str] = &[
    "name",
    "family",
    "time_zone",
    "datatype",
    "wording",
    "key",
    "wire",
    "expr",
    "tree",
    "object",
    "check",
    "compile",
    "transaction",
    "text",
    "error",
    "read",
    "listing",
    "apply",
    "reconcile",
    "monitor",
    "json",
    "probe",
    "fake",
];

/// What shows the rooms to callers, and may name all of them.
const FACES: &[&str] = &["lib", "lang", "guide"];

fn sources(folder: &Path, all: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("the crate's sources") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => sources(&path, all),
            false => all.push(path),
        }
    }
}

/// The code of a file without comments and without its unit tests, which may use everything.
fn code(text: &str) -> String {
    let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    code.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// The names behind each `crate::`: the first of a path, or of each path in braces.
fn first_names(code: &str) -> Vec<String> {
    let mut names = Vec::new();
    for rest in code.split("crate::").skip(1) {
        let Some(list) = rest.strip_prefix('{') else {
            names.push(word(rest));
            continue;
        };
        let mut depth = 0;
        let mut start = true;
        for (at, character) in list.char_indices() {
            match character {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => start = true,
                _ if start && !character.is_whitespace() => {
                    names.push(word(&list[at..]));
                    start = false;
                }
                _ => {}
            }
        }
    }
    names
}

fn word(text: &str) -> String {
    text.chars().take_while(|character| character.is_alphanumeric() || *character == '_').collect()
}

/// The room of each name that `lib.rs` re-exports: `pub use key::{EtherAddr, Key}`.
fn exported(lib: &str) -> BTreeMap<String, String> {
    let mut rooms = BTreeMap::new();
    for statement in lib.split("pub use ").skip(1) {
        let Some((path, _)) = statement.split_once(';') else { continue };
        let Some((room, names)) = path.split_once("::") else { continue };
        let names = names.split(|character: char| !character.is_alphanumeric() && character != '_');
        rooms.extend(names.filter(|name| !name.is_empty()).map(|name| (name.to_owned(), room.to_owned())));
    }
    rooms
}

#[test]
fn no_room_uses_a_higher_one() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let exported = exported(&code(&std::fs::read_to_string(root.join("lib.rs")).expect("lib.rs")));
    let rank = |room: &str| ROOMS.iter().position(|known| *known == room);
    let mut files = Vec::new();
    sources(&root, &mut files);
    let (mut count, mut wrong) = (0, Vec::new());
    for file in &files {
        let relative = file.strip_prefix(&root).expect("below src").to_string_lossy().into_owned();
        let room = relative.split('/').next().unwrap_or_default().trim_end_matches(".rs");
        // A file of unit tests alone.
        if FACES.contains(&room) || relative.ends_with("tests.rs") {
            continue;
        }
        let own = rank(room).unwrap_or_else(|| panic!("{relative} is in no room: add `{room}` to ROOMS"));
        for name in first_names(&code(&std::fs::read_to_string(file).expect("a source file"))) {
            let target = match (rank(&name), exported.get(&name)) {
                (Some(rank), _) => rank,
                (None, Some(room)) if room == "sluicegate_netlink" => continue,
                (None, Some(room)) => rank(room).unwrap_or_else(|| panic!("{name} comes from {room}")),
                // All names of `object` are exported with `*`.
                (None, None) if name.starts_with(char::is_uppercase) => rank("object").unwrap_or_default(),
                (None, None) => panic!("{relative} uses `crate::{name}`, which is in no room"),
            };
            count += 1;
            if target > own {
                wrong.push(format!("{relative} uses {name}, which lies above {room}"));
            }
        }
    }
    assert!(count > 500, "only {count} uses were recognised");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn uses_are_recognised() {
    let text = "use crate::read::{self, Set};\n// crate::fake\nuse crate::{Family, object::{Set, SetId}, read};\n\
        fn f() { crate::key::width() }\n#[cfg(test)]\nmod tests { use crate::fake; }\n";
    assert_eq!(first_names(&code(text)), ["read", "Family", "object", "read", "key"]);
    let lib = exported("pub use key::{Key, Part};\npub use error::Error;\npub use object::*;\n");
    assert_eq!(lib.get("Part").map(String::as_str), Some("key"));
    assert_eq!(lib.get("Error").map(String::as_str), Some("error"));
}
