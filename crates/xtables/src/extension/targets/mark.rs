//! Targets that set marks and classes:
//! `linux/netfilter/xt_{mark,connmark,CLASSIFY,CONNSECMARK,SECMARK,HMARK}.h`.

use super::codec;
use crate::extension::Codec;
use crate::extension::Mismatch;
use crate::extension::options::{Built, Given, address, mask_text, number, prefix_mask};
use crate::extension::wire::{Reader, Writer};

pub(super) static CODECS: &[Codec] = &[
    codec("MARK", 2, 8, mark, read_mark),
    codec("CONNMARK", 2, 16, connmark, read_connmark),
    codec("CLASSIFY", 0, 4, classify, read_classify),
    codec("CONNSECMARK", 0, 1, connsecmark, read_connsecmark),
    codec("SECMARK", 1, 264, secmark, read_secmark).compared_to(257),
    codec("HMARK", 0, 60, hmark, read_hmark),
];

/// `struct xt_mark_tginfo2`
fn mark(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    let (mark, mask) = given.mark("set-xmark")?.ok_or(Mismatch::expected("--set-xmark"))?;
    out.u32(mark);
    out.u32(mask);
    Ok(())
}

fn read_mark(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let [mark, mask] = [data.u32()?, data.u32()?];
    built.value("set-xmark", format!("{mark:#x}/{mask:#x}"));
    Some(())
}

/// `struct xt_connmark_tginfo2`
fn connmark(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    let (mark, mask) = given.mark("set-xmark")?.unwrap_or((0, u32::MAX));
    let (ctmask, nfmask) = if given.has("set-xmark") {
        (mask, u32::MAX)
    } else {
        (
            given.mark("ctmask")?.map_or(u32::MAX, |(mask, _)| mask),
            given.mark("nfmask")?.map_or(u32::MAX, |(mask, _)| mask),
        )
    };
    [mark, ctmask, nfmask].into_iter().for_each(|word| out.u32(word));
    // Of both the last one counts.
    let mut shifts = given.written.options.iter().filter(|option| option.name.ends_with("-shift-mark"));
    let right = shifts.next_back().is_some_and(|option| option.name == "right-shift-mark");
    out.u8(right.into());
    out.u8(given.number(if right { "right-shift-mark" } else { "left-shift-mark" })?);
    out.u8(if given.has("save-mark") {
        1
    } else if given.has("restore-mark") {
        2
    } else {
        0
    });
    out.align(4);
    Ok(())
}

fn read_connmark(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let [mark, ctmask, nfmask] = [data.u32()?, data.u32()?, data.u32()?];
    if data.clone().take(3).and_then(<[u8]>::last) == Some(&0) {
        // The kernel looks at the mask of the packet only where it takes or gives a mark.
        data.ignore(4);
    }
    let [right, shift]: [u8; 2] = data.array()?;
    if shift == 0 {
        data.ignore(2);
    }
    let mode = data.u8()?;
    match mode {
        0 => built.value("set-xmark", format!("{mark:#x}/{ctmask:#x}")),
        1 | 2 => {
            built.flag(if mode == 1 { "save-mark" } else { "restore-mark" }, true);
            built.value("nfmask", format!("{nfmask:#x}"));
            built.value("ctmask", format!("{ctmask:#x}"));
        }
        _ => return None,
    }
    if shift != 0 {
        built.value(if right == 0 { "left-shift-mark" } else { "right-shift-mark" }, shift);
    }
    Some(())
}

/// `struct xt_classify_target_info`
fn classify(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    let word = given.need("set-class")?;
    let parse = |part: &str| u16::from_str_radix(part, 16).ok().filter(|_| !part.starts_with('+'));
    let class = word.split_once(':').and_then(|(major, minor)| parse(major).zip(parse(minor)));
    let (major, minor) = class.ok_or_else(|| Mismatch::expected("a class (`major:minor`)").found(word))?;
    out.u32(u32::from(major) << 16 | u32::from(minor));
    Ok(())
}

fn read_classify(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let class = data.u32()?;
    built.value("set-class", format!("{:04x}:{:04x}", class >> 16, class & 0xffff));
    Some(())
}

/// `struct xt_connsecmark_target_info`
fn connsecmark(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    out.u8(if given.has("save") { 1 } else { 2 });
    Ok(())
}

