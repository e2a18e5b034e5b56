//! Other programs of the node that stand in the way: they are told and waited for, and what they keep the daemon
//! from is done as soon as they let it.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A daemon with a directory of one service and its log, all of which go with it.
struct Daemon {
    child: Child,
    directory: PathBuf,
}

impl Daemon {
    fn start(test: &str, flags: &[&str], set: impl FnOnce(&mut Command)) -> Self {
        let directory = std::env::temp_dir().join(format!("sluicegate-near-{test}-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("a directory");
        let text = "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: demo}\n\
                    spec: {clusterIP: 172.30.0.1, ports: [{port: 80}]}\n";
        fs::write(directory.join("web.yaml"), text).expect("a file");
        let log = File::create(directory.join("log")).expect("a log");
        let mut command = Command::new(env!("CARGO_BIN_EXE_sluicegate-proxier"));
        command.args(["run", "--hostname-override", "node"]).args(flags).arg("--manifests").arg(&directory);
        set(&mut command);
        let child = command.stdin(Stdio::null()).stderr(log).spawn().expect("the command starts");
        Self { child, directory }
    }

    fn log(&self) -> String {
        fs::read_to_string(self.directory.join("log")).expect("a log")
    }

    fn until(&mut self, what: &str, done: impl Fn(&str) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while !done(&self.log()) {
            let ended = self.child.try_wait().expect("a child");
            assert!(ended.is_none(), "it ended ({ended:?}) before: {what}\n{}", self.log());
            assert!(Instant::now() < deadline, "never: {what}\n{}", self.log());
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// A program that is ended with its value.
struct Neighbour(Child);

impl Drop for Neighbour {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_lock_of_iptables_that_is_held_for_ever_is_told_and_waited_for() {
    if !testns::have(&["iptables-legacy-save", "flock"]) {
        return;
    }
    testns::netns(|| {
        // A file of the test's own: the machine's lock is left alone.
        let lock = std::env::temp_dir().join(format!("sluicegate-near-lock-file-{}", std::process::id()));
        let mut holder = Command::new("flock");
        holder.arg(&lock).args(["sh", "-c", "echo held; exec cat"]);
        let holder = holder.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("flock starts");
        let mut holder = Neighbour(holder);
        let mut said = [0; 5];
        let mut output = holder.0.stdout.take().expect("a pipe");
        output.read_exact(&mut said).expect("it holds the lock");
        let flags =
            ["--proxy-mode", "iptables", "--iptables-backend", "legacy", "--iptables-sync-period", "1s"];
        let mut daemon = Daemon::start("lock", &flags, |command| {
            command.env("XTABLES_LOCKFILE", &lock);
        });
        let name = lock.display().to_string();
        daemon.until("the lock is told", |log| log.contains(&name));
        assert!(!testns::sh("iptables-legacy-save").contains("172.30.0.1"), "it does not go past the lock");
        drop(holder.0.stdin.take());
        drop(holder);
        let saved = || testns::try_sh("iptables-legacy-save").stdout;
        daemon.until("it is programmed", |_| String::from_utf8_lossy(&saved()).contains("172.30.0.1"));
        fs::remove_file(lock).expect("its file");
    });
}

#[test]
fn a_table_that_another_process_owns_is_told_and_taken_when_that_has_ended() {
    if !testns::have(&["nft"]) {
        return;
    }
    testns::netns(|| {
        let owner = Command::new("nft").arg("-i").stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
        let mut owner = Neighbour(owner.expect("nft starts"));
        let mut input = owner.0.stdin.take().expect("a pipe");
        input.write_all(b"add table ip kube-proxy { flags owner; }\n").expect("nft reads");
        let end = Instant::now() + Duration::from_secs(30);
        while !testns::sh("nft list tables").contains("kube-proxy") {
            assert!(Instant::now() < end, "nft has not added its table");
            thread::sleep(Duration::from_millis(10));
        }
        let mut daemon = Daemon::start("owner", &["--nftables-sync-period", "1s"], |_| ());
        daemon.until("the owner is told", |log| log.contains("belongs to another process"));
        drop(input);
        drop(owner);
        let programmed = || testns::try_sh("nft list table ip kube-proxy").stdout;
        daemon.until("it is programmed", |_| String::from_utf8_lossy(&programmed()).contains("172.30.0.1"));
    });
}
