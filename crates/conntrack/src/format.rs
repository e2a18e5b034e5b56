//! Prints flows as conntrack(8) 1.4.7 does.

use std::fmt::{self, Display, Formatter};

use crate::protocol::{Name, family_name, name as protocol_name};
use crate::tuple::{Inet, Transport};
use crate::{
    Counters, Expectation, ExpectationFlags, Flow, LabelNames, Labels, Layer4, Protocol, ProtocolInfo,
    Status, TcpState, Tuple,
};

/// The output formats of flows: conntrack(8)'s `-o`.
///
/// ```
/// # use sluicegate_conntrack::{Flow, Format};
/// # fn show(flow: &Flow) {
/// println!("{}", Format { layer3: true, id: true, ..Format::default() }.flow(flow)); // -o extended,id
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Format {
    /// A line, an element of XML, or a command.
    pub layout: Layout,
    /// `extended`: the family comes first. XML and commands have it anyway.
    pub layer3: bool,
    /// `id`: the id comes last. XML has it anyway.
    pub id: bool,
    /// `ktimestamp`: the times of creation and deletion are printed, in UTC.
    pub timestamps: bool,
    /// The event of the flow, which determines the words before a line, the type of an element, and the
    /// command.
    pub verb: Verb,
    /// The current time in seconds of Unix time, from which the age of the flow is computed (`delta-time`).
    pub now: u64,
    /// Whether an element of XML has that time in UTC, as the time at which an event was received
    /// (`timestamp`).
    pub when: bool,
}

/// The shape of a flow's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Layout {
    /// The form of `/proc/net/nf_conntrack`.
    #[default]
    Line,
    /// An element `flow` (`-o xml`).
    Xml,
    /// The commands that `conntrack -R` reads (`-o save`).
    Save,
}

/// The event of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Verb {
    /// No event: the flow is listed.
    #[default]
    Listed,
    /// The flow was deleted by a command.
    Deleted,
    /// The flow was created (event).
    New,
    /// The flow has changed (event).
    Update,
    /// The flow was destroyed (event).
    Destroy,
}

impl Format {
    /// Returns the flow's text, without a newline.
    pub fn flow<'a>(&'a self, flow: &'a Flow) -> impl Display + 'a {
        Shown { format: self, flow, names: None }
    }

    /// Returns the flow's text with its labels (`labels`), as far as they have a name.
    pub fn labelled<'a>(&'a self, flow: &'a Flow, names: &'a LabelNames) -> impl Display + 'a {
        Shown { format: self, flow, names: Some(names) }
    }

    /// Returns the expectation's text, without a newline. There is no command that makes one: for
    /// [`Layout::Save`] it is that of [`Layout::Line`].
    pub fn expectation<'a>(&'a self, expectation: &'a Expectation) -> impl Display + 'a {
        ShownExpectation { format: self, expectation }
    }
}

/// Prints a line of `conntrack -L`, without the age of the flow, as the current time is not known here.
impl Display for Flow {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let flow = Self { timestamps: None, ..self.clone() };
        Shown { format: &Format::default(), flow: &flow, names: None }.fmt(f)
    }
}

struct Shown<'a> {
    format: &'a Format,
    flow: &'a Flow,
    names: Option<&'a LabelNames>,
}

impl Display for Shown<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.format.layout {
            Layout::Line => self.line(f),
            Layout::Xml => self.xml(f),
            Layout::Save => self.save(f),
        }
    }
}

