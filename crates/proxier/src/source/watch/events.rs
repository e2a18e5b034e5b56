//! The events of inotify, and when they are over.

use std::collections::{HashMap, HashSet};
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
    /// Files that were written to and not closed yet.
    writing: HashSet<(WatchDescriptor, OsString)>,
    /// Names that were deleted or renamed away since the last scan, and not written or renamed to since.
    gone: HashSet<OsString>,
    /// The names of files that were written, linked or renamed since the last scan.
    pub(super) touched: HashSet<OsString>,
    /// The last parts of the paths to watch.
    names: HashSet<OsString>,
}

impl Watches {
    pub(super) fn new(paths: &[PathBuf]) -> Self {
        let names = paths.iter().filter_map(|path| path.file_name().map(OsString::from)).collect();
        Self {
            inotify: None,
            reported: None,
            of: HashMap::new(),
            writing: HashSet::new(),
            gone: HashSet::new(),
            touched: HashSet::new(),
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

    /// Waits for an event, and then for a time without events. Returns false without an event until `until`.
    pub(super) fn wait(&mut self, until: Instant) -> bool {
        self.gone.clear();
        if !self.read(until) {
            return false;
        }
        let began = Instant::now();
        loop {
            let is_writing = !self.writing.is_empty();
            let limit = if is_writing { LONGEST_WRITE } else { LONGEST_UNREST };
            let quiet = Instant::now() + if self.gone.is_empty() { QUIET } else { COMES_BACK };
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
    pub(super) fn read(&mut self, until: Instant) -> bool {
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
        let Some(name) = event.name.clone() else {
            self.gone.insert(OsString::new());
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
            self.writing.insert(key);
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

/// The time without events before files are read.
pub(super) const QUIET: Duration = Duration::from_millis(10);
/// The same after a name has gone: what replaces it may be written only then.
const COMES_BACK: Duration = Duration::from_millis(50);
/// The longest wait for a time without events.
const LONGEST_UNREST: Duration = Duration::from_millis(500);
/// The longest wait for a writer to close a file.
const LONGEST_WRITE: Duration = Duration::from_secs(3);
