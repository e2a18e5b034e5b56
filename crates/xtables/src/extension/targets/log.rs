//! Targets that report, count and copy: `linux/netfilter/xt_{LOG,NFLOG,AUDIT,IDLETIMER,TEE,LED}.h`,
//! `linux/netfilter_ipv4/ipt_ULOG.h`.

use super::codec;
use crate::extension::Codec;
use crate::extension::Mismatch;
use crate::extension::options::{Built, Given, name_of, named};
use crate::extension::wire::{Reader, Writer};

pub(super) static CODECS: &[Codec] = &[
    codec("LOG", 0, 32, log, read_log),
    codec("NFLOG", 0, 76, nflog, read_nflog),
    codec("AUDIT", 0, 1, audit, read_audit),
    codec("IDLETIMER", 1, 48, idletimer, read_idletimer).compared_to(40),
    codec("TEE", 1, 40, tee, read_tee).compared_to(32),
    codec("TRACE", 0, 0, trace, read_trace),
    codec("LED", 0, 40, led, read_led).compared_to(32),
    codec("ULOG", 0, 56, ulog, read_ulog).v4(),
];

/// `struct xt_log_info`
fn log(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    out.u8(if given.has("log-level") { given.number("log-level")? } else { LOG_LEVEL });
    out.u8(given.flags(LOG_FLAGS).try_into().unwrap_or_default());
    out.text(given.word("log-prefix").unwrap_or_default(), 30)
}

fn read_log(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let [level, flags]: [u8; 2] = data.array()?;
    let prefix = data.text(30)?;
    if !prefix.is_empty() {
        built.value("log-prefix", prefix);
    }
    if level != LOG_LEVEL {
        built.value("log-level", level);
    }
    built.flags(flags.into(), LOG_FLAGS)
}

/// `struct xt_nflog_info`
fn nflog(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    let size = given.has("nflog-size");
    out.u32(given.number(if size { "nflog-size" } else { "nflog-range" })?);
    out.u16(given.number("nflog-group")?);
    out.u16(given.number("nflog-threshold")?);
    out.u16(size.into());
    out.zeros(2);
    // iptables cuts what does not fit.
    let prefix = sluicegate_iptables_save::encode(given.word("nflog-prefix").unwrap_or_default());
    let prefix = prefix.get(..63).unwrap_or(&prefix);
    out.bytes(prefix);
    out.zeros(64 - prefix.len());
    Ok(())
}

fn read_nflog(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let length = data.u32()?;
    let [group, threshold, flags] = [data.u16()?, data.u16()?, data.u16()?];
    data.skip(2)?;
    let prefix = data.text(64)?;
    if !prefix.is_empty() {
        built.value("nflog-prefix", prefix);
    }
    if group != 0 {
        built.value("nflog-group", group);
    }
    if flags & 1 != 0 {
        built.value("nflog-size", length);
    } else if length != 0 {
        built.value("nflog-range", length);
    }
    if threshold != 0 {
        built.value("nflog-threshold", threshold);
    }
    Some(())
}

/// `struct xt_audit_info`
fn audit(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    out.u8(named(given.need("type")?, AUDIT, "type")?.try_into().unwrap_or_default());
    Ok(())
}

fn read_audit(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    built.value("type", name_of(data.u8()?.into(), AUDIT)?);
    Some(())
}

/// `struct idletimer_tg_info_v1`
fn idletimer(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    out.u32(given.number("timeout")?);
    out.text(given.need("label")?, 28)?;
    out.u8(0);
    out.u8(given.has("alarm").into());
    out.align(8);
    out.zeros(8);
    Ok(())
}

fn read_idletimer(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    built.value("timeout", data.u32()?);
    built.value("label", data.text(28)?);
    data.skip(1)?;
    built.flag("alarm", data.u8()? & 1 != 0);
    Some(())
}

/// `struct xt_tee_tginfo`
fn tee(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    out.inet(given.address("gateway")?.ok_or(Mismatch::expected("--gateway with an address"))?);
    out.text(given.word("oif").unwrap_or_default(), 16)?;
    out.zeros(8);
    Ok(())
}

fn read_tee(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    built.value("gateway", data.inet(built.family)?);
    let device = data.text(16)?;
    if !device.is_empty() {
        built.value("oif", device);
    }
    Some(())
}

fn trace(_: &Given<'_>, _: &mut Writer) -> Result<(), Mismatch> {
    Ok(())
}

fn read_trace(_: &mut Reader<'_>, _: &mut Built<'_>) -> Option<()> {
    Some(())
}

/// `struct xt_led_info`: the kernel keeps a pointer behind it. The name has the prefix with which
/// `/sys/class/leds/*/trigger` lists it.
fn led(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    out.text(&format!("{LED_PREFIX}{}", given.need("led-trigger-id")?), 27)?;
    out.u8(given.has("led-always-blink").into());
    out.u32(if given.word("led-delay") == Some("inf") { u32::MAX } else { given.number("led-delay")? });
    out.zeros(8);
    Ok(())
}

fn read_led(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    built.value("led-trigger-id", data.text(27)?.strip_prefix(LED_PREFIX)?);
    built.flag("led-always-blink", data.u8()? != 0);
    match data.u32()? {
        0 => (),
        // The tool saves `-1`, which it does not take itself.
        u32::MAX => built.value("led-delay", "inf"),
        delay => built.value("led-delay", delay),
    }
    Some(())
}

/// `struct ipt_ulog_info`, with `size_t` of eight bytes. The group is a bit.
fn ulog(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    let or_one = |name| if given.has(name) { given.number(name) } else { Ok(1_u32) };
    let group = 1_u32.checked_shl(or_one("ulog-nlgroup")?.wrapping_sub(1));
    out.u32(group.ok_or(Mismatch::expected("--ulog-nlgroup from 1 to 32"))?);
    out.align(8);
    out.u64(given.number("ulog-cprange")?);
    out.u64(or_one("ulog-qthreshold")?.into());
    out.text(given.word("ulog-prefix").unwrap_or_default(), 32)
}

fn read_ulog(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let group = data.u32()?;
    data.skip(4)?;
    let [range, threshold] = [data.u64()?, data.u64()?];
    let prefix = data.text(32)?;
    if !prefix.is_empty() {
        built.value("ulog-prefix", prefix);
    }
    match group.trailing_zeros() {
        _ if !group.is_power_of_two() => return None,
        0 => (),
        bit => built.value("ulog-nlgroup", bit + 1),
    }
    if range != 0 {
        built.value("ulog-cprange", range);
    }
    if threshold != 1 {
        built.value("ulog-qthreshold", threshold);
    }
    Some(())
}

/// What the tool puts before the name of a trigger.
const LED_PREFIX: &str = "netfilter-";
/// `LOG_WARNING` of syslog(3)
const LOG_LEVEL: u8 = 4;
/// `XT_LOG_*`
const LOG_FLAGS: &[(&str, u32)] = &[
    ("log-tcp-sequence", 0x01),
    ("log-tcp-options", 0x02),
    ("log-ip-options", 0x04),
    ("log-uid", 0x08),
    ("log-macdecode", 0x20),
];
/// `XT_AUDIT_TYPE_*`
const AUDIT: &[(&str, u32)] = &[("accept", 0), ("drop", 1), ("reject", 2)];
