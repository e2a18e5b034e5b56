//! `cargo xtask image`: the proxier as a static program, and a container image with nothing else in it; with
//! the word `tools`, the tools. No daemon, no container tool and no privileges are needed.
//!
//! - [`bill`] says what is in a program, and has the licences of it.
//! - [`layout`] writes the image as the OCI image layout.
//! - [`check`] is the check `image`: it unpacks the image with the tools that others use, and runs it.
//! - [`elsewhere`] builds it again in another folder, for [`check`] to compare.

mod bill;
pub(crate) mod check;
mod elsewhere;
mod layout;

use std::collections::BTreeMap;
use std::env::consts::ARCH;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::session::Session;
use crate::{progress, release};
use bill::Bill;
use layout::{Content, File, Image};

/// What was built.
pub(crate) struct Built {
    /// The directory with the image layout.
    pub layout: PathBuf,
    /// The same as one file, for `docker load`, `ctr image import`, `kind load image-archive` and `skopeo`.
    pub archive: PathBuf,
    /// The size of the archive in bytes.
    pub size: u64,
}

/// Where the program is built.
struct Place {
    /// The root of the tree.
    root: PathBuf,
    /// Cargo's target directory.
    target: PathBuf,
}

impl Place {
    fn of(session: &Session) -> Self {
        Self { root: session.root.clone(), target: session.target().to_owned() }
    }

    /// Returns the folders with the files of one program: below them is nothing of another.
    fn outputs(&self) -> [PathBuf; 2] {
        [self.target.join(PROFILE), self.target.join(target()).join(PROFILE)]
    }
}

/// Builds the program and the image, in the directory `oci` of cargo's target directory.
pub(crate) fn build(session: &Session) -> Result<Built, String> {
    let here = Place::of(session);
    let program = program(session, &here, &folders(&[&here]))?;
    package(session, &program)
}

/// Builds both programs and their images, and writes the files of a release. Returns their directory.
pub(crate) fn release(session: &Session) -> Result<PathBuf, String> {
    let here = Place::of(session);
    let program = program(session, &here, &folders(&[&here]))?;
    let built = package(session, &program)?;
    gather(session, &program, &built, &tools(session)?, &build_tools(session)?)
}

/// Writes the files of a release with these programs and their images.
fn gather(
    session: &Session,
    program: &Path,
    built: &Built,
    tools: &Path,
    built_tools: &Built,
) -> Result<PathBuf, String> {
    let mut documents = Vec::new();
    for (package, arguments) in [(PACKAGE, FEATURES), (TOOLS, &[])] {
        // The licences of the project are the same for both, those of the crates in a program are its own.
        for (name, content) in self::documents(session, package, arguments)? {
            let name = if name == LICENCES { format!("{name}-{package}") } else { name };
            documents.push((name, content));
        }
    }
    release::gather(session, &[(program, &built.archive), (tools, &built_tools.archive)], &documents)
}

fn package(session: &Session, program: &Path) -> Result<Built, String> {
    let image = image(session, program)?;
    let directory = session.target().join("oci");
    let built = write(&image, &directory)?;
    progress::say(format!("{}: {:.1} MB", built.archive.display(), megabytes(built.size)));
    Ok(built)
}

/// Builds the tools and their image, in the directory `oci-tools`: the program in `/usr/sbin`, with a link of
/// each name of a tool beside it, to be copied into other images; its page and completions where shells and man(1)
/// look.
pub(crate) fn build_tools(session: &Session) -> Result<Built, String> {
    let program = tools(session)?;
    let size = fs::metadata(&program).map_err(|error| format!("{}: {error}", program.display()))?.len();
    let image = tools_image(session, &program)?;
    let built = write(&image, &session.target().join("oci-tools"))?;
    progress::say(format!("{}: {:.1} MB", program.display(), megabytes(size)));
    progress::say(format!("{}: {:.1} MB", built.archive.display(), megabytes(built.size)));
    if size > LARGEST_TOOLS {
        let most = megabytes(LARGEST_TOOLS);
        return Err(format!("expected a program of at most {most:.0} MB, found {:.1}", megabytes(size)));
    }
    Ok(built)
}

/// Builds the program of the tools as it is shipped, and returns its path.
pub(crate) fn tools(session: &Session) -> Result<PathBuf, String> {
    let here = Place::of(session);
    compile(session, TOOLS, TOOLS_PROFILE, &[], &here, &folders(&[&here]))
}

