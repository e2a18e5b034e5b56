//! The source of objects for `run`: manifests, or the Kubernetes API.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use clap::Args;
use sluicegate_proxier::Mode;
use sluicegate_proxier::run::Observer;
use sluicegate_proxier::source;
use sluicegate_proxier::source::observer::SourceObserver;
use sluicegate_proxier::source::update::Update;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{self, Receiver, Sender};

use super::Error;
use super::args::is_standard_input;

/// The flags of the source. Without any, the environment of a pod leads to the API server.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Objects")]
pub(crate) struct SourceArgs {
    /// Files, or directories of files (*.yaml, *.yml, *.json), with Services, EndpointSlices, Nodes and
    /// ServiceCIDRs, which are followed as they change.
    #[arg(long = "manifests", value_name = "PATH", num_args = 1.., conflicts_with_all = ["kubeconfig", "master"])]
    pub(crate) manifests: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// What makes Events of the run loop's steps; `None` where nobody takes them.
type Recorder = Option<Arc<dyn Observer>>;

/// Which API server the objects come from, where there are no manifests.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Objects")]
pub(crate) struct ServerArgs {
    /// A kubeconfig file; without it and without --manifests, the environment of a pod is used.
    #[cfg_attr(
        not(feature = "kube"),
        doc = "Not in this program, which was built without the cargo feature `kube`."
    )]
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The URL of the API server, instead of the one in the kubeconfig.
    #[cfg_attr(
        not(feature = "kube"),
        doc = "Not in this program, which was built without the cargo feature `kube`."
    )]
    #[arg(long, value_name = "URL")]
    pub(crate) master: Option<String>,
}

impl SourceArgs {
    /// Says where the objects come from.
    pub(crate) fn describe(&self) -> String {
        let ServerArgs { kubeconfig, master } = &self.server;
        let paths: Vec<_> = self.manifests.iter().map(|path| path.display().to_string()).collect();
        match (kubeconfig, master) {
            _ if !paths.is_empty() => paths.join(", "),
            (_, Some(master)) => format!("the API server {master}"),
            (Some(path), None) => format!("the API server of {}", path.display()),
            (None, None) => "the API server of this pod's cluster".to_owned(),
        }
    }

    /// Returns why the source cannot be followed, as far as that is known without it.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.manifests.iter().any(|path| is_standard_input(path)) {
            return Err(Error::flag("--manifests -", "standard input cannot be followed: expected files"));
        }
        #[cfg(not(feature = "kube"))]
        if self.manifests.is_empty() {
            return Err(self.without_kube());
        }
        Ok(())
    }

    #[cfg(not(feature = "kube"))]
    fn without_kube(&self) -> Error {
        let (flag, reason) = match (&self.server.kubeconfig, &self.server.master) {
            (Some(_), _) => ("--kubeconfig", WITHOUT_KUBE.to_owned()),
            (None, Some(_)) => ("--master", WITHOUT_KUBE.to_owned()),
            (None, None) => (
                "--manifests",
                format!("expected files with Services and EndpointSlices, found none; {WITHOUT_KUBE}"),
            ),
        };
        Error::flag(flag, reason)
    }

    /// Starts the source. `node` is the name of the node to watch. `service_cidrs` says whether to watch
    /// ServiceCIDRs. `observer` is told of requests to an API server. Where the objects come from one and a mode
    /// is given, what happens is written there as Events; the second value makes them.
    pub(crate) fn start(
        &self,
        runtime: &Runtime,
        node: &str,
        service_cidrs: bool,
        observer: Arc<dyn SourceObserver>,
        recording: Option<Mode>,
    ) -> Result<(Receiver<Update>, Recorder), Error> {
        self.check()?;
        let (sender, updates) = mpsc::channel(UPDATES);
        let mut recorder = None;
        if self.manifests.is_empty() {
            recorder = self.ask(runtime, node, service_cidrs, sender, observer, recording)?;
        } else {
            let paths = self.manifests.clone();
            // The loop ends when the sender is dropped.
            thread::Builder::new()
                .name("manifests".to_owned())
                .spawn(move || source::watch(&paths, &sender))
                .map_err(Error::Runtime)?;
        }
        Ok((updates, recorder))
    }

    #[cfg(feature = "kube")]
    fn ask(
        &self,
        runtime: &Runtime,
        node: &str,
        service_cidrs: bool,
        updates: Sender<Update>,
        observer: Arc<dyn SourceObserver>,
        recording: Option<Mode>,
    ) -> Result<Recorder, Error> {
        use sluicegate_proxier::source::kube::{self, Server, Source, Tuning};

        let server =
            Server { kubeconfig: self.server.kubeconfig.clone(), master: self.server.master.clone() };
        let source = Source { server, node: node.to_owned(), service_cidrs, tuning: Tuning::default() };
        let Some(mode) = recording else {
            runtime.spawn(source.start(updates, observer)?);
            return Ok(None);
        };
        let (recorder, occurrences) = kube::Recorder::new(mode);
        runtime.spawn(source.start_recording(updates, observer, occurrences)?);
        Ok(Some(Arc::new(recorder)))
    }

    #[cfg(not(feature = "kube"))]
    fn ask(
        &self,
        _: &Runtime,
        _: &str,
        _: bool,
        _: Sender<Update>,
        _: Arc<dyn SourceObserver>,
        _: Option<Mode>,
    ) -> Result<Recorder, Error> {
        Err(self.without_kube())
    }
}

/// The number of updates after which a source has to wait.
const UPDATES: usize = 1024;

#[cfg(not(feature = "kube"))]
const WITHOUT_KUBE: &str = "this program was built without the cargo feature `kube` and cannot use the \
    Kubernetes API \
                            (cargo build -p sluicegate-proxier --features kube)";
