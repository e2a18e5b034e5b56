//! Requests to the API server: lists and watches, and the meaning of a refusal.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::header::{CONTENT_TYPE, LOCATION, RETRY_AFTER};
use hyper::{Response, StatusCode, Version};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use kube::client::Body;
use kube::core::Request;
use kube::core::params::{ListParams, WatchParams};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::{Instant, timeout};

use super::backoff::{Backoff, fraction};
use super::connect::{Connection, explain};
use super::decode::Malformed;
use super::event::{self, Lines};
use super::watched::Watched;
use super::{Shared, Source, Tuning};
use crate::source::Object;
use crate::source::observer::{SourceObserver, Verb};
use crate::source::update::Kind;

/// Objects of a kind, from one list or a page of one.
#[derive(Debug, Default)]
pub struct List {
    /// The objects.
    pub objects: Vec<Object>,
    /// The version that a watch goes on from.
    pub version: String,
    /// Why objects were skipped.
    pub unreadable: Vec<Malformed>,
}

/// A place in a list: before a page.
#[derive(Debug)]
pub(super) struct Position {
    /// The objects of a page; `None` for all at once.
    limit: Option<u32>,
    /// The server's token of the next page.
    next: Option<String>,
    /// The pages before it.
    pages: usize,
    /// The bytes that the rest may have.
    left: usize,
}

impl Position {
    /// Returns the start of a list in pages.
    pub(super) const fn start(tuning: &Tuning) -> Self {
        Self { limit: Some(tuning.page), next: None, pages: 0, left: tuning.list_bytes }
    }

    /// Returns the start of a list with all objects in one page.
    pub(super) const fn whole(tuning: &Tuning) -> Self {
        Self { limit: None, next: None, pages: 0, left: tuning.list_bytes }
    }

    pub(super) const fn is_paged(&self) -> bool {
        self.limit.is_some()
    }

    pub(super) const fn is_first(&self) -> bool {
        self.pages == 0
    }

    pub(super) const fn is_end(&self) -> bool {
        self.pages > 0 && self.next.is_none()
    }
}

/// A request that failed.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) reason: String,
    pub(super) cause: Cause,
    /// The time that the server asks to wait.
    pub(super) retry_after: Option<Duration>,
}

/// The cause of a failure, which decides how to go on. Failures of one cause share their pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cause {
    /// There is no connection, or no answer: the address may have changed.
    Connection,
    /// 401: the credentials may have changed.
    Credentials,
    /// A connection broke, or fell silent, within an answer.
    Broken,
    /// 404: there is no such API.
    Absent,
    /// 410: the server no longer has the requested version.
    Stale,
    /// 400, or a response that cannot be decoded: the same request should not be repeated.
    Malformed,
    /// The server ends every watch at once.
    Brief,
    /// Another status, or an `ERROR` event with this code: the same request may be repeated.
    Status(u16),
    /// Anything else: the same request may be repeated.
    Other,
}

impl Cause {
    /// Returns true for a cause that lies with the connection, not with the kind that is asked for.
    pub(super) const fn concerns_all(self) -> bool {
        matches!(self, Self::Connection | Self::Credentials | Self::Broken)
    }

    /// Returns true for a cause that an answer does not show to be over, since watches that begin well fail
    /// by it.
    pub(super) const fn ends_with_a_steady_watch(self) -> bool {
        matches!(self, Self::Broken | Self::Stale | Self::Malformed | Self::Brief | Self::Other)
    }
}

impl Refusal {
    pub(super) fn new(cause: Cause, reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), cause, retry_after: None }
    }
}

/// The requests for one kind.
pub(super) struct Api {
    connection: Connection,
    backoff: Backoff,
    observer: Arc<dyn SourceObserver>,
    kind: Kind,
    /// The client of the last request, by its number.
    used: u64,
    /// Whether the last answer came over HTTP/2, whose pings notice a server that no longer answers.
    has_pings: bool,
    request: Request,
    labels: Option<String>,
    fields: Option<String>,
    tuning: Tuning,
}

impl Api {
    pub(super) fn new<K: Watched>(source: &Source, shared: &Shared) -> Self {
        Self {
            connection: shared.connection.clone(),
            backoff: shared.backoff.clone(),
            observer: Arc::clone(&shared.observer),
            kind: K::KIND,
            used: 0,
            has_pings: false,
            request: Request::new(K::url_path(&(), None)),
            labels: K::LABELS.map(str::to_owned),
            fields: K::fields(source),
            tuning: source.tuning,
        }
    }

    /// See [`Connection::refresh`].
    pub(super) fn refresh(&self) {
        self.connection.refresh(self.used);
    }

    /// Returns the URL of the server, for messages.
    pub(super) fn url(&self) -> String {
        self.connection.url()
    }

