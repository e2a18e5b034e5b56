//! Tests in guest kernels: for features that the machine's kernel lacks (IPVS, some set types), and for older
//! kernels.
//!
//! These are the tests in the module `guest` of a package's test program (`tests/it/guest.rs`), ignored
//! elsewhere with a reason that names this check. The manifest of the package names the kernels:
//!
//! ```toml
//! [package.metadata.guest]
//! kernels = ["uml", "qemu", "qemu:linux-image-6.12-cloud-amd64"]
//! arguments = ["-m", "2G"]                                            # further arguments of umlrun and qemurun
//! tests = ["kernel::"]                                                # instead of `guest::`: begins of names
//! without = ["kernel::json::"]                                        # parts of names of tests to leave out
//! without-uml = ["guest::fastpath::"]                                 # the same in one kind of kernel
//! tests-of = { "qemu:linux-image-6.12-cloud-amd64" = ["guest::f"] }   # those of one kernel
//! ```
//!
//! `uml` is user-mode Linux (`xtask/guest/uml/umlrun`), `qemu` Debian's current cloud kernel in an emulated
//! machine (`xtask/guest/qemu/qemurun`), and a package of Debian may follow. The tests run one after the
//! other, as root of the guest; there are as many guests at a time as processors.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::checks::EVERYTHING;
use crate::report::Outcome;
use crate::session::{Session, on_path, shown};
use crate::{children, parallel, programs, test_run};

pub(crate) fn check(session: &Session) -> Result<Outcome, String> {
    let packages: Vec<_> = session.members().filter(|package| words(package, "kernels").is_some()).collect();
    // The tests of these, and the programs that they start.
    let built = programs::build(session, &[&EVERYTHING[..], &["--test", PROGRAM]].concat())?;
    let mut runs = Vec::new();
    for package in packages {
        let name = package["name"].as_str().unwrap_or_default();
        let of_package = || built.iter().filter(|built| built.package == package["id"]);
        let test = of_package()
            .find(|built| built.is_test && built.kind == "test" && built.name == PROGRAM)
            .ok_or_else(|| format!("cargo built no test program `{PROGRAM}` for {name}"))?;
        let started: Vec<_> = of_package()
            .filter(|built| built.kind == "bin" && !built.is_test)
            .map(|built| built.path.as_path())
            .collect();
        // No guest is started for a test that is another package's.
        let mut of_asked = Command::new(&test.path);
        of_asked.arg("--include-ignored").args(session.only_tests());
        if session.only.is_some() && programs::listed(&mut of_asked)? == 0 {
            continue;
        }
        for kernel in words(package, "kernels").unwrap_or_default() {
            runs.push(Run { package, kernel, test: &test.path, started: started.clone() });
        }
    }
    Ok(parallel::each(&runs, |run| {
        let name = run.package["name"].as_str().unwrap_or_default();
        Ok(run.make(session).unwrap_or_else(Outcome::failed).of(name, &run.kernel))
    }))
}

impl Outcome {
    /// Adds the package and the kernel to every entry.
    fn of(mut self, package: &str, kernel: &str) -> Self {
        for failure in &mut self.failures {
            // A test, and not a command with its status.
            if !failure.contains(' ') {
                *failure = format!("{failure}\n{}", programs::again("guest", failure));
            }
        }
        for entry in self.failures.iter_mut().chain(&mut self.skips) {
            *entry = format!("{package} in {kernel}: {entry}");
        }
        self
    }
}

/// The tests of a package in a kernel.
struct Run<'a> {
    package: &'a Value,
    kernel: String,
    test: &'a Path,
    /// The programs of the package, which tests start.
    started: Vec<&'a Path>,
}

