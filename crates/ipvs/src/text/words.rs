//! Options and their arguments in the notation of ipvsadm: short options may share a dash, and long ones may
//! have `=`.

use std::fmt;

use crate::error::Invalid;

/// An error in a command line: the problem and its position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub struct ParseError {
    /// The position.
    pub place: Place,
    /// The offending word; empty when something is missing.
    pub word: String,
    /// The problem.
    pub reason: Reason,
}

impl fmt::Display for ParseError {
    /// Writes the place, and `expected a number from 1 to 9, found ...`; or for what is wrong about a word
    /// that may stand there, that word and `expected the option without an argument`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, word, reason } = self;
        match reason.is_of_another_word() {
            true if word.is_empty() => write!(f, "{place}: {reason}, found an empty word"),
            true => write!(f, "{place}: {reason}, found `{}`", shown(word)),
            false if word.is_empty() => write!(f, "{place}: {reason}"),
            false => write!(f, "{place}: `{}`: {reason}", shown(word)),
        }
    }
}

/// Returns untrusted text for a message: control characters are escaped, and the length is limited.
fn shown(word: &str) -> String {
    const LONGEST: usize = 80;
    let shown: String = word.chars().take(LONGEST).flat_map(char::escape_debug).collect();
    if word.chars().count() > LONGEST { shown + "..." } else { shown }
}

/// The position of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a text; both from 1, the column in characters.
    Line {
        /// The line.
        line: usize,
        /// The column.
        column: usize,
    },
    /// On a command line, from 1.
    Argument(usize),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line { line, column } => write!(f, "line {line}, column {column}"),
            Self::Argument(number) => write!(f, "argument {number}"),
        }
    }
}

/// The problem with a word.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each variant's message says it")]
pub enum Reason {
    #[error("expected a command (-A, -E, -D, -a, -e, -d, -L, -S, ...)")]
    NoCommand,
    #[error("expected an option of ipvsadm")]
    UnknownOption,
    #[error("expected an argument behind the option, found none")]
    MissingArgument,
    #[error("expected the option without an argument")]
    UnexpectedArgument,
    #[error("expected an option")]
    UnexpectedWord,
    #[error("expected one command, found a second one")]
    SecondCommand,
    #[error("expected the option once, found it twice, or with another of its kind")]
    Twice,
    #[error("expected an option of {0}")]
    Foreign(&'static str),
    #[error("expected {0}, found none")]
    Missing(&'static str),
    #[error("expected a {name} timeout from 0 to {max} seconds")]
    Timeout {
        /// `tcp`, `tcpfin` or `udp`.
        name: &'static str,
        max: u64,
    },
    #[error("expected a number from {min} to {max}")]
    Number { min: u64, max: u64 },
    #[error("expected ADDRESS:PORT, [ADDRESS]:PORT for IPv6 (names are not resolved)")]
    Address,
    #[error("expected the address of a multicast group")]
    Group,
    #[error("expected a netmask such as 255.255.255.0, or for IPv6 a prefix length from 1 to 128")]
    Mask,
    #[error("expected flags of this scheduler ({0}), joined by commas")]
    SchedulerFlag(&'static str),
    #[error("expected a tunnel of the kind ipip, gue or gre")]
    TunnelType,
    #[error("expected an option of this kind of tunnel")]
    TunnelOption,
    #[error("expected the role master or backup")]
    DaemonRole,
    #[error("expected -6 together with -f")]
    Six,
    #[error("expected a command that changes something (and not -R, whose input this is)")]
    NotAChange,
    #[error("{0}")]
    Invalid(Invalid),
    #[error("{0}")]
    Conflict(&'static str),
}

impl Reason {
    /// Returns true when the words do not form a command line; ipvsadm then exits with 255 and a hint to
    /// `-h`, and with 2 for other errors.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::NoCommand | Self::UnknownOption | Self::MissingArgument | Self::NotAChange)
    }

    /// Returns true when another word was expected in the place of the one that stands there.
    const fn is_of_another_word(&self) -> bool {
        matches!(
            self,
            Self::NoCommand
                | Self::UnknownOption
                | Self::UnexpectedWord
                | Self::Foreign(_)
                | Self::TunnelOption
                | Self::NotAChange
                | Self::Timeout { .. }
                | Self::Number { .. }
                | Self::Address
                | Self::Group
                | Self::Mask
                | Self::SchedulerFlag(_)
                | Self::TunnelType
                | Self::DaemonRole
        )
    }
}

/// A word and its position.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word<'a> {
    pub(super) text: &'a str,
    pub(super) place: Place,
}

impl Word<'_> {
    pub(super) fn error(&self, reason: Reason) -> ParseError {
        ParseError { place: self.place, word: self.text.to_owned(), reason }
    }
}

/// Whether and how an option takes an argument.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    Nothing,
    One,
    /// Only if the next word is not an option.
    Perhaps,
}

