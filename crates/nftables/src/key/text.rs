//! Formats constants in nft's syntax: addresses, names, numbers, times.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use crate::datatype::{DataType, Order};
use crate::key::{EtherAddr, Part, integer, is_byte_swapped};
use crate::name::InterfaceName;
use crate::time_zone::TimeZone;
use crate::wording::{ListOptions, Wording};

/// Writes one part of a key or value by its type.
pub(crate) fn write_part(
    f: &mut fmt::Formatter<'_>,
    part: Part,
    value: &[u8],
    with: Wording<'_>,
) -> fmt::Result {
    let number = integer(part.order(), value);
    match part.data_type() {
        DataType::IPV4_ADDR => match <[u8; 4]>::try_from(value) {
            Ok(octets) => write!(f, "{}", Ipv4Addr::from(octets)),
            Err(_) => write_hex(f, value),
        },
        DataType::IPV6_ADDR => match <[u8; 16]>::try_from(value) {
            Ok(octets) => write!(f, "{}", Inet6(Ipv6Addr::from(octets))),
            Err(_) => write_hex(f, value),
        },
        DataType::ETHER_ADDR | DataType::LL_ADDR => match <[u8; 6]>::try_from(value) {
            Ok(bytes) => write!(f, "{}", EtherAddr(bytes)),
            Err(_) => write_hex(f, value),
        },
        DataType::IFNAME | DataType::STRING => {
            write!(f, "{}", InterfaceName::from_bytes(value))
        }
        DataType::CT_LABEL => write_labels(f, value, " | "),
        of if of.is_bitmask() && with.is_named() => write_bits(f, of, number, " | ", with),
        _ if value.len() > 8 && with.is_hexadecimal() => {
            let zeros = value.iter().take_while(|byte| **byte == 0).count();
            match value.get(zeros..).and_then(<[u8]>::split_first) {
                None => f.write_str("0x0"),
                Some((first, rest)) => {
                    write!(f, "{first:#x}")?;
                    rest.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
                }
            }
        }
        DataType::INTEGER if value.len() > 8 && part.order() == Order::Network => {
            let number = value.iter().fold(0_u128, |sum, byte| sum << 8 | u128::from(*byte));
            write!(f, "{number}")
        }
        _ if value.len() > 8 => write_hex(f, value),
        of => write_number(f, of, number, with),
    }
}

/// Writes a number as nft does for its type: as a symbolic constant, in hexadecimal for marks and bit masks,
/// else in decimal.
pub(crate) fn write_number(
    f: &mut fmt::Formatter<'_>,
    of: DataType,
    number: u64,
    with: Wording<'_>,
) -> fmt::Result {
    if with.is_hexadecimal() {
        return write!(f, "{number:#x}");
    }
    if of.is_bitmask() {
        return match with.is_named() {
            true => write_bits(f, of, number, ",", with),
            false => write!(f, "{number:#x}"),
        };
    }
    match of {
        DataType::IFACE_INDEX => return write_interface(f, number, with.options),
        DataType::DATE => return write_date(f, number, with.options.time_zone.as_ref()),
        DataType::HOUR => return write_hour(f, number, with.options.time_zone.as_ref()),
        _ => {}
    }
    if with.is_named() && with.names(of) {
        if let Some(name) = with.options.symbols.get(&(of, number)) {
            return write!(f, "{}", name.quoted());
        }
        if let Some(symbol) = of.symbol_of(number) {
            return match of {
                DataType::DAY => write!(f, "\"{symbol}\""),
                _ => f.write_str(symbol),
            };
        }
    }
    match of {
        DataType::MARK => write!(f, "{number:#010x}"),
        DataType::CLASSID => match number {
            // nft does not read symbolic constants in a range.
            0 if with.is_named() => f.write_str("none"),
            0xffff_ffff if with.is_named() => f.write_str("root"),
            _ => write!(f, "{:x}:{:x}", number >> 16, number & 0xffff),
        },
        DataType::ETHER_TYPE => write!(f, "{number:#06x}"),
        DataType::BITMASK => write!(f, "{number:#x}"),
        DataType::ECN => write!(f, "{number:#x}"),
        DataType::DSCP => write!(f, "{number:#04x}"),
        DataType::TIME if !with.is_named() && number.is_multiple_of(1000) => {
            write!(f, "{}s", number / 1000)
        }
        DataType::TIME => write!(f, "{}", with.time(Duration::from_millis(number))),
        _ => write!(f, "{number}"),
    }
}

/// Writes the bits of a mask, the lowest first. Without names nft lists each bit as a number of its own.
pub(crate) fn write_bits(
    f: &mut fmt::Formatter<'_>,
    of: DataType,
    number: u64,
    between: &str,
    with: Wording<'_>,
) -> fmt::Result {
    if number == 0 {
        return f.write_str("0x0");
    }
    let mut rest = number;
    while rest != 0 {
        let bit = rest & rest.wrapping_neg();
        match of.symbol_of(bit).filter(|_| with.names(of)) {
            Some(symbol) => f.write_str(symbol)?,
            None => write!(f, "{bit:#x}")?,
        }
        rest &= !bit;
        if rest != 0 {
            f.write_str(between)?;
        }
    }
    Ok(())
}

/// Writes the numbers of the bits that are set: nft prints connection labels in this form.
pub(crate) fn write_labels(f: &mut fmt::Formatter<'_>, value: &[u8], between: &str) -> fmt::Result {
    let mut bytes = value.to_vec();
    if cfg!(target_endian = "big") {
        bytes.reverse();
    }
    let bits = bytes
        .iter()
        .enumerate()
        .flat_map(|(i, byte)| (0..8).filter(move |bit| byte & 1 << bit != 0).map(move |bit| i * 8 + bit));
    let bits: Vec<_> = bits.map(|bit| bit.to_string()).collect();
    if bits.is_empty() { write_hex(f, value) } else { f.write_str(&bits.join(between)) }
}

