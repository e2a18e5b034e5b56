//! The daemon as a process that follows a folder of manifests or an API server, and what can happen to it.

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

use super::api::Server;
use super::memory::Limit;
use super::{Rules, clock, object, objects};
use crate::Error;

/// A running program and the source of its objects, which go when this is dropped.
pub(super) struct Process {
    program: PathBuf,
    rules: Rules,
    memory: Option<Limit>,
    source: Source,
    child: Child,
}

/// Where the objects come from.
enum Source {
    /// A folder on a disk of its own.
    Folder(PathBuf),
    Api(Server),
}

impl Process {
    /// Starts the program with a folder, or, where there is a seed for its faults, with an API server.
    pub(super) fn start(
        program: PathBuf,
        rules: Rules,
        memory: Option<u32>,
        faults: Option<u64>,
    ) -> Result<Self, Error> {
        let source = match faults {
            Some(seed) => {
                let node = object(NODE)?;
                let server = Server::start(&node, seed);
                Source::Api(server.map_err(|error| Error::network("starting an API server", error))?)
            }
            None => Source::Folder(folder()?),
        };
        let memory = memory.map(Limit::of).transpose()?;
        let child = spawn(&program, rules, memory.as_ref(), &source, 0)?;
        Ok(Self { program, rules, memory, source, child })
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills it wherever it is, and starts another, whose clocks are ahead of or behind those of the machine by
    /// so many seconds.
    pub(super) fn kill(&mut self, ahead: i64) -> Result<(), Error> {
        self.end(Signal::SIGKILL)?;
        self.child = spawn(&self.program, self.rules, self.memory.as_ref(), &self.source, ahead)?;
        Ok(())
    }

    /// Returns whether it has clocks other than those of the machine: older kernels have none. It has them once
    /// it works, not yet when it has just been started.
    pub(super) fn has_other_clocks(&self) -> bool {
        clock::is_other(self.child.id())
    }

    /// Returns the API server, where the objects come from one.
    pub(super) const fn api(&self) -> Option<&Server> {
        match &self.source {
            Source::Api(server) => Some(server),
            Source::Folder(_) => None,
        }
    }

    /// Says how its memory is limited.
    pub(super) fn limit(&self) -> Option<String> {
        self.memory.as_ref().map(ToString::to_string)
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

    /// Replaces an object as a whole.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<(), Error> {
        match &self.source {
            Source::Folder(folder) => {
                let new = folder.join("new");
                told(folder, fs::write(&new, text).and_then(|()| fs::rename(new, path(folder, name))))
            }
            Source::Api(server) => objects(text)?
                .iter()
                .try_for_each(|object| server.set(name, object))
                .map_err(|error| Error::network("an object for the API server", error)),
        }
    }

    pub(super) fn remove(&self, name: &str) -> Result<(), Error> {
        match &self.source {
            Source::Folder(folder) => told(folder, fs::remove_file(path(folder, name))),
            Source::Api(server) => {
                server.delete(name);
                Ok(())
            }
        }
    }

    /// Harms the source as a whole for a moment: the disk is full while all is written anew, or all manifests are
    /// cut short, or the API server forgets what has changed. Returns which it was.
    pub(super) fn harm(&self, objects: &BTreeMap<String, String>, full: bool) -> Result<&'static str, Error> {
        match &self.source {
            Source::Folder(folder) if full => fill_disk(folder, objects).map(|()| "full disks"),
            Source::Folder(folder) => cut_short(folder, objects).map(|()| "files cut short"),
            Source::Api(server) => {
                server.forget();
                Ok("histories forgotten")
            }
        }
    }
}

/// Makes a folder on a disk of its own.
fn folder() -> Result<PathBuf, Error> {
    let folder = std::env::temp_dir().join(format!("sluicegate-soak-{}", std::process::id()));
    fs::create_dir_all(&folder).map_err(|error| Error::network(folder.display().to_string(), error))?;
    own_disk(&folder).map_err(|error| Error::network("mounting a disk for the manifests", error))?;
    Ok(folder)
}

/// Writes all manifests in place, at first the half of each, as on a disk that is full for a moment.
fn cut_short(folder: &Path, objects: &BTreeMap<String, String>) -> Result<(), Error> {
    for (name, text) in objects {
        told(folder, fs::write(path(folder, name), text.get(..text.len() / 2).unwrap_or_default()))?;
    }
    thread::sleep(Duration::from_millis(300));
    objects.iter().try_for_each(|(name, text)| told(folder, fs::write(path(folder, name), text)))
}

