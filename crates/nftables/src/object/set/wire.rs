//! Sets and maps as netlink attributes, and what nft notes with them.

use sluicegate_netlink::attr::Writer;

use crate::datatype::{DataType, Order};
use crate::expr::wire::NFTA_LIST_ELEM;
use crate::key::{Part, width};
use crate::lang::{millis, stateful};
use crate::object::{Set, SetData, SetFlags, SetPolicy, SetType, typeof_data, userdata};

impl Set {
    /// Appends its attributes. `number` is its number in the batch.
    pub(crate) fn encode(&self, w: &mut Writer<'_>, number: u32) {
        self.encode_typed(w, number, None);
    }

    /// The same, with keys of a type that has another width elsewhere.
    pub(crate) fn encode_typed(&self, w: &mut Writer<'_>, number: u32, key_type: Option<DataType>) {
        let key = self.key.parts();
        w.put_str(NFTA_SET_TABLE, &self.id.table.name);
        w.put_str(NFTA_SET_NAME, &self.id.name);
        w.put_be32(NFTA_SET_FLAGS, self.wire_flags(key.len()).bits());
        w.put_be32(NFTA_SET_KEY_TYPE, key_type.map_or_else(|| type_code(&key), |of| of.id().into()));
        w.put_be32(NFTA_SET_KEY_LEN, length(&key));
        match &self.data {
            None => {}
            Some(SetData::Value(of)) => {
                let parts = of.parts();
                w.put_be32(NFTA_SET_DATA_TYPE, type_code(&parts));
                w.put_be32(NFTA_SET_DATA_LEN, length(&parts));
            }
            Some(SetData::Interval(of)) => {
                let parts = of.parts();
                w.put_be32(NFTA_SET_DATA_TYPE, type_code(&parts));
                w.put_be32(NFTA_SET_DATA_LEN, 2 * length(&parts));
            }
            Some(SetData::Verdict) => {
                w.put_be32(NFTA_SET_DATA_TYPE, NFT_DATA_VERDICT);
                w.put_be32(NFTA_SET_DATA_LEN, 0);
            }
            Some(SetData::Object(kind)) => w.put_be32(NFTA_SET_OBJ_TYPE, kind.0),
        }
        w.put_be32(NFTA_SET_ID, number);
        if self.policy == Some(SetPolicy::Memory) {
            w.put_be32(NFTA_SET_POLICY, 1);
        }
        self.encode_description(&key, w);
        if let Some(timeout) = self.timeout {
            w.put_be64(NFTA_SET_TIMEOUT, millis(timeout));
        }
        if let Some(interval) = self.gc_interval {
            w.put_be32(NFTA_SET_GC_INTERVAL, u32::try_from(millis(interval)).unwrap_or(u32::MAX));
        }
        w.put(NFTA_SET_USERDATA, &self.user_data(&key));
        let exprs: Vec<_> = self.statements.iter().filter_map(stateful).collect();
        match exprs.as_slice() {
            [] => {}
            [one] => one.encode(w, NFTA_SET_EXPR),
            several => {
                let mut list = w.nest(NFTA_SET_EXPRESSIONS);
                several.iter().for_each(|expr| expr.encode(&mut list, NFTA_LIST_ELEM));
            }
        }
    }

    fn wire_flags(&self, parts: usize) -> SetFlags {
        let mut flags = self.flags;
        match self.data {
            None => {}
            Some(SetData::Object(_)) => flags |= SetFlags::OBJECT,
            Some(_) => flags |= SetFlags::MAP,
        }
        flags.set(SetFlags::TIMEOUT, self.timeout.is_some() || flags.contains(SetFlags::TIMEOUT));
        flags.set(SetFlags::CONCAT, parts > 1 && flags.contains(SetFlags::INTERVAL));
        flags.set(SetFlags::EXPR, self.statements.len() > 1);
        flags
    }

    fn encode_description(&self, key: &[Part], w: &mut Writer<'_>) {
        let fields = key.len() > 1 && self.flags.contains(SetFlags::INTERVAL);
        if self.size.is_none() && !fields {
            return;
        }
        let mut description = w.nest(NFTA_SET_DESC);
        if let Some(size) = self.size {
            description.put_be32(NFTA_SET_DESC_SIZE, size);
        }
        if fields {
            let mut concat = description.nest(NFTA_SET_DESC_CONCAT);
            for part in key {
                let bytes = u32::try_from(part.bytes()).unwrap_or(0);
                concat.nest(NFTA_LIST_ELEM).put_be32(NFTA_SET_FIELD_LEN, bytes);
            }
        }
    }

