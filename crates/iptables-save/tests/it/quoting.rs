//! Quoting against the real tool: what is quoted, restored, saved and split again is the same word.

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, TestRunner};
use sluicegate_iptables_save::{Save, quote, quote_if_needed, split};
use testns::{feed, have, netns, sh};

/// Words that a comment can be: at most 255 bytes, with quotes, backslashes, blanks and control characters.
fn words() -> Vec<String> {
    let mut runner = TestRunner::new(Config::default());
    let word = prop_oneof![
        "[\"\\\\' a-c\t\r-]{0,20}",
        "[^\n\0]{0,40}",
        "[\u{1}-\u{9}\u{b}-\u{1f}\u{7f}]{0,9}",
        Just("x".repeat(255)),
    ];
    (0..300)
        .map(|_| word.new_tree(&mut runner).expect("a word").current())
        .filter(|word: &String| word.len() <= 255)
        .collect()
}

#[test]
fn the_tool_reads_and_prints_words_as_we_do() {
    let words = words();
    for back_end in ["legacy", "nft"] {
        let restore = format!("iptables-{back_end}-restore");
        if !have(&[&restore, &format!("iptables-{back_end}-save")]) {
            return;
        }
        netns(|| {
            for form in [quote, quote_if_needed] {
                let rules: String = words
                    .iter()
                    .map(|word| format!("-A X -m comment --comment {}\n", form(word).expect("one line")))
                    .collect();
                let output = feed(&[&restore], &format!("*filter\n:X - [0:0]\n{rules}COMMIT\n"));
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
                let text = sh(&format!("iptables-{back_end}-save -t filter"));
                let save = Save::parse(&text).expect("what the tool saves can be read");
                let rules: Vec<_> = save.tables().next().expect("a table").rules().collect();
                assert_eq!(rules.len(), words.len());
                for (rule, word) in rules.iter().zip(&words) {
                    assert_eq!(rule.spec().expect("a rule").comment(), Some(word.as_str()));
                    // And the tool quotes it as `quote` does.
                    assert_eq!(
                        rule.text(),
                        format!("-m comment --comment {}", quote(word).expect("one line"))
                    );
                    assert_eq!(split(rule.text()).count(), 4);
                }
            }
        });
    }
}
