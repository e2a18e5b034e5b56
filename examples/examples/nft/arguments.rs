//! The command line, by the rules of `getopt_long` as nft(8) uses it.

use std::path::PathBuf;

/// What is to be done, and how it is to be printed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Arguments {
    pub(crate) action: Action,
    pub(crate) check: bool,
    pub(crate) echo: bool,
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
    let mut words = words.peekable();
    let (mut file, mut shown) = (None, None);
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
            let option = by_name(name).ok_or_else(|| format!("nft: unrecognized option '--{name}'"))?;
            options.push((option, value));
        } else {
            let mut letters = word.chars().skip(1);
            while let Some(letter) = letters.next() {
                let rest: String = letters.clone().collect();
                let takes_rest = takes_value(letter) && !rest.is_empty();
                options.push((letter, takes_rest.then_some(rest)));
                if takes_rest {
                    break;
                }
            }
        }
        for (option, value) in options {
            let mut needed = || match value.clone().or_else(|| words.next()) {
                Some(value) => Ok(value),
                None => Err(format!("nft: option requires an argument -- '{option}'")),
            };
            match option {
                'h' => shown = shown.or(Some(Action::Help)),
                'v' => shown = shown.or(Some(Action::Version)),
                'V' => shown = shown.or(Some(Action::ExtendedVersion)),
                'f' => file = Some(needed()?),
                'D' => {
                    let text = needed()?;
                    let (name, value) = text
                        .split_once('=')
                        .filter(|(name, value)| !name.is_empty() && !value.is_empty())
                        .ok_or("Error: Could not parse variable definition: -D takes name=value")?;
                    arguments.defines.push((name.to_owned(), value.to_owned()));
                }
                'I' => arguments.include_paths.push(needed()?.into()),
                'd' => return Err(no_debug(&needed()?)),
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
                'i' => return Err("Error: there is no interactive mode here".to_owned()),
                'o' => return Err("Error: there is no optimizer here".to_owned()),
                other => return Err(format!("nft: invalid option -- '{other}'")),
            }
        }
    }
    let rest: Vec<String> = words.collect();
    arguments.action = match (shown, file) {
        (Some(shown), _) => shown,
        (None, Some(file)) => Action::File(file),
        (None, None) if rest.is_empty() => return Err("nft: no command specified".to_owned()),
        (None, None) => Action::Words(rest.join(" ")),
    };
    Ok(arguments)
}

/// Why there is no debug output: what nft prints are the steps of its own library.
fn no_debug(levels: &str) -> String {
    const LEVELS: [&str; 8] = ["scanner", "parser", "eval", "netlink", "mnl", "proto-ctx", "segtree", "all"];
    match levels.split(',').find(|level| !LEVELS.contains(level)) {
        Some(level) => format!("invalid debug parameter `{level}'"),
        None => "Error: there is no debug output here".to_owned(),
    }
}

fn takes_value(option: char) -> bool {
    matches!(option, 'f' | 'D' | 'I' | 'd')
}

/// A name, or the start of only one.
fn by_name(name: &str) -> Option<char> {
    let exact = LONG.iter().find(|(long, _)| *long == name);
    let mut starting = LONG.iter().filter(|(long, _)| long.starts_with(name));
    let found = exact.or_else(|| starting.next().filter(|_| starting.next().is_none()));
    found.map(|(_, option)| *option)
}

pub(crate) const VERSION: &str = "nftables v1.0.6 (Lester Gooch #5)";
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
