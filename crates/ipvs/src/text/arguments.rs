//! The options of one command, and the values that they result in.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use sluicegate_netlink::{Family, Protocol};

use super::parse::{Invocation, ListOptions};
use super::words::{Item, Option_ as O, ParseError, Reason, Word};
use crate::command::Command;
use crate::daemon::{Daemon, DaemonRole, Timeouts};
use crate::destination::{DestinationConfig, Forward, Tunnel, TunnelFlags};
use crate::error::Error;
use crate::name::{Engine, Interface, Scheduler};
use crate::service::{Endpoint, Granularity, Persistence, SchedulerFlags, ServiceConfig, ServiceId};

/// The options of a command. They are removed one after the other; the rest at the end are errors.
pub(super) struct Arguments<'a> {
    command: Word<'a>,
    what: &'static str,
    rest: Vec<(O, Word<'a>, Option<Word<'a>>)>,
    words: Vec<Word<'a>>,
}

type Taken<'a> = Option<(Word<'a>, Word<'a>)>;

impl<'a> Arguments<'a> {
    /// Collects the options and words after the command.
    pub(super) fn new(command: Word<'a>, option: O, items: &[Item<'a>]) -> Result<Self, ParseError> {
        let mut given = Self { command, what: "this command", rest: Vec::new(), words: Vec::new() };
        given.sort(items, option)?;
        Ok(given)
    }

    fn sort(&mut self, items: &[Item<'a>], command: O) -> Result<(), ParseError> {
        for item in items {
            match item {
                Item::Option { option, word, argument } => self.rest.push((*option, *word, *argument)),
                // Only --set has words without an option.
                Item::Word(word) if command == O::Set => self.words.push(*word),
                Item::Word(word) => return Err(word.error(Reason::UnexpectedWord)),
            }
        }
        Ok(())
    }

    /// Removes an option, which may be given once.
    fn take(&mut self, option: O) -> Result<Option<(Word<'a>, Option<Word<'a>>)>, ParseError> {
        let Some(at) = self.rest.iter().position(|(given, _, _)| *given == option) else { return Ok(None) };
        let (_, word, argument) = self.rest.remove(at);
        match self.rest.iter().find(|(given, _, _)| *given == option) {
            Some((_, second, _)) => Err(second.error(Reason::Twice)),
            None => Ok(Some((word, argument))),
        }
    }

    pub(super) fn flag(&mut self, option: O) -> Result<bool, ParseError> {
        Ok(self.take(option)?.is_some())
    }

    /// Removes an option that has an argument, and returns both.
    fn argument(&mut self, option: O) -> Result<Taken<'a>, ParseError> {
        Ok(self.take(option)?.map(|(word, argument)| (word, argument.unwrap_or(word))))
    }

    fn number(&mut self, option: O, min: u32, max: u32) -> Result<Option<u32>, ParseError> {
        self.argument(option)?.map(|(_, word)| number(word, min, max)).transpose()
    }

    /// Removes one of several options that exclude each other.
    fn one_of(&mut self, options: &[O]) -> Result<Option<(O, Word<'a>, Word<'a>)>, ParseError> {
        let mut found = None;
        for option in options {
            if let Some((word, argument)) = self.take(*option)? {
                if found.is_some() {
                    return Err(word.error(Reason::Twice));
                }
                found = Some((*option, word, argument.unwrap_or(word)));
            }
        }
        Ok(found)
    }

    /// Refuses the remaining options.
    fn end(&self) -> Result<(), ParseError> {
        match self.rest.first() {
            None => Ok(()),
            Some((O::AddService | O::EditService | O::DeleteService | O::List | O::Save, word, _)) => {
                Err(word.error(Reason::SecondCommand))
            }
            Some((_, word, _)) => Err(word.error(Reason::Foreign(self.what))),
        }
    }

    pub(super) fn alone(
        mut self,
        what: &'static str,
        invocation: Invocation,
    ) -> Result<Invocation, ParseError> {
        self.what = what;
        self.end().map(|()| invocation)
    }

    fn missing(&self, what: &'static str) -> ParseError {
        ParseError { word: String::new(), ..self.command.error(Reason::Missing(what)) }
    }

    fn service(&mut self) -> Result<Option<ServiceId>, ParseError> {
        let six = self.take(O::Six)?;
        let found = self.one_of(&[O::Tcp, O::Udp, O::Sctp, O::Mark])?;
        if let Some((word, _)) = six
            && !matches!(found, Some((O::Mark, _, _)))
        {
            return Err(word.error(Reason::Six));
        }
        let Some((option, _, argument)) = found else { return Ok(None) };
        let protocol = match option {
            O::Udp => Protocol::UDP,
            O::Sctp => Protocol::SCTP,
            O::Tcp => Protocol::TCP,
            _ => {
                let mark = number(argument, 1, u32::MAX)?;
                let family = if six.is_some() { Family::Ipv6 } else { Family::Ipv4 };
                return Ok(ServiceId::mark(mark, family));
            }
        };
        let (address, port) = address(argument)?;
        Ok(Some(ServiceId::Virtual { protocol, endpoint: Endpoint { address, port: port.unwrap_or(0) } }))
    }

    fn required_service(&mut self) -> Result<ServiceId, ParseError> {
        self.service()?.ok_or_else(|| self.missing("the service (-t, -u, --sctp-service or -f)"))
    }

    pub(super) fn service_command(
        mut self,
        what: &'static str,
        command: impl Fn(ServiceId, ServiceConfig) -> Command,
    ) -> Result<Invocation, ParseError> {
        self.what = what;
        let id = self.required_service()?;
        let scheduler = match self.argument(O::Scheduler)? {
            Some((_, word)) => Scheduler::new(word.text).map_err(|e| invalid(word, e))?,
            None => Scheduler::WLC,
        };
        let config = ServiceConfig {
            scheduler,
            scheduler_flags: self.scheduler_flags(scheduler)?,
            persistence: self.persistence(id.family())?,
            engine: match self.argument(O::Engine)? {
                Some((_, word)) => Some(Engine::new(word.text).map_err(|e| invalid(word, e))?),
                None => None,
            },
            one_packet: self.flag(O::OnePacket)?,
        };
        self.change(command(id, config))
    }

    fn scheduler_flags(&mut self, scheduler: Scheduler) -> Result<SchedulerFlags, ParseError> {
        let Some((_, word)) = self.argument(O::SchedulerFlags)? else { return Ok(SchedulerFlags::empty()) };
        let mut flags = SchedulerFlags::empty();
        for name in word.text.split(',') {
            let wrong = || {
                word.error(Reason::SchedulerFlag(match scheduler {
                    Scheduler::SH => "sh-fallback, sh-port, flag-1, flag-2 and flag-3",
                    Scheduler::MH => "mh-fallback, mh-port, flag-1, flag-2 and flag-3",
                    _ => "flag-1, flag-2 and flag-3",
                }))
            };
            flags |= scheduler_flag(scheduler, name).ok_or_else(wrong)?;
        }
        Ok(flags)
    }

    fn persistence(&mut self, family: Family) -> Result<Option<Persistence>, ParseError> {
        /// The timeout that ipvsadm 1.31 uses for `-p` without a number.
        const DEFAULT_TIMEOUT: u32 = 360;
        let granularity = match self.argument(O::Netmask)? {
            Some((_, word)) => Some(granularity(word, family)?),
            None => None,
        };
        let Some((_, argument)) = self.take(O::Persistent)? else {
            // A mask without -p has no effect, in ipvsadm and in the kernel.
            return Ok(None);
        };
        let timeout =
            argument.map_or(Ok(DEFAULT_TIMEOUT), |word| number(word, 1, Persistence::MAX_TIMEOUT))?;
        let whole = [Granularity::Netmask(Ipv4Addr::BROADCAST), Granularity::Prefix(128)];
        Ok(Some(Persistence { timeout, granularity: granularity.filter(|it| !whole.contains(it)) }))
    }

    pub(super) fn delete_service(mut self) -> Result<Invocation, ParseError> {
        self.what = "-D";
        let id = self.required_service()?;
        self.change(Command::DeleteService { id })
    }

    pub(super) fn zero(mut self) -> Result<Invocation, ParseError> {
        self.what = "-Z";
        let command = self.service()?.map_or(Command::ZeroAll, |id| Command::ZeroService { id });
        self.change(command)
    }

    pub(super) fn server_command(
        mut self,
        what: &'static str,
        command: impl Fn(ServiceId, Endpoint, DestinationConfig) -> Command,
    ) -> Result<Invocation, ParseError> {
        self.what = what;
        let service = self.required_service()?;
        let (address, port) = self.server()?;
        let forward = self.forward()?;
        let port = match service.port() {
            // Packets arrive with the port of the service, whatever port is given.
            Some(port) if forward.keeps_port() => port,
            virtual_port => port.or(virtual_port).unwrap_or(0),
        };
        const MOST: u32 = i32::MAX.unsigned_abs();
        let config = DestinationConfig {
            forward,
            weight: self.number(O::Weight, 0, MOST)?.unwrap_or(1),
            upper_threshold: self.number(O::Upper, 0, MOST)?.unwrap_or(0),
            lower_threshold: self.number(O::Lower, 0, MOST)?.unwrap_or(0),
        };
        self.change(command(service, Endpoint { address, port }, config))
    }

    pub(super) fn delete_server(mut self) -> Result<Invocation, ParseError> {
        self.what = "-d";
        let service = self.required_service()?;
        let (address, port) = self.server()?;
        let port = port.or(service.port()).unwrap_or(0);
        self.change(Command::DeleteDestination { service, id: Endpoint { address, port } })
    }

    fn server(&mut self) -> Result<(IpAddr, Option<u16>), ParseError> {
        match self.argument(O::Server)? {
            Some((_, word)) => address(word),
            None => Err(self.missing("the real server (-r)")),
        }
    }

    fn forward(&mut self) -> Result<Forward, ParseError> {
        let method = self.one_of(&[O::Masquerading, O::Ipip, O::Gatewaying])?;
        if let Some((O::Ipip, _, _)) = method {
            return self.tunnel().map(Forward::Tunnel);
        }
        let tunnel =
            |option: &O| [O::TunType, O::TunPort, O::TunNoCsum, O::TunCsum, O::TunRemCsum].contains(option);
        if let Some((_, word, _)) = self.rest.iter().find(|(option, _, _)| tunnel(option)) {
            return Err(word.error(Reason::Conflict("expected -i together with options of tunnels")));
        }
        Ok(if let Some((O::Masquerading, _, _)) = method {
            Forward::Masquerade
        } else {
            Forward::DirectRoute
        })
    }

    fn tunnel(&mut self) -> Result<Tunnel, ParseError> {
        let kind = self.argument(O::TunType)?;
        let port = self.argument(O::TunPort)?;
        let checksum = self.one_of(&[O::TunNoCsum, O::TunCsum, O::TunRemCsum])?;
        let flags = match checksum {
            Some((O::TunCsum, _, _)) => TunnelFlags::CHECKSUM,
            Some((O::TunRemCsum, _, _)) => TunnelFlags::REMOTE_CHECKSUM,
            _ => TunnelFlags::empty(),
        };
        match kind.map_or("ipip", |(_, word)| word.text) {
            "gue" => {
                let (_, word) =
                    port.ok_or_else(|| self.missing("the port of the GUE tunnel (--tun-port)"))?;
                Ok(Tunnel::Gue { port: port_number(word)?, flags })
            }
            "gre" | "ipip" if port.is_some() => {
                Err(port.map_or(self.command, |(word, _)| word).error(Reason::TunnelOption))
            }
            "gre" if flags == TunnelFlags::REMOTE_CHECKSUM => {
                Err(checksum.map_or(self.command, |(_, word, _)| word).error(Reason::TunnelOption))
            }
            "gre" => Ok(Tunnel::Gre { flags }),
            "ipip" => match checksum {
                Some((_, word, _)) => Err(word.error(Reason::TunnelOption)),
                None => Ok(Tunnel::Ipip),
            },
            _ => Err(kind.map_or(self.command, |(_, word)| word).error(Reason::TunnelType)),
        }
    }

    pub(super) fn set(mut self) -> Result<Invocation, ParseError> {
        self.what = "--set";
        let [tcp, tcp_fin, udp] = *self.words.as_slice() else {
            return match self.words.get(3) {
                Some(word) => Err(word.error(Reason::UnexpectedWord)),
                None => Err(self.missing("a timeout: three numbers, for tcp, tcpfin and udp")),
            };
        };
        let seconds = |name, word: Word<'a>| {
            number(word, 0, Timeouts::MAX)
                .map_err(|_| word.error(Reason::Timeout { name, max: Timeouts::MAX.into() }))
        };
        let timeouts = Timeouts {
            tcp: seconds("tcp", tcp)?,
            tcp_fin: seconds("tcpfin", tcp_fin)?,
            udp: seconds("udp", udp)?,
        };
        self.change(Command::SetTimeouts(timeouts))
    }

    pub(super) fn start_daemon(mut self, state: Option<Word<'a>>) -> Result<Invocation, ParseError> {
        self.what = "--start-daemon";
        let role = role(self.command, state)?;
        let interface = match self.argument(O::McastInterface)? {
            Some((_, word)) => Interface::new(word.text).map_err(|e| invalid(word, e))?,
            None => Interface::new("eth0").map_err(|e| invalid(self.command, e))?,
        };
        let group = match self.argument(O::McastGroup)? {
            Some((_, word)) => Some(word.text.parse().map_err(|_| word.error(Reason::Group))?),
            None => None,
        };
        let daemon = Daemon {
            role,
            interface,
            sync_id: self.number(O::SyncId, 0, 255)?.unwrap_or(0),
            max_length: self.number(O::SyncMaxlen, 1, 65535 - 28)?.and_then(|number| number.try_into().ok()),
            group,
            port: self.argument(O::McastPort)?.map(|(_, word)| port_number(word)).transpose()?,
            ttl: self.number(O::McastTtl, 1, 255)?.and_then(|number| number.try_into().ok()),
        };
        self.change(Command::StartDaemon(daemon))
    }

    pub(super) fn list(mut self) -> Result<Invocation, ParseError> {
        self.what = "-L";
        let options = ListOptions {
            service: self.service()?,
            numeric: self.flag(O::Numeric)?,
            connections: self.flag(O::Connection)?,
            timeout: self.flag(O::Timeout)?,
            daemon: self.flag(O::Daemon)?,
            stats: self.flag(O::Stats)?,
            rate: self.flag(O::Rate)?,
            thresholds: self.flag(O::Thresholds)?,
            persistent_connections: self.flag(O::PersistentConn)?,
            tunnels: self.flag(O::TunInfo)?,
            unsorted: self.flag(O::NoSort)?,
            exact: self.flag(O::Exact)?,
        };
        self.flag(O::Sort)?;
        self.end()?;
        let subjects = [options.service.is_some(), options.connections, options.timeout, options.daemon];
        let details = [options.stats, options.rate, options.thresholds, options.tunnels];
        let other = options.connections || options.timeout || options.daemon;
        if subjects.iter().filter(|is| **is).count() > 1 || (other && details.contains(&true)) {
            return Err(self.command.error(Reason::Conflict(
                "expected one of the options of the list that exclude each other, found several",
            )));
        }
        Ok(Invocation::List(options))
    }

    /// Finishes a command that changes something: all options must have been used, and the values must be
    /// valid together.
    fn change(&self, command: Command) -> Result<Invocation, ParseError> {
        self.end()?;
        command.check().map_err(|error| invalid(self.command, error))?;
        Ok(Invocation::Change(command))
    }
}

