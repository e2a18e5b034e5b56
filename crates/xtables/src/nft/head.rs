//! The head of a rule in parts, as its expressions name them one by one: `struct ipt_ip` and `struct
//! ip6t_ip6`, which [`Rule`](crate::Rule) has as bytes.

use sluicegate_iptables_save::Family;

use crate::extension::wire::{Reader, Writer};

/// Addresses, interfaces and protocol. Addresses and masks have 4 or 16 bytes, as the family has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) source: Network,
    pub(super) destination: Network,
    pub(super) input: Interface,
    pub(super) output: Interface,
    /// 0 for all.
    pub(super) protocol: u8,
    pub(super) not_protocol: bool,
    /// `-f`, of IPv4 alone.
    pub(super) fragment: bool,
    pub(super) not_fragment: bool,
    pub(super) goto: bool,
}

/// An address with a mask.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Network {
    pub(super) address: [u8; 16],
    pub(super) mask: [u8; 16],
    pub(super) not: bool,
}

/// The name of an interface with its mask.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Interface {
    pub(super) name: [u8; 16],
    pub(super) mask: [u8; 16],
    pub(super) not: bool,
}

impl Head {
    /// Reads the bytes of a rule; `None` if they are too short.
    pub(super) fn read(bytes: &[u8], family: Family) -> Option<Self> {
        let data = &mut Reader::new(bytes);
        let mut address = || {
            let mut address = [0; 16];
            address.get_mut(..address_size(family))?.copy_from_slice(data.take(address_size(family))?);
            Some(address)
        };
        let [source, destination, source_mask, destination_mask] =
            [address()?, address()?, address()?, address()?];
        let [input, output, input_mask, output_mask] =
            [data.array()?, data.array()?, data.array()?, data.array()?];
        let protocol = data.u16()?;
        if family == Family::Ipv6 {
            data.skip(1)?;
        }
        let [flags, nots]: [u8; 2] = data.array()?;
        let not = |bit| nots & bit != 0;
        let goto = flags & goto_bit(family) != 0;
        Some(Self {
            source: Network { address: source, mask: source_mask, not: not(INV_SOURCE) },
            destination: Network { address: destination, mask: destination_mask, not: not(INV_DESTINATION) },
            input: Interface { name: input, mask: input_mask, not: not(INV_INPUT) },
            output: Interface { name: output, mask: output_mask, not: not(INV_OUTPUT) },
            protocol: u8::try_from(protocol).ok()?,
            not_protocol: not(INV_PROTOCOL),
            fragment: family == Family::Ipv4 && flags & IPT_FRAGMENT != 0,
            not_fragment: not(INV_FRAGMENT),
            goto,
        })
    }

    /// Writes the bytes of a rule.
    pub(super) fn write(&self, family: Family) -> Vec<u8> {
        let mut out = Writer::default();
        let (source, destination) = (&self.source, &self.destination);
        for address in [&source.address, &destination.address, &source.mask, &destination.mask] {
            out.bytes(address.get(..address_size(family)).unwrap_or_default());
        }
        for name in [&self.input.name, &self.output.name, &self.input.mask, &self.output.mask] {
            out.bytes(name);
        }
        out.u16(self.protocol.into());
        let set = |set: bool, bit: u8| if set { bit } else { 0 };
        let flags = set(self.goto, goto_bit(family));
        match family {
            Family::Ipv4 => out.u8(flags | set(self.fragment, IPT_FRAGMENT)),
            Family::Ipv6 => {
                out.u8(0);
                out.u8(flags | set(self.protocol != 0, IP6T_PROTOCOL));
            }
        }
        out.u8(set(self.input.not, INV_INPUT)
            | set(self.output.not, INV_OUTPUT)
            | set(source.not, INV_SOURCE)
            | set(destination.not, INV_DESTINATION)
            | set(self.not_fragment, INV_FRAGMENT)
            | set(self.not_protocol, INV_PROTOCOL));
        out.align(4);
        out.finish()
    }
}

impl Interface {
    /// Returns the name up to its end.
    pub(super) fn text(&self) -> &[u8] {
        let end = self.name.iter().position(|byte| *byte == 0).unwrap_or(self.name.len());
        self.name.get(..end).unwrap_or_default()
    }
}

/// Returns how many bytes an address has.
pub(super) const fn address_size(family: Family) -> usize {
    match family {
        Family::Ipv4 => 4,
        Family::Ipv6 => 16,
    }
}

const fn goto_bit(family: Family) -> u8 {
    match family {
        Family::Ipv4 => IPT_GOTO,
        Family::Ipv6 => IP6T_GOTO,
    }
}

/// `IPT_F_FRAG`
const IPT_FRAGMENT: u8 = 0x01;
/// `IPT_F_GOTO`
const IPT_GOTO: u8 = 0x02;
/// `IP6T_F_PROTO`
const IP6T_PROTOCOL: u8 = 0x01;
/// `IP6T_F_GOTO`
const IP6T_GOTO: u8 = 0x04;
/// `IPT_INV_VIA_IN`
const INV_INPUT: u8 = 0x01;
/// `IPT_INV_VIA_OUT`
const INV_OUTPUT: u8 = 0x02;
/// `IPT_INV_SRCIP`
const INV_SOURCE: u8 = 0x08;
/// `IPT_INV_DSTIP`
const INV_DESTINATION: u8 = 0x10;
/// `IPT_INV_FRAG`
const INV_FRAGMENT: u8 = 0x20;
/// `IPT_INV_PROTO`
const INV_PROTOCOL: u8 = 0x40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_survives_reading_and_writing() {
        for family in [Family::Ipv4, Family::Ipv6] {
            let mut head = Head { protocol: 6, goto: true, not_protocol: true, ..Head::default() };
            head.source = Network { address: [7; 16], mask: [u8::MAX; 16], not: true };
            if family == Family::Ipv4 {
                head.source.address[4..].fill(0);
                head.source.mask[4..].fill(0);
                head.fragment = true;
            }
            head.output.name[..4].copy_from_slice(b"eth0");
            let bytes = head.write(family);
            assert_eq!(bytes.len(), crate::entry::head_size(family));
            assert_eq!(Head::read(&bytes, family), Some(head));
        }
    }
}