/// The options, by their long names.
macro_rules! options {
    ($($name:ident $long:literal $short:literal $takes:ident;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Option_ { $($name),* }

        impl Option_ {
            /// The name for messages, the short name or a space, and the kind of argument.
            const ALL: &[(Self, &str, char, Takes)] = &[$((Self::$name, $long, $short, Takes::$takes)),*];
        }
    };
}

options! {
    AddService "add-service" 'A' Nothing;
    EditService "edit-service" 'E' Nothing;
    DeleteService "delete-service" 'D' Nothing;
    Clear "clear" 'C' Nothing;
    List "list" 'L' Nothing;
    ListToo "list" 'l' Nothing;
    Zero "zero" 'Z' Nothing;
    AddServer "add-server" 'a' Nothing;
    EditServer "edit-server" 'e' Nothing;
    DeleteServer "delete-server" 'd' Nothing;
    Set "set" ' ' Nothing;
    Help "help" 'h' Nothing;
    Version "version" 'v' Nothing;
    Restore "restore" 'R' Nothing;
    Save "save" 'S' Nothing;
    StartDaemon "start-daemon" ' ' One;
    StopDaemon "stop-daemon" ' ' One;
    Tcp "tcp-service" 't' One;
    Udp "udp-service" 'u' One;
    Sctp "sctp-service" ' ' One;
    Mark "fwmark-service" 'f' One;
    Scheduler "scheduler" 's' One;
    Persistent "persistent" 'p' Perhaps;
    Netmask "netmask" 'M' One;
    Server "real-server" 'r' One;
    Masquerading "masquerading" 'm' Nothing;
    Ipip "ipip" 'i' Nothing;
    Gatewaying "gatewaying" 'g' Nothing;
    Weight "weight" 'w' One;
    Upper "u-threshold" 'x' One;
    Lower "l-threshold" 'y' One;
    Numeric "numeric" 'n' Nothing;
    Connection "connection" 'c' Nothing;
    McastInterface "mcast-interface" ' ' One;
    McastGroup "mcast-group" ' ' One;
    McastPort "mcast-port" ' ' One;
    McastTtl "mcast-ttl" ' ' One;
    SyncId "syncid" ' ' One;
    SyncMaxlen "sync-maxlen" ' ' One;
    Timeout "timeout" ' ' Nothing;
    Daemon "daemon" ' ' Nothing;
    Stats "stats" ' ' Nothing;
    Rate "rate" ' ' Nothing;
    Thresholds "thresholds" ' ' Nothing;
    PersistentConn "persistent-conn" ' ' Nothing;
    NoSort "nosort" ' ' Nothing;
    Sort "sort" ' ' Nothing;
    Exact "exact" 'X' Nothing;
    Six "ipv6" '6' Nothing;
    OnePacket "ops" 'o' Nothing;
    Engine "pe" ' ' One;
    SchedulerFlags "sched-flags" 'b' One;
    TunInfo "tun-info" ' ' Nothing;
    TunType "tun-type" ' ' One;
    TunPort "tun-port" ' ' One;
    TunNoCsum "tun-nocsum" ' ' Nothing;
    TunCsum "tun-csum" ' ' Nothing;
    TunRemCsum "tun-remcsum" ' ' Nothing;
}

/// An option with its argument, or another word.
#[derive(Clone, Copy, Debug)]
pub(super) enum Item<'a> {
    Option { option: Option_, word: Word<'a>, argument: Option<Word<'a>> },
    Word(Word<'a>),
}

/// Splits words into options and arguments.
pub(super) fn items<'a>(words: &[Word<'a>]) -> Result<Vec<Item<'a>>, ParseError> {
    let mut items = Vec::with_capacity(words.len());
    let mut rest = words;
    while let [word, after @ ..] = rest {
        rest = after;
        if let Some(long) = word.text.strip_prefix("--") {
            rest = long_option(word, long, rest, &mut items)?;
        } else if let Some(short) = word.text.strip_prefix('-').filter(|short| !short.is_empty()) {
            rest = short_options(word, short, rest, &mut items)?;
        } else {
            items.push(Item::Word(*word));
        }
    }
    Ok(items)
}

