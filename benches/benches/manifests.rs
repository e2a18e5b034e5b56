//! The processor time of reading manifests: n services with 5 endpoints each, as kubectl prints them, from text
//! to the objects of the API.
//!
//! `JSON` is the same objects as JSON, and the peer `serde_yaml`, the most used reader of YAML in Rust, which
//! gives the same objects, but no places for errors. All take the same types, whose share is most of `JSON`.

use std::time::Duration;

use benches::manifests::{service, slice};
use benches::record::{Unit, keep};
use benches::timing::{cpu_time, is_measuring};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use serde::Deserialize as _;
use sluicegate_proxier::source;

fn main() {
    let (sizes, rounds): (&[u32], _) = if is_measuring() { (&[100, 1_000, 10_000], 7) } else { (&[10], 1) };
    for size in sizes {
        let documents: Vec<String> = (0..*size).flat_map(|index| [service(index), slice(index, 0)]).collect();
        let plain = documents.join("---\n");
        let json = json(&documents);
        let list = list(&documents);
        let all = documents.len();
        let mut times: [Vec<f64>; 4] = Default::default();
        for _ in 0..rounds {
            let read = |name: &str, text: &str| {
                cpu_time(|| {
                    let mut found = 0;
                    source::read_str(name, text, |_| found += 1).expect("good manifests");
                    assert_eq!(found, all);
                })
            };
            let measured = [
                read("all.yaml", &plain),
                read("all.yaml", &list),
                read("all.json", &json),
                cpu_time(|| peer(&documents)),
            ];
            times.iter_mut().zip(measured).for_each(|(of, time)| of.push(per_service(time, *size)));
        }
        println!("{size} services, {} bytes each:", plain.len() / *size as usize);
        for (who, mut samples) in WHO.into_iter().zip(times) {
            keep(AREA, WHAT, who, *size, Unit::Nanoseconds, &samples);
            samples.sort_by(f64::total_cmp);
            println!("  {who}: {:.1} us a service", samples[samples.len() / 2] / 1e3);
        }
    }
}

/// In nanoseconds.
fn per_service(time: Duration, services: u32) -> f64 {
    time.as_secs_f64() * 1e9 / f64::from(services)
}

/// Returns the same objects as documents of JSON.
fn json(documents: &[String]) -> String {
    let json = |text: &String| {
        let value: serde_json::Value = serde_yaml::from_str(text).expect("a good manifest");
        format!("{value}\n")
    };
    documents.iter().map(json).collect()
}

/// Returns the same objects as one list, as `kubectl get -o yaml` prints it.
fn list(documents: &[String]) -> String {
    let mut text = "apiVersion: v1\nitems:\n".to_owned();
    for document in documents {
        for (number, line) in document.lines().enumerate() {
            text.push_str(if number == 0 { "- " } else { "  " });
            text.push_str(line);
            text.push('\n');
        }
    }
    text + "kind: List\nmetadata:\n  resourceVersion: \"\"\n"
}

fn peer(documents: &[String]) {
    for pair in documents.chunks(2) {
        let [service, slice] = pair else { continue };
        let service = Service::deserialize(serde_yaml::Deserializer::from_str(service));
        let slice = EndpointSlice::deserialize(serde_yaml::Deserializer::from_str(slice));
        assert!(service.is_ok() && slice.is_ok());
    }
}

const AREA: &str = "manifests";
const WHAT: &str = "read";
/// In the order in which they are measured.
const WHO: [&str; 4] = ["ours, documents", "ours, a list", "ours, JSON", "serde_yaml"];
