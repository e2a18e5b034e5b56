//! The example `reconcile`: in memory and in a namespace, the second sync changes what differs and
//! nothing else.

use testns::run_example;

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

#[test]
fn the_second_list_changes_only_what_differs() {
    let arguments: Vec<&str> = ["--fake"].into_iter().chain(LISTS).collect();
    assert_eq!(run_example("reconcile", &arguments), SAID);
}

#[test]
fn a_kernel_is_brought_along_as_the_fake_is() {
    testns::netns(|| {
        assert_eq!(run_example("reconcile", &LISTS), SAID);
        assert_eq!(run_example("reconcile", &["22", "443", "80=10.0.0.0/8"]), "# nothing to change\n\n");
    });
}

#[test]
fn a_firewall_is_printed_and_applied() {
    let script = run_example("firewall", &[]);
    assert!(script.contains("add rule inet demo input tcp dport 22 accept\n"), "{script}");
    testns::netns(|| {
        let applied = run_example("firewall", &["--apply"]);
        assert!(applied.starts_with(&script) && applied.contains("# applied: "), "{applied}");
    });
}

#[test]
fn features_of_the_kernel_are_listed() {
    testns::netns(|| {
        let features = run_example("features", &[]);
        let of_ip = features.lines().find(|line| line.starts_with("expressions of family ip: "));
        assert!(of_ip.is_some_and(|line| line.split(' ').any(|name| name == "payload")), "{features}");
    });
}
