//! How far nft reads from a word that it does not know.
//!
//! To nft's grammar an unknown word may be a name: `tpc dport` is the comparison of a name with a name, and
//! it refuses the `22` of `tpc dport 22`, or the end of the line behind it. What is underlined here starts
//! with the unknown word and ends where nft gives up, so that both point at the same words.

use crate::name::{Name, NameError, NameProblem};
use crate::text::parse::error::Problem;
use crate::text::parse::lexer::{Kind, Lexer, Token};
use crate::text::parse::parser::Parser;
use crate::text::parse::statement::starts_statement;

/// What nft's grammar has behind the words that were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Behind {
    /// The left side of a comparison: an operator or a value follows.
    Left,
    /// A value: it may go on, or another statement follows.
    Value,
}

impl Parser<'_, '_> {
    /// Underlines also the words behind the mistake that nft reads before it gives up, if there are any.
    pub(crate) fn with_phrase(&self, mut problem: Box<Problem>, behind: Behind) -> Box<Problem> {
        let mut ahead = self.lexer;
        ahead.seek(problem.span.start);
        let first = ahead.next();
        let end = match value(&mut ahead, first) {
            Ok(end) => end_of_phrase(&mut ahead, behind, end),
            Err(end) => end,
        };
        problem.span.end = end.unwrap_or(0).max(problem.span.end);
        problem
    }
}

/// Where nft gives up: the end of the first token that cannot follow, or of the last one of the line. `None`
/// where its grammar takes the rest for another statement.
fn end_of_phrase(ahead: &mut Lexer<'_>, mut behind: Behind, end: usize) -> Option<usize> {
    let mut last = Some(end);
    for _ in 0..MAX_TOKENS {
        let token = ahead.next();
        match token.kind {
            // A value ends a statement; the left side of a comparison does not.
            Kind::Newline | Kind::Semicolon | Kind::End => return last.filter(|_| behind == Behind::Left),
            Kind::CloseBrace => return (behind == Behind::Left).then_some(token.span.end),
            _ => {}
        }
        last = Some(token.span.end);
        // Behind an operator there has to be a value.
        let after = match (behind, token.kind) {
            (Behind::Left, _) if is_comparison(ahead, token) => Some(Behind::Value),
            (_, _) if is_operator(ahead, token) => Some(behind),
            (Behind::Value, Kind::Dash | Kind::Slash | Kind::Comma) => Some(Behind::Value),
            _ => None,
        };
        let (first, next) = match (after, behind) {
            (Some(after), _) => (ahead.next(), after),
            (None, Behind::Left) => (token, Behind::Value),
            (None, Behind::Value) => {
                let word = if token.kind == Kind::Word { ahead.text_of(token.span) } else { "" };
                if starts_statement(word) {
                    return None;
                }
                if is_keyword(word) {
                    return last;
                }
                (token, Behind::Left)
            }
        };
        let is_slashed = token.kind == Kind::Slash && first.kind == Kind::Word;
        match value(ahead, first) {
            // A mask is a list of several, so that one that is alone is not complete.
            Ok(end) if is_slashed => return Some(end),
            Ok(end) => last = Some(end),
            Err(end) => return end.filter(|_| after.is_none()).or(last),
        }
        behind = next;
    }
    last
}

/// Takes a value that starts with a token (a word, a number, a set), and returns its end. The error is where
/// nft gives up, if that is known.
fn value(ahead: &mut Lexer<'_>, first: Token) -> Result<usize, Option<usize>> {
    let mut end = first.span.end;
    let is_value = match first.kind {
        Kind::Number(_) | Kind::Quoted | Kind::Star | Kind::Bracketed => true,
        Kind::Word => may_be_value(ahead.text_of(first.span)),
        Kind::At => {
            let name = ahead.next();
            end = name.span.end;
            name.kind == Kind::Word
        }
        Kind::OpenBrace => return members(ahead),
        _ => false,
    };
    if is_value { Ok(end) } else { Err(Some(end)) }
}

