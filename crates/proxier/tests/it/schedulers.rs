//! Schedulers of services, by the annotation and the flag, in every command that knows them.

use std::process::Output;

use crate::gates::FROM_INPUT;

/// Returns a service with this annotation and two endpoints.
fn manifest(scheduler: &str) -> String {
    format!(
        "---\n{{apiVersion: v1, kind: Service, metadata: {{namespace: demo, name: web, annotations: \
         {{sluicegate.github.io/scheduler: '{scheduler}'}}}}, spec: {{clusterIP: 172.30.0.1, ports: [{{port: \
         80}}]}}}}\n---\n{{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {{namespace: demo, name: \
         web-4, labels: {{kubernetes.io/service-name: web}}}}, addressType: IPv4, ports: [{{name: '', port: \
         8080}}], endpoints: [{{addresses: [10.244.0.10], nodeName: here}}, {{addresses: [10.244.0.11], \
         nodeName: here}}]}}\n"
    )
}

fn run(words: &[&str], scheduler: &str) -> (bool, String, String) {
    let command = [&[env!("CARGO_BIN_EXE_sluicegate-proxier")], words, &FROM_INPUT].concat();
    let Output { status, stdout, stderr } = testns::feed(&command, &manifest(scheduler));
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (status.success(), text(stdout), text(stderr))
}

#[test]
fn the_annotation_goes_before_the_flag_in_both_layouts() {
    for layout in ["maps", "chains"] {
        let render = |flag: &str, scheduler: &str| {
            let (ok, plan, errors) =
                run(&["render", "--layout", layout, "--nftables-scheduler", flag], scheduler);
            assert!(ok, "{errors}");
            plan
        };
        assert!(render("maglev", "source-hash").contains("jhash ip saddr mod 2 seed 0x4"));
        assert!(render("source-hash", "round-robin").contains("numgen inc mod 2"));
        assert!(render("random", "maglev:11").contains("jhash ip saddr . tcp sport mod 11 seed 0x5"));
        assert!(render("maglev", "random").contains("numgen random mod 2"));
        // One that is not known is random, whatever the node has.
        assert_eq!(render("maglev", "lc"), render("random", "random"));
    }
}

#[test]
fn check_tells_the_scheduler_and_a_name_that_is_not_known() {
    let (ok, told, _) = run(&["check"], "maglev");
    assert!(ok && told.contains("2 of them here, chosen by maglev\n"), "{told}");
    let (ok, told, _) = run(&["check"], "random");
    assert!(ok && !told.contains("chosen"), "{told}");
    let (ok, _, problems) = run(&["check"], "wlc");
    let expected = "metadata.annotations[sluicegate.github.io/scheduler]: expected random, round-robin, source-hash, \
                    maglev or maglev:SLOTS, found \"wlc\"; random is used";
    assert!(!ok && problems.contains(expected), "{problems}");
}

/// Values of the annotation that no table can have, and what is expected in their place.
pub(crate) const WRONG: [(&str, &str); 11] = [
    ("lc", "expected random, round-robin, source-hash, maglev or maglev:SLOTS, found \"lc\""),
    ("", "expected random, round-robin, source-hash, maglev or maglev:SLOTS, found \"\""),
    ("Maglev", "expected random, round-robin, source-hash, maglev or maglev:SLOTS, found \"Maglev\""),
    (
        "source-hash:7",
        "expected random, round-robin, source-hash, maglev or maglev:SLOTS, found \"source-hash:7\"",
    ),
    ("maglev:", "expected a prime number of slots from 11 to 4093 after `maglev:` of a Service, found \"\""),
    (
        "maglev:0",
        "expected a prime number of slots from 11 to 4093 after `maglev:` of a Service, found \"0\"",
    ),
    (
        "maglev:7",
        "expected a prime number of slots from 11 to 4093 after `maglev:` of a Service, found \"7\"",
    ),
    (
        "maglev:-11",
        "expected a prime number of slots from 11 to 4093 after `maglev:` of a Service, found \"-11\"",
    ),
    (
        "maglev:1000",
        "expected a prime number of slots from 11 to 4093 after `maglev:` of a Service, found \"1000\"",
    ),
    ("maglev:4099", "expected at most 4093 slots of a Service, found 4099"),
    (
        "maglev:18446744073709551629",
        "expected a prime number of slots from 11 to 4093 after `maglev:` of a Service, found \
         \"18446744073709551629\"",
    ),
];

