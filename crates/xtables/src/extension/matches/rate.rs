//! Matches that count, measure or remember: `linux/netfilter/xt_{limit,hashlimit,quota,nfacct,recent,
//! statistic,time}.h`.

use sluicegate_iptables_save::{Family, encode};

use super::codec;
use crate::extension::Codec;
use crate::extension::Mismatch;
use crate::extension::options::{Built, Given, name_of, named, names_of, number, prefix_mask};
use crate::extension::wire::{Reader, Writer};

pub(super) static CODECS: &[Codec] = &[
    codec("limit", 0, 40, limit, read_limit).compared_to(8),
    codec("hashlimit", 3, 312, hashlimit, read_hashlimit).compared_to(304),
    codec("quota", 0, 24, quota, read_quota).compared_to(16),
    codec("nfacct", 1, 40, nfacct, read_nfacct).compared_to(32),
    codec("nfacct", 0, 40, nfacct, read_nfacct).compared_to(32),
    codec("recent", 1, 228, recent, read_recent),
    codec("statistic", 0, 24, statistic, read_statistic).compared_to(12),
    codec("time", 0, 24, time, read_time).compared_to(22),
];

/// Returns the time for one packet, in units of 1/`scale` seconds, and the length of the unit in seconds.
fn cost_of(word: &str, scale: u64, name: &str) -> Result<(u64, u64), Mismatch> {
    let (digits, unit) = word.split_once('/').unwrap_or((word, "sec"));
    let seconds = unit_seconds(unit);
    let count = number::<u64>(digits, name)?;
    let cost = seconds.and_then(|seconds| (scale * seconds).checked_div(count)).filter(|cost| *cost > 0);
    let cost = cost.ok_or_else(|| {
        Mismatch::expected(format!("a rate of at most {scale}/sec")).option(name).found(word)
    })?;
    Ok((cost, seconds.unwrap_or(1)))
}

fn unit_seconds(unit: &str) -> Option<u64> {
    let begins = |name: &str| !unit.is_empty() && name.starts_with(&unit.to_ascii_lowercase());
    UNITS.iter().find(|(name, _)| begins(name)).map(|(_, seconds)| *seconds)
}

/// Returns the rate of a time for one packet in the unit that shows it best, with the length of that unit.
fn rate_text(cost: u64, scale: u64) -> Option<(String, u64)> {
    let mut best = UNITS.last()?;
    for unit in UNITS.iter().rev().skip(1) {
        let time = scale * unit.1;
        if cost > time || time.checked_div(cost)? < time.checked_rem(cost)? {
            break;
        }
        best = unit;
    }
    let (name, seconds) = *best;
    let name = match name {
        "second" => "sec",
        "minute" => "min",
        other => other,
    };
    Some((format!("{}/{name}", (scale * seconds).checked_div(cost)?), seconds))
}

/// `struct xt_rateinfo`
fn limit(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    let (cost, _) = cost_of(given.word("limit").unwrap_or("3/hour"), LIMIT_SCALE, "limit")?;
    out.u32(cost.try_into().map_err(|_| Mismatch::expected("a rate that 32 bits can hold"))?);
    out.u32(if given.has("limit-burst") { given.number("limit-burst")? } else { LIMIT_BURST });
    out.zeros(32);
    Ok(())
}

fn read_limit(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let [cost, burst] = [data.u32()?, data.u32()?];
    built.value("limit", rate_text(cost.into(), LIMIT_SCALE)?.0);
    if burst != LIMIT_BURST {
        built.value("limit-burst", burst);
    }
    Some(())
}

