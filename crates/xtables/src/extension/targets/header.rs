//! Targets that change headers: `linux/netfilter/xt_{DSCP,TCPMSS,TCPOPTSTRIP,CHECKSUM}.h`,
//! `linux/netfilter_ipv4/ipt_{TTL,ECN}.h`, `linux/netfilter_ipv6/ip6t_HL.h`.

use super::codec;
use crate::extension::Codec;
use crate::extension::Mismatch;
use crate::extension::options::{Built, Given, number};
use crate::extension::wire::{Reader, Writer};

pub(super) static CODECS: &[Codec] = &[
    codec("DSCP", 0, 1, dscp, read_dscp),
    codec("TOS", 1, 2, tos, read_tos),
    codec("TTL", 0, 2, ttl, read_ttl).v4(),
    codec("HL", 0, 2, hl, read_hl).v6(),
    codec("TCPMSS", 0, 2, tcpmss, read_tcpmss),
    codec("TCPOPTSTRIP", 0, 32, tcpoptstrip, read_tcpoptstrip),
    codec("CHECKSUM", 0, 1, checksum, read_checksum),
    codec("ECN", 0, 3, ecn, read_ecn).v4(),
];

/// `struct xt_DSCP_info`
fn dscp(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    out.u8(number(given.need("set-dscp")?, "set-dscp")?);
    Ok(())
}

fn read_dscp(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    built.value("set-dscp", format!("{:#04x}", data.u8()?));
    Some(())
}

/// `struct xt_tos_target_info`
fn tos(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    let word = given.need("set-tos")?;
    let (value, mask) = word.split_once('/').unwrap_or((word, "0xff"));
    out.u8(number(value, "set-tos")?);
    out.u8(number(mask, "set-tos")?);
    Ok(())
}

fn read_tos(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let [value, mask]: [u8; 2] = data.array()?;
    built.value("set-tos", format!("{value:#04x}/{mask:#04x}"));
    Some(())
}

/// Writes what to do and by how much, as `struct ipt_TTL_info` and `struct ip6t_HL_info` both do.
fn step(given: &Given<'_>, out: &mut Writer, names: [&str; 3]) -> Result<(), Mismatch> {
    let found = names.iter().zip(0..).find(|(name, _)| given.has(name));
    let (name, mode) = found.ok_or_else(|| Mismatch::expected(format!("one of --{}", names.join(", --"))))?;
    out.u8(mode);
    out.u8(given.number(name)?);
    Ok(())
}

fn read_step(data: &mut Reader<'_>, built: &mut Built<'_>, names: [&'static str; 3]) -> Option<()> {
    let [mode, value]: [u8; 2] = data.array()?;
    built.value(names.get(usize::from(mode))?, value);
    Some(())
}

fn ttl(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    step(given, out, ["ttl-set", "ttl-inc", "ttl-dec"])
}

fn read_ttl(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    read_step(data, built, ["ttl-set", "ttl-inc", "ttl-dec"])
}

fn hl(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    step(given, out, ["hl-set", "hl-inc", "hl-dec"])
}

fn read_hl(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    read_step(data, built, ["hl-set", "hl-inc", "hl-dec"])
}

/// `struct xt_tcpmss_info`
fn tcpmss(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    out.u16(if given.has("clamp-mss-to-pmtu") { CLAMP } else { given.number("set-mss")? });
    Ok(())
}

fn read_tcpmss(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    match data.u16()? {
        CLAMP => built.flag("clamp-mss-to-pmtu", true),
        size => built.value("set-mss", size),
    }
    Some(())
}

/// `struct xt_tcpoptstrip_target_info`: a bit for each kind of option.
fn tcpoptstrip(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    let mut words = [0_u32; 8];
    for part in given.word("strip-options").unwrap_or_default().split(',').filter(|part| !part.is_empty()) {
        let kind: u8 = number(part, "strip-options")?;
        if let Some(word) = words.get_mut(usize::from(kind / 32)) {
            *word |= 1 << (kind % 32);
        }
    }
    words.iter().for_each(|word| out.u32(*word));
    Ok(())
}

fn read_tcpoptstrip(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let mut kinds = Vec::new();
    for word in 0..8 {
        let bits = data.u32()?;
        kinds.extend((0..32).filter(|bit| bits & 1 << bit != 0).map(|bit| (word * 32 + bit).to_string()));
    }
    if !kinds.is_empty() {
        built.value("strip-options", kinds.join(","));
    }
    Some(())
}

/// `struct xt_CHECKSUM_info`
fn checksum(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    out.u8(given.has("checksum-fill").into());
    Ok(())
}

fn read_checksum(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    built.flag("checksum-fill", data.u8()? & 1 != 0);
    Some(())
}

/// `struct ipt_ECN_info`: the two flags of TCP are bits 0 and 1 of the last byte.
fn ecn(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    let mut operation = if given.has("ecn-tcp-remove") { 0x30 } else { 0 };
    operation |= given.flags(&[("ecn-ip-ect", 0x01), ("ecn-tcp-ece", 0x10), ("ecn-tcp-cwr", 0x20)]);
    out.u8(operation.try_into().unwrap_or_default());
    out.u8(given.number("ecn-ip-ect")?);
    let bit = |name| given.number::<u8>(name).map(|bit| bit & 1);
    out.u8(bit("ecn-tcp-ece")? | bit("ecn-tcp-cwr")? << 1);
    Ok(())
}

fn read_ecn(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let [operation, ect, tcp]: [u8; 3] = data.array()?;
    if operation & 0x30 == 0x30 && tcp == 0 {
        built.flag("ecn-tcp-remove", true);
    } else {
        for (name, flag, bit) in [("ecn-tcp-ece", 0x10, 0), ("ecn-tcp-cwr", 0x20, 1)] {
            if operation & flag != 0 {
                built.value(name, tcp >> bit & 1);
            }
        }
    }
    if operation & 1 != 0 {
        built.value("ecn-ip-ect", ect);
    }
    Some(())
}

/// `XT_TCPMSS_CLAMP_PMTU`
const CLAMP: u16 = 0xffff;