fn long_option<'a, 'b>(
    word: &Word<'a>,
    long: &'a str,
    rest: &'b [Word<'a>],
    items: &mut Vec<Item<'a>>,
) -> Result<&'b [Word<'a>], ParseError> {
    let (name, attached) = match long.split_once('=') {
        Some((name, argument)) => (name, Some(Word { text: argument, place: word.place })),
        None => (long, None),
    };
    let found = Option_::ALL.iter().find(|(_, long, _, _)| *long == name);
    let &(option, _, _, takes) = found.ok_or_else(|| word.error(Reason::UnknownOption))?;
    if attached.is_some() && takes == Takes::Nothing {
        return Err(word.error(Reason::UnexpectedArgument));
    }
    let (argument, rest) = argument(word, takes, attached, rest)?;
    items.push(Item::Option { option, word: *word, argument });
    Ok(rest)
}

fn short_options<'a, 'b>(
    word: &Word<'a>,
    short: &'a str,
    rest: &'b [Word<'a>],
    items: &mut Vec<Item<'a>>,
) -> Result<&'b [Word<'a>], ParseError> {
    let mut letters = short.chars();
    while let Some(letter) = letters.next() {
        let found = Option_::ALL.iter().find(|(_, _, short, _)| *short == letter && letter != ' ');
        let &(option, _, _, takes) = found.ok_or_else(|| word.error(Reason::UnknownOption))?;
        if takes == Takes::Nothing {
            items.push(Item::Option { option, word: *word, argument: None });
            continue;
        }
        // The rest of the word is the argument.
        let left = letters.as_str();
        let attached = (!left.is_empty()).then_some(Word { text: left, place: word.place });
        let (argument, rest) = argument(word, takes, attached, rest)?;
        items.push(Item::Option { option, word: *word, argument });
        return Ok(rest);
    }
    Ok(rest)
}

type Argument<'a, 'b> = (Option<Word<'a>>, &'b [Word<'a>]);

fn argument<'a, 'b>(
    word: &Word<'a>,
    takes: Takes,
    attached: Option<Word<'a>>,
    rest: &'b [Word<'a>],
) -> Result<Argument<'a, 'b>, ParseError> {
    match (takes, attached, rest) {
        (Takes::Nothing, _, _) => Ok((None, rest)),
        (_, Some(argument), _) => Ok((Some(argument), rest)),
        (Takes::One, None, [argument, rest @ ..]) => Ok((Some(*argument), rest)),
        (Takes::One, None, []) => Err(word.error(Reason::MissingArgument)),
        (Takes::Perhaps, None, [argument, rest @ ..]) if !argument.text.starts_with('-') => {
            Ok((Some(*argument), rest))
        }
        (Takes::Perhaps, None, _) => Ok((None, rest)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(line: &str) -> Result<Vec<String>, String> {
        let words: Vec<_> = line
            .split(' ')
            .enumerate()
            .map(|(at, text)| Word { text, place: Place::Argument(at + 1) })
            .collect();
        let show = |item: &Item<'_>| match item {
            Item::Word(word) => word.text.to_owned(),
            Item::Option { option, argument: None, .. } => format!("{option:?}"),
            Item::Option { option, argument: Some(argument), .. } => format!("{option:?}={}", argument.text),
        };
        items(&words).map(|items| items.iter().map(show).collect()).map_err(|e| e.to_string())
    }

    #[test]
    fn options_are_read_in_all_notations() {
        assert_eq!(split("-Ln").unwrap(), ["List", "Numeric"]);
        assert_eq!(split("-At 1.2.3.4:5 -srr").unwrap(), ["AddService", "Tcp=1.2.3.4:5", "Scheduler=rr"]);
        assert_eq!(split("--weight=5 --weight 6").unwrap(), ["Weight=5", "Weight=6"]);
        assert_eq!(split("-p -o").unwrap(), ["Persistent", "OnePacket"]);
        assert_eq!(split("-p 60 -p60").unwrap(), ["Persistent=60", "Persistent=60"]);
        assert_eq!(split("--set 1 2 3").unwrap(), ["Set", "1", "2", "3"]);
    }

    #[test]
    fn a_wrong_option_is_named() {
        assert_eq!(
            split("-A --bogus").unwrap_err(),
            "argument 2: expected an option of ipvsadm, found `--bogus`"
        );
        assert_eq!(split("-A -Q").unwrap_err(), "argument 2: expected an option of ipvsadm, found `-Q`");
        assert_eq!(
            split("-A -t").unwrap_err(),
            "argument 2: `-t`: expected an argument behind the option, found none"
        );
        assert_eq!(
            split("--list=3").unwrap_err(),
            "argument 1: `--list=3`: expected the option without an argument"
        );
    }

    #[test]
    fn messages_escape_and_shorten_untrusted_text() {
        let error = split(&format!("-A --{}\n\u{1b}[2J", "x".repeat(10_000))).unwrap_err();
        assert!(error.len() < 200 && !error.contains('\n') && !error.contains('\u{1b}'), "{error}");
    }
}
