//! The known files, and the objects in them.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::events::OpenFile;
use super::reading::{self, Known, Progress, Reading, Stamp, Step};
use crate::source::document::Flow;
use crate::source::update::{Kind, ObjectName, Update};
use crate::source::{Error, Ignored, Manifest, Object, Origin, expand};

/// The known files, and the objects in them.
pub(super) struct Manifests {
    paths: Vec<PathBuf>,
    files: BTreeMap<PathBuf, File>,
    /// The file that each object is from: the first one that has it.
    owners: HashMap<Name, Arc<Path>>,
    /// The stamps of the files whose content does not parse: they are not read again before it changes.
    faulty: BTreeMap<PathBuf, Stamp>,
    /// The warnings that were sent, by path, so that each is sent once.
    reported: BTreeMap<PathBuf, String>,
    /// The files and directories that cannot be read or do not parse.
    failing: BTreeSet<PathBuf>,
    /// Those of them that were told last, with the reasons.
    unusable: BTreeMap<PathBuf, String>,
    pub(super) is_complete: bool,
    pub(super) pending: Option<PendingDeletions>,
    /// What tells known documents.
    known: Known,
    /// The large file that is being read, and what of it is taken over.
    reading: Option<(Reading, PartlyRead)>,
    /// The one that was read, until the next scan.
    read: Option<(PartlyRead, Result<Ignored, Error>)>,
    /// Large files that wait until that is done.
    queued: BTreeSet<PathBuf>,
    /// The names of the files that a writer has open.
    held: HashMap<OsString, OpenFile>,
    /// Whether objects that are gone are so for certain: they were gone at a second look.
    is_sure: bool,
    /// What the large file that is being read no longer has, until that is asked for.
    going: Option<Vec<ObjectName>>,
    /// Whether a large file was taken over as a whole, until that is asked for.
    is_taken: bool,
    /// What is to be told of fields that objects have and their kinds have not.
    unknown: Vec<String>,
}

type Name = Rc<ObjectName>;

/// Objects whose deletion waits for a second look.
pub(super) struct PendingDeletions {
    names: BTreeSet<ObjectName>,
    pub(super) since: Instant,
}

#[derive(Default)]
struct File {
    stamp: Option<Stamp>,
    /// The names of the objects of each document, by the hash of its text. All are in use as they are there:
    /// where the text is the same, nothing has to be sent.
    documents: HashMap<u64, Box<[Name]>>,
    /// The names of the objects of all other documents: those with duplicates, and those that may be out of
    /// date.
    others: Vec<Name>,
}

impl File {
    fn names(&self) -> impl Iterator<Item = &Name> {
        self.documents.values().flatten().chain(&self.others)
    }

    /// Makes the next reading parse all documents.
    fn stop_trusting(&mut self) {
        self.others.extend(self.documents.drain().flat_map(|(_, names)| names));
    }
}

/// A file whose content is being taken over.
struct PartlyRead {
    path: Arc<Path>,
    stamp: Option<Stamp>,
    documents: HashMap<u64, Box<[Name]>>,
    others: Vec<Name>,
    /// The document whose objects come, and whether all are in use.
    current: Option<(u64, Vec<Name>, bool)>,
    /// The objects that are in use.
    names: HashSet<Name>,
    warning: Option<String>,
}

impl PartlyRead {
    fn new(path: &Path, stamp: Option<Stamp>) -> Self {
        Self {
            path: Arc::from(path),
            stamp,
            documents: HashMap::new(),
            others: Vec::new(),
            current: None,
            names: HashSet::new(),
            warning: None,
        }
    }

    /// Ends the document whose objects came.
    fn close(&mut self) {
        if let Some((hash, names, is_used)) = self.current.take() {
            self.add(hash, names.into(), is_used);
        }
    }

    fn add(&mut self, hash: u64, names: Box<[Name]>, is_used: bool) {
        if is_used {
            self.documents.insert(hash, names);
        } else {
            self.others.extend(names);
        }
    }
}

