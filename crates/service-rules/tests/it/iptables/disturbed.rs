//! Another program that changes the tables at the same time: in the legacy back end, which has neither events nor
//! a generation, its change is seen before, during and behind one of ours; and no service is blamed for it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use sluicegate_iptables_save::Save;
use sluicegate_service_rules::Found;
use sluicegate_service_rules::iptables::{self, Applier, BackEnd, Tables};
use sluicegate_services::Family;
use sluicegate_xtables::Error;

use crate::iptables::world::{cluster, have_iptables, settings};
use crate::manifests::Manifests;

const SERVICES: &str = include_str!("../../../testdata/kube-proxy/services.yaml");
const ENDPOINT: &str = "  - {addresses: [10.244.1.10], nodeName: other-node, conditions: {ready: true}}\n";

/// Tables beside which another program acts, once.
#[derive(Debug)]
struct Beside {
    real: Box<dyn Tables>,
    when: Arc<Mutex<Option<When>>>,
    act: fn(BackEnd),
}

fn beside(back_end: BackEnd, when: &Arc<Mutex<Option<When>>>, act: fn(BackEnd)) -> Applier {
    let real = iptables::open(Some(back_end), &[Family::Ipv4]).unwrap();
    let boxed = |real| Box::new(Beside { real, when: when.clone(), act }) as Box<dyn Tables>;
    Applier::with_tables(real.into_iter().map(boxed).collect(), settings())
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum When {
    BeforeApply,
    AfterApply,
}

impl Beside {
    fn comes(&self, now: When) {
        let mut when = self.when.lock().unwrap();
        if *when == Some(now) {
            *when = None;
            (self.act)(self.back_end());
        }
    }
}

/// Each rule differs, so that the table never gets back to a size that it had.
fn add_a_rule(_: BackEnd) {
    static RULES: AtomicUsize = AtomicUsize::new(0);
    let number = RULES.fetch_add(1, Ordering::Relaxed);
    let _ = testns::sh(&format!("iptables-legacy -w 20 -t nat -A OUTPUT -s 192.0.2.{number} -j ACCEPT"));
}

impl Tables for Beside {
    fn family(&self) -> Family {
        self.real.family()
    }

    fn back_end(&self) -> BackEnd {
        self.real.back_end()
    }

    fn list(&mut self) -> Result<Save<'static>, Error> {
        self.real.list()
    }

    fn apply(&mut self, input: &Save<'_>) -> Result<(), Error> {
        self.comes(When::BeforeApply);
        self.real.apply(input)?;
        self.comes(When::AfterApply);
        Ok(())
    }

    fn has_chain(&mut self, table: &str, chain: &str) -> Result<bool, Error> {
        self.real.has_chain(table, chain)
    }

    fn is_disturbed(&mut self) -> Result<bool, Error> {
        self.real.is_disturbed()
    }

    fn has_extensions(&mut self, table: &str, words: &str) -> Result<bool, Error> {
        self.real.has_extensions(table, words)
    }
}

#[test]
fn a_change_of_another_program_is_seen_whenever_it_comes() {
    if !have_iptables() {
        return;
    }
    testns::netns(|| {
        let when = Arc::new(Mutex::new(None));
        let mut applier = beside(BackEnd::Legacy, &when, add_a_rule);
        let mut cluster = cluster(SERVICES);
        let mut rounds = 0..;
        // Each sync has something to change.
        let mut sync = |applier: &mut Applier| {
            let ready = rounds.next().is_some_and(|number: u32| number.is_multiple_of(2));
            let services = SERVICES.replacen(ENDPOINT, if ready { ENDPOINT } else { "" }, 1);
            for (name, slice) in Manifests::read(&services).slices {
                cluster.set_slice(&name, Some(slice));
            }
            applier.sync(&mut cluster, Instant::now()).unwrap().families[0].found
        };
        sync(&mut applier);
        assert!(!applier.is_disturbed().unwrap());
        assert_eq!(sync(&mut applier), Found::Changed);
        assert!(!applier.is_disturbed().unwrap());

        for moment in [When::BeforeApply, When::AfterApply] {
            *when.lock().unwrap() = Some(moment);
            sync(&mut applier);
            assert_eq!(*when.lock().unwrap(), None, "the other program acted");
            assert!(applier.is_disturbed().unwrap(), "{moment:?}");
            assert_eq!(sync(&mut applier), Found::Compared, "{moment:?}");
            assert!(!applier.is_disturbed().unwrap(), "{moment:?}, once it was compared");
            assert_eq!(sync(&mut applier), Found::Changed, "{moment:?}");
        }

        add_a_rule(BackEnd::Legacy);
        assert!(applier.is_disturbed().unwrap(), "between two syncs");
        assert!(!applier.is_disturbed().unwrap(), "it is told once");
        sync(&mut applier);
        add_a_rule(BackEnd::Legacy);
        assert_eq!(sync(&mut applier), Found::Compared, "a sync looks by itself");
        assert!(!applier.is_disturbed().unwrap());
    });
}

/// Removes all rules and chains of others from the tables that services are in.
fn remove_everything(back_end: BackEnd) {
    let tool = if back_end == BackEnd::Nft { "iptables-nft" } else { "iptables-legacy" };
    let of_table = |table: &str| format!("{tool} -w 20 -t {table} -F; {tool} -w 20 -t {table} -X; ");
    let _ = testns::sh(&["filter", "nat", "mangle"].map(of_table).concat());
}

#[test]
fn no_service_is_blamed_for_chains_that_another_program_removed_since_they_were_listed() {
    if !have_iptables() {
        return;
    }
    for back_end in [BackEnd::Legacy, BackEnd::Nft] {
        testns::netns(|| {
            let when = Arc::new(Mutex::new(None));
            let mut cluster = cluster(SERVICES);
            beside(back_end, &when, remove_everything).sync(&mut cluster, Instant::now()).unwrap();
            // A restart with other services, whose rules go into chains that were there.
            let without = SERVICES.replacen(ENDPOINT, "", 1);
            for (name, slice) in Manifests::read(&without).slices {
                cluster.set_slice(&name, Some(slice));
            }
            let mut applier = beside(back_end, &when, remove_everything);
            *when.lock().unwrap() = Some(When::BeforeApply);
            applier.sync(&mut cluster, Instant::now()).unwrap();
            assert_eq!(*when.lock().unwrap(), None, "the other program acted");
            for (_, left) in applier.difference(&cluster).unwrap() {
                assert_eq!(left.to_string(), "", "{back_end}");
            }
        });
    }
}