#[test]
fn every_value_that_cannot_be_is_told_by_check_and_the_service_works_at_random() {
    let (ok, at_random, errors) = run(&["render"], "random");
    assert!(ok && at_random.contains("numgen random mod 2"), "{errors}");
    for (value, expected) in WRONG {
        let (ok, _, problems) = run(&["check"], value);
        let told =
            format!("metadata.annotations[sluicegate.github.io/scheduler]: {expected}; random is used");
        assert!(!ok && problems.contains(&told), "{value:?}: {problems}");
        let (ok, rendered, errors) = run(&["render", "--nftables-scheduler", "maglev"], value);
        assert!(ok && rendered == at_random, "{value:?}: {errors}{rendered}");
        // The flag has no service to go on with: it is refused, and nothing is programmed.
        let flag = ["render", "--nftables-scheduler", value];
        let (ok, rendered, errors) = run(&flag, "random");
        let is_slots = value == "maglev:4099";
        assert!(
            ok == is_slots && (ok || rendered.is_empty() && errors.contains("expected")),
            "{value:?}: {errors}"
        );
    }
}

/// Four times 4,093 slots each: 64 of them are all that there are.
#[test]
fn services_beyond_all_slots_work_at_random_and_are_told() {
    let mut manifests = String::new();
    for number in 1..=65 {
        manifests += &format!(
            "---\n{{apiVersion: v1, kind: Service, metadata: {{namespace: demo, name: s{number:02}, annotations: \
             {{sluicegate.github.io/scheduler: 'maglev:4093'}}}}, spec: {{clusterIP: 172.30.1.{number}, ports: \
             [{{name: a, port: 1}}, {{name: b, port: 2}}, {{name: c, port: 3}}, {{name: d, port: 4}}]}}}}\n---\n\
             {{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {{namespace: demo, name: s{number}, \
             labels: {{kubernetes.io/service-name: s{number:02}}}}}, addressType: IPv4, ports: [{{name: a, port: 1}}, \
             {{name: b, port: 2}}, {{name: c, port: 3}}, {{name: d, port: 4}}], endpoints: [{{addresses: \
             [10.244.1.{number}]}}]}}\n"
        );
    }
    let command = [env!("CARGO_BIN_EXE_sluicegate-proxier"), "check", "--manifests", "-"];
    let Output { stdout, .. } = testns::feed(&command, &manifests);
    let told = String::from_utf8_lossy(&stdout).into_owned();
    assert_eq!(told.matches("chosen by maglev:4093").count(), 4 * 64);
    let without: Vec<_> =
        told.lines().filter(|line| line.contains("has no effect: older Services")).collect();
    assert!(without.len() == 1 && without[0].contains("demo/s65"), "{without:?}");
}

#[test]
fn modes_without_schedulers_tell_the_annotation_and_refuse_the_flag() {
    for (mode, why) in [
        ("iptables", "iptables mode chooses every endpoint at random"),
        ("ipvs", "in ipvs mode all services have the scheduler of --ipvs-scheduler"),
    ] {
        let (ok, told, _) = run(&["check", "--proxy-mode", mode], "source-hash");
        let warning = format!(
            "warning: Service demo/web: metadata.annotations[sluicegate.github.io/scheduler]: \
                               source-hash has no effect: {why}\n"
        );
        assert!(ok && told.contains(&warning) && !told.contains("chosen"), "{told}");
        let (ok, _, errors) =
            run(&["render", "--proxy-mode", mode, "--nftables-scheduler", "maglev"], "random");
        let refused = format!("--nftables-scheduler maglev: expected --proxy-mode nftables, found {mode}");
        assert!(!ok && errors.contains(&refused), "{errors}");
    }
}

#[test]
fn explain_says_which_endpoint_a_client_gets() {
    let explain = |scheduler: &str, more: &[&str]| {
        let words = ["explain", "--from", "10.244.0.99", "--to", "172.30.0.1:80/tcp"];
        let (ok, told, errors) = run(&[&words[..], more].concat(), scheduler);
        assert!(ok, "{errors}");
        told
    };
    let hashed = explain("source-hash", &[]);
    assert!(hashed.contains("(100.0 %)") && hashed.contains("always the same for a client"), "{hashed}");
    let any = explain("maglev", &[]);
    assert!(any.contains("(50.2 %)") && any.contains("the port of the client decides which"), "{any}");
    let one = explain("maglev", &["--from-port", "40000"]);
    assert!(one.contains("(100.0 %)") && one.contains("this address and port of the client"), "{one}");
    let object: serde_json::Value =
        serde_json::from_str(&explain("maglev:1021", &["--output", "json"])).expect("JSON");
    assert_eq!(object["verdict"]["scheduler"], "maglev:1021");
}
