//! Rules of the corpus with something changed: no text makes the parser panic, and what it takes prints as
//! what it reads
//! as the same again.

use sluicegate_nftables::lang::parse::ParseOptions;
use sluicegate_nftables::lang::{Expression, Mapping, NatTarget, Statement};
use sluicegate_nftables::{Family, Rule, TableId, Transaction};

use crate::language::format::contexts;
use crate::language::rules::is_sent_alike;

#[test]
fn what_is_taken_of_changed_rules_is_printed_and_read_as_the_same() {
    let mut options = ParseOptions::default();
    options.interfaces.extend([("lo".to_owned(), 1), ("d0".to_owned(), 2), ("d1".to_owned(), 3)]);
    let (mut dice, mut taken, mut failed) = (0x2545_f491_4f6c_dd1d_u64, 0, Vec::new());
    for context in &contexts() {
        let family: Family = context.family.parse().expect("a family");
        let chain = TableId::new(family, "t".parse().expect("a name")).chain("c".parse().expect("a name"));
        for rule in &context.rules {
            for _ in 0..4 {
                let text = changed(rule, &mut dice);
                let Ok(read) = Rule::parse_with(&chain, &text, &options) else { continue };
                taken += 1;
                failed.extend(again(&text, &read, &options).err());
            }
        }
    }
    assert!(taken >= 1000, "{taken} were taken");
    assert!(failed.is_empty(), "{}\n{} of {taken} fail", failed.join("\n"), failed.len());
}

/// Prints a rule, and reads what is printed.
fn again(text: &str, rule: &Rule, options: &ParseOptions<'_>) -> Result<(), String> {
    let alone = |rule: &Rule| {
        let mut transaction = Transaction::new();
        transaction.add(rule.clone());
        transaction
    };
    // Only what can be sent has words for all of it.
    if !is_sent_alike(&alone(rule), &alone(rule)) || rule.statements.iter().any(is_printed_as_another) {
        return Ok(());
    }
    let printed = rule.body().to_string();
    let read = Rule::parse_with(&rule.chain, &printed, options)
        .map_err(|error| format!("{text}\n  is printed {printed}\n{error}"))?;
    let same = read == *rule || is_sent_alike(&alone(&read), &alone(rule));
    if same && read.body().to_string() == printed {
        Ok(())
    } else {
        Err(format!("{text}\n  is printed {printed}\n  is read {}", read.body()))
    }
}

/// Whether nft prints a statement as another one, and so do we: both numbers of a synproxy where only one was
/// given, nothing for the kernel's own log level, and neither `addr . port` nor `interval` for a map, whose
/// values say it.
fn is_printed_as_another(statement: &Statement) -> bool {
    const WARN: u8 = 4;
    match statement {
        Statement::Synproxy(synproxy) => synproxy.mss.is_some() != synproxy.wscale.is_some(),
        Statement::Log(log) => log.level == Some(WARN),
        Statement::Dnat(nat) | Statement::Snat(nat) => {
            let is_named =
                |to: &Expression| matches!(to, Expression::Map(map) if matches!(map.map, Mapping::Named(_)));
            matches!(&nat.to, NatTarget::Interval(_))
                || matches!(&nat.to, NatTarget::Concat(to) if is_named(to))
        }
        _ => false,
    }
}

/// A word or a character taken out, doubled, or put in from elsewhere in the rule.
fn changed(rule: &str, dice: &mut u64) -> String {
    let mut roll = |sides: usize| {
        // xorshift64
        *dice ^= *dice << 13;
        *dice ^= *dice >> 7;
        *dice ^= *dice << 17;
        usize::try_from(*dice % sides.max(1) as u64).expect("it is below a usize")
    };
    let mut words: Vec<String> = rule.split(' ').map(str::to_owned).collect();
    let (one, other) = (roll(words.len()), roll(words.len()));
    match roll(6) {
        0 => drop(words.remove(one)),
        1 => words.insert(one, words[other].clone()),
        2 => words.swap(one, other),
        3 => words.truncate(one + 1),
        4 => {
            words[one] =
                ["0", "255", "65535", "4294967295", "0x10", "{", "}", "!=", "10.0.0.0/8", "::1", "\"x\""]
                    [roll(11)]
                .to_owned();
        }
        _ => {
            let characters: Vec<char> = words[one].chars().collect();
            let out = roll(characters.len());
            words[one] = characters.iter().enumerate().filter(|(i, _)| *i != out).map(|(_, c)| *c).collect();
        }
    }
    words.join(" ")
}
