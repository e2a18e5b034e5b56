//! Arbitrary text as parts of a service port, as an endpoint, as a name, and as the input of every scheme:
//! nothing panics, and every name that comes out is within its limit and is a name again.
use sluicegate_chain_names::schemes::{calico, cni, kube_proxy, kube_router};
use sluicegate_chain_names::{Endpoint, IpsetName, Name, NftName, Protocol, Scheme, ServicePort, XtName};

pub(crate) fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let columns: Vec<&str> = text.split('\t').collect();

    let _ = (XtName::new(text), IpsetName::new(text), NftName::new(text));
    for scheme in [kube_proxy::SVC, kube_router::NWPLCY, cni::DNAT, calico::POLICY_INBOUND] {
        check(scheme, &columns);
    }
    check(kube_router::SRC_INET6, &columns);
    check(calico::SELECTOR_SET, &columns);
    check(kube_proxy::NFT_ENDPOINT, &columns);

    if let &[namespace, name, port, protocol, endpoint] = columns.as_slice()
        && let Ok(protocol) = protocol.parse::<Protocol>()
        && let Ok(service) = ServicePort::new(namespace, name, port, protocol)
    {
        let (iptables, nftables) = (service.iptables(), service.nftables());
        for name in [iptables.service(), iptables.local(), iptables.external(), iptables.firewall()] {
            again(name);
        }
        for name in [nftables.service(), nftables.local(), nftables.external(), nftables.firewall()] {
            again(name);
        }
        if let Ok(endpoint) = endpoint.parse::<Endpoint>() {
            again(service.iptables_endpoint(&endpoint));
            again(service.nftables_endpoint(&endpoint).chain());
            again(service.nftables_endpoint(&endpoint).affinity());
            assert_eq!(endpoint.canonical(), endpoint.canonical().as_str().parse().unwrap());
        }
    }
}

fn check<N: Name>(scheme: Scheme<'_, N>, pieces: &[&str]) {
    if let Ok(name) = scheme.name(pieces) {
        again(name);
        assert!(name.as_str().starts_with(scheme.prefix()));
    }
}

fn again<N: Name>(name: N) {
    assert!(name.as_str().len() <= N::LIMIT);
    assert_eq!(N::new(name.as_str()).unwrap(), name);
}
