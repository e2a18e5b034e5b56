//! A network namespace for the recipe: what it changes is gone when it ends.

use std::error::Error;
use std::fs;
use std::process::Command;

use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};

/// Moves this process to a new network namespace with loopback up. Whoever may not make one becomes root of a
/// new user namespace first. Must be called before any thread is started.
pub(crate) fn enter() -> Result<(), Box<dyn Error>> {
    let (user, group) = (geteuid(), getegid());
    match unshare(CloneFlags::CLONE_NEWNET) {
        Ok(()) => {}
        Err(Errno::EPERM) => {
            unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET).map_err(|error| {
                format!("a user namespace cannot be made ({error}): run this as root, or permit them")
            })?;
            fs::write("/proc/self/setgroups", "deny")?;
            fs::write("/proc/self/uid_map", format!("0 {user} 1"))?;
            fs::write("/proc/self/gid_map", format!("0 {group} 1"))?;
        }
        Err(error) => return Err(format!("a network namespace cannot be made: {error}").into()),
    }
    let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
    let up = Command::new("ip").args(["link", "set", "lo", "up"]).env("PATH", path).status();
    match up {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`ip link set lo up`: {status}").into()),
        Err(error) => Err(format!("`ip` of iproute2, which sets loopback up: {error}").into()),
    }
}
