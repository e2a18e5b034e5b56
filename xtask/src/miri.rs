//! Unit tests of wire code in Miri, which finds undefined behaviour, reads beyond buffers and misaligned access,
//! also in what we depend on.
//!
//! It interprets the program: properties are tried a few times only, and what opens a socket or expects the
//! system's words for an error is left out.

use crate::report::Outcome;
use crate::session::{Session, works};
use crate::{parallel, test_run};

/// The packages, with the names that tests begin with. No names are all tests.
const TESTED: &[(&str, &[&str])] = &[
    ("sluicegate-netlink", &["attr::", "batch::", "message::"]),
    ("sluicegate-conntrack", &[]),
    ("sluicegate-ipvs", &["wire::"]),
    ("sluicegate-xtables", &[]),
];

pub(crate) fn check(session: &Session) -> Result<Outcome, String> {
    if !works("rustup", &["run", "nightly", "cargo", "miri", "--version"]) {
        let why = "wire code in Miri, which is not installed (rustup component add --toolchain nightly miri)";
        return Ok(session.missing("miri", why));
    }
    // Made once, by none of those that run beside each other.
    session.run(session.nightly().args(["miri", "setup", "--quiet"]))?;
    Ok(parallel::each(TESTED, |(package, names)| {
        let mut cargo = session.nightly();
        cargo.args(["miri", "test", "--quiet", "--package", package, "--lib", "--"]).args(*names);
        cargo
            .env("PROPTEST_CASES", "2")
            .env("PROPTEST_RNG_SEED", "1")
            .env("MIRIFLAGS", "-Zmiri-disable-isolation");
        test_run::run_titled(&mut cargo, &format!("     Running {package}"))
    }))
}