/// What has come of a large file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadProgress {
    /// There may be more at once.
    More,
    /// Nothing more has been read yet.
    Idle,
    /// All of it.
    End,
}

impl Manifests {
    pub(super) fn new(paths: Vec<PathBuf>) -> Self {
        Self {
            paths,
            files: BTreeMap::new(),
            owners: HashMap::new(),
            faulty: BTreeMap::new(),
            reported: BTreeMap::new(),
            failing: BTreeSet::new(),
            unusable: BTreeMap::new(),
            is_complete: false,
            pending: None,
            known: Known::default(),
            reading: None,
            read: None,
            queued: BTreeSet::new(),
            held: HashMap::new(),
            is_sure: false,
            going: None,
            is_taken: false,
            unknown: Vec::new(),
        }
    }

    /// Returns whether the objects that are gone since the last call are so for certain.
    pub(super) const fn take_sure(&mut self) -> bool {
        std::mem::replace(&mut self.is_sure, false)
    }

    /// Returns which objects of a large file that is being read it has no longer, once it is known.
    pub(super) const fn take_going(&mut self) -> Option<Vec<ObjectName>> {
        self.going.take()
    }

    /// Returns whether a large file was taken over as a whole since the last call.
    pub(super) const fn take_taken(&mut self) -> bool {
        std::mem::replace(&mut self.is_taken, false)
    }

    /// Makes the next scan read files of these names, even if their metadata is unchanged.
    pub(super) fn forget(&mut self, names: &HashSet<OsString>) {
        let is_named = |path: &Path| path.file_name().is_some_and(|name| names.contains(name));
        self.files.iter_mut().filter(|(path, _)| is_named(path)).for_each(|(_, file)| file.stamp = None);
        self.faulty.retain(|path, _| !is_named(path));
        self.stop_trusting(is_named);
    }

    /// Makes what is taken of large files be read again, if they are among these.
    fn stop_trusting(&mut self, is_one: impl Fn(&Path) -> bool) {
        let reading = self.reading.iter_mut().map(|(_, partly)| partly);
        let taken = reading.chain(self.read.iter_mut().map(|(partly, _)| partly));
        taken.filter(|partly| is_one(&partly.path)).for_each(|partly| partly.stamp = None);
    }

    /// Sets which files a writer has open. Those that are no longer open are read again, even if their
    /// metadata is unchanged.
    pub(super) fn hold(&mut self, held: HashMap<OsString, OpenFile>) {
        let before = std::mem::replace(&mut self.held, held);
        let closed: HashSet<_> = before.into_keys().filter(|name| !self.held.contains_key(name)).collect();
        if !closed.is_empty() {
            self.forget(&closed);
        }
    }

    /// Returns true when every file was read without a warning.
    pub(super) fn is_well(&self) -> bool {
        self.is_complete && self.reported.is_empty() && self.pending.is_none()
    }

    /// Returns true while a large file is being read.
    pub(super) const fn is_reading(&self) -> bool {
        self.reading.is_some()
    }

    /// Takes some steps of the large file that is being read, and sends the updates. When it is read, a scan
    /// is due.
    pub(super) fn proceed(&mut self, send: &mut dyn FnMut(Update)) -> ReadProgress {
        let Some((reading, mut partly)) = self.reading.take() else { return ReadProgress::Idle };
        let mut proceeded = ReadProgress::More;
        for _ in 0..STEPS {
            match reading.next() {
                Progress::Step(step) => {
                    let is_first = matches!(step, Step::Whole { .. });
                    self.take(&mut partly, step, &mut |object| send(Update::Apply(object)));
                    if is_first {
                        break;
                    }
                }
                Progress::Busy => {
                    proceeded = ReadProgress::Idle;
                    break;
                }
                Progress::End(outcome) => {
                    self.read = Some((partly, outcome));
                    return ReadProgress::End;
                }
            }
        }
        self.reading = Some((reading, partly));
        proceeded
    }

