//! Any text as a restore file: nothing panics, an error has a place inside the text, and what is read is
//! written so that it is read again as the same.
use sluicegate_ipset::{Numeric, SetType, text};

pub(crate) fn run(file: &str) {
    // The type of a set that the file does not create follows from its name, so that every type has its turn.
    let known = |set: &sluicegate_ipset::SetName| {
        let number = set.as_bytes().iter().map(|byte| usize::from(*byte)).sum::<usize>();
        let kind = SetType::ALL[number % SetType::ALL.len()];
        let families = kind.families();
        Some((kind, families[number / 16 % families.len()]))
    };
    match text::parse(file, &Numeric, known) {
        Err(error) => {
            let line = error.line.expect("a file has lines");
            let text = file.lines().nth(line as usize - 1).expect("the line exists");
            assert!((1..=text.chars().count() + 1).contains(&(error.column as usize)), "{error}");
        }
        Ok(lines) => {
            let written: String = lines.iter().map(|line| format!("{}\n", line.command)).collect();
            let again =
                text::parse(&written, &Numeric, known).unwrap_or_else(|error| panic!("{error}\n{written}"));
            let again: String = again.iter().map(|line| format!("{}\n", line.command)).collect();
            assert_eq!(again, written);
        }
    }
}
