//! The target that shares an address among nodes: `linux/netfilter_ipv4/ipt_CLUSTERIP.h`. Newer
//! kernels have it no more.

use super::codec;
use crate::extension::Codec;
use crate::extension::Mismatch;
use crate::extension::options::{Built, Given, name_of, named};
use crate::extension::wire::{Reader, Writer};

pub(super) static CODECS: &[Codec] =
    &[codec("CLUSTERIP", 0, 64, clusterip, read_clusterip).v4().compared_to(56)];

/// `struct ipt_clusterip_tgt_info`: the kernel keeps a pointer behind it. The tool sets one local node of
/// the sixteen that there is room for, and of a rule without `--new` nothing.
fn clusterip(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    if !given.has("new") {
        out.zeros(64);
        return Ok(());
    }
    out.u32(FLAG_NEW);
    let word = given.need("clustermac")?;
    let address = word.split(':').map(|part| u8::from_str_radix(part, 16)).collect::<Result<Vec<_>, _>>();
    let address = address.ok().filter(|address| address.len() == 6);
    out.bytes(&address.ok_or_else(|| Mismatch::expected("a hardware address").found(word))?);
    out.u16(given.number("total-nodes")?);
    out.u16(1);
    out.u16(given.number("local-node")?);
    out.zeros(2 * (MAX_NODES - 1));
    out.align(4);
    out.u32(named(given.need("hashmode")?, HASH_MODES, "hashmode")?);
    out.u32(given.number("hash-init")?);
    out.zeros(8);
    Ok(())
}

fn read_clusterip(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    if data.u32()? != FLAG_NEW {
        return Some(());
    }
    built.flag("new", true);
    let address: [u8; 6] = data.array()?;
    let total = data.u16()?;
    data.take(2)?;
    let local = data.u16()?;
    data.take(2 * (MAX_NODES - 1))?;
    data.skip(2)?;
    built.value("hashmode", name_of(data.u32()?, HASH_MODES)?);
    // Upper case, as the tool saves it here, and nowhere else.
    built.value("clustermac", address.map(|byte| format!("{byte:02X}")).join(":"));
    built.value("total-nodes", total);
    built.value("local-node", local);
    built.value("hash-init", data.u32()?);
    Some(())
}

/// `CLUSTERIP_FLAG_NEW`
const FLAG_NEW: u32 = 1;
/// `CLUSTERIP_MAX_NODES`
const MAX_NODES: usize = 16;
/// `enum clusterip_hashmode`
const HASH_MODES: &[(&str, u32)] =
    &[("sourceip", 0), ("sourceip-sourceport", 1), ("sourceip-sourceport-destport", 2)];
