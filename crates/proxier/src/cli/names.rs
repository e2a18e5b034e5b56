//! `complete`, which the scripts of `completions` ask: the names that a word of `status` and `explain` may be now,
//! of services, frontends, endpoints, nodes and interfaces.
//!
//! They are read where the command reads them: from the manifests that the line names, or from the daemon. The API
//! server is not asked: listing all objects takes longer than anybody waits for a key. What cannot be found out is
//! not offered, and no error: nobody would see it.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Arg, Args, Command};
use serde_json::Value;
use sluicegate_proxier::serve::BindAddress;
use sluicegate_proxier::source::{self, Manifests};
use sluicegate_services::{Family, Frontend};

use super::Error;
use super::args::{host_name, is_standard_input};
use super::output::print;
use super::status;

#[derive(Args)]
pub(crate) struct Complete {
    /// The words of the line up to the cursor, the name of the program first.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

impl Complete {
    /// Prints what the last word may be, a line each.
    pub(crate) fn run(&self, program: &Command) -> Result<ExitCode, Error> {
        let words: Vec<_> = self.words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let offered = Line::of(program, &words).map(|line| line.offered()).unwrap_or_default();
        print(&offered.iter().map(|word| format!("{word}\n")).collect::<String>())?;
        Ok(ExitCode::SUCCESS)
    }
}

/// What a word may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A service, with or without its namespace.
    Service,
    /// An address and port that services are reached by, with the protocol.
    Frontend,
    /// The address of an endpoint: of a pod, which may be a client as well.
    Endpoint,
    /// A node.
    Node,
    /// A network interface of this namespace.
    Interface,
}

/// The flags whose values are offered, wherever they are.
pub(super) const FLAGS: [(&str, Kind); 6] = [
    ("from", Kind::Endpoint),
    ("to", Kind::Frontend),
    ("hostname-override", Kind::Node),
    ("interface", Kind::Interface),
    ("pod-bridge-interface", Kind::Interface),
    ("nftables-fastpath-devices", Kind::Interface),
];

/// The subcommand whose words without a flag are services.
pub(super) const OF_SERVICES: &str = "status";

/// A line up to the cursor.
struct Line<'a> {
    /// What its last word is.
    kind: Kind,
    /// The part of it that stays as it is: `--to=`, or the elements of a list.
    kept: &'a str,
    /// The part that is completed.
    last: &'a str,
    /// The words between the subcommand and it.
    before: &'a [String],
}

impl<'a> Line<'a> {
    fn of(program: &Command, words: &'a [String]) -> Option<Self> {
        let [_, subcommand, before @ .., word] = words else { return None };
        let subcommand = program.find_subcommand(subcommand)?;
        let flag = |flag: &str| subcommand.get_arguments().find(|argument| argument.get_long() == Some(flag));
        let value_of = |flag: &Arg| FLAGS.iter().find(|(name, _)| flag.get_long() == Some(name));
        let line = |kind, kept, last| Some(Self { kind, kept, last, before });
        if let Some((name, value)) = word.strip_prefix("--").and_then(|word| word.split_once('=')) {
            let (_, kind) = value_of(flag(name)?)?;
            return line(*kind, &word[..word.len() - value.len()], value);
        }
        if word.starts_with('-') {
            return None;
        }
        let takes_value = |argument: &&Arg| {
            argument.get_action().takes_values()
                && argument.get_num_args().is_none_or(|number| number.min_values() > 0)
        };
        let waiting = before.last().and_then(|word| match word.strip_prefix("--") {
            Some(name) => flag(name),
            None => {
                let short = word.strip_prefix('-')?;
                subcommand
                    .get_arguments()
                    .find(|argument| argument.get_short().map(String::from).as_deref() == Some(short))
            }
        });
        match waiting.filter(takes_value) {
            Some(flag) => {
                let (_, kind) = value_of(flag)?;
                let list = flag.get_value_delimiter().and_then(|delimiter| word.rfind(delimiter));
                let (kept, last) = word.split_at(list.map_or(0, |at| at + 1));
                line(*kind, kept, last)
            }
            None => (subcommand.get_name() == OF_SERVICES).then(|| line(Kind::Service, "", word))?,
        }
    }

