//! Every command of `sluicegate-ipvs`, and the question for its family, against the same built with neli's
//! types: byte by byte, so that attributes, nests, padding, headers and flags are checked by code that is not
//! ours.
//!
//! The two do not share the numbers either: those here are copied from `linux/ip_vs.h`.

use std::io::Cursor;
use std::net::IpAddr;

use neli::ToBytes;
use neli::consts::genl::{CtrlAttr, CtrlCmd};
use neli::consts::nl::{GenlId, NlmF};
use neli::genl::{AttrTypeBuilder, Genlmsghdr, GenlmsghdrBuilder, Nlattr, NlattrBuilder};
use neli::nl::{NlPayload, NlmsghdrBuilder};
use neli::types::{Buffer, GenlBuffer};
use sluicegate_ipvs::netlink::generic;
use sluicegate_ipvs::netlink::scripted::{self, Script};
use sluicegate_ipvs::*;

type Attribute = Nlattr<u16, Buffer>;

const FAMILY: u16 = 0x1d;

#[test]
fn the_question_for_the_family_is_what_neli_makes() {
    let mut kernel = Script::new();
    kernel.expect_any().reply(generic::family_answer(1, FAMILY));
    assert_eq!(generic::family(&mut kernel, "IPVS").unwrap(), FAMILY);
    let name = attribute(CtrlAttr::FamilyName.into(), b"IPVS\0");
    let header = (GenlId::Ctrl.into(), CtrlCmd::Getfamily.into());
    assert_eq!(kernel.sent(), [message(header, NlmF::REQUEST | NlmF::ACK, 1, vec![name])]);
}

#[test]
fn every_command_is_what_neli_makes() {
    let commands = commands();
    let mut kernel = Script::new();
    kernel.expect_any().reply(generic::family_answer(1, FAMILY));
    kernel.expect_any().reply_to_last(scripted::ack(0));
    let mut client = Client::with_transport(kernel).unwrap();
    client.run_all(&commands).unwrap();
    let [_, ours] = client.transport().sent() else { panic!("two sends") };

    let mut rest = ours.as_slice();
    for (number, command) in (2..).zip(&commands) {
        let last = number as usize == commands.len() + 1;
        let flags = if last { NlmF::REQUEST | NlmF::ACK } else { NlmF::REQUEST };
        let theirs = by_neli(command, flags, number);
        let (start, end) = rest.split_at(theirs.len().min(rest.len()));
        assert_eq!(start, theirs, "{command}");
        rest = end;
    }
    assert!(rest.is_empty());
}

/// Each kind of command, with each attribute that it can have.
fn commands() -> Vec<Command> {
    let v4 = ServiceId::tcp(Endpoint::new([10, 96, 0, 10], 443));
    let v6 = ServiceId::udp(Endpoint::new([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1], 5060));
    let sctp = ServiceId::sctp(Endpoint::new([10, 96, 0, 11], 132));
    let mark = ServiceId::mark(7, Family::Ipv6).expect("a mark that is not 0");
    let plain = ServiceConfig::new(Scheduler::RR);
    let persistent = |timeout, granularity| {
        let persistence = Persistence { timeout, granularity: Some(granularity) };
        ServiceConfig::new(Scheduler::SH).persistence(persistence)
    };
    let flagged = persistent(400, Granularity::Netmask([255, 255, 255, 0].into()))
        .scheduler_flags(SchedulerFlags::PORT);
    let sip = persistent(60, Granularity::Prefix(64)).engine(Engine::SIP).one_packet();
    let mut commands = vec![
        Command::AddService { id: v4, config: flagged },
        Command::AddService { id: v6, config: sip },
        Command::AddService { id: sctp, config: plain },
        Command::AddService {
            id: mark,
            config: ServiceConfig::new(Scheduler::new("fifteen-letters").expect("a name of 15 bytes")),
        },
        Command::EditService { id: v4, config: plain },
        Command::DeleteService { id: v6 },
        Command::ZeroService { id: mark },
        Command::ZeroAll,
        Command::Flush,
        Command::SetTimeouts(Timeouts { tcp: 900, tcp_fin: 120, udp: 300 }),
        Command::StopDaemon(DaemonRole::BACKUP),
    ];
    let destination = |service: &ServiceId, address: IpAddr, forward| {
        let port = service.port().unwrap_or(80);
        let config = DestinationConfig::new(forward).weight(5).thresholds(100, 50);
        (*service, Endpoint::new(address, port), config)
    };
    let (near, far) = ([10, 244, 0, 7].into(), "fd00::7".parse().expect("an address"));
    for (service, id, config) in [
        destination(&v4, near, Forward::Masquerade),
        destination(&v4, near, Forward::DirectRoute),
        destination(&v4, near, Forward::Local),
        destination(&v4, far, Forward::Tunnel(Tunnel::Ipip)),
        destination(&v6, far, Forward::Tunnel(Tunnel::Gue { port: 6080, flags: TunnelFlags::CHECKSUM })),
        destination(&mark, far, Forward::Tunnel(Tunnel::Gre { flags: TunnelFlags::CHECKSUM })),
    ] {
        commands.push(Command::AddDestination { service, id, config });
        commands.push(Command::EditDestination { service, id, config });
        commands.push(Command::DeleteDestination { service, id });
    }
    let daemon = Daemon::new(DaemonRole::MASTER, Interface::new("eth0").expect("a name"));
    commands.push(Command::StartDaemon(daemon));
    for group in [IpAddr::from([224, 0, 0, 99]), "ff02::99".parse().expect("an address")] {
        let mut backup = daemon;
        backup.role = DaemonRole::BACKUP;
        backup.sync_id = 7;
        backup.max_length = Some(1400);
        backup.group = Some(group);
        backup.port = Some(9000);
        backup.ttl = Some(3);
        commands.push(Command::StartDaemon(backup));
    }
    commands
}

