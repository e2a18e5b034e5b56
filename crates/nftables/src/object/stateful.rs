//! Stateful objects (`enum nft_object_attributes`): counters, quotas, limits and the like that rules share by name.

use std::fmt;
use std::time::Duration;

use sluicegate_netlink::attr::Writer;

use crate::expr::ObjectKind;
use crate::family::Family;
use crate::key::Protocol;
use crate::lang::{
    Connlimit, Counter, Limit, LowerError, Quota, Synproxy, Time, Wording, Words, millis, stateful,
    synproxy_expr,
};
use crate::name::{Comment, Name, SecurityContext};
use crate::object::{TableId, Tunnel, userdata};

/// What names a stateful object: its table, its kind and its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId {
    /// The table.
    pub table: TableId,
    /// The kind; objects of different kinds may have one name.
    pub kind: ObjectKind,
    /// The name.
    pub name: Name,
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.kind, self.table, self.name)
    }
}

/// A stateful object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatefulObject {
    /// What names it.
    pub id: ObjectId,
    /// What it is.
    pub config: ObjectConfig,
    /// Its comment.
    pub comment: Option<Comment>,
}

/// What a stateful object is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ObjectConfig {
    /// `counter`
    Counter(Counter),
    /// `quota`
    Quota(Quota),
    /// `limit`
    Limit(Limit),
    /// `synproxy`
    Synproxy(Synproxy),
    /// `ct helper`
    CtHelper {
        /// The helper: `ftp`, `tftp` ...
        helper: Name,
        /// The transport protocol that it helps.
        protocol: Protocol,
        /// The network protocol, if only one.
        family: Option<Family>,
    },
    /// `ct timeout`
    CtTimeout {
        /// The transport protocol.
        protocol: Protocol,
        /// The network protocol, if only one.
        family: Option<Family>,
        /// States of a connection and how long it may stay in each. Their names follow from the protocol: [`timeout_states`]. nft knows those of
        /// TCP and UDP, and neither reads nor lists others.
        policy: Vec<(&'static str, Duration)>,
    },
    /// `ct expectation`
    CtExpectation {
        /// The transport protocol.
        protocol: Protocol,
        /// The port of the expected connection.
        port: u16,
        /// How long it is expected.
        timeout: Duration,
        /// How many of them.
        size: u8,
        /// The network protocol, if only one.
        family: Option<Family>,
    },
    /// `secmark`
    Secmark(SecurityContext),
    /// `ct count`: how many connections. nft 1.0.6 has no word for such objects; later versions do.
    Connlimit(Connlimit),
    /// `tunnel`
    Tunnel(Tunnel),
}

impl StatefulObject {
    /// An object without comment.
    ///
    /// # Panics
    /// When the kind of the name is not that of the configuration.
    #[must_use]
    pub fn new(id: ObjectId, config: ObjectConfig) -> Self {
        assert_eq!(id.kind, config.kind(), "an object's name and configuration are of one kind");
        Self { id, config, comment: None }
    }

    /// With a comment.
    #[must_use]
    pub fn comment(mut self, comment: Comment) -> Self {
        self.comment = Some(comment);
        self
    }

    pub(crate) fn encode(&self, w: &mut Writer<'_>) {
        self.id.encode(w);
        if let Some(comment) = &self.comment {
            w.put(NFTA_OBJ_USERDATA, &userdata::comment(userdata::OBJECT_COMMENT, comment));
        }
        self.config.encode(&mut w.nest(NFTA_OBJ_DATA));
    }
}

impl ObjectId {
    pub(crate) fn encode(&self, w: &mut Writer<'_>) {
        w.put_str(NFTA_OBJ_TABLE, &self.table.name);
        w.put_str(NFTA_OBJ_NAME, &self.name);
        w.put_be32(NFTA_OBJ_TYPE, self.kind.0);
    }
}

impl ObjectConfig {
    /// The kind of object.
    #[must_use]
    pub fn kind(&self) -> ObjectKind {
        match self {
            Self::Counter(_) => ObjectKind::COUNTER,
            Self::Quota(_) => ObjectKind::QUOTA,
            Self::Limit(_) => ObjectKind::LIMIT,
            Self::Synproxy(_) => ObjectKind::SYNPROXY,
            Self::CtHelper { .. } => ObjectKind::CT_HELPER,
            Self::CtTimeout { .. } => ObjectKind::CT_TIMEOUT,
            Self::CtExpectation { .. } => ObjectKind::CT_EXPECT,
            Self::Secmark(_) => ObjectKind::SECMARK,
            Self::Connlimit(_) => ObjectKind::CONNLIMIT,
            Self::Tunnel(_) => ObjectKind::TUNNEL,
        }
    }

