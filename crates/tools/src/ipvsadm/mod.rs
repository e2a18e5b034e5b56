//! ipvsadm's own words, answered by sluicegate-ipvs: no ipvsadm is started.
//!
//! Output and exit status are those of ipvsadm 1.31. What is refused is told in its words, and in ours below
//! them. One difference:
//! `-R` reads all of its input before it does anything, so that a mistake in line 7 does not leave lines 1 to
//! 6 behind.

mod connections;
mod names;
mod words;

use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt::{self, Write as _};
use std::io::{self, Read as _};
use std::process::ExitCode;

use crate::near::nearest;
use crate::output::tell;
use sluicegate_ipvs::text::{self, Invocation, ListOptions, Reason};
use sluicegate_ipvs::{
    Client, Command, Daemon, Destination, Errno, Error, Family, Forward, Granularity, Listing, Operation,
    Refusal, Scheduler, Service, ServiceId, Stats, Tunnel, TunnelFlags,
};

/// The statuses of ipvsadm.
const LIST_FAILED: u8 = 1;
const MISTAKE: u8 = 2;
const REFUSED: u8 = 255;
/// What ipvsadm says of a kernel without IPVS.
const ABSENT: &str = "Can't initialize ipvs: Protocol not available\n\
    Are you sure that IP Virtual Server is built in the kernel or as module?";

/// Runs the tool of this name: `ipvsadm`, or `ipvsadm-save` and `ipvsadm-restore`, which the tool has as scripts.
pub(crate) fn main(name: &str, arguments: &[OsString]) -> ExitCode {
    let own = match name {
        "ipvsadm-save" => Some("-S"),
        "ipvsadm-restore" => Some("-R"),
        _ => None,
    };
    let given = arguments.iter().map(|argument| argument.to_string_lossy().into_owned());
    let args: Vec<_> = own.map(str::to_owned).into_iter().chain(given).collect();
    let failure = match run(&args) {
        Ok(output) => match crate::output::print(output) {
            Ok(()) => return ExitCode::SUCCESS,
            Err(error) => Failure::new(error.to_string(), LIST_FAILED),
        },
        Err(failure) => failure,
    };
    if let Some(said) = failure.said {
        tell(said);
    }
    if !failure.message.is_empty() {
        tell(format_args!("ipvsadm: {}", failure.message));
    }
    ExitCode::from(failure.status)
}

struct Failure {
    message: String,
    status: u8,
    /// What ipvsadm says, which programs read.
    said: Option<Cow<'static, str>>,
}

impl Failure {
    fn new(message: impl Into<String>, status: u8) -> Self {
        Self { message: message.into(), status, said: None }
    }
}

/// Errors have the same status whatever is done, but for what the kernel refuses.
fn failure(error: &Error, refused: u8, args: &[String]) -> Failure {
    let (status, hint) = match error {
        Error::Parse(error) if error.reason.is_usage() => (REFUSED, "; try `ipvsadm -h`"),
        _ if error.is_invalid() || error.is_absent() => (MISTAKE, ""),
        _ => (refused, ""),
    };
    let said = match error {
        Error::Absent => Some(ABSENT.into()),
        Error::Refused(refusal) => said(refusal).map(Cow::Borrowed),
        Error::Parse(error) => words::said(error, args),
        _ => None,
    };
    let meant = meant(error).map(|word| format!("; did you mean `{word}`?")).unwrap_or_default();
    Failure { message: format!("{error}{hint}{meant}"), status, said }
}

/// Returns the option, role or scheduler that was meant, where one has a slip.
fn meant(error: &Error) -> Option<String> {
    match error {
        Error::Parse(error) => match error.reason {
            Reason::UnknownOption => words::nearest_option(&error.word),
            Reason::DaemonRole => nearest(&error.word, ["master", "backup"]),
            _ => None,
        },
        Error::Refused(refusal) => match (refusal.errno, refusal.command()) {
            (
                Errno::ENOENT,
                Some(Command::AddService { config, .. } | Command::EditService { config, .. }),
            ) => {
                let known = Scheduler::KNOWN.iter().map(ToString::to_string);
                nearest(&config.scheduler.to_string(), known)
            }
            _ => None,
        },
        _ => None,
    }
}

