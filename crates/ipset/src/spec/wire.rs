//! The options of a set in messages: the DATA attribute of CREATE and of listings.

use sluicegate_netlink::DecodeError;
use sluicegate_netlink::attr::{Attributes, Writer};

use super::{CreateOptions, Range};
use crate::wire::{Flags, Put, create, data, read_address};
use crate::{Addresses, Family, SetType};

/// Writes the options, in the order of libipset: by attribute number.
pub(crate) fn write(w: &mut Writer<'_>, options: &CreateOptions) {
    match options.range {
        Some(Range::Addresses(Addresses::Range { from, to })) => {
            w.address(data::IP, from);
            w.address(data::IP_TO, to);
        }
        Some(Range::Addresses(Addresses::Network { address, prefix })) => {
            w.address(data::IP, address);
            w.put_u8(data::CIDR, prefix);
        }
        Some(Range::Addresses(Addresses::Host(address))) => w.address(data::IP, address),
        Some(Range::Ports(from, to)) => {
            w.net16(data::PORT, from);
            w.net16(data::PORT_TO, to);
        }
        None => {}
    }
    let flags = flags(options);
    for (kind, value) in [
        (data::TIMEOUT, options.timeout),
        (data::CADT_FLAGS, Some(flags.bits()).filter(|bits| *bits != 0)),
        (data::MARKMASK, options.markmask),
    ] {
        put(w, kind, value);
    }
    if let Some(bitmask) = options.bitmask {
        w.address(data::BITMASK, bitmask);
    }
    put(w, create::INITVAL, options.initval);
    put(w, create::HASHSIZE, options.hashsize);
    put(w, create::MAXELEM, options.maxelem);
    if let Some(netmask) = options.netmask {
        w.put_u8(create::NETMASK, netmask);
    }
    if let Some(bucketsize) = options.bucketsize {
        w.put_u8(create::BUCKETSIZE, bucketsize);
    }
    put(w, create::SIZE, options.size);
}

/// The options of a set, and the other attributes of its listing.
#[derive(Default)]
pub(crate) struct Described {
    pub(crate) options: CreateOptions,
    pub(crate) elements: Option<u32>,
    pub(crate) references: Option<u32>,
    pub(crate) memory: Option<u32>,
}

/// Reads the DATA attribute of a listing.
pub(crate) fn read(
    kind: SetType,
    family: Family,
    attributes: Attributes<'_>,
) -> Result<Described, DecodeError> {
    let mut described = Described::default();
    let options = &mut described.options;
    let (mut ip, mut ip_to, mut port, mut port_to) = (None, None, None, None);
    for attribute in attributes {
        let attribute = attribute?;
        match attribute.kind {
            data::IP => ip = Some(read_address(&attribute)?),
            data::IP_TO => ip_to = Some(read_address(&attribute)?),
            data::PORT => port = Some(attribute.be16()?),
            data::PORT_TO => port_to = Some(attribute.be16()?),
            data::TIMEOUT => options.timeout = Some(attribute.be32()?),
            data::CADT_FLAGS => set_flags(options, Flags::from_bits_retain(attribute.be32()?)),
            // The only number that the kernel sends in host order (`mtype_head`), although it expects network
            // order.
            data::MARKMASK => options.markmask = Some(attribute.u32()?),
            data::BITMASK => options.bitmask = Some(read_address(&attribute)?),
            create::INITVAL => options.initval = Some(attribute.be32()?),
            create::HASHSIZE => options.hashsize = Some(attribute.be32()?),
            create::MAXELEM => options.maxelem = Some(attribute.be32()?),
            create::NETMASK => options.netmask = Some(attribute.u8()?),
            create::BUCKETSIZE => options.bucketsize = Some(attribute.u8()?),
            create::SIZE => options.size = Some(attribute.be32()?),
            create::ELEMENTS => described.elements = Some(attribute.be32()?),
            create::REFERENCES => described.references = Some(attribute.be32()?),
            create::MEMSIZE => described.memory = Some(attribute.be32()?),
            _ => {}
        }
    }
    options.range = match (ip.zip(ip_to), port.zip(port_to)) {
        (Some((from, to)), _) => Some(Range::Addresses(Addresses::Range { from, to })),
        (None, Some((from, to))) => Some(Range::Ports(from, to)),
        (None, None) => None,
    };
    // The kernel has checked the range of an existing set: one that is not valid means a malformed message.
    match options.check_range(kind, family) {
        Ok(()) => Ok(described),
        Err(_) => Err(DecodeError::Missing { what: "the range of a bitmap" }),
    }
}

fn put(w: &mut Writer<'_>, kind: u16, value: Option<u32>) {
    if let Some(value) = value {
        w.net32(kind, value);
    }
}

fn flags(options: &CreateOptions) -> Flags {
    let mut flags = Flags::empty();
    flags.set(Flags::COUNTERS, options.counters);
    flags.set(Flags::COMMENT, options.comment);
    flags.set(Flags::FORCEADD, options.forceadd);
    flags.set(Flags::SKBINFO, options.skbinfo);
    flags
}

fn set_flags(options: &mut CreateOptions, flags: Flags) {
    options.counters = flags.contains(Flags::COUNTERS);
    options.comment = flags.contains(Flags::COMMENT);
    options.forceadd = flags.contains(Flags::FORCEADD);
    options.skbinfo = flags.contains(Flags::SKBINFO);
}
