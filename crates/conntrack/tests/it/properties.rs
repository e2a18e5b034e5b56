//! Properties of all flows, filters and bytes.

use std::net::{IpAddr, SocketAddr};

use proptest::prelude::*;
use sluicegate_conntrack::stale::Services;
use sluicegate_conntrack::{
    Client, Family, Filter, Flow, Format, Layer4, Layout, NewFlow, Protocol, ProtocolInfo, Status, TcpState,
    Tuple, Verb,
};
use sluicegate_netlink::attr::Attributes;
use sluicegate_netlink::message::Messages;
use sluicegate_netlink::scripted::{self, Script};

fn tuples() -> impl Strategy<Value = Tuple> {
    let ports = prop::sample::select(vec![Protocol::TCP, Protocol::UDP, Protocol::GRE, Protocol::SCTP]);
    let layer4 = prop_oneof![
        (ports, any::<u16>(), any::<u16>())
            .prop_map(|(protocol, source, destination)| (protocol, Layer4::Ports { source, destination })),
        (prop::sample::select(vec![Protocol::ICMP, Protocol::ICMPV6]), any::<(u8, u8, u16)>())
            .prop_map(|(protocol, (kind, code, id))| (protocol, Layer4::Icmp { kind, code, id })),
        (200u8..).prop_map(|number| (Protocol(number), Layer4::None)),
    ];
    let addresses = prop_oneof![
        any::<([u8; 4], [u8; 4])>().prop_map(|(a, b)| (IpAddr::from(a), IpAddr::from(b))),
        any::<([u8; 16], [u8; 16])>().prop_map(|(a, b)| (IpAddr::from(a), IpAddr::from(b))),
    ];
    (addresses, layer4, proptest::option::of(any::<u16>())).prop_map(|((a, b), (protocol, layer4), zone)| {
        let mut tuple = Tuple::new(a, b, protocol, layer4).unwrap();
        tuple.zone = zone;
        tuple
    })
}

fn new_flows() -> impl Strategy<Value = NewFlow> {
    (
        tuples(),
        any::<u32>(),
        any::<u32>(),
        proptest::option::of(any::<u32>()),
        proptest::option::of(1u16..),
        any::<u8>(),
    )
        .prop_map(|(original, timeout, status, mark, zone, state)| {
            let mut flow = NewFlow::new(original, timeout);
            flow.status = Status::from_bits_retain(status);
            (flow.mark, flow.zone) = (mark, zone);
            flow.protocol_info =
                (original.protocol == Protocol::TCP).then_some(ProtocolInfo::Tcp { state: TcpState(state) });
            flow
        })
}

/// Decodes the request that creates a flow as a message of the kernel, which has the same form.
fn read_back(flow: &NewFlow) -> Flow {
    let mut kernel = Script::new();
    kernel.expect_any().reply(scripted::ack(1));
    let mut client = Client::with_transport(kernel);
    client.create(std::slice::from_ref(flow)).unwrap();
    let kernel = client.into_transport();
    Flow::decode(Messages::new(&kernel.sent()[0]).next().unwrap().unwrap()).unwrap()
}

fn formats() -> Vec<Format> {
    let mut formats = Vec::new();
    for layout in [Layout::Line, Layout::Xml, Layout::Save] {
        for verb in [Verb::Listed, Verb::Deleted, Verb::New, Verb::Update, Verb::Destroy] {
            formats.push(Format {
                layout,
                verb,
                layer3: true,
                id: true,
                timestamps: true,
                now: 0,
                when: true,
            });
        }
    }
    formats
}

