//! `-E`: events as they come, until SIGINT or SIGTERM.

use std::fs;
use std::io::{self, Write as _};
use std::process::{self, ExitCode};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::output::tell;
use sluicegate_conntrack::netlink::Options;
use sluicegate_conntrack::netlink::text::encode;
use sluicegate_conntrack::{
    EXPECTATION_GROUPS, Event, EventWithPort, Expectation, Format, GROUPS, Layout, Monitor, Verb,
};
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

use super::arguments::{Arguments, Failure, What};
use super::{PROGRAM, expectations, operation};

/// The state of the output, locked while printing.
#[derive(Default)]
struct Printed {
    events: usize,
    /// The element around all others has begun.
    is_framed: bool,
}

/// Prints the selected events. On a signal to stop it ends the process itself.
pub(crate) fn follow(arguments: &Arguments, what: What) -> Result<ExitCode, Failure> {
    let printed = Arc::new(Mutex::new(Printed::default()));
    end_on_signals(Arc::clone(&printed), what)
        .map_err(|error| Failure::Operation(format!("signals: {error}")))?;
    let mut options = Options::default();
    options.timeout = Duration::from_secs(3600);
    options.receive_buffer = arguments.buffer.unwrap_or(options.receive_buffer);
    let groups = match what {
        What::Expectations => &EXPECTATION_GROUPS[..],
        What::Flows if arguments.groups.is_empty() => &GROUPS,
        What::Flows => &arguments.groups,
    };
    let mut monitor = Monitor::open_with(groups, &options).map_err(|error| operation(&error))?;
    if arguments.buffer.is_some() {
        let size = monitor.transport().receive_buffer();
        let size = size.map_err(|error| Failure::Operation(error.to_string()))?;
        tell(format_args!("NOTICE: Netlink socket buffer size has been set to {size} bytes."));
    }
    loop {
        for event in monitor.events_with_ports().map_err(|error| operation(&error))? {
            let text = text(arguments, &event);
            match text.map_or(Ok(()), |text| print(&text, arguments.format.layout, what, &mut lock(&printed)))
            {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(ExitCode::SUCCESS),
                Err(error) => return Err(Failure::Operation(format!("standard output: {error}"))),
                Ok(()) => {}
            }
        }
    }
}

/// The line of an event that is chosen.
fn text(arguments: &Arguments, event: &EventWithPort) -> Option<String> {
    let (verb, flow) = match &event.event {
        Event::New(flow) => (Verb::New, flow),
        Event::Update(flow) => (Verb::Update, flow),
        Event::Destroy(flow) => (Verb::Destroy, flow),
        Event::ExpectationNew(new) => return Some(expectation(arguments, Verb::New, new)),
        Event::ExpectationDestroy(old) => return Some(expectation(arguments, Verb::Destroy, old)),
        Event::Overrun => {
            tell(
                "WARNING: events were lost (ENOBUFS): the buffer is too small for how many come, see \
                 --buffer-size",
            );
            return None;
        }
        _ => return None,
    };
    if !arguments.matches(flow) {
        return None;
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let format = Format { verb, now: now.as_secs(), when: arguments.timed, ..arguments.format };
    let time = match format.layout {
        Layout::Line if arguments.timed => format!("[{}.{:06}]\t", now.as_secs(), now.subsec_micros()),
        _ => String::new(),
    };
    Some(format!("{time}{}{}", arguments.text(&format, flow), event.port.map(by).unwrap_or_default()))
}

fn expectation(arguments: &Arguments, verb: Verb, expectation: &Expectation) -> String {
    expectations::one(arguments, &Format { verb, ..arguments.format }, expectation)
}

/// Describes the process that caused an event.
fn by(port: u32) -> String {
    let name = owner(port).map_or_else(String::new, |name| format!(" progname={name}"));
    format!(" [USERSPACE] portid={port}{name}")
}

/// The name of the program that has the netlink socket of this port, if it still has.
fn owner(port: u32) -> Option<String> {
    let sockets = fs::read_to_string("/proc/net/netlink").ok()?;
    let inode = sockets.lines().find_map(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        let is_it = words.get(1) == Some(&"12") && words.get(2)?.parse() == Ok(port);
        is_it.then(|| words.last().copied())?
    })?;
    let socket = format!("socket:[{inode}]");
    let process = fs::read_dir("/proc").ok()?.filter_map(Result::ok).find(|process| {
        let open = fs::read_dir(process.path().join("fd")).into_iter().flatten().filter_map(Result::ok);
        open.filter_map(|file| fs::read_link(file.path()).ok())
            .any(|target| target.as_os_str() == socket.as_str())
    })?;
    Some(fs::read_to_string(process.path().join("comm")).ok()?.trim().to_owned())
}

fn print(text: &str, layout: Layout, what: What, printed: &mut Printed) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if layout == Layout::Xml && !printed.is_framed {
        printed.is_framed = true;
        let header = match what {
            What::Flows => "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<conntrack>\n",
            What::Expectations => expectations::HEADER,
        };
        out.write_all(header.as_bytes())?;
    }
    printed.events += 1;
    out.write_all(&encode(text))?;
    out.write_all(b"\n")?;
    out.flush()
}

/// Ends the process on a signal, but not in the middle of a line.
fn end_on_signals(printed: Arc<Mutex<Printed>>, what: What) -> io::Result<()> {
    let runtime = Runtime::new()?;
    let guard = runtime.enter();
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    drop(guard);
    std::thread::spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        });
        let printed = lock(&printed);
        if printed.is_framed {
            // A full disk, or a reader who is gone, is known from the events.
            let _ = crate::output::print(match what {
                What::Flows => "</conntrack>\n",
                What::Expectations => expectations::FOOTER,
            });
        }
        let events = if what == What::Flows { "flow" } else { "expectation" };
        tell(format_args!("{PROGRAM}: {} {events} events have been shown.", printed.events));
        process::exit(0);
    });
    Ok(())
}

fn lock(printed: &Mutex<Printed>) -> MutexGuard<'_, Printed> {
    printed.lock().unwrap_or_else(PoisonError::into_inner)
}
