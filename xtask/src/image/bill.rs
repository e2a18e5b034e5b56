//! What is in a program besides our own code: a bill of materials (`CycloneDX` 1.4, as JSON), and the text of
//! every licence, as the images carry them.
//!
//! Cargo itself says which crates are linked (`cargo tree`), and their folders have their licences.
//! cargo-cyclonedx, cargo-about and cargo-auditable do parts of this, and each would be compiled from some
//! hundred crates before an image could be built. The check `image` compares the bill with what the compiler
//! was given, and with `CycloneDX`'s schema.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::children;
use crate::session::{Session, packages, shown};

/// The crates of a program, and what else is linked into it.
pub(super) struct Bill {
    program: Component,
    /// The crates, of ours and of others.
    crates: Vec<Component>,
    /// What the compiler and the linker add.
    others: Vec<Component>,
    /// Which crate asks for which.
    edges: BTreeSet<(Named, Named)>,
}

/// A crate's name and version.
type Named = (String, String);
/// Which crates a program has, and which asks for which.
type Linked = (BTreeSet<Named>, BTreeSet<(Named, Named)>);

/// One part of a program.
struct Component {
    name: String,
    version: String,
    /// As SPDX writes it.
    license: String,
    /// The package URL; none for our own crates, which are of the same source as the program.
    purl: Option<String>,
    /// The SHA-256 of the package, by the lock file.
    checksum: Option<String>,
    /// The names of the files with its licence, and their texts.
    texts: Vec<(String, String)>,
}

impl Bill {
    /// Reads what is linked into a program that is built with these arguments of cargo.
    pub(super) fn of(session: &Session, package: &str, arguments: &[&str]) -> Result<Self, String> {
        let metadata = metadata(session)?;
        let checksums = checksums(&read(&session.root.join("Cargo.lock"))?);
        let mut tree = session.cargo();
        tree.args(["tree", "--locked", "--package", package]).args(arguments);
        tree.args(["--target", &super::target(), "--edges", "normal,no-proc-macro"]);
        tree.args(["--prefix", "depth", "--format", " {p}"]);
        let (linked, edges) = linked(&output(&mut tree)?)?;
        let mut crates = Vec::new();
        for (name, version) in linked {
            let found = packages(&metadata)
                .find(|of| of["name"] == name.as_str() && of["version"] == version.as_str());
            let found = found.ok_or_else(|| format!("cargo metadata has no {name} {version}"))?;
            let checksum = checksums.get(&(name, version)).cloned();
            crates.push(Component::of_crate(session, found, checksum)?);
        }
        let place = crates.iter().position(|part| part.name == package);
        let program = crates.remove(place.ok_or_else(|| format!("cargo tree: no {package}"))?);
        Ok(Self { program, crates, others: vec![rust(session)?, c_library()?, unwinder()?], edges })
    }

    /// Returns the names and versions of the crates, but for the program's own.
    pub(super) fn crates(&self) -> BTreeSet<Named> {
        self.crates.iter().map(|part| (part.name.clone(), part.version.clone())).collect()
    }

    /// Returns the bill as `CycloneDX` has it. It has no time and no number of its own, so the same program
    /// has the same bill.
    pub(super) fn cyclonedx(&self) -> Value {
        let parts = || self.crates.iter().chain(&self.others);
        let named = |part: &Component| (part.name.clone(), part.version.clone());
        let references: BTreeMap<Named, String> =
            parts().chain([&self.program]).map(|part| (named(part), part.reference())).collect();
        let dependencies = references.iter().map(|(part, reference)| {
            let edges = self.edges.iter().filter(|(from, _)| from == part);
            let to: Vec<_> = edges.filter_map(|(_, to)| references.get(to)).collect();
            json!({"ref": reference, "dependsOn": to})
        });
        json!({
            "bomFormat": "CycloneDX",
            "specVersion": "1.4",
            "version": 1,
            "metadata": {"component": self.program.cyclonedx("application")},
            "components": parts().map(|part| part.cyclonedx("library")).collect::<Vec<_>>(),
            "dependencies": dependencies.collect::<Vec<_>>(),
        })
    }

