//! The state of a parser, and the elementary steps of the grammar.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use crate::check::context::Context;
use crate::expr::ObjectKind;
use crate::family::Family;
use crate::name::{Comment, Name, NameError, NameProblem};
use crate::object::{Set, SetId, TableId};
use crate::sort;
use crate::text::parse::error::{ParseError, Problem};
use crate::text::parse::lexer::{Kind, Lexer, Span, Token};
use crate::text::parse::options::ParseOptions;
use crate::text::parse::places::Places;
use crate::text::parse::source::{Includes, Source};
use crate::text::parse::suggest::nearest;
use crate::text::parse::variable::{Moment, Variables};
use crate::tree::Statement;

/// The result of a parsing step.
pub(crate) type Parsed<T> = Result<T, Box<Problem>>;

/// A parser of some texts.
pub(crate) struct Parser<'t, 'o> {
    pub(crate) lexer: Lexer<'t>,
    /// The next token, which has not been taken.
    pub(crate) token: Token,
    /// Where the last token that was taken ended.
    pub(crate) last: usize,
    pub(crate) options: &'o ParseOptions<'o>,
    pub(crate) sources: &'t [Source<'t>],
    pub(crate) includes: &'t Includes,
    pub(crate) variables: Variables,
    /// Where variables are looked up.
    pub(crate) moment: Moment,
    /// The table that contains the rules and elements being parsed.
    pub(crate) table: Option<TableId>,
    /// The known sets; `None` for names that were looked up and are unknown.
    pub(crate) sets: HashMap<SetId, Option<Rc<Set>>>,
    /// Sets that were asked for and may still be added by the block that is being read.
    pub(crate) missing: Option<usize>,
    /// The sets that rules change.
    pub(crate) updated: HashSet<SetId>,
    /// The sets that the text uses and does not add.
    pub(crate) found: Vec<Rc<Set>>,
    pub(crate) problems: Vec<Problem>,
    /// Whether there was more text when the last mistake was noted.
    is_cut: bool,
    depth: u32,
    /// The protocols that the current rule has matched so far.
    pub(crate) context: Context,
    /// How many braces are open.
    pub(crate) braces: u32,
    /// Whether queries are refused.
    pub(crate) operations_only: bool,
    /// Whether an included text is being read, whose last line needs no end.
    pub(crate) is_included: bool,
    /// How many values of variables are being read.
    within: u32,
    /// Bytes of variables that may still be read.
    budget: usize,
    /// Names that were read last.
    recent: [Option<Name>; RECENT],
    /// The statements of the rule that is being read.
    pub(crate) statements: Vec<Statement>,
    /// Their packed form.
    pub(crate) packed: Vec<u8>,
    /// Where the command that is being read starts.
    pub(crate) start: Span,
    /// Where each command of the script is, if that is asked for.
    pub(crate) places: Option<Places>,
    /// Up to where the elements of lists have been counted.
    pub(crate) counted: usize,
}