/// `struct xt_hashlimit_mtinfo3`
fn hashlimit(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    out.text(given.need("hashlimit-name")?, 255)?;
    out.align(8);
    let above = given.has("hashlimit-above");
    let option = if above { "hashlimit-above" } else { "hashlimit-upto" };
    let rate = given.need(option)?;
    let burst = given.word("hashlimit-burst");
    let bytes = rate.strip_suffix("/s").and_then(bytes_of);
    let (average, burst, expire) = match bytes {
        Some(bytes) => {
            let cost = byte_cost(bytes);
            let each = cost_bytes(cost).max(1);
            let wanted =
                burst.map(|word| bytes_of(word).ok_or(Mismatch::expected("a burst in bytes, as in `32kb`")));
            let burst = wanted.transpose()?.map_or(0, |bytes| bytes.div_ceil(each));
            (cost, burst, if burst == 0 { 15_000 } else { 60_000 })
        }
        None => {
            let (cost, _) = cost_of(rate, HASH_SCALE, option)?;
            let burst =
                burst.map_or(Ok(LIMIT_BURST.into()), |word| number::<u64>(word, "hashlimit-burst"))?;
            (cost, burst, 1000 * written_unit(given))
        }
    };
    out.u64(average);
    out.u64(burst);
    let mut mode = given.bits("hashlimit-mode", HASH_MODES)?;
    mode |= if above { HASH_INVERT } else { 0 };
    mode |= if bytes.is_some() { HASH_BYTES } else { 0 };
    mode |= if given.has("hashlimit-rate-match") { HASH_RATE_MATCH } else { 0 };
    out.u32(mode);
    out.u32(given.number("hashlimit-htable-size")?);
    out.u32(given.number("hashlimit-htable-max")?);
    let or = |name: &str, default: u64| match given.word(name).or_else(|| given.written.value(name)) {
        Some(word) => number::<u32>(word, name),
        None => u32::try_from(default).map_err(|_| Mismatch::expected(format!("a --{name} of 32 bits"))),
    };
    out.u32(or("hashlimit-htable-gcinterval", 1000)?);
    out.u32(or("hashlimit-htable-expire", expire)?);
    let interval = given.has("hashlimit-rate-match") || given.has("hashlimit-rate-interval");
    out.u32(or("hashlimit-rate-interval", u64::from(interval))?);
    let full = full_length(given.family);
    for name in ["hashlimit-srcmask", "hashlimit-dstmask"] {
        out.u8(if given.has(name) { given.number(name)? } else { full });
    }
    out.align(8);
    out.zeros(8);
    Ok(())
}

/// Returns the length of the unit that the rate was written in, which decides when entries expire.
fn written_unit(given: &Given<'_>) -> u64 {
    let rate = given
        .written
        .options
        .iter()
        .find(|option| matches!(&*option.name, "hashlimit-upto" | "hashlimit-above" | "hashlimit"));
    let unit = rate.and_then(|option| option.value()?.split_once('/')).map(|(_, unit)| unit);
    unit.and_then(unit_seconds).unwrap_or(1)
}

fn read_hashlimit(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let name = data.text(255)?;
    data.skip(1)?;
    let [average, burst] = [data.u64()?, data.u64()?];
    let [mode, size, most, gc, expire, interval] =
        [data.u32()?, data.u32()?, data.u32()?, data.u32()?, data.u32()?, data.u32()?];
    let [source, destination]: [u8; 2] = data.array()?;
    let (rate, shown_burst, default_expire) = if mode & HASH_BYTES != 0 {
        let bytes = cost_bytes(average);
        let fits = |unit: u64| bytes >= unit && byte_cost(bytes & !(unit - 1)) == average;
        let rate = format!("{}/s", in_unit(bytes, fits));
        let total = bytes.checked_mul(burst)?;
        let shown = (burst > 0).then(|| in_unit(total, |unit| total >= unit));
        (rate, shown, if burst > 0 { 60_000 } else { 15_000 })
    } else {
        let (rate, seconds) = rate_text(average, HASH_SCALE)?;
        (rate, Some(burst.to_string()), 1000 * seconds)
    };
    built.value(if mode & HASH_INVERT != 0 { "hashlimit-above" } else { "hashlimit-upto" }, rate);
    if let Some(burst) = shown_burst {
        built.value("hashlimit-burst", burst);
    }
    let hashed = mode & !(HASH_INVERT | HASH_BYTES | HASH_RATE_MATCH);
    if hashed != 0 {
        built.value("hashlimit-mode", names_of(hashed, HASH_MODES)?);
    }
    built.value("hashlimit-name", name);
    let mut unless = |name, value: u32, default: u64| {
        if u64::from(value) != default {
            built.value(name, value);
        }
    };
    unless("hashlimit-htable-size", size, 0);
    unless("hashlimit-htable-max", most, 0);
    unless("hashlimit-htable-gcinterval", gc, 1000);
    unless("hashlimit-htable-expire", expire, default_expire);
    let full = full_length(built.family);
    for (name, length) in [("hashlimit-srcmask", source), ("hashlimit-dstmask", destination)] {
        if length != full {
            built.value(name, length);
        }
    }
    built.flag("hashlimit-rate-match", mode & HASH_RATE_MATCH != 0);
    if mode & HASH_RATE_MATCH != 0 && interval != 1 {
        built.value("hashlimit-rate-interval", interval);
    }
    Some(())
}

fn full_length(family: Family) -> u8 {
    if family == Family::Ipv4 { 32 } else { 128 }
}

