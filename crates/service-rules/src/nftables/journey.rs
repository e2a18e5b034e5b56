//! Follows packets through the kernel by native trace (`meta nftrace`), to compare what happens with what
//! [`explain`](crate::explain::explain) says must happen.
//!
//! A [`Tracer`] adds a table of its own, whose rules mark the packets. The table belongs to its socket, so
//! that the kernel deletes it with the program, however that ends. Packets are marked after connection
//! tracking has seen them, as only those that open a connection are looked up in the rules of services.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use sluicegate_netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables as nft;
use sluicegate_nftables::expr::{Data, MetaKey};
use sluicegate_nftables::lang::{Expression, Mangle, Match, Payload, Statement, Verdict};
use sluicegate_nftables::monitor::{Event, Monitor, TRACE_GROUP, Trace, TraceStep};
use sluicegate_nftables::{
    Chain, ChainType, Hook, Policy, Priority, Table, TableFlags, TableId, Transaction, read,
};

use super::schema::{fixed_name, is_new, nft_protocol};
use crate::Error;
use crate::explain::{Explanation, Question, Source};

/// The way of one packet through the rulesets of all tables.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Journey {
    /// Its source when it was first seen.
    pub from: SocketAddr,
    /// Its destination when it was first seen.
    pub to: SocketAddr,
    /// Its IP protocol.
    pub protocol: u8,
    /// The steps, in order.
    pub hops: Vec<Hop>,
    /// What became of it.
    pub end: End,
}

/// One step of a packet: a rule that it matched, or the policy at the end of a base chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The table, with its family: `ip kube-proxy`.
    pub table: String,
    /// The chain.
    pub chain: String,
    /// The text of the rule; `None` for the policy of the chain.
    pub rule: Option<String>,
    /// The verdict: `accept`, `goto reject-chain`.
    pub verdict: String,
}

/// The end of a packet's way: forwarded, refused, dropped or untouched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// It left for this address, which is another than it was sent to.
    Forwarded {
        /// The address.
        to: SocketAddr,
        /// The table whose rule changed its source, if one did.
        masqueraded: Option<String>,
    },
    /// A rule of this table refused it.
    Refused(String),
    /// A rule or the policy of this table dropped it.
    Dropped(String),
    /// It left for the address that it was sent to.
    Untouched,
}

impl Journey {
    /// Returns the address that the packet goes to, as far as it is known.
    #[must_use]
    pub const fn destination(&self) -> SocketAddr {
        match &self.end {
            End::Forwarded { to, .. } => *to,
            _ => self.to,
        }
    }

    /// Returns how the packet's way differs from that of an explanation; `None` when they agree.
    #[must_use]
    pub fn disagreement(&self, explanation: &Explanation) -> Option<String> {
        use crate::explain::Verdict as Said;
        let differs =
            || Some(format!("expected the packet to be {}, but it was {}", explanation.verdict, self.end));
        match (&explanation.verdict, &self.end) {
            (Said::Refused(_), End::Refused(_))
            | (Said::Dropped(_), End::Dropped(_))
            | (Said::Untouched(_), End::Untouched) => None,
            (Said::Forwarded { choices, .. }, End::Forwarded { to, masqueraded }) => {
                let Some(choice) = choices.iter().find(|choice| choice.endpoint == *to) else {
                    return differs();
                };
                let is_wanted = choice.source == Source::Node;
                (is_wanted != masqueraded.is_some()).then(|| {
                    format!(
                        "expected the source that {to} sees to be {}, but the packet was {}",
                        choice.source, self.end
                    )
                })
            }
            _ => differs(),
        }
    }
}

impl fmt::Display for Journey {
    /// Prints every step on a line, and the end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "packet {} -> {}", self.from, self.to)?;
        for Hop { table, chain, rule, verdict } in &self.hops {
            match rule {
                Some(rule) => writeln!(f, "  {table} {chain}: {rule} ({verdict})")?,
                None => writeln!(f, "  {table} {chain}: policy {verdict}")?,
            }
        }
        writeln!(f, "it was {}", self.end)
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Forwarded { to, masqueraded: None } => write!(f, "forwarded to {to} with its own source"),
            Self::Forwarded { to, masqueraded: Some(table) } => {
                write!(f, "forwarded to {to}, masqueraded by table {table}")
            }
            Self::Refused(table) => write!(f, "refused by table {table}"),
            Self::Dropped(table) => write!(f, "dropped by table {table}"),
            Self::Untouched => f.write_str("let through to the address that it was sent to"),
        }
    }
}