    fn offered(&self) -> BTreeSet<String> {
        let names = match self.kind {
            Kind::Service => self.services(),
            Kind::Frontend | Kind::Endpoint => self.addresses(),
            Kind::Node => self.manifests().nodes.into_iter().map(|node| node.name).collect(),
            Kind::Interface => interfaces(),
        };
        let fits = |name: &String| name.starts_with(self.last) && is_plain(name);
        names.into_iter().filter(fits).map(|name| format!("{}{name}", self.kept)).collect()
    }

    /// The services of the daemon by their whole names, or by their own where none begins with what is there.
    fn services(&self) -> Vec<String> {
        let status = self.status();
        let ports = status["ports"].as_array().into_iter().flatten();
        let whole: Vec<_> = ports.filter_map(status::service_of).collect();
        if whole.iter().any(|name| name.starts_with(self.last)) {
            return whole;
        }
        whole.iter().filter_map(|name| Some(name.split_once('/')?.1.to_owned())).collect()
    }

    /// The addresses of the manifests, or else of the daemon.
    fn addresses(&self) -> Vec<String> {
        let found = self.manifests();
        let is_frontend = self.kind == Kind::Frontend;
        let shown = |ip: IpAddr, port: u16, protocol: &str| {
            format!("{}/{}", SocketAddr::new(ip, port), protocol.to_lowercase())
        };
        let mut addresses = Vec::new();
        if self.values("manifests").is_empty() {
            for port in self.status()["ports"].as_array().into_iter().flatten() {
                let ip = port["clusterIP"].as_str().and_then(|ip| ip.parse().ok());
                let number = port["port"].as_u64().and_then(|port| u16::try_from(port).ok());
                if let (true, Some(ip), Some(number)) = (is_frontend, ip, number) {
                    addresses.push(shown(ip, number, port["protocol"].as_str().unwrap_or_default()));
                }
                let endpoints = port["endpoints"].as_array().into_iter().flatten().filter(|_| !is_frontend);
                let of = |endpoint: &Value| endpoint["address"].as_str()?.parse::<SocketAddr>().ok();
                addresses.extend(endpoints.filter_map(of).map(|address| address.ip().to_string()));
            }
            return addresses;
        }
        let name = self.values("hostname-override").first().map(|name| (*name).to_owned());
        let name = name.or_else(|| host_name().ok()).unwrap_or_default();
        let node = found.nodes.iter().find(|node| node.name == name).cloned().unwrap_or_default();
        let cluster = found.into_cluster(node).0;
        for port in Family::BOTH.iter().flat_map(|family| {
            cluster.services().flat_map(|service| service.ports(*family)).collect::<Vec<_>>()
        }) {
            if !is_frontend {
                addresses.extend(port.endpoints.iter().map(|endpoint| endpoint.address.ip().to_string()));
                continue;
            }
            for frontend in port.frontends() {
                match frontend {
                    Frontend::Address(ip, protocol, number) => {
                        addresses.push(shown(ip, number.get(), protocol.as_str()));
                    }
                    Frontend::NodePort(family, protocol, number) => {
                        let ip = cluster.node().primary(family);
                        addresses.extend(ip.map(|ip| shown(ip, number.get(), protocol.as_str())));
                    }
                }
            }
        }
        addresses
    }

    /// What can be read of the manifests that the line names. Standard input is the terminal's.
    fn manifests(&self) -> Manifests {
        let mut found = Manifests::default();
        for path in self.values("manifests") {
            let home = path.strip_prefix("~/").zip(std::env::var_os("HOME"));
            let path =
                home.map_or_else(|| PathBuf::from(path), |(rest, home)| PathBuf::from(home).join(rest));
            if !is_standard_input(&path) {
                // One that cannot be read leaves the others.
                let _ = source::read(&[path], |manifest| found.add(manifest));
            }
        }
        found
    }

