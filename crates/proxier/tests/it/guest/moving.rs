//! From ipvs mode to nftables mode: what IPVS has goes on until it is removed, and all else is nftables'.

use std::io::{Read as _, Write as _};
use std::net::{Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use sluicegate_lab::Wire;
use sluicegate_service_rules::iptables::BackEnd;
use sluicegate_service_rules::ipvs::{Settings, connections};
use sluicegate_services::{Protocol, SliceName};

use crate::guest::traffic::{World, applier};
use crate::guest::{Running, back_end, eventually};

const ECHO: u16 = 9_090;
const PATIENCE: Duration = Duration::from_secs(30);

/// Answers each line with the same one, on every connection for as long as it lasts.
fn echo(listener: &TcpListener) {
    while let Ok((mut stream, _)) = listener.accept() {
        std::thread::spawn(move || {
            let mut buffer = [0; 64];
            while let Ok(length @ 1..) = stream.read(&mut buffer) {
                if stream.write_all(&buffer[..length]).is_err() {
                    return;
                }
            }
        });
    }
}

fn connect(to: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect_timeout(&to, PATIENCE).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

fn lives(stream: &mut TcpStream) -> bool {
    let mut back = [0; 5];
    stream.write_all(b"there").is_ok() && stream.read_exact(&mut back).is_ok() && back == *b"there"
}

/// Ends a connection such that IPVS forgets it ten seconds later, and not after two minutes.
fn reset(mut stream: TcpStream) {
    // What was received and is not read makes a reset of the end.
    let _ = stream.write_all(b"there").and_then(|()| stream.peek(&mut [0]));
}

/// A node that was in ipvs mode, with a service whose endpoints echo.
struct Node {
    world: World,
    /// What the service is by.
    manifests: PathBuf,
}

impl Node {
    /// Returns `None` where the kernel lacks one of the two.
    fn in_ipvs_mode() -> Option<Self> {
        // User-mode Linux has nf_tables for bridges only.
        if back_end()? != BackEnd::Nft {
            testns::skip("needs IPVS and nf_tables");
            return None;
        }
        let mut world = World::new();
        for pod in &world.network.pods {
            let listener = pod.namespace.run(|| TcpListener::bind((Ipv6Addr::UNSPECIFIED, ECHO)).unwrap());
            std::thread::spawn(move || echo(&listener));
        }
        let names: Vec<SliceName> = world.cluster.slice_names().cloned().collect();
        let service = world.cluster.service_names().next().unwrap().clone();
        let slices: Vec<_> = world
            .cluster
            .named_slices(&service)
            .map(|(name, slice)| (name.to_owned(), slice.clone()))
            .collect();
        for (name, mut slice) in slices {
            for port in slice.ports.iter_mut().filter(|port| port.protocol == Protocol::Tcp) {
                port.port = NonZeroU16::new(ECHO).unwrap();
            }
            let name = names.iter().find(|known| *known.name == *name).unwrap();
            world.cluster.set_slice(name, slice);
        }
        let mut ipvs = world.node().run(|| applier(Settings::default()));
        world.sync(&mut ipvs, Instant::now());

        static NODES: AtomicUsize = AtomicUsize::new(0);
        let number = NODES.fetch_add(1, Ordering::Relaxed);
        let manifests =
            std::env::temp_dir().join(format!("sluicegate-moving-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&manifests).unwrap();
        let text = format!(
            "{{apiVersion: v1, kind: Service, metadata: {{namespace: ns, name: s1}}, spec: {{clusterIP: 172.30.0.1, ports: \
         [{{name: tcp, port: 80}}]}}}}\n---\n{{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: \
         {{namespace: ns, name: s1-4, labels: {{kubernetes.io/service-name: s1}}}}, addressType: IPv4, ports: \
         [{{name: tcp, port: {ECHO}}}], endpoints: [{{addresses: [10.244.0.10], nodeName: node}}, {{addresses: \
         [10.244.1.10], nodeName: other}}]}}\n"
        );
        std::fs::write(manifests.join("all.yaml"), text).unwrap();
        Some(Self { world, manifests })
    }

    /// Runs in the namespace of the node.
    fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.world.network.node.namespace.run(work)
    }

    /// Runs in the namespace of the client.
    fn at_client<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.world.network.client.namespace.run(work)
    }

    /// Opens four connections to the service.
    fn connect(&self) -> Vec<TcpStream> {
        self.at_client(|| (0..4).map(|_| connect(self.world.vip)).collect())
    }

    /// Starts the daemon in nftables mode, and waits until it serves.
    fn move_to_nftables(&self, flags: &[&str]) -> Running {
        let daemon = self.run(|| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_sluicegate-proxier"));
            command.args(["run", "--hostname-override", "node", "--nftables-sync-period", "1s"]).args(flags);
            command.args(["--cluster-cidr", "10.244.0.0/16", "--manifests"]).arg(&self.manifests);
            Running(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap())
        });
        eventually("nftables has the service", || {
            self.run(|| testns::try_sh("nft list map ip kube-proxy service-ips"))
                .stdout
                .windows(10)
                .any(|w| w == b"172.30.0.1")
        });
        daemon
    }

    fn connections_of_ipvs(&self) -> u64 {
        self.run(|| connections().unwrap())
    }

    fn wait_until_ipvs_is_gone(&self) {
        eventually("what ipvs mode left is removed", || !self.is_bound());
        // Sets go one after the other while they are listed.
        eventually("nothing of ipvs mode is left", || self.run(|| connections().is_ok_and(|left| left == 0)));
    }

    /// Whether the addresses of services are on the interface of ipvs mode.
    fn is_bound(&self) -> bool {
        self.run(|| Wire::open().unwrap().up("kube-ipvs0").is_ok())
    }

    /// Does `work` while connections come and go all the time, which it is given the number of. Returns those that
    /// failed, each with when it began and why.
    fn under_load(&self, work: impl FnOnce(&AtomicUsize)) -> Vec<(Instant, String)> {
        let (stop, served) = (AtomicBool::new(false), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            let load = scope.spawn(|| self.at_client(|| self.come_and_go(&stop, &served)));
            let enough = testns::RaiseOnDrop(&stop);
            more(&served, 20);
            work(&served);
            more(&served, 20);
            drop(enough);
            load.join().unwrap()
        })
    }

    fn come_and_go(&self, stop: &AtomicBool, served: &AtomicUsize) -> Vec<(Instant, String)> {
        let mut failed = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            let begun = Instant::now();
            match TcpStream::connect_timeout(&self.world.vip, PATIENCE) {
                Ok(mut stream) => {
                    stream.set_read_timeout(Some(PATIENCE)).unwrap();
                    if !lives(&mut stream) {
                        failed.push((begun, "no answer".to_owned()));
                    }
                    reset(stream);
                }
                Err(error) => failed.push((begun, error.to_string())),
            }
            served.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(20));
        }
        failed
    }
}