impl Shown<'_> {
    fn line(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let flow = self.flow;
        f.write_str(self.format.verb.before_line())?;
        if self.format.layer3 {
            write!(f, "{:<8} {} ", family_name(flow.family()), flow.family().number())?;
        }
        let protocol = flow.original.protocol;
        write!(f, "{:<8} {}", protocol_name(protocol).unwrap_or("unknown"), protocol.0)?;
        option(f, " ", flow.timeout)?;
        if let Some(info) = flow.protocol_info {
            write!(f, " {}", StateName(info))?;
        }
        direction(f, &flow.original, " zone-orig=", flow.counters[0])?;
        let status = flow.status;
        if status.is_some_and(|status| !status.contains(Status::SEEN_REPLY)) {
            f.write_str(" [UNREPLIED]")?;
        }
        direction(f, &flow.reply, " zone-reply=", flow.counters[1])?;
        let status = status.unwrap_or_default();
        if status.contains(Status::HW_OFFLOAD) {
            f.write_str(" [HW_OFFLOAD]")?;
        } else if status.contains(Status::OFFLOAD) {
            f.write_str(" [OFFLOAD]")?;
        } else if status.contains(Status::ASSURED) {
            f.write_str(" [ASSURED]")?;
        }
        option(f, " mark=", flow.mark)?;
        option(f, " secmark=", flow.security_mark)?;
        option(f, " secctx=", flow.security_context.as_ref())?;
        option(f, " zone=", flow.zone)?;
        self.times(f)?;
        option(f, " helper=", flow.helper.as_ref())?;
        option(f, " use=", flow.in_use)?;
        option(f, " id=", flow.id.filter(|_| self.format.id))?;
        let labels: Vec<_> = self.labels().collect();
        option(f, " labels=", Some(labels.join(",")).filter(|labels| !labels.is_empty()))
    }

    /// Returns the names of the flow's labels.
    fn labels(&self) -> impl Iterator<Item = &str> {
        let bits = self.flow.labels.iter().flat_map(Labels::bits);
        bits.filter_map(|bit| self.names?.name(bit))
    }

    /// Returns whether times are printed. conntrack(8) leaves them out of what it has deleted.
    fn has_times(&self) -> bool {
        self.format.timestamps && self.format.verb != Verb::Deleted
    }

    fn times(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Some(times) = self.flow.timestamps else { return Ok(()) };
        write!(f, " delta-time={}", self.seconds(times.start, times.stop))?;
        if self.has_times() {
            write!(f, " [start={}]", Calendar::of(times.start / NANOSECONDS))?;
            if let Some(stop) = times.stop {
                write!(f, " [stop={}]", Calendar::of(stop / NANOSECONDS))?;
            }
        }
        Ok(())
    }

    /// Returns the age of the flow, or its lifetime if it has ended, in seconds.
    fn seconds(&self, start: u64, stop: Option<u64>) -> u64 {
        let end = stop.map_or(self.format.now, |stop| stop / NANOSECONDS);
        end.saturating_sub(start / NANOSECONDS)
    }

    fn xml(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let flow = self.flow;
        f.write_str(self.format.verb.element())?;
        xml_direction(f, "original", &flow.original, flow.counters[0])?;
        xml_direction(f, "reply", &flow.reply, flow.counters[1])?;
        f.write_str("<meta direction=\"independent\">")?;
        match flow.protocol_info {
            // conntrack(8) prints the TCP state that has the number of the state of SCTP or DCCP.
            Some(ProtocolInfo::Sctp { state, .. }) => element(f, "state", Some(TcpState(state.0)))?,
            Some(ProtocolInfo::Dccp { state, .. }) => element(f, "state", Some(TcpState(state.0)))?,
            Some(info @ ProtocolInfo::Tcp { .. }) => element(f, "state", Some(StateName(info)))?,
            None => {}
        }
        element(f, "timeout", flow.timeout)?;
        element(f, "mark", flow.mark)?;
        element(f, "secmark", flow.security_mark)?;
        element(f, "secctx", flow.security_context.as_ref().map(|name| Escaped(name)))?;
        element(f, "zone", flow.zone)?;
        let mut labels = self.labels().peekable();
        if labels.peek().is_some() {
            f.write_str("<labels>")?;
            labels.try_for_each(|label| element(f, "label", Some(label)))?;
            f.write_str("</labels>")?;
        }
        element(f, "use", flow.in_use)?;
        element(f, "id", flow.id)?;
        let status = flow.status.unwrap_or(Status::SEEN_REPLY);
        if status.contains(Status::ASSURED) {
            f.write_str("<assured/>")?;
        }
        if !status.contains(Status::SEEN_REPLY) {
            f.write_str("<unreplied/>")?;
        }
        if let Some(times) = flow.timestamps {
            if self.has_times() {
                f.write_str("<timestamp>")?;
                element(f, "start", Some(times.start))?;
                element(f, "stop", times.stop)?;
                f.write_str("</timestamp>")?;
            }
            element(f, "deltatime", Some(self.seconds(times.start, times.stop)))?;
        }
        element(f, "helper", flow.helper.as_ref().map(|name| Escaped(name)))?;
        f.write_str("</meta>")?;
        when(f, self.format)?;
        f.write_str("</flow>")
    }

    fn save(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let flow = self.flow;
        f.write_str(match self.format.verb {
            Verb::Listed | Verb::New => "-A",
            Verb::Update => "-U",
            Verb::Deleted | Verb::Destroy => "-D",
        })?;
        option(f, " -t ", flow.timeout)?;
        if let Some(status) = flow.status {
            let set = SAVED_STATUS.iter().filter(|(_, bit)| status.contains(*bit));
            let names: Vec<_> = set.map(|(name, _)| *name).collect();
            write!(f, " -u {}", if names.is_empty() { "UNSET".to_owned() } else { names.join(",") })?;
        }
        option(f, " -w ", flow.zone)?;
        option(f, " --orig-zone ", flow.original.zone)?;
        option(f, " --reply-zone ", flow.reply.zone)?;
        // A translation of the port alone is in the ports of the reply direction, and not said otherwise.
        let source_is_other = flow.has(Status::SRC_NAT) && flow.reply.destination() != flow.original.source();
        let destination_is_other =
            flow.has(Status::DST_NAT) && flow.reply.source() != flow.original.destination();
        write!(f, " -s {} -d {}", Inet(flow.original.source()), Inet(flow.original.destination()))?;
        let reply = |translated, option, plain| if translated { option } else { plain };
        write!(f, " {} {}", reply(destination_is_other, "-g", "-r"), Inet(flow.reply.source()))?;
        write!(f, " {} {}", reply(source_is_other, "-n", "-q"), Inet(flow.reply.destination()))?;
        self.save_transport(f)
    }

    fn save_transport(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let flow = self.flow;
        let protocol = flow.original.protocol;
        match (flow.original.layer4, flow.reply.layer4) {
            (Layer4::Icmp { kind, code, id }, _) if protocol.is_icmp() => {
                let protocol = Name(protocol);
                return write!(
                    f,
                    " -p {protocol} --{protocol}-type {kind} --{protocol}-code {code} --{protocol}-id {id}"
                );
            }
            (
                Layer4::Ports { source, destination },
                Layer4::Ports { source: reply_source, destination: reply_destination },
            ) => {
                let [sport, dport, reply_src, reply_dst] = match protocol {
                    Protocol::GRE => ["srckey", "dstkey", "reply-key-src", "reply-key-dst"],
                    _ => ["sport", "dport", "reply-port-src", "reply-port-dst"],
                };
                write!(f, " -p {} --{sport} {source} --{dport} {destination}", Name(protocol))?;
                write!(f, " --{reply_src} {reply_source} --{reply_dst} {reply_destination}")?;
            }
            _ => write!(f, " -p {}", Name(protocol))?,
        }
        match flow.protocol_info {
            Some(info @ ProtocolInfo::Sctp { tags, .. }) => {
                // conntrack(8) reads and writes the tags, which are in network byte order, in host byte
                // order.
                let [original, reply] = tags.map(u32::from_be);
                write!(f, " --state {} --orig-vtag {original} --reply-vtag {reply}", StateName(info))
            }
            Some(info @ ProtocolInfo::Dccp { role, .. }) => {
                let role = if role == 0 { "client" } else { "server" };
                write!(f, " --state {} --role {role}", StateName(info))
            }
            Some(info) => write!(f, " --state {}", StateName(info)),
            None => Ok(()),
        }
    }
}

