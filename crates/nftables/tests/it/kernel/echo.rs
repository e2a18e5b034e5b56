//! What the kernel says that it has made (`NLM_F_ECHO`).

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};

use sluicegate_netlink::message::{Flags, Messages, NLMSG_ERROR};
use sluicegate_netlink::{Errno, NetlinkFamily, Options, Socket, Transport, Wait};
use sluicegate_nftables::expr::ObjectKind;
use sluicegate_nftables::fake::Fake;
use sluicegate_nftables::lang::{BoundChain, BoundRule, Match, Payload, Verdict};
use sluicegate_nftables::monitor::{Change, Event, GROUP, RuleChange};
use sluicegate_nftables::*;

use crate::kernel::cases::name;

fn echo() -> ApplyOptions {
    ApplyOptions::default().echo()
}

fn socket() -> Socket {
    Socket::open(NetlinkFamily::NETFILTER, &Options::default()).expect("a socket of our own namespace")
}

fn chain() -> ChainId {
    TableId::new(Family::IP, name("t")).chain(name("c"))
}

/// A rule that looks a set of its own up.
fn looks_up(last: u8) -> Rule {
    let ports = [Port(22), Port(u16::from(last) + 80)];
    chain().rule().then(Match::new(Payload::TCP_DPORT, lang::Expression::set(ports))).then(Verdict::Accept)
}

/// Something of everything; the rule of operation 6 has a set of its own, that of 7 a chain.
fn everything() -> Transaction {
    let (c, t) = (chain(), chain().table);
    let mut tx = Transaction::new();
    tx.add(Table::new(t.clone())).add(Chain::new(c.clone()));
    tx.add(Set::new(t.set(name("s")), DataType::IPV4_ADDR));
    tx.add(Elements::new(&t.set(name("s")), [Ipv4Addr::LOCALHOST, Ipv4Addr::BROADCAST].map(Element::new)));
    let counter = ObjectConfig::Counter(lang::Counter::default());
    tx.add(StatefulObject::new(t.object(ObjectKind::COUNTER, name("hits")), counter));
    tx.add(c.rule().then(Verdict::Drop)).add(looks_up(0));
    tx.insert(c.rule().then(BoundChain::jump([BoundRule::new().then(Verdict::Accept)])));
    tx
}

/// What happened, of each event.
fn notified(applied: &Applied) -> Vec<&'static str> {
    let word = |event: &Event| match event {
        Event::Table(Change::New, _) => "table",
        Event::Chain(Change::New, _) => "chain",
        Event::Rule(RuleChange::New(_), _) => "rule",
        Event::Rule(RuleChange::Deleted, _) => "no rule",
        Event::Set(Change::New, _) => "set",
        Event::Set(Change::Deleted, _) => "no set",
        Event::Elements(Change::New, _, elements) if elements.len() == 1 => "element",
        Event::Object(Change::New, _) => "object",
        other => panic!("nothing did this: {other:?}"),
    };
    applied.events.iter().map(word).collect()
}

#[test]
fn each_operation_gives_what_it_made_with_handles_as_nft_shows_them() {
    testns::netns(|| {
        let mut kernel = socket();
        let applied = everything().apply_with(&mut kernel, echo()).unwrap();
        assert!(!applied.lost);
        let expected = [
            "table", "chain", "set", "element", "element", "object",
            "rule", // the set of the next rule:
            "set", "element", "element", "rule", // the chain of the next rule:
            "chain", "rule", "rule",
        ];
        assert_eq!(notified(&applied), expected);

        let listed = read::ruleset(&mut kernel, Family::IP).unwrap();
        let in_chain: Vec<_> = listed.rules.iter().filter(|rule| rule.chain == name("c")).collect();
        let of_rules: Vec<_> = in_chain.iter().map(|rule| Some(rule.handle)).collect();
        assert_eq!(of_rules, [7, 5, 6].map(|operation| applied.handle(operation)));
        assert_eq!(applied.handle(0), Some(listed.tables[0].handle));
        assert_eq!(applied.handle(1), Some(listed.chains[0].handle));
        assert_eq!(applied.handle(2), Some(listed.sets[0].0.handle));
        assert_eq!(applied.handle(3), None);
        assert_eq!(applied.handle(4), Some(listed.objects[0].handle));
        assert_eq!(applied.handle(8), None);
        assert_eq!(applied.generation, listed.generation);

        // The fake says the same in the same order, and a plain transaction says nothing.
        let mut fake = Fake::new();
        let by_fake = everything().apply_with(&mut fake, echo()).unwrap();
        assert_eq!(notified(&by_fake), expected);
        let handles = |applied: &Applied| (1..8).map(|n| applied.handle(n)).collect::<Vec<_>>();
        assert_eq!(handles(&by_fake), handles(&applied));
        let plain = chain().rule().then(Verdict::Drop);
        let mut tx = Transaction::new();
        tx.add(plain);
        assert_eq!(tx.apply(&mut kernel).unwrap().events, []);
        assert_eq!(tx.apply(&mut fake).unwrap().events, []);
    });
}

