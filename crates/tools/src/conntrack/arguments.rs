//! The command line, by the rules of `getopt_long` as conntrack(8) uses it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::output::tell;
use ipnet::IpNet;
use sluicegate_conntrack::protocol::Name;
use sluicegate_conntrack::{
    AddressPort, DccpState, Family, Filter, Flow, Format, GROUPS, LabelNames, Layer4, Layout, MarkMatch,
    Protocol, SctpState, Side, Status, Table, TcpState, Tuple, Verb,
};

/// What is to be done, and about which flows.
pub(crate) struct Arguments {
    pub(crate) command: Command,
    /// The selected properties; for a flow to create or change, also the wanted ones.
    pub(crate) filter: Filter,
    pub(crate) format: Format,
    pub(crate) zero: bool,
    pub(crate) timeout: Option<u32>,
    /// The verification tags of SCTP.
    pub(crate) tags: [Option<u32>; 2],
    pub(crate) dccp_state: Option<DccpState>,
    /// Who is the client of DCCP.
    pub(crate) role: u8,
    /// The groups of the events that are asked for; none for all.
    pub(crate) groups: Vec<u32>,
    pub(crate) buffer: Option<usize>,
    /// Each event comes with the time when it was heard of.
    pub(crate) timed: bool,
    /// The names of labels, if they are to be printed.
    pub(crate) labels: Option<LabelNames>,
    /// A status was asked for that has no bit: no flow can have it.
    pub(crate) nothing_matches: bool,
    /// A label was asked for that no flow can have.
    pub(crate) nothing_labelled: bool,
}

#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Command {
    List(Table),
    Get,
    Delete,
    Create,
    /// Creates, unless it is there.
    Add,
    Update,
    /// Reads commands from a file, `-` for standard input.
    Load(String),
    Events(What),
    Flush(What),
    ListExpectations,
    GetExpectation,
    DeleteExpectation,
    Count(What),
    Statistics(What),
    Version,
    Help,
}

/// What a command is about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    Flows,
    Expectations,
}

/// Why it was not done.
pub(crate) enum Failure {
    /// The command line is wrong.
    Usage(String),
    /// It cannot be done this way.
    Plain(String),
    /// It was tried and failed.
    Operation(String),
}

/// One option: its names, its letter, what follows it, and with which commands it may stand.
struct Opt {
    letter: char,
    /// The first is the one that messages use.
    names: &'static [&'static str],
    value: Value,
    commands: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Value {
    None,
    Needed,
    Optional,
}

const fn opt(letter: char, names: &'static [&'static str], value: Value, commands: &'static str) -> Opt {
    Opt { letter, names, value, commands }
}

/// In the order in which conntrack(8) looks at them. Commands about expectations are small letters. Letters
/// that are no option of the command line are its own inner names.
const OPTIONS: &[Opt] = &[
    opt('L', &["dump"], Value::Optional, ""),
    opt('G', &["get"], Value::Optional, ""),
    opt('D', &["delete"], Value::Optional, ""),
    opt('I', &["create"], Value::Optional, ""),
    opt('A', &["add"], Value::Optional, ""),
    opt('R', &["load-file"], Value::Needed, ""),
    opt('U', &["update"], Value::Optional, ""),
    opt('E', &["event"], Value::Optional, ""),
    opt('F', &["flush"], Value::Optional, ""),
    opt('C', &["counter"], Value::Optional, ""),
    opt('S', &["stats"], Value::Optional, ""),
    opt('V', &["version"], Value::None, ""),
    opt('h', &["help"], Value::None, ""),
    opt('s', &["src", "orig-src"], Value::Needed, "LGDIAUEgd"),
    opt('d', &["dst", "orig-dst"], Value::Needed, "LGDIAUEgd"),
    opt('r', &["reply-src"], Value::Needed, "LDIAUEgd"),
    opt('q', &["reply-dst"], Value::Needed, "LDIAUEgd"),
    opt('p', &["protonum"], Value::Needed, "LGDIAUEhgd"),
    opt('t', &["timeout"], Value::Needed, "IAU"),
    opt('u', &["status"], Value::Needed, "LDIAU"),
    opt('z', &["zero"], Value::None, "L"),
    opt('e', &["event-mask"], Value::Needed, "E"),
    // With no command allowed: known, so that what is refused is named.
    opt('[', &["tuple-src"], Value::Needed, ""),
    opt(']', &["tuple-dst"], Value::Needed, ""),
    opt('{', &["mask-src"], Value::Needed, "LDUE"),
    opt('}', &["mask-dst"], Value::Needed, "LDUE"),
    opt('m', &["mark"], Value::Needed, "LDIAUE"),
    opt('i', &["id"], Value::Needed, "DU"),
    opt('f', &["family"], Value::Needed, "LDFUEl"),
    opt('n', &["src-nat"], Value::Optional, "LDIAUE"),
    opt('g', &["dst-nat"], Value::Optional, "LDIAUE"),
    opt('o', &["output"], Value::Needed, "LGDUEle"),
    opt('c', &["secmark"], Value::Needed, ""),
    opt('b', &["buffer-size"], Value::Needed, "E"),
    opt('j', &["any-nat"], Value::Optional, "LE"),
    opt('w', &["zone"], Value::Needed, "LDIAE"),
    opt('l', &["label"], Value::Needed, "LGDUE"),
    opt('(', &["orig-zone"], Value::Needed, "LDIAE"),
    opt(')', &["reply-zone"], Value::Needed, "LDIAE"),
];

