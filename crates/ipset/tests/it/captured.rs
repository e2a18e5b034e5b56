//! Replays captured conversations between ipset and the kernel (testdata/): our requests equal those of
//! ipset, byte for byte, and the kernel's answers are decoded.
//!
//! There are four intended differences. We request an acknowledgement with every query (PROTOCOL, HEADER,
//! TYPE), so that an answer always ends. We do not query the type of a set that the caller knows. Our line
//! number at command level, which the kernel only overwrites, is 0. And ipset queries a type before it reads
//! the family, so always that of IPv4.

use std::collections::{BTreeSet, VecDeque};

use sluicegate_ipset::text::{self, Command};
use sluicegate_ipset::{Client, Entry, Errno, Error, Exist, Family, Numeric, SetName, SetType};
use sluicegate_netlink::attr::Attributes;
use sluicegate_netlink::{Transport, Wait, scripted};

const NEW: &str = include_str!("../../testdata/ipset-7.17-linux-6.18.txt");
const OLD: &str = include_str!("../../testdata/ipset-7.17-linux-6.1.txt");

struct Section {
    command: String,
    exchanges: VecDeque<Exchange>,
}

#[derive(Clone)]
struct Exchange {
    request: Vec<u8>,
    answers: Vec<Vec<u8>>,
}

fn sections(file: &str) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    for line in file.lines().filter(|line| !line.starts_with(';')) {
        let (mark, rest) = line.split_once(' ').unwrap();
        if mark == "#" {
            sections.push(Section { command: rest.to_owned(), exchanges: VecDeque::new() });
            continue;
        }
        let exchanges = &mut sections.last_mut().unwrap().exchanges;
        let bytes: Vec<u8> =
            (0..rest.len()).step_by(2).map(|at| u8::from_str_radix(&rest[at..at + 2], 16).unwrap()).collect();
        match mark {
            ">" => exchanges.push_back(Exchange { request: bytes, answers: Vec::new() }),
            _ => exchanges.back_mut().unwrap().answers.push(bytes),
        }
    }
    sections
}

/// A transport that expects the requests of a section and gives the captured answers.
struct Replay {
    exchanges: VecDeque<Exchange>,
    answers: VecDeque<Vec<u8>>,
}

const PROTOCOL: u8 = 1;
const HEADER: u8 = 12;
const TYPE: u8 = 13;

fn is_query(command: u8) -> bool {
    matches!(command, PROTOCOL | HEADER | TYPE)
}

/// Removes sequence number and port, and the parts that differ on purpose.
fn comparable(datagram: &[u8]) -> Vec<u8> {
    let mut bytes = datagram.to_vec();
    bytes[8..16].fill(0);
    if is_query(bytes[4]) {
        bytes[6] &= !4;
    }
    let attributes = || Attributes::at(&datagram[20..], 20).map(Result::unwrap);
    if let Some(family) = attributes().find(|attribute| attribute.kind == 5).filter(|_| bytes[4] == TYPE) {
        bytes[family.offset + 4] = 0;
    }
    let line = attributes().find(|attribute| attribute.kind == 9);
    if let Some(line) = line {
        bytes[line.offset + 4..line.offset + 8].fill(0);
    }
    bytes
}

impl Transport for Replay {
    fn send(&mut self, datagram: &[u8]) -> Result<(), sluicegate_netlink::Error> {
        // Skip the query of a type that the caller knows.
        while self.exchanges.front().is_some_and(|next| next.request[4] == HEADER && datagram[4] != HEADER) {
            self.exchanges.pop_front();
        }
        let exchange = self.exchanges.pop_front().expect("no further request");
        assert_eq!(comparable(datagram), comparable(&exchange.request));
        let sequence: [u8; 4] = datagram[8..12].try_into().unwrap();
        let mut failed = false;
        for mut answer in exchange.answers {
            answer[8..12].copy_from_slice(&sequence);
            failed |= answer[4] == 2;
            self.answers.push_back(answer);
        }
        if is_query(datagram[4]) && !failed {
            self.answers.push_back(scripted::ack(u32::from_ne_bytes(sequence)));
        }
        Ok(())
    }

