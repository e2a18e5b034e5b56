//! A stand-in for the `conntrack` command that needs neither it nor `libnetfilter_conntrack`.
//!
//!     cargo run -q -p examples --example conntrack -- list -p udp --dport 53
//!     cargo run -q -p examples --example conntrack -- -L -o extended,id
//!     cargo run -q -p examples --example conntrack -- delete -p udp -d 10.96.0.10 --dport 53
//!     cargo run -q -p examples --example conntrack -- flush
//!
//! Same words, same listings, same exit status as conntrack 1.4.7: 0, 1 for what failed or when nothing was deleted, 2 for
//! what is no command. Where that tool guesses, this one refuses: a deletion without a criterion (`-F` empties the table),
//! a number or address that is none, words that belong to no option. `-F -f ipv4` empties the part of that family only.

mod arguments;

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use arguments::{Arguments, Command, Failure};
use sluicegate_conntrack::{Client, Error, Flow, Format, Layout, Verb};

fn main() -> ExitCode {
    let arguments = match Arguments::parse(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(failure) => return failure.report(),
    };
    match run(&arguments) {
        Ok(status) => status,
        Err(failure) => failure.report(),
    }
}

fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    match arguments.command {
        Command::Help => {
            print!("{USAGE}");
            return Ok(ExitCode::SUCCESS);
        }
        Command::Version => {
            println!("{PROGRAM}");
            return Ok(ExitCode::SUCCESS);
        }
        _ => {}
    }
    let failed = |error: Error| Failure::Operation(reason(&error));
    let mut client = Client::open().map_err(failed)?;
    let filter = &arguments.filter;
    if arguments.nothing_matches {
        return Err(Failure::Operation("invalid parameters".to_owned()));
    }
    match arguments.command {
        Command::List(table) => {
            let flows = if arguments.zero {
                client.list_and_zero(filter.family()).map_err(failed)?
            } else {
                client.list_table(table, filter).map_err(failed)?
            };
            show(arguments, Verb::Listed, &flows)?;
            eprintln!("{PROGRAM}: {} flow entries have been shown.", flows.len());
        }
        Command::Get => {
            let tuple = arguments.tuple()?;
            let flow = client.get(&tuple, filter.zone).map_err(failed)?;
            show(arguments, Verb::Listed, &[flow])?;
            eprintln!("{PROGRAM}: 1 flow entries have been shown.");
        }
        Command::Delete => {
            let flows = client.delete_matching(filter).map_err(|error| match error {
                Error::NoCriterion => Failure::Usage("You need to supply parameters to `-D'".to_owned()),
                error => failed(error),
            })?;
            show(arguments, Verb::Deleted, &flows)?;
            eprintln!("{PROGRAM}: {} flow entries have been deleted.", flows.len());
            return Ok(if flows.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS });
        }
        Command::Flush => {
            client.flush(filter.family).map_err(failed)?;
            eprintln!("{PROGRAM}: connection tracking table has been emptied.");
        }
        Command::Count => println!("{}", client.count().map_err(failed)?),
        Command::Help | Command::Version => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints flows; whoever reads them may stop.
fn show(arguments: &Arguments, verb: Verb, flows: &[Flow]) -> Result<(), Failure> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    let format = Format { verb, now, ..arguments.format };
    let mut out = io::BufWriter::new(io::stdout().lock());
    let framed = format.layout == Layout::Xml && verb == Verb::Listed && !flows.is_empty();
    let mut write = || -> io::Result<()> {
        if framed {
            writeln!(out, "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<conntrack>")?;
        }
        for flow in flows {
            writeln!(out, "{}", format.flow(flow))?;
        }
        if framed {
            writeln!(out, "</conntrack>")?;
        }
        out.flush()
    };
    match write() {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Failure::Operation(format!("standard output: {error}"))),
        Ok(()) => Ok(()),
    }
}

/// The words of conntrack(8) for an error that it has words for, else ours.
fn reason(error: &Error) -> String {
    if error.is_permission_denied() {
        return "sorry, you must be root or get CAP_NET_ADMIN capability to do this".to_owned();
    }
    if error.is_not_found() {
        return "such conntrack doesn't exist".to_owned();
    }
    error.to_string()
}

impl Failure {
    fn report(self) -> ExitCode {
        match self {
            Self::Usage(message) => {
                eprintln!("{PROGRAM}: {message}");
                eprintln!("Try `conntrack -h' or 'conntrack --help' for more information.");
                ExitCode::from(2)
            }
            Self::Plain(message) => {
                eprintln!("{PROGRAM}: {message}");
                ExitCode::FAILURE
            }
            Self::Operation(message) => {
                eprintln!("{PROGRAM}: Operation failed: {message}");
                ExitCode::FAILURE
            }
        }
    }
}

/// What messages begin with: the release whose words these are.
const PROGRAM: &str = "conntrack v1.4.7 (conntrack-tools)";

const USAGE: &str = "\
Lists, looks up, counts and deletes the flows that this kernel tracks, in the words of conntrack(8).

  -L, --dump, list [conntrack|dying|unconfirmed]   list flows
  -G, --get, get          show one flow: -p, -s, -d and what the protocol needs
  -D, --delete, delete    delete the flows that all criteria choose; at least one
  -F, --flush, flush      empty the table, with -f the part of one family
  -C, --counter, count    say how many flows there are
  -V, --version           -h, --help

Criteria:
  -s, --src, --orig-src ADDRESS[/LENGTH]    -d, --dst, --orig-dst ADDRESS[/LENGTH]
  -r, --reply-src ADDRESS[/LENGTH]          -q, --reply-dst ADDRESS[/LENGTH]
  --mask-src MASK                           --mask-dst MASK
  -p, --protonum PROTOCOL                   -f, --family ipv4|ipv6
  -m, --mark MARK[/MASK]                    -u, --status STATUS[,...]
  -w, --zone ZONE    --orig-zone ZONE    --reply-zone ZONE
  -n, --src-nat [ADDRESS[:PORT]]    -g, --dst-nat [...]    -j, --any-nat [...]
  -i, --id ID (delete)

after -p tcp, udp, udplite, sctp, dccp:
  --sport, --orig-port-src PORT             --dport, --orig-port-dst PORT
  --reply-port-src PORT                     --reply-port-dst PORT
after -p tcp, sctp: --state STATE
after -p gre: --srckey, --dstkey, --reply-key-src, --reply-key-dst KEY
after -p icmp, icmpv6: --icmp[v6]-type, --icmp[v6]-code, --icmp[v6]-id NUMBER

Output:
  -o, --output extended,id,ktimestamp,timestamp,xml | save
  -z, --zero    set the counters to zero while listing
";
