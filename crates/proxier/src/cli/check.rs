//! `check`: prints the services of the manifests and every problem, without a plan.

use std::process::ExitCode;

use clap::Args;
use sluicegate_services::{Family, LocalDetector};

use super::Error;
use super::args::{ManifestArgs, NodeArgs, ProxyArgs, describe};

#[derive(Args)]
pub(crate) struct Check {
    #[command(flatten)]
    manifests: ManifestArgs,
    #[command(flatten)]
    node: NodeArgs,
    #[command(flatten)]
    proxy: ProxyArgs,
}

impl Check {
    /// Prints this node and every service port with its endpoints. Fails when something was left out, an
    /// object, an item of one or a frontend that another service has.
    pub(crate) fn run(self) -> Result<ExitCode, Error> {
        let mut found = self.manifests.read()?;
        let node = self.node.node(&found.nodes)?;
        println!("{}", describe(&node));
        let detectors = self.proxy.detect_local()?.detectors(&node);
        let detectors = detectors.map_err(sluicegate_service_rules::Error::from)?;
        for (family, detector) in Family::BOTH.into_iter().zip(detectors) {
            let addresses = self.proxy.node_port_addresses().resolve(family, &node, None);
            println!("{family}: {}; node ports on {addresses}", pods(&detector));
        }
        for line in found.passed_over.drain(..) {
            println!("not proxied: {line}");
        }
        let (cluster, problems) = self.proxy.cluster(found, node);
        let mut names: Vec<_> = cluster.service_names().collect();
        names.sort();
        for name in names {
            for port in Family::BOTH.iter().flat_map(|family| cluster.ports(name, *family)) {
                let local = port.endpoints.iter().filter(|endpoint| endpoint.is_local).count();
                let cluster_ip =
                    port.cluster_ip.map_or_else(|| "no cluster IP".to_owned(), |ip| ip.to_string());
                println!(
                    "{} {cluster_ip}:{}/{}: {} endpoints, {local} of them here",
                    port.name,
                    port.port,
                    port.name.protocol,
                    port.endpoints.len()
                );
            }
        }
        Ok(if problems.is_empty() && cluster.conflict_count() == 0 {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
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
