//! The memory that reading manifests takes, in bytes that are allocated at once: in proportion to the longest
//! object, not to the file. Of a JSON list alone the place of each item is kept.

use std::fmt::Write as _;

use sluicegate_proxier::source;

/// The text of each manifest, in bytes.
const SIZE: usize = 3 << 19;
/// What may be allocated beside the text.
const MOST: u64 = 64 << 10;
/// The same for a JSON list.
const MOST_OF_LIST: u64 = (SIZE / 2) as u64;

const SERVICE: &str = "apiVersion: v1\nkind: Service\nmetadata: {name: NAME}\nspec:\n  clusterIP: 10.96.0.1\n  \
                       ports:\n\
                       \x20 - {name: http, port: 80}\n";
const CONFIG_MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME}\ndata:\n  a: some text\n  \
                          b: |\n    more\n    text\n";
const JSON: &str = "{\"apiVersion\": \"v1\", \"kind\": \"Service\", \"metadata\": {\"name\": \"NAME\"},\n \
                    \"spec\": {\"clusterIP\": \"10.96.0.1\", \"ports\": [{\"port\": 80}]}}";

/// Repeats an object until the text has its size. Returns the number of objects, too.
fn repeated(object: impl Fn(usize) -> String) -> (String, usize) {
    let (mut text, mut count) = (String::with_capacity(SIZE + (1 << 10)), 0);
    while text.len() < SIZE {
        text += &object(count);
        count += 1;
    }
    (text, count)
}

fn named(object: &str, index: usize) -> String {
    object.replace("NAME", &format!("object-{index}"))
}

fn item(object: &str, index: usize) -> String {
    let mut text = String::new();
    for (number, line) in named(object, index).lines().enumerate() {
        writeln!(text, "{} {line}", if number == 0 { "-" } else { " " }).expect("a string takes all");
    }
    text
}

#[test]
fn reading_takes_little_memory_beside_the_text() {
    let (documents, count) = repeated(|index| named(SERVICE, index) + "---\n");
    check("documents.yaml", &documents, count, MOST);
    let (others, _) = repeated(|index| named(CONFIG_MAP, index) + "---\n");
    check("others.yaml", &others, 0, MOST);
    let (items, count) = repeated(|index| item(SERVICE, index));
    check("list.yaml", &format!("apiVersion: v1\nitems:\n{items}kind: List\n"), count, MOST);
    check("array.yaml", &items, count, MOST);
    let (objects, count) = repeated(|index| named(JSON, index) + "\n");
    check("documents.json", &objects, count, MOST);
    let (items, count) =
        repeated(|index| if index == 0 { String::new() } else { ",\n".to_owned() } + &named(JSON, index));
    check(
        "list.json",
        &format!("{{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": [{items}]}}"),
        count,
        MOST_OF_LIST,
    );
}

fn check(name: &str, text: &str, expected: usize, most: u64) {
    let mut found = 0;
    let allocated = allocation_counter::measure(|| {
        source::read_str(name, text, |_| found += 1).expect("good manifests");
    });
    assert_eq!(found, expected, "{name}");
    println!("{name}: {} bytes at most for {} of text", allocated.bytes_max, text.len());
    assert!(allocated.bytes_max < most, "{name}: {} bytes", allocated.bytes_max);
}
