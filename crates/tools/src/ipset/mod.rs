//! A stand-in for the `ipset` command that needs neither it nor libipset.
//!
//! Same words, same listings, same exit status: 0, 1 for what failed, 2 for what is no command. Without
//! arguments it reads one command line from standard input; `-` reads them until `quit`. Messages go to
//! standard error.

mod words;

use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, BufRead, Write as _};
use std::net::{IpAddr, ToSocketAddrs as _};
use std::process::ExitCode;

use crate::output::print;
use sluicegate_ipset::netlink::text::{decode, encode};
use sluicegate_ipset::text::{Command, EntryWords, Options, Output, ParseError, Statement, Verb, Word};
use sluicegate_ipset::{
    Client, Entry, Error, Exist, Family, Listing, Names, Reason, SetName, SetType, Style,
};

pub(crate) fn main(arguments: &[OsString]) -> ExitCode {
    let mut words = Word::from_arguments(
        arguments.iter().map(|argument| decode(argument.as_encoded_bytes()).into_owned()),
    );
    let mut program = Program::default();
    let (mut bytes, line);
    if words.is_empty() {
        bytes = Vec::new();
        let read = io::stdin().lock().read_until(b'\n', &mut bytes).map_err(Failure::Io);
        line = decode(&bytes);
        match read.and_then(|_| Ok(Word::split(&line)?)) {
            Ok(read) => words = read,
            Err(failure) => return failure.report(&Options::default()),
        }
    }
    match program.command_line(words) {
        Ok(status) => status,
        Err(failure) => failure.report(&program.options),
    }
}

#[derive(Default)]
struct Program {
    client: Option<Client>,
    options: Options,
    /// Types of sets that were asked for, or created.
    kinds: HashMap<SetName, (SetType, Family)>,
    pending: Pending,
    names: SystemNames,
}

/// Lines of a restore file that go to the kernel together.
#[derive(Default)]
struct Pending {
    target: Option<(Verb, SetName)>,
    entries: Vec<Entry>,
    lines: Vec<u32>,
}

impl Program {
    fn command_line(&mut self, words: Vec<Word>) -> Result<ExitCode, Failure> {
        let (statement, options) = self.parse(words)?;
        self.take(options);
        self.warn();
        match statement {
            Statement::Restore => self.restore(),
            Statement::Interactive => self.interactive(),
            Statement::Help(kind) => help(kind.as_deref()),
            Statement::Version => {
                let (_, newest) = self.client()?.protocol()?;
                print(format!("{NAME}, protocol version: {newest}\n")).map_err(Failure::Io)?;
                Ok(ExitCode::SUCCESS)
            }
            statement => self.statement(statement),
        }
    }

