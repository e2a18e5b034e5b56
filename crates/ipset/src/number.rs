//! Numbers as `ipset` writes them on its command line: decimal, hexadecimal with `0x`, octal with `0`.

use crate::Reason;

/// Reads a number that must lie within `min..=max`.
pub(crate) fn parse(text: &str, min: u64, max: u64) -> Result<u64, Reason> {
    let out_of_range = || Reason::OutOfRange { text: text.to_owned(), min, max };
    let (digits, radix) = match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => (text.get(2..).unwrap_or_default(), 16),
        [b'0', _, ..] => (text.get(1..).unwrap_or_default(), 8),
        _ => (text, 10),
    };
    // A sign is not a digit, yet `-1` is reported as out of range rather than as not a number.
    let (digits, negative) = match digits.strip_prefix('-') {
        Some(rest) if radix == 10 => (rest, true),
        _ => (digits, false),
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return Err(Reason::Number(text.to_owned()));
    }
    match u64::from_str_radix(digits, radix) {
        Ok(number) if (min..=max).contains(&number) && (!negative || number == 0) => Ok(number),
        _ => Err(out_of_range()),
    }
}

pub(crate) fn parse_u8(text: &str) -> Result<u8, Reason> {
    parse(text, 0, u64::from(u8::MAX)).map(|n| u8::try_from(n).unwrap_or(u8::MAX))
}

pub(crate) fn parse_u16(text: &str) -> Result<u16, Reason> {
    parse(text, 0, u64::from(u16::MAX)).map(|n| u16::try_from(n).unwrap_or(u16::MAX))
}

pub(crate) fn parse_u32(text: &str) -> Result<u32, Reason> {
    parse(text, 0, u64::from(u32::MAX)).map(|n| u32::try_from(n).unwrap_or(u32::MAX))
}

/// Reads `0x` and at most eight hexadecimal digits.
pub(crate) fn parse_hex(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("0x")?;
    if digits.starts_with('+') { None } else { u32::from_str_radix(digits, 16).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_notations_are_read() {
        assert_eq!(parse("80", 0, 100), Ok(80));
        assert_eq!(parse("0x50", 0, 100), Ok(80));
        assert_eq!(parse("0120", 0, 100), Ok(80));
        assert_eq!(parse("0", 0, 100), Ok(0));
    }

    #[test]
    fn errors_say_what_is_wrong_with_the_number() {
        for (text, error) in [
            ("101", "expected a number from 0 to 100, found '101'"),
            ("-1", "expected a number from 0 to 100, found '-1'"),
            ("99999999999999999999999", "expected a number from 0 to 100, found '99999999999999999999999'"),
            ("", "expected a number, found ''"),
            ("5x", "expected a number, found '5x'"),
            ("0x", "expected a number, found '0x'"),
            ("08", "expected a number, found '08'"),
            ("+5", "expected a number, found '+5'"),
        ] {
            assert_eq!(parse(text, 0, 100).unwrap_err().to_string(), error);
        }
    }
}
