//! The programs that we run. Each is a process group of its own, so that Ctrl-C, which reaches us alone, ends
//! all that it has started.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// A program that runs.
pub(crate) struct Running(pub Child);

impl Running {
    pub(crate) fn start(command: &mut Command) -> io::Result<Self> {
        // With the list locked: `end_all` misses none.
        let mut groups = GROUPS.lock().unwrap_or_else(PoisonError::into_inner);
        let child = command.process_group(0).stdin(Stdio::null()).spawn()?;
        groups.push(child.id());
        Ok(Self(child))
    }

    pub(crate) fn wait(mut self) -> io::Result<ExitStatus> {
        let status = self.0.wait();
        forget(self.0.id());
        status
    }
}

/// Runs a program to its end.
pub(crate) fn status(command: &mut Command) -> io::Result<ExitStatus> {
    Running::start(command)?.wait()
}

/// Runs a program to its end, and returns what it printed where `command` asks for it.
pub(crate) fn output(command: &mut Command) -> io::Result<Output> {
    let Running(child) = Running::start(command)?;
    let id = child.id();
    let output = child.wait_with_output();
    forget(id);
    output
}

/// Ends all that run, and their children. Whoever waits for them waits for ever: that they ended says nothing.
pub(crate) fn interrupt() {
    IS_INTERRUPTED.store(true, Ordering::Relaxed);
    end_all();
}

fn end_all() {
    let groups = GROUPS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let signal = |signal| {
        for group in groups.iter().filter_map(|id| i32::try_from(*id).ok()) {
            // One that has just ended is what we want.
            let _ = killpg(Pid::from_raw(group), signal);
        }
    };
    signal(Signal::SIGTERM);
    if !groups.is_empty() {
        // The guests' scripts delete what they have made.
        thread::sleep(Duration::from_secs(1));
        signal(Signal::SIGKILL);
    }
}

fn forget(id: u32) {
    GROUPS.lock().unwrap_or_else(PoisonError::into_inner).retain(|group| *group != id);
    while IS_INTERRUPTED.load(Ordering::Relaxed) {
        thread::park();
    }
}

static IS_INTERRUPTED: AtomicBool = AtomicBool::new(false);
static GROUPS: Mutex<Vec<u32>> = Mutex::new(Vec::new());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_has_started_ends_with_it() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "sleep 600 & echo $!; wait"]).stdout(Stdio::piped());
        let mut running = Running::start(&mut shell).unwrap();
        let mut line = String::new();
        io::BufRead::read_line(&mut io::BufReader::new(running.0.stdout.take().unwrap()), &mut line).unwrap();
        let sleeper = format!("/proc/{}/cmdline", line.trim());
        // The shell tells the number of the process before that has become `sleep`.
        while !std::fs::read_to_string(&sleeper).unwrap().starts_with("sleep") {
            thread::sleep(Duration::from_millis(1));
        }
        end_all();
        assert!(!running.wait().unwrap().success());
        // It may be a zombie for a moment, without a command line.
        assert!(!std::fs::read_to_string(&sleeper).unwrap_or_default().starts_with("sleep"));
    }
}
