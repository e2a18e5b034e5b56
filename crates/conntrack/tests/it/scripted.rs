//! Conversations with a scripted kernel: what is asked again, what is never sent, what an error says.

use sluicegate_conntrack::stale::{Services, sync};
use sluicegate_conntrack::{
    Client, Deleted, Error, Event, ExpectationKey, Family, Filter, Flow, FlowKey, Monitor, NewFlow, Protocol,
    Table, Tuple,
};
use sluicegate_netlink::attr::Attributes;
use sluicegate_netlink::message::{Flags, Messages};
use sluicegate_netlink::scripted::{self, Script};
use sluicegate_netlink::{Batch, Errno, Transport, Wait};

fn tuple(to: &str) -> Tuple {
    let from = if to.starts_with('[') { "[fd00::1]:1000" } else { "10.0.0.1:1000" };
    Tuple::with_ports(Protocol::UDP, from.parse().unwrap(), to.parse().unwrap()).unwrap()
}

/// Returns the kernel's message about a flow: what creates it, answered.
fn told(sequence: u32, to: &str, id: u32) -> Vec<u8> {
    let mut kernel = Script::new();
    kernel.expect_any().reply(scripted::ack(1));
    let mut client = Client::with_transport(kernel);
    client.create(&[NewFlow::new(tuple(to), 30)]).unwrap();
    let sent = client.into_transport().sent()[0].clone();
    let request = Messages::new(&sent).next().unwrap().unwrap();
    let mut batch = Batch::starting_at(sequence);
    let mut message = batch.message(request.header.kind, Flags::MULTI, 0);
    message.raw(request.payload);
    message.put_be32(12, id);
    drop(message);
    batch.bytes().unwrap().to_vec()
}

fn to(address: &str, port: u16) -> Filter {
    let mut filter = Filter::default();
    filter.protocol = Some(Protocol::UDP);
    filter.original.destination = Some(address.parse().unwrap());
    filter.original.destination_port = Some(port);
    filter
}