/// Options that a protocol brings.
const PORTS: &[Opt] = &[
    opt('1', &["sport", "orig-port-src"], Value::Needed, "LGDIAUEgd"),
    opt('2', &["dport", "orig-port-dst"], Value::Needed, "LGDIAUEgd"),
    opt('3', &["reply-port-src"], Value::Needed, "LDIAUEgd"),
    opt('4', &["reply-port-dst"], Value::Needed, "LDIAUEgd"),
];
const KEYS: &[Opt] = &[
    opt('1', &["srckey", "orig-key-src"], Value::Needed, "LGDIAUEgd"),
    opt('2', &["dstkey", "orig-key-dst"], Value::Needed, "LGDIAUEgd"),
    opt('3', &["reply-key-src"], Value::Needed, "LDIAUEgd"),
    opt('4', &["reply-key-dst"], Value::Needed, "LDIAUEgd"),
];
const STATE: &[Opt] = &[opt('5', &["state"], Value::Needed, "LDIAUE")];
const SCTP: &[Opt] = &[
    opt('5', &["state"], Value::Needed, "LDIAUE"),
    opt('9', &["orig-vtag"], Value::Needed, "IA"),
    opt('0', &["reply-vtag"], Value::Needed, "IA"),
];
const DCCP: &[Opt] = &[opt('5', &["state"], Value::Needed, "IA"), opt('*', &["role"], Value::Needed, "IA")];
const ICMP: &[Opt] = &[
    opt('6', &["icmp-type"], Value::Needed, "LGDIAUE"),
    opt('7', &["icmp-code"], Value::Needed, "LGDIAUE"),
    opt('8', &["icmp-id"], Value::Needed, "LGDIAUE"),
];
const ICMPV6: &[Opt] = &[
    opt('6', &["icmpv6-type"], Value::Needed, "LGDIAUE"),
    opt('7', &["icmpv6-code"], Value::Needed, "LGDIAUE"),
    opt('8', &["icmpv6-id"], Value::Needed, "LGDIAUE"),
];

fn of_protocol(protocol: Option<Protocol>) -> impl Iterator<Item = &'static Opt> {
    let lists: [&'static [Opt]; 2] = match protocol {
        Some(Protocol::TCP) => [PORTS, STATE],
        Some(Protocol::SCTP) => [PORTS, SCTP],
        Some(Protocol::DCCP) => [PORTS, DCCP],
        Some(Protocol::UDP | Protocol::UDPLITE) => [PORTS, &[]],
        Some(Protocol::GRE) => [KEYS, &[]],
        Some(Protocol::ICMP) => [ICMP, &[]],
        Some(Protocol::ICMPV6) => [ICMPV6, &[]],
        _ => [&[], &[]],
    };
    lists.into_iter().flatten()
}

