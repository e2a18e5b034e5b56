//! `explain`: what must happen to a packet, by which fields of which objects; with `--live`, beside what
//! happens to the next one.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU16;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use sluicegate_conntrack::{self as conntrack, Filter};
use sluicegate_proxier::Mode;
use sluicegate_proxier::config::{format_duration, parse_duration};
use sluicegate_proxier::doctor::why_lost;
use sluicegate_service_rules::explain::{Choice, Explanation, Question, Settings, Verdict, explain};
use sluicegate_service_rules::interface_addresses;
use sluicegate_service_rules::nftables::{End, Hop, Journey, Place, Tracer};
use sluicegate_services::{Cluster, Family, InterfaceName, Protocol, parse_ip};

use super::Error;
use super::args::{NodeArgs, ProxyArgs, number};
use super::objects::ObjectArgs;
use super::output::{OutputArgs, tell};
use super::value::ValueError;

#[derive(Args)]
pub(crate) struct Explain {
    /// The source address of the packet, or the address and the port, as 10.244.0.9:40000.
    #[arg(long, value_name = "IP[:PORT]")]
    from: Source,
    /// The source port of the packet, by which the scheduler `maglev` chooses its endpoint.
    #[arg(long, value_name = "PORT", value_parser = number(NonZeroU16::MIN..=NonZeroU16::MAX))]
    from_port: Option<NonZeroU16>,
    /// The destination of the packet, with its protocol: tcp (also where none is given), udp or sctp.
    #[arg(long, value_name = "IP:PORT[/PROTOCOL]")]
    to: Destination,
    /// The interface that the packet comes in through, where pods are detected by interfaces.
    #[arg(long, value_name = "NAME", value_parser = interface)]
    interface: Option<InterfaceName>,
    /// Wait for the next such packet that opens a connection, follow it through the kernel, and compare: the
    /// status is 0 if both agree, 1 if not, and 2 after a failure, as when no packet comes. In nftables mode,
    /// on the node.
    #[arg(long)]
    live: bool,
    /// With --live, the longest time to wait for a packet.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse_duration)]
    timeout: Duration,
    #[command(flatten)]
    pub(super) objects: ObjectArgs,
    #[command(flatten)]
    pub(super) node: NodeArgs,
    #[command(flatten)]
    pub(super) proxy: ProxyArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// A source as people write it: `10.244.0.9`, `[fd00::9]:40000`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Source {
    ip: IpAddr,
    port: Option<NonZeroU16>,
}

impl FromStr for Source {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let wrong = || {
            ValueError::expected(
                "an IP address, as 10.0.0.1 or fd00::1, or one with a port, as 10.0.0.1:40000 or [fd00::1]:40000",
                text,
            )
        };
        let text = text.trim();
        // Without brackets all of it may be an address of IPv6.
        if let Some(ip) = parse_ip(text) {
            return Ok(Self { ip, port: None });
        }
        let (ip, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (ip, port) = rest.split_once(']').ok_or_else(wrong)?;
                let port =
                    (!port.is_empty()).then(|| port.strip_prefix(':').ok_or_else(wrong)).transpose()?;
                (ip, port)
            }
            None => text.rsplit_once(':').map(|(ip, port)| (ip, Some(port))).ok_or_else(wrong)?,
        };
        let port = port.map(|port| port.parse().map_err(|_| wrong())).transpose()?;
        Ok(Self { ip: parse_ip(ip).ok_or_else(wrong)?, port })
    }
}

/// A destination as people write it: `10.96.0.10:53/udp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Destination {
    address: SocketAddr,
    protocol: Protocol,
}

impl FromStr for Destination {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let wrong = |part: &str| {
            let expected = "an address, a port and a protocol, as 10.96.0.10:53/udp or [fd00::a]:53/udp";
            ValueError::part(part, expected, text)
        };
        let (address, protocol) = text.trim().rsplit_once('/').unwrap_or((text.trim(), "tcp"));
        let protocol = match protocol.to_ascii_lowercase().as_str() {
            "tcp" => Protocol::Tcp,
            "udp" => Protocol::Udp,
            "sctp" => Protocol::Sctp,
            other => return Err(ValueError::expected("the protocol tcp, udp or sctp", other)),
        };
        let (ip, port) = address.rsplit_once(':').ok_or_else(|| wrong("the port is missing"))?;
        let ip = match ip.strip_prefix('[') {
            Some(ip) => ip.strip_suffix(']').ok_or_else(|| wrong("`]` is missing"))?,
            // Without brackets what follows the last colon is the port, as it must be there.
            None => ip,
        };
        let ip = parse_ip(ip).ok_or_else(|| wrong(&format!("{ip:?} is not an IP address")))?;
        let port = port.parse::<u16>().ok().filter(|port| *port > 0);
        let port = port.ok_or_else(|| wrong("the port is not a number from 1 to 65535"))?;
        Ok(Self { address: SocketAddr::new(ip, port), protocol })
    }
}

