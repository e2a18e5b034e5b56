//! Where counters start: what stands in front of a rule, what its words say (`-c`), and both, beside the tools.

use sluicegate_iptables_save::Save;
use sluicegate_xtables::{BackEnd, Error, legacy, nft};
use testns::{feed, netns};

use crate::tool::{Tool, assert_same};

/// Restores an input by the library, with or without `-c`, and lists the table with its counters.
fn ours(tool: Tool, input: &str, are_taken: bool) -> Result<String, Error> {
    let input = Save::parse(input).expect("an input");
    let listed = match tool.back_end {
        BackEnd::Nft => {
            let how = nft::Restore::default();
            let client = nft::Client::open(tool.family)?;
            client.restore(&input, if are_taken { how.counters() } else { how })?;
            client.list("filter", true)
        }
        _ => {
            let how = legacy::Restore::default();
            let client = legacy::Client::open(tool.family)?;
            client.restore(&input, if are_taken { how.counters() } else { how })?;
            client.list("filter", true)
        }
    };
    Ok(listed?.to_string())
}

/// The same by the tool, if it takes it.
fn theirs(tool: Tool, input: &str, are_taken: bool) -> Option<String> {
    let name = tool.name("-restore");
    let mut command = vec![name.as_str(), "--wait=20"];
    command.extend(are_taken.then_some("--counters"));
    feed(&command, input).status.success().then(|| tool.save("-c -t filter"))
}

#[test]
fn counters_in_the_words_of_a_rule_are_where_it_starts() {
    let lines = [
        "-A INPUT -c 5 600 -p tcp -j ACCEPT",
        "-A INPUT -p udp -c 7 800 -j ACCEPT",
        "-A INPUT -p udp -j ACCEPT --set-counters 1 2",
        "-c 3 4 -A INPUT -p udp -j ACCEPT",
        "[1:2] -A INPUT -p icmp -c 3 400 -j ACCEPT",
        "[1:2] -A INPUT -p icmp -j ACCEPT",
        "-I INPUT 1 -c 9 99 -j ACCEPT",
        "-A INPUT -s 192.0.2.1,192.0.2.2 -c 6 60 -j ACCEPT",
        "-A INPUT -c 5 600 -c 6 700 -j ACCEPT",
        "-A INPUT -c -j ACCEPT",
        "-A INPUT -c 5 -j ACCEPT",
        "-A INPUT -c x 5 -j ACCEPT",
        "-A INPUT -c 5 x -j ACCEPT",
        "-A INPUT -j DROP\n-C INPUT -j DROP -c 1 2",
        "-A INPUT -j DROP\n-D INPUT -c 1 2 -j DROP",
    ];
    for tool in Tool::of(BackEnd::Nft).into_iter().take(1).chain(Tool::of(BackEnd::Legacy)) {
        let is_here = tool.here();
        for (line, are_taken) in lines.iter().flat_map(|line| [(line, false), (line, true)]) {
            let input = format!("*filter\n:INPUT ACCEPT [0:0]\n{line}\nCOMMIT\n");
            if !is_here || line.contains("192.0.2") && tool.name("").starts_with("ip6") {
                continue;
            }
            netns(|| {
                // Each into a table of nothing else: what the tool made would be listed with ours.
                let theirs = theirs(tool, &input, are_taken);
                netns(|| match (ours(tool, &input, are_taken), theirs) {
                    (Ok(ours), Some(theirs)) => assert_same(&ours, &theirs, line),
                    (Err(_), None) => {}
                    (ours, theirs) => panic!("{} {line} {are_taken}: {ours:?}\n{theirs:?}", tool.name("")),
                });
            });
        }
    }
}