    /// What nft keeps for itself: byte orders, types, comment. Without it `nft list` shows numbers turned round.
    fn user_data(&self, key: &[Part]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(64);
        userdata::push_u32(&mut bytes, KEYBYTEORDER, byte_order(key));
        match &self.data {
            Some(SetData::Value(of) | SetData::Interval(of)) => {
                userdata::push_u32(&mut bytes, DATABYTEORDER, byte_order(&of.parts()));
            }
            Some(SetData::Verdict) => userdata::push_u32(&mut bytes, DATABYTEORDER, 0),
            _ => {}
        }
        if self.auto_merge {
            userdata::push_u32(&mut bytes, MERGE_ELEMENTS, 1);
        }
        if let Some(of) = typeof_data::encode(&self.key) {
            userdata::push(&mut bytes, KEY_TYPEOF, &of);
        }
        if let Some(SetData::Value(data) | SetData::Interval(data)) = &self.data
            && let Some(of) = typeof_data::encode(data)
        {
            userdata::push(&mut bytes, DATA_TYPEOF, &of);
        }
        if let (SetType::Typeof(_), Some(SetData::Verdict)) = (&self.key, &self.data) {
            userdata::push(&mut bytes, DATA_TYPEOF, &typeof_data::verdict());
        }
        if self.data.is_some() {
            let interval = matches!(self.data, Some(SetData::Interval(_)));
            userdata::push_u32(&mut bytes, DATA_INTERVAL, interval.into());
        }
        if let Some(comment) = &self.comment {
            userdata::push_comment(&mut bytes, SET_COMMENT, comment);
        }
        bytes
    }
}

/// nft's number of a type: six bits for each part.
pub(crate) fn type_code(parts: &[Part]) -> u32 {
    parts.iter().fold(0, |code, part| code << 6 | u32::from(part.data_type().id()))
}

/// Bytes of a value, as the kernel is told them.
pub(crate) fn length(parts: &[Part]) -> u32 {
    u32::try_from(width(parts)).unwrap_or(u32::MAX)
}

/// nft's number of a byte order: none for a concatenation, which has several.
fn byte_order(parts: &[Part]) -> u32 {
    match parts {
        [only] if only.order() == Order::Host => 1,
        [_] => 2,
        _ => 0,
    }
}

pub(crate) const NFTA_SET_TABLE: u16 = 1;
pub(crate) const NFTA_SET_NAME: u16 = 2;
const NFTA_SET_FLAGS: u16 = 3;
const NFTA_SET_KEY_TYPE: u16 = 4;
const NFTA_SET_KEY_LEN: u16 = 5;
const NFTA_SET_DATA_TYPE: u16 = 6;
const NFTA_SET_DATA_LEN: u16 = 7;
const NFTA_SET_POLICY: u16 = 8;
const NFTA_SET_DESC: u16 = 9;
const NFTA_SET_ID: u16 = 10;
const NFTA_SET_TIMEOUT: u16 = 11;
const NFTA_SET_GC_INTERVAL: u16 = 12;
const NFTA_SET_USERDATA: u16 = 13;
const NFTA_SET_OBJ_TYPE: u16 = 15;
const NFTA_SET_EXPR: u16 = 17;
const NFTA_SET_EXPRESSIONS: u16 = 18;
const NFTA_SET_DESC_SIZE: u16 = 1;
const NFTA_SET_DESC_CONCAT: u16 = 2;
const NFTA_SET_FIELD_LEN: u16 = 1;
/// `NFT_DATA_VERDICT`
const NFT_DATA_VERDICT: u32 = 0xffff_ff00;
/// `NFTNL_UDATA_SET_KEYBYTEORDER`
const KEYBYTEORDER: u8 = 0;
/// `NFTNL_UDATA_SET_DATABYTEORDER`
const DATABYTEORDER: u8 = 1;
/// `NFTNL_UDATA_SET_MERGE_ELEMENTS`
const MERGE_ELEMENTS: u8 = 2;
/// `NFTNL_UDATA_SET_KEY_TYPEOF`
pub(crate) const KEY_TYPEOF: u8 = 3;
/// `NFTNL_UDATA_SET_DATA_TYPEOF`
pub(crate) const DATA_TYPEOF: u8 = 4;
/// `NFTNL_UDATA_SET_DATA_INTERVAL`
const DATA_INTERVAL: u8 = 6;
/// `NFTNL_UDATA_SET_COMMENT`
const SET_COMMENT: u8 = 7;
