//! Tunnel objects (`enum nft_tunnel_key_attributes`): the outer headers of packets that are sent through a
//! tunnel device in external mode (`ip link add ... external`).

use std::fmt::Write;
use std::net::{Ipv4Addr, Ipv6Addr};

use sluicegate_netlink::attr::{Attribute, Attributes, Writer};

use crate::wire::attributes::attributes;
use crate::wire::flags::flags;

/// A `tunnel` object, in a table of family netdev. A rule that refers to it (`tunnel name "x"`) assigns these
/// outer headers to the packet, and a tunnel device in external mode sends it with them.
///
/// nft supports such objects since 1.1.6; nft 1.0.6 cannot list a table that has one. nft has no syntax for
/// [`flags`](Self::flags) and the flow label: these are sent and read, but not printed.
///
/// ```
/// use sluicegate_nftables::{
///     Family, ObjectConfig, StatefulObject, TableId, Transaction, Tunnel, TunnelOptions,
/// };
///
/// let tunnel = Tunnel::v4(10, [192, 168, 2, 10].into(), [192, 168, 2, 11].into())
///     .dport(4789)
///     .options(TunnelOptions::Vxlan { gbp: 200 });
/// let config = ObjectConfig::from(tunnel);
/// let table = TableId::new(Family::NETDEV, "t".parse()?);
/// let mut tx = Transaction::new();
/// tx.add(StatefulObject::new(table.object(config.kind(), "y".parse()?), config));
/// assert_eq!(
///     tx.to_string(),
///     "add tunnel netdev t y { id 10 ; ip saddr 192.168.2.10 ; ip daddr 192.168.2.11 ; dport 4789 ; \
///      ttl 255 ; vxlan { gbp 200 ; } ; }\n"
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tunnel {
    /// The id of the tunnel: VXLAN's VNI, GRE's key ...
    pub id: u32,
    /// The source and destination address.
    pub endpoints: TunnelEndpoints,
    /// The source port; with 0 the device chooses it.
    pub sport: u16,
    /// The destination port; with 0 the device chooses it.
    pub dport: u16,
    /// Its flags.
    pub flags: TunnelFlags,
    /// Type of service.
    pub tos: u8,
    /// The time to live.
    pub ttl: u8,
    /// The options of one type of tunnel.
    pub options: Option<TunnelOptions>,
}

/// The source and destination address of a tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TunnelEndpoints {
    /// `ip saddr`, `ip daddr`
    V4 {
        /// The source address; with `0.0.0.0` the route determines it.
        source: Ipv4Addr,
        /// The destination address.
        destination: Ipv4Addr,
    },
    /// `ip6 saddr`, `ip6 daddr`
    V6 {
        /// The source address; with `::` the route determines it.
        source: Ipv6Addr,
        /// The destination address.
        destination: Ipv6Addr,
        /// The flow label.
        flow_label: u32,
    },
}

/// The options of one type of tunnel (`enum nft_tunnel_opts_attributes`).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TunnelOptions {
    /// `vxlan`
    Vxlan {
        /// Group-based policy.
        gbp: u32,
    },
    /// `erspan`, version 1
    Erspan1 {
        /// The index of the mirrored port, 20 bits.
        index: u32,
    },
    /// `erspan`, version 2
    Erspan2 {
        /// The hardware id of the mirroring engine, 6 bits.
        hardware: u8,
        /// Whether outgoing packets are mirrored instead of incoming ones.
        egress: bool,
    },
    /// `geneve`: options, 256 bytes at most. Before a fix in Linux 6.18, kernels write out of bounds if there
    /// is more than one (`nft_tunnel_obj_geneve_init`).
    Geneve(Vec<GeneveOption>),
}

/// An option of GENEVE (RFC 8926, section 3.5).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GeneveOption {
    /// The option class, which defines the types.
    pub class: u16,
    /// The type in that class.
    pub kind: u8,
    /// The data: 4 to 124 bytes, a multiple of 4. The kernel refuses other lengths.
    pub data: Vec<u8>,
}

flags! {
    /// Flags of a tunnel (`enum nft_tunnel_flags`).
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct TunnelFlags: u32 {
        /// `NFT_TUNNEL_F_ZERO_CSUM_TX`: no checksum in the outer UDP header.
        const ZERO_CHECKSUM = 1;
        /// `NFT_TUNNEL_F_DONT_FRAGMENT`
        const DONT_FRAGMENT = 2;
        /// `NFT_TUNNEL_F_SEQ_NUMBER`: sequence numbers, for GRE.
        const SEQUENCE = 4;

        const _ = !0;
    }
}

