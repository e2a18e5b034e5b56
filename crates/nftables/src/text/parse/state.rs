//! Stateful statements and their properties: counters, quotas, limits, synproxies; and `log`, `reject`.

use sluicegate_netlink::text::byte_len;

use crate::check::judge;
use crate::datatype::DataType;
use crate::expr::LogFlags;
use crate::name::Comment;
use crate::text::parse::error::Problem;
use crate::text::parse::lexer::{Kind, Token};
use crate::text::parse::parser::{Parsed, Parser, keyword, unquoted, wrong_name};
use crate::text::parse::time;
use crate::tree::{
    BYTE_UNITS, Connlimit, Counter, Last, Limit, Log, Quota, Reject, Synproxy, TimeUnit, Value,
};
use std::time::Duration;

impl Parser<'_, '_> {
    /// `counter [packets N bytes N]`
    pub(crate) fn counter(&mut self) -> Parsed<Counter> {
        self.next();
        let mut counter = Counter::default();
        self.counts(&mut counter)?;
        Ok(counter)
    }

    /// `packets N bytes N`
    pub(crate) fn counts(&mut self, counter: &mut Counter) -> Parsed<()> {
        loop {
            match self.word() {
                "packets" => {
                    self.next();
                    counter.packets = self.number("a number of packets")?;
                }
                "bytes" => {
                    self.next();
                    counter.bytes = self.number("a number of bytes")?;
                }
                _ => return Ok(()),
            }
        }
    }

    /// `last [used TIME]`
    pub(crate) fn last_used(&mut self) -> Parsed<Last> {
        self.next();
        if !self.eat_word("used") || self.eat_word("never") {
            return Ok(Last::default());
        }
        Ok(Last { used: Some(self.time("a time")?) })
    }

    /// `ct count [over] N`
    pub(crate) fn connlimit(&mut self) -> Parsed<Connlimit> {
        self.next();
        self.next();
        let over = self.eat_word("over");
        Ok(Connlimit { count: self.small("a number of connections")?, over })
    }

    /// `over` or `until`
    fn over(&mut self) -> bool {
        let over = self.eat_word("over");
        if !over {
            self.eat_word("until");
        }
        over
    }

    /// `quota [over] N bytes [used N bytes]`
    pub(crate) fn quota(&mut self) -> Parsed<Quota> {
        self.next();
        self.quota_of()
    }

    /// The same without its word.
    pub(crate) fn quota_of(&mut self) -> Parsed<Quota> {
        let over = self.over();
        let bytes = self.bytes()?;
        let used = if self.eat_word("used") { self.bytes()? } else { 0 };
        Ok(Quota { bytes, used, over })
    }

    /// `10 mbytes`
    fn bytes(&mut self) -> Parsed<u64> {
        let start = self.token.span;
        let number = self.number("a number of bytes")?;
        let factor = self.one_of(&BYTE_UNITS)?;
        number
            .checked_mul(factor)
            .ok_or_else(|| Problem::new(self.since(start), "more bytes than 64 bits count"))
    }

    /// `limit rate [over] N[ bytes]/UNIT [burst N]`
    pub(crate) fn limit(&mut self) -> Parsed<Limit> {
        self.next();
        self.want_word("rate")?;
        self.rate()
    }

    /// The same behind `rate`.
    pub(crate) fn rate(&mut self) -> Parsed<Limit> {
        let over = self.over();
        let start = self.token.span;
        let number = self.number("a rate like `10/second`")?;
        let (factor, per) = if self.eat(Kind::Slash) {
            (None, self.one_of(&TimeUnit::NAMES)?)
        } else {
            let (factor, per) = self.unit_of_rate()?;
            (Some(factor), per)
        };
        let rate = number
            .checked_mul(factor.unwrap_or(1))
            .ok_or_else(|| Problem::new(self.since(start), "more bytes than 64 bits count"))?;
        if rate == 0 {
            return Err(Problem::new(self.since(start), "expected a rate above 0"));
        }
        let mut limit = Limit { rate, per, burst: None, bytes: factor.is_some(), over };
        if self.eat_word("burst") {
            let start = self.token.span;
            let burst = if limit.bytes {
                self.bytes()?
            } else {
                let packets = self.number("a number of packets")?;
                self.want_word("packets")?;
                packets
            };
            let too_large = || Problem::new(self.since(start), "expected a burst of at most 32 bits");
            let burst = u32::try_from(burst).map_err(|_| too_large())?;
            if burst == 0 && !limit.bytes {
                return Err(Problem::new(self.since(start), "expected a burst above 0"));
            }
            limit.burst = Some(burst);
        }
        Ok(limit)
    }

