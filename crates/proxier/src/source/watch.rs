//! Watches manifest files, and sends updates when they change.
//!
//! inotify only triggers a scan. A scan compares device, inode, size and times of each file, and reads a file
//! again when one of these differs. So every way to replace a file works: written in place, renamed over, or
//! swapped with its whole directory, as `..data` of a ConfigMap is. A scan every few seconds finds changes
//! without events (network file systems, targets of links elsewhere).
//!
//! Where inotify does not work (the user has no instance left, say), scans every second find all changes.
//!
//! A file is not read while it is being written: neither before a short time without events, nor while a
//! writer has it open. A file that does not parse, or whose directory is gone, keeps its last objects and
//! leads to an [`Update::Warning`]. Only a file that was deleted from an existing directory deletes its
//! objects. Where more than half of all services, or of all slices, would be deleted at once, that is
//! reported and waits for a second look: a volume that is mounted late, or a list that is written anew, is no
//! wish to have nothing.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, InotifyEvent, WatchDescriptor};
use tokio::sync::mpsc::Sender;

use super::update::{Kind, ObjectName, Update};
use super::{Manifest, Object, expand, is_manifest, read};

/// Watches `paths`, files and directories as [`read`] takes them, until the receiver of updates is dropped.
/// Blocks the thread.
///
/// The first updates are an [`Update::Replace`] of each kind, when every file was read. While a file cannot
/// be read, there are only warnings.
pub fn watch(paths: &[PathBuf], updates: &Sender<Update>) {
    follow(paths, updates, || Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC));
}

/// Watches with the instances of inotify that `open` gives.
fn follow(paths: &[PathBuf], updates: &Sender<Update>, open: impl Fn() -> Result<Inotify, Errno>) {
    let mut watches = Watches::new(paths);
    let mut manifests = Manifests::new(paths.to_vec());
    loop {
        // Watches are set before the scan, so that no change in between is missed.
        let failure = watches.renew(paths, &open);
        manifests.forget(&std::mem::take(&mut watches.touched));
        let failure = failure.map(|errno| {
            let errno = io::Error::from(errno);
            Update::Warning(format!("watching files with inotify: {errno}; looking at them every second"))
        });
        for update in failure.into_iter().chain(manifests.scan()) {
            if updates.blocking_send(update).is_err() {
                return;
            }
        }
        let is_well = manifests.is_well() && watches.inotify.is_some();
        let until = Instant::now() + if is_well { LOOK_EVERY } else { LOOK_EVERY_WITH_WARNINGS };
        while !watches.wait(until) {
            if updates.is_closed() {
                return;
            }
            if Instant::now() >= until {
                break;
            }
        }
    }
}

/// The directories that are watched.
struct Watches {
    /// `None` while inotify does not work.
    inotify: Option<Inotify>,
    /// The failure that was reported last.
    reported: Option<Errno>,
    of: HashMap<PathBuf, WatchDescriptor>,
    /// Files that were written to and not closed yet.
    writing: HashSet<(WatchDescriptor, OsString)>,
    /// The names of files that were written, linked or renamed since the last scan.
    touched: HashSet<OsString>,
    /// The last parts of the paths to watch.
    names: HashSet<OsString>,
}

impl Watches {
    fn new(paths: &[PathBuf]) -> Self {
        let names = paths.iter().filter_map(|path| path.file_name().map(OsString::from)).collect();
        Self {
            inotify: None,
            reported: None,
            of: HashMap::new(),
            writing: HashSet::new(),
            touched: HashSet::new(),
            names,
        }
    }

    /// Watches the directories that exist now. A directory that was replaced is a new one. Returns a failure
    /// of inotify, unless it is the same as the last time.
    fn renew(&mut self, paths: &[PathBuf], open: &impl Fn() -> Result<Inotify, Errno>) -> Option<Errno> {
        let inotify = match self.inotify.take().map_or_else(open, Ok) {
            Ok(inotify) => self.inotify.insert(inotify),
            Err(errno) => return (self.reported.replace(errno) != Some(errno)).then_some(errno),
        };
        self.reported = None;
        let flags = AddWatchFlags::IN_CREATE
            | AddWatchFlags::IN_MODIFY
            | AddWatchFlags::IN_CLOSE_WRITE
            | AddWatchFlags::IN_MOVE
            | AddWatchFlags::IN_DELETE
            | AddWatchFlags::IN_DELETE_SELF
            | AddWatchFlags::IN_MOVE_SELF
            | AddWatchFlags::IN_ATTRIB;
        for directory in directories(paths) {
            // A directory that cannot be watched is scanned periodically all the same.
            let Ok(new) = inotify.add_watch(&directory, flags) else { continue };
            if let Some(old) = self.of.insert(directory, new).filter(|old| *old != new)
                && !self.of.values().any(|other| *other == old)
            {
                // The watch is gone already if the directory is.
                let _ = inotify.rm_watch(old);
                self.writing.retain(|(of, _)| *of != old);
            }
        }
        None
    }