/// Returns what ipvsadm says of what the kernel refused.
fn said(refusal: &Refusal) -> Option<&'static str> {
    Some(match (refusal.errno, refusal.command()) {
        (Errno::ENOENT, Some(Command::AddService { .. } | Command::EditService { .. })) => {
            "Scheduler or persistence engine not found"
        }
        (Errno::EEXIST, Some(Command::AddService { .. })) => "Service already exists",
        (Errno::EEXIST, Some(Command::AddDestination { .. })) => "Destination already exists",
        (Errno::EEXIST, Some(Command::StartDaemon(_))) => "Daemon has already run",
        (Errno::ENOENT, Some(Command::EditDestination { .. } | Command::DeleteDestination { .. })) => {
            "No such destination"
        }
        (
            Errno::ESRCH,
            Some(
                Command::AddDestination { .. }
                | Command::EditDestination { .. }
                | Command::DeleteDestination { .. },
            ),
        ) => "Service not defined",
        (Errno::ESRCH, Some(Command::StopDaemon(_))) => "No daemon is running",
        (Errno::ESRCH, _) => "No such service",
        (Errno::EPERM, _) => "Permission denied (you must be root)",
        (Errno::ENOMEM, _) => "Memory allocation problem",
        (Errno::EINVAL, _) => "Invalid operation.  Possibly wrong module version, address not unicast, ...",
        _ => return None,
    })
}

fn run(args: &[String]) -> Result<String, Failure> {
    let args = names::numbered(args);
    let invocation = text::parse_args(&args).map_err(|error| failure(&error, MISTAKE, &args))?;
    match invocation {
        Invocation::Change(command) => change(&command).map_err(|error| failure(&error, REFUSED, &[])),
        Invocation::List(options) => list(&options),
        Invocation::Save { numeric } => save(numeric).map_err(|error| failure(&error, LIST_FAILED, &[])),
        Invocation::Restore => restore(),
        Invocation::Help => Ok(HELP.to_owned()),
        Invocation::Version => Ok(VERSION.to_owned()),
        _ => Err(Failure::new("this program does not know the command", MISTAKE)),
    }
}

fn change(command: &Command) -> Result<String, Error> {
    Client::open()?.run(command)?;
    Ok(String::new())
}

fn save(numeric: bool) -> Result<String, Error> {
    let mut saved = String::new();
    for Listing { service, destinations, .. } in sorted_listing(&mut Client::open()?)? {
        text::write_saved(&mut saved, &service, &destinations).expect("a String takes everything");
    }
    if numeric {
        return Ok(saved);
    }
    Ok(saved.lines().map(|line| names::named(line) + "\n").collect())
}

fn sorted_listing(client: &mut Client) -> Result<Vec<Listing>, Error> {
    let mut listings = client.list(|_| true)?;
    text::sort_services(&mut listings, |listing| listing.service.id);
    listings.iter_mut().for_each(|listing| text::sort_destinations(&mut listing.destinations));
    Ok(listings)
}

/// All commands are carried out; as with ipvsadm the last one's fate is the status.
fn restore() -> Result<String, Failure> {
    let mut input = String::new();
    io::stdin()
        .read_to_string(&mut input)
        .map_err(|error| Failure::new(format!("standard input: {error}"), MISTAKE))?;
    let line = |line: &str| {
        // Nobody is asked for the names in a comment.
        if line.trim_start().starts_with('#') {
            return format!("{line}\n");
        }
        let words: Vec<_> = line.split(' ').map(str::to_owned).collect();
        names::numbered(&words).join(" ") + "\n"
    };
    let commands = text::parse(&input.lines().map(line).collect::<String>())
        .map_err(|error| failure(&error, MISTAKE, &[]))?;
    let error = match Client::open().and_then(|mut client| client.run_all(&commands)) {
        Ok(()) => return Ok(String::new()),
        Err(error) => error,
    };
    let Error::SomeRefused { failed, more } = &error else { return Err(failure(&error, REFUSED, &[])) };
    for refusal in failed {
        said(refusal).into_iter().for_each(tell);
        tell(format_args!("ipvsadm: {refusal}"));
    }
    let last = commands.len().saturating_sub(1);
    let is_last =
        |operation: &Operation| matches!(operation, Operation::Command { index, .. } if *index == last);
    if *more || failed.iter().any(|refusal| is_last(&refusal.operation)) {
        let message = if *more { "more commands were refused".to_owned() } else { String::new() };
        return Err(Failure::new(message, REFUSED));
    }
    Ok(String::new())
}

