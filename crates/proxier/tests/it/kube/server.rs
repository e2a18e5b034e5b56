//! An API server for tests: lists and watches as the Kubernetes API has them, over plain HTTP/1.1, and fails
//! on request.
//!
//! It is written on sockets, so that it can stop in the middle of a line, of a chunk or of a handshake. It
//! knows pages with `continue`, versions and a history of limited length (410), bookmarks, label selectors of
//! the form `!key`, the field selectors `metadata.name=` and `spec.clusterIP!=`, and that an object which
//! ceases to match a selector is told as `DELETED`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// The port in the test's own namespace.
pub(crate) const PORT: u16 = 6443;

/// The API server. It speaks on 127.0.0.1 of the namespace of the thread that calls [`ApiServer::up`].
pub(crate) struct ApiServer {
    shared: Arc<Shared>,
}

/// What it does wrong, once.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// Answers with this status, perhaps with `Retry-After` in seconds.
    Status(u16, Option<u32>),
    /// Says half of what it has to say and closes the connection: of a list, or of the next event of a watch.
    Cut,
    /// Ends the watch in good order in the middle of the line of an event.
    HalfLine,
    /// Says this line in a watch, and goes on.
    Line(String),
    /// Ends the watch as soon as it began.
    End,
    /// Takes the request and never answers.
    Hang,
    /// Begins a watch, and never says a word in it or ends it.
    Deaf,
    /// Answers with a page for people, as something in front of the server does.
    Page,
    /// Answers with this status and a body without end.
    Endless(u16),
}

impl Fault {
    /// An `ERROR` event with this code.
    pub(crate) fn error(code: u16) -> Self {
        let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code,
            "reason": if code == 410 { "Expired" } else { "InternalError" }, "message": "told to fail"});
        Self::Line(json!({"type": "ERROR", "object": status}).to_string())
    }
}

/// Which requests a fault is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    /// A list, or the first page of one.
    List,
    /// A further page.
    Continue,
    /// A watch.
    Watch,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    version: u64,
    /// Watches from before this version are told that it is gone.
    oldest: u64,
    objects: BTreeMap<Key, Value>,
    history: Vec<Change>,
    faults: VecDeque<(&'static str, Verb, Fault)>,
    requests: Vec<String>,
    /// The headers `Authorization` of all requests.
    authorizations: Vec<String>,
    /// How many bookmarks every watch should have sent.
    bookmarks: usize,
    /// The resource of each bookmark that was sent.
    bookmarked: Vec<String>,
    /// Requests to this resource are answered with 404.
    absent: Option<&'static str>,
    /// What is allowed, everything without it.
    role: Option<&'static [Rule]>,
    /// Verb, API group and resource of each request that was answered.
    allowed: BTreeSet<(String, String, String)>,
    /// The same of each that was forbidden.
    forbidden: BTreeSet<(String, String, String)>,
    /// The Events that were created.
    events: Vec<Value>,
    connections: Vec<TcpStream>,
    /// Goes up with every start and stop: whatever belongs to an earlier one ends.
    life: usize,
}

