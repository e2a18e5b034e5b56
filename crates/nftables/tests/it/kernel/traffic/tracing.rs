//! Packets that are traced, told by us and by `nft monitor trace`.

use sluicegate_nftables::expr::MetaKey;
use sluicegate_nftables::lang::*;
use sluicegate_nftables::monitor::{Event, Monitor, TRACE_GROUP, Trace, TraceStep};

use super::*;
use crate::kernel::nft_monitor::NftMonitor;

#[test]
fn each_step_of_a_packet_is_told_as_by_nft() {
    if !testns::have(&["nft"]) {
        return;
    }
    let Some(lab) = Lab::new() else { return };
    lab.load(Family::IP, |r| {
        let away = r.table.chain(name("away"));
        r.tx.add(Chain::new(away.clone()));
        r.tx.add(away.rule().then(to_port(1003)).then(Verdict::Drop));
        r.tx.add(away.rule().then(Mangle::new(MetaKey::MARK, Mark(7))));
        r.filter(Hook::Forward)
            .rule([Mangle::new(MetaKey::NFTRACE, 1_u32).into()])
            .rule([to_port(1001), Verdict::Drop.into()])
            .rule([Verdict::Jump(away.name).into()])
            .rule([to_port(1002), Verdict::Accept.into()]);
    });
    let mut monitor = lab.router.run(|| {
        let mut socket = netlink();
        socket.join(TRACE_GROUP).expect("the group can be joined");
        Monitor::with_transport(socket)
    });
    let mut nft = lab.router.run(|| NftMonitor::start(&["trace"]));
    let _sockets = [1002, 1004].map(|port| udp(&lab.server, (SERVER, port)));
    // Dropped by a rule, accepted by one, dropped in another chain, and accepted at the end.
    lab.send_each(&[1001, 1002, 1003, 1004]);
    let mut traces: Vec<Trace> = Vec::new();
    while traces.iter().filter(|trace| is_last(trace)).count() < 4 {
        let events = lab.router.run(|| monitor.events()).expect("events");
        assert!(!events.is_empty(), "nothing more came after {traces:#?}");
        traces.extend(events.into_iter().filter_map(|event| match event {
            Event::Trace(trace) => Some(*trace),
            _ => None,
        }));
    }
    // nft does not tell the ends of chains, nor does Linux 6.1.
    let is_end = |trace: &Trace| trace.step == TraceStep::Rule && trace.rule.is_none();
    let shown = traces.iter().filter(|trace| !is_end(trace));
    let ours: Vec<String> = shown.map(|trace| without_rule(&trace.to_string())).collect();
    let is_step = |line: &String| !line.contains(" packet: ");
    let said = std::iter::from_fn(|| nft.line()).filter(is_step).take(ours.len());
    let theirs: Vec<String> = said.map(|line| without_rule(&line)).collect();
    assert_eq!(ours, theirs);

    let first = &traces[0];
    assert_eq!((first.step, first.protocol), (TraceStep::Rule, Some(2)));
    assert_eq!(first.network_header[12..20], [CLIENT.octets(), SERVER.octets()].concat());
    assert_eq!(first.transport_header[2..4], 1001_u16.to_be_bytes());
    assert!(first.iif.is_some() && first.oif.is_some() && first.iif != first.oif, "{first:?}");
}

/// Whether a packet meets no more.
fn is_last(trace: &Trace) -> bool {
    use sluicegate_nftables::expr::Data;
    trace.step == TraceStep::Policy
        || matches!(&trace.verdict, Some(Data::Verdict(Verdict::Accept | Verdict::Drop)))
}

/// nft says the rule itself.
fn without_rule(line: &str) -> String {
    match (line.split_once(" rule "), line.rsplit_once(" (verdict ")) {
        (Some((head, _)), Some((_, verdict))) => format!("{head} rule (verdict {verdict}"),
        _ => line.trim_end().to_owned(),
    }
}