    /// Returns the licences of all that is not ours: each text once, below the names of those that have it.
    pub(super) fn licences(&self) -> Result<String, String> {
        let mut texts: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        let mut all = format!(
            "What is linked into {} {} and is not of its source, with the licence of each.\n\n",
            self.program.name, self.program.version
        );
        for part in self.crates.iter().chain(&self.others).filter(|part| part.purl.is_some()) {
            all += &format!("{} {}: {}\n", part.name, part.version, part.license);
            if part.texts.is_empty() {
                return Err(format!("{} {}: no text of its licence was found", part.name, part.version));
            }
            for (file, text) in &part.texts {
                texts.entry(text).or_default().push(format!("{} {}, {file}", part.name, part.version));
            }
        }
        for (text, whose) in texts {
            all += &format!("\n{}\n{}\n\n{}\n", "=".repeat(72), whose.join("\n"), text.trim_end());
        }
        Ok(all)
    }

    /// Returns what is missing: a licence of a part, and a part that an edge leads to.
    pub(super) fn incomplete(&self) -> Result<Vec<String>, String> {
        let (licences, whole) = (self.licences()?, self.cyclonedx());
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let parts = list(&whole["components"]);
        let known: BTreeSet<_> = parts.iter().map(|part| text(&part["bom-ref"])).collect();
        let mut lacking = Vec::new();
        for part in parts.iter().filter(|part| part["purl"].is_string()) {
            let named = format!("{} {}", text(&part["name"]), text(&part["version"]));
            if !licences.contains(&format!("\n{named}, ")) {
                lacking.push(format!("{}: no licence of {named}", self.program.name));
            }
        }
        for edges in list(&whole["dependencies"]) {
            let unknown = list(&edges["dependsOn"]).iter().map(text).find(|to| !known.contains(to));
            let told = unknown
                .map(|to| format!("{}: {} needs {to}, which is no part", self.program.name, edges["ref"]));
            lacking.extend(told);
        }
        if parts.len() < FEWEST {
            lacking.push(format!(
                "{}: expected {FEWEST} parts and more, found {}",
                self.program.name,
                parts.len()
            ));
        }
        Ok(lacking)
    }
}

impl Component {
    fn of_crate(session: &Session, package: &Value, checksum: Option<String>) -> Result<Self, String> {
        let text = |key: &str| package[key].as_str().unwrap_or_default().to_owned();
        let (name, version) = (text("name"), text("version"));
        // Cargo took a slash for "or" before it took SPDX.
        let license = text("license").replace('/', " OR ");
        if license.is_empty() {
            return Err(format!("{name} {version} names no licence"));
        }
        let is_ours = package["source"].is_null();
        let folder = PathBuf::from(text("manifest_path"));
        let mut texts = licence_files(folder.parent().unwrap_or(&folder))?;
        // Some packages leave out the file; this licence has one text, which is ours too.
        if texts.is_empty() && license.split(" OR ").any(|one| one == "Apache-2.0") {
            texts.push(("Apache-2.0".to_owned(), read(&session.root.join("LICENSE-APACHE"))?));
        }
        let purl = (!is_ours).then(|| format!("pkg:cargo/{name}@{version}"));
        Ok(Self { name, version, license, purl, checksum, texts })
    }

    /// Returns how the bill refers to it.
    fn reference(&self) -> String {
        self.purl.clone().unwrap_or_else(|| format!("{}@{}", self.name, self.version))
    }

    fn cyclonedx(&self, kind: &str) -> Value {
        let mut value = json!({
            "type": kind,
            "bom-ref": self.reference(),
            "name": self.name,
            "version": self.version,
            "licenses": [{"expression": self.license}],
        });
        if let Some(purl) = &self.purl {
            value["purl"] = purl.as_str().into();
        }
        if let Some(checksum) = &self.checksum {
            value["hashes"] = json!([{"alg": "SHA-256", "content": checksum}]);
        }
        value
    }
}

/// Rust's standard library, whose own dependencies the toolchain's document names.
fn rust(session: &Session) -> Result<Component, String> {
    let ask = |argument: [&str; 2]| output(Command::new("rustc").current_dir(&session.root).args(argument));
    let said = ask(["--version", "--verbose"])?;
    let version = said.lines().find_map(|line| line.strip_prefix("release: "));
    let version = version.ok_or_else(|| format!("rustc said {said:?}, expected its release"))?;
    let sysroot = ask(["--print", "sysroot"])?;
    let file = Path::new(sysroot.trim()).join("share/doc/rust/COPYRIGHT-library.html");
    Ok(Component {
        name: "rust-std".to_owned(),
        version: version.to_owned(),
        license: "MIT OR Apache-2.0".to_owned(),
        purl: Some(format!("pkg:github/rust-lang/rust@{version}")),
        checksum: None,
        texts: vec![("COPYRIGHT-library.html".to_owned(), read(&file)?)],
    })
}

