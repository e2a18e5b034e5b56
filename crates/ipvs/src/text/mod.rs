//! The text of ipvsadm: the output of `ipvsadm -S -n`, the input of `ipvsadm -R`, and its command line.
//!
//! ```
//! use sluicegate_ipvs::text;
//!
//! let saved = "-A -t 10.0.0.1:80 -s rr\n-a -t 10.0.0.1:80 -r 192.168.1.1:8080 -m -w 1\n";
//! let commands = text::parse(saved)?;
//! let printed: String = commands.iter().map(|command| format!("{command}\n")).collect();
//! assert_eq!(printed, saved);
//!
//! let wrong = "-A -t 10.0.0.1:80 -s rr\n-a -t 10.0.0.1:80 -r 192.168.1.1:8080 -w many";
//! assert_eq!(
//!     text::parse(wrong).unwrap_err().to_string(),
//!     "line 2, column 42: expected a number from 0 to 2147483647, found `many`"
//! );
//! # Ok::<(), sluicegate_ipvs::Error>(())
//! ```

mod arguments;
mod order;
mod parse;
mod print;
mod words;

pub use order::{sort_destinations, sort_services};
pub use parse::{Invocation, ListOptions, parse, parse_args};
pub use print::{scheduler_flag_names, write_saved};
pub use words::{ParseError, Place, Reason};

pub(crate) use print::write_command;
