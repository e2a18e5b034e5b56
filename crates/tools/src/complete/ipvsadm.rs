//! ipvsadm's options, and the virtual services and servers that there are.

use sluicegate_ipvs::{Client, Listing, Protocol, Scheduler, ServiceId};

use super::texts;

pub(super) fn offered(before: &[&str]) -> Vec<String> {
    let Some(option) = before.last() else { return texts(OPTIONS) };
    let protocol = match *option {
        "-t" | "--tcp-service" => Some(Protocol::TCP),
        "-u" | "--udp-service" => Some(Protocol::UDP),
        "--sctp-service" => Some(Protocol::SCTP),
        "-f" | "--fwmark-service" => None,
        "-s" | "--scheduler" => return Scheduler::KNOWN.iter().map(ToString::to_string).collect(),
        "-r" | "--real-server" => {
            // Of the service that was named before.
            let is_named = |listing: &&Listing| before.contains(&address(&listing.service.id).as_str());
            let servers = listings();
            let servers = servers.iter().filter(is_named).flat_map(|listing| &listing.destinations);
            return servers.map(|server| server.id.to_string()).collect();
        }
        _ => return texts(OPTIONS),
    };
    let services = listings();
    let services = services.iter().map(|listing| &listing.service.id);
    services.filter(|id| id.protocol() == protocol).map(address).collect()
}

/// A service as it stands behind `-t` and its like.
fn address(id: &ServiceId) -> String {
    match id {
        ServiceId::Virtual { endpoint, .. } => endpoint.to_string(),
        ServiceId::Mark { mark, .. } => mark.to_string(),
    }
}

fn listings() -> Vec<Listing> {
    Client::open().and_then(|mut client| client.list(|_| true)).unwrap_or_default()
}

/// The long options.
pub(crate) const OPTIONS: [&str; 54] = [
    "--add-server",
    "--add-service",
    "--clear",
    "--connection",
    "--daemon",
    "--delete-server",
    "--delete-service",
    "--edit-server",
    "--edit-service",
    "--exact",
    "--fwmark-service",
    "--gatewaying",
    "--help",
    "--ipip",
    "--ipv6",
    "--l-threshold",
    "--list",
    "--masquerading",
    "--mcast-group",
    "--mcast-interface",
    "--mcast-port",
    "--mcast-ttl",
    "--netmask",
    "--nosort",
    "--numeric",
    "--ops",
    "--pe",
    "--persistent",
    "--persistent-conn",
    "--rate",
    "--real-server",
    "--restore",
    "--save",
    "--sched-flags",
    "--scheduler",
    "--sctp-service",
    "--set",
    "--sort",
    "--start-daemon",
    "--stats",
    "--stop-daemon",
    "--sync-maxlen",
    "--syncid",
    "--tcp-service",
    "--thresholds",
    "--timeout",
    "--tun-info",
    "--tun-port",
    "--tun-type",
    "--u-threshold",
    "--udp-service",
    "--version",
    "--weight",
    "--zero",
];

#[cfg(test)]
mod tests {
    use super::*;
    use sluicegate_ipvs::{Endpoint, Family};

    #[test]
    fn a_service_is_offered_as_it_is_given() {
        let endpoint = Endpoint::new("fd00::1".parse::<std::net::IpAddr>().unwrap(), 80);
        assert_eq!(address(&ServiceId::tcp(endpoint)), "[fd00::1]:80");
        assert_eq!(address(&ServiceId::sctp(Endpoint::new([10, 0, 0, 1], 5060))), "10.0.0.1:5060");
        assert_eq!(address(&ServiceId::mark(7, Family::Ipv6).unwrap()), "7");
    }
}
