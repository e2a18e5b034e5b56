//! Values with a small grammar of their own.

use super::{Read, number::decimal, number::integer};
use crate::encoding::{byte_len, encode};
use crate::vocabulary::SCTP_CHUNKS;

/// `value[/mask]` of devgroup and realm, or a name from a file of iproute2.
pub(super) fn masked(word: &str) -> Read {
    let part = |part: &str| integer(part).and_then(|number| u32::try_from(number).ok());
    let (value, mask) = word.split_once('/').map_or((word, None), |(value, mask)| (value, Some(mask)));
    match (part(value), mask.map(part)) {
        (Some(value), None) => Ok(format!("{value:#x}")),
        (Some(value), Some(Some(u32::MAX))) => Ok(format!("{value:#x}")),
        (Some(value), Some(Some(mask))) => Ok(format!("{value:#x}/{mask:#x}")),
        (None, None) if word == "default" => Ok("0x0".to_owned()),
        (None, None) if is_name(word) => Ok(word.to_owned()),
        _ => Err("expected a number, with a mask if wanted, or a name".into()),
    }
}

fn is_name(word: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && word.bytes().all(plain)
}

/// `major:minor`, both hexadecimal.
pub(super) fn class(word: &str) -> Read {
    let part = |part: &str| {
        let digits = part.strip_prefix("0x").unwrap_or(part);
        u16::from_str_radix(digits, 16).ok().filter(|_| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
    };
    match word.split_once(':').and_then(|(major, minor)| part(major).zip(part(minor))) {
        Some((major, minor)) => Ok(format!("{major:04x}:{minor:04x}")),
        None => Err("expected a class `major:minor`, both hexadecimal up to ffff".into()),
    }
}

pub(super) fn mac(word: &str) -> Read {
    let byte = |part: &str| match part.len() {
        1 | 2 => {
            u8::from_str_radix(part, 16).ok().filter(|_| part.bytes().all(|byte| byte.is_ascii_hexdigit()))
        }
        _ => None,
    };
    match word.split(':').map(byte).collect::<Option<Vec<_>>>() {
        Some(bytes) if bytes.len() == 6 => {
            Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":"))
        }
        _ => Err("expected a MAC address, as in `02:00:00:00:00:01`".into()),
    }
}

pub(super) fn interface(word: &str, wildcard: bool) -> Read {
    let name = if wildcard { word.strip_suffix('+').unwrap_or(word) } else { word };
    match byte_len(word) {
        0 => Err("expected the name of an interface".into()),
        // iptables takes a `/`, which no interface has in its name.
        1..=15 if !name.contains(' ') => Ok(word.to_owned()),
        1..=15 => Err("expected the name of an interface, without blanks".into()),
        _ => Err("expected the name of an interface, of at most 15 bytes".into()),
    }
}

/// Returns a user or group by name or number, or a range of numbers.
pub(super) fn owner(word: &str) -> Read {
    let id =
        |part: &str| integer(part).and_then(|number| u32::try_from(number).ok()).filter(|id| *id < u32::MAX);
    if is_name(word) {
        return Ok(if word == "root" { "0".to_owned() } else { word.to_owned() });
    }
    match word.split_once('-') {
        None => id(word).map(|id| id.to_string()),
        Some((low, high)) => id(low).zip(id(high)).and_then(|(low, high)| match low.cmp(&high) {
            std::cmp::Ordering::Less => Some(format!("{low}-{high}")),
            std::cmp::Ordering::Equal => Some(low.to_string()),
            std::cmp::Ordering::Greater => None,
        }),
    }
    .ok_or_else(|| "expected a name, a number, or a range of numbers (`a-b`)".into())
}