/// A rule of a `ClusterRole`: API group, resources, verbs.
pub(crate) type Rule = (&'static str, &'static [&'static str], &'static [&'static str]);

/// Resource, namespace, name.
type Key = (&'static str, String, String);

struct Change {
    version: u64,
    resource: &'static str,
    old: Option<Value>,
    new: Option<Value>,
}

/// Resource, and where it is.
const RESOURCES: [(&str, &str); 4] = [
    ("services", "/api/v1/services"),
    ("nodes", "/api/v1/nodes"),
    ("endpointslices", "/apis/discovery.k8s.io/v1/endpointslices"),
    ("servicecidrs", "/apis/networking.k8s.io/v1/servicecidrs"),
];

impl ApiServer {
    /// A server that is not up yet.
    pub(crate) fn new() -> Self {
        let shared = Shared::default();
        lock(&shared).version = 1;
        Self { shared: Arc::new(shared) }
    }

    /// A server that is up.
    pub(crate) fn started() -> Self {
        let server = Self::new();
        server.up();
        server
    }

    /// Listens and answers.
    pub(crate) fn up(&self) {
        let listener = TcpListener::bind(("127.0.0.1", PORT)).expect("the port of the namespace is free");
        listener.set_nonblocking(true).expect("a socket can be non-blocking");
        let life = {
            let mut state = self.lock();
            state.life += 1;
            state.life
        };
        let shared = Arc::clone(&self.shared);
        thread::spawn(move || accept(&shared, &listener, life));
    }

    /// Closes all connections, and refuses new ones once this returns.
    pub(crate) fn down(&self) {
        let mut state = self.lock();
        state.life += 1;
        for connection in state.connections.drain(..) {
            // One that the client closed already is closed.
            let _ = connection.shutdown(Shutdown::Both);
        }
        drop(state);
        self.shared.changed.notify_all();
        let deadline = Instant::now() + Duration::from_secs(30);
        while TcpStream::connect(("127.0.0.1", PORT)).is_ok() {
            assert!(Instant::now() < deadline, "the listener goes away");
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Creates or changes an object.
    pub(crate) fn put(&self, resource: &'static str, mut object: Value) {
        let mut state = self.lock();
        state.version += 1;
        object["metadata"]["resourceVersion"] = json!(state.version.to_string());
        let old = state.objects.insert(key(resource, &object), object.clone());
        let version = state.version;
        state.history.push(Change { version, resource, old, new: Some(object) });
        drop(state);
        self.shared.changed.notify_all();
    }

    /// Deletes an object, if there is one of that name.
    pub(crate) fn delete(&self, resource: &'static str, namespace: &str, name: &str) {
        let mut state = self.lock();
        let Some(old) = state.objects.remove(&(resource, namespace.to_owned(), name.to_owned())) else {
            return;
        };
        state.version += 1;
        let version = state.version;
        state.history.push(Change { version, resource, old: Some(old), new: None });
        drop(state);
        self.shared.changed.notify_all();
    }

    /// Forgets the history: whoever asks for what came after an earlier version is told that it is gone.
    pub(crate) fn forget(&self) {
        let mut state = self.lock();
        state.oldest = state.version + 1;
        state.version += 1;
    }

    /// The next request of this kind fails.
    pub(crate) fn fail(&self, resource: &'static str, verb: Verb, fault: Fault) {
        self.lock().faults.push_back((resource, verb, fault));
    }

    /// True when every fault was used.
    pub(crate) fn has_failed(&self) -> bool {
        self.lock().faults.is_empty()
    }

    /// Takes back the faults that were not used.
    pub(crate) fn mend(&self) {
        self.lock().faults.clear();
    }

    /// Sends a bookmark to every watch, also to those that are yet to begin.
    pub(crate) fn bookmark(&self) {
        let mut state = self.lock();
        state.bookmarks += 1;
        state.version += 1;
        drop(state);
        self.shared.changed.notify_all();
    }

    /// True when a bookmark was sent to a watch of this resource.
    pub(crate) fn has_bookmarked(&self, resource: &str) -> bool {
        self.lock().bookmarked.iter().any(|bookmarked| bookmarked == resource)
    }

    /// This API does not exist, or exists after all.
    pub(crate) fn set_absent(&self, resource: Option<&'static str>) {
        self.lock().absent = resource;
    }

    /// Allows what these rules allow, and answers all else with 403, whether it exists or not.
    pub(crate) fn authorize(&self, role: &'static [Rule]) {
        self.lock().role = Some(role);
    }

    /// Verb, API group and resource of the requests that were allowed, and of those that were forbidden.
    pub(crate) fn decisions(&self) -> [Vec<(String, String, String)>; 2] {
        let state = self.lock();
        [&state.allowed, &state.forbidden].map(|decided| decided.iter().cloned().collect())
    }

    /// The targets of the requests to a resource, in their order.
    pub(crate) fn requests(&self, resource: &str) -> Vec<String> {
        let path = path(resource);
        self.lock().requests.iter().filter(|target| target.split('?').next() == Some(path)).cloned().collect()
    }

    /// How the requests were authorised.
    pub(crate) fn authorizations(&self) -> Vec<String> {
        self.lock().authorizations.clone()
    }

    /// What a client that asks for all of a resource with these selectors should know.
    pub(crate) fn objects(&self, resource: &str, selectors: &str) -> Vec<Value> {
        let query = Query::parse(selectors);
        let state = self.lock();
        let all = state.objects.iter().filter(|((of, ..), _)| *of == resource);
        all.map(|(_, object)| object).filter(|object| query.selects(object)).cloned().collect()
    }

    /// Returns the Events that clients have created.
    pub(crate) fn events(&self) -> Vec<Value> {
        self.lock().events.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.shared)
    }
}

impl Drop for ApiServer {
    fn drop(&mut self) {
        // Threads that wait for changes end with it.
        let mut state = self.lock();
        state.life += 1;
        drop(state);
        self.shared.changed.notify_all();
    }
}

fn lock(shared: &Shared) -> MutexGuard<'_, State> {
    shared.state.lock().expect("no thread of the server panics")
}

fn key(resource: &'static str, object: &Value) -> Key {
    let text = |name: &str| object["metadata"][name].as_str().unwrap_or_default().to_owned();
    (resource, text("namespace"), text("name"))
}

fn path(resource: &str) -> &'static str {
    RESOURCES.iter().find(|(name, _)| *name == resource).expect("the resource is known").1
}

fn accept(shared: &Arc<Shared>, listener: &TcpListener, life: usize) {
    while lock(shared).life == life {
        let Ok((stream, _)) = listener.accept() else {
            thread::sleep(Duration::from_millis(1));
            continue;
        };
        let mut state = lock(shared);
        if state.life != life {
            return;
        }
        stream.set_nonblocking(false).expect("a socket can be blocking");
        state.connections.push(stream.try_clone().expect("a socket can be duplicated"));
        drop(state);
        let shared = Arc::clone(shared);
        // An error is a connection that was closed, by one side or the other.
        thread::spawn(move || Connection { shared: &shared, stream, life }.serve().err());
    }
}

struct Connection<'a> {
    shared: &'a Shared,
    stream: TcpStream,
    life: usize,
}

impl Connection<'_> {
    /// Answers one request after the other.
    fn serve(&mut self) -> io::Result<()> {
        let mut reader = BufReader::new(self.stream.try_clone()?);
        while let Some(Asked { method, target, authorization, body }) = request(&mut reader)? {
            lock(self.shared).authorizations.extend(authorization);
            if method == "POST" {
                self.create(&target, &body)?;
            } else {
                self.answer(&method, &target)?;
            }
        }
        Ok(())
    }

    /// Creates an Event, which is all that clients create here.
    fn create(&mut self, target: &str, body: &[u8]) -> io::Result<()> {
        let path = target.split('?').next().unwrap_or(target);
        let mut state = lock(self.shared);
        if !state.authorizes("POST", path, false) {
            drop(state);
            return self.status(403, None);
        }
        let place = path.strip_prefix("/apis/events.k8s.io/v1/namespaces/");
        match (place.and_then(|place| place.strip_suffix("/events")), serde_json::from_slice::<Value>(body)) {
            (Some(namespace), Ok(event)) if event["metadata"]["namespace"] == namespace => {
                state.events.push(event);
                drop(state);
                self.status(201, None)
            }
            _ => {
                drop(state);
                self.status(400, None)
            }
        }
    }

    fn answer(&mut self, method: &str, target: &str) -> io::Result<()> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let query = Query::parse(query);
        if !lock(self.shared).authorizes(method, path, query.get("watch").is_some()) {
            return self.status(403, None);
        }
        let verb = match (query.get("watch"), query.get("continue")) {
            (Some(_), _) => Verb::Watch,
            (None, Some(_)) => Verb::Continue,
            (None, None) => Verb::List,
        };
        let resource = RESOURCES.iter().find(|(_, known)| *known == path).map(|(resource, _)| *resource);
        let mut state = lock(self.shared);
        state.requests.push(target.to_owned());
        let Some(resource) = resource.filter(|resource| state.absent != Some(resource)) else {
            drop(state);
            return self.status(404, None);
        };
        let fault = state.faults.iter().position(|(of, when, _)| *of == resource && *when == verb);
        let fault = fault.and_then(|at| state.faults.remove(at)).map(|(.., fault)| fault);
        drop(state);
        match (fault, verb) {
            (Some(Fault::Status(code, retry_after)), _) => self.status(code, retry_after),
            (Some(Fault::Hang), _) => {
                self.wait_for_the_end();
                Err(io::ErrorKind::ConnectionAborted.into())
            }
            (Some(Fault::Page), _) => self.page(),
            (Some(Fault::Endless(code)), _) => self.endless(code),
            (fault, Verb::Watch) => self.watch(resource, &query, fault),
            (fault, _) => self.list(resource, &query, matches!(fault, Some(Fault::Cut))),
        }
    }

    fn status(&mut self, code: u16, retry_after: Option<u32>) -> io::Result<()> {
        let body =
            json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code,
            "message": format!("told to answer {code}")})
            .to_string();
        let retry_after =
            retry_after.map(|seconds| format!("Retry-After: {seconds}\r\n")).unwrap_or_default();
        write!(
            self.stream,
            "HTTP/1.1 {code} Told\r\n{retry_after}Content-Length: {}\r\n\r\n{body}",
            body.len()
        )
    }

    fn page(&mut self) -> io::Result<()> {
        let (head, body) =
            ("HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8", "<html>Log in</html>");
        write!(self.stream, "{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len())
    }

    /// Ends when the client closes the connection.
    fn endless(&mut self, code: u16) -> io::Result<()> {
        write!(self.stream, "HTTP/1.1 {code} Told\r\nTransfer-Encoding: chunked\r\n\r\n")?;
        loop {
            write!(self.stream, "{:x}\r\n{}\r\n", 1 << 16, " ".repeat(1 << 16))?;
        }
    }

    fn list(&mut self, resource: &str, query: &Query, cut: bool) -> io::Result<()> {
        let state = lock(self.shared);
        // `continue` is the version of the first page, and how much of the list was given.
        let token = query.get("continue").and_then(|token| token.split_once('.'));
        let (version, given) = match token {
            Some((version, given)) => (version.to_owned(), given.parse().unwrap_or_default()),
            None => (state.version.to_string(), 0_usize),
        };
        let gone = version.parse::<u64>().is_ok_and(|version| version < state.oldest);
        let all: Vec<&Value> = state
            .objects
            .iter()
            .filter(|((of, ..), object)| *of == resource && query.selects(object))
            .map(|(_, object)| object)
            .collect();
        let limit = query.get("limit").and_then(|limit| limit.parse().ok()).unwrap_or(usize::MAX);
        let end = given.saturating_add(limit).min(all.len());
        let more = (end < all.len()).then(|| format!("{version}.{end}"));
        let page = all.get(given..end).unwrap_or_default();
        let (api_version, kind) = kind(resource);
        let metadata = json!({"resourceVersion": version, "continue": more});
        let list = format!("{kind}List");
        let body = json!({"apiVersion": api_version, "kind": list, "metadata": metadata, "items": page});
        let body = body.to_string();
        drop(state);
        if gone {
            return self.status(410, None);
        }
        write!(self.stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len())?;
        if cut {
            self.stream.write_all(&body.as_bytes()[..body.len() / 2])?;
            return self.cut();
        }
        self.stream.write_all(body.as_bytes())
    }

    fn watch(&mut self, resource: &str, query: &Query, mut fault: Option<Fault>) -> io::Result<()> {
        let mut seen: u64 =
            query.get("resourceVersion").and_then(|version| version.parse().ok()).unwrap_or(0);
        let seconds = query.get("timeoutSeconds").and_then(|text| text.parse().ok()).unwrap_or(60);
        let deadline = Instant::now() + Duration::from_secs(seconds);
        let mut bookmarks = lock(self.shared).bookmarks;
        write!(self.stream, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
        if seen < lock(self.shared).oldest {
            let Fault::Line(line) = Fault::error(410) else { unreachable!("an ERROR event is a line") };
            self.line(&line)?;
            return self.end();
        }
        match &fault {
            Some(Fault::Line(line)) => self.line(line)?,
            Some(Fault::End) => return self.end(),
            Some(Fault::Deaf) => {
                self.wait_for_the_end();
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            _ => {}
        }
        loop {
            let state = lock(self.shared);
            if state.life != self.life {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            let new =
                state.history.iter().filter(|change| change.version > seen && change.resource == resource);
            let events: Vec<String> = new.filter_map(|change| query.event(change)).collect();
            let bookmark = (state.bookmarks > bookmarks).then_some(state.version);
            (seen, bookmarks) = (state.version, state.bookmarks);
            drop(state);
            for event in events {
                match fault.take() {
                    Some(Fault::Cut) => {
                        let half = &event[..event.len() / 2];
                        write!(self.stream, "{:x}\r\n{half}", event.len() + 1)?;
                        return self.cut();
                    }
                    Some(Fault::HalfLine) => {
                        let half = &event[..event.len() / 2];
                        write!(self.stream, "{:x}\r\n{half}\r\n", half.len())?;
                        return self.end();
                    }
                    _ => self.line(&event)?,
                }
            }
            if let Some(version) = bookmark.filter(|_| query.get("allowWatchBookmarks") == Some("true")) {
                let bookmark =
                    of_kind(resource, json!({"metadata": {"resourceVersion": version.to_string()}}));
                self.line(&json!({"type": "BOOKMARK", "object": bookmark}).to_string())?;
                lock(self.shared).bookmarked.push(resource.to_owned());
            }
            let Some(left) = deadline.checked_duration_since(Instant::now()) else { return self.end() };
            let state = lock(self.shared);
            if state.version == seen && state.life == self.life {
                // In slices: a change between the two locks is seen a moment later.
                drop(self.shared.changed.wait_timeout(state, left.min(Duration::from_millis(200))));
            }
        }
    }

    fn line(&mut self, line: &str) -> io::Result<()> {
        write!(self.stream, "{:x}\r\n{line}\n\r\n", line.len() + 1)
    }

    /// The end of a chunked body.
    fn end(&mut self) -> io::Result<()> {
        self.stream.write_all(b"0\r\n\r\n")
    }

    fn cut(&mut self) -> io::Result<()> {
        self.stream.shutdown(Shutdown::Both)?;
        Err(io::ErrorKind::ConnectionAborted.into())
    }

    fn wait_for_the_end(&self) {
        let mut state = lock(self.shared);
        while state.life == self.life {
            let (next, _) = self
                .shared
                .changed
                .wait_timeout(state, Duration::from_millis(200))
                .expect("no thread of the server panics");
            state = next;
        }
    }
}

impl State {
    /// Decides as RBAC does, and remembers it.
    fn authorizes(&mut self, method: &str, path: &str, is_watch: bool) -> bool {
        let Some(role) = self.role else { return true };
        let segments: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        // A path of no resource has no group: it is then its own name, which no rule has.
        let (group, resource, name) = match segments.as_slice() {
            ["api", _, "namespaces", _, resource, name @ ..] | ["api", _, resource, name @ ..] => {
                ("", *resource, name)
            }
            ["apis", group, _, "namespaces", _, resource, name @ ..]
            | ["apis", group, _, resource, name @ ..] => (*group, *resource, name),
            _ => ("", path, &[][..]),
        };
        let verb = match (method, is_watch, name.is_empty()) {
            ("GET", true, _) => "watch",
            ("GET", false, true) => "list",
            ("GET", false, false) => "get",
            ("POST", ..) => "create",
            ("PUT", ..) => "update",
            ("PATCH", ..) => "patch",
            _ => "delete",
        };
        let is_allowed = role.iter().any(|(of, resources, verbs)| {
            *of == group && resources.contains(&resource) && verbs.contains(&verb)
        });
        let decided = if is_allowed { &mut self.allowed } else { &mut self.forbidden };
        decided.insert((verb.to_owned(), group.to_owned(), resource.to_owned()));
        is_allowed
    }
}

/// A request.
struct Asked {
    method: String,
    target: String,
    authorization: Option<String>,
    body: Vec<u8>,
}

/// Reads a request; none when the client is done.
fn request(reader: &mut BufReader<TcpStream>) -> io::Result<Option<Asked>> {
    let mut first = String::new();
    if reader.read_line(&mut first)? == 0 {
        return Ok(None);
    }
    let (mut authorization, mut length) = (None, 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? <= 2 {
            break;
        }
        if let Some((name, value)) = line.split_once(':') {
            match name.to_ascii_lowercase().as_str() {
                "authorization" => authorization = Some(value.trim().to_owned()),
                "content-length" => length = value.trim().parse().expect("a length"),
                _ => {}
            }
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let mut words = first.split(' ').map(str::to_owned);
    let asked = words.next().zip(words.next());
    Ok(asked.map(|(method, target)| Asked { method, target, authorization, body }))
}

/// The parameters of a request.
struct Query(BTreeMap<String, String>);

impl Query {
    fn parse(text: &str) -> Self {
        let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
        Self(pairs.map(|(name, value)| (decode(name), decode(value))).collect())
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    fn selects(&self, object: &Value) -> bool {
        let label = self.get("labelSelector").is_none_or(|selector| {
            let key = selector.strip_prefix('!').expect("a selector of the form !key");
            object["metadata"]["labels"].get(key).is_none()
        });
        let field = self.get("fieldSelector").is_none_or(|selector| {
            let (path, value, equal) = match selector.split_once("!=") {
                Some((path, value)) => (path, value, false),
                None => {
                    selector.split_once('=').map(|(path, value)| (path, value, true)).expect("path=value")
                }
            };
            let pointer = format!("/{}", path.replace('.', "/"));
            let is = object.pointer(&pointer).and_then(Value::as_str).unwrap_or_default();
            (is == value) == equal
        });
        label && field
    }

    /// What a watch is told of a change.
    fn event(&self, change: &Change) -> Option<String> {
        let [old, new] = [&change.old, &change.new].map(|object| object.as_ref().filter(|o| self.selects(o)));
        let (r#type, mut object) = match (old, new) {
            (None, None) => return None,
            (None, Some(new)) => ("ADDED", new.clone()),
            (Some(_), Some(new)) => ("MODIFIED", new.clone()),
            (Some(old), None) => ("DELETED", old.clone()),
        };
        object["metadata"]["resourceVersion"] = json!(change.version.to_string());
        let object = of_kind(change.resource, object);
        Some(json!({"type": r#type, "object": object}).to_string())
    }
}

/// Says of which kind an object is, as every event does and the items of a list do not.
fn of_kind(resource: &str, mut object: Value) -> Value {
    let (version, kind) = kind(resource);
    object["apiVersion"] = json!(version);
    object["kind"] = json!(kind);
    object
}

fn kind(resource: &str) -> (&'static str, &'static str) {
    match resource {
        "services" => ("v1", "Service"),
        "nodes" => ("v1", "Node"),
        "endpointslices" => ("discovery.k8s.io/v1", "EndpointSlice"),
        _ => ("networking.k8s.io/v1", "ServiceCIDR"),
    }
}

/// Undoes `%2C` and `+`.
fn decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        bytes.push(match (first, tail) {
            (b'+', _) => b' ',
            (b'%', [high, low, after @ ..]) => {
                rest = after;
                let digits = [*high, *low];
                let digits = std::str::from_utf8(&digits).expect("two digits");
                u8::from_str_radix(digits, 16).expect("two hexadecimal digits")
            }
            _ => *first,
        });
    }
    String::from_utf8(bytes).expect("the query is UTF-8")
}
