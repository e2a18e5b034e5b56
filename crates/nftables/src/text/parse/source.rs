//! The script and the texts that it includes, in sequence, and the mapping of byte offsets to positions.

use std::collections::HashMap;

use crate::text::parse::lexer::{Kind, Lexer, Span};

/// A text that a script includes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Included {
    /// The name that errors use.
    pub name: String,
    /// The text.
    pub text: String,
}

/// A text, and where it starts among all texts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source<'t> {
    pub(crate) name: Option<&'t str>,
    pub(crate) text: &'t str,
    pub(crate) base: usize,
}

impl<'t> Source<'t> {
    pub(crate) fn lexer(&self) -> Lexer<'t> {
        Lexer::new(self.text, self.base)
    }

    pub(crate) fn contains(&self, at: usize) -> bool {
        (self.base..=self.base + self.text.len()).contains(&at)
    }
}

/// Line and column of a byte, both from 1, and the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place<'t> {
    pub(crate) name: Option<&'t str>,
    pub(crate) line: usize,
    pub(crate) column: usize,
    pub(crate) text: &'t str,
    /// How many characters of the span are in this line.
    pub(crate) width: usize,
}

/// Where a span starts.
pub(crate) fn place<'t>(sources: &[Source<'t>], span: Span) -> Place<'t> {
    let first = sources.first().copied().unwrap_or(Source { name: None, text: "", base: 0 });
    let source = sources.iter().find(|source| source.contains(span.start)).copied().unwrap_or(first);
    let at = floor(source.text, span.start.saturating_sub(source.base));
    let end = floor(source.text, span.end.saturating_sub(source.base)).max(at);
    let before = source.text.get(..at).unwrap_or_default();
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = source.text.get(start..).unwrap_or_default();
    let text = line.split('\n').next().unwrap_or_default();
    let stop = end.min(start + text.len()).max(at);
    let width = source.text.get(at..stop).unwrap_or_default().chars().count();
    Place {
        name: source.name,
        line: before.bytes().filter(|byte| *byte == b'\n').count() + 1,
        column: source.text.get(start..at).unwrap_or_default().chars().count() + 1,
        text: text.trim_end_matches('\r'),
        width: width.max(1),
    }
}

/// The nearest boundary of characters below.
fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// The texts that a text includes, by the place of the word `include`.
pub(crate) type Includes = HashMap<usize, Vec<usize>>;

/// The quoted names behind each `include` that starts a statement.
pub(crate) fn includes(source: &Source<'_>) -> Vec<(usize, Span, String)> {
    let mut found = Vec::new();
    if !source.text.contains("include") {
        return found;
    }
    let mut lexer = source.lexer();
    let mut starts = true;
    loop {
        let token = lexer.next();
        if token.kind == Kind::End {
            return found;
        }
        if starts && token.kind == Kind::Word && lexer.text_of(token.span) == "include" {
            let mut ahead = lexer;
            let name = ahead.next();
            if name.kind == Kind::Quoted {
                let text = lexer.text_of(name.span);
                found.push((token.span.start, name.span, text.trim_matches('"').to_owned()));
            }
        }
        starts = matches!(token.kind, Kind::Newline | Kind::Semicolon | Kind::OpenBrace);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_a_line_and_a_column() {
        let text = "add table t\nadd \u{fc}\u{fc} rule\n";
        let sources =
            [Source { name: Some("a"), text, base: 0 }, Source { name: Some("b"), text: "x y", base: 100 }];
        let at = text.find("rule").unwrap();
        let found = place(&sources, Span { start: at, end: at + 4 });
        assert_eq!((found.line, found.column, found.width, found.text), (2, 8, 4, "add \u{fc}\u{fc} rule"));
        let found = place(&sources, Span { start: 102, end: 103 });
        assert_eq!((found.name, found.line, found.column, found.text), (Some("b"), 1, 3, "x y"));
        let end = place(&sources, Span { start: text.len(), end: text.len() });
        assert_eq!((end.line, end.column, end.width), (3, 1, 1));
    }

    #[test]
    fn only_statements_include() {
        let text = "include \"a\"\nlog prefix \"include\" # include \"b\"\ntable t {include \"c\";}";
        let names: Vec<_> =
            includes(&Source { name: None, text, base: 0 }).into_iter().map(|(_, _, name)| name).collect();
        assert_eq!(names, ["a", "c"]);
    }
}