impl What {
    fn choose(self, flows: Command, expectations: Command) -> Command {
        match self {
            Self::Flows => flows,
            Self::Expectations => expectations,
        }
    }
}

impl Arguments {
    /// Whether a flow is chosen.
    pub(crate) fn matches(&self, flow: &Flow) -> bool {
        !self.nothing_labelled && self.filter.matches(flow)
    }

    /// Whether a flow is shown. What was changed is, although it has another mark or state now.
    pub(crate) fn shows(&self, verb: Verb, flow: &Flow) -> bool {
        match self.command {
            Command::Update => true,
            Command::Get => {
                let mut labelled = Filter::default();
                labelled.labels = self.filter.labels;
                !self.nothing_labelled && labelled.matches(flow)
            }
            _ if self.zero || verb == Verb::Deleted => true,
            _ => self.matches(flow),
        }
    }

    /// The text of a flow in a format, with its labels where they are asked for.
    pub(crate) fn text(&self, format: &Format, flow: &Flow) -> String {
        match &self.labels {
            Some(names) => format.labelled(flow, names).to_string(),
            None => format.flow(flow).to_string(),
        }
    }

    pub(crate) fn parse(words: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let mut words: Vec<String> = words.collect();
        let plain = [
            ("list", "-L"),
            ("get", "-G"),
            ("delete", "-D"),
            ("create", "-I"),
            ("update", "-U"),
            ("monitor", "-E"),
            ("flush", "-F"),
            ("count", "-C"),
            ("stats", "-S"),
        ];
        if let Some(first) = words.first_mut()
            && let Some((_, option)) = plain.iter().find(|(word, _)| word == first)
        {
            *first = (*option).to_owned();
        }
        let mut parser = Parser { words, next: 0, ..Parser::default() };
        while parser.word()? {}
        parser.finish()
    }

    /// The original tuple that the criteria name in full.
    pub(crate) fn tuple(&self) -> Result<Tuple, Failure> {
        let Side { source, destination, .. } = self.filter.original;
        let (Some(source), Some(destination)) = (source, destination) else {
            return usage("you have to specify `--src' and `--dst'");
        };
        let protocol = self.filter.protocol.unwrap_or(Protocol(0));
        let side = self.filter.original;
        let layer4 = if sluicegate_conntrack::protocol::has_ports(protocol) {
            match (side.source_port, side.destination_port) {
                (Some(source), Some(destination)) => Layer4::Ports { source, destination },
                _ if protocol == Protocol::GRE => {
                    return usage("you have to specify `--srckey' and `--dstkey'");
                }
                _ => return usage("you have to specify `--sport' and `--dport'"),
            }
        } else if protocol.is_icmp() {
            let need = |part: &str| {
                Failure::Usage(format!(
                    "You need to supply the `--{}-{part}' option for this command",
                    Name(protocol)
                ))
            };
            Layer4::Icmp {
                kind: side.icmp_type.ok_or_else(|| need("type"))?,
                code: side.icmp_code.ok_or_else(|| need("code"))?,
                id: side.icmp_id.unwrap_or(0),
            }
        } else {
            Layer4::None
        };
        Tuple::new(source.addr(), destination.addr(), protocol, layer4)
            .ok_or_else(|| Failure::Usage("mismatched address family".to_owned()))
    }
}

#[derive(Default)]
struct Parser {
    words: Vec<String>,
    next: usize,
    command: Option<(char, Command)>,
    given: Vec<&'static Opt>,
    filter: Filter,
    format: Format,
    family: Option<Family>,
    zero: bool,
    status: Option<Status>,
    save: bool,
    other_output: bool,
    masks: [Option<IpAddr>; 2],
    timeout: Option<u32>,
    tags: [Option<u32>; 2],
    dccp_state: Option<DccpState>,
    role: u8,
    groups: Vec<u32>,
    buffer: Option<usize>,
    timed: bool,
    shows_labels: bool,
    /// The names of labels that a flow must have.
    wanted_labels: Vec<String>,
    nothing_labelled: bool,
}

