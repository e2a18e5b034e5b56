//! The machine's time zone, as the C library finds it: `TZ`, else `/etc/localtime`.
//!
//! A file of tzfile(5) lists the changes of the past, and says by which rule it goes on: a text such as
//! `CET-1CEST,M3.5.0,M10.5.0/3`, which `TZ` may be as well.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use sluicegate_nftables::TimeZone;

/// The time zone of this process; UTC where it is not known.
pub(crate) fn local() -> TimeZone {
    let zone = match std::env::var("TZ") {
        Err(_) => from_file(Path::new("/etc/localtime")),
        Ok(name) if name.is_empty() => None,
        Ok(name) => {
            let name = name.strip_prefix(':').unwrap_or(&name);
            from_file(&Path::new("/usr/share/zoneinfo").join(name)).or_else(|| from_rule(name))
        }
    };
    let Some(changes) = zone else { return TimeZone::UTC };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let zone = TimeZone::fixed(changes.first).with_changes(changes.later.iter().copied());
    let offset = zone.offset_at(i64::try_from(now).unwrap_or(i64::MAX));
    // What was before the first change does not depend on what is now.
    let start = (i64::MIN, changes.first);
    TimeZone::fixed(offset).with_changes([start]).with_changes(changes.later)
}

/// The offsets of a time zone.
struct Changes {
    first: i32,
    later: Vec<(i64, i32)>,
}

fn from_file(path: &Path) -> Option<Changes> {
    parse_file(&std::fs::read(path).ok()?)
}

/// Reads the second, 64-bit, part of a file, and its rule (tzfile(5), RFC 8536).
fn parse_file(bytes: &[u8]) -> Option<Changes> {
    let header = Header::read(bytes)?;
    let body = bytes.get(header.length(4)..)?;
    let header = Header::read(body)?;
    let body = body.get(44..)?;
    let (times, rest) = body.split_at_checked(header.times * 8)?;
    let (kinds, rest) = rest.split_at_checked(header.times)?;
    let (types, _) = rest.split_at_checked(header.types * 6)?;
    let offset = |kind: usize| Some(i32::from_be_bytes(*types.get(kind * 6..)?.first_chunk()?));
    let times = times.chunks(8).filter_map(|time| Some(i64::from_be_bytes(*time.first_chunk()?)));
    let later: Option<Vec<_>> =
        times.zip(kinds).map(|(time, kind)| Some((time, offset(usize::from(*kind))?))).collect();
    let mut changes = Changes { first: offset(0)?, later: later? };
    let footer = bytes.get(header_end(bytes)?..)?;
    let footer = std::str::from_utf8(footer).ok()?.trim_matches('\n');
    if let Some(rule) = Rule::parse(footer) {
        let last = changes.later.last().map_or(i64::MIN, |(time, _)| *time);
        changes.later.extend(rule.changes().filter(|(time, _)| *time > last));
    }
    Some(changes)
}

/// Where the rule behind both parts starts.
fn header_end(bytes: &[u8]) -> Option<usize> {
    let first = Header::read(bytes)?.length(4);
    Some(first + Header::read(bytes.get(first..)?)?.length(8))
}

/// How many of what there are in a part of a file.
struct Header {
    utc: usize,
    standard: usize,
    leaps: usize,
    times: usize,
    types: usize,
    letters: usize,
}

impl Header {
    fn read(bytes: &[u8]) -> Option<Self> {
        let magic = bytes.get(..4)?;
        if magic != b"TZif" || *bytes.get(4)? == 0 {
            return None;
        }
        let number = |at: usize| {
            let bytes = bytes.get(20 + 4 * at..)?.first_chunk()?;
            usize::try_from(u32::from_be_bytes(*bytes)).ok().filter(|number| *number < 1 << 20)
        };
        Some(Self {
            utc: number(0)?,
            standard: number(1)?,
            leaps: number(2)?,
            times: number(3)?,
            types: number(4)?,
            letters: number(5)?,
        })
    }

    /// The bytes of this part, with times of so many bytes.
    fn length(&self, time: usize) -> usize {
        44 + self.times * (time + 1)
            + self.types * 6
            + self.letters
            + self.leaps * (time + 4)
            + self.standard
            + self.utc
    }
}

fn from_rule(text: &str) -> Option<Changes> {
    let rule = Rule::parse(text)?;
    Some(Changes { first: rule.standard, later: rule.changes().collect() })
}

