//! Names that other programs have created, each with its source.

use sluicegate_chain_names::schemes::{calico, cni, kube_proxy, kube_router};
use sluicegate_chain_names::{Error, Protocol, ServicePort};

struct Known {
    namespace: &'static str,
    name: &'static str,
    port: &'static str,
    protocol: Protocol,
    iptables: Option<&'static str>,
    nftables: Option<&'static str>,
    /// Endpoint, 16 characters of iptables, base of nftables.
    endpoints: &'static [(&'static str, Option<&'static str>, Option<&'static str>)],
}

const LONG_NAMESPACE: &str = "very-long-namespace-name-abcdefghijklmnopqrstuvwxyz0123456789xx";
const LONG_NAME: &str = "very-long-service-name-why-would-you-even-do-this-i-mean-really";
const LONG_PORT: &str = "port-443-providing-the-hypertext-transmission-protocol-with-tls";

const KNOWN: &[Known] = &[
    // kube-proxy 1.36.2 run on the service set of the worked example, both modes; loaded with iptables 1.8.9
    // and nft 1.0.6.
    Known {
        namespace: "demo",
        name: "web",
        port: "http",
        protocol: Protocol::Tcp,
        iptables: Some("XRY76EGRC3BSCIIJ"),
        nftables: Some("AXK6CI2C-demo/web/tcp/http"),
        endpoints: &[
            ("10.244.0.10:8080", Some("AEXJBL2DDECPIHGN"), None),
            ("10.244.1.10:8080", Some("SI62D7XAGVO2CP3X"), None),
        ],
    },
    Known {
        namespace: "demo",
        name: "api",
        port: "https",
        protocol: Protocol::Tcp,
        iptables: Some("FPNDZPBCDEO3LHH3"),
        nftables: Some("JQ2F43TF-demo/api/tcp/https"),
        endpoints: &[
            ("10.244.0.10:8443", Some("CZKUKXAW7NSAEED3"), None),
            ("10.244.1.10:8443", Some("WJDELWNT6DUZF7FX"), None),
        ],
    },
    Known {
        namespace: "demo",
        name: "dns",
        port: "dns",
        protocol: Protocol::Udp,
        iptables: Some("IXHL676EY46F5RLS"),
        nftables: Some("34HOXUJH-demo/dns/udp/dns"),
        endpoints: &[
            ("10.244.0.20:53", Some("VNXTORXD4ZU3FI6U"), Some("PAAF6AAY-demo/dns/udp/dns__10.244.0.20/53")),
            ("10.244.1.20:53", Some("RFGNMDX6RLGBDUVU"), Some("7RGPMZD5-demo/dns/udp/dns__10.244.1.20/53")),
        ],
    },
    Known {
        namespace: "demo",
        name: "empty",
        port: "",
        protocol: Protocol::Tcp,
        iptables: Some("NMG4BR2WNHGXZ2OT"),
        nftables: Some("UDTKAG7Z-demo/empty/tcp/"),
        endpoints: &[],
    },
    // kubernetes/kubernetes 1.36, pkg/proxy/iptables/proxier_test.go and pkg/proxy/nftables/proxier_test.go.
    Known {
        namespace: "ns1",
        name: "svc1",
        port: "p80",
        protocol: Protocol::Tcp,
        iptables: Some("XPGD46QRK7WJZT7O"),
        nftables: Some("ULMVA6XW-ns1/svc1/tcp/p80"),
        endpoints: &[(
            "10.180.0.1:80",
            Some("SXIVWICOYRO3J4NJ"),
            Some("5OJB2KTY-ns1/svc1/tcp/p80__10.180.0.1/80"),
        )],
    },
    Known {
        namespace: "ns2",
        name: "svc2",
        port: "p8080",
        protocol: Protocol::Tcp,
        iptables: None,
        nftables: Some("MHHHYRWA-ns2/svc2/tcp/p8080"),
        endpoints: &[("10.0.2.1:8080", None, Some("7RVP4LUQ-ns2/svc2/tcp/p8080__10.0.2.1/8080"))],
    },
    // kubernetes/kubernetes, pkg/proxy/nftables/proxier_test.go, Test_servicePortChainNameBase and
    // Test_servicePortEndpointChainNameBase.
    Known {
        namespace: "testing",
        name: "service",
        port: "http",
        protocol: Protocol::Tcp,
        iptables: None,
        nftables: Some("P4ZYZVCF-testing/service/tcp/http"),
        endpoints: &[
            ("10.180.0.1:80", None, Some("JO2XBXZR-testing/service/tcp/http__10.180.0.1/80")),
            ("10.180.0.2:80", None, Some("5S6H3H22-testing/service/tcp/http__10.180.0.2/80")),
            (
                "[fd80:abcd:12::a1b2:c3d4:e5f6:9999]:80",
                None,
                Some("U7E2ET36-testing/service/tcp/http__fd80.abcd.12..a1b2.c3d4.e5f6.9999/80"),
            ),
        ],
    },
    Known {
        namespace: "testing",
        name: "service",
        port: "https",
        protocol: Protocol::Tcp,
        iptables: None,
        nftables: Some("LZBRENCP-testing/service/tcp/https"),
        endpoints: &[],
    },
    Known {
        namespace: LONG_NAMESPACE,
        name: LONG_NAME,
        port: LONG_PORT,
        protocol: Protocol::Sctp,
        iptables: None,
        nftables: Some(
            "KR6NACJP-very-long-namespace-name-abcdefghijklmnopqrstuvwxyz0123456789xx/very-long-service-name-why-\
             would-you-even-do-this-i-mean-really/sctp/port-443-providing-the-hypertext-transmission-protocol-with-tls",
        ),
        endpoints: &[
            (
                "[1234:5678:9abc:def0::abc:1234]:443",
                None,
                Some(
                    "5YS7AFEA-very-long-namespace-name-abcdefghijklmnopqrstuvwxyz0123456789xx/very-long-service-name-\
                     why-would-you-even-do-this-i-mean-really/sctp/port-443-providing-the-hypertext-transmission-\
                     protocol-with-tls__1234.5678.9abc.def0..abc.1234/443",
                ),
            ),
            (
                "[1234:5678:9abc:def0::abcd:1234:5678]:443",
                None,
                Some(
                    "CI6C53Q3-very-long-namespace-name-abcdefghijklmnopqrstuvwxyz0123456789xx/very-long-service-name-\
                     why-would-you-even-do-this-i-mean-really/sctp/port-443-providing-the-hypertext-transmission-\
                     protocol-with-tls__1234.5678.9abc.def0..abcd.1234...",
                ),
            ),
            (
                "[1234:5678:9abc:def0::abcd:1234:8765]:443",
                None,
                Some(
                    "2FLXFK6X-very-long-namespace-name-abcdefghijklmnopqrstuvwxyz0123456789xx/very-long-service-name-\
                     why-would-you-even-do-this-i-mean-really/sctp/port-443-providing-the-hypertext-transmission-\
                     protocol-with-tls__1234.5678.9abc.def0..abcd.1234...",
                ),
            ),
        ],
    },
    // The services that every cluster has; iptables-save of a node in weaveworks/weave#3222 (2018), and
    // everywhere else.
    Known {
        namespace: "default",
        name: "kubernetes",
        port: "https",
        protocol: Protocol::Tcp,
        iptables: Some("NPX46M4PTMTKRN6Y"),
        nftables: None,
        endpoints: &[],
    },
    Known {
        namespace: "kube-system",
        name: "kube-dns",
        port: "dns",
        protocol: Protocol::Udp,
        iptables: Some("TCOU7JCQXEZGVUNU"),
        nftables: None,
        endpoints: &[],
    },
    Known {
        namespace: "kube-system",
        name: "kube-dns",
        port: "dns-tcp",
        protocol: Protocol::Tcp,
        iptables: Some("ERIFXISQEP7F7OF4"),
        nftables: None,
        endpoints: &[],
    },
    Known {
        namespace: "kube-system",
        name: "kube-dns",
        port: "metrics",
        protocol: Protocol::Tcp,
        iptables: Some("JD5MR3NA4I4DYORP"),
        nftables: None,
        endpoints: &[],
    },
    // iptables-save of a k3s 1.21 node (kube-proxy and kube-router in one), a blog post of 2021-07-11.
    Known {
        namespace: "argocd",
        name: "argocd-metrics",
        port: "metrics",
        protocol: Protocol::Tcp,
        iptables: Some("SZWGFJCG7JW62ZG2"),
        nftables: None,
        endpoints: &[("10.42.0.38:8082", Some("VYRHUQXWRJ6MSGOH"), None)],
    },
];

