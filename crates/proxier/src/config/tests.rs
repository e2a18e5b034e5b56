//! Files as kubeadm and people write them.

use super::*;

fn parse(body: &str) -> Result<Config, String> {
    let head = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n";
    Config::parse(Path::new("c.yaml"), &format!("{head}{body}")).map_err(|error| error.to_string())
}

#[test]
fn a_verbosity_that_kube_proxy_takes_is_no_error() {
    let read = |level: &str| parse(&format!("logging: {{verbosity: {level}}}\n")).map(|c| c.verbosity);
    assert_eq!(read("254").unwrap(), Some(254));
    assert_eq!(read("1000").unwrap(), Some(1000));
    assert!(read("-1").is_err() && read("4294967296").is_err());
}

#[test]
fn fields_that_apply_are_read() {
    let config = parse(
        "mode: nftables
clusterCIDR: 10.244.0.0/16,fd00:10:244::/56
bindAddress: 0.0.0.0
hostnameOverride: Node-1
detectLocalMode: InterfaceNamePrefix
detectLocal: {bridgeInterface: '', interfaceNamePrefix: veth}
nodePortAddresses: [192.168.0.0/16, fd00::/8]
healthzBindAddress: 0.0.0.0:10256
clientConnection: {kubeconfig: /var/lib/kube-proxy/kubeconfig.conf}
iptables: {masqueradeBit: 15, masqueradeAll: true, localhostNodePorts: false, syncPeriod: 1m, minSyncPeriod: \
0s}
nftables: {syncPeriod: 0s, minSyncPeriod: 500ms}
ipvs: {scheduler: sh, excludeCIDRs: [10.0.0.0/8], strictARP: true, udpTimeout: 5m0s}
logging: {verbosity: 4}
",
    )
    .unwrap();
    assert_eq!(config.mode, Some(Mode::Nftables));
    assert_eq!(config.cluster_cidrs.as_deref().map(<[_]>::len), Some(2));
    assert_eq!(config.hostname_override.as_deref(), Some("Node-1"));
    assert_eq!(config.detect_local_mode, Some(DetectLocalMode::InterfaceNamePrefix));
    assert_eq!((config.bridge_interface, config.interface_name_prefix.as_deref()), (None, Some("veth")));
    assert_eq!(config.node_port_addresses.unwrap().to_string(), "192.168.0.0/16,fd00::/8");
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    assert_eq!(config.iptables.masquerade_bit, Some(15));
    assert_eq!((config.iptables.sync_period, config.iptables.min_sync_period), (seconds(60), None));
    assert_eq!(config.nftables.sync_period, None, "zero means the default");
    assert_eq!(config.nftables.min_sync_period, Some(Duration::from_millis(500)));
    assert_eq!(config.ipvs_udp_timeout, seconds(300));
    assert_eq!(config.localhost_node_ports, Some(false));
    assert_eq!(config.verbosity, Some(4));
    assert!(config.unused.is_empty(), "{:?}", config.unused);
}

#[test]
fn the_defaults_of_kubeadm_are_accepted_and_ignored_fields_are_listed_when_they_have_a_value() {
    // The fields of `kubeadm config print init-defaults --component-configs KubeProxyConfiguration`, 1.34.
    let config = parse(
        "bindAddress: 0.0.0.0
bindAddressHardFail: false
clientConnection: {acceptContentTypes: '', burst: 0, contentType: '', kubeconfig: \
/var/lib/kube-proxy/kubeconfig.conf, qps: 0}
clusterCIDR: ''
configSyncPeriod: 0s
conntrack: {maxPerCore: null, min: null, tcpBeLiberal: false, tcpCloseWaitTimeout: null, udpTimeout: 0s}
detectLocal: {bridgeInterface: '', interfaceNamePrefix: ''}
detectLocalMode: ''
enableProfiling: false
healthzBindAddress: ''
hostnameOverride: ''
iptables: {localhostNodePorts: null, masqueradeAll: false, masqueradeBit: null, minSyncPeriod: 0s, \
syncPeriod: 0s}
ipvs: {excludeCIDRs: null, minSyncPeriod: 0s, scheduler: '', strictARP: false, syncPeriod: 0s, \
tcpFinTimeout: 0s, tcpTimeout: 0s, udpTimeout: 0s}
logging: {flushFrequency: 0, options: {json: {infoBufferSize: '0'}, text: {infoBufferSize: '0'}}, verbosity: \
0}
metricsBindAddress: ''
mode: ''
nftables: {masqueradeAll: false, masqueradeBit: null, minSyncPeriod: 0s, syncPeriod: 0s}
nodePortAddresses: null
oomScoreAdj: null
portRange: ''
showHiddenMetricsForVersion: ''
winkernel: {enableDSR: false, forwardHealthCheckVip: false, networkName: '', rootHnsEndpointName: '', \
sourceVip: ''}
featureGates: {ContextualLogging: true}
",
    )
    .unwrap();
    assert_eq!(config.mode, None);
    let unused: Vec<_> = config.unused.iter().map(ToString::to_string).collect();
    assert_eq!(
        unused,
        [
            "line 16, column 30: logging.options: has no effect here: every line is written to standard error at \
             once",
        ]
    );
}

