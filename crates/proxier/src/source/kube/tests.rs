//! Outages on a paused clock: a scripted API server, the source, and the run loop with a kernel that only
//! remembers.

use std::collections::BTreeSet;
use std::io;
use std::sync::Mutex;

use futures_util::{future, stream};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Bytes, Frame};
use hyper::{Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use sluicegate_service_rules::{Backend, Error as RulesError, Summary};
use sluicegate_services::{Changes, Cluster};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};
use tower::{BoxError, service_fn};

use super::*;
use crate::run::{Intervals, Loop, ThisNode, World};
use crate::source::observer::Verb;
use crate::source::update::Kind;

/// What the server does with each request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Refuses,
    Answers(u16),
    Works,
}

/// An API server with one service, without sockets.
#[derive(Clone)]
struct Script(Arc<Inner>);

struct Inner {
    phase: watch::Sender<Phase>,
    state: Mutex<State>,
}

type ResponseBody = UnsyncBoxBody<Bytes, io::Error>;

#[derive(Default)]
struct State {
    service: &'static str,
    version: u64,
    /// The times of all requests, of the node with this number.
    requests: Vec<(usize, Instant)>,
    /// The time of the first request that was not refused, since the last outage.
    first_answer: Option<Instant>,
}

impl Script {
    fn new() -> Self {
        let state = Mutex::new(State { service: "old", version: 1, ..State::default() });
        Self(Arc::new(Inner { phase: watch::Sender::new(Phase::Works), state }))
    }

    fn enter(&self, phase: Phase) {
        self.0.state.lock().unwrap().first_answer = None;
        self.0.phase.send_replace(phase);
    }

    /// Replaces the service while nobody watches: earlier versions are gone.
    fn replace(&self, service: &'static str) {
        let mut state = self.0.state.lock().unwrap();
        (state.service, state.version) = (service, state.version + 1);
    }

    fn client(&self, node: usize) -> Client {
        let script = self.clone();
        let service = service_fn(move |request: Request<Body>| {
            let answer = script.answer(node, &request);
            async move { answer.map_err(BoxError::from) }
        });
        Client::new(service, "default")
    }

    fn answer(&self, node: usize, request: &Request<Body>) -> io::Result<Response<ResponseBody>> {
        let phase = *self.0.phase.borrow();
        let mut state = self.0.state.lock().unwrap();
        state.requests.push((node, Instant::now()));
        let query = request.uri().query().unwrap_or_default();
        match phase {
            Phase::Refuses => return Err(io::ErrorKind::ConnectionRefused.into()),
            Phase::Answers(code) => return Ok(status(code)),
            Phase::Works => {}
        }
        state.first_answer.get_or_insert_with(Instant::now);
        if !query.contains("watch=true") {
            return Ok(whole(200, &list(request.uri().path(), &state)));
        }
        if !query.contains(&format!("resourceVersion={}", state.version)) {
            return Ok(status(410));
        }
        // Nothing happens until the server goes down.
        let mut phases = self.0.phase.subscribe();
        let broken = async move {
            let _ = phases.wait_for(|phase| *phase != Phase::Works).await;
            Err::<Frame<Bytes>, _>(io::Error::from(io::ErrorKind::ConnectionReset))
        };
        Ok(Response::new(StreamBody::new(stream::once(broken)).boxed_unsync()))
    }
}

fn list(path: &str, state: &State) -> Value {
    let item = match path.rsplit('/').next() {
        Some("services") => Some(json!({"metadata": {"namespace": "demo", "name": state.service},
            "spec": {"clusterIP": "10.96.0.10", "ports": [{"port": 80}]}})),
        Some("endpointslices") => Some(json!({"metadata": {"namespace": "demo", "name": "slice",
            "labels": {"kubernetes.io/service-name": state.service}}, "addressType": "IPv4",
            "ports": [{"port": 8080}], "endpoints": [{"addresses": ["10.244.0.5"]}]})),
        _ => None,
    };
    let items: Vec<_> = item.into_iter().collect();
    json!({"metadata": {"resourceVersion": state.version.to_string()}, "items": items})
}

fn status(code: u16) -> Response<ResponseBody> {
    whole(code, &json!({"kind": "Status", "code": code, "message": "told to"}))
}

fn whole(code: u16, value: &Value) -> Response<ResponseBody> {
    let body = Full::new(Bytes::from(value.to_string())).map_err(|never| match never {});
    let mut response = Response::new(body.boxed_unsync());
    *response.status_mut() = hyper::StatusCode::from_u16(code).unwrap();
    response
}

/// A kernel that remembers when it got which services.
#[derive(Clone, Default)]
struct Kernel(Arc<Mutex<Vec<(Instant, String)>>>);

impl Backend for Kernel {
    fn sync(&mut self, cluster: &Cluster, _: &Changes, _: std::time::Instant) -> Result<Summary, RulesError> {
        let names: Vec<_> = cluster
            .service_names()
            .map(|name| format!("{} with {} slices", name.name(), cluster.slices(name).count()))
            .collect();
        self.0.lock().unwrap().push((Instant::now(), names.join(", ")));
        Ok(Summary::default())
    }

    fn invalidate(&mut self) {}
}

