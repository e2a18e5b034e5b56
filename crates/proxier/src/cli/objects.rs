//! The objects of a command that looks at them once: those of manifests, or of the Kubernetes API.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use sluicegate_proxier::Visible;
use sluicegate_proxier::config::Config;
use sluicegate_proxier::doctor::of_this_node;
use sluicegate_proxier::run::{ThisNode, World};
use sluicegate_proxier::source::update::{Kind, Update};
use sluicegate_services::Cluster;

use super::Error;
use super::args::{ManifestArgs, NodeArgs, ProxyArgs};
use super::output::tell;
use super::run::runtime;
use super::source::{ServerArgs, SourceArgs};

/// Where the objects come from. Without any flag, the environment of a pod leads to the API server.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Objects")]
pub(crate) struct ObjectArgs {
    /// Files, or directories of files (*.yaml, *.yml, *.json), with Services, EndpointSlices, Nodes and
    /// ServiceCIDRs; `-` reads standard input.
    #[arg(long = "manifests", value_name = "PATH", num_args = 1.., conflicts_with_all = ["kubeconfig", "master"])]
    manifests: Vec<PathBuf>,
    #[command(flatten)]
    server: ServerArgs,
}

impl ObjectArgs {
    /// Sets the kubeconfig of a configuration file, where no flag says where the objects come from.
    pub(super) fn fill(&mut self, config: &Config) {
        let place = &mut self.server;
        if self.manifests.is_empty() && place.kubeconfig.is_none() {
            place.kubeconfig = config.kubeconfig.clone().filter(|path| !path.as_os_str().is_empty());
        }
    }

    /// Returns the cluster as the node sees it. Prints what is left out to standard error.
    pub(crate) fn cluster(&self, node: &NodeArgs, proxy: &ProxyArgs) -> Result<Cluster, Error> {
        proxy.check()?;
        if self.manifests.is_empty() {
            return self.ask(node, proxy);
        }
        let found = ManifestArgs { manifests: self.manifests.clone() }.read()?;
        let node = node.node(&found.nodes)?;
        let nodes = found.nodes.clone();
        let cluster = proxy.cluster(found, node).0;
        of_this_node(&cluster, &nodes, &proxy.node_port_addresses())
            .iter()
            .for_each(|warning| tell(format_args!("warning: {warning}")));
        Ok(cluster)
    }

    /// Lists the objects of the API server.
    fn ask(&self, node: &NodeArgs, proxy: &ProxyArgs) -> Result<Cluster, Error> {
        let this = ThisNode {
            name: node.node(&[])?.name,
            addresses: node.bind_address.clone(),
            pod_cidrs: node.node_pod_cidr.clone(),
        };
        let source = SourceArgs { manifests: Vec::new(), server: self.server.clone() };
        let runtime = runtime()?;
        let (mut updates, _) = source.start(&runtime, &this.name, true, Arc::new(()), None)?;
        let mut world = World::new(this);
        if proxy.forbids_external_ips() {
            world.forbid_external_ips();
        }
        if let Some(why) = proxy.without_schedulers() {
            world.leave_schedulers_out(why);
        }
        world.set_service_cidr("--service-cluster-ip-range", &proxy.service_cluster_ip_range);
        let mut missing = vec![Kind::Service, Kind::EndpointSlice, Kind::Node, Kind::ServiceCidr];
        let mut last = "it did not answer".to_owned();
        let listing = async {
            while let Some(update) = updates.recv().await {
                match &update {
                    Update::Listed(kind) => missing.retain(|other| other != kind),
                    Update::Warning(warning) | Update::Hopeless(warning) => last.clone_from(warning),
                    Update::Unreadable(.., reason) => tell(format_args!("{reason}")),
                    _ => {}
                }
                world.apply(update).problems.iter().for_each(tell);
                if missing.is_empty() {
                    break;
                }
            }
        };
        // What is left of the source ends with the runtime. An API server without ServiceCIDRs (before 1.33),
        // or one that lets nobody read nodes, leaves the rest to be explained.
        let _ = runtime.block_on(async { tokio::time::timeout(Duration::from_secs(LISTING), listing).await });
        runtime.shutdown_background();
        if !world.is_complete() {
            let reason = format!("no Services and EndpointSlices within {LISTING} s: {last}");
            return Err(Error::flag("the API server", reason));
        }
        for kind in &missing {
            tell(format_args!("{kind} objects could not be listed: {last}"));
        }
        if !missing.contains(&Kind::Node) {
            nameless_node(&world).iter().for_each(|warning| tell(format_args!("warning: {warning}")));
        }
        of_this_node(world.cluster(), [], &proxy.node_port_addresses())
            .iter()
            .for_each(|warning| tell(format_args!("warning: {warning}")));
        Ok(world.into_cluster())
    }
}

/// Says that an API server, which is asked for this node alone, has no Node of its name.
pub(super) fn nameless_node(world: &World) -> Option<String> {
    let name = Visible(&world.cluster().node().name);
    (world.has_listed(Kind::Node) && !world.has_node()).then(|| {
        format!(
            "the API server has no Node {name} (--hostname-override): endpoints of this node are not known as such"
        )
    })
}

/// The longest time to list all objects, in seconds.
const LISTING: u64 = 30;