impl Explain {
    pub(crate) fn run(self) -> Result<ExitCode, Error> {
        if self.live {
            return self.compare().or_else(|error| {
                tell(format_args!("sluicegate-proxier: {error}"));
                Ok(ExitCode::from(2))
            });
        }
        let cluster = self.objects.cluster(&self.node, &self.proxy)?;
        let explanation = self.explanation(&cluster)?;
        self.output.print(&explanation.to_string(), || object(&explanation))?;
        Ok(ExitCode::SUCCESS)
    }

    /// Prints the explanation and the way of the next such packet. Fails with status 1 if they differ.
    fn compare(&self) -> Result<ExitCode, Error> {
        if self.proxy.proxy_mode != Mode::Nftables {
            return Err(Error::flag("--live", "follows packets in nftables mode alone"));
        }
        let cluster = self.objects.cluster(&self.node, &self.proxy)?;
        let explanation = self.explanation(&cluster)?;
        let mut tracer = Tracer::of(&explanation.question)?;
        let Question { from, to, protocol, .. } = &explanation.question;
        tell(format_args!("waiting for a packet {from} -> {to}/{protocol} that opens a connection"));
        let Some(journey) = tracer.next(self.timeout)? else {
            let reason = format!("no such packet came within {}", format_duration(self.timeout));
            return Err(Error::flag("--live", reason));
        };
        drop(tracer);
        let (reasons, flows) = (why_lost(&journey), self.flows()?);
        let disagreement = journey.disagreement(&explanation);
        let compared = match &disagreement {
            None => "the packet and the explanation agree\n".to_owned(),
            Some(how) => format!("the packet and the explanation DISAGREE: {how}\n"),
        };
        let mut text = format!("{explanation}{journey}");
        reasons.iter().for_each(|reason| text += &format!("  it may be: {reason}\n"));
        flows.iter().for_each(|flow| text += &format!("flow: {flow}\n"));
        self.output.print(&format!("{text}{compared}"), || {
            let mut object = object(&explanation);
            object["live"] = live(&journey);
            object["live"]["reasons"] = json!(reasons);
            object["flows"] = json!(flows);
            object["disagreement"] = json!(disagreement);
            object
        })?;
        Ok(if disagreement.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    /// Returns the flows that connection tracking has from the source to the destination, each as a line: what
    /// belongs to one is translated as its first packet was, whatever the rules are now.
    fn flows(&self) -> Result<Vec<String>, Error> {
        let failed = |error: conntrack::Error| Error::flag("--live", error.to_string());
        let Destination { address, protocol } = self.to;
        let mut filter = Filter::default();
        filter.original.source = Some(self.from.ip.into());
        filter.original.destination = Some(address.ip().into());
        filter.original.destination_port = Some(address.port());
        let is_it =
            |flow: &conntrack::Flow| flow.original.protocol.to_string() == protocol.as_str().to_lowercase();
        let mut flows =
            conntrack::Client::open().and_then(|mut client| client.list(&filter)).map_err(failed)?;
        flows.retain(is_it);
        Ok(flows.iter().map(line_of_flow).collect())
    }

    fn explanation(&self, cluster: &Cluster) -> Result<Explanation, Error> {
        let Destination { address, protocol } = self.to;
        let (from, interface) = (self.from.ip, self.interface.clone());
        let from_port = match (self.from.port, self.from_port) {
            (Some(one), Some(other)) if one != other => {
                return Err(Error::flag(
                    "--from-port",
                    format!("expected {one}, as --from says, found {other}"),
                ));
            }
            (one, other) => one.or(other),
        };
        let question = Question { from, from_port, interface, to: address, protocol };
        Ok(explain(cluster, &self.settings(cluster)?, &question)?)
    }

    fn settings(&self, cluster: &Cluster) -> Result<Settings, Error> {
        let proxy = &self.proxy;
        Ok(Settings {
            mode: proxy.proxy_mode,
            masquerade_all: proxy.masquerade_all,
            detect_local: proxy.detect_local()?,
            node_port_addresses: proxy.node_port_addresses(),
            scheduler: proxy.nftables_scheduler,
            ipvs_scheduler: Some(proxy.ipvs.ipvs_scheduler.to_string()),
            localhost_node_ports: match proxy.proxy_mode {
                Mode::Nftables => proxy.forwarded_localhost().contains(&Family::of(self.to.address.ip())),
                Mode::Iptables => proxy.iptables()?.answers_localhost(Family::Ipv4, cluster),
                Mode::Ipvs => false,
            },
            rejected_on_localhost: proxy.rejected_on_localhost(Family::of(self.to.address.ip())),
            local_addresses: self.local_addresses(cluster)?,
        })
    }

    /// Returns the addresses of this machine's interfaces if it is the node: if it has an address of the Node,
    /// or where none is known and nobody named another node.
    fn local_addresses(&self, cluster: &Cluster) -> Result<Option<Vec<IpAddr>>, Error> {
        let here = match interface_addresses() {
            Ok(here) => here,
            // An explanation needs no rights; what a packet meets does.
            Err(_) if !self.live => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let node = cluster.node();
        let is_node = match node.addresses.as_slice() {
            [] => self.node.hostname_override.is_none(),
            addresses => addresses.iter().any(|ip| here.contains(ip)),
        };
        Ok((self.live || is_node).then_some(here))
    }
}

fn line_of_flow(flow: &conntrack::Flow) -> String {
    let port = |port: Option<u16>| port.unwrap_or_default();
    let from = SocketAddr::new(flow.original.source(), port(flow.original.source_port()));
    let to = SocketAddr::new(flow.original.destination(), port(flow.original.destination_port()));
    let endpoint = SocketAddr::new(flow.reply.source(), port(flow.reply.source_port()));
    let is_answered = flow.status.is_some_and(|status| status.contains(conntrack::Status::SEEN_REPLY));
    let answered = if is_answered { "answered" } else { "not answered" };
    format!("{from} -> {to} is sent to {endpoint}, {answered}")
}

fn interface(text: &str) -> Result<InterfaceName, ValueError> {
    InterfaceName::new(text).map_err(ValueError::invalid)
}

fn object(explanation: &Explanation) -> Value {
    let question = &explanation.question;
    let decisions = explanation.decisions.iter().map(|decision| {
        json!({
            "object": decision.object,
            "field": decision.field,
            "value": decision.value,
            "effect": decision.effect,
        })
    });
    let endpoints = explanation.endpoints.iter().map(|endpoint| {
        json!({
            "address": endpoint.address,
            "slices": endpoint.slices,
            "node": endpoint.node,
            "used": endpoint.is_used,
            "reason": endpoint.reason,
        })
    });
    json!({
        "from": question.from,
        "to": question.to,
        "protocol": question.protocol.to_string(),
        "node": explanation.node,
        "mode": explanation.mode.as_str(),
        "client": { "node": explanation.client.is_node, "pod": explanation.client.is_pod },
        "frontend": explanation.frontend.as_ref().map(|frontend| json!({
            "service": frontend.port.service.as_str(),
            "port": &*frontend.port.port,
            "kinds": frontend.kinds.iter().map(ToString::to_string).collect::<Vec<_>>(),
        })),
        "decisions": decisions.collect::<Vec<_>>(),
        "endpoints": endpoints.collect::<Vec<_>>(),
        "verdict": verdict(&explanation.verdict),
    })
}

fn live(journey: &Journey) -> Value {
    let (what, to, table) = match &journey.end {
        End::Forwarded { to, masqueraded } => ("forwarded", Some(to), masqueraded.as_ref()),
        End::Refused(table) => ("refused", None, Some(table)),
        End::Dropped(table) => ("dropped", None, Some(table)),
        End::Untouched => ("untouched", None, None),
        End::Unanswered { to, masqueraded, .. } => ("unanswered", Some(to), masqueraded.as_ref()),
        End::Lost { to, .. } => ("lost", Some(to), None),
    };
    let place = match &journey.end {
        End::Lost { place, .. } => Some(match place {
            Place::BeforeConntrack => "before connection tracking".to_owned(),
            Place::Hook(hook) => hook.to_string(),
            Place::Routing => "routing".to_owned(),
        }),
        _ => None,
    };
    json!({
        "from": journey.from,
        "to": journey.to,
        "hops": journey.hops.iter().map(hop).collect::<Vec<_>>(),
        "what": what,
        "endpoint": to,
        "byTable": table,
        "place": place,
    })
}

fn hop(hop: &Hop) -> Value {
    let Hop { table, chain, rule, verdict } = hop;
    json!({ "table": table, "chain": chain, "rule": rule, "verdict": verdict })
}

fn verdict(verdict: &Verdict) -> Value {
    let what = verdict.as_str();
    match verdict {
        Verdict::Forwarded { choices, sticky, scheduler } => {
            let choice = |choice: &Choice| {
                json!({
                    "endpoint": choice.endpoint,
                    "probability": choice.probability,
                    "source": choice.source.to_string(),
                })
            };
            let choices: Vec<_> = choices.iter().map(choice).collect();
            json!({
                "what": what,
                "choices": choices,
                "affinitySeconds": sticky,
                "scheduler": scheduler.map(|scheduler| scheduler.to_string()),
            })
        }
        Verdict::Refused(reason) | Verdict::Dropped(reason) | Verdict::Untouched(reason) => {
            json!({ "what": what, "reason": reason })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_read_with_a_port_and_without() {
        let read = |text: &str| {
            let source = text.parse::<Source>().map_err(|error| error.to_string());
            source.map(|from| (from.ip.to_string(), from.port.map(NonZeroU16::get)))
        };
        assert_eq!(read("10.244.0.9"), Ok(("10.244.0.9".to_owned(), None)));
        assert_eq!(read(" 10.244.0.9:80 "), Ok(("10.244.0.9".to_owned(), Some(80))));
        assert_eq!(read("fd00::9:80"), Ok(("fd00::9:80".to_owned(), None)));
        assert_eq!(read("[fd00::9]"), Ok(("fd00::9".to_owned(), None)));
        assert_eq!(read("[fd00::9]:80"), Ok(("fd00::9".to_owned(), Some(80))));
        for text in
            ["", "node", "10.244.0.9:", "10.244.0.9:0", "10.244.0.9:65536", "[fd00::9", "[fd00::9]80", ":80"]
        {
            assert!(read(text).is_err_and(|error| error.starts_with("expected an IP address")), "{text}");
        }
    }

    #[test]
    fn a_destination_is_read_or_says_what_is_wrong() {
        let read = |text: &str| {
            let destination = text.parse::<Destination>().map_err(|error| error.to_string());
            destination.map(|to| (to.address.to_string(), to.protocol))
        };
        assert_eq!(read("10.96.0.10:53/udp"), Ok(("10.96.0.10:53".to_owned(), Protocol::Udp)));
        assert_eq!(read("010.96.0.10:53/UDP"), Ok(("10.96.0.10:53".to_owned(), Protocol::Udp)));
        assert_eq!(read("10.96.0.10:53"), Ok(("10.96.0.10:53".to_owned(), Protocol::Tcp)));
        assert_eq!(read("[fd00::a]:80/tcp"), Ok(("[fd00::a]:80".to_owned(), Protocol::Tcp)));
        assert_eq!(read("fd00::a:80/tcp"), Ok(("[fd00::a]:80".to_owned(), Protocol::Tcp)));
        for (text, why) in [
            ("10.96.0.10:53/icmp", "expected the protocol tcp, udp or sctp, found \"icmp\""),
            ("10.96.0.10/udp", "the port is missing"),
            ("10.96.0.256:53/udp", "\"10.96.0.256\" is not an IP address"),
            ("10.96.0.10:0/udp", "the port is not a number from 1 to 65535"),
            ("10.96.0.10:65536/udp", "the port is not a number from 1 to 65535"),
            ("fd00::53/udp", "\"fd00:\" is not an IP address"),
            ("[fd00::a:53/udp", "`]` is missing"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(why), "{text}: {error}");
        }
    }
}
