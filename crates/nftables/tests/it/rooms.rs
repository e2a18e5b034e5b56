//! The rooms of the crate, each a folder or a file of `src`, and the order in which they lie: a file uses what
//! is in its own room or below it. Inside a room, files that use each other are few.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The rooms from the lowest to the highest. ARCHITECTURE.md says what is in each.
const ROOMS: &[&str] = &[
    "sort",
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

/// The modules by their paths below `crate`, with their code.
struct Modules(BTreeMap<Vec<String>, String>);

impl Modules {
    fn read() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut files = Vec::new();
        sources(&root, &mut files);
        let modules = files.iter().map(|file| {
            let relative = file.strip_prefix(&root).expect("below src").with_extension("");
            let mut path: Vec<_> = relative.iter().map(|part| part.to_string_lossy().into_owned()).collect();
            path.pop_if(|last| last == "mod");
            (path, code(&std::fs::read_to_string(file).expect("a source file")))
        });
        Self(modules.collect())
    }

    fn code(&self, module: &[String]) -> &str {
        self.0.get(module).map_or("", String::as_str)
    }

    /// Returns the path from `crate` on; `None` for what other crates have.
    fn absolute(&self, module: &[String], path: &[String]) -> Option<Vec<String>> {
        let (first, rest) = path.split_first()?;
        let base = match first.as_str() {
            "crate" => &[],
            "self" => module,
            "super" => {
                let parent = module.split_last()?.1;
                return match rest.first() {
                    Some(again) if again == "super" => self.absolute(parent, rest),
                    _ => Some([parent, rest].concat()),
                };
            }
            _ if self.0.contains_key(&[module, std::slice::from_ref(first)].concat()) => {
                return Some([module, path].concat());
            }
            _ => return None,
        };
        Some([base, rest].concat())
    }

    /// Returns the module that has what a path names, through re-exports.
    fn owner(&self, module: &[String], path: &[String], depth: usize) -> Option<Vec<String>> {
        let path = self.absolute(module, path)?;
        let length = (0..=path.len()).rev().find(|length| self.0.contains_key(&path[..*length]))?;
        let (found, rest) = path.split_at(length);
        let Some(name) = rest.first().filter(|name| *name != "*" && *name != "self") else {
            return Some(found.to_vec());
        };
        let again = |used: &Vec<String>| used.last() == Some(name) && depth < 4;
        let uses = used_paths(self.code(found));
        let owner =
            uses.iter().filter(|used| again(used)).find_map(|used| self.owner(found, used, depth + 1));
        Some(owner.unwrap_or_else(|| found.to_vec()))
    }

    /// Returns the modules that a module uses, but for what it only shows to others.
    fn used(&self, module: &[String]) -> BTreeSet<Vec<String>> {
        let code = self.code(module);
        let mut paths: Vec<_> =
            statements(code).filter(|(is_public, _)| !is_public).flat_map(|(_, tree)| expand(tree)).collect();
        for start in ["crate::", "super::"] {
            let at = code.match_indices(start).map(|(at, _)| at);
            paths.extend(at.map(|at| split(&code[at..])));
        }
        let owners = paths.iter().filter_map(|path| self.owner(module, path, 0));
        owners.filter(|owner| owner != module && !owner.is_empty()).collect()
    }
}

/// The `use` statements, and whether each is a re-export.
fn statements(code: &str) -> impl Iterator<Item = (bool, &str)> {
    code.match_indices("use ").filter_map(|(at, _)| {
        let line = code[..at].rsplit('\n').next().unwrap_or_default().trim();
        let tree = code[at + 4..].split(';').next()?;
        (line.is_empty() || line.starts_with("pub")).then_some((!line.is_empty(), tree))
    })
}

fn used_paths(code: &str) -> Vec<Vec<String>> {
    statements(code).flat_map(|(_, tree)| expand(tree)).collect()
}

