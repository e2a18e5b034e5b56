//! Tokens of a script: words, numbers and punctuation, each with its byte range.
//!
//! The longest token wins, as in nft's own scanner: `10.0.0.1-10.0.0.9` is two addresses and a dash, `a-b`
//! is one word, `1:2` before a blank is a class of a queueing discipline, and a number with digits that are
//! not octal after a leading 0 is a word.

use std::net::Ipv6Addr;

/// Bytes of the text, from `start` up to `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Span {
    /// From the start of one to the end of another.
    pub(crate) fn to(self, other: Self) -> Self {
        Self { start: self.start, end: other.end.max(self.end) }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) span: Span,
}

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A name, a keyword, an address, a time.
    Word,
    /// A word with a `*`, which may be escaped.
    Star,
    /// In quotes, which its span includes.
    Quoted,
    /// An IPv6 address in brackets, which its span includes.
    Bracketed,
    Number(u64),
    Newline,
    Semicolon,
    OpenBrace,
    CloseBrace,
    OpenBracket,
    CloseBracket,
    OpenParen,
    CloseParen,
    Comma,
    Dot,
    Colon,
    Slash,
    Dash,
    Plus,
    Asterisk,
    At,
    Dollar,
    Assign,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Not,
    ShiftLeft,
    ShiftRight,
    And,
    Or,
    Xor,
    /// A character that the language does not have, or quotes that are not closed.
    Junk,
    End,
}

/// A text from some byte on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lexer<'t> {
    text: &'t str,
    /// Where the text starts among all texts.
    base: usize,
    at: usize,
    /// Where it ends for this reader.
    end: usize,
}

impl<'t> Lexer<'t> {
    pub(crate) fn new(text: &'t str, base: usize) -> Self {
        Self { text, base, at: 0, end: text.len() }
    }

    /// The same text between two places.
    pub(crate) fn within(self, span: Span) -> Self {
        let end = span.end.saturating_sub(self.base).min(self.text.len());
        Self { at: span.start.saturating_sub(self.base).min(end), end, ..self }
    }

    /// The words of a token.
    pub(crate) fn text_of(&self, span: Span) -> &'t str {
        let range = span.start.saturating_sub(self.base)..span.end.saturating_sub(self.base);
        self.text.get(range).unwrap_or_default()
    }

    /// The bytes from a place on.
    pub(crate) fn rest_from(&self, place: usize) -> &'t [u8] {
        self.text.as_bytes().get(place.saturating_sub(self.base)..self.end).unwrap_or_default()
    }

    /// Bytes that have been read, and of the whole text.
    pub(crate) fn progress(&self) -> (usize, usize) {
        (self.at, self.end)
    }

    /// Goes on at a place.
    pub(crate) fn seek(&mut self, place: usize) {
        self.at = place.saturating_sub(self.base).min(self.end);
    }

    /// The bytes that have not been read.
    pub(crate) fn rest(&self) -> &'t [u8] {
        self.text.as_bytes().get(self.at..self.end).unwrap_or_default()
    }

    /// Goes on behind so many bytes.
    pub(crate) fn skip(&mut self, bytes: usize) {
        self.at = self.at.saturating_add(bytes).min(self.end);
    }

    pub(crate) fn next(&mut self) -> Token {
        self.skip_blanks();
        let rest = self.rest();
        let (kind, length) = match rest.first() {
            None => (Kind::End, 0),
            Some(first) => token(*first, rest),
        };
        let start = self.base + self.at;
        self.at += length;
        Token { kind, span: Span { start, end: start + length } }
    }

    fn skip_blanks(&mut self) {
        let mut rest = self.rest();
        loop {
            let blanks = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r')).count();
            rest = rest.get(blanks..).unwrap_or_default();
            match rest {
                [b'\\', b'\n', tail @ ..] => rest = tail,
                [b'\\', b'\r', b'\n', tail @ ..] => rest = tail,
                [b'#', ..] => {
                    let line = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
                    rest = rest.get(line..).unwrap_or_default();
                }
                _ => break,
            }
        }
        self.at = self.end - rest.len();
    }
}