#[test]
fn a_handle_is_the_one_that_nft_echoes() {
    if !testns::have(&["nft"]) {
        return;
    }
    testns::netns(|| {
        let mut kernel = socket();
        let _ = testns::sh("nft add table ip t; nft add chain ip t c");
        let echoed = testns::sh("nft --echo --handle add rule ip t c tcp dport { 22, 80 } accept");
        let nfts: u64 = echoed.lines().next().unwrap().rsplit(' ').next().unwrap().parse().unwrap();
        let mut tx = Transaction::new();
        tx.add(looks_up(0));
        let ours = tx.apply_with(&mut kernel, echo()).unwrap().handle(0).unwrap();
        let listed =
            read::chain_rules(&mut kernel, &TableId::new(Family::IP, name("t")).chain(name("c"))).unwrap();
        assert_eq!([nfts, ours], [listed[0].handle, listed[1].handle], "{echoed}");

        // It is what replaces and deletes the rule.
        let mut tx = Transaction::new();
        tx.replace(looks_up(1).handle(ours)).add(looks_up(2));
        let applied = tx.apply_with(&mut kernel, echo()).unwrap();
        let added = ["set", "element", "element", "rule"];
        let replaced = ["set", "element", "element", "no rule", "no set", "rule"];
        assert_eq!(notified(&applied), [&replaced[..], &added].concat());
        let listed =
            read::chain_rules(&mut kernel, &TableId::new(Family::IP, name("t")).chain(name("c"))).unwrap();
        assert_eq!([0, 1].map(|n| applied.handle(n)), [1, 2].map(|i| listed.get(i).map(|rule| rule.handle)));
        let mut tx = Transaction::new();
        tx.delete(RuleId { chain: chain(), handle: listed[1].handle });
        let applied = tx.apply_with(&mut kernel, echo()).unwrap();
        assert_eq!((applied.handle(0), notified(&applied)), (None, vec!["no rule", "no set"]));
    });
}

#[test]
fn refusals_are_complete_and_a_check_makes_nothing() {
    fn refusals(kernel: &mut impl Transport) -> Vec<(Option<usize>, Errno)> {
        let checked = everything().apply_with(kernel, echo().check()).unwrap();
        assert_eq!(checked.events, []);
        let mut tx = everything();
        tx.delete(chain().table.set(name("absent"))).add(looks_up(3)).delete(chain().table.chain(name("x")));
        let error = tx.apply_with(kernel, echo()).unwrap_err();
        error.failures().iter().map(|failure| (failure.operation, failure.error.errno)).collect()
    }
    testns::netns(|| {
        let expected = [(Some(8), Errno::ENOENT), (Some(10), Errno::ENOENT)];
        assert_eq!(refusals(&mut socket()), expected);
        assert_eq!(refusals(&mut Fake::new()), expected);
        assert!(read::tables(&mut socket(), Family::IP).unwrap().is_empty());
    });
}

fn many(rules: u16) -> Transaction {
    let mut tx = Transaction::new();
    tx.add(Table::new(chain().table)).add(Chain::new(chain()));
    for port in 0..rules {
        tx.add(chain().rule().then(Match::new(Payload::TCP_DPORT, Port(port))).then(Verdict::Accept));
    }
    tx
}

#[test]
fn ten_thousand_rules_give_ten_thousand_handles_or_say_that_some_did_not_fit() {
    testns::netns(|| {
        // A guest is slow.
        let count: u16 = if testns::guest().is_some() { 1_000 } else { 10_000 };
        let rules = usize::from(count);
        let mut kernel = socket();
        let applied = many(count).apply_with(&mut kernel, echo()).unwrap();
        let listed =
            read::chain_rules(&mut kernel, &TableId::new(Family::IP, name("t")).chain(name("c"))).unwrap();
        assert_eq!(listed.len(), rules);
        let notified =
            (0..rules).zip(&listed).filter(|(n, rule)| applied.handle(2 + n) == Some(rule.handle)).count();
        // The default buffer is twice as large where the kernel may be told so; without that right it may not
        // suffice.
        let room = kernel.receive_buffer().unwrap();
        assert_eq!(applied.lost, notified < rules, "{notified} handles in {room} bytes of buffer");
        assert!(room < 8 << 20 || !applied.lost, "{notified} handles in {room} bytes of buffer");

        // One that is too small loses the last ones and says so; what came is right, and all was made.
        let mut options = Options::default();
        options.receive_buffer = 64 << 10;
        let mut narrow = Socket::open(NetlinkFamily::NETFILTER, &options).unwrap();
        let applied = many(count).apply_with(&mut narrow, echo()).unwrap();
        let listed =
            read::chain_rules(&mut kernel, &TableId::new(Family::IP, name("t")).chain(name("c"))).unwrap();
        let notified = applied.events.iter().filter(|event| matches!(event, Event::Rule(..))).count();
        assert!(applied.lost && (1..rules).contains(&notified), "{notified} of {rules} were notified");
        assert_eq!(
            (listed.len(), applied.generation),
            (2 * rules, read::generation(&mut narrow).unwrap().id)
        );
        assert_eq!(applied.handle(2), Some(listed[rules].handle));
        assert_eq!(applied.handle(1 + rules), None);
    });
}