impl<'t, 'o> Parser<'t, 'o> {
    pub(crate) fn new(
        sources: &'t [Source<'t>],
        includes: &'t Includes,
        options: &'o ParseOptions<'o>,
    ) -> Self {
        let first = sources.first().copied().unwrap_or(Source { name: None, text: "", base: 0 });
        let total: usize = sources.iter().map(|source| source.text.len()).sum();
        let mut parser = Self {
            lexer: first.lexer(),
            token: Token { kind: Kind::End, span: Span::default() },
            last: 0,
            options,
            sources,
            includes,
            variables: Variables::default(),
            moment: Moment::default(),
            table: None,
            sets: HashMap::new(),
            missing: None,
            updated: HashSet::new(),
            found: Vec::new(),
            problems: Vec::new(),
            is_cut: false,
            depth: 0,
            context: Context::default(),
            braces: 0,
            operations_only: false,
            is_included: false,
            within: 0,
            recent: [const { None }; RECENT],
            statements: Vec::new(),
            packed: Vec::new(),
            counted: 0,
            start: Span::default(),
            places: None,
            budget: total.saturating_mul(EXPANSION).max(LEAST_EXPANSION),
        };
        parser.token = parser.lexer.next();
        parser
    }

    /// The family of the table that the parser is in.
    pub(crate) fn family(&self) -> Family {
        self.table.as_ref().map_or(Family::IP, |table| table.family)
    }

    /// Notes where the last of so many commands are, which have just been read.
    pub(crate) fn place(&mut self, commands: usize, start: Span) {
        let span = self.since(start);
        if let Some(places) = &mut self.places {
            places.commands.resize(commands, span);
            places.keys_of(span);
            places.statements_of(span);
        }
    }

    /// Where it is, to come back.
    pub(crate) fn checkpoint(&self) -> Checkpoint<'t> {
        Checkpoint(self.lexer, self.token, self.last, self.braces, self.context)
    }

    /// How many braces were open at a place.
    pub(crate) fn braces_at(&self, at: Checkpoint<'t>) -> u32 {
        at.3
    }

    pub(crate) fn restore(&mut self, to: Checkpoint<'t>) {
        (self.lexer, self.token, self.last) = (to.0, to.1, to.2);
        (self.braces, self.context) = (to.3, to.4);
    }

    /// Starts to read another text.
    pub(crate) fn restore_to(&mut self, lexer: Lexer<'t>) {
        self.lexer = lexer;
        self.token = self.lexer.next();
    }

    /// Reads nothing more.
    pub(crate) fn stop(&mut self) {
        self.lexer.skip(usize::MAX);
        self.token = self.lexer.next();
    }

    /// Takes the next token.
    pub(crate) fn next(&mut self) -> Token {
        let token = self.token;
        self.last = token.span.end;
        match token.kind {
            Kind::OpenBrace => self.braces += 1,
            Kind::CloseBrace => self.braces = self.braces.saturating_sub(1),
            _ => {}
        }
        self.token = self.lexer.next();
        token
    }

    /// The words of the next token.
    pub(crate) fn text(&self) -> &'t str {
        self.lexer.text_of(self.token.span)
    }

    /// The next token as a word; empty for anything else.
    pub(crate) fn word(&self) -> &'t str {
        if self.token.kind == Kind::Word { self.text() } else { "" }
    }

    /// The token behind the next one.
    pub(crate) fn second(&self) -> Token {
        let mut ahead = self.lexer;
        ahead.next()
    }

    /// The token behind the next one as a word.
    pub(crate) fn second_word(&self) -> &'t str {
        let token = self.second();
        if token.kind == Kind::Word { self.lexer.text_of(token.span) } else { "" }
    }

    pub(crate) fn is(&self, kind: Kind) -> bool {
        self.token.kind == kind
    }

    pub(crate) fn is_word(&self, word: &str) -> bool {
        self.word() == word
    }

    /// Takes the next token if it is of this kind.
    pub(crate) fn eat(&mut self, kind: Kind) -> bool {
        let is = self.is(kind);
        if is {
            self.next();
        }
        is
    }

    /// Takes the next token if it is this word.
    pub(crate) fn eat_word(&mut self, word: &str) -> bool {
        let is = self.is_word(word);
        if is {
            self.next();
        }
        is
    }

    /// Whether a statement ends here.
    pub(crate) fn at_end(&self) -> bool {
        matches!(self.token.kind, Kind::Newline | Kind::Semicolon | Kind::CloseBrace | Kind::End)
    }

    pub(crate) fn want(&mut self, kind: Kind, name: &str) -> Parsed<Token> {
        if self.is(kind) { Ok(self.next()) } else { Err(self.expected(name)) }
    }

    pub(crate) fn want_word(&mut self, word: &str) -> Parsed<Token> {
        match self.is_word(word) {
            true => Ok(self.next()),
            false => Err(self.expected_one_of(&[word])),
        }
    }

    /// Skips empty lines.
    pub(crate) fn newlines(&mut self) {
        while self.is(Kind::Newline) {
            self.next();
        }
    }

    /// The bytes from a place up to the last token that was taken.
    pub(crate) fn since(&self, start: Span) -> Span {
        Span { start: start.start, end: self.last.max(start.end) }
    }

    /// The mistake for an unexpected next token.
    pub(crate) fn expected(&self, what: &str) -> Box<Problem> {
        self.found_instead(what, self.token)
    }

    pub(crate) fn found_instead(&self, what: &str, token: Token) -> Box<Problem> {
        let text = self.lexer.text_of(token.span);
        let found = match token.kind {
            Kind::End => "the end of the text".to_owned(),
            Kind::Newline => "the end of the line".to_owned(),
            Kind::Quoted => text.to_owned(),
            Kind::Junk if text.starts_with('"') => "quotes that are not closed".to_owned(),
            _ => format!("`{}`", shortened(text)),
        };
        Problem::new(token.span, format!("expected {what}, found {found}"))
    }

    /// The mistake for an unexpected next token, where one of some words is expected.
    pub(crate) fn expected_one_of(&self, words: &[&str]) -> Box<Problem> {
        let quoted: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
        let list = match quoted.as_slice() {
            [] => "nothing".to_owned(),
            [only] => only.clone(),
            [first, second] => format!("{first} or {second}"),
            [first @ .., last] => format!("{} or {last}", first.join(", ")),
        };
        self.expected(&list).meant(nearest(self.word(), words.iter().copied()))
    }

    /// One of some words, by its place among them.
    pub(crate) fn one_of<T: Copy>(&mut self, words: &[(&str, T)]) -> Parsed<T> {
        let at = self.place_in(words.len(), &|at| words.get(at).map_or("", |(name, _)| *name));
        match at.and_then(|at| words.get(at)) {
            Some((_, value)) => Ok(*value),
            None => Err(self.expected_one_of(&words.iter().map(|(name, _)| *name).collect::<Vec<_>>())),
        }
    }

    /// Reads one of so many words, if one comes next, and returns its place among them.
    fn place_in<'w>(&mut self, count: usize, words: &dyn Fn(usize) -> &'w str) -> Option<usize> {
        let word = self.word();
        let at = (0..count).find(|at| words(*at) == word)?;
        self.next();
        Some(at)
    }

    pub(crate) fn number(&mut self, what: &str) -> Parsed<u64> {
        match self.token.kind {
            Kind::Number(number) => {
                self.next();
                Ok(number)
            }
            _ => Err(self.expected(what)),
        }
    }

    /// A number that fits the place that it is for.
    pub(crate) fn small<T: TryFrom<u64>>(&mut self, what: &str) -> Parsed<T> {
        let span = self.token.span;
        let number = self.number(what)?;
        T::try_from(number).map_err(|_| {
            let bits = 8 * size_of::<T>();
            Problem::new(span, format!("expected {what} of at most {bits} bits, found `{number}`"))
        })
    }

    /// A name of something: a table, a chain, a set.
    pub(crate) fn name(&mut self, what: &str) -> Parsed<Name> {
        if self.token.kind != Kind::Word {
            return Err(self.expected(what));
        }
        let token = self.next();
        let text = self.lexer.text_of(token.span);
        // Scripts name the same table, chain or set over and over: the name is kept once.
        if let Some(name) = self.recent.iter().flatten().find(|name| name.as_str() == text) {
            return Ok(name.clone());
        }
        match Name::new(text) {
            Ok(name) => {
                self.recent.rotate_right(1);
                self.recent[0] = Some(name.clone());
                Ok(name)
            }
            Err(_) if LATER_KEYWORDS.contains(&text) => Ok(Name::from_kernel(text)),
            Err(error) => Err(wrong_name(token.span, what, &error)),
        }
    }

    /// The name of a stateful object. Behind the word for its kind, nft takes the words of its parameters for
    /// keywords, whatever they are elsewhere.
    pub(crate) fn object_name(&mut self, kind: ObjectKind) -> Parsed<Name> {
        const COUNTER: &[&str] = &["bytes", "name", "packets"];
        const LIMIT: &[&str] =
            &["burst", "bytes", "minute", "name", "over", "packets", "rate", "second", "week"];
        const QUOTA: &[&str] = &["bytes", "name", "over", "until", "used"];
        let what = "the name of an object";
        let keywords = match kind {
            ObjectKind::COUNTER => COUNTER,
            ObjectKind::LIMIT => LIMIT,
            ObjectKind::QUOTA => QUOTA,
            _ => &[],
        };
        match self.is(Kind::Word) && keywords.contains(&self.text()) {
            true => Err(keyword(self.token.span, what, self.text())),
            false => self.name(what),
        }
    }

    /// A name that may be in quotes, where a word of the language is a name as any other.
    pub(crate) fn any_name(&mut self, what: &str) -> Parsed<Name> {
        let token = self.token;
        if !matches!(token.kind, Kind::Word | Kind::Quoted) {
            return Err(self.expected(what));
        }
        self.next();
        let text = unquoted(self.lexer.text_of(token.span));
        match Name::new(text) {
            Ok(name) => Ok(name),
            Err(NameError { reason: NameProblem::Keyword, .. }) => Ok(Name::from_kernel(text)),
            Err(error) => Err(wrong_name(token.span, what, &error)),
        }
    }

    /// A word, or text in quotes.
    pub(crate) fn string(&mut self, what: &str) -> Parsed<&'t str> {
        match self.token.kind {
            Kind::Word | Kind::Quoted | Kind::Star => {
                let token = self.next();
                Ok(unquoted(self.lexer.text_of(token.span)))
            }
            _ => Err(self.expected(what)),
        }
    }

    /// A word, or text in quotes, where keywords have to be in quotes.
    pub(crate) fn quotable(&mut self, what: &str) -> Parsed<&'t str> {
        match self.is(Kind::Word) && is_keyword(self.text()) {
            true => Err(keyword(self.token.span, what, self.text()).help("put it in quotes")),
            false => self.string(what),
        }
    }

    /// `comment "x"`, behind the word.
    pub(crate) fn comment(&mut self) -> Parsed<Comment> {
        let span = self.token.span;
        let text = self.quotable("a comment")?;
        Comment::from_script(text).map_err(|error| wrong_name(span, "a comment", &error))
    }

    /// Goes one level deeper into what may contain itself.
    pub(crate) fn deeper<T>(&mut self, f: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= MAX_DEPTH {
            return Err(Problem::new(
                self.token.span,
                format!("this is nested deeper than {MAX_DEPTH} levels"),
            ));
        }
        self.depth += 1;
        let result = f(self);
        self.depth -= 1;
        result
    }

    /// Reads another text, and then goes on where it was.
    pub(crate) fn inside<T>(
        &mut self,
        lexer: Lexer<'t>,
        moment: Moment,
        f: impl FnOnce(&mut Self) -> Parsed<T>,
    ) -> Parsed<T> {
        let before = (self.checkpoint(), self.moment);
        self.lexer = lexer;
        self.token = self.lexer.next();
        self.moment = moment;
        self.within += 1;
        let result = self.deeper(f);
        self.within -= 1;
        let context = self.context;
        self.restore(before.0);
        (self.moment, self.context) = (before.1, context);
        result
    }

    /// Reads the value of the variable `$name` that comes next.
    pub(crate) fn variable<T>(&mut self, f: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        let (lexer, moment, name) = self.variable_text()?;
        self.inside(lexer, moment, |parser| {
            let result = f(parser)?;
            parser.end_of_variable(name)?;
            Ok(result)
        })
    }

    /// Reads the name of a variable, and returns its value: the text, when it was defined, and where the name is.
    /// Apart from [`variable`](Self::variable), which is compiled for each kind of value.
    fn variable_text(&mut self) -> Parsed<(Lexer<'t>, Moment, Span)> {
        let start = self.want(Kind::Dollar, "a variable")?.span;
        if !self.is(Kind::Word) {
            return Err(self.expected("the name of a variable"));
        }
        let name = self.next();
        let text = self.lexer.text_of(name.span);
        let Some(value) = self.variables.find(text, self.moment) else {
            let meant = nearest(text, self.variables.names()).map(str::to_owned);
            return Err(Problem::new(start.to(name.span), format!("the variable `${text}` is not defined"))
                .meant(meant.as_deref()));
        };
        let Some(budget) = self.budget.checked_sub(value.span.end - value.span.start + 1) else {
            return Err(Problem::new(
                start.to(name.span),
                "the variables of this text have too large values",
            ));
        };
        self.budget = budget;
        Ok((self.lexer_at(value.span), value.moment, name.span))
    }

    fn end_of_variable(&self, name: Span) -> Parsed<()> {
        match self.token.kind {
            Kind::End => Ok(()),
            _ => {
                let text = self.lexer_at(name).text_of(name);
                Err(self
                    .expected("the end of the variable's value")
                    .help(format!("the value of `${text}` is used where something else is expected")))
            }
        }
    }

    /// Whether the value of a variable is being read, which may be a part of something.
    pub(crate) fn is_value_of_variable(&self) -> bool {
        self.within > 0
    }

    /// The first token of the value of the variable that comes next, if there is one.
    pub(crate) fn variable_starts_with(&self) -> Option<Kind> {
        if !self.is(Kind::Dollar) {
            return None;
        }
        self.starts_with(self.second_word(), self.moment, 0)
    }

    fn starts_with(&self, name: &str, moment: Moment, depth: u32) -> Option<Kind> {
        let value = self.variables.find(name, moment)?;
        let mut lexer = self.lexer_at(value.span);
        match lexer.next().kind {
            Kind::Dollar if depth < MAX_DEPTH => {
                let name = lexer.next();
                self.starts_with(lexer.text_of(name.span), value.moment, depth + 1)
            }
            kind => Some(kind),
        }
    }

    /// The text at a place.
    pub(crate) fn lexer_at(&self, span: Span) -> Lexer<'t> {
        let source = self.sources.iter().find(|source| source.contains(span.start));
        source.map_or(self.lexer, Source::lexer).within(span)
    }

    /// Makes room for one more in a list of what the text has had so far: where it is full, for as many as
    /// the whole text will have at this rate.
    pub(crate) fn make_room<T>(&self, list: &mut Vec<T>) {
        let (length, (read, all)) = (list.len(), self.lexer.progress());
        if length < list.capacity() || length < FEW {
            return;
        }
        let expected = (length as u128 * all as u128).checked_div(read as u128).unwrap_or(0);
        let expected = usize::try_from(expected).unwrap_or(usize::MAX);
        // What is to come may be of another kind: a long list of elements, say. So the list grows to five times
        // its length at most; and it grows for the last time while it is short, as both lists are in memory
        // then.
        let wanted =
            if expected / 4 <= length { expected.saturating_add(expected / 16) } else { expected / 4 };
        list.reserve_exact(wanted.saturating_sub(length).clamp(length / 4, 4 * length));
    }

    /// A set or map of the table that the parser is in.
    pub(crate) fn set(&mut self, name: &Name) -> Option<Rc<Set>> {
        let table = self.table.clone()?;
        let id = table.set(name.clone());
        if let Some(known) = self.sets.get(&id) {
            return known.clone();
        }
        if let Some(missing) = &mut self.missing {
            *missing += 1;
            return None;
        }
        let found = self.options.sets.and_then(|sets| sets(&id)).map(Rc::new);
        self.found.extend(found.clone());
        self.sets.insert(id, found.clone());
        found
    }

    /// Notes a mistake, and stops reading where there are too many.
    pub(crate) fn note(&mut self, problem: Problem) {
        if self.is_full() || problem.follows {
            return;
        }
        self.is_cut = !self.is(Kind::End);
        self.problems.push(problem);
        if self.is_full() {
            self.stop();
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.problems.len() >= self.options.max_mistakes.max(1)
    }

    /// The mistakes found.
    pub(crate) fn error(&self) -> Option<ParseError> {
        if self.problems.is_empty() {
            return None;
        }
        let mut problems: Vec<_> = self.problems.iter().collect();
        sort::by_key(&mut problems, |problem| problem.span.start);
        let mistakes = problems.into_iter().map(|problem| problem.mistake(self.sources)).collect();
        Some(ParseError { mistakes, is_cut: self.is_full() && self.is_cut })
    }
}

