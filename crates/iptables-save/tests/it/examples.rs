//! The example `smallest-change`: one rule is new, and the one in other words stays.

#[test]
fn only_the_new_rule_is_printed() {
    assert_eq!(
        testns::run_example("smallest-change", &[]),
        "*filter\n\
         -A WEB -p tcp -m tcp --dport 443 -m comment --comment \"since March\" -j ACCEPT\n\
         COMMIT\n"
    );
}
