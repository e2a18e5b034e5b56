//! The example `embed-services`: what it prints is the plan, the two syncs and what they left in the fake
//! kernel.

#[test]
fn services_made_by_hand_are_planned_and_applied() {
    let text = testns::run_example("embed-services", &[]);
    let (plan, rest) = text.split_once("# first sync: ").expect("a first sync");
    assert!(plan.contains("172.30.0.41 . 80 . 1 : 10.244.2.9 . 8080"), "{plan}");
    let (_, rest) = rest.split_once("# one endpoint moved: ").expect("a second sync");
    let (second, listing) = rest.split_once('\n').expect("a listing");
    assert!(second.starts_with("0 objects, 0 rules, "), "{second}");
    for present in ["10.244.1.7 . 8080", "10.244.3.3 . 8080", "30080 : 0:2"] {
        assert!(listing.contains(present), "{present} is not in\n{listing}");
    }
    assert!(!listing.contains("10.244.2.9"), "{listing}");
}
