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

/// Sorts the series of each metric by their labels, which the registry has in the order of a hash: two scrapes
/// differ in values only. The lines of a histogram stay together, and in their order.
pub(super) fn sorted(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut samples = Vec::new();
    let flush = |samples: &mut Vec<&str>, out: &mut String| {
        samples.sort_by_cached_key(|line| labels(line));
        samples.drain(..).for_each(|line| *out += &format!("{line}\n"));
    };
    for line in text.lines() {
        if line.starts_with('#') {
            flush(&mut samples, &mut out);
            out += &format!("{line}\n");
        } else {
            samples.push(line);
        }
    }
    flush(&mut samples, &mut out);
    out
}

/// Returns the labels of a sample, but for the bound of a bucket.
fn labels(sample: &str) -> Vec<&str> {
    let Some((_, rest)) = sample.split_once('{') else { return Vec::new() };
    let (mut labels, mut start) = (Vec::new(), 0);
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (at, byte) in rest.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            b',' | b'}' if !is_quoted => {
                labels.extend(rest.get(start..at).filter(|label| !label.starts_with("le=\"")));
                start = at + 1;
                if byte == b'}' {
                    break;
                }
            }
            _ => {}
        }
    }
    labels
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
    fn series_are_in_the_order_of_their_labels_and_histograms_whole() {
        let text = "# TYPE a counter\na_total{x=\"b\"} 1\na_total{x=\"a\\\"},\"} 2\n# TYPE h histogram\n\
            h_sum{f=\"6\"} 1\nh_bucket{f=\"6\",le=\"10\"} 1\nh_bucket{f=\"6\",le=\"+Inf\"} 1\n\
            h_sum{f=\"4\"} 1\nh_bucket{f=\"4\",le=\"10\"} 1\n# EOF\n";
        let expected = "# TYPE a counter\na_total{x=\"a\\\"},\"} 2\na_total{x=\"b\"} 1\n# TYPE h histogram\n\
            h_sum{f=\"4\"} 1\nh_bucket{f=\"4\",le=\"10\"} 1\nh_sum{f=\"6\"} 1\nh_bucket{f=\"6\",le=\"10\"} 1\n\
            h_bucket{f=\"6\",le=\"+Inf\"} 1\n# EOF\n";
        assert_eq!(sorted(text), expected);
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
