//! Follows packets through the kernel by native trace (`meta nftrace`), to compare what happens with what
//! [`explain`](crate::explain::explain) says must happen.
//!
//! A [`Tracer`] adds a table of its own, whose rules mark the packets. The table belongs to its socket, so
//! that the kernel deletes it with the program, however that ends. Packets are marked before all else, and
//! those of known connections are left alone again once connection tracking has seen them, as only packets
//! that open a connection are looked up in the rules of services.
//!
//! A trace has the steps of nftables alone. So that a packet which routing, `rp_filter` or a rule of
//! iptables-legacy drops is not taken for one that arrived, the table has a chain at the beginning and at the
//! end of each hook as well: a packet has left, or arrived, where the last of them has seen it.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use sluicegate_netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables as nft;
use sluicegate_nftables::expr::{CtKey, Data, MetaKey};
use sluicegate_nftables::lang::{
    CtState, Expression, Mangle, Match, MatchOp, Payload, Statement, TcpFlags, Verdict,
};
use sluicegate_nftables::monitor::{Event, Monitor, TRACE_GROUP, Trace, TraceStep};
use sluicegate_nftables::{
    Chain, ChainType, Hook, Policy, Priority, Table, TableFlags, TableId, Transaction, read,
};
use sluicegate_services::Protocol;

use super::schema::{fixed_name, nft_protocol};
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
    /// It left for this address, and connection tracking has seen no answer.
    Unanswered {
        /// The address.
        to: SocketAddr,
        /// The table whose rule changed its source, if one did.
        masqueraded: Option<String>,
        /// How long an answer was waited for.
        waited: Duration,
    },
    /// It came no further, and no rule of nftables says so.
    Lost {
        /// The address that it was to go to.
        to: SocketAddr,
        /// Where it was last seen.
        place: Place,
        /// The number of the interface that it came in through; `None` for a packet of the node.
        interface: Option<u32>,
    },
}

/// Where in the kernel a packet was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Before connection tracking had taken it up.
    BeforeConntrack,
    /// In this hook.
    Hook(Hook),
    /// Between two hooks, where the kernel looks for a route.
    Routing,
}

impl Journey {
    /// Returns the address that the packet goes to, as far as it is known.
    #[must_use]
    pub const fn destination(&self) -> SocketAddr {
        match &self.end {
            End::Forwarded { to, .. } | End::Unanswered { to, .. } | End::Lost { to, .. } => *to,
            _ => self.to,
        }
    }

