//! Every row of what a service proxy reads of a Service.

use super::*;

/// Returns the Service of a manifest whose `spec` (and `status`) are given in flow style.
fn service(rest: &str) -> Result<Converted<ServiceName, Service>, Invalid> {
    let text = format!("apiVersion: v1\nkind: Service\nmetadata: {{namespace: demo, name: web}}\n{rest}\n");
    Service::from_api(&serde_yaml::from_str(&text).unwrap())
}

fn accepted(rest: &str) -> Service {
    match service(rest) {
        Ok(Converted { admission: Admission::Accepted(service), left_out, .. }) if left_out.is_empty() => {
            service
        }
        other => panic!("{rest}: {other:?}"),
    }
}

/// Returns the service, and what is left out of it without the name of the service.
fn partial(rest: &str) -> (Service, Vec<String>) {
    let converted = service(rest).unwrap();
    let text = |invalid: &Invalid| format!("{}: {}", invalid.field, invalid.reason);
    (converted.admission.accepted().unwrap(), converted.left_out.iter().map(text).collect())
}

fn ips(texts: &[&str]) -> Box<[IpAddr]> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

#[test]
fn services_that_are_not_proxied_are_passed_over() {
    let cases = [
        ("spec: {clusterIP: None}", "headless"),
        ("spec: {clusterIPs: [None]}", "headless"),
        ("spec: {type: ExternalName, externalName: example.com}", "ExternalName"),
        ("spec: {type: ExternalName, clusterIP: 10.0.0.1}", "ExternalName"),
        ("spec: {clusterIP: ''}", "no cluster IP"),
        ("spec: {}", "no cluster IP"),
    ];
    for (rest, why) in cases {
        assert_eq!(service(rest).unwrap().admission, Admission::Ignored(why), "{rest}");
    }
    let mut labelled = api::Service::default();
    labelled.metadata.name = Some("web".to_owned());
    labelled.metadata.labels = Some([(PROXY_NAME_LABEL.to_owned(), String::new())].into());
    labelled.spec = Some(api::ServiceSpec { cluster_ip: Some("10.0.0.1".to_owned()), ..Default::default() });
    let Converted { name, admission, .. } = Service::from_api(&labelled).unwrap();
    assert_eq!(name.to_string(), "default/web");
    assert_eq!(admission, Admission::Ignored("another service proxy is named by its label"));
}

#[test]
fn cluster_ips_go_by_family() {
    let v4: Option<IpAddr> = Some("10.0.0.1".parse().unwrap());
    let v6: Option<IpAddr> = Some("fd00::1".parse().unwrap());
    let cases = [
        ("clusterIP: 10.0.0.1", [v4, None]),
        ("clusterIP: 010.000.0.01", [v4, None]),
        ("clusterIP: 'fd00::1'", [None, v6]),
        ("clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1, 'fd00::1']", [v4, None]),
        ("clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1, 'fd00::1'], ipFamilies: [IPv4, IPv6]", [v4, v6]),
        ("clusterIP: 'fd00::1', clusterIPs: ['fd00::1', 10.0.0.1], ipFamilies: [IPv6, IPv4]", [v4, v6]),
        ("clusterIP: 10.0.0.1, ipFamilies: [IPv4]", [v4, None]),
        ("clusterIPs: [10.0.0.1], ipFamilies: [IPv4]", [v4, None]),
    ];
    for (spec, expected) in cases {
        assert_eq!(accepted(&format!("spec: {{{spec}}}")).cluster_ips, expected, "{spec}");
    }
}

