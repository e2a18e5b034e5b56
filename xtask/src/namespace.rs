//! The runner with which `cargo test` starts every test program.
//!
//! As root it only starts the program. For other users it first creates a user namespace, in which the user
//! is root, and a network namespace in it: tests can create the network namespaces that they need there (see
//! `testns`). The machine is not changed.

use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::{env, fs, process};

use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};

/// Executes `program` in place of this process. Returns only if that fails, with the reason.
pub(crate) fn run(program: &[String]) -> String {
    let Some((path, arguments)) = program.split_first() else { return "no program".to_owned() };
    let mut command = Command::new(path);
    command.args(arguments);
    if !geteuid().is_root() {
        if let Err(why) = become_root_of_a_namespace() {
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

fn become_root_of_a_namespace() -> Result<(), String> {
    let (user, group) = (geteuid(), getegid());
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET).map_err(|e| e.to_string())?;
    // Without the second line the kernel refuses the third to those who are not root (user_namespaces(7)).
    for (file, content) in [
        ("/proc/self/uid_map", format!("0 {user} 1")),
        ("/proc/self/setgroups", "deny".to_owned()),
        ("/proc/self/gid_map", format!("0 {group} 1")),
    ] {
        fs::write(file, content).map_err(|e| format!("{file}: {e}"))?;
    }
    Ok(())
}
