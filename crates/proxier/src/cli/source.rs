//! Where `run` gets its objects: manifests, or the Kubernetes API.

use std::path::PathBuf;
use std::thread;

use clap::Args;
use sluicegate_proxier::Error;
use sluicegate_proxier::source;
use sluicegate_proxier::source::update::Update;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{self, Receiver, Sender};

/// The flags of the source. Without any, what Kubernetes gives to a pod leads to the API server.
#[derive(Args, Clone, Debug)]
pub(crate) struct SourceArgs {
    /// Files, or directories of files (*.yaml, *.yml, *.json), with Services, EndpointSlices, Nodes and ServiceCIDRs; they
    /// are watched.
    #[arg(long = "manifests", value_name = "PATH", num_args = 1.., conflicts_with_all = ["kubeconfig", "master"])]
    pub(crate) manifests: Vec<PathBuf>,
    /// How to reach the API server; without it and without --manifests, what Kubernetes gives to a pod is used (needs the
    /// cargo feature `kube`).
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The URL of the API server, instead of the one in the kubeconfig (needs the cargo feature `kube`).
    #[arg(long, value_name = "URL")]
    pub(crate) master: Option<String>,
}

impl SourceArgs {
    /// Starts the source. `node` is the name of the one node to ask for, and `service_cidrs` says whether the mode has a use
    /// for these.
    pub(crate) fn start(
        &self,
        runtime: &Runtime,
        node: &str,
        service_cidrs: bool,
    ) -> Result<Receiver<Update>, Error> {
        let (sender, updates) = mpsc::channel(UPDATES);
        if self.manifests.is_empty() {
            self.ask(runtime, node, service_cidrs, sender)?;
        } else {
            let paths = self.manifests.clone();
            thread::spawn(move || {
                if let Err(error) = source::watch(&paths, &sender) {
                    // The loop ends with it: nobody sends any more.
                    tracing::error!("{error}");
                }
            });
        }
        Ok(updates)
    }

    #[cfg(feature = "kube")]
    fn ask(
        &self,
        runtime: &Runtime,
        node: &str,
        service_cidrs: bool,
        updates: Sender<Update>,
    ) -> Result<(), Error> {
        use sluicegate_proxier::source::kube::{Pace, Server, Source};

        let server = Server { kubeconfig: self.kubeconfig.clone(), master: self.master.clone() };
        let source = Source { server, node: node.to_owned(), service_cidrs, pace: Pace::default() };
        runtime.spawn(source.start(updates)?);
        Ok(())
    }

    #[cfg(not(feature = "kube"))]
    fn ask(&self, _: &Runtime, _: &str, _: bool, _: Sender<Update>) -> Result<(), Error> {
        let (flag, reason) = match (&self.kubeconfig, &self.master) {
            (Some(_), _) => ("--kubeconfig", WITHOUT_KUBE.to_owned()),
            (None, Some(_)) => ("--master", WITHOUT_KUBE.to_owned()),
            (None, None) => (
                "--manifests",
                format!("is missing: say where Services and EndpointSlices come from. {WITHOUT_KUBE}"),
            ),
        };
        Err(Error::Flag { flag: flag.to_owned(), reason })
    }
}

/// So many updates wait at most before a source has to.
const UPDATES: usize = 1024;

#[cfg(not(feature = "kube"))]
const WITHOUT_KUBE: &str = "The Kubernetes API is out of reach for this program, which was built without the cargo feature \
                            `kube` (cargo build -p sluicegate-proxier --features kube)";
