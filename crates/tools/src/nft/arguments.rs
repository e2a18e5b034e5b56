//! The command line, by the rules of `getopt_long` as nft(8) uses it.

use std::fmt;
use std::path::PathBuf;

/// What is to be done, and how it is to be printed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Arguments {
    pub(crate) action: Action,
    pub(crate) check: bool,
    /// Prints what goes over netlink.
    pub(crate) debug_netlink: bool,
    pub(crate) echo: bool,
    pub(crate) optimize: bool,
    pub(crate) json: bool,
    pub(crate) handles: bool,
    pub(crate) stateless: bool,
    pub(crate) terse: bool,
    pub(crate) services: bool,
    pub(crate) users: bool,
    pub(crate) reverse_dns: bool,
    pub(crate) numeric_priority: bool,
    pub(crate) numeric_protocol: bool,
    pub(crate) numeric_time: bool,
    pub(crate) numeric_symbols: bool,
    pub(crate) include_paths: Vec<PathBuf>,
    pub(crate) defines: Vec<(String, String)>,
}

#[derive(Debug, Clone, Default)]
pub(crate) enum Action {
    #[default]
    Help,
    Version,
    ExtendedVersion,
    /// Reads a file, or standard input where it is `-`.
    File(String),
    /// Does what the words say.
    Words(String),
    /// Reads commands from a terminal, or line by line.
    Interactive,
}

/// What is wrong with a command line. Displays in the words of nft and of getopt, which programs know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Misuse {
    /// No option has this name.
    UnknownOption { found: String },
    /// No option is this letter.
    UnknownLetter { found: char },
    /// More than one option begins so.
    Ambiguous { found: String, possible: Vec<&'static str> },
    /// The option takes no argument.
    Argument { option: &'static str },
    /// The argument of the option is missing.
    NoArgument { option: &'static str },
    /// The argument of the option is missing, which was written as a letter.
    NoArgumentOfLetter { letter: char },
    /// A definition without `=`.
    NoValue { found: String },
    /// A definition of a name that is defined.
    DefinedTwice { found: String },
    /// A definition without a name or a value.
    EmptyDefinition { found: String },
    /// There is no file that could use the definitions.
    DefinitionWithoutFile,
    /// No level of debugging has this name.
    UnknownLevel { found: String },
    /// A level of debugging that nft has and this program has not.
    OtherLevel { found: String },
    /// Options stand behind the command.
    LateOption { line: String },
    /// There is neither a command nor a file.
    NoCommand,
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownOption { found } => write!(f, "nft: unrecognized option '{found}'"),
            Self::UnknownLetter { found } => write!(f, "nft: invalid option -- '{found}'"),
            Self::Ambiguous { found, possible } => {
                let names: Vec<_> = possible.iter().map(|name| format!("'--{name}'")).collect();
                write!(f, "nft: option '--{found}' is ambiguous; possibilities: {}", names.join(" "))
            }
            Self::Argument { option } => write!(f, "nft: option '--{option}' doesn't allow an argument"),
            Self::NoArgument { option } => write!(f, "nft: option '--{option}' requires an argument"),
            Self::NoArgumentOfLetter { letter } => {
                write!(f, "nft: option requires an argument -- '{letter}'")
            }
            Self::NoValue { found } => {
                write!(f, "Failed to define variable '{found}': expected NAME=VALUE")
            }
            Self::DefinedTwice { found } => {
                write!(f, "Error: cannot define `{found}`: it is defined already")
            }
            Self::EmptyDefinition { found } => {
                write!(f, "Error: cannot define `{found}`: expected NAME=VALUE")
            }
            Self::DefinitionWithoutFile => {
                f.write_str("Error: -D/--define can only be used with -f/--filename")
            }
            Self::UnknownLevel { found } => write!(f, "invalid debug parameter `{found}'"),
            Self::OtherLevel { found } => {
                write!(f, "nft: --debug={found}: expected `netlink`, the one level that is shown here")
            }
            Self::LateOption { line } => {
                write!(f, "Error: syntax error, options must be specified before commands\nnft {line}")
            }
            Self::NoCommand => f.write_str("nft: no command specified"),
        }
    }
}

