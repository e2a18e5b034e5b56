//! All fuzz targets in one program, linked once: `SLUICEGATE_FUZZ_TARGET` names the one that runs. A file for
//! each; a crate adds one, with its line in `TARGETS`, and what it likes to `corpus/TARGET`. An input that once failed
//! goes to `regressions/TARGET`.
#![no_main]

mod chain_names;
mod config;
mod conntrack_dump;
mod http_accept;
mod ipset_dump;
mod ipset_text;
mod iptables_refusal;
mod iptables_save;
mod ipvs;
mod kube_decode;
mod manifests;
mod nfacct;
mod nft_follow;
mod nft_json;
mod nft_listing;
mod nft_reconcile;
mod nft_text;
mod nftables_dump;
mod xtables_nft;
mod xtables_rule;
mod xtables_table;

use std::env;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| TARGET(data));

type Target = fn(&[u8]);

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = env::var("SLUICEGATE_FUZZ_TARGET").expect("SLUICEGATE_FUZZ_TARGET names a target");
    let found = TARGETS.iter().find(|(target, _)| *target == name);
    found.unwrap_or_else(|| panic!("no target is called {name}")).1
});

const TARGETS: &[(&str, Target)] = &[
    ("chain-names", chain_names::run),
    ("config", |data| config::run(text(data))),
    ("conntrack-dump", conntrack_dump::run),
    ("http-accept", |data| http_accept::run(text(data))),
    ("ipset-dump", ipset_dump::run),
    ("ipset-text", |data| ipset_text::run(text(data))),
    ("iptables-refusal", |data| iptables_refusal::run(text(data))),
    ("iptables-save", iptables_save::run),
    ("ipvs", ipvs::run),
    ("kube-decode", kube_decode::run),
    ("manifests", |data| manifests::run(text(data))),
    ("nfacct", nfacct::run),
    ("nft-follow", nft_follow::run),
    ("nft-json", nft_json::run),
    ("nft-listing", nft_listing::run),
    ("nft-reconcile", |data| nft_reconcile::run(text(data))),
    ("nft-text", nft_text::run),
    ("nftables-dump", nftables_dump::run),
    ("xtables-nft", xtables_nft::run),
    ("xtables-rule", xtables_rule::run),
    ("xtables-table", xtables_table::run),
];

/// Returns the text that the bytes begin with.
fn text(data: &[u8]) -> &str {
    match str::from_utf8(data) {
        Ok(text) => text,
        Err(error) => str::from_utf8(&data[..error.valid_up_to()]).expect("it is valid up to there"),
    }
}