#[test]
fn what_others_do_is_not_taken_for_ours() {
    testns::netns(|| {
        let mut kernel = socket();
        kernel.join(GROUP).unwrap();
        let others = TableId::new(Family::IP, name("others"));
        let mut foreign = Transaction::new();
        foreign.add(Table::new(others.clone())).add(Chain::new(others.chain(name("c"))));
        foreign.delete(others.clone());
        let mut theirs = socket();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            // The numbers of its messages are the same as those of ours.
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    foreign.apply(&mut theirs).expect("it can be applied");
                }
            });
            let _stop = testns::RaiseOnDrop(&stop);
            for round in 0..50 {
                let echoed = round % 2 == 0;
                let mut tx = many(20);
                tx.delete(chain().table);
                let applied =
                    tx.apply_with(&mut kernel, if echoed { echo() } else { ApplyOptions::default() });
                let applied = applied.unwrap_or_else(|error| panic!("round {round}: {error}"));
                let rules: Vec<_> = (2..22).filter_map(|n| applied.handle(n)).collect();
                assert_eq!(rules.len(), if echoed { 20 } else { 0 }, "round {round}: {applied:?}");
                assert!(rules.is_sorted());
            }
        });
    });
}

/// What [`Transaction::apply_with`] relies on, of the kernel and of the fake.
#[test]
fn events_come_before_acknowledgements_and_most_have_the_number_of_their_message() {
    fn order(kernel: &mut impl Transport) -> Vec<(bool, u32)> {
        let mut tx = Transaction::new();
        tx.add(Table::new(chain().table)).add(Chain::new(chain())).add(looks_up(0));
        let mut bytes = tx.encode(echo()).unwrap().bytes().unwrap().to_vec();
        // Every operation is to be acknowledged as well.
        let mut at = 0;
        while let Some(header) = bytes.get_mut(at..at + 8) {
            let length = u32::from_ne_bytes(header[..4].try_into().unwrap()) as usize;
            let flags = u16::from_ne_bytes(header[6..8].try_into().unwrap());
            if flags & Flags::ECHO.bits() != 0 {
                header[6..8].copy_from_slice(&(flags | Flags::ACK.bits()).to_ne_bytes());
            }
            at += length.next_multiple_of(4);
        }
        kernel.send(&bytes).unwrap();
        let (mut seen, mut buffer) = (Vec::new(), Vec::new());
        while kernel.receive(&mut buffer, Wait::No).unwrap() {
            for message in Messages::new(&buffer) {
                let header = message.unwrap().header;
                assert_eq!(Some(header.port), kernel.port());
                seen.push((header.kind == NLMSG_ERROR, header.sequence));
            }
        }
        seen
    }
    testns::netns(|| {
        // The rule has a set with two elements: messages 4, 5 and 6. Elements have no number; the new
        // generation has the first.
        let events = [2, 3, 4, 0, 0, 6, 2].map(|sequence| (false, sequence));
        let acknowledgements = [2, 3, 4, 5, 6].map(|sequence| (true, sequence));
        let expected = [&events[..], &acknowledgements].concat();
        assert_eq!(order(&mut socket()), expected);
        assert_eq!(order(&mut Fake::new()), expected);
    });
}

#[test]
fn of_a_change_in_several_batches_each_tells_what_it_made() {
    let mut fake = Fake::new();
    fake.limit_send(6000);
    let (t, s) = (chain().table, chain().table.set(name("s")));
    let mut tx = many(20);
    tx.add(Set::new(s.clone(), DataType::IPV4_ADDR));
    tx.add(Elements::new(&s, (0..500).map(|i| Element::new(Ipv4Addr::from_bits(i)))));
    tx.add(Chain::new(t.chain(name("d"))));
    let applied = tx.apply_with(&mut fake, echo()).unwrap();
    assert!(applied.batches > 2 && !applied.lost, "{} batches", applied.batches);
    assert_eq!(applied.events.len(), 2 + 20 + 1 + 500 + 1);
    let listed = fake.ruleset();
    let rules: Vec<_> = listed.rules.iter().map(|rule| Some(rule.handle)).collect();
    assert_eq!((2..22).map(|n| applied.handle(n)).collect::<Vec<_>>(), rules);
    assert_eq!(
        [22, 24].map(|n| applied.handle(n)),
        [listed.sets[0].0.handle, listed.chains[1].handle].map(Some)
    );
}
