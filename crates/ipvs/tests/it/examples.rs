//! The example `virtual-server`: it prints the commands between two states.

#[test]
fn the_commands_between_two_states_are_printed() {
    let printed = testns::run_example("virtual-server", &[]);
    assert_eq!(
        printed,
        "-E -t 10.96.0.10:80 -s sh\n\
         -e -t 10.96.0.10:80 -r 10.244.1.7:8080 -m -w 0\n\
         -a -t 10.96.0.10:80 -r 10.244.1.9:8080 -m -w 1\n"
    );
}
