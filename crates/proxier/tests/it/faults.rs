//! Warning that comes from the machine: a full disk under the log, and somebody else's objects in the way.

use std::fs::{self, OpenOptions};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A daemon with a directory of manifests, both of which go with it.
struct Daemon {
    child: Child,
    directory: PathBuf,
}

impl Daemon {
    /// Everything that it writes goes to a device that is always full.
    fn on_a_full_disk(test: &str) -> Self {
        let directory = std::env::temp_dir().join(format!("sluicegate-faults-{test}-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("a directory");
        let full = || OpenOptions::new().write(true).open("/dev/full").expect("every Linux has it");
        write(&directory, "web", "172.30.0.1");
        let child = Command::new(env!("CARGO_BIN_EXE_sluicegate-proxier"))
            .args(["run", "--hostname-override", "node", "--nftables-min-sync-period", "10ms", "-v", "5"])
            .arg("--manifests")
            .arg(&directory)
            .stdin(Stdio::null())
            .stdout(full())
            .stderr(full())
            .spawn()
            .expect("the command starts");
        Self { child, directory }
    }

    fn until(&mut self, what: &str, done: impl Fn() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while !done() {
            let ended = self.child.try_wait().expect("a child");
            assert!(ended.is_none(), "it ended ({ended:?}) before: {what}");
            assert!(Instant::now() < deadline, "never: {what}\n{}", table());
            thread::sleep(Duration::from_millis(10));
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

fn write(directory: &std::path::Path, name: &str, ip: &str) {
    let text = format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{name: {name}, namespace: demo}}\n\
            spec: {{clusterIP: {ip}, ports: [{{port: 80}}]}}\n"
    );
    fs::write(directory.join(format!("{name}.yaml")), text).expect("a file");
}

fn table() -> String {
    String::from_utf8_lossy(&testns::try_sh("nft -s list table ip kube-proxy").stdout).into_owned()
}

#[test]
fn a_full_disk_stops_nothing_for_nothing_is_written_but_the_log() {
    if !testns::have(&["nft"]) {
        return;
    }
    testns::netns(|| {
        let mut daemon = Daemon::on_a_full_disk("disk");
        daemon.until("the first service", || table().contains("172.30.0.1"));
        write(&daemon.directory, "db", "172.30.0.2");
        daemon.until("a change", || table().contains("172.30.0.2"));
        testns::sh_beside("nft flush ruleset");
        daemon.until("what somebody else broke", || table().contains("172.30.0.2"));
    });
}
