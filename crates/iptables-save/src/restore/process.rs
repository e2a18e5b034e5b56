//! One run of a program: input in, output out, within limits of time and size.

use std::borrow::Cow;
use std::io::{Read, Write as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::RunLimits;
use crate::{Error, decode, encode};

pub(super) struct Process<'a> {
    pub(super) program: &'a Path,
    pub(super) arguments: &'a [String],
    pub(super) limits: RunLimits,
}

/// The output of a program.
pub(super) struct ProcessOutput {
    pub(super) command: String,
    pub(super) status: ExitStatus,
    pub(super) output: Vec<u8>,
    pub(super) error: Vec<u8>,
}

impl Process<'_> {
    /// Runs the program to its end.
    pub(super) fn run(&self, input: &str) -> Result<ProcessOutput, Error> {
        let command = self.command();
        let mut child = Command::new(self.program)
            .args(self.arguments)
            // Messages are read, so they must be in one language.
            .env("LC_ALL", "C")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| self.failed(&error))?;
        let outcome = self.attend(&mut child, input);
        if outcome.is_err() {
            // It may have ended already; either way it must not remain.
            let _ = child.kill();
            let _ = child.wait();
        }
        let (output, error, status) = outcome?;
        Ok(ProcessOutput { command, status, output, error })
    }

    fn attend(&self, child: &mut Child, input: &str) -> Result<(Vec<u8>, Vec<u8>, ExitStatus), Error> {
        let deadline = Instant::now() + self.limits.time;
        let (Some(mut stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(self.failed(&std::io::Error::other("no pipes")));
        };
        thread::scope(|scope| {
            // `Scope::spawn` panics where the system has no thread to give.
            let thread = || thread::Builder::new().name("iptables".to_owned());
            let (sender, receiver) = channel();
            let most = self.limits.output;
            let second = sender.clone();
            let started = thread()
                .spawn_scoped(scope, move || read(stdout, most, 0, &sender))
                .and_then(|_| thread().spawn_scoped(scope, move || read(stderr, most, 1, &second)))
                .and_then(|_| {
                    thread().spawn_scoped(scope, move || {
                        // A program that stops reading early says why in its own words.
                        let _ = stdin.write_all(&encode(input));
                    })
                });
            let mut read = [None, None];
            let started = started.map(drop).map_err(|error| self.no_thread(&error));
            let finished = started.and_then(|()| {
                (0..2).try_for_each(|_| {
                    let left = deadline.saturating_duration_since(Instant::now());
                    match receiver.recv_timeout(left) {
                        Ok((at, bytes)) if bytes.len() <= most => {
                            read.get_mut(at).into_iter().for_each(|place| *place = Some(bytes.clone()));
                            Ok(())
                        }
                        Ok(_) => Err(Error::Output { command: self.command(), limit: most }),
                        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                            Err(self.timed_out())
                        }
                    }
                })
            });
            let status = finished.and_then(|()| self.wait(child, deadline));
            if status.is_err() {
                // Ends the threads, which wait for the pipes to close.
                let _ = child.kill();
            }
            let [output, error] = read.map(Option::unwrap_or_default);
            status.map(|status| (output, error, status))
        })
    }

    /// Waits for a program that has closed its output.
    fn wait(&self, child: &mut Child, deadline: Instant) -> Result<ExitStatus, Error> {
        loop {
            match child.try_wait() {
                Ok(Some(status)) => return Ok(status),
                Ok(None) if Instant::now() < deadline => thread::sleep(Duration::from_millis(1)),
                Ok(None) => return Err(self.timed_out()),
                Err(error) => return Err(self.failed(&error)),
            }
        }
    }

    fn command(&self) -> String {
        let words = std::iter::once(self.program.display().to_string()).chain(self.arguments.iter().cloned());
        words.collect::<Vec<_>>().join(" ")
    }

    fn failed(&self, error: &std::io::Error) -> Error {
        let missing = error.kind() == std::io::ErrorKind::NotFound;
        Error::Run { command: self.command(), reason: error.to_string(), missing }
    }

    fn no_thread(&self, error: &std::io::Error) -> Error {
        let reason = format!("no thread to read its output: {error}");
        Error::Run { command: self.command(), reason, missing: false }
    }

    fn timed_out(&self) -> Error {
        Error::TimedOut { command: self.command(), time: self.limits.time }
    }
}

impl ProcessOutput {
    /// Returns the output of a program that succeeded, else the error that `refusal` returns.
    pub(super) fn success(self, refusal: impl FnOnce(&Self) -> Error) -> Result<String, Error> {
        if !self.status.success() {
            return Err(refusal(&self));
        }
        Ok(match decode(&self.output) {
            Cow::Owned(text) => text,
            // It is UTF-8, so that nothing is lost.
            Cow::Borrowed(_) => String::from_utf8(self.output).unwrap_or_default(),
        })
    }
}

/// Reads to the end, or to one byte over the limit.
fn read(from: impl Read, most: usize, at: usize, to: &Sender<(usize, Vec<u8>)>) {
    let mut bytes = Vec::new();
    // What was read before an error is what there is.
    let _ = from.take(most as u64 + 1).read_to_end(&mut bytes);
    // The receiver is gone once the run is given up.
    let _ = to.send((at, bytes));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(program: &str, arguments: &[&str], limits: RunLimits) -> Result<ProcessOutput, Error> {
        let arguments: Vec<_> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        Process { program: Path::new(program), arguments: &arguments, limits }.run("input that nobody reads")
    }

    #[test]
    fn a_program_that_does_not_end_is_ended() {
        let start = Instant::now();
        let limits = RunLimits { time: Duration::from_millis(50), ..RunLimits::default() };
        let error = run("sleep", &["600"], limits).err().unwrap();
        assert_eq!(error.to_string(), "sleep 600: still running after 0.05 s, ended");
        assert!(error.is_timeout() && start.elapsed() < Duration::from_secs(60));
    }

    #[test]
    fn a_program_that_writes_without_end_is_ended() {
        let error = run("yes", &[], RunLimits { output: 1000, ..RunLimits::default() }).err().unwrap();
        assert_eq!(error.to_string(), "yes: wrote more than 1000 bytes, ended");
    }

    #[test]
    fn where_no_thread_can_be_started_the_run_fails() {
        // The standard library reads the size of stacks once, so that this takes a process of its own, whose
        // only thread is that of the test.
        if std::env::var_os("RUST_MIN_STACK").is_none() {
            let output = Command::new(std::env::current_exe().unwrap())
                .args(["where_no_thread_can_be_started_the_run_fails", "--test-threads=1"])
                .env("RUST_MIN_STACK", (1_usize << 46).to_string())
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && said.contains("1 passed"), "{said}");
            return;
        }
        let error = run("cat", &[], RunLimits::default()).err().unwrap().to_string();
        assert!(error.starts_with("cat: no thread to read its output: "), "{error}");
    }

    #[test]
    fn a_program_that_is_not_there_is_not_found() {
        assert!(run("no-such-program", &[], RunLimits::default()).err().unwrap().is_not_found());
    }
}
