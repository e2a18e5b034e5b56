//! HTTP servers of the daemon: its own health, the health of single services, and metrics, as in kube-proxy
//! 1.36.
//!
//! - [`ProxyHealth`] says whether changes reach the kernel in time: `/healthz` and `/livez`, by default on
//!   port 10256; beside them `/readyz` has one line for each condition.
//! - [`ServiceHealth`] says how many endpoints of a service run on this node. A load balancer asks at the
//!   health-check node port of the service, at any path.
//! - [`Metrics`] has kube-proxy's metric names where the meaning is the same: `/metrics`, `/proxyMode`,
//!   `/statusz`, `/flagz` and a bare `/healthz`, by default on port 10249 of the loopback.
//!
//! Beside metrics `/status` has what the command `status` shows: syncs, troubles, services with endpoints.
//!
//! [`LocalhostNodePorts`] answers node ports on 127.0.0.1 and `::1`, from where nftables mode cannot translate.
//!
//! The first three are values without a clock or a socket: callers pass in the time. [`Serving`] runs servers
//! for them, and observes a run loop. Its servers have a thread of their own, so that they answer while a
//! sync blocks.

mod connections;
mod counted;
mod health;
mod http;
mod localhost;
mod metrics;
mod ports;
mod readyz;
mod service_health;
mod serving;
mod sources;
mod status;
mod text_format;
mod zpages;

pub use health::{FamilyHealth, Health, ProxyHealth};
pub use http::{BindAddress, BindAddressError, Error};
pub use localhost::LocalhostNodePorts;
pub use metrics::Metrics;
pub use service_health::{Check, ServiceHealth};
pub use serving::{HEALTHZ_PORT, METRICS_PORT, MOST_SERIES, Serving, ServingSettings};

/// A complete HTTP response.
pub type Answer = hyper::Response<String>;

/// Returns a response of one media type.
fn answer(status: u16, content_type: &'static str, body: String) -> Answer {
    let mut answer = Answer::new(body);
    *answer.status_mut() = hyper::StatusCode::from_u16(status).unwrap_or_default();
    let headers = answer.headers_mut();
    headers.insert(hyper::header::CONTENT_TYPE, hyper::header::HeaderValue::from_static(content_type));
    headers.insert(hyper::header::X_CONTENT_TYPE_OPTIONS, hyper::header::HeaderValue::from_static("nosniff"));
    answer
}

/// Returns the response for an unknown path.
fn not_found() -> Answer {
    answer(404, PLAIN, "404 page not found\n".to_owned())
}

const JSON: &str = "application/json";
const PLAIN: &str = "text/plain; charset=utf-8";
