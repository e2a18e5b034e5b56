//! The sysctls that the plan depends on, and the sysctl that node ports on localhost need.

use std::fs;

use super::Settings;
use crate::Error;

/// Returns the settings with the kernel's `nf_conntrack_tcp_be_liberal`: if that is set, packets outside of
/// the TCP window are not invalid.
pub(super) fn settings(settings: &Settings) -> Settings {
    // Without connection tracking the file does not exist.
    let liberal = fs::read_to_string(LIBERAL).is_ok_and(|text| text.trim() != "0");
    Settings { tcp_be_liberal: settings.tcp_be_liberal || liberal, ..settings.clone() }
}

/// Allows packets from 127.0.0.1 to be routed to the endpoints of node ports.
pub(super) fn route_localnet() -> Result<(), Error> {
    let failed = |source| Error::Sysctl { path: ROUTE_LOCALNET.into(), source };
    if fs::read_to_string(ROUTE_LOCALNET).map_err(failed)?.trim() == "1" {
        return Ok(());
    }
    fs::write(ROUTE_LOCALNET, "1").map_err(failed)
}

const LIBERAL: &str = "/proc/sys/net/netfilter/nf_conntrack_tcp_be_liberal";
const ROUTE_LOCALNET: &str = "/proc/sys/net/ipv4/conf/all/route_localnet";
