//! The client, the monitor and the reconciler against a real kernel, each test in a namespace of its own.

use std::net::{SocketAddr, UdpSocket};

use sluicegate_conntrack::stale::{How, Services, sync};
use sluicegate_conntrack::{
    AddressPort, Client, Deleted, Errno, Error, Event, Family, Filter, Flow, FlowChange, Monitor, NewFlow,
    Protocol, ProtocolInfo, Statistic, Status, Table, TcpState, Tuple,
};

fn tuple(protocol: Protocol, from: &str, to: &str) -> Tuple {
    Tuple::with_ports(protocol, from.parse().unwrap(), to.parse().unwrap()).unwrap()
}

/// Returns a flow from a client to a service that a server answers.
fn served(client: &str, service: &str, server: &str) -> NewFlow {
    let mut flow = NewFlow::new(tuple(Protocol::UDP, client, service), 300);
    flow.reply = tuple(Protocol::UDP, server, client);
    flow
}

fn listed(client: &mut Client, filter: &Filter) -> Vec<String> {
    let mut lines: Vec<_> =
        client.list(filter).unwrap().iter().map(|flow| flow.original.to_string()).collect();
    lines.sort();
    lines
}

#[test]
fn created_flows_are_listed_looked_up_and_deleted() {
    testns::netns(|| {
        let mut client = Client::open().unwrap();
        let mut udp = served("10.0.0.1:1000", "10.96.0.10:53", "10.244.0.5:5353");
        udp.mark = Some(7);
        udp.status |= Status::SEEN_REPLY | Status::ASSURED;
        let mut tcp = NewFlow::new(tuple(Protocol::TCP, "[fd00::1]:1000", "[fd00::2]:80"), 300);
        tcp.protocol_info = Some(ProtocolInfo::Tcp { state: TcpState::ESTABLISHED });
        tcp.zone = Some(5);
        client.create(&[udp.clone(), tcp.clone()]).unwrap();
        assert_eq!(client.count().unwrap(), 2);

        let found = client.get(&udp.original, None).unwrap();
        assert_eq!((found.original, found.reply, found.mark), (udp.original, udp.reply, Some(7)));
        assert!(found.has(Status::SEEN_REPLY | Status::ASSURED | Status::CONFIRMED));
        // Either direction finds it.
        assert_eq!(client.get(&udp.reply, None).unwrap().id, found.id);
        let found = client.get(&tcp.original, Some(5)).unwrap();
        assert_eq!((found.zone, found.protocol_info), (Some(5), tcp.protocol_info));
        assert!(client.get(&tcp.original, None).unwrap_err().is_not_found());

        let again = client.create(std::slice::from_ref(&udp)).unwrap_err();
        assert!(again.is_already_exists(), "{again}");
        assert_eq!(
            again.to_string(),
            "create ipv4 udp src=10.0.0.1 dst=10.96.0.10 sport=1000 dport=53: EEXIST (File exists)"
        );
        // A flow with another id is a different one.
        let mut other = found.key();
        other.id = Some(found.id.unwrap().wrapping_add(1));
        assert_eq!(client.delete(&[other]).unwrap(), Deleted { deleted: 0, gone: 1 });
        assert_eq!(client.delete(&[found.key()]).unwrap(), Deleted { deleted: 1, gone: 0 });
        assert_eq!(client.delete(&[found.key(), udp.key()]).unwrap(), Deleted { deleted: 1, gone: 1 });
        assert_eq!(client.count().unwrap(), 0);
    });
}

#[test]
fn zones_of_one_direction_are_kept_apart() {
    testns::netns(|| {
        let mut client = Client::open().unwrap();
        let mut flows = Vec::new();
        for zone in [None, Some(3), Some(4)] {
            let mut flow = served("10.0.0.1:1000", "10.96.0.10:53", "10.244.0.5:53");
            flow.original.zone = zone;
            flow.reply =
                tuple(Protocol::UDP, &format!("10.244.0.{}:53", 5 + zone.unwrap_or(0)), "10.0.0.1:1000");
            flows.push(flow);
        }
        client.create(&flows).unwrap();
        let mut filter = Filter::default();
        filter.original.zone = Some(3);
        let deleted = client.delete_matching(&filter).unwrap();
        assert_eq!(deleted.iter().map(|flow| flow.original.zone).collect::<Vec<_>>(), [Some(3)]);
        assert_eq!(client.count().unwrap(), 2);
    });
}

