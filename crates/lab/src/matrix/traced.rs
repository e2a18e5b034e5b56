//! The packets of the matrix, followed by native trace, against the explanation of each.

use std::num::NonZeroU16;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use sluicegate_service_rules::explain::{Question, Settings, explain};
use sluicegate_service_rules::interface_addresses;
use sluicegate_service_rules::nftables::{Journey, Tracer};
use sluicegate_services::{Cluster, DetectLocal, Protocol, Scheduler};

use crate::{Error, Namespace};

/// Runs `f`, and returns beside its result the ways of all packets that opened a connection through `node`
/// meanwhile.
pub(super) fn following<T: Send>(
    node: &Namespace,
    f: impl FnOnce() -> T + Send,
) -> Result<(T, Vec<Journey>), Error> {
    let mut tracer = node.run(Tracer::of_all)?;
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let follower = scope.spawn(|| -> Result<Vec<Journey>, Error> {
            let mut journeys = Vec::new();
            loop {
                // What was sent before the end was seen is in the last part.
                let is_last = is_over.load(Ordering::Acquire);
                journeys.extend(tracer.drain()?);
                if is_last {
                    return Ok(journeys);
                }
            }
        });
        let result = f();
        is_over.store(true, Ordering::Release);
        let journeys = follower.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok((result, journeys))
    })
}

/// Returns how many packets were compared with their explanations, and each that differs.
pub(super) fn compare(
    node: &Namespace,
    cluster: &Cluster,
    detect_local: DetectLocal,
    scheduler: Scheduler,
    journeys: &[Journey],
) -> Result<(usize, Vec<String>), Error> {
    let local_addresses = Some(node.run(interface_addresses)?);
    let settings = Settings { detect_local, local_addresses, scheduler, ..Settings::default() };
    let (mut compared, mut different) = (0, Vec::new());
    for journey in journeys {
        let protocol = match journey.protocol {
            6 => Protocol::Tcp,
            17 => Protocol::Udp,
            _ => continue,
        };
        let (from, from_port) = (journey.from.ip(), NonZeroU16::new(journey.from.port()));
        let question = Question { from, from_port, interface: None, to: journey.to, protocol };
        let Ok(explanation) = explain(cluster, &settings, &question) else { continue };
        compared += 1;
        if let Some(how) = journey.disagreement(&explanation) {
            different.push(format!("{how}\n{explanation}{journey}"));
        }
    }
    Ok((compared, different))
}
