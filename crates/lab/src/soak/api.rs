//! An API server of four kinds of objects: lists and watches over HTTP/1.1, which are slow, broken and wrong at
//! random for as long as the siege lasts.
//!
//! It is written with blocking sockets and a thread for each connection, as its faults are: an answer that ends
//! in the middle of a line, one that never comes, a body that is longer than it says.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sluicegate_proxier::source::Object;

use super::Random;

/// The API server, on an address of its own.
pub(super) struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    /// Notified when objects change, and when the siege pauses or goes on.
    changed: Condvar,
}

struct State {
    /// The version of the last change.
    version: u64,
    /// The objects, by a name of the siege's, each with its path.
    objects: BTreeMap<String, (&'static str, Value)>,
    /// The last changes.
    events: VecDeque<Event>,
    /// The version from which on all changes are among `events`.
    oldest: u64,
    is_calm: bool,
    random: Random,
    /// How often each fault was made.
    faults: BTreeMap<&'static str, usize>,
}

#[derive(Clone)]
struct Event {
    version: u64,
    path: &'static str,
    what: &'static str,
    object: Value,
}

/// What goes wrong with an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// It comes in pieces, with pauses.
    Slow,
    /// A status instead, with a time to wait.
    Refused,
    /// A page for people instead.
    Page,
    /// Bytes that are not JSON instead.
    Garbage,
    /// A JSON value of another shape instead.
    OtherShape,
    /// It ends in the middle, with its connection.
    Cut,
    /// It does not come.
    Hang,
    /// Of a watch: what was asked for is too old.
    Gone,
    /// Of a watch: the deletion of an object of another kind with a name that is in use.
    OtherKind,
    /// Of a watch: it ends early.
    Ends,
}

impl Fault {
    const OF_LIST: [Self; 7] =
        [Self::Slow, Self::Refused, Self::Page, Self::Garbage, Self::OtherShape, Self::Cut, Self::Hang];
    const OF_WATCH: [Self; 8] = [
        Self::Slow,
        Self::Garbage,
        Self::OtherShape,
        Self::Cut,
        Self::Hang,
        Self::Gone,
        Self::OtherKind,
        Self::Ends,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Slow => "slow answers",
            Self::Refused => "refusals",
            Self::Page => "pages for people",
            Self::Garbage => "garbage",
            Self::OtherShape => "values of another shape",
            Self::Cut => "answers cut short",
            Self::Hang => "no answer",
            Self::Gone => "watches that are too old",
            Self::OtherKind => "events of another kind",
            Self::Ends => "watches that end early",
        }
    }
}

impl Server {
    /// Starts it in the network namespace of the calling thread, with the object of this node.
    pub(super) fn start(node: &Object, seed: u64) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let state = State {
            version: 1,
            objects: BTreeMap::new(),
            events: VecDeque::new(),
            oldest: 1,
            is_calm: false,
            random: Random(seed),
            faults: BTreeMap::new(),
        };
        let server =
            Self { address, shared: Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() }) };
        server.set("node", node)?;
        let shared = Arc::clone(&server.shared);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    // A client that goes, as a program that is killed does, is no failure.
                    let _ = shared.serve(&stream);
                });
            }
        });
        Ok(server)
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Adds or replaces an object.
    pub(super) fn set(&self, name: &str, object: &Object) -> io::Result<()> {
        let (path, value) = match object {
            Object::Service(object) => (SERVICES, serde_json::to_value(object)?),
            Object::EndpointSlice(object) => (SLICES, serde_json::to_value(object)?),
            Object::Node(object) => (NODES, serde_json::to_value(object)?),
            Object::ServiceCidr(object) => (CIDRS, serde_json::to_value(object)?),
        };
        let mut state = self.shared.lock();
        let what = if state.objects.contains_key(name) { "MODIFIED" } else { "ADDED" };
        let event = state.record(path, what, value);
        state.objects.insert(name.to_owned(), (path, event));
        self.shared.changed.notify_all();
        Ok(())
    }

    pub(super) fn delete(&self, name: &str) {
        let mut state = self.shared.lock();
        if let Some((path, object)) = state.objects.remove(name) {
            state.record(path, "DELETED", object);
            self.shared.changed.notify_all();
        }
    }

    /// Forgets what has changed, so that every watch has to begin with a list.
    pub(super) fn forget(&self) {
        let mut state = self.shared.lock();
        state.events.clear();
        state.oldest = state.version + 1;
        state.version += 1;
        self.shared.changed.notify_all();
    }

    /// Answers without faults from now on, or with them.
    pub(super) fn set_calm(&self, is_calm: bool) {
        self.shared.lock().is_calm = is_calm;
        self.shared.changed.notify_all();
    }

    pub(super) fn faults(&self) -> BTreeMap<&'static str, usize> {
        self.shared.lock().faults.clone()
    }
}

