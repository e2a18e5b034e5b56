//! Builds programs that make a choice which our libraries must leave to them: `xtask/dependents/NAME`, one
//! package each.
//!
//! Cargo unifies the features of a dependency in a workspace, so that these packages have to be outside of
//! ours. Each is compiled with the versions of our lock file, which is copied to it, and in our target
//! directory.

use std::fs;

use crate::report::Outcome;
use crate::session::Session;

pub(crate) fn check(session: &Session) -> Result<Outcome, String> {
    let directory = session.root.join("xtask/dependents");
    let entries = fs::read_dir(&directory).map_err(|e| format!("{}: {e}", directory.display()))?;
    let mut packages: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    packages.sort();
    let mut outcome = Outcome::default();
    for package in packages {
        let lock = package.join("Cargo.lock");
        fs::copy(session.root.join("Cargo.lock"), &lock).map_err(|e| format!("{}: {e}", lock.display()))?;
        let mut cargo = session.cargo();
        cargo.args(["check", "--manifest-path"]).arg(package.join("Cargo.toml"));
        cargo.arg("--target-dir").arg(session.target());
        // The version that .cargo/config.toml sets is for where nobody chooses one.
        cargo.env("K8S_OPENAPI_ENABLED_VERSION", "");
        match session.run(&mut cargo) {
            Ok(()) => outcome.passed += 1,
            Err(why) => outcome.failures.push(why),
        }
    }
    Ok(outcome)
}
