//! Durations as Go writes them, and so as kube-proxy's flags and files do: `30s`, `1m30s`, `100ms`, `1h`,
//! `0`.

use std::time::Duration;

/// Parses a duration that is not negative.
///
/// # Errors
/// [`DurationError`] for anything else.
///
/// ```
/// use std::time::Duration;
/// use sluicegate_proxier::config::parse_duration;
///
/// assert_eq!(parse_duration("1m30.5s"), Ok(Duration::from_millis(90_500)));
/// let error = parse_duration("30").unwrap_err();
/// assert_eq!(error.to_string(), "expected a duration with units (30s, 1m30s, 100ms), found \"30\"");
/// ```
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let wrong = || DurationError::Invalid(text.to_owned());
    let (mut rest, mut total) = (text, Duration::ZERO);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, tail) = rest.split_at(digits);
        let end = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(end);
        let nanoseconds: u64 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            "" if !number.is_empty() => {
                return Err(DurationError::WithoutUnit(text.to_owned()));
            }
            _ => return Err(wrong()),
        };
        let part = scaled(number, nanoseconds).ok_or_else(wrong)?;
        total = total.checked_add(part).ok_or_else(wrong)?;
        rest = tail;
    }
    if text.is_empty() { Err(wrong()) } else { Ok(total) }
}

/// Why a text is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DurationError {
    /// A number has no unit.
    #[error("expected a duration with units (30s, 1m30s, 100ms), found {0:?}")]
    WithoutUnit(
        /// The text.
        String,
    ),
    /// It is not made of numbers and units, or is too long to count in.
    #[error("expected a duration (30s, 1m30s, 100ms), found {0:?}")]
    Invalid(
        /// The text.
        String,
    ),
}

/// Formats a duration as Go does: with hours and minutes from a minute on, below a second in the unit that
/// leaves no leading zero.
///
/// ```
/// use std::time::Duration;
/// use sluicegate_proxier::config::format_duration;
///
/// assert_eq!(format_duration(Duration::from_secs(900)), "15m0s");
/// assert_eq!(format_duration(Duration::from_millis(1500)), "1.5s");
/// assert_eq!(format_duration(Duration::from_millis(20)), "20ms");
/// ```
#[must_use]
pub fn format_duration(duration: Duration) -> String {
    let nanoseconds = duration.as_nanos();
    let (unit, scale) = match nanoseconds {
        0 => return "0s".to_owned(),
        1..1_000 => ("ns", 1),
        1_000..1_000_000 => ("µs", 1_000),
        1_000_000..1_000_000_000 => ("ms", 1_000_000),
        _ => ("s", 1_000_000_000),
    };
    let minutes = duration.as_secs() / 60;
    let (hours, rest) = (minutes / 60, nanoseconds - u128::from(minutes) * 60_000_000_000);
    let mut text = match (hours, minutes) {
        (0, 0) => String::new(),
        (0, _) => format!("{minutes}m"),
        _ => format!("{hours}h{}m", minutes % 60),
    };
    text += &(rest / scale).to_string();
    let digits = scale.ilog10() as usize;
    if rest % scale > 0 {
        let fraction = format!("{:0digits$}", rest % scale);
        text += ".";
        text += fraction.trim_end_matches('0');
    }
    text + unit
}

/// Multiplies a decimal number by `nanoseconds`, without floating point.
fn scaled(number: &str, nanoseconds: u64) -> Option<Duration> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut total = whole.checked_mul(nanoseconds)?;
    let mut place = nanoseconds;
    for digit in fraction.chars() {
        place /= 10;
        total = total.checked_add(place.checked_mul(digit.to_digit(10)?.into())?)?;
    }
    Some(Duration::from_nanos(total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_reads_them() {
        let ms = |text| parse_duration(text).map(|duration| duration.as_millis());
        assert_eq!(ms("30s"), Ok(30_000));
        assert_eq!(ms("1h0m0s"), Ok(3_600_000));
        assert_eq!(ms(".5s"), Ok(500));
        assert_eq!(ms("1.m"), Ok(60_000));
        assert_eq!(ms("0"), Ok(0));
        assert_eq!(parse_duration("1.5us"), Ok(Duration::from_nanos(1500)));
    }

    #[test]
    fn durations_are_written_as_go_writes_them() {
        // time.Duration.String()
        for text in [
            "0s",
            "1ns",
            "1.1µs",
            "2.2ms",
            "3.3s",
            "4m5s",
            "4m5.001s",
            "5h6m7.001s",
            "8m0.000000001s",
            "2h0m0s",
            "30s",
        ] {
            assert_eq!(parse_duration(text).map(format_duration).as_deref(), Ok(text));
        }
    }

    #[test]
    fn text_that_is_not_a_duration_is_refused() {
        for bad in ["", "s", "-1s", "1", "1d", "1..s", ".s", "1s 2s", "99999999999h", "5x3s", "١s"] {
            assert!(parse_duration(bad).is_err(), "{bad:?}");
        }
    }
}