impl State {
    /// Gives a change a version, and the object with it.
    fn record(&mut self, path: &'static str, what: &'static str, mut object: Value) -> Value {
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.events.push_back(Event { version: self.version, path, what, object: object.clone() });
        if self.events.len() > MOST_EVENTS
            && let Some(first) = self.events.pop_front()
        {
            self.oldest = first.version;
        }
        object
    }

    /// Draws whether something goes wrong, one time in `of`.
    fn draw(&mut self, faults: &[Fault], of: u32) -> Option<Fault> {
        if self.is_calm || self.random.below(of) > 0 {
            return None;
        }
        let index = self.random.below(u32::try_from(faults.len()).unwrap_or(1));
        let fault = faults.get(index as usize).copied()?;
        *self.faults.entry(fault.name()).or_default() += 1;
        Some(fault)
    }
}

/// The head of a request.
struct Request {
    is_post: bool,
    path: String,
    parameters: BTreeMap<String, String>,
}

impl Request {
    /// Reads a request and drops its body. `None` at the end of the connection.
    fn read(reader: &mut BufReader<&TcpStream>) -> io::Result<Option<Self>> {
        let (mut line, mut length) = (String::new(), 0);
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let mut words = line.split(' ');
        let is_post = words.next() == Some("POST");
        let (path, query) =
            words.next().map(|target| target.split_once('?').unwrap_or((target, ""))).unwrap_or_default();
        let parameters = query.split('&').filter_map(|part| part.split_once('='));
        let parameters = parameters.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let path = path.to_owned();
        loop {
            let mut header = String::new();
            reader.read_line(&mut header)?;
            let Some((name, value)) = header.trim_end().split_once(':') else { break };
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().unwrap_or_default();
            }
        }
        io::copy(&mut reader.take(length), &mut io::sink())?;
        Ok(Some(Self { is_post, path, parameters }))
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.parameters.get(name)?.parse().ok()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a change, or for some time.
    fn wait<'a>(&self, state: MutexGuard<'a, State>, time: Duration) -> MutexGuard<'a, State> {
        self.changed.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0
    }

    fn serve(&self, stream: &TcpStream) -> io::Result<()> {
        stream.set_read_timeout(Some(Duration::from_secs(120)))?;
        stream.set_write_timeout(Some(Duration::from_secs(10)))?;
        stream.set_nodelay(true)?;
        let mut reader = BufReader::new(stream);
        while let Some(request) = Request::read(&mut reader)? {
            let path = PATHS.into_iter().find(|(path, _)| *path == request.path);
            let goes_on = match path {
                _ if request.is_post => answer(stream, 201, "", JSON, b"{}").map(|()| true)?,
                None => {
                    answer(stream, 404, "", JSON, b"{\"kind\":\"Status\",\"code\":404}").map(|()| true)?
                }
                Some((path, _)) if request.parameters.contains_key("watch") => {
                    self.watch(stream, &request, path)?
                }
                Some((path, kind)) => self.list(stream, path, kind)?,
            };
            if !goes_on {
                break;
            }
        }
        Ok(())
    }

    /// Answers a list. Returns whether the connection goes on.
    fn list(&self, mut stream: &TcpStream, path: &'static str, kind: &str) -> io::Result<bool> {
        let mut state = self.lock();
        let items: Vec<&Value> =
            state.objects.values().filter(|(of, _)| *of == path).map(|(_, object)| object).collect();
        let version = state.version.to_string();
        // `/api/v1/services`, `/apis/discovery.k8s.io/v1/endpointslices`
        let place = path.rsplit_once('/').map_or(path, |(place, _)| place);
        let api = place.strip_prefix("/apis/").or_else(|| place.strip_prefix("/api/"));
        let body = json!({"kind": kind, "apiVersion": api, "metadata": {"resourceVersion": version}, "items": items});
        let body = serde_json::to_vec(&body)?;
        let fault = state.draw(&Fault::OF_LIST, 3);
        drop(state);
        match fault {
            Some(Fault::Refused) => answer(stream, 429, "Retry-After: 1\r\n", JSON, b"{}")?,
            Some(Fault::Page) => answer(stream, 200, "", "text/html", b"<html>welcome</html>")?,
            Some(Fault::Garbage) => {
                answer(stream, 200, "Content-Encoding: gzip\r\n", JSON, &[0x1f, 0x8b, 8, 0, 0xff])?;
            }
            Some(Fault::OtherShape) => {
                answer(
                    stream,
                    200,
                    "",
                    JSON,
                    b"{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":{\"a\":1}}",
                )?;
            }
            Some(Fault::Cut) => {
                let head = head(200, &format!("Content-Length: {}\r\n", body.len() + 1), JSON);
                stream.write_all(head.as_bytes())?;
                stream.write_all(body.get(..body.len() / 2).unwrap_or_default())?;
                return Ok(false);
            }
            Some(Fault::Hang) => return Ok(self.hang()),
            Some(Fault::Slow) => {
                let head = head(200, &format!("Content-Length: {}\r\n", body.len()), JSON);
                stream.write_all(head.as_bytes())?;
                slowly(stream, &body)?;
            }
            _ => answer(stream, 200, "", JSON, &body)?,
        }
        Ok(true)
    }

    /// Answers a watch until it is over. Returns whether the connection goes on.
    fn watch(&self, mut stream: &TcpStream, request: &Request, path: &'static str) -> io::Result<bool> {
        let lasts = Duration::from_secs(request.number("timeoutSeconds").unwrap_or(30));
        let (end, mut seen) = (Instant::now() + lasts, request.number("resourceVersion").unwrap_or_default());
        stream.write_all(head(200, "Transfer-Encoding: chunked\r\n", JSON).as_bytes())?;
        while Instant::now() < end {
            let mut state = self.lock();
            if seen < state.oldest {
                drop(state);
                chunk(stream, GONE)?;
                break;
            }
            let new = state.events.iter().filter(|event| event.version > seen && event.path == path);
            let mut events: Vec<Event> = new.cloned().collect();
            if events.is_empty() {
                // With the version of another kind's change: this one has seen all before it.
                if state.version > seen + BOOKMARK_AFTER {
                    seen = state.version;
                    let object = json!({"metadata": {"resourceVersion": seen.to_string()}});
                    events.push(Event { version: seen, path, what: "BOOKMARK", object });
                } else {
                    drop(self.wait(state, Duration::from_millis(200)));
                    continue;
                }
            }
            let fault = state.draw(&Fault::OF_WATCH, 12);
            drop(state);
            seen = events.last().map_or(seen, |event| event.version);
            let mut lines = Vec::new();
            for event in &events {
                serde_json::to_writer(&mut lines, &json!({"type": event.what, "object": event.object}))?;
                lines.push(b'\n');
            }
            match fault {
                None => chunk(stream, &lines)?,
                Some(Fault::Slow) => {
                    for piece in lines.chunks(lines.len() / PIECES + 1) {
                        chunk(stream, piece)?;
                        thread::sleep(PAUSE);
                    }
                }
                Some(Fault::Garbage) => chunk(stream, b"\x1f\x8b\x08\x00{\n")?,
                Some(Fault::OtherShape) => chunk(stream, b"{\"type\":\"ADDED\",\"object\":[1]}\n")?,
                Some(Fault::OtherKind) => {
                    let name =
                        &events.first().map(|event| event.object["metadata"].clone()).unwrap_or_default();
                    let pod = json!({"kind": "Pod", "apiVersion": "v1", "metadata": name});
                    let line = serde_json::to_vec(&json!({"type": "DELETED", "object": pod}))?;
                    chunk(stream, &[line.as_slice(), b"\n"].concat())?;
                }
                Some(Fault::Gone) => {
                    chunk(stream, GONE)?;
                    break;
                }
                Some(Fault::Cut) => {
                    chunk(stream, lines.get(..lines.len() * 2 / 3).unwrap_or_default())?;
                    return Ok(false);
                }
                Some(Fault::Hang) => return Ok(self.hang()),
                Some(_) => break,
            }
        }
        stream.write_all(b"0\r\n\r\n")?;
        Ok(true)
    }

    /// Says nothing for some seconds, or until the siege pauses. Then the connection ends.
    fn hang(&self) -> bool {
        let end = Instant::now() + LONGEST_HANG;
        let mut state = self.lock();
        while !state.is_calm && Instant::now() < end {
            state = self.wait(state, Duration::from_millis(200));
        }
        false
    }
}