/// A place to come back to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Checkpoint<'t>(Lexer<'t>, Token, usize, u32, Context);

/// What is in quotes.
pub(crate) fn unquoted(text: &str) -> &str {
    text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text)
}

pub(crate) fn wrong_name(span: Span, what: &str, error: &NameError) -> Box<Problem> {
    Problem::new(span, format!("expected {what} ({}), found {:?}", error.reason, error.name))
}

/// The mistake for a keyword where a name or text is expected.
pub(crate) fn keyword(span: Span, what: &str, word: &str) -> Box<Problem> {
    let reason = NameProblem::Keyword;
    Problem::new(span, format!("expected {what} ({reason}), found \"{word}\""))
}

/// Whether a word is a keyword of nft 1.0.6 wherever it stands.
pub(crate) fn is_keyword(word: &str) -> bool {
    matches!(Name::new(word), Err(NameError { reason: NameProblem::Keyword, .. }))
        && !LATER_KEYWORDS.contains(&word)
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((at, _)) => format!("{}...", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Words that became keywords in versions after nft 1.0.6.
const LATER_KEYWORDS: [&str; 3] = ["destroy", "last", "tunnel"];
/// Names that are kept to be used again.
const RECENT: usize = 4;
/// From so many entries on, it matters how much longer than them a list is.
const FEW: usize = 64;
/// How deep things may be in one another.
const MAX_DEPTH: u32 = 64;
/// How much longer the text may become when its variables are replaced by their values.
const EXPANSION: usize = 16;
/// The same in bytes, of a short text.
const LEAST_EXPANSION: usize = 1 << 20;