#[test]
fn policies_and_the_health_check_follow_the_type() {
    // type, external IPs, policy -> local to the outside, health check port
    let cases = [
        ("ClusterIP", "", "Local", false, None),
        ("ClusterIP", "externalIPs: [1.2.3.4],", "Local", true, None),
        ("NodePort", "", "Local", true, None),
        ("LoadBalancer", "", "Local", true, NonZeroU16::new(30999)),
        ("LoadBalancer", "", "Cluster", false, None),
    ];
    for (kind, external, policy, local, health_check) in cases {
        let service = accepted(&format!(
            "spec: {{clusterIP: 10.0.0.1, type: {kind}, {external} externalTrafficPolicy: {policy}, \
                healthCheckNodePort: 30999}}"
        ));
        assert_eq!(service.external_local, local, "{kind} {external} {policy}");
        assert_eq!(service.health_check_node_port, health_check, "{kind} {external} {policy}");
        assert!(!service.internal_local);
    }
    // Ports of TCP and UDP are apart.
    let apart = accepted(
        "spec: {clusterIP: 10.0.0.1, type: LoadBalancer, externalTrafficPolicy: Local, healthCheckNodePort: 30999, \
            ports: [{port: 53, protocol: UDP, nodePort: 30999}]}",
    );
    assert_eq!(apart.health_check_node_port, NonZeroU16::new(30999));
    assert!(accepted("spec: {clusterIP: 10.0.0.1, internalTrafficPolicy: Local}").internal_local);
}

#[test]
fn affinity_has_a_default_and_limits() {
    let seconds = |rest: &str| accepted(&format!("spec: {{clusterIP: 10.0.0.1, {rest}}}")).affinity_seconds;
    assert_eq!(seconds("sessionAffinity: None"), None);
    assert_eq!(seconds("sessionAffinity: ClientIP"), Some(10800));
    assert_eq!(
        seconds("sessionAffinity: ClientIP, sessionAffinityConfig: {clientIP: {timeoutSeconds: 60}}"),
        Some(60)
    );
    assert_eq!(seconds("sessionAffinityConfig: {clientIP: {timeoutSeconds: 60}}"), None);
    for bad in [0, -1, 86401] {
        let rest = format!(
            "spec: {{clusterIP: 10.0.0.1, sessionAffinity: ClientIP, sessionAffinityConfig: {{clientIP: \
                {{timeoutSeconds: {bad}}}}}}}"
        );
        let (service, left_out) = partial(&rest);
        assert_eq!(service.affinity_seconds, Some(10800), "{bad}");
        let field = "spec.sessionAffinityConfig.clientIP.timeoutSeconds";
        assert_eq!(left_out, [format!("{field}: expected 1 to 86400 seconds, found {bad}")]);
    }
}

#[test]
fn addresses_and_ranges_are_kept_by_family() {
    let service = accepted(
        "spec: {clusterIP: 10.0.0.1, type: LoadBalancer, externalIPs: [192.168.99.11, 'fd00::99', \
            192.168.099.11], \
         loadBalancerSourceRanges: [' 203.0.113.0/25 ', 10.1.2.3/8, 'fd00::/8']}\n\
         status: {loadBalancer: {ingress: [{ip: 5.6.7.8}, {ip: 5.6.7.9, ipMode: Proxy}, {ip: 'fd00::8', \
         ipMode: VIP}, {hostname: lb}]}}",
    );
    assert_eq!(service.external_ips, ips(&["192.168.99.11", "fd00::99"]));
    assert_eq!(service.load_balancer_ips, ips(&["5.6.7.8", "fd00::8"]));
    let ranges =
        |family| -> Vec<_> { service.source_ranges(family).unwrap().map(ToString::to_string).collect() };
    assert_eq!(ranges(Family::Ipv4), ["203.0.113.0/25", "10.0.0.0/8"]);
    assert_eq!(ranges(Family::Ipv6), ["fd00::/8"]);
}

#[test]
fn one_range_of_everything_allows_everything() {
    let service = accepted(
        "spec: {clusterIP: 10.0.0.1, loadBalancerSourceRanges: [10.0.0.0/8, 1.2.3.4/0, 'fd00::/8']}",
    );
    assert!(service.source_ranges(Family::Ipv4).is_none());
    assert_eq!(service.source_ranges(Family::Ipv6).unwrap().count(), 1);
}