fn by_neli(command: &Command, flags: NlmF, sequence: u32) -> Vec<u8> {
    let (number, attributes) = match command {
        Command::AddService { id, config } => (1, vec![service(id, Some(config))]),
        Command::EditService { id, config } => (2, vec![service(id, Some(config))]),
        Command::DeleteService { id } => (3, vec![service(id, None)]),
        Command::AddDestination { service: of, id, config } => {
            (5, vec![service(of, None), destination(id, Some(config))])
        }
        Command::EditDestination { service: of, id, config } => {
            (6, vec![service(of, None), destination(id, Some(config))])
        }
        Command::DeleteDestination { service: of, id } => (7, vec![service(of, None), destination(id, None)]),
        Command::ZeroService { id } => (16, vec![service(id, None)]),
        Command::ZeroAll => (16, vec![]),
        Command::Flush => (17, vec![]),
        Command::SetTimeouts(Timeouts { tcp, tcp_fin, udp }) => {
            (12, vec![number_attribute(4, *tcp), number_attribute(5, *tcp_fin), number_attribute(6, *udp)])
        }
        Command::StartDaemon(it) => (9, vec![daemon(it)]),
        Command::StopDaemon(role) => (10, vec![nest(3, &[number_attribute(1, role.0)])]),
    };
    message((FAMILY, number), flags, sequence, attributes)
}

/// `IPVS_CMD_ATTR_SERVICE`
fn service(id: &ServiceId, config: Option<&ServiceConfig>) -> Attribute {
    let mut inside = vec![attribute(1, &family(id.family()))];
    match id {
        ServiceId::Virtual { protocol, endpoint } => inside.extend([
            attribute(2, &u16::from(protocol.0).to_ne_bytes()),
            attribute(3, &address(endpoint.address)),
            attribute(4, &endpoint.port.to_be_bytes()),
        ]),
        ServiceId::Mark { mark, .. } => inside.push(number_attribute(5, mark.get())),
    }
    if let Some(config) = config {
        inside.push(name(6, config.scheduler.as_str()));
        inside.extend(config.engine.map(|engine| name(11, engine.as_str())));
        // IP_VS_SVC_F_PERSISTENT, IP_VS_SVC_F_ONEPACKET
        let flags = config.scheduler_flags.bits()
            | u32::from(config.persistence.is_some())
            | (u32::from(config.one_packet) << 2);
        inside.push(attribute(7, &[flags.to_ne_bytes(), [0xff; 4]].concat()));
        inside.push(number_attribute(8, config.persistence.map_or(0, |it| it.timeout)));
        inside.push(match (config.persistence.and_then(|it| it.granularity), id.family()) {
            (Some(Granularity::Netmask(mask)), _) => attribute(9, &mask.octets()),
            (Some(Granularity::Prefix(length)), _) => number_attribute(9, length),
            (None, Family::Ipv4) => attribute(9, &[0xff; 4]),
            (None, Family::Ipv6) => number_attribute(9, 128),
        });
    }
    nest(1, &inside)
}