/// A rule of POSIX.
struct Rule {
    standard: i32,
    /// The offset of summer, and when it starts and ends.
    summer: Option<(i32, [Day; 2])>,
}

/// A day of each year, and the second of the local clock.
#[derive(Clone, Copy)]
struct Day {
    kind: Kind,
    second: i64,
}

#[derive(Clone, Copy)]
enum Kind {
    /// Counted from 1, and the 29th of February never.
    Julian(i64),
    /// Counted from 0.
    OfYear(i64),
    /// The day of the week (0 is Sunday), in the week (5 is the last) of a month.
    OfWeek { month: i64, week: i64, day: i64 },
}

impl Rule {
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(',');
        let names = parts.next()?;
        let (standard, names) = offset(after_name(names)?)?;
        let Some(names) = after_name(names) else { return Some(Self { standard: -standard, summer: None }) };
        let summer = match offset(names) {
            Some((summer, _)) => -summer,
            None => 3600 - standard,
        };
        let mut day = |default: &'static str| Day::parse(parts.next().unwrap_or(default));
        // Without days, the C library takes those of the United States.
        let days = [day("M3.2.0")?, day("M11.1.0")?];
        Some(Self { standard: -standard, summer: Some((summer, days)) })
    }

    fn changes(&self) -> impl Iterator<Item = (i64, i32)> + use<> {
        let (standard, summer) = (self.standard, self.summer);
        let of_year = move |year: i64| {
            summer.map(|(summer, [start, end])| {
                [
                    (start.in_year(year) - i64::from(standard), summer),
                    (end.in_year(year) - i64::from(summer), standard),
                ]
            })
        };
        (1970..2200).filter_map(of_year).flatten()
    }
}

impl Day {
    fn parse(text: &str) -> Option<Self> {
        let (day, time) = text.split_once('/').unwrap_or((text, "2"));
        let second = offset(time)?.0.into();
        let kind = if let Some(numbers) = day.strip_prefix('M') {
            let mut numbers = numbers.split('.').map(|number| number.parse::<i64>().ok());
            let (month, week, day) = (numbers.next()??, numbers.next()??, numbers.next()??);
            let is_right = (1..=12).contains(&month) && (1..=5).contains(&week) && (0..=6).contains(&day);
            is_right.then_some(Kind::OfWeek { month, week, day })?
        } else if let Some(number) = day.strip_prefix('J') {
            Kind::Julian(number.parse().ok()?)
        } else {
            Kind::OfYear(day.parse().ok()?)
        };
        Some(Self { kind, second })
    }

    /// The local second since 1970.
    fn in_year(self, year: i64) -> i64 {
        let day = match self.kind {
            Kind::OfYear(day) => days(year, 1) + day,
            // The 29th of February is the 60th day of a leap year.
            Kind::Julian(day) => {
                let is_leap = days(year + 1, 1) - days(year, 1) == 366;
                days(year, 1) + day - 1 + i64::from(is_leap && day >= 60)
            }
            Kind::OfWeek { month, week, day } => {
                let first = days(year, month);
                // The first of January 1970 was a Thursday.
                let of_week = (first + 4).rem_euclid(7);
                let found = first + (day - of_week).rem_euclid(7) + 7 * (week - 1);
                let next = if month == 12 { days(year + 1, 1) } else { days(year, month + 1) };
                if found >= next { found - 7 } else { found }
            }
        };
        day * 86_400 + self.second
    }
}

/// Days from 1970 to the first of a month.
fn days(year: i64, month: i64) -> i64 {
    // A year that starts in March has its leap day at its end.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + (153 * month + 2) / 5
        - 719_468
}

/// What stands behind a name such as `CET` or `<+03>`.
fn after_name(text: &str) -> Option<&str> {
    if let Some(quoted) = text.strip_prefix('<') {
        return quoted.split_once('>').map(|(_, rest)| rest);
    }
    let rest = text.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    (text.len() - rest.len() >= 3).then_some(rest)
}

/// `[+-]hh[:mm[:ss]]` in seconds, and what stands behind it.
fn offset(text: &str) -> Option<(i32, &str)> {
    let (sign, text) = match text.strip_prefix('-') {
        Some(text) => (-1, text),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let end = text.find(|c: char| !c.is_ascii_digit() && c != ':').unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    let mut seconds = 0;
    let mut unit = 3600;
    for number in digits.split(':') {
        seconds += number.parse::<i32>().ok().filter(|number| *number <= 167)? * unit;
        unit /= 60;
    }
    Some((sign * seconds, rest))
}
