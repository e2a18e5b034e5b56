//! Times, dates and hours as nft writes them.

use std::time::Duration;

use crate::time_zone::TimeZone;

/// A time: `1d2h3m4s5ms`, or a number of seconds.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    if let Ok(seconds) = text.parse::<u32>() {
        return Some(Duration::from_secs(seconds.into()));
    }
    const UNITS: [(&str, u64); 5] =
        [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];
    let (mut rest, mut units, mut millis) = (text, UNITS.as_slice(), 0_u64);
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, tail) = rest.split_at_checked(digits).filter(|_| (1..=8).contains(&digits))?;
        let letters = tail.bytes().take_while(u8::is_ascii_alphabetic).count();
        let (unit, tail) = tail.split_at_checked(letters)?;
        // Each unit at most once, the largest first.
        let at = units.iter().position(|(name, _)| *name == unit)?;
        let (_, factor) = units.get(at)?;
        millis = millis.checked_add(number.parse::<u64>().ok()?.checked_mul(*factor)?)?;
        units = units.get(at + 1..)?;
        rest = tail;
    }
    (units.len() < UNITS.len()).then_some(Duration::from_millis(millis))
}

/// Nanoseconds since 1970 of a date, `2026-01-31 17:00:05`, in a time zone.
pub(crate) fn date(text: &str, zone: &TimeZone) -> Option<u64> {
    let (day, time) = text.split_once([' ', 'T']).unwrap_or((text, "00:00"));
    let mut numbers = day.split('-').map(|number| number.parse::<u16>().ok());
    let (year, month, day) = (numbers.next()??, numbers.next()??, numbers.next()??);
    if numbers.next().is_some() || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let seconds = i64::from(clock(time.trim())?) + 86_400 * days(year.into(), month.into(), day.into());
    // As nft does, by the offset when it is that time in UTC.
    u64::try_from(seconds - i64::from(zone.offset_at(seconds))).ok()?.checked_mul(1_000_000_000)
}

/// Seconds since midnight, UTC, of an hour in a time zone.
pub(crate) fn hour(text: &str, zone: &TimeZone) -> Option<u64> {
    let local = i64::from(clock(text)?) - i64::from(zone.offset());
    u64::try_from(local.rem_euclid(86_400)).ok()
}

/// Seconds since midnight.
fn clock(text: &str) -> Option<u32> {
    let mut numbers = text.split(':').map(|number| {
        let digits = number.bytes().all(|byte| byte.is_ascii_digit()) && number.len() <= 2;
        if digits { number.parse::<u32>().ok() } else { None }
    });
    let (hours, minutes) = (numbers.next()??, numbers.next()??);
    let seconds = match numbers.next() {
        Some(seconds) => seconds?,
        None => 0,
    };
    let fits = hours < 24 && minutes < 60 && seconds < 61 && numbers.next().is_none();
    fits.then_some(hours * 3600 + minutes * 60 + seconds)
}

/// Days since 1970, in the Gregorian calendar. Years are taken to begin in March, so that the leap day is
/// their last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_sums_of_units() {
        let millis = |text| duration(text).map(|time| time.as_millis());
        assert_eq!(millis("1d2h3m4s5ms"), Some(93_784_005));
        assert_eq!(millis("90s"), Some(90_000));
        assert_eq!(millis("30"), Some(30_000));
        for wrong in ["", "1x", "s", "1s1s", "1s1m", "999999999s", "1.5s"] {
            assert_eq!(millis(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        let seconds = |text, offset| {
            date(text, &TimeZone::fixed(offset)).map(|nanoseconds| nanoseconds / 1_000_000_000)
        };
        assert_eq!(seconds("1970-01-01", 0), Some(0));
        assert_eq!(seconds("2000-02-29 00:00", 0), Some(951_782_400));
        assert_eq!(seconds("2000-02-28 23:59:59", 0), Some(951_782_399));
        assert_eq!(seconds("2026-01-01 02:00:00", 7_200), Some(1_767_225_600));
        // At noon of the first of January and of July, with the hour of summer from April on.
        let zone = TimeZone::fixed(3600).with_changes([(1_775_001_600, 7200)]);
        let hours = |text| date(text, &zone).map(|nanoseconds| nanoseconds / 3_600_000_000_000 % 24);
        assert_eq!([hours("2026-01-01 12:00"), hours("2026-07-01 12:00")], [Some(11), Some(10)]);
        for wrong in ["2026-13-01", "2026-01", "x", "2026-01-01 25:00", "1970-01-01 00:00:00:00"] {
            assert_eq!(seconds(wrong, 0), None, "{wrong}");
        }
    }

    #[test]
    fn hours_go_round_midnight() {
        assert_eq!(hour("17:00:05", &TimeZone::fixed(0)), Some(61_205));
        assert_eq!(hour("00:00", &TimeZone::fixed(7_200)), Some(79_200));
        assert_eq!(hour("23:00", &TimeZone::fixed(-7_200)), Some(3_600));
        assert_eq!(hour("6:00", &TimeZone::fixed(0)), Some(21_600));
        assert_eq!(
            [
                hour("24:00", &TimeZone::fixed(0)),
                hour("1", &TimeZone::fixed(0)),
                hour("+1:00", &TimeZone::fixed(0))
            ],
            [None, None, None]
        );
    }
}
