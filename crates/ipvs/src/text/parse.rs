//! Parses words into commands.

use super::arguments::{Arguments, role};
use super::words::{Item, Option_ as O, ParseError, Place, Reason, Word, items};
use crate::command::Command;
use crate::error::Error;
use crate::service::ServiceId;

/// A parsed command line of ipvsadm.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Invocation {
    /// A change.
    Change(Command),
    /// `-L`: list.
    List(ListOptions),
    /// `-S`: print the commands that restore the table.
    Save {
        /// `-n`: without resolving names.
        numeric: bool,
    },
    /// `-R`: carry out the commands of standard input.
    Restore,
    /// `-h`
    Help,
    /// `-v`
    Version,
}

/// The options of `-L`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "they are independent switches")]
#[non_exhaustive]
pub struct ListOptions {
    /// `-t`, `-u`, `--sctp-service`, `-f`: this service only.
    pub service: Option<ServiceId>,
    /// `-n`
    pub numeric: bool,
    /// `-c`: connections instead of services.
    pub connections: bool,
    /// `--timeout`: the time-outs instead of services.
    pub timeout: bool,
    /// `--daemon`: the sync daemons instead of services.
    pub daemon: bool,
    /// `--stats`
    pub stats: bool,
    /// `--rate`
    pub rate: bool,
    /// `--thresholds`
    pub thresholds: bool,
    /// `--persistent-conn`
    pub persistent_connections: bool,
    /// `--tun-info`
    pub tunnels: bool,
    /// `--nosort`: in the order of the kernel.
    pub unsorted: bool,
    /// `--exact`: numbers without K, M, G.
    pub exact: bool,
}

/// Parses the output of `ipvsadm -S -n`, which `ipvsadm -R` reads: one command on each line, which may begin
/// with `ipvsadm`. Empty lines and lines that begin with `#` are skipped.
///
/// ```
/// use sluicegate_ipvs::text;
///
/// let commands = text::parse("# web\n-A -t 10.96.0.10:80 -s rr\n")?;
/// assert_eq!(commands[0].to_string(), "-A -t 10.96.0.10:80 -s rr");
/// # Ok::<(), sluicegate_ipvs::Error>(())
/// ```
///
/// # Errors
/// [`Error::Parse`] with line, column and the offending word; [`Reason::NotAChange`] for commands that change
/// nothing.
pub fn parse(text: &str) -> Result<Vec<Command>, Error> {
    let mut commands = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let mut words = split(number + 1, line);
        if words.first().is_some_and(|word| word.text == "ipvsadm") {
            words.remove(0);
        }
        match words.first().copied() {
            None => continue,
            Some(first) if first.text.starts_with('#') => continue,
            Some(first) => match invocation(&with_lost_flag(words))? {
                Invocation::Change(command) => commands.push(command),
                _ => return Err(first.error(Reason::NotAChange).into()),
            },
        }
    }
    Ok(commands)
}

/// Returns the words of a line with the flag that ipvsadm 1.31 has no name for: it saves a service of `sh` or
/// `mh` with that flag alone as `-s sh -b`, and cannot read that back.
fn with_lost_flag(mut words: Vec<Word<'_>>) -> Vec<Word<'_>> {
    let has_names = words.windows(2).any(
        |pair| matches!(pair, [option, name] if option.text == "-s" && matches!(name.text, "sh" | "mh")),
    );
    if let Some(last) = words.last().copied().filter(|last| last.text == "-b" && has_names) {
        words.push(Word { text: "flag-3", ..last });
    }
    words
}

/// Parses the arguments of ipvsadm, without the program's name. An empty list of arguments means `-L`.
///
/// # Errors
/// [`Error::Parse`] with the number of the argument.
pub fn parse_args<S: AsRef<str>>(args: &[S]) -> Result<Invocation, Error> {
    let words: Vec<_> = args
        .iter()
        .enumerate()
        .map(|(at, text)| Word { text: text.as_ref(), place: Place::Argument(at + 1) })
        .collect();
    if words.is_empty() { Ok(Invocation::List(ListOptions::default())) } else { Ok(invocation(&words)?) }
}

fn split(line: usize, text: &str) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    for text_word in text.split_whitespace() {
        // A word is a slice of its line: the distance of their starts is its offset.
        let offset = text_word.as_ptr().addr() - text.as_ptr().addr();
        let column = text.get(..offset).map_or(0, |before| before.chars().count()) + 1;
        words.push(Word { text: text_word, place: Place::Line { line, column } });
    }
    words
}

