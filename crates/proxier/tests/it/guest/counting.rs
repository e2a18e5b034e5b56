//! What a sync costs: round trips, counted on the way to the kernel.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use sluicegate_lab::{change_one, uniform_cluster};
use sluicegate_netlink::{Error, Transport, Wait};
use sluicegate_service_rules::iptables;
use sluicegate_service_rules::ipvs::Settings;
use sluicegate_service_rules::ipvs::{Applier, Transports};
use sluicegate_services::{Family, ServiceName, SliceName};

use crate::guest::back_end;

/// Another transport, whose sends are counted.
struct Counting<T>(T, Arc<AtomicUsize>);

impl<T> Counting<T> {
    fn note(&self) {
        self.1.fetch_add(1, Ordering::Relaxed);
    }
}

impl<T: Transport> Transport for Counting<T> {
    fn send(&mut self, datagram: &[u8]) -> Result<(), Error> {
        self.note();
        self.0.send(datagram)
    }

    fn receive(&mut self, buffer: &mut Vec<u8>, wait: Wait) -> Result<bool, Error> {
        self.0.receive(buffer, wait)
    }

    fn send_limit(&mut self, size: usize) -> usize {
        self.0.send_limit(size)
    }
}

#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn a_change_of_one_endpoint_is_a_few_round_trips_and_no_process() {
    let Some(back_end) = back_end() else { return };
    testns::netns(|| {
        let sent = Arc::new(AtomicUsize::new(0));
        let Transports { sets, servers, links, events } = Transports::open().unwrap();
        let count = |transport| Counting(transport, Arc::clone(&sent));
        let transports = Transports {
            sets: count(sets),
            servers: Counting(servers, Arc::clone(&sent)),
            links: count(links),
            events: events.map(count),
        };
        let tables = iptables::open(Some(back_end), &[Family::Ipv4]).unwrap();
        let mut applier = Applier::with_transports(tables, Settings::default(), transports).unwrap();

        let mut cluster = uniform_cluster(SERVICES, ENDPOINTS);
        let start = Instant::now();
        let synced = applier.sync(&mut cluster, Instant::now()).unwrap();
        println!(
            "first sync of {SERVICES} services x {ENDPOINTS}: {:?}, {} round trips: {synced}",
            start.elapsed(),
            sent.swap(0, Ordering::Relaxed)
        );
        assert_eq!(synced.families[0].commands, (SERVICES * (ENDPOINTS + 1)) as usize);
        for round in 0..4 {
            change_one(&mut cluster, 500 + round, ENDPOINTS);
            let start = Instant::now();
            let synced = applier.sync(&mut cluster, Instant::now()).unwrap();
            let trips = sent.swap(0, Ordering::Relaxed);
            println!("change of one endpoint: {:?}, {trips} round trips: {synced}", start.elapsed());
            let family = &synced.families[0];
            // Comes, gets no more, goes.
            assert_eq!((family.commands, family.rules), (3, 0), "{synced}");
            assert!((1..=5).contains(&trips), "{trips} round trips");
        }

        // An endpoint of this node has an entry as well, that of hairpins; the first one brings its rule.
        let name = ServiceName::new("scale", "service-600").unwrap();
        for last in [20, 21, 22] {
            let mut slice = cluster.slices(&name).next().unwrap().clone();
            for endpoint in &mut slice.endpoints {
                endpoint.node = Some("node".into());
            }
            slice.endpoints.last_mut().unwrap().ip = Ipv4Addr::new(10, 1, 0, last).into();
            let slice_name = SliceName { namespace: "scale".into(), name: "service-600".into() };
            cluster.set_slice(&slice_name, Some(slice));
            let synced = applier.sync(&mut cluster, Instant::now()).unwrap();
            let trips = sent.swap(0, Ordering::Relaxed);
            println!("change of one endpoint of this node: {trips} round trips: {synced}");
            let family = &synced.families[0];
            let entries = (family.entries_added, family.entries_deleted);
            if last == 20 {
                assert!(entries == (ENDPOINTS as usize, 0) && family.rules > 0, "{synced}");
            } else {
                assert_eq!((entries, family.commands, family.rules), ((1, 1), 3, 0), "{synced}");
                assert!((1..=5).contains(&trips), "{trips} round trips");
            }
        }
    });
}

const SERVICES: u32 = 1000;
const ENDPOINTS: u32 = 5;