fn token(first: u8, rest: &[u8]) -> (Kind, usize) {
    let second = rest.get(1).copied();
    let or = |with: u8, long, short| if second == Some(with) { (long, 2) } else { (short, 1) };
    match first {
        b'0'..=b'9' => number_like(rest),
        b'a'..=b'z' | b'A'..=b'Z' | b'_' => word_like(rest),
        b'\n' => (Kind::Newline, 1),
        b';' => (Kind::Semicolon, 1),
        b'{' => (Kind::OpenBrace, 1),
        b'}' => (Kind::CloseBrace, 1),
        b'(' => (Kind::OpenParen, 1),
        b')' => (Kind::CloseParen, 1),
        b',' => (Kind::Comma, 1),
        b'.' if second.is_some_and(in_word) => word_like(rest),
        b'.' => (Kind::Dot, 1),
        b':' if second == Some(b':') => match address(rest) {
            0 => (Kind::Colon, 1),
            length => (Kind::Word, length),
        },
        b':' => (Kind::Colon, 1),
        b'"' => match rest.iter().skip(1).position(|byte| *byte == b'"') {
            Some(length) => (Kind::Quoted, length + 2),
            None => (Kind::Junk, rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len())),
        },
        b'[' => match bracketed(rest) {
            0 => (Kind::OpenBracket, 1),
            length => (Kind::Bracketed, length),
        },
        b']' => (Kind::CloseBracket, 1),
        b'/' => (Kind::Slash, 1),
        b'-' => (Kind::Dash, 1),
        b'+' => (Kind::Plus, 1),
        b'*' => (Kind::Asterisk, 1),
        b'@' => (Kind::At, 1),
        b'$' => (Kind::Dollar, 1),
        b'=' => or(b'=', Kind::Equal, Kind::Assign),
        b'!' => or(b'=', Kind::NotEqual, Kind::Not),
        b'<' if second == Some(b'<') => (Kind::ShiftLeft, 2),
        b'<' => or(b'=', Kind::LessEqual, Kind::Less),
        b'>' if second == Some(b'>') => (Kind::ShiftRight, 2),
        b'>' => or(b'=', Kind::GreaterEqual, Kind::Greater),
        b'&' => (Kind::And, 1),
        b'|' => (Kind::Or, 1),
        b'^' => (Kind::Xor, 1),
        b'\\' if second == Some(b'*') => (Kind::Star, 2),
        first => (Kind::Junk, character_length(first).min(rest.len())),
    }
}

/// The bytes of a character of UTF-8, by its first.
fn character_length(first: u8) -> usize {
    match first {
        0xf0.. => 4,
        0xe0.. => 3,
        0xc0.. => 2,
        _ => 1,
    }
}

pub(crate) fn in_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'-' | b'_' | b'.')
}

/// A name or keyword, perhaps with a `*`, or an address that starts with a letter.
fn word_like(rest: &[u8]) -> (Kind, usize) {
    let length = run(rest, in_word);
    match (rest.get(length), rest.get(length + 1)) {
        (Some(b':'), _) => {
            let address = address(rest).max(class(rest));
            (Kind::Word, length.max(address))
        }
        (Some(b'*'), _) => (Kind::Star, length + 1),
        (Some(b'\\'), Some(b'*')) => {
            let tail = rest.get(length + 2..).unwrap_or_default();
            let more = match tail.first() {
                Some(b) if b.is_ascii_alphabetic() || matches!(b, b'_' | b'.') => run(tail, in_word),
                _ => 0,
            };
            (Kind::Star, length + 2 + more)
        }
        _ => (Kind::Word, length),
    }
}