#[test]
fn an_invalid_range_never_opens_a_load_balancer() {
    // ranges -> the number of networks that IPv4 and IPv6 admit, or all
    let cases = [
        ("[10.0.0.0/8]", Some(1), None),
        ("[10.0.0.0/8, 10.0.0.1]", Some(1), Some(0)),
        ("[nonsense]", Some(0), Some(0)),
        ("['fd00::/129', 'fd00::/8']", Some(0), Some(1)),
        ("[0.0.0.0/0, nonsense]", None, Some(0)),
        ("[]", None, None),
    ];
    for (ranges, v4, v6) in cases {
        let (service, _) =
            partial(&format!("spec: {{clusterIP: 10.0.0.1, loadBalancerSourceRanges: {ranges}}}"));
        let admitted = |family| service.source_ranges(family).map(Iterator::count);
        assert_eq!((admitted(Family::Ipv4), admitted(Family::Ipv6)), (v4, v6), "{ranges}");
    }
}

#[test]
fn the_time_of_creation_is_read() {
    let text = "apiVersion: v1\nkind: Service\n\
        metadata: {namespace: demo, name: web, creationTimestamp: \"1970-01-01T00:00:09Z\"}\n\
        spec: {clusterIP: 10.0.0.1}\n";
    let service = Service::from_api(&serde_yaml::from_str(text).unwrap()).unwrap().admission.accepted();
    assert_eq!(service.unwrap().created, Some(SystemTime::UNIX_EPOCH + Duration::from_secs(9)));
}

#[test]
fn ports_are_read_with_their_defaults() {
    let service = accepted(
        "spec: {clusterIP: 10.0.0.1, ports: [{port: 80}, {name: dns, port: 53, protocol: UDP, nodePort: \
            30053}, {name: s, port: 80, protocol: SCTP}]}",
    );
    let read: Vec<_> = service
        .ports
        .iter()
        .map(|p| (&*p.name, p.protocol, p.port.get(), p.node_port.map(NonZeroU16::get)))
        .collect();
    assert_eq!(
        read,
        [
            ("", Protocol::Tcp, 80, None),
            ("dns", Protocol::Udp, 53, Some(30053)),
            ("s", Protocol::Sctp, 80, None)
        ]
    );
}

#[test]
fn a_service_without_anything_to_proxy_is_refused_with_its_name_and_the_field() {
    let cases = [
        ("spec: {clusterIP: 10.0.0.256}", "spec.clusterIP: expected an IP address, found \"10.0.0.256\""),
        (
            "spec: {clusterIP: 0.0.0.0}",
            "spec.clusterIP: expected a unicast address of a service, found \"0.0.0.0\"",
        ),
        (
            "spec: {clusterIP: 10.0.0.1, ipFamilies: [IPv5]}",
            "spec.ipFamilies[0]: expected IPv4 or IPv6, found \"IPv5\"",
        ),
        ("kind2: x", "spec: expected a mapping, found none"),
    ];
    for (rest, message) in cases {
        let error = service(rest).unwrap_err().to_string();
        assert_eq!(error, format!("Service demo/web: {message}"), "{rest}");
    }
}

