//! The example `raw-request`: the kernel answers it.

#[test]
fn a_raw_request_is_answered() {
    testns::netns(|| {
        let answer = testns::run_example("raw-request", &[]);
        // NFTA_GEN_ID, four bytes.
        assert!(answer.starts_with("attribute 1: [00, "), "{answer}");
    });
}
