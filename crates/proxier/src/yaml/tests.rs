//! Hostile texts: time and memory follow the length of the text. And any text: both readers give the same.

use std::fmt::Write as _;
use std::time::Instant;

use proptest::prelude::*;

use super::*;

fn read(text: &str) -> Result<Option<Node<'_>>, Fault> {
    parse(text, 1)
}

/// Asserts that a text of four times the size takes no more than eight times as long, with some slack for a
/// busy machine: what is quadratic takes sixteen times as long.
fn is_linear(what: &str, size: usize, text: impl Fn(usize) -> String) {
    let time = |text: &str| {
        let once = || {
            let began = Instant::now();
            // Refused or not, it must not take long.
            let _ = read(text);
            began.elapsed()
        };
        (0..3).map(|_| once()).min().unwrap_or_default()
    };
    let (small, large) = (time(&text(size)), time(&text(4 * size)));
    assert!(large < 9 * small.max(std::time::Duration::from_millis(1)), "{what}: {small:?}, then {large:?}");
}

#[test]
fn hostile_texts_take_time_in_proportion_to_their_length() {
    is_linear("keys of an inline merge", 20_000, |count| {
        let keys: String = (0..count).fold(String::new(), |mut text, n| {
            let _ = write!(text, "k{n}: v, ");
            text
        });
        format!("a: {{<<: {{{keys}}}, x: y}}\n")
    });
    is_linear("many inline merges", 5_000, |count| {
        let merges: String = (0..count).fold(String::new(), |mut text, n| {
            let _ = writeln!(text, "<<: {{k{n}: v}}");
            text
        });
        format!("a: b\n{merges}")
    });
    is_linear("keys", 20_000, |count| {
        (0..count).fold(String::new(), |mut text, n| {
            let _ = writeln!(text, "k{n}: v");
            text
        })
    });
    is_linear("anchors", 20_000, |count| {
        (0..count).fold(String::new(), |mut text, n| {
            let _ = writeln!(text, "- &a{n} [x, *a{}]", n.saturating_sub(1));
            text
        })
    });
    is_linear("a list", 50_000, |count| format!("[{}]", "1,".repeat(count)));
}

#[test]
fn nested_anchors_share_what_they_name() {
    // Each level was copied for its anchor: 90 times the list.
    let list = "x, ".repeat(10_000);
    let open: String = (0..90).fold(String::new(), |mut text, n| {
        let _ = write!(text, "&a{n} [");
        text
    });
    let text = format!("{open}{list}{}", "]".repeat(90));
    let node = read(&text).unwrap().unwrap();
    let mut inner = &node;
    while let Value::Sequence(items) = &inner.value
        && items.len() == 1
    {
        assert_eq!(Rc::strong_count(items), 1, "the builder and its anchors are gone");
        inner = &items[0];
    }
    let Value::Sequence(items) = &inner.value else { panic!("a list") };
    assert_eq!(items.len(), 10_000);
    // An alias of an alias counts with what it expands to.
    let twice = format!("a: &a [{}]\nb: &b [*a, *a]\nc: [{}]\n", "x, ".repeat(1000), "*b, ".repeat(60));
    assert!(read(&twice).unwrap_err().reason.contains("aliases expand to more"));
}

#[test]
fn a_key_is_its_text() {
    for text in ["{1: a, '1': b}", "{true: a, 'true': b}", "{~: a, 'null': b}", "{1.5: a, 1.5: b}"] {
        assert!(read(text).unwrap_err().reason.contains("comes twice"), "{text}");
    }
    assert!(read("{[a]: b}").unwrap_err().reason.contains("expected a scalar as key"));
    assert!(read("{? {a: b} : c}").unwrap_err().reason.contains("expected a scalar as key"));
}

/// Returns the events of a reader, with the places of those that begin a node, or nothing after an error.
fn events<'a>(text: &'a str, events: Events<'a>) -> Option<Vec<(Event<'a>, Option<Place>)>> {
    let mut builder = Builder::new(text, events);
    let mut found = Vec::new();
    loop {
        let (event, place) = builder.next().ok()?;
        match event {
            Event::StreamEnd => return Some(found),
            Event::StreamStart | Event::DocumentStart(_) | Event::DocumentEnd => {}
            event => {
                let place = match &event {
                    Event::SequenceEnd | Event::MappingEnd => None,
                    // The full parser has the column after a `-` and its spaces, and not always.
                    Event::SequenceStart(..) => Some(Place { column: 0, ..place }),
                    Event::Scalar(text, ..) if text.is_empty() => Some(Place { column: 0, ..place }),
                    _ => Some(place),
                };
                found.push((event, place));
            }
        }
    }
}

/// Asserts that the plain reader gives what the full parser gives, or leaves the text to it. Returns whether it
/// gave something.
fn agree(text: &str) -> bool {
    let Some(plain) = events(text, Events::Plain(plain::Reader::new(text, 1))) else { return false };
    assert_eq!(Some(plain), events(text, Events::full(text, 1)), "{text}");
    true
}