/// Linux 6.1 and 6.18 invert this comparison in the kernel's filter.
#[test]
fn a_filter_with_an_ipv6_address_selects_its_flows() {
    testns::netns(|| {
        let mut client = Client::open().unwrap();
        let flow = |n: u16, to: &str| {
            NewFlow::new(tuple(Protocol::UDP, &format!("[fd00::1]:{}", 1000 + n), &format!("[{to}]:53")), 300)
        };
        let flows: Vec<_> = (0..10).map(|n| flow(n, if n < 3 { "fd00::a" } else { "fd00::b" })).collect();
        client.create(&flows).unwrap();
        let mut filter = Filter::default();
        filter.protocol = Some(Protocol::UDP);
        filter.original.destination = Some("fd00::a/128".parse().unwrap());
        filter.original.destination_port = Some(53);
        assert_eq!(client.list(&filter).unwrap().len(), 3);
        assert_eq!(client.delete_matching(&filter).unwrap().len(), 3);
        assert_eq!(client.count().unwrap(), 7);

        let mut services = Services::new();
        services.frontend(Protocol::UDP, "[fd00::b]:53".parse().unwrap(), ["[fd00::99]:53".parse().unwrap()]);
        services.frontend(Protocol::UDP, "[fd00::a]:53".parse().unwrap(), []);
        let translated = served("[fd00::1]:1001", "[fd00::a]:53", "[fd00::99]:54");
        client.create(&[translated, flow(1, "fd00::c")]).unwrap();
        let report = sync(&mut client, &services).unwrap();
        assert_eq!((report.lists, report.deleted), (1, 8));
        assert_eq!(listed(&mut client, &Filter::default()), ["src=fd00::1 dst=fd00::c sport=1001 dport=53"]);
    });
}

#[test]
fn only_flush_empties_the_table() {
    testns::netns(|| {
        let mut client = Client::open().unwrap();
        let v4 = served("10.0.0.1:1000", "10.96.0.10:53", "10.244.0.5:53");
        let v6 = NewFlow::new(tuple(Protocol::UDP, "[fd00::1]:1000", "[fd00::2]:53"), 300);
        client.create(&[v4.clone(), v6]).unwrap();
        assert!(matches!(client.delete_matching(&Filter::default()), Err(Error::NoCriterion)));
        assert_eq!(client.delete(&[]).unwrap(), Deleted::default());
        assert_eq!(sync(&mut client, &Services::new()).unwrap().lists, 0);
        assert_eq!(client.count().unwrap(), 2);
        client.flush(Some(Family::Ipv4)).unwrap();
        assert_eq!(listed(&mut client, &Filter::default()), ["src=fd00::1 dst=fd00::2 sport=1000 dport=53"]);
        client.create(&[v4]).unwrap();
        client.flush(None).unwrap();
        assert_eq!(client.count().unwrap(), 0);
    });
}

