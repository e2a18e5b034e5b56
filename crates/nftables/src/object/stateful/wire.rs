//! Encodes and decodes stateful objects as netlink attributes.

use std::borrow::Cow;

use std::time::Duration;

use sluicegate_netlink::DecodeError;
use sluicegate_netlink::attr::{Attributes, Writer};

use sluicegate_netlink::Protocol;

use crate::expr::{Expr, ObjectKind};
use crate::family::Family;
use crate::name::{Name, SecurityContext};
use crate::object::stateful::timeouts::{default_timeouts, timeout_states};
use crate::object::userdata::{self, UserData};
use crate::object::{ObjectConfig, ObjectId, StatefulObject, Tunnel};
use crate::tree::Statement;
use crate::tree::stateful::{state, stateful, synproxy, synproxy_expr};
use crate::wire::attributes::attributes;
use crate::wire::decode::{name, need};
use crate::wording::millis;

impl StatefulObject {
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
    /// Appends the data of the object. Counters, quotas, limits and synproxies have the attributes of the
    /// expressions with the same name.
    fn encode(&self, data: &mut Writer<'_>) {
        let family = |family: &Option<Family>| family.map(|family| u16::from(family.0));
        match self {
            Self::Counter(counter) => encode_state(&(*counter).into(), data),
            Self::Quota(quota) => encode_state(&(*quota).into(), data),
            Self::Limit(limit) => encode_state(&(*limit).into(), data),
            Self::Synproxy(synproxy) => Expr::from(synproxy_expr(*synproxy)).encode_data(data),
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
                // This number alone is sent in host byte order.
                data.put_u32(NFTA_CT_EXPECT_TIMEOUT, u32::try_from(millis(*timeout)).unwrap_or(u32::MAX));
                data.put_u8(NFTA_CT_EXPECT_SIZE, *size);
            }
            Self::Secmark(context) => data.put_str(NFTA_SECMARK_CTX, context.as_str()),
            Self::Connlimit(limit) => encode_state(&(*limit).into(), data),
            Self::Tunnel(tunnel) => tunnel.encode(data),
        }
    }

    /// Decodes the data of an object; `None` if they are malformed, or the kind is unknown.
    pub(crate) fn decode(kind: ObjectKind, data: &[u8]) -> Option<Self> {
        Some(match kind {
            ObjectKind::COUNTER => Self::decode_state("counter", data)?,
            ObjectKind::QUOTA => Self::decode_state("quota", data)?,
            ObjectKind::LIMIT => Self::decode_state("limit", data)?,
            ObjectKind::CONNLIMIT => Self::decode_state("connlimit", data)?,
            ObjectKind::SYNPROXY => match Expr::decode_bytes("synproxy", data).ok()? {
                Expr::Synproxy(expr) => Self::Synproxy(synproxy(&expr)),
                _ => return None,
            },
            ObjectKind::CT_HELPER | ObjectKind::CT_TIMEOUT | ObjectKind::CT_EXPECT => {
                Self::decode_conntrack(kind, data)?
            }
            ObjectKind::SECMARK => {
                let context = Attributes::new(data).find(NFTA_SECMARK_CTX).ok()??;
                Self::Secmark(SecurityContext::from_kernel(&context.text().ok()?)?)
            }
            ObjectKind::TUNNEL => Self::Tunnel(Tunnel::decode(data)?),
            _ => return None,
        })
    }

    fn decode_state(expression: &str, data: &[u8]) -> Option<Self> {
        Some(match state(&Expr::decode_bytes(expression, data).ok()?)? {
            Statement::Counter(counter) => Self::Counter(counter),
            Statement::Quota(quota) => Self::Quota(quota),
            Statement::Limit(limit) => Self::Limit(limit),
            Statement::Connlimit(limit) => Self::Connlimit(limit),
            _ => return None,
        })
    }

    fn decode_conntrack(kind: ObjectKind, data: &[u8]) -> Option<Self> {
        let attribute = |number| Attributes::new(data).find(number).ok().flatten();
        let family = |number| {
            let number = attribute(number).and_then(|a| a.be16().ok()).and_then(|n| u8::try_from(n).ok());
            number.filter(|n| *n != 0).map(Family)
        };
        let protocol = |number| attribute(number).and_then(|a| a.u8().ok()).map(Protocol);
        Some(match kind {
            ObjectKind::CT_HELPER => Self::CtHelper {
                helper: Name::from_kernel(&attribute(NFTA_CT_HELPER_NAME)?.text().ok()?),
                family: family(NFTA_CT_HELPER_L3PROTO),
                protocol: protocol(NFTA_CT_HELPER_L4PROTO)?,
            },
            ObjectKind::CT_TIMEOUT => {
                let protocol = protocol(NFTA_CT_TIMEOUT_L4PROTO)?;
                let mut policy = Vec::new();
                for state in attribute(NFTA_CT_TIMEOUT_DATA)?.attributes() {
                    let state = state.ok()?;
                    let index = usize::from(state.kind).checked_sub(1)?;
                    let seconds = state.be32().ok()?;
                    // The kernel lists its defaults for states without a timeout, so nft treats these values
                    // as unset.
                    let default = default_timeouts(protocol).get(index).copied();
                    if let Some(name) =
                        timeout_states(protocol).get(index).filter(|_| default != Some(seconds))
                    {
                        policy.push((*name, Duration::from_secs(seconds.into())));
                    }
                }
                Self::CtTimeout { family: family(NFTA_CT_TIMEOUT_L3PROTO), protocol, policy }
            }
            _ => Self::CtExpectation {
                family: family(NFTA_CT_EXPECT_L3PROTO),
                protocol: protocol(NFTA_CT_EXPECT_L4PROTO)?,
                port: attribute(NFTA_CT_EXPECT_DPORT)?.be16().ok()?,
                timeout: Duration::from_millis(attribute(NFTA_CT_EXPECT_TIMEOUT)?.u32().ok()?.into()),
                size: attribute(NFTA_CT_EXPECT_SIZE)?.u8().ok()?,
            },
        })
    }
}

