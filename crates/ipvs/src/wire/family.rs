//! `CTRL_CMD_GETFAMILY` of `linux/genetlink.h`: the number that the kernel gave to the family "IPVS".

use neli::consts::genl::{CtrlAttr, CtrlCmd};
use neli::consts::nl::{GenlId, NlmF};

use super::FAMILY_NAME;
use super::attributes::required;
use super::message::{Address, Message, encode};
use crate::error::DecodeError;

/// The version of the control family's protocol.
const VERSION: u8 = 1;

/// Asks for the number. Where the kernel may load modules, this loads `ip_vs`.
pub(crate) fn encode_query(buffer: &mut Vec<u8>, sequence: u32) {
    let to = Address { family: GenlId::Ctrl.into(), version: VERSION, sequence };
    encode(buffer, to, CtrlCmd::Getfamily.into(), NlmF::empty(), |w| {
        w.name(CtrlAttr::FamilyName.into(), FAMILY_NAME);
    });
}

/// The number of the family.
pub(crate) fn decode(message: &Message<'_>) -> Result<u16, DecodeError> {
    const OBJECT: &str = "generic-netlink family";
    let wanted: u16 = CtrlAttr::FamilyId.into();
    let mut id = None;
    for attribute in message.attributes(OBJECT)? {
        let attribute = attribute?;
        if attribute.kind == wanted {
            id = Some(attribute.u16()?);
        }
    }
    required(id, OBJECT, wanted)
}