#[test]
fn names_equal_those_of_kube_proxy() {
    for known in KNOWN {
        let port = ServicePort::new(known.namespace, known.name, known.port, known.protocol).unwrap();
        if let Some(hash) = known.iptables {
            let names = port.iptables();
            assert_eq!(names.service().as_str(), format!("KUBE-SVC-{hash}"));
            assert_eq!(names.local().as_str(), format!("KUBE-SVL-{hash}"));
            assert_eq!(names.external().as_str(), format!("KUBE-EXT-{hash}"));
            assert_eq!(names.firewall().as_str(), format!("KUBE-FW-{hash}"));
        }
        if let Some(base) = known.nftables {
            let names = port.nftables();
            assert_eq!(names.service().as_str(), format!("service-{base}"));
            assert_eq!(names.local().as_str(), format!("local-{base}"));
            assert_eq!(names.external().as_str(), format!("external-{base}"));
            assert_eq!(names.firewall().as_str(), format!("firewall-{base}"));
        }
        for (endpoint, hash, base) in known.endpoints {
            let endpoint = endpoint.parse().unwrap();
            if let Some(hash) = hash {
                assert_eq!(port.iptables_endpoint(&endpoint).as_str(), format!("KUBE-SEP-{hash}"));
            }
            if let Some(base) = base {
                let names = port.nftables_endpoint(&endpoint);
                assert_eq!(names.chain().as_str(), format!("endpoint-{base}"));
                assert_eq!(names.affinity().as_str(), format!("affinity-{base}"));
            }
        }
    }
}

