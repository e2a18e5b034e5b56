//! What all blocks have in common: a sequence of statements with definitions and includes among them, and
//! recovery after a mistake.

use crate::text::parse::error::Problem;
use crate::text::parse::lexer::{Kind, Span};
use crate::text::parse::parser::{Parsed, Parser, is_keyword, keyword};
use crate::text::parse::phrase::may_be_value;
use crate::text::parse::suggest::nearest;
use crate::text::parse::variable::Value;

/// Reads one statement of a block.
pub(crate) type Item<'i, 't, 'o> = &'i mut dyn FnMut(&mut Parser<'t, 'o>) -> Parsed<()>;

impl<'t, 'o> Parser<'t, 'o> {
    /// `{ ... }` of statements.
    pub(crate) fn block(&mut self, item: Item<'_, 't, 'o>) -> Parsed<()> {
        self.want(Kind::OpenBrace, "`{`")?;
        self.deeper(|parser| parser.items(item))?;
        self.want(Kind::CloseBrace, "`}`")?;
        Ok(())
    }

    /// Statements up to the end of a block or of the text. Mistakes are recorded, and parsing continues with
    /// the next statement.
    pub(crate) fn items(&mut self, item: Item<'_, 't, 'o>) -> Parsed<()> {
        loop {
            match self.token.kind {
                Kind::Newline | Kind::Semicolon => {
                    self.next();
                }
                Kind::CloseBrace | Kind::End => return Ok(()),
                _ => {
                    let braces = self.braces;
                    let result = match self.word() {
                        "include" => self.include(item),
                        "define" | "redefine" => self.define(),
                        "undefine" => self.undefine(),
                        _ => item(self),
                    };
                    if let Err(problem) = result {
                        self.note(*problem);
                        self.recover(braces);
                    }
                }
            }
        }
    }

    /// Skips to the end of the statement, in which this many braces were open.
    pub(crate) fn recover(&mut self, braces: u32) {
        loop {
            match self.token.kind {
                Kind::End => return,
                Kind::Newline | Kind::Semicolon if self.braces <= braces => return,
                Kind::CloseBrace if self.braces <= braces => return,
                _ => {
                    self.next();
                }
            }
        }
    }

    /// `include "path"`
    fn include(&mut self, item: Item<'_, 't, 'o>) -> Parsed<()> {
        let start = self.next().span;
        if !self.is(Kind::Quoted) {
            return Err(self.expected("the path of a file, in quotes"));
        }
        self.next();
        if !self.at_end() {
            return Err(self.expected("the end of the line"));
        }
        // A text that could not be read has been reported.
        let texts = self.includes.get(&start.start).map(Vec::as_slice).unwrap_or_default();
        for text in texts {
            let Some(source) = self.sources.get(*text) else { continue };
            let before = self.checkpoint();
            let was_included = std::mem::replace(&mut self.is_included, true);
            self.restore_to(source.lexer());
            let result = self.deeper(|parser| {
                parser.items(item)?;
                match parser.token.kind {
                    Kind::End => Ok(()),
                    _ => Err(parser.expected("a statement")),
                }
            });
            if let Err(problem) = result {
                self.note(*problem);
            }
            self.restore(before);
            self.is_included = was_included;
            if self.is_full() {
                self.stop();
            }
        }
        Ok(())
    }

    /// `define NAME = VALUE`
    fn define(&mut self) -> Parsed<()> {
        let is_new = self.is_word("define");
        self.next();
        let name = self.name_of_variable()?;
        self.want(Kind::Assign, "`=`")?;
        let span = self.value_of_variable()?;
        let text = self.lexer.text_of(name);
        let value = Value { span, moment: self.moment };
        if is_new && self.variables.has(text, self.moment) {
            return Err(Problem::new(name, format!("the variable `${text}` is defined already"))
                .help(format!("say `redefine {text} = ...` to change it")));
        }
        self.variables.define(text, self.moment, Some(value));
        self.moment = self.variables.now(self.moment);
        Ok(())
    }

    /// `undefine NAME`. As in nft, undefining an unknown variable is not a mistake.
    fn undefine(&mut self) -> Parsed<()> {
        self.next();
        let name = self.name_of_variable()?;
        let text = self.lexer.text_of(name);
        self.variables.define(text, self.moment, None);
        self.moment = self.variables.now(self.moment);
        self.separator()
    }