impl Parser {
    /// Reads one word with what belongs to it; false at the end.
    fn word(&mut self) -> Result<bool, Failure> {
        let Some(word) = self.words.get(self.next).cloned() else { return Ok(false) };
        self.next += 1;
        if let Some(long) = word.strip_prefix("--") {
            let (name, value) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (long, None),
            };
            let option = self.long(name)?;
            self.option(option, &format!("--{name}"), value)?;
        } else if let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            let mut rest = letters;
            while let Some(letter) = rest.chars().next() {
                rest = &rest[letter.len_utf8()..];
                let found = OPTIONS.iter().find(|o| o.letter == letter && letter.is_ascii_alphabetic());
                let Some(option) = found else { return usage(format!("unknown option `-{letter}'")) };
                let attached = (option.value != Value::None && !rest.is_empty()).then(|| rest.to_owned());
                let ends = attached.is_some();
                self.option(option, &format!("-{letter}"), attached)?;
                if ends {
                    break;
                }
            }
        } else if word != "conntrack" {
            // The table that is meant anyway may stand anywhere; conntrack(8) ignores any word.
            return usage(format!("unexpected argument `{word}'"));
        }
        Ok(true)
    }

    /// An option by its name, or by the beginning of one that no other option shares.
    fn long(&self, name: &str) -> Result<&'static Opt, Failure> {
        let all = || OPTIONS.iter().chain(of_protocol(self.filter.protocol));
        if let Some(exact) = all().find(|option| option.names.contains(&name)) {
            return Ok(exact);
        }
        let mut begins = all()
            .filter(|option| !name.is_empty() && option.names.iter().any(|known| known.starts_with(name)));
        match (begins.next(), begins.next()) {
            (Some(option), None) => Ok(option),
            _ => usage(format!("unknown option `--{name}'")),
        }
    }

    fn option(&mut self, option: &'static Opt, shown: &str, attached: Option<String>) -> Result<(), Failure> {
        let value = match option.value {
            Value::None if attached.is_some() => return usage(format!("option `{shown}' takes no argument")),
            Value::None => None,
            Value::Optional => attached.or_else(|| self.take(|next| !next.starts_with(['-', '!']))),
            Value::Needed => match attached.or_else(|| self.take(|_| true)) {
                Some(value) => Some(value),
                None => return usage(format!("option `{shown}' requires an argument")),
            },
        };
        let of_what = || match option.letter {
            'V' | 'h' | 'R' => Ok(What::Flows),
            _ if is_expect(value.as_deref()) => Ok(What::Expectations),
            _ => match table(value.as_deref())? {
                Table::Conntrack => Ok(What::Flows),
                _ => usage("Can't do that command with tables `dying' and `unconfirmed'"),
            },
        };
        let mut letter = option.letter;
        let command = match option.letter {
            'L' if is_expect(value.as_deref()) => Command::ListExpectations,
            'L' => Command::List(table(value.as_deref())?),
            'G' => of_what()?.choose(Command::Get, Command::GetExpectation),
            'D' => of_what()?.choose(Command::Delete, Command::DeleteExpectation),
            'I' if of_what()? == What::Expectations => {
                return Err(Failure::Plain("expectations cannot be created here".to_owned()));
            }
            'I' => Command::Create,
            'A' if of_what()? == What::Expectations => return usage("Can't do --add on expectations"),
            'A' => Command::Add,
            'R' => Command::Load(value.clone().unwrap_or_default()),
            'U' if of_what()? == What::Expectations => return usage("Can't do --update on expectations"),
            'U' => Command::Update,
            'E' => Command::Events(of_what()?),
            'F' => Command::Flush(of_what()?),
            'C' => Command::Count(of_what()?),
            'S' => Command::Statistics(of_what()?),
            'V' => Command::Version,
            'h' => Command::Help,
            _ => {
                self.given.push(option);
                return self.criterion(option.letter, &value.unwrap_or_default());
            }
        };
        if !matches!(letter, 'C' | 'S' | 'V' | 'h' | 'R') && is_expect(value.as_deref()) {
            letter = letter.to_ascii_lowercase();
        }
        if self.command.replace((letter, command)).is_some() {
            return usage("Invalid commands combination");
        }
        Ok(())
    }

    fn take(&mut self, fits: impl Fn(&str) -> bool) -> Option<String> {
        let word = self.words.get(self.next).filter(|word| fits(word)).cloned();
        self.next += usize::from(word.is_some());
        word
    }

    fn criterion(&mut self, letter: char, value: &str) -> Result<(), Failure> {
        match letter {
            's' => self.filter.original.source = Some(self.network(value)?),
            'd' => self.filter.original.destination = Some(self.network(value)?),
            'r' => self.filter.reply.source = Some(self.network(value)?),
            'q' => self.filter.reply.destination = Some(self.network(value)?),
            '{' => self.masks[0] = Some(self.address(value)?),
            '}' => self.masks[1] = Some(self.address(value)?),
            'p' => self.filter.protocol = Some(protocol(value)?),
            'u' => return self.statuses(value),
            'm' => self.filter.mark = Some(mark(value)?),
            'i' => self.filter.id = Some(number(value, "id")?),
            'f' => {
                let family = match value {
                    "ipv4" => Family::Ipv4,
                    "ipv6" => Family::Ipv6,
                    _ => return usage(format!("`{value}' unsupported protocol")),
                };
                self.filter.family = Some(family);
                self.same_family(family)?;
            }
            'n' => self.filter.nat.source = Some(self.translation(value)?),
            'g' => self.filter.nat.destination = Some(self.translation(value)?),
            'j' => self.filter.nat.any = Some(self.translation(value)?),
            'o' => return self.output(value),
            'w' => self.filter.zone = Some(zone(value)?),
            '(' => self.filter.original.zone = Some(zone(value)?),
            ')' => self.filter.reply.zone = Some(zone(value)?),
            'l' => self.wanted_labels.extend(value.split(',').map(str::to_owned)),
            'z' => self.zero = true,
            't' => self.timeout = Some(number(value, "timeout")?),
            'e' => return self.events(value),
            'b' => self.buffer = Some(number(value, "buffer size")?),
            '9' => self.tags[0] = Some(number(value, "tag")?),
            '0' => self.tags[1] = Some(number(value, "tag")?),
            '*' => {
                self.role = match value {
                    "client" => 0,
                    "server" => 1,
                    _ => return usage(format!("unknown DCCP role `{value}'")),
                }
            }
            '1' => self.filter.original.source_port = Some(number(value, "port")?),
            '2' => self.filter.original.destination_port = Some(number(value, "port")?),
            '3' => self.filter.reply.source_port = Some(number(value, "port")?),
            '4' => self.filter.reply.destination_port = Some(number(value, "port")?),
            '5' => return self.state(value),
            '6' => self.filter.original.icmp_type = Some(number(value, "ICMP type")?),
            '7' => self.filter.original.icmp_code = Some(number(value, "ICMP code")?),
            '8' => self.filter.original.icmp_id = Some(number(value, "ICMP id")?),
            // Allowed with no command; reported when the command is known.
            _ => {}
        }
        Ok(())
    }

    fn same_family(&mut self, family: Family) -> Result<(), Failure> {
        if self.family.replace(family).is_some_and(|before| before != family) {
            return usage("mismatched address family");
        }
        Ok(())
    }

    fn address(&mut self, text: &str) -> Result<IpAddr, Failure> {
        let Some(address) = host(text) else { return usage(format!("Invalid IP address `{text}'")) };
        self.same_family(Family::of(address))?;
        Ok(address)
    }

    fn network(&mut self, text: &str) -> Result<IpNet, Failure> {
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let address = self.address(address)?;
        let Some(length) = length else { return Ok(address.into()) };
        let plain = length.bytes().all(|byte| byte.is_ascii_digit());
        let net = length.parse().ok().filter(|_| plain).and_then(|length| IpNet::new(address, length).ok());
        net.ok_or_else(|| Failure::Usage("Invalid netmask".to_owned()))
    }

    fn translation(&mut self, text: &str) -> Result<AddressPort, Failure> {
        if text.is_empty() {
            return Ok(AddressPort::default());
        }
        if let Some(address) = host(text) {
            self.same_family(Family::of(address))?;
            return Ok(AddressPort { address: Some(address), port: None });
        }
        if let Ok(both) = text.parse::<SocketAddr>() {
            self.same_family(Family::of(both.ip()))?;
            return Ok(AddressPort { address: Some(both.ip()), port: Some(both.port()) });
        }
        let (address, port) = text.rsplit_once(':').unwrap_or((text, ""));
        if address.is_empty() {
            return Ok(AddressPort { address: None, port: Some(number(port, "port")?) });
        }
        let bare = address.trim_start_matches('[').trim_end_matches(']');
        match bare.parse::<IpAddr>() {
            Ok(_) => usage(format!("Invalid port `{port}'")),
            Err(_) => usage(format!("Invalid IP address `{address}'")),
        }
    }

    fn statuses(&mut self, text: &str) -> Result<(), Failure> {
        let known = [
            ("ASSURED", Status::ASSURED),
            ("SEEN_REPLY", Status::SEEN_REPLY),
            ("UNSET", Status::empty()),
            ("FIXED_TIMEOUT", Status::FIXED_TIMEOUT),
            ("EXPECTED", Status::EXPECTED),
            ("OFFLOAD", Status::OFFLOAD),
            ("UNREPLIED", Status::SEEN_REPLY),
            ("HW_OFFLOAD", Status::HW_OFFLOAD),
        ];
        let bits = self.status.get_or_insert_default();
        for (part, from_here) in list(text) {
            if let Some(nat) = ["SRC_NAT", "DST_NAT"].into_iter().find(|nat| begins(nat, part)) {
                let option = nat.to_lowercase().replace('_', "-");
                tell(format_args!("WARNING: ignoring {nat}, use --{option} instead"));
                continue;
            }
            match known.iter().find(|(name, _)| begins(name, part)) {
                Some(("UNREPLIED", bit)) => {
                    self.filter.status.unset |= *bit;
                    *bits |= *bit;
                }
                Some((_, bit)) => {
                    self.filter.status.set |= *bit;
                    *bits |= *bit;
                }
                None => return usage(format!("Bad parameter `{from_here}'")),
            }
        }
        Ok(())
    }

    fn events(&mut self, text: &str) -> Result<(), Failure> {
        let [new, update, destroy] = GROUPS;
        let known: [(&str, &[u32]); 4] =
            [("ALL", &GROUPS), ("NEW", &[new]), ("UPDATES", &[update]), ("DESTROY", &[destroy])];
        for (part, from_here) in list(text) {
            let Some((_, groups)) = known.iter().find(|(name, _)| begins(name, part)) else {
                return usage(format!("Bad parameter `{from_here}'"));
            };
            self.groups.extend_from_slice(groups);
        }
        Ok(())
    }

    fn output(&mut self, text: &str) -> Result<(), Failure> {
        let known = ["xml", "extended", "timestamp", "id", "ktimestamp", "labels", "userspace", "save"];
        for (part, from_here) in list(text) {
            let Some(name) = known.into_iter().find(|name| begins(name, part)) else {
                return usage(format!("Bad parameter `{from_here}'"));
            };
            match name {
                "xml" => self.format.layout = Layout::Xml,
                "extended" => self.format.layer3 = true,
                "id" => self.format.id = true,
                "ktimestamp" => self.format.timestamps = true,
                "save" => self.save = true,
                "timestamp" => self.timed = true,
                "labels" => self.shows_labels = true,
                // About events.
                _ => {}
            }
            self.other_output |= name != "save";
        }
        Ok(())
    }

    fn state(&mut self, name: &str) -> Result<(), Failure> {
        if self.filter.protocol == Some(Protocol::DCCP) {
            self.dccp_state = DccpState::from_name(name);
            return match self.dccp_state {
                Some(_) => Ok(()),
                None => usage(format!("unknown DCCP state `{name}'")),
            };
        }
        if self.filter.protocol == Some(Protocol::SCTP) {
            self.filter.sctp_state = SctpState::from_name(name);
            return match self.filter.sctp_state {
                Some(_) => Ok(()),
                None => usage(format!("unknown SCTP state `{name}'")),
            };
        }
        // The name that the state had until Linux 2.6.32.
        let name = if name == "LISTEN" { "SYN_SENT2" } else { name };
        self.filter.tcp_state = TcpState::from_name(name);
        match self.filter.tcp_state {
            Some(_) => Ok(()),
            None => usage(format!("unknown TCP state `{name}'")),
        }
    }

    fn finish(mut self) -> Result<Arguments, Failure> {
        let Some((letter, command)) = self.command.take() else {
            return match self.given.first() {
                // As conntrack(8): without a word, its usage.
                None => Ok(self.arguments(Command::Help, None)),
                Some(option) => usage(format!("Illegal option `--{}' with this command", option.names[0])),
            };
        };
        let labels = self.labels()?;
        self.check_options(letter)?;
        self.apply_masks()?;
        let mut others = self.filter;
        others.family = None;
        if self.zero && (!others.is_empty() || self.status.is_some()) {
            return usage("Can't use -z with filtering parameters");
        }
        if self.save && self.other_output {
            let message = "cannot combine save output with any other output type, use -o save only";
            return Err(Failure::Plain(message.to_owned()));
        }
        if self.save {
            self.format.layout = Layout::Save;
        }
        Ok(self.arguments(command, labels))
    }

    /// Reads the file with the names of labels, where one is asked for.
    fn labels(&mut self) -> Result<Option<LabelNames>, Failure> {
        if self.wanted_labels.is_empty() && !self.shows_labels {
            return Ok(None);
        }
        let text = std::fs::read(LABELS_FILE);
        let names = match &text {
            Ok(text) => LabelNames::parse(&String::from_utf8_lossy(text)),
            Err(error) => {
                let reason = error.to_string();
                let reason = reason.split(" (os error").next().unwrap_or_default();
                tell(format_args!("nfct_labelmap_new: {reason}"));
                LabelNames::default()
            }
        };
        for name in &self.wanted_labels {
            let Some(bit) = names.bit(name) else { return usage(format!("unknown label '{name}'")) };
            // No flow has a bit that does not exist.
            self.nothing_labelled |= !self.filter.labels.get_or_insert_default().insert(bit);
        }
        Ok(Some(names))
    }

    /// What is missing, or may not stand with this command: of several the first in the order of the table.
    fn check_options(&self, letter: char) -> Result<(), Failure> {
        let needed = match letter {
            'G' => "p",
            'I' | 'A' => "pt",
            'g' | 'd' => "sdp12",
            _ => "",
        };
        let is_given = |option: &Opt| self.given.iter().any(|given| given.letter == option.letter);
        for option in OPTIONS.iter().chain(of_protocol(self.filter.protocol)) {
            if needed.contains(option.letter) && !is_given(option) {
                let name = option.names[0];
                return usage(format!("You need to supply the `--{name}' option for this command"));
            }
            if is_given(option) && !option.commands.contains(letter) {
                return usage(format!("Illegal option `--{}' with this command", option.names[0]));
            }
        }
        Ok(())
    }

    fn apply_masks(&mut self) -> Result<(), Failure> {
        let Side { source, destination, .. } = &mut self.filter.original;
        for (name, mask, net) in [("src", self.masks[0], source), ("dst", self.masks[1], destination)] {
            let Some(mask) = mask else { continue };
            let Some(net) = net else {
                return usage(format!("Can't use --mask-{name} without --{name}"));
            };
            *net = IpNet::with_netmask(net.addr(), mask)
                .map_err(|_| Failure::Usage("Invalid netmask".to_owned()))?;
        }
        Ok(())
    }

    fn arguments(self, command: Command, labels: Option<LabelNames>) -> Arguments {
        Arguments {
            command,
            filter: self.filter,
            format: self.format,
            zero: self.zero,
            timeout: self.timeout,
            tags: self.tags,
            dccp_state: self.dccp_state,
            role: self.role,
            groups: self.groups,
            buffer: self.buffer,
            timed: self.timed,
            labels,
            nothing_labelled: self.nothing_labelled,
            nothing_matches: self.status.is_some_and(|bits| bits.is_empty()),
        }
    }
}

