//! Reads one file, document by document: a small one at once, a large one on a thread of its own.
//!
//! A file is checked as a whole before the first of its objects is passed on. Those of a large one are not
//! kept meanwhile, as they take several times its size: it is parsed again.

use std::collections::HashSet;
use std::fs::Metadata;
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Weak};
use std::thread;

use crate::source::document::Flow;
use crate::source::update::ObjectName;
use crate::source::{Error, Ignored, Manifest, ManifestError, Origin, Sink, parse, read_text};
use crate::yaml::Fault;

/// What a file has, in order.
#[derive(Debug)]
pub(super) enum Step {
    /// What a large file has as a whole, before anything else: its known documents, and the objects of others.
    Whole { known: HashSet<u64>, names: HashSet<ObjectName> },
    /// A document that is known.
    Known { hash: u64, origin: Origin },
    /// A document, whose objects follow.
    Document { hash: u64 },
    /// An object of the last document.
    Object(Manifest),
}

/// The documents that a file is known to have, by the hash of their text. The hash has a random key and 64
/// bits: that a changed document has that of a known one is less likely than an error of the memory.
#[derive(Clone, Default)]
pub(super) struct Known {
    /// Whether the file has had objects, so that an empty text is a fault.
    pub(super) has_objects: bool,
    pub(super) key: RandomState,
    pub(super) hashes: HashSet<u64>,
}

impl Known {
    /// Reads the text of a file. One that says nothing where there were objects is a writer's fault, a full
    /// disk's or an editor's more often than a wish to have none of them.
    fn text(&self, path: &Path) -> Result<String, Error> {
        let text = read_text(path)?;
        if self.has_objects && says_nothing(&text) {
            let what = if text.trim().is_empty() { "is empty" } else { "says nothing" };
            let reason = format!("the file {what}: expected its objects, an empty list, or no file");
            let fault = Fault { line: 1, column: None, reason };
            return Err(Error::Manifests(vec![ManifestError::new(Arc::from(path), 1, fault)]));
        }
        Ok(text)
    }

    /// Returns the hash of a document, and whether it is known.
    fn has(&self, text: &str) -> (u64, bool) {
        // What follows a marker `---` begins with the end of its line, which means nothing.
        let hash = self.key.hash_one(text.trim_start_matches(['\r', '\n']));
        (hash, self.hashes.contains(&hash))
    }
}

/// Returns whether a text has comments and empty documents alone.
fn says_nothing(text: &str) -> bool {
    let is_nothing = |line: &str| line.starts_with('#') || matches!(line, "" | "---" | "..." | "null" | "~");
    text.lines().map(str::trim).all(is_nothing)
}

/// Reads a file, and keeps all that it has.
pub(super) fn read(path: &Path, known: &Known) -> Result<(Vec<Step>, Ignored), Error> {
    let mut steps = Vec::new();
    let mut keep = |step| {
        steps.push(step);
        Flow::Continue(())
    };
    let ignored = parse(path, &known.text(path)?, &mut Pass { known, sink: &mut keep })?;
    Ok((steps, ignored))
}

/// Reads a file, checks it, and passes what it has to `sink`. Keeps its text alone.
pub(super) fn stream(
    path: &Path,
    known: &Known,
    mut goes_on: impl FnMut() -> Flow,
    mut sink: impl FnMut(Step) -> Flow,
) -> Result<Ignored, Error> {
    let text = known.text(path)?;
    let mut check = Check { known, goes_on: &mut goes_on, there: HashSet::new(), names: HashSet::new() };
    let ignored = parse(path, &text, &mut check)?;
    let whole = Step::Whole { known: check.there, names: check.names };
    if sink(whole).is_break() {
        return Ok(ignored);
    }
    parse(path, &text, &mut Pass { known, sink: &mut sink })?;
    Ok(ignored)
}

/// Parses what is not known, and passes nothing on.
struct Check<'a> {
    known: &'a Known,
    goes_on: &'a mut dyn FnMut() -> Flow,
    /// The known documents that are there.
    there: HashSet<u64>,
    /// The objects of the others.
    names: HashSet<ObjectName>,
}

impl Sink for Check<'_> {
    fn wants(&mut self, text: &str, _: &dyn Fn() -> Origin) -> ControlFlow<(), bool> {
        let (hash, is_known) = self.known.has(text);
        if is_known {
            self.there.insert(hash);
        }
        (self.goes_on)().map_continue(|()| !is_known)
    }

    fn take(&mut self, manifest: Manifest) -> Flow {
        if self.known.has_objects {
            self.names.insert(ObjectName::of(&manifest.object));
        }
        (self.goes_on)()
    }

    fn passed_over(&mut self) -> Flow {
        (self.goes_on)()
    }
}

struct Pass<'a> {
    known: &'a Known,
    sink: &'a mut dyn FnMut(Step) -> Flow,
}

impl Sink for Pass<'_> {
    fn wants(&mut self, text: &str, origin: &dyn Fn() -> Origin) -> ControlFlow<(), bool> {
        let (hash, is_known) = self.known.has(text);
        let step = match is_known {
            true => Step::Known { hash, origin: origin() },
            false => Step::Document { hash },
        };
        (self.sink)(step).map_continue(|()| !is_known)
    }

    fn take(&mut self, manifest: Manifest) -> Flow {
        (self.sink)(Step::Object(manifest))
    }
}

/// A large file that is being read on a thread of its own, which stops when this is dropped.
pub(super) struct Reading {
    path: PathBuf,
    messages: Receiver<Message>,
    _is_wanted: Arc<()>,
}

enum Message {
    Step(Step),
    End(Result<Ignored, Error>),
}

/// The state of a reading.
pub(super) enum Progress {
    Step(Step),
    /// Nothing has come since the last call.
    Busy,
    /// All steps were taken, or there are none because the file has faults.
    End(Result<Ignored, Error>),
}

impl Reading {
    pub(super) fn start(path: PathBuf, known: Known) -> io::Result<Self> {
        let (sender, messages) = sync_channel(AHEAD);
        let is_wanted = Arc::new(());
        let (weak, of) = (Arc::downgrade(&is_wanted), path.clone());
        thread::Builder::new()
            .name("large manifest".to_owned())
            .spawn(move || run(&path, &known, &weak, &sender))?;
        Ok(Self { path: of, messages, _is_wanted: is_wanted })
    }

    pub(super) fn next(&self) -> Progress {
        match self.messages.try_recv() {
            Ok(Message::Step(step)) => Progress::Step(step),
            Ok(Message::End(outcome)) => Progress::End(outcome),
            Err(TryRecvError::Empty) => Progress::Busy,
            // It ends with a message, unless it panicked.
            Err(TryRecvError::Disconnected) => {
                let source = io::Error::other("the thread that read it is gone");
                Progress::End(Err(Error::Read { path: self.path.clone(), source }))
            }
        }
    }
}

fn run(path: &Path, known: &Known, is_wanted: &Weak<()>, sender: &SyncSender<Message>) {
    let goes_on = || if is_wanted.strong_count() > 0 { Flow::Continue(()) } else { Flow::Break(()) };
    let outcome = stream(path, known, goes_on, |step| match sender.send(Message::Step(step)) {
        Ok(()) => Flow::Continue(()),
        Err(_) => Flow::Break(()),
    });
    // Nobody may want to know any more.
    let _ = sender.send(Message::End(outcome));
}

/// The metadata that changes with the content of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    /// In bytes.
    pub(super) size: u64,
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

/// The number of steps that a thread may be ahead.
const AHEAD: usize = 64;