    fn name_of_variable(&mut self) -> Parsed<Span> {
        match self.token.kind {
            Kind::Word if is_keyword(self.text()) => {
                Err(keyword(self.token.span, "the name of a variable", self.text()))
            }
            Kind::Word => Ok(self.next().span),
            _ => Err(self.expected("the name of a variable")),
        }
    }

    /// The text of a value: up to the end of the line, but for braces.
    fn value_of_variable(&mut self) -> Parsed<Span> {
        let braces = self.braces;
        let start = self.token.span;
        let mut end = start.start;
        // Whether a value may come next, outside of braces.
        let mut wants = true;
        // Whether the value of a member comes next, within braces.
        let mut starts = true;
        loop {
            let is_outside = self.braces == braces;
            // nft's grammar has a value here, so that a verdict, say, is only possible behind the `:` of a
            // map.
            if starts && self.is(Kind::Word) && !may_be_value(self.text()) {
                return Err(self.expected("a value"));
            }
            starts = matches!(self.token.kind, Kind::OpenBrace | Kind::Comma);
            match self.token.kind {
                Kind::Newline | Kind::Semicolon | Kind::End if is_outside || self.is(Kind::End) => break,
                Kind::CloseBrace if is_outside => break,
                Kind::Junk | Kind::Assign => return Err(self.expected("a value")),
                Kind::Word
                    if is_outside
                        && !wants
                        && matches!(self.word(), "and" | "or" | "xor" | "lshift" | "rshift") =>
                {
                    wants = true;
                }
                Kind::Word
                | Kind::Star
                | Kind::Quoted
                | Kind::Bracketed
                | Kind::Number(_)
                | Kind::OpenBrace
                    if is_outside =>
                {
                    if !wants {
                        return Err(self.expected("the end of the value"));
                    }
                    wants = false;
                }
                Kind::Dollar => {
                    if is_outside && !wants {
                        return Err(self.expected("the end of the value"));
                    }
                    self.next();
                    let name = self.word();
                    if self.variables.find(name, self.moment).is_none() {
                        let meant = nearest(name, self.variables.names()).map(str::to_owned);
                        let span = self.token.span;
                        return Err(Problem::new(span, format!("the variable `${name}` is not defined"))
                            .meant(meant.as_deref()));
                    }
                    if is_outside {
                        wants = false;
                    }
                }
                Kind::At if is_outside => {}
                Kind::CloseBrace | Kind::CloseParen => {}
                _ if is_outside => wants = true,
                _ => {}
            }
            end = self.token.span.end;
            self.next();
        }
        if end == start.start || wants {
            return Err(self.expected("a value"));
        }
        if self.braces != braces {
            return Err(self.expected("`}`"));
        }
        Ok(Span { start: start.start, end })
    }
}

#[cfg(test)]
mod tests {
    use crate::Transaction;
    use crate::text::parse::{Included, ParseOptions};

    fn read_with(text: &str, options: &ParseOptions<'_>) -> String {
        match Transaction::parse_with(text, options) {
            Ok(transaction) => transaction.to_string().trim_end().to_owned(),
            Err(error) => error.mistakes.iter().map(|m| m.message.as_str()).collect::<Vec<_>>().join("; "),
        }
    }

    fn read(text: &str) -> String {
        read_with(text, &ParseOptions::default())
    }

    #[test]
    fn variables_stand_for_what_nft_takes_them_for() {
        let script = "define ports = { 22, 80-90 }
define web = 443
define net = 10.0.0.0/8
define each = { $ports, $web }
define states = established,related
define target = c2
define prio = \"filter + 5\"
define what = \"drop\"
define dev = lo
table ip t {
    define inner = 7
    set s { type inet_service; flags interval; elements = $ports; }
    chain c2 { type filter hook input priority $prio; policy $what; }
    chain c {
        tcp dport $each ip saddr $net ct state $states jump $target
        meta mark set $inner iifname $dev ip saddr . tcp dport { $net . $web }
    }
}";
        assert_eq!(
            read(script),
            "\
add table ip t
add chain ip t c2 { type filter hook input priority 5 ; policy drop ; }
add chain ip t c
add set ip t s { type inet_service ; flags interval ; }
add element ip t s { 22, 80-90 }
add rule ip t c tcp dport { 22, 80-90, 443 } ip saddr 10.0.0.0/8 ct state established,related jump c2
add rule ip t c meta mark set 0x00000007 iifname \"lo\" ip saddr . tcp dport { 10.0.0.0/8 . 443 }"
        );
    }

