//! Matches of IPv6 extension headers: `linux/netfilter_ipv6/ip6t_{frag,opts,rt,mh,ipv6header,srh}.h`.

use sluicegate_iptables_save::Family;
use sluicegate_iptables_save::vocabulary::IPV6_HEADERS;

use super::codec;
use super::transport::spis;
use crate::extension::Codec;
use crate::extension::Mismatch;
use crate::extension::options::{Built, Given, address, mask_text, names_of, number, prefix_mask, span_text};
use crate::extension::wire::{Reader, Writer};

pub(super) static CODECS: &[Codec] = &[
    codec("frag", 0, 16, frag, read_frag).v6(),
    codec("hbh", 0, 40, hbh, read_hbh).v6(),
    codec("dst", 0, 40, dst, read_dst).v6(),
    codec("rt", 0, 280, rt, read_rt).v6(),
    codec("mh", 0, 3, mh, read_mh).v6(),
    codec("eui64", 0, 4, eui64, read_eui64).v6(),
    codec("ipv6header", 0, 3, ipv6header, read_ipv6header).v6(),
    codec("srh", 1, 108, srh, read_srh).v6(),
];

/// `struct ip6t_frag`
fn frag(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    let ((low, high), not) = spis(given, "fragid")?;
    out.u32(low);
    out.u32(high);
    out.u32(given.number("fraglen")?);
    out.u8(u8::from(is_written(given, "fragid")) | u8::try_from(given.flags(FRAG)).unwrap_or_default());
    out.u8(u8::from(not) | u8::try_from(given.nots(FRAG)).unwrap_or_default());
    out.align(4);
    Ok(())
}

fn read_frag(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let [low, high, length] = [data.u32()?, data.u32()?, data.u32()?];
    let flags = data.u8()?;
    // What is said of all numbers says nothing, and the tool does not print it.
    let is_all = (low, high) == (0, u32::MAX) && flags == 1;
    if is_all {
        data.ignore(1);
    }
    let nots = data.u8()?;
    if nots & 1 != 0 || (!is_all && flags & 1 != 0) {
        built.value_not("fragid", nots & 1 != 0, span_text(low, high, ':'));
    }
    if flags & 2 != 0 {
        built.value_not("fraglen", nots & 2 != 0, length);
    }
    FRAG.iter().skip(2).for_each(|(name, bit)| built.flag(name, u32::from(flags) & bit != 0));
    Some(())
}

/// Returns whether the rule has an option that its normal form may leave out.
fn is_written(given: &Given<'_>, name: &str) -> bool {
    given.written.option(name).is_some()
}

/// `struct ip6t_opts`, of hop-by-hop and of destination options.
fn options(given: &Given<'_>, out: &mut Writer, length: &str, list: &str) -> Result<(), Mismatch> {
    out.u32(given.number(length)?);
    out.u8(given.flags(&[(length, 1), (list, 2)]).try_into().unwrap_or_default());
    out.u8(given.not(length).into());
    let parts: Vec<_> = given.word(list).map_or_else(Vec::new, |word| word.split(',').collect());
    let count = u8::try_from(parts.len()).ok().filter(|count| usize::from(*count) <= MOST_OPTIONS);
    let count =
        count.ok_or_else(|| Mismatch::expected(format!("at most {MOST_OPTIONS} options")).option(list))?;
    for part in &parts {
        // The type, and its length or 0xff for any.
        let (kind, size) = part.split_once(':').unwrap_or((part, "0xff"));
        out.u16(u16::from(number::<u8>(kind, list)?) << 8 | u16::from(number::<u8>(size, list)?));
    }
    out.zeros((MOST_OPTIONS - parts.len()) * 2);
    out.u8(count);
    out.align(4);
    Ok(())
}