struct ShownExpectation<'a> {
    format: &'a Format,
    expectation: &'a Expectation,
}

impl Display for ShownExpectation<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.format.layout == Layout::Xml { self.xml(f) } else { self.line(f) }
    }
}

impl ShownExpectation<'_> {
    fn line(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Expectation { expected, mask, master, .. } = self.expectation;
        f.write_str(self.format.verb.before_line())?;
        write!(f, "{} proto={}", self.expectation.timeout.unwrap_or(0), expected.protocol.0)?;
        for (tuple, name) in [(expected, ""), (mask, "mask-"), (master, "master-")] {
            let (source, destination) = (Inet(tuple.source()), Inet(tuple.destination()));
            write!(f, " {name}src={source} {name}dst={destination}{}", Transport(tuple))?;
        }
        option(f, " zone=", self.expectation.zone)?;
        let flags: Vec<_> = self.flags().map(|(name, _)| name).collect();
        option(f, " ", Some(flags.join(",")).filter(|flags| !flags.is_empty()))?;
        option(f, " class=", self.expectation.class)?;
        option(f, " helper=", self.expectation.helper.as_ref())
    }

    fn xml(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Expectation { expected, mask, master, .. } = self.expectation;
        let tuples = [("expected", expected), ("mask", mask), ("master", master)];
        let (family, protocol) = (expected.family(), expected.protocol);
        f.write_str(self.format.verb.element())?;
        write!(f, "<layer3 protonum=\"{}\" protoname=\"{}\">", family.number(), family_name(family))?;
        for (name, tuple) in tuples {
            write!(f, "<{name}>")?;
            element(f, "src", Some(Inet(tuple.source())))?;
            element(f, "dst", Some(Inet(tuple.destination())))?;
            write!(f, "</{name}>")?;
        }
        let known = protocol_name(protocol).unwrap_or("unknown");
        write!(f, "</layer3><layer4 protonum=\"{}\" protoname=\"{known}\">", protocol.0)?;
        for (name, tuple) in tuples {
            write!(f, "<{name}>")?;
            xml_transport(f, tuple)?;
            write!(f, "</{name}>")?;
        }
        f.write_str("</layer4><meta>")?;
        element(f, "helper-name", self.expectation.helper.as_ref().map(|name| Escaped(name)))?;
        element(f, "timeout", self.expectation.timeout)?;
        element(f, "class", self.expectation.class)?;
        element(f, "zone", self.expectation.zone)?;
        when(f, self.format)?;
        for (_, name) in self.flags() {
            write!(f, "<{name}/>")?;
        }
        f.write_str("</meta></flow>")
    }

    /// Returns the names of the flags, in a line and in XML.
    fn flags(&self) -> impl Iterator<Item = (&'static str, &'static str)> + '_ {
        let flags = [
            (ExpectationFlags::PERMANENT, ("PERMANENT", "permanent")),
            (ExpectationFlags::INACTIVE, ("INACTIVE", "inactive")),
            (ExpectationFlags::USERSPACE, ("USERSPACE", "userspace")),
        ];
        let set = flags.into_iter().filter(|(flag, _)| self.expectation.flags.contains(*flag));
        set.map(|(_, names)| names)
    }
}

