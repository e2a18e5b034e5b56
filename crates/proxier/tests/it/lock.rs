//! The lock of a network namespace: a second proxier is refused, and whoever has no rights there can neither
//! hold it nor keep others from it. And what happens where no thread can be started.

use std::fs;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A directory with one service, removed with it.
struct Directory(PathBuf);

impl Directory {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("sluicegate-lock-{test}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a directory");
        let service = "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: demo}\n\
            spec: {clusterIP: 172.30.0.1, ports: [{port: 80}]}\n";
        fs::write(path.join("web.yaml"), service).expect("a file");
        Self(path)
    }

    fn proxier(&self, before: &[&str]) -> Command {
        let words: Vec<&str> =
            before.iter().copied().chain([BINARY, "run", "--hostname-override", "node"]).collect();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).arg("--manifests").arg(&self.0).stdin(Stdio::null()).stdout(Stdio::null());
        command
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn until_programmed() {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !testns::try_sh("nft list table ip kube-proxy").status.success() {
        assert!(Instant::now() < deadline, "nothing is programmed");
        thread::sleep(Duration::from_millis(10));
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_process_without_rights_neither_takes_the_lock_nor_keeps_a_proxier_from_it() {
    if !testns::have(&["nft", "unshare"]) {
        return;
    }
    testns::netns(|| {
        let directory = Directory::new("rights");
        // A user namespace of its own takes all rights in the network namespace away.
        let refused =
            directory.proxier(&["unshare", "--user", "--map-root-user"]).output().expect("it starts");
        assert!(!refused.status.success() && said(&refused).contains("CAP_NET_ADMIN"), "{}", said(&refused));
        // The name that was the lock once, and that any process can bind.
        let name = SocketAddr::from_abstract_name(b"sluicegate-proxier").expect("a name");
        let _squatter = UnixListener::bind_addr(&name).expect("nobody has it");
        let first = Daemon(directory.proxier(&[]).stderr(Stdio::null()).spawn().expect("it starts"));
        until_programmed();
        let second = directory.proxier(&[]).output().expect("it starts");
        let expected = format!("process {} is a proxier of this network namespace", first.0.id());
        assert!(!second.status.success() && said(&second).contains(&expected), "{}", said(&second));
    });
}

#[test]
fn where_no_thread_can_be_started_the_command_fails_and_does_not_panic() {
    if !testns::have(&["nft", "iptables-nft-restore"]) {
        return;
    }
    testns::netns(|| {
        let directory = Directory::new("threads");
        let manifests = directory.0.display().to_string();
        // Every thread would take a stack of this size.
        let stack = (1_usize << 46).to_string();
        for words in [
            &["doctor"][..],
            &["cleanup"],
            &["run"],
            &["sync", "--proxy-mode", "iptables", "--iptables-backend", "nft"],
        ] {
            let mut command = Command::new(BINARY);
            command.args(words).env("RUST_MIN_STACK", &stack).stdin(Stdio::null());
            if words[0] == "sync" || words[0] == "run" {
                command.args(["--hostname-override", "node", "--manifests", &manifests]);
            }
            let output = command.output().expect("it starts");
            let said = said(&output);
            assert!(!said.contains("panicked"), "{words:?}: {said}");
            // What `doctor` finds is a matter of this machine, and only `run` cannot do without threads.
            let status = output.status.code();
            assert!(status == Some(1) || (words[0] != "run" && status == Some(0)), "{words:?}: {said}");
        }
    });
}

const BINARY: &str = env!("CARGO_BIN_EXE_sluicegate-proxier");
