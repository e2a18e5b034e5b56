//! The `nftables-reconcile` example: in memory and in a namespace, the second sync changes what differs and
//! nothing else.

#[allow(dead_code, reason = "other tests compare with the real tools")]
mod side_by_side;

use std::process::Command;

use side_by_side::example;

const LISTS: [&str; 6] = ["22", "80=10.0.0.0/8", "--", "22", "443", "80=10.0.0.0/8"];

/// What the first list makes, and what the second adds to it: the rule for port 80 stays.
const SAID: &str = "\
# 1 table, 1 chain, 3 rules, 1 set, 1 element added
add table inet reconcile-example
add set inet reconcile-example open { type inet_service ; flags interval ; }
add chain inet reconcile-example input { type filter hook input priority 0 ; policy drop ; }
add element inet reconcile-example open { 22 }
add rule inet reconcile-example input ct state established accept
add rule inet reconcile-example input tcp dport @open accept
add rule inet reconcile-example input ip saddr 10.0.0.0/8 tcp dport 80 counter accept

# 1 element added
add element inet reconcile-example open { 443 }

";

fn run(arguments: &[&str]) -> (bool, String, String) {
    let output =
        Command::new(example("nftables-reconcile")).args(arguments).output().expect("the example runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn the_second_list_changes_only_what_differs() {
    let arguments: Vec<&str> = ["--fake"].into_iter().chain(LISTS).collect();
    assert_eq!(run(&arguments), (true, SAID.to_owned(), String::new()));
}

#[test]
fn a_kernel_is_brought_along_as_the_fake_is() {
    testns::netns(|| {
        assert_eq!(run(&LISTS), (true, SAID.to_owned(), String::new()));
        let (_, again, _) = run(&["22", "443", "80=10.0.0.0/8"]);
        assert_eq!(again, "# nothing to change\n\n");
    });
}

#[test]
fn help_says_how_it_is_used() {
    let (success, said, _) = run(&["--help"]);
    assert!(success && said.starts_with("usage: nftables-reconcile"), "{said}");
}
