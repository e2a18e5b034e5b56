//! Builds the program a second time, in a folder of another name, to compare it with the first.
//!
//! Only what we wrote is compiled again. What it depends on is compiled from cargo's own folder, wherever we
//! are; of our folders it could know the target directory alone, and that the program names none of them is
//! looked at as well. So its files are taken over from the first build, as hard links.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{FEATURES, PACKAGE, PROFILE, Place, cargo, folders, program};
use crate::session::Session;

/// The programs of two builds.
pub(super) struct Twice {
    /// The command that built the first.
    pub cargo: Command,
    pub here: PathBuf,
    pub elsewhere: PathBuf,
    /// The folders of this machine that the program names.
    pub named: Vec<PathBuf>,
}

pub(super) fn build(session: &Session) -> Result<Twice, String> {
    let root = root(session);
    let (here, there) = (Place::of(session), Place { target: root.join("target"), root });
    // The same flags for both, so that the files of one serve the other.
    let folders = folders(&[&here, &there]);
    let first = program(session, &here, &folders)?;
    let failed = |error: io::Error| format!("{}: {error}", there.root.display());
    if there.root.exists() {
        fs::remove_dir_all(&there.root).map_err(failed)?;
    }
    copy(&here.root, &there.root).map_err(failed)?;
    for (from, to) in here.outputs().iter().zip(there.outputs()) {
        link_dependencies(from, &to).map_err(failed)?;
    }
    let second = program(session, &there, &folders)?;
    let bytes = fs::read(&first).map_err(|error| format!("{}: {error}", first.display()))?;
    let is_named = |folder: &Path| {
        let name = folder.as_os_str().as_encoded_bytes();
        bytes.windows(name.len()).any(|part| part == name)
    };
    let named = folders.iter().map(|(folder, _)| folder.clone()).filter(|folder| is_named(folder)).collect();
    let cargo = cargo(session, PACKAGE, PROFILE, FEATURES, &here, &folders);
    Ok(Twice { cargo, here: first, elsewhere: second, named })
}

/// Removes the second build, of which nothing serves the next.
pub(super) fn remove(session: &Session) -> Result<(), String> {
    let root = root(session);
    fs::remove_dir_all(&root).map_err(|error| format!("{}: {error}", root.display()))
}

fn root(session: &Session) -> PathBuf {
    session.scratch.join("image-of-another-name")
}

/// Copies the tree, without what was built.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        let to = to.join(&name);
        if name == "target" || name == ".git" {
            continue;
        }
        if path.is_dir() {
            copy(&path, &to)?;
        } else {
            fs::copy(&path, &to)?;
        }
    }
    Ok(())
}

/// Links the files of a build, but for those of our own packages.
fn link_dependencies(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_name().to_string_lossy().contains("sluicegate") {
            continue;
        }
        if entry.path().is_dir() {
            link_dependencies(&entry.path(), &to)?;
        } else {
            fs::hard_link(entry.path(), &to)?;
        }
    }
    Ok(())
}