const LONG: [(&str, char); 21] = [
    ("help", 'h'),
    ("version", 'v'),
    ("file", 'f'),
    ("define", 'D'),
    ("interactive", 'i'),
    ("includepath", 'I'),
    ("check", 'c'),
    ("optimize", 'o'),
    ("handle", 'a'),
    ("stateless", 's'),
    ("terse", 't'),
    ("service", 'S'),
    ("reversedns", 'N'),
    ("guid", 'u'),
    ("numeric", 'n'),
    ("numeric-priority", 'y'),
    ("numeric-protocol", 'p'),
    ("numeric-time", 'T'),
    ("echo", 'e'),
    ("json", 'j'),
    ("debug", 'd'),
];

/// Options stand before the first word that is none; behind it, `-` belongs to nft's language.
pub(crate) fn parse(words: impl Iterator<Item = String>) -> Result<Arguments, Misuse> {
    let mut arguments = Arguments::default();
    let all: Vec<String> = words.collect();
    let mut words = all.iter().cloned().peekable();
    let (mut file, mut is_interactive) = (None, false);
    while let Some(word) = words.next_if(|word| word.starts_with('-') && word.len() > 1) {
        if word == "--" {
            break;
        }
        let mut options = Vec::new();
        if let Some(long) = word.strip_prefix("--") {
            let (name, value) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (long, None),
            };
            let option = by_name(name, &word)?;
            let (full, _) = LONG.iter().find(|(_, other)| *other == option).copied().unwrap_or_default();
            if value.is_some() && !takes_value(option) {
                return Err(Misuse::Argument { option: full });
            }
            options.push((option, value, Misuse::NoArgument { option: full }));
        } else {
            let mut letters = word.chars().skip(1);
            while let Some(letter) = letters.next() {
                let rest: String = letters.clone().collect();
                let takes_rest = takes_value(letter) && !rest.is_empty();
                let missing = Misuse::NoArgumentOfLetter { letter };
                options.push((letter, takes_rest.then_some(rest), missing));
                if takes_rest {
                    break;
                }
            }
        }
        for (option, value, missing) in options {
            let mut needed = || value.clone().or_else(|| words.next()).ok_or(missing.clone());
            let mut shown = |action| {
                arguments.action = action;
                Ok(std::mem::take(&mut arguments))
            };
            match option {
                // What stands behind these is not looked at.
                'h' => return shown(Action::Help),
                'v' => return shown(Action::Version),
                'V' => return shown(Action::ExtendedVersion),
                'f' => file = Some(needed()?),
                'D' => {
                    let text = needed()?;
                    let Some((name, value)) = text.split_once('=') else {
                        return Err(Misuse::NoValue { found: text });
                    };
                    if arguments.defines.iter().any(|(other, _)| other == name) {
                        return Err(Misuse::DefinedTwice { found: text });
                    }
                    if name.is_empty() || value.is_empty() {
                        return Err(Misuse::EmptyDefinition { found: text });
                    }
                    arguments.defines.push((name.to_owned(), value.to_owned()));
                }
                'I' => arguments.include_paths.push(needed()?.into()),
                'd' => {
                    debug(&needed()?)?;
                    arguments.debug_netlink = true;
                }
                'c' => arguments.check = true,
                'e' => arguments.echo = true,
                'j' => arguments.json = true,
                'a' => arguments.handles = true,
                's' => arguments.stateless = true,
                't' => arguments.terse = true,
                'S' => arguments.services = true,
                'N' => arguments.reverse_dns = true,
                'u' => arguments.users = true,
                'y' => arguments.numeric_priority = true,
                'p' => arguments.numeric_protocol = true,
                'T' => arguments.numeric_time = true,
                'n' => {
                    arguments.numeric_priority = true;
                    arguments.numeric_protocol = true;
                    arguments.numeric_time = true;
                    arguments.numeric_symbols = true;
                }
                'i' => is_interactive = true,
                'o' => arguments.optimize = true,
                other => return Err(Misuse::UnknownLetter { found: other }),
            }
        }
    }
    let rest: Vec<String> = words.collect();
    // As nft, which looks for options behind a command up to the first block.
    let late = |word: &String| word.starts_with('-') && word.len() > 1;
    if rest.iter().take_while(|word| !word.starts_with('{')).any(late) {
        return Err(Misuse::LateOption { line: all.iter().map(|word| format!("{word} ")).collect() });
    }
    if file.is_none() && !arguments.defines.is_empty() {
        return Err(Misuse::DefinitionWithoutFile);
    }
    arguments.action = match file {
        // As nft: of a file beside a command nothing is read.
        Some(file) if rest.is_empty() => Action::File(file),
        None if rest.is_empty() && is_interactive => Action::Interactive,
        None if rest.is_empty() => return Err(Misuse::NoCommand),
        _ => Action::Words(rest.join(" ")),
    };
    Ok(arguments)
}

