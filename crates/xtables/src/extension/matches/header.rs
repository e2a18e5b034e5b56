//! Matches of fields of the IP header: `linux/netfilter/xt_{dscp,ecn,length}.h`,
//! `linux/netfilter_ipv4/ipt_ttl.h`, `linux/netfilter_ipv6/ip6t_hl.h`.

use super::codec;
use crate::extension::Codec;
use crate::extension::Mismatch;
use crate::extension::options::{Built, Given, number, span_text};
use crate::extension::wire::{Reader, Writer};

pub(super) static CODECS: &[Codec] = &[
    codec("dscp", 0, 2, dscp, read_dscp),
    codec("tos", 1, 3, tos, read_tos),
    codec("ttl", 0, 2, ttl, read_ttl).v4(),
    codec("hl", 0, 2, hl, read_hl).v6(),
    codec("ecn", 0, 4, ecn, read_ecn),
    codec("length", 0, 6, length, read_length),
];

/// `struct xt_dscp_info`
fn dscp(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    given.need("dscp")?;
    out.u8(given.number("dscp")?);
    out.u8(given.not("dscp").into());
    Ok(())
}

fn read_dscp(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let [value, not]: [u8; 2] = data.array()?;
    built.value_not("dscp", not != 0, format!("{value:#04x}"));
    Some(())
}

/// `struct xt_tos_match_info`
fn tos(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    let word = given.need("tos")?;
    let (value, mask) = word.split_once('/').unwrap_or((word, "0xff"));
    out.u8(number(mask, "tos")?);
    out.u8(number(value, "tos")?);
    out.u8(given.not("tos").into());
    Ok(())
}

fn read_tos(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let [mask, value, not]: [u8; 3] = data.array()?;
    built.value_not("tos", not != 0, format!("{value:#04x}/{mask:#04x}"));
    Some(())
}

/// Writes how to compare and with what, as `struct ipt_ttl_info` and `struct ip6t_hl_info` both do.
fn limit(given: &Given<'_>, out: &mut Writer, names: [&str; 3]) -> Result<(), Mismatch> {
    let [equal, less, more] = names;
    let found = [(equal, 0), (less, 2), (more, 3)].into_iter().find(|(name, _)| given.has(name));
    let (name, mode) =
        found.ok_or_else(|| Mismatch::expected(format!("one of --{equal}, --{less}, --{more}")))?;
    out.u8(if given.not(name) { 1 } else { mode });
    out.u8(given.number(name)?);
    Ok(())
}

fn read_limit(data: &mut Reader<'_>, built: &mut Built<'_>, names: [&'static str; 3]) -> Option<()> {
    let [equal, less, more] = names;
    let [mode, value]: [u8; 2] = data.array()?;
    let (name, not) = match mode {
        0 => (equal, false),
        1 => (equal, true),
        2 => (less, false),
        3 => (more, false),
        _ => return None,
    };
    built.value_not(name, not, value);
    Some(())
}

fn ttl(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    limit(given, out, ["ttl-eq", "ttl-lt", "ttl-gt"])
}

fn read_ttl(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    read_limit(data, built, ["ttl-eq", "ttl-lt", "ttl-gt"])
}

fn hl(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    limit(given, out, ["hl-eq", "hl-lt", "hl-gt"])
}

fn read_hl(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    read_limit(data, built, ["hl-eq", "hl-lt", "hl-gt"])
}

/// `struct xt_ecn_info`
fn ecn(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    out.u8(given.flags(ECN).try_into().unwrap_or_default());
    out.u8(given.nots(ECN).try_into().unwrap_or_default());
    out.u8(given.number("ecn-ip-ect")?);
    out.zeros(1);
    Ok(())
}

fn read_ecn(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let [operation, nots, ect]: [u8; 3] = data.array()?;
    for (name, bit) in [("ecn-tcp-cwr", 0x20), ("ecn-tcp-ece", 0x10)] {
        if operation & bit != 0 {
            built.flag_not(name, nots & bit != 0);
        }
    }
    if operation & 1 != 0 {
        built.value_not("ecn-ip-ect", nots & 1 != 0, ect);
    }
    Some(())
}

/// `struct xt_length_info`
fn length(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    let (low, high) = given.span("length", (0, u16::MAX))?;
    out.u16(low);
    out.u16(high);
    out.u8(given.not("length").into());
    out.align(2);
    Ok(())
}

fn read_length(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let [low, high] = [data.u16()?, data.u16()?];
    built.value_not("length", data.u8()? != 0, span_text(low, high, ':'));
    Some(())
}

/// `XT_ECN_OP_MATCH_*`
const ECN: &[(&str, u32)] = &[("ecn-ip-ect", 0x01), ("ecn-tcp-ece", 0x10), ("ecn-tcp-cwr", 0x20)];