/// A number, an address, a time, or a class.
fn number_like(rest: &[u8]) -> (Kind, usize) {
    let digits = run(rest, |byte| byte.is_ascii_digit());
    match rest.get(digits) {
        Some(b'.') if digits <= 3 => {
            if let length @ 1.. = dotted(rest) {
                return (Kind::Word, length);
            }
        }
        Some(b':') => {
            if let length @ 1.. = address(rest).max(class(rest)) {
                return (Kind::Word, length);
            }
        }
        Some(b'x' | b'X') if digits == 1 && rest.first() == Some(&b'0') => {
            let hex = run(rest.get(2..).unwrap_or_default(), |byte| byte.is_ascii_hexdigit());
            if hex > 0 {
                return (number(rest.get(2..2 + hex).unwrap_or_default(), 16), 2 + hex);
            }
        }
        Some(byte) if byte.is_ascii_alphabetic() => {
            if let length @ 1.. = class(rest).max(address(rest)).max(time(rest)) {
                return (Kind::Word, length);
            }
            let length = run(rest, in_word);
            if matches!(rest.get(..length), Some(b"8021q" | b"8021ad")) {
                return (Kind::Word, length);
            }
        }
        _ => {}
    }
    let text = rest.get(..digits).unwrap_or_default();
    let base = if digits > 1 && rest.first() == Some(&b'0') { 8 } else { 10 };
    (number(text, base), digits)
}

/// A number that is too large, or has digits that its base does not, is a word.
fn number(digits: &[u8], base: u32) -> Kind {
    let mut sum = 0_u64;
    for byte in digits {
        let digit = char::from(*byte).to_digit(base);
        let next = digit.and_then(|digit| sum.checked_mul(base.into())?.checked_add(digit.into()));
        match next {
            Some(next) => sum = next,
            None => return Kind::Word,
        }
    }
    Kind::Number(sum)
}

fn run(bytes: &[u8], of: impl Fn(u8) -> bool) -> usize {
    bytes.iter().position(|byte| !of(*byte)).unwrap_or(bytes.len())
}

/// The length of an IPv4 address; 0 where there is none.
fn dotted(rest: &[u8]) -> usize {
    let mut at = 0;
    for group in 0..4 {
        if group > 0 {
            if rest.get(at) != Some(&b'.') {
                return 0;
            }
            at += 1;
        }
        let digits = run(rest.get(at..).unwrap_or_default(), |byte| byte.is_ascii_digit()).min(3);
        if digits == 0 {
            return 0;
        }
        at += digits;
    }
    at
}

/// The length of a link-layer or an IPv6 address, the longest that there is; 0 where there is none.
fn address(rest: &[u8]) -> usize {
    let run = run(rest.get(..MAX_ADDRESS.min(rest.len())).unwrap_or_default(), |byte| {
        byte.is_ascii_hexdigit() || byte == b':'
    });
    for prefix in [&b"::"[..], b"::ffff:", b"::FFFF:"] {
        if rest.starts_with(prefix)
            && let length @ 1.. = dotted(rest.get(prefix.len()..).unwrap_or_default())
        {
            return prefix.len() + length;
        }
    }
    let whole = rest.get(..run).unwrap_or_default();
    if whole.iter().filter(|byte| **byte == b':').count() < 2 {
        return 0;
    }
    (2..=run).rev().find(|length| rest.get(..*length).is_some_and(is_address)).unwrap_or(0)
}

fn is_address(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|text| text.parse::<Ipv6Addr>().is_ok()) || is_link_layer(bytes)
}

fn is_link_layer(bytes: &[u8]) -> bool {
    let mut groups = 0;
    bytes.split(|byte| *byte == b':').all(|group| {
        groups += 1;
        matches!(group.len(), 1 | 2) && group.iter().all(u8::is_ascii_hexdigit)
    }) && groups == 6
}

/// The length of an IPv6 address in brackets.
fn bracketed(rest: &[u8]) -> usize {
    let inner = rest.get(1..).unwrap_or_default();
    let length = address(inner);
    let closes = length > 0 && inner.get(length) == Some(&b']');
    if closes { length + 2 } else { 0 }
}