fn list(options: &ListOptions) -> Result<String, Failure> {
    if options.connections {
        return list_connections(options);
    }
    let listed = Client::open().and_then(|mut client| match options {
        ListOptions { timeout: true, .. } => list_timeouts(&mut client),
        ListOptions { daemon: true, .. } => list_daemons(&mut client),
        ListOptions { service: Some(id), .. } => list_service(&mut client, id, options),
        _ => list_all(&mut client, options),
    });
    listed.map_err(|error| failure(&error, LIST_FAILED, &[]))
}

fn list_connections(options: &ListOptions) -> Result<String, Failure> {
    // Asked first, as this has the kernel load the module, which makes the file.
    Client::open().and_then(|mut client| client.info()).map_err(|error| failure(&error, LIST_FAILED, &[]))?;
    let file = connections::FILE;
    let read = std::fs::read_to_string(file);
    let text = read.map_err(|error| Failure::new(format!("{file}: {error}"), LIST_FAILED))?;
    let listed = connections::listed(&text, options.numeric, options.persistent_connections);
    listed.map_err(|line| Failure::new(line.to_string(), LIST_FAILED))
}

fn list_timeouts(client: &mut Client) -> Result<String, Error> {
    let timeouts = client.timeouts()?;
    Ok(format!("Timeout (tcp tcpfin udp): {} {} {}\n", timeouts.tcp, timeouts.tcp_fin, timeouts.udp))
}

fn list_daemons(client: &mut Client) -> Result<String, Error> {
    let mut daemons = client.daemons()?;
    daemons.sort_by_key(|daemon| daemon.role);
    let mut listed = String::new();
    for Daemon { role, interface, sync_id, max_length, group, port, ttl, .. } in daemons {
        write!(listed, "{role} sync daemon (mcast={interface}, syncid={sync_id}")
            .expect("a String takes everything");
        let more = [
            max_length.map(|it| format!(", maxlen={it}")),
            group.map(|it| format!(", group={it}")),
            port.map(|it| format!(", port={it}")),
            ttl.map(|it| format!(", ttl={it}")),
        ];
        listed.extend(more.into_iter().flatten());
        listed.push_str(")\n");
    }
    Ok(listed)
}

fn list_service(client: &mut Client, id: &ServiceId, options: &ListOptions) -> Result<String, Error> {
    let service = client.service(id)?;
    let mut destinations = client.destinations(id)?;
    if !options.unsorted {
        text::sort_destinations(&mut destinations);
    }
    let table = Listed { options, listings: &[Listing::new(service, destinations)] };
    Ok(table.to_string())
}

fn list_all(client: &mut Client, options: &ListOptions) -> Result<String, Error> {
    let info = client.info()?;
    let listings = if options.unsorted { client.list(|_| true)? } else { sorted_listing(client)? };
    let (major, minor, patch) = info.version;
    let size = info.connection_table_size;
    let table = Listed { options, listings: &listings };
    Ok(format!("IP Virtual Server version {major}.{minor}.{patch} (size={size})\n{table}"))
}

/// The table of `ipvsadm -L`.
struct Listed<'a> {
    options: &'a ListOptions,
    listings: &'a [Listing],
}

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.title(f)?;
        for Listing { service, destinations, .. } in self.listings {
            self.service(f, service)?;
            let protocol = protocol_name(&service.id);
            destinations.iter().try_for_each(|destination| self.destination(f, destination, &protocol))?;
        }
        Ok(())
    }
}