fn invocation(words: &[Word<'_>]) -> Result<Invocation, ParseError> {
    let items = items(words)?;
    let Some((Item::Option { option, word, argument }, rest)) = items.split_first() else {
        let first = words.first().copied().unwrap_or(Word { text: "", place: Place::Argument(1) });
        return Err(first.error(Reason::NoCommand));
    };
    let mut given = Arguments::new(*word, *option, rest)?;
    match option {
        O::AddService => given.service_command("-A", |id, config| Command::AddService { id, config }),
        O::EditService => given.service_command("-E", |id, config| Command::EditService { id, config }),
        O::DeleteService => given.delete_service(),
        O::AddServer => {
            given.server_command("-a", |service, id, config| Command::AddDestination { service, id, config })
        }
        O::EditServer => {
            given.server_command("-e", |service, id, config| Command::EditDestination { service, id, config })
        }
        O::DeleteServer => given.delete_server(),
        O::Clear => given.alone("-C", Invocation::Change(Command::Flush)),
        O::Zero => given.zero(),
        O::Set => given.set(),
        O::StartDaemon => given.start_daemon(*argument),
        O::StopDaemon => {
            let role = role(*word, *argument)?;
            given.alone("--stop-daemon", Invocation::Change(Command::StopDaemon(role)))
        }
        O::List | O::ListToo => given.list(),
        O::Save => {
            let numeric = given.flag(O::Numeric)?;
            given.alone("-S", Invocation::Save { numeric })
        }
        O::Restore => given.alone("-R", Invocation::Restore),
        O::Help => Ok(Invocation::Help),
        O::Version => Ok(Invocation::Version),
        _ => Err(word.error(Reason::NoCommand)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_that_ipvsadm_loses_is_found_again() {
        let lost = parse("-A -t 10.0.0.1:80 -s sh -b \n-A -t 10.0.0.2:80 -s mh -p 30 -b").unwrap();
        let whole = "-A -t 10.0.0.1:80 -s sh -b flag-3\n-A -t 10.0.0.2:80 -s mh -p 30 -b flag-3";
        assert_eq!(lost, parse(whole).unwrap());
        assert_eq!(lost.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"), whole);
        assert!(parse("-A -t 10.0.0.1:80 -s rr -b").is_err());
    }

    #[test]
    fn the_timeout_that_is_not_valid_is_named() {
        let error = |words: [&str; 4]| parse_args(&words).unwrap_err().to_string();
        assert_eq!(
            error(["--set", "1", "2678401", "3"]),
            "argument 3: expected a tcpfin timeout from 0 to 2678400 seconds, found `2678401`"
        );
        assert!(error(["--set", "x", "2", "3"]).contains("expected a tcp timeout"));
        assert!(error(["--set", "1", "2", "-"]).contains("expected a udp timeout"));
    }

    #[test]
    fn what_was_expected_and_found_is_said() {
        for (line, said) in [
            ("-A -t 10.0.0.1 x -s rr", "line 1, column 16: expected an option, found `x`"),
            ("x", "line 1, column 1: expected a command (-A, -E, -D, -a, -e, -d, -L, -S, ...), found `x`"),
            (
                "--start-daemon primary",
                "line 1, column 16: expected the role master or backup, found `primary`",
            ),
            (
                "--start-daemon master --mcast-group here",
                "line 1, column 37: expected the address of a multicast group, found `here`",
            ),
            (
                "-A -t web:80",
                "line 1, column 7: expected ADDRESS:PORT, [ADDRESS]:PORT for IPv6 (names are not \
                resolved), found `web:80`",
            ),
        ] {
            assert_eq!(parse(line).unwrap_err().to_string(), said, "{line}");
        }
        let empty = parse_args(&["-A", "-t", ""]).unwrap_err().to_string();
        assert!(empty.ends_with("found an empty word"), "{empty}");
    }
}
