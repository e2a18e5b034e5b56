//! Flags of the daemon's HTTP servers and of sysctls.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use clap::{ArgAction, Args};
use sluicegate_proxier::Mode;
use sluicegate_proxier::config::{Config, Gate};
use sluicegate_proxier::doctor::localnet_is_guarded;
use sluicegate_proxier::run::Heartbeat;
use sluicegate_proxier::serve::{
    BindAddress, BindAddressError, HEALTHZ_PORT, METRICS_PORT, Serving, ServingSettings,
};
use sluicegate_proxier::sysctl::{self, Needs, Sysctls};
use sluicegate_services::{Cluster, Family};

use super::Error;
use super::args::{ProxyArgs, boolean, number};

/// The addresses of the HTTP servers, and how to treat sysctls.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Health, metrics and sysctls")]
pub(crate) struct ServeArgs {
    /// The address of /healthz and /livez; empty disables them. The default port is 10256.
    #[arg(long, value_name = "IP[:PORT]", default_value = "0.0.0.0:10256")]
    healthz_bind_address: BindAddress,
    /// The address of /metrics, /proxyMode and /configz; empty disables them. The default port is 10249.
    #[arg(long, value_name = "IP[:PORT]", default_value = "127.0.0.1:10249")]
    metrics_bind_address: BindAddress,
    /// With --service-metrics, the number of frontends that may have a series in /metrics, 1 to 1000000. How
    /// many are left out, the last by the names of their services, is a metric.
    #[arg(long, value_name = "NUMBER", default_value_t = 10_000, value_parser = number(1..=1_000_000_u32))]
    service_metrics_series: u32,
    /// Exit when one of these ports is in use, instead of retrying every five seconds.
    #[arg(
        long,
        value_name = "true|false",
        default_value_t = false,
        num_args = 0..=1,
        default_missing_value = "true",
        action = ArgAction::Set,
        value_parser = boolean
    )]
    pub(super) bind_address_hard_fail: bool,
    /// Set the sysctls that the mode needs. By default, those that differ are only logged.
    #[arg(long)]
    pub(super) set_sysctls: bool,
    /// The port of /healthz, 0 for none: kube-proxy's flag of before --healthz-bind-address.
    #[arg(long, hide = true, value_name = "PORT", value_parser = number(0..=u16::MAX))]
    healthz_port: Option<u16>,
    /// The port of /metrics, 0 for none: kube-proxy's flag of before --metrics-bind-address.
    #[arg(long, hide = true, value_name = "PORT", value_parser = number(0..=u16::MAX))]
    metrics_port: Option<u16>,
}

impl ServeArgs {
    /// Sets the flags that were not given, by `is_given`, from the configuration file.
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
            // In kube-proxy's files an empty field means the default address. Only on the command line it
            // means no server.
            if let Some(text) = text.as_deref().filter(|text| !text.is_empty() && !is_given(flag)) {
                *place = text.parse().map_err(|reason: BindAddressError| Error::flag(field, reason))?;
            }
        }
        for (port, place) in [
            (self.healthz_port, &mut self.healthz_bind_address),
            (self.metrics_port, &mut self.metrics_bind_address),
        ] {
            if let Some(port) = port {
                *place = place.with_port(port);
            }
        }
        Ok(())
    }

    /// Returns the addresses of /healthz and /metrics, empty where they are disabled.
    pub(crate) fn places(&self) -> [String; 2] {
        [(self.healthz_bind_address, HEALTHZ_PORT), (self.metrics_bind_address, METRICS_PORT)]
            .map(|(place, port)| place.socket(port).map(|socket| socket.to_string()).unwrap_or_default())
    }

    /// Starts the servers. `configz` is the configuration in use, `flags` what the command line gave or
    /// left to its default.
    pub(crate) fn start(
        &self,
        proxy: &ProxyArgs,
        sync_period: Duration,
        configz: String,
        flags: BTreeMap<String, String>,
        heartbeat: &Heartbeat,
    ) -> Result<Serving, Error> {
        let mut settings = ServingSettings::new(proxy.proxy_mode);
        settings.healthz = self.healthz_bind_address;
        settings.metrics = self.metrics_bind_address;
        settings.timeout = sync_period * 2;
        settings.heartbeat = Some(heartbeat.clone());
        settings.node_port_addresses = proxy.node_port_addresses();
        settings.scheduler = proxy.nftables_scheduler;
        settings.counting = proxy.service_metrics;
        settings.most_series = usize::try_from(self.service_metrics_series).unwrap_or(usize::MAX);
        settings.bind_hard_fail = self.bind_address_hard_fail;
        settings.configz = Some(configz);
        let gates = proxy.gates();
        settings.flags = Some(flags).filter(|_| gates.is_on(Gate::ComponentFlagz));
        settings.statusz = gates.is_on(Gate::ComponentStatusz);
        settings.gates = gates;
        Ok(Serving::start(settings, |warning| tracing::warn!("{warning}"))?)
    }

    /// Sets the sysctls of the mode, or logs those that differ.
    pub(crate) fn sysctls(&self, proxy: &ProxyArgs, cluster: &Cluster) -> Result<(), Error> {
        let needs = needs(proxy, cluster)?;
        let sysctls = Sysctls::default();
        let findings = if self.set_sysctls { sysctls.set(&needs) } else { sysctls.check(&needs) };
        for finding in findings {
            if finding.is_problem() {
                tracing::warn!("{finding}");
            } else if finding.was_set {
                tracing::info!("{finding}");
            } else {
                tracing::debug!("{finding}");
            }
        }
        if proxy.proxy_mode != Mode::Iptables && sysctls.route_localnet() && !localnet_is_guarded() {
            tracing::warn!("net.ipv4.conf.all.route_localnet {}", sysctl::ROUTE_LOCALNET_LEFT);
        }
        if sysctls.tcp_be_liberal() == Some(true) && proxy.proxy_mode == Mode::Iptables {
            tracing::info!(
                "net.netfilter.nf_conntrack_tcp_be_liberal is on: packets that look invalid are not dropped"
            );
        }
        Ok(())
    }
}

/// Returns what the choice of sysctls depends on.
pub(crate) fn needs(proxy: &ProxyArgs, cluster: &Cluster) -> Result<Needs, Error> {
    Ok(Needs {
        mode: proxy.proxy_mode,
        ipv6: Path::new("/proc/net/if_inet6").exists(),
        localhost_node_ports: proxy.iptables()?.answers_localhost(Family::Ipv4, cluster),
        strict_arp: proxy.proxy_mode == Mode::Ipvs && proxy.ipvs.ipvs_strict_arp,
        kernel: sysctl::kernel(),
    })
}
