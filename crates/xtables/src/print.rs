//! The words of a rule exactly as iptables-save prints them.
//!
//! `Spec` writes words that read back the same. The tool has habits of its own, each in the plug-in of one
//! extension: text that is always quoted, options that it prints in another order than it documents them.

use sluicegate_iptables_save::{Error, Module, OptionUse, Spec, Target};

/// Returns the words of a rule.
pub(crate) fn words(spec: &Spec<'_>) -> Result<String, Error> {
    let mut parts = vec![Spec { generic: spec.generic.clone(), ..Spec::default() }.to_words()?];
    for module in &spec.matches {
        parts.push(match always_quoted(module) {
            Some(text) => text,
            None => {
                let words = Spec { matches: vec![in_printed_order(module)], ..Spec::default() }.to_words()?;
                // The tool prints two blanks.
                if module.name == "nfacct" { words.replacen("-name ", "-name  ", 1) } else { words }
            }
        });
    }
    if let Some(target) = &spec.target {
        let target = Target { module: in_printed_order(&target.module), goto: target.goto };
        parts.push(Spec { target: Some(target), ..Spec::default() }.to_words()?);
    }
    parts.retain(|part| !part.is_empty());
    Ok(parts.join(" "))
}

/// Returns the words of a match whose text the tool puts in quotes whatever it is.
fn always_quoted(module: &Module<'_>) -> Option<String> {
    let quoted = QUOTED.iter().find(|(name, _)| *name == module.name)?.1;
    let mut words = format!("-m {}", module.name);
    for OptionUse { name, negated, values, .. } in &module.options {
        let not = if *negated { " !" } else { "" };
        words.push_str(&format!("{not} --{name}"));
        for value in values.as_slice() {
            match quoted.contains(&&**name) {
                true => words.push_str(&format!(" \"{}\"", escaped(value))),
                false => words.push_str(&format!(" {value}")),
            }
        }
    }
    (!words.contains(['\n', '\0'])).then_some(words)
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

/// Returns a module with its options in the order in which the tool prints them, where that is another one.
fn in_printed_order<'a>(module: &Module<'a>) -> Module<'a> {
    let mut module = module.clone();
    match &*module.name {
        "CONNMARK" => module.options.sort_by_key(|option| option.name.ends_with("shift-mark")),
        "HMARK" => module.options.sort_by_key(|option| option.name == "hmark-tuple"),
        "ecn" => module.options.sort_by_key(|option| match &*option.name {
            "ecn-tcp-ece" => 0,
            "ecn-tcp-cwr" => 1,
            _ => 2,
        }),
        _ => (),
    }
    module
}

/// Matches whose text is always quoted, and the options with that text.
const QUOTED: &[(&str, &[&str])] = &[
    ("string", &["string", "hex-string"]),
    ("connlabel", &["label"]),
    ("u32", &["u32"]),
    ("bpf", &["bytecode"]),
];
