//! The example `endpoints`: terminating endpoints get traffic only where no other is left.

#[test]
fn terminating_endpoints_are_the_last_resort() {
    assert_eq!(
        testns::run_example("endpoints", &[]),
        "0 terminating: traffic to 10.244.1.7:8080, 10.244.2.9:8080\n\
         1 terminating: traffic to 10.244.2.9:8080\n\
         2 terminating: traffic to 10.244.1.7:8080, 10.244.2.9:8080\n"
    );
}