#[test]
fn what_applies_to_the_process_and_to_connection_tracking_is_read() {
    let config = parse(
        "oomScoreAdj: -500\nlogging: {format: json}\n\
         conntrack: {maxPerCore: 0, min: 10, tcpEstablishedTimeout: 1h, udpTimeout: 0s, tcpBeLiberal: true}\n",
    )
    .unwrap();
    assert_eq!((config.oom_score_adj, config.log_format.as_deref()), (Some(-500), Some("json")));
    let Conntrack { max_per_core, min, tcp_established, udp, tcp_be_liberal, .. } = config.conntrack;
    assert_eq!((max_per_core, min, tcp_be_liberal), (Some(0), Some(10), Some(true)));
    assert_eq!((tcp_established, udp), (Some(Duration::from_secs(3600)), Some(Duration::ZERO)));
    let error = parse("oomScoreAdj: 2000\nfeatureGates: {KubeProxyIPVs: true}\n").unwrap_err();
    assert_eq!(
        error,
        "c.yaml: line 3, column 14: oomScoreAdj: expected a number from -1000 to 1000, found 2000
c.yaml: line 4, column 16: featureGates: Kubernetes 1.37 has no gate \"KubeProxyIPVs\"; did you mean \
         KubeProxyIPVS?"
    );
}

#[test]
fn all_problems_are_reported_at_once_with_their_lines() {
    let error = parse(
        "mode: userspace\niptables:\n  masqueradeBit: 32\n  masqueradeBits: 3\n\
        clusterCIDR: 10.0.0.0\nnodePortAddresses: x\n",
    )
    .unwrap_err();
    assert_eq!(
        error,
        "c.yaml: line 3, column 7: mode: expected nftables, iptables or ipvs, found \"userspace\"
c.yaml: line 5, column 18: iptables.masqueradeBit: expected a number from 0 to 31, found 32
c.yaml: line 7, column 14: clusterCIDR: expected a CIDR (10.244.0.0/16), found \"10.0.0.0\"
c.yaml: line 8, column 20: nodePortAddresses: expected a list of strings, found \"x\""
    );
}

#[test]
fn a_field_of_a_newer_version_and_one_that_comes_twice_are_told_and_the_rest_is_taken() {
    let config = parse(
        "mode: iptables\nfieldOfTomorrow: {a: 1}\nnftables:\n  alsoOfTomorrow: 3\n  masqueradeBit: 3\n\
         mode: nftables\nnodePortAddresses: [primary, localhost]\n\
         featureGates: {KubeProxyNFTablesLocalhostNodePorts: true, NFTablesNetlink: true}\n",
    )
    .unwrap();
    assert_eq!((config.mode, config.nftables.masquerade_bit), (Some(Mode::Nftables), Some(3)));
    assert_eq!(config.node_port_addresses.unwrap().to_string(), "primary,localhost");
    assert!(config.feature_gates.is_on(Gate::KubeProxyNftablesLocalhostNodePorts));
    let doubtful: Vec<_> = config.doubtful.iter().map(ToString::to_string).collect();
    assert_eq!(
        doubtful,
        [
            "line 4, column 1: fieldOfTomorrow: kube-proxy has no such field; it is ignored",
            "line 6, column 3: nftables.alsoOfTomorrow: kube-proxy has no such field; it is ignored",
            "line 8, column 1: the key mode comes twice; the last one counts",
        ]
    );
}

#[test]
fn another_kind_or_version_text_that_is_not_yaml_and_an_empty_file_are_refused() {
    let parse = |text| Config::parse(Path::new("c"), text).unwrap_err().to_string();
    assert_eq!(
        parse("apiVersion: v1\nkind: KubeProxyConfiguration\n"),
        "c: line 1: apiVersion: expected kubeproxy.config.k8s.io/v1alpha1, found \"v1\""
    );
    assert!(parse("mode: nftables\n").contains("kind: expected KubeProxyConfiguration, found none"));
    assert_eq!(parse(""), "c: line 1: the file is empty");
    assert!(parse("a: [").starts_with("c: line "));
    assert!(parse("- a\n").contains("expected an object"));
}

#[test]
fn what_kube_proxy_passes_over_is_told_and_stops_nothing() {
    let told = |text: &str| {
        let config = Config::parse(Path::new("c"), text).unwrap();
        (config.mode, config.doubtful.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    let head = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n";
    let second = told(&format!("# mine\n---\n{head}mode: ipvs\n---\n{head}mode: iptables\n"));
    let another = "line 6: another document begins; the first one counts alone, as in kube-proxy";
    assert_eq!(second, (Some(Mode::Ipvs), vec![another.to_owned()]));
    let second = told(&format!("--- # mine\n{head}mode: ipvs\n---\t# another\n{head}mode: iptables\n"));
    assert_eq!(second, (Some(Mode::Ipvs), vec![another.replace("line 6", "line 5")]));
    assert_eq!(told(&format!("---\r\n{head}mode: ipvs\n---\n# no more\n")), (Some(Mode::Ipvs), Vec::new()));
    assert_eq!(told(&format!("{head}...\n")), (None, Vec::new()));
    let number = told(&format!("{head}1: 2\nmode: ipvs\n"));
    assert_eq!(
        number,
        (Some(Mode::Ipvs), vec!["line 3, column 1: kube-proxy has no field 1; it is ignored".to_owned()])
    );
}
