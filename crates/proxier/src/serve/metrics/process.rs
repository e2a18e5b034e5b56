//! `process_*`: the metrics of a process that client libraries of Prometheus have on Linux, read from `/proc`
//! when a scraper asks.

use std::fs;
use std::time::{Duration, SystemTime};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// Reads `/proc/self` at each scrape. What cannot be read is left out.
#[derive(Debug)]
pub(super) struct ProcessMetrics;

impl Collector for ProcessMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let mut encode = |name: &str, help: &str, value: Option<f64>, is_counter: bool| {
            let Some(value) = value else { return Ok(()) };
            if is_counter {
                let metric = ConstCounter::new(value);
                metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)
            } else {
                let metric = ConstGauge::new(value);
                metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)
            }
        };
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
        let stat = Stat::read();
        let cpu = stat.as_ref().map(|stat| stat.cpu.as_secs_f64());
        let start = stat.and_then(|stat| stat.started.duration_since(SystemTime::UNIX_EPOCH).ok());
        #[allow(clippy::cast_precision_loss, reason = "a count of descriptors is small")]
        let open = fs::read_dir("/proc/self/fd").ok().map(|entries| entries.count() as f64);
        encode("cpu_seconds", "Total user and system CPU time spent in seconds", cpu, true)?;
        encode("open_fds", "Number of open file descriptors", open, false)?;
        let most = limit(&limits, "Max open files");
        encode("max_fds", "Maximum number of open file descriptors", most, false)?;
        let resident = kibibytes(&status, "VmRSS:");
        encode("resident_memory_bytes", "Resident memory size in bytes", resident, false)?;
        let virtual_memory = kibibytes(&status, "VmSize:");
        encode("virtual_memory_bytes", "Virtual memory size in bytes", virtual_memory, false)?;
        let most = limit(&limits, "Max address space");
        let help = "Maximum amount of virtual memory available in bytes";
        encode("virtual_memory_max_bytes", help, most, false)?;
        // As in Go's client library: of the network namespace, by IP.
        let netstat = fs::read_to_string("/proc/self/net/netstat").unwrap_or_default();
        let received = octets(&netstat, "InOctets");
        let help = "Number of bytes received by the process over the network";
        encode("network_receive_bytes", help, received, true)?;
        let help = "Number of bytes sent by the process over the network";
        encode("network_transmit_bytes", help, octets(&netstat, "OutOctets"), true)?;
        let start = start.map(|start| start.as_secs_f64());
        encode("start_time_seconds", "Start time of the process since unix epoch in seconds", start, false)
    }
}

/// Returns the time when the process started, to 10 ms.
pub(in super::super) fn started() -> Option<SystemTime> {
    Stat::read().map(|stat| stat.started)
}

/// What `/proc/self/stat` says, proc(5).
struct Stat {
    cpu: Duration,
    started: SystemTime,
}

impl Stat {
    fn read() -> Option<Self> {
        let stat = fs::read_to_string("/proc/self/stat").ok()?;
        let system = fs::read_to_string("/proc/stat").ok()?;
        let boot = system.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
        Self::parse(&stat, SystemTime::UNIX_EPOCH + Duration::from_secs(boot))
    }

    fn parse(stat: &str, boot: SystemTime) -> Option<Self> {
        // The second field is a name in parentheses, which may have any bytes; the next one is the third.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        let ticks = |text: &str| Some(Duration::from_millis(text.parse::<u64>().ok()?.checked_mul(TICK)?));
        let user = ticks(fields.nth(11)?)?;
        let system = ticks(fields.next()?)?;
        let started = ticks(fields.nth(6)?)?;
        Some(Self { cpu: user + system, started: boot.checked_add(started)? })
    }
}

/// Reads a line of `/proc/self/status`: `VmRSS:      5000 kB`.
fn kibibytes(status: &str, field: &str) -> Option<f64> {
    let rest = status.lines().find_map(|line| line.strip_prefix(field))?;
    rest.trim().strip_suffix("kB")?.trim().parse::<f64>().ok().map(|kibibytes| kibibytes * 1024.0)
}

/// Reads a field of the pair of lines `IpExt:` of `/proc/self/net/netstat`: names, and their values.
fn octets(netstat: &str, field: &str) -> Option<f64> {
    let mut lines = netstat.lines().filter_map(|line| line.strip_prefix("IpExt:"));
    let place = lines.next()?.split_whitespace().position(|name| name == field)?;
    lines.next()?.split_whitespace().nth(place)?.parse().ok()
}

/// Reads the soft limit of a line of `/proc/self/limits`.
fn limit(limits: &str, name: &str) -> Option<f64> {
    let rest = limits.lines().find_map(|line| line.strip_prefix(name))?;
    match rest.split_whitespace().next()? {
        // `RLIM_INFINITY`, as client libraries print it.
        "unlimited" => Some(2_f64.powi(64)),
        number => number.parse().ok(),
    }
}

/// The milliseconds of a clock tick: `USER_HZ` is 100 on every architecture that Rust's standard library has
/// for Linux.
const TICK: u64 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_move_the_fields() {
        let line = "42 (a) b (c)) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20 0 4 0 1234 99 7";
        let stat = Stat::parse(line, SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(stat.cpu, Duration::from_secs(3));
        assert_eq!(stat.started, SystemTime::UNIX_EPOCH + Duration::from_millis(12_340));
        assert!(Stat::parse("42 (cut", SystemTime::UNIX_EPOCH).is_none());
    }

    #[test]
    fn octets_are_found_by_their_names() {
        let text =
            "TcpExt: InOctets A\nTcpExt: 9 8\nIpExt: InNoRoutes InOctets OutOctets\nIpExt: 0 1234 56\n";
        assert_eq!((octets(text, "InOctets"), octets(text, "OutOctets")), (Some(1234.0), Some(56.0)));
        assert_eq!((octets(text, "A"), octets("", "InOctets")), (None, None));
    }

    #[test]
    fn sizes_are_bytes() {
        assert_eq!(kibibytes("VmSize:\t  10 kB\nVmRSS:\t 2 kB\n", "VmRSS:"), Some(2048.0));
        let limits = "Max open files            1024                 524288               files\n\
                      Max address space         unlimited            unlimited            bytes\n";
        assert_eq!(limit(limits, "Max open files"), Some(1024.0));
        assert!(limit(limits, "Max address space").is_some_and(|most| most > 1.8e19));
    }
}
