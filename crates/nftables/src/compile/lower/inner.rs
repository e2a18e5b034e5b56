//! Lowers header fields of an encapsulated packet, and the matches that they imply outside and inside of the
//! tunnel. The bytecode is that of nft 1.1 for the same text.

use crate::check::LowerError;
use crate::compile::lower::Lower;
use crate::compile::lower::imply::{IcmpTypes, icmp_type_of};
use crate::compile::lower::load::Field;
use crate::expr::{self, CmpOp, Expr, InnerFlags, InnerType, MetaKey, PayloadBase, Register};
use crate::tree::{Expression, Inner, Payload};

/// The protocols of the encapsulated packet that earlier matches of a rule have determined.
#[derive(Debug, Default)]
pub(super) struct Inside {
    tunnel: Option<InnerType>,
    ether_type: Option<u16>,
    transport: Option<u8>,
    pub(super) icmp: IcmpTypes,
}

/// Returns the size of a tunnel's header, and the headers that follow it; `None` for tunnels that nft does
/// not support.
pub(crate) fn shape(tunnel: InnerType) -> Option<(u32, InnerFlags)> {
    let layers = InnerFlags::NH | InnerFlags::TH;
    Some(match tunnel {
        // The kernel finds the inner packet by this size; with `LL` it expects an Ethernet header first.
        InnerType::VXLAN | InnerType::GENEVE => (8, InnerFlags::HDRSIZE | InnerFlags::LL | layers),
        InnerType::GRE => (4, layers),
        InnerType::GRETAP => (4, InnerFlags::LL | layers),
        _ => return None,
    })
}

impl Lower<'_> {
    /// Adds the match of the protocol that carries a tunnel. nft implies GRE, but for UDP tunnels requires
    /// that the rule matches UDP.
    pub(super) fn imply_carrier(&mut self, tunnel: &str, expression: &Expression) -> Result<(), LowerError> {
        let unsupported = |what| LowerError::Unsupported { what, expression: expression.to_string() };
        match (tunnel, self.transport) {
            ("gre" | "gretap", None | Some(GRE)) => self.imply_transport(GRE, expression)?,
            ("gre" | "gretap", Some(_)) => {
                return Err(unsupported("expected GRE, but the rule matches another transport protocol"));
            }
            (_, Some(UDP)) => {}
            _ => return Err(unsupported("expected a match on UDP before it, such as `udp dport 4789`")),
        }
        Ok(())
    }

    pub(super) fn imply_inside(&mut self, inner: Inner) -> Result<(), LowerError> {
        let expression = Expression::Inner(inner);
        let unsupported = |what| LowerError::Unsupported { what, expression: expression.to_string() };
        let (_, flags) =
            shape(inner.tunnel).ok_or_else(|| unsupported("nft cannot match inside this type of tunnel"))?;
        self.imply_carrier(&inner.tunnel.to_string(), &expression)?;
        // Matches inside another tunnel determine nothing about this one.
        if self.inside.tunnel.replace(inner.tunnel) != Some(inner.tunnel) {
            self.inside = Inside { tunnel: Some(inner.tunnel), ..Inside::default() };
        }
        let link = flags.contains(InnerFlags::LL);
        match inner.field.protocol() {
            // GRE carries a network packet directly.
            "ether" | "vlan" | "arp" if !link => {
                return Err(unsupported("this tunnel carries no Ethernet header"));
            }
            "ether" | "th" => {}
            // For IP itself nft asks the kernel (`meta protocol`); for protocols above it, nft matches the
            // EtherType of the inner Ethernet header if there is one.
            "ip" => self.imply_ether_type(inner.tunnel, ETH_P_IP, false),
            "ip6" => self.imply_ether_type(inner.tunnel, ETH_P_IPV6, false),
            "arp" => self.imply_ether_type(inner.tunnel, ETH_P_ARP, link),
            "vlan" => self.imply_ether_type(inner.tunnel, ETH_P_8021Q, link),
            "icmp" | "igmp" => self.imply_ether_type(inner.tunnel, ETH_P_IP, link),
            "icmpv6" => self.imply_ether_type(inner.tunnel, ETH_P_IPV6, link),
            _ if inner.field.transport().is_some() => {}
            _ => return Err(unsupported("this header cannot be matched inside a tunnel")),
        }
        // As outside, the transport protocol is matched once.
        if let Some(number) = inner.field.transport().filter(|number| self.inside.transport != Some(*number))
        {
            self.inside.transport = Some(number);
            self.match_inner_meta(inner.tunnel, MetaKey::L4PROTO, vec![number]);
        }
        self.imply_inner_icmp_type(inner)
    }

    /// Adds the match of the network protocol inside: of the inner Ethernet header, or of `meta protocol` of
    /// the inner packet.
    fn imply_ether_type(&mut self, tunnel: InnerType, of: u16, header: bool) {
        if self.inside.ether_type == Some(of) {
            return;
        }
        self.inside.ether_type = Some(of);
        let bytes = of.to_be_bytes().to_vec();
        if header {
            self.load_inner_field(tunnel, Payload::ETHER_TYPE, 0);
            self.compare(0, CmpOp::EQ, bytes);
            // Later loads rely on this comparison: it may absorb others, but must not be absorbed.
            self.note_comparison(true);
        } else {
            self.match_inner_meta(tunnel, MetaKey::PROTOCOL, bytes);
        }
    }

    /// Adds a match of the ICMP types that have the field, unless all have it.
    fn imply_inner_icmp_type(&mut self, inner: Inner) -> Result<(), LowerError> {
        if self.inside.icmp.narrow(inner.field, &inner.into())? {
            let of = icmp_type_of(inner.field);
            self.load_inner_field(inner.tunnel, of, 0);
            self.compare_icmp_type(of, inner.field.icmp_types())?;
            self.note_comparison(false);
        }
        Ok(())
    }

    /// Records the protocol that a match on the inner packet determines.
    pub(super) fn note_inside(&mut self, inner: Inner, number: u64) {
        let byte = u8::try_from(number).ok();
        match inner.field {
            Payload::ETHER_TYPE => self.inside.ether_type = u16::try_from(number).ok(),
            Payload::IP_PROTOCOL | Payload::IP6_NEXTHDR => self.inside.transport = byte,
            _ => {}
        }
    }

    fn match_inner_meta(&mut self, tunnel: InnerType, key: MetaKey, bytes: Vec<u8>) {
        self.push_inner(tunnel, expr::Meta { dreg: Some(Register::word(0)), key, sreg: None });
        self.compare(0, CmpOp::EQ, bytes);
    }

    pub(super) fn load_inner_field(&mut self, tunnel: InnerType, field: Payload, word: u32) -> Field {
        self.load_inner(tunnel, field.base(), field.offset(), field.bits(), word)
    }

    /// Loads bits of a header inside a tunnel, or of the tunnel's own header.
    pub(super) fn load_inner(
        &mut self,
        tunnel: InnerType,
        base: PayloadBase,
        offset: u16,
        bits: u16,
        word: u32,
    ) -> Field {
        let field = Field::of(offset, bits);
        self.push_inner(tunnel, field.load(base, offset, word));
        field
    }

    fn push_inner(&mut self, tunnel: InnerType, expr: impl Into<Expr>) {
        let (header_size, flags) = shape(tunnel).unwrap_or_default();
        self.push(expr::Inner { number: 0, of: tunnel, flags, header_size, expr: Box::new(expr.into()) });
    }
}