    /// The status of the daemon that the line names, or `null`.
    fn status(&self) -> Value {
        let address = self.values("metrics-bind-address").first().map_or(status::DAEMON, |address| *address);
        let address: Option<BindAddress> = address.parse().ok();
        address.and_then(|address| status::of(&address, PATIENCE).ok()).unwrap_or_default()
    }

    /// The values of a flag before the cursor.
    fn values(&self, flag: &str) -> Vec<&'a str> {
        let mut values = Vec::new();
        let mut is_its = false;
        for word in self.before {
            match word.strip_prefix("--").map(|word| word.split_once('=').unwrap_or((word, ""))) {
                Some((name, value)) => {
                    is_its = name == flag;
                    values.extend((is_its && !value.is_empty()).then_some(value));
                }
                None if word.len() > 1 && word.starts_with('-') => is_its = false,
                None => values.extend(is_its.then_some(word.as_str())),
            }
        }
        values
    }
}

/// The interfaces of this network namespace.
fn interfaces() -> Vec<String> {
    let table = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    table.lines().filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned())).collect()
}

/// Whether no shell takes a word for more than one, or for anything but itself: what is offered stands in the
/// command line unquoted, and the daemon's answer may be anybody's.
fn is_plain(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_alphanumeric() || "_-.:/[]@".contains(c))
}

/// The longest time to wait for the daemon: somebody waits for a key.
const PATIENCE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn line(text: &str) -> Option<(Kind, String, String)> {
        let words: Vec<_> = text.split(' ').map(str::to_owned).collect();
        let line = Line::of(&crate::cli::Command::command(), &words)?;
        Some((line.kind, line.kept.to_owned(), line.last.to_owned()))
    }

    #[test]
    fn a_word_is_what_the_flag_before_it_takes() {
        let plain = |kind, last: &str| Some((kind, String::new(), last.to_owned()));
        assert_eq!(line("p status de"), plain(Kind::Service, "de"));
        assert_eq!(line("p status demo/web --endpoints "), plain(Kind::Service, ""));
        assert_eq!(line("p status -o "), None);
        assert_eq!(line("p status --interval "), None);
        assert_eq!(line("p status --en"), None);
        assert_eq!(line("p explain --live 1"), None);
        assert_eq!(line("p explain --from 10.0.0.1 --to 1"), plain(Kind::Frontend, "1"));
        assert_eq!(line("p explain --to=1"), Some((Kind::Frontend, "--to=".to_owned(), "1".to_owned())));
        assert_eq!(
            line("p run --nftables-fastpath-devices eth0,ve"),
            Some((Kind::Interface, "eth0,".to_owned(), "ve".to_owned()))
        );
        for text in ["", "p", "p ", "p nosuch ", "p check --to=1"] {
            assert_eq!(line(text), None, "{text}");
        }
    }

    #[test]
    fn flags_that_are_offered_exist_and_keep_what_is_before_them() {
        let program = crate::cli::Command::command();
        for (flag, _) in FLAGS {
            let mut arguments = program.get_subcommands().flat_map(Command::get_arguments);
            assert!(arguments.any(|argument| argument.get_long() == Some(flag)), "{flag}");
        }
        let words: Vec<_> = "p explain --manifests a b --live --manifests=c -o x --to "
            .split(' ')
            .map(str::to_owned)
            .collect();
        let line = Line::of(&program, &words).expect("a line");
        assert_eq!(line.values("manifests"), ["a", "b", "c"]);
    }

    #[test]
    fn no_shell_is_given_more_than_a_word() {
        for word in ["a b", "a;reboot", "$(x)", "`x`", "a'b", "a\nb", "a\\b", "*", "ä"] {
            assert!(!is_plain(word), "{word:?}");
        }
        assert!(is_plain("[fd00::1]:80/tcp") && is_plain("demo/web"));
    }
}