    fn receive(&mut self, buffer: &mut Vec<u8>, wait: Wait) -> Result<bool, sluicegate_netlink::Error> {
        buffer.clear();
        match self.answers.pop_front() {
            Some(answer) => {
                buffer.extend(answer);
                Ok(true)
            }
            None if wait == Wait::No => Ok(false),
            None => panic!("the client waits for more answers than were captured"),
        }
    }

    fn send_limit(&mut self, _: usize) -> usize {
        usize::MAX
    }
}

/// Returns the error number of the last answer, 0 if that is not an error.
fn captured_code(section: &Section) -> i32 {
    let answer = section.exchanges.back().unwrap().answers.last().unwrap();
    let code = i32::from_ne_bytes(answer[16..20].try_into().unwrap());
    if answer[4] == 2 { -code } else { 0 }
}

/// The state of the set `s` after the commands so far.
#[derive(Default)]
struct Known {
    created: Option<(SetType, Family)>,
    line: String,
    entries: Vec<Entry>,
}

fn play(file: &str) -> BTreeSet<String> {
    let mut known = Known::default();
    let mut commands = BTreeSet::new();
    for section in sections(file) {
        let expected = captured_code(&section);
        let replay = Replay { exchanges: section.exchanges.clone(), answers: VecDeque::new() };
        let mut client = Client::with_transport(replay);
        let outcome = run(&mut client, &section.command, &mut known);
        match outcome {
            Ok(()) => assert_eq!(expected, 0, "{}", section.command),
            Err(Error::Refused(refusal)) => assert_eq!(refusal.errno, Errno(expected), "{}", section.command),
            Err(error) => panic!("{}: {error}", section.command),
        }
        let replay = client.into_transport();
        assert!(replay.exchanges.is_empty(), "{}: captured requests were not sent", section.command);
        assert!(replay.answers.is_empty(), "{}: captured answers were not read", section.command);
        commands.extend(section.exchanges.iter().map(|exchange| format!("{}", exchange.request[4])));
    }
    commands
}

fn run(client: &mut Client<Replay>, command: &str, known: &mut Known) -> Result<(), Error> {
    let (exist, command) = match command.strip_prefix("-exist ") {
        Some(rest) => (Exist::Ignore, rest),
        None => (Exist::Fail, command),
    };
    if let Some(lines) = command.strip_prefix("restore ") {
        return restore(client, lines, known);
    }
    match command {
        "save" => client.save(None).map(|sets| assert_eq!(sets.len(), 2)),
        "list -n" => client.names().map(|names| assert_eq!(names.len(), 2)),
        "list -t" => client.infos(None).map(|infos| assert_eq!(infos[0].entries, Some(1))),
        "list" => client.list(None).map(|sets| assert!(sets.is_empty())),
        "list s" => {
            let listing = client.list(Some(SetName::new("s").unwrap()))?.remove(0);
            let texts = |entries: &[Entry]| -> BTreeSet<String> {
                entries.iter().map(|entry| entry.element().to_string()).collect()
            };
            let stored: Vec<Entry> =
                known.entries.iter().flat_map(|entry| entry.stored(&listing.info.options).unwrap()).collect();
            assert_eq!(texts(&listing.entries), texts(&stored), "{}", known.line);
            let wanted = known.created.unwrap();
            assert_eq!((listing.info.kind, listing.info.family), wanted);
            Ok(())
        }
        _ if command.starts_with("list ") => {
            client.list(Some(SetName::new(&command[5..]).unwrap())).map(|_| ())
        }
        _ => {
            let line = text::parse(command, &Numeric, |_| known.created).unwrap().remove(0);
            if let Command::Create(spec) = &line.command {
                *known = Known {
                    created: Some((spec.set_type(), spec.family())),
                    line: command.to_owned(),
                    entries: Vec::new(),
                };
            }
            client.apply(&line.command, exist)
        }
    }
}

