//! `completions` and `man`, for those who package the program; hidden, as nobody else needs them. What the scripts
//! ask is in `names`.

use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use clap::{Arg, Args, Command, ValueHint};
use clap_complete::Shell;

use super::Error;
use super::help::{ENVIRONMENT, HelpText};
use super::names::{FLAGS, OF_SERVICES};
use super::output::print;

#[derive(Args)]
pub(crate) struct Completions {
    /// The shell that reads the script.
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(&self, program: Command) -> Result<ExitCode, Error> {
        let name = program.get_name().to_owned();
        let mut program = offering_values(program);
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut program, &name, &mut script);
        let mut script = String::from_utf8_lossy(&script).into_owned();
        if self.shell == Shell::Bash {
            // clap_complete 4.6 takes a hyphen in the program's name for the border of a subcommand, where it
            // offers the options of one, and for two underscores, where it finds out which one it is.
            let [offered, found] = ["__subcmd__", "__"].map(|hyphen| name.replace('-', hyphen));
            script = script.replace(&format!("{offered}__"), &format!("{found}__"));
        }
        print(&offering_names(script, self.shell, &program))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Has the script ask `complete` first. Those of other shells than Linux has offer no names.
fn offering_names(mut script: String, shell: Shell, program: &Command) -> String {
    match shell {
        Shell::Bash => script + include_str!("names/script.bash"),
        Shell::Zsh => {
            script = script.replacen("_sluicegate-proxier() {", "_sluicegate-proxier_words() {", 1);
            // What follows runs or registers the function that zsh loads by the name of the file.
            let end = script.rfind("\nif [").unwrap_or(script.len());
            script.insert_str(end, include_str!("names/script.zsh"));
            script
        }
        Shell::Fish => {
            script += include_str!("names/script.fish");
            for subcommand in program.get_subcommands() {
                let name = subcommand.get_name();
                let mut offer = |of: &str| {
                    script += &format!(
                        "complete -c sluicegate-proxier -n '__fish_sluicegate_proxier_using_subcommand {name}' {of} \
                         -a '(__sluicegate_proxier_names)'\n"
                    );
                };
                let of_flags = |flag: &&str| {
                    subcommand.get_arguments().any(|argument| argument.get_long() == Some(*flag))
                };
                for flag in FLAGS.iter().map(|(flag, _)| *flag).filter(of_flags) {
                    offer(&format!("-l {flag} -r -f"));
                }
                if name == OF_SERVICES {
                    offer("-f");
                }
            }
            script
        }
        _ => script,
    }
}

/// Lets the shell offer the values of flags that have few, and files for those that name one, not for numbers
/// and addresses. Such flags check their values themselves, with errors of their own.
fn offering_values(program: Command) -> Command {
    let offering = |argument: Arg| match values(&argument) {
        Some(values) => argument.value_parser(PossibleValuesParser::new(values)),
        // A path has the hint of a path, by its type.
        None if argument.get_action().takes_values() && argument.get_value_hint() == ValueHint::Unknown => {
            argument.value_hint(ValueHint::Other)
        }
        None => argument,
    };
    program.mut_subcommands(|subcommand| subcommand.mut_args(offering))
}

/// Returns the values of a flag that has few: those of its name, or that its help lists: `maps|chains`.
fn values(argument: &Arg) -> Option<&'static [&'static str]> {
    let listed =
        argument.get_value_names().and_then(<[_]>::first).map(ToString::to_string).unwrap_or_default();
    let of_flag = BY_FLAG.iter().find(|(flag, _)| argument.get_long() == Some(*flag));
    of_flag
        .map(|(_, values)| *values)
        .or_else(|| VALUES.iter().find(|values| values.join("|") == listed).copied())
}

/// The values of flags whose help lists them.
const VALUES: &[&[&str]] = &[
    &["nftables", "iptables", "ipvs"],
    &["maps", "chains"],
    &["legacy", "nft"],
    &["off", "frontends", "endpoints"],
    &["true", "false"],
    &["true", "raw"],
];