/// Writes all manifests in place while the disk is full, and again when it has room.
fn fill_disk(folder: &Path, objects: &BTreeMap<String, String>) -> Result<(), Error> {
    let open = |name: &String| told(folder, File::create(path(folder, name)));
    let mut files: Vec<File> = objects.keys().map(open).collect::<Result<_, _>>()?;
    let filler = folder.join("filler");
    let mut all = told(folder, File::create(&filler))?;
    let is_full = |error: &io::Error| error.kind() == io::ErrorKind::StorageFull;
    loop {
        match all.write_all(&[0; PAGE]) {
            Ok(()) => {}
            Err(error) if is_full(&error) => break,
            Err(error) => return told(folder, Err(error)),
        }
    }
    for (file, text) in files.iter_mut().zip(objects.values()) {
        match file.write_all(text.as_bytes()) {
            Err(error) if is_full(&error) => {}
            written => {
                let text = format!("expected a full disk, found {written:?}");
                return told(folder, Err(io::Error::other(text)));
            }
        }
    }
    drop((files, all));
    thread::sleep(Duration::from_millis(300));
    told(folder, fs::remove_file(filler))?;
    objects.iter().try_for_each(|(name, text)| told(folder, fs::write(path(folder, name), text)))
}

fn path(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.yaml"))
}

fn told<T>(folder: &Path, result: io::Result<T>) -> Result<T, Error> {
    result.map_err(|error| Error::network(folder.display().to_string(), error))
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Source::Folder(folder) = &self.source {
            // The disk goes with the last thread that sees it.
            let _ = nix::mount::umount2(folder, nix::mount::MntFlags::MNT_DETACH);
            let _ = fs::remove_dir_all(folder);
        }
    }
}

/// Mounts a small disk on a folder, for this thread and the processes that it starts.
fn own_disk(folder: &Path) -> nix::Result<()> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    let nothing = None::<&str>;
    mount(nothing, "/", nothing, MsFlags::MS_PRIVATE | MsFlags::MS_REC, nothing)?;
    mount(Some("tmpfs"), folder, Some("tmpfs"), MsFlags::empty(), Some(DISK))
}

fn spawn(
    program: &Path,
    rules: Rules,
    memory: Option<&Limit>,
    source: &Source,
    ahead: i64,
) -> Result<Child, Error> {
    let flags: &[&str] = match rules {
        Rules::Maps => &["--proxy-mode=nftables", "--layout=maps"],
        Rules::Chains => &["--proxy-mode=nftables", "--layout=chains"],
        Rules::IptablesNft => &["--proxy-mode=iptables", "--iptables-backend=nft"],
        Rules::IptablesLegacy => &["--proxy-mode=iptables", "--iptables-backend=legacy"],
        Rules::IpvsNft => &["--proxy-mode=ipvs", "--iptables-backend=nft"],
        Rules::IpvsLegacy => &["--proxy-mode=ipvs", "--iptables-backend=legacy"],
    };
    // Each of these becomes the next program, and last of all this one, under the same number.
    let before = clock::ahead(ahead).into_iter().chain(memory.map(Limit::command).unwrap_or_default());
    let mut words = before.chain([program.display().to_string()]);
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words);
    match source {
        Source::Folder(folder) => command.arg("run").arg("--manifests").arg(folder),
        Source::Api(server) => command.args(["run", "--master", &server.url()]),
    };
    let started = command
        .args(["--hostname-override=node", "--bind-address=192.168.0.2,fd00:192:168::2"])
        .args(["--iptables-min-sync-period=50ms", "--ipvs-min-sync-period=50ms", "--ipvs-sync-period=2s"])
        .args(["--healthz-bind-address=", "--metrics-bind-address="])
        // By chance most services may be deleted while it does not run; without this it would wait for them.
        .arg("--allow-empty")
        .args(flags)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    started.map_err(|error| Error::network(program.display().to_string(), error))
}

/// The object of the node, as an API server has one.
const NODE: &str = "{apiVersion: v1, kind: Node, metadata: {name: node}, status: {addresses: [{type: InternalIP, \
                    address: 192.168.0.2}, {type: InternalIP, address: 'fd00:192:168::2'}]}}\n";
/// The size of the disk: room for the largest number of services.
const DISK: &str = "size=96m";
/// In bytes.
const PAGE: usize = 4096;
