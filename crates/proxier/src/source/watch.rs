//! Watches manifests on disk, and tells what changed in them.
//!
//! The kernel says that something happened (inotify); what happened is found by looking: every file is known by its device, inode,
//! size and times, and is read again when one of these differs. So it does not matter in which of the many ways a file
//! is replaced: written in place, renamed over, or swapped with its whole directory, as a ConfigMap's `..data` is. A look every
//! few seconds finds what inotify does not tell (network file systems, targets of links elsewhere).
//!
//! Nothing is read while it is being written: neither before a short quiet time, nor while a writer that was seen has not closed
//! the file. What does not parse all the same, or is gone as a whole, leaves what was known in place and is told as
//! [`Update::Trouble`]; only a file that vanished from a directory that is still there takes its objects along.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, InotifyEvent, WatchDescriptor};
use tokio::sync::mpsc::Sender;

use super::update::{Kind, ObjectName, Update};
use super::{Manifest, Object, expand, is_manifest, read};
use crate::Error;

/// Watches `paths`, files and directories as [`read`] takes them, until nobody receives the updates any more. Blocks: give it a thread.
///
/// The first updates are a [`Update::Replace`] of each kind, sent when every file has been read; as long as one of them cannot
/// be, there are only troubles.
///
/// # Errors
/// [`Error::Read`] when the kernel cannot watch anything at all.
pub fn watch(paths: &[PathBuf], updates: &Sender<Update>) -> Result<(), Error> {
    let failed = |errno: Errno| Error::Read { path: "inotify".into(), source: io::Error::from(errno) };
    let inotify = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC).map_err(failed)?;
    let mut watches = Watches::new(inotify, paths);
    let mut manifests = Manifests::new(paths.to_vec());
    loop {
        // Watched before it is looked at, so that nothing happens in between.
        watches.renew(paths);
        manifests.forget(&std::mem::take(&mut watches.touched));
        for update in manifests.look() {
            if updates.blocking_send(update).is_err() {
                return Ok(());
            }
        }
        let patience = if manifests.is_well() { LOOK_EVERY } else { LOOK_EVERY_IN_TROUBLE };
        let until = Instant::now() + patience;
        while !watches.wait(until).map_err(failed)? {
            if updates.is_closed() {
                return Ok(());
            }
            if Instant::now() >= until {
                break;
            }
        }
    }
}

/// The directories that are watched.
struct Watches {
    inotify: Inotify,
    of: HashMap<PathBuf, WatchDescriptor>,
    /// Files that were written to and not closed yet.
    writing: HashSet<(WatchDescriptor, OsString)>,
    /// The names of files that were written, linked or renamed since the last look.
    touched: HashSet<OsString>,
    /// The last parts of the paths to watch.
    names: HashSet<OsString>,
}

impl Watches {
    fn new(inotify: Inotify, paths: &[PathBuf]) -> Self {
        let names = paths.iter().filter_map(|path| path.file_name().map(OsString::from)).collect();
        Self { inotify, of: HashMap::new(), writing: HashSet::new(), touched: HashSet::new(), names }
    }

    /// Watches what is there now; a directory that was replaced is another one.
    fn renew(&mut self, paths: &[PathBuf]) {
        let flags = AddWatchFlags::IN_CREATE
            | AddWatchFlags::IN_MODIFY
            | AddWatchFlags::IN_CLOSE_WRITE
            | AddWatchFlags::IN_MOVE
            | AddWatchFlags::IN_DELETE
            | AddWatchFlags::IN_DELETE_SELF
            | AddWatchFlags::IN_MOVE_SELF
            | AddWatchFlags::IN_ATTRIB;
        for directory in directories(paths) {
            // One that cannot be watched is looked at now and then all the same.
            let Ok(new) = self.inotify.add_watch(&directory, flags) else { continue };
            if let Some(old) = self.of.insert(directory, new).filter(|old| *old != new)
                && !self.of.values().any(|other| *other == old)
            {
                // It is gone already when the directory is.
                let _ = self.inotify.rm_watch(old);
                self.writing.retain(|(of, _)| *of != old);
            }
        }
    }

    /// Waits until something happened and then became quiet; false when nothing did for a second, or until `until`.
    fn wait(&mut self, until: Instant) -> Result<bool, Errno> {
        let slice = until.min(Instant::now() + LISTEN);
        if !self.read(slice)? {
            return Ok(false);
        }
        let began = Instant::now();
        loop {
            let is_writing = !self.writing.is_empty();
            let limit = if is_writing { LONGEST_WRITE } else { LONGEST_UNREST };
            let quiet = Instant::now() + QUIET;
            if quiet > began + limit {
                // A writer that was killed never closes; whatever is there is looked at.
                self.writing.clear();
                return Ok(true);
            }
            if !self.read(quiet)? && self.writing.is_empty() {
                return Ok(true);
            }
        }
    }

