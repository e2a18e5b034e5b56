//! `install DIRECTORY`: links by which the program is called by the names of the tools.

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::output::tell;
use crate::{NAMES, PROGRAM};

/// Makes a link of each name in a directory. A file of that name that is not such a link is left as it is.
pub(crate) fn main(arguments: &[OsString]) -> ExitCode {
    let [directory] = arguments else {
        tell(format_args!("usage: {PROGRAM} install DIRECTORY"));
        return ExitCode::from(2);
    };
    match links(Path::new(directory)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tell(format_args!("{PROGRAM}: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Looks at all names before it makes the first link, so that nothing is left half done.
fn links(directory: &Path) -> io::Result<()> {
    let program = std::env::current_exe()?;
    let here = directory.canonicalize().map_err(|error| at(directory, &error))?;
    // Beside the program itself, the links go along wherever the directory is moved or mounted.
    let target = match (program.parent() == Some(&*here), program.file_name()) {
        (true, Some(name)) => PathBuf::from(name),
        _ => program.clone(),
    };
    let mut missing = Vec::new();
    for path in NAMES.map(|name| directory.join(name)) {
        match path.symlink_metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => missing.push(path),
            Err(error) => return Err(at(&path, &error)),
            Ok(_) if path.canonicalize().is_ok_and(|linked| linked == program) => (),
            Ok(_) => {
                let reason = "another file has this name: remove it first";
                return Err(io::Error::new(
                    ErrorKind::AlreadyExists,
                    format!("{}: {reason}", path.display()),
                ));
            }
        }
    }
    missing.iter().try_for_each(|path| symlink(&target, path).map_err(|error| at(path, &error)))
}

fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
