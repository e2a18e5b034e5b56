//! The settings of kube-proxy that have no effect here, each with the reason.

/// Returns why a field of the file has no effect. `None` for a field that has one, or that does not exist.
pub(super) fn of_field(field: &str) -> Option<&'static str> {
    let is_in =
        |name: &str| field.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    TABLE.iter().find(|(_, name, _)| !name.is_empty() && is_in(name)).map(|(.., why)| *why)
}

/// Returns why a flag, without its dashes, has no effect. `None` for a flag that has one, or that does not
/// exist.
///
/// ```
/// use sluicegate_proxier::config::why_no_effect;
///
/// assert_eq!(why_no_effect("profiling"), Some("there are no profiles to serve"));
/// assert_eq!(why_no_effect("proxy-mode"), None);
/// ```
#[must_use]
pub fn why_no_effect(flag: &str) -> Option<&'static str> {
    TABLE.iter().find(|(name, ..)| !name.is_empty() && *name == flag).map(|(.., why)| *why)
}

const JSON: &str = "the API server is asked for JSON";
const FEW: &str = "there are four watches at most, and no bursts of requests to limit";
const UNUSED: &str = "kube-proxy does not use it any more";
const STDERR: &str = "the log goes to standard error, and kube-proxy has no such flag since 1.26";
const STREAM: &str = "every line is written to standard error at once";
const WINDOWS: &str = "it is for Windows";

/// Flag, field and reason; empty where there is no such flag or field.
const TABLE: [(&str, &str, &str); 36] = [
    ("kube-api-content-type", "clientConnection.contentType", JSON),
    ("", "clientConnection.acceptContentTypes", JSON),
    ("kube-api-qps", "clientConnection.qps", FEW),
    ("kube-api-burst", "clientConnection.burst", FEW),
    (
        "config-sync-period",
        "configSyncPeriod",
        "a watch misses nothing, so nothing is listed again in intervals",
    ),
    ("profiling", "enableProfiling", "there are no profiles to serve"),
    ("show-hidden-metrics-for-version", "showHiddenMetricsForVersion", "no metric is hidden"),
    ("vmodule", "logging.vmodule", "the verbosity is one for all modules"),
    ("log-flush-frequency", "logging.flushFrequency", STREAM),
    ("", "logging.options", STREAM),
    ("log-text-split-stream", "", STREAM),
    ("log-text-info-buffer-size", "", STREAM),
    ("log-json-split-stream", "", STREAM),
    ("log-json-info-buffer-size", "", STREAM),
    ("logtostderr", "", STDERR),
    ("alsologtostderr", "", STDERR),
    ("stderrthreshold", "", STDERR),
    ("log-dir", "", STDERR),
    ("log-file", "", STDERR),
    ("log-file-max-size", "", STDERR),
    ("log-backtrace-at", "", STDERR),
    ("add-dir-header", "", STDERR),
    ("skip-headers", "", STDERR),
    ("skip-log-headers", "", STDERR),
    ("one-output", "", STDERR),
    ("boot-id-file", "", UNUSED),
    ("machine-id-file", "", UNUSED),
    ("proxy-port-range", "portRange", UNUSED),
    ("udp-timeout", "udpIdleTimeout", UNUSED),
    ("", "resourceContainer", UNUSED),
    ("windows-service", "windowsRunAsService", WINDOWS),
    ("network-name", "winkernel.networkName", WINDOWS),
    ("source-vip", "winkernel.sourceVip", WINDOWS),
    ("enable-dsr", "winkernel.enableDSR", WINDOWS),
    ("root-hnsendpoint-name", "winkernel.rootHnsEndpointName", WINDOWS),
    ("forward-healthcheck-vip", "winkernel", WINDOWS),
];