#[test]
fn an_invalid_item_is_left_out_alone_and_named() {
    let cases = [
        (
            "clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1, 10.0.0.2], ipFamilies: [IPv4, IPv6]",
            "spec.clusterIPs[1]: expected an IPv6 address, which spec.ipFamilies says, found \"10.0.0.2\"",
        ),
        ("ports: [{port: 70000}]", "spec.ports[0].port: expected a port (1 to 65535), found 70000"),
        ("ports: [{port: 0}]", "spec.ports[0].port: expected a port (1 to 65535), found 0"),
        (
            "ports: [{port: 80, nodePort: -1}]",
            "spec.ports[0].nodePort: expected a port (1 to 65535), found -1",
        ),
        (
            "ports: [{port: 80, protocol: QUIC}]",
            "spec.ports[0].protocol: expected TCP, UDP or SCTP, found \"QUIC\"",
        ),
        ("ports: [{name: a, port: 80}, {name: a, port: 81}]", "spec.ports[1].name: duplicate of \"a\""),
        ("ports: [{name: a, port: 80}, {name: b, port: 80}]", "spec.ports[1].port: duplicate of 80/tcp"),
        (
            "ports: [{name: a, port: 80, nodePort: 30000}, {name: b, port: 81, nodePort: 30000}]",
            "spec.ports[1].nodePort: duplicate of 30000/tcp",
        ),
        (
            "ports: [{name: 'a\" accept', port: 80}]",
            "spec.ports[0].name: expected a DNS label, found \"a\\\" accept\"",
        ),
        ("externalIPs: [x, 1.2.3.4]", "spec.externalIPs[0]: expected an IP address, found \"x\""),
        (
            "externalIPs: [127.0.0.1]",
            "spec.externalIPs[0]: expected a unicast address of a service, found \"127.0.0.1\"",
        ),
        (
            "loadBalancerSourceRanges: [10.0.0.1]",
            "spec.loadBalancerSourceRanges[0]: expected a CIDR, found \"10.0.0.1\"",
        ),
        (
            "type: Ingress",
            "spec.type: expected ClusterIP, NodePort, LoadBalancer or ExternalName, found \"Ingress\"",
        ),
        ("sessionAffinity: Cookie", "spec.sessionAffinity: expected ClientIP or None, found \"Cookie\""),
        (
            "externalTrafficPolicy: Node",
            "spec.externalTrafficPolicy: expected Cluster or Local, found \"Node\"",
        ),
        (
            "healthCheckNodePort: 30080, ports: [{port: 53, protocol: UDP}, {port: 80, nodePort: 30080}]",
            "spec.healthCheckNodePort: duplicate of the node port 30080/tcp",
        ),
        ("healthCheckNodePort: 70000", "spec.healthCheckNodePort: expected a port (1 to 65535), found 70000"),
    ];
    for (rest, message) in cases {
        let cluster_ip = if rest.starts_with("clusterIP") { "" } else { "clusterIP: 10.0.0.1, " };
        let (service, left_out) = partial(&format!("spec: {{{cluster_ip}{rest}}}"));
        assert_eq!(left_out, [message], "{rest}");
        assert_eq!(service.cluster_ips, [Some("10.0.0.1".parse().unwrap()), None], "{rest}");
    }
    let (service, left_out) = partial(
        "spec: {clusterIP: 10.0.0.1}\nstatus: {loadBalancer: {ingress: [{ip: 1.2.3}, {ip: 1.2.3.4}, {ip: \
            1.2.3.5, ipMode: Half}]}}",
    );
    assert_eq!(service.load_balancer_ips, ips(&["1.2.3.4"]));
    assert_eq!(
        left_out,
        [
            "status.loadBalancer.ingress[0].ip: expected an IP address, found \"1.2.3\"",
            "status.loadBalancer.ingress[2].ipMode: expected VIP or Proxy, found \"Half\"",
        ]
    );
}

#[test]
fn what_stays_of_ports_that_have_something_in_common() {
    let ports = |list: &str| {
        let (service, _) = partial(&format!("spec: {{clusterIP: 10.0.0.1, ports: [{list}]}}"));
        let port =
            |port: &Port| format!("{} {} {:?}", port.name, port.port, port.node_port.map(NonZeroU16::get));
        service.ports.iter().map(port).collect::<Vec<_>>()
    };
    assert_eq!(
        ports("{name: a, port: 80}, {name: a, port: 81}, {name: b, port: 81}"),
        ["a 80 None", "b 81 None"]
    );
    assert_eq!(
        ports("{name: a, port: 80, nodePort: 30000}, {name: b, port: 81, nodePort: 30000}"),
        ["a 80 Some(30000)", "b 81 None"]
    );
}