fn read_options(
    data: &mut Reader<'_>,
    built: &mut Built<'_>,
    [length, list]: [&'static str; 2],
) -> Option<()> {
    let size = data.u32()?;
    let [flags, nots]: [u8; 2] = data.array()?;
    let options = (0..MOST_OPTIONS).map(|_| data.u16()).collect::<Option<Vec<_>>>()?;
    let count = data.u8()?;
    if flags & 1 != 0 {
        built.value_not(length, nots & 1 != 0, size);
    }
    if flags & 2 != 0 {
        let options = options.iter().take(count.into()).map(|option| match option.to_be_bytes() {
            [kind, u8::MAX] => kind.to_string(),
            [kind, size] => format!("{kind}:{size}"),
        });
        built.value(list, options.collect::<Vec<_>>().join(","));
    }
    Some(())
}

fn hbh(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    options(given, out, "hbh-len", "hbh-opts")
}

fn read_hbh(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    read_options(data, built, ["hbh-len", "hbh-opts"])
}

fn dst(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    options(given, out, "dst-len", "dst-opts")
}

fn read_dst(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    read_options(data, built, ["dst-len", "dst-opts"])
}

/// `struct ip6t_rt`
fn rt(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    out.u32(given.number("rt-type")?);
    let ((low, high), not) = spis(given, "rt-segsleft")?;
    out.u32(low);
    out.u32(high);
    out.u32(given.number("rt-len")?);
    let mut flags = given.flags(RT) | if is_written(given, "rt-segsleft") { 2 } else { 0 };
    flags |= if given.has("rt-0-not-strict") { 0x20 } else { 0 };
    out.u8(flags.try_into().unwrap_or_default());
    out.u8(if not { 2 } else { 0 } | u8::try_from(given.nots(RT)).unwrap_or_default());
    out.align(4);
    let addresses: Vec<_> = match given.word("rt-0-addrs") {
        None => Vec::new(),
        Some(list) => {
            list.split(',').map(|part| address(part, Family::Ipv6, "rt-0-addrs")).collect::<Result<_, _>>()?
        }
    };
    if addresses.len() > MOST_OPTIONS {
        return Err(Mismatch::expected(format!("at most {MOST_OPTIONS} addresses")).option("rt-0-addrs"));
    }
    addresses.iter().for_each(|address| out.inet(*address));
    out.zeros((MOST_OPTIONS - addresses.len()) * 16);
    out.u8(u8::try_from(addresses.len()).unwrap_or_default());
    out.align(4);
    Ok(())
}

fn read_rt(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let [kind, low, high, length] = [data.u32()?, data.u32()?, data.u32()?, data.u32()?];
    let flags = data.u8()?;
    let is_all = (low, high) == (0, u32::MAX) && flags == 2;
    if is_all {
        data.ignore(1);
    }
    let nots = data.u8()?;
    data.skip(2)?;
    let addresses = (0..MOST_OPTIONS).map(|_| data.inet(Family::Ipv6)).collect::<Option<Vec<_>>>()?;
    let count = data.u8()?;
    if flags & 1 != 0 {
        built.value_not("rt-type", nots & 1 != 0, kind);
    }
    if nots & 2 != 0 || (!is_all && flags & 2 != 0) {
        built.value_not("rt-segsleft", nots & 2 != 0, span_text(low, high, ':'));
    }
    if flags & 4 != 0 {
        built.value_not("rt-len", nots & 4 != 0, length);
    }
    built.flag("rt-0-res", flags & 8 != 0);
    if count > 0 {
        let list: Vec<_> = addresses.iter().take(count.into()).map(ToString::to_string).collect();
        built.value("rt-0-addrs", list.join(","));
    }
    built.flag("rt-0-not-strict", flags & 0x20 != 0);
    Some(())
}

/// `struct ip6t_mh`
fn mh(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    let (low, high) = given.span("mh-type", (0, u8::MAX))?;
    let written = given.written.option("mh-type").is_some_and(|option| option.negated);
    out.bytes(&[low, high, (given.not("mh-type") || written).into()]);
    Ok(())
}

fn read_mh(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let [low, high, nots]: [u8; 3] = data.array()?;
    if (low, high) != (0, u8::MAX) || nots & 1 != 0 {
        built.value_not("mh-type", nots & 1 != 0, span_text(low, high, ':'));
    }
    Some(())
}

/// The kernel keeps an int that nobody reads.
fn eui64(_: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    out.u32(0);
    Ok(())
}

fn read_eui64(_: &mut Reader<'_>, _: &mut Built<'_>) -> Option<()> {
    Some(())
}

/// `struct ip6t_ipv6header_info`
fn ipv6header(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    let headers = u8::try_from(given.bits("header", IPV6_HEADERS)?).unwrap_or_default();
    let all = if given.not("header") { u8::MAX } else { 0 };
    let soft = if given.has("soft") { u8::MAX } else { 0 };
    out.bytes(&[headers, all, soft]);
    Ok(())
}

fn read_ipv6header(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let [headers, nots, soft]: [u8; 3] = data.array()?;
    built.value_not("header", nots != 0, names_of(headers.into(), IPV6_HEADERS)?);
    built.flag("soft", soft != 0);
    Some(())
}

/// `struct ip6t_srh1`
fn srh(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    for names in SRH_BYTES {
        let found = names.iter().find(|name| given.has(name));
        out.u8(found.map_or(Ok(0), |name| given.number(name))?);
    }
    out.u16(given.number("srh-tag")?);
    out.align(4);
    let addresses = SRH_ADDRESSES.iter().map(|name| given.masked(name)).collect::<Result<Vec<_>, _>>()?;
    // Without an option every address is right, and its mask full.
    let none = (std::net::IpAddr::from([0_u8; 16]), prefix_mask(0, Family::Ipv6));
    addresses.iter().for_each(|pair| out.inet(pair.unwrap_or(none).0));
    addresses.iter().for_each(|pair| out.inet(pair.unwrap_or(none).1));
    out.u16(given.flags(SRH).try_into().unwrap_or_default());
    out.u16(given.nots(SRH).try_into().unwrap_or_default());
    out.align(4);
    Ok(())
}

fn read_srh(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let bytes: [u8; 4] = data.array()?;
    let tag = data.u16()?;
    data.skip(2)?;
    let mut three = || Some([data.inet(Family::Ipv6)?, data.inet(Family::Ipv6)?, data.inet(Family::Ipv6)?]);
    let (addresses, masks) = (three()?, three()?);
    let [flags, nots] = [u32::from(data.u16()?), u32::from(data.u16()?)];
    for (name, bit) in SRH {
        if flags & bit == 0 {
            continue;
        }
        let byte = SRH_BYTES.iter().zip(bytes).find(|(names, _)| names.contains(name)).map(|(_, byte)| byte);
        let mut pairs = SRH_ADDRESSES.iter().zip(addresses.iter().zip(masks));
        let value = match (byte, pairs.find(|(known, _)| *known == name)) {
            (Some(byte), _) => byte.to_string(),
            (None, Some((_, (address, mask)))) => format!("{address}/{}", mask_text(mask)),
            (None, None) => tag.to_string(),
        };
        built.value_not(name, nots & bit != 0, value);
    }
    Some(())
}

/// `IP6T_FRAG_*`
const FRAG: &[(&str, u32)] = &[
    ("fragid", 0x01),
    ("fraglen", 0x02),
    ("fragres", 0x04),
    ("fragfirst", 0x08),
    ("fragmore", 0x10),
    ("fraglast", 0x20),
];
/// `IP6T_OPTS_OPTSNR`, `IP6T_RT_HOPS`
const MOST_OPTIONS: usize = 16;
/// `IP6T_RT_*`; a list of addresses is strict unless it says otherwise.
const RT: &[(&str, u32)] =
    &[("rt-type", 0x01), ("rt-segsleft", 0x02), ("rt-len", 0x04), ("rt-0-res", 0x08), ("rt-0-addrs", 0x10)];
/// Options that share a byte: only one of them can be given.
const SRH_BYTES: &[&[&str]] = &[
    &["srh-next-hdr"],
    &["srh-hdr-len-eq", "srh-hdr-len-gt", "srh-hdr-len-lt"],
    &["srh-segs-left-eq", "srh-segs-left-gt", "srh-segs-left-lt"],
    &["srh-last-entry-eq", "srh-last-entry-gt", "srh-last-entry-lt"],
];
const SRH_ADDRESSES: &[&str] = &["srh-psid", "srh-nsid", "srh-lsid"];
/// `IP6T_SRH_*`
const SRH: &[(&str, u32)] = &[
    ("srh-next-hdr", 0x0001),
    ("srh-hdr-len-eq", 0x0002),
    ("srh-hdr-len-gt", 0x0004),
    ("srh-hdr-len-lt", 0x0008),
    ("srh-segs-left-eq", 0x0010),
    ("srh-segs-left-gt", 0x0020),
    ("srh-segs-left-lt", 0x0040),
    ("srh-last-entry-eq", 0x0080),
    ("srh-last-entry-gt", 0x0100),
    ("srh-last-entry-lt", 0x0200),
    ("srh-tag", 0x0400),
    ("srh-psid", 0x0800),
    ("srh-nsid", 0x1000),
    ("srh-lsid", 0x2000),
];
