//! The names of values, against `nft describe`.

use std::collections::HashMap;

use sluicegate_nftables::{DataType, Order};

/// What has to be described to see the values of a type: some types have no word of their own there.
fn subject(of: DataType) -> &'static str {
    match of {
        DataType::ECN => "ip ecn",
        // There `time` is the type of `meta time`.
        DataType::TIME => "ct expiration",
        DataType::CT_EVENT => "ct event",
        DataType::CT_LABEL => "ct label",
        of => of.name(),
    }
}

fn describe(of: DataType) -> String {
    let output = std::process::Command::new("nft").arg("describe").args(subject(of).split(' ')).output();
    String::from_utf8(output.expect("nft").stdout).expect("text")
}

/// Names and numbers, in nft's order.
fn symbols(of: DataType, text: &str) -> Vec<(String, u64)> {
    let number = |word: &str| match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    };
    let symbol = |line: &str| {
        let mut words = line.strip_prefix('\t')?.split_whitespace();
        let (name, value) = (words.next()?.to_owned(), number(words.next()?)?);
        // nft shows the bytes of numbers in network order as if they were in the machine's.
        let swapped = of.order() == Order::Network && of.bits() == 16 && cfg!(target_endian = "little");
        Some((name, if swapped { u64::from(u16::try_from(value).ok()?.swap_bytes()) } else { value }))
    };
    text.lines().filter_map(symbol).collect()
}

#[test]
fn values_have_the_names_that_nft_gives_them() {
    if !testns::have(&["nft"]) {
        return;
    }
    let (mut compared, mut failed) = (0, Vec::new());
    for of in DataType::ALL.iter().copied().filter(|of| *of != DataType::INET_PROTO) {
        let ours: Vec<_> = of.symbols().iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        let theirs = symbols(of, &describe(of));
        compared += ours.len();
        if ours != theirs {
            failed.push(format!("{of}: {ours:?}\n    nft: {theirs:?}"));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(compared > 150, "only {compared} names");
}

/// nft asks the machine's `/etc/protocols`, so it may know fewer or more names than netbase has.
#[test]
fn protocols_have_the_numbers_that_nft_gives_them() {
    if !testns::have(&["nft"]) {
        return;
    }
    let theirs: HashMap<_, _> =
        symbols(DataType::INET_PROTO, &describe(DataType::INET_PROTO)).into_iter().collect();
    let both = DataType::INET_PROTO
        .symbols()
        .iter()
        .filter_map(|(name, ours)| Some((name, ours, theirs.get(*name)?)));
    let both: Vec<_> = both.collect();
    assert!(both.len() > 20, "only {} names in common", both.len());
    for (name, ours, theirs) in both {
        assert_eq!(ours, theirs, "{name}");
    }
}

/// A type's width and order are told as text only; the width is in every description.
#[test]
fn types_have_the_width_that_nft_gives_them() {
    if !testns::have(&["nft"]) {
        return;
    }
    for of in DataType::ALL.iter().copied() {
        let text = describe(of);
        let first = text.lines().next().unwrap_or_default();
        let bits = first.rsplit(", ").next().and_then(|end| end.strip_suffix(" bits")?.parse::<u16>().ok());
        match of {
            // Their width is that of what has the type.
            DataType::BITMASK | DataType::INTEGER | DataType::STRING | DataType::LL_ADDR => {
                assert_eq!(bits, Some(0), "{first}");
            }
            // The kernel gives a whole byte.
            DataType::BOOLEAN => assert_eq!(bits, Some(1), "{first}"),
            _ => assert_eq!(bits, Some(of.bits()), "{first}"),
        }
    }
}