fn is_expect(word: Option<&str>) -> bool {
    word.is_some_and(|word| !word.is_empty() && "expect".starts_with(word))
}

fn table(word: Option<&str>) -> Result<Table, Failure> {
    let tables =
        [("conntrack", Table::Conntrack), ("dying", Table::Dying), ("unconfirmed", Table::Unconfirmed)];
    let Some(word) = word else { return Ok(Table::Conntrack) };
    let found = tables.into_iter().find(|(name, _)| !word.is_empty() && name.starts_with(word));
    found.map(|(_, table)| table).ok_or_else(|| Failure::Usage(format!("unknown type `{word}'")))
}

fn protocol(text: &str) -> Result<Protocol, Failure> {
    let numbered = c_number(text).and_then(|number| u8::try_from(number).ok()).map(Protocol);
    let found =
        sluicegate_conntrack::protocol::from_name(text).or(numbered).or_else(|| in_protocols_file(text));
    found.ok_or_else(|| Failure::Usage(format!("`{text}' unsupported protocol")))
}

/// A name or alias of `/etc/protocols`, where `getprotobyname` looks.
fn in_protocols_file(name: &str) -> Option<Protocol> {
    let file = std::fs::read_to_string("/etc/protocols").ok()?;
    file.lines().find_map(|line| {
        let mut words = line.split('#').next()?.split_whitespace();
        let (first, number) = (words.next()?, words.next()?);
        (first == name || words.any(|alias| alias == name)).then(|| number.parse().ok().map(Protocol))?
    })
}

