//! Replays captured conversations between conntrack 1.4.7 and the kernel (testdata/): the kernel's messages
//! print as the tool printed them, byte for byte, and our requests equal those of the tool.
#![cfg(target_endian = "little")]

use std::collections::BTreeMap;

use sluicegate_conntrack::{
    AddressPort, Client, Event, Family, Filter, Flow, FlowChange, Format, Layout, MarkMatch, NewFlow,
    Protocol, Statistic, Status, Tuple, Verb,
};
use sluicegate_netlink::attr::{Attribute, Attributes};
use sluicegate_netlink::message::Messages;
use sluicegate_netlink::scripted::{self, Script};

const CAPTURED: &str = include_str!("../../testdata/conntrack-1.4.7-linux-6.18.txt");

#[derive(Default)]
struct Section {
    command: &'static str,
    requests: Vec<Vec<u8>>,
    answers: Vec<Vec<u8>>,
    printed: Vec<&'static str>,
}

fn sections() -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    for line in CAPTURED.lines().filter(|line| !line.starts_with(';')) {
        let (mark, rest) = line.split_once(' ').unwrap();
        let bytes = || -> Vec<u8> {
            (0..rest.len()).step_by(2).map(|at| u8::from_str_radix(&rest[at..at + 2], 16).unwrap()).collect()
        };
        match (mark, sections.last_mut()) {
            ("#", _) => sections.push(Section { command: rest, ..Section::default() }),
            (">", Some(section)) => section.requests.push(bytes()),
            ("<", Some(section)) => section.answers.push(bytes()),
            (_, Some(section)) => section.printed.push(rest),
            (_, None) => panic!("{line}"),
        }
    }
    sections
}

fn section(command: &str) -> Section {
    sections().into_iter().find(|section| section.command == command).unwrap()
}

/// Returns the format of a command line.
fn format(command: &str) -> Format {
    let mut format = Format::default();
    let output = command.split_once("-o ").map_or("", |(_, output)| output);
    for word in output.split(',') {
        match word {
            "extended" => format.layer3 = true,
            "id" => format.id = true,
            "ktimestamp" => format.timestamps = true,
            "xml" => format.layout = Layout::Xml,
            "save" => format.layout = Layout::Save,
            _ => {}
        }
    }
    format
}

#[test]
fn the_kernels_messages_print_as_the_tool_printed_them() {
    let mut lines = 0;
    for section in sections().iter().filter(|s| s.command.starts_with("-L") || s.command.starts_with("-G")) {
        // The sequence numbers of the tool are the second in which it starts, and it prints in that one or
        // the next.
        let started = Messages::new(&section.requests[0]).next().unwrap().unwrap().header.sequence;
        let messages = section.answers.iter().flat_map(|answer| Messages::new(answer).map(Result::unwrap));
        let flows: Vec<_> =
            messages.filter(|m| m.header.kind == 0x0100).map(|m| Flow::decode(m).unwrap()).collect();
        let print = |later: u32| -> Vec<String> {
            let format = Format { now: u64::from(started + later), ..format(section.command) };
            flows.iter().map(|flow| format.flow(flow).to_string()).collect()
        };
        let printed = section.printed.iter();
        let theirs: Vec<_> =
            printed.filter(|line| !line.starts_with("<?xml") && !line.ends_with("conntrack>")).collect();
        let ours = if print(1).iter().eq(theirs.iter().copied()) { print(1) } else { print(0) };
        assert_eq!(ours.iter().collect::<Vec<_>>(), theirs, "{}", section.command);
        lines += ours.len();
    }
    assert_eq!(lines, 47, "lines that were compared");
}

#[test]
fn events_print_as_the_tool_printed_them() {
    let mut lines = 0;
    for section in sections().iter().filter(|section| section.command.starts_with("-E")) {
        let messages = section.answers.iter().flat_map(|answer| Messages::new(answer).map(Result::unwrap));
        let events = messages.filter_map(|message| Event::decode(message).unwrap());
        let ours: Vec<_> = events
            .map(|event| {
                let verb = match event {
                    Event::New(_) => Verb::New,
                    Event::Update(_) => Verb::Update,
                    Event::Destroy(_) => Verb::Destroy,
                    other => panic!("{other:?}"),
                };
                let format = Format { verb, now: 0, ..format(section.command) };
                without_age(&format.flow(event.flow().unwrap()).to_string())
            })
            .collect();
        let printed = section.printed.iter();
        let flows = printed.filter(|line| !line.starts_with("<?xml") && !line.ends_with("conntrack>"));
        // The header of the message names the originator, not the flow.
        let flows = flows.map(|line| line.split(" [USERSPACE]").next().unwrap());
        assert_eq!(ours, flows.map(without_age).collect::<Vec<_>>(), "{}", section.command);
        lines += ours.len();
    }
    assert_eq!(lines, 6, "lines that were compared");
}

