//! A stand-in for the `conntrack` command that needs neither it nor `libnetfilter_conntrack`.
//!
//! Same words, same listings, same exit status as conntrack 1.4.7: 0, 1 for what failed or when nothing was
//! deleted, 2 for what is no command. Where that tool guesses, this one refuses: a deletion without a
//! criterion (`-F` empties the table), a number or address that is none, words that belong to no option. `-F
//! -f ipv4` empties the part of that family only, `-D
//! expect` says how many it deleted and asks for no ports of the reply direction, `-U` changes flows with a
//! translation as well, and what `-I` says of the reply direction in part is completed by the other one. A
//! deletion that names a mark and a status is refused: the tool finds no flow for the two.

mod arguments;
mod changing;
mod events;
mod expectations;
mod load;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::output::{print, tell};
use arguments::{Arguments, Command, Failure, What};
use sluicegate_conntrack::netlink::text::{decode, encode};
use sluicegate_conntrack::{
    Client, Errno, Error, ExpectationKey, Filter, Flow, Format, Layout, StatusMatch, Verb,
};

pub(crate) fn main(arguments: &[OsString]) -> ExitCode {
    let arguments = arguments.iter().map(|argument| decode(argument.as_encoded_bytes()).into_owned());
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
    match &arguments.command {
        Command::Help => return print(USAGE).map(|()| ExitCode::SUCCESS).map_err(|error| written(&error)),
        Command::Version => {
            return print(format!("{PROGRAM}\n"))
                .map(|()| ExitCode::SUCCESS)
                .map_err(|error| written(&error));
        }
        Command::Events(what) => return events::follow(arguments, *what),
        Command::Load(file) => return load::load(file),
        _ => {}
    }
    let mut client = Client::open().map_err(|error| operation(&error))?;
    perform(arguments, &mut client)
}

/// Does what needs the kernel.
fn perform(arguments: &Arguments, client: &mut Client) -> Result<ExitCode, Failure> {
    let filter = &arguments.filter;
    let chooses = matches!(arguments.command, Command::List(_) | Command::Delete);
    if chooses && arguments.nothing_matches {
        return Err(Failure::Operation("invalid parameters".to_owned()));
    }
    match arguments.command {
        Command::List(table) => {
            let shown = if arguments.zero {
                let flows =
                    client.list_and_zero(filter.effective_family()).map_err(|error| operation(&error))?;
                show(arguments, Verb::Listed, flows.into_iter().map(Ok))?
            } else {
                let flows = client.flows(table, filter).map_err(|error| operation(&error))?;
                show(arguments, Verb::Listed, flows)?
            };
            say(format_args!("{shown} flow entries have been shown."));
        }
        Command::Get => {
            let tuple = arguments.tuple()?;
            let flow = client.get(&tuple, filter.zone).map_err(|error| operation(&error))?;
            let shown = show(arguments, Verb::Listed, [flow].into_iter().map(Ok))?;
            say(format_args!("{shown} flow entries have been shown."));
            return Ok(if shown == 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS });
        }
        Command::Delete if arguments.nothing_labelled => {
            say(format_args!("0 flow entries have been deleted."));
            return Ok(ExitCode::FAILURE);
        }
        Command::Delete if both_mark_and_status(filter) => {
            let reason = "`-m' with `-u' deletes nothing, as in conntrack 1.4.7: choose by one of them";
            return Err(Failure::Operation(reason.to_owned()));
        }
        Command::Delete => {
            let flows = client.delete_matching(filter).map_err(|error| match error {
                Error::NoCriterion => Failure::Usage("You need to supply parameters to `-D'".to_owned()),
                error => operation(&error),
            })?;
            let shown = show(arguments, Verb::Deleted, flows.into_iter().map(Ok))?;
            say(format_args!("{shown} flow entries have been deleted."));
            return Ok(if shown == 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS });
        }
        Command::Create => {
            create(arguments, client)?;
            say(format_args!("1 flow entries have been created."));
        }
        Command::Add => {
            let added = add(arguments, client)?;
            say(format_args!("{added} flow entries have been added."));
        }
        Command::Update if arguments.nothing_labelled => {
            say(format_args!("0 flow entries have been updated."));
            return Ok(ExitCode::FAILURE);
        }
        Command::Update => {
            let flows = changing::update(arguments, client).map_err(|error| operation(&error))?;
            let shown = show(arguments, Verb::Listed, flows.into_iter().map(Ok))?;
            say(format_args!("{shown} flow entries have been updated."));
            return Ok(if shown == 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS });
        }
        Command::Flush(What::Flows) => {
            client.flush(filter.family).map_err(|error| operation(&error))?;
            say(format_args!("connection tracking table has been emptied."));
        }
        Command::Flush(What::Expectations) => {
            client.flush_expectations().map_err(|error| operation(&error))?;
            say(format_args!("expectation table has been emptied."));
        }
        Command::ListExpectations => {
            let found = client.expectations(filter.family).map_err(|error| operation(&error))?;
            expectations::show(arguments, &found).map_err(|error| written(&error))?;
            say(format_args!("{} expectations have been shown.", found.len()));
        }
        Command::GetExpectation => {
            let found = client.get_expectation(&arguments.tuple()?, None);
            let found = found.map_err(|error| expectations::failure(&error))?;
            expectations::show(arguments, &[found]).map_err(|error| written(&error))?;
        }
        Command::DeleteExpectation => {
            let key = ExpectationKey { expected: arguments.tuple()?, zone: None, id: None };
            client.delete_expectation(&key).map_err(|error| expectations::failure(&error))?;
            say(format_args!("1 expectations have been deleted."));
        }
        Command::Count(what) => {
            let count = match what {
                What::Flows => client.count().map(|count| count.to_string()),
                What::Expectations => client.count_expectations().map(|count| count.to_string()),
            };
            print(count.map_err(|error| operation(&error))? + "\n").map_err(|error| written(&error))?;
        }
        Command::Statistics(what) => {
            let lines: Vec<_> = match what {
                What::Flows => {
                    let found = client.statistics().map_err(|error| operation(&error))?;
                    found.iter().map(|cpu| format!("{cpu}\n")).collect()
                }
                What::Expectations => {
                    let found = client.expectation_statistics().map_err(|error| operation(&error))?;
                    found.iter().map(|cpu| format!("{cpu}\n")).collect()
                }
            };
            print(lines.concat()).map_err(|error| written(&error))?;
        }
        Command::Help | Command::Version | Command::Events(_) | Command::Load(_) => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns whether a deletion names a mark and a status. conntrack 1.4.7 finds no flow for the two, unless the mark