fn mark(text: &str) -> Result<MarkMatch, Failure> {
    let (value, mask) = text.split_once('/').unwrap_or((text, "0xffffffff"));
    match (c_number(value), c_number(mask)) {
        (Some(value), Some(mask)) => Ok(MarkMatch { value, mask }),
        _ => usage(format!("Invalid mark `{text}'")),
    }
}

/// A number as C writes it: decimal, 0x and hexadecimal, 0 and octal.
fn c_number(text: &str) -> Option<u32> {
    let (digits, radix) = match text {
        "0" => ("0", 10),
        _ => match (text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")), text.strip_prefix('0')) {
            (Some(digits), _) => (digits, 16),
            (None, Some(digits)) => (digits, 8),
            (None, None) => (text, 10),
        },
    };
    if digits.starts_with(['+', '-']) { None } else { u32::from_str_radix(digits, radix).ok() }
}

fn zone(text: &str) -> Result<u16, Failure> {
    let number = c_number(text).and_then(|number| u16::try_from(number).ok());
    number.ok_or_else(|| Failure::Usage(format!("Invalid zone `{text}'")))
}

fn host(text: &str) -> Option<IpAddr> {
    if text.contains(':') { text.parse().ok() } else { aton(text).map(IpAddr::V4) }
}

/// Reads one to four numbers as `inet_aton(3)` does, which conntrack(8) asks: the last fills the bytes that are
/// left, so that `10` is 0.0.0.10.
fn aton(text: &str) -> Option<Ipv4Addr> {
    let mut parts = text.split('.').map(c_number).collect::<Option<Vec<_>>>()?;
    let last = parts.pop().filter(|_| parts.len() < 4)?;
    let mut bits = 0;
    for (part, shift) in parts.iter().zip([24, 16, 8]) {
        bits |= u32::from(u8::try_from(*part).ok()?) << shift;
    }
    let most = u32::MAX.checked_shr(8 * u32::try_from(parts.len()).ok()?)?;
    (last <= most).then(|| Ipv4Addr::from(bits | last))
}

fn number<N: std::str::FromStr>(text: &str, what: &str) -> Result<N, Failure> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| plain).ok_or_else(|| Failure::Usage(format!("Invalid {what} `{text}'")))
}

/// The parts of a list, each with all that is left of the text from it on.
fn list(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let here = rest?;
        let (part, next) = here.split_once(',').map_or((here, None), |(part, next)| (part, Some(next)));
        rest = next;
        Some((part, here))
    })
}

fn begins(name: &str, part: &str) -> bool {
    !part.is_empty() && name.get(..part.len()).is_some_and(|start| start.eq_ignore_ascii_case(part))
}

pub(crate) fn usage<T>(message: impl Into<String>) -> Result<T, Failure> {
    Err(Failure::Usage(message.into()))
}

/// Where the names of labels are.
const LABELS_FILE: &str = "/etc/xtables/connlabel.conf";
