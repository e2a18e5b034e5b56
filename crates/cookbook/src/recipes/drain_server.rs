//! Drain a server: no new connections, and it goes when the last one has ended.

use std::error::Error;
use std::time::{Duration, Instant};

use sluicegate_ipvs::*;

pub fn main() -> Result<(), Box<dyn Error>> {
    let web = ServiceId::tcp(Endpoint::new([10, 96, 0, 10], 80));
    let server = Endpoint::new([10, 244, 1, 7], 8080);
    let config = DestinationConfig::new(Forward::Masquerade);
    let mut drain = Drain::new(DrainTiming::new(Duration::from_secs(5)).limit(Duration::from_secs(600)));

    // `Client::open()?.destinations(&web)?` tells the connections, `run` takes the commands.
    let (now, mut busy) = (Instant::now(), Connections::default());
    busy.active = 2;
    let begin = drain.begin(web, server, config, busy, now);
    println!("at once: {}", begin.ok_or("its weight was 0 already")?);

    for (after, active) in [(5, 2), (10, 1), (15, 0)] {
        let mut connections = Connections::default();
        connections.active = active;
        let step = drain.step(now + Duration::from_secs(after), |_, _| Some(connections));
        println!(
            "after {after} s, {active} connections: {:?}",
            step.commands.first().map(Command::to_string)
        );
    }
    Ok(())
}