/// is 0: what it leaves alone is not deleted here.
fn both_mark_and_status(filter: &Filter) -> bool {
    filter.mark.is_some_and(|mark| mark.value != 0) && filter.status != StatusMatch::default()
}

fn create(arguments: &Arguments, client: &mut Client) -> Result<(), Failure> {
    let flow = changing::new_flow(arguments)?;
    client.create(&[flow]).map_err(|error| match error.errno() {
        Some(Errno::EEXIST) => Failure::Operation("Such conntrack exists, try -U to update".to_owned()),
        Some(Errno::EINVAL) => Failure::Operation("invalid parameters".to_owned()),
        _ => operation(&error),
    })
}

/// Creates a flow that is not there yet, and returns how many are new.
fn add(arguments: &Arguments, client: &mut Client) -> Result<usize, Failure> {
    let flow = changing::new_flow(arguments)?;
    match client.create(&[flow]) {
        Ok(()) => Ok(1),
        Err(error) if error.errno() == Some(Errno::EEXIST) => Ok(0),
        Err(error) => Err(operation(&error)),
    }
}

/// Says on standard error what has been done.
fn say(what: std::fmt::Arguments<'_>) {
    tell(format_args!("{PROGRAM}: {what}"));
}

fn written(error: &io::Error) -> Failure {
    Failure::Operation(error.to_string())
}

/// Prints the flows that are chosen, as they come, and returns how many. A closed pipe ends it without an
/// error.
fn show(
    arguments: &Arguments,
    verb: Verb,
    flows: impl Iterator<Item = Result<Flow, Error>>,
) -> Result<usize, Failure> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    let mut format = Format { verb, now, ..arguments.format };
    let is_update = arguments.command == Command::Update;
    // As conntrack(8): what it has deleted or changed is printed without some of it.
    format.timestamps &= !is_update;
    let framed = format.layout == Layout::Xml && verb == Verb::Listed && !is_update;
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut shown = 0;
    let mut write = |text: &str| match out.write_all(&encode(text)) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(|error| Failure::Operation(format!("standard output: {error}"))),
    };
    for flow in flows {
        let flow = flow.map_err(|error| operation(&error))?;
        if !arguments.shows(verb, &flow) {
            continue;
        }
        if framed && shown == 0 {
            write("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<conntrack>\n")?;
        }
        let mut text = match verb {
            Verb::Deleted => format.flow(&flow).to_string(),
            _ => arguments.text(&format, &flow),
        };
        text.push('\n');
        write(&text)?;
        shown += 1;
    }
    if framed && shown != 0 {
        write("</conntrack>\n")?;
    }
    match out.flush() {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::Operation(format!("standard output: {error}")))
        }
        _ => Ok(shown),
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
                say(format_args!("{message}"));
                tell("Try `conntrack -h' or 'conntrack --help' for more information.");
                ExitCode::from(2)
            }
            Self::Plain(message) => {
                say(format_args!("{message}"));
                ExitCode::FAILURE
            }
            Self::Operation(message) => {
                say(format_args!("Operation failed: {message}"));
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

  -L, --dump, list [conntrack|dying|unconfirmed|expect]   list flows, or expectations
  -G, --get, get          show one flow: -p, -s, -d and what the protocol needs
  -D, --delete, delete    delete the flows that all criteria choose; at least one
  -I, --create, create    make a flow: -p, -s, -d, -t and what the protocol needs
  -A, --add               make a flow, unless it is there
  -R, --load-file FILE    do what the lines of a file say, `-` for standard input: -A, -I, -U, -D, -F
  -U, --update, update    change time-out, mark, status or state of the flows that the other criteria choose
  -E, --event, monitor    show events as they come, until SIGINT or SIGTERM
  -F, --flush, flush      empty the table, with -f the part of one family
  -G expect, -D expect    show or delete the expectation of a flow: -p, -s, -d and what the protocol needs
  -E expect, -F expect    show events of expectations; delete all expectations
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
  -l, --label LABEL[,...]  of /etc/xtables/connlabel.conf
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
  -o, --output extended,id,ktimestamp,timestamp,labels,xml | save
  -z, --zero    set the counters to zero while listing
";