impl Listed<'_> {
    fn title(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let local = "Prot LocalAddress:Port";
        let remote = "  -> RemoteAddress:Port";
        let options = self.options;
        if options.stats || options.rate {
            let [a, b, c, d, e] = if options.stats {
                ["Conns", "InPkts", "OutPkts", "InBytes", "OutBytes"]
            } else {
                ["CPS", "InPPS", "OutPPS", "InBPS", "OutBPS"]
            };
            writeln!(f, "{local:<33} {a:>8} {b:>8} {c:>8} {d:>8} {e:>8}\n{remote}")
        } else if options.thresholds {
            let [a, b, c, d] = ["Uthreshold", "Lthreshold", "ActiveConn", "InActConn"];
            writeln!(f, "{local:<33} {a:<10} {b:<10} {c:<10} {d:<10}\n{remote}")
        } else if options.persistent_connections {
            let [a, b, c, d] = ["Weight", "PersistConn", "ActiveConn", "InActConn"];
            writeln!(f, "{local:<33} {a:<9} {b:<11} {c:<10} {d:<10}\n{remote}")
        } else {
            let tunnel = if options.tunnels { "TunnelInfo    " } else { "" };
            writeln!(f, "{local} Scheduler Flags\n{remote:<33} Forward {tunnel}Weight ActiveConn InActConn")
        }
    }

    fn service(&self, f: &mut fmt::Formatter<'_>, service: &Service) -> fmt::Result {
        let name = service_name(&service.id, self.options.numeric);
        match self.numbers(&service.stats) {
            Some(numbers) => writeln!(f, "{name:<33}{numbers}"),
            None => writeln!(f, "{name} {}", service_flags(service)),
        }
    }

    fn destination(
        &self,
        f: &mut fmt::Formatter<'_>,
        destination: &Destination,
        protocol: &str,
    ) -> fmt::Result {
        let Destination { id, config, connections, stats, .. } = destination;
        let name = names::endpoint(id.address, id.port, protocol, self.options.numeric);
        write!(f, "  -> {name:<28}")?;
        if let Some(numbers) = self.numbers(stats) {
            return writeln!(f, "{numbers}");
        }
        if self.options.thresholds {
            write!(f, " {:<10} {:<10}", config.upper_threshold, config.lower_threshold)?;
        } else if self.options.persistent_connections {
            write!(f, " {:<9} {:<11}", config.weight, connections.persistent)?;
        } else if self.options.tunnels {
            write!(f, " {:<7} {:<13} {:<6}", config.forward, tunnel_info(config.forward), config.weight)?;
        } else {
            write!(f, " {:<7} {:<6}", config.forward, config.weight)?;
        }
        writeln!(f, " {:<10} {:<10}", connections.active, connections.inactive)
    }

    /// The five columns of `--stats` or `--rate`.
    fn numbers(&self, stats: &Stats) -> Option<String> {
        let rate = &stats.rate;
        let numbers = if self.options.stats {
            [stats.connections, stats.packets_in, stats.packets_out, stats.bytes_in, stats.bytes_out]
        } else if self.options.rate {
            [rate.connections, rate.packets_in, rate.packets_out, rate.bytes_in, rate.bytes_out]
        } else {
            return None;
        };
        Some(numbers.iter().map(|number| large_number(*number, self.options.exact)).collect())
    }
}

/// Returns the protocol whose names ports have; of a mark, the one that the tool takes.
fn protocol_name(id: &ServiceId) -> String {
    match id {
        ServiceId::Virtual { protocol, .. } => protocol.to_string().to_lowercase(),
        ServiceId::Mark { .. } => "tcp".to_owned(),
    }
}

fn service_name(id: &ServiceId, numeric: bool) -> String {
    match id {
        ServiceId::Virtual { protocol, endpoint } => {
            let shown = names::endpoint(endpoint.address, endpoint.port, &protocol_name(id), numeric);
            format!("{:<4} {shown}", protocol.to_string().to_uppercase())
        }
        ServiceId::Mark { mark, family: Family::Ipv4 } => format!("FWM  {mark}"),
        ServiceId::Mark { mark, family: Family::Ipv6 } => format!("FWM  {mark} IPv6"),
    }
}

