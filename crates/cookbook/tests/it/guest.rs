//! Recipes for IPVS, in a kernel that has it.

use super::recipes::{OF_GUESTS, run, wrong};

#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn recipes_of_guests_print_what_the_guide_shows() {
    if testns::guest().is_none() {
        return testns::skip("this is no guest kernel");
    }
    let all_wrong: Vec<_> = OF_GUESTS.iter().filter_map(|name| wrong(name, &run(name))).collect();
    assert!(all_wrong.is_empty(), "{}", all_wrong.join("\n\n"));
}