    /// Reads what happens until then; true as soon as something did.
    fn read(&mut self, until: Instant) -> Result<bool, Errno> {
        loop {
            match self.inotify.read_events() {
                Ok(events) => {
                    // All of them are noted, whatever the first one says.
                    if events.iter().filter(|event| self.note(event)).count() > 0 {
                        return Ok(true);
                    }
                    continue;
                }
                Err(Errno::EAGAIN | Errno::EINTR) => {}
                Err(errno) => return Err(errno),
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            // Rounded up, or it would spin through the last millisecond.
            let timeout = PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX);
            match poll(&mut [PollFd::new(self.inotify.as_fd(), PollFlags::POLLIN)], timeout) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno),
            }
        }
    }

    /// Notes an event; false for one about a file that is none of ours.
    fn note(&mut self, event: &InotifyEvent) -> bool {
        // About the directory itself.
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
            // Closed, deleted, or gone under another name.
            self.writing.remove(&key);
        }
        self.touched.insert(name);
        true
    }
}

/// The directories to watch: those that are named and those that hold what is named, so that its coming back is seen.
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

/// What is known of the files, and of the objects in them.
struct Manifests {
    paths: Vec<PathBuf>,
    files: BTreeMap<PathBuf, File>,
    /// Which file an object is taken from: the first one that has it.
    owners: HashMap<ObjectName, PathBuf>,
    /// The troubles that were told, by what they are about, so that each is told once.
    told: BTreeMap<PathBuf, String>,
    is_complete: bool,
    /// What was read before it was complete.
    first: BTreeMap<ObjectName, Object>,
}

struct File {
    stamp: Option<Stamp>,
    objects: Vec<ObjectName>,
}

