//! The example `ensure-rule`: the rule is added once.

#[test]
fn a_rule_is_added_once() {
    testns::netns(|| {
        let first = testns::run_example("ensure-rule", &[]);
        assert!(first.starts_with("# the rule was added\n*filter\n"), "{first}");
        let second = testns::run_example("ensure-rule", &[]);
        assert!(second.starts_with("# the rule is there\n*filter\n"), "{second}");
        assert_eq!(second.matches("--dport 22 ").count(), 1, "{second}");
    });
}