#[test]
fn the_kernels_filter_and_ours_select_the_same_flows() {
    testns::netns(|| {
        let mut client = Client::open().unwrap();
        let mut flows = Vec::new();
        for n in 0..64u16 {
            let to = format!("10.96.0.{}:{}", n % 4, 50 + n % 3);
            let protocol = if n % 5 == 0 { Protocol::TCP } else { Protocol::UDP };
            let mut flow = NewFlow::new(tuple(protocol, &format!("10.0.0.1:{}", 1000 + n), &to), 300);
            flow.mark = Some(u32::from(n % 8));
            flow.protocol_info =
                (protocol == Protocol::TCP).then_some(ProtocolInfo::Tcp { state: TcpState::SYN_SENT });
            if (n / 4) % 2 == 0 {
                flow.status |= Status::SEEN_REPLY;
            }
            flows.push(flow);
        }
        client.create(&flows).unwrap();
        let all = client.list(&Filter::default()).unwrap();
        assert_eq!(all.len(), 64);
        let mut ipv4 = Filter::default();
        ipv4.family = Some(Family::Ipv4);
        let mut filters = vec![ipv4];
        let mut filter = Filter::default();
        filter.protocol = Some(Protocol::UDP);
        filters.push(filter);
        filter.original.destination_port = Some(51);
        filters.push(filter);
        filter.original.destination = Some("10.96.0.1/32".parse().unwrap());
        filters.push(filter);
        filter.status.set = Status::SEEN_REPLY;
        filters.push(filter);
        filter.status = Default::default();
        filter.status.unset = Status::SEEN_REPLY;
        filter.mark = Some(sluicegate_conntrack::MarkMatch { value: 1, mask: 3 });
        filters.push(filter);
        filter = Filter::default();
        filter.tcp_state = Some(TcpState::SYN_SENT);
        filter.original.destination = Some("10.96.0.0/31".parse().unwrap());
        filters.push(filter);
        for filter in filters {
            let mut ours: Vec<_> = all.iter().filter(|flow| filter.matches(flow)).map(Flow::key).collect();
            let mut theirs: Vec<_> = client.list(&filter).unwrap().iter().map(Flow::key).collect();
            ours.sort_by_key(|key| key.original);
            theirs.sort_by_key(|key| key.original);
            assert_eq!(ours, theirs, "{filter:?}");
            assert!(!ours.is_empty(), "{filter:?}");
        }
    });
}

#[test]
fn flows_are_changed_and_missing_ones_are_reported() {
    testns::netns(|| {
        let mut client = Client::open().unwrap();
        let flow = served("10.0.0.1:1000", "10.96.0.10:53", "10.244.0.5:53");
        let mut zoned = served("10.0.0.1:1000", "10.96.0.10:53", "10.244.0.5:53");
        zoned.zone = Some(5);
        client.create(&[flow.clone(), zoned.clone()]).unwrap();
        let status = Status::CONFIRMED | Status::ASSURED | Status::SEEN_REPLY;
        let mut change = FlowChange::default();
        change.timeout = Some(77);
        change.mark = Some(9);
        change.status = Some(status);
        client.update(&[(zoned.key(), change)]).unwrap();
        let now = client.get(&zoned.original, Some(5)).unwrap();
        assert!(
            (70..=77).contains(&now.timeout.unwrap()) && now.mark == Some(9) && now.has(status),
            "{now:?}"
        );
        let other = client.get(&flow.original, None).unwrap();
        assert!(other.mark == Some(0) && !other.has(Status::ASSURED), "{other:?}");

        // A bit that cannot be cleared, and a flow that does not exist: the others are changed nevertheless.
        let mut less = FlowChange::default();
        less.status = Some(Status::CONFIRMED);
        let gone = served("10.0.0.9:1000", "10.96.0.10:53", "10.244.0.5:53").key();
        let mut marked = FlowChange::default();
        marked.mark = Some(3);
        let error = client.update(&[(gone, marked), (zoned.key(), less), (flow.key(), marked)]).unwrap_err();
        assert!(error.is_not_found(), "{error}");
        assert!(error.to_string().starts_with("update ipv4 udp src=10.0.0.9 "), "{error}");
        assert_eq!(client.get(&flow.original, None).unwrap().mark, Some(3));
        let error = client.update(&[(zoned.key(), less)]).unwrap_err();
        assert_eq!(error.errno(), Some(Errno::EBUSY));
        assert_eq!(client.count().unwrap(), 2, "nothing is made by a change");
    });
}

