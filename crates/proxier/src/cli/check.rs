//! `check`: what the manifests hold and what is wrong with them, before anything is made of them.

use std::process::ExitCode;

use clap::Args;
use sluicegate_proxier::Error;
use sluicegate_proxier::model::{Family, LocalDetector};

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
    /// Prints this node and every service port with its endpoints; fails when something was left out.
    pub(crate) fn run(self) -> Result<ExitCode, Error> {
        let mut found = self.manifests.read()?;
        let node = self.node.node(&found.nodes)?;
        println!("{}", describe(&node));
        for (family, detector) in Family::BOTH.into_iter().zip(self.proxy.detect_local(&node).detectors()?) {
            let addresses = self.proxy.node_port_addresses().resolve(family, &node, None);
            println!("{family}: {}; node ports on {addresses}", pods(&detector));
        }
        for line in found.passed_over.drain(..) {
            println!("passed over: {line}");
        }
        let (cluster, problems) = self.proxy.cluster(found, node);
        let mut names: Vec<_> = cluster.service_names().collect();
        names.sort();
        for name in names {
            for port in Family::BOTH.iter().flat_map(|family| cluster.ports(name, *family)) {
                let local = port.endpoints.iter().filter(|endpoint| endpoint.is_local).count();
                println!(
                    "{} {}:{}/{}: {} endpoints, {local} of them here",
                    port.name,
                    port.cluster_ip,
                    port.port,
                    port.name.protocol,
                    port.endpoints.len()
                );
            }
        }
        Ok(if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

fn pods(detector: &LocalDetector) -> String {
    match detector {
        LocalDetector::None => "pods are not told from the rest".to_owned(),
        LocalDetector::Cidr(cidr) => format!("pods have addresses in {cidr}"),
        LocalDetector::Interface(name) => format!("pods come in through {name}"),
        LocalDetector::InterfacePrefix(prefix) => format!("pods come in through {prefix}*"),
    }
}