/// Returns the cost of sixteen bytes, out of 2^32 a second, for a rate in bytes.
fn byte_cost(bytes: u64) -> u64 {
    u64::from(u32::MAX).checked_div((bytes >> 4).saturating_add(1)).unwrap_or_default()
}

fn cost_bytes(cost: u64) -> u64 {
    u64::from(u32::MAX).checked_div(cost).unwrap_or(u64::from(u32::MAX)).saturating_sub(1) << 4
}

/// Returns a number of bytes: `64`, `64b`, `64kb`, `64mb`.
fn bytes_of(word: &str) -> Option<u64> {
    let number = word.strip_suffix('b')?;
    let (digits, unit) = match number.as_bytes().last()? {
        b'k' => (number.strip_suffix('k')?, 1 << 10),
        b'm' => (number.strip_suffix('m')?, 1 << 20),
        _ => (number, 1),
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

fn in_unit(bytes: u64, fits: impl Fn(u64) -> bool) -> String {
    match [("mb", 1 << 20), ("kb", 1 << 10)].iter().find(|(_, unit)| fits(*unit)) {
        Some((name, unit)) => format!("{}{name}", bytes / unit),
        None => format!("{bytes}b"),
    }
}

/// `struct xt_quota_info`
fn quota(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    out.u32(given.not("quota").into());
    out.zeros(4);
    out.u64(given.number("quota")?);
    out.zeros(8);
    Ok(())
}

fn read_quota(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let flags = data.u32()?;
    data.skip(4)?;
    built.value_not("quota", flags & 1 != 0, data.u64()?);
    Some(())
}

/// `struct xt_nfacct_match_info_v1`, which 64-bit kernels lay out as its predecessor.
fn nfacct(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    out.text(given.need("nfacct-name")?, 32)?;
    out.zeros(8);
    Ok(())
}

fn read_nfacct(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    built.value("nfacct-name", data.text(32)?);
    Some(())
}

/// `struct xt_recent_mtinfo_v1`
fn recent(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    out.u32(given.number("seconds")?);
    out.u32(given.number("hitcount")?);
    out.u8(given.flags(RECENT).try_into().unwrap_or_default());
    out.u8(given.module.options.iter().any(|option| option.negated).into());
    // The tool writes a name over this one, so that its end may remain behind a shorter one.
    let mut name = Writer::default();
    name.text(given.word("name").unwrap_or_default(), 200)?;
    let mut name = name.finish();
    let start = given.word("name").map_or(0, |name| encode(name).len() + 1);
    let rest = DEFAULT_NAME.get(start..).unwrap_or_default();
    name.iter_mut().skip(start).zip(rest).for_each(|(place, byte)| *place = *byte);
    out.bytes(&name);
    out.u8(given.has("rdest").into());
    out.align(4);
    let mask = given.address("mask")?.unwrap_or(prefix_mask(u8::MAX, given.family));
    out.mask(mask, given.written_word("mask").is_some());
    Ok(())
}

fn read_recent(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let [seconds, hits] = [data.u32()?, data.u32()?];
    let [flags, not]: [u8; 2] = data.array()?;
    let name = data.text(200)?;
    let side = data.u8()?;
    data.skip(1)?;
    let mask = data.inet(built.family)?;
    for (name, bit) in RECENT {
        if u32::from(flags) & bit != 0 {
            let first = matches!(*name, "set" | "rcheck" | "update" | "remove");
            built.flag_not(name, first && not != 0);
        }
    }
    if seconds != 0 {
        built.value("seconds", seconds);
    }
    if hits != 0 {
        built.value("hitcount", hits);
    }
    built.value("name", name);
    built.value("mask", mask);
    built.flag(if side == 0 { "rsource" } else { "rdest" }, true);
    Some(())
}

/// `struct xt_statistic_info`
fn statistic(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    let mode = named(given.word("mode").unwrap_or("random"), STATISTIC_MODES, "mode")?;
    out.u16(mode.try_into().unwrap_or_default());
    out.u16((given.not("probability") || given.not("every")).into());
    let (first, packet) = if mode == 0 {
        let word = given.need("probability")?;
        let probability = word.parse::<f64>().ok().filter(|number| (0.0..=1.0).contains(number));
        let probability = probability.ok_or_else(|| Mismatch::expected("a probability").found(word))?;
        (fixed_point(probability), 0)
    } else {
        let every =
            given.number::<u32>("every")?.checked_sub(1).ok_or(Mismatch::expected("an --every above 0"))?;
        (every, given.number("packet")?)
    };
    out.u32(first);
    out.u32(packet);
    // Where the kernel starts to count, if it counts.
    out.u32(first.checked_sub(packet).ok_or(Mismatch::expected("a --packet below --every"))?);
    out.align(8);
    out.zeros(8);
    Ok(())
}

/// Returns 31 bits of a number from 0 to 1.
fn fixed_point(number: f64) -> u32 {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 2^31")]
    {
        (number.clamp(0.0, 1.0) * PROBABILITY_1).round() as u32
    }
}

fn read_statistic(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let [mode, flags] = [data.u16()?, data.u16()?];
    let [first, packet] = [data.u32()?, data.u32()?];
    built.value("mode", name_of(mode.into(), STATISTIC_MODES)?);
    let not = flags & 1 != 0;
    if mode == 0 {
        built.value_not("probability", not, format!("{:.11}", f64::from(first) / PROBABILITY_1));
    } else {
        built.value_not("every", not, first.checked_add(1)?);
        built.value("packet", packet);
    }
    Some(())
}

/// `struct xt_time_info`
fn time(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    out.u32(given.word("datestart").map_or(Ok(0), |word| seconds_of_date(word, "datestart"))?);
    out.u32(given.word("datestop").map_or(Ok(LAST_DATE), |word| seconds_of_date(word, "datestop"))?);
    out.u32(given.word("timestart").map_or(Ok(0), |word| seconds_of_day(word, "timestart"))?);
    out.u32(given.word("timestop").map_or(Ok(LAST_SECOND), |word| seconds_of_day(word, "timestop"))?);
    let days = |name: &str, all: u32, day: &dyn Fn(&str) -> Option<u32>| -> Result<u32, Mismatch> {
        let Some(list) = given.word(name) else { return Ok(all) };
        let bits = list.split(',').try_fold(0, |bits, part| Some(bits | 1_u32.checked_shl(day(part)?)?));
        let bits = bits.ok_or_else(|| Mismatch::expected("days").option(name).found(list))?;
        Ok(if given.not(name) { all & !bits } else { bits & all })
    };
    out.u32(days("monthdays", ALL_MONTHDAYS, &|part| part.parse().ok())?);
    let week = |part: &str| WEEK.iter().zip(1..).find(|(name, _)| **name == part).map(|(_, day)| day);
    out.u8(days("weekdays", ALL_WEEKDAYS, &week)?.try_into().unwrap_or_default());
    out.u8(given.flags(TIME_FLAGS).try_into().unwrap_or_default());
    out.align(4);
    Ok(())
}

fn read_time(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let [start, stop, day_start, day_stop, month] =
        [data.u32()?, data.u32()?, data.u32()?, data.u32()?, data.u32()?];
    let [week, flags]: [u8; 2] = data.array()?;
    // Days are counted from 1 (xt_time.c): bit 0 is of none. The tool sets it for `--monthdays 1,,2`, and leaves
    // it set when it negates.
    data.ignore_bits_at(if cfg!(target_endian = "big") { 19 } else { 16 }, 1);
    data.ignore_bits_at(20, 1);
    let (month, week) = (month & ALL_MONTHDAYS, u32::from(week) & ALL_WEEKDAYS);
    if (day_start, day_stop) != (0, LAST_SECOND) {
        built.value("timestart", day_text(day_start));
        built.value("timestop", day_text(day_stop));
    }
    let bits = |bits: u32| (0..32).filter(move |bit| bits & 1 << bit != 0);
    if month != ALL_MONTHDAYS {
        built.value("monthdays", bits(month).map(|day| day.to_string()).collect::<Vec<_>>().join(","));
    }
    if week != ALL_WEEKDAYS {
        let names = WEEK.iter().zip(1..).filter(|(_, day)| week & 1 << day != 0).map(|(name, _)| *name);
        built.value("weekdays", names.collect::<Vec<_>>().join(","));
    }
    if start != 0 {
        built.value("datestart", date_text(start));
    }
    built.value("datestop", date_text(stop));
    built.flags(flags.into(), TIME_FLAGS)
}

fn seconds_of_day(word: &str, name: &str) -> Result<u32, Mismatch> {
    let parts: Option<Vec<u32>> = word.split(':').map(|part| part.parse().ok()).collect();
    match parts.as_deref() {
        Some([hour @ 0..=23, minute @ 0..=59, second @ 0..=59]) => Ok(hour * 3600 + minute * 60 + second),
        _ => Err(Mismatch::expected("a time of day").option(name).found(word)),
    }
}

/// Returns the seconds since 1970 of `YYYY-MM-DDThh:mm:ss`.
fn seconds_of_date(word: &str, name: &str) -> Result<u32, Mismatch> {
    let wrong = || Mismatch::expected("a date").option(name).found(word);
    let (date, clock) = word.split_once('T').ok_or_else(wrong)?;
    let parts: Option<Vec<i64>> = date.split('-').map(|part| part.parse().ok()).collect();
    let Some([year @ 1970..=2038, month @ 1..=12, day @ 1..=31]) = parts.as_deref() else {
        return Err(wrong());
    };
    let seconds = (days_before(*year, *month) + day - 1) * DAY + i64::from(seconds_of_day(clock, name)?);
    u32::try_from(seconds).map_err(|_| wrong())
}

/// Returns the days from 1970 to the first of a month.
fn days_before(year: i64, month: i64) -> i64 {
    // Months are counted from March, so that the leap day is the last of a year.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    year * 365 + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 - 719_468
}

fn date_text(seconds: u32) -> String {
    let days = i64::from(seconds) / DAY;
    let year = (1970..=2106).rev().find(|year| days_before(*year, 1) <= days).unwrap_or(1970);
    let month = (1..=12).rev().find(|month| days_before(year, *month) <= days).unwrap_or(1);
    let day = days - days_before(year, month) + 1;
    format!("{year:04}-{month:02}-{day:02}T{}", day_text(seconds % LAST_SECOND.saturating_add(1)))
}

fn day_text(seconds: u32) -> String {
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// Units of a rate and their lengths in seconds.
const UNITS: &[(&str, u64)] = &[("second", 1), ("minute", 60), ("hour", 3600), ("day", 86_400)];
/// `XT_LIMIT_SCALE`
const LIMIT_SCALE: u64 = 10_000;
const LIMIT_BURST: u32 = 5;
/// `XT_HASHLIMIT_SCALE_v2`
const HASH_SCALE: u64 = 1_000_000;
/// `XT_HASHLIMIT_HASH_*`, in the order in which they are saved.
const HASH_MODES: &[(&str, u32)] =
    &[("srcip", 1 << 2), ("srcport", 1 << 3), ("dstip", 1 << 0), ("dstport", 1 << 1)];
const HASH_INVERT: u32 = 1 << 4;
const HASH_BYTES: u32 = 1 << 5;
const HASH_RATE_MATCH: u32 = 1 << 6;
/// `XT_RECENT_*`
const RECENT: &[(&str, u32)] = &[
    ("set", 1 << 1),
    ("rcheck", 1 << 0),
    ("update", 1 << 2),
    ("remove", 1 << 3),
    ("rttl", 1 << 4),
    ("reap", 1 << 5),
];
const DEFAULT_NAME: &[u8] = b"DEFAULT";
const STATISTIC_MODES: &[(&str, u32)] = &[("random", 0), ("nth", 1)];
const PROBABILITY_1: f64 = 2_147_483_648.0;
const LAST_DATE: u32 = i32::MAX.cast_unsigned();
/// `XT_TIME_MAX_DAYTIME`
const LAST_SECOND: u32 = 24 * 60 * 60 - 1;
/// `XT_TIME_ALL_MONTHDAYS`
const ALL_MONTHDAYS: u32 = 0xffff_fffe;
/// `XT_TIME_ALL_WEEKDAYS`
const ALL_WEEKDAYS: u32 = 0xfe;
const TIME_FLAGS: &[(&str, u32)] = &[("kerneltz", 1), ("contiguous", 2)];
const WEEK: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const DAY: i64 = 86_400;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_go_to_seconds_and_back() {
        let all =
            ["1970-01-01T00:00:00", "2000-02-29T23:59:59", "2024-12-31T12:00:00", "2038-01-19T03:14:07"];
        for date in all {
            assert_eq!(date_text(seconds_of_date(date, "datestop").unwrap()), date);
        }
        assert_eq!(seconds_of_date("2038-01-19T03:14:07", "datestop"), Ok(LAST_DATE));
        assert!(seconds_of_date("2038-13-19T03:14:07", "datestop").is_err());
    }

    #[test]
    fn a_rate_is_shown_in_the_unit_that_fits_best() {
        let shown = |word| rate_text(cost_of(word, LIMIT_SCALE, "limit").unwrap().0, LIMIT_SCALE).unwrap().0;
        assert_eq!(["60/minute", "3/h", "1000/day"].map(shown), ["1/sec", "3/hour", "1000/day"]);
        assert_eq!(rate_text(0, LIMIT_SCALE), None);
    }
}
