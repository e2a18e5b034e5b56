//! Watches manifest files, and sends updates when they change.
//!
//! The events of inotify say at which files to look; where they are about anything else than files in the
//! directories of manifests, all are scanned. A scan compares device, inode, size and times of each file, and
//! reads a file again when one of these differs. So every way to replace a file works: written in place,
//! renamed over, or swapped with its whole directory, as `..data` of a ConfigMap is. A scan every few seconds
//! finds changes without events (network file systems, targets of links elsewhere).
//!
//! Where inotify does not work (the user has no instance left, say), scans every second find all changes.
//!
//! Of a file that is read again only the documents that changed are parsed, and only their objects are sent.
//! A large file is read on a thread of its own; its objects are taken over in steps, between which events of
//! other files are served. Those that claim what the file's former objects did come last, with the deletions.
//!
//! A file is not read while it is being written: neither before 10 ms without events, nor while a writer has
//! it open. After three seconds what is in it is used, but nothing that may still come is deleted before it
//! is closed. A file that had objects and is empty says nothing of them: they stay in use until the file is
//! removed, or says something else. What was deleted or renamed away has 50 ms to come back, as some editors
//! write. A file that does not parse, or whose directory is gone, keeps its last objects and leads to an
//! [`Update::Warning`]. A file deletes objects only where it parses without them, or was deleted from an existing
//! directory. Unless another one claims what they have, objects that are gone, or have nothing valid left, stay
//! for one more second: a list that is written in two steps has them again by then. Where more than half of all services,
//! or of all slices, would be deleted at once, that is reported and waits for a second look: a volume that is
//! mounted late, or a list that is written anew, is no wish to have nothing.

mod delayed;
mod events;
mod files;
mod reading;

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::inotify::{InitFlags, Inotify};
use tokio::sync::mpsc::Sender;

use super::update::Update;
use delayed::DelayedRemovals;
use events::Watches;
use files::{Manifests, ReadProgress};

/// Watches `paths`, files and directories as [`read`](super::read) takes them, until the receiver of updates
/// is dropped. Blocks the thread.
///
/// The first objects are sent as they are read, file by file, and an [`Update::Listed`] of each kind when
/// every file was read. While one cannot be read, nothing is listed.
pub fn watch(paths: &[PathBuf], updates: &Sender<Update>) {
    follow(paths, updates, || Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC));
}

/// Watches with the instances of inotify that `open` gives.
fn follow(paths: &[PathBuf], updates: &Sender<Update>, open: impl Fn() -> Result<Inotify, Errno>) {
    let mut watches = Watches::new(paths);
    let mut manifests = Manifests::new(paths.to_vec());
    let mut removals = DelayedRemovals::default();
    // When a scan is due without events, and whether one is at once.
    let (mut next_scan, mut is_due) = (Instant::now(), true);
    loop {
        // Watches are set before the scan, so that no change in between is missed.
        let failure = watches.renew(paths, &open);
        let touched = std::mem::take(&mut watches.touched);
        manifests.hold(watches.held());
        let failure = failure.map(|errno| {
            let errno = io::Error::from(errno);
            Update::Warning(format!("watching files with inotify: {errno}; looking at them every second"))
        });
        // It fails when the receiver is gone.
        let mut send = |update| drop(updates.blocking_send(update));
        failure.into_iter().for_each(&mut send);
        // The first objects are not kept until all are read.
        let is_complete = manifests.is_complete;
        let mut news = Vec::new();
        let mut take = |update| match is_complete {
            true => news.push(update),
            false => {
                removals.note(&update);
                send(update);
            }
        };
        if touched.others || is_due || Instant::now() >= next_scan {
            manifests.forget(&touched.names);
            manifests.scan(&mut take);
            is_due = false;
            let is_well = manifests.is_well() && watches.inotify.is_some();
            next_scan = Instant::now() + if is_well { LOOK_EVERY } else { LOOK_EVERY_WITH_WARNINGS };
        } else if !touched.files.is_empty() {
            manifests.look_at(&touched.files, &mut take);
            if !manifests.is_well() {
                next_scan = next_scan.min(Instant::now() + LOOK_EVERY_WITH_WARNINGS);
            }
        }
        if manifests.take_taken() {
            news.extend(removals.take_aside());
        }
        removals.pass(news, manifests.take_sure(), Instant::now(), &mut send);
        removals.end(Instant::now(), &mut send);
        let hold = watches.next_hold();
        let until = hold.into_iter().chain(removals.next()).fold(next_scan, Instant::min);
        let mut slice = Duration::ZERO;
        loop {
            if updates.is_closed() {
                return;
            }
            if watches.wait(until.min(Instant::now() + slice)) || Instant::now() >= until {
                break;
            }
            let mut take = |update| removals.pass_part(update, Instant::now(), &mut send);
            let proceeded = manifests.proceed(&mut take);
            manifests.take_going().iter().for_each(|going| removals.begin(going));
            slice = match proceeded {
                ReadProgress::More => Duration::ZERO,
                ReadProgress::Idle if manifests.is_reading() => READ_ON,
                ReadProgress::Idle => LISTEN,
                ReadProgress::End => {
                    is_due = true;
                    break;
                }
            };
        }
        is_due |= hold.is_some_and(|hold| hold <= Instant::now());
    }
}

/// The interval of scans without events.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// The interval while there are warnings: a missing directory whose parent is missing too cannot be watched.
const LOOK_EVERY_WITH_WARNINGS: Duration = Duration::from_secs(1);
/// The interval of checks whether the receiver still exists.
const LISTEN: Duration = Duration::from_secs(1);
/// The interval of looks whether more of a large file was read.
const READ_ON: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests;
