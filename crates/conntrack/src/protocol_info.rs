//! Protocol-specific state of a connection: that of TCP, DCCP and SCTP
//! (`CTA_PROTOINFO`).

use std::fmt;

use sluicegate_netlink::DecodeError;
use sluicegate_netlink::attr::{Attribute, Writer};

/// `CTA_PROTOINFO`. Protocols without connections have none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ProtocolInfo {
    /// `CTA_PROTOINFO_TCP`.
    Tcp {
        /// The state.
        state: TcpState,
    },
    /// `CTA_PROTOINFO_DCCP`.
    Dccp {
        /// The state.
        state: DccpState,
        /// The role of the client: 0 for the original direction, 1 for the reply (`CT_DCCP_ROLE_*`).
        role: u8,
    },
    /// `CTA_PROTOINFO_SCTP`.
    Sctp {
        /// The state.
        state: SctpState,
        /// The verification tags of both directions, original first.
        tags: [u32; 2],
    },
}

macro_rules! states {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $state:ident = $value:literal,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u8);

        impl $name {
            $($(#[$doc])* pub const $state: Self = Self($value);)*

            /// Returns the name of the state; `None` for an unknown one.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some(stringify!($state)),)*
                    _ => None,
                }
            }

            /// Returns the state of this name, which is in capitals.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                [$(Self::$state),*].into_iter().find(|state| state.name() == Some(name))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.name() {
                    Some(name) => f.pad(name),
                    None => write!(f, "{:#x}", self.0),
                }
            }
        }
    };
}

states! {
    /// `enum tcp_conntrack` of `linux/netfilter/nf_conntrack_tcp.h`.
    TcpState {
        /// `TCP_CONNTRACK_NONE`
        NONE = 0,
        /// `TCP_CONNTRACK_SYN_SENT`
        SYN_SENT = 1,
        /// `TCP_CONNTRACK_SYN_RECV`
        SYN_RECV = 2,
        /// `TCP_CONNTRACK_ESTABLISHED`
        ESTABLISHED = 3,
        /// `TCP_CONNTRACK_FIN_WAIT`
        FIN_WAIT = 4,
        /// `TCP_CONNTRACK_CLOSE_WAIT`
        CLOSE_WAIT = 5,
        /// `TCP_CONNTRACK_LAST_ACK`
        LAST_ACK = 6,
        /// `TCP_CONNTRACK_TIME_WAIT`
        TIME_WAIT = 7,
        /// `TCP_CONNTRACK_CLOSE`
        CLOSE = 8,
        /// `TCP_CONNTRACK_SYN_SENT2` (once `TCP_CONNTRACK_LISTEN`): both sides sent a SYN.
        SYN_SENT2 = 9,
    }
}

states! {
    /// `enum ct_dccp_states` of `linux/netfilter/nf_conntrack_dccp.h`.
    DccpState {
        /// `CT_DCCP_NONE`
        NONE = 0,
        /// `CT_DCCP_REQUEST`
        REQUEST = 1,
        /// `CT_DCCP_RESPOND`
        RESPOND = 2,
        /// `CT_DCCP_PARTOPEN`
        PARTOPEN = 3,
        /// `CT_DCCP_OPEN`
        OPEN = 4,
        /// `CT_DCCP_CLOSEREQ`
        CLOSEREQ = 5,
        /// `CT_DCCP_CLOSING`
        CLOSING = 6,
        /// `CT_DCCP_TIMEWAIT`
        TIMEWAIT = 7,
        /// `CT_DCCP_IGNORE`
        IGNORE = 8,
        /// `CT_DCCP_INVALID`
        INVALID = 9,
    }
}

states! {
    /// `enum sctp_conntrack` of `linux/netfilter/nf_conntrack_sctp.h`.
    SctpState {
        /// `SCTP_CONNTRACK_NONE`
        NONE = 0,
        /// `SCTP_CONNTRACK_CLOSED`
        CLOSED = 1,
        /// `SCTP_CONNTRACK_COOKIE_WAIT`
        COOKIE_WAIT = 2,
        /// `SCTP_CONNTRACK_COOKIE_ECHOED`
        COOKIE_ECHOED = 3,
        /// `SCTP_CONNTRACK_ESTABLISHED`
        ESTABLISHED = 4,
        /// `SCTP_CONNTRACK_SHUTDOWN_SENT`
        SHUTDOWN_SENT = 5,
        /// `SCTP_CONNTRACK_SHUTDOWN_RECD`
        SHUTDOWN_RECD = 6,
        /// `SCTP_CONNTRACK_SHUTDOWN_ACK_SENT`
        SHUTDOWN_ACK_SENT = 7,
        /// `SCTP_CONNTRACK_HEARTBEAT_SENT`
        HEARTBEAT_SENT = 8,
        /// `SCTP_CONNTRACK_HEARTBEAT_ACKED`, which Linux no longer enters since 6.1
        HEARTBEAT_ACKED = 9,
    }
}