/// The length of a class, `1:ff`, which is one only before certain characters.
fn class(rest: &[u8]) -> usize {
    let hex = |bytes: &[u8]| run(bytes, |byte| byte.is_ascii_hexdigit());
    let major = hex(rest);
    if !(1..=4).contains(&major) || rest.get(major) != Some(&b':') {
        return 0;
    }
    let minor = hex(rest.get(major + 1..).unwrap_or_default());
    let length = major + 1 + minor;
    let ends = matches!(rest.get(length), Some(b' ' | b'\t' | b'\n' | b':' | b'-' | b'}' | b',') | None);
    if (1..=4).contains(&minor) && ends { length } else { 0 }
}

/// The length of a time: `1d2h`.
fn time(rest: &[u8]) -> usize {
    let mut at = 0;
    for unit in [&b"d"[..], b"h", b"m", b"s", b"ms"] {
        let tail = rest.get(at..).unwrap_or_default();
        let digits = run(tail, |byte| byte.is_ascii_digit());
        let behind = tail.get(digits..).unwrap_or_default();
        if digits > 0 && behind.starts_with(unit) && !(unit == b"m" && behind.starts_with(b"ms")) {
            at += digits + unit.len();
        }
    }
    at
}

/// Longer than any address.
const MAX_ADDRESS: usize = 48;

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<(Kind, &str)> {
        let mut lexer = Lexer::new(text, 0);
        std::iter::from_fn(|| {
            let token = lexer.next();
            (token.kind != Kind::End).then(|| (token.kind, lexer.text_of(token.span)))
        })
        .collect()
    }

    fn words(text: &str) -> Vec<&str> {
        tokens(text).into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn the_longest_token_wins() {
        assert_eq!(words("10.0.0.1-10.0.0.9"), ["10.0.0.1", "-", "10.0.0.9"]);
        assert_eq!(words("1024-65535"), ["1024", "-", "65535"]);
        assert_eq!(words("a-b fully-random"), ["a-b", "fully-random"]);
        assert_eq!(words("10.0.0.0/8,::1"), ["10.0.0.0", "/", "8", ",", "::1"]);
        assert_eq!(words("fe80::1:80 [::1]:80"), ["fe80::1:80", "[::1]", ":", "80"]);
        assert_eq!(words("::ffff:1.2.3.4 ::1.2.3.4"), ["::ffff:1.2.3.4", "::1.2.3.4"]);
        assert_eq!(words("00:11:22:aa:bb:cc"), ["00:11:22:aa:bb:cc"]);
        assert_eq!(words("1.2.3.4:80"), ["1.2.3.4", ":", "80"]);
        assert_eq!(words("80:accept"), ["80", ":", "accept"]);
        assert_eq!(words("1:2 a:b}"), ["1:2", "a:b", "}"]);
        assert_eq!(words("1d2h5ms 10m5"), ["1d2h5ms", "10m", "5"]);
        assert_eq!(words("veth* a\\*b \\*"), ["veth*", "a\\*b", "\\*"]);
        assert_eq!(words("ip saddr . tcp dport .x"), ["ip", "saddr", ".", "tcp", "dport", ".x"]);
        assert_eq!(words("8021q 8021ad"), ["8021q", "8021ad"]);
    }

    #[test]
    fn numbers_have_three_bases() {
        let kinds: Vec<_> =
            tokens("10 0x1F 010 08 99999999999999999999").into_iter().map(|(kind, _)| kind).collect();
        assert_eq!(kinds, [Kind::Number(10), Kind::Number(31), Kind::Number(8), Kind::Word, Kind::Word]);
    }

    #[test]
    fn lines_are_continued_and_comments_left_out() {
        assert_eq!(words("a \\\n b # c ; d\ne"), ["a", "b", "\n", "e"]);
        assert_eq!(words("\"a # b\""), ["\"a # b\""]);
    }

    #[test]
    fn what_the_language_does_not_have_is_junk() {
        for (text, junk) in [("\u{20ac} x", "\u{20ac}"), ("\"open", "\"open"), ("~", "~")] {
            assert_eq!(tokens(text).first(), Some(&(Kind::Junk, junk)));
        }
    }
}