#[test]
fn addresses_that_are_listed_and_not_served_are_told_with_the_reason() {
    let told = |text: &str| -> Vec<String> {
        let object =
            serde_yaml::from_str(&format!("metadata: {{namespace: demo, name: web}}\n{text}")).unwrap();
        let not_served = Service::from_api(&object).unwrap().not_served;
        not_served.iter().map(|one| format!("{} {}: {}", one.ip, one.field, one.why)).collect()
    };
    let headless = "spec: {clusterIP: None, externalIPs: [198.51.100.8, nonsense], ports: [{port: 80}]}";
    assert_eq!(told(headless), ["198.51.100.8 spec.externalIPs: headless"]);
    let proxied = "spec: {clusterIP: 172.30.0.1, externalIPs: [198.51.100.8, 169.254.1.1], ports: [{port: 80}]}\n\
                   status: {loadBalancer: {ingress: [{ip: 203.0.113.1}, {ip: 203.0.113.2, ipMode: Proxy}]}}";
    let found = told(proxied);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found[0].starts_with("203.0.113.2 status.loadBalancer.ingress: its ipMode is Proxy"),
        "{found:?}"
    );
    assert!(found[1].starts_with("169.254.1.1 spec.externalIPs: "), "{found:?}");
}

#[test]
fn a_scheduler_that_is_not_known_is_told_and_random_is_used() {
    let read = |text: &str| {
        let mut object = api::Service::default();
        object.metadata.name = Some("web".to_owned());
        object.metadata.annotations = Some([(Scheduler::ANNOTATION.to_owned(), text.to_owned())].into());
        object.spec =
            Some(api::ServiceSpec { cluster_ip: Some("10.0.0.1".to_owned()), ..Default::default() });
        let Converted { admission, left_out, .. } = Service::from_api(&object).unwrap();
        (
            admission.accepted().unwrap().scheduler,
            left_out.iter().map(ToString::to_string).collect::<Vec<_>>(),
        )
    };
    assert_eq!(read("source-hash"), (Some(Scheduler::SourceHash), Vec::new()));
    for (text, expected) in [
        ("lc", "random, round-robin, source-hash, maglev or maglev:SLOTS, found \"lc\""),
        (
            "maglev:1000",
            "a prime number of slots from 11 to 4093 after `maglev:` of a Service, found \"1000\"",
        ),
        ("maglev:4099", "at most 4093 slots of a Service, found 4099"),
    ] {
        let told = format!(
            "Service default/web: metadata.annotations[sluicegate.github.io/scheduler]: expected {expected}; random \
             is used"
        );
        assert_eq!(read(text), (Some(Scheduler::Random), vec![told]));
    }
    assert_eq!(accepted("spec: {clusterIP: 10.0.0.1}").scheduler, None);
}

#[test]
fn an_annotation_of_ours_that_does_not_exist_is_told() {
    let mut object = api::Service::default();
    object.metadata.name = Some("web".to_owned());
    let keys = ["sluicegate.github.io/schedular", "example.com/schedular", Scheduler::ANNOTATION];
    object.metadata.annotations = Some(keys.map(|key| (key.to_owned(), "maglev".to_owned())).into());
    object.spec = Some(api::ServiceSpec { cluster_ip: Some("10.0.0.1".to_owned()), ..Default::default() });
    let Converted { admission, left_out, .. } = Service::from_api(&object).unwrap();
    assert_eq!(admission.accepted().unwrap().scheduler, Some(Scheduler::Maglev(Slots::default())));
    let told: Vec<_> = left_out.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "Service default/web: metadata.annotations[sluicegate.github.io/schedular]: there is no such annotation: \
          expected sluicegate.github.io/scheduler"
        ]
    );
}
