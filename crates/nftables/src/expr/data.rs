//! The content of a register, an element or a constant (`enum nft_data_attributes`).

use sluicegate_netlink::DecodeError;
use sluicegate_netlink::attr::{Attribute, Writer};

use crate::expr::wire::{Fault, Value};
use crate::expr::{Bytes, Verdict, VerdictCode};
use crate::name::Name;
use crate::wire::attributes::attributes;

/// A value or a verdict.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Data {
    /// `NFTA_DATA_VALUE`: up to 64 bytes.
    Value(Bytes),
    /// `NFTA_DATA_VERDICT`
    Verdict(Verdict),
    /// A jump or goto to a chain by its number in the batch (`NFTA_VERDICT_CHAIN_ID`): an anonymous chain of
    /// the rule, which has no name yet. The kernel reports its name.
    ChainId(VerdictCode, u32),
    /// A verdict that nft's language cannot express here (`queue`, with a queue number in the upper half).
    Code(VerdictCode),
}

impl Data {
    /// Returns the value, unless it is a verdict.
    #[must_use]
    pub fn value(&self) -> Option<&[u8]> {
        match self {
            Self::Value(bytes) => Some(bytes),
            Self::Verdict(_) | Self::ChainId(..) | Self::Code(_) => None,
        }
    }

    pub(crate) fn encode(&self, w: &mut Writer<'_>, kind: u16) {
        let mut data = w.nest(kind);
        match self {
            Self::Value(bytes) => data.put(NFTA_DATA_VALUE, bytes),
            Self::Verdict(verdict) => encode_verdict(verdict, &mut data),
            Self::ChainId(code, id) => {
                let mut verdict = data.nest(NFTA_DATA_VERDICT);
                verdict.put_be32(NFTA_VERDICT_CODE, code.0);
                verdict.put_be32(NFTA_VERDICT_CHAIN_ID, *id);
            }
            Self::Code(code) => data.nest(NFTA_DATA_VERDICT).put_be32(NFTA_VERDICT_CODE, code.0),
        }
    }

    /// Returns the value if the attribute contains nothing else: the common case, decoded without a loop.
    #[inline(always)]
    pub(crate) fn only_value(attribute: &Attribute<'_>) -> Option<Bytes> {
        let mut attributes = attribute.attributes();
        let value = attributes.next()?.ok().filter(|value| value.kind == NFTA_DATA_VALUE)?;
        attributes.next().is_none().then(|| value.payload.into())
    }

    /// Decodes the data, and returns whether the attribute contains nothing else.
    pub(crate) fn decode(attribute: &Attribute<'_>) -> Result<(Self, bool), DecodeError> {
        let (mut found, mut whole) = (None, true);
        for inner in attribute.attributes() {
            let inner = inner?;
            let (data, all) = match inner.kind {
                NFTA_DATA_VALUE if found.is_none() => (Self::Value(inner.payload.into()), true),
                NFTA_DATA_VERDICT if found.is_none() => decode_verdict(&inner)?,
                _ => {
                    whole = false;
                    continue;
                }
            };
            found = Some(data);
            whole &= all;
        }
        Ok((found.ok_or(DecodeError::Missing { what: "NFTA_DATA_VALUE" })?, whole))
    }
}

impl Value for Data {
    fn write(&self, w: &mut Writer<'_>, kind: u16) {
        self.encode(w, kind);
    }

    #[inline(always)]
    fn read(attribute: &Attribute<'_>) -> Result<Self, Fault> {
        if let Some(value) = Self::only_value(attribute) {
            return Ok(Self::Value(value));
        }
        match Self::decode(attribute)? {
            (data, true) => Ok(data),
            (_, false) => Err(Fault::Newer),
        }
    }
}

/// Appends `NFTA_DATA_VERDICT`.
pub(crate) fn encode_verdict(verdict: &Verdict, w: &mut Writer<'_>) {
    match verdict {
        Verdict::Accept => encode_code(VerdictCode::ACCEPT, None, w),
        Verdict::Drop => encode_code(VerdictCode::DROP, None, w),
        Verdict::Continue => encode_code(VerdictCode::CONTINUE, None, w),
        Verdict::Return => encode_code(VerdictCode::RETURN, None, w),
        Verdict::Jump(chain) => encode_code(VerdictCode::JUMP, Some(chain), w),
        Verdict::Goto(chain) => encode_code(VerdictCode::GOTO, Some(chain), w),
    }
}

/// Appends `NFTA_DATA_VERDICT` with the parts of a verdict.
pub(crate) fn encode_code(code: VerdictCode, chain: Option<&Name>, w: &mut Writer<'_>) {
    let mut data = w.nest(NFTA_DATA_VERDICT);
    data.put_be32(NFTA_VERDICT_CODE, code.0);
    if let Some(chain) = chain {
        data.put_str(NFTA_VERDICT_CHAIN, chain);
    }
}

/// Decodes a verdict, and returns whether the attribute contains nothing else.
pub(crate) fn decode_verdict(attribute: &Attribute<'_>) -> Result<(Data, bool), DecodeError> {
    let (mut code, mut chain, mut id, mut whole) = (None, None, None, true);
    for inner in attribute.attributes() {
        let inner = inner?;
        match inner.kind {
            NFTA_VERDICT_CODE if code.is_none() => code = Some(VerdictCode(inner.be32()?)),
            NFTA_VERDICT_CHAIN if chain.is_none() => chain = Some(inner.text()?),
            NFTA_VERDICT_CHAIN_ID if id.is_none() => id = Some(inner.be32()?),
            _ => whole = false,
        }
    }
    let code = code.ok_or(DecodeError::Missing { what: "NFTA_VERDICT_CODE" })?;
    let jumps = matches!(code, VerdictCode::JUMP | VerdictCode::GOTO);
    let whole =
        whole && if jumps { chain.is_none() || id.is_none() } else { chain.is_none() && id.is_none() };
    let verdict = match (code, chain, id) {
        (VerdictCode::ACCEPT, ..) => Verdict::Accept,
        (VerdictCode::DROP, ..) => Verdict::Drop,
        (VerdictCode::CONTINUE, ..) => Verdict::Continue,
        (VerdictCode::RETURN, ..) => Verdict::Return,
        (VerdictCode::JUMP, Some(chain), _) => Verdict::Jump(Name::from_kernel(&chain)),
        (VerdictCode::GOTO, Some(chain), _) => Verdict::Goto(Name::from_kernel(&chain)),
        (_, _, Some(id)) if jumps => return Ok((Data::ChainId(code, id), whole)),
        _ if jumps => return Err(DecodeError::Missing { what: "NFTA_VERDICT_CHAIN" }),
        _ => return Ok((Data::Code(code), whole)),
    };
    Ok((Data::Verdict(verdict), whole))
}

/// `NFT_DATA_VERDICT` of `enum nft_data_types`, `linux/netfilter/nf_tables.h`: the data type of a verdict
/// map.
pub(crate) const NFT_DATA_VERDICT: u32 = 0xffff_ff00;

attributes! {
    DATA: "enum nft_data_attributes, linux/netfilter/nf_tables.h" {
        NFTA_DATA_VALUE = 1,
        NFTA_DATA_VERDICT = 2 => VERDICT,
    }

    VERDICT: "enum nft_verdict_attributes, linux/netfilter/nf_tables.h" {
        NFTA_VERDICT_CODE = 1,
        NFTA_VERDICT_CHAIN = 2,
        NFTA_VERDICT_CHAIN_ID = 3,
    }
}