fn restore(client: &mut Client<Replay>, lines: &str, known: &mut Known) -> Result<(), Error> {
    let (exist, lines) = match lines.strip_prefix("-exist ") {
        Some(rest) => (Exist::Ignore, rest),
        None => (Exist::Fail, lines),
    };
    let commands = text::parse(&lines.replace(" | ", "\n"), &Numeric, |_| known.created).unwrap();
    let (mut added, mut deleted, mut target) = (Vec::new(), Vec::new(), None);
    for line in commands {
        match line.command {
            Command::Add(set, entry) => {
                target = Some(set);
                added.push(entry);
            }
            Command::Delete(set, entry) => {
                target = Some(set);
                deleted.push(entry);
            }
            other => panic!("{other}"),
        }
    }
    let set = target.unwrap();
    if added.is_empty() {
        return client.delete_in_order(set, &deleted, exist);
    }
    known.entries.clone_from(&added);
    client.add_in_order(set, &added, exist)
}

#[test]
fn requests_equal_those_of_ipset_to_linux_6_18() {
    let commands = play(NEW);
    // CREATE to TEST, and the three queries; all but the two that ipset itself never sends.
    for command in 1..=13 {
        assert!(commands.contains(&command.to_string()), "command {command} was not captured");
    }
}

#[test]
fn requests_equal_those_of_ipset_to_linux_6_1() {
    play(OLD);
}

#[test]
fn a_captured_refusal_names_its_entry() {
    let section =
        sections(NEW).into_iter().find(|s| s.command == "restore add a 10.0.0.2 | add a 10.0.0.1").unwrap();
    let mut client =
        Client::with_transport(Replay { exchanges: section.exchanges, answers: VecDeque::new() });
    let entries: Vec<_> = ["10.0.0.2", "10.0.0.1"]
        .iter()
        .map(|text| Entry::parse(SetType::HashIp, Family::Ipv4, text, &Numeric).unwrap())
        .collect();
    let error = client.add_in_order(SetName::new("a").unwrap(), &entries, Exist::Fail).unwrap_err();
    assert_eq!(error.to_string(), "add a 10.0.0.1: the entry is in the set already");
    let Error::Refused(refusal) = error else { panic!("a refusal") };
    assert_eq!(refusal.index, Some(1));
}

/// With `NLM_F_DUMP_INTR` on the first attempt the dump is discarded and repeated.
#[test]
fn a_dump_that_changed_while_it_was_read_is_read_again() {
    let section = sections(NEW).into_iter().find(|section| section.command == "save").unwrap();
    let mut exchanges = section.exchanges;
    let whole = exchanges.back().unwrap().clone();
    exchanges.back_mut().unwrap().answers[0][6] |= 0x10;
    let mut client =
        Client::with_transport(Replay { exchanges: exchanges.clone(), answers: VecDeque::new() });
    client.protocol().unwrap();
    let mut replay = client.into_transport();
    replay.exchanges.push_front(exchanges.front().unwrap().clone());
    replay.exchanges.push_back(whole);
    let mut client = Client::with_transport(replay);
    let sets = client.save(None).unwrap();
    let names: Vec<_> = sets.iter().map(|set| set.info.name.to_string()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(sets[0].entries.len(), 1);
    assert!(client.into_transport().exchanges.is_empty());
}

#[test]
fn no_cut_of_a_captured_dump_makes_the_reader_panic() {
    for section in sections(NEW).into_iter().chain(sections(OLD)) {
        if !section.command.starts_with("list") && section.command != "save" {
            continue;
        }
        let last = section.exchanges.back().unwrap().answers.first().unwrap().len();
        for cut in 16..last {
            let mut exchanges = section.exchanges.clone();
            let answer = &mut exchanges.back_mut().unwrap().answers[0];
            answer.truncate(cut);
            // Also with a length that agrees with the cut, so that it is the attributes that are short.
            let length = u32::try_from(cut).unwrap().to_ne_bytes();
            for patched in [false, true] {
                let mut exchanges = exchanges.clone();
                if patched {
                    exchanges.back_mut().unwrap().answers[0][..4].copy_from_slice(&length);
                }
                let mut client = Client::with_transport(Replay { exchanges, answers: VecDeque::new() });
                let _ = match section.command.as_str() {
                    "save" => client.save(None),
                    "list s" => client.list(Some(SetName::new("s").unwrap())),
                    _ => continue,
                };
            }
        }
    }
}
