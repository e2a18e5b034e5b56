//! Bytes of all kinds as what the kernel says of flows: nothing panics, every flow that is read prints as one
//! line in every format, is chosen by a filter made of it, and is the same after it was created from what was
//! read.
//!
//! The input is a datagram. The sequence number of each message is set to the one that is awaited.

use sluicegate_conntrack::stale::{self, Services};
use sluicegate_conntrack::{Client, Event, Filter, Flow, Format, Layout, NewFlow, Protocol, Verb};
use sluicegate_netlink::message::{self, Messages};
use sluicegate_netlink::{Error, Transport, Wait, scripted};

pub(crate) fn run(data: &[u8]) {
    for message in Messages::new(data).filter_map(Result::ok) {
        if let Ok(Some(event)) = Event::decode(message)
            && let Some(flow) = event.flow()
        {
            printed(flow);
            chosen(flow);
            created(flow);
        }
    }
    let answer = Kernel { answer: addressed(data), ..Kernel::default() };
    let mut filter = Filter::default();
    filter.protocol = Some(Protocol::UDP);
    filter.original.destination_port = Some(53);
    let flows = Client::with_transport(answer.clone()).list(&filter);
    assert!(flows.iter().flatten().all(|flow| filter.matches(flow)));
    let _ = Client::with_transport(answer.clone()).count();
    let mut services = Services::new();
    services.frontend(Protocol::UDP, "10.96.0.10:53".parse().expect("an address"), []);
    let mut client = Client::with_transport(answer);
    let _ = stale::sync(&mut client, &services);
    // Whatever the kernel says, nothing is sent that would empty the table.
    for sent in client.into_transport().sent {
        for message in Messages::new(&sent).filter_map(Result::ok) {
            let (_, attributes) = message.netfilter().expect("a message of ours");
            let tuple = attributes.find(1).expect("attributes of ours");
            assert!(message.header.kind != 0x0102 || tuple.is_some());
        }
    }
}

fn printed(flow: &Flow) {
    assert_eq!(flow.to_string().lines().count(), 1);
    for layout in [Layout::Line, Layout::Xml, Layout::Save] {
        for verb in [Verb::Listed, Verb::Deleted, Verb::Destroy] {
            let format =
                Format { layout, verb, layer3: true, id: true, timestamps: true, now: 1, when: true };
            assert_eq!(format.flow(flow).to_string().lines().count(), 1);
        }
    }
}

fn chosen(flow: &Flow) {
    let mut filter = Filter::default();
    filter.family = Some(flow.family());
    filter.protocol = Some(flow.original.protocol);
    filter.original.source = Some(flow.original.source().into());
    filter.original.destination_port = flow.original.destination_port();
    filter.reply.source = Some(flow.reply.source().into());
    filter.reply.source_port = flow.reply.source_port();
    filter.status.set = flow.status.unwrap_or_default();
    filter.zone = Some(flow.zone.unwrap_or(0));
    // The kernel's two tuples are of one family and protocol; these bytes need not be.
    if filter.check().is_ok() {
        assert!(filter.matches(flow));
    }
}

fn created(flow: &Flow) {
    let mut new = NewFlow::new(flow.original, flow.timeout.unwrap_or(0));
    (new.reply, new.mark, new.zone) = (flow.reply, flow.mark, flow.zone);
    new.protocol_info = flow.protocol_info;
    new.status = flow.status.unwrap_or_default();
    let mut client = Client::with_transport(Kernel::default());
    let _ = client.create(&[new.clone()]);
    let sent = client.into_transport().sent;
    let message = Messages::new(&sent[0]).next().expect("a message").expect("a message of ours");
    let again = Flow::decode(message).expect("a flow of ours");
    assert_eq!((again.original, again.reply), (new.original, new.reply));
    assert_eq!((again.mark, again.zone, again.protocol_info), (new.mark, new.zone, new.protocol_info));
}

/// The input with its messages addressed to the request that awaits them, and an end.
fn addressed(data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for message in Messages::new(data).filter_map(Result::ok) {
        let header = message::Header { sequence: 1, ..message.header };
        bytes.extend(message::encode(header, message.payload));
    }
    bytes.extend(scripted::done(1));
    bytes
}

/// A kernel that gives one answer to the first question, and agrees to everything else.
#[derive(Clone, Default)]
struct Kernel {
    answer: Vec<u8>,
    sent: Vec<Vec<u8>>,
    last: u32,
}

impl Transport for Kernel {
    fn send(&mut self, datagram: &[u8]) -> Result<(), Error> {
        for message in Messages::new(datagram) {
            self.last = message?.header.sequence;
        }
        self.sent.push(datagram.to_vec());
        Ok(())
    }

    fn receive(&mut self, buffer: &mut Vec<u8>, wait: Wait) -> Result<bool, Error> {
        buffer.clear();
        if wait == Wait::No {
            return Ok(false);
        }
        let answer = std::mem::take(&mut self.answer);
        buffer.extend(if self.last == 1 && !answer.is_empty() { answer } else { scripted::ack(self.last) });
        Ok(true)
    }

    fn send_limit(&mut self, size: usize) -> usize {
        size
    }
}
