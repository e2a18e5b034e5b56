//! The matrix of connections on this machine's kernel.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use std::thread;

fn lab(arguments: &[&str]) -> (bool, String, String) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_sluicegate-lab")).args(arguments).output().expect("the command");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (output.status.success(), text(output.stdout), text(output.stderr))
}

/// Makes matrices beside each other: most of each is waiting for an answer that may not come.
fn beside<T: Sync>(forms: &[T], matrix: impl Fn(&T) + Sync) {
    let matrix = &matrix;
    thread::scope(|scope| forms.iter().for_each(|form| drop(scope.spawn(move || matrix(form)))));
}

#[test]
fn every_connection_of_the_matrix_is_as_the_documentation_has_it() {
    if testns::Netns::new().is_none() {
        return;
    }
    beside(&["maps", "chains"], |layout| {
        let report = format!("{}/traffic-matrix-nftables-{layout}.tsv", env!("CARGO_TARGET_TMPDIR"));
        let (ok, table, errors) = lab(&["matrix", "--layout", layout, "--report", &report]);
        println!("{layout}: every case is in {report}\n{table}");
        assert!(ok, "{table}{errors}");
    });
}

/// Every packet is followed, so that a hash which `explain` computes otherwise than the kernel shows. Of the kinds of
/// service there must be some that leave a scheduler something to choose.
#[test]
fn every_scheduler_leads_where_it_is_explained() {
    if testns::Netns::new().is_none() {
        return;
    }
    let schedulers = ["round-robin", "source-hash", "maglev"];
    let forms = schedulers.map(|scheduler| ["maps", "chains"].map(|layout| (scheduler, layout)));
    beside(forms.as_flattened(), |&(scheduler, layout)| {
        let report = format!("{}/traffic-matrix-{scheduler}-{layout}.tsv", env!("CARGO_TARGET_TMPDIR"));
        let kind = ["--layout", layout, "--scheduler", scheduler, "--report", &report];
        // Few at a time: what follows the packets does not come behind.
        let some = ["matrix", "--trace", "--one-of", "15", "--workers", "16"];
        let (ok, table, errors) = lab(&[&some[..], &kind].concat());
        println!("{layout} {scheduler}: {table}");
        assert!(ok, "{table}{errors}");
        let chosen = chosen(&fs::read_to_string(&report).expect("the report"));
        for family in ["IPv4", "IPv6"] {
            for policy in ["internal Cluster", "internal Local", "external Cluster", "external Local"] {
                for protocol in ["TCP", "UDP"] {
                    let case = [family, protocol, policy].join(" ");
                    assert!(chosen.contains(&case), "{layout} {scheduler}: no case of {case}: {chosen:?}");
                }
            }
        }
    });
}

/// Returns family, protocol and traffic policy of the cases in which more than one endpoint could be chosen, and the
/// client's affinity did not choose it. `externalTrafficPolicy: Local` is about clients outside alone.
fn chosen(report: &str) -> BTreeSet<String> {
    let case = |line: &str| {
        let cells: Vec<_> = line.split('\t').collect();
        let [_, family, protocol, front, client, _, internal, external, extra, _, expected, ..] = cells[..]
        else {
            panic!("a line of the report: {line}");
        };
        let is_choice = [" and ", " or "].iter().any(|word| expected.contains(word)) && extra != "Affinity";
        let policy = match front {
            "ClusterIp" => format!("internal {internal}"),
            _ => format!("external {external}"),
        };
        let is_of_policy = front == "ClusterIp" || external == "Cluster" || client == "Outside";
        (is_choice && is_of_policy).then(|| format!("{family} {protocol} {policy}"))
    };
    report.lines().skip(1).filter_map(case).collect()
}

/// Of every kind of policy, endpoint and extra some.
#[test]
fn every_packet_goes_the_way_that_is_explained() {
    if testns::Netns::new().is_none() {
        return;
    }
    beside(&["maps", "chains"], |layout| {
        let (ok, table, errors) = lab(&["matrix", "--layout", layout, "--trace", "--one-of", "13"]);
        println!("{layout}: {table}");
        assert!(ok, "{table}{errors}");
    });
}

#[test]
fn every_connection_of_the_matrix_is_as_it_should_be_in_iptables_mode() {
    if testns::Netns::new().is_none() || !testns::have(&["iptables-legacy-restore", "iptables-nft-restore"]) {
        return;
    }
    beside(&["legacy", "nft"], |back_end| {
        let report = format!("{}/traffic-matrix-iptables-{back_end}.tsv", env!("CARGO_TARGET_TMPDIR"));
        let mode =
            ["matrix", "--proxy-mode", "iptables", "--iptables-backend", back_end, "--report", &report];
        let (ok, table, errors) = lab(&mode);
        println!("{back_end}: every case is in {report}\n{table}");
        assert!(ok, "{table}{errors}");
    });
}