impl Tunnel {
    /// Creates a tunnel over IPv4.
    #[must_use]
    pub fn v4(id: u32, source: Ipv4Addr, destination: Ipv4Addr) -> Self {
        Self::new(id, TunnelEndpoints::V4 { source, destination })
    }

    /// Creates a tunnel over IPv6.
    #[must_use]
    pub fn v6(id: u32, source: Ipv6Addr, destination: Ipv6Addr) -> Self {
        Self::new(id, TunnelEndpoints::V6 { source, destination, flow_label: 0 })
    }

    /// Sets the source port; with 0 the device chooses it.
    #[must_use]
    pub fn sport(mut self, sport: u16) -> Self {
        self.sport = sport;
        self
    }

    /// Sets the destination port; with 0 the device chooses it.
    #[must_use]
    pub fn dport(mut self, dport: u16) -> Self {
        self.dport = dport;
        self
    }

    /// Sets the flags.
    #[must_use]
    pub fn flags(mut self, flags: TunnelFlags) -> Self {
        self.flags = flags;
        self
    }

    /// Sets the type of service.
    #[must_use]
    pub fn tos(mut self, tos: u8) -> Self {
        self.tos = tos;
        self
    }

    /// Sets the time to live, which is 255 otherwise.
    #[must_use]
    pub fn ttl(mut self, ttl: u8) -> Self {
        self.ttl = ttl;
        self
    }

    /// Sets the options of one type of tunnel.
    #[must_use]
    pub fn options(mut self, options: TunnelOptions) -> Self {
        self.options = Some(options);
        self
    }

    fn new(id: u32, endpoints: TunnelEndpoints) -> Self {
        let flags = TunnelFlags::empty();
        Self { id, endpoints, sport: 0, dport: 0, flags, tos: 0, ttl: u8::MAX, options: None }
    }

    pub(crate) fn encode(&self, w: &mut Writer<'_>) {
        w.put_be32(NFTA_TUNNEL_KEY_ID, self.id);
        match self.endpoints {
            TunnelEndpoints::V4 { source, destination } => {
                let mut ends = w.nest(NFTA_TUNNEL_KEY_IP);
                ends.put(NFTA_TUNNEL_KEY_IP_SRC, &source.octets());
                ends.put(NFTA_TUNNEL_KEY_IP_DST, &destination.octets());
            }
            TunnelEndpoints::V6 { source, destination, flow_label } => {
                let mut ends = w.nest(NFTA_TUNNEL_KEY_IP6);
                ends.put(NFTA_TUNNEL_KEY_IP6_SRC, &source.octets());
                ends.put(NFTA_TUNNEL_KEY_IP6_DST, &destination.octets());
                ends.put_be32(NFTA_TUNNEL_KEY_IP6_FLOWLABEL, flow_label);
            }
        }
        w.put_be16(NFTA_TUNNEL_KEY_SPORT, self.sport);
        w.put_be16(NFTA_TUNNEL_KEY_DPORT, self.dport);
        w.put_be32(NFTA_TUNNEL_KEY_FLAGS, self.flags.bits());
        w.put_u8(NFTA_TUNNEL_KEY_TOS, self.tos);
        w.put_u8(NFTA_TUNNEL_KEY_TTL, self.ttl);
        if let Some(options) = &self.options {
            options.encode(&mut w.nest(NFTA_TUNNEL_KEY_OPTS));
        }
    }

    /// Decodes the data of a tunnel object; `None` if they are malformed.
    pub(crate) fn decode(data: &[u8]) -> Option<Self> {
        let attribute = |kind| Attributes::new(data).find(kind).ok().flatten();
        let number = |kind| attribute(kind).map_or(Some(0), |a| a.u8().ok());
        let port = |kind| attribute(kind).map_or(Some(0), |a| a.be16().ok());
        Some(Self {
            id: attribute(NFTA_TUNNEL_KEY_ID)?.be32().ok()?,
            endpoints: match attribute(NFTA_TUNNEL_KEY_IP) {
                Some(ends) => TunnelEndpoints::decode_v4(&ends)?,
                None => TunnelEndpoints::decode_v6(&attribute(NFTA_TUNNEL_KEY_IP6)?)?,
            },
            sport: port(NFTA_TUNNEL_KEY_SPORT)?,
            dport: port(NFTA_TUNNEL_KEY_DPORT)?,
            flags: match attribute(NFTA_TUNNEL_KEY_FLAGS) {
                Some(flags) => TunnelFlags::from_bits_retain(flags.be32().ok()?),
                None => TunnelFlags::empty(),
            },
            tos: number(NFTA_TUNNEL_KEY_TOS)?,
            ttl: number(NFTA_TUNNEL_KEY_TTL)?,
            options: match attribute(NFTA_TUNNEL_KEY_OPTS) {
                Some(options) => TunnelOptions::decode(&options)?,
                None => None,
            },
        })
    }

