//! Prints commands exactly as `ipvsadm -S -n` does.

use std::fmt::{self, Write};

use crate::command::Command;
use crate::daemon::Daemon;
use crate::destination::{Destination, DestinationConfig, Forward, Tunnel, TunnelFlags};
use crate::name::Scheduler;
use crate::service::{Granularity, SchedulerFlags, Service, ServiceConfig, ServiceId};
use crate::{Family, Protocol};

/// Writes a service with its destinations as `ipvsadm -S -n` does, in the given order.
///
/// The output is the same, and so lacks the thresholds of destinations, which ipvsadm omits; a [`Command`]
/// prints them. The exception are marks above 2,147,483,647, which ipvsadm prints as negative numbers that it
/// cannot read.
///
/// # Errors
/// Those of the writer.
pub fn write_saved(to: &mut impl Write, service: &Service, destinations: &[Destination]) -> fmt::Result {
    writeln!(to, "{}", Command::AddService { id: service.id, config: service.config })?;
    destinations.iter().try_for_each(|destination| {
        let Destination { id, mut config, .. } = *destination;
        (config.upper_threshold, config.lower_threshold) = (0, 0);
        writeln!(to, "{}", Command::AddDestination { service: service.id, id, config })
    })
}

pub(crate) fn write_command(f: &mut fmt::Formatter<'_>, command: &Command) -> fmt::Result {
    match command {
        Command::AddService { id, config } => write_service(f, "-A", id, config),
        Command::EditService { id, config } => write_service(f, "-E", id, config),
        Command::DeleteService { id } => write_id(f, "-D", id),
        Command::AddDestination { service, id, config } => {
            write_id(f, "-a", service)?;
            write!(f, " -r {id}")?;
            write_destination(f, config)
        }
        Command::EditDestination { service, id, config } => {
            write_id(f, "-e", service)?;
            write!(f, " -r {id}")?;
            write_destination(f, config)
        }
        Command::DeleteDestination { service, id } => {
            write_id(f, "-d", service)?;
            write!(f, " -r {id}")
        }
        Command::ZeroService { id } => write_id(f, "-Z", id),
        Command::ZeroAll => f.write_str("-Z"),
        Command::Flush => f.write_str("-C"),
        Command::SetTimeouts(timeouts) => {
            write!(f, "--set {} {} {}", timeouts.tcp, timeouts.tcp_fin, timeouts.udp)
        }
        Command::StartDaemon(daemon) => write_daemon(f, daemon),
        Command::StopDaemon(role) => write!(f, "--stop-daemon {role}"),
    }
}

fn write_id(f: &mut fmt::Formatter<'_>, command: &str, id: &ServiceId) -> fmt::Result {
    match id {
        ServiceId::Virtual { protocol: Protocol::UDP, endpoint } => write!(f, "{command} -u {endpoint}"),
        ServiceId::Virtual { protocol: Protocol::SCTP, endpoint } => {
            write!(f, "{command} --sctp-service {endpoint}")
        }
        ServiceId::Virtual { endpoint, .. } => write!(f, "{command} -t {endpoint}"),
        ServiceId::Mark { mark, family: Family::Ipv4 } => write!(f, "{command} -f {mark}"),
        ServiceId::Mark { mark, family: Family::Ipv6 } => write!(f, "{command} -f {mark} -6"),
    }
}

fn write_service(
    f: &mut fmt::Formatter<'_>,
    command: &str,
    id: &ServiceId,
    config: &ServiceConfig,
) -> fmt::Result {
    write_id(f, command, id)?;
    write!(f, " -s {}", config.scheduler)?;
    if let Some(persistence) = &config.persistence {
        write!(f, " -p {}", persistence.timeout)?;
        match persistence.granularity {
            Some(Granularity::Netmask(mask)) => write!(f, " -M {mask}")?,
            Some(Granularity::Prefix(length)) => write!(f, " -M {length}")?,
            None => {}
        }
    }
    if let Some(engine) = &config.engine {
        write!(f, " --pe {engine}")?;
    }
    if config.one_packet {
        f.write_str(" -o")?;
    }
    if !config.scheduler_flags.is_empty() {
        write!(f, " -b {}", scheduler_flag_names(config.scheduler, config.scheduler_flags))?;
    }
    Ok(())
}

/// Returns the names that ipvsadm gives to the flags of a scheduler, joined by commas; empty for none. The
/// third flag of `sh` and `mh`, for which ipvsadm 1.31 prints nothing, is `flag-3`, as it reads it.
#[must_use]
pub fn scheduler_flag_names(scheduler: Scheduler, flags: SchedulerFlags) -> String {
    let names = match scheduler {
        Scheduler::SH => ["sh-fallback", "sh-port", "flag-3"],
        Scheduler::MH => ["mh-fallback", "mh-port", "flag-3"],
        _ => ["flag-1", "flag-2", "flag-3"],
    };
    let bits = [SchedulerFlags::FALLBACK, SchedulerFlags::PORT, SchedulerFlags::THIRD];
    let given: Vec<_> =
        bits.iter().zip(names).filter(|(bit, _)| flags.contains(**bit)).map(|(_, name)| name).collect();
    given.join(",")
}

fn write_destination(f: &mut fmt::Formatter<'_>, config: &DestinationConfig) -> fmt::Result {
    let method = match config.forward {
        Forward::Masquerade => "-m",
        Forward::Tunnel(_) => "-i",
        // ipvsadm has no option for local delivery, which the kernel chooses by itself.
        Forward::DirectRoute | Forward::Local | Forward::Other(_) => "-g",
    };
    write!(f, " {method} -w {}", config.weight)?;
    if let Forward::Tunnel(tunnel) = config.forward {
        write_tunnel(f, tunnel)?;
    }
    if config.upper_threshold != 0 {
        write!(f, " -x {}", config.upper_threshold)?;
    }
    if config.lower_threshold != 0 {
        write!(f, " -y {}", config.lower_threshold)?;
    }
    Ok(())
}

fn write_tunnel(f: &mut fmt::Formatter<'_>, tunnel: Tunnel) -> fmt::Result {
    let checksum = |flags: TunnelFlags| match flags {
        flags if flags.contains(TunnelFlags::REMOTE_CHECKSUM) => "--tun-remcsum",
        flags if flags.contains(TunnelFlags::CHECKSUM) => "--tun-csum",
        _ => "--tun-nocsum",
    };
    match tunnel {
        Tunnel::Ipip => f.write_str(" --tun-type ipip"),
        Tunnel::Gue { port, flags } => write!(f, " --tun-type gue --tun-port {port} {}", checksum(flags)),
        Tunnel::Gre { flags } => write!(f, " --tun-type gre {}", checksum(flags)),
        Tunnel::Other { kind, .. } => write!(f, " --tun-type {kind}"),
    }
}

fn write_daemon(f: &mut fmt::Formatter<'_>, daemon: &Daemon) -> fmt::Result {
    write!(
        f,
        "--start-daemon {} --mcast-interface {} --syncid {}",
        daemon.role, daemon.interface, daemon.sync_id
    )?;
    if let Some(length) = daemon.max_length {
        write!(f, " --sync-maxlen {length}")?;
    }
    if let Some(group) = daemon.group {
        write!(f, " --mcast-group {group}")?;
    }
    if let Some(port) = daemon.port {
        write!(f, " --mcast-port {port}")?;
    }
    if let Some(ttl) = daemon.ttl {
        write!(f, " --mcast-ttl {ttl}")?;
    }
    Ok(())
}