/// `IPPROTO_GRE` and `IPPROTO_UDP` of `linux/in.h`.
const GRE: u64 = 47;
const UDP: u64 = 17;
/// `ETH_P_*` of `linux/if_ether.h`.
const ETH_P_IP: u16 = 0x0800;
const ETH_P_ARP: u16 = 0x0806;
const ETH_P_8021Q: u16 = 0x8100;
const ETH_P_IPV6: u16 = 0x86dd;

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::compile::lower::lower_alone;
    use crate::tree::{Match, Statement};
    use crate::{EtherAddr, Family, Name, Port, TableId};

    /// Returns the expressions of a rule in short: `vxlan meta protocol`, `th 2 2`, `= 0800`.
    fn lowered(family: Family, rule: &[Statement]) -> Result<Vec<String>, LowerError> {
        let table = TableId::new(family, Name::from_kernel("t"));
        let lowered = lower_alone(&table, rule)?;
        Ok(lowered.exprs.iter().map(short).collect())
    }

    fn short(expr: &Expr) -> String {
        let hex = |data: &expr::Data| {
            data.value().unwrap_or_default().iter().map(|b| format!("{b:02x}")).collect::<String>()
        };
        match expr {
            Expr::Inner(i) => format!("{} {:x} {} {}", i.of, i.flags.bits(), i.header_size, short(&i.expr)),
            Expr::Meta(m) => format!("meta {}", m.key),
            Expr::Payload(p) => format!("{} {} {}", p.base, p.offset, p.len),
            Expr::Cmp(c) => format!("= {}", hex(&c.data)),
            Expr::Bitwise(b) => format!("& {}", hex(b.mask.as_ref().unwrap())),
            other => other.name().to_owned(),
        }
    }

    fn inside(tunnel: InnerType, field: Payload, value: impl Into<Expression>) -> Statement {
        Match::new(Inner { tunnel, field }, value).into()
    }

    /// The bytecode is that of nft's tests `inet/vxlan.t`, `inet/gre.t` and `inet/gretap.t`.
    #[test]
    fn what_is_inside_is_matched_as_nft_matches_it() {
        let udp = || Statement::from(Match::new(Payload::UDP_DPORT, Port(4789)));
        let outer = ["meta l4proto", "= 11", "th 2 2", "= 12b5"];
        let vxlan = |field, value: Expression| vec![udp(), inside(InnerType::VXLAN, field, value)];
        let address = Expression::from(Ipv4Addr::new(10, 141, 11, 2));
        let net = Expression::prefix(Ipv4Addr::new(10, 141, 11, 0), 24);
        let ether = EtherAddr([0x62, 0x87, 0x4d, 0xd6, 0x19, 5]).into();
        let protocol = ["vxlan f 8 meta protocol", "= 0800"];
        let cases: [(Vec<Statement>, Vec<&str>); 8] = [
            (
                vxlan(Payload::IP_SADDR, address.clone()),
                [&protocol[..], &["vxlan f 8 nh 12 4", "= 0a8d0b02"]].concat(),
            ),
            (vxlan(Payload::IP_SADDR, net), [&protocol[..], &["vxlan f 8 nh 12 3", "= 0a8d0b"]].concat()),
            (
                vxlan(Payload::UDP_SPORT, Port(8888).into()),
                vec!["vxlan f 8 meta l4proto", "= 11", "vxlan f 8 th 0 2", "= 22b8"],
            ),
            (
                vxlan(Payload::ICMP_TYPE, 0_u32.into()),
                vec![
                    "vxlan f 8 ll 12 2",
                    "= 0800",
                    "vxlan f 8 meta l4proto",
                    "= 01",
                    "vxlan f 8 th 0 1",
                    "= 00",
                ],
            ),
            (vxlan(Payload::ETHER_SADDR, ether), vec!["vxlan f 8 ll 6 6", "= 62874dd61905"]),
            (
                vxlan(Payload::VLAN_ID, 10_u32.into()),
                vec!["vxlan f 8 ll 12 2", "= 8100", "vxlan f 8 ll 14 2", "& 0fff", "= 000a"],
            ),
            (
                vxlan(Payload::IP_DSCP, 2_u32.into()),
                [&protocol[..], &["vxlan f 8 nh 1 1", "& fc", "= 08"]].concat(),
            ),
            (
                vec![udp(), Match::new(Payload::VXLAN_VNI, 10_u32).into()],
                vec!["vxlan f 8 tunnel 4 3", "= 00000a"],
            ),
        ];
        for (rule, expected) in cases {
            let text: Vec<_> = rule.iter().map(ToString::to_string).collect();
            assert_eq!(lowered(Family::NETDEV, &rule).unwrap(), [&outer[..], &expected].concat(), "{text:?}");
        }
        let ports = [(Payload::UDP_SPORT, 1), (Payload::UDP_DPORT, 2)];
        let ports = ports.map(|(field, port)| inside(InnerType::VXLAN, field, Port(port)));
        let both = ["vxlan f 8 meta l4proto", "= 11", "vxlan f 8 th 0 4", "= 00010002"];
        let rule: Vec<_> = std::iter::once(udp()).chain(ports).collect();
        assert_eq!(
            lowered(Family::NETDEV, &rule).unwrap(),
            [&outer[..], &both].concat(),
            "neighbours at once"
        );
        let gre =
            |tunnel| lowered(Family::IP, &[inside(tunnel, Payload::ICMP_TYPE, 0_u32)]).unwrap().join("; ");
        let rest = |name: &str, first: &str| {
            format!(
                "meta l4proto; = 2f; {name} {first}; = 0800; {name} meta l4proto; = 01; {name} th 0 1; = 00"
            )
        };
        assert_eq!(gre(InnerType::GRE), rest("gre c 4", "meta protocol"));
        assert_eq!(gre(InnerType::GRETAP), rest("gretap e 4", "ll 12 2"));
    }

    #[test]
    fn what_nft_refuses_is_refused() {
        let refused = |rule: Vec<Statement>| lowered(Family::INET, &rule).unwrap_err().to_string();
        let port = |tunnel| inside(tunnel, Payload::TCP_DPORT, Port(80));
        assert_eq!(
            refused(vec![port(InnerType::VXLAN)]),
            "expected a match on UDP before it, such as `udp dport 4789`: `vxlan tcp dport`"
        );
        assert!(refused(vec![Match::new(Payload::GENEVE_VNI, 1_u32).into()]).contains("match on UDP"));
        assert_eq!(
            refused(vec![Match::new(Payload::TCP_DPORT, Port(1)).into(), port(InnerType::GRE)]),
            "expected GRE, but the rule matches another transport protocol: `gre tcp dport`"
        );
        let tag = inside(InnerType::GRE, Payload::VLAN_ID, 1_u32);
        assert_eq!(refused(vec![tag]), "this tunnel carries no Ethernet header: `gre vlan id`");
        assert_eq!(
            refused(vec![port(InnerType(9))]),
            "nft cannot match inside this type of tunnel: `0x9 tcp dport`"
        );
        let types = vec![
            inside(InnerType::GRE, Payload::ICMP_TYPE, 8_u32),
            inside(InnerType::GRE, Payload::ICMP_MTU, 1400_u32),
        ];
        assert!(refused(types).contains("an ICMP message type without this field"));
    }
}