    /// Returns the properties in nft's syntax, one string for each; nested blocks are on one line, or on
    /// several.
    pub(crate) fn properties(&self, lines: bool) -> Vec<String> {
        let mut all = vec![format!("id {}", self.id)];
        match self.endpoints {
            TunnelEndpoints::V4 { source, destination } => {
                all.extend([format!("ip saddr {source}"), format!("ip daddr {destination}")]);
            }
            TunnelEndpoints::V6 { source, destination, .. } => {
                all.extend([format!("ip6 saddr {source}"), format!("ip6 daddr {destination}")]);
            }
        }
        let numbers = [
            ("sport", self.sport),
            ("dport", self.dport),
            ("tos", self.tos.into()),
            ("ttl", self.ttl.into()),
        ];
        // In a script a TTL that is left out is 255.
        let is_said = |(name, number): &&(&str, u16)| *number != 0 || (!lines && *name == "ttl");
        all.extend(numbers.iter().filter(is_said).map(|(name, number)| format!("{name} {number}")));
        all.extend(self.options.as_ref().map(|options| options.block(lines)));
        all
    }
}

impl TunnelEndpoints {
    fn decode_v4(ends: &Attribute<'_>) -> Option<Self> {
        let end = |kind| {
            let found = ends.attributes().find(kind).ok()?;
            found.map_or(Some([0; 4]), |address| address.payload.try_into().ok()).map(Ipv4Addr::from)
        };
        Some(Self::V4 { source: end(NFTA_TUNNEL_KEY_IP_SRC)?, destination: end(NFTA_TUNNEL_KEY_IP_DST)? })
    }

    fn decode_v6(ends: &Attribute<'_>) -> Option<Self> {
        let end = |kind| {
            let found = ends.attributes().find(kind).ok()?;
            found.map_or(Some([0; 16]), |address| address.payload.try_into().ok()).map(Ipv6Addr::from)
        };
        let label = ends.attributes().find(NFTA_TUNNEL_KEY_IP6_FLOWLABEL).ok()?;
        Some(Self::V6 {
            source: end(NFTA_TUNNEL_KEY_IP6_SRC)?,
            destination: end(NFTA_TUNNEL_KEY_IP6_DST)?,
            flow_label: label.map_or(Some(0), |label| label.be32().ok())?,
        })
    }
}

impl TunnelOptions {
    fn encode(&self, w: &mut Writer<'_>) {
        match self {
            Self::Vxlan { gbp } => {
                w.nest(NFTA_TUNNEL_KEY_OPTS_VXLAN).put_be32(NFTA_TUNNEL_KEY_VXLAN_GBP, *gbp);
            }
            Self::Erspan1 { index } => {
                let mut erspan = w.nest(NFTA_TUNNEL_KEY_OPTS_ERSPAN);
                erspan.put_be32(NFTA_TUNNEL_KEY_ERSPAN_VERSION, 1);
                erspan.put_be32(NFTA_TUNNEL_KEY_ERSPAN_V1_INDEX, *index);
            }
            Self::Erspan2 { hardware, egress } => {
                let mut erspan = w.nest(NFTA_TUNNEL_KEY_OPTS_ERSPAN);
                erspan.put_be32(NFTA_TUNNEL_KEY_ERSPAN_VERSION, 2);
                erspan.put_u8(NFTA_TUNNEL_KEY_ERSPAN_V2_HWID, *hardware);
                erspan.put_u8(NFTA_TUNNEL_KEY_ERSPAN_V2_DIR, (*egress).into());
            }
            Self::Geneve(options) => {
                for option in options {
                    let mut geneve = w.nest(NFTA_TUNNEL_KEY_OPTS_GENEVE);
                    geneve.put_be16(NFTA_TUNNEL_KEY_GENEVE_CLASS, option.class);
                    geneve.put_u8(NFTA_TUNNEL_KEY_GENEVE_TYPE, option.kind);
                    geneve.put(NFTA_TUNNEL_KEY_GENEVE_DATA, &option.data);
                }
            }
        }
    }

