//! `nft`, without libnftables: takes its command line, prints what it prints.
//!
//! Of the debug output (`-d`) there is what goes over netlink; the other levels are about steps of
//! libnftables, which is not used.

mod arguments;
mod debug;
mod describe;
mod echo;
mod error;
mod glob;
mod interactive;
mod list;
mod monitor;
mod names;
mod near;
mod optimize;
mod packet;
mod query;
mod report;
mod run;
mod scope;
mod zone;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::process::ExitCode;

use sluicegate_nftables::netlink::text::{decode, encode};

use error::CommandError;

pub(crate) use names::open;
pub(crate) use report::FAMILIES;

pub(crate) fn main(arguments: Vec<OsString>) -> ExitCode {
    // A reader of the output that goes away ends this as it ends others.
    let words = arguments.into_iter().map(|word| decode(word.as_bytes()).into_owned());
    match arguments::parse(words).map_err(CommandError::from).and_then(|arguments| run::run(&arguments)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            crate::output::tell_bytes(&encode(&failure.to_string()));
            ExitCode::FAILURE
        }
    }
}
