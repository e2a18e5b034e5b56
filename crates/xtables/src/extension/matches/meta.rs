//! Matches of what the kernel knows about a packet beside its bytes: `linux/netfilter/xt_{mark,mac,physdev,
//! owner,pkttype,realm,cpu,devgroup,cgroup,socket,rpfilter}.h`.

use super::codec;
use crate::extension::Codec;
use crate::extension::Mismatch;
use crate::extension::options::{Built, Given, mark_text, name_of, named, number, span, span_text};
use crate::extension::wire::{Reader, Writer};

pub(super) static CODECS: &[Codec] = &[
    codec("mark", 1, 12, mark, read_mark),
    codec("mac", 0, 12, mac, read_mac),
    codec("physdev", 0, 66, physdev, read_physdev),
    codec("owner", 1, 20, owner, read_owner),
    codec("pkttype", 0, 8, pkttype, read_pkttype),
    codec("realm", 0, 12, realm, read_realm).v4(),
    codec("cpu", 0, 8, cpu, read_cpu),
    codec("devgroup", 0, 20, devgroup, read_devgroup),
    codec("cgroup", 2, 528, cgroup, read_cgroup).compared_to(520),
    codec("socket", 3, 1, socket, read_socket),
    codec("rpfilter", 0, 1, rpfilter, read_rpfilter),
];

/// `struct xt_mark_mtinfo1`
fn mark(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    let (mark, mask) = given.mark("mark")?.ok_or(Mismatch::expected("--mark"))?;
    out.u32(mark);
    out.u32(mask);
    out.u8(given.not("mark").into());
    out.align(4);
    Ok(())
}

fn read_mark(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let [mark, mask] = [data.u32()?, data.u32()?];
    built.value_not("mark", data.u8()? != 0, mark_text(mark, mask));
    Some(())
}

/// `struct xt_mac_info`
fn mac(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    let word = given.need("mac-source")?;
    let bytes = word.split(':').map(|part| u8::from_str_radix(part, 16)).collect::<Result<Vec<_>, _>>();
    let bytes = bytes.ok().filter(|bytes| bytes.len() == 6);
    out.bytes(&bytes.ok_or_else(|| Mismatch::expected("a hardware address").found(word))?);
    out.align(4);
    out.u32(given.not("mac-source").into());
    Ok(())
}

fn read_mac(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let bytes: [u8; 6] = data.array()?;
    data.skip(2)?;
    let text: Vec<_> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    built.value_not("mac-source", data.u32()? != 0, text.join(":"));
    Some(())
}

/// `struct xt_physdev_info`
fn physdev(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    for name in ["physdev-in", "physdev-out"] {
        let (text, mask) = crate::entry::interface(given.word(name).unwrap_or_default())?;
        out.bytes(&text);
        out.bytes(&mask);
    }
    out.u8(given.nots(PHYSDEV).try_into().unwrap_or_default());
    out.u8(given.flags(PHYSDEV).try_into().unwrap_or_default());
    Ok(())
}

fn read_physdev(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    // The mask behind a name follows from it.
    let mut device = || data.text(16).zip(data.skip(16)).map(|(name, ())| name);
    let [input, output] = [device()?, device()?];
    let [nots, flags]: [u8; 2] = data.array()?;
    for ((name, bit), device) in PHYSDEV.iter().zip([input, output]) {
        if u32::from(flags) & bit != 0 {
            built.value_not(name, u32::from(nots) & bit != 0, device);
        }
    }
    for (name, bit) in PHYSDEV.iter().skip(2) {
        if u32::from(flags) & bit != 0 {
            built.flag_not(name, u32::from(nots) & bit != 0);
        }
    }
    Some(())
}

/// `struct xt_owner_match_info`
fn owner(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    for name in ["uid-owner", "gid-owner"] {
        let (low, high) = match given.word(name) {
            None => (0, 0),
            Some(word) => span::<u32>(word, '-', name).map_err(|_| {
                Mismatch::expected("numbers, for names are not looked up,").option(name).found(word)
            })?,
        };
        out.u32(low);
        out.u32(high);
    }
    out.u8(given.flags(OWNER).try_into().unwrap_or_default());
    out.u8(given.nots(OWNER).try_into().unwrap_or_default());
    out.align(4);
    Ok(())
}

fn read_owner(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let users = (data.u32()?, data.u32()?);
    let groups = (data.u32()?, data.u32()?);
    let [flags, nots]: [u8; 2] = data.array()?;
    for (name, bit, range) in [("uid-owner", 1, users), ("gid-owner", 2, groups)] {
        if flags & bit != 0 {
            built.value_not(name, nots & bit != 0, span_text(range.0, range.1, '-'));
        }
    }
    for (name, bit) in [("socket-exists", 4), ("suppl-groups", 8)] {
        if flags & bit != 0 {
            built.flag_not(name, nots & bit != 0);
        }
    }
    Some(())
}