impl ProtocolInfo {
    pub(crate) fn encode(self, w: &mut Writer<'_>, kind: u16) {
        let mut info = w.nest(kind);
        match self {
            Self::Tcp { state } => info.nest(CTA_PROTOINFO_TCP).put_u8(STATE, state.0),
            Self::Dccp { state, role } => {
                let mut dccp = info.nest(CTA_PROTOINFO_DCCP);
                dccp.put_u8(STATE, state.0);
                dccp.put_u8(CTA_PROTOINFO_DCCP_ROLE, role);
            }
            Self::Sctp { state, tags: [original, reply] } => {
                let mut sctp = info.nest(CTA_PROTOINFO_SCTP);
                sctp.put_u8(STATE, state.0);
                sctp.put_be32(CTA_PROTOINFO_SCTP_VTAG_ORIGINAL, original);
                sctp.put_be32(CTA_PROTOINFO_SCTP_VTAG_REPLY, reply);
            }
        }
    }

    /// Decodes `CTA_PROTOINFO`; `None` for an unknown protocol, or without a state.
    pub(crate) fn decode(attribute: &Attribute<'_>) -> Result<Option<Self>, DecodeError> {
        for attribute in attribute.attributes() {
            let attribute = attribute?;
            let [mut state, mut role] = [None, None];
            let mut tags = [0; 2];
            if !matches!(attribute.kind, CTA_PROTOINFO_TCP | CTA_PROTOINFO_DCCP | CTA_PROTOINFO_SCTP) {
                continue;
            }
            for inner in attribute.attributes() {
                let inner = inner?;
                match (attribute.kind, inner.kind) {
                    (_, STATE) => state = Some(inner.u8()?),
                    (CTA_PROTOINFO_DCCP, CTA_PROTOINFO_DCCP_ROLE) => role = Some(inner.u8()?),
                    (CTA_PROTOINFO_SCTP, CTA_PROTOINFO_SCTP_VTAG_ORIGINAL) => tags[0] = inner.be32()?,
                    (CTA_PROTOINFO_SCTP, CTA_PROTOINFO_SCTP_VTAG_REPLY) => tags[1] = inner.be32()?,
                    _ => {}
                }
            }
            return Ok(state.map(|state| match attribute.kind {
                CTA_PROTOINFO_TCP => Self::Tcp { state: TcpState(state) },
                CTA_PROTOINFO_DCCP => Self::Dccp { state: DccpState(state), role: role.unwrap_or(0) },
                _ => Self::Sctp { state: SctpState(state), tags },
            }));
        }
        Ok(None)
    }
}

/// Prints the name of the state.
impl fmt::Display for ProtocolInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { state } => state.fmt(f),
            Self::Dccp { state, .. } => state.fmt(f),
            Self::Sctp { state, .. } => state.fmt(f),
        }
    }
}

/// `CTA_PROTOINFO_TCP`, nested
const CTA_PROTOINFO_TCP: u16 = 1;
/// `CTA_PROTOINFO_DCCP`, nested
const CTA_PROTOINFO_DCCP: u16 = 2;
/// `CTA_PROTOINFO_SCTP`, nested
const CTA_PROTOINFO_SCTP: u16 = 3;
/// `CTA_PROTOINFO_TCP_STATE`, `CTA_PROTOINFO_DCCP_STATE`, `CTA_PROTOINFO_SCTP_STATE`, u8
const STATE: u16 = 1;
/// `CTA_PROTOINFO_DCCP_ROLE`, u8
const CTA_PROTOINFO_DCCP_ROLE: u16 = 2;
/// `CTA_PROTOINFO_SCTP_VTAG_ORIGINAL`, be32
const CTA_PROTOINFO_SCTP_VTAG_ORIGINAL: u16 = 2;
/// `CTA_PROTOINFO_SCTP_VTAG_REPLY`, be32
const CTA_PROTOINFO_SCTP_VTAG_REPLY: u16 = 3;
