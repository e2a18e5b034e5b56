//! Any bytes as the attributes of a rule that the kernel gives back: nothing panics, and what is listed can be
//! read.
//!
//! The first byte chooses the family, the rest is the attributes of `NFT_MSG_NEWRULE`.
use sluicegate_iptables_save::{Family, Save};
use sluicegate_nftables::netlink::attr::{self, Attributes};
use sluicegate_nftables::read;
use sluicegate_xtables::NoSets;
use sluicegate_xtables::nft::RawTable;

pub(crate) fn run(data: &[u8]) {
    let Some((choice, bytes)) = data.split_first() else { return };
    let (family, of_rule) = match choice & 1 {
        0 => (Family::Ipv4, sluicegate_nftables::Family::IP),
        _ => (Family::Ipv6, sluicegate_nftables::Family::IP6),
    };
    let Ok(rule) = read::Rule::decode(of_rule, Attributes::new(bytes)) else { return };
    // `NFTA_CHAIN_TABLE` and `NFTA_CHAIN_NAME`
    let chain = attr::encode(|w| {
        w.put_str(1, "filter");
        w.put_str(3, &rule.chain);
    });
    let Ok(chain) = chain else { return };
    let Ok(chain) = read::Chain::decode(of_rule, Attributes::new(&chain)) else { return };
    let name = "filter".to_owned();
    let table = RawTable::new(family, name, vec![chain], vec![rule]);
    if let Ok(listed) = table.list(true, &NoSets) {
        let text = listed.to_string();
        Save::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    }
}
