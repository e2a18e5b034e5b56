//! The sysctls that the plan depends on, and the one that localhost node ports need.

use std::fs;

use crate::Error;
use crate::plan::iptables::Settings;

/// The settings with what the kernel is set to: where it is liberal about TCP windows, packets that look invalid are none.
pub(super) fn settings(settings: &Settings) -> Settings {
    // Without connection tracking there is no such file, and nothing is liberal.
    let liberal = fs::read_to_string(LIBERAL).is_ok_and(|text| text.trim() != "0");
    Settings { tcp_be_liberal: settings.tcp_be_liberal || liberal, ..settings.clone() }
}

/// Lets packets from 127.0.0.1 leave for a node port's endpoint.
pub(super) fn route_localnet() -> Result<(), Error> {
    let failed = |source| Error::Read { path: ROUTE_LOCALNET.into(), source };
    if fs::read_to_string(ROUTE_LOCALNET).map_err(failed)?.trim() == "1" {
        return Ok(());
    }
    fs::write(ROUTE_LOCALNET, "1").map_err(failed)
}

const LIBERAL: &str = "/proc/sys/net/netfilter/nf_conntrack_tcp_be_liberal";
const ROUTE_LOCALNET: &str = "/proc/sys/net/ipv4/conf/all/route_localnet";
