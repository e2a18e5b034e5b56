//! Properties of all inputs: limits, characters, equal results of both ways to a name, and no two inputs with
//! the same text.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZero;

use proptest::prelude::*;
use sluicegate_chain_names::schemes::{calico, cni, kube_proxy, kube_router};
use sluicegate_chain_names::{Endpoint, IpsetName, NftName, Protocol, ServicePort, XtName};

fn label() -> impl Strategy<Value = String> {
    // Short alphabets make ambiguous concatenations likely: `a` + `tcp`, `__` in a port, digits before an
    // address.
    prop_oneof!["[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", "[atcpsud._1-]{1,5}", "[A-Za-z0-9._-]{1,300}"]
}

fn port_name() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), label()]
}

fn protocol() -> impl Strategy<Value = Protocol> {
    prop_oneof![Just(Protocol::Tcp), Just(Protocol::Udp), Just(Protocol::Sctp)]
}

fn endpoint() -> impl Strategy<Value = Endpoint> {
    (any::<IpAddr>(), 1..=u16::MAX)
        .prop_map(|(ip, port)| Endpoint::new(ip, NonZero::new(port).expect("from 1")))
}

type Parts = (String, String, String, Protocol);

fn parts() -> impl Strategy<Value = Parts> {
    (label(), label(), port_name(), protocol())
}

fn service_port(parts: &Parts) -> ServicePort<'_> {
    ServicePort::new(&parts.0, &parts.1, &parts.2, parts.3).expect("labels")
}

proptest! {
    #[test]
    fn names_keep_their_limits_and_are_valid_again(parts in parts(), endpoint in endpoint()) {
        let port = service_port(&parts);
        let iptables = port.iptables();
        let endpoint_chain = port.iptables_endpoint(&endpoint);
        for name in [iptables.service(), iptables.local(), iptables.external(), endpoint_chain] {
            prop_assert_eq!(name.len(), 25);
            prop_assert_eq!(XtName::new(&name).unwrap(), name);
        }
        let nftables = port.nftables();
        let ends = port.nftables_endpoint(&endpoint);
        let chains = [nftables.service(), nftables.local(), nftables.external(), nftables.firewall()];
        for name in chains.into_iter().chain([ends.chain(), ends.affinity()]) {
            prop_assert!(name.len() <= 249);
            prop_assert_eq!(NftName::new(&name).unwrap(), name);
        }
    }

    #[test]
    fn schemes_on_text_agree_with_service_ports(parts in parts(), endpoint in endpoint()) {
        let port = service_port(&parts);
        let text = port.to_string();
        let lower = port.protocol().as_str();
        prop_assert_eq!(kube_proxy::SVC.name(&[&text, lower]).unwrap(), port.iptables().service());
        let address = endpoint.to_string();
        let chain = kube_proxy::SEP.name(&[&text, lower, &address]).unwrap();
        prop_assert_eq!(chain, port.iptables_endpoint(&endpoint));
        let text = format!("{}/{}/{lower}/{}", parts.0, parts.1, parts.2);
        prop_assert_eq!(kube_proxy::NFT_SERVICE.name(&[&text]).unwrap(), port.nftables().service());
        let ip = endpoint.ip().to_string().replace(':', ".");
        let text = format!("{text}__{ip}/{}", endpoint.port());
        let chain = kube_proxy::NFT_ENDPOINT.name(&[&text]).unwrap();
        prop_assert_eq!(chain, port.nftables_endpoint(&endpoint).chain());
    }

    #[test]
    fn different_service_ports_have_different_names(a in parts(), b in parts()) {
        let (left, right) = (service_port(&a), service_port(&b));
        prop_assert_eq!(left == right, left.iptables().service() == right.iptables().service());
        prop_assert_eq!(left == right, left.nftables().service() == right.nftables().service());
    }

    #[test]
    fn different_endpoints_have_different_names(parts in parts(), a in endpoint(), b in endpoint()) {
        let port = service_port(&parts);
        prop_assert_eq!(a == b, port.iptables_endpoint(&a) == port.iptables_endpoint(&b));
        prop_assert_eq!(a == b, port.nftables_endpoint(&a).chain() == port.nftables_endpoint(&b).chain());
    }

    #[test]
    fn an_nftables_name_keeps_the_whole_text_or_is_cut_at_240(parts in parts(), endpoint in endpoint()) {
        let port = service_port(&parts);
        let ip = endpoint.ip().to_string().replace(':', ".");
        let text = format!("{}/{}/{}/{}__{ip}/{}", parts.0, parts.1, parts.3, parts.2, endpoint.port());
        let name = port.nftables_endpoint(&endpoint).chain();
        let base = name.strip_prefix("endpoint-").unwrap();
        if text.len() + 9 <= 240 {
            prop_assert_eq!(&base[9..], text);
        } else {
            prop_assert_eq!(base.len(), 240);
            prop_assert_eq!(&base[9..237], &text[..228]);
            prop_assert_eq!(&base[237..], "...");
        }
    }

    #[test]
    fn an_endpoint_is_read_back_from_its_text(endpoint in endpoint()) {
        prop_assert_eq!(endpoint.to_string().parse::<Endpoint>().unwrap(), endpoint);
        let address: SocketAddr = endpoint.to_string().parse().unwrap();
        prop_assert_eq!(Endpoint::try_from(address).unwrap(), endpoint);
    }

    #[test]
    fn any_text_is_taken_or_refused_and_never_panics(text in any::<String>(), more in any::<String>()) {
        let _ = (text.parse::<Endpoint>(), text.parse::<Protocol>());
        let _ = (IpsetName::new(&text), XtName::new(&text), NftName::new(&text));
        let _ = ServicePort::new(&text, &more, &text, Protocol::Tcp);
        for scheme in [kube_proxy::SEP, kube_router::POD_FW, cni::CHAIN] {
            prop_assert_eq!(scheme.name(&[&text, &more]).is_ok(), !(text.is_empty() && more.is_empty()));
        }
        if let Ok(name) = kube_proxy::NFT_SERVICE.name(&[&text, &more]) {
            prop_assert!(name.len() <= 248 && NftName::new(&name).is_ok());
        }
        if let Ok(name) = calico::POLICY_INBOUND.name(&[&text, &more]) {
            prop_assert!(name.len() <= 28 && XtName::new(&name).is_ok());
        }
    }

    #[test]
    fn names_hold_only_what_can_stand_unquoted(text in "\\PC{0,40}|[ -~]{0,40}") {
        if let Ok(name) = XtName::new(&text) {
            prop_assert!(name.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"'\\".contains(&byte)));
        }
        if let Ok(name) = NftName::new(&text) {
            prop_assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/-_.".contains(&byte)));
        }
    }

    #[test]
    fn calicos_names_differ_for_different_texts(a in "[_a-zA-Z0-9./-]{0,40}", b in "[_a-zA-Z0-9./-]{0,40}") {
        // An empty text gets the name that a lone mark has; the formula has no other way to name it.
        prop_assume!(!a.is_empty() && !b.is_empty());
        let left = calico::POLICY_INBOUND.name(&[&a]).unwrap();
        let right = calico::POLICY_INBOUND.name(&[&b]).unwrap();
        prop_assert_eq!(a == b, left == right);
        let plain = a.len() < 20 || (a.len() == 20 && !a.starts_with('_'));
        prop_assert_eq!(plain, left.as_str() == format!("cali-pi-{a}"));
    }
}