impl Verb {
    /// Returns the words before a line.
    const fn before_line(self) -> &'static str {
        match self {
            Self::Listed | Self::Deleted => "",
            Self::New => "    [NEW] ",
            Self::Update => " [UPDATE] ",
            Self::Destroy => "[DESTROY] ",
        }
    }

    /// Returns the beginning of an element.
    const fn element(self) -> &'static str {
        match self {
            Self::Listed | Self::Deleted => "<flow>",
            Self::New => "<flow type=\"new\">",
            Self::Update => "<flow type=\"update\">",
            Self::Destroy => "<flow type=\"destroy\">",
        }
    }
}

/// Prints the time at which an event was received, if it is to be printed.
fn when(f: &mut Formatter<'_>, format: &Format) -> fmt::Result {
    if !format.when {
        return Ok(());
    }
    let Calendar { weekday, day, month, year, hour, minute, second } = Calendar::of(format.now);
    write!(f, "<when><hour>{hour}</hour><min>{minute}</min><sec>{second}</sec><wday>{}</wday>", weekday + 1)?;
    write!(f, "<day>{day}</day><month>{month}</month><year>{year}</year></when>")
}

/// The statuses that a command can set, in the order of their bits.
const SAVED_STATUS: [(&str, Status); 6] = [
    ("EXPECTED", Status::EXPECTED),
    ("SEEN_REPLY", Status::SEEN_REPLY),
    ("ASSURED", Status::ASSURED),
    ("FIXED_TIMEOUT", Status::FIXED_TIMEOUT),
    ("OFFLOAD", Status::OFFLOAD),
    ("HW_OFFLOAD", Status::HW_OFFLOAD),
];

fn option(f: &mut Formatter<'_>, name: &str, value: Option<impl Display>) -> fmt::Result {
    value.map_or(Ok(()), |value| write!(f, "{name}{value}"))
}

fn element(f: &mut Formatter<'_>, name: &str, value: Option<impl Display>) -> fmt::Result {
    value.map_or(Ok(()), |value| write!(f, "<{name}>{value}</{name}>"))
}

fn direction(f: &mut Formatter<'_>, tuple: &Tuple, zone: &str, counters: Option<Counters>) -> fmt::Result {
    write!(f, " {tuple}")?;
    option(f, zone, tuple.zone)?;
    counters.map_or(Ok(()), |counters| write!(f, " packets={} bytes={}", counters.packets, counters.bytes))
}

