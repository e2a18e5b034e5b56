//! What the daemon answers over HTTP: its own health, that of single services, and metrics; as kube-proxy 1.36 does.
//!
//! - [`ProxyHealth`] says whether changes reach the kernel in time: `/healthz` and `/livez`, by default on port 10256.
//! - [`ServiceHealth`] says how many endpoints of a service run on this node: each service with a health-check node port is asked there
//!   by its load balancer. Any path is the right one.
//! - [`Metrics`] counts, with kube-proxy's names where they mean the same: `/metrics`, `/proxyMode` and a bare `/healthz`, by default
//!   on port 10249 of the loopback.
//!
//! These three are values that know neither clock nor socket: they are told the time. [`Serving`] puts them behind servers, and
//! is the observer of a run loop. It has a thread of its own, so that whoever asks is answered while the kernel is slow.

mod health;
mod http;
mod metrics;
mod ports;
mod service_health;
mod serving;
mod text_format;

pub use health::{FamilyHealth, Health, ProxyHealth};
pub use http::{BindAddress, ServeError};
pub use metrics::{Metrics, Mode};
pub use service_health::{Check, ServiceHealth};
pub use serving::{HEALTHZ_PORT, METRICS_PORT, Serving, ServingSettings};

/// What is answered: a response that is complete.
pub type Answer = hyper::Response<String>;

/// An answer of one media type.
fn answer(status: u16, content_type: &'static str, body: String) -> Answer {
    let mut answer = Answer::new(body);
    *answer.status_mut() = hyper::StatusCode::from_u16(status).unwrap_or_default();
    let headers = answer.headers_mut();
    headers.insert(hyper::header::CONTENT_TYPE, hyper::header::HeaderValue::from_static(content_type));
    headers.insert(hyper::header::X_CONTENT_TYPE_OPTIONS, hyper::header::HeaderValue::from_static("nosniff"));
    answer
}

/// What a server says of a path that it does not have.
fn not_found() -> Answer {
    answer(404, PLAIN, "404 page not found\n".to_owned())
}

const JSON: &str = "application/json";
const PLAIN: &str = "text/plain; charset=utf-8";