    /// Requests the page of a list at `position`, and moves on to the next one.
    pub(super) async fn page<K: Watched>(&mut self, position: &mut Position) -> Result<List, Refusal> {
        let parameters = ListParams {
            label_selector: self.labels.clone(),
            field_selector: self.fields.clone(),
            limit: position.limit,
            continue_token: position.next.clone(),
            ..ListParams::default()
        };
        let request =
            self.request.list(&parameters).map_err(|e| Refusal::new(Cause::Other, e.to_string()))?;
        let body = self.send(Verb::List, request).await?;
        let text = self.whole(body, position.left.min(LONGEST_ANSWER)).await?;
        self.observer.heard(self.kind);
        let mut list = List::default();
        let next =
            take_page::<K>(&text, &mut list).map_err(|why| Refusal::new(Cause::Other, why.to_string()))?;
        position.left -= text.len();
        position.pages += 1;
        position.next = next;
        Ok(list)
    }

    /// Starts a watch after `version`.
    ///
    /// Without pings of HTTP/2, a server that hangs is noticed by the end of the watch, which the server has
    /// to make: such watches are short.
    pub(super) async fn watch(&mut self, version: &str) -> Result<Stream, Refusal> {
        let Tuning { watch, silence, ping_answer, answer, .. } = self.tuning;
        let (most, late) = if self.has_pings { (watch, answer) } else { (watch.min(silence), ping_answer) };
        let lasts = most - fraction(most / 10);
        let parameters = WatchParams {
            label_selector: self.labels.clone(),
            field_selector: self.fields.clone(),
            timeout: Some(u32::try_from(lasts.as_secs().max(1)).unwrap_or(u32::MAX)),
            bookmarks: true,
            send_initial_events: false,
        };
        let request = self
            .request
            .watch(&parameters, version)
            .map_err(|e| Refusal::new(Cause::Other, e.to_string()))?;
        let body = self.send(Verb::Watch, request).await?;
        self.observer.heard(self.kind);
        Ok(Stream { body, lines: Lines::default(), silence: lasts + late })
    }

    async fn send(&mut self, verb: Verb, request: hyper::Request<Vec<u8>>) -> Result<Body, Refusal> {
        let failed = |reason: String| Refusal::new(Cause::Connection, reason);
        let (client, number) = self.connection.client().map_err(|error| failed(explain(&error)))?;
        self.used = number;
        self.observer.transport(number);
        let began = Instant::now();
        let answer = match timeout(self.tuning.answer, client.send(request.map(Body::from))).await {
            Err(_) => Err(failed(format!("no answer within {:?}", self.tuning.answer))),
            // What `kube` says of itself, that this is an error of a service, helps nobody.
            Ok(Err(kube::Error::Service(error))) => Err(failed(explain(&*error))),
            Ok(Err(error)) => Err(failed(explain(&error))),
            Ok(Ok(response)) => Ok(response),
        };
        let status = answer.as_ref().ok().map(|response| response.status().as_u16());
        self.observer.requested(&self.connection.host(), verb, status, began.elapsed());
        let response = answer?;
        self.has_pings = response.version() == Version::HTTP_2;
        self.backoff.answered();
        if !response.status().is_success() {
            return Err(self.refusal(response).await);
        }
        match foreign_type(&response) {
            None => Ok(response.into_body()),
            // A page of something in front of the server, or of another server.
            Some(found) => Err(Refusal::new(
                Cause::Malformed,
                format!("expected JSON, found {found}: is this the address of an API server?"),
            )),
        }
    }

    async fn refusal(&self, response: Response<Body>) -> Refusal {
        let status = response.status();
        let header = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let retry_after = header.and_then(|text| text.trim().parse().ok()).map(Duration::from_secs);
        let elsewhere = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        let elsewhere = elsewhere.map(str::to_owned);
        let said = self.whole(response.into_body(), LONGEST_ERROR).await.unwrap_or_default();
        let message = match serde_json::from_slice::<Status>(&said) {
            Ok(Status { message: Some(message), .. }) => format!(": {}", clip(&message)),
            _ => elsewhere.map(|place| format!(" to {}", clip(&place))).unwrap_or_default(),
        };
        let cause = match status {
            StatusCode::UNAUTHORIZED => Cause::Credentials,
            StatusCode::NOT_FOUND => Cause::Absent,
            StatusCode::GONE => Cause::Stale,
            StatusCode::BAD_REQUEST => Cause::Malformed,
            status => Cause::Status(status.as_u16()),
        };
        Refusal { reason: format!("{status}{message}"), cause, retry_after }
    }

    /// Reads a whole body of at most `limit` bytes. The timeout is for each part of it.
    async fn whole(&self, mut body: Body, limit: usize) -> Result<Vec<u8>, Refusal> {
        let mut whole = Vec::new();
        while let Some(piece) = piece(&mut body, self.tuning.answer).await? {
            if piece.len() > limit - whole.len() {
                return Err(Refusal::new(Cause::Other, format!("the response is longer than {limit} bytes")));
            }
            whole.extend_from_slice(&piece);
        }
        self.observer.received(&self.connection.host(), whole.len());
        Ok(whole)
    }
}

