//! Text from outside (names, messages of servers, rules of other programs) in a form that does nothing to a
//! terminal, a log or their readers.

use std::fmt::{self, Write as _};

/// Displays a text on one line: control characters, line breaks and what reorders or hides text on a screen
/// stand there as escapes of Rust (`\n`, `\u{1b}`).
///
/// ```
/// use sluicegate_proxier::Visible;
///
/// assert_eq!(Visible("web\n\u{1b}[31m").to_string(), "web\\n\\u{1b}[31m");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Visible<'a>(pub &'a str);

impl fmt::Display for Visible<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(f, self.0, |_| false)
    }
}

impl Visible<'_> {
    /// Returns the text with its escapes; of a very long one the beginning.
    #[must_use]
    pub fn clipped(self) -> String {
        let end = self.0.char_indices().nth(LONGEST).map(|(end, _)| end);
        let (shown, rest) = self.0.split_at(end.unwrap_or(self.0.len()));
        let shown = Visible(shown).to_string();
        if rest.is_empty() { shown } else { format!("{shown}... ({} bytes more)", rest.len()) }
    }

    /// Returns a text of several lines with the same escapes, whole, and with its line breaks and tabs.
    #[must_use]
    pub fn lines(text: &str) -> String {
        let mut shown = String::with_capacity(text.len());
        // Writing to a string does not fail.
        let _ = write(&mut shown, text, |c| matches!(c, '\n' | '\t'));
        shown
    }

    /// Returns JSON with escapes of JSON for the same characters, which occur in its strings alone.
    #[must_use]
    pub fn json(text: &str) -> String {
        let mut shown = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((at, c)) = rest.char_indices().find(|(_, c)| is_hidden(*c) && *c != '\n') {
            let (before, after) = rest.split_at(at);
            shown += before;
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(shown, "\\u{unit:04x}");
            }
            rest = after.get(c.len_utf8()..).unwrap_or_default();
        }
        shown + rest
    }
}

fn write(to: &mut impl fmt::Write, text: &str, stays: impl Fn(char) -> bool) -> fmt::Result {
    let mut rest = text;
    while let Some((at, c)) = rest.char_indices().find(|(_, c)| is_hidden(*c) && !stays(*c)) {
        let (before, after) = rest.split_at(at);
        write!(to, "{before}{}", c.escape_default())?;
        rest = after.get(c.len_utf8()..).unwrap_or_default();
    }
    to.write_str(rest)
}

/// Returns true for what is not printed as itself: control characters, line and paragraph separators, and the
/// characters of format (Unicode's category Cf) that change the direction of what follows, join or hide.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// The most characters that are shown of a name or a message from outside.
const LONGEST: usize = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_acts_on_is_escaped() {
        let hidden = (0..=0x10_ffff).filter_map(char::from_u32).filter(|c| is_hidden(*c));
        for c in hidden {
            let text = format!("a{c}b\u{e9}\u{6f22}");
            let [line, lines, json] =
                [Visible(&text).to_string(), Visible::lines(&text), Visible::json(&text)];
            assert!(
                !line.contains(c) && line.starts_with("a\\") && line.ends_with("b\u{e9}\u{6f22}"),
                "{line}"
            );
            assert_eq!(lines.contains(c), matches!(c, '\n' | '\t'), "{c:?}");
            assert_eq!(json.contains(c), c == '\n', "{c:?}");
            if c != '\n' {
                let read: String = serde_json::from_str(&format!("\"{json}\"")).unwrap();
                assert_eq!(read, text);
            }
        }
        assert_eq!(Visible("it's \"a\\b\"").to_string(), "it's \"a\\b\"");
    }

    #[test]
    fn of_a_long_text_the_beginning_is_shown() {
        let text = "\u{e9}".repeat(LONGEST + 5);
        assert_eq!(Visible(&text).clipped(), format!("{}... (10 bytes more)", "\u{e9}".repeat(LONGEST)));
        assert_eq!(Visible(text.split_at(2 * LONGEST).0).clipped().len(), 2 * LONGEST);
    }
}