/// An IPv6 address as `inet_ntop` prints it: the last four bytes as an IPv4 address if all before are zero.
pub(crate) struct Inet6(pub(crate) Ipv6Addr);

impl fmt::Display for Inet6 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.segments() {
            [0, 0, 0, 0, 0, 0, high, low] if high != 0 => {
                write!(f, "::{}", Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)))
            }
            _ => fmt::Display::fmt(&self.0, f),
        }
    }
}

/// Writes the name of an interface, or its number if the name is not known; nft reads both.
fn write_interface(f: &mut fmt::Formatter<'_>, index: u64, options: &ListOptions) -> fmt::Result {
    match u32::try_from(index).ok().and_then(|index| options.interfaces.get(&index)) {
        Some(name) => write!(f, "{name}"),
        None => write!(f, "{index}"),
    }
}

/// Writes nanoseconds since 1970 as a date in a time zone, rounded to seconds; or without a zone as a
/// number of seconds, which does not depend on the time zone.
fn write_date(f: &mut fmt::Formatter<'_>, nanoseconds: u64, zone: Option<&TimeZone>) -> fmt::Result {
    let seconds = nanoseconds / 1_000_000_000;
    let Some(zone) = zone else { return write!(f, "{seconds}") };
    let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
    let local = seconds.saturating_add(zone.offset_at(seconds).into());
    let (year, month, day) = date(local.div_euclid(SECONDS_PER_DAY));
    let (hours, minutes, seconds) = clock(local.rem_euclid(SECONDS_PER_DAY));
    write!(f, "\"{year:04}-{month:02}-{day:02} {hours:02}:{minutes:02}:{seconds:02}\"")
}

/// Writes seconds since midnight (UTC) as the time of day in a time zone.
fn write_hour(f: &mut fmt::Formatter<'_>, seconds: u64, zone: Option<&TimeZone>) -> fmt::Result {
    let Some(zone) = zone else { return write!(f, "{seconds}") };
    let local = i64::try_from(seconds).unwrap_or(i64::MAX).saturating_add(zone.offset().into());
    let (hours, minutes, seconds) = clock(local.rem_euclid(SECONDS_PER_DAY));
    write!(f, "\"{hours:02}:{minutes:02}")?;
    if seconds != 0 {
        write!(f, ":{seconds:02}")?;
    }
    f.write_str("\"")
}

/// Splits a second of the day into hours, minutes and seconds.
fn clock(second: i64) -> (i64, i64, i64) {
    (second / 3600, second / 60 % 60, second % 60)
}

/// Returns year, month and day for a number of days since 1970, in the Gregorian calendar.
///
/// Years begin in March here, so that the leap day is their last day, and the month follows from the day of
/// the year alone.
fn date(days: i64) -> (i64, i64, i64) {
    const DAYS_PER_ERA: i64 = 146_097;
    let from_march_0 = days + 719_468;
    let (era, day) = (from_march_0.div_euclid(DAYS_PER_ERA), from_march_0.rem_euclid(DAYS_PER_ERA));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year + i64::from(month <= 2), month, day_of_month)
}

fn write_hex(f: &mut fmt::Formatter<'_>, value: &[u8]) -> fmt::Result {
    f.write_str("0x")?;
    value.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

const SECONDS_PER_DAY: i64 = 24 * 60 * 60;

impl Wording<'_> {
    /// Returns whether a prefix in such a part of a concatenation has to be printed as a range: for numbers
    /// in host byte order nft lists a prefix, but does not read it as one.
    pub(crate) fn avoids_prefix(self, part: Part) -> bool {
        self.is_script() && is_byte_swapped(part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Shown(DataType, u64, ListOptions);

    impl fmt::Display for Shown {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write_number(f, self.0, self.1, Wording::new(&self.2))
        }
    }

    fn shown(of: DataType, number: u64, utc_offset: Option<i32>) -> String {
        let time_zone = utc_offset.map(TimeZone::fixed);
        Shown(of, number, ListOptions { time_zone, ..ListOptions::default() }).to_string()
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        // The output of `date -u -d @SECONDS '+%F %T'` of coreutils 9.1.
        let dates = [
            (0, "1970-01-01 00:00:00"),
            (951_782_399, "2000-02-28 23:59:59"),
            (951_782_400, "2000-02-29 00:00:00"),
            (951_868_800, "2000-03-01 00:00:00"),
            (1_767_225_600, "2026-01-01 00:00:00"),
            (4_107_542_400, "2100-03-01 00:00:00"),
            (18_446_744_073, "2554-07-21 23:34:33"),
        ];
        for (seconds, date) in dates {
            assert_eq!(shown(DataType::DATE, seconds * 1_000_000_000, Some(0)), format!("\"{date}\""));
            assert_eq!(shown(DataType::DATE, seconds * 1_000_000_000, None), seconds.to_string());
        }
    }

    #[test]
    fn hours_go_round_midnight_in_both_directions() {
        let hours =
            [(0, 0, "00:00"), (79_200, 7_200, "00:00"), (3_600, -7_200, "23:00"), (61_205, 0, "17:00:05")];
        for (seconds, offset, hour) in hours {
            assert_eq!(shown(DataType::HOUR, seconds, Some(offset)), format!("\"{hour}\""));
        }
        assert_eq!(shown(DataType::HOUR, 61_205, None), "61205");
        assert_eq!(shown(DataType::DATE, 0, Some(-18_000)), "\"1969-12-31 19:00:00\"");
    }
}
