//! `/statusz` and `/flagz`, as kube-proxy 1.36 serves them: text for people, and on request JSON of the kinds
//! `Statusz` and `Flagz` of `config.k8s.io`.

use std::collections::BTreeMap;
use std::time::SystemTime;

use k8s_openapi::chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Value, json};

use super::{Answer, JSON, PLAIN, answer};

/// The name of the component in both pages: that of the program whose place this one takes.
const COMPONENT: &str = "kube-proxy";

/// Returns the response to `/statusz`. `started` is the time when the process started.
pub(super) fn statusz(accept: Option<&str>, started: SystemTime, now: SystemTime) -> Answer {
    // chrono takes a `SystemTime` only with its feature `std`, which comes with the feature `kube` alone.
    let since = started.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
    let start = DateTime::<Utc>::from_timestamp(seconds, since.subsec_nanos()).unwrap_or_default();
    let version = env!("CARGO_PKG_VERSION");
    let up = now.duration_since(started).unwrap_or_default().as_secs();
    match Form::of(accept, "Statusz") {
        Some(Form::Text) => {
            let (hours, minutes, seconds) = (up / 3600, up / 60 % 60, up % 60);
            // Go's `time.UnixDate`.
            let start = start.format("%a %b %e %H:%M:%S UTC %Y");
            let text = format!(
                "\n{COMPONENT} statusz\n{WARNING}\n\nStarted: {start}\nUp: {hours} hr {minutes:02} min \
                 {seconds:02} sec\nGo version: none\nBinary version: {version}\n\nPaths: {}\n",
                PATHS.join(" ")
            );
            answer(200, PLAIN, text)
        }
        Some(Form::Json(version_of_kind)) => object(
            "Statusz",
            version_of_kind,
            &[
                ("startTime", json!(start.to_rfc3339_opts(SecondsFormat::Secs, true))),
                ("uptimeSeconds", json!(up)),
                ("goVersion", json!("")),
                ("binaryVersion", json!(version)),
                ("paths", json!(PATHS)),
            ],
        ),
        None => not_acceptable("Statusz"),
    }
}

/// Returns the response to `/flagz`: every flag with its value, or its default.
pub(super) fn flagz(accept: Option<&str>, flags: &BTreeMap<String, String>) -> Answer {
    match Form::of(accept, "Flagz") {
        Some(Form::Text) => {
            let lines: String = flags.iter().map(|(flag, value)| format!("{flag}={value}\n")).collect();
            answer(200, PLAIN, format!("\n{COMPONENT} flagz\n{WARNING}\n{lines}"))
        }
        Some(Form::Json(version)) => object("Flagz", version, &[("flags", json!(flags))]),
        None => not_acceptable("Flagz"),
    }
}

/// The form of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Text,
    /// JSON of this version of the kind.
    Json(&'static str),
}

impl Form {
    /// Returns the first form in a header `Accept` that is served. Text is the default; JSON has to be asked
    /// for with its group, version and kind: `application/json;g=config.k8s.io;v=v1beta1;as=Statusz`.
    fn of(accept: Option<&str>, kind: &str) -> Option<Self> {
        let accept = accept.unwrap_or_default().trim();
        if accept.is_empty() {
            return Some(Self::Text);
        }
        accept.split(',').find_map(|item| {
            let mut parts = item.split(';').map(str::trim);
            let media_type = parts.next().unwrap_or_default();
            let parameters: BTreeMap<_, _> = parts.filter_map(|part| part.split_once('=')).collect();
            let get = |name| parameters.get(name).copied();
            match (media_type, get("g"), get("as")) {
                ("text/plain" | "text/*" | "*/*", None, None) => Some(Self::Text),
                ("application/json" | "*/*", Some("config.k8s.io"), Some(wanted)) if wanted == kind => {
                    VERSIONS.into_iter().find(|version| get("v") == Some(version)).map(Self::Json)
                }
                _ => None,
            }
        })
    }
}

fn object(kind: &str, version: &str, fields: &[(&str, Value)]) -> Answer {
    let mut object = json!({"kind": kind, "apiVersion": format!("config.k8s.io/{version}"),
        "metadata": {"name": COMPONENT}});
    for (name, value) in fields {
        object[*name] = value.clone();
    }
    answer(200, JSON, object.to_string())
}

fn not_acceptable(kind: &str) -> Answer {
    let json = VERSIONS.map(|version| format!("application/json;g=config.k8s.io;v={version};as={kind}"));
    let text = format!("only the following media types are accepted: text/plain, {}\n", json.join(", "));
    answer(406, PLAIN, text)
}

const WARNING: &str = "Warning: This endpoint is not meant to be machine parseable, has no formatting \
                       compatibility guarantees and is for debugging purposes only.";
/// The other pages of the same server, by their first parts.
const PATHS: [&str; 6] = ["/configz", "/flagz", "/healthz", "/metrics", "/proxyMode", "/status"];
const VERSIONS: [&str; 2] = ["v1beta1", "v1alpha1"];

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_status_is_text_unless_json_is_asked_for_by_its_kind() {
        let start = SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_238_400);
        let ask = |accept| statusz(accept, start, start + Duration::from_secs(7_322));
        let text = ask(None);
        assert!(text.body().starts_with("\nkube-proxy statusz\nWarning: This endpoint"), "{}", text.body());
        assert!(text.body().contains("\nStarted: Sat Nov 21 05:20:00 UTC 2026\nUp: 2 hr 02 min 02 sec\n"));
        assert!(text.body().ends_with("\nPaths: /configz /flagz /healthz /metrics /proxyMode /status\n"));
        assert_eq!(ask(Some("*/*")).body(), text.body());
        let json = ask(Some("text/html, application/json;v=v1beta1;g=config.k8s.io;as=Statusz"));
        let value: Value = serde_json::from_str(json.body()).unwrap();
        assert_eq!(value["apiVersion"], "config.k8s.io/v1beta1");
        assert_eq!(
            (&value["startTime"], &value["uptimeSeconds"]),
            (&json!("2026-11-21T05:20:00Z"), &json!(7322))
        );
        for other in ["application/json", "application/json;v=v9;g=config.k8s.io;as=Statusz", "image/png"] {
            assert_eq!(ask(Some(other)).status(), 406, "{other}");
        }
    }

    #[test]
    fn flags_are_listed_by_name() {
        let flags = BTreeMap::from([("v".to_owned(), "2".to_owned()), ("config".to_owned(), String::new())]);
        let text = flagz(None, &flags);
        assert!(text.body().ends_with("purposes only.\nconfig=\nv=2\n"), "{}", text.body());
        let json = flagz(Some("application/json;v=v1alpha1;g=config.k8s.io;as=Flagz"), &flags);
        let value: Value = serde_json::from_str(json.body()).unwrap();
        assert_eq!((&value["kind"], &value["flags"]["v"]), (&json!("Flagz"), &json!("2")));
    }
}
