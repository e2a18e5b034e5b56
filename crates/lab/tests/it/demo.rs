//! The demonstration.

use std::process::Command;

#[test]
fn the_program_runs_from_any_directory() {
    // Where no namespace can be made, this says so.
    if testns::Netns::new().is_none() {
        return;
    }
    let output = Command::new(env!("CARGO_BIN_EXE_sluicegate-lab"))
        .args(["demo", "--services", "20"])
        .current_dir("/")
        .output()
        .expect("the command");
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{text}{errors}");
    assert!(text.contains("answers are as they should be"), "{text}{errors}");
    assert!(text.contains("20 services with 5 endpoints each"), "{text}{errors}");
}
