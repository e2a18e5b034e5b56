//! The text format of Prometheus, 0.0.4, made from `OpenMetrics`.
//!
//! The two differ little: there a counter's family goes without `_total`, which its samples have; here both are of one name.
//! And there the text ends with a mark. A scraper says which it wants; what cannot say (`curl`) gets the older.

/// What a scraper wants, by its header `Accept`.
pub(super) fn wants_open_metrics(accept: Option<&str>) -> bool {
    accept.is_some_and(|accept| accept.contains("application/openmetrics-text"))
}

/// `OpenMetrics` text as Prometheus text.
pub(super) fn prometheus(open_metrics: &str) -> String {
    let mut text = String::with_capacity(open_metrics.len() + open_metrics.len() / 64);
    let mut help = None;
    for line in open_metrics.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = Some(rest);
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap_or((rest, "untyped"));
            let total = if kind == "counter" { "_total" } else { "" };
            let words = help.take().and_then(|help| help.strip_prefix(name)).unwrap_or_default();
            text += &format!("# HELP {name}{total}{words}\n# TYPE {name}{total} {kind}\n");
        } else if !line.starts_with("# ") {
            text += line;
            text.push('\n');
        }
    }
    text
}

pub(super) const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
pub(super) const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_get_their_suffix_and_the_end_goes() {
        let open = "# HELP a Things.\n# TYPE a counter\na_total{x=\"# HELP\"} 1\n# HELP b_total Odd.\n# TYPE b_total gauge\nb_total 2\n# EOF\n";
        let expected = "# HELP a_total Things.\n# TYPE a_total counter\na_total{x=\"# HELP\"} 1\n# HELP b_total Odd.\n# TYPE b_total gauge\nb_total 2\n";
        assert_eq!(prometheus(open), expected);
    }

    #[test]
    fn the_scraper_chooses() {
        assert!(wants_open_metrics(Some(
            "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.1"
        )));
        assert!(!wants_open_metrics(Some("text/plain;version=0.0.4")) && !wants_open_metrics(Some("*/*")));
        assert!(!wants_open_metrics(None));
    }
}