/// Returns the image of the tools. The program itself makes the links, so that their names are written once.
fn tools_image(session: &Session, program: &Path) -> Result<Image, String> {
    let failed = |path: &Path, error: &std::io::Error| format!("{}: {error}", path.display());
    let links = session.target().join("oci-tools-links");
    if links.exists() {
        fs::remove_dir_all(&links).map_err(|error| failed(&links, &error))?;
    }
    fs::create_dir_all(&links).map_err(|error| failed(&links, &error))?;
    session.run(Command::new(program).arg("install").arg(&links))?;
    let entries = fs::read_dir(&links).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let entries = entries.map_err(|error| failed(&links, &error))?;
    let mut names: Vec<_> =
        entries.iter().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    let read = |path: &Path| fs::read(path).map_err(|error| failed(path, &error));
    let mut files = vec![File {
        name: format!("usr/sbin/{TOOLS}"),
        content: Content::Bytes(read(program)?),
        mode: 0o755,
        permitted: None,
    }];
    files.extend(names.into_iter().map(|name| File {
        name: format!("usr/sbin/{name}"),
        content: Content::Link(TOOLS.to_owned()),
        mode: 0o777,
        permitted: None,
    }));
    files.extend(in_folder(&format!("usr/share/doc/{TOOLS}/"), documents(session, TOOLS, &[])?));
    let pages =
        release::pages(program)?.into_iter().map(|(name, content)| (release::installed(&name), content));
    files.extend(in_folder("usr/share/", pages.collect()));
    let (version, labels) = described(session, TOOLS);
    Ok(Image {
        name: TOOLS.to_owned(),
        version,
        architecture: architecture()?,
        // The tools are for root; an image that is based on this one says who it runs as.
        user: "0:0".to_owned(),
        entrypoint: format!("/usr/sbin/{TOOLS}"),
        labels,
        files,
    })
}

/// Compiles the program with the C library linked into it, and returns its path.
///
/// The target is named although it is this machine's: otherwise the flags would be those of build scripts
/// and procedural macros as well, which cannot be static. It also keeps the files of a plain `cargo build`
/// apart.
fn program(session: &Session, place: &Place, folders: &[(PathBuf, &str)]) -> Result<PathBuf, String> {
    compile(session, PACKAGE, PROFILE, FEATURES, place, folders)
}

fn compile(
    session: &Session,
    package: &str,
    profile: &str,
    arguments: &[&str],
    place: &Place,
    folders: &[(PathBuf, &str)],
) -> Result<PathBuf, String> {
    session.run(&mut cargo(session, package, profile, arguments, place, folders))?;
    Ok(place.target.join(target()).join(profile).join(package))
}

/// Returns the command that compiles a program.
fn cargo(
    session: &Session,
    package: &str,
    profile: &str,
    arguments: &[&str],
    place: &Place,
    folders: &[(PathBuf, &str)],
) -> Command {
    let mut flags = vec!["-Ctarget-feature=+crt-static".to_owned()];
    let renamed = folders.iter();
    flags.extend(renamed.map(|(folder, name)| format!("--remap-path-prefix={}={name}", folder.display())));
    let mut cargo = session.cargo();
    cargo.args(["build", "--locked", "--profile", profile, "--target", &target()]);
    cargo.args(["--package", package]).args(arguments);
    cargo.current_dir(&place.root).arg("--target-dir").arg(&place.target);
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"));
    cargo
}

/// Returns the folders of this machine that are not to be named in the program, so that it is the same
/// wherever it was built, and what stands for each.
fn folders(places: &[&Place]) -> Vec<(PathBuf, &'static str)> {
    let cargo_home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo_home = cargo_home.or_else(|| Some(std::env::home_dir()?.join(".cargo")));
    let mut folders: Vec<_> = places.iter().map(|place| (place.root.clone(), ".")).collect();
    // Of two that match, rustc takes the last: a target directory is below the root, or anywhere.
    folders.extend(places.iter().map(|place| (place.target.clone(), "target")));
    folders.extend(cargo_home.map(|home| (home, "cargo")));
    folders
}

fn target() -> String {
    format!("{ARCH}-unknown-linux-gnu")
}

/// Returns the image with the program, and what comes with it.
fn image(session: &Session, program: &Path) -> Result<Image, String> {
    let read = |path: &Path| fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
    let mut files = vec![File {
        name: PACKAGE.to_owned(),
        content: Content::Bytes(read(program)?),
        mode: 0o755,
        // Without the effective bit: src/cli/rights.rs of the proxier says why.
        permitted: Some(1 << CAP_NET_ADMIN),
    }];
    files.extend(in_folder("", documents(session, PACKAGE, FEATURES)?));
    let (version, labels) = described(session, PACKAGE);
    Ok(Image {
        name: PACKAGE.to_owned(),
        version,
        architecture: architecture()?,
        user: format!("{USER}:{USER}"),
        entrypoint: format!("/{PACKAGE}"),
        labels,
        files,
    })
}