/// The C library, which is linked statically: its licence asks that its text comes along, and that whoever
/// has the program can link it anew, which they can from our source.
fn c_library() -> Result<Component, String> {
    let said = output(Command::new("getconf").arg("GNU_LIBC_VERSION"))?;
    let version = said.split_whitespace().last().ok_or_else(|| format!("getconf said {said:?}"))?;
    let texts = first_of(&[
        &["/usr/share/doc/libc6/copyright", "/usr/share/common-licenses/LGPL-2.1"],
        &["/usr/share/licenses/glibc/LICENSES", "/usr/share/licenses/glibc/COPYING.LIB"],
    ])?;
    Ok(Component {
        name: "glibc".to_owned(),
        version: version.to_owned(),
        license: "LGPL-2.1-or-later".to_owned(),
        purl: Some(format!("pkg:generic/glibc@{version}")),
        checksum: None,
        texts,
    })
}

/// What unwinds the stack, of gcc.
fn unwinder() -> Result<Component, String> {
    let version = output(Command::new("gcc").arg("-dumpfullversion"))?.trim().to_owned();
    let texts = first_of(&[
        &["/usr/share/doc/libgcc-s1/copyright", "/usr/share/common-licenses/GPL-3"],
        &["/usr/share/licenses/libgcc/COPYING.RUNTIME", "/usr/share/licenses/libgcc/COPYING3"],
    ])?;
    Ok(Component {
        name: "libgcc".to_owned(),
        version: version.clone(),
        license: "GPL-3.0-or-later WITH GCC-exception-3.1".to_owned(),
        purl: Some(format!("pkg:generic/gcc@{version}")),
        checksum: None,
        texts,
    })
}

/// Returns the texts of the first distribution whose files are here.
fn first_of(distributions: &[&[&str]]) -> Result<Vec<(String, String)>, String> {
    let are_here = |files: &&&[&str]| files.iter().all(|file| Path::new(file).is_file());
    let Some(files) = distributions.iter().find(are_here) else {
        return Err(format!(
            "the image carries the licence of what is linked into the program; expected one of these groups of \
             files: {distributions:?}"
        ));
    };
    let name = |file: &str| file.rsplit('/').next().unwrap_or_default().to_owned();
    files.iter().map(|file| Ok((name(file), read(Path::new(file))?))).collect()
}

/// Returns the files of a crate that say under which licence it is, in the order of their names. One may be a
/// link, or a folder of several.
fn licence_files(folder: &Path) -> Result<Vec<(String, String)>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut texts = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let lower = name.to_lowercase();
        if !WORDS.iter().any(|word| lower.contains(word)) || lower.ends_with(".rs") {
            continue;
        }
        if path.is_dir() {
            let inner =
                fs::read_dir(&path).map_err(failed)?.collect::<Result<Vec<_>, _>>().map_err(failed)?;
            for file in inner.iter().map(fs::DirEntry::path).filter(|file| file.is_file()) {
                let of = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
                texts.push((format!("{name}/{of}"), read(&file)?));
            }
        } else {
            texts.push((name, read(&path)?));
        }
    }
    texts.sort();
    Ok(texts)
}

/// Returns the crates of `cargo tree --prefix depth`, and which asks for which.
fn linked(tree: &str) -> Result<Linked, String> {
    let (mut crates, mut edges, mut above) = (BTreeSet::new(), BTreeSet::new(), Vec::<Named>::new());
    for line in tree.lines().filter(|line| !line.is_empty()) {
        let mut words = line.split_whitespace();
        let depth = words.next().and_then(|depth| depth.parse::<usize>().ok());
        let version = |word: Option<&str>| Some(word?.strip_prefix('v')?.to_owned());
        let (Some(depth), Some(name), Some(version)) = (depth, words.next(), version(words.next())) else {
            return Err(format!("cargo tree: expected a depth, a name and a version, found {line:?}"));
        };
        let named = (name.to_owned(), version);
        above.truncate(depth);
        if let Some(parent) = above.last() {
            edges.insert((parent.clone(), named.clone()));
        }
        crates.insert(named.clone());
        above.push(named);
    }
    Ok((crates, edges))
}

