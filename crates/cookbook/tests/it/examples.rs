//! What callers of each crate use most has an example in its documentation.
//!
//! The lists are those items that the recipes, the examples and the programs of this repository name most.

use std::fs;
use std::path::Path;

use super::links::root;

/// A file below `src` of a crate, and the names of items in it.
type Items = (&'static str, &'static [&'static str]);

/// The ten of each crate, or more.
const ITEMS: &[(&str, &[Items])] = &[
    (
        "chain-names",
        &[
            ("service_port.rs", &["ServicePort", "Protocol"]),
            ("endpoint.rs", &["Endpoint"]),
            (
                "kube_proxy.rs",
                &[
                    "IptablesNames",
                    "NftablesNames",
                    "NftablesEndpointNames",
                    "is_iptables_chain",
                    "is_nftables_chain",
                ],
            ),
            ("scheme.rs", &["Scheme"]),
            ("hashing.rs", &["Hashing"]),
        ],
    ),
    (
        "conntrack",
        &[
            ("client.rs", &["Client", "Table"]),
            ("filter.rs", &["Filter", "StatusMatch", "AddressPort"]),
            ("tuple.rs", &["Tuple", "Layer4"]),
            ("flow.rs", &["Flow"]),
            ("new_flow.rs", &["NewFlow"]),
            ("change.rs", &["FlowChange"]),
            ("monitor.rs", &["Monitor", "Event"]),
            ("format.rs", &["Format"]),
            ("error.rs", &["Error"]),
        ],
    ),
    (
        "ipset",
        &[
            ("client.rs", &["Client"]),
            ("set_type/mod.rs", &["SetType"]),
            ("family.rs", &["Family"]),
            ("entry/mod.rs", &["Entry"]),
            ("name.rs", &["SetName"]),
            ("names.rs", &["Names", "Numeric"]),
            ("spec/mod.rs", &["SetSpec", "CreateOptions"]),
            ("message.rs", &["Exist"]),
            ("render.rs", &["Style"]),
            ("info.rs", &["Listing"]),
            ("error.rs", &["Error"]),
        ],
    ),
    (
        "iptables-save",
        &[
            ("tree.rs", &["Save", "Table", "Chain", "Rule", "Counters"]),
            ("spec.rs", &["Spec"]),
            ("state.rs", &["State"]),
            ("ext.rs", &["Family", "Extension"]),
            ("check.rs", &["check_line"]),
            ("diff.rs", &["diff"]),
            ("listing.rs", &["Listing"]),
            ("error.rs", &["Error"]),
        ],
    ),
    (
        "ipvs",
        &[
            ("client.rs", &["Client"]),
            ("service.rs", &["Endpoint", "ServiceId", "ServiceConfig"]),
            ("destination.rs", &["Forward", "DestinationConfig"]),
            ("diff.rs", &["Table"]),
            ("command.rs", &["Command"]),
            ("drain.rs", &["Drain"]),
            ("text/parse.rs", &["parse"]),
        ],
    ),
    (
        "netlink",
        &[
            ("socket.rs", &["Socket", "Options", "NetlinkFamily"]),
            ("batch.rs", &["Batch"]),
            ("attr.rs", &["Writer", "Attributes"]),
            ("scripted.rs", &["Script"]),
            ("transport.rs", &["Transport"]),
            ("errno.rs", &["Errno"]),
            ("error.rs", &["Error"]),
        ],
    ),
    (
        "nftables",
        &[
            ("family.rs", &["Family"]),
            ("name/mod.rs", &["Name"]),
            ("transaction/mod.rs", &["Transaction"]),
            ("object/id.rs", &["TableId", "ChainId"]),
            ("object/table/mod.rs", &["Table"]),
            ("object/chain/mod.rs", &["Chain"]),
            ("object/rule/mod.rs", &["Rule"]),
            ("object/set/mod.rs", &["Set"]),
            ("object/element/mod.rs", &["Element"]),
            ("tree/statement.rs", &["Match"]),
            ("tree/expression.rs", &["Expression"]),
            ("expr/verdict.rs", &["Verdict"]),
            ("read/mod.rs", &["ruleset"]),
            ("monitor/mod.rs", &["Monitor"]),
        ],
    ),
    (
        "service-rules",
        &[
            ("nftables/settings.rs", &["Settings", "Layout"]),
            ("nftables/applier.rs", &["Applier"]),
            ("nftables/planner.rs", &["Planner"]),
            ("iptables/planner.rs", &["Planner"]),
            ("iptables/counters.rs", &["Counters"]),
            ("summary.rs", &["Summary"]),
            ("backend.rs", &["Backend"]),
            ("masquerade.rs", &["MasqueradeBit"]),
            ("explain/mod.rs", &["Question", "explain"]),
        ],
    ),
    (
        "services",
        &[
            ("address.rs", &["Family"]),
            ("cluster.rs", &["Cluster"]),
            ("name.rs", &["ServiceName", "Protocol"]),
            ("node.rs", &["Node"]),
            ("service.rs", &["Service", "Port"]),
            ("slice.rs", &["Slice", "SliceName", "SlicePort", "SliceEndpoint"]),
            ("local.rs", &["DetectLocal"]),
        ],
    ),
    (
        "xtables",
        &[
            ("client.rs", &["Client"]),
            ("nft.rs", &["Client"]),
            ("legacy.rs", &["Client", "Restore"]),
            ("back_end.rs", &["BackEnd"]),
            ("error.rs", &["Error"]),
            ("foreign.rs", &["View"]),
            ("rule.rs", &["Rule"]),
            ("extension.rs", &["codecs_of", "decode_extension"]),
        ],
    ),
];

/// Returns the documentation of an item of a source: the comment above it and its attributes.
fn documentation<'a>(source: &'a str, name: &str) -> Option<Vec<&'a str>> {
    let lines: Vec<_> = source.lines().collect();
    let is_item = |line: &&str| -> bool {
        let rest = ["struct ", "enum ", "trait ", "fn "]
            .iter()
            .find_map(|kind| line.strip_prefix("pub ")?.strip_prefix(kind)?.strip_prefix(name));
        rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_'))
    };
    let at = lines.iter().position(is_item)?;
    let above = lines[..at].iter().rev().take_while(|line| !line.is_empty() && **line != "}");
    Some(above.filter(|line| line.starts_with("///")).copied().collect())
}

#[test]
fn what_is_used_most_has_an_example() {
    let mut lacking = Vec::new();
    for (crate_, files) in ITEMS {
        let mut items = 0;
        for (file, names) in *files {
            let path = Path::new("crates").join(crate_).join("src").join(file);
            let source = fs::read_to_string(root().join(&path)).expect("a source");
            for name in *names {
                items += 1;
                let place = format!("{}: {name}", path.display());
                match documentation(&source, name) {
                    None => lacking.push(format!("{place} is not there")),
                    Some(lines) if lines.iter().all(|line| !line.contains("```")) => lacking.push(place),
                    Some(_) => {}
                }
            }
        }
        assert!(items >= 10, "{crate_}: {items} items");
    }
    assert!(lacking.is_empty(), "no example for\n{}", lacking.join("\n"));
}