/// `type[:flags],...`, or `ALL`, or `NONE`.
pub(super) fn sctp_chunks(word: &str) -> Read {
    if word.eq_ignore_ascii_case("ALL") || word.eq_ignore_ascii_case("NONE") {
        return Ok(word.to_ascii_uppercase());
    }
    let mut chunks = std::collections::BTreeMap::new();
    for part in word.split(',').filter(|part| !part.is_empty()) {
        let (name, flags) = part.split_once(':').map_or((part, None), |(name, flags)| (name, Some(flags)));
        let wrong = || format!("expected SCTP chunks (`a,b:flags`) of {}, ALL, NONE", chunk_names());
        let at =
            SCTP_CHUNKS.iter().position(|(known, ..)| known.eq_ignore_ascii_case(name)).ok_or_else(wrong)?;
        let (name, _, letters) = SCTP_CHUNKS.get(at).ok_or_else(wrong)?;
        let flags = flags.unwrap_or_default();
        if !flags.chars().all(|flag| letters.contains(flag.to_ascii_uppercase())) {
            return Err(format!("expected flags of {name} out of `{letters}`").into());
        }
        let place: &mut Vec<Option<char>> = chunks.entry(at).or_insert_with(|| vec![None; letters.len()]);
        // Of a flag that stands in both cases, the capital letter counts.
        for flag in flags.chars() {
            let letter = letters.chars().position(|letter| letter == flag.to_ascii_uppercase());
            let place = letter.and_then(|at| place.get_mut(at));
            place
                .into_iter()
                .for_each(|place| *place = place.filter(char::is_ascii_uppercase).or(Some(flag)));
        }
    }
    let chunks = chunks.into_iter().filter_map(|(at, flags)| {
        let (name, ..) = SCTP_CHUNKS.get(at)?;
        let flags: String = flags.into_iter().flatten().collect();
        Some(if flags.is_empty() || *name == "I_DATA" {
            (*name).to_owned()
        } else {
            format!("{name}:{flags}")
        })
    });
    let chunks = chunks.collect::<Vec<_>>().join(",");
    match (word, chunks.is_empty()) {
        ("", _) => Err("expected SCTP chunks".into()),
        (_, true) => Ok("NONE".to_owned()),
        _ => Ok(chunks),
    }
}

fn chunk_names() -> String {
    SCTP_CHUNKS.iter().map(|(name, ..)| *name).collect::<Vec<_>>().join(", ")
}

/// Packets per time, or bytes: `10/sec`, `512kb/s`.
pub(super) fn rate(word: &str) -> Read {
    if let Some(bytes) = bytes_per_second(word) {
        return bytes;
    }
    packets_per(word, 1_000_000)
}

/// Returns the bytes of a rate or burst of hashlimit (`512kb/s`, `64kb`), if it is in bytes.
pub(crate) fn hash_rate(word: &str) -> Option<u64> {
    let number = word.strip_suffix("/s").unwrap_or(word).strip_suffix('b')?;
    match number.strip_suffix('k') {
        Some(digits) => decimal(digits)?.checked_mul(1 << 10),
        None => match number.strip_suffix('m') {
            Some(digits) => decimal(digits)?.checked_mul(1 << 20),
            None => decimal(number),
        },
    }
}

/// Returns the rate that iptables prints: the kernel stores the cost of sixteen bytes, out of 2^32 a second.
fn as_kept(bytes: u64) -> u64 {
    let most = u64::from(u32::MAX);
    let cost = most / ((bytes >> 4) + 1);
    (most.checked_div(cost).unwrap_or(most).saturating_sub(1)) << 4
}

fn bytes_per_second(word: &str) -> Option<Read> {
    word.strip_suffix("b/s")?;
    Some(match hash_rate(word) {
        Some(bytes @ 1..=0xffff_ffff) => Ok(format!("{}b/s", as_kept(bytes))),
        _ => Err("expected a rate in bytes, as in `512kb/s`".into()),
    })
}

/// Packets per time: `3/hour`.
pub(super) fn limit_rate(word: &str) -> Read {
    packets_per(word, 10_000)
}

/// Reads a rate of packets. iptables stores the time for one packet, as a whole number of 1/scale seconds,
/// and prints the unit that shows it best; `60/min` is printed as `1/sec`.
fn packets_per(word: &str, scale: u64) -> Read {
    let (digits, unit) = word.split_once('/').unwrap_or((word, "second"));
    let begins = |name: &str| {
        !unit.is_empty() && name.get(..unit.len()).is_some_and(|head| head.eq_ignore_ascii_case(unit))
    };
    let seconds = UNITS.iter().find(|(name, _)| begins(name)).map(|(_, seconds)| scale * seconds);
    let cost = seconds.zip(decimal(digits).filter(|number| *number > 0)).map(|(time, number)| time / number);
    let Some(cost) = cost.filter(|cost| *cost > 0) else {
        return Err(format!("expected a rate of packets, as in `10/sec`, of at most {scale}/sec").into());
    };
    let fits = |seconds: u64| {
        let time = scale * seconds;
        cost <= time && time / cost >= time % cost
    };
    let (name, seconds) = shortest_unit(fits);
    Ok(format!("{}/{}", scale * seconds / cost, short_unit(name)))
}

