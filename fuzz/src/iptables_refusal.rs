//! Any text as what `iptables-restore` says when it fails, and any input that it failed with, separated by a
//! NUL: nothing panics, a line that is named is a line of the input, and a passing failure is not taken for
//! an answer.

use sluicegate_iptables_save::{Cause, Refusal};

pub(crate) fn run(text: &str) {
    let (words, input) = text.split_once('\0').unwrap_or((text, "*filter\n-A INPUT -j NOWHERE\nCOMMIT\n"));
    for status in [None, Some(1), Some(2), Some(4)] {
        let refusal = Refusal::read("iptables-restore", status, words, input);
        assert_eq!(refusal.status, status);
        if let Some(line) = &refusal.text {
            let number = refusal.line.expect("a text has a line");
            assert_eq!(input.lines().nth(number - 1), Some(line.as_str()));
        }
        let is_passing = ["Cannot allocate memory", "Interrupted system call", "Too many open files"]
            .iter()
            .any(|part| refusal.message.contains(part));
        assert!(!is_passing || refusal.cause != Cause::Unsupported, "{refusal:?}");
        assert!(!refusal.to_string().is_empty());
    }
}
