//! Network namespaces that live as long as a value of ours.

use std::fs::{self, File};
use std::os::fd::{AsFd as _, AsRawFd as _, RawFd};
use std::thread;

use nix::sched::{CloneFlags, setns, unshare};
use nix::unistd::{getegid, geteuid};

use crate::Error;

/// A network namespace. It disappears with this value, its threads and its sockets.
#[derive(Debug)]
pub struct Namespace {
    name: String,
    file: File,
}

impl Namespace {
    /// Makes an empty namespace. `name` is for messages only.
    ///
    /// # Errors
    /// Without `CAP_SYS_ADMIN` over the current user namespace; see [`enter_user_namespace`].
    pub fn new(name: &str) -> Result<Self, Error> {
        let made = thread::scope(|scope| {
            let thread = scope.spawn(|| -> std::io::Result<File> {
                unshare(CloneFlags::CLONE_NEWNET)?;
                File::open("/proc/thread-self/ns/net")
            });
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        let file = made.map_err(|e| Error::network(format!("making the network namespace {name}"), e))?;
        Ok(Self { name: name.to_owned(), file })
    }

    /// The name of the namespace.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs `f` inside, on a thread of its own. A panic is handed on.
    ///
    /// # Panics
    /// When the namespace cannot be entered, although this process created it.
    pub fn run<T: Send>(&self, f: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| {
            let thread = scope.spawn(|| {
                self.enter();
                f()
            });
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Starts a thread inside that runs beside the caller.
    ///
    /// # Errors
    /// When no descriptor can be had.
    pub fn spawn(&self, f: impl FnOnce() + Send + 'static) -> Result<(), Error> {
        let file = self.file.try_clone().map_err(|e| Error::network("duplicating a namespace", e))?;
        let inside = Self { name: self.name.clone(), file };
        thread::spawn(move || {
            inside.enter();
            f();
        });
        Ok(())
    }

    /// Sets a sysctl of the namespace, named by its path below `/proc/sys/`.
    ///
    /// # Errors
    /// When it cannot be written, as where `/proc/sys` is mounted read-only.
    pub fn sysctl(&self, path: &str, value: &str) -> Result<(), Error> {
        // /proc/sys/net shows the network namespace of the thread that opens it.
        self.run(|| fs::write(format!("/proc/sys/{path}"), value))
            .map_err(|e| Error::network(format!("setting {path} to {value} in {}", self.name), e))
    }

    /// The command that opens a shell inside while this process runs.
    #[must_use]
    pub fn shell_command(&self) -> String {
        let pid = std::process::id();
        let fd = self.file.as_raw_fd();
        let user = if geteuid().is_root() && !in_user_namespace() {
            String::new()
        } else {
            format!("--user=/proc/{pid}/ns/user --preserve-credentials ")
        };
        format!("nsenter {user}--net=/proc/{pid}/fd/{fd} bash")
    }

    pub(super) fn raw_fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    fn enter(&self) {
        setns(self.file.as_fd(), CloneFlags::CLONE_NEWNET).expect("a namespace of our own can be entered");
    }
}

/// Makes the process root of a new user namespace, if it may not make network namespaces as it is.
///
/// Must be called before any thread is started.
///
/// # Errors
/// When user namespaces are not permitted to ordinary users either.
pub fn enter_user_namespace() -> Result<(), Error> {
    let may = thread::spawn(|| unshare(CloneFlags::CLONE_NEWNET).is_ok()).join().unwrap_or(false);
    if may {
        return Ok(());
    }
    let (uid, gid) = (geteuid(), getegid());
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET).map_err(|e| {
        Error::network(
            "making a user namespace",
            format!(
                "{e}; run this as root, or permit user namespaces (sysctl kernel.unprivileged_userns_clone, \
                 kernel.apparmor_restrict_unprivileged_userns, user.max_user_namespaces)"
            ),
        )
    })?;
    let write = |file: &str, text: String| {
        fs::write(format!("/proc/self/{file}"), text)
            .map_err(|e| Error::network(format!("writing {file}"), e))
    };
    write("setgroups", "deny".into())?;
    write("uid_map", format!("0 {uid} 1"))?;
    write("gid_map", format!("0 {gid} 1"))
}

/// Whether the ids of this process are mapped, that is, it is not in the machine's first user namespace.
fn in_user_namespace() -> bool {
    fs::read_to_string("/proc/self/uid_map").is_ok_and(|map| !map.contains("4294967295"))
}