    /// Refuses a state that connections of the protocol do not have.
    pub(crate) fn check(&self) -> Result<(), LowerError> {
        let Self::CtTimeout { protocol, policy, .. } = self else { return Ok(()) };
        match policy.iter().find(|(state, _)| !timeout_states(*protocol).contains(state)) {
            Some((state, _)) => Err(LowerError::Constant {
                value: (*state).to_owned(),
                wanted: format!("state of {protocol}"),
            }),
            None => Ok(()),
        }
    }

    /// Counters, quotas, limits and synproxies have the attributes of the expressions of that name.
    fn encode(&self, data: &mut Writer<'_>) {
        let family = |family: &Option<Family>| family.map(|family| u16::from(family.0));
        match self {
            Self::Counter(counter) => encode_state(&(*counter).into(), data),
            Self::Quota(quota) => encode_state(&(*quota).into(), data),
            Self::Limit(limit) => encode_state(&(*limit).into(), data),
            Self::Synproxy(synproxy) => crate::expr::Expr::from(synproxy_expr(*synproxy)).encode_data(data),
            Self::CtHelper { helper, protocol, family: of } => {
                data.put_str(NFTA_CT_HELPER_NAME, helper);
                if let Some(of) = family(of) {
                    data.put_be16(NFTA_CT_HELPER_L3PROTO, of);
                }
                data.put_u8(NFTA_CT_HELPER_L4PROTO, protocol.0);
            }
            Self::CtTimeout { protocol, family: of, policy } => {
                if let Some(of) = family(of) {
                    data.put_be16(NFTA_CT_TIMEOUT_L3PROTO, of);
                }
                data.put_u8(NFTA_CT_TIMEOUT_L4PROTO, protocol.0);
                let mut states = data.nest(NFTA_CT_TIMEOUT_DATA);
                for (state, time) in policy {
                    let number = (1..).zip(timeout_states(*protocol)).find(|(_, name)| *name == state);
                    if let Some((number, _)) = number {
                        states.put_be32(number, u32::try_from(time.as_secs()).unwrap_or(u32::MAX));
                    }
                }
            }
            Self::CtExpectation { protocol, port, timeout, size, family: of } => {
                if let Some(of) = family(of) {
                    data.put_be16(NFTA_CT_EXPECT_L3PROTO, of);
                }
                data.put_u8(NFTA_CT_EXPECT_L4PROTO, protocol.0);
                data.put_be16(NFTA_CT_EXPECT_DPORT, *port);
                // The one number of nf_tables that is in host order.
                data.put_u32(NFTA_CT_EXPECT_TIMEOUT, u32::try_from(millis(*timeout)).unwrap_or(u32::MAX));
                data.put_u8(NFTA_CT_EXPECT_SIZE, *size);
            }
            Self::Secmark(context) => data.put_str(NFTA_SECMARK_CTX, context.as_str()),
            Self::Connlimit(limit) => encode_state(&(*limit).into(), data),
            Self::Tunnel(tunnel) => tunnel.encode(data),
        }
    }

    /// What it says, in nft's words, one property each; what has properties of its own is in one line, or in several.
    pub(crate) fn properties(&self, lines: bool, with: Wording<'_>) -> Vec<String> {
        let l3 = |family: &Option<Family>| family.map(|family| format!("l3proto {family}"));
        match self {
            Self::Counter(_) if !with.says_state(true) => Vec::new(),
            Self::Counter(counter) => vec![format!("packets {} bytes {}", counter.packets, counter.bytes)],
            Self::Quota(quota) => vec![quota.worded(with).to_string()],
            Self::Limit(limit) => vec![limit.to_string()],
            Self::Synproxy(synproxy) => {
                let mut lines = Vec::new();
                lines.extend(synproxy.mss.map(|mss| format!("mss {mss}")));
                lines.extend(synproxy.wscale.map(|wscale| format!("wscale {wscale}")));
                // With a space between the two, whichever there are.
                let word = |is: bool, word: &'static str| if is { word } else { "" };
                let (time, sack) =
                    (word(synproxy.timestamp, "timestamp"), word(synproxy.sack_perm, "sack-perm"));
                lines.extend((synproxy.timestamp || synproxy.sack_perm).then(|| format!("{time} {sack}")));
                lines
            }
            Self::CtHelper { helper, protocol, family } => {
                let mut lines = vec![format!("type \"{helper}\" protocol {protocol}")];
                lines.extend(l3(family));
                lines
            }
            Self::CtTimeout { protocol, family, policy } => {
                let mut lines = vec![format!("protocol {protocol}")];
                lines.extend(l3(family));
                let states: Vec<_> =
                    policy.iter().map(|(name, time)| format!("{name} : {}", time.as_secs())).collect();
                lines.push(format!("policy = {{ {} }}", states.join(", ")));
                lines
            }
            Self::CtExpectation { protocol, port, timeout, size, family } => {
                let mut lines = vec![
                    format!("protocol {protocol}"),
                    format!("dport {port}"),
                    format!("timeout {}", Time(*timeout)),
                    format!("size {size}"),
                ];
                lines.extend(l3(family));
                lines
            }
            Self::Secmark(context) => vec![context.to_string()],
            Self::Connlimit(Connlimit { count, over }) => {
                vec![format!("{} {count}", if *over { "over" } else { "to" })]
            }
            Self::Tunnel(tunnel) => tunnel.properties(lines),
        }
    }
}