#[test]
fn both_readers_give_the_same_for_what_kubectl_prints() {
    let text = "apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Service\n  metadata:\n    annotations:\n      \
                kubectl.kubernetes.io/last-applied-configuration: |\n        {\"kind\":\"Service\",\"x\":\"# a: b\"}\n      \
                note: 'it''s: \"quoted\"'\n      other: \"a\\tb \\\"c\\\" ü\"\n    managedFields:\n    - fieldsV1:\n        \
                f:spec:\n          f:ports:\n            .: {}\n            \
                k:{\"port\":80,\"protocol\":\"TCP\"}:\n              .: {}\n  spec:\n    clusterIPs:\n    - fd00::1\n    \
                ports:\n    - name: http\n      port: 80\n    selector: null\n  status:\n    loadBalancer: {}\n\
                - kind: EndpointSlice\n  endpoints: []\n  empty:\nkind: List\n";
    assert!(agree(text), "it is left to the full parser");
    assert!(agree(
        "\n# a comment\nkind: List # another\nitems:\n- \n-\n  - - a\n    -\n- b: |-\n    c\n\n\n     d\n\ne: -1\n"
    ));
    assert!(agree(""));
}

/// What lines are made of: all that the plain reader knows, and what it must leave to the other.
const PIECES: [&str; 92] = [
    "a: b",
    "b: 1",
    "c:",
    "d: ",
    "- a",
    "- a: b",
    "-",
    "- ",
    "- - a",
    "- - b: c",
    "-  a:",
    "- -",
    "a: |",
    "a: |-",
    "- |",
    "a: |  # c",
    "a: |+",
    "a: |2",
    "a: >",
    "",
    "  ",
    "# c",
    "a: b # c",
    "a: b #c",
    "a: b#c",
    "a:b",
    "a:b: c",
    "a: b: c",
    "a: {}",
    "- {}",
    "a: []",
    "a: {} # c",
    "a: {}x",
    "a: {b: c}",
    "a: [b, c]",
    "a: 'b'",
    "a: 'b''c'",
    "a: 'b' # c",
    "a: 'b'c",
    "a: \"b\"",
    "a: \"b\\n\\\"\"",
    "a: \"b\\x41\"",
    "a: \"b",
    "\"a\": b",
    "- \"a\": b",
    "a: &x b",
    "a: *x",
    "a: !!str 1",
    "? a",
    ": b",
    "a : b",
    "<<: b",
    "a: ~",
    "a: -1",
    "a: --",
    "- -a",
    "ü: b",
    "a: ü",
    "a:\tb",
    "a: b\t",
    "...",
    "a: \u{feff}b",
    "a: {b: c, d: [e, {f: 1}], g: 'h, i', j: \"k}\"}",
    "- {a: fd00::1, b: -1, c: ~}",
    "a: [ b , c ]",
    "a: { b: c }",
    "a: [b, c,]",
    "a: {b, c}",
    "a: {b: }",
    "a: {b:c}",
    "a: {b: c d}",
    "a: [b: c]",
    "a: [b, c] # d",
    "a: [b, c]d",
    "a: [b, c]: d",
    "a: {b: c",
    "a: [b",
    "a: [[]]",
    "a: [{}, []]",
    "a: {b: {}}",
    "a: [-]",
    "a: [- b]",
    "a: [b#c]",
    "a: [b #c]",
    "a: {\"b\": c}",
    "a: {\"b\":c}",
    "a: [\"b\" ]",
    "a: ['ü', b]",
    "a: [ü]",
    "a: [b::, c]",
    "[a, b]",
    "{a: b}",
];

fn text() -> impl Strategy<Value = String> {
    let line = (0..4usize, prop::sample::select(PIECES.as_slice()), 0..12u8);
    prop::collection::vec(line, 0..9).prop_map(|lines| {
        let mut text = String::new();
        for (indent, piece, end) in lines {
            text.push_str(&"  ".repeat(indent));
            // Also odd indentations, and lines that end otherwise.
            text.push_str(match end {
                0 => " ",
                _ => "",
            });
            text.push_str(piece);
            text.push_str(match end {
                1 => "\r\n",
                2 => "",
                3 => " \n",
                _ => "\n",
            });
        }
        text
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

    #[test]
    fn both_readers_give_the_same(text in text()) {
        agree(&text);
    }
}

#[test]
fn most_errors_and_all_rare_things_are_left_to_the_full_parser() {
    let count = PIECES.iter().filter(|piece| agree(&format!("x:\n  {piece}\n"))).count();
    assert!(count >= 45, "the plain reader leaves most to the other: it reads {count} of {}", PIECES.len());
    // A list is passed on once, although its second half is for the other.
    let text = "items:\n- a: 1\n- a: 2\n- {a: 3}\n- a: &x 4\n";
    let mut found = Vec::new();
    let flow = elements(text, 1, &mut |node| {
        found.push(node.get("a").map(|node| (node.value.clone(), node.line)));
        std::ops::ControlFlow::Continue(())
    });
    assert!(flow.unwrap().is_continue());
    assert_eq!(found, [(1, 2), (2, 3), (3, 4), (4, 5)].map(|(n, line)| Some((Value::Integer(n), line))));
}
