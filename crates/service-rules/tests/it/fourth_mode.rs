//! A mode from outside of the crate: what it needs is public, and nothing that a run loop asks for knows the
//! modes.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use sluicegate_service_rules::{Backend, Error, Found, Summary, Verb};
use sluicegate_services::{
    Changes, Cluster, Family, Node, Port, Service, ServiceName, Slice, SliceEndpoint, SliceName, SlicePort,
    categorize,
};

/// Writes one route for each cluster IP into a table in memory of a limited size.
#[derive(Default)]
struct Routes {
    kernel: BTreeMap<IpAddr, Vec<SocketAddr>>,
    room: usize,
    /// Whether the programmed state is known to be in the table.
    is_trusted: bool,
}

impl Routes {
    fn wanted(cluster: &Cluster, name: &ServiceName) -> BTreeMap<IpAddr, Vec<SocketAddr>> {
        let ports = cluster.ports(name, Family::Ipv4);
        let topology = cluster.topology();
        let route = |port| {
            let chosen = categorize(port, &topology);
            Some((port.cluster_ip?, chosen.cluster.iter().map(|endpoint| endpoint.address).collect()))
        };
        ports.iter().filter_map(route).collect()
    }
}

impl Backend for Routes {
    fn sync(&mut self, cluster: &Cluster, changes: &Changes, _: Instant) -> Result<Summary, Error> {
        let found = if self.is_trusted { Found::Changed } else { Found::Compared };
        self.is_trusted = false;
        let (mut added, mut deleted) = (0, 0);
        let names: Vec<&ServiceName> = match found {
            Found::Changed => changes.names().collect(),
            _ => cluster.service_names().collect(),
        };
        for change in changes.iter() {
            for port in change.ports_before(Family::Ipv4, &cluster.node().name) {
                let removed = port.cluster_ip.and_then(|ip| self.kernel.remove(&ip));
                deleted += usize::from(removed.is_some());
            }
        }
        for name in names {
            for (ip, endpoints) in Self::wanted(cluster, name) {
                if self.kernel.len() == self.room && !self.kernel.contains_key(&ip) {
                    let services = vec![(name.clone(), "the table of routes is full".to_owned())];
                    return Err(Error::Refused { services });
                }
                added += usize::from(self.kernel.insert(ip, endpoints.clone()) != Some(endpoints));
            }
        }
        self.is_trusted = true;
        Ok(Summary::new(found, format!("{added} routes added, {deleted} deleted"))
            .count("route", Verb::Added, added)
            .count("route", Verb::Deleted, deleted)
            .measure("routes", self.kernel.len() as u64))
    }

    fn invalidate(&mut self) {
        self.is_trusted = false;
    }
}

fn set(cluster: &mut Cluster, name: &str, last: u8) -> ServiceName {
    let owner = ServiceName::new("demo", name).expect("valid values");
    let service = Service::new([[172, 30, 0, last].into()], [Port::tcp("", 80).expect("valid values")])
        .expect("valid values");
    cluster.set_service(&owner, service);
    let endpoint = SliceEndpoint::new([10, 244, 0, last].into());
    let ports = [SlicePort::tcp("", 8080).expect("valid values")];
    let slice = Slice::new(owner.clone(), Family::Ipv4, ports, [endpoint]).expect("valid values");
    cluster.set_slice(&SliceName::new("demo", name), slice);
    owner
}

/// Syncs as a run loop does with any mode.
fn sync(backend: &mut dyn Backend, cluster: &mut Cluster) -> Result<Summary, Error> {
    let changes = cluster.take_changes();
    backend.sync(cluster, &changes, Instant::now())
}

#[test]
fn a_mode_from_outside_programs_and_reports_its_changes() {
    let mut routes = Routes { room: 2, ..Routes::default() };
    let mut cluster = Cluster::new(Node::new("here", []));
    let a = set(&mut cluster, "a", 1);

    let first = sync(&mut routes, &mut cluster).unwrap();
    assert!(first.is_full() && !first.is_unchanged);
    assert_eq!(first.to_string(), "1 routes added, 0 deleted");
    assert_eq!((first.measures[0].name, first.measures[0].value), ("routes", 1));

    set(&mut cluster, "b", 2);
    let second = sync(&mut routes, &mut cluster).unwrap();
    assert_eq!(
        (second.found, second.changes[0].object, second.changes[0].count),
        (Found::Changed, "route", 1)
    );
    assert!(sync(&mut routes, &mut cluster).unwrap().is_unchanged);

    let c = set(&mut cluster, "c", 3);
    let error = sync(&mut routes, &mut cluster).unwrap_err();
    assert!(error.is_refusal());
    assert_eq!(error.refused()[0].0, c);
    cluster.set_service(&c, None);
    assert!(sync(&mut routes, &mut cluster).unwrap().is_full(), "after a failure everything is compared");

    cluster.set_service(&a, None);
    assert_eq!(sync(&mut routes, &mut cluster).unwrap().to_string(), "0 routes added, 1 deleted");
    let as_backend: &mut dyn Backend = &mut routes;
    as_backend.node_changed();
    assert!(sync(&mut routes, &mut cluster).unwrap().is_full());
}

#[test]
fn optional_methods_of_a_mode_from_outside_have_defaults() {
    let backend: &mut dyn Backend = &mut Routes::default();
    assert!(!backend.has_leftovers());
    assert!(backend.watches().is_none());
    assert!(backend.is_current().unwrap());
    let error = Error::backend("writing routes", std::io::Error::other("no such device"));
    assert_eq!(error.to_string(), "writing routes: no such device");
    assert!(!error.is_refusal() && !error.is_permission_denied() && !error.is_absent());
}