/// Returns the attributes of the one message of a datagram.
fn attributes(datagram: &[u8]) -> Vec<u16> {
    let message = Messages::new(datagram).next().unwrap().unwrap();
    let (_, attributes): (_, Attributes<'_>) = message.netfilter().unwrap();
    attributes.map(|attribute| attribute.unwrap().kind).collect()
}

const CTA_TUPLE_ORIG: u16 = 1;
const CTA_FILTER: u16 = 25;

#[test]
fn a_kernel_that_ignores_the_filter_makes_no_difference() {
    let mut kernel = Script::new();
    // It tells of everything.
    kernel
        .expect_any()
        .reply(told(1, "10.96.0.10:53", 7))
        .reply([told(1, "10.96.0.11:53", 8), told(1, "10.96.0.10:54", 9), scripted::done(1)].concat());
    kernel.expect_any().reply(scripted::ack(2));
    let mut client = Client::with_transport(kernel);
    let deleted = client.delete_matching(&to("10.96.0.10/32", 53)).unwrap();
    assert_eq!(deleted.iter().map(|flow| flow.id).collect::<Vec<_>>(), [Some(7)]);
    let kernel = client.into_transport();
    assert_eq!(attributes(&kernel.sent()[0]), [CTA_TUPLE_ORIG, CTA_FILTER]);
    // One deletion, with a tuple and without a filter.
    assert_eq!(Messages::new(&kernel.sent()[1]).count(), 1);
    assert_eq!(attributes(&kernel.sent()[1]), [CTA_TUPLE_ORIG, 12]);
    kernel.finish();
}

#[test]
fn a_kernel_that_refuses_the_filter_is_asked_without() {
    for errno in [Errno::EINVAL, Errno::EOPNOTSUPP] {
        let mut kernel = Script::new();
        kernel.expect_any().reply(scripted::error(1, errno, None, None));
        kernel.expect_any().reply([told(2, "10.96.0.10:53", 7), scripted::done(2)].concat());
        let mut client = Client::with_transport(kernel);
        assert_eq!(client.list(&to("10.96.0.10/32", 53)).unwrap().len(), 1);
        let kernel = client.into_transport();
        assert!(attributes(&kernel.sent()[1]).is_empty());
        kernel.finish();
    }
}

#[test]
fn nothing_is_sent_for_a_filter_that_cannot_be_meant() {
    let mut client = Client::with_transport(Script::new());
    assert!(matches!(client.delete_matching(&Filter::default()), Err(Error::NoCriterion)));
    let mut mixed = to("10.96.0.10/32", 53);
    mixed.family = Some(Family::Ipv6);
    assert!(matches!(client.list(&mixed), Err(Error::MixedFamilies)));
    assert!(matches!(client.delete_matching(&mixed), Err(Error::MixedFamilies)));
    assert_eq!(client.delete(&[]).unwrap(), Deleted::default());
    assert_eq!(sync(&mut client, &Services::new()).unwrap().lists, 0);
    client.into_transport().finish();
}

#[test]
fn many_deletions_go_in_few_sends_and_those_that_had_gone_are_counted() {
    let keys: Vec<FlowKey> = (0..300u16)
        .map(|n| FlowKey {
            original: tuple(&format!("10.96.0.10:{}", n + 1)),
            zone: None,
            id: Some(n.into()),
        })
        .collect();
    let mut kernel = Script::new();
    kernel.expect_any().reply(scripted::error(5, Errno::ENOENT, None, None)).reply(scripted::ack(128));
    kernel.expect_any().reply(scripted::ack(256));
    kernel.expect_any().reply(scripted::error(300, Errno::ENOENT, None, None));
    let mut client = Client::with_transport(kernel);
    assert_eq!(client.delete(&keys).unwrap(), Deleted { deleted: 298, gone: 2 });
    let kernel = client.into_transport();
    let sizes: Vec<_> = kernel.sent().iter().map(|datagram| Messages::new(datagram).count()).collect();
    assert_eq!(sizes, [128, 128, 44]);
    kernel.finish();
}

#[test]
fn a_refusal_names_the_flow() {
    let keys = [53, 54, 55].map(|port| FlowKey {
        original: tuple(&format!("10.96.0.10:{port}")),
        zone: None,
        id: None,
    });
    let mut kernel = Script::new();
    kernel.expect_any().reply(scripted::error(1, Errno::ENOENT, None, None)).reply(
        [scripted::error(2, Errno::EPERM, None, None), scripted::error(3, Errno::EPERM, None, None)].concat(),
    );
    let error = Client::with_transport(kernel).delete(&keys).unwrap_err();
    assert!(error.is_permission_denied());
    assert_eq!(
        error.to_string(),
        "delete ipv4 udp src=10.0.0.1 dst=10.96.0.10 sport=1000 dport=54 and 1 more: EPERM (Operation not \
         permitted); \
         this needs CAP_NET_ADMIN in the network namespace"
    );
}

#[test]
fn a_list_that_lost_messages_is_not_taken_as_the_whole() {
    let mut kernel = Script::new();
    kernel.expect_any().reply(told(1, "10.96.0.10:53", 7)).overrun().reply(scripted::done(1));
    let mut services = Services::new();
    services.frontend(Protocol::UDP, "10.96.0.10:53".parse().unwrap(), []);
    let mut client = Client::with_transport(kernel);
    let error = sync(&mut client, &services).unwrap_err();
    assert!(
        matches!(error, Error::Netlink { command: "list", source: sluicegate_netlink::Error::Overrun }),
        "{error}"
    );
    assert_eq!(client.into_transport().sent().len(), 1, "nothing was deleted");
}

#[test]
fn an_answer_without_what_was_asked_for_is_an_error() {
    let mut kernel = Script::new();
    kernel.expect_any().reply(scripted::ack(1));
    kernel.expect_any().reply(scripted::ack(2));
    let mut client = Client::with_transport(kernel);
    assert_eq!(
        client.count().unwrap_err().to_string(),
        "count: the kernel's answer lacks CTA_STATS_GLOBAL_ENTRIES"
    );
    assert!(matches!(client.get(&tuple("10.96.0.10:53"), None), Err(Error::Answer { command: "get", .. })));
}

#[test]
fn a_kernel_without_the_subsystem_is_told_apart() {
    let mut kernel = Script::new();
    kernel.expect_any().reply(scripted::error(1, Errno::EINVAL, None, None));
    let error = Client::with_transport(kernel).count().unwrap_err();
    assert!(error.is_unsupported());
    assert!(error.to_string().ends_with("the kernel may lack the module nf_conntrack_netlink"), "{error}");
}

#[test]
fn flush_is_the_only_request_without_a_tuple_that_changes_anything() {
    let mut kernel = Script::new();
    kernel.expect_any().reply(scripted::ack(1));
    kernel.expect_any().reply(scripted::ack(2));
    let mut client = Client::with_transport(kernel);
    client.flush(None).unwrap();
    client.flush(Some(Family::Ipv6)).unwrap();
    let kernel = client.into_transport();
    // nfgenmsg: family, version, resource. The kernel heeds the family of version 1.
    let heads: Vec<_> = kernel.sent().iter().map(|sent| sent[16..].to_vec()).collect();
    assert_eq!(heads, [[0, 0, 0, 0], [10, 1, 0, 0]]);
}

#[test]
fn events_that_were_lost_are_an_event_and_those_of_others_are_passed_over() {
    let mut kernel = Script::new();
    let mut other = Batch::new();
    // NFNL_SUBSYS_QUEUE
    drop(other.netfilter(3, 0, Flags::empty(), 2, 0));
    kernel.queued([other.bytes().unwrap().to_vec(), told(0, "10.96.0.10:53", 7)].concat());
    let mut monitor = Monitor::with_transport(kernel);
    let [Event::Update(Flow { id: Some(7), .. })] = monitor.events().unwrap()[..] else {
        panic!("another event")
    };

    struct Full;
    impl Transport for Full {
        fn send(&mut self, _: &[u8]) -> Result<(), sluicegate_netlink::Error> {
            Ok(())
        }
        fn receive(&mut self, _: &mut Vec<u8>, _: Wait) -> Result<bool, sluicegate_netlink::Error> {
            Err(sluicegate_netlink::Error::Overrun)
        }
        fn send_limit(&mut self, size: usize) -> usize {
            size
        }
    }
    assert_eq!(Monitor::with_transport(Full).events().unwrap(), [Event::Overrun]);
}

#[test]
fn flows_come_one_after_the_other_and_the_rest_may_be_left() {
    let mut kernel = Script::new();
    kernel
        .expect_any()
        .reply([told(1, "10.96.0.10:53", 7), told(1, "10.96.0.11:53", 8)].concat())
        .reply([told(1, "10.96.0.10:53", 9), scripted::done(1)].concat());
    let mut client = Client::with_transport(kernel);
    let ids = |flows: sluicegate_conntrack::Flows<'_, Script>| -> Vec<_> {
        flows.map(|flow| flow.unwrap().id.unwrap()).collect()
    };
    assert_eq!(ids(client.flows(Table::Conntrack, &to("10.96.0.10/32", 53)).unwrap()), [7, 9]);
    client.into_transport().finish();

    // What is left unread is not taken for the answer to the next question.
    let mut kernel = Script::new();
    kernel
        .expect_any()
        .reply(told(1, "10.96.0.10:53", 7))
        .reply([told(1, "10.96.0.10:53", 8), scripted::done(1)].concat());
    kernel.expect_any().reply([told(2, "10.96.0.10:53", 9), scripted::done(2)].concat());
    let mut client = Client::with_transport(kernel);
    let first = client.flows(Table::Conntrack, &Filter::default()).unwrap().next().unwrap().unwrap();
    assert_eq!(first.id, Some(7));
    assert_eq!(client.list(&Filter::default()).unwrap().len(), 1);
}