    /// Scans all files, and sends the updates.
    ///
    /// Until everything was read once, the objects of a file are sent before the next file is read, and those
    /// of a large file as they are parsed: all together would take several times the memory of what becomes
    /// of them. After that a large file is read by [`Self::proceed`].
    pub(super) fn scan(&mut self, send: &mut dyn FnMut(Update)) {
        let mut warnings = BTreeMap::new();
        let listed = self.list(&mut warnings);
        self.queued.clear();
        let there: HashSet<&PathBuf> = listed.iter().collect();
        let vanished: Vec<PathBuf> =
            self.files.keys().filter(|path| !there.contains(path)).cloned().collect();
        self.take_over(&listed, vanished, warnings, send);
    }

    /// Looks at these files alone, which are in the directories of manifests, and sends the updates. Until
    /// everything was read once, scans all.
    pub(super) fn look_at(&mut self, paths: &BTreeSet<PathBuf>, send: &mut dyn FnMut(Update)) {
        if !self.is_complete {
            return self.scan(send);
        }
        let (mut there, mut vanished) = (Vec::new(), Vec::new());
        for path in paths {
            if let Some(file) = self.files.get_mut(path) {
                file.stamp = None;
            }
            self.faulty.remove(path);
            self.stop_trusting(|of| of == path);
            let is_directory = path.is_dir();
            match fs::symlink_metadata(path) {
                // Also a link that leads nowhere, which is a fault and keeps its objects.
                Ok(_) if !is_directory => there.push(path.clone()),
                _ if self.files.contains_key(path) => vanished.push(path.clone()),
                _ => {}
            }
        }
        // What the others have stays as it is.
        let mut warnings = self.reported.clone();
        warnings.retain(|path, _| !paths.contains(path));
        self.take_over(&there, vanished, warnings, send);
    }

    /// Takes over what these files have, and that others have gone.
    fn take_over(
        &mut self,
        listed: &[PathBuf],
        vanished: Vec<PathBuf>,
        mut warnings: BTreeMap<PathBuf, String>,
        send: &mut dyn FnMut(Update),
    ) {
        let mut found = Vec::new();
        let mut lost: HashSet<Name> = HashSet::new();
        if let Some((partly, outcome)) = self.read.take() {
            match outcome {
                Ok(ignored) => {
                    tell(&partly.path, &ignored);
                    self.is_taken = true;
                    self.finish(partly, &mut lost, &mut warnings);
                }
                Err(error) => {
                    let (path, stamp) = (Arc::clone(&partly.path), partly.stamp);
                    self.keep(partly);
                    self.fail(&path, stamp, &error, &mut warnings);
                }
            }
        }
        for path in vanished {
            if path.is_dir() {
                self.fail(&path, None, &became_directory(&path), &mut warnings);
            } else if !self.is_kept(&path, &warnings) {
                self.abandon(&path);
                lost.extend(self.files.remove(&path).iter().flat_map(|file| self.disown(&path, file)));
            }
        }
        // What comes in place of others is sent after these are deleted.
        let is_complete = self.is_complete;
        let mut sink = |object| match is_complete {
            true => found.push(object),
            false => send(Update::Apply(object)),
        };
        for path in listed {
            self.reread(path, &mut lost, &mut warnings, &mut sink);
        }
        // Then the files that have objects which another file no longer has.
        for path in self.pass_on(&lost) {
            self.reread(&path, &mut lost, &mut warnings, &mut sink);
        }
        self.warnings(warnings).into_iter().for_each(&mut *send);
        self.tell_unknown(send);
        self.tell_unusable(send);
        let awaited = self.awaited();
        let deleted = lost.iter().filter(|name| !self.owners.contains_key(*name) && !awaited.contains(name));
        let deleted: BTreeSet<ObjectName> = deleted.map(|name| (**name).clone()).collect();
        let deleted = if self.is_complete { self.hold_back(deleted, send) } else { deleted };
        deleted.into_iter().map(Update::Delete).for_each(&mut *send);
        found.into_iter().map(Update::Apply).for_each(&mut *send);
        // A file with a warning is no obstacle if an earlier content is known.
        if !self.is_complete && self.reported.keys().all(|path| self.files.contains_key(path)) {
            self.is_complete = true;
            Kind::ALL.map(Update::Listed).into_iter().for_each(send);
        }
    }

