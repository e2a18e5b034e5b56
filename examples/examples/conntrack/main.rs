//! A stand-in for the `conntrack` command that needs neither it nor `libnetfilter_conntrack`.
//!
//!     cargo run -q -p examples --example conntrack -- list -p udp --dport 53
//!     cargo run -q -p examples --example conntrack -- -L -o extended,id
//!     cargo run -q -p examples --example conntrack -- delete -p udp -d 10.96.0.10 --dport 53
//!     cargo run -q -p examples --example conntrack -- create -p udp -s 10.0.0.1 -d 10.96.0.10 --sport 1000
//!     --dport 53 -t 60
//!     cargo run -q -p examples --example conntrack -- monitor -e NEW,DESTROY -o timestamp
//!     cargo run -q -p examples --example conntrack -- flush
//!
//! Same words, same listings, same exit status as conntrack 1.4.7: 0, 1 for what failed or when nothing was
//! deleted, 2 for what is no command. Where that tool guesses, this one refuses: a deletion without a
//! criterion (`-F` empties the table), a number or address that is none, words that belong to no option. `-F
//! -f ipv4` empties the part of that family only, `-U` changes flows with a translation as well, and what
//! `-I` says of the reply direction in part is completed by the other one.

mod arguments;
mod changing;
mod events;

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use arguments::{Arguments, Command, Failure, What};
use sluicegate_conntrack::netlink::text::{decode, encode};
use sluicegate_conntrack::{Client, Errno, Error, Flow, Format, Layout, Verb};

fn main() -> ExitCode {
    let arguments = std::env::args_os().skip(1);
    let arguments = arguments.map(|argument| decode(argument.as_encoded_bytes()).into_owned());
    let arguments = match Arguments::parse(arguments) {
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
        Command::Events => return events::follow(arguments),
        _ => {}
    }
    let mut client = Client::open().map_err(|error| operation(&error))?;
    let filter = &arguments.filter;
    let chooses = matches!(arguments.command, Command::List(_) | Command::Delete);
    if chooses && arguments.nothing_matches {
        return Err(Failure::Operation("invalid parameters".to_owned()));
    }
    match arguments.command {
        Command::List(table) => {
            let flows = if arguments.zero {
                client.list_and_zero(filter.family()).map_err(|error| operation(&error))?
            } else {
                client.list_table(table, filter).map_err(|error| operation(&error))?
            };
            show(arguments, Verb::Listed, &flows)?;
            eprintln!("{PROGRAM}: {} flow entries have been shown.", flows.len());
        }
        Command::Get => {
            let tuple = arguments.tuple()?;
            let flow = client.get(&tuple, filter.zone).map_err(|error| operation(&error))?;
            show(arguments, Verb::Listed, &[flow])?;
            eprintln!("{PROGRAM}: 1 flow entries have been shown.");
        }
        Command::Delete => {
            let flows = client.delete_matching(filter).map_err(|error| match error {
                Error::NoCriterion => Failure::Usage("You need to supply parameters to `-D'".to_owned()),
                error => operation(&error),
            })?;
            show(arguments, Verb::Deleted, &flows)?;
            eprintln!("{PROGRAM}: {} flow entries have been deleted.", flows.len());
            return Ok(if flows.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS });
        }
        Command::Create => {
            let flow = changing::new_flow(arguments)?;
            client.create(&[flow]).map_err(|error| match error.errno() {
                Some(Errno::EEXIST) => {
                    Failure::Operation("Such conntrack exists, try -U to update".to_owned())
                }
                Some(Errno::EINVAL) => Failure::Operation("invalid parameters".to_owned()),
                _ => operation(&error),
            })?;
            eprintln!("{PROGRAM}: 1 flow entries have been created.");
        }
        Command::Update => {
            let flows = changing::update(arguments, &mut client).map_err(|error| operation(&error))?;
            show(arguments, Verb::Listed, &flows)?;
            eprintln!("{PROGRAM}: {} flow entries have been updated.", flows.len());
            return Ok(if flows.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS });
        }
        Command::Flush => {
            client.flush(filter.family).map_err(|error| operation(&error))?;
            eprintln!("{PROGRAM}: connection tracking table has been emptied.");
        }
        Command::Count(What::Flows) => println!("{}", client.count().map_err(|error| operation(&error))?),
        Command::Count(What::Expectations) => {
            println!("{}", client.count_expectations().map_err(|error| operation(&error))?);
        }
        Command::Statistics(What::Flows) => {
            client.statistics().map_err(|error| operation(&error))?.iter().for_each(|cpu| println!("{cpu}"));
        }
        Command::Statistics(What::Expectations) => {
            client
                .expectation_statistics()
                .map_err(|error| operation(&error))?
                .iter()
                .for_each(|cpu| println!("{cpu}"));
        }
        Command::Help | Command::Version | Command::Events => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints flows; a closed pipe ends it without an error.
