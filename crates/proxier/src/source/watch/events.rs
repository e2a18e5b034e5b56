//! The events of inotify, and when they are over.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsString;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::inotify::{AddWatchFlags, Inotify, InotifyEvent, WatchDescriptor};

use crate::source::is_manifest;

/// The directories that are watched.
pub(super) struct Watches {
    /// `None` while inotify does not work.
    pub(super) inotify: Option<Inotify>,
    /// The failure that was reported last.
    reported: Option<Errno>,
    of: HashMap<PathBuf, WatchDescriptor>,
    /// Files that were written to and not closed yet, each with the time of the first event.
    writing: HashMap<(WatchDescriptor, OsString), Instant>,
    /// The directories whose files are manifests; `None` for one that is listed by two paths.
    listed: HashMap<WatchDescriptor, Option<PathBuf>>,
    /// Names that were deleted or renamed away since the last scan, and not written or renamed to since.
    gone: HashSet<OsString>,
    /// What was written, linked or renamed since the last scan.
    pub(super) touched: ChangedPaths,
    /// The last parts of the paths to watch.
    names: HashSet<OsString>,
}

/// What the events since the last scan are about.
#[derive(Debug, Default)]
pub(super) struct ChangedPaths {
    /// The names of files.
    pub(super) names: HashSet<OsString>,
    /// The paths of the files, as they are listed.
    pub(super) files: BTreeSet<PathBuf>,
    /// Whether there was anything else than files in the directories of manifests.
    pub(super) others: bool,
}

/// What to do with a file that a writer has open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OpenFile {
    /// Wait until it is closed.
    Unread,
    /// It has been open for long: use what is there, and delete nothing that may still come.
    Undeleted,
}

impl Watches {
    pub(super) fn new(paths: &[PathBuf]) -> Self {
        let names = paths.iter().filter_map(|path| path.file_name().map(OsString::from)).collect();
        Self {
            inotify: None,
            reported: None,
            of: HashMap::new(),
            writing: HashMap::new(),
            listed: HashMap::new(),
            gone: HashSet::new(),
            touched: ChangedPaths::default(),
            names,
        }
    }

    /// Watches the directories that exist now. A directory that was replaced is a new one. Returns a failure
    /// of inotify, unless it is the same as the last time.
    pub(super) fn renew(
        &mut self,
        paths: &[PathBuf],
        open: &impl Fn() -> Result<Inotify, Errno>,
    ) -> Option<Errno> {
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
            if paths.contains(&directory) {
                let known = self.listed.entry(new).or_insert_with(|| Some(directory.clone()));
                if known.as_ref() != Some(&directory) {
                    *known = None;
                }
            }
            if let Some(old) = self.of.insert(directory, new).filter(|old| *old != new)
                && !self.of.values().any(|other| *other == old)
            {
                // The watch is gone already if the directory is.
                let _ = inotify.rm_watch(old);
                self.writing.retain(|(of, _), _| *of != old);
                self.listed.remove(&old);
            }
        }
        None
    }

    /// Waits for an event, and then for a time without events. Returns false without an event until `until`.
    pub(super) fn wait(&mut self, until: Instant) -> bool {
        self.gone.clear();
        if !self.read(until) {
            return false;
        }
        let began = Instant::now();
        loop {
            let quiet = Instant::now() + if self.gone.is_empty() { QUIET } else { COMES_BACK };
            if quiet > began + LONGEST_UNREST || !self.read(quiet) {
                return true;
            }
        }
    }

    /// Returns the names of the files that a writer has open, and what to do with them.
    pub(super) fn held(&self) -> HashMap<OsString, OpenFile> {
        let hold = |since: &Instant| match since.elapsed() < LONGEST_WRITE {
            true => OpenFile::Unread,
            false => OpenFile::Undeleted,
        };
        self.writing.iter().map(|((_, name), since)| (name.clone(), hold(since))).collect()
    }

    /// Returns the next time at which a file that is still open is to be read all the same.
    pub(super) fn next_hold(&self) -> Option<Instant> {
        let now = Instant::now();
        self.writing.values().map(|since| *since + LONGEST_WRITE).filter(|end| *end > now).min()
    }

    /// Reads events until a time. Returns true after the first one. Where that fails, there are no more
    /// events until the next scan opens another instance.
    pub(super) fn read(&mut self, until: Instant) -> bool {
        match self.try_read(until) {
            Ok(seen) => seen,
            Err(_) => {
                self.inotify = None;
                // The watches of the old instance, and what it said of writers.
                self.of.clear();
                self.listed.clear();
                self.writing.clear();
                self.touched.others = true;
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
        if event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW) {
            // What closed a file may be among the events that were lost.
            self.writing.clear();
        }
        // An event of the directory itself has no name.
        let Some(name) = event.name.clone() else {
            self.gone.insert(OsString::new());
            self.touched.others = true;
            return true;
        };
        if !self.names.contains(&name)
            && !is_manifest(Path::new(&name))
            && !name.as_encoded_bytes().starts_with(b"..")
        {
            return false;
        }
        let key = (event.wd, name.clone());
        if event.mask.contains(AddWatchFlags::IN_MODIFY) {
            self.writing.entry(key).or_insert_with(Instant::now);
        } else {
            // The file was closed, deleted or renamed.
            self.writing.remove(&key);
        }
        if event.mask.intersects(AddWatchFlags::IN_DELETE | AddWatchFlags::IN_MOVED_FROM) {
            self.gone.insert(name.clone());
        } else if event.mask.intersects(AddWatchFlags::IN_CLOSE_WRITE | AddWatchFlags::IN_MOVED_TO) {
            // A file that is created again is there when it is closed.
            self.gone.remove(&name);
        }
        match self.listed.get(&event.wd) {
            Some(Some(directory))
                if !self.names.contains(&name) && !event.mask.contains(AddWatchFlags::IN_ISDIR) =>
            {
                self.touched.files.insert(directory.join(&name));
                self.touched.others |= !is_manifest(Path::new(&name));
            }
            _ => self.touched.others = true,
        }
        self.touched.names.insert(name);
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

/// The time without events before files are read.
pub(super) const QUIET: Duration = Duration::from_millis(10);
/// The same after a name has gone: what replaces it may be written only then.
const COMES_BACK: Duration = Duration::from_millis(50);
/// The longest wait for a time without events.
const LONGEST_UNREST: Duration = Duration::from_millis(500);
/// The longest wait for a writer to close a file, before what is in it is used.
pub(super) const LONGEST_WRITE: Duration = Duration::from_secs(3);