/// From days down to seconds, the last unit before one that does not fit.
fn shortest_unit(fits: impl Fn(u64) -> bool) -> (&'static str, u64) {
    let mut best = ("day", 86_400);
    for (name, seconds) in UNITS.iter().rev().skip(1) {
        if !fits(*seconds) {
            break;
        }
        best = (name, *seconds);
    }
    best
}

fn short_unit(name: &str) -> &str {
    match name {
        "second" => "sec",
        "minute" => "min",
        other => other,
    }
}

/// Returns a burst in packets, or in bytes with `b`, `kb`, `mb`.
pub(super) fn burst(word: &str) -> Read {
    let wrong = "expected a burst from 1 to 1000000, or in bytes, as in `32kb`";
    let bytes = ["kb", "mb", "b"]
        .iter()
        .any(|unit| word.strip_suffix(unit).is_some_and(|digits| integer(digits).is_some()));
    match integer(word) {
        Some(burst @ 1..=1_000_000) => Ok(burst.to_string()),
        None if bytes => Ok(hash_rate(word).map_or_else(|| word.to_owned(), |bytes| format!("{bytes}b"))),
        _ => Err(wrong.into()),
    }
}

/// Returns a rate of tc(8): a number with a unit of bits or bytes.
pub(super) fn bit_rate(word: &str) -> Read {
    match bytes_a_second(word) {
        Some(rate) if rate < 4_294_967_296.0 => Ok(word.to_owned()),
        // The tool would cut it to 32 bits.
        Some(_) => Err("expected a rate below 2^32 bytes a second".into()),
        None => Err("expected a rate as tc(8) takes it, as in `1mbit`".into()),
    }
}

/// Returns a rate as iptables-save prints it, if nothing of it is lost so, and otherwise in bits.
pub(crate) fn bit_rate_text(word: &str) -> Option<String> {
    let bytes = bytes_a_second(word).filter(|rate| *rate < 4_294_967_296.0)?;
    // Bytes are what the kernel has: fewer than eight bits are lost.
    let bits = bytes.floor() * 8.0;
    let units = [("Mbit", 1e6), ("Kbit", 1e3)];
    let unit = units.into_iter().find(|(_, factor)| bits >= factor * 1e3 && bits % factor == 0.0);
    let (name, factor) = unit.unwrap_or(("bit", 1.0));
    Some(format!("{}{name}", bits / factor))
}

/// Returns a rate of tc(8) in bytes a second; bits without a unit.
fn bytes_a_second(word: &str) -> Option<f64> {
    let end = word.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(word.len());
    let (digits, unit) = word.split_at_checked(end)?;
    let unit = unit.to_ascii_lowercase();
    let unit = if unit.is_empty() { "bit" } else { &unit };
    let (prefix, bits) = match unit.strip_suffix("bps") {
        Some(prefix) => (prefix, 1.0),
        None => (unit.strip_suffix("bit")?, 8.0),
    };
    let factor = match prefix {
        "" => 1.0,
        "k" => 1e3,
        "ki" => f64::from(1_u32 << 10),
        "m" => 1e6,
        "mi" => f64::from(1_u32 << 20),
        "g" => 1e9,
        "gi" => f64::from(1_u32 << 30),
        "t" => 1e12,
        "ti" => f64::from(1_u32 << 20) * f64::from(1_u32 << 20),
        _ => return None,
    };
    digits.parse::<f64>().ok().map(|number| number * factor / bits)
}

/// Returns a time of tc(8): a number with `s`, `ms` or `us`.
pub(super) fn rate_time(word: &str) -> Read {
    match seconds(word) {
        Some(_) => Ok(word.to_owned()),
        None => Err("expected a time, as in `250ms`".into()),
    }
}