    /// Returns what is to be deleted now: not what was found to be gone just now, where that is most of what
    /// there is, but what is still gone at the second look.
    fn hold_back(
        &mut self,
        deleted: BTreeSet<ObjectName>,
        send: &mut dyn FnMut(Update),
    ) -> BTreeSet<ObjectName> {
        if deleted.is_empty() && self.pending.is_none() {
            return deleted;
        }
        let count = |names: &mut dyn Iterator<Item = &ObjectName>, kind| {
            names.filter(|name| name.kind() == kind).count()
        };
        let most = [Kind::Service, Kind::EndpointSlice].into_iter().find_map(|kind| {
            let gone = count(&mut deleted.iter(), kind);
            if gone < MANY {
                return None;
            }
            let all = gone + count(&mut self.owners.keys().map(|name| &**name), kind);
            (2 * gone > all).then(|| format!("{gone} of {all} {kind}s"))
        });
        let mut now = BTreeSet::new();
        if let Some(pending) = &mut self.pending {
            pending.names.retain(|name| !self.owners.contains_key(name));
            if pending.names.is_empty() {
                tracing::info!("what was gone from the manifests is there again");
                self.pending = None;
            } else if pending.since.elapsed() >= SECOND_LOOK {
                let told = match pending.names.len() {
                    1 => "1 object is still gone from the manifests, and is deleted now".to_owned(),
                    gone => format!("{gone} objects are still gone from the manifests, and are deleted now"),
                };
                send(Update::Warning(told));
                self.is_sure = true;
                now.append(&mut pending.names);
                self.pending = None;
            }
        }
        let Some(most) = most else {
            now.extend(deleted);
            return now;
        };
        send(Update::Warning(format!(
            "{most} are gone from the manifests at once; looking again in {SECOND_LOOK:?} before they are \
             deleted"
        )));
        let pending = self
            .pending
            .get_or_insert_with(|| PendingDeletions { names: BTreeSet::new(), since: Instant::now() });
        pending.names.extend(deleted);
        now
    }

