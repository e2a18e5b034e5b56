//! `nft`, without libnftables: takes its command line, prints what it prints.
//!
//! Of the debug output (`-d`) there is what goes over netlink; the other levels are about steps of
//! libnftables, which is not used.

mod arguments;
mod debug;
mod describe;
mod echo;
mod glob;
mod interactive;
mod list;
mod monitor;
mod names;
mod optimize;
mod packet;
mod query;
mod report;
mod run;
mod zone;

use std::ffi::OsString;
use std::process::ExitCode;

pub(crate) fn main(arguments: Vec<OsString>) -> ExitCode {
    // A reader of the output that goes away ends this as it ends others.
    let words: Result<Vec<_>, _> = arguments.into_iter().map(OsString::into_string).collect();
    let words = words.map_err(|word| format!("expected an argument in UTF-8, found {}", word.display()));
    match words
        .and_then(|words| arguments::parse(words.into_iter()))
        .and_then(|arguments| run::run(&arguments))
    {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            crate::output::tell(message);
            ExitCode::FAILURE
        }
    }
}