impl Run<'_> {
    fn make(&self, session: &Session) -> Result<Outcome, String> {
        let Self { package, kernel, test, .. } = self;
        let (kind, image) =
            kernel.split_once(':').map_or((&**kernel, None), |(kind, image)| (kind, Some(image)));
        if let Some(missing) = missing(kind)? {
            return Ok(Outcome::skipped(format!("not installed: {missing}")));
        }
        let scripts = session.root.join("xtask/guest").join(kind);
        let mut command = Command::new(scripts.join(format!("{kind}run")));
        if let Some(image) = image {
            command.arg("-k").arg(kernel_directory(&scripts, image)?);
        }
        command.args(["-t", "900"]).args(words(package, "arguments").unwrap_or_default());
        // user-mode Linux has the machine's files.
        if kind == "qemu" {
            command.args(self.started.iter().flat_map(|program| [Path::new("-f"), program]));
        }
        // Not every guest can write to our files: the log of skips is written inside and printed at the end.
        command.args(["--", "/bin/sh", "-c", SCRIPT]).arg(test);
        command.env("SLUICEGATE_SKIPPED", "/tmp/sluicegate-skipped");
        match &session.only {
            Some(_) => command.args(session.only_tests()),
            None => {
                let of_kernel = strings(&package["metadata"]["guest"]["tests-of"][kernel]);
                let tests = of_kernel.or_else(|| words(package, "tests"));
                command.args(tests.unwrap_or_else(|| vec!["guest::".to_owned()]))
            }
        };
        for key in ["without", &format!("without-{kind}")] {
            command.args(words(package, key).unwrap_or_default().iter().flat_map(|name| ["--skip", name]));
        }
        // The directory in which `cargo test` would run it.
        command.current_dir(
            Path::new(package["manifest_path"].as_str().unwrap_or_default())
                .parent()
                .unwrap_or(&session.root),
        );
        let name = package["name"].as_str().unwrap_or_default();
        let outcome = test_run::run_labelled(&mut command, &format!("{name} in {kernel}| "))?;
        // A name that no test has any more would pass.
        let is_empty = outcome == Outcome::default() && session.only.is_none();
        Ok(if is_empty { Outcome::failed("no test ran") } else { outcome })
    }
}

/// The script that runs the test program, prints the log of skipped tests, and exits with the status of the
/// program. user-mode Linux has the machine's files, so a log may exist already.
const SCRIPT: &str = concat!(
    r#": >"$SLUICEGATE_SKIPPED"; "$0" --test-threads=1 --include-ignored "$@"; status=$?; "#,
    r#"cat "$SLUICEGATE_SKIPPED"; exit $status"#
);

/// Returns the requirements of a kind of guest that this machine does not meet.
fn missing(kind: &str) -> Result<Option<String>, String> {
    let needed: &[(&str, &str)] = match kind {
        "uml" => &[("linux.uml", "user-mode-linux"), ("ip", "iproute2"), ("modprobe", "kmod")],
        "qemu" => {
            &[("qemu-system-x86_64", "qemu-system-x86"), ("cpio", "cpio"), ("busybox", "busybox-static")]
        }
        _ => return Err(format!("no kind of guest is called {kind}; there are uml and qemu")),
    };
    let missing: Vec<_> =
        needed.iter().filter(|(program, _)| !on_path(program)).map(|(_, package)| *package).collect();
    Ok(if missing.is_empty() { None } else { Some(missing.join(", ")) })
}

/// Downloads and unpacks a Debian kernel, once.
fn kernel_directory(scripts: &Path, image: &str) -> Result<PathBuf, String> {
    let mut command = Command::new(scripts.join("mkkernel"));
    let output = children::output(command.arg(image).stdout(Stdio::piped()))
        .map_err(|e| format!("{}: {e}", shown(&command)))?;
    let text = String::from_utf8_lossy(&output.stdout);
    match text.lines().last() {
        Some(directory) if output.status.success() => Ok(PathBuf::from(directory)),
        _ => Err(format!("`{}`: {}", shown(&command), output.status)),
    }
}

/// Returns a list of words in the package's `[package.metadata.guest]`.
fn words(package: &Value, key: &str) -> Option<Vec<String>> {
    strings(&package["metadata"]["guest"][key])
}

fn strings(value: &Value) -> Option<Vec<String>> {
    Some(value.as_array()?.iter().filter_map(|word| word.as_str().map(str::to_owned)).collect())
}

/// The name of the test program of every package.
const PROGRAM: &str = "it";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_says_which_kernels_it_wants() {
        let package = serde_json::json!({
            "metadata": { "guest": { "kernels": ["uml", "qemu:linux-image-6.12-cloud-amd64"] } },
        });
        assert_eq!(words(&package, "kernels").unwrap(), ["uml", "qemu:linux-image-6.12-cloud-amd64"]);
        assert_eq!(words(&package, "arguments"), None);
        assert_eq!(words(&serde_json::json!({ "metadata": null }), "kernels"), None);
    }

    #[test]
    fn an_unknown_kind_of_guest_is_refused() {
        assert!(missing("xen").is_err());
    }
}