/// The schemes take the parts as text, and an endpoint in the form that nftables' names have.
#[test]
fn kube_proxys_schemes_take_plain_text() -> Result<(), Error> {
    assert_eq!(kube_proxy::SVC.name(&["ns1/svc1:p80", "tcp"])?, "KUBE-SVC-XPGD46QRK7WJZT7O");
    assert_eq!(kube_proxy::SVL.name(&["ns1/svc1:p80", "tcp"])?, "KUBE-SVL-XPGD46QRK7WJZT7O");
    assert_eq!(kube_proxy::EXT.name(&["ns1/svc1:p80", "tcp"])?, "KUBE-EXT-XPGD46QRK7WJZT7O");
    assert_eq!(kube_proxy::FW.name(&["ns1/svc1:p80", "tcp"])?, "KUBE-FW-XPGD46QRK7WJZT7O");
    assert_eq!(kube_proxy::SEP.name(&["ns1/svc1:p80", "tcp", "10.180.0.1:80"])?, "KUBE-SEP-SXIVWICOYRO3J4NJ");
    assert_eq!(kube_proxy::NFT_SERVICE.name(&["ns1/svc1/tcp/p80"])?, "service-ULMVA6XW-ns1/svc1/tcp/p80");
    assert_eq!(kube_proxy::NFT_LOCAL.name(&["ns1/svc1/tcp/p80"])?, "local-ULMVA6XW-ns1/svc1/tcp/p80");
    assert_eq!(kube_proxy::NFT_EXTERNAL.name(&["ns1/svc1/tcp/p80"])?, "external-ULMVA6XW-ns1/svc1/tcp/p80");
    assert_eq!(kube_proxy::NFT_FIREWALL.name(&["ns1/svc1/tcp/p80"])?, "firewall-ULMVA6XW-ns1/svc1/tcp/p80");
    let long = [
        LONG_NAMESPACE,
        "/",
        LONG_NAME,
        "/sctp/",
        LONG_PORT,
        "__",
        "1234.5678.9abc.def0..abcd.1234.5678",
        "/443",
    ];
    let endpoint = kube_proxy::NFT_ENDPOINT.name(&long)?;
    assert!(
        endpoint.starts_with("endpoint-CI6C53Q3-very-long-")
            && endpoint.ends_with("__1234.5678.9abc.def0..abcd.1234...")
    );
    assert_eq!(endpoint.len(), "endpoint-".len() + 240);
    assert!(kube_proxy::NFT_AFFINITY.name(&long)?.starts_with("affinity-CI6C53Q3-"));
    Ok(())
}

/// Sets: iptables-save and ipset list of a k3s 1.21 node (kube-router 1.x), a blog post of 2021-07-11; the
/// pair of the policy allow-backend-slave-access-to-frontend is in a README that shows kube-router 1.x at
/// work. In 1.x the version and the family are not yet among the inputs of a set. The family was added in 2.0
/// (`policySourcePodIPSetName`), together with `inet6:`.
#[test]
fn sets_equal_those_of_kube_router() -> Result<(), Error> {
    let policy = ["argocd", "argocd-application-controller-network-policy"];
    assert_eq!(kube_router::DST.name(&policy)?, "KUBE-DST-DM6ZQPCTKCXEROGZ");
    assert_eq!(
        kube_router::SRC.name(&[policy[0], policy[1], "ingressrule", "0", "pod"])?,
        "KUBE-SRC-DRBIHPAD4OLOF546"
    );
    assert_eq!(
        kube_router::SRC.name(&[policy[0], policy[1], "ingressrule", "0", "ipblock"])?,
        "KUBE-SRC-MLGAJX4FU64MJPWH"
    );

    let policy = ["default", "allow-backend-slave-access-to-frontend"];
    assert_eq!(kube_router::DST.name(&policy)?, "KUBE-DST-IZMNXX7C6SXMJM4O");
    assert_eq!(
        kube_router::SRC.name(&[policy[0], policy[1], "ingressrule", "0", "pod"])?,
        "KUBE-SRC-HXXMJKQ43MW3EL2V"
    );

    // No published value: the sync version is a time stamp. The form is that of the source.
    let chain = kube_router::POD_FW.name(&["default", "web-0", "1625990400000000000"])?;
    assert_eq!((chain.len(), &chain[..12]), (28, "KUBE-POD-FW-"));
    let chain = kube_router::NWPLCY.name(&[policy[0], policy[1], "1625990400000000000", "IPv4"])?;
    assert_eq!((chain.len(), &chain[..12]), (28, "KUBE-NWPLCY-"));
    let set = kube_router::SRC_INET6.name(&[policy[0], policy[1], "IPv6"])?;
    assert_eq!((set.len(), &set[..15]), (31, "inet6:KUBE-SRC-"));
    assert!(kube_router::DST_INET6.name(&[policy[0], policy[1], "IPv6"])?.starts_with("inet6:KUBE-DST-"));
    Ok(())
}

