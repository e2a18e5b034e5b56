//! `-L expect`, `-G expect`: expectations, as conntrack(8) prints them.

use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

use sluicegate_conntrack::netlink::text::encode;
use sluicegate_conntrack::{Error, Expectation, Format, Layout};

use super::arguments::{Arguments, Failure};
use super::operation;

pub(crate) fn show(arguments: &Arguments, found: &[Expectation]) -> io::Result<()> {
    let mut text = String::new();
    for expectation in found {
        text.push_str(&one(arguments, &arguments.format, expectation));
        text.push('\n');
    }
    if arguments.format.layout == Layout::Xml && !found.is_empty() {
        text = format!("{HEADER}{text}{FOOTER}");
    }
    crate::output::print(encode(&text))
}

/// The text of an expectation, with the time where it is asked for.
pub(crate) fn one(arguments: &Arguments, format: &Format, expectation: &Expectation) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let format = Format { now: now.as_secs(), when: arguments.timed, ..*format };
    let time = match format.layout {
        Layout::Xml => String::new(),
        _ if arguments.timed => format!("[{:<8}.{:<6}]\t", now.as_secs(), now.subsec_micros()),
        _ => String::new(),
    };
    format!("{time}{}", format.expectation(expectation))
}

/// The tool has no words of its own for what is not there.
pub(crate) fn failure(error: &Error) -> Failure {
    match error.errno() {
        Some(errno) if error.is_not_found() => Failure::Operation(errno.description()),
        _ => operation(error),
    }
}

pub(crate) const HEADER: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<expect>\n";
pub(crate) const FOOTER: &str = "</expect>\n";
