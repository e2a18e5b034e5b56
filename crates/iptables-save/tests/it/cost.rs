//! The memory that reading takes: no allocation for a word, and no more than in proportion to the input.

use allocation_counter::measure;
use sluicegate_iptables_save::{Error, Limits, Rule, Save, Spec, split};

fn save_of(rules: usize) -> String {
    let rule = "-A X -s 10.0.0.1/32 -p tcp -m comment --comment \"a b\" -m tcp --dport 80 -j ACCEPT\n";
    format!("*filter\n:X - [0:0]\n{}COMMIT\n", rule.repeat(rules))
}

#[test]
fn parsing_allocates_for_the_lists_of_lines_alone() {
    let (small, large) = (save_of(1000), save_of(4000));
    let count = |text: &str| measure(|| drop(Save::parse(text))).count_total;
    // A list that doubles: two more steps for four times the lines.
    assert!(count(&small) <= 16, "{}", count(&small));
    assert!(count(&large) <= count(&small) + 2, "{}", count(&large));
}

#[test]
fn splitting_into_words_allocates_nothing() {
    let text = "-s 10.0.0.1/32 -p tcp -m comment --comment \"a b\" -m tcp --dport 80 -j ACCEPT";
    assert_eq!(measure(|| assert_eq!(split(text).count(), 14)).count_total, 0);
}

#[test]
fn the_typed_view_allocates_for_modules_not_for_words() {
    let few = Rule::parse("-A X -p tcp -m tcp --dport 80 -j ACCEPT").expect("a rule");
    let many = Rule::parse(
        "-A X -p tcp -m tcp --dport 80 --sport 1:2 --tcp-option 2 --tcp-flags SYN,ACK SYN -j ACCEPT",
    )
    .expect("a rule");
    let count = |rule: &Rule<'_>| measure(|| drop(rule.spec().expect("a rule"))).count_total;
    // The index of all extensions is made when the first one is looked up.
    let _ = count(&few);
    assert_eq!(count(&few), count(&many));
    assert!(count(&few) <= 5, "{}", count(&few));
}

#[test]
fn rendering_allocates_for_the_text_alone() {
    let text = save_of(4000);
    let save = Save::parse(&text).expect("a save");
    assert!(measure(|| drop(save.to_string())).count_total <= 32);
}

#[test]
fn a_hundred_megabytes_and_a_line_of_a_megabyte_are_read_or_refused() {
    let large = save_of(100_000_000 / 82);
    let save = Save::parse(&large).expect("within the default limits");
    assert_eq!(save.tables().next().expect("a table").rules().count(), 100_000_000 / 82);
    drop(save);
    let mut tight = Limits::default();
    tight.input = 50_000_000;
    assert!(Save::parse_within(&large, tight).expect_err("too large").is_limit());

    let words = "--comment x ".repeat(1_000_000 / 12);
    let long = format!("*filter\n-A X -m comment {words}\nCOMMIT\n");
    let save = Save::parse(&long).expect("within the default limits");
    let rule = save.tables().next().expect("a table").rules().next().expect("a rule");
    assert!(matches!(rule.spec().expect_err("too many options"), Error::Limit { .. }));
    assert!(Spec::read(&"-m comment ".repeat(90_000)).expect_err("too many modules").is_limit());

    let longer = format!("*filter\n-A X {}\nCOMMIT\n", "x".repeat(2_000_000));
    assert_eq!(
        Save::parse(&longer).expect_err("too long").to_string(),
        "line 2: the line, in bytes, is 2000006, over the limit of 1048576"
    );
}
