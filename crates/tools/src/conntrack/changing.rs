//! `-I` and `-U`: what a flow is to be, by the command line.

use std::net::IpAddr;

use ipnet::IpNet;
use sluicegate_conntrack::protocol::{Name, has_ports};
use sluicegate_conntrack::{
    Client, Error, Flow, FlowChange, Layer4, NewFlow, Protocol, ProtocolInfo, Status, StatusMatch, Tuple,
};

use super::arguments::{Arguments, Failure, usage};

/// The flow to create. Properties that are given for one direction only apply to the other in reverse.
pub(crate) fn new_flow(arguments: &Arguments) -> Result<NewFlow, Failure> {
    let filter = &arguments.filter;
    let (original, reply) = (&filter.original, &filter.reply);
    let ends = |net: [Option<IpNet>; 2]| net.iter().all(Option::is_some);
    if !ends([original.source, original.destination]) && !ends([reply.source, reply.destination]) {
        return usage("you have to specify `--src' and `--dst'");
    }
    let protocol = filter.protocol.unwrap_or(Protocol(0));
    let info = protocol_info(arguments, protocol)?;
    let source = host(original.source.or(reply.destination), "src")?;
    let destination = host(original.destination.or(reply.source), "dst")?;
    let reply_source = reply.source.map_or(Ok(destination), |net| host(Some(net), "src"))?;
    let reply_destination = reply.destination.map_or(Ok(source), |net| host(Some(net), "dst"))?;
    let (there, back) = layer4(arguments, protocol)?;
    let tuple = |source, destination, layer4| {
        let tuple = Tuple::new(source, destination, protocol, layer4);
        tuple.ok_or_else(|| Failure::Usage("mismatched address family".to_owned()))
    };
    let mut flow = NewFlow::new(tuple(source, destination, there)?, arguments.timeout.unwrap_or(0));
    let back = back.unwrap_or(flow.reply.layer4);
    flow.reply = tuple(reply_source, reply_destination, back)?;
    (flow.original.zone, flow.reply.zone) = (original.zone, reply.zone);
    flow.status = Status::CONFIRMED | filter.status.set;
    flow.mark = filter.mark.map(|mark| mark.value);
    flow.zone = filter.zone;
    flow.protocol_info = info;
    (flow.source_nat, flow.destination_nat) = (filter.nat.source, filter.nat.destination);
    Ok(flow)
}

/// Changes the flows that are chosen and are not yet as they should be; returns what they are afterwards.
pub(crate) fn update(arguments: &Arguments, client: &mut Client) -> Result<Vec<Flow>, Error> {
    let mut filter = arguments.filter;
    (filter.mark, filter.status) = (None, StatusMatch::default());
    (filter.tcp_state, filter.sctp_state) = (None, None);
    let flows = client.list(&filter)?;
    let changes = flows.iter().map(|flow| (flow, change(arguments, flow)));
    let changes: Vec<_> = changes.filter(|(flow, change)| !change.is_done(flow)).collect();
    let keys: Vec<_> = changes.iter().map(|(flow, change)| (flow.key(), *change)).collect();
    client.update(&keys)?;
    changes.iter().map(|(flow, _)| client.get(&flow.original, flow.zone)).collect()
}

fn change(arguments: &Arguments, flow: &Flow) -> FlowChange {
    let filter = &arguments.filter;
    let protocol_info = match (filter.tcp_state, filter.sctp_state, flow.protocol_info) {
        (Some(state), ..) => Some(ProtocolInfo::Tcp { state }),
        (None, Some(state), Some(ProtocolInfo::Sctp { tags, .. })) => {
            Some(ProtocolInfo::Sctp { state, tags })
        }
        _ => None,
    };
    let mut change = FlowChange::default();
    change.timeout = arguments.timeout;
    change.mark = filter.mark.map(|mark| flow.mark.unwrap_or(0) & !mark.mask ^ mark.value);
    let set = Some(filter.status.set).filter(|set| !set.is_empty());
    change.status = set.map(|set| set | flow.status.unwrap_or_default());
    change.protocol_info = protocol_info;
    change
}

/// What a network of one address is the address of.
fn host(net: Option<IpNet>, name: &str) -> Result<IpAddr, Failure> {
    match net {
        Some(net) if net.prefix_len() == net.max_prefix_len() => Ok(net.addr()),
        Some(_) => usage(format!("Illegal option `--mask-{name}' with this command")),
        None => usage("you have to specify `--src' and `--dst'"),
    }
}

fn protocol_info(arguments: &Arguments, protocol: Protocol) -> Result<Option<ProtocolInfo>, Failure> {
    let filter = &arguments.filter;
    Ok(match protocol {
        Protocol::TCP => Some(ProtocolInfo::Tcp { state: need(filter.tcp_state, "state")? }),
        Protocol::SCTP => {
            let state = need(filter.sctp_state, "state")?;
            let [original, reply] = arguments.tags;
            let tags = [need(original, "orig-vtag")?, need(reply, "reply-vtag")?];
            // conntrack(8) reads and writes the tags, which are in network order, in the host's.
            Some(ProtocolInfo::Sctp { state, tags: tags.map(u32::to_be) })
        }
        Protocol::DCCP => {
            let state = need(arguments.dccp_state, "state")?;
            Some(ProtocolInfo::Dccp { state, role: arguments.role })
        }
        _ => None,
    })
}

/// The ports, or their counterpart in other protocols, in each direction; of the reply if they are given.
fn layer4(arguments: &Arguments, protocol: Protocol) -> Result<(Layer4, Option<Layer4>), Failure> {
    let (original, reply) = (&arguments.filter.original, &arguments.filter.reply);
    if protocol.is_icmp() {
        let protocol = Name(protocol);
        let kind = need(original.icmp_type, &format!("{protocol}-type"))?;
        let code = need(original.icmp_code, &format!("{protocol}-code"))?;
        return Ok((Layer4::Icmp { kind, code, id: original.icmp_id.unwrap_or(0) }, None));
    }
    if !has_ports(protocol) {
        return Ok((Layer4::None, None));
    }
    let there =
        [original.source_port.or(reply.destination_port), original.destination_port.or(reply.source_port)];
    let is_said = |ports: [Option<u16>; 2]| ports.iter().all(Option::is_some);
    let said = is_said([original.source_port, original.destination_port])
        || is_said([reply.source_port, reply.destination_port]);
    let ([Some(source), Some(destination)], true) = (there, said) else {
        let [source, destination] =
            if protocol == Protocol::GRE { ["srckey", "dstkey"] } else { ["sport", "dport"] };
        return usage(format!("you have to specify `--{source}' and `--{destination}'"));
    };
    let back = Layer4::Ports {
        source: reply.source_port.unwrap_or(destination),
        destination: reply.destination_port.unwrap_or(source),
    };
    Ok((Layer4::Ports { source, destination }, Some(back)))
}

fn need<T>(value: Option<T>, name: &str) -> Result<T, Failure> {
    value.ok_or_else(|| Failure::Usage(format!("You need to supply the `--{name}' option for this command")))
}