    /// Decodes the options: `None` if they are malformed, `Some(None)` if there are none.
    fn decode(options: &Attribute<'_>) -> Option<Option<Self>> {
        let mut geneve = Vec::new();
        for option in options.attributes() {
            let option = option.ok()?;
            let find = |kind| option.attributes().find(kind).ok().flatten();
            match option.kind {
                NFTA_TUNNEL_KEY_OPTS_VXLAN => {
                    return Some(Some(Self::Vxlan { gbp: find(NFTA_TUNNEL_KEY_VXLAN_GBP)?.be32().ok()? }));
                }
                NFTA_TUNNEL_KEY_OPTS_ERSPAN => {
                    return Some(Some(match find(NFTA_TUNNEL_KEY_ERSPAN_VERSION)?.be32().ok()? {
                        1 => Self::Erspan1 { index: find(NFTA_TUNNEL_KEY_ERSPAN_V1_INDEX)?.be32().ok()? },
                        2 => Self::Erspan2 {
                            hardware: find(NFTA_TUNNEL_KEY_ERSPAN_V2_HWID)?.u8().ok()?,
                            egress: find(NFTA_TUNNEL_KEY_ERSPAN_V2_DIR)?.u8().ok()? != 0,
                        },
                        _ => return None,
                    }));
                }
                NFTA_TUNNEL_KEY_OPTS_GENEVE => GeneveOption::decode_all(&option, &mut geneve)?,
                _ => return None,
            }
        }
        Some((!geneve.is_empty()).then_some(Self::Geneve(geneve)))
    }

    fn block(&self, lines: bool) -> String {
        let (name, properties) = match self {
            Self::Vxlan { gbp } => ("vxlan", vec![format!("gbp {gbp}")]),
            Self::Erspan1 { index } => ("erspan", vec!["version 1".to_owned(), format!("index {index}")]),
            Self::Erspan2 { hardware, egress } => {
                let direction = if *egress { "egress" } else { "ingress" };
                let properties = [format!("direction {direction}"), format!("id {hardware}")];
                ("erspan", std::iter::once("version 2".to_owned()).chain(properties).collect())
            }
            Self::Geneve(options) => ("geneve", options.iter().map(GeneveOption::property).collect()),
        };
        let inner: String = properties
            .iter()
            .map(|property| if lines { format!("\n\t{property}") } else { format!(" {property} ;") })
            .collect();
        format!("{name} {{{inner}{}", if lines { "\n}" } else { " }" })
    }
}

impl GeneveOption {
    /// Decodes the options in one nest. They are sent in a nest each, but older kernels list them one after
    /// the other in a single nest.
    fn decode_all(nest: &Attribute<'_>, out: &mut Vec<Self>) -> Option<()> {
        let (mut class, mut kind) = (None, None);
        for attribute in nest.attributes() {
            let attribute = attribute.ok()?;
            match attribute.kind {
                NFTA_TUNNEL_KEY_GENEVE_CLASS => class = Some(attribute.be16().ok()?),
                NFTA_TUNNEL_KEY_GENEVE_TYPE => kind = Some(attribute.u8().ok()?),
                NFTA_TUNNEL_KEY_GENEVE_DATA => {
                    let (class, kind) = (class.take()?, kind.take()?);
                    out.push(Self { class, kind, data: attribute.payload.to_vec() });
                }
                _ => return None,
            }
        }
        Some(())
    }