    /// Reads a command. Of a type that the kernel does not have, ipset says just that, whatever its options.
    fn parse<'w>(&mut self, words: Vec<Word<'w>>) -> Result<(Statement<'w>, Options), Failure> {
        let types: Vec<SetType> = words.iter().filter_map(|word| word.text.parse().ok()).collect();
        // The tool reads its own options first, so that `-q` silences what is wrong with the command as well.
        let quiet = |word: &Word| matches!(&*word.text, "-q" | "--q" | "-quiet" | "--quiet");
        self.options.quiet |= words.iter().any(quiet);
        let failure = match Statement::parse(words, &self.names) {
            Ok(parsed) => return Ok(parsed),
            Err(failure) => failure,
        };
        if let ([kind], true) = (types.as_slice(), words::is_of_create(&failure.reason))
            && let Some(family) = kind.families().first()
        {
            self.client()?.revisions(*kind, *family)?;
        }
        Err(failure.into())
    }

    /// Carries out what may also stand in a restore file.
    fn statement(&mut self, statement: Statement) -> Result<ExitCode, Failure> {
        match statement {
            Statement::List(set) => self.list(set, Output::Plain)?,
            Statement::Save(set) => self.list(set, Output::Save)?,
            Statement::Entry(words) if words.verb == Verb::Test => return self.test(&words),
            Statement::Entry(words) => {
                let entry = self.entry(&words)?;
                let exist = self.exist();
                let entries = std::slice::from_ref(&entry);
                match words.verb {
                    Verb::Add => self.client()?.add(words.set, entries, exist)?,
                    _ => self.client()?.delete(words.set, entries, exist)?,
                }
            }
            Statement::Quit => {}
            statement => {
                let command = Command::from_statement(statement, &self.names, |_| None)?;
                if let Some(command) = command {
                    let exist = self.exist();
                    self.client()?.apply(&command, exist)?;
                    self.follow(&command);
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Tells of options that have no effect.
    fn warn(&mut self) {
        let ignored = std::mem::take(&mut self.options.warnings);
        if !ignored.is_empty() {
            self.say(&words::warning(&ignored));
        }
    }

    fn test(&mut self, words: &EntryWords) -> Result<ExitCode, Failure> {
        let entry = self.entry(words)?;
        let found = self.client()?.test(words.set, &entry)?;
        let is = if found { "is" } else { "is NOT" };
        // Only what is found is a warning.
        let word = if found { "Warning: " } else { "" };
        self.say(&format!("{word}{} {is} in set {}.", entry.element(), words.set));
        Ok(if found { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn list(&mut self, set: Option<SetName>, usual: Output) -> Result<(), Failure> {
        let options = self.options.clone();
        let output = options.output.unwrap_or(usual);
        let hosts = |address: IpAddr| host_name(address);
        let mut style = Style::new(output);
        style.sorted = options.sorted;
        // The save format is always whole.
        style.terse = options.terse && output != Output::Save;
        style.hosts = if options.resolve { Some(&hosts) } else { None };
        let mut text = String::new();
        let client = self.client()?;
        let written = if options.names && output != Output::Save {
            let names = match set {
                Some(set) => client.infos(Some(set))?.into_iter().map(|info| info.name).collect(),
                None => client.names()?,
            };
            style.write_names(&mut text, &names)
        } else if usual == Output::Save || output == Output::Save {
            style.write(&mut text, &client.save(set)?)
        } else if style.terse {
            let heads: Vec<_> = client.infos(set)?.into_iter().map(Listing::from).collect();
            style.write(&mut text, &heads)
        } else {
            style.write(&mut text, &client.list(set)?)
        };
        written.map_err(|_| Failure::Io(io::Error::other("the listing cannot be written")))?;
        match &options.file {
            Some(path) => {
                fs::write(path, encode(&text)).map_err(|e| Failure::File(path.clone(), "writing", e))
            }
            None => print(encode(&text)).map_err(Failure::Io),
        }
    }

    fn restore(&mut self) -> Result<ExitCode, Failure> {
        let input: Box<dyn BufRead> = match &self.options.file {
            // The one case in which ipset exits with something else.
            Some(path) => match fs::File::open(path) {
                Ok(file) => Box::new(io::BufReader::new(file)),
                Err(error) => {
                    Failure::File(path.clone(), "reading", error).report(&self.options);
                    return Ok(ExitCode::from(255));
                }
            },
            None => Box::new(io::stdin().lock()),
        };
        self.options.file = None;
        for (number, line) in (1..).zip(input.split(b'\n')) {
            let line = line.map_err(Failure::Io)?;
            let line = decode(&line);
            match self.restore_line(number, &line).map_err(|failure| failure.at(number))? {
                Flow::On => {}
                Flow::End(status) => return Ok(status),
            }
        }
        self.commit()?;
        Ok(ExitCode::SUCCESS)
    }

    fn restore_line(&mut self, number: u32, line: &str) -> Result<Flow, Failure> {
        let words = Word::split(line)?;
        let Some(first) = words.first().cloned() else {
            return Ok(Flow::On);
        };
        if line.trim() == "COMMIT" {
            self.commit()?;
            return Ok(Flow::On);
        }
        let (statement, options) = self.parse(words)?;
        self.take(options);
        self.warn();
        let statement = match statement {
            Statement::Entry(words) if words.verb != Verb::Test => {
                self.keep(&words, number)?;
                return Ok(Flow::On);
            }
            Statement::Restore => return Err(first.wrong(Reason::NotInRestore("restore")).into()),
            Statement::Help(_) => return Err(first.wrong(Reason::NotInRestore("help")).into()),
            Statement::Version => return Err(first.wrong(Reason::NotInRestore("version")).into()),
            Statement::Interactive => return Err(first.wrong(Reason::NotInRestore("-")).into()),
            statement => statement,
        };
        // What is wrong with the words comes before what is sent.
        if let Statement::Entry(words) = &statement {
            self.entry(words)?;
        }
        self.commit()?;
        if statement == Statement::Quit {
            return Ok(Flow::End(ExitCode::SUCCESS));
        }
        let status = self.statement(statement)?;
        Ok(if status == ExitCode::SUCCESS { Flow::On } else { Flow::End(status) })
    }

    /// Puts an entry to those before it that go to the same set.
    fn keep(&mut self, words: &EntryWords, line: u32) -> Result<(), Failure> {
        let entry = self.entry(words)?;
        let target = Some((words.verb, words.set));
        if self.pending.target != target || self.pending.entries.len() >= TOGETHER {
            self.commit()?;
            self.pending.target = target;
        }
        self.pending.entries.push(entry);
        self.pending.lines.push(line);
        Ok(())
    }

    fn commit(&mut self) -> Result<(), Failure> {
        let Pending { target, entries, lines } = std::mem::take(&mut self.pending);
        let Some((verb, set)) = target else {
            return Ok(());
        };
        let exist = self.exist();
        let client = self.client()?;
        let sent = match verb {
            Verb::Add => client.add_in_order(set, &entries, exist),
            _ => client.delete_in_order(set, &entries, exist),
        };
        sent.map_err(|mut error| {
            if let Error::Refused(refusal) = &mut error {
                let last = lines.last().copied();
                refusal.line = refusal.index.and_then(|index| lines.get(index)).copied().or(last);
            }
            Failure::Ipset(error)
        })
    }

    fn interactive(&mut self) -> Result<ExitCode, Failure> {
        let prompt = || print("ipset> ").map_err(Failure::Io);
        prompt()?;
        for line in io::stdin().lock().split(b'\n') {
            let line = line.map_err(Failure::Io)?;
            let line = decode(&line);
            let statement = Word::split(&line).map_err(Failure::Parse).and_then(|words| {
                if words.is_empty() { Ok(None) } else { Ok(Some(Statement::parse(words, &self.names)?)) }
            });
            let done = match statement {
                Ok(Some((Statement::Quit, _))) => return Ok(ExitCode::SUCCESS),
                Ok(Some((Statement::Help(kind), _))) => help(kind.as_deref()),
                Ok(Some((Statement::Restore | Statement::Interactive | Statement::Version, _))) => {
                    let said = print("this command cannot be used here\n");
                    said.map(|()| ExitCode::SUCCESS).map_err(Failure::Io)
                }
                Ok(Some((statement, options))) => {
                    self.options = options;
                    self.statement(statement)
                }
                Ok(None) => Ok(ExitCode::SUCCESS),
                Err(failure) => Err(failure),
            };
            if let Err(failure) = done {
                failure.report(&Options::default());
            }
            prompt()?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn entry(&mut self, words: &EntryWords) -> Result<Entry, Failure> {
        let (kind, family) = match self.kinds.get(&words.set) {
            Some(known) => *known,
            None => {
                let header = self.client()?.header(words.set)?;
                self.kinds.insert(words.set, (header.kind, header.family));
                (header.kind, header.family)
            }
        };
        Ok(words.read(kind, family, &self.names)?)
    }

    fn follow(&mut self, command: &Command) {
        match command {
            Command::Create(spec) => {
                self.kinds.insert(spec.name(), (spec.set_type(), spec.family()));
            }
            // Sets of different types cannot be swapped, so that only these change what is known.
            Command::Destroy(_) | Command::Rename(..) => self.kinds.clear(),
            _ => {}
        }
    }

    /// Options stay in force: `-exist` on one line of a restore file applies to those after it.
    fn take(&mut self, options: Options) {
        let held = &mut self.options;
        held.exist |= options.exist;
        held.quiet |= options.quiet;
        held.resolve |= options.resolve;
        held.sorted |= options.sorted;
        held.names |= options.names;
        held.terse |= options.terse;
        held.output = options.output.or(held.output);
        held.file = options.file.or(held.file.take());
        held.warnings = options.warnings;
    }

    fn exist(&self) -> Exist {
        if self.options.exist { Exist::Ignore } else { Exist::Fail }
    }

    /// The client, opened when it is first needed: a bad command line needs no kernel.
    fn client(&mut self) -> Result<&mut Client, Failure> {
        match &mut self.client {
            Some(client) => Ok(client),
            none => Ok(none.insert(Client::open()?)),
        }
    }

    fn say(&self, text: &str) {
        if !self.options.quiet {
            message(text);
        }
    }
}

/// Prints a line to standard error, with the bytes of names that are not UTF-8.
fn message(text: &str) {
    // Without standard error nothing can be reported.
    let _ = io::stderr().lock().write_all(&encode(&format!("{text}\n")));
}

enum Flow {
    On,
    End(ExitCode),
}

/// What ends the program early.
enum Failure {
    Parse(ParseError),
    Ipset(Error),
    /// The kernel refused what stands on this line.
    Line(u32, Error),
    File(String, &'static str, io::Error),
    Io(io::Error),
}

impl Failure {
    /// Adds the line of a restore file, where the failure does not know a better one.
    fn at(self, number: u32) -> Self {
        match self {
            Self::Parse(error) => Self::Parse(ParseError { line: Some(number), ..error }),
            Self::Ipset(Error::Refused(refusal)) if refusal.line.is_some() => {
                Self::Ipset(Error::Refused(refusal))
            }
            Self::Ipset(error) => Self::Line(number, error),
            other => other,
        }
    }

    fn report(self, options: &Options) -> ExitCode {
        let usage = match &self {
            Self::Parse(error) => error.reason.is_usage(),
            Self::Ipset(error) | Self::Line(_, error) => matches!(error, Error::NeedsRevision { .. }),
            _ => false,
        };
        if !options.quiet {
            let line = match &self {
                Self::Line(line, _) => Some(*line),
                Self::Parse(error) => error.line,
                Self::Ipset(Error::Refused(refusal)) => refusal.line,
                _ => None,
            };
            let text = match &self {
                Self::Parse(ParseError { reason, .. }) | Self::Ipset(Error::Invalid(reason)) => {
                    words::reason(reason)
                }
                Self::Ipset(Error::Parse(error)) => words::reason(&error.reason),
                Self::Ipset(Error::Refused(refusal)) => words::refusal(refusal),
                Self::Line(_, Error::Refused(refusal)) => words::refusal(refusal),
                Self::Line(_, Error::Parse(error)) => words::reason(&error.reason),
                Self::Ipset(error) | Self::Line(_, error) => error.to_string(),
                Self::File(path, what, error) => {
                    let reason = error.to_string();
                    let reason = reason.split(" (os error").next().unwrap_or_default();
                    format!("Cannot open {path} for {what}: {reason}")
                }
                Self::Io(error) => error.to_string(),
            };
            // What is no command is told without its line, as ipset tells it.
            let place = line.filter(|_| !usage).map(|line| format!("Error in line {line}: "));
            message(&format!("{NAME}: {}{text}", place.unwrap_or_default()));
            if usage {
                message("Try `ipset help' for more information.");
            }
        }
        ExitCode::from(if usage { 2 } else { 1 })
    }
}

impl From<ParseError> for Failure {
    fn from(error: ParseError) -> Self {
        Self::Parse(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Ipset(error)
    }
}

/// `/etc/services` and the system's resolver.
#[derive(Default)]
struct SystemNames {
    services: std::cell::OnceCell<HashMap<(String, String), u16>>,
}

impl Names for SystemNames {
    fn host(&self, name: &str, family: Family) -> Option<IpAddr> {
        // The resolver would also take numbers in notations that ipset does not.
        let last = name.rsplit('.').next().unwrap_or_default();
        if last.is_empty() || last.starts_with(|c: char| c.is_ascii_digit()) || name.contains(':') {
            return None;
        }
        let addresses = (name, 0).to_socket_addrs().ok()?;
        addresses.map(|address| address.ip()).find(|ip| ip.is_ipv4() == (family == Family::Ipv4))
    }

    fn service(&self, name: &str, protocol: &str) -> Option<u16> {
        let services = self
            .services
            .get_or_init(|| read_services(&fs::read_to_string("/etc/services").unwrap_or_default()));
        services.get(&(name.to_owned(), protocol.to_owned())).copied()
    }
}

/// Lines of `name port/protocol alias...`; the first line that names a service counts.
fn read_services(text: &str) -> HashMap<(String, String), u16> {
    let mut services = HashMap::new();
    for line in text.lines() {
        let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
        let (Some(name), Some((port, protocol))) =
            (words.next(), words.next().and_then(|word| word.split_once('/')))
        else {
            continue;
        };
        let Ok(port) = port.parse() else { continue };
        for name in std::iter::once(name).chain(words) {
            services.entry((name.to_owned(), protocol.to_owned())).or_insert(port);
        }
    }
    services
}

/// The name that the system's resolver knows for an address.
fn host_name(address: IpAddr) -> Option<String> {
    dns_lookup::lookup_addr(&address).ok().filter(|name| name.parse::<IpAddr>().is_err())
}

fn help(kind: Option<&str>) -> Result<ExitCode, Failure> {
    let mut text = format!("{NAME}\n\n{HELP}\n");
    match kind {
        None => {
            text.push_str("\nSet types (newest revision):\n");
            for kind in SetType::ALL {
                let _ = writeln!(text, "    {:<20}{}", kind.name(), kind.revisions().1);
            }
        }
        Some(name) => {
            let unknown = |_| Reason::UnknownArgument(name.to_owned());
            let kind: SetType = name.parse().map_err(|reason| {
                Failure::Parse(ParseError { line: None, column: 2, reason: unknown(reason) })
            })?;
            let families: Vec<_> = kind.families().iter().map(ToString::to_string).collect();
            let _ =
                writeln!(text, "\n{kind}: {} part(s), family {}", kind.dimension(), families.join(" or "));
        }
    }
    print(text).map(|()| ExitCode::SUCCESS).map_err(Failure::Io)
}

/// What messages begin with: the release whose words these are.
const NAME: &str = "ipset v7.17";
/// Entries that are sent together: as many as fit in one message, roughly.
const TOGETHER: usize = 1400;

const HELP: &str = "\
Usage: ipset [OPTIONS] COMMAND

Commands (any start of a name that is no other command's will do):
    create, -N SETNAME TYPENAME [OPTIONS]   make a set
    add, -A SETNAME ENTRY [OPTIONS]         put an entry into a set
    del, -D SETNAME ENTRY                   take an entry out of a set
    test, -T SETNAME ENTRY                  look for an entry: exit status 0 or 1
    destroy, -X [SETNAME]                   remove a set, or all
    list, -L [SETNAME]                      show a set, or all
    save, -S [SETNAME]                      write a set, or all, as a restore file
    restore, -R                             carry out the lines of standard input
    flush, -F [SETNAME]                     remove all entries
    rename, -E FROM TO                      give a set another name
    swap, -W FROM TO                        exchange the names of two sets
    help [TYPENAME], version, quit

Options:
    -exist, -!             what is there already, or not there, is no error
    -output, -o plain|save|xml
    -sorted, -s            entries of hashes in order
    -name, -n              names of sets only
    -terse, -t             sets without their entries
    -resolve, -r           host names for addresses
    -quiet, -q             no messages
    -file, -f FILE         in place of standard input or output";
