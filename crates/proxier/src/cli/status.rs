//! `status`: what a running daemon has programmed, how many flows each endpoint has, and what troubles it.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use comfy_table::Table;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::Bytes;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use sluicegate_conntrack::{self as conntrack, Client, Filter, Layer4};
use sluicegate_proxier::Visible;
use sluicegate_proxier::config::{format_duration, parse_duration};
use sluicegate_proxier::serve::{BindAddress, METRICS_PORT};
use sluicegate_proxier::terminal;
use tokio::net::TcpStream;

use super::Error;
use super::doctor::table;
use super::output::{OutputArgs, counted, written};
use super::value::ValueError;

#[derive(Args)]
pub(crate) struct Status {
    /// Show these services alone, each by its name or as `demo/web`.
    #[arg(value_name = "[NAMESPACE/]SERVICE")]
    services: Vec<String>,
    /// The address of the daemon's metrics server, which has its status as well.
    #[arg(long, value_name = "IP[:PORT]", default_value = DAEMON)]
    metrics_bind_address: BindAddress,
    /// Show each endpoint on a line of its own.
    #[arg(long)]
    endpoints: bool,
    /// Show it again and again, in place on a terminal, until SIGINT.
    #[arg(long)]
    watch: bool,
    /// With --watch, the time between two looks.
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = interval)]
    interval: Duration,
    #[command(flatten)]
    output: OutputArgs,
}

