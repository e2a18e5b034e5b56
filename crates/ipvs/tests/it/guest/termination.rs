//! Graceful termination with real connections.

use std::time::{Duration, Instant};

use sluicegate_ipvs::*;

use crate::guest::in_guest;
use crate::guest::lab::{Lab, MASQUERADE, PORT, wait_for};

#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn a_draining_server_keeps_its_connections_gets_no_new_ones_and_goes_when_they_end() {
    in_guest(|| {
        let lab = Lab::new(2);
        let web = ServiceId::tcp(Endpoint::new(MASQUERADE, 80));
        let server = |number| Endpoint::new(lab.server(number, MASQUERADE), PORT);
        let config = DestinationConfig::new(Forward::Masquerade);
        let mut desired = Table::new();
        desired
            .service(web, ServiceConfig::new(Scheduler::RR))
            .destination(server(1), config)
            .destination(server(2), config);
        let mut client = lab.ipvs();
        client.sync(&desired, |_| true).unwrap();

        let mut connections = [lab.connect(MASQUERADE, 80), lab.connect(MASQUERADE, 80)];
        connections.sort_by(|a, b| a.name.cmp(&b.name));
        let [mut first, mut second] = connections;
        assert_eq!([&*first.name, &*second.name], ["s1", "s2"]);

        // Server 1 is no longer wanted.
        let mut drain = Drain::new(DrainTiming::new(Duration::from_millis(200)));
        desired.service(web, ServiceConfig::new(Scheduler::RR)).destinations.remove(&server(1));
        let step = sync_draining(&mut client, &desired, &mut drain);
        assert_eq!(step.commands.len(), 1, "{step:?}");
        assert!(step.next_step.is_some());
        assert_eq!(lab.tcp(MASQUERADE, 80, 4).keys().collect::<Vec<_>>(), ["s2"]);
        assert!(first.echo() && second.echo(), "connections live on");

        // It is wanted again, and gets its share.
        desired.service(web, ServiceConfig::new(Scheduler::RR)).destination(server(1), config);
        assert_eq!(sync_draining(&mut client, &desired, &mut drain).next_step, None);
        assert_eq!(lab.tcp(MASQUERADE, 80, 4).len(), 2);

        // And no longer; then its connection ends.
        desired.service(web, ServiceConfig::new(Scheduler::RR)).destinations.remove(&server(1));
        sync_draining(&mut client, &desired, &mut drain);
        assert!(first.echo());
        first.reset();
        wait_for("the end of the drain", || {
            let destinations = client.destinations(&web).unwrap();
            let step = drain.step(Instant::now(), |_, id| {
                destinations.iter().find(|it| it.id == *id).map(|it| it.connections)
            });
            client.run_all(&step.commands).unwrap();
            step.next_step.is_none()
        });
        let left: Vec<_> = client.destinations(&web).unwrap().iter().map(|it| it.id).collect();
        assert_eq!(left, [server(2)]);
        assert!(second.echo());
    });
}

/// Returns what a controller does at every change: read, plan, drain instead of delete, apply.
fn sync_draining(client: &mut Client, desired: &Table, drain: &mut Drain) -> Step {
    let actual = client.list(|_| true).unwrap();
    let commands = diff(desired, &actual.iter().cloned().collect());
    let step = drain.adopt(commands, &actual, Instant::now());
    client.run_all(&step.commands).unwrap();
    step
}
