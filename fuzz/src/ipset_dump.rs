//! Any bytes as the kernel's answers to a listing, a query and an add: nothing panics, and whatever was
//! understood is listed in lines that are read back.
//!
//! The input is datagrams: a length of two bytes (little-endian), then as many bytes, again and again. The
//! sequence number of each message is set to the one that is awaited, so that answers are looked into.

use std::collections::VecDeque;

use sluicegate_ipset::text::{self, Output};
use sluicegate_ipset::{Client, Element, Entry, Exist, Family, Listing, Numeric, SetName, SetType, Style};
use sluicegate_netlink::{Error, Transport, Wait, attr, message, scripted};

pub(crate) fn run(data: &[u8]) {
    let datagrams = split(data);
    let set = SetName::new("s").expect("a name");
    if let Ok(sets) = client(&datagrams).list(None) {
        rendered(&sets);
    }
    if let Ok(sets) = client(&datagrams).save(Some(set)) {
        rendered(&sets);
    }
    let _ = client(&datagrams).names();
    let _ = client(&datagrams).infos(None);
    let _ = client(&datagrams).header(set);
    let _ = client(&datagrams).revision(SetType::HashIp, Family::Ipv4);
    let address = std::net::Ipv4Addr::LOCALHOST;
    let entry = Entry::new(SetType::HashIp, Family::Ipv4, Element::Ip(address.into())).expect("an entry");
    if let Err(error) = client(&datagrams).add(set, &[entry.clone(), entry.clone()], Exist::Fail) {
        assert!(!error.to_string().is_empty());
    }
    let _ = client(&datagrams).test(set, &entry);
}

/// Every line that is written is one line, and those of sets that could be wanted are read back as they are.
fn rendered(sets: &[Listing]) {
    for output in [Output::Plain, Output::Xml] {
        let mut text = String::new();
        Style { sorted: true, ..Style::new(output) }.write(&mut text, sets).expect("a string takes all");
    }
    for set in sets {
        let mut text = String::new();
        Style::new(Output::Save).write(&mut text, std::slice::from_ref(set)).expect("a string takes all");
        assert_eq!(text.lines().count(), 1 + set.entries.len());
        let strange = |text: &str| text.contains(['\u{fffd}', '\\', '"']);
        if set.info.spec().is_err() || strange(&set.info.name.to_string()) {
            continue;
        }
        for entry in &set.entries {
            let line = format!("add {} {entry}", set.info.name);
            if strange(&entry.to_string()) || set.info.name.to_string().contains(char::is_whitespace) {
                continue;
            }
            // The kernel may have more than a command line can say, but what is read must be the same.
            if let Ok(lines) = text::parse(&line, &Numeric, |_| Some((set.info.kind, set.info.family))) {
                assert!(lines.iter().all(|read| read.command.to_string().starts_with("add ")), "{line}");
            }
        }
    }
}

fn split(mut data: &[u8]) -> Vec<&[u8]> {
    let mut datagrams = Vec::new();
    while let Some(([low, high], rest)) = data.split_first_chunk() {
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(rest.len());
        let (datagram, after) = rest.split_at(length);
        datagrams.push(datagram);
        data = after;
    }
    datagrams
}

fn client<'d>(datagrams: &'d [&'d [u8]]) -> Client<Kernel<'d>> {
    Client::with_transport(Kernel { datagrams, answers: VecDeque::new() })
}

struct Kernel<'d> {
    datagrams: &'d [&'d [u8]],
    answers: VecDeque<Vec<u8>>,
}

impl Transport for Kernel<'_> {
    fn send(&mut self, request: &[u8]) -> Result<(), Error> {
        let sequence: [u8; 4] = request[8..12].try_into().expect("a header");
        let number = u32::from_ne_bytes(sequence);
        if request[4] == 1 {
            // PROTOCOL is answered as it should be, to get further.
            let payload = [
                &[2, 0, 0, 0][..],
                &attr::encode(|w| {
                    w.put_u8(1, 7);
                    w.put_u8(10, 6);
                })?,
            ]
            .concat();
            let header =
                message::Header { kind: 0x0601, flags: message::Flags::empty(), sequence: number, port: 0 };
            self.answers.extend([message::encode(header, &payload), scripted::ack(number)]);
            return Ok(());
        }
        // The target itself appends the end of a dump (NLMSG_DONE), which the netlink crate decodes.

        for datagram in self.datagrams.iter().filter(|datagram| datagram.get(4..6) != Some(&[3, 0])) {
            let mut answer = datagram.to_vec();
            if let Some(place) = answer.get_mut(8..12) {
                place.copy_from_slice(&sequence);
            }
            self.answers.push_back(answer);
        }
        self.answers.extend([scripted::done(number), scripted::ack(number)]);
        Ok(())
    }

    fn receive(&mut self, buffer: &mut Vec<u8>, _: Wait) -> Result<bool, Error> {
        buffer.clear();
        let answer = self.answers.pop_front();
        buffer.extend(answer.iter().flatten());
        Ok(answer.is_some())
    }

    fn send_limit(&mut self, size: usize) -> usize {
        size
    }
}
