//! Times of day, dates, days of the week and of the month, of the time match.

use super::{Read, number::integer};

/// `hh:mm[:ss]`
pub(super) fn day_time(word: &str) -> Read {
    let parts: Option<Vec<_>> = word.split(':').map(|part| decimal(part, 2)).collect();
    match parts.as_deref() {
        Some([hour @ 0..=23, minute @ 0..=59]) => Ok(format!("{hour:02}:{minute:02}:00")),
        Some([hour @ 0..=23, minute @ 0..=59, second @ 0..=59]) => {
            Ok(format!("{hour:02}:{minute:02}:{second:02}"))
        }
        _ => Err("expected a time of day, hh:mm or hh:mm:ss".into()),
    }
}

/// Returns a time of day in seconds.
pub(crate) fn seconds_of_day(word: &str) -> Option<u32> {
    let normal = day_time(word).ok()?;
    normal.split(':').try_fold(0, |sum, part| Some(sum * 60 + part.parse::<u32>().ok()?))
}

/// `YYYY[-MM[-DD[Thh[:mm[:ss]]]]]`
pub(super) fn date(word: &str) -> Read {
    parts_of_date(word)
        .ok_or_else(|| "expected a date from 1970 to 2038, YYYY[-MM[-DD[Thh[:mm[:ss]]]]]".into())
}

fn parts_of_date(word: &str) -> Option<String> {
    let (day, clock) = word.split_once('T').map_or((word, None), |(day, clock)| (day, Some(clock)));
    let mut parts = day.split('-');
    let year = decimal(parts.next()?, 4).filter(|year| (1970..=2038).contains(year))?;
    let mut next = |from, to| match parts.next() {
        None => Some((1, false)),
        Some(part) => {
            decimal(part, 2).filter(|number| (from..=to).contains(number)).map(|number| (number, true))
        }
    };
    let ((month, _), (day, complete)) = (next(1, 12)?, next(1, 31)?);
    if parts.next().is_some() || clock.is_some() && !complete {
        return None;
    }
    let mut clock = clock.map(|clock| clock.split(':'));
    let mut next = |to| match clock.as_mut().and_then(Iterator::next) {
        None => Some(0),
        Some(part) => decimal(part, 2).filter(|number| *number <= to),
    };
    let (hour, minute, second) = (next(23)?, next(59)?, next(59)?);
    if clock.is_some_and(|mut clock| clock.next().is_some()) {
        return None;
    }
    Some(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}"))
}

pub(super) fn week_days(word: &str) -> Read {
    let day = |part: &str| {
        let named = WEEK.iter().position(|name| part.len() >= 2 && name.starts_with(part));
        named.or_else(|| {
            integer(part)
                .and_then(|number| usize::try_from(number).ok()?.checked_sub(1))
                .filter(|day| *day < 7)
        })
    };
    let days = days(word, day)
        .ok_or("expected days of the week (`a,b`): Mon, Tue, Wed, Thu, Fri, Sat, Sun or 1 to 7")?;
    Ok(days.iter().filter_map(|day| WEEK.get(*day)?.get(..3)).collect::<Vec<_>>().join(","))
}

pub(super) fn month_days(word: &str) -> Read {
    let day = |part: &str| {
        // A `0` in front ends the number for iptables.
        let number = decimal(part, 2).filter(|_| !part.starts_with('0'));
        number.and_then(|number| usize::try_from(number).ok()).filter(|day| (1..=31).contains(day))
    };
    let days = days(word, day).ok_or("expected days of the month (`a,b`) from 1 to 31")?;
    Ok(days.iter().map(ToString::to_string).collect::<Vec<_>>().join(","))
}

fn days(word: &str, day: impl Fn(&str) -> Option<usize>) -> Option<Vec<usize>> {
    let mut days: Vec<_> = word.split(',').map(day).collect::<Option<_>>()?;
    days.sort_unstable();
    days.dedup();
    Some(days)
}

fn decimal(part: &str, most: usize) -> Option<u32> {
    let fits = !part.is_empty() && part.len() <= most && part.bytes().all(|byte| byte.is_ascii_digit());
    fits.then(|| part.parse().ok())?
}

/// Of which iptables-save prints three letters.
const WEEK: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