/// Returns what comes with a program: our licences, those of what is linked into it, and the bill of
/// materials.
fn documents(session: &Session, package: &str, arguments: &[&str]) -> Result<Vec<(String, Vec<u8>)>, String> {
    let read = |name: &str| {
        let path = session.root.join(name);
        fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))
    };
    let bill = Bill::of(session, package, arguments)?;
    Ok(vec![
        ("LICENSE-APACHE".to_owned(), read("LICENSE-APACHE")?),
        ("LICENSE-MIT".to_owned(), read("LICENSE-MIT")?),
        (LICENCES.to_owned(), bill.licences()?.into_bytes()),
        (bill_name(package), format!("{:#}\n", bill.cyclonedx()).into_bytes()),
    ])
}

/// Returns what the bills of materials and the licences of both programs lack; neither has to be built for
/// that.
pub(crate) fn incomplete(session: &Session) -> Result<Vec<String>, String> {
    let mut lacking = Vec::new();
    for (package, arguments) in [(PACKAGE, FEATURES), (TOOLS, &[])] {
        lacking.extend(Bill::of(session, package, arguments)?.incomplete()?);
    }
    Ok(lacking)
}

/// Returns documents as files of an image, below a folder.
fn in_folder(folder: &str, documents: Vec<(String, Vec<u8>)>) -> impl Iterator<Item = File> {
    documents.into_iter().map(move |(name, content)| File {
        name: format!("{folder}{name}"),
        content: Content::Bytes(content),
        mode: 0o644,
        permitted: None,
    })
}

/// The name of a bill of materials, by which scanners of images find it.
fn bill_name(package: &str) -> String {
    format!("{package}.cdx.json")
}

/// Returns the version of a package, and the labels that describe it.
fn described(session: &Session, package: &str) -> (String, BTreeMap<String, String>) {
    let package = session.members().find(|of| of["name"] == package);
    let text = |key: &str| package.and_then(|package| package[key].as_str()).unwrap_or_default().to_owned();
    let labels = [
        ("description", text("description")),
        ("licenses", text("license")),
        ("source", text("repository")),
        ("version", text("version")),
    ];
    let labels = labels.map(|(key, value)| (format!("org.opencontainers.image.{key}"), value));
    (text("version"), labels.into())
}

/// Writes the layout and the archive into a directory that is ours.
fn write(image: &Image, directory: &Path) -> Result<Built, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", directory.display());
    let blobs = image.layout().map_err(failed)?;
    if directory.exists() {
        fs::remove_dir_all(directory).map_err(failed)?;
    }
    let layout = directory.join("layout");
    for (name, content) in &blobs {
        let path = layout.join(name);
        fs::create_dir_all(path.parent().unwrap_or(&layout)).map_err(failed)?;
        fs::write(path, content).map_err(failed)?;
    }
    let archive = directory.join(format!("{}.tar", image.name));
    fs::write(&archive, layout::archive(&blobs).map_err(failed)?).map_err(failed)?;
    let size = fs::metadata(&archive).map_err(failed)?.len();
    Ok(Built { layout, archive, size })
}

/// Returns the architecture by the name that images have for it, which is Go's.
fn architecture() -> Result<&'static str, String> {
    match ARCH {
        "x86_64" => Ok("amd64"),
        "aarch64" => Ok("arm64"),
        other => Err(format!("images are built for x86_64 and aarch64, found {other}")),
    }
}

fn megabytes(bytes: u64) -> f64 {
    // Exact to 2^53.
    #[allow(clippy::cast_precision_loss)]
    let bytes = bytes as f64;
    bytes / 1e6
}

/// The package, its program, and the image.
const PACKAGE: &str = "sluicegate-proxier";
/// What the image's program is built with.
const FEATURES: &[&str] = &["--features", "kube"];
/// The file with the licences of what is not ours.
const LICENCES: &str = "LICENSE-THIRD-PARTY";
/// The package of the tools, its program, and the image.
const TOOLS: &str = "sluicegate-tools";
/// More than that is too large for the program of the tools.
const LARGEST_TOOLS: u64 = 8_000_000;
/// The profile of the proxier's program.
const PROFILE: &str = "image";
/// The profile of the tools' program.
const TOOLS_PROFILE: &str = "tools";
/// The user and group, by the number that images without users use for one without rights.
const USER: u32 = 65532;
/// `CAP_NET_ADMIN` (`linux/capability.h`).
const CAP_NET_ADMIN: u32 = 12;