/// `struct xt_pkttype_info`
fn pkttype(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    out.u32(named(given.need("pkt-type")?, PACKET_TYPES, "pkt-type")?);
    out.u32(given.not("pkt-type").into());
    Ok(())
}

fn read_pkttype(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let kind = name_of(data.u32()?, PACKET_TYPES)?;
    built.value_not("pkt-type", data.u32()? != 0, kind);
    Some(())
}

/// Reads a number or name with a mask. Of the names in the files of iproute2 only that of 0 is known, which
/// these files have from the start.
fn named_mask(word: &str, zero: &str, name: &str) -> Result<(u32, u32), Mismatch> {
    let (value, mask) = word.split_once('/').map_or((word, None), |(value, mask)| (value, Some(mask)));
    let value = if value == zero { 0 } else { number(value, name)? };
    Ok((value, mask.map_or(Ok(u32::MAX), |mask| number(mask, name))?))
}

fn named_mask_text((value, mask): (u32, u32), zero: &str) -> String {
    if (value, mask) == (0, u32::MAX) { zero.to_owned() } else { mark_text(value, mask) }
}

/// `struct xt_realm_info`
fn realm(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    let (value, mask) = named_mask(given.need("realm")?, REALM_0, "realm")?;
    out.u32(value);
    out.u32(mask);
    out.u8(given.not("realm").into());
    out.align(4);
    Ok(())
}

fn read_realm(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let realm = (data.u32()?, data.u32()?);
    built.value_not("realm", data.u8()? != 0, named_mask_text(realm, REALM_0));
    Some(())
}

/// `struct xt_cpu_info`
fn cpu(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    out.u32(given.number("cpu")?);
    out.u32(given.not("cpu").into());
    Ok(())
}

fn read_cpu(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let cpu = data.u32()?;
    built.value_not("cpu", data.u32()? != 0, cpu);
    Some(())
}

/// `struct xt_devgroup_info`
fn devgroup(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    let names = [("src-group", 1), ("dst-group", 4)];
    out.u32(given.flags(&names) | given.nots(&names) << 1);
    for (name, _) in names {
        let (group, mask) = given.word(name).map_or(Ok((0, 0)), |word| named_mask(word, GROUP_0, name))?;
        out.u32(group);
        out.u32(mask);
    }
    Ok(())
}

fn read_devgroup(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let flags = data.u32()?;
    for (name, bit) in [("src-group", 1), ("dst-group", 4)] {
        let group = (data.u32()?, data.u32()?);
        if flags & bit != 0 {
            built.value_not(name, flags & bit << 1 != 0, named_mask_text(group, GROUP_0));
        }
    }
    Some(())
}

/// `struct xt_cgroup_info_v2`
fn cgroup(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    let (path, class) = (given.has("path"), given.has("cgroup"));
    out.bytes(&[path.into(), class.into(), given.not("path").into(), given.not("cgroup").into()]);
    if path {
        out.text(given.need("path")?, 512)?;
    } else {
        out.u32(given.number("cgroup")?);
        out.zeros(508);
    }
    out.align(8);
    out.zeros(8);
    Ok(())
}

fn read_cgroup(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let [path, class, not_path, not_class]: [u8; 4] = data.array()?;
    if path != 0 {
        built.value_not("path", not_path != 0, data.text(512)?);
    } else if class != 0 {
        built.value_not("cgroup", not_class != 0, data.u32()?);
    }
    Some(())
}

/// `struct xt_socket_mtinfo3`
fn socket(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    out.u8(given.flags(SOCKET).try_into().unwrap_or_default());
    Ok(())
}

fn read_socket(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    built.flags(data.u8()?.into(), SOCKET)
}

/// `struct xt_rpfilter_info`
fn rpfilter(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    out.u8(given.flags(RPFILTER).try_into().unwrap_or_default());
    Ok(())
}

fn read_rpfilter(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    built.flags(data.u8()?.into(), RPFILTER)
}

const PHYSDEV: &[(&str, u32)] = &[
    ("physdev-in", 1),
    ("physdev-out", 2),
    ("physdev-is-bridged", 4),
    ("physdev-is-in", 8),
    ("physdev-is-out", 16),
];
const OWNER: &[(&str, u32)] =
    &[("uid-owner", 1), ("gid-owner", 2), ("socket-exists", 4), ("suppl-groups", 8)];
/// `PACKET_*` of `linux/if_packet.h`
const PACKET_TYPES: &[(&str, u32)] = &[("unicast", 0), ("broadcast", 1), ("multicast", 2), ("otherhost", 3)];
const SOCKET: &[(&str, u32)] = &[("transparent", 1), ("nowildcard", 2), ("restore-skmark", 4)];
const RPFILTER: &[(&str, u32)] = &[("loose", 1), ("validmark", 2), ("accept-local", 4), ("invert", 8)];
/// The name of realm 0 in `/etc/iproute2/rt_realms`.
const REALM_0: &str = "cosmos";
/// The name of group 0 in `/etc/iproute2/group`.
const GROUP_0: &str = "default";