/// Marks packets, and reads what the kernel tells of them.
#[derive(Debug)]
pub struct Tracer {
    /// The owner of the table.
    owner: Socket,
    monitor: Monitor,
    /// The only packet of interest: what others mark is heard as well.
    question: Option<Question>,
}

impl Tracer {
    /// Marks every packet, in the network namespace of the calling thread, that opens a connection from the
    /// source to the destination of `question`.
    ///
    /// # Errors
    /// [`Error`] without `CAP_NET_ADMIN`, or when the kernel refuses the table.
    pub fn of(question: &Question) -> Result<Self, Error> {
        let (family, source, destination) = match question.to.ip() {
            IpAddr::V4(_) => (nft::Family::IP, Payload::IP_SADDR, Payload::IP_DADDR),
            IpAddr::V6(_) => (nft::Family::IP6, Payload::IP6_SADDR, Payload::IP6_DADDR),
        };
        let matches = [
            Match::new(source, Expression::from(question.from)).into(),
            Match::new(destination, Expression::from(question.to.ip())).into(),
            Match::new(MetaKey::L4PROTO, nft_protocol(question.protocol)).into(),
            Match::new(Payload::TH_DPORT, nft::Port(question.to.port())).into(),
        ];
        let tracer = Self::marking(family, matches)?;
        Ok(Self { question: Some(question.clone()), ..tracer })
    }

    /// Marks every packet of both families that opens a connection.
    ///
    /// # Errors
    /// As [`Tracer::of`].
    pub fn of_all() -> Result<Self, Error> {
        Self::marking(nft::Family::INET, [])
    }

    fn marking(family: nft::Family, matches: impl IntoIterator<Item = Statement>) -> Result<Self, Error> {
        let opened = |options: &Options| Socket::open(NetlinkFamily::NETFILTER, options);
        let failed = |source| Error::netlink("opening a socket for traces", source);
        let mut owner = opened(&Options::default()).map_err(failed)?;
        // Every step of every packet is a message.
        let mut options = Options::default();
        (options.timeout, options.receive_buffer) = (STEP, BUFFER);
        let mut listener = opened(&options).map_err(failed)?;
        listener.join(TRACE_GROUP).map_err(failed)?;
        // Of every program its own.
        let table = TableId::new(family, fixed_name(&format!("{MARKING}{}", std::process::id())));
        let mark: Statement = Mangle::new(MetaKey::NFTRACE, 1_u32).into();
        let rule: Vec<_> = [is_new()].into_iter().chain(matches).chain([mark]).collect();
        let mut transaction = Transaction::new();
        transaction.add(Table::new(table.clone()).flags(TableFlags::OWNER));
        for (name, hook) in [("prerouting", Hook::Prerouting), ("output", Hook::Output)] {
            let id = table.chain(fixed_name(name));
            transaction.add(Chain::base(id.clone(), ChainType::Filter, hook, AFTER_CONNTRACK));
            transaction.add(rule.iter().cloned().fold(id.rule(), nft::Rule::then));
        }
        let applied = transaction.apply(&mut owner);
        applied.map_err(|source| Error::nftables("adding the table that marks packets", source))?;
        Ok(Self { owner, monitor: Monitor::with_transport(listener), question: None })
    }

    /// Waits at most `patience` for a packet, and returns its way; `None` if none came. Of several packets,
    /// the first counts.
    ///
    /// # Errors
    /// [`Error`] when messages were lost, or cannot be read.
    pub fn next(&mut self, patience: Duration) -> Result<Option<Journey>, Error> {
        let until = Instant::now() + patience;
        loop {
            // The last step of a packet is not marked as such: it is where no more comes.
            let found = self.drain()?.into_iter().find(|journey| self.is_of_interest(journey));
            if found.is_some() || Instant::now() >= until {
                return Ok(found);
            }
        }
    }

    fn is_of_interest(&self, journey: &Journey) -> bool {
        self.question.as_ref().is_none_or(|question| {
            let protocol = nft_protocol(question.protocol).0;
            (question.from, question.to, protocol) == (journey.from.ip(), journey.to, journey.protocol)
        })
    }

