//! Hostile texts: time and memory follow the length of the text.

use std::fmt::Write as _;
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;

use super::*;

fn read(text: &str) -> Result<Option<Node<'_>>, Fault> {
    parse(text, 1)
}

/// The processor's time of this thread: that of the clock goes by while others have the processor.
fn processor() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_THREAD).expect("the thread's own usage");
    [usage.user_time(), usage.system_time()]
        .map(|time| {
            Duration::from_micros(u64::try_from(time.num_microseconds()).expect("no time is negative"))
        })
        .iter()
        .sum()
}

/// Asserts that a text of four times the size takes no more than eight times as long, with some slack: what is
/// quadratic takes sixteen times as long.
fn is_linear(what: &str, size: usize, text: impl Fn(usize) -> String) {
    let time = |text: &str| {
        let once = || {
            let began = processor();
            // Refused or not, it must not take long.
            let _ = read(text);
            processor() - began
        };
        (0..3).map(|_| once()).min().unwrap_or_default()
    };
    let (small, large) = (time(&text(size)), time(&text(4 * size)));
    assert!(large < 9 * small.max(Duration::from_millis(1)), "{what}: {small:?}, then {large:?}");
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