#[test]
fn flows_are_asked_for_again_without_a_filter_that_is_refused_and_end_with_an_error() {
    let mut kernel = Script::new();
    kernel.expect_any().reply(scripted::error(1, Errno::EINVAL, None, None));
    kernel.expect_any().reply(told(2, "10.96.0.10:53", 7)).reply(scripted::error(
        2,
        Errno::ENOMEM,
        None,
        None,
    ));
    let mut client = Client::with_transport(kernel);
    let mut flows = client.flows(Table::Conntrack, &to("10.96.0.10/32", 53)).unwrap();
    assert_eq!(flows.next().unwrap().unwrap().id, Some(7));
    assert_eq!(flows.next().unwrap().unwrap_err().errno(), Some(Errno::ENOMEM));
    assert!(flows.next().is_none());
    let kernel = client.into_transport();
    assert_eq!(attributes(&kernel.sent()[0]), [CTA_TUPLE_ORIG, CTA_FILTER]);
    assert!(attributes(&kernel.sent()[1]).is_empty());
}

#[test]
fn an_expectation_is_deleted_by_its_tuple_and_named_when_that_fails() {
    let mut kernel = Script::new();
    kernel.expect_any().reply(scripted::error(1, Errno::ENOENT, None, None));
    let mut client = Client::with_transport(kernel);
    let key = ExpectationKey { expected: tuple("10.96.0.10:53"), zone: Some(5), id: Some(7) };
    let error = client.delete_expectation(&key).unwrap_err();
    assert!(error.is_not_found());
    let named = "delete expectation ipv4 udp src=10.0.0.1 dst=10.96.0.10 sport=1000 dport=53: ";
    assert!(error.to_string().starts_with(named), "{error}");
    // CTA_EXPECT_TUPLE, CTA_EXPECT_ID, CTA_EXPECT_ZONE: without the first it would be a flush.
    assert_eq!(attributes(&client.into_transport().sent()[0]), [2, 5, 7]);
}