/// Takes the members of a set and the brace behind them.
fn members(ahead: &mut Lexer<'_>) -> Result<usize, Option<usize>> {
    let (mut open, mut starts) = (1_u32, true);
    for _ in 0..MAX_TOKENS {
        let token = ahead.next();
        match token.kind {
            Kind::OpenBrace => open += 1,
            Kind::CloseBrace => open -= 1,
            Kind::End => return Err(None),
            Kind::Word if starts && !may_be_value(ahead.text_of(token.span)) => {
                return Err(Some(token.span.end));
            }
            _ => {}
        }
        if open == 0 {
            return Ok(token.span.end);
        }
        starts = matches!(token.kind, Kind::OpenBrace | Kind::Comma);
    }
    Err(None)
}

fn is_comparison(ahead: &Lexer<'_>, token: Token) -> bool {
    match token.kind {
        Kind::Equal
        | Kind::NotEqual
        | Kind::Less
        | Kind::LessEqual
        | Kind::Greater
        | Kind::GreaterEqual
        | Kind::Not => true,
        Kind::Word => matches!(ahead.text_of(token.span), "eq" | "ne" | "lt" | "le" | "gt" | "ge" | "not"),
        _ => false,
    }
}

fn is_operator(ahead: &Lexer<'_>, token: Token) -> bool {
    match token.kind {
        Kind::Dot | Kind::And | Kind::Or | Kind::Xor | Kind::ShiftLeft | Kind::ShiftRight => true,
        Kind::Word => matches!(ahead.text_of(token.span), "and" | "or" | "xor" | "lshift" | "rshift"),
        _ => false,
    }
}

fn is_keyword(word: &str) -> bool {
    matches!(Name::new(word), Err(NameError { reason: NameProblem::Keyword, .. }))
}

/// Whether nft 1.0.6 takes a word for a value: any that is not a keyword, and some keywords.
pub(crate) fn may_be_value(word: &str) -> bool {
    const VALUES: [&str; 28] = [
        "ah", "arp", "comp", "dccp", "destroy", "dnat", "ecn", "esp", "ether", "exists", "icmp", "icmpv6",
        "igmp", "ip", "ip6", "last", "ll", "missing", "nh", "redirect", "reset", "sctp", "snat", "tcp",
        "tunnel", "udp", "udplite", "vlan",
    ];
    !is_keyword(word) || VALUES.contains(&word)
}

/// Tokens that are looked at. The rest of a longer phrase is not underlined.
const MAX_TOKENS: usize = 256;

#[cfg(test)]
mod tests {
    use crate::{Family, Rule, TableId};

    /// The words that are underlined.
    fn underlined(rule: &str) -> String {
        let chain = TableId::new(Family::INET, "t".parse().unwrap()).chain("c".parse().unwrap());
        let error = Rule::parse(&chain, rule).unwrap_err();
        let mistake = &error.mistakes[0];
        rule.chars().skip(mistake.column - 1).take(mistake.width).collect()
    }

    #[test]
    fn the_underline_ends_where_nft_gives_up() {
        assert_eq!(underlined("tpc dport 22"), "tpc dport 22");
        assert_eq!(underlined("tpc dport != 22 accept"), "tpc dport !=");
        assert_eq!(underlined("counter lmiit rate 10/hour"), "lmiit rate 10/");
        assert_eq!(
            underlined("daddr ip { 1.1.1.1, 2.2.2.2 } counter"),
            "daddr ip { 1.1.1.1, 2.2.2.2 } counter"
        );
        assert_eq!(underlined("tcp dport tcp sport"), "tcp sport");
        assert_eq!(underlined("{ 22 }"), "{ 22 }");
    }

    #[test]
    fn a_word_alone_is_underlined_alone() {
        assert_eq!(underlined("acept"), "acept");
        assert_eq!(underlined("foo bar accept"), "foo");
    }
}