/// Calico's `libcalico-go/lib/hash/unique_id_test.go`.
#[test]
fn calicos_length_limited_ids() -> Result<(), Error> {
    let felix = |limit: usize, text: &str| calico::chain("felix").limit(limit).name(&[text]);
    assert_eq!(felix(10, "1234")?, "felix1234");
    assert_eq!(felix(11, "123456")?, "felix123456");
    assert_eq!(felix(10, "_2345")?, "felix_kMQI");
    assert_eq!(felix(13, "12345678910")?, "felix_Y2QCZIS");
    assert_eq!(felix(10, "")?, "felix_");
    Ok(())
}

/// Chains: the policy's from felix/fv (policy `policy-1` of namespace `default`, with its tier in front), the
/// profile's from listings of several clusters (service account `coredns`), the short ones from the same
/// listings. Set: the ID of `all()` in libcalico-go/lib/selector's canonicalisation test, behind `cali40` and
/// cut to 31 bytes as felix/ipsets does.
#[test]
fn chains_and_sets_equal_those_of_calico() -> Result<(), Error> {
    assert_eq!(calico::POLICY_INBOUND.name(&["default/default.policy-1"])?, "cali-pi-_l_CMLPBmpkyZIIwB62k");
    assert_eq!(calico::POLICY_OUTBOUND.name(&["default/default.policy-1"])?, "cali-po-_l_CMLPBmpkyZIIwB62k");
    assert_eq!(calico::POLICY_INBOUND.name(&["default/policy-1"])?, "cali-pi-default/policy-1");
    assert_eq!(calico::PROFILE_INBOUND.name(&["ksa.kube-system.coredns"])?, "cali-pri-_u2Tn2rSoAPffvE7JO6");
    assert_eq!(calico::PROFILE_OUTBOUND.name(&["ksa.kube-system.coredns"])?, "cali-pro-_u2Tn2rSoAPffvE7JO6");
    assert_eq!(calico::PROFILE_INBOUND.name(&["ksa.calico-system.default"])?.len(), 28);
    assert_eq!(calico::PROFILE_INBOUND.name(&["kns.kube-system"])?, "cali-pri-kns.kube-system");
    assert_eq!(calico::TO_WORKLOAD.name(&["cali95aa86cbb2a"])?, "cali-tw-cali95aa86cbb2a");
    assert_eq!(calico::FROM_WORKLOAD.name(&["cali95aa86cbb2a"])?, "cali-fw-cali95aa86cbb2a");
    assert_eq!(calico::TO_HOST.name(&["eth0"])?, "cali-th-eth0");
    assert_eq!(calico::FROM_HOST.name(&["eth0"])?, "cali-fh-eth0");
    assert_eq!(calico::SELECTOR_SET.name(&["s:", "all()"])?, "cali40s:5y5I3VdRZfDU01O--xXAPx2");
    assert_eq!(calico::SELECTOR_SET_INET6.name(&["s:", "all()"])?, "cali60s:5y5I3VdRZfDU01O--xXAPx2");
    Ok(())
}

/// The CNI plugins' `pkg/utils/utils_test.go`. portmap's prefixes fill the 28 bytes in the same way
/// (`CNI-PREFIX-...` there).
#[test]
fn chains_equal_those_of_the_cni_plugins() -> Result<(), Error> {
    assert_eq!(cni::CHAIN.name(&["test", "1234"])?, "CNI-2bbe0c48b91a7d1b8a6753a8");
    assert_eq!(
        cni::CHAIN.name(&["testalongnamethatdoesnotmakesense", "1234"])?,
        "CNI-374f33fe84ab0ed84dcdebe3"
    );
    assert_eq!(cni::DNAT.name(&["test", "1234"])?, "CNI-DN-2bbe0c48b91a7d1b8a675");
    assert_eq!(cni::SNAT.name(&["test", "1234"])?, "CNI-SN-2bbe0c48b91a7d1b8a675");
    Ok(())
}
