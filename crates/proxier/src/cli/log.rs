//! The log of the daemon, on standard error: as text, or as one JSON object a line, as klog writes them.

use std::fmt;
use std::io::{self, IsTerminal as _};
use std::time::SystemTime;

use clap::ValueEnum;
use serde_json::{Map, Value, json};
use sluicegate_proxier::Visible;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::fmt::format::{FormatEvent, Writer, debug_fn};
use tracing_subscriber::fmt::{FmtContext, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use super::progress;

/// The form of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines of text.
    Text,
    /// One JSON object a line.
    Json,
}

impl LogFormat {
    /// Returns the name, as the flag takes it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}

/// Starts to log.
pub(crate) fn start(verbosity: u32, format: LogFormat) {
    let level = match verbosity {
        0 | 1 => Level::INFO,
        2..=4 => Level::DEBUG,
        _ => Level::TRACE,
    };
    let log = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_target(false)
        // Reporting a log that cannot be written would go to the same standard error, and panic.
        .log_internal_errors(false)
        .with_ansi(
            io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
        )
        .with_writer(progress::Log::new)
        // Names and messages from outside are on one line, and do nothing to a terminal.
        .fmt_fields(
            debug_fn(|to, field, value| {
                let value = format!("{value:?}");
                match field.name() {
                    "message" => write!(to, "{}", Visible(&value)),
                    name => write!(to, "{name}={}", Visible(&value)),
                }
            })
            .delimited(" "),
        );
    match format {
        LogFormat::Text => log.init(),
        LogFormat::Json => log.event_format(Json).init(),
    }
}

/// Formats events as klog's JSON: `ts` in milliseconds since 1970, `v` the verbosity from which on a line is
/// written, which errors do not have.
struct Json;

impl<S, N> FormatEvent<S, N> for Json
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut to: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut fields = Fields(Map::new());
        event.record(&mut fields);
        let line = fields.line(*event.metadata().level(), SystemTime::now()).to_string();
        writeln!(to, "{}", Visible::json(&line))
    }
}

struct Fields(Map<String, Value>);

impl Fields {
    fn line(mut self, level: Level, now: SystemTime) -> Value {
        let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let (name, verbosity) = match level {
            Level::ERROR => ("error", None),
            Level::WARN => ("warning", Some(0)),
            Level::INFO => ("info", Some(0)),
            Level::DEBUG => ("debug", Some(2)),
            _ => ("trace", Some(5)),
        };
        self.0.insert("ts".to_owned(), json!(since.as_secs_f64() * 1000.0));
        self.0.insert("level".to_owned(), json!(name));
        if let Some(verbosity) = verbosity {
            self.0.insert("v".to_owned(), json!(verbosity));
        }
        Value::Object(self.0)
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let name = if field.name() == "message" { "msg" } else { field.name() };
        self.0.insert(name.to_owned(), json!(format!("{value:?}")));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name().to_owned(), json!(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.insert(field.name().to_owned(), json!(value));
    }
}
