//! `IPVS_SVC_ATTR_STATS`, `STATS64` and their like of destinations: counters and rates.

use sluicegate_netlink::attr::Attributes;

use crate::error::Problem;
use crate::stats::{Rate, Stats};

/// `IPVS_STATS_ATTR_*` of `linux/ip_vs.h`. In `STATS` bytes are `u64` and all else `u32`, in `STATS64` all is
/// `u64`.
mod attr {
    pub(super) const CONNS: u16 = 1;
    pub(super) const INPKTS: u16 = 2;
    pub(super) const OUTPKTS: u16 = 3;
    pub(super) const INBYTES: u16 = 4;
    pub(super) const OUTBYTES: u16 = 5;
    pub(super) const CPS: u16 = 6;
    pub(super) const INPPS: u16 = 7;
    pub(super) const OUTPPS: u16 = 8;
    pub(super) const INBPS: u16 = 9;
    pub(super) const OUTBPS: u16 = 10;
    // 11 is PAD, which comes and goes with the alignment of the 64-bit numbers.
}

/// Takes the two nests in any order; the 64-bit one wins.
#[derive(Default)]
pub(crate) struct Decoder {
    narrow: Option<Stats>,
    wide: Option<Stats>,
}

impl Decoder {
    pub(crate) fn narrow(&mut self, attributes: Attributes<'_>) -> Result<(), Problem> {
        self.narrow = Some(decode(attributes)?);
        Ok(())
    }

    pub(crate) fn wide(&mut self, attributes: Attributes<'_>) -> Result<(), Problem> {
        self.wide = Some(decode(attributes)?);
        Ok(())
    }

    pub(crate) fn finish(&self) -> Stats {
        self.wide.or(self.narrow).unwrap_or_default()
    }
}

fn decode(attributes: Attributes<'_>) -> Result<Stats, Problem> {
    let mut stats = Stats::default();
    for attribute in attributes {
        let attribute = attribute?;
        let Some(counter) = counter(&mut stats, attribute.kind) else { continue };
        *counter = if attribute.payload.len() == 4 { attribute.u32()?.into() } else { attribute.u64()? };
    }
    Ok(stats)
}

fn counter(stats: &mut Stats, kind: u16) -> Option<&mut u64> {
    let Stats { connections, packets_in, packets_out, bytes_in, bytes_out, rate } = stats;
    Some(match kind {
        attr::CONNS => connections,
        attr::INPKTS => packets_in,
        attr::OUTPKTS => packets_out,
        attr::INBYTES => bytes_in,
        attr::OUTBYTES => bytes_out,
        _ => return rate_of(rate, kind),
    })
}

fn rate_of(rate: &mut Rate, kind: u16) -> Option<&mut u64> {
    Some(match kind {
        attr::CPS => &mut rate.connections,
        attr::INPPS => &mut rate.packets_in,
        attr::OUTPPS => &mut rate.packets_out,
        attr::INBPS => &mut rate.bytes_in,
        attr::OUTBPS => &mut rate.bytes_out,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluicegate_netlink::attr::{self as attributes, Writer};

    fn written(write: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
        attributes::encode(write).unwrap()
    }

    #[test]
    fn pads_are_skipped_and_both_widths_read() {
        let bytes = written(|w| {
            w.put_u32(attr::CONNS, 3);
            w.put_flag(11);
            w.put_u64(attr::INBYTES, 7);
            w.put_flag(11);
            w.put_u64(attr::OUTPPS, 9);
        });
        let stats = decode(Attributes::new(&bytes)).unwrap();
        assert_eq!((stats.connections, stats.bytes_in, stats.rate.packets_out), (3, 7, 9));
    }

    #[test]
    fn wide_counters_win_over_narrow_ones() {
        let nest = |value: u32| written(|w| w.put_u32(attr::CONNS, value));
        let mut decoder = Decoder::default();
        decoder.wide(Attributes::new(&nest(2))).unwrap();
        decoder.narrow(Attributes::new(&nest(1))).unwrap();
        assert_eq!(decoder.finish().connections, 2);
    }
}
