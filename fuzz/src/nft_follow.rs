//! Bytes of all kinds as the kernel's events, on a copy of a ruleset, and any script as what others commit:
//! nothing panics, and a copy that lost nothing is the ruleset.
use sluicegate_netlink::message::Messages;
use sluicegate_nftables::fake::Fake;
use sluicegate_nftables::monitor::{self, Event, Follower, Monitor};
use sluicegate_nftables::read::Ruleset;
use sluicegate_nftables::{Family, Transaction};

const RULESET: &str = "add table ip t
add chain ip t c { type filter hook input priority 0; policy accept; }
add set ip t s { type ipv4_addr; flags interval; elements = { 10.0.0.0/8 } }
add map ip t m { type inet_service : verdict; elements = { 80 : drop } }
add rule ip t c ip saddr @s counter drop
add rule ip t c tcp dport vmap @m
";

pub(crate) fn run(data: &[u8]) {
    let Some((&choice, rest)) = data.split_first() else { return };
    let mut kernel = Fake::new();
    Transaction::parse(RULESET).expect("a script").apply(&mut kernel).expect("applied");
    if choice % 2 == 0 {
        bytes(&mut kernel, rest);
    } else if let Ok(text) = std::str::from_utf8(rest) {
        scripts(&kernel, text);
    }
}

/// Events that no kernel sends.
fn bytes(kernel: &mut Fake, data: &[u8]) {
    let mut follower = Follower::read(kernel, Family::UNSPEC).expect("a ruleset");
    for message in Messages::new(data).filter_map(Result::ok) {
        let Ok(Some(event)) = Event::decode(message) else { continue };
        match follower.apply(event) {
            Ok(Some(commit)) => drop(commit.transaction.to_string()),
            Ok(None) => {}
            Err(lost) => return assert!(!lost.to_string().is_empty()),
        }
    }
    for table in follower.ruleset().content() {
        let _ = table.to_string();
    }
}

/// Events of a kernel, one commit for each script between NULs.
fn scripts(kernel: &Fake, text: &str) {
    let mut listener = kernel.open();
    listener.join(monitor::GROUP).expect("the group of nf_tables");
    let mut monitor = Monitor::with_transport(listener);
    let mut follower = Follower::read(&mut kernel.open(), Family::UNSPEC).expect("a ruleset");
    for script in text.split('\0').take(8) {
        let Ok(transaction) = Transaction::parse(script) else { continue };
        if transaction.apply(&mut kernel.open()).is_err() {
            continue;
        }
        while follower.generation() != kernel.generation() {
            for event in monitor.events().expect("events of the fake decode") {
                follower.apply(event).expect("nothing was lost");
            }
        }
        let (copy, real) = (follower.ruleset(), kernel.ruleset());
        // But for `uses`, which are as of the last event about the object itself.
        assert_eq!(copy.rules, real.rules, "{script}");
        let tables = |ruleset: &Ruleset| -> Vec<_> {
            ruleset.tables.iter().map(|table| (table.family, table.name.clone(), table.handle)).collect()
        };
        assert_eq!(tables(&copy), tables(&real), "{script}");
        let chains = |ruleset: &Ruleset| -> Vec<_> {
            ruleset.chains.iter().map(|chain| (chain.name.clone(), chain.handle)).collect()
        };
        assert_eq!(chains(&copy), chains(&real), "{script}");
    }
}