fn head(status: u16, headers: &str, media_type: &str) -> String {
    format!("HTTP/1.1 {status} Soak\r\nContent-Type: {media_type}\r\n{headers}\r\n")
}

fn answer(
    mut stream: &TcpStream,
    status: u16,
    headers: &str,
    media_type: &str,
    body: &[u8],
) -> io::Result<()> {
    let head = head(status, &format!("{headers}Content-Length: {}\r\n", body.len()), media_type);
    stream.write_all(&[head.as_bytes(), body].concat())
}

fn chunk(mut stream: &TcpStream, data: &[u8]) -> io::Result<()> {
    // One of no bytes would be the last.
    if data.is_empty() {
        return Ok(());
    }
    stream.write_all(&[format!("{:x}\r\n", data.len()).as_bytes(), data, b"\r\n"].concat())
}

fn slowly(mut stream: &TcpStream, data: &[u8]) -> io::Result<()> {
    for piece in data.chunks(data.len() / PIECES + 1) {
        stream.write_all(piece)?;
        thread::sleep(PAUSE);
    }
    Ok(())
}

const SERVICES: &str = "/api/v1/services";
const SLICES: &str = "/apis/discovery.k8s.io/v1/endpointslices";
const NODES: &str = "/api/v1/nodes";
const CIDRS: &str = "/apis/networking.k8s.io/v1/servicecidrs";
/// The paths, and the kinds of their lists.
const PATHS: [(&str, &str); 4] = [
    (SERVICES, "ServiceList"),
    (SLICES, "EndpointSliceList"),
    (NODES, "NodeList"),
    (CIDRS, "ServiceCIDRList"),
];
const JSON: &str = "application/json";
const GONE: &[u8] =
    b"{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\",\"message\":\"too old\"}}\n";
/// The changes that a watch may be behind.
const MOST_EVENTS: usize = 500;
/// The changes of other kinds after which a watch is told how far it is.
const BOOKMARK_AFTER: u64 = 50;
/// The pieces of a slow answer, and the pause after each.
const PIECES: usize = 20;
const PAUSE: Duration = Duration::from_millis(20);
const LONGEST_HANG: Duration = Duration::from_secs(4);
