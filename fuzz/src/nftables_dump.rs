//! Bytes of all kinds as what the kernel says of its ruleset and of its hooks: nothing panics, every rule can
//! be read back and printed, and an expression that decodes is the same after another round over the wire.
use sluicegate_netlink::attr::{self, Attributes};
use sluicegate_netlink::message::Messages;
use sluicegate_nftables::Family;
use sluicegate_nftables::expr::Expr;
use sluicegate_nftables::monitor::Event;
use sluicegate_nftables::read::{HookListing, RegisteredHook, Ruleset};

pub(crate) fn run(data: &[u8]) {
    for attribute in Attributes::new(data).filter_map(Result::ok) {
        if let Ok(expr) = Expr::decode(&attribute)
            && let Ok(bytes) = attr::encode(|w| expr.encode(w, 1))
        {
            let again = Attributes::new(&bytes).next().unwrap().unwrap();
            assert_eq!(Expr::decode(&again).unwrap(), expr);
        }
    }
    let mut ruleset = Ruleset::default();
    for message in Messages::new(data).filter_map(Result::ok) {
        match Event::decode(message) {
            Ok(Some(Event::Table(_, table))) => ruleset.tables.push(table),
            Ok(Some(Event::Chain(_, chain))) => ruleset.chains.push(chain),
            Ok(Some(Event::Rule(_, rule))) => ruleset.rules.push(rule),
            Ok(Some(Event::Set(_, set))) => ruleset.sets.push((set, Vec::new())),
            Ok(Some(Event::Elements(_, _, elements))) => {
                if let Some((_, own)) = ruleset.sets.last_mut() {
                    own.extend(elements);
                }
            }
            Ok(Some(Event::Object(_, object))) => ruleset.objects.push(object),
            Ok(Some(Event::Flowtable(_, flowtable))) => ruleset.flowtables.push(flowtable),
            _ => {}
        }
    }
    for table in ruleset.content() {
        let _ = table.to_string();
    }
    let hooks: Vec<_> = Messages::new(data)
        .filter_map(Result::ok)
        .filter_map(|message| message.netfilter().ok())
        .filter_map(|(header, attributes)| RegisteredHook::decode(Family(header.family), attributes).ok())
        .collect();
    let _ = HookListing(&hooks).to_string();
}