impl Status {
    /// Prints the status. Fails unless the daemon is ready.
    pub(crate) fn run(&self) -> Result<ExitCode, Error> {
        if !self.watch {
            let mut status = self.look()?;
            if has_connections(&status) {
                let before = (Instant::now(), status);
                std::thread::sleep(RATE_OVER);
                status = self.look()?;
                add_rates(&mut status, &before);
            }
            self.output.print(&self.text(&status), || status.clone())?;
            let is_ready = status["ready"] == true;
            return Ok(if is_ready { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        let in_place = io::stdout().is_terminal() && !self.output.is_json();
        let mut before = None;
        loop {
            let looked = self.look().map(|mut status| {
                before.iter().for_each(|before| add_rates(&mut status, before));
                status
            });
            before = looked.as_ref().ok().map(|status| (Instant::now(), status.clone()));
            let shown = match looked {
                Ok(status) if self.output.is_json() => Visible::json(&format!("{status}\n")),
                Ok(status) => self.text(&status),
                // A daemon that restarts is back soon.
                Err(error) if self.output.is_json() => {
                    Visible::json(&format!("{}\n", json!({ "error": error.to_string() })))
                }
                Err(error) => Visible::lines(&format!("{error}\n")),
            };
            let shown = match terminal::size().filter(|_| in_place) {
                Some(screen) => format!("{CLEAR}{}", clipped(&shown, screen)),
                None => shown,
            };
            let mut out = io::stdout().lock();
            match out.write_all(shown.as_bytes()).and_then(|()| out.flush()) {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(ExitCode::SUCCESS),
                result => written(result)?,
            }
            std::thread::sleep(self.interval);
        }
    }

    /// Asks the daemon, and the kernel for flows.
    fn look(&self) -> Result<Value, Error> {
        let mut status = of(&self.metrics_bind_address, PATIENCE)?;
        self.select(&mut status)?;
        let flows = flows();
        if let Err(reason) = &flows {
            status["flowsUnknown"] = json!(reason.to_string());
        }
        let flows = flows.ok();
        for port in status["ports"].as_array_mut().into_iter().flatten() {
            let protocol = port["protocol"].as_str().unwrap_or_default().to_owned();
            for endpoint in port["endpoints"].as_array_mut().into_iter().flatten() {
                let address = endpoint["address"].as_str().and_then(|text| text.parse().ok());
                let count = |address: SocketAddr| {
                    flows.as_ref().map(|flows| flows.get(&(protocol.clone(), address)).copied().unwrap_or(0))
                };
                endpoint["flows"] = json!(address.and_then(count));
            }
        }
        Ok(status)
    }

    /// Leaves the ports of the services that were asked for, each of which must be there.
    fn select(&self, status: &mut Value) -> Result<(), Error> {
        let Some(ports) = status["ports"].as_array_mut().filter(|_| !self.services.is_empty()) else {
            return Ok(());
        };
        let of_port = |port: &Value| service_of(port).unwrap_or_default();
        for wanted in &self.services {
            if !ports.iter().any(|port| is_called(&of_port(port), wanted)) {
                let meant = nearest(wanted, ports.iter().map(of_port));
                let meant = meant.map(|meant| format!("; did you mean {meant}?")).unwrap_or_default();
                let reason =
                    format!("expected a service with ports that the daemon has, found {wanted}{meant}");
                return Err(Error::flag("SERVICE", reason));
            }
        }
        ports.retain(|port| self.services.iter().any(|wanted| is_called(&of_port(port), wanted)));
        Ok(())
    }

    fn text(&self, status: &Value) -> String {
        let word = |value: &Value| {
            value.as_str().map_or_else(|| value.to_string(), |text| Visible(text).to_string())
        };
        let is_ready = status["ready"] == true;
        let mut text = format!(
            "{} on node {}, {} mode, version {}, since {}\n",
            if is_ready { "ready" } else { "NOT READY" },
            word(&status["node"]),
            word(&status["mode"]),
            word(&status["version"]),
            word(&status["started"]),
        );
        for sync in list(&status["syncs"]) {
            let how = if sync["full"] == true { ", compared everything" } else { "" };
            let changed = usize::try_from(sync["changed"].as_u64().unwrap_or_default()).unwrap_or(usize::MAX);
            let took = sync["seconds"].as_f64().unwrap_or_default() * 1000.0;
            let (time, what) = (word(&sync["time"]), word(&sync["summary"]));
            let changed = counted(changed, "service");
            let _ = writeln!(text, "sync {time}: {changed} changed{how}: {what}; took {took:.1} ms");
        }
        if let Some(failure) = status["failure"].as_object() {
            let [count, since, why] = ["count", "since", "reason"].map(|field| word(&failure[field]));
            let _ = writeln!(text, "trouble: {count} failed since {since}: {why}");
        }
        let unmet = list(&status["conditions"]).map(word).filter(|condition| condition.starts_with("[-]"));
        unmet.for_each(|condition| text += &format!("trouble: {condition}\n"));
        for field in ["refused", "conflicts"] {
            list(&status[field]).for_each(|line| text += &format!("trouble: {}\n", word(line)));
        }
        for line in list(&status["forbiddenExternalIPs"]) {
            let _ =
                writeln!(text, "external IPs left out, as the configuration forbids them: {}", word(line));
        }
        for warning in list(&status["warnings"]) {
            let [time, what] = ["time", "text"].map(|field| word(&warning[field]));
            let again = match warning["count"].as_u64() {
                None | Some(..=1) => String::new(),
                Some(count) => format!(" ({count} times)"),
            };
            let _ = writeln!(text, "warning {time}: {what}{again}");
        }
        if let Some(reason) = status["connectionsUnknown"].as_str() {
            let _ = writeln!(text, "connections are not known: {reason}");
        }
        if let Some(reason) = status["flowsUnknown"].as_str() {
            let _ = writeln!(text, "flows are not known: {reason}");
        }
        let _ = writeln!(text, "{}", self.ports(status));
        text
    }

    /// Returns a table of the service ports, or of their endpoints.
    fn ports(&self, status: &Value) -> Table {
        let word = |value: &Value| value.as_str().map_or_else(String::new, |text| Visible(text).to_string());
        let counts = has_connections(status);
        let mut head = match self.endpoints {
            true => vec!["service", "endpoint", "state", "flows"],
            false => vec!["service", "address", "endpoints", "flows"],
        };
        if counts {
            head.extend(["connections", "a second"]);
        }
        let mut shown = table(head);
        let connections = |of: &Value| {
            let rate =
                of["connectionsPerSecond"].as_f64().map_or_else(String::new, |rate| format!("{rate:.1}"));
            let shown = counts.then(|| [number(&of["connections"]), rate]);
            shown.into_iter().flatten()
        };
        for port in list(&status["ports"]) {
            let name = format!("{} {}", word(&port["name"]), word(&port["protocol"]));
            if self.endpoints {
                for endpoint in list(&port["endpoints"]) {
                    let here = if endpoint["local"] == true { ", here" } else { "" };
                    let state = format!("{}{here}", state(endpoint));
                    let row = [name.clone(), word(&endpoint["address"]), state, number(&endpoint["flows"])];
                    shown.add_row(row.into_iter().chain(connections(endpoint)));
                }
                continue;
            }
            let endpoints: Vec<_> = list(&port["endpoints"]).collect();
            let ready = endpoints.iter().filter(|endpoint| endpoint["ready"] == true).count();
            let local = endpoints.iter().filter(|endpoint| endpoint["local"] == true).count();
            let flows = endpoints.iter().map(|endpoint| endpoint["flows"].as_u64()).sum::<Option<u64>>();
            let ip = port["clusterIP"].as_str().unwrap_or("no cluster IP");
            let address = format!("{ip} {}", number(&port["port"]));
            let scheduler = match port["scheduler"].as_str() {
                None | Some("random") => String::new(),
                Some(name) => format!(", {name}"),
            };
            let count = format!("{ready} of {} ready, {local} here{scheduler}", endpoints.len());
            let flows = flows.map_or_else(String::new, |flows| flows.to_string());
            shown.add_row([name, address, count, flows].into_iter().chain(connections(port)));
        }
        shown
    }
}

/// Returns the service of a port, `namespace/name`.
pub(super) fn service_of(port: &Value) -> Option<String> {
    let name = port["name"].as_str()?;
    Some(name.split_once(':').map_or(name, |(service, _)| service).to_owned())
}

/// Asks a daemon for its status, and waits no longer than that.
pub(super) fn of(daemon: &BindAddress, patience: Duration) -> Result<Value, Error> {
    let Some(address) = daemon.socket(METRICS_PORT) else {
        return Err(Error::flag("--metrics-bind-address", "expected the address of a daemon, found none"));
    };
    let failed = |reason: AnswerError| Error::flag(format!("the daemon at {address}"), reason);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let answer = runtime.map_err(Error::Runtime)?.block_on(async {
        let asked = tokio::time::timeout(patience, ask(address));
        asked.await.unwrap_or(Err(AnswerError::None(patience)))
    });
    serde_json::from_str(&answer.map_err(failed)?).map_err(|error| failed(AnswerError::NoStatus(error)))
}

/// Whether a service, `namespace/name`, is the one that somebody wrote, with or without the namespace.
fn is_called(service: &str, wanted: &str) -> bool {
    service == wanted || service.split_once('/').is_some_and(|(_, name)| name == wanted)
}

/// Returns the service whose name differs by the fewest letters from what was written, if those are no more than
/// a third of the longer one; or the one of that name in another namespace.
fn nearest(wanted: &str, services: impl Iterator<Item = String>) -> Option<String> {
    let name = |of: &str| of.rsplit_once('/').map_or(of, |(_, name)| name).to_owned();
    let distance = |service: &str| match wanted.contains('/') {
        true if name(service) == name(wanted) => 0,
        true => strsim::osa_distance(service, wanted),
        false => strsim::osa_distance(&name(service), wanted),
    };
    let letters = |of: &str| of.chars().count();
    let near = services.map(|service| (distance(&service), service));
    near.filter(|(distance, service)| {
        let compared = if wanted.contains('/') { letters(service) } else { letters(&name(service)) };
        *distance <= compared.max(letters(wanted)).div_ceil(3)
    })
    .min()
    .map(|(_, service)| service)
}

/// Reads an interval of looks: each costs the daemon what a page with all endpoints costs.
fn interval(text: &str) -> Result<Duration, ValueError> {
    match parse_duration(text).map_err(ValueError::invalid)? {
        interval if interval >= SHORTEST => Ok(interval),
        _ => Err(ValueError::TooShort { shortest: format_duration(SHORTEST), found: text.to_owned() }),
    }
}

/// Why a daemon gives no status.
#[derive(Debug, thiserror::Error)]
enum AnswerError {
    #[error(
        "{0}; expected `sluicegate-proxier run` in this network namespace, with this --metrics-bind-address"
    )]
    Refused(io::Error),
    #[error("{0}")]
    Connect(io::Error),
    #[error("no answer within {} s", .0.as_secs())]
    None(Duration),
    #[error(transparent)]
    Connection(#[from] hyper::Error),
    #[error(transparent)]
    Request(#[from] hyper::http::Error),
    #[error("{0}")]
    Body(Box<dyn std::error::Error + Send + Sync>),
    #[error("{status}: {}", text.trim_end())]
    Status { status: StatusCode, text: String },
    #[error("expected a status of sluicegate-proxier, found {0}")]
    NoStatus(serde_json::Error),
}

/// Requests the status page.
async fn ask(address: SocketAddr) -> Result<String, AnswerError> {
    let stream = TcpStream::connect(address).await.map_err(|error| match error.kind() {
        io::ErrorKind::ConnectionRefused => AnswerError::Refused(error),
        _ => AnswerError::Connect(error),
    })?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake::<_, Empty<Bytes>>(TokioIo::new(stream)).await?;
    // It ends with the response, whose error the request reports.
    tokio::spawn(async move { drop(connection.await) });
    let request = Request::builder().uri("/status").header("Host", address.to_string()).body(Empty::new());
    let request = request?;
    let answer = sender.send_request(request).await?;
    let status = answer.status();
    let body = Limited::new(answer.into_body(), MOST).collect().await.map_err(AnswerError::Body)?;
    let text = String::from_utf8_lossy(&body.to_bytes()).into_owned();
    if status == StatusCode::OK { Ok(text) } else { Err(AnswerError::Status { status, text }) }
}

/// Counts the flows that lead to each address and port: by protocol, as Kubernetes names it.
fn flows() -> Result<HashMap<(String, SocketAddr), u64>, conntrack::Error> {
    let mut counts = HashMap::new();
    let mut client = Client::open()?;
    for flow in client.flows(conntrack::Table::Conntrack, &Filter::default())? {
        // Answers come from the endpoint, whatever address was asked.
        let reply = flow?.reply;
        if let Layer4::Ports { source, .. } = reply.layer4 {
            let address = SocketAddr::new(reply.source(), source);
            *counts.entry((reply.protocol.to_string(), address)).or_default() += 1;
        }
    }
    Ok(counts)
}

/// Returns whether the daemon counts connections.
fn has_connections(status: &Value) -> bool {
    list(&status["ports"]).any(|port| port["connections"].is_u64())
}

/// Adds the connections a second since an earlier look. Those of which the daemon counts fewer now, as it was
/// started anew, are not known.
fn add_rates(status: &mut Value, (then, before): &(Instant, Value)) {
    let seconds = then.elapsed().as_secs_f64();
    let key = |port: &Value, endpoint: &Value| {
        ["name", "protocol", "clusterIP"].map(|field| port[field].to_string()).join(" ")
            + &endpoint["address"].to_string()
    };
    let mut counts = HashMap::new();
    for port in list(&before["ports"]) {
        let of_port = std::iter::once((port, &Value::Null));
        for (of, endpoint) in of_port.chain(list(&port["endpoints"]).map(|endpoint| (endpoint, endpoint))) {
            counts.extend(of["connections"].as_u64().map(|count| (key(port, endpoint), count)));
        }
    }
    let rate = |of: &Value, key: &str| {
        let more = of["connections"].as_u64()?.checked_sub(*counts.get(key)?)?;
        // Nobody opens so many that the mantissa cannot count them.
        #[allow(clippy::cast_precision_loss)]
        Some(more as f64 / seconds)
    };
    for port in status["ports"].as_array_mut().into_iter().flatten() {
        let own = key(port, &Value::Null);
        if let Some(rate) = rate(port, &own) {
            port["connectionsPerSecond"] = json!(rate);
        }
        let keys: Vec<_> = list(&port["endpoints"]).map(|endpoint| key(port, endpoint)).collect();
        for (endpoint, key) in port["endpoints"].as_array_mut().into_iter().flatten().zip(keys) {
            if let Some(rate) = rate(endpoint, &key) {
                endpoint["connectionsPerSecond"] = json!(rate);
            }
        }
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn number(value: &Value) -> String {
    value.as_u64().map_or_else(String::new, |number| number.to_string())
}

fn state(endpoint: &Value) -> &'static str {
    match ["ready", "serving", "terminating"].map(|field| endpoint[field] == true) {
        [true, ..] => "ready",
        [_, true, true] => "serving while terminating",
        [_, _, true] => "terminating",
        _ => "not ready",
    }
}

/// Returns what a screen of so many columns and rows has room for, and how much more there is. Nothing follows the
/// last line: it would scroll the first one away.
fn clipped(text: &str, (columns, rows): (u16, u16)) -> String {
    let (columns, rows) = (usize::from(columns).max(1), usize::from(rows).max(1));
    let cut = |line: &str| line.chars().take(columns).collect::<String>();
    let lines: Vec<_> = text.lines().collect();
    if lines.len() <= rows {
        return lines.iter().map(|line| cut(line)).collect::<Vec<_>>().join("\n");
    }
    let (shown, more) = lines.split_at(rows - 1);
    let more = cut(&format!("... and {}", counted(more.len(), "more line")));
    shown.iter().map(|line| cut(line)).chain([more]).collect::<Vec<_>>().join("\n")
}

/// To the upper left corner, and what is below and right of it is cleared (ECMA-48: CUP, ED).
const CLEAR: &str = "\u{1b}[H\u{1b}[J";
/// The time over which connections a second are counted for one look.
const RATE_OVER: Duration = Duration::from_secs(1);
/// Where a daemon is asked, unless a flag says otherwise.
pub(super) const DAEMON: &str = "127.0.0.1:10249";
/// The longest time to wait for a daemon, which answers between two syncs.
const PATIENCE: Duration = Duration::from_secs(10);
/// The shortest interval of looks.
const SHORTEST: Duration = Duration::from_millis(100);
/// The most bytes of a status: some 100,000 endpoints.
const MOST: usize = 64 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_found_by_its_name_and_a_slip_is_near() {
        assert!(is_called("demo/web", "web") && is_called("demo/web", "demo/web"));
        assert!(!is_called("demo/web", "we") && !is_called("demo/web", "prod/web"));
        let nearest =
            |wanted| nearest(wanted, ["demo/web", "demo/dns", "prod/mirror"].map(str::to_owned).into_iter());
        assert_eq!(nearest("wbe").as_deref(), Some("demo/web"));
        assert_eq!(nearest("demo/wbe").as_deref(), Some("demo/web"));
        assert_eq!(nearest("demo/mirror").as_deref(), Some("prod/mirror"));
        assert_eq!(nearest("postgres"), None);
    }

    #[test]
    fn a_screen_shows_its_first_lines_and_how_many_there_are() {
        assert_eq!(clipped("one\ntwo\n", (80, 24)), "one\ntwo");
        assert_eq!(clipped("one\ntwo\n", (2, 2)), "on\ntw");
        assert_eq!(clipped("one\ntwo\nthree\nfour\n", (80, 3)), "one\ntwo\n... and 2 more lines");
        assert_eq!(clipped("\u{2502} a \u{2502}\n", (3, 5)), "\u{2502} a", "characters, not bytes");
    }
}