    /// Returns the ways of all packets, until none came for a moment.
    ///
    /// # Errors
    /// As [`Tracer::next`].
    pub fn drain(&mut self) -> Result<Vec<Journey>, Error> {
        let mut traces = Vec::new();
        loop {
            let more = self.read()?;
            if more.is_empty() {
                return self.journeys(&traces);
            }
            traces.extend(more);
        }
    }

    fn read(&mut self) -> Result<Vec<Trace>, Error> {
        let failed = |source| Error::netlink("reading traces of packets", source);
        let mut traces = Vec::new();
        for event in self.monitor.events().map_err(failed)? {
            match event {
                Event::Trace(trace) => traces.push(*trace),
                Event::Overrun => return Err(failed(sluicegate_netlink::Error::Overrun)),
                _ => {}
            }
        }
        Ok(traces)
    }

    /// Puts steps together, with the texts of their rules.
    fn journeys(&mut self, traces: &[Trace]) -> Result<Vec<Journey>, Error> {
        let mut tables: Vec<TableId> = Vec::new();
        for trace in traces {
            let id = TableId::new(trace.family, trace.table.clone());
            if !is_marking(&id.name) && !tables.contains(&id) {
                tables.push(id);
            }
        }
        let mut rules = Rules::default();
        for table in &tables {
            let ruleset = read::ruleset(&mut self.owner, table);
            rules.add(&ruleset.map_err(|source| Error::netlink("reading the rules of a trace", source))?);
        }
        Ok(Journeys::of(traces, &rules))
    }
}

/// The text of each rule, and what it does to a packet beyond its verdict.
#[derive(Debug, Default)]
struct Rules(HashMap<(nft::Family, nft::Name, nft::Name, u64), (String, Deed)>);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Deed {
    #[default]
    None,
    Refuses,
    ChangesSource,
}

impl Rules {
    fn add(&mut self, ruleset: &read::Ruleset) {
        for content in ruleset.content() {
            for rule in content.chains.iter().flat_map(|(_, rules)| rules) {
                let deed = |statement: &Statement| match statement {
                    Statement::Reject(_) => Some(Deed::Refuses),
                    Statement::Masquerade(_) | Statement::Snat(_) => Some(Deed::ChangesSource),
                    _ => None,
                };
                let deed = rule.statements.iter().find_map(deed).unwrap_or_default();
                let TableId { family, name } = &rule.chain.table;
                let key = (*family, name.clone(), rule.chain.name.clone(), rule.handle.unwrap_or_default());
                self.0.insert(key, (rule.body().to_string(), deed));
            }
        }
    }

    fn of(&self, trace: &Trace) -> Option<&(String, Deed)> {
        self.0.get(&(trace.family, trace.table.clone(), trace.chain.clone(), trace.rule?))
    }
}

/// Puts the steps of several packets together.
struct Journeys {
    list: Vec<Journey>,
    by_source: HashMap<(SocketAddr, u8), usize>,
    /// The kernel computes the id from where the packet is in memory and the interface that it came in
    /// through: a packet of this node to itself has two.
    by_id: HashMap<u32, usize>,
}

impl Journeys {
    fn of(traces: &[Trace], rules: &Rules) -> Vec<Journey> {
        let mut all = Self { list: Vec::new(), by_source: HashMap::new(), by_id: HashMap::new() };
        for trace in traces {
            all.add(trace, (!is_marking(&trace.table)).then_some(rules));
        }
        all.list
    }