/// The lines of a watch.
pub(super) struct Stream {
    body: Body,
    lines: Lines,
    silence: Duration,
}

impl Stream {
    /// Returns the next line. `None` when the server ended the watch.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<u8>>, Refusal> {
        loop {
            if let Some(line) = self.lines.next_line() {
                return Ok(Some(line));
            }
            let Some(piece) = piece(&mut self.body, self.silence).await? else { return Ok(None) };
            self.lines.push(&piece).map_err(|e| Refusal::new(Cause::Malformed, e.to_string()))?;
        }
    }
}

/// Returns the media type of a response, if it has one and that is not JSON's.
fn foreign_type(response: &Response<Body>) -> Option<String> {
    let found = String::from_utf8_lossy(response.headers().get(CONTENT_TYPE)?.as_bytes()).into_owned();
    (!found.starts_with("application/json")).then(|| clip(&found).to_owned())
}

/// Returns the next bytes of a body, empty for a frame without data. `None` at the end.
async fn piece(body: &mut Body, patience: Duration) -> Result<Option<Vec<u8>>, Refusal> {
    match timeout(patience, body.frame()).await {
        Err(_) => Err(Refusal::new(Cause::Broken, format!("the server sent nothing for {patience:?}"))),
        Ok(Some(Err(e))) => {
            Err(Refusal::new(Cause::Broken, format!("the connection broke: {}", explain(&e))))
        }
        Ok(Some(Ok(frame))) => Ok(Some(frame.into_data().map(Vec::from).unwrap_or_default())),
        Ok(None) => Ok(None),
    }
}

/// Returns the beginning of a text of the server, for messages.
pub(super) fn clip(text: &str) -> &str {
    text.char_indices().nth(LONGEST_MESSAGE).map_or(text, |(end, _)| text.get(..end).unwrap_or_default())
}

/// Adds a page to `list`. Returns the token of the next page, if there is one.
pub(super) fn take_page<K: Watched>(text: &[u8], list: &mut List) -> Result<Option<String>, Malformed> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Page<'a> {
        #[serde(borrow)]
        api_version: Option<Cow<'a, str>>,
        #[serde(borrow)]
        kind: Option<Cow<'a, str>>,
        metadata: Metadata,
        /// `null` for none; without this field it is no list.
        #[serde(borrow, deserialize_with = "Option::deserialize")]
        items: Option<Vec<&'a RawValue>>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata {
        resource_version: Option<String>,
        r#continue: Option<String>,
    }
    let page: Page<'_> = serde_json::from_slice(text).map_err(Malformed::List)?;
    // A list without a kind is taken, as client-go does. An empty one of another kind would delete everything.
    event::check_kind::<K>("List", page.api_version.as_deref(), page.kind.as_deref(), true)?;
    for item in page.items.unwrap_or_default() {
        match event::object::<K>(item) {
            Ok(object) => list.objects.push(object),
            Err(reason) => list.unreadable.push(reason),
        }
    }
    list.version = page
        .metadata
        .resource_version
        .filter(|version| !version.is_empty())
        .ok_or(Malformed::ListWithoutVersion)?;
    Ok(page.metadata.r#continue.filter(|token| !token.is_empty()))
}

/// The most bytes of a page. It is read whole, so this bounds the memory that a server without end takes: 500 of
/// the longest EndpointSlices that Kubernetes makes, of 1,000 endpoints each, are a third of it.
const LONGEST_ANSWER: usize = 128 << 20;
/// The most bytes of the body of an error that are read.
const LONGEST_ERROR: usize = 64 << 10;
/// The most characters of what a server says that are passed on.
const LONGEST_MESSAGE: usize = 1000;

#[cfg(test)]
mod tests {
    use k8s_openapi::api::discovery::v1::EndpointSlice;

    use super::*;

    #[test]
    fn only_a_list_of_what_was_asked_for_is_one() {
        let page = |head: &str, items: &str| {
            let text = format!(r#"{{{head}"metadata":{{"resourceVersion":"7"}}{items}}}"#);
            take_page::<EndpointSlice>(text.as_bytes(), &mut List::default())
        };
        let head = r#""apiVersion":"discovery.k8s.io/v1","kind":"EndpointSliceList","#;
        // What client-go takes: none, and a head that is left out.
        for (head, items) in [(head, r#","items":[]"#), (head, r#","items":null"#), ("", r#","items":[]"#)] {
            assert!(page(head, items).is_ok(), "{head} {items}");
        }
        assert!(matches!(page(head, ""), Err(Malformed::List(_))), "nothing is said of items");
        for head in [
            r#""apiVersion":"v1","kind":"PodList","#,
            r#""apiVersion":"discovery.k8s.io/v1beta1","kind":"EndpointSliceList","#,
            r#""apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","#,
            r#""kind":"List","#,
        ] {
            let error = page(head, r#","items":[]"#).expect_err(head).to_string();
            assert!(
                error.starts_with("expected an object of kind discovery.k8s.io/v1 EndpointSliceList, found "),
                "{error}"
            );
        }
    }
}