    /// Waits for an event, and then for a time without events. Returns false after a second without an event,
    /// or at `until`.
    fn wait(&mut self, until: Instant) -> bool {
        let slice = until.min(Instant::now() + LISTEN);
        if !self.read(slice) {
            return false;
        }
        let began = Instant::now();
        loop {
            let is_writing = !self.writing.is_empty();
            let limit = if is_writing { LONGEST_WRITE } else { LONGEST_UNREST };
            let quiet = Instant::now() + QUIET;
            if quiet > began + limit {
                // A writer may keep the file open forever: read what is there.
                self.writing.clear();
                return true;
            }
            if !self.read(quiet) && self.writing.is_empty() {
                return true;
            }
        }
    }

    /// Reads events until a time. Returns true after the first one. Where that fails, there are no more
    /// events until the next scan opens another instance.
    fn read(&mut self, until: Instant) -> bool {
        match self.try_read(until) {
            Ok(seen) => seen,
            Err(_) => {
                self.inotify = None;
                // The watches of the old instance, and what it said of writers.
                self.of.clear();
                self.writing.clear();
                false
            }
        }
    }

    fn try_read(&mut self, until: Instant) -> Result<bool, Errno> {
        loop {
            let Some(inotify) = &self.inotify else {
                thread::sleep(until.saturating_duration_since(Instant::now()));
                return Ok(false);
            };
            let events = match inotify.read_events() {
                Ok(events) => events,
                Err(Errno::EAGAIN | Errno::EINTR) => Vec::new(),
                Err(errno) => return Err(errno),
            };
            // Every event is recorded, so `any`, which stops at the first, does not do.
            if events.iter().filter(|event| self.note(event)).count() > 0 {
                return Ok(true);
            }
            // Also after events: those of other files may come without end.
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            // Rounded up, or it would spin through the last millisecond.
            let timeout = PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX);
            let Some(inotify) = &self.inotify else { continue };
            match poll(&mut [PollFd::new(inotify.as_fd(), PollFlags::POLLIN)], timeout) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno),
            }
        }
    }

    /// Records an event. Returns false for a file that is not a manifest.
    fn note(&mut self, event: &InotifyEvent) -> bool {
        // An event of the directory itself has no name.
        let Some(name) = event.name.clone() else { return true };
        if !self.names.contains(&name)
            && !is_manifest(Path::new(&name))
            && !name.as_encoded_bytes().starts_with(b"..")
        {
            return false;
        }
        let key = (event.wd, name.clone());
        if event.mask.contains(AddWatchFlags::IN_MODIFY) {
            self.writing.insert(key);
        } else {
            // The file was closed, deleted or renamed.
            self.writing.remove(&key);
        }
        self.touched.insert(name);
        true
    }
}

/// Returns the directories to watch: those in `paths`, and the parents of all `paths`, to see when they are
/// created again.
fn directories(paths: &[PathBuf]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in paths {
        if path.is_dir() {
            found.push(path.clone());
        }
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        found.push(parent.unwrap_or(Path::new(".")).to_owned());
    }
    found.sort();
    found.dedup();
    found
}

/// The known files, and the objects in them.
struct Manifests {
    paths: Vec<PathBuf>,
    files: BTreeMap<PathBuf, File>,
    /// The file that each object is from: the first one that has it.
    owners: HashMap<ObjectName, PathBuf>,
    /// The warnings that were sent, by path, so that each is sent once.
    reported: BTreeMap<PathBuf, String>,
    is_complete: bool,
    /// The objects that were read before the first lists were complete.
    first: BTreeMap<ObjectName, Object>,
    doubted: Option<Doubted>,
}

/// Objects whose deletion waits for a second look.
struct Doubted {
    names: BTreeSet<ObjectName>,
    since: Instant,
}

struct File {
    stamp: Option<Stamp>,
    objects: Vec<ObjectName>,
}

