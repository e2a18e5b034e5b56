//! The target that measures rates: `linux/netfilter/xt_RATEEST.h`.

use super::codec;
use crate::extension::Codec;
use crate::extension::Mismatch;
use crate::extension::options::{Built, Given};
use crate::extension::wire::{Reader, Writer};

pub(super) static CODECS: &[Codec] = &[codec("RATEEST", 0, 32, rateest, read_rateest).compared_to(24)];

/// `struct xt_rateest_target_info`: the interval as a power of two of seconds, and the power of two of
/// intervals that is averaged over. The kernel keeps a pointer behind them.
fn rateest(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    out.text(given.need("rateest-name")?, 16)?;
    let interval = milliseconds(given.need("rateest-interval")?, "rateest-interval")?;
    let average = milliseconds(given.need("rateest-ewmalog")?, "rateest-ewmalog")?;
    let power = (-2..=3_i8).zip(INTERVALS).find(|(_, known)| (interval - known).abs() < 0.5);
    let (power, _) = power.ok_or(Mismatch::expected("--rateest-interval 250ms, 500ms, 1s, 2s, 4s or 8s"))?;
    // A weight of 1/2^n for each interval averages over a little less than 2^n of them.
    let weight = |log: &u8| -(1.0 - 0.5_f64.powi(i32::from(*log))).ln();
    let beyond = (1..32).find(|log| interval / weight(log) > average);
    let log = beyond
        .filter(|log| *log > 1)
        .ok_or(Mismatch::expected("a --rateest-ewmalog that fits the interval"))?
        - 1;
    out.u8(power.cast_unsigned());
    out.u8(log);
    out.align(8);
    out.zeros(8);
    Ok(())
}

fn read_rateest(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let name = data.text(16)?;
    let (power, log) = (data.u8()?.cast_signed(), data.u8()?);
    let (_, interval) = (-2..=3_i8).zip(INTERVALS).find(|(known, _)| *known == power)?;
    let average = interval * 2.0_f64.powi(i32::from((log < 32).then_some(log)?));
    built.value("rateest-name", name);
    built.value("rateest-interval", time_text(interval));
    built.value("rateest-ewmalog", time_text(average));
    Some(())
}

/// Reads a time that was saved or normalised.
fn milliseconds(word: &str, name: &str) -> Result<f64, Mismatch> {
    let (digits, factor) = match word.strip_suffix("ms") {
        Some(digits) => (digits, 1.0),
        None => (word.strip_suffix('s').unwrap_or(word), 1000.0),
    };
    let number = digits.parse::<f64>().map_err(|_| Mismatch::expected("a time").option(name).found(word))?;
    Ok(number * factor)
}

fn time_text(milliseconds: f64) -> String {
    if milliseconds < 1000.0 {
        format!("{milliseconds:.1}ms")
    } else {
        format!("{:.1}s", milliseconds / 1000.0)
    }
}

/// The intervals of the kernel's estimator, in milliseconds.
const INTERVALS: [f64; 6] = [250.0, 500.0, 1000.0, 2000.0, 4000.0, 8000.0];