impl Kernel {
    fn since(&self, text: &str) -> Option<Instant> {
        let syncs = self.0.lock().unwrap();
        syncs.iter().find(|(_, names)| names == text).map(|(at, _)| *at)
    }
}

fn source() -> Source {
    Source {
        server: Server::default(),
        node: "node".to_owned(),
        service_cidrs: true,
        tuning: Tuning::default(),
    }
}

/// The kinds that a source has heard of.
#[derive(Default)]
struct HeardKinds(Mutex<BTreeSet<Kind>>);

impl SourceObserver for HeardKinds {
    fn requested(&self, _: &str, _: Verb, status: Option<u16>, _: Duration) {
        assert!(matches!(status, None | Some(200 | 403 | 410)), "{status:?}");
    }

    fn heard(&self, kind: Kind) {
        self.0.lock().unwrap().insert(kind);
    }
}

/// Runs one node through an outage. Returns the time from the server's readiness, and from its first answer
/// that was not refused, to the right rules.
fn outage(lasts: Duration, forbids: Duration) -> (Duration, Duration) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(async {
        let (script, kernel) = (Script::new(), Kernel::default());
        let (updates, news) = mpsc::channel(64);
        let (_stop, signals) = mpsc::channel(1);
        let world = World::new(ThisNode { name: "node".to_owned(), ..ThisNode::default() });
        let intervals = Intervals::default();
        let looping = Loop::new(world, Box::new(kernel.clone()), intervals, Arc::new(())).unwrap();
        let heard = Arc::new(HeardKinds::default());
        let following = source().follow(
            Connection::scripted(script.client(0)),
            updates,
            Arc::clone(&heard) as Arc<dyn SourceObserver>,
        );
        let story = async {
            sleep(Duration::from_secs(10)).await;
            assert!(kernel.since("old with 1 slices").is_some());
            assert_eq!(heard.0.lock().unwrap().len(), 4);
            script.enter(Phase::Refuses);
            script.replace("new");
            sleep(lasts).await;
            script.enter(Phase::Answers(403));
            sleep(forbids).await;
            script.enter(Phase::Works);
            let ready = Instant::now();
            while kernel.since("new with 1 slices").is_none() {
                assert!(ready.elapsed() < Duration::from_secs(60), "{:?}", kernel.0.lock().unwrap());
                sleep(Duration::from_millis(10)).await;
            }
            let right = kernel.since("new with 1 slices").unwrap();
            let first = script.0.state.lock().unwrap().first_answer.unwrap();
            (right - ready, right - first)
        };
        tokio::select! {
            measured = story => measured,
            ended = looping.run(news, signals) => panic!("the loop ended: {ended:?}"),
            () = following => panic!("the source ended"),
        }
    })
}

#[test]
fn after_an_outage_the_rules_are_right_within_three_seconds_of_the_first_answer() {
    for seconds in [1, 15, 120, 1_800] {
        let (mut longest, mut all) = (Duration::ZERO, Vec::new());
        for _ in 0..20 {
            let (ready, first) = outage(Duration::from_secs(seconds), Duration::from_secs(2));
            longest = longest.max(first);
            all.push(ready);
        }
        all.sort_unstable();
        println!(
            "outage of {seconds} s: from the first answer {longest:?}, from readiness {:?} (median)",
            all[10]
        );
        assert!(longest <= Duration::from_secs(3), "{longest:?} after {seconds} s");
        // The last pauses: up to 4 s without a connection, up to 6.4 s of those that began with a 403.
        assert!(all[19] <= Duration::from_secs(11), "{all:?} after {seconds} s");
    }
}

#[test]
fn a_thousand_nodes_do_not_come_back_in_one_second() {
    const NODES: usize = 1_000;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(async {
        let script = Script::new();
        let run = |node| {
            let (updates, mut news) = mpsc::channel(64);
            let connection = Connection::scripted(script.client(node));
            tokio::spawn(source().follow(connection, updates, Arc::new(())));
            async move { while news.recv().await.is_some() {} }
        };
        let nodes = future::join_all((0..NODES).map(run));
        let story = async {
            sleep(Duration::from_secs(5)).await;
            script.enter(Phase::Refuses);
            script.replace("new");
            sleep(Duration::from_secs(20)).await;
            script.enter(Phase::Works);
            let ready = Instant::now();
            sleep_until(ready + Duration::from_secs(10)).await;
            let state = script.0.state.lock().unwrap();
            let mut returned = vec![None; NODES];
            let mut requests = [0; 10];
            for (node, at) in state.requests.iter().filter(|(_, at)| *at >= ready) {
                let after = usize::try_from((*at - ready).as_secs()).unwrap();
                returned[*node].get_or_insert(after);
                requests[after.min(9)] += 1;
            }
            let mut seconds = [0; 10];
            for at in returned {
                let at: usize = at.expect("every node is back after ten seconds");
                seconds[at.min(9)] += 1;
            }
            println!("nodes that came back in each second: {seconds:?}; requests: {requests:?}");
            assert!(seconds.iter().all(|nodes| *nodes < NODES / 2), "{seconds:?}");
            assert!(seconds.iter().filter(|nodes| **nodes > NODES / 20).count() >= 3, "{seconds:?}");
        };
        tokio::select! {
            () = story => {}
            _ = nodes => panic!("a source ended"),
        }
    });
}