/// Returns a time of tc(8) in seconds; microseconds without a unit.
pub(crate) fn seconds(word: &str) -> Option<f64> {
    let end = word.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(word.len());
    let (digits, unit) = word.split_at_checked(end)?;
    let factor = match unit.to_ascii_lowercase().as_str() {
        "s" | "sec" | "secs" => 1.0,
        "ms" | "msec" | "msecs" => 1e-3,
        "us" | "usec" | "usecs" | "" => 1e-6,
        _ => return None,
    };
    digits.parse::<f64>().ok().map(|number| number * factor)
}

pub(super) fn led_delay(word: &str) -> Read {
    match word {
        "inf" => Ok(word.to_owned()),
        _ => {
            super::number::int(word, 0, u32::MAX.into()).map_err(|_| "expected milliseconds, or `inf`".into())
        }
    }
}

pub(super) fn set_name(word: &str) -> Read {
    match byte_len(word) {
        1..=31 if !word.starts_with(':') => Ok(word.to_owned()),
        _ => Err("expected the name of a set, of 1 to 31 bytes".into()),
    }
}

pub(super) fn set_flags(word: &str) -> Read {
    let parts: Vec<_> = word.split(',').collect();
    if parts.len() <= 6 && parts.iter().all(|part| matches!(*part, "src" | "dst")) {
        return Ok(word.to_owned());
    }
    Err("expected up to six of src and dst, with commas between".into())
}

pub(super) fn zone(word: &str) -> Read {
    match word {
        "mark" => Ok(word.to_owned()),
        _ => super::number::int(word, 0, u16::MAX.into())
            .map_err(|_| "expected a zone from 0 to 65535, or `mark`".into()),
    }
}

pub(super) fn queues(word: &str) -> Read {
    let part = |part: &str, open: u64| match part {
        "" => Some(open),
        part => integer(part).filter(|number| *number <= 65_535),
    };
    match word.split_once(':').and_then(|(low, high)| part(low, 0).zip(part(high, 65_535))) {
        // The number of queues has 16 bits.
        Some((low, high)) if low < high && (low, high) != (0, 65_535) => Ok(format!("{low}:{high}")),
        _ => Err("expected a range of at most 65535 queues (`a:b`) that ends above its start".into()),
    }
}

/// `type[:length],...` of IPv6 extension headers.
pub(super) fn header_options(word: &str) -> Read {
    let byte = |part: &str| integer(part).and_then(|number| u8::try_from(number).ok());
    let mut options = Vec::new();
    for part in word.split(',') {
        let option = match part.split_once(':') {
            Some((kind, length)) => {
                byte(kind).zip(byte(length)).map(|(kind, length)| format!("{kind}:{length}"))
            }
            None => byte(part).map(|kind| kind.to_string()),
        };
        options.push(option.ok_or("expected options of the header (`type:length,type`), both up to 255")?);
    }
    if options.len() > 16 {
        Err("expected at most 16 options of the header".into())
    } else {
        Ok(options.join(","))
    }
}

/// Text with bytes in hexadecimal between bars: `|0d 0a|`.
pub(super) fn hex_string(word: &str) -> Read {
    match string_bytes(word, true) {
        Some(bytes) if (1..=128).contains(&bytes.len()) => Ok(word.to_owned()),
        _ => Err(
            "expected text with bytes in hexadecimal between bars, as in `GET|0d0a|`, of at most 128 bytes"
                .into(),
        ),
    }
}

/// Returns the bytes that the string match looks for.
///
/// What iptables 1.8.9 reads as other text than it says is refused: of `|61||62|` it makes `a|62`, and of `a\b`,
/// whose backslash is to take a bar as it is, `abb`.
pub(crate) fn string_bytes(word: &str, hex: bool) -> Option<Vec<u8>> {
    if !hex {
        return Some(encode(word).into_owned());
    }
    let parts: Vec<_> = word.split('|').collect();
    if parts.len().is_multiple_of(2) || word.contains(['\\']) {
        return None;
    }
    let mut bytes = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        if at % 2 == 1 {
            hex_block(part, &mut bytes)?;
        } else if part.is_empty() && at > 0 && at + 1 < parts.len() {
            return None;
        } else {
            bytes.extend_from_slice(&encode(part));
        }
    }
    Some(bytes)
}

