//! The matrix of connections on this machine's kernel.

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

/// Every packet is followed, so that a hash which `explain` computes otherwise than the kernel shows.
#[test]
fn every_scheduler_leads_where_it_is_explained() {
    if testns::Netns::new().is_none() {
        return;
    }
    beside(&["round-robin", "source-hash", "maglev"], |scheduler| {
        for layout in ["maps", "chains"] {
            let arguments =
                ["matrix", "--layout", layout, "--scheduler", scheduler, "--trace", "--one-of", "41"];
            let (ok, table, errors) = lab(&arguments);
            println!("{layout} {scheduler}: {table}");
            assert!(ok, "{table}{errors}");
        }
    });
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
