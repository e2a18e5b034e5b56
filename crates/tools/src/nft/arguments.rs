//! The command line, by the rules of `getopt_long` as nft(8) uses it.

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
pub(crate) fn parse(words: impl Iterator<Item = String>) -> Result<Arguments, String> {
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
                return Err(format!("nft: option '--{full}' doesn't allow an argument"));
            }
            options.push((option, value, format!("option '--{full}' requires an argument")));
        } else {
            let mut letters = word.chars().skip(1);
            while let Some(letter) = letters.next() {
                let rest: String = letters.clone().collect();
                let takes_rest = takes_value(letter) && !rest.is_empty();
                let missing = format!("option requires an argument -- '{letter}'");
                options.push((letter, takes_rest.then_some(rest), missing));
                if takes_rest {
                    break;
                }
            }
        }
        for (option, value, missing) in options {
            let mut needed = || value.clone().or_else(|| words.next()).ok_or(format!("nft: {missing}"));
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
                    let (name, value) = text
                        .split_once('=')
                        .ok_or_else(|| format!("Failed to define variable '{text}': expected NAME=VALUE"))?;
                    let is_taken = arguments.defines.iter().any(|(other, _)| other == name);
                    if is_taken || name.is_empty() || value.is_empty() {
                        let reason = match is_taken {
                            true => "it is defined already",
                            false => "expected NAME=VALUE",
                        };
                        return Err(format!("Error: cannot define `{text}`: {reason}"));
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
                other => return Err(format!("nft: invalid option -- '{other}'")),
            }
        }
    }
    let rest: Vec<String> = words.collect();
    // As nft, which looks for options behind a command up to the first block.
    let late = |word: &String| word.starts_with('-') && word.len() > 1;
    if rest.iter().take_while(|word| !word.starts_with('{')).any(late) {
        let line: String = all.iter().map(|word| format!("{word} ")).collect();
        return Err(format!("Error: syntax error, options must be specified before commands\nnft {line}"));
    }
    if file.is_none() && !arguments.defines.is_empty() {
        return Err("Error: -D/--define can only be used with -f/--filename".to_owned());
    }
    arguments.action = match file {
        // As nft: of a file beside a command nothing is read.
        Some(file) if rest.is_empty() => Action::File(file),
        None if rest.is_empty() && is_interactive => Action::Interactive,
        None if rest.is_empty() => return Err("nft: no command specified".to_owned()),
        _ => Action::Words(rest.join(" ")),
    };
    Ok(arguments)
}

/// Checks the levels of debug output: `netlink` is the one that there is. The others show steps of libnftables,
/// which have no counterpart here: whoever asks for one is refused, so that nobody waits for what does not come.
fn debug(levels: &str) -> Result<(), String> {
    const LEVELS: [&str; 8] = ["scanner", "parser", "eval", "netlink", "mnl", "proto-ctx", "segtree", "all"];
    if let Some(level) = levels.split(',').find(|level| !LEVELS.contains(level)) {
        return Err(format!("invalid debug parameter `{level}'"));
    }
    match levels.split(',').find(|level| *level != "netlink") {
        Some(level) => {
            Err(format!("nft: --debug={level}: expected `netlink`, the one level that is shown here"))
        }
        None => Ok(()),
    }
}

fn takes_value(option: char) -> bool {
    matches!(option, 'f' | 'D' | 'I' | 'd')
}

/// A name, or the start of only one.
fn by_name(name: &str, word: &str) -> Result<char, String> {
    if let Some((_, option)) = LONG.iter().find(|(long, _)| *long == name) {
        return Ok(*option);
    }
    let starting: Vec<_> = LONG.iter().filter(|(long, _)| long.starts_with(name)).collect();
    match *starting {
        [(_, option)] => Ok(*option),
        [] => Err(format!("nft: unrecognized option '{word}'")),
        _ => {
            let names: Vec<_> = starting.iter().map(|(long, _)| format!("'--{long}'")).collect();
            Err(format!("nft: option '--{name}' is ambiguous; possibilities: {}", names.join(" ")))
        }
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