/// The values of other flags. A scheduler or a list may be more than these words.
const BY_FLAG: &[(&str, &[&str])] = &[
    ("detect-local-mode", &["ClusterCIDR", "NodeCIDR", "BridgeInterface", "InterfaceNamePrefix"]),
    ("nftables-scheduler", &["random", "round-robin", "source-hash", "maglev"]),
    // Those of Linux 6.18, `net/netfilter/ipvs/Kconfig`.
    (
        "ipvs-scheduler",
        &["rr", "wrr", "lc", "wlc", "fo", "ovf", "lblc", "lblcr", "dh", "sh", "mh", "sed", "nq", "twos"],
    ),
    ("nodeport-addresses", &["primary", "localhost", "all"]),
];

#[derive(Args)]
pub(crate) struct Man {
    /// The subcommand that the page describes; without it, the program.
    subcommand: Option<String>,
}

impl Man {
    pub(crate) fn run(&self, program: Command) -> Result<ExitCode, Error> {
        // What concerns packagers alone is on no page.
        let mut program = program.disable_help_subcommand(true);
        program.build();
        let page = match &self.subcommand {
            None => program,
            Some(name) => match program.find_subcommand(name) {
                Some(subcommand) => subcommand.clone(),
                None => return Err(Error::flag("man", format!("expected a subcommand, found `{name}`"))),
            },
        };
        let mut roff = Vec::new();
        clap_mangen::Man::new(page).render(&mut roff).map_err(Error::Write)?;
        let mut roff = String::from_utf8_lossy(&roff).into_owned();
        if let Some(text) = HelpText::of(self.subcommand.as_deref().unwrap_or_default()) {
            section(&mut roff, "EXIT STATUS", text.statuses);
            section(&mut roff, "FILES", text.files);
            section(&mut roff, "ENVIRONMENT", ENVIRONMENT);
            let lines =
                text.examples.iter().map(|(line, what)| (format!("sluicegate-proxier {line}"), *what));
            let lines: Vec<_> = lines.collect();
            section(&mut roff, "EXAMPLES", &lines);
        }
        print(&roff)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Appends a section of words with what each is, unless there are none.
fn section(roff: &mut String, title: &str, rows: &[(impl AsRef<str>, &str)]) {
    if rows.is_empty() {
        return;
    }
    // A line that begins with a point or an apostrophe would be a request of roff.
    let escaped = |text: &str| format!("\\&{}", text.replace('\\', "\\e").replace('-', "\\-"));
    *roff +=
        &format!(".SH {}\n", if title.contains(' ') { format!("\"{title}\"") } else { title.to_owned() });
    for (word, what) in rows {
        *roff += &format!(".TP\n\\fB{}\\fR\n{}\n", escaped(word.as_ref()), escaped(what));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    /// Whoever adds a flag with few values sees here that shells do not offer them.
    #[test]
    fn values_that_the_help_lists_are_offered() {
        let mut listed = 0;
        for subcommand in crate::cli::Command::command().get_subcommands() {
            for argument in subcommand.get_arguments().filter(|argument| argument.get_action().takes_values())
            {
                let names = argument.get_value_names().unwrap_or_default();
                let name = names.first().map(clap::builder::Str::as_str).unwrap_or_default();
                // `primary|CIDR,...` has what is not a word.
                let is_list = name.contains('|') && !name.contains(|c: char| c.is_ascii_uppercase());
                let is_offered = values(argument).is_some() || !argument.get_possible_values().is_empty();
                assert!(!is_list || is_offered, "{} {argument}", subcommand.get_name());
                listed += usize::from(is_list);
            }
        }
        assert!(listed > 20, "{listed}");
    }

    /// A type of Rust's or clap's that reads a flag has words of its own.
    #[test]
    fn wrong_values_of_all_flags_are_told_in_the_same_words() {
        let mut refused = 0;
        let program = crate::cli::Command::command();
        for subcommand in program.get_subcommands() {
            for flag in subcommand.get_arguments().filter_map(Arg::get_long) {
                let words = ["program", subcommand.get_name(), &format!("--{flag}=?!")].map(str::to_owned);
                let Err(error) = program.clone().try_get_matches_from(words) else { continue };
                if error.kind() == clap::error::ErrorKind::ValueValidation {
                    let said = error.to_string();
                    assert!(said.contains("expected"), "--{flag}: {said}");
                    refused += 1;
                }
            }
        }
        assert!(refused > 60, "{refused}");
    }
}