    /// `kbytes/second`, which is one word, or three.
    fn unit_of_rate(&mut self) -> Parsed<(u64, TimeUnit)> {
        let word = self.word();
        let Some((bytes, unit)) = word.split_once('/') else {
            let factor = self.one_of(&BYTE_UNITS)?;
            self.want(Kind::Slash, "`/` and a unit of time")?;
            return Ok((factor, self.one_of(&TimeUnit::NAMES)?));
        };
        let factor = BYTE_UNITS.iter().find(|(name, _)| *name == bytes);
        let per = TimeUnit::NAMES.iter().find(|(name, _)| *name == unit);
        match (factor, per) {
            (Some((_, factor)), Some((_, per))) => {
                self.next();
                Ok((*factor, *per))
            }
            _ => Err(self.expected("a unit like `kbytes/second`")),
        }
    }

    /// A time with its units: `1h30m`. A bare number is not a time to nft.
    pub(crate) fn time(&mut self, what: &str) -> Parsed<Duration> {
        let token = self.token;
        let behind = token.span.end;
        match token.kind {
            Kind::Number(_) if !self.second_is_unit(behind) => {
                let number = self.lexer.text_of(token.span);
                Err(self.expected(&format!("{what} with its unit")).help(format!("say `{number}s`")))
            }
            _ => self.time_or_seconds(what),
        }
    }

    /// Whether letters follow a number without a blank.
    fn second_is_unit(&self, behind: usize) -> bool {
        let second = self.second();
        second.kind == Kind::Word && second.span.start == behind
    }

    /// A time, or a number of seconds.
    pub(crate) fn time_or_seconds(&mut self, what: &str) -> Parsed<Duration> {
        let token = self.token;
        match token.kind {
            Kind::Word | Kind::Quoted | Kind::Number(_) => {
                self.next();
                // A unit that no time has.
                if self.is(Kind::Word) && self.token.span.start == token.span.end {
                    let whole = Token { span: token.span.to(self.token.span), ..token };
                    return Err(self.found_instead(&format!("{what} like `1h30m`"), whole));
                }
                let text = unquoted(self.lexer.text_of(token.span));
                time::duration(text).ok_or_else(|| self.found_instead(&format!("{what} like `1h30m`"), token))
            }
            _ => Err(self.expected(&format!("{what} like `1h30m`"))),
        }
    }

    /// `synproxy [mss N] [wscale N] [timestamp] [sack-perm]`
    pub(crate) fn synproxy_statement(&mut self) -> Parsed<Synproxy> {
        self.next();
        let mut synproxy = Synproxy::default();
        while self.synproxy_part(&mut synproxy)? {}
        Ok(synproxy)
    }

