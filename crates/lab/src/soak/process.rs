//! The daemon as a process that follows a folder of manifests, and what can happen to a process.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;

use super::Rules;
use crate::Error;

/// A running program and its folder, which go when this is dropped.
pub(super) struct Process {
    program: PathBuf,
    rules: Rules,
    memory: Option<u32>,
    folder: PathBuf,
    child: Child,
}

impl Process {
    pub(super) fn start(program: PathBuf, rules: Rules, memory: Option<u32>) -> Result<Self, Error> {
        let folder = std::env::temp_dir().join(format!("sluicegate-soak-{}", std::process::id()));
        fs::create_dir_all(&folder).map_err(|error| Error::network(folder.display().to_string(), error))?;
        own_disk(&folder).map_err(|error| Error::network("mounting a disk for the manifests", error))?;
        let child = spawn(&program, rules, memory, &folder)?;
        Ok(Self { program, rules, memory, folder, child })
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills it wherever it is, and starts another.
    pub(super) fn kill(&mut self) -> Result<(), Error> {
        self.end(Signal::SIGKILL)?;
        self.child = spawn(&self.program, self.rules, self.memory, &self.folder)?;
        Ok(())
    }

    pub(super) fn stop(&mut self) -> Result<(), Error> {
        self.end(Signal::SIGTERM)
    }

    /// Fails if it has ended by itself.
    fn end(&mut self, by: Signal) -> Result<(), Error> {
        let failed = |error| Error::network("waiting for the daemon", error);
        if let Some(status) = self.child.try_wait().map_err(failed)? {
            return Err(Error::network("the daemon ended by itself", status));
        }
        self.signal(by)?;
        self.child.wait().map_err(failed)?;
        Ok(())
    }

    /// Asks it to compare everything, once it listens for that: before, the signal ends it, as it does any
    /// process.
    pub(super) fn resync(&self) -> Result<(), Error> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id())).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = caught.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).unwrap_or_default();
        match caught & 1 << (Signal::SIGHUP as u32 - 1) {
            0 => Ok(()),
            _ => self.signal(Signal::SIGHUP),
        }
    }

    fn signal(&self, signal: Signal) -> Result<(), Error> {
        let id = i32::try_from(self.child.id()).unwrap_or(i32::MAX);
        let sent = signal::kill(Pid::from_raw(id), signal);
        sent.map_err(|error| Error::network(format!("sending {signal} to the daemon"), error))
    }

    /// Stops it, does something, and lets it go on.
    pub(super) fn pause(&self, meanwhile: impl FnOnce()) -> Result<(), Error> {
        self.signal(Signal::SIGSTOP)?;
        meanwhile();
        self.signal(Signal::SIGCONT)
    }

    /// Replaces a manifest as a whole.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<(), Error> {
        let new = self.folder.join("new");
        self.told(fs::write(&new, text).and_then(|()| fs::rename(new, self.path(name))))
    }

    pub(super) fn remove(&self, name: &str) -> Result<(), Error> {
        self.told(fs::remove_file(self.path(name)))
    }

    /// Writes all manifests in place, at first the half of each, as on a disk that is full for a moment.
    pub(super) fn cut_short(&self, objects: &BTreeMap<String, String>) -> Result<(), Error> {
        for (name, text) in objects {
            self.told(fs::write(self.path(name), text.get(..text.len() / 2).unwrap_or_default()))?;
        }
        thread::sleep(Duration::from_millis(300));
        objects.iter().try_for_each(|(name, text)| self.told(fs::write(self.path(name), text)))
    }

    /// Writes all manifests in place while the disk is full, and again when it has room.
    pub(super) fn fill_disk(&self, objects: &BTreeMap<String, String>) -> Result<(), Error> {
        let open = |name: &String| self.told(File::create(self.path(name)));
        let mut files: Vec<File> = objects.keys().map(open).collect::<Result<_, _>>()?;
        let filler = self.folder.join("filler");
        let mut all = self.told(File::create(&filler))?;
        let is_full = |error: &io::Error| error.kind() == io::ErrorKind::StorageFull;
        loop {
            match all.write_all(&[0; PAGE]) {
                Ok(()) => {}
                Err(error) if is_full(&error) => break,
                Err(error) => return self.told(Err(error)),
            }
        }
        for (file, text) in files.iter_mut().zip(objects.values()) {
            match file.write_all(text.as_bytes()) {
                Err(error) if is_full(&error) => {}
                written => {
                    let text = format!("expected a full disk, found {written:?}");
                    return self.told(Err(io::Error::other(text)));
                }
            }
        }
        drop((files, all));
        thread::sleep(Duration::from_millis(300));
        self.told(fs::remove_file(filler))?;
        objects.iter().try_for_each(|(name, text)| self.told(fs::write(self.path(name), text)))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.yaml"))
    }

    fn told<T>(&self, result: io::Result<T>) -> Result<T, Error> {
        result.map_err(|error| Error::network(self.folder.display().to_string(), error))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // The disk goes with the last thread that sees it.
        let _ = nix::mount::umount2(&self.folder, nix::mount::MntFlags::MNT_DETACH);
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Mounts a small disk on a folder, for this thread and the processes that it starts.
fn own_disk(folder: &Path) -> nix::Result<()> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    let nothing = None::<&str>;
    mount(nothing, "/", nothing, MsFlags::MS_PRIVATE | MsFlags::MS_REC, nothing)?;
    mount(Some("tmpfs"), folder, Some("tmpfs"), MsFlags::empty(), Some(DISK))
}

fn spawn(program: &Path, rules: Rules, memory: Option<u32>, folder: &Path) -> Result<Child, Error> {
    let flags: &[&str] = match rules {
        Rules::Maps => &["--proxy-mode=nftables", "--layout=maps"],
        Rules::Chains => &["--proxy-mode=nftables", "--layout=chains"],
        Rules::IptablesNft => &["--proxy-mode=iptables", "--iptables-backend=nft"],
        Rules::IptablesLegacy => &["--proxy-mode=iptables", "--iptables-backend=legacy"],
        Rules::IpvsNft => &["--proxy-mode=ipvs", "--iptables-backend=nft"],
        Rules::IpvsLegacy => &["--proxy-mode=ipvs", "--iptables-backend=legacy"],
    };
    let mut command = match memory {
        None => Command::new(program),
        // The shell sets the limit and becomes the program.
        Some(megabytes) => {
            let mut shell = Command::new("sh");
            let limit = (u64::from(megabytes) * 1024).to_string();
            shell.args(["-c", "ulimit -d \"$0\" && exec \"$@\""]).arg(limit).arg(program);
            shell
        }
    };
    let started = command
        .args(["run", "--hostname-override=node", "--bind-address=192.168.0.2,fd00:192:168::2"])
        .args(["--iptables-min-sync-period=50ms", "--ipvs-min-sync-period=50ms", "--ipvs-sync-period=2s"])
        .args(["--healthz-bind-address=", "--metrics-bind-address="])
        // By chance most services may be deleted while it does not run; without this it would wait for them.
        .arg("--allow-empty")
        .args(flags)
        .arg("--manifests")
        .arg(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    started.map_err(|error| Error::network(program.display().to_string(), error))
}

/// The size of the disk: room for the largest number of services.
const DISK: &str = "size=96m";
/// In bytes.
const PAGE: usize = 4096;