/// Removes the age of flows: the time when an event was printed is not recorded.
fn without_age(line: &str) -> String {
    for (before, after) in [(" delta-time=", ' '), ("<deltatime>", '<')] {
        if let Some((head, tail)) = line.split_once(before) {
            return format!("{head}{before}{}", &tail[tail.find(after).unwrap_or(tail.len())..]);
        }
    }
    line.to_owned()
}

/// Returns the first datagram that a client sends.
fn sent(talk: impl FnOnce(&mut Client<Script>)) -> Vec<u8> {
    let mut kernel = Script::new();
    kernel.expect_any().reply(scripted::done(1)).reply(scripted::ack(1));
    let mut client = Client::with_transport(kernel);
    talk(&mut client);
    client.into_transport().sent()[0].clone()
}

/// Returns the type, the family, and the attributes by their path, whose order and padding do not matter.
fn content(datagram: &[u8]) -> (u16, u8, BTreeMap<Vec<u16>, Vec<u8>>) {
    let message = Messages::new(datagram).next().unwrap().unwrap();
    let (header, attributes) = message.netfilter().unwrap();
    let mut found = BTreeMap::new();
    walk(attributes, &mut Vec::new(), &mut found);
    (message.header.kind, header.family, found)
}

fn walk(attributes: Attributes<'_>, path: &mut Vec<u16>, found: &mut BTreeMap<Vec<u16>, Vec<u8>>) {
    for attribute in attributes {
        let attribute: Attribute<'_> = attribute.unwrap();
        path.push(attribute.kind);
        if attribute.nested {
            walk(attribute.attributes(), path, found);
        } else {
            found.insert(path.clone(), attribute.payload.to_vec());
        }
        path.pop();
    }
}

fn dns() -> Tuple {
    let (client, service) = ("10.0.0.1:1000".parse().unwrap(), "10.96.0.10:53".parse().unwrap());
    Tuple::with_ports(Protocol::UDP, client, service).unwrap()
}

#[test]
fn requests_are_those_of_the_tool() {
    let first = |command: &str| content(&section(command).requests[0]);
    let ours = sent(|client| drop(client.list(&Filter::default())));
    assert_eq!(content(&ours), first("-L"));
    let mut family = Filter::default();
    family.family = Some(Family::Ipv6);
    assert_eq!(content(&sent(|client| drop(client.list(&family)))), first("-L -f ipv6"));
    let mut marked = Filter::default();
    marked.mark = Some(MarkMatch { value: 3, mask: 3 });
    marked.status.set = Status::ASSURED;
    assert_eq!(content(&sent(|client| drop(client.list(&marked)))), first("-L -m 3/3 -u ASSURED"));
    assert_eq!(content(&sent(|client| drop(client.count()))), first("-C"));
    assert_eq!(content(&sent(|client| drop(client.flush(None)))), first("-F"));
    let get = "-G -p udp -s 10.0.0.1 -d 10.96.0.10 --sport 1000 --dport 53";
    assert_eq!(content(&sent(|client| drop(client.get(&dns(), None)))), first(get));
}

#[test]
fn flows_are_created_as_the_tool_creates_them() {
    let created = sections().into_iter().filter(|section| section.command.starts_with("-I"));
    let mut count = 0;
    for section in created {
        let request = Messages::new(&section.requests[0]).next().unwrap().unwrap();
        let asked = Flow::decode(request).unwrap();
        let mut new = NewFlow::new(asked.original, asked.timeout.unwrap());
        (new.reply, new.mark, new.zone) = (asked.reply, asked.mark, asked.zone);
        new.protocol_info = asked.protocol_info;
        let (kind, family, mut ours) = content(&sent(|client| drop(client.create(&[new]))));
        let (their_kind, their_family, mut theirs) = content(&section.requests[0]);
        assert_eq!((kind, family), (their_kind, their_family), "{}", section.command);
        // Our request has the status bit CONFIRMED, which the kernel adds anyway. The tool requests a NAT
        // setup, we send the reply tuple; and the tool sets the flags of TCP window tracking.
        ours.remove(&vec![CTA_STATUS]);
        theirs.retain(|path, _| {
            !matches!(path[0], CTA_STATUS | CTA_NAT_SRC | CTA_NAT_DST)
                && !path.starts_with(&TCP_FLAGS_ORIG)
                && !path.starts_with(&TCP_FLAGS_REPLY)
        });
        assert_eq!(ours, theirs, "{}", section.command);
        count += 1;
    }
    assert_eq!(count, 11, "commands that were compared");
}

#[test]
fn a_translation_is_requested_as_by_the_tool() {
    let section =
        sections().into_iter().find(|section| section.command.contains(" -g 10.1.1.1:8080")).unwrap();
    let (_, _, theirs) = content(&section.requests[0]);
    let asked = Flow::decode(Messages::new(&section.requests[0]).next().unwrap().unwrap()).unwrap();
    let mut new = NewFlow::new(asked.original, asked.timeout.unwrap());
    new.destination_nat = Some(AddressPort { address: Some("10.1.1.1".parse().unwrap()), port: Some(8080) });
    let (_, _, ours) = content(&sent(|client| drop(client.create(&[new]))));
    let nat = |found: &BTreeMap<Vec<u16>, Vec<u8>>| -> Vec<_> {
        let nat = found.iter().filter(|(path, _)| matches!(path[0], CTA_NAT_SRC | CTA_NAT_DST));
        nat.map(|(path, value)| (path.clone(), value.clone())).collect()
    };
    assert_eq!(nat(&ours), nat(&theirs));
    assert!(nat(&ours).len() >= 3, "{ours:?}");
}