    /// Adds a step; one of the table that marks packets tells no more than their addresses.
    fn add(&mut self, trace: &Trace, rules: Option<&Rules>) {
        let header = Header::of(trace);
        if let Some(header) = header {
            let index = self.index(header, rules.is_none());
            self.by_id.insert(trace.id, index);
        }
        let journey = self.by_id.get(&trace.id).and_then(|index| self.list.get_mut(*index));
        let (Some(journey), Some(rules)) = (journey, rules) else { return };
        // A repetition of a packet that did not get through.
        if matches!(journey.end, End::Refused(_) | End::Dropped(_)) {
            return;
        }
        if let Some(header) = header.filter(|header| header.to != journey.to) {
            let masqueraded = match &journey.end {
                End::Forwarded { masqueraded, .. } => masqueraded.clone(),
                _ => None,
            };
            journey.end = End::Forwarded { to: header.to, masqueraded };
        }
        let rule = rules.of(trace);
        let table = format!("{} {}", trace.family, trace.table);
        let deed = rule.map(|(_, deed)| *deed).unwrap_or_default();
        if is_drop(trace) {
            let by = table.clone();
            journey.end = if deed == Deed::Refuses { End::Refused(by) } else { End::Dropped(by) };
        } else if let (Deed::ChangesSource, End::Forwarded { masqueraded, .. }) = (deed, &mut journey.end) {
            masqueraded.get_or_insert_with(|| table.clone());
        }
        if let Some(verdict) = verdict(trace) {
            // A rule that was deleted meanwhile has its handle left.
            let text = || rule.map(|(text, _)| text.clone());
            let rule = trace.rule.map(|handle| text().unwrap_or_else(|| format!("rule handle {handle}")));
            journey.hops.push(Hop { table, chain: trace.chain.to_string(), rule, verdict });
        }
    }
}

impl Journeys {
    /// Returns the place of a packet, by its source. Where packets are marked begins another one, if it goes
    /// elsewhere than the last one of the same source.
    fn index(&mut self, header: Header, is_marked: bool) -> usize {
        let Header { from, to, protocol } = header;
        let known = self.by_source.get(&(from, protocol)).copied();
        let is_same = |index: &usize| {
            let journey = self.list.get(*index);
            !is_marked || journey.is_some_and(|journey| to == journey.to || to == journey.destination())
        };
        if let Some(index) = known.filter(is_same) {
            return index;
        }
        self.list.push(Journey { from, to, protocol, hops: Vec::new(), end: End::Untouched });
        let index = self.list.len() - 1;
        self.by_source.insert((from, protocol), index);
        index
    }
}

/// Returns whether a table is of a [`Tracer`], ours or another.
fn is_marking(table: &nft::Name) -> bool {
    table.as_str().starts_with(MARKING)
}

/// Returns the words for a verdict; `None` for the end of a chain that is no base chain.
fn verdict(trace: &Trace) -> Option<String> {
    match (trace.step, &trace.verdict, trace.policy) {
        (TraceStep::Policy, _, Some(policy)) => Some(policy.to_string()),
        (_, Some(Data::Verdict(verdict)), _) if trace.rule.is_some() => Some(verdict.to_string()),
        (TraceStep::Rule, ..) if trace.rule.is_some() => Some("continue".to_owned()),
        _ => None,
    }
}

fn is_drop(trace: &Trace) -> bool {
    match trace.step {
        TraceStep::Policy => trace.policy == Some(Policy::Drop),
        _ => matches!(&trace.verdict, Some(Data::Verdict(Verdict::Drop))),
    }
}

/// The addresses of a packet at a step, which the first step in each base chain tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Header {
    from: SocketAddr,
    to: SocketAddr,
    protocol: u8,
}

impl Header {
    fn of(trace: &Trace) -> Option<Self> {
        let header = &trace.network_header;
        let (protocol, source, destination) = match header.first()? >> 4 {
            4 => {
                let ip = |at| Some(IpAddr::from(*header.get(at..)?.first_chunk::<4>()?));
                (*header.get(9)?, ip(12)?, ip(16)?)
            }
            6 => {
                let ip = |at| Some(IpAddr::from(*header.get(at..)?.first_chunk::<16>()?));
                (*header.get(6)?, ip(8)?, ip(24)?)
            }
            _ => return None,
        };
        let port = |at| Some(u16::from_be_bytes(*trace.transport_header.get(at..)?.first_chunk()?));
        Some(Self {
            from: SocketAddr::new(source, port(0)?),
            to: SocketAddr::new(destination, port(2)?),
            protocol,
        })
    }
}

/// The beginning of the name of every table that marks packets.
const MARKING: &str = "sluicegate-trace-";
/// Right after connection tracking, which has priority -200.
const AFTER_CONNTRACK: Priority = Priority(-199);
/// The longest time between two steps of a packet.
const STEP: Duration = Duration::from_millis(500);
const BUFFER: usize = 64 << 20;
