//! `check`: prints the services of the manifests and every problem, without a plan.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};
use sluicegate_proxier::Mode;
use sluicegate_proxier::doctor::{missing_device, of_other_nodes, of_this_node};
use sluicegate_services::{Endpoint, Family, LocalDetector, Scheduler, ServicePort};

use super::Error;
use super::args::{ManifestArgs, NodeArgs, ProxyArgs, describe, forbidden};
use super::output::{OutputArgs, counted};

#[derive(Args)]
pub(crate) struct Check {
    #[command(flatten)]
    manifests: ManifestArgs,
    #[command(flatten)]
    pub(super) node: NodeArgs,
    #[command(flatten)]
    pub(super) proxy: ProxyArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl Check {
    /// Prints this node and every service port with its endpoints. Fails when something was left out, an
    /// object, an item of one, a field that its kind does not have, or a frontend that another service has.
    pub(crate) fn run(self) -> Result<ExitCode, Error> {
        self.proxy.check()?;
        let mut found = self.manifests.read()?;
        let node = self.node.node(&found.nodes)?;
        let mut text = format!("{}\n", describe(&node));
        let detectors = self.proxy.detect_local()?.detectors(&node);
        let detectors = detectors.map_err(sluicegate_service_rules::Error::from)?;
        let mut families = Vec::new();
        for (family, detector) in Family::BOTH.into_iter().zip(detectors) {
            let mut addresses = self.proxy.node_ports(family, &node, None).to_string();
            if self.proxy.forwarded_localhost().contains(&family) {
                addresses += "; those of TCP on localhost, by the daemon";
            }
            let pods = pods(&detector);
            let _ = writeln!(text, "{family}: {pods}; node ports on {addresses}");
            families.push(json!({ "family": family.to_string(), "pods": pods, "nodePorts": addresses }));
        }
        let not_proxied: Vec<String> = found.passed_over.drain(..).map(|line| line.to_string()).collect();
        not_proxied.iter().for_each(|line| text += &format!("not proxied: {line}\n"));
        let addresses: Vec<_> = Family::BOTH.iter().filter_map(|family| node.primary(*family)).collect();
        let this = json!({ "name": node.name, "addresses": addresses });
        let (nodes, unknown) = (std::mem::take(&mut found.nodes), std::mem::take(&mut found.unknown));
        let (cluster, problems) = self.proxy.cluster(found, node);
        let forbidden: Vec<_> =
            cluster.forbidden_external_ips().map(|(name, left_out)| forbidden(name, left_out)).collect();
        let mut names: Vec<_> = cluster.service_names().collect();
        names.sort();
        let mut ports = Vec::new();
        for name in names {
            for family in Family::BOTH {
                for port in cluster.ports(name, family) {
                    let scheduler = port.service.scheduler(self.proxy.nftables_scheduler);
                    let scheduler = scheduler.filter(|_| self.proxy.proxy_mode == Mode::Nftables);
                    line(&mut text, &port, scheduler);
                    ports.push(object(family, &port, scheduler));
                }
            }
        }
        let has_unknown = !unknown.is_empty();
        let mut warnings = unknown;
        warnings.extend(strings(cluster.warnings()));
        warnings.extend(self.proxy.unused_schedulers(&cluster));
        warnings.extend(of_this_node(&cluster, &nodes, &self.proxy.node_port_addresses()));
        if self.proxy.proxy_mode == Mode::Ipvs {
            warnings.extend(of_other_nodes(&cluster, &nodes));
        }
        // It may run elsewhere, on manifests alone.
        if let Some(why) = missing_device(&self.proxy.detect_local()?) {
            warnings.push(format!("on the machine of this check, {why}"));
        }
        warnings.iter().for_each(|warning| text += &format!("warning: {warning}\n"));
        self.output.print(&text, || {
            json!({
                "node": this,
                "families": families,
                "notProxied": not_proxied,
                "forbiddenExternalIPs": forbidden,
                "ports": ports,
                "warnings": warnings,
                "invalid": strings(&problems),
                "conflicts": strings(cluster.conflicts()),
            })
        })?;
        Ok(if problems.is_empty() && !has_unknown && cluster.conflict_count() == 0 {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    }
}

/// Returns what these print, for lists of problems.
pub(super) fn strings(items: impl IntoIterator<Item = impl ToString>) -> Vec<String> {
    items.into_iter().map(|item| item.to_string()).collect()
}

fn line(text: &mut String, port: &ServicePort<'_>, scheduler: Option<Scheduler>) {
    let address = match port.cluster_ip {
        Some(ip) => SocketAddr::new(ip, port.port.get()).to_string(),
        None => format!("no cluster IP:{}", port.port),
    };
    let Counts { endpoints, ready, terminating, local } = Counts::of(port);
    let serving = match (ready, terminating) {
        (0, 1..) => format!(", {terminating} serve while terminating"),
        _ => String::new(),
    };
    let chosen = match scheduler {
        None | Some(Scheduler::Random) => String::new(),
        Some(scheduler) => format!(", chosen by {scheduler}"),
    };
    let _ = writeln!(
        text,
        "{} {address}/{}: {}, {ready} of them ready{serving}, {local} of them here{chosen}",
        port.name,
        port.name.protocol,
        counted(endpoints, "endpoint")
    );
}

fn object(family: Family, port: &ServicePort<'_>, scheduler: Option<Scheduler>) -> Value {
    let Counts { endpoints, ready, terminating, local } = Counts::of(port);
    json!({
        "name": port.name.to_string(),
        "family": family.to_string(),
        "clusterIP": port.cluster_ip,
        "port": port.port,
        "protocol": port.name.protocol.to_string(),
        "endpoints": endpoints,
        "readyEndpoints": ready,
        "servingTerminatingEndpoints": terminating,
        "localEndpoints": local,
        "scheduler": scheduler.map(|scheduler| scheduler.to_string()),
    })
}

/// Numbers of endpoints of a service port.
struct Counts {
    endpoints: usize,
    ready: usize,
    /// Those that serve while they terminate, which get traffic where none is ready.
    terminating: usize,
    local: usize,
}

impl Counts {
    fn of(port: &ServicePort<'_>) -> Self {
        let count = |is_it: fn(&Endpoint) -> bool| port.endpoints.iter().filter(|e| is_it(e)).count();
        Self {
            endpoints: port.endpoints.len(),
            ready: count(|endpoint| endpoint.ready),
            terminating: count(|endpoint| !endpoint.ready && endpoint.serves_terminating()),
            local: count(|endpoint| endpoint.is_local),
        }
    }
}

fn pods(detector: &LocalDetector) -> String {
    match detector {
        LocalDetector::None => "local traffic is not detected".to_owned(),
        LocalDetector::Cidr(cidr) => format!("pods have addresses in {cidr}"),
        LocalDetector::Interface(name) => format!("pods come in through {name}"),
        LocalDetector::InterfacePrefix(prefix) => format!("pods come in through {prefix}*"),
    }
}