/// Returns the checksums of the lock file.
fn checksums(lock: &str) -> BTreeMap<Named, String> {
    let of = |block: &str, key: &str| {
        let line = block.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \""));
        Some(line?.trim_end_matches('"').to_owned())
    };
    let package = |block: &str| Some(((of(block, "name")?, of(block, "version")?), of(block, "checksum")?));
    lock.split("[[package]]").filter_map(package).collect()
}

/// The packages with all features: those of one program are among them.
fn metadata(session: &Session) -> Result<Value, String> {
    let mut cargo = session.cargo();
    let said = output(cargo.args(["metadata", "--format-version", "1", "--locked", "--all-features"]))?;
    serde_json::from_str(&said).map_err(|error| format!("cargo metadata: {error}"))
}

fn output(command: &mut Command) -> Result<String, String> {
    command.stdout(Stdio::piped());
    let output = children::output(command).map_err(|error| format!("{}: {error}", shown(command)))?;
    if !output.status.success() {
        return Err(format!("`{}`: {}", shown(command), output.status));
    }
    String::from_utf8(output.stdout).map_err(|error| format!("`{}`: {error}", shown(command)))
}

/// Returns a text. Some names of authors are not UTF-8.
fn read(path: &Path) -> Result<String, String> {
    let bytes = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Either program has more parts than this.
const FEWEST: usize = 30;
/// What the names of such files contain.
const WORDS: &[&str] = &["license", "licence", "copying", "copyright", "notice", "unlicense"];

#[cfg(test)]
mod tests {
    use super::*;

    fn part(name: &str, purl: bool, texts: &[(&str, &str)]) -> Component {
        Component {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            license: "MIT".to_owned(),
            purl: purl.then(|| format!("pkg:cargo/{name}@1.0.0")),
            checksum: None,
            texts: texts.iter().map(|(file, text)| ((*file).to_owned(), (*text).to_owned())).collect(),
        }
    }

    #[test]
    fn a_text_of_several_crates_is_there_once() {
        let crates =
            vec![part("a", true, &[("LICENSE", "same\n")]), part("b", true, &[("LICENSE-MIT", "same\n")])];
        let bill = Bill { program: part("p", false, &[]), crates, others: vec![], edges: BTreeSet::new() };
        let text = bill.licences().unwrap();
        assert_eq!(text.matches("same").count(), 1);
        assert!(text.contains("a 1.0.0, LICENSE\nb 1.0.0, LICENSE-MIT\n\nsame"), "{text}");
    }

    #[test]
    fn a_crate_without_a_text_is_an_error_unless_it_is_ours() {
        let bill = |purl| Bill {
            program: part("p", false, &[]),
            crates: vec![part("a", purl, &[])],
            others: vec![],
            edges: BTreeSet::new(),
        };
        assert_eq!(bill(true).licences().unwrap_err(), "a 1.0.0: no text of its licence was found");
        assert!(bill(false).licences().is_ok());
    }

    #[test]
    fn checksums_are_those_of_the_blocks() {
        let lock = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nsource = \"r\"\n\
                    checksum = \"aa\"\n\n[[package]]\nname = \"ours\"\nversion = \"0.1.0\"\n";
        assert_eq!(checksums(lock), BTreeMap::from([(("a".into(), "1.0.0".into()), "aa".into())]));
    }

    #[test]
    fn the_tree_is_read_with_what_follows_the_version() {
        let named = |name: &str| (name.to_owned(), "1.0.0+x".to_owned());
        let tree = "0 p v1.0.0+x (/somewhere)\n1 a v1.0.0+x\n2 b v1.0.0+x\n1 b v1.0.0+x (*)\n";
        let (crates, edges) = linked(tree).unwrap();
        assert_eq!(crates, ["p", "a", "b"].map(named).into());
        assert_eq!(edges, [("p", "a"), ("a", "b"), ("p", "b")].map(|(a, b)| (named(a), named(b))).into());
        assert!(linked("1 a\n").is_err());
    }
}
