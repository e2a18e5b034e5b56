//! `nft monitor`, the peer of what we say of events.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Longer than it takes to say anything, in a slow guest as well.
const LONG: Duration = Duration::from_secs(60);

/// Ended when it is dropped.
pub(crate) struct NftMonitor {
    child: Child,
    lines: Receiver<String>,
}

impl NftMonitor {
    /// Starts it in this network namespace, and waits until it hears what comes.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::start_with(&[], arguments)
    }

    /// The same with options in front of `monitor`.
    pub(crate) fn start_with(options: &[&str], arguments: &[&str]) -> Self {
        let mut nft = Command::new("nft");
        let mut child = nft
            .env("TZ", "UTC")
            .args(options)
            .arg("monitor")
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .expect("nft starts");
        let (sender, lines) = channel();
        let said = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        std::thread::spawn(move || said.map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let mut started = Self { child, lines };
        let end = Instant::now() + LONG;
        while !started.has_joined() && !started.has_ended() {
            assert!(Instant::now() < end, "nft monitor does not join its group");
            std::thread::sleep(Duration::from_millis(5));
        }
        started
    }

    fn has_joined(&self) -> bool {
        let mut sockets = testns::netfilter_sockets().into_iter();
        sockets.any(|socket| socket.port == self.child.id() && socket.listens)
    }

    fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("it is ours").is_some()
    }

    /// The next line that it says; `None` when it has ended, or says no more.
    pub(crate) fn line(&mut self) -> Option<String> {
        self.lines.recv_timeout(LONG).ok()
    }

    /// What it says of so many commits: all lines.
    pub(crate) fn commits(&mut self, number: usize) -> Option<Vec<String>> {
        let mut said = Vec::new();
        let mut left = number;
        while left > 0 {
            let line = self.line()?;
            left -= usize::from(line.starts_with("# new generation"));
            said.push(line);
        }
        Some(said)
    }
}

impl Drop for NftMonitor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