/// `IPVS_CMD_ATTR_DEST`
fn destination(id: &Endpoint, config: Option<&DestinationConfig>) -> Attribute {
    let mut inside = vec![
        attribute(11, &family(id.family())),
        attribute(1, &address(id.address)),
        attribute(2, &id.port.to_be_bytes()),
    ];
    if let Some(config) = config {
        let (method, tunnel) = match config.forward {
            Forward::Masquerade => (0, None),
            Forward::Local => (1, None),
            Forward::Tunnel(Tunnel::Gue { port, flags }) => (2, Some((1, port, flags))),
            Forward::Tunnel(Tunnel::Gre { flags }) => (2, Some((2, 0, flags))),
            Forward::Tunnel(_) => (2, None),
            Forward::DirectRoute => (3, None),
            Forward::Other(number) => (number, None),
        };
        inside.push(number_attribute(3, method));
        if let Some((kind, port, flags)) = tunnel {
            inside.push(attribute(13, &[kind]));
            inside.push(attribute(14, &u16::to_be_bytes(port)));
            inside.push(attribute(15, &flags.bits().to_ne_bytes()));
        }
        inside.push(number_attribute(4, config.weight));
        inside.push(number_attribute(5, config.upper_threshold));
        inside.push(number_attribute(6, config.lower_threshold));
    }
    nest(2, &inside)
}

/// `IPVS_CMD_ATTR_DAEMON`
fn daemon(daemon: &Daemon) -> Attribute {
    let mut inside = vec![
        number_attribute(1, daemon.role.0),
        name(2, daemon.interface.as_str()),
        number_attribute(3, daemon.sync_id),
    ];
    inside.extend(daemon.max_length.map(|length| attribute(4, &length.to_ne_bytes())));
    inside.extend(daemon.group.map(|group| match group {
        IpAddr::V4(group) => attribute(5, &group.octets()),
        IpAddr::V6(group) => attribute(6, &group.octets()),
    }));
    inside.extend(daemon.port.map(|port| attribute(7, &port.to_ne_bytes())));
    inside.extend(daemon.ttl.map(|ttl| attribute(8, &[ttl])));
    nest(3, &inside)
}

fn family(family: Family) -> [u8; 2] {
    match family {
        Family::Ipv4 => 2u16.to_ne_bytes(),
        Family::Ipv6 => 10u16.to_ne_bytes(),
    }
}

fn address(address: IpAddr) -> [u8; 16] {
    let mut bytes = [0; 16];
    match address {
        IpAddr::V4(address) => bytes[..4].copy_from_slice(&address.octets()),
        IpAddr::V6(address) => bytes = address.octets(),
    }
    bytes
}

fn name(kind: u16, name: &str) -> Attribute {
    attribute(kind, &[name.as_bytes(), &[0]].concat())
}

fn number_attribute(kind: u16, value: u32) -> Attribute {
    attribute(kind, &value.to_ne_bytes())
}

fn attribute(kind: u16, payload: &[u8]) -> Attribute {
    let kind = AttrTypeBuilder::default().nla_type(kind).build().expect("a type");
    NlattrBuilder::default().nla_type(kind).nla_payload(Buffer::from(payload)).build().expect("an attribute")
}

fn nest(kind: u16, inside: &[Attribute]) -> Attribute {
    inside.iter().fold(attribute(kind, &[]), |outer, inner| outer.nest(inner).expect("room"))
}

fn message((family, command): (u16, u8), flags: NlmF, sequence: u32, attributes: Vec<Attribute>) -> Vec<u8> {
    let attributes: GenlBuffer<u16, Buffer> = attributes.into_iter().collect();
    let payload: Genlmsghdr<u8, u16> =
        GenlmsghdrBuilder::default().cmd(command).version(1).attrs(attributes).build().expect("a message");
    let message = NlmsghdrBuilder::default()
        .nl_type(family)
        .nl_flags(flags)
        .nl_seq(sequence)
        .nl_payload(NlPayload::Payload(payload))
        .build()
        .expect("a message");
    let mut bytes = Cursor::new(Vec::new());
    message.to_bytes(&mut bytes).expect("room");
    bytes.into_inner()
}