#[test]
fn a_translation_is_made_by_the_kernel() {
    testns::netns(|| {
        let mut client = Client::open().unwrap();
        let to = |address: &str, port| AddressPort { address: Some(address.parse().unwrap()), port };
        let mut flow = NewFlow::new(tuple(Protocol::UDP, "10.0.0.1:1000", "10.96.0.10:53"), 300);
        flow.destination_nat = Some(to("10.244.0.5", Some(5353)));
        flow.source_nat = Some(to("10.5.5.5", None));
        let mut v6 = NewFlow::new(tuple(Protocol::UDP, "[fd00::1]:1000", "[fd00::10]:53"), 300);
        v6.source_nat = Some(to("fd00::99", Some(99)));
        client.create(&[flow.clone(), v6.clone()]).unwrap();
        let made = client.get(&flow.original, None).unwrap();
        assert_eq!(made.reply, tuple(Protocol::UDP, "10.244.0.5:5353", "10.5.5.5:1000"));
        assert!(made.is_source_translated() && made.is_destination_translated(), "{made:?}");
        let made = client.get(&v6.original, None).unwrap();
        assert_eq!(made.reply, tuple(Protocol::UDP, "[fd00::10]:53", "[fd00::99]:99"));
        // As with a NAT rule, a tuple of another flow is not used again.
        let mut second = NewFlow::new(tuple(Protocol::UDP, "[fd00::2]:1000", "[fd00::10]:53"), 300);
        second.source_nat = v6.source_nat;
        let again = client.create(&[second.clone()]);
        let taken = again.is_err() || client.get(&second.original, None).unwrap().reply != made.reply;
        assert!(taken);
    });
}

#[test]
fn each_processor_counts() {
    testns::netns(|| {
        let mut client = Client::open().unwrap();
        client.create(&[served("10.0.0.1:1000", "10.96.0.10:53", "10.244.0.5:53")]).unwrap();
        let statistics = client.statistics().unwrap();
        assert!(!statistics.is_empty() && statistics.is_sorted_by_key(|cpu| cpu.cpu), "{statistics:?}");
        assert!(statistics.iter().all(|cpu| cpu.get(Statistic::DROP) == Some(0)), "{statistics:?}");
        assert_eq!(client.expectation_statistics().unwrap().len(), statistics.len());
        assert_eq!(client.count_expectations().unwrap(), 0);
    });
}

#[test]
fn an_event_has_the_port_that_caused_it() {
    testns::netns(|| {
        let mut options = sluicegate_netlink::Options::default();
        options.receive_buffer = 64 << 10;
        let mut monitor = Monitor::open_with(&sluicegate_conntrack::GROUPS[..1], &options).unwrap();
        assert!(monitor.transport().receive_buffer().unwrap() >= 64 << 10);
        let mut client = Client::open().unwrap();
        client.create(&[served("10.0.0.1:1000", "10.96.0.10:53", "10.244.0.5:53")]).unwrap();
        let event = monitor.events_with_ports().unwrap();
        assert!(matches!(event[0].event, Event::New(_)) && event[0].port.is_some(), "{event:?}");
    });
}

#[test]
fn stale_flows_of_a_few_and_of_many_frontends_are_deleted() {
    testns::netns(|| {
        let mut client = Client::open().unwrap();
        for (count, how) in [(2u16, How::Filtered), (20, How::Whole)] {
            let mut services = Services::new();
            let mut flows = Vec::new();
            for n in 0..count {
                let service = format!("10.96.0.{n}:53");
                let server: SocketAddr = format!("10.244.0.{n}:53").parse().unwrap();
                services.frontend(Protocol::UDP, service.parse().unwrap(), [server]);
                flows.push(served(&format!("10.0.0.1:{}", 1000 + n), &service, &server.to_string()));
                flows.push(served(&format!("10.0.0.2:{}", 1000 + n), &service, "10.244.9.9:53"));
                flows.push(served(&format!("10.0.0.3:{}", 1000 + n), "10.99.0.1:53", "10.244.9.9:54"));
            }
            services.node_port(Protocol::UDP, Family::Ipv4, 30053, ["10.244.0.1:53".parse().unwrap()]);
            flows.push(served("10.0.0.4:1", "192.168.0.2:30053", "10.244.0.1:53"));
            flows.push(served("10.0.0.4:2", "192.168.0.2:30053", "10.244.0.2:53"));
            client.create(&flows).unwrap();
            let report = sync(&mut client, &services).unwrap();
            assert_eq!((report.how, report.deleted), (how, usize::from(count) + 1), "{report:?}");
            assert_eq!(client.count().unwrap(), u32::from(count) * 2 + 1);
            assert_eq!(sync(&mut client, &services).unwrap().deleted, 0);
            client.flush(None).unwrap();
        }
    });
}