    /// Returns how the packet's way differs from that of an explanation; `None` when they agree.
    #[must_use]
    pub fn disagreement(&self, explanation: &Explanation) -> Option<String> {
        use crate::explain::Verdict as Explained;
        let differs =
            || Some(format!("expected the packet to be {}, but it was {}", explanation.verdict, self.end));
        match (&explanation.verdict, &self.end) {
            (Explained::Refused(_), End::Refused(_))
            | (Explained::Dropped(_), End::Dropped(_))
            | (Explained::Untouched(_), End::Untouched) => None,
            (Explained::Forwarded { choices, .. }, End::Forwarded { to, masqueraded }) => {
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

impl Journey {
    /// Looks for a while whether the endpoint of a packet that was forwarded answers.
    ///
    /// The flow of an endpoint that refuses is gone at once, so that a flow which is not there tells nothing.
    fn wait_for_answer(&mut self) -> Result<(), Error> {
        use sluicegate_conntrack::{Client, Error as Conntrack, Protocol, Status, Tuple};

        // Nobody needs to answer a datagram.
        if self.protocol == UDP {
            return Ok(());
        }
        let End::Forwarded { to, masqueraded } = self.end.clone() else { return Ok(()) };
        let Some(tuple) = Tuple::with_ports(Protocol(self.protocol), self.from, self.to) else {
            return Ok(());
        };
        let failed = |source: Conntrack| Error::Backend {
            doing: "looking for the packet's flow",
            source: Box::new(source),
        };
        let mut client = Client::open().map_err(failed)?;
        let began = Instant::now();
        loop {
            let flow = match client.get(&tuple, None) {
                Ok(flow) => flow,
                Err(error) if error.is_not_found() => return Ok(()),
                Err(error) => return Err(failed(error)),
            };
            if flow.status.is_none_or(|status| status.contains(Status::SEEN_REPLY)) {
                return Ok(());
            }
            // The packet has been waited for already, until no more was told of it.
            let waited = STEP + began.elapsed();
            if waited >= ANSWER {
                self.end = End::Unanswered { to, masqueraded, waited };
                return Ok(());
            }
            std::thread::sleep(STEP / 10);
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
            Self::Unanswered { to, masqueraded, waited } => {
                write!(f, "sent on to {to}")?;
                if let Some(table) = masqueraded {
                    write!(f, ", masqueraded by table {table}")?;
                }
                let millis = waited.as_millis();
                write!(f, ", and lost there or on the way: no answer has come within {millis} ms")
            }
            Self::Lost { to, place, .. } => write!(f, "lost {place}, and did not get to {to}"),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BeforeConntrack => {
                f.write_str("before connection tracking took it up, by no rule of nftables")
            }
            Self::Hook(hook) => write!(f, "in the hook {hook}, by no rule of nftables"),
            Self::Routing => f.write_str("where the kernel looks for a route"),
        }
    }
}

/// Marks packets, and reads what the kernel tells of them.
#[derive(Debug)]
pub struct Tracer {
    /// The owner of the table.
    owner: Socket,
    table: nft::Name,
    monitor: Monitor,
    /// The only packet of interest: what others mark is heard as well.
    question: Option<Question>,
}

impl Tracer {
    /// Follows every packet, in the network namespace of the calling thread, that opens a connection from the
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
        let tracer = Self::marking(family, [matches.to_vec()])?;
        Ok(Self { question: Some(question.clone()), ..tracer })
    }

    /// Follows every packet of both families that opens a connection: of TCP, those with SYN and without ACK.
    ///
    /// # Errors
    /// As [`Tracer::of`].
    pub fn of_all() -> Result<Self, Error> {
        let tcp = || nft_protocol(Protocol::Tcp);
        let opening = Expression::from(Payload::TCP_FLAGS).and(TcpFlags::SYN | TcpFlags::ACK);
        // Each packet of a connection is several messages until connection tracking says that it is none of the
        // first ones, and thousands of them in a moment are more than a socket keeps.
        let openers = [
            vec![Match::not(MetaKey::L4PROTO, tcp()).into()],
            vec![
                Match::new(MetaKey::L4PROTO, tcp()).into(),
                Match::with(opening, MatchOp::Eq, TcpFlags::SYN).into(),
            ],
        ];
        Self::marking(nft::Family::INET, openers)
    }

    /// Marks the packets that one of these lists of matches lets through.
    fn marking(
        family: nft::Family,
        openers: impl IntoIterator<Item = Vec<Statement>>,
    ) -> Result<Self, Error> {
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
        let marked = |mark: u32| Statement::from(Mangle::new(MetaKey::NFTRACE, mark));
        let mark: Vec<_> =
            openers.into_iter().map(|opener| opener.into_iter().chain([marked(1)]).collect()).collect();
        let known = Match::new(CtKey::STATE, CtState::ESTABLISHED | CtState::RELATED);
        let mut transaction = Transaction::new();
        transaction.add(Table::new(table.clone()).flags(TableFlags::OWNER));
        let mut add = |name: &str, hook, priority, rules: Vec<Vec<Statement>>| {
            let id = table.chain(fixed_name(name));
            transaction.add(Chain::base(id.clone(), ChainType::Filter, hook, priority));
            for statements in rules {
                transaction.add(statements.into_iter().fold(id.rule(), nft::Rule::then));
            }
        };
        for (start, tracked, old, end, hook) in [
            ("prerouting-start", "prerouting-tracked", "prerouting-old", "prerouting-end", Hook::Prerouting),
            ("output-start", "output-tracked", "output-old", "output-end", Hook::Output),
        ] {
            add(start, hook, FIRST, mark.clone());
            add(tracked, hook, AFTER_CONNTRACK, Vec::new());
            add(old, hook, AFTER_TRACKED, vec![vec![known.clone().into(), marked(0)]]);
            add(end, hook, LAST, Vec::new());
        }
        for (start, end, hook) in [
            ("input-start", "input-end", Hook::Input),
            ("forward-start", "forward-end", Hook::Forward),
            ("postrouting-start", "postrouting-end", Hook::Postrouting),
        ] {
            add(start, hook, FIRST, Vec::new());
            add(end, hook, LAST, Vec::new());
        }
        let applied = transaction.apply(&mut owner);
        applied.map_err(|source| Error::nftables("adding the table that marks packets", source))?;
        let monitor = Monitor::with_transport(listener);
        Ok(Self { owner, table: table.name, monitor, question: None })
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
            if let Some(mut journey) = found {
                journey.wait_for_answer()?;
                return Ok(Some(journey));
            }
            if Instant::now() >= until {
                return Ok(None);
            }
        }
    }

    fn is_of_interest(&self, journey: &Journey) -> bool {
        self.question.as_ref().is_none_or(|question| {
            let protocol = nft_protocol(question.protocol).0;
            let is_port = question.from_port.is_none_or(|port| port.get() == journey.from.port());
            is_port
                && (question.from, question.to, protocol) == (journey.from.ip(), journey.to, journey.protocol)
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
        let failed = |source| Error::reading("reading traces of packets", source);
        let mut traces = Vec::new();
        for event in self.monitor.events().map_err(failed)? {
            match event {
                Event::Trace(trace) => traces.push(*trace),
                Event::Overrun => return Err(failed(sluicegate_netlink::Error::Overrun.into())),
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
            // Rules of others that cannot be read have their handles left.
            if let Ok(ruleset) = read::ruleset(&mut self.owner, table) {
                rules.add(&ruleset);
            }
        }
        Ok(Journeys::of(traces, &rules, &self.table))
    }
}

/// The text of each rule, and what it does to a packet beyond its verdict.
#[derive(Debug, Default)]
struct Rules(HashMap<(nft::Family, nft::Name, nft::Name, u64), (String, Effect)>);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Effect {
    #[default]
    None,
    Refuses,
    ChangesSource,
}

impl Rules {
    fn add(&mut self, ruleset: &read::Ruleset) {
        for content in ruleset.content() {
            for rule in content.chains.iter().flat_map(|(_, rules)| rules) {
                let effect = |statement: &Statement| match statement {
                    Statement::Reject(_) => Some(Effect::Refuses),
                    Statement::Masquerade(_) | Statement::Snat(_) => Some(Effect::ChangesSource),
                    _ => None,
                };
                let effect = rule.statements.iter().find_map(effect).unwrap_or_default();
                let TableId { family, name } = &rule.chain.table;
                let key = (*family, name.clone(), rule.chain.name.clone(), rule.handle.unwrap_or_default());
                self.0.insert(key, (rule.body().to_string(), effect));
            }
        }
    }

    fn of(&self, trace: &Trace) -> Option<&(String, Effect)> {
        self.0.get(&(trace.family, trace.table.clone(), trace.chain.clone(), trace.rule?))
    }
}

/// Puts the steps of several packets together.
struct Journeys {
    list: Vec<InFlight>,
    by_source: HashMap<(SocketAddr, u8), usize>,
    /// The kernel computes the id from where the packet is in memory and the interface that it came in
    /// through: a packet of this node to itself has two.
    by_id: HashMap<u32, usize>,
}

/// A packet whose way is not known to the end.
struct InFlight {
    journey: Journey,
    /// Our own chain that saw it last.
    seen: Watch,
    interface: Option<u32>,
    /// Whether it goes out through the loopback interface, and so comes in again.
    comes_back: bool,
}

/// A chain of a [`Tracer`], by what it tells of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Watch {
    /// Before all else, in the first hook.
    Start,
    /// Connection tracking has taken it up.
    Tracked,
    /// It opens a connection: the trace of others ends here.
    New(Hook),
    Into(Hook),
    OutOf(Hook),
}

impl Watch {
    /// Returns what one of our chains tells; `None` for chains of another version of this program.
    fn of(chain: &str) -> Option<Self> {
        let (hook, part) = chain.rsplit_once('-')?;
        let hook = match hook {
            "prerouting" => Hook::Prerouting,
            "input" => Hook::Input,
            "forward" => Hook::Forward,
            "output" => Hook::Output,
            "postrouting" => Hook::Postrouting,
            _ => return None,
        };
        match part {
            "start" if matches!(hook, Hook::Prerouting | Hook::Output) => Some(Self::Start),
            "start" => Some(Self::Into(hook)),
            "tracked" => Some(Self::Tracked),
            "old" => Some(Self::New(hook)),
            "end" => Some(Self::OutOf(hook)),
            _ => None,
        }
    }
}

impl Journeys {
    /// `own` is the table of the tracer: what those of others see tells nothing of the order of steps.
    fn of(traces: &[Trace], rules: &Rules, own: &nft::Name) -> Vec<Journey> {
        let mut all = Self { list: Vec::new(), by_source: HashMap::new(), by_id: HashMap::new() };
        for trace in traces.iter().filter(|trace| trace.table == *own || !is_marking(&trace.table)) {
            all.add(trace, rules);
        }
        all.list.into_iter().filter_map(InFlight::end).collect()
    }

    /// Adds a step.
    fn add(&mut self, trace: &Trace, rules: &Rules) {
        let header = Header::of(trace);
        let watch = is_marking(&trace.table).then(|| Watch::of(trace.chain.as_str()));
        if let Some(header) = header {
            let index = self.index(header, trace.id, watch.flatten());
            self.by_id.insert(trace.id, index);
            if watch.flatten() == Some(LEFT) {
                // By the source that it has now it may come in again.
                self.by_source.insert((header.from, header.protocol), index);
            }
        }
        let Some(underway) = self.by_id.get(&trace.id).and_then(|index| self.list.get_mut(*index)) else {
            return;
        };
        // A repetition of a packet that did not get through.
        if matches!(underway.journey.end, End::Refused(_) | End::Dropped(_)) {
            return;
        }
        if let Some(header) = header {
            underway.meet(header);
        }
        match watch {
            Some(Some(watch)) => underway.watch(watch, trace),
            Some(None) => {}
            None => underway.step(trace, rules),
        }
    }

    /// Returns the place of a packet, by its source and its id. Where a trace starts begins another one, unless
    /// it has just gone out to this node itself.
    fn index(&mut self, header: Header, id: u32, watch: Option<Watch>) -> usize {
        let Header { from, to, protocol } = header;
        let is_start = watch == Some(Watch::Start);
        let known = self.by_source.get(&(from, protocol)).copied();
        let is_same = |index: &usize| {
            !is_start || self.list.get(*index).is_some_and(|underway| underway.comes_in_again(to))
        };
        let by_id = self.by_id.get(&id).copied().filter(|_| !is_start);
        // Packets of one source that are underway at the same time differ in their ids. What leaves may have
        // got a source that another packet had before. Elsewhere the id of a packet of another source is of
        // one that is gone.
        let is_of_source = |index: &usize| {
            self.list.get(*index).is_some_and(|InFlight { journey, .. }| {
                watch == Some(LEFT) || (journey.from, journey.protocol) == (from, protocol)
            })
        };
        if let Some(index) = by_id.filter(is_of_source).or(known.filter(is_same)).or(by_id) {
            return index;
        }
        let journey = Journey { from, to, protocol, hops: Vec::new(), end: End::Untouched };
        self.list.push(InFlight { journey, seen: Watch::Start, interface: None, comes_back: false });
        let index = self.list.len() - 1;
        self.by_source.insert((from, protocol), index);
        index
    }
}

impl InFlight {
    fn comes_in_again(&self, to: SocketAddr) -> bool {
        let has_left = self.comes_back && self.seen == LEFT;
        has_left && (to == self.journey.to || to == self.journey.destination())
    }

    /// Notes the addresses that the packet has at a step.
    fn meet(&mut self, header: Header) {
        let journey = &mut self.journey;
        if header.to != journey.to {
            let masqueraded = match &journey.end {
                End::Forwarded { masqueraded, .. } => masqueraded.clone(),
                _ => None,
            };
            journey.end = End::Forwarded { to: header.to, masqueraded };
        }
        // Another port alone is the kernel's own choice: it avoids that two flows of a client become one, where
        // they come to one endpoint from the same port (`get_unique_tuple`, net/netfilter/nf_nat_core.c).
        if let End::Forwarded { masqueraded, .. } = &mut journey.end
            && header.from.ip() != journey.from.ip()
        {
            masqueraded.get_or_insert_with(|| "of iptables-legacy".to_owned());
        }
    }

    fn watch(&mut self, watch: Watch, trace: &Trace) {
        match watch {
            // Interfaces are told by the first step in a chain alone.
            Watch::Start if !self.comes_back => {
                self.interface = self.interface.or(trace.iif.map(|device| device.index));
            }
            Watch::OutOf(Hook::Postrouting) => {
                if let Some(device) = trace.oif {
                    self.comes_back = device.kind == LOOPBACK;
                }
            }
            _ => {}
        }
        self.seen = watch;
    }

    fn step(&mut self, trace: &Trace, rules: &Rules) {
        let journey = &mut self.journey;
        let rule = rules.of(trace);
        let table = format!("{} {}", trace.family, trace.table);
        let effect = rule.map(|(_, effect)| *effect).unwrap_or_default();
        if is_drop(trace) {
            let by = table.clone();
            journey.end = if effect == Effect::Refuses { End::Refused(by) } else { End::Dropped(by) };
        } else if let (Effect::ChangesSource, End::Forwarded { masqueraded, .. }) = (effect, &mut journey.end)
        {
            *masqueraded = Some(table.clone());
        }
        if let Some(verdict) = verdict(trace) {
            // A rule that was deleted meanwhile has its handle left.
            let text = || rule.map(|(text, _)| text.clone());
            let rule = trace.rule.map(|handle| text().unwrap_or_else(|| format!("rule handle {handle}")));
            journey.hops.push(Hop { table, chain: trace.chain.to_string(), rule, verdict });
        }
    }

    /// Returns the whole way; `None` for a packet of a known connection, of which no more is told.
    fn end(self) -> Option<Journey> {
        let Self { mut journey, seen, interface, comes_back } = self;
        if matches!(journey.end, End::Refused(_) | End::Dropped(_)) {
            return Some(journey);
        }
        let place = match seen {
            Watch::Start => Place::BeforeConntrack,
            Watch::Tracked if comes_back => return Some(journey),
            Watch::Tracked => return None,
            Watch::New(hook) | Watch::Into(hook) => Place::Hook(hook),
            Watch::OutOf(Hook::Postrouting) if !comes_back => return Some(journey),
            Watch::OutOf(Hook::Input) => return Some(journey),
            Watch::OutOf(_) => Place::Routing,
        };
        journey.end = End::Lost { to: journey.destination(), place, interface };
        Some(journey)
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

/// A packet has got the addresses with which it leaves.
const LEFT: Watch = Watch::OutOf(Hook::Postrouting);
/// The beginning of the name of every table that marks packets.
const MARKING: &str = "sluicegate-trace-";
/// Before all others of a hook.
const FIRST: Priority = Priority(i32::MIN);
/// After all others of a hook but what confirms a flow, the last one.
const LAST: Priority = Priority(i32::MAX - 1);
/// Right after connection tracking, which has priority -200.
const AFTER_CONNTRACK: Priority = Priority(-199);
const AFTER_TRACKED: Priority = Priority(-198);
/// The longest time between two steps of a packet.
const STEP: Duration = Duration::from_millis(500);
/// How long an answer is waited for; what opens a connection is repeated after a second.
const ANSWER: Duration = Duration::from_millis(1500);
const BUFFER: usize = 64 << 20;
/// `IPPROTO_UDP`
const UDP: u8 = 17;
/// `ARPHRD_LOOPBACK` (`linux/if_arp.h`)
const LOOPBACK: u16 = 772;