/// Reads pairs of digits: blanks may stand before the first, and one behind each.
fn hex_block(block: &str, bytes: &mut Vec<u8>) -> Option<()> {
    let mut rest = block.trim_start_matches(' ').as_bytes();
    while let [high, low, behind @ ..] = rest {
        let digit = |byte: u8| char::from(byte).to_digit(16);
        bytes.push(u8::try_from(digit(*high)? << 4 | digit(*low)?).ok()?);
        rest = behind.strip_prefix(b" ").unwrap_or(behind);
    }
    (rest.is_empty() && !block.trim_start_matches(' ').is_empty()).then_some(())
}

/// `count,code jt jf k,...`
pub(super) fn bytecode(word: &str) -> Read {
    let wrong = "expected a BPF program, `count,code jt jf k,...`, of at most 64 instructions";
    let mut parts = word.split(',');
    let count = parts.next().and_then(integer).filter(|count| (1..=64).contains(count)).ok_or(wrong)?;
    let instructions: Vec<_> = parts.filter(|part| !part.trim().is_empty()).collect();
    let right = |instruction: &&str| {
        let numbers: Vec<_> = instruction.split_whitespace().map(integer).collect();
        matches!(numbers[..], [Some(code), Some(t), Some(f), Some(k)]
            if code <= 0xffff && t <= 0xff && f <= 0xff && u32::try_from(k).is_ok())
    };
    if instructions.len() as u64 == count && instructions.iter().all(right) {
        return Ok(word.to_owned());
    }
    Err(wrong.into())
}

/// `location=value&&...`, up to ten tests.
pub(super) fn u32_tests(word: &str) -> Read {
    let wrong = "expected tests, as in `0&0xff=0x1:0x2,5&&4>>2@8=1`";
    let tests: Vec<_> = word.split("&&").collect();
    let right = |test: &&str| match test.split_once('=') {
        Some((location, values)) => {
            // XT_U32_MAXSIZE: of tests and of values the kernel has room for one more, which the tool refuses.
            is_location(location) && values.split(',').count() <= 10 && values.split(',').all(is_u32_range)
        }
        None => false,
    };
    if tests.len() <= 10 && tests.iter().all(right) { Ok(in_hexadecimal(word)) } else { Err(wrong.into()) }
}

/// Returns every number in hexadecimal, without blanks.
fn in_hexadecimal(word: &str) -> String {
    let word: String = word.chars().filter(|c| !c.is_whitespace()).collect();
    let mut normal = String::new();
    for part in word.split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
        let number = part.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        match integer(number) {
            Some(value) => {
                normal.push_str(&format!("{value:#x}{}", part.get(number.len()..).unwrap_or_default()));
            }
            None => normal.push_str(part),
        }
    }
    normal
}

fn is_location(location: &str) -> bool {
    let numbers = location.replace("<<", "&").replace(">>", "&").replace('@', "&");
    !location.contains("&&") && numbers.split('&').all(is_u32) && numbers.split('&').count() <= 11
}

fn is_u32_range(range: &str) -> bool {
    range
        .split_once(':')
        .map_or_else(|| is_u32(range), |(low, high)| (low.trim().is_empty() || is_u32(low)) && is_u32(high))
}

fn is_u32(word: &str) -> bool {
    integer(word.trim()).is_some_and(|number| u32::try_from(number).is_ok())
}

const UNITS: [(&str, u64); 4] = [("second", 1), ("minute", 60), ("hour", 3600), ("day", 86_400)];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hex_string_that_the_tool_reads_as_other_text_is_refused() {
        let read = |word| string_bytes(word, true).map(|bytes| String::from_utf8(bytes).expect("ASCII"));
        for (word, text) in [
            ("x y", "x y"),
            ("|61|62", "a62"),
            ("|  61 6263 |d", "abcd"),
            ("|61|  |62|", "a  b"),
            ("|61|b|62|c", "abbc"),
        ] {
            assert_eq!(read(word).as_deref(), Some(text), "{word}");
        }
        let wrong = ["|61||62|", "a||b", "||", "| |", "|61", "|6 1|", "|61  62|", "|6|", "|+6|", "|\u{e9}|"];
        for word in wrong.into_iter().chain([r"a\b", r"\|61\|"]) {
            assert_eq!(read(word), None, "{word}");
        }
    }
}