/// The metadata that changes with the content of a file.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl From<&Metadata> for Stamp {
    fn from(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

impl Manifests {
    fn new(paths: Vec<PathBuf>) -> Self {
        Self {
            paths,
            files: BTreeMap::new(),
            owners: HashMap::new(),
            reported: BTreeMap::new(),
            is_complete: false,
            first: BTreeMap::new(),
            doubted: None,
        }
    }

    /// Makes the next scan read files of these names, even if their metadata is unchanged.
    fn forget(&mut self, names: &HashSet<OsString>) {
        let is_named = |path: &Path| path.file_name().is_some_and(|name| names.contains(name));
        self.files.iter_mut().filter(|(path, _)| is_named(path)).for_each(|(_, file)| file.stamp = None);
    }

    /// Returns true when every file was read without a warning.
    fn is_well(&self) -> bool {
        self.is_complete && self.reported.is_empty() && self.doubted.is_none()
    }

    /// Scans all files, and returns the updates.
    fn scan(&mut self) -> Vec<Update> {
        let mut warnings = BTreeMap::new();
        let listed = self.list(&mut warnings);
        let mut found = Vec::new();
        let vanished: Vec<PathBuf> =
            self.files.keys().filter(|path| !listed.contains(*path)).cloned().collect();
        let mut lost: HashSet<ObjectName> = HashSet::new();
        for path in vanished {
            if !self.is_kept(&path, &warnings)
                && let Some(file) = self.files.remove(&path)
            {
                lost.extend(self.disown(&path, &file.objects));
            }
        }
        // The second round reads files that have objects which another file no longer has.
        for round in 0..2 {
            for path in &listed {
                if let Some(objects) = self.reread(path, &mut lost, &mut warnings) {
                    found.extend(objects);
                }
            }
            if round == 0 {
                self.pass_on(&lost);
            }
        }
        let mut updates = self.warnings(warnings);
        let deleted = lost.into_iter().filter(|name| !self.owners.contains_key(name));
        if self.is_complete {
            let deleted: BTreeSet<_> = deleted.collect();
            let deleted = self.doubt(deleted, &mut updates);
            updates.extend(deleted.into_iter().map(Update::Delete));
            updates.extend(found.into_iter().map(Update::Apply));
            return updates;
        }
        deleted.for_each(|name| drop(self.first.remove(&name)));
        self.first.extend(found.into_iter().map(|object| (ObjectName::of(&object), object)));
        // A file with a warning is no obstacle if an earlier content is known.
        if self.reported.keys().all(|path| self.files.contains_key(path)) {
            self.is_complete = true;
            updates.extend(replace_all(std::mem::take(&mut self.first)));
        }
        updates
    }

    /// Returns what is to be deleted now: not what was found to be gone just now, where that is most of what
    /// there is, but what is still gone at the second look.
    fn doubt(&mut self, deleted: BTreeSet<ObjectName>, updates: &mut Vec<Update>) -> BTreeSet<ObjectName> {
        let count = |names: &mut dyn Iterator<Item = &ObjectName>, kind| {
            names.filter(|name| name.kind() == kind).count()
        };
        let most = [Kind::Service, Kind::EndpointSlice].into_iter().find_map(|kind| {
            let gone = count(&mut deleted.iter(), kind);
            let all = gone + count(&mut self.owners.keys(), kind);
            (gone >= MANY && 2 * gone > all).then(|| format!("{gone} of {all} {kind}s"))
        });
        let mut now = BTreeSet::new();
        if let Some(doubted) = &mut self.doubted {
            doubted.names.retain(|name| !self.owners.contains_key(name));
            if doubted.names.is_empty() {
                tracing::info!("what was gone from the manifests is there again");
                self.doubted = None;
            } else if doubted.since.elapsed() >= SECOND_LOOK {
                let told = match doubted.names.len() {
                    1 => "1 object is still gone from the manifests, and is deleted now".to_owned(),
                    gone => format!("{gone} objects are still gone from the manifests, and are deleted now"),
                };
                updates.push(Update::Warning(told));
                now.append(&mut doubted.names);
                self.doubted = None;
            }
        }
        let Some(most) = most else {
            now.extend(deleted);
            return now;
        };
        updates.push(Update::Warning(format!(
            "{most} are gone from the manifests at once; looking again in {SECOND_LOOK:?} before they are deleted"
        )));
        let doubted =
            self.doubted.get_or_insert_with(|| Doubted { names: BTreeSet::new(), since: Instant::now() });
        doubted.names.extend(deleted);
        now
    }

    /// Lists the files, in the order of precedence.
    fn list(&self, warnings: &mut BTreeMap<PathBuf, String>) -> Vec<PathBuf> {
        let mut listed = Vec::new();
        for path in &self.paths {
            match expand(std::slice::from_ref(path)) {
                Ok(files) => listed.extend(files),
                Err(error) => {
                    let stays = if self.is_complete { "; its last objects stay in use" } else { "" };
                    warnings.insert(path.clone(), format!("{error}{stays}"));
                }
            }
        }
        let mut seen = HashSet::new();
        listed.retain(|path| seen.insert(path.clone()));
        listed
    }

    /// Returns true for a missing file that keeps its objects: one of `paths`, or one whose directory is
    /// missing too.
    fn is_kept(&self, path: &Path, warnings: &BTreeMap<PathBuf, String>) -> bool {
        warnings.contains_key(path) || path.parent().is_some_and(|parent| warnings.contains_key(parent))
    }

    /// Reads a file if it changed. Returns its objects, and adds those that it no longer has to `lost`.
    fn reread(
        &mut self,
        path: &Path,
        lost: &mut HashSet<ObjectName>,
        warnings: &mut BTreeMap<PathBuf, String>,
    ) -> Option<Vec<Object>> {
        let stamp = fs::metadata(path).ok().as_ref().map(Stamp::from);
        if let Some(file) = self.files.get(path)
            && file.stamp.is_some()
            && file.stamp == stamp
        {
            if let Some(warning) = self.reported.get(path) {
                warnings.insert(path.to_owned(), warning.clone());
            }
            return None;
        }
        let mut objects = Vec::new();
        match read(&[path], |manifest| objects.push(manifest)) {
            Ok(ignored) if ignored.is_empty() => {}
            Ok(ignored) => tracing::info!("{}: ignored: {ignored}", path.display()),
            Err(error) => {
                let warning = match self.files.get(path) {
                    Some(_) => format!("{error}; the last objects of {} stay in use", path.display()),
                    None => error.to_string(),
                };
                warnings.insert(path.to_owned(), warning);
                // Do not retry before the content changes.
                if let Some(file) = self.files.get_mut(path) {
                    file.stamp = stamp;
                }
                return None;
            }
        }
        Some(self.take(path, stamp, objects, lost, warnings))
    }

    fn take(
        &mut self,
        path: &Path,
        stamp: Option<Stamp>,
        manifests: Vec<Manifest>,
        lost: &mut HashSet<ObjectName>,
        warnings: &mut BTreeMap<PathBuf, String>,
    ) -> Vec<Object> {
        let before = self.files.remove(path).map(|file| file.objects).unwrap_or_default();
        let mut before: HashSet<ObjectName> = self.disown(path, &before).into_iter().collect();
        let (mut names, mut objects) = (Vec::new(), Vec::new());
        for manifest in manifests {
            let name = ObjectName::of(&manifest.object);
            match self.owners.get(&name) {
                Some(other) => {
                    let warning = format!(
                        "{}: {name} is a duplicate; the one in {} is used",
                        manifest.origin,
                        other.display()
                    );
                    warnings.insert(path.to_owned(), warning);
                }
                None => {
                    self.owners.insert(name.clone(), path.to_owned());
                    before.remove(&name);
                    lost.remove(&name);
                    objects.push(manifest.object);
                }
            }
            names.push(name);
        }
        lost.extend(before);
        self.files.insert(path.to_owned(), File { stamp, objects: names });
        objects
    }

    /// Removes a file as the owner of its objects. Returns those that it owned.
    fn disown(&mut self, path: &Path, objects: &[ObjectName]) -> Vec<ObjectName> {
        let own = |name: &&ObjectName| self.owners.get(*name).is_some_and(|owner| owner == path);
        let own: Vec<ObjectName> = objects.iter().filter(own).cloned().collect();
        own.iter().for_each(|name| drop(self.owners.remove(name)));
        own
    }

    /// Makes the next round read files that have one of these objects too.
    fn pass_on(&mut self, lost: &HashSet<ObjectName>) {
        let orphan = |name: &ObjectName| lost.contains(name) && !self.owners.contains_key(name);
        for file in self.files.values_mut().filter(|file| file.objects.iter().any(orphan)) {
            file.stamp = None;
        }
    }

    /// Returns the warnings that are new or changed.
    fn warnings(&mut self, now: BTreeMap<PathBuf, String>) -> Vec<Update> {
        let is_new = |(path, warning): &(&PathBuf, &String)| self.reported.get(*path) != Some(*warning);
        let new = now.iter().filter(is_new).map(|(_, warning)| Update::Warning(warning.clone())).collect();
        self.reported = now;
        new
    }
}

/// Returns the first lists.
fn replace_all(objects: BTreeMap<ObjectName, Object>) -> Vec<Update> {
    let mut lists: BTreeMap<Kind, Vec<Object>> = BTreeMap::new();
    for (name, object) in objects {
        lists.entry(name.kind()).or_default().push(object);
    }
    Kind::ALL.map(|kind| Update::Replace(kind, lists.remove(&kind).unwrap_or_default())).into()
}

/// The number of objects below which no deletion is doubted.
const MANY: usize = 10;
/// The time until what is gone is looked for again.
const SECOND_LOOK: Duration = Duration::from_secs(5);
/// The time without events before files are read.
const QUIET: Duration = Duration::from_millis(50);
/// The longest wait for a time without events.
const LONGEST_UNREST: Duration = Duration::from_millis(500);
/// The longest wait for a writer to close a file.
const LONGEST_WRITE: Duration = Duration::from_secs(3);
/// The interval of scans without events.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// The interval while there are warnings: a missing directory whose parent is missing too cannot be watched.
const LOOK_EVERY_WITH_WARNINGS: Duration = Duration::from_secs(1);
/// The interval of checks whether the receiver still exists.
const LISTEN: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