fn encode_state(statement: &Statement, data: &mut Writer<'_>) {
    if let Some(expr) = stateful(statement) {
        expr.encode_data(data);
    }
}

/// A stateful object as the kernel lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Object {
    /// The family of its table.
    pub family: Family,
    /// Its table.
    pub table: Name,
    /// Its name, which is unique among the objects of this kind in the table.
    pub name: Name,
    /// Its kind.
    pub object_kind: ObjectKind,
    /// Its settings and state: the attributes of its kind, as they were received.
    pub data: Vec<u8>,
    /// The number of rules and elements that refer to it.
    pub uses: u32,
    /// Its handle.
    pub handle: u64,
    /// User data: bytes that the kernel stores without interpreting them.
    pub user_data: Vec<u8>,
}

impl Object {
    /// Returns the comment in the user data, if there is one.
    #[must_use]
    pub fn comment(&self) -> Option<Cow<'_, str>> {
        UserData::new(&self.user_data).comment()
    }

    /// Returns its settings and state as values; `None` for a kind that has none here, and for malformed data.
    #[must_use]
    pub fn config(&self) -> Option<ObjectConfig> {
        ObjectConfig::decode(self.object_kind, &self.data)
    }

    /// Decodes the attributes of a message about an object.
    ///
    /// # Errors
    /// If they are malformed, or lack the table, the name or the kind.
    pub fn decode(family: Family, attributes: Attributes<'_>) -> Result<Self, DecodeError> {
        let (mut table, mut named, mut object_kind) = (None, None, None);
        let (mut data, mut uses, mut handle, mut user_data) = (Vec::new(), 0, 0, Vec::new());
        for attribute in attributes {
            let attribute = attribute?;
            match attribute.kind {
                NFTA_OBJ_TABLE => table = Some(name(&attribute)?),
                NFTA_OBJ_NAME => named = Some(name(&attribute)?),
                NFTA_OBJ_TYPE => object_kind = Some(ObjectKind(attribute.be32()?)),
                NFTA_OBJ_DATA => data = attribute.payload.to_vec(),
                NFTA_OBJ_USE => uses = attribute.be32()?,
                NFTA_OBJ_HANDLE => handle = attribute.be64()?,
                NFTA_OBJ_USERDATA => user_data = attribute.payload.to_vec(),
                _ => {}
            }
        }
        Ok(Self {
            family,
            table: need(table, "NFTA_OBJ_TABLE")?,
            name: need(named, "NFTA_OBJ_NAME")?,
            object_kind: need(object_kind, "NFTA_OBJ_TYPE")?,
            data,
            uses,
            handle,
            user_data,
        })
    }
}

attributes! {
    OBJECT: "enum nft_object_attributes, linux/netfilter/nf_tables.h" {
        NFTA_OBJ_TABLE = 1,
        NFTA_OBJ_NAME = 2,
        NFTA_OBJ_TYPE = 3,
        NFTA_OBJ_DATA = 4,
        NFTA_OBJ_USE = 5,
        NFTA_OBJ_HANDLE = 6,
        NFTA_OBJ_PAD = 7,
        NFTA_OBJ_USERDATA = 8,
    }

    CT_HELPER: "enum nft_ct_helper_attributes, linux/netfilter/nf_tables.h" {
        NFTA_CT_HELPER_NAME = 1,
        NFTA_CT_HELPER_L3PROTO = 2,
        NFTA_CT_HELPER_L4PROTO = 3,
    }

    CT_TIMEOUT: "enum nft_ct_timeout_timeout_attributes, linux/netfilter/nf_tables.h" {
        NFTA_CT_TIMEOUT_L3PROTO = 1,
        NFTA_CT_TIMEOUT_L4PROTO = 2,
        NFTA_CT_TIMEOUT_DATA = 3,
    }

    CT_EXPECT: "enum nft_ct_expectation_attributes, linux/netfilter/nf_tables.h" {
        NFTA_CT_EXPECT_L3PROTO = 1,
        NFTA_CT_EXPECT_L4PROTO = 2,
        NFTA_CT_EXPECT_DPORT = 3,
        NFTA_CT_EXPECT_TIMEOUT = 4,
        NFTA_CT_EXPECT_SIZE = 5,
    }

    SECMARK: "enum nft_secmark_attributes, linux/netfilter/nf_tables.h" {
        NFTA_SECMARK_CTX = 1,
    }
}