macro_rules! into_config {
    ($($kind:ident($of:ty))*) => {$(
        impl From<$of> for ObjectConfig {
            fn from(config: $of) -> Self {
                Self::$kind(config)
            }
        }
    )*};
}

into_config! {
    Counter(Counter) Quota(Quota) Limit(Limit) Synproxy(Synproxy) Secmark(SecurityContext) Connlimit(Connlimit) Tunnel(Tunnel)
}

fn encode_state(statement: &crate::lang::Statement, data: &mut Writer<'_>) {
    if let Some(expr) = stateful(statement) {
        expr.encode_data(data);
    }
}

/// The states of a connection of this protocol for which `ct timeout` knows a time, in the kernel's order
/// (`linux/netfilter/nfnetlink_cttimeout.h`); empty for protocols that the kernel does not track by themselves.
#[must_use]
pub fn timeout_states(protocol: Protocol) -> &'static [&'static str] {
    match protocol {
        Protocol::TCP => &[
            "syn_sent",
            "syn_recv",
            "established",
            "fin_wait",
            "close_wait",
            "last_ack",
            "time_wait",
            "close",
            "syn_sent2",
            "retrans",
            "unack",
        ],
        Protocol::UDP | Protocol::UDPLITE | Protocol::GRE => &["unreplied", "replied"],
        Protocol::ICMP | Protocol::ICMPV6 => &["timeout"],
        Protocol::DCCP => &["request", "respond", "partopen", "open", "closereq", "closing", "timewait"],
        Protocol::SCTP => &[
            "closed",
            "cookie_wait",
            "cookie_echoed",
            "established",
            "shutdown_sent",
            "shutdown_recd",
            "shutdown_ack_sent",
            "heartbeat_sent",
            // No longer used, since 2023.
            "heartbeat_acked",
        ],
        _ => &[],
    }
}

/// The seconds that the kernel keeps a connection in each of these states unless told otherwise (`net.netfilter.nf_conntrack_*_timeout`).
pub(crate) fn usual_timeouts(protocol: Protocol) -> &'static [u32] {
    match protocol {
        Protocol::TCP => &[120, 60, 432_000, 120, 60, 30, 120, 10, 120, 300, 300],
        Protocol::UDP | Protocol::UDPLITE => &[30, 120],
        Protocol::GRE => &[30, 180],
        Protocol::ICMP | Protocol::ICMPV6 => &[30],
        Protocol::DCCP => &[240, 480, 480, 43_200, 64, 64, 240],
        Protocol::SCTP => &[10, 3, 3, 210, 3, 3, 3, 30, 0],
        _ => &[],
    }
}

/// As nft's commands say it: `counter ip t hits { packets 0 bytes 0 ; }`.
impl fmt::Display for StatefulObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.comment.is_none() && self.config == ObjectConfig::Counter(Counter::default()) {
            // The form that nft 1.0.6 reads after `create` too.
            return self.id.fmt(f);
        }
        write!(f, "{} {{", self.id)?;
        for line in self.config.properties(false, Wording::SCRIPT) {
            write!(f, " {line} ;")?;
        }
        if let Some(comment) = &self.comment {
            write!(f, " comment {comment} ;")?;
        }
        f.write_str(" }")
    }
}

const NFTA_OBJ_TABLE: u16 = 1;
const NFTA_OBJ_NAME: u16 = 2;
const NFTA_OBJ_TYPE: u16 = 3;
const NFTA_OBJ_DATA: u16 = 4;
const NFTA_OBJ_USERDATA: u16 = 8;
const NFTA_CT_HELPER_NAME: u16 = 1;
const NFTA_CT_HELPER_L3PROTO: u16 = 2;
const NFTA_CT_HELPER_L4PROTO: u16 = 3;
const NFTA_CT_TIMEOUT_L3PROTO: u16 = 1;
const NFTA_CT_TIMEOUT_L4PROTO: u16 = 2;
const NFTA_CT_TIMEOUT_DATA: u16 = 3;
const NFTA_CT_EXPECT_L3PROTO: u16 = 1;
const NFTA_CT_EXPECT_L4PROTO: u16 = 2;
const NFTA_CT_EXPECT_DPORT: u16 = 3;
const NFTA_CT_EXPECT_TIMEOUT: u16 = 4;
const NFTA_CT_EXPECT_SIZE: u16 = 5;
const NFTA_SECMARK_CTX: u16 = 1;