/// Waits until more than so many connections have come and gone.
fn more(served: &AtomicUsize, number: usize) {
    let before = served.load(Ordering::Relaxed);
    eventually("connections come and go", || served.load(Ordering::Relaxed) > before + number);
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.manifests);
    }
}

#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn connections_of_ipvs_live_on_while_they_are_drained_and_new_ones_are_nftables() {
    let Some(node) = Node::in_ipvs_mode() else { return };
    let mut old = node.connect();
    assert!(old.iter_mut().all(lives));
    assert_eq!(node.connections_of_ipvs(), 4);
    let failed = node.under_load(|served| {
        let _daemon = node.move_to_nftables(&["--ipvs-drain", "10m"]);
        // New connections are not those of IPVS, old ones are, over several syncs.
        let mut new = node.connect();
        more(served, 50);
        assert!(new.iter_mut().chain(&mut old).all(lives));
        // It forgets those of before that were reset within ten seconds, and gets none of the new ones.
        eventually("IPVS has the old connections alone", || node.connections_of_ipvs() == 4);
        assert!(node.is_bound(), "its addresses stay as long as there are connections");

        old.into_iter().for_each(reset);
        node.wait_until_ipvs_is_gone();
        assert!(new.iter_mut().all(lives), "connections of nftables go on");
        more(served, 20);
    });
    let failed: Vec<_> = failed.into_iter().map(|(_, why)| why).collect();
    assert_eq!(failed, [""; 0]);
}

/// What `run` does by itself: the connections that IPVS had are lost, and nobody else's.
#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn connections_of_ipvs_end_without_a_drain_and_no_new_one_fails() {
    let Some(node) = Node::in_ipvs_mode() else { return };
    let mut old = node.connect();
    assert!(old.iter_mut().all(lives));
    let mut moved = None;
    let failed = node.under_load(|served| {
        let _daemon = node.move_to_nftables(&[]);
        moved = Some(Instant::now());
        let mut new = node.connect();
        node.wait_until_ipvs_is_gone();
        for stream in &mut old {
            stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
            assert!(!lives(stream), "nothing translates it any more");
        }
        assert!(new.iter_mut().all(lives), "connections of nftables go on");
        more(served, 20);
    });
    // One that was begun before may have been of IPVS still.
    let of_nftables = failed.iter().filter(|(begun, _)| Some(*begun) >= moved).count();
    assert!(of_nftables == 0 && failed.len() <= 1, "{failed:?}");
}