/// The paths of `a::{b, c::{d, e}}`.
fn expand(tree: &str) -> Vec<Vec<String>> {
    let Some((head, list)) = tree.split_once('{') else { return vec![split(tree.trim())] };
    let head = split(head.trim());
    let (mut depth, mut start, mut paths) = (0, 0, Vec::new());
    let mut take = |part: &str| {
        if !part.trim().is_empty() {
            paths.extend(expand(part).into_iter().map(|path| [head.clone(), path].concat()));
        }
    };
    for (at, character) in list.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth == 0 => {
                take(&list[start..at]);
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                take(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    paths
}

/// The names of a path, up to what cannot be in one.
fn split(path: &str) -> Vec<String> {
    let mut names = Vec::new();
    for part in path.split("::") {
        let name = if part == "*" { "*".to_owned() } else { word(part) };
        let is_whole = name.len() == part.len();
        names.extend(Some(name).filter(|name| !name.is_empty()));
        if !is_whole {
            break;
        }
    }
    names
}

/// All modules that can be reached from one.
fn reached<'a>(
    uses: &'a BTreeMap<&Vec<String>, BTreeSet<Vec<String>>>,
    from: &'a Vec<String>,
) -> BTreeSet<&'a Vec<String>> {
    let (mut found, mut todo) = (BTreeSet::new(), vec![from]);
    while let Some(next) = todo.pop() {
        todo.extend(uses.get(next).into_iter().flatten().filter(|used| found.insert(*used)));
    }
    found
}

#[test]
fn no_more_than_three_files_use_each_other_in_a_circle() {
    let modules = Modules::read();
    let is_judged = |module: &[String]| match module.first().map(String::as_str) {
        // The fake kernel changes one state from all of its files, as nf_tables_api.c does in one.
        None | Some("fake") => false,
        Some(first) => !FACES.contains(&first) && module.last().is_none_or(|last| last != "tests"),
    };
    let uses: BTreeMap<_, _> = modules
        .0
        .keys()
        .filter(|module| is_judged(module))
        .map(|module| (module, modules.used(module)))
        .collect();
    assert!(uses.values().map(BTreeSet::len).sum::<usize>() > 1000, "few uses were recognised");
    let reached: BTreeMap<_, _> = uses.keys().map(|module| (*module, reached(&uses, module))).collect();
    let circle = |(module, others): (&&Vec<String>, &BTreeSet<&Vec<String>>)| {
        let back =
            others.iter().filter(|other| reached.get(*other).is_some_and(|back| back.contains(module)));
        back.map(|module| module.join("/")).collect::<Vec<_>>()
    };
    let circles: BTreeSet<_> = reached.iter().map(circle).collect();
    let long: Vec<_> = circles.iter().filter(|circle| circle.len() > 3).collect();
    assert!(long.is_empty(), "{long:#?}");
    // That circles are found at all.
    let known = ["monitor/follower".to_owned(), "monitor/mirror".to_owned()];
    assert!(circles.contains(&known[..]), "{circles:#?}");
}

#[test]
fn uses_are_recognised() {
    let text = "use crate::read::{self, Set};\n// crate::fake\nuse crate::{Family, object::{Set, SetId}, read};\n\
        fn f() { crate::key::width() }\n#[cfg(test)]\nmod tests { use crate::fake; }\n";
    assert_eq!(first_names(&code(text)), ["read", "Family", "object", "read", "key"]);
    let names = |path: &str| path.split("::").map(str::to_owned).collect::<Vec<_>>();
    let tree = "use crate::a::{self, b::{C, d}, e::*};\npub use f::G as H;";
    let paths: Vec<_> =
        ["crate::a::self", "crate::a::b::C", "crate::a::b::d", "crate::a::e::*", "f::G"].map(names).into();
    assert_eq!(used_paths(tree), paths);
    let lib = exported("pub use key::{Key, Part};\npub use error::Error;\npub use object::*;\n");
    assert_eq!(lib.get("Part").map(String::as_str), Some("key"));
    assert_eq!(lib.get("Error").map(String::as_str), Some("error"));
}
