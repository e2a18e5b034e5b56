//! Lowers translations of addresses and ports: `dnat`, `snat`, `masquerade`, `redirect`.

use crate::check::LowerError;
use crate::compile::constant::{Bounds, Place};
use crate::compile::lower::Lower;
use crate::datatype::DataType;
use crate::expr::{self, NatFlags, NatType, Register};
use crate::family::Family;
use crate::key::Part;
use crate::tree::{Expression, Nat, NatTarget, PortNat};

impl Lower<'_> {
    pub(super) fn nat(&mut self, of: NatType, nat: &Nat) -> Result<(), LowerError> {
        let family = match (nat.family, self.family()) {
            (Some(family), _) => family,
            (None, own @ (Family::IP | Family::IP6)) => own,
            // Without an address the translation applies to both families.
            (None, own) if matches!(nat.to, NatTarget::Port(_)) => own,
            // What was matched before says it, which is judged.
            (None, own) => self.judge.context().network.unwrap_or(own),
        };
        let address = address_part(family);
        let mut out = expr::Nat {
            of,
            family: family.0.into(),
            addr_min: None,
            addr_max: None,
            proto_min: None,
            proto_max: None,
            flags: None,
        };
        let mut flags = nat.flags;
        match &nat.to {
            NatTarget::Address(to) => {
                (out.addr_min, out.addr_max) = self.bounds(to, address, 0)?;
            }
            NatTarget::Port(port) => {
                (out.proto_min, out.proto_max) = self.ports(Some(port), 0)?;
                // nft sends this flag whenever a port is given.
                flags |= NatFlags::PROTO_SPECIFIED;
            }
            NatTarget::AddressPort(to, port) => {
                // nft matches what either operand implies before it loads the first; behind it, the match would
                // overwrite the register of the address.
                self.imply(to)?;
                self.imply(port)?;
                (out.addr_min, out.addr_max) = self.bounds(to, address, 0)?;
                // An address takes a 16-byte register in either family, so the port goes to the next one.
                let word = out.addr_max.or(out.addr_min).and_then(Register::first_word).map_or(0, |w| w + 4);
                (out.proto_min, out.proto_max) = self.ports(Some(port), word)?;
                flags |= NatFlags::PROTO_SPECIFIED;
            }
            NatTarget::Concat(to) | NatTarget::ConcatInterval(to) => {
                self.load_as(to, &[address, DataType::INET_SERVICE.into()], 0)?;
                // The values of a concatenated map are in consecutive 32-bit registers: address, then port.
                let words = u32::try_from(address.bytes() / 4).unwrap_or(0);
                out.addr_min = Some(Register::word(0));
                out.proto_min = Some(Register::word(words));
                // A range of a concatenation is stored as its lower bound, followed by its upper bound.
                if matches!(nat.to, NatTarget::ConcatInterval(_)) {
                    out.addr_max = Some(Register::word(words + 1));
                    out.proto_max = Some(Register::word(2 * words + 1));
                }
            }
            NatTarget::Interval(to) => {
                self.load_as(to, &[address], 0)?;
                let words = u32::try_from(address.bytes() / 4).unwrap_or(0);
                out.addr_min = Some(Register::word(0));
                out.addr_max = Some(Register::word(words));
            }
        }
        // nft leaves the attribute out if no flag is set.
        out.flags = (!flags.is_empty()).then_some(flags);
        self.push(out);
        Ok(())
    }

    pub(super) fn ports(
        &mut self,
        port: Option<&Expression>,
        word: u32,
    ) -> Result<(Option<Register>, Option<Register>), LowerError> {
        let Some(port) = port else { return Ok((None, None)) };
        self.bounds(port, DataType::INET_SERVICE.into(), word)
    }

    /// Loads a value, or the two bounds of a range into a register each.
    fn bounds(
        &mut self,
        of: &Expression,
        part: Part,
        word: u32,
    ) -> Result<(Option<Register>, Option<Register>), LowerError> {
        // The kernel takes the lower bound as the only value if there is no upper one.
        if !matches!(of, Expression::Range(_) | Expression::Prefix(_)) {
            self.load_for(of, part, word)?;
            return Ok((Some(Register::word(word)), None));
        }
        let bounds = Bounds::of(of, Place::of(part))?;
        self.immediate(bounds.low, word);
        // An IPv6 address fills a 16-byte register, so the upper bound goes to the next one.
        self.immediate(bounds.high, word + 4);
        Ok((Some(Register::word(word)), Some(Register::word(word + 4))))
    }
}

pub(super) fn port_flags(nat: &PortNat) -> Option<NatFlags> {
    let mut flags = nat.flags;
    // nft sends this flag whenever a port is given.
    flags.set(NatFlags::PROTO_SPECIFIED, nat.port.is_some());
    (!flags.is_empty()).then_some(flags)
}

pub(super) fn address_part(family: Family) -> Part {
    if family == Family::IP6 { DataType::IPV6_ADDR.into() } else { DataType::IPV4_ADDR.into() }
}