fn service_flags(service: &Service) -> String {
    let config = &service.config;
    let mut flags = config.scheduler.to_string();
    let names = text::scheduler_flag_names(config.scheduler, config.scheduler_flags);
    if !names.is_empty() {
        flags += &format!(" ({names})");
    }
    if let Some(persistence) = &config.persistence {
        flags += &format!(" persistent {}", persistence.timeout);
        match persistence.granularity {
            Some(Granularity::Netmask(mask)) => flags += &format!(" mask {mask}"),
            Some(Granularity::Prefix(length)) => flags += &format!(" mask {length}"),
            None => {}
        }
        if let Some(engine) = &config.engine {
            flags += &format!(" pe {engine}");
        }
    }
    if config.one_packet {
        flags += " ops";
    }
    flags
}

fn tunnel_info(forward: Forward) -> String {
    let checksum = |flags: TunnelFlags| match flags {
        flags if flags.contains(TunnelFlags::REMOTE_CHECKSUM) => "r+c",
        flags if flags.contains(TunnelFlags::CHECKSUM) => "+c",
        _ => "-c",
    };
    match forward {
        Forward::Tunnel(Tunnel::Ipip) => "ipip".to_owned(),
        Forward::Tunnel(Tunnel::Gue { port, flags }) => format!("gue:{port}:{}", checksum(flags)),
        Forward::Tunnel(Tunnel::Gre { flags }) => format!("gre:{}", checksum(flags)),
        Forward::Tunnel(Tunnel::Other { kind, .. }) => format!("type {kind}"),
        _ => "n/a".to_owned(),
    }
}

/// Nine columns: from a hundred million on in thousands, millions and so on, unless exactly.
fn large_number(number: u64, exact: bool) -> String {
    const STEPS: [(u64, u64, char); 4] = [
        (1_000_000_000, 1_000, 'K'),
        (100_000_000_000, 1_000_000, 'M'),
        (100_000_000_000_000, 1_000_000_000, 'G'),
        (u64::MAX, 1_000_000_000_000, 'T'),
    ];
    if exact {
        let width = number.to_string().len().max(8) + 1;
        return format!("{number:>width$}");
    }
    match STEPS.iter().find(|(below, _, _)| number < *below) {
        Some((_, unit, letter)) if number >= 100_000_000 => format!("{:>8}{letter}", number / unit),
        _ => format!("{number:>9}"),
    }
}

/// The version whose behaviour this is, as it tells it.
const VERSION: &str = "ipvsadm v1.31 2019/12/24 (compiled with popt and IPVS v1.2.1)\n";

const HELP: &str = "\
ipvsadm: services of IPVS, by the library sluicegate-ipvs

  -A|-E SERVICE [-s SCHEDULER] [-b FLAGS] [-p [SECONDS]] [-M NETMASK] [--pe ENGINE] [-o]   add, edit a service
  -D SERVICE                                    delete a service
  -a|-e SERVICE -r SERVER [-m|-g|-i] [-w WEIGHT] [-x UPPER] [-y LOWER]
        [--tun-type ipip|gue|gre] [--tun-port PORT] [--tun-nocsum|--tun-csum|--tun-remcsum]   add, edit a \
        server
  -d SERVICE -r SERVER                          delete a server
  -L [SERVICE] [-n] [--stats|--rate|--thresholds|--persistent-conn|--tun-info] [--exact] [--nosort]
  -L --connection [-n] [--persistent-conn], -L --timeout, -L --daemon    list
  -S [-n], -R                                   save to standard output, restore from standard input
  -Z [SERVICE], -C                              zero counters, clear the table
  --set TCP TCPFIN UDP                          timeouts in seconds, 0 leaves one as it is
  --start-daemon master|backup [--mcast-interface DEV] [--syncid ID] [--sync-maxlen BYTES]
        [--mcast-group ADDRESS] [--mcast-port PORT] [--mcast-ttl TTL]
  --stop-daemon master|backup

SERVICE is -t, -u or --sctp-service ADDRESS:PORT, or -f MARK [-6]; IPv6 addresses stand in brackets.
Hosts and ports may be names; -n lists numbers.
";
