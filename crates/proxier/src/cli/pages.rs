//! `completions` and `man`, for those who package the program; hidden, as nobody else needs them.

use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use clap::{Arg, Args, Command};
use clap_complete::Shell;

use super::Error;
use super::help::{ENVIRONMENT, HelpText};
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
        print(&script)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Lets the shell offer the values of flags that have few. Such flags check their values themselves, with errors
/// of their own.
fn offering_values(program: Command) -> Command {
    let offering = |argument: Arg| {
        let name = match argument.get_long() {
            Some("detect-local-mode") => LOCAL_MODES.join("|"),
            _ => {
                argument.get_value_names().and_then(<[_]>::first).map(ToString::to_string).unwrap_or_default()
            }
        };
        match VALUES.iter().find(|values| values.join("|") == name) {
            Some(values) => argument.value_parser(PossibleValuesParser::new(*values)),
            None => argument,
        }
    };
    program.mut_subcommands(|subcommand| subcommand.mut_args(offering))
}

/// The values of flags whose help lists them: `maps|chains`.
const VALUES: &[&[&str]] = &[
    &["nftables", "iptables", "ipvs"],
    &["maps", "chains"],
    &["legacy", "nft"],
    &["true", "false"],
    &["true", "raw"],
    LOCAL_MODES,
];
/// The values of `--detect-local-mode`.
const LOCAL_MODES: &[&str] = &["ClusterCIDR", "NodeCIDR", "BridgeInterface", "InterfaceNamePrefix"];

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
                None => return Err(Error::flag("man", format!("there is no subcommand `{name}`"))),
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
