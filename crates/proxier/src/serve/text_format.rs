//! The text format of Prometheus, 0.0.4, converted from `OpenMetrics`.
//!
//! The two differ little: there a counter's family goes without `_total`, which its samples have; here both
//! are of one name. And there the text ends with a mark. A scraper says which it wants; what cannot say
//! (`curl`) gets the older.

/// Returns whether a client prefers `OpenMetrics`, by its header `Accept` (RFC 9110, section 12.5.1). Only a
/// client that names it does: what accepts everything, or has no such header, gets the older format.
pub(super) fn wants_open_metrics(accept: Option<&str>) -> bool {
    let accept = accept.unwrap_or_default();
    let open = quality(accept, &["application/openmetrics-text"]);
    let plain = quality(accept, &["text/plain", "text/*", "*/*"]).unwrap_or_default();
    open.is_some_and(|open| open > 0.0 && open >= plain)
}

/// Returns the weight of the first of these media ranges that the header has. A weight that is not a number
/// from 0 to 1 counts as 1, as if it was missing.
fn quality(accept: &str, ranges: &[&str]) -> Option<f32> {
    let find = |range: &&str| {
        let mut items = accept.split(',').map(|item| item.split(';').map(str::trim));
        items.find_map(|mut parts| {
            let is_range = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(range));
            is_range.then(|| parts.find_map(weight).unwrap_or(1.0))
        })
    };
    ranges.iter().find_map(find)
}

/// Reads a parameter `q=0.5`.
fn weight(parameter: &str) -> Option<f32> {
    let (name, value) = parameter.split_once('=')?;
    let weight: f32 = value.trim().parse().ok()?;
    (name.trim().eq_ignore_ascii_case("q") && (0.0..=1.0).contains(&weight)).then_some(weight)
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
        let open = "# HELP a Things.\n# TYPE a counter\na_total{x=\"# HELP\"} 1\n# HELP b_total Odd.\n\
            # TYPE b_total gauge\nb_total 2\n# EOF\n";
        let expected = "# HELP a_total Things.\n# TYPE a_total counter\na_total{x=\"# HELP\"} 1\n\
            # HELP b_total Odd.\n# TYPE b_total gauge\nb_total 2\n";
        assert_eq!(prometheus(open), expected);
    }

    #[test]
    fn the_scraper_chooses() {
        assert!(wants_open_metrics(Some(
            "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.1"
        )));
        assert!(!wants_open_metrics(Some("text/plain;version=0.0.4")) && !wants_open_metrics(Some("*/*")));
        assert!(!wants_open_metrics(None));
        for (accept, expected) in [
            ("text/plain;q=0.1, Application/OpenMetrics-Text; version=1.0.0; Q=0.9", true),
            ("application/openmetrics-text;q=0.1,text/plain;q=0.9", false),
            ("application/openmetrics-text;q=0.1,*/*;q=0.9", false),
            ("application/openmetrics-text;q=0", false),
            ("application/openmetrics-text;q=0,*/*;q=0", false),
            ("application/openmetrics-text;q=NaN", true),
            ("x-application/openmetrics-text", false),
            (",;,application/openmetrics-text;=;q", true),
        ] {
            assert_eq!(wants_open_metrics(Some(accept)), expected, "{accept}");
        }
    }
}