    /// Lists the files, in the order of precedence.
    fn list(&mut self, warnings: &mut BTreeMap<PathBuf, String>) -> Vec<PathBuf> {
        let mut listed = Vec::new();
        for path in &self.paths {
            match expand(std::slice::from_ref(path)) {
                Ok(files) => {
                    if files != [path.clone()] {
                        self.failing.remove(path);
                    }
                    listed.extend(files);
                }
                Err(error) => {
                    let stays = match self.is_complete {
                        true => "; its last objects stay in use",
                        false => "; nothing is programmed before it can be read",
                    };
                    warnings.insert(path.clone(), format!("{error}{stays}"));
                    self.failing.insert(path.clone());
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

    /// Reads a file if it changed, and takes it over; or begins to, if it is large.
    fn reread(
        &mut self,
        path: &Path,
        lost: &mut HashSet<Name>,
        warnings: &mut BTreeMap<PathBuf, String>,
        sink: &mut dyn FnMut(Object),
    ) {
        let held = path.file_name().and_then(|name| self.held.get(name)).copied();
        if held == Some(OpenFile::Unread) && self.is_complete {
            return self.repeat(path, warnings);
        }
        let stamp = fs::metadata(path).ok().as_ref().map(Stamp::from);
        let is_same = |known: Option<&Stamp>| known.is_some() && known == stamp.as_ref();
        if let Some((_, partly)) = self.reading.as_ref().filter(|(_, partly)| *partly.path == *path) {
            if is_same(partly.stamp.as_ref()) {
                return self.repeat(path, warnings);
            }
            self.abandon(path);
        }
        let known = self.files.get(path).and_then(|file| file.stamp.as_ref());
        if is_same(known) || is_same(self.faulty.get(path)) {
            return self.repeat(path, warnings);
        }
        let file = self.files.get(path);
        let hashes = file.map(|file| file.documents.keys().copied().collect()).unwrap_or_default();
        let has_objects = file.is_some_and(|file| file.names().next().is_some());
        let known = Known { has_objects, key: self.known.key.clone(), hashes };
        let is_large = stamp.is_some_and(|stamp| stamp.size > LARGE);
        let mut partly = PartlyRead::new(path, stamp);
        let outcome = if !is_large {
            reading::read(path, &known).map(|(steps, ignored)| {
                steps.into_iter().for_each(|step| self.take(&mut partly, step, sink));
                ignored
            })
        } else if !self.is_complete {
            reading::stream(
                path,
                &known,
                || Flow::Continue(()),
                |step| {
                    self.take(&mut partly, step, sink);
                    Flow::Continue(())
                },
            )
        } else {
            self.repeat(path, warnings);
            if self.reading.is_some() {
                self.queued.insert(path.to_owned());
                return;
            }
            match Reading::start(path.to_owned(), known) {
                Ok(reading) => {
                    self.reading = Some((reading, partly));
                    return;
                }
                Err(source) => Err(Error::Read { path: path.to_owned(), source }),
            }
        };
        match outcome {
            Ok(ignored) => {
                tell(path, &ignored);
                self.finish(partly, lost, warnings);
            }
            Err(error) => self.fail(path, stamp, &error, warnings),
        }
    }

    /// Keeps the warning of a file that is not read again.
    fn repeat(&self, path: &Path, warnings: &mut BTreeMap<PathBuf, String>) {
        if let Some(warning) = self.reported.get(path) {
            warnings.entry(path.to_owned()).or_insert_with(|| warning.clone());
        }
    }

    /// Notes why a file could not be taken over. Its last objects stay.
    fn fail(
        &mut self,
        path: &Path,
        stamp: Option<Stamp>,
        error: &Error,
        warnings: &mut BTreeMap<PathBuf, String>,
    ) {
        let warning = match self.files.get(path) {
            Some(_) => format!("{error}; the last objects of {} stay in use", path.display()),
            None if !self.is_complete => format!("{error}; nothing is programmed before it can be read"),
            None => error.to_string(),
        };
        warnings.insert(path.to_owned(), warning);
        self.failing.insert(path.to_owned());
        // What does not parse stays so; what cannot be read may be readable the next time.
        if let (Error::Manifests(_), Some(stamp)) = (error, stamp) {
            self.faulty.insert(path.to_owned(), stamp);
        }
    }

    /// Takes a step of the content of a file, and passes an object that is new or may have changed to `sink`.
    fn take(&mut self, partly: &mut PartlyRead, step: Step, sink: &mut dyn FnMut(Object)) {
        match step {
            Step::Whole { known, names } => self.going = Some(self.going(&partly.path, &known, &names)),
            Step::Known { hash, origin } => {
                partly.close();
                let file = self.files.get(&*partly.path);
                let names = file.and_then(|file| file.documents.get(&hash)).cloned().unwrap_or_default();
                let mut is_used = true;
                for name in &names {
                    is_used &= self.claim(partly, name, &origin);
                }
                partly.add(hash, names, is_used);
            }
            Step::Document { hash } => {
                partly.close();
                partly.current = Some((hash, Vec::new(), true));
            }
            Step::Object(manifest) => {
                let name = ObjectName::of(&manifest.object);
                self.note_unknown(&name, &manifest);
                let known = self.owners.get_key_value(&name).map(|(known, _)| Rc::clone(known));
                let name = known.unwrap_or_else(|| Rc::new(name));
                let is_used = self.claim(partly, &name, &manifest.origin);
                if let Some((_, names, all_used)) = &mut partly.current {
                    names.push(name);
                    *all_used &= is_used;
                }
                if is_used {
                    sink(manifest.object);
                }
            }
        }
    }

    /// Returns the objects of a file that are neither in its known documents that are there nor among `names`.
    fn going(&self, path: &Path, known: &HashSet<u64>, names: &HashSet<ObjectName>) -> Vec<ObjectName> {
        let Some(file) = self.files.get(path) else { return Vec::new() };
        let documents = file.documents.iter().filter(|(hash, _)| known.contains(*hash));
        let stay: HashSet<&Name> = documents.flat_map(|(_, names)| names).collect();
        let is_owned = |name: &Name| self.owners.get(name).is_some_and(|owner| **owner == *path);
        let goes = |name: &&Name| !stay.contains(*name) && !names.contains(&***name) && is_owned(name);
        file.names().filter(goes).map(|name| (**name).clone()).collect()
    }

    /// Notes the fields of an object that its kind does not have, to be told.
    fn note_unknown(&mut self, name: &ObjectName, manifest: &Manifest) {
        if !manifest.unknown.is_empty() {
            let fields = manifest.unknown.join(", ");
            let origin = &manifest.origin;
            self.unknown.push(format!("{origin}: {name}: no such field: {fields} (the rest is used)"));
        }
    }

    /// Makes a file the owner of an object. Returns false for a duplicate.
    fn claim(&mut self, partly: &mut PartlyRead, name: &Name, origin: &Origin) -> bool {
        let owner = self.owners.entry(Rc::clone(name)).or_insert_with(|| Arc::clone(&partly.path));
        if **owner == *partly.path && partly.names.insert(Rc::clone(name)) {
            return true;
        }
        partly.warning =
            Some(format!("{origin}: {name} is a duplicate; the one in {} is used", owner.display()));
        false
    }

    /// Ends the taking over of a file. Adds the objects that it no longer has to `lost`.
    fn finish(
        &mut self,
        mut partly: PartlyRead,
        lost: &mut HashSet<Name>,
        warnings: &mut BTreeMap<PathBuf, String>,
    ) {
        partly.close();
        let PartlyRead { path, stamp, mut documents, mut others, names, warning, .. } = partly;
        let before = self.files.remove(&*path).unwrap_or_default();
        let is_open = path.file_name().is_some_and(|name| self.held.contains_key(name));
        for name in before.names().filter(|name| !names.contains(*name)) {
            match self.owners.get(name) {
                Some(owner) if *owner != path => {}
                // It may still come.
                Some(_) if is_open => others.push(Rc::clone(name)),
                // Also one that another file has lost while this one was read.
                _ => {
                    self.owners.remove(name);
                    lost.insert(Rc::clone(name));
                }
            }
        }
        documents.shrink_to_fit();
        others.shrink_to_fit();
        match warning {
            Some(warning) => {
                warnings.insert(path.to_path_buf(), warning);
            }
            None => {
                warnings.remove(&*path);
                if self.reported.remove(&*path).is_some() {
                    tracing::info!("{}: read without a problem now", path.display());
                }
            }
        }
        self.faulty.remove(&*path);
        self.failing.remove(&*path);
        self.files.insert(path.to_path_buf(), File { stamp, documents, others });
    }

    /// Stops the reading of a file, of which some objects may be in use already.
    fn abandon(&mut self, path: &Path) {
        if let Some((_, partly)) = self.reading.take_if(|(_, partly)| *partly.path == *path) {
            self.keep(partly);
        }
    }

    /// Keeps what was taken of a file that could not be read to its end.
    fn keep(&mut self, partly: PartlyRead) {
        if partly.names.is_empty() {
            return;
        }
        let file = self.files.entry(partly.path.to_path_buf()).or_default();
        file.stamp = None;
        file.stop_trusting();
        file.others.extend(partly.names);
    }

    /// Removes a file as the owner of its objects. Returns those that it owned.
    fn disown(&mut self, path: &Path, file: &File) -> Vec<Name> {
        let own = |name: &&Name| self.owners.get(*name).is_some_and(|owner| **owner == *path);
        let own: Vec<Name> = file.names().filter(own).cloned().collect();
        own.iter().for_each(|name| drop(self.owners.remove(name)));
        own
    }

    /// Returns the files that have one of these objects too, to be read again.
    fn pass_on(&mut self, lost: &HashSet<Name>) -> Vec<PathBuf> {
        if lost.is_empty() {
            return Vec::new();
        }
        let orphan = |name: &Name| lost.contains(name) && !self.owners.contains_key(name);
        // Where all objects of a document are in use, none of them is another file's.
        let has_orphan = |(path, file): (&PathBuf, &mut File)| {
            file.others.iter().any(orphan).then(|| {
                file.stamp = None;
                path.clone()
            })
        };
        let mut found: Vec<PathBuf> = self.files.iter_mut().filter_map(has_orphan).collect();
        let is_of = |path: &Path, of: &PathBuf| path == of || path.parent() == Some(of);
        found.sort_by_cached_key(|path| self.paths.iter().position(|of| is_of(path, of)));
        found
    }

    /// Returns the objects of large files that are still to be read.
    fn awaited(&self) -> HashSet<&Name> {
        let reading = self.reading.iter().map(|(_, partly)| &*partly.path);
        let paths = reading.chain(self.queued.iter().map(PathBuf::as_path));
        paths.filter_map(|path| self.files.get(path)).flat_map(File::names).collect()
    }

    /// Sends what was noted of unknown fields; of very many objects the first.
    fn tell_unknown(&mut self, send: &mut dyn FnMut(Update)) {
        let mut unknown = std::mem::take(&mut self.unknown);
        let others = unknown.len().saturating_sub(MOST_UNKNOWN);
        unknown.truncate(MOST_UNKNOWN);
        if others > 0 {
            unknown.push(format!("{others} more objects have fields that their kinds have not"));
        }
        unknown.into_iter().map(Update::Warning).for_each(send);
    }

    /// Sends what cannot be used, if that is not what it was before. A file of which an object is a duplicate
    /// has a warning, and is used.
    fn tell_unusable(&mut self, send: &mut dyn FnMut(Update)) {
        self.failing.retain(|path| self.reported.contains_key(path));
        let now = self.reported.iter().filter(|(path, _)| self.failing.contains(*path));
        let now: BTreeMap<PathBuf, String> = now.map(|(path, why)| (path.clone(), why.clone())).collect();
        if now != self.unusable {
            send(Update::Unusable(now.values().cloned().collect()));
            self.unusable = now;
        }
    }

    /// Returns the warnings that are new or changed.
    fn warnings(&mut self, now: BTreeMap<PathBuf, String>) -> Vec<Update> {
        let is_new = |(path, warning): &(&PathBuf, &String)| self.reported.get(*path) != Some(*warning);
        let new = now.iter().filter(is_new).map(|(_, warning)| Update::Warning(warning.clone())).collect();
        for path in self.reported.keys().filter(|path| !now.contains_key(*path)) {
            tracing::info!("{}: the problem is gone", path.display());
        }
        self.reported = now;
        new
    }
}

/// A directory in place of a file is a mistake, unlike a file that is gone.
fn became_directory(path: &Path) -> Error {
    let source = io::Error::other("expected a regular file, found a directory");
    Error::Read { path: path.to_owned(), source }
}

fn tell(path: &Path, ignored: &Ignored) {
    if !ignored.is_empty() {
        tracing::info!("{}: ignored: {ignored}", path.display());
    }
}

/// The size, in bytes, above which the objects of a file are not kept while it is checked.
pub(super) const LARGE: u64 = 1 << 20;
/// The number of steps of a large file after which events are looked for.
pub(super) const STEPS: usize = 64;
/// The most objects whose unknown fields are told at a time.
const MOST_UNKNOWN: usize = 10;
/// The number of objects below which no deletion waits for a second look.
const MANY: usize = 10;
/// The time until what is gone is looked for again.
pub(super) const SECOND_LOOK: Duration = Duration::from_secs(5);
