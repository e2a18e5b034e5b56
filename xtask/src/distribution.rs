//! `cargo xtask programs`: programs of the distribution over our tools. The steps of each are a file in
//! `xtask/programs`; they run once with the tools that are installed and once with ours bound over them, each in
//! namespaces of its own, and must say and leave the same.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use nix::unistd::geteuid;

use crate::report::Outcome;
use crate::session::{Session, on_path, shown};
use crate::{children, parallel, progress};

/// Each program: the file of its steps, what must be installed, the package of Debian, and whether the check runs
/// it: the others take long, or bring much with them.
const ALL: [(&str, &str, &str, bool); 9] = [
    ("ufw", "/usr/sbin/ufw", "ufw", true),
    ("fail2ban", "/usr/bin/fail2ban-client", "fail2ban", true),
    ("cni", "/usr/lib/cni/bridge", "containernetworking-plugins", true),
    ("ferm", "/usr/sbin/ferm", "ferm", true),
    ("netavark", "/usr/lib/podman/netavark", "netavark", true),
    ("sshuttle", "/usr/bin/sshuttle", "sshuttle", true),
    ("shorewall", "/usr/sbin/shorewall", "shorewall", false),
    ("firewalld", "/usr/bin/firewall-offline-cmd", "firewalld", false),
    ("docker", "/usr/sbin/dockerd", "docker.io", false),
];

/// The check `programs`.
pub(crate) fn check(session: &Session) -> Result<Outcome, String> {
    let checked = ALL.into_iter().filter(|(.., checked)| *checked);
    run(session, &checked.map(|(name, ..)| name.to_owned()).collect::<Vec<_>>())
}

/// Runs the steps of some programs, or of all.
pub(crate) fn run(session: &Session, names: &[String]) -> Result<Outcome, String> {
    if let Some(unknown) = names.iter().find(|name| ALL.iter().all(|(known, ..)| known != name)) {
        let known = ALL.map(|(name, ..)| name).join(", ");
        return Err(format!("expected one of {known}, found {unknown}"));
    }
    if !geteuid().is_root() {
        return Ok(Outcome::skipped("programs that set up firewalls are run by root alone".to_owned()));
    }
    let tools =
        ["iptables", "nft", "ipset", "ip"].into_iter().filter(|tool| !on_path(tool)).collect::<Vec<_>>();
    if !tools.is_empty() {
        return Ok(Outcome::skipped(format!(
            "{} missing, which the steps are compared by",
            tools.join(", ")
        )));
    }
    session.run(session.cargo().args(["build", "--quiet", "--package", "sluicegate-tools"]))?;
    let program = session.keep("sluicegate-tools")?;
    let is_asked = |(name, ..): &(&str, _, _, _)| names.is_empty() || names.iter().any(|of| of == name);
    let asked: Vec<_> = ALL.into_iter().filter(is_asked).collect();
    Ok(parallel::each(&asked, |(name, path, package, _)| {
        if fs::metadata(path).is_err() {
            return Ok(Outcome::skipped(format!("{name}: {path} is missing (Debian: {package})")));
        }
        let steps = session.root.join("xtask/programs").join(name);
        let said = |arguments: &[&Path]| -> Result<String, String> {
            let mut command = Command::new(session.root.join("xtask/programs/run"));
            command.arg(&steps).args(arguments).stdout(Stdio::piped());
            let output = children::output(&mut command).map_err(|e| format!("{}: {e}", shown(&command)))?;
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        };
        let (theirs, ours) = (said(&[])?, said(&[&program])?);
        let [theirs, ours] = [steps_of(&theirs), steps_of(&ours)];
        let different: Vec<_> = theirs
            .iter()
            .enumerate()
            .filter(|(at, step)| ours.get(*at) != Some(step))
            .map(|(_, step)| step)
            .collect();
        progress::say(format!(
            "{name}: {} of {} steps are the same",
            theirs.len() - different.len(),
            theirs.len()
        ));
        let mut outcome = Outcome { passed: theirs.len() - different.len(), ..Outcome::default() };
        outcome.failures.extend(different.iter().map(|step| {
            let title = step.lines().next().unwrap_or_default();
            format!("{name}: {title} differs: xtask/programs/run xtask/programs/{name} [PROGRAM] shows how")
        }));
        if theirs.is_empty() || ours.len() > theirs.len() {
            outcome.failures.push(format!(
                "{name}: {} steps with the tools, {} with ours",
                theirs.len(),
                ours.len()
            ));
        }
        Ok(outcome)
    }))
}

/// What each step said, after its name.
fn steps_of(text: &str) -> Vec<&str> {
    text.split("=== ").skip(1).collect()
}