fn read_connsecmark(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let mode = data.u8()?;
    built.flag("save", mode == 1);
    built.flag("restore", mode == 2);
    Some(())
}

/// `struct xt_secmark_target_info_v1`; the kernel fills in the number of the context.
fn secmark(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    out.u8(1);
    out.text(given.need("selctx")?, 256)?;
    out.align(4);
    out.u32(0);
    Ok(())
}

fn read_secmark(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let mode = data.u8()?;
    built.value("selctx", data.text(256)?);
    (mode == 1).then_some(())
}

/// `struct xt_hmark_info`
fn hmark(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    for name in ["hmark-src-prefix", "hmark-dst-prefix"] {
        match given.word(name) {
            None => out.zeros(16),
            Some(word) => {
                let mask = match word.parse() {
                    Ok(length) => prefix_mask(length, given.family),
                    Err(_) => address(word, given.family, name)?,
                };
                out.mask(mask, given.written_word(name).is_some());
            }
        }
    }
    // Ports and the number of an IPsec association share their place.
    for (ports, spi) in [
        (["hmark-sport-mask", "hmark-dport-mask"], "hmark-spi-mask"),
        (["hmark-sport", "hmark-dport"], "hmark-spi"),
    ] {
        match given.word(spi) {
            Some(word) => out.bytes(&number::<u32>(word, spi)?.to_be_bytes()),
            None => ports.iter().try_for_each(|name| given.number(name).map(|port| out.be16(port)))?,
        }
    }
    let flags = given.flags(HMARK)
        | if given.word("hmark-tuple").is_some_and(|word| word.contains("ct")) { CT } else { 0 };
    out.u32(flags);
    out.u16(given.number("hmark-proto-mask")?);
    out.align(4);
    for name in ["hmark-rnd", "hmark-mod", "hmark-offset"] {
        out.u32(given.number(name)?);
    }
    Ok(())
}

fn read_hmark(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let masks = [data.inet(built.family)?, data.inet(built.family)?];
    let ports: [[u8; 4]; 2] = [data.array()?, data.array()?];
    let flags = data.u32()?;
    let protocol = data.u16()?;
    data.skip(2)?;
    let [random, modulus, offset] = [data.u32()?, data.u32()?, data.u32()?];
    let [source_mask, destination_mask] = masks.map(mask_text);
    let halves = |[a, b, c, d]: [u8; 4]| [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])];
    let [[source_port_mask, destination_port_mask], [source_port, destination_port]] = ports.map(halves);
    let [spi_mask, spi] = ports.map(u32::from_be_bytes);
    let values = [
        ("hmark-src-prefix", source_mask),
        ("hmark-dst-prefix", destination_mask),
        ("hmark-sport-mask", format!("{source_port_mask:#06x}")),
        ("hmark-dport-mask", format!("{destination_port_mask:#06x}")),
        ("hmark-spi-mask", format!("{spi_mask:#010x}")),
        ("hmark-sport", format!("{source_port:#06x}")),
        ("hmark-dport", format!("{destination_port:#06x}")),
        ("hmark-spi", format!("{spi:#010x}")),
        ("hmark-proto-mask", format!("{protocol:#04x}")),
        ("hmark-rnd", format!("{random:#010x}")),
        ("hmark-mod", modulus.to_string()),
        ("hmark-offset", offset.to_string()),
    ];
    for (name, value) in values {
        let bit = HMARK.iter().find(|(known, _)| *known == name).map(|(_, bit)| *bit)?;
        if flags & bit != 0 {
            built.value(name, value);
        }
    }
    if flags & CT != 0 {
        built.value("hmark-tuple", "ct");
    }
    Some(())
}

/// `XT_HMARK_*`
const HMARK: &[(&str, u32)] = &[
    ("hmark-src-prefix", 1 << 0),
    ("hmark-dst-prefix", 1 << 1),
    ("hmark-spi", 1 << 2),
    ("hmark-spi-mask", 1 << 3),
    ("hmark-sport", 1 << 4),
    ("hmark-dport", 1 << 5),
    ("hmark-sport-mask", 1 << 6),
    ("hmark-dport-mask", 1 << 7),
    ("hmark-proto-mask", 1 << 8),
    ("hmark-rnd", 1 << 9),
    ("hmark-mod", 1 << 10),
    ("hmark-offset", 1 << 11),
];
const CT: u32 = 1 << 12;