#[test]
fn events_report_created_changed_and_destroyed_flows() {
    testns::netns(|| {
        let mut monitor = Monitor::open().unwrap();
        let mut client = Client::open().unwrap();
        let flow = served("10.0.0.1:1000", "10.96.0.10:53", "10.244.0.5:53");
        client.create(std::slice::from_ref(&flow)).unwrap();
        let id = client.get(&flow.original, None).unwrap().id;
        client.delete(&[flow.key()]).unwrap();
        let mut events = Vec::new();
        while events.len() < 2 {
            let more = monitor.events().unwrap();
            assert!(!more.is_empty(), "no event came; so far {events:?}");
            events.extend(more);
        }
        let [Event::New(new), Event::Destroy(gone)] = events.as_slice() else { panic!("{events:?}") };
        assert_eq!((new.original, new.reply, new.id), (flow.original, flow.reply, id));
        assert_eq!((gone.original, gone.id), (flow.original, id));
    });
}

#[test]
fn too_many_events_are_an_event() {
    testns::netns(|| {
        use sluicegate_netlink::{NetlinkFamily, Options, Socket};
        let mut options = Options::default();
        options.receive_buffer = 4096;
        let mut socket = Socket::open(NetlinkFamily::NETFILTER, &options).unwrap();
        for group in sluicegate_conntrack::GROUPS {
            socket.join(group).unwrap();
        }
        let mut monitor = Monitor::with_transport(socket);
        let mut client = Client::open().unwrap();
        let flows: Vec<_> = (0..500)
            .map(|n| served(&format!("10.0.0.1:{}", 1000 + n), "10.96.0.10:53", "10.244.0.5:53"))
            .collect();
        client.create(&flows).unwrap();
        let mut lost = false;
        while !lost {
            let events = monitor.events().unwrap();
            assert!(!events.is_empty(), "nothing was lost");
            lost = events.contains(&Event::Overrun);
        }
    });
}

#[test]
fn events_of_real_traffic_have_counters_and_times() {
    if !testns::have(&["nft", "sysctl"]) {
        return;
    }
    testns::netns(|| {
        // Tracking starts with the first rule that needs it. The sysctls belong to the namespace.
        let _ = testns::sh(
            "sysctl -qw net.netfilter.nf_conntrack_acct=1 net.netfilter.nf_conntrack_timestamp=1
             nft 'add table ip t; add chain ip t c { type filter hook input priority 0; }; add rule ip t c \
             ct state new counter'",
        );
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        client.connect(server.local_addr().unwrap()).unwrap();
        client.send(b"question").unwrap();
        let mut buffer = [0; 64];
        let (size, from) = server.recv_from(&mut buffer).unwrap();
        server.send_to(&buffer[..size / 2], from).unwrap();
        client.recv(&mut buffer).unwrap();

        let mut filter = Filter::default();
        filter.protocol = Some(Protocol::UDP);
        filter.original.source_port = Some(client.local_addr().unwrap().port());
        let mut tracker = Client::open().unwrap();
        let flows = tracker.list_table(Table::Conntrack, &filter).unwrap();
        let [flow] = flows.as_slice() else { panic!("{flows:?}") };
        assert!(flow.has(Status::SEEN_REPLY | Status::CONFIRMED));
        // 20 bytes of IP, 8 of UDP.
        let counters = flow.counters.map(|counters| counters.map(|c| (c.packets, c.bytes)));
        assert_eq!(counters, [Some((1, 36)), Some((1, 32))]);
        assert!(flow.timestamps.is_some_and(|times| times.start > 0 && times.stop.is_none()));
        let zeroed = tracker.list_and_zero(Some(Family::Ipv4)).unwrap();
        assert!(zeroed.iter().any(|seen| seen.counters == flow.counters));
        let after = tracker.get(&flow.original, None).unwrap();
        assert_eq!(after.counters[0].map(|c| c.packets), Some(0));
    });
}