/// Checks the levels of debug output: `netlink` is the one that there is. The others show steps of libnftables,
/// which have no counterpart here: whoever asks for one is refused, so that nobody waits for what does not come.
fn debug(levels: &str) -> Result<(), Misuse> {
    const LEVELS: [&str; 8] = ["scanner", "parser", "eval", "netlink", "mnl", "proto-ctx", "segtree", "all"];
    if let Some(level) = levels.split(',').find(|level| !LEVELS.contains(level)) {
        return Err(Misuse::UnknownLevel { found: level.to_owned() });
    }
    match levels.split(',').find(|level| *level != "netlink") {
        Some(level) => Err(Misuse::OtherLevel { found: level.to_owned() }),
        None => Ok(()),
    }
}

fn takes_value(option: char) -> bool {
    matches!(option, 'f' | 'D' | 'I' | 'd')
}

/// A name, or the start of only one.
fn by_name(name: &str, word: &str) -> Result<char, Misuse> {
    if let Some((_, option)) = LONG.iter().find(|(long, _)| *long == name) {
        return Ok(*option);
    }
    let starting: Vec<_> = LONG.iter().filter(|(long, _)| long.starts_with(name)).collect();
    match *starting {
        [(_, option)] => Ok(*option),
        [] => Err(Misuse::UnknownOption { found: word.to_owned() }),
        _ => Err(Misuse::Ambiguous {
            found: name.to_owned(),
            possible: starting.iter().map(|(long, _)| *long).collect(),
        }),
    }
}

/// The version of nft whose command line and language these are: programs decide by it what they may write.
pub(crate) const VERSION: &str = "nftables v1.0.6 (Lester Gooch #5)";
/// What `-V` says below the version: nft's lines, as they are true here, and one of our own.
pub(crate) const BUILD: &str = "  cli:\t\tyes
  json:\t\tyes
  minigmp:\tno
  libxtables:\tno
  library:\tsluicegate-nftables, without libnftables
";
pub(crate) const HELP: &str = "\
Usage: nft [ options ] [ cmds... ]

Options (general):
  -h, --help                      Show this help
  -v, --version                   Show version information
  -V                              Show extended version information

Options (ruleset input handling):
  -f, --file <filename>           Read input from <filename>
  -D, --define <name=value>       Define variable, e.g. --define foo=1.2.3.4
  -i, --interactive               Read input from interactive CLI
  -I, --includepath <directory>   Add <directory> to the paths searched for include files. Default is: /etc
  -c, --check                     Check commands validity without actually applying the changes.
  -o, --optimize                  Optimize ruleset

Options (ruleset list formatting):
  -a, --handle                    Output rule handle.
  -s, --stateless                 Omit stateful information of ruleset.
  -t, --terse                     Omit contents of sets.
  -S, --service                   Translate ports to service names as described in /etc/services.
  -N, --reversedns                Translate IP addresses to names.
  -u, --guid                      Print UID/GID as defined in /etc/passwd and /etc/group.
  -n, --numeric                   Print fully numerical output.
  -y, --numeric-priority          Print chain priority numerically.
  -p, --numeric-protocol          Print layer 4 protocols numerically.
  -T, --numeric-time              Print time values numerically.

Options (command output formatting):
  -e, --echo                      Echo what has been added, inserted or replaced.
  -j, --json                      Format output in JSON
  -d, --debug <level [,level...]> Specify debugging level (scanner, parser, eval, netlink, mnl, proto-ctx, \
  segtree, all)

";
