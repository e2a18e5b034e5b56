//! Convert rules of iptables-save to nftables, and refuse what has no translation here.

use std::error::Error;

use sluicegate_iptables_save::{Save, Spec, Table};
use sluicegate_nftables::{Family, Rule, TableId};

const SAVED: &str = "*filter\n:INPUT DROP [0:0]\n-A INPUT -i lo -j ACCEPT\n\
    -A INPUT -s 10.0.0.0/8 -p tcp -m tcp --dport 22 -j ACCEPT\n-A INPUT -m recent --update --name x -j DROP\nCOMMIT\n";

pub fn main() -> Result<(), Box<dyn Error>> {
    let chain = TableId::new(Family::IP, "filter".parse()?).chain("INPUT".parse()?);
    for rule in Save::parse(SAVED)?.table("filter").into_iter().flat_map(Table::rules) {
        match translated(&rule.spec()?) {
            // Parsed as a typed rule: what is printed here is a rule, whatever came in.
            Some(words) => println!("{rule}    add {}", Rule::parse(&chain, &words)?),
            None => println!("{rule}    not translated: a rule without one of its matches would be wider"),
        }
    }
    Ok(())
}

/// `None` unless every option of the rule has its words.
fn translated(rule: &Spec<'_>) -> Option<String> {
    let mut words = String::new();
    for option in rule.generic.iter().chain(rule.matches.iter().flat_map(|module| &module.options)) {
        let is = if option.negated { "!= " } else { "" };
        words += &match (&*option.name, option.value()) {
            ("in-interface", Some(name)) if !name.contains('+') => format!("iifname {is}\"{name}\" "),
            ("source", Some(network)) => format!("ip saddr {is}{network} "),
            ("protocol", Some("tcp")) if is.is_empty() => "meta l4proto tcp ".to_owned(),
            ("destination-port", Some(port)) => format!("tcp dport {is}{} ", port.replace(':', "-")),
            _ => return None,
        };
    }
    Some(
        words
            + match rule.target_name()? {
                "ACCEPT" => "accept",
                "DROP" => "drop",
                _ => return None,
            },
    )
}
