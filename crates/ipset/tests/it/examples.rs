//! The example `blocklist`: the set has what the arguments name, by the smallest change.

#[test]
fn a_blocklist_follows_its_arguments() {
    testns::netns(|| {
        let first = testns::run_example("blocklist", &["192.0.2.0/24", "198.51.100.7"]);
        assert!(first.starts_with("# 2 added, 0 deleted\ncreate blocklist hash:net "), "{first}");
        let second = testns::run_example("blocklist", &["192.0.2.0/24", "203.0.113.0/24"]);
        assert!(second.starts_with("# 1 added, 1 deleted\n"), "{second}");
        assert!(second.contains("add blocklist 203.0.113.0/24"), "{second}");
    });
}
