//! ipset's commands, types of sets, and the sets that there are.

use sluicegate_ipset::{Client, SetType};

use super::texts;

pub(super) fn offered(before: &[&str]) -> Vec<String> {
    let words: Vec<_> = before.iter().filter(|word| !word.starts_with('-')).collect();
    match words.as_slice() {
        [] => texts(COMMANDS),
        [command, names @ ..] => match (**command, names.len()) {
            ("create" | "-N", 1) => SetType::ALL.iter().map(ToString::to_string).collect(),
            ("rename", 0) | ("swap", 0 | 1) => sets(),
            ("add" | "del" | "test" | "list" | "save" | "flush" | "destroy", 0) => sets(),
            _ => Vec::new(),
        },
    }
}

fn sets() -> Vec<String> {
    let names = Client::open().and_then(|mut client| client.names()).unwrap_or_default();
    names.iter().map(ToString::to_string).collect()
}

const COMMANDS: [&str; 13] = [
    "add", "create", "del", "destroy", "flush", "help", "list", "rename", "restore", "save", "swap", "test",
    "version",
];
