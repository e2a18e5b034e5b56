//! What the help and the man page of a subcommand say besides its options: examples, exit statuses, files,
//! environment.

use clap::Command;

/// A word or a line, and what it is.
type Row = (&'static str, &'static str);

/// What is said of a subcommand.
pub(super) struct HelpText {
    /// The subcommand; empty for the program.
    name: &'static str,
    /// Command lines without the program's name, each with what it does.
    pub(super) examples: &'static [Row],
    /// Exit statuses. 2 is for a wrong command line everywhere.
    pub(super) statuses: &'static [Row],
    pub(super) files: &'static [Row],
}

impl HelpText {
    /// Returns what is said of a subcommand.
    pub(super) fn of(name: &str) -> Option<&'static Self> {
        ALL.iter().find(|text| text.name == name)
    }

    /// Returns the end of the help.
    fn help(&self) -> String {
        let mut text = String::new();
        if !self.examples.is_empty() {
            text += "Examples:\n";
            for (line, what) in self.examples {
                text += &format!("  {what}:\n    $ sluicegate-proxier {line}\n");
            }
        }
        if !self.statuses.is_empty() {
            text += "\nExit status:\n";
            for (status, what) in self.statuses {
                text += &format!("  {status}  {what}\n");
            }
        }
        text.trim().to_owned()
    }
}

/// Adds examples and exit statuses to the help of the program and its subcommands.
pub(super) fn added(program: Command) -> Command {
    ALL.iter().fold(program, |program, text| match text.name {
        "" => program.after_help(text.help()),
        name => program.mut_subcommand(name, |subcommand| subcommand.after_help(text.help())),
    })
}

const WRONG: Row = ("2", "the command line is wrong");
const DONE: Row = ("0", "done");
const FAILED: Row = ("1", "it failed, as standard error says");

pub(super) const ENVIRONMENT: &[Row] = &[
    ("COLUMNS", "the width of help and tables where the output is no terminal"),
    ("NO_COLOR", "no colours, if it is set and not empty; without a terminal there are none"),
    ("XTABLES_LOCKFILE", "another lock of iptables than /run/xtables.lock, with its legacy back end"),
    ("KUBERNETES_SERVICE_HOST", "in a pod: the API server, unless --manifests or --kubeconfig is given"),
];

const KERNEL: Row = ("/proc/sys/net", "sysctls, which are written with --set-sysctls or --init-only");
const LOCK: Row = ("/run/xtables.lock", "the lock of iptables, with its legacy back end");

const ALL: &[HelpText] = &[
    HelpText {
        name: "",
        examples: &[
            ("check --manifests web.yaml", "what these manifests say"),
            ("sync --manifests web.yaml", "program this network namespace"),
            ("doctor", "what this machine lacks"),
        ],
        statuses: &[DONE, FAILED, WRONG],
        files: &[],
    },
    HelpText {
        name: "render",
        examples: &[
            ("render --manifests web.yaml", "print the plan; needs no root"),
            ("render --proxy-mode iptables --manifests web.yaml", "in iptables' words"),
        ],
        statuses: &[DONE, FAILED, WRONG],
        files: &[],
    },
    HelpText {
        name: "sync",
        examples: &[
            ("sync --manifests /etc/services.d", "all files of a folder"),
            ("sync --manifests - < web.yaml", "standard input"),
        ],
        statuses: &[
            ("0", "the kernel is as the manifests say"),
            ("1", "it is not, or a guard is missing"),
            WRONG,
        ],
        files: &[LOCK],
    },
    HelpText {
        name: "run",
        examples: &[
            ("run --manifests /etc/services.d", "follow a folder"),
            ("run --kubeconfig /etc/kubeconfig", "follow an API server"),
            ("run --config /etc/kube-proxy.conf", "kube-proxy's own file"),
        ],
        statuses: &[("0", "it was asked to end"), ("1", "it cannot begin, or its --config changed"), WRONG],
        files: &[KERNEL, LOCK],
    },
    HelpText {
        name: "diff",
        examples: &[
            ("diff --manifests web.yaml", "print what sync would change"),
            ("diff --exit-code --manifests web.yaml", "for scripts"),
        ],
        statuses: &[
            ("0", "printed; with --exit-code: no difference"),
            ("1", "it failed; with --exit-code: a difference"),
            ("2", "the command line is wrong, or --exit-code failed"),
        ],
        files: &[],
    },
    HelpText {
        name: "cleanup",
        examples: &[("cleanup", "remove what any mode left"), ("cleanup --proxy-mode ipvs", "of one mode")],
        statuses: &[("0", "nothing is left"), ("1", "something could not be removed"), WRONG],
        files: &[LOCK],
    },
    HelpText {
        name: "doctor",
        examples: &[("doctor", "every mode"), ("doctor --proxy-mode ipvs -o json", "one mode, for programs")],
        statuses: &[("0", "a mode, or that one, works without a fault"), ("1", "none does"), WRONG],
        files: &[],
    },
    HelpText {
        name: "check",
        examples: &[("check --manifests web.yaml", "services, and every problem")],
        statuses: &[("0", "no problem"), ("1", "something was left out"), WRONG],
        files: &[],
    },
    HelpText {
        name: "explain",
        examples: &[
            ("explain --from 10.0.0.7 --to 10.96.0.10:53/udp --manifests dns.yaml", "a client outside"),
            ("explain --live --from 10.0.0.7 --to 10.96.0.10:53/udp --manifests dns.yaml", "beside a packet"),
        ],
        statuses: &[
            ("0", "explained; with --live: both agree"),
            ("1", "it failed; with --live: they do not agree"),
            ("2", "the command line is wrong, or --live failed"),
        ],
        files: &[],
    },
    HelpText {
        name: "status",
        examples: &[
            ("status", "services and troubles"),
            ("status demo/web --endpoints", "the endpoints of one service, with their flows"),
            ("status --watch --endpoints", "again and again"),
        ],
        statuses: &[
            ("0", "the daemon is ready"),
            ("1", "it is not, there is none, or no such service"),
            WRONG,
        ],
        files: &[],
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli;

    #[test]
    fn every_subcommand_has_examples_that_the_command_line_takes() {
        use clap::CommandFactory as _;
        let program = cli::Command::command();
        for subcommand in program.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
            let text = HelpText::of(subcommand.get_name()).expect("something is said of it");
            assert!(!text.examples.is_empty() && !text.statuses.is_empty(), "{}", subcommand.get_name());
            for (line, _) in text.examples {
                let words = line.split(" < ").next().unwrap_or_default().split(' ');
                let taken =
                    program.clone().try_get_matches_from(["sluicegate-proxier"].into_iter().chain(words));
                assert!(taken.is_ok(), "{line}: {}", taken.unwrap_err());
            }
        }
    }
}
