//! The example `busiest-destinations`: it counts the flows of this namespace.

use sluicegate_conntrack::{Client, NewFlow, Protocol, Tuple};

#[test]
fn flows_are_counted_by_destination() {
    testns::netns(|| {
        let tuple = |port| {
            let (client, dns) = (([10, 0, 0, 1], port).into(), ([10, 96, 0, 10], 53).into());
            Tuple::with_ports(Protocol::UDP, client, dns).expect("addresses of one family")
        };
        let flows = [4000, 4001].map(|port| NewFlow::new(tuple(port), 60));
        Client::open().expect("a socket").create(&flows).expect("flows");
        let printed = testns::run_example("busiest-destinations", &[]);
        assert_eq!(printed, "destinations: 1\n       2 udp 10.96.0.10 port 53\n");
    });
}