fn show(arguments: &Arguments, verb: Verb, flows: &[Flow]) -> Result<(), Failure> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    let format = Format { verb, now, ..arguments.format };
    let mut out = io::BufWriter::new(io::stdout().lock());
    let is_list = verb == Verb::Listed && arguments.command != Command::Update;
    let framed = format.layout == Layout::Xml && is_list && !flows.is_empty();
    let mut text = String::new();
    let mut write = || -> io::Result<()> {
        if framed {
            writeln!(out, "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<conntrack>")?;
        }
        for flow in flows {
            text.clear();
            let _ = writeln!(text, "{}", format.flow(flow));
            out.write_all(&encode(&text))?;
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

/// A failure in the words of conntrack(8), if it has words for it, else in those of the system, else in ours.
fn operation(error: &Error) -> Failure {
    if error.is_permission_denied() {
        let words = "sorry, you must be root or get CAP_NET_ADMIN capability to do this";
        return Failure::Operation(words.to_owned());
    }
    if error.is_not_found() {
        return Failure::Operation("such conntrack doesn't exist".to_owned());
    }
    Failure::Operation(match error.errno() {
        Some(errno) => errno.description(),
        None => error.to_string(),
    })
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
Lists, looks up, counts, makes, changes and deletes the flows that this kernel tracks, in the words of \
conntrack(8).

  -L, --dump, list [conntrack|dying|unconfirmed]   list flows
  -G, --get, get          show one flow: -p, -s, -d and what the protocol needs
  -D, --delete, delete    delete the flows that all criteria choose; at least one
  -I, --create, create    make a flow: -p, -s, -d, -t and what the protocol needs
  -U, --update, update    change time-out, mark, status or state of the flows that the other criteria choose
  -E, --event, monitor    show events as they come, until SIGINT or SIGTERM
  -F, --flush, flush      empty the table, with -f the part of one family
  -C, --counter, count [conntrack|expect]    say how many flows, or expectations, there are
  -S, --stats, stats [conntrack|expect]      say what each processor has counted
  -V, --version           -h, --help

Criteria:
  -s, --src, --orig-src ADDRESS[/LENGTH]    -d, --dst, --orig-dst ADDRESS[/LENGTH]
  -r, --reply-src ADDRESS[/LENGTH]          -q, --reply-dst ADDRESS[/LENGTH]
  --mask-src MASK                           --mask-dst MASK
  -p, --protonum PROTOCOL                   -f, --family ipv4|ipv6
  -m, --mark MARK[/MASK]                    -u, --status STATUS[,...]
  -w, --zone ZONE    --orig-zone ZONE    --reply-zone ZONE
  -n, --src-nat [ADDRESS[:PORT]]    -g, --dst-nat [...]    -j, --any-nat [...]
  -i, --id ID (delete, update)
  -t, --timeout SECONDS (create, update)
  -e, --event-mask ALL,NEW,UPDATES,DESTROY    -b, --buffer-size BYTES (events)

after -p tcp, udp, udplite, sctp, dccp:
  --sport, --orig-port-src PORT             --dport, --orig-port-dst PORT
  --reply-port-src PORT                     --reply-port-dst PORT
after -p tcp, sctp: --state STATE
to create after -p sctp: --orig-vtag, --reply-vtag TAG; after -p dccp: --state STATE, --role client|server
after -p gre: --srckey, --dstkey, --reply-key-src, --reply-key-dst KEY
after -p icmp, icmpv6: --icmp[v6]-type, --icmp[v6]-code, --icmp[v6]-id NUMBER

Output:
  -o, --output extended,id,ktimestamp,timestamp,xml | save
  -z, --zero    set the counters to zero while listing
";
