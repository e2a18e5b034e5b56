//! The match of measured rates: `linux/netfilter/xt_rateest.h`.

use super::codec;
use crate::extension::Codec;
use crate::extension::Mismatch;
use crate::extension::options::{Built, Given, number};
use crate::extension::wire::{Reader, Writer};

pub(super) static CODECS: &[Codec] = &[codec("rateest", 0, 72, rateest, read_rateest).compared_to(52)];

/// `struct xt_rateest_match_info`: the kernel keeps two pointers behind it.
fn rateest(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    out.text(given.need("rateest1")?, 16)?;
    out.text(given.word("rateest2").unwrap_or_default(), 16)?;
    let between_two = given.has("rateest2");
    let any = |names: [&str; 2]| names.iter().any(|name| given.has(name));
    let mut flags = if between_two { REL } else { ABS };
    for (set, bit) in [(given.has("rateest-delta"), DELTA), (any(BYTES), BPS), (any(PACKETS), PPS)] {
        flags |= if set { bit } else { 0 };
    }
    let (name, mode) = MODES
        .iter()
        .find(|(name, _)| given.has(name))
        .ok_or(Mismatch::expected("--rateest-lt, -gt or -eq"))?;
    out.u16(flags | if given.not(name) { INVERT } else { 0 });
    out.u16(*mode);
    for (bytes, packets) in BYTES.into_iter().zip(PACKETS) {
        out.u32(given.word(bytes).map_or(Ok(0), |word| bytes_of(word, bytes))?);
        out.u32(given.number(packets)?);
    }
    out.align(8);
    out.zeros(16);
    Ok(())
}

fn read_rateest(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let [first, second] = [data.text(16)?, data.text(16)?];
    let [flags, mode] = [data.u16()?, data.u16()?];
    let rates = [(data.u32()?, data.u32()?), (data.u32()?, data.u32()?)];
    built.value("rateest1", first);
    let (delta, between_two) = (flags & DELTA != 0, flags & REL != 0);
    built.flag("rateest-delta", delta);
    for (at, (bytes, packets)) in rates.into_iter().enumerate() {
        let decides = delta || at == 1 && !between_two;
        for (names, bit, rate, text) in
            [(BYTES, BPS, bytes, rate_text(bytes)), (PACKETS, PPS, packets, packets.to_string())]
        {
            match flags & bit != 0 {
                true if decides || rate != 0 => built.value(names.get(at)?, text),
                true if at == 1 => built.flag(names.get(at)?, true),
                _ => (),
            }
        }
    }
    let (name, _) = MODES.iter().find(|(_, known)| *known == mode)?;
    built.flag_not(name, flags & INVERT != 0);
    if between_two {
        built.value("rateest2", second);
    }
    Some(())
}

/// Reads a rate in the spelling of iptables-save, which has no fractions.
fn bytes_of(word: &str, name: &str) -> Result<u32, Mismatch> {
    let units = [("Mbit", 1_000_000), ("Kbit", 1000), ("bit", 1)];
    let known = units.iter().find_map(|(unit, factor)| Some((word.strip_suffix(unit)?, *factor)));
    let (digits, factor) = known.ok_or_else(|| Mismatch::expected("a rate").option(name).found(word))?;
    let bits = number::<u64>(digits, name)?.checked_mul(factor);
    bits.and_then(|bits| u32::try_from(bits / 8).ok())
        .ok_or_else(|| Mismatch::expected("a rate below 2^32 bytes a second").option(name).found(word))
}

/// Returns a rate as iptables-save prints it, but in bits what the tool would round.
fn rate_text(bytes: u32) -> String {
    match u64::from(bytes) * 8 {
        bits @ 1_000_000_000.. if bits % 1_000_000 == 0 => format!("{}Mbit", bits / 1_000_000),
        bits @ 1_000_000.. if bits % 1000 == 0 => format!("{}Kbit", bits / 1000),
        bits => format!("{bits}bit"),
    }
}

const BYTES: [&str; 2] = ["rateest-bps1", "rateest-bps2"];
const PACKETS: [&str; 2] = ["rateest-pps1", "rateest-pps2"];
/// `enum xt_rateest_match_mode`
const MODES: [(&str, u16); 3] = [("rateest-eq", 1), ("rateest-lt", 2), ("rateest-gt", 3)];
/// `XT_RATEEST_MATCH_INVERT`
const INVERT: u16 = 1 << 0;
/// `XT_RATEEST_MATCH_ABS`
const ABS: u16 = 1 << 1;
/// `XT_RATEEST_MATCH_REL`
const REL: u16 = 1 << 2;
/// `XT_RATEEST_MATCH_DELTA`
const DELTA: u16 = 1 << 3;
/// `XT_RATEEST_MATCH_BPS`
const BPS: u16 = 1 << 4;
/// `XT_RATEEST_MATCH_PPS`
const PPS: u16 = 1 << 5;
