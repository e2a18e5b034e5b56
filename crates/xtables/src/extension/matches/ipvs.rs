//! The match of connections of IPVS: `linux/netfilter/xt_ipvs.h`.

use super::codec;
use crate::extension::Codec;
use crate::extension::Mismatch;
use crate::extension::options::{Built, Given, masked_text, name_of, named, number};
use crate::extension::wire::{Reader, Writer};

pub(super) static CODECS: &[Codec] = &[codec("ipvs", 0, 40, ipvs, read_ipvs)];

/// `struct xt_ipvs_mtinfo`
fn ipvs(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    match given.masked("vaddr")? {
        Some((address, mask)) => {
            out.inet(address);
            out.mask(mask, given.has_mask("vaddr"));
        }
        None => out.zeros(32),
    }
    let word = |name: &str| given.word(name);
    out.be16(word("vport").map_or(Ok(0), |port| number(port, "vport"))?);
    out.u8(word("vproto").map_or(Ok(0), |protocol| number(protocol, "vproto"))?);
    let method = word("vmethod").map_or(Ok(0), |method| named(method, METHODS, "vmethod"))?;
    out.u8(method.try_into().unwrap_or_default());
    out.be16(word("vportctl").map_or(Ok(0), |port| number(port, "vportctl"))?);
    let is_reply = word("vdir") == Some("REPLY");
    let inverted = given.nots(OPTIONS) | if is_reply { DIRECTION } else { 0 };
    out.u8(inverted.try_into().unwrap_or_default());
    let options = given.flags(OPTIONS);
    // All other options imply that it is of IPVS at all.
    let options = if options == 0 { 0 } else { options | PROPERTY };
    out.u8(options.try_into().unwrap_or_default());
    Ok(())
}

fn read_ipvs(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let address = data.inet(built.family)?;
    let mask = data.inet(built.family)?;
    let (port, protocol, method) = (data.be16()?, data.u8()?, data.u8()?);
    let control = data.be16()?;
    let (inverted, options) = (u32::from(data.u8()?), u32::from(data.u8()?));
    let not = |bit| inverted & bit != 0;
    for (name, bit) in OPTIONS.iter().copied().filter(|(_, bit)| options & bit != 0) {
        match name {
            "ipvs" if options == PROPERTY => built.flag_not(name, not(bit)),
            "ipvs" => {}
            "vproto" => built.value_not(name, not(bit), protocol),
            "vaddr" => built.value_not(name, not(bit), masked_text(address, mask)),
            "vport" => built.value_not(name, not(bit), port),
            "vdir" => built.value(name, if not(bit) { "REPLY" } else { "ORIGINAL" }),
            "vmethod" => built.value_not(name, not(bit), name_of(method.into(), METHODS)?),
            _ => built.value_not(name, not(bit), control),
        }
    }
    Some(())
}

/// `XT_IPVS_*`, in the order in which they are printed.
const OPTIONS: &[(&str, u32)] = &[
    ("ipvs", PROPERTY),
    ("vproto", 1 << 1),
    ("vaddr", 1 << 2),
    ("vport", 1 << 3),
    ("vdir", DIRECTION),
    ("vmethod", 1 << 5),
    ("vportctl", 1 << 6),
];
/// `XT_IPVS_IPVS_PROPERTY`
const PROPERTY: u32 = 1;
/// `XT_IPVS_DIR`
const DIRECTION: u32 = 1 << 4;
/// `IP_VS_CONN_F_*` of `linux/ip_vs.h`
const METHODS: &[(&str, u32)] = &[("MASQ", 0), ("IPIP", 2), ("GATE", 3)];
