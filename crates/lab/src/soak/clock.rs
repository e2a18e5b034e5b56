//! Clocks of a process that are ahead of or behind those of the machine, as after a restart of the machine or a
//! long suspension. The time of day cannot differ: a time namespace (Linux 5.6) has the two clocks alone that
//! count from the start.

use std::fs;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

/// Returns the words before a program that give it clocks which are ahead of those of the machine by so many
/// seconds; none where that is not possible.
pub(super) fn ahead(seconds: i64) -> Vec<String> {
    if seconds == 0 || !*IS_POSSIBLE {
        return Vec::new();
    }
    let offset = seconds.to_string();
    ["unshare", "--time", "--monotonic", &offset, "--boottime", &offset, "--"].map(str::to_owned).into()
}

/// Returns whether a process has clocks other than those of the machine. A program that makes them has them only
/// itself where the kernel gives them with the next program (Linux 6.3).
pub(super) fn is_other(process: u32) -> bool {
    let of = |process: &str| fs::read_link(format!("/proc/{process}/ns/time")).ok();
    of(&process.to_string()).is_some_and(|clocks| Some(clocks) != of("self"))
}

/// Returns the time since the start of the machine, in seconds.
pub(super) fn uptime() -> i64 {
    let text = fs::read_to_string("/proc/uptime").unwrap_or_default();
    text.split('.').next().and_then(|seconds| seconds.parse().ok()).unwrap_or_default()
}

static IS_POSSIBLE: LazyLock<bool> = LazyLock::new(|| {
    let mut command = Command::new("unshare");
    command.args(["--time", "--monotonic", "1", "--boottime", "1", "--", "true"]);
    command.stderr(Stdio::null()).status().is_ok_and(|status| status.success())
});
