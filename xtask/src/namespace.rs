//! The runner with which `cargo test` starts every test program.
//!
//! For whoever is not root it first creates a user namespace, in which they are root, and a network namespace
//! in it: tests can create the network namespaces that they need there (see `testns`). For root it starts a
//! program as a user without rights. The machine is not changed.

use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::{env, fs, process};

use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};

/// Executes `program` in place of this process. Returns only if that fails, with the reason.
pub(crate) fn run(program: &[String], as_user: bool) -> String {
    let Some((path, arguments)) = program.split_first() else { return "no program".to_owned() };
    let mut command = Command::new(path);
    command.args(arguments);
    if as_user {
        if let Err(why) = become_user(USER) {
            return format!("no user without rights can be had: {why}");
        }
    } else if !geteuid().is_root() {
        if let Err(why) = become_user(0) {
            // Tests that need a namespace report it themselves; the others can run.
            eprintln!("xtask: no user namespace ({why}): tests that need the kernel will be skipped");
        }
        // The user may not write the default, /run/xtables.lock.
        if env::var_os("XTABLES_LOCKFILE").is_none() {
            command.env("XTABLES_LOCKFILE", env::temp_dir().join(format!("xtables-{}.lock", process::id())));
        }
    }
    format!("{path}: {}", command.exec())
}

/// Makes a user namespace in which we are the user `new`, and own our files all the same. Root (0) gets a
/// network namespace as well; any other user loses all capabilities with the next program.
fn become_user(new: u32) -> Result<(), String> {
    let (user, group) = (geteuid(), getegid());
    let network = if new == 0 { CloneFlags::CLONE_NEWNET } else { CloneFlags::empty() };
    unshare(CloneFlags::CLONE_NEWUSER | network).map_err(|e| e.to_string())?;
    // Without the second line the kernel refuses the third to those who are not root (user_namespaces(7)).
    for (file, content) in [
        ("/proc/self/uid_map", format!("{new} {user} 1")),
        ("/proc/self/setgroups", "deny".to_owned()),
        ("/proc/self/gid_map", format!("{new} {group} 1")),
    ] {
        fs::write(file, content).map_err(|e| format!("{file}: {e}"))?;
    }
    Ok(())
}

/// A user as the first one of a machine.
const USER: u32 = 1000;
