//! The lock that all programs of iptables-legacy take before they read a table to change it: flock(2) of a
//! file.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use sluicegate_netlink::Errno;

use crate::Error;

/// How the lock is taken.
///
/// The kernel replaces a table as a whole, and notices a change in between only if it changed the number of
/// rules. So whoever reads, changes and replaces needs the lock, as the tool does.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lock {
    /// The file; iptables takes `/run/xtables.lock`, or what `XTABLES_LOCKFILE` says.
    pub path: PathBuf,
    /// How long to wait for another program.
    pub wait: Duration,
}

impl Default for Lock {
    /// The file that iptables takes, and five seconds.
    fn default() -> Self {
        let path = std::env::var_os("XTABLES_LOCKFILE").filter(|path| !path.is_empty());
        let path = path.map_or_else(|| PathBuf::from("/run/xtables.lock"), PathBuf::from);
        Self { path, wait: Duration::from_secs(5) }
    }
}

impl Lock {
    /// Sets the file.
    #[must_use]
    pub fn path(mut self, path: impl Into<PathBuf>) -> Self {
        self.path = path.into();
        self
    }

    /// Sets how long to wait for another program.
    #[must_use]
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// Takes the lock, which is held until the file is dropped.
    pub(super) fn take(&self) -> Result<File, Error> {
        let wrong = |errno: i32| Error::LockFile { path: self.path.clone(), errno: Errno(errno) };
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&self.path);
        let file = file.map_err(|error| wrong(error.raw_os_error().unwrap_or_default()))?;
        let start = Instant::now();
        let mut pause = Duration::from_millis(1);
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(file),
                Err(rustix::io::Errno::WOULDBLOCK) => (),
                Err(error) => return Err(wrong(error.raw_os_error())),
            }
            let left = self.wait.saturating_sub(start.elapsed());
            if left.is_zero() {
                return Err(Error::Locked { path: self.path.clone(), waited: self.wait });
            }
            thread::sleep(pause.min(left));
            pause = (pause * 2).min(Duration::from_millis(50));
        }
    }
}