proptest! {
    #[test]
    fn a_flow_is_read_as_it_was_written(flow in new_flows()) {
        let read = read_back(&flow);
        prop_assert_eq!((read.original, read.reply), (flow.original, flow.reply));
        prop_assert_eq!((read.status, read.timeout), (Some(flow.status), Some(flow.timeout)));
        prop_assert_eq!((read.mark, read.zone), (flow.mark, flow.zone));
        prop_assert_eq!(read.protocol_info, flow.protocol_info);
    }

    #[test]
    fn the_inverse_of_the_inverse_is_the_tuple(tuple in tuples()) {
        prop_assert_eq!(tuple.inverted().inverted(), tuple);
    }

    #[test]
    fn no_bytes_make_the_decoder_panic_and_a_flow_prints_as_one_line(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        if let Ok(flow) = Flow::decode_attributes(Attributes::new(&bytes)) {
            for format in formats() {
                prop_assert_eq!(format.flow(&flow).to_string().lines().count(), 1);
            }
        }
    }

    #[test]
    fn a_damaged_flow_never_panics(
        flow in new_flows(),
        at in any::<prop::sample::Index>(),
        byte: u8,
        cut in any::<prop::sample::Index>(),
    ) {
        let mut kernel = Script::new();
        kernel.expect_any().reply(scripted::ack(1));
        let mut client = Client::with_transport(kernel);
        client.create(&[flow]).unwrap();
        let mut bytes = client.into_transport().sent()[0][20..].to_vec();
        let place = at.index(bytes.len());
        bytes[place] = byte;
        bytes.truncate(cut.index(bytes.len()) + 1);
        if let Ok(flow) = Flow::decode_attributes(Attributes::new(&bytes)) {
            prop_assert_eq!(flow.to_string().lines().count(), 1);
        }
    }

    /// A flow matches a filter that is built from its fields, and each part of that.
    #[test]
    fn a_filter_of_what_a_flow_is_chooses_it(new in new_flows(), parts: u16, length in 0u8..=32) {
        let flow = read_back(&new);
        let part = |n: u16| parts >> n & 1 == 1;
        let net = |ip: IpAddr| ipnet::IpNet::new(ip, length).unwrap();
        let mut filter = Filter::default();
        filter.family = part(0).then_some(flow.family());
        filter.protocol = part(1).then_some(flow.original.protocol);
        filter.original.source = part(2).then(|| net(flow.original.source()));
        filter.original.destination = part(3).then(|| net(flow.original.destination()));
        filter.reply.source = part(4).then(|| net(flow.reply.source()));
        filter.original.destination_port = flow.original.destination_port().filter(|_| part(5));
        filter.reply.source_port = flow.reply.source_port().filter(|_| part(6));
        filter.zone = part(7).then_some(flow.zone.unwrap_or(0));
        filter.status.set = flow.status.filter(|_| part(8)).unwrap_or_default();
        filter.original.zone = part(9).then_some(flow.original.zone.unwrap_or(0));
        prop_assert!(filter.check().is_ok());
        prop_assert!(filter.matches(&flow));
        prop_assert_eq!(filter.is_empty(), filter == Filter::default());
        filter.family = Some(if flow.family() == Family::Ipv4 { Family::Ipv6 } else { Family::Ipv4 });
        prop_assert!(!filter.matches(&flow));
    }

    /// A flow is stale exactly if its frontend is known and its server is not one of that.

    #[test]
    fn staleness_follows_its_definition(
        frontends in prop::collection::vec((0u8..4, 1u16..4, prop::collection::vec(0u8..4, 0..3)), 0..6),
        to in 0u8..4,
        port in 1u16..4,
        by in 0u8..4,
    ) {
        let front = |n: u8, port: u16| SocketAddr::new(IpAddr::from([10, 96, 0, n]), port);
        let server = |n: u8| SocketAddr::new(IpAddr::from([10, 244, 0, n]), 53);
        let mut services = Services::new();
        for (address, port, servers) in &frontends {
            services.frontend(Protocol::UDP, front(*address, *port), servers.iter().map(|n| server(*n)));
        }
        let client: SocketAddr = "10.0.0.1:1000".parse().unwrap();
        let original = Tuple::with_ports(Protocol::UDP, client, front(to, port)).unwrap();
        let reply = Tuple::with_ports(Protocol::UDP, server(by), client).unwrap();
        let mut named = frontends.iter().filter(|(address, p, _)| (*address, *p) == (to, port)).peekable();
        let expected = named.peek().is_some() && !named.any(|(_, _, servers)| servers.contains(&by));
        prop_assert_eq!(services.is_stale(&Flow::between(original, reply)), expected);
    }
}
