//! Numbers, ranges of numbers, marks, probabilities.

use super::Read;

/// Returns a whole number as strtoul(3) with base 0 takes it: decimal, `0x` hexadecimal, `0` octal.
pub(crate) fn integer(word: &str) -> Option<u64> {
    let (digits, radix) = match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        Some(hex) => (hex, 16),
        None if word.len() > 1 && word.starts_with('0') => (word, 8),
        None => (word, 10),
    };
    // `from_str_radix` would take a sign.
    digits
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric())
        .then(|| u64::from_str_radix(digits, radix).ok())?
}

/// Returns a whole number that strtoul(3) reads with base 10: a `0` in front does not make it octal.
pub(crate) fn decimal(word: &str) -> Option<u64> {
    (!word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())).then(|| word.parse().ok())?
}

pub(super) fn int(word: &str, from: u64, to: u64) -> Read {
    match integer(word) {
        Some(number) if (from..=to).contains(&number) => Ok(number.to_string()),
        _ => Err(format!("expected a number from {from} to {to}").into()),
    }
}

pub(super) fn hex(word: &str, digits: usize, to: u64) -> Read {
    match integer(word) {
        Some(number) if number <= to => Ok(format!("{number:#0width$x}", width = digits + 2)),
        _ => Err(format!("expected a number from 0 to {to}").into()),
    }
}

pub(super) fn open_range(word: &str, to: u64) -> Read {
    let normal =
        if word.contains(':') { rising_range(word, to)? } else { rising_range(&format!("{word}:"), to)? };
    Ok(match normal.split_once(':') {
        Some((low, high)) if integer(high) == Some(to) => low.to_owned(),
        Some(_) => normal,
        None => format!("{normal}:{normal}"),
    })
}

pub(super) fn rising_range(word: &str, to: u64) -> Read {
    let normal = range(word, to)?;
    match normal.split_once(':').map(|(low, high)| (low.parse::<u64>(), high.parse::<u64>())) {
        Some((Ok(low), Ok(high))) if low > high => {
            Err(format!("expected a range that ends at or above its start, {low}").into())
        }
        _ => Ok(normal),
    }
}

/// Reads a range, which may end below its start: iptables takes it, and nothing is in it.
pub(super) fn range(word: &str, to: u64) -> Read {
    let expected = || format!("expected a number or a range (`a:b`) from 0 to {to}");
    let part = |part: &str, open| match part {
        "" => Some(open),
        part => integer(part).filter(|number| *number <= to),
    };
    let (low, high) = word.split_once(':').unwrap_or((word, word));
    match (part(low, 0), part(high, to)) {
        _ if word.is_empty() => Err(expected().into()),
        (Some(low), Some(high)) if low == high => Ok(low.to_string()),
        (Some(low), Some(high)) => Ok(format!("{low}:{high}")),
        _ => Err(expected().into()),
    }
}

/// `value[/mask]`
pub(crate) fn mark(word: &str) -> Result<(u32, u32), std::borrow::Cow<'static, str>> {
    let part = |part: &str| integer(part).and_then(|number| u32::try_from(number).ok());
    let (value, mask) = match word.split_once('/') {
        Some((value, mask)) => (part(value), part(mask)),
        None => (part(word), Some(u32::MAX)),
    };
    value
        .zip(mask)
        .ok_or_else(|| "expected a mark of 32 bits, with a mask if wanted, as in `0x4000/0x4000`".into())
}

pub(super) fn probability(word: &str) -> Read {
    let plain =
        word.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'-' | b'+'));
    match word.parse::<f64>() {
        // The kernel stores 31 bits of it; iptables-save prints eleven places.
        Ok(number) if plain && (0.0..=1.0).contains(&number) => {
            let fixed = (number * 2_147_483_648.0).round();
            Ok(format!("{:.11}", fixed / 2_147_483_648.0))
        }
        _ => Err("expected a probability from 0 to 1".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read_as_strtoul_does() {
        assert_eq!(integer("0x10"), Some(16));
        assert_eq!(integer("010"), Some(8));
        assert_eq!(integer("0"), Some(0));
        assert_eq!([integer(""), integer("0x"), integer("08"), integer("-1"), integer("+1")], [None; 5]);
    }

    #[test]
    fn ranges_may_be_open_and_collapse() {
        assert_eq!(range(":5", 9).unwrap(), "0:5");
        assert_eq!(range("5:", 9).unwrap(), "5:9");
        assert_eq!(range("5:5", 9).unwrap(), "5");
        assert_eq!(range("6:5", 9).unwrap(), "6:5");
        assert!(rising_range("6:5", 9).is_err() && range("10", 9).is_err() && range("", 9).is_err());
    }

    #[test]
    fn marks_have_an_optional_mask() {
        assert_eq!(mark("0x1/2").unwrap(), (1, 2));
        assert_eq!(mark("3").unwrap(), (3, u32::MAX));
        assert!(mark("1/").is_err() && mark("0x100000000").is_err());
    }
}