fn invalid(word: Word<'_>, error: Error) -> ParseError {
    match error {
        Error::Invalid(invalid) => word.error(Reason::Invalid(invalid)),
        // A check returns no other error.
        _ => word.error(Reason::UnexpectedWord),
    }
}

fn number(word: Word<'_>, min: u32, max: u32) -> Result<u32, ParseError> {
    let wrong = || word.error(Reason::Number { min: min.into(), max: max.into() });
    word.text.parse().ok().filter(|number| (min..=max).contains(number)).ok_or_else(wrong)
}

fn port_number(word: Word<'_>) -> Result<u16, ParseError> {
    let wrong = || word.error(Reason::Number { min: 1, max: u16::MAX.into() });
    word.text.parse().ok().filter(|port| *port != 0).ok_or_else(wrong)
}

pub(super) fn role(command: Word<'_>, argument: Option<Word<'_>>) -> Result<DaemonRole, ParseError> {
    match argument.map(|word| word.text) {
        Some("master") => Ok(DaemonRole::MASTER),
        Some("backup") => Ok(DaemonRole::BACKUP),
        _ => Err(argument.unwrap_or(command).error(Reason::DaemonRole)),
    }
}

/// `1.2.3.4:80`, `1.2.3.4`, `[2001:db8::1]:80`, `2001:db8::1`.
fn address(word: Word<'_>) -> Result<(IpAddr, Option<u16>), ParseError> {
    let wrong = || word.error(Reason::Address);
    if let Ok(address) = word.text.parse::<Ipv6Addr>() {
        return Ok((address.into(), None));
    }
    let (host, port) = match word.text.rsplit_once(':') {
        Some((host, port)) => (host, Some(port.parse::<u16>().map_err(|_| wrong())?)),
        None => (word.text, None),
    };
    let address = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(host) => host.parse::<Ipv6Addr>().map_err(|_| wrong())?.into(),
        None => host.parse::<Ipv4Addr>().map_err(|_| wrong())?.into(),
    };
    Ok((address, port))
}

fn granularity(word: Word<'_>, family: Family) -> Result<Granularity, ParseError> {
    let granularity = match family {
        Family::Ipv4 => word.text.parse().ok().map(Granularity::Netmask),
        Family::Ipv6 => word.text.parse().ok().filter(|l| (1..=128).contains(l)).map(Granularity::Prefix),
    };
    granularity.ok_or_else(|| word.error(Reason::Mask))
}

fn scheduler_flag(scheduler: Scheduler, name: &str) -> Option<SchedulerFlags> {
    Some(match name {
        "flag-1" => SchedulerFlags::FALLBACK,
        "flag-2" => SchedulerFlags::PORT,
        "flag-3" => SchedulerFlags::THIRD,
        _ => match (scheduler, name) {
            (Scheduler::SH, "sh-fallback") | (Scheduler::MH, "mh-fallback") => SchedulerFlags::FALLBACK,
            (Scheduler::SH, "sh-port") | (Scheduler::MH, "mh-port") => SchedulerFlags::PORT,
            _ => return None,
        },
    })
}