    #[test]
    fn a_variable_has_the_value_that_it_had_where_it_is_used() {
        let script =
            "define x = 1\nadd rule ip t c tcp dport $x\nredefine x = 2\nadd rule ip t c tcp dport $x";
        assert_eq!(read(script), "add rule ip t c tcp dport 1\nadd rule ip t c tcp dport 2");
        let script = "define x = 1\ndefine y = $x\nredefine x = 2\nadd rule ip t c tcp dport $y";
        assert_eq!(read(script), "add rule ip t c tcp dport 1");
        assert_eq!(
            read("define x = 1\nundefine x\nadd rule ip t c tcp dport $x"),
            "the variable `$x` is not defined"
        );
        assert_eq!(
            read("table ip t { define x = 1; }\nadd rule ip t c tcp dport $x"),
            "the variable `$x` is not defined"
        );
    }

    #[test]
    fn wrong_definitions_are_refused_where_they_stand() {
        assert_eq!(read("define x = 1\ndefine x = 2"), "the variable `$x` is defined already");
        assert_eq!(read("define x ="), "expected a value, found the end of the text");
        assert_eq!(read("define x = 1 2"), "expected the end of the value, found `2`");
        assert_eq!(read("define x = $y"), "the variable `$y` is not defined");
        assert_eq!(read("define x = { 1, 2"), "expected `}`, found the end of the text");
    }

    #[test]
    fn variables_do_not_grow_without_bound() {
        let mut script = "define v0 = { 1, 2, 3, 4, 5, 6, 7, 8 }\n".to_owned();
        for i in 1..40 {
            let before = i - 1;
            script += &format!("define v{i} = {{ $v{before}, $v{before}, $v{before}, $v{before} }}\n");
        }
        script += "add rule ip t c tcp dport $v39";
        assert_eq!(read(&script), "the variables of this text have too large values");
    }

    #[test]
    fn included_texts_are_read_in_their_place() {
        let include = |path: &str| match path {
            "a" => {
                Ok(vec![Included { name: "a".to_owned(), text: "define x = 5\ninclude \"b\"".to_owned() }])
            }
            "b" => Ok(vec![Included { name: "b".to_owned(), text: "add table ip b".to_owned() }]),
            "rules/*" => Ok(vec![
                Included { name: "1".to_owned(), text: "tcp dport $x".to_owned() },
                Included { name: "2".to_owned(), text: "tcp dport foo\n".to_owned() },
            ]),
            "self" => Ok(vec![Included { name: "self".to_owned(), text: "include \"self\"".to_owned() }]),
            _ => Err(Box::<dyn std::error::Error>::from("no such file")),
        };
        let options = ParseOptions { include: Some(&include), ..ParseOptions::default() };
        let script = "include \"a\"\nadd rule ip t c tcp dport $x";
        assert_eq!(read_with(script, &options), "add table ip b\nadd rule ip t c tcp dport 5");
        let error = Transaction::parse_with(
            "define x = 1\ntable ip t { chain c {\ninclude \"rules/*\"\n}\n}",
            &options,
        );
        let mistake = error.unwrap_err().mistakes.remove(0);
        assert_eq!((mistake.source.as_deref(), mistake.line, mistake.column), (Some("2"), 1, 11));
        assert_eq!(read_with("include \"x\"", &options), "cannot include \"x\": no such file");
        assert_eq!(read("include \"x\""), "cannot include \"x\": this text may include nothing");
        assert!(read_with("include \"self\"", &options).contains("in more than 16 others"));
    }

    #[test]
    fn definitions_may_be_given_from_outside() {
        let mut options = ParseOptions::default();
        options.defines.push(("port".to_owned(), "{ 1, 2 }".to_owned()));
        let rule = "add rule ip t c tcp dport $port";
        assert_eq!(read_with(rule, &options), "add rule ip t c tcp dport { 1, 2 }");
    }
}