    /// Returns the option in nft's syntax, with two digits for each byte. nft 1.1.6 prints bytes below 16
    /// with one digit, which it cannot read back.
    fn property(&self) -> String {
        let mut text = format!("class {:#x} opt-type {:#x} data \"0x", self.class, self.kind);
        for byte in &self.data {
            // Writing to a `String` cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        text + "\""
    }
}

attributes! {
    TUNNEL: "enum nft_tunnel_key_attributes, linux/netfilter/nf_tables.h" {
        NFTA_TUNNEL_KEY_ID = 1,
        NFTA_TUNNEL_KEY_IP = 2 => TUNNEL_IP,
        NFTA_TUNNEL_KEY_IP6 = 3 => TUNNEL_IP6,
        NFTA_TUNNEL_KEY_FLAGS = 4,
        NFTA_TUNNEL_KEY_TOS = 5,
        NFTA_TUNNEL_KEY_TTL = 6,
        NFTA_TUNNEL_KEY_SPORT = 7,
        NFTA_TUNNEL_KEY_DPORT = 8,
        NFTA_TUNNEL_KEY_OPTS = 9 => TUNNEL_OPTIONS,
    }

    TUNNEL_IP: "enum nft_tunnel_key_ip_attributes, linux/netfilter/nf_tables.h" {
        NFTA_TUNNEL_KEY_IP_SRC = 1,
        NFTA_TUNNEL_KEY_IP_DST = 2,
    }

    TUNNEL_IP6: "enum nft_tunnel_ip6_attributes, linux/netfilter/nf_tables.h" {
        NFTA_TUNNEL_KEY_IP6_SRC = 1,
        NFTA_TUNNEL_KEY_IP6_DST = 2,
        NFTA_TUNNEL_KEY_IP6_FLOWLABEL = 3,
    }

    TUNNEL_OPTIONS: "enum nft_tunnel_opts_attributes, linux/netfilter/nf_tables.h" {
        NFTA_TUNNEL_KEY_OPTS_VXLAN = 1 => VXLAN,
        NFTA_TUNNEL_KEY_OPTS_ERSPAN = 2 => ERSPAN,
        NFTA_TUNNEL_KEY_OPTS_GENEVE = 3 => GENEVE,
    }

    VXLAN: "enum nft_tunnel_opts_vxlan_attributes, linux/netfilter/nf_tables.h" {
        NFTA_TUNNEL_KEY_VXLAN_GBP = 1,
    }

    ERSPAN: "enum nft_tunnel_opts_erspan_attributes, linux/netfilter/nf_tables.h" {
        NFTA_TUNNEL_KEY_ERSPAN_VERSION = 1,
        NFTA_TUNNEL_KEY_ERSPAN_V1_INDEX = 2,
        NFTA_TUNNEL_KEY_ERSPAN_V2_HWID = 3,
        NFTA_TUNNEL_KEY_ERSPAN_V2_DIR = 4,
    }

    GENEVE: "enum nft_tunnel_opts_geneve_attributes, linux/netfilter/nf_tables.h" {
        NFTA_TUNNEL_KEY_GENEVE_CLASS = 1,
        NFTA_TUNNEL_KEY_GENEVE_TYPE = 2,
        NFTA_TUNNEL_KEY_GENEVE_DATA = 3,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sluicegate_netlink::attr;

    use super::*;

    fn an_option() -> impl Strategy<Value = GeneveOption> {
        let data = prop::collection::vec(any::<[u8; 4]>(), 1..31).prop_map(|words| words.concat());
        (any::<u16>(), any::<u8>(), data).prop_map(|(class, kind, data)| GeneveOption { class, kind, data })
    }

    fn options() -> impl Strategy<Value = Option<TunnelOptions>> {
        prop_oneof![
            Just(None),
            any::<u32>().prop_map(|gbp| Some(TunnelOptions::Vxlan { gbp })),
            any::<u32>().prop_map(|index| Some(TunnelOptions::Erspan1 { index })),
            (any::<u8>(), any::<bool>())
                .prop_map(|(hardware, egress)| Some(TunnelOptions::Erspan2 { hardware, egress })),
            prop::collection::vec(an_option(), 1..4).prop_map(|all| Some(TunnelOptions::Geneve(all))),
        ]
    }

    fn endpoints() -> impl Strategy<Value = TunnelEndpoints> {
        prop_oneof![
            any::<(Ipv4Addr, Ipv4Addr)>()
                .prop_map(|(source, destination)| TunnelEndpoints::V4 { source, destination }),
            any::<(Ipv6Addr, Ipv6Addr, u32)>().prop_map(|(source, destination, flow_label)| {
                TunnelEndpoints::V6 { source, destination, flow_label }
            }),
        ]
    }

    proptest! {
        #[test]
        fn there_and_back(
            (id, sport, dport, flags, tos, ttl) in any::<(u32, u16, u16, u32, u8, u8)>(),
            endpoints in endpoints(),
            options in options(),
        ) {
            let flags = TunnelFlags::from_bits_retain(flags);
            let tunnel = Tunnel { id, endpoints, sport, dport, flags, tos, ttl, options };
            let bytes = attr::encode(|w| tunnel.encode(w)).unwrap();
            prop_assert_eq!(Tunnel::decode(&bytes), Some(tunnel));
        }

        #[test]
        fn no_input_makes_the_decoder_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Tunnel::decode(&bytes);
        }
    }

    #[test]
    fn options_print_as_nft_reads_and_lists_them() {
        let erspan = TunnelOptions::Erspan2 { hardware: 7, egress: true };
        assert_eq!(erspan.block(false), "erspan { version 2 ; direction egress ; id 7 ; }");
        assert_eq!(erspan.block(true), "erspan {\n\tversion 2\n\tdirection egress\n\tid 7\n}");
        let option = GeneveOption { class: 0x102, kind: 0x80, data: vec![1, 2, 0xab, 0] };
        let geneve = TunnelOptions::Geneve(vec![option]);
        assert_eq!(geneve.block(false), "geneve { class 0x102 opt-type 0x80 data \"0x0102ab00\" ; }");
    }
}