fn xml_direction(
    f: &mut Formatter<'_>,
    name: &str,
    tuple: &Tuple,
    counters: Option<Counters>,
) -> fmt::Result {
    let (family, protocol) = (tuple.family(), tuple.protocol);
    let family_name = family_name(family);
    write!(
        f,
        "<meta direction=\"{name}\"><layer3 protonum=\"{}\" protoname=\"{family_name}\">",
        family.number()
    )?;
    element(f, "src", Some(Inet(tuple.source())))?;
    element(f, "dst", Some(Inet(tuple.destination())))?;
    let known = protocol_name(protocol).unwrap_or("unknown");
    write!(f, "</layer3><layer4 protonum=\"{}\" protoname=\"{known}\">", protocol.0)?;
    xml_transport(f, tuple)?;
    f.write_str("</layer4>")?;
    element(f, "zone", tuple.zone)?;
    if let Some(Counters { packets, bytes }) = counters {
        write!(f, "<counters><packets>{packets}</packets><bytes>{bytes}</bytes></counters>")?;
    }
    f.write_str("</meta>")
}

fn xml_transport(f: &mut Formatter<'_>, tuple: &Tuple) -> fmt::Result {
    match tuple.shown_ports() {
        Some((source, destination)) if tuple.protocol == Protocol::GRE => {
            write!(f, "<srckey>{source:#x}</srckey><dstkey>{destination:#x}</dstkey>")
        }
        Some((source, destination)) => write!(f, "<sport>{source}</sport><dport>{destination}</dport>"),
        None => Ok(()),
    }
}

/// Prints the name of a state as conntrack(8) does: `NONE` for an unknown one.
struct StateName(ProtocolInfo);

impl Display for StateName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let name = match self.0 {
            ProtocolInfo::Tcp { state } => state.name(),
            ProtocolInfo::Dccp { state, .. } => state.name(),
            ProtocolInfo::Sctp { state, .. } => state.name(),
        };
        f.write_str(name.unwrap_or("NONE"))
    }
}

/// Prints text with the escapes of XML.
struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '&' => f.write_str("&amp;")?,
                c => write!(f, "{c}")?,
            }
        }
        Ok(())
    }
}

/// A calendar time in UTC. It prints as by `ctime`: `Sat Nov 21 05:17:15 2026`.
struct Calendar {
    /// The day of the week; Sunday is 0.
    weekday: u64,
    day: u64,
    /// The month; January is 1.
    month: u64,
    year: u64,
    hour: u64,
    minute: u64,
    second: u64,
}

impl Calendar {
    /// Returns the time for these seconds of Unix time. 1970 began on a Thursday.
    fn of(seconds: u64) -> Self {
        let (days, rest) = (seconds / DAY, seconds % DAY);
        // Days since 1 March of the year 0, in eras of 400 years (H. Hinnant, days_from_civil).
        let shifted = days + 719_468;
        let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let from_march = (5 * day_of_year + 2) / 153;
        Self {
            weekday: (days + 4) % 7,
            day: day_of_year - (153 * from_march + 2) / 5 + 1,
            month: (from_march + 2) % 12 + 1,
            year: era * 400 + year_of_era + u64::from(from_march >= 10),
            hour: rest / 3600,
            minute: rest / 60 % 60,
            second: rest % 60,
        }
    }
}

impl Display for Calendar {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let name = |names: &[&'static str], at: u64| {
            usize::try_from(at).ok().and_then(|at| names.get(at).copied()).unwrap_or_default()
        };
        let Self { weekday, day, month, year, hour, minute, second } = *self;
        let (weekday, month) = (name(&WEEKDAYS, weekday), name(&MONTHS, month - 1));
        write!(f, "{weekday} {month} {day:>2} {hour:02}:{minute:02}:{second:02} {year}")
    }
}

const WEEKDAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const DAY: u64 = 86_400;
const NANOSECONDS: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        // date -u -d @N '+%a %b %e %T %Y'
        let cases = [
            (0, "Thu Jan  1 00:00:00 1970"),
            (951_782_400, "Tue Feb 29 00:00:00 2000"),
            (1_795_238_235, "Sat Nov 21 05:17:15 2026"),
            (4_107_542_399, "Sun Feb 28 23:59:59 2100"),
            (4_107_542_400, "Mon Mar  1 00:00:00 2100"),
        ];
        for (seconds, text) in cases {
            assert_eq!(Calendar::of(seconds).to_string(), text);
        }
    }
}
