//! `-E`: events as they come, until SIGINT or SIGTERM.

use std::fs;
use std::io::{self, Write as _};
use std::process::{self, ExitCode};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sluicegate_conntrack::netlink::Options;
use sluicegate_conntrack::netlink::text::encode;
use sluicegate_conntrack::{Event, Format, GROUPS, Heard, Layout, Monitor, Verb};
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

use crate::arguments::{Arguments, Failure};
use crate::{PROGRAM, operation};

/// The state of the output, locked while printing.
#[derive(Default)]
struct Printed {
    events: usize,
    /// The element around all others has begun.
    is_framed: bool,
}

/// Prints the selected events. On a signal to stop it ends the process itself.
pub(crate) fn follow(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let printed = Arc::new(Mutex::new(Printed::default()));
    end_on_signals(Arc::clone(&printed)).map_err(|error| Failure::Operation(format!("signals: {error}")))?;
    let mut options = Options::default();
    options.timeout = Duration::from_secs(3600);
    options.receive_buffer = arguments.buffer.unwrap_or(options.receive_buffer);
    let groups = if arguments.groups.is_empty() { &GROUPS[..] } else { &arguments.groups };
    let mut monitor = Monitor::open_with(groups, &options).map_err(|error| operation(&error))?;
    if arguments.buffer.is_some() {
        let size = monitor.transport().receive_buffer();
        let size = size.map_err(|error| Failure::Operation(error.to_string()))?;
        eprintln!("NOTICE: Netlink socket buffer size has been set to {size} bytes.");
    }
    loop {
        for heard in monitor.heard().map_err(|error| operation(&error))? {
            let text = text(arguments, &heard);
            match text.map_or(Ok(()), |text| print(&text, arguments.format.layout, &mut lock(&printed))) {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(ExitCode::SUCCESS),
                Err(error) => return Err(Failure::Operation(format!("standard output: {error}"))),
                Ok(()) => {}
            }
        }
    }
}

/// The line of an event that is chosen.
fn text(arguments: &Arguments, heard: &Heard) -> Option<String> {
    let (verb, flow) = match &heard.event {
        Event::New(flow) => (Verb::New, flow),
        Event::Update(flow) => (Verb::Update, flow),
        Event::Destroy(flow) => (Verb::Destroy, flow),
        Event::Overrun => {
            eprintln!(
                "WARNING: events were lost (ENOBUFS): the buffer is too small for how many come, see \
                 --buffer-size"
            );
            return None;
        }
        _ => return None,
    };
    if !arguments.filter.matches(flow) {
        return None;
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let format = Format { verb, now: now.as_secs(), when: arguments.timed, ..arguments.format };
    let time = match format.layout {
        Layout::Line if arguments.timed => format!("[{}.{:06}]\t", now.as_secs(), now.subsec_micros()),
        _ => String::new(),
    };
    Some(format!("{time}{}{}", format.flow(flow), heard.port.map(by).unwrap_or_default()))
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

fn print(text: &str, layout: Layout, printed: &mut Printed) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if layout == Layout::Xml && !printed.is_framed {
        printed.is_framed = true;
        writeln!(out, "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<conntrack>")?;
    }
    printed.events += 1;
    out.write_all(&encode(text))?;
    out.write_all(b"\n")?;
    out.flush()
}

/// Ends the process on a signal, but not in the middle of a line.
fn end_on_signals(printed: Arc<Mutex<Printed>>) -> io::Result<()> {
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
            println!("</conntrack>");
        }
        eprintln!("{PROGRAM}: {} flow events have been shown.", printed.events);
        process::exit(0);
    });
    Ok(())
}

fn lock(printed: &Mutex<Printed>) -> MutexGuard<'_, Printed> {
    printed.lock().unwrap_or_else(PoisonError::into_inner)
}
