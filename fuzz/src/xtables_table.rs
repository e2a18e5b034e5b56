//! Any bytes as the kernel's answer to a request for a table: nothing panics, and what is listed can be read.
//!
//! The input is the first byte, which chooses the family, `struct ipt_getinfo` of 84 bytes, then the entries.

use sluicegate_iptables_save::{Family, Save};
use sluicegate_xtables::legacy::RawTable;
use sluicegate_xtables::{Kind, NoSets, codecs, decode_extension};

pub(crate) fn run(data: &[u8]) {
    let Some((choice, bytes)) = data.split_first() else { return };
    let family = if choice & 1 == 0 { Family::Ipv4 } else { Family::Ipv6 };
    for codec in codecs() {
        let mut data = bytes.to_vec();
        data.resize(codec.size(), 0);
        let module =
            decode_extension(codec.kind(), codec.kernel_name(), codec.revision(), &data, family, &NoSets);
        assert!(module.is_none_or(|module| !module.name.is_empty()));
    }
    let _ = decode_extension(Kind::Match, "mark", 1, bytes, family, &NoSets);
    let Some((info, entries)) = bytes.split_at_checked(84) else { return };
    let raw = RawTable::new(family, "filter".to_owned(), info.to_vec(), entries.to_vec());
    if let Ok(table) = raw.list(true, &NoSets) {
        let text = table.to_string();
        Save::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    }
}