    /// One property of a synproxy, if there is one.
    pub(crate) fn synproxy_part(&mut self, synproxy: &mut Synproxy) -> Parsed<bool> {
        match self.word() {
            "mss" | "maxseg" => {
                self.next();
                synproxy.mss = Some(self.small("a segment size")?);
            }
            "wscale" => {
                self.next();
                synproxy.wscale = Some(self.small("a window scale")?);
            }
            "timestamp" => {
                self.next();
                synproxy.timestamp = true;
            }
            "sack-perm" | "sack-permitted" => {
                self.next();
                synproxy.sack_perm = true;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// `log [prefix "x"] [level x] ...`
    pub(crate) fn log(&mut self) -> Parsed<Log> {
        let start = self.next().span;
        let mut log = Log::default();
        loop {
            match self.word() {
                "prefix" => {
                    self.next();
                    log.prefix = Some(self.log_prefix()?);
                }
                "level" => {
                    self.next();
                    log.level = Some(self.log_level()?);
                }
                "group" => {
                    self.next();
                    log.group = Some(self.small("a group")?);
                }
                "snaplen" => {
                    self.next();
                    log.snaplen = Some(self.small("a number of bytes")?);
                }
                "queue-threshold" => {
                    self.next();
                    log.queue_threshold = Some(self.small("a number of packets")?);
                }
                "flags" => {
                    self.next();
                    log.flags |= self.log_flags()?;
                }
                _ => break,
            }
        }
        judge::log(&log).map_err(|clash| self.clashed(clash, self.since(start)))?;
        Ok(log)
    }

    fn log_level(&mut self) -> Parsed<u8> {
        let quoted = self.is(Kind::Quoted);
        let text = unquoted(self.text());
        match (0_u8..).zip(Log::LEVELS).find(|(_, name)| *name == text) {
            Some((level, _)) if quoted || self.is(Kind::Word) => {
                self.next();
                Ok(level)
            }
            _ => Err(self.expected_one_of(&Log::LEVELS)),
        }
    }

    /// The text before a line of the log, in which variables are replaced by their values.
    fn log_prefix(&mut self) -> Parsed<Comment> {
        let span = self.token.span;
        // Behind `log` these are keywords to nft.
        if matches!(self.word(), "group" | "level" | "prefix" | "queue-threshold" | "snaplen") {
            return Err(keyword(span, "a prefix", self.word()).help("put it in quotes"));
        }
        let text = self.quotable("a prefix")?;
        let mut prefix = String::new();
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once('$') {
            prefix.push_str(before);
            let length = behind.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
            let (name, behind) = behind.split_at_checked(length).unwrap_or((behind, ""));
            let Some(value) = self.variables.find(name, self.moment) else {
                return Err(Problem::new(
                    span,
                    format!("the variable `${name}` in this text is not defined"),
                ));
            };
            let mut lexer = self.lexer_at(value.span);
            let token = lexer.next();
            prefix.push_str(unquoted(lexer.text_of(token.span)));
            rest = behind;
        }
        prefix.push_str(rest);
        let length = byte_len(&prefix);
        if length > MAX_PREFIX {
            return Err(Problem::new(
                span,
                format!("expected a prefix of at most {MAX_PREFIX} bytes, found {length}"),
            ));
        }
        Comment::from_script(&prefix).map_err(|error| wrong_name(span, "a prefix", &error))
    }

    fn log_flags(&mut self) -> Parsed<LogFlags> {
        match self.word() {
            "tcp" => {
                self.next();
                let names = [("sequence", LogFlags::TCP_SEQUENCE), ("options", LogFlags::TCP_OPTIONS)];
                let mut flags = self.one_of(&names)?;
                while self.eat(Kind::Comma) {
                    flags |= self.one_of(&names)?;
                }
                Ok(flags)
            }
            "ip" => {
                self.next();
                self.want_word("options")?;
                Ok(LogFlags::IP_OPTIONS)
            }
            _ => match self.one_of(&[
                ("skuid", LogFlags::SKUID),
                ("ether", LogFlags::ETHER),
                ("all", LogFlags::all()),
            ]) {
                Ok(flags) => Ok(flags),
                Err(_) => Err(self.expected_one_of(&["tcp", "ip", "skuid", "ether", "all"])),
            },
        }
    }

    /// `reject [with ...]`
    pub(crate) fn reject(&mut self) -> Parsed<Reject> {
        let start = self.token.span;
        let reject = self.reject_with()?;
        let span = self.since(start);
        self.context.check_reject(reject).map_err(|clash| self.clashed(clash, span))
    }

    fn reject_with(&mut self) -> Parsed<Reject> {
        self.next();
        if !self.eat_word("with") {
            return Ok(Reject::Default);
        }
        let word = self.word();
        let (of, reject): (_, fn(u8) -> Reject) = match word {
            "tcp" => {
                self.next();
                self.want_word("reset")?;
                return Ok(Reject::TcpReset);
            }
            "icmp" => (DataType::ICMP_CODE, Reject::Icmp),
            "icmpv6" => (DataType::ICMPV6_CODE, Reject::Icmpv6),
            "icmpx" => (DataType::ICMPX_CODE, Reject::Icmpx),
            _ => return Err(self.expected_one_of(&["icmp", "icmpv6", "icmpx", "tcp"])),
        };
        self.next();
        self.eat_word("type");
        let start = self.token.span;
        let code = match self.is(Kind::Dollar) {
            true => self.variable(|parser| parser.constant(Some(of.into())))?,
            false => self.constant(Some(of.into()))?,
        };
        let crate::tree::Expression::Value(Value::Number(code)) = code else {
            return Err(Problem::new(start, "expected a code"));
        };
        if of == DataType::ICMPX_CODE && code > 3 {
            return Err(Problem::new(start, format!("expected a code from 0 to 3, found `{code}`")));
        }
        Ok(reject(u8::try_from(code).unwrap_or(u8::MAX)))
    }
}

/// `NF_LOG_PREFIXLEN` counts the NUL.
const MAX_PREFIX: usize = 127;

#[cfg(test)]
mod tests {
    use crate::Family;
    use crate::tree::Statement;

    fn read(text: &str) -> String {
        match Statement::parse(Family::IP, text) {
            Ok(statement) => statement.to_string(),
            Err(error) => error.mistakes.first().unwrap().message.clone(),
        }
    }

    #[test]
    fn what_is_printed_is_read() {
        for text in [
            "counter packets 1 bytes 2",
            "quota over 25 mbytes used 3 bytes",
            "limit rate over 400/minute burst 9 packets",
            "limit rate 1025 kbytes/hour burst 1 mbytes",
            "last used 1m30s",
            "ct count over 3",
            "synproxy mss 1460 wscale 7 timestamp sack-perm",
            "log prefix \"a b: \" group 3 snaplen 64 queue-threshold 10",
            "log level debug flags tcp sequence,options flags skuid flags ether",
            "log flags all",
            "reject",
            "reject with tcp reset",
            "reject with icmp host-unreachable",
        ] {
            assert_eq!(read(text), text);
        }
        assert_eq!(read("limit rate 10 kbytes / second"), "limit rate 10 kbytes/second");
        assert_eq!(read("reject with icmp type 3"), "reject with icmp port-unreachable");
    }

    #[test]
    fn what_nft_refuses_is_refused() {
        assert_eq!(read("limit rate 0/second"), "expected a rate above 0");
        assert_eq!(
            read("limit rate 5/fortnight"),
            "expected `second`, `minute`, `hour`, `day` or `week`, found `fortnight`"
        );
        assert_eq!(read("limit rate 5/second burst 0 packets"), "expected a burst above 0");
        assert_eq!(read("quota 5 gbytes"), "expected `bytes`, `kbytes` or `mbytes`, found `gbytes`");
        for log in ["log group 1 level warn", "log level audit snaplen 5", "log flags all queue-threshold 5"]
        {
            let refused =
                "`level` and `flags` are not for a log with a `group`, `snaplen` or `queue-threshold`";
            assert_eq!(read(log), refused);
        }
        assert_eq!(read("log level audit prefix \"x\""), "`log level audit` takes nothing else");
        let long = format!("log prefix \"{}\"", "x".repeat(128));
        assert_eq!(read(&long), "expected a prefix of at most 127 bytes, found 128");
        assert_eq!(read("quota 99999999999999999 mbytes"), "more bytes than 64 bits count");
    }
}
