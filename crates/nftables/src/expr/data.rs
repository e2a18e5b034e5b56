//! What a register, an element or a constant holds (`enum nft_data_attributes`).

use sluicegate_netlink::DecodeError;
use sluicegate_netlink::attr::{Attribute, Writer};

use crate::expr::VerdictCode;
use crate::lang::Verdict;
use crate::name::Name;

/// Bytes, or a verdict.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Data {
    /// `NFTA_DATA_VALUE`: up to 64 bytes.
    Value(Vec<u8>),
    /// `NFTA_DATA_VERDICT`
    Verdict(Verdict),
    /// A verdict that nft's language cannot say here (`queue`, with a queue number in its upper half).
    Code(VerdictCode),
}

impl Data {
    /// The bytes, if that is what it is.
    #[must_use]
    pub fn value(&self) -> Option<&[u8]> {
        match self {
            Self::Value(bytes) => Some(bytes),
            Self::Verdict(_) | Self::Code(_) => None,
        }
    }

    pub(crate) fn encode(&self, w: &mut Writer<'_>, kind: u16) {
        let mut data = w.nest(kind);
        match self {
            Self::Value(bytes) => data.put(NFTA_DATA_VALUE, bytes),
            Self::Verdict(verdict) => encode_verdict(verdict, &mut data),
            Self::Code(code) => data.nest(NFTA_DATA_VERDICT).put_be32(NFTA_VERDICT_CODE, code.0),
        }
    }

    pub(crate) fn decode(attribute: &Attribute<'_>) -> Result<Self, DecodeError> {
        for inner in attribute.attributes() {
            let inner = inner?;
            match inner.kind {
                NFTA_DATA_VALUE => return Ok(Self::Value(inner.payload.to_vec())),
                NFTA_DATA_VERDICT => return decode_verdict(&inner),
                _ => {}
            }
        }
        Err(DecodeError::Missing { what: "NFTA_DATA_VALUE" })
    }
}

/// Appends `NFTA_DATA_VERDICT`.
pub(crate) fn encode_verdict(verdict: &Verdict, w: &mut Writer<'_>) {
    let (code, chain) = match verdict {
        Verdict::Accept => (VerdictCode::ACCEPT, None),
        Verdict::Drop => (VerdictCode::DROP, None),
        Verdict::Continue => (VerdictCode::CONTINUE, None),
        Verdict::Return => (VerdictCode::RETURN, None),
        Verdict::Jump(chain) => (VerdictCode::JUMP, Some(chain)),
        Verdict::Goto(chain) => (VerdictCode::GOTO, Some(chain)),
    };
    let mut data = w.nest(NFTA_DATA_VERDICT);
    data.put_be32(NFTA_VERDICT_CODE, code.0);
    if let Some(chain) = chain {
        data.put_str(NFTA_VERDICT_CHAIN, chain);
    }
}

fn decode_verdict(attribute: &Attribute<'_>) -> Result<Data, DecodeError> {
    let attributes = attribute.attributes();
    let code = attributes.clone().find(NFTA_VERDICT_CODE)?;
    let code = VerdictCode(code.ok_or(DecodeError::Missing { what: "NFTA_VERDICT_CODE" })?.be32()?);
    let chain = || -> Result<Name, DecodeError> {
        let chain = attributes.clone().find(NFTA_VERDICT_CHAIN)?;
        Ok(Name::held(chain.ok_or(DecodeError::Missing { what: "NFTA_VERDICT_CHAIN" })?.str()?))
    };
    Ok(Data::Verdict(match code {
        VerdictCode::ACCEPT => Verdict::Accept,
        VerdictCode::DROP => Verdict::Drop,
        VerdictCode::CONTINUE => Verdict::Continue,
        VerdictCode::RETURN => Verdict::Return,
        VerdictCode::JUMP => Verdict::Jump(chain()?),
        VerdictCode::GOTO => Verdict::Goto(chain()?),
        code => return Ok(Data::Code(code)),
    }))
}

/// `NFTA_DATA_VALUE`
pub(crate) const NFTA_DATA_VALUE: u16 = 1;
/// `NFTA_DATA_VERDICT`
const NFTA_DATA_VERDICT: u16 = 2;
/// `NFTA_VERDICT_CODE`
const NFTA_VERDICT_CODE: u16 = 1;
/// `NFTA_VERDICT_CHAIN`
const NFTA_VERDICT_CHAIN: u16 = 2;