/// What tells one content of a file from another.
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
            told: BTreeMap::new(),
            is_complete: false,
            first: BTreeMap::new(),
        }
    }

    /// Lets files of these names be read again, should they look as before.
    fn forget(&mut self, names: &HashSet<OsString>) {
        let is_named = |path: &Path| path.file_name().is_some_and(|name| names.contains(name));
        self.files.iter_mut().filter(|(path, _)| is_named(path)).for_each(|(_, file)| file.stamp = None);
    }

    /// Nothing is in the way of reading everything.
    fn is_well(&self) -> bool {
        self.is_complete && self.told.is_empty()
    }

    /// Looks at everything once, and says what is new.
    fn look(&mut self) -> Vec<Update> {
        let mut troubles = BTreeMap::new();
        let listed = self.list(&mut troubles);
        let mut found = Vec::new();
        let vanished: Vec<PathBuf> =
            self.files.keys().filter(|path| !listed.contains(*path)).cloned().collect();
        let mut lost: HashSet<ObjectName> = HashSet::new();
        for path in vanished {
            if !self.is_kept(&path, &troubles)
                && let Some(file) = self.files.remove(&path)
            {
                lost.extend(self.disown(&path, &file.objects));
            }
        }
        // The second round is for files that have what another file has lost.
        for round in 0..2 {
            for path in &listed {
                if let Some(objects) = self.reread(path, &mut lost, &mut troubles) {
                    found.extend(objects);
                }
            }
            if round == 0 {
                self.pass_on(&lost);
            }
        }
        let mut updates = self.troubles(troubles);
        let deleted = lost.into_iter().filter(|name| !self.owners.contains_key(name));
        if self.is_complete {
            updates.extend(deleted.map(Update::Delete));
            updates.extend(found.into_iter().map(Update::Apply));
            return updates;
        }
        deleted.for_each(|name| drop(self.first.remove(&name)));
        self.first.extend(found.into_iter().map(|object| (ObjectName::of(&object), object)));
        // Of a file that is known some content is known, whatever the trouble with it is.
        if self.told.keys().all(|path| self.files.contains_key(path)) {
            self.is_complete = true;
            updates.extend(replace_all(std::mem::take(&mut self.first)));
        }
        updates
    }

    /// The files that there are, in the order in which they count.
    fn list(&self, troubles: &mut BTreeMap<PathBuf, String>) -> Vec<PathBuf> {
        let mut listed = Vec::new();
        for path in &self.paths {
            match expand(std::slice::from_ref(path)) {
                Ok(files) => listed.extend(files),
                Err(error) => {
                    let stays = if self.is_complete { "; what it held stays in use" } else { "" };
                    troubles.insert(path.clone(), format!("{error}{stays}"));
                }
            }
        }
        let mut seen = HashSet::new();
        listed.retain(|path| seen.insert(path.clone()));
        listed
    }

    /// A file that is not there keeps its objects when it was named itself, or its directory is gone as well.
    fn is_kept(&self, path: &Path, troubles: &BTreeMap<PathBuf, String>) -> bool {
        troubles.contains_key(path) || path.parent().is_some_and(|parent| troubles.contains_key(parent))
    }

    /// Reads a file if it is another than it was. Gives its objects, and adds to `lost` what it no longer has.
    fn reread(
        &mut self,
        path: &Path,
        lost: &mut HashSet<ObjectName>,
        troubles: &mut BTreeMap<PathBuf, String>,
    ) -> Option<Vec<Object>> {
        let stamp = fs::metadata(path).ok().as_ref().map(Stamp::from);
        if let Some(file) = self.files.get(path)
            && file.stamp.is_some()
            && file.stamp == stamp
        {
            if let Some(trouble) = self.told.get(path) {
                troubles.insert(path.to_owned(), trouble.clone());
            }
            return None;
        }
        let mut objects = Vec::new();
        match read(&[path], |manifest| objects.push(manifest)) {
            Ok(ignored) if ignored.is_empty() => {}
            Ok(ignored) => tracing::info!("{}: ignored: {ignored}", path.display()),
            Err(error) => {
                let trouble = match self.files.get(path) {
                    Some(_) => format!("{error}; what {} held before stays in use", path.display()),
                    None => error.to_string(),
                };
                troubles.insert(path.to_owned(), trouble);
                // Known as read, if it was once: only another content is worth another try.
                if let Some(file) = self.files.get_mut(path) {
                    file.stamp = stamp;
                }
                return None;
            }
        }
        Some(self.take(path, stamp, objects, lost, troubles))
    }

    fn take(
        &mut self,
        path: &Path,
        stamp: Option<Stamp>,
        manifests: Vec<Manifest>,
        lost: &mut HashSet<ObjectName>,
        troubles: &mut BTreeMap<PathBuf, String>,
    ) -> Vec<Object> {
        let before = self.files.remove(path).map(|file| file.objects).unwrap_or_default();
        let mut before: HashSet<ObjectName> = self.disown(path, &before).into_iter().collect();
        let (mut names, mut objects) = (Vec::new(), Vec::new());
        for manifest in manifests {
            let name = ObjectName::of(&manifest.object);
            match self.owners.get(&name) {
                Some(other) => {
                    let trouble = format!(
                        "{}: {name} is a duplicate: the one of {} is used",
                        manifest.origin,
                        other.display()
                    );
                    troubles.insert(path.to_owned(), trouble);
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

    /// Takes from a file what it had, and says which of these objects were taken from it.
    fn disown(&mut self, path: &Path, objects: &[ObjectName]) -> Vec<ObjectName> {
        let own = |name: &&ObjectName| self.owners.get(*name).is_some_and(|owner| owner == path);
        let own: Vec<ObjectName> = objects.iter().filter(own).cloned().collect();
        own.iter().for_each(|name| drop(self.owners.remove(name)));
        own
    }

    /// Lets files be read again that have one of these too.
    fn pass_on(&mut self, lost: &HashSet<ObjectName>) {
        let orphan = |name: &ObjectName| lost.contains(name) && !self.owners.contains_key(name);
        for file in self.files.values_mut().filter(|file| file.objects.iter().any(orphan)) {
            file.stamp = None;
        }
    }

    /// The troubles that are new, or others than before.
    fn troubles(&mut self, now: BTreeMap<PathBuf, String>) -> Vec<Update> {
        let is_new = |(path, trouble): &(&PathBuf, &String)| self.told.get(*path) != Some(*trouble);
        let new = now.iter().filter(is_new).map(|(_, trouble)| Update::Trouble(trouble.clone())).collect();
        self.told = now;
        new
    }
}

/// The first lists.
fn replace_all(objects: BTreeMap<ObjectName, Object>) -> Vec<Update> {
    let mut lists: BTreeMap<Kind, Vec<Object>> = BTreeMap::new();
    for (name, object) in objects {
        lists.entry(name.kind()).or_default().push(object);
    }
    Kind::ALL.map(|kind| Update::Replace(kind, lists.remove(&kind).unwrap_or_default())).into()
}

/// So long nothing must happen before files are read.
const QUIET: Duration = Duration::from_millis(50);
/// But when it never becomes quiet, no longer than this.
const LONGEST_UNREST: Duration = Duration::from_millis(500);
/// Nor longer than this when somebody goes on writing.
const LONGEST_WRITE: Duration = Duration::from_secs(3);
/// At times nothing is told of what happens.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// A missing directory whose parent is missing too cannot be watched.
const LOOK_EVERY_IN_TROUBLE: Duration = Duration::from_secs(1);
/// So often it is noticed that nobody listens any more.
const LISTEN: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
