//! What ipvsadm says of a command line that it does not take.

use std::borrow::Cow;

use sluicegate_ipvs::Invalid;
use sluicegate_ipvs::text::{ParseError, Place, Reason};

use crate::complete::ipvsadm::OPTIONS;
use crate::near::nearest;

/// Returns what ipvsadm 1.31 says of a mistake in these arguments, where it has words that name it.
pub(super) fn said(error: &ParseError, args: &[String]) -> Option<Cow<'static, str>> {
    let word = &error.word;
    let Place::Argument(number) = error.place else { return None };
    // The option whose value the word is.
    let option = number.checked_sub(2).and_then(|at| args.get(at)).map_or("", String::as_str);
    let command = args.iter().find_map(|word| command(word)).unwrap_or_default();
    let text = match &error.reason {
        Reason::UnexpectedWord => format!("unexpected argument {word}"),
        Reason::UnknownOption if number > 1 => format!("{word}: unknown option"),
        Reason::Twice => format!("multiple '{}' options specified", name(word)?),
        Reason::Foreign(_) => format!("Illegal '{}' option with the '{command}' command", name(word)?),
        Reason::Missing(what) => {
            let what = match *what {
                "the real server (-r)" => "real-server",
                what if what.starts_with("the service") => "service-address",
                what if what.starts_with("a timeout") => {
                    return Some("--set option requires 3 timeout values".into());
                }
                _ => return None,
            };
            format!("You need to supply the '{what}' option for the '{command}' command")
        }
        Reason::Number { .. } => match option {
            "-w" | "--weight" => "illegal weight specified".to_owned(),
            "-f" | "--fwmark-service" => format!("invalid fwmark value `{word}' specified"),
            "-p" | "--persistent" => format!("invalid timeout value `{word}' specified"),
            "-x" | "--u-threshold" => "illegal u_threshold specified".to_owned(),
            "-y" | "--l-threshold" => "illegal l_threshold specified".to_owned(),
            "--syncid" => "illegal syncid specified".to_owned(),
            _ => return None,
        },
        Reason::Timeout { .. } => format!("invalid timeout value `{word}' specified"),
        Reason::Address => match option {
            "-r" | "--real-server" => "illegal real server address[:port] specified".to_owned(),
            _ => "illegal virtual server address[:port] specified".to_owned(),
        },
        Reason::DaemonRole => format!("illegal {} parameter specified", option.trim_start_matches('-')),
        Reason::Six => "-6 used before -f\n".to_owned(),
        Reason::Invalid(Invalid::PortZero) => "Zero port specified for non-persistent service".to_owned(),
        _ => return None,
    };
    Some(text.into())
}

/// Returns the option that was meant.
pub(super) fn nearest_option(word: &str) -> Option<String> {
    let name = |option: &str| option.trim_start_matches('-').to_owned();
    nearest(&name(word), OPTIONS.map(name)).map(|name| format!("--{name}"))
}

/// Returns the long name of a command.
fn command(word: &str) -> Option<&'static str> {
    const COMMANDS: [(&str, &str); 8] = [
        ("-A", "add-service"),
        ("-E", "edit-service"),
        ("-D", "delete-service"),
        ("-a", "add-server"),
        ("-e", "edit-server"),
        ("-d", "delete-server"),
        ("-L", "list"),
        ("-Z", "zero"),
    ];
    let found = COMMANDS.iter().find(|(short, long)| word == *short || word.strip_prefix("--") == Some(long));
    found.map(|(_, long)| *long)
}

/// Returns what ipvsadm calls an option.
fn name(option: &str) -> Option<&'static str> {
    Some(match option {
        "-t" | "-u" | "-f" | "--tcp-service" | "--udp-service" | "--sctp-service" | "--fwmark-service" => {
            "service-address"
        }
        "-s" | "--scheduler" => "scheduler",
        "-r" | "--real-server" => "real-server",
        "-w" | "--weight" => "weight",
        "-p" | "--persistent" => "persistent",
        "-M" | "--netmask" => "netmask",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_meant_differs_by_few_letters() {
        assert_eq!(nearest_option("--add-servce").as_deref(), Some("--add-service"));
        assert_eq!(nearest_option("--nosuch"), None);
        assert_eq!(nearest("rr", ["rr", "wrr"]).as_deref(), Some("wrr"), "not the word itself");
    }
}
