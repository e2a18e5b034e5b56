//! Any text as a save, as a rule and as a line to check: nothing panics, an untouched tree renders the input,
//! the typed view written again reads as itself, a normal form is its own normal form, and a state does not
//! differ from itself.

use sluicegate_iptables_save::{
    Family, Limits, Place, Save, Spec, State, check, check_line, decode, diff, encode, normalise, quote,
    split,
};

pub(crate) fn run(data: &[u8]) {
    if let Ok(save) = Save::parse_bytes(data) {
        assert_eq!(save.to_bytes(), data);
    }
    let text = decode(data);
    assert_eq!(*encode(&text), *data);
    let text = &*text;
    for line in text.lines() {
        rule(line);
        let _ = check_line(line);
    }
    let mut limits = Limits::default();
    (limits.input, limits.line, limits.lines) = (1 << 20, 1 << 16, 1 << 14);
    let Ok(save) = Save::parse_within(text, limits) else { return };
    assert_eq!(save.to_string(), text);
    for rule in save.tables().flat_map(sluicegate_iptables_save::Table::rules) {
        let _ = rule.spec();
    }
    let Ok(state) = State::of(&save) else { return };
    if let Ok(changes) = diff(&state, &state, |_, _| true) {
        assert_eq!(changes.to_string(), "");
    }
    if let Ok(normal) = state.normal() {
        let again = Save::parse(&normal).expect("a normal form can be read");
        let again = State::of_family(&again, state.family()).expect("and done");
        assert_eq!(again.normal().expect("and normalised"), normal);
    }
}

/// A line as the words of a rule.
fn rule(line: &str) {
    // No line that a C program reads has one, and no quoting carries it.
    if line.contains('\0') {
        return;
    }
    for word in split(line).flatten() {
        let quoted = quote(&word.text).expect("a word of a line");
        let back: Vec<_> = split(&quoted).map(|word| word.expect("closed").text.into_owned()).collect();
        assert_eq!(back, [word.text.into_owned()]);
    }
    for family in [Family::Ipv4, Family::Ipv6] {
        let _ = check(line, Place { table: "nat", chain: "X", family });
        let Ok(spec) = Spec::read_as(line, family) else { continue };
        let words = spec.to_words().expect("words of a line");
        let again = Spec::read_as(&words, family).unwrap_or_else(|error| panic!("{words}: {error}"));
        assert_eq!(again.to_words().expect("words of a line"), words);
        let normals = match normalise(line, family) {
            Ok(normals) => normals,
            Err(error) => {
                assert!(error.is_limit(), "{line}: {error}");
                continue;
            }
        };
        for normal in normals {
            assert_eq!(
                normalise(&normal, family).unwrap_or_else(|error| panic!("{normal}: {error}")),
                [normal.clone()]
            );
        }
    }
}
