//! Stateful objects (`enum nft_object_attributes`): counters, quotas, limits and the like that rules share by
//! name.

mod timeouts;
pub(crate) mod tunnel;
pub(crate) mod wire;

use std::fmt;
use std::time::Duration;

use sluicegate_netlink::Protocol;

use crate::expr::ObjectKind;
use crate::family::Family;
use crate::name::{Comment, Name, SecurityContext};
use crate::object::{ObjectId, Tunnel};
use crate::tree::{Connlimit, Counter, Limit, Quota, Synproxy};
use crate::wording::{Wording, Words};
#[cfg(any(feature = "fake", feature = "reconcile"))]
pub(crate) use timeouts::default_timeouts;
pub use timeouts::timeout_states;

/// A stateful object.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StatefulObject {
    /// The identifier.
    pub id: ObjectId,
    /// Its kind and settings.
    pub config: ObjectConfig,
    /// Its comment.
    pub comment: Option<Comment>,
}

/// The kind of a stateful object, and its settings.
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
        /// The name of the helper: `ftp`, `tftp` ...
        helper: Name,
        /// The transport protocol.
        protocol: Protocol,
        /// The network protocol, if it is for one only.
        family: Option<Family>,
    },
    /// `ct timeout`
    CtTimeout {
        /// The transport protocol.
        protocol: Protocol,
        /// The network protocol, if it is for one only.
        family: Option<Family>,
        /// Timeouts for states of a connection. The names of the states depend on the protocol: see
        /// [`timeout_states`]. nft supports those of TCP and UDP only.
        policy: Vec<(&'static str, Duration)>,
    },
    /// `ct expectation`
    CtExpectation {
        /// The transport protocol.
        protocol: Protocol,
        /// The port of the expected connection.
        port: u16,
        /// How long the connection is expected.
        timeout: Duration,
        /// The maximum number of expected connections.
        size: u8,
        /// The network protocol, if it is for one only.
        family: Option<Family>,
    },
    /// `secmark`
    Secmark(SecurityContext),
    /// `ct count`: a limit of connections. nft 1.0.6 does not support such objects; later versions do.
    Connlimit(Connlimit),
    /// `tunnel`
    Tunnel(Tunnel),
}

impl StatefulObject {
    /// Creates an object without comment.
    ///
    /// # Panics
    /// If the kind of the id is not that of the configuration.
    #[must_use]
    pub fn new(id: ObjectId, config: ObjectConfig) -> Self {
        assert_eq!(id.kind, config.kind(), "an object's name and configuration are of one kind");
        Self { id, config, comment: None }
    }

    /// Sets the comment.
    #[must_use]
    pub fn comment(mut self, comment: Comment) -> Self {
        self.comment = Some(comment);
        self
    }
}

impl ObjectConfig {
    /// Returns the kind of object.
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

    /// Returns the properties in nft's syntax, one string for each; nested blocks are on one line, or on
    /// several.
    pub(crate) fn properties(&self, lines: bool, with: Wording<'_>) -> Vec<String> {
        let l3 = |family: &Option<Family>| family.map(|family| format!("l3proto {family}"));
        match self {
            Self::Counter(_) if !with.shows_state(true) => Vec::new(),
            Self::Counter(counter) => vec![format!("packets {} bytes {}", counter.packets, counter.bytes)],
            Self::Quota(quota) => vec![quota.worded(with).to_string()],
            Self::Limit(limit) => vec![limit.to_string()],
            Self::Synproxy(synproxy) => {
                let mut lines = Vec::new();
                lines.extend(synproxy.mss.map(|mss| format!("mss {mss}")));
                lines.extend(synproxy.wscale.map(|wscale| format!("wscale {wscale}")));
                // nft prints a space between the two even if one is absent.
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
                // nft lists braces without anything in them, and does not read them.
                if !states.is_empty() || !with.is_script() {
                    lines.push(format!("policy = {{ {} }}", states.join(", ")));
                }
                lines
            }
            Self::CtExpectation { protocol, port, timeout, size, family } => {
                let mut lines = vec![
                    format!("protocol {protocol}"),
                    format!("dport {port}"),
                    format!("timeout {}", with.time(*timeout)),
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
    Counter(Counter) Quota(Quota) Limit(Limit) Synproxy(Synproxy) Secmark(SecurityContext)
    Connlimit(Connlimit) Tunnel(Tunnel)
}

/// Formats the argument of an nft command: `counter ip t hits { packets 0 bytes 0 ; }`.
impl fmt::Display for StatefulObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.comment.is_none() && self.config == ObjectConfig::Counter(Counter::default()) {
            // nft 1.0.6 reads this form after `create` as well.
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
