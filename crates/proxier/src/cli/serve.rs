//! Flags of the daemon's HTTP servers and of sysctls.

use std::path::Path;
use std::time::Duration;

use clap::Args;
use sluicegate_proxier::Error;
use sluicegate_proxier::config::Config;
use sluicegate_proxier::model::{Cluster, Family};
use sluicegate_proxier::serve::{BindAddress, HEALTHZ_PORT, METRICS_PORT, Mode, Serving, ServingSettings};
use sluicegate_proxier::sysctl::{self, Needs, Sysctls};

use super::args::{ProxyArgs, ProxyMode};

/// What the daemon answers where.
#[derive(Args, Clone, Debug)]
pub(crate) struct ServeArgs {
    /// Where /healthz and /livez are answered; empty for nowhere. An address alone takes port 10256.
    #[arg(long, value_name = "IP[:PORT]", default_value = "0.0.0.0:10256")]
    healthz_bind_address: BindAddress,
    /// Where /metrics, /proxyMode and /configz are answered; empty for nowhere. An address alone takes port 10249.
    #[arg(long, value_name = "IP[:PORT]", default_value = "127.0.0.1:10249")]
    metrics_bind_address: BindAddress,
    /// End when a port of these is taken, instead of trying again every five seconds.
    #[arg(long)]
    pub(super) bind_address_hard_fail: bool,
    /// Set the sysctls that the mode relies on. Without this, those that differ are only told.
    #[arg(long)]
    set_sysctls: bool,
}

impl ServeArgs {
    /// Takes from the configuration file what no flag says; `is_given` tells that of a flag's field.
    pub(crate) fn fill(&mut self, config: &Config, is_given: impl Fn(&str) -> bool) -> Result<(), Error> {
        if let Some(hard) = config.bind_address_hard_fail.filter(|_| !is_given("bind_address_hard_fail")) {
            self.bind_address_hard_fail = hard;
        }
        let places = [
            (
                "healthz_bind_address",
                "healthzBindAddress",
                &config.healthz_bind_address,
                &mut self.healthz_bind_address,
            ),
            (
                "metrics_bind_address",
                "metricsBindAddress",
                &config.metrics_bind_address,
                &mut self.metrics_bind_address,
            ),
        ];
        for (flag, field, text, place) in places {
            // kube-proxy's files have an empty field for the usual address; no server is `""` on the command line alone.
            if let Some(text) = text.as_deref().filter(|text| !text.is_empty() && !is_given(flag)) {
                *place = text.parse().map_err(|reason| Error::Flag { flag: field.to_owned(), reason })?;
            }
        }
        Ok(())
    }

    /// Where /healthz and /metrics are answered, empty for nowhere.
    pub(crate) fn places(&self) -> [String; 2] {
        [(self.healthz_bind_address, HEALTHZ_PORT), (self.metrics_bind_address, METRICS_PORT)]
            .map(|(place, port)| place.socket(port).map(|socket| socket.to_string()).unwrap_or_default())
    }

    /// Starts the servers, for syncs of this period; `configz` is the configuration in force.
    pub(crate) fn start(
        &self,
        proxy: &ProxyArgs,
        sync_period: Duration,
        configz: String,
    ) -> Result<Serving, Error> {
        let mut settings = ServingSettings::new(mode(proxy.proxy_mode));
        settings.healthz = self.healthz_bind_address;
        settings.metrics = self.metrics_bind_address;
        settings.timeout = sync_period * 2;
        settings.node_port_addresses = proxy.node_port_addresses();
        settings.bind_hard_fail = self.bind_address_hard_fail;
        settings.configz = Some(configz);
        Serving::start(settings, |trouble| tracing::warn!("{trouble}")).map_err(|error| {
            let flag =
                if error.what == "/metrics" { "--metrics-bind-address" } else { "--healthz-bind-address" };
            Error::Flag { flag: flag.to_owned(), reason: error.to_string() }
        })
    }

    /// Sets the sysctls of the mode, or tells which are not as they should be.
    pub(crate) fn sysctls(&self, proxy: &ProxyArgs, cluster: &Cluster) {
        let needs = needs(proxy, cluster);
        let sysctls = Sysctls::default();
        let findings = if self.set_sysctls { sysctls.set(&needs) } else { sysctls.look(&needs) };
        for finding in findings {
            if finding.is_wanting() {
                tracing::warn!("{finding}");
            } else if finding.was_set {
                tracing::info!("{finding}");
            } else {
                tracing::debug!("{finding}");
            }
        }
        if sysctls.tcp_be_liberal() == Some(true) && proxy.proxy_mode == ProxyMode::Iptables {
            tracing::info!(
                "net.netfilter.nf_conntrack_tcp_be_liberal is on: packets that look invalid are not dropped"
            );
        }
    }
}

/// What the choice of sysctls depends on, by these flags.
pub(crate) fn needs(proxy: &ProxyArgs, cluster: &Cluster) -> Needs {
    Needs {
        mode: mode(proxy.proxy_mode),
        ipv6: Path::new("/proc/net/if_inet6").exists(),
        localhost_node_ports: proxy.iptables(cluster.node()).answers_localhost(Family::V4, cluster),
        strict_arp: proxy.proxy_mode == ProxyMode::Ipvs && proxy.ipvs.settings().strict_arp,
        kernel: sysctl::kernel(),
    }
}

pub(crate) const fn mode(mode: ProxyMode) -> Mode {
    match mode {
        ProxyMode::Nftables => Mode::Nftables,
        ProxyMode::Iptables => Mode::Iptables,
        ProxyMode::Ipvs => Mode::Ipvs,
    }
}