#[test]
fn a_change_is_requested_as_by_the_tool() {
    let section = section("-U -p udp -s 10.0.0.1 -u ASSURED,SEEN_REPLY -t 100 -m 7");
    let flow = Flow::decode(Messages::new(&section.answers[0]).next().unwrap().unwrap()).unwrap();
    let mut change = FlowChange::default();
    (change.timeout, change.mark) = (Some(100), Some(7));
    change.status = Some(flow.status.unwrap() | Status::ASSURED | Status::SEEN_REPLY);
    assert!(!change.is_done(&flow));
    let ours = sent(|client| drop(client.update(&[(flow.key(), change)])));
    assert_eq!(content(&ours), content(&section.requests[1]));
    let flags = |datagram: &[u8]| Messages::new(datagram).next().unwrap().unwrap().header.flags;
    // A change does not create a flow.
    assert_eq!(flags(&ours), flags(&section.requests[1]));
    let after = section.answers[2].as_slice();
    let after = Flow::decode(Messages::new(after).next().unwrap().unwrap()).unwrap();
    assert!(change.is_done(&after), "{after:?}");
}

/// Runs `talk` with the kernel's answers of a section, whatever it requests.
fn played<T>(section: &Section, talk: impl FnOnce(&mut Client<Script>) -> T) -> T {
    let mut kernel = Script::new();
    let step = kernel.expect_any();
    for answer in &section.answers {
        let mut answer = answer.clone();
        // The sequence numbers of the tool are seconds, and ours begin with 1.
        let mut at = 0;
        while let Some(length) = answer.get(at..at + 4) {
            let length = u32::from_le_bytes(length.try_into().unwrap()) as usize;
            answer[at + 8..at + 12].copy_from_slice(&1_u32.to_le_bytes());
            at += length.next_multiple_of(4);
        }
        step.reply(answer);
    }
    let mut client = Client::with_transport(kernel);
    let said = talk(&mut client);
    let sent = client.into_transport().sent()[0].clone();
    assert_eq!(content(&sent), content(&section.requests[0]), "{}", section.command);
    said
}

#[test]
fn statistics_are_requested_and_printed_as_by_the_tool() {
    let flows = section("-S");
    let ours = played(&flows, |client| client.statistics().unwrap());
    assert_eq!(ours.iter().map(ToString::to_string).collect::<Vec<_>>(), flows.printed);
    assert_eq!((ours[0].get(Statistic::INSERT), ours[0].get(Statistic::SEARCHED)), (Some(1), None));
    let expectations = section("-S expect");
    let ours = played(&expectations, |client| client.expectation_statistics().unwrap());
    assert_eq!(ours.iter().map(ToString::to_string).collect::<Vec<_>>(), expectations.printed);
}

#[test]
fn a_deletion_names_a_part_of_what_the_tool_names() {
    let section = section("-D -p udp -s 10.0.0.2");
    let listed = Messages::new(&section.answers[0]).map(Result::unwrap).map(|m| Flow::decode(m).unwrap());
    let flow = listed.into_iter().find(|flow| flow.original.source().to_string() == "10.0.0.2").unwrap();
    let (kind, family, ours) = content(&sent(|client| drop(client.delete(&[flow.key()]))));
    let (their_kind, their_family, theirs) = content(&section.requests[1]);
    assert_eq!((kind, family), (their_kind, their_family));
    let mut ours = ours;
    // Our request has the id of the listed flow, so that no later flow with the same tuple is deleted.
    assert_eq!(ours.remove(&vec![CTA_ID]), flow.id.map(|id| id.to_be_bytes().to_vec()));
    assert!(ours.contains_key(&vec![CTA_ZONE]));
    assert!(ours.iter().all(|(path, value)| theirs.get(path) == Some(value)), "{ours:?} {theirs:?}");
}

const CTA_STATUS: u16 = 3;
const CTA_NAT_SRC: u16 = 6;
const CTA_ID: u16 = 12;
const CTA_NAT_DST: u16 = 13;
const CTA_ZONE: u16 = 18;
/// `CTA_PROTOINFO`, `CTA_PROTOINFO_TCP`, `CTA_PROTOINFO_TCP_FLAGS_ORIGINAL`
const TCP_FLAGS_ORIG: [u16; 3] = [4, 1, 4];
/// `CTA_PROTOINFO`, `CTA_PROTOINFO_TCP`, `CTA_PROTOINFO_TCP_FLAGS_REPLY`
const TCP_FLAGS_REPLY: [u16; 3] = [4, 1, 5];
