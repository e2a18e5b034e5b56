//! The words of a rule exactly as iptables-save prints them.
//!
//! `Spec` writes words that read back the same. The tool has habits of its own, each in the plug-in of one
//! extension: text that is always quoted, options that it prints in another order than it documents them.

use sluicegate_iptables_save::{Error, Module, OptionUse, Spec, Target};

/// Returns the words of a rule.
pub(crate) fn words(spec: &Spec<'_>) -> Result<String, Error> {
    let mut modules = spec.matches.iter().chain(spec.target.as_ref().map(|target| &target.module));
    if !modules.any(|module| has_habits(&module.name)) {
        return spec.to_words();
    }
    let mut parts = vec![Spec { generic: spec.generic.clone(), ..Spec::default() }.to_words()?];
    for module in &spec.matches {
        parts.push(match always_quoted("-m", module) {
            Some(text) => text,
            None => {
                let words = Spec { matches: vec![in_printed_order(module)], ..Spec::default() }.to_words()?;
                // The tool prints two blanks.
                if module.name == "nfacct" { words.replacen("-name ", "-name  ", 1) } else { words }
            }
        });
    }
    if let Some(target) = &spec.target {
        parts.push(match always_quoted("-j", &target.module) {
            Some(text) => text,
            None => {
                let target = Target { module: in_printed_order(&target.module), goto: target.goto };
                Spec { target: Some(target), ..Spec::default() }.to_words()?
            }
        });
    }
    parts.retain(|part| !part.is_empty());
    Ok(parts.join(" "))
}

/// Returns whether the tool prints an extension in another way than its options tell.
fn has_habits(name: &str) -> bool {
    let other = ["CONNMARK", "HMARK", "ecn", "nfacct", "rateest"];
    other.contains(&name) || QUOTED.iter().any(|(quoted, _)| *quoted == name)
}

/// Returns the words of a match or target whose text the tool puts in quotes whatever it is.
fn always_quoted(option: &str, module: &Module<'_>) -> Option<String> {
    let quoted = QUOTED.iter().find(|(name, _)| *name == module.name)?.1;
    let mut words = format!("{option} {}", module.name);
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
        "rateest" => rateest(&mut module),
        _ => (),
    }
    module
}

/// The names depend on whether two estimators are compared. Of bytes and packets the tool prints the
/// comparison twice, which it does not read again; here it stands once.
fn rateest(module: &mut Module<'_>) {
    let has = |name: &str| module.option(name).is_some();
    let (delta, between_two, bytes) = (has("rateest-delta"), has("rateest2"), has("rateest-bps2"));
    module.options.sort_by_key(|option| match &*option.name {
        "rateest-delta" => 0,
        "rateest1" => 1,
        "rateest-bps1" => 2,
        "rateest-bps2" => 4,
        "rateest-pps1" => {
            if bytes {
                5
            } else {
                2
            }
        }
        "rateest-pps2" => 6,
        "rateest2" => 7,
        _ => 3,
    });
    for option in &mut module.options {
        match &*option.name {
            "rateest1" if !between_two => option.name = "rateest".into(),
            "rateest-bps2" if !delta => option.name = "rateest-bps".into(),
            "rateest-pps2" if !delta => option.name = "rateest-pps".into(),
            _ => (),
        }
    }
}

/// Matches and targets whose text is always quoted, and the options with that text.
const QUOTED: &[(&str, &[&str])] = &[
    ("string", &["string", "hex-string"]),
    ("connlabel", &["label"]),
    ("u32", &["u32"]),
    ("bpf", &["bytecode"]),
    ("LED", &["led-trigger-id"]),
];
