//! The responses at the health-check node ports of services, for load balancers.

use std::collections::{BTreeMap, HashSet};
use std::num::NonZeroU16;

use hyper::header::HeaderValue;
use sluicegate_services::{Cluster, Family, ServiceName, ServicePort};

use super::{Answer, JSON, answer};

/// The services with a health-check node port, by family, and the number of their endpoints on this node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceHealth {
    checks: BTreeMap<(Family, ServiceName), Check>,
}

/// The state of one port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Check {
    /// The port.
    pub port: NonZeroU16,
    /// The number of addresses on this node with a ready endpoint of the service, on any of its ports.
    pub local_endpoints: usize,
}

impl ServiceHealth {
    /// Returns the checks of a cluster. The cost depends on the number of services with a traffic policy
    /// Local.
    #[must_use]
    pub fn of(cluster: &Cluster, families: &[Family]) -> Self {
        let mut checks = BTreeMap::new();
        let checked =
            cluster.local_services().filter(|(_, service)| service.health_check_node_port.is_some());
        for (name, _) in checked {
            for family in families.iter().copied() {
                let ports = cluster.ports(name, family);
                // Another service may have it.
                let Some(port) = ports.iter().find_map(|port| port.health_check_node_port) else { continue };
                let local_endpoints = local_endpoints(&ports);
                checks.insert((family, name.clone()), Check { port, local_endpoints });
            }
        }
        Self { checks }
    }

    /// Returns every check, in the order of families and names.
    pub fn iter(&self) -> impl Iterator<Item = (Family, &ServiceName, &Check)> {
        self.checks.iter().map(|((family, name), check)| (*family, name, check))
    }

    /// Returns the response for a service: 200 when it has endpoints here and the proxy is healthy, otherwise
    /// 503.
    ///
    /// The header `X-Load-Balancing-Endpoint-Weight` has the number of endpoints. `None` for a service
    /// without a check.
    #[must_use]
    pub fn answer(&self, family: Family, name: &ServiceName, proxy_healthy: bool) -> Option<Answer> {
        let count = self.checks.get(&(family, name.clone()))?.local_endpoints;
        let (namespace, name) = (name.namespace(), name.name());
        // Names are DNS labels, which need no escapes.
        let body = format!(
            "{{\n\t\"service\": {{\n\t\t\"namespace\": \"{namespace}\",\n\t\t\"name\": \"{name}\"\n\t}},\n\
                \t\"localEndpoints\": \
             {count},\n\t\"serviceProxyHealthy\": {proxy_healthy}\n}}"
        );
        let mut answer = answer(if count > 0 && proxy_healthy { 200 } else { 503 }, JSON, body);
        answer.headers_mut().insert("x-load-balancing-endpoint-weight", HeaderValue::from(count));
        Some(answer)
    }
}

fn local_endpoints(ports: &[ServicePort<'_>]) -> usize {
    let endpoints = ports.iter().flat_map(|port| &port.endpoints);
    let here = endpoints.filter(|endpoint| endpoint.is_local && endpoint.ready);
    here.map(|endpoint| endpoint.address.ip()).collect::<HashSet<_>>().len()
}

#[cfg(test)]
mod tests {
    use sluicegate_services::Node;

    use super::*;
    use crate::source;
    use crate::source::Manifests;

    fn cluster(endpoints: &str) -> Cluster {
        let text = format!(
            "apiVersion: v1\nkind: Service\nmetadata: {{namespace: demo, name: api}}\n\
                spec: {{type: LoadBalancer, clusterIP: 10.0.0.1, \
             externalTrafficPolicy: Local, healthCheckNodePort: 30999, ports: [{{name: a, port: 80}}, \
             {{name: b, port: 81}}]}}\n---\n\
             apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\n\
             metadata: {{namespace: demo, name: api-1, labels: \
             {{kubernetes.io/service-name: api}}}}\naddressType: IPv4\n\
             ports: [{{name: a, port: 8080}}, {{name: b, port: 8081}}]\n\
             endpoints: [{endpoints}]\n"
        );
        let mut found = Manifests::default();
        source::read_str("f.yaml", &text, |manifest| found.add(manifest)).unwrap();
        found.into_cluster(Node { name: "here".to_owned(), ..Node::default() }).0
    }

    fn name() -> ServiceName {
        ServiceName::new("demo", "api").unwrap()
    }

    #[test]
    fn endpoints_count_once_however_many_ports_they_have_when_they_are_here_and_ready() {
        let here = |ip: &str, rest: &str| format!("{{addresses: [{ip}], nodeName: here{rest}}}");
        let terminating = ", conditions: {ready: false, serving: true, terminating: true}";
        let cases = [
            (String::new(), 0),
            (here("10.1.0.1", ""), 1),
            (here("10.1.0.1", "") + ", " + &here("10.1.0.2", ""), 2),
            ("{addresses: [10.1.0.1], nodeName: there}".to_owned(), 0),
            ("{addresses: [10.1.0.1]}".to_owned(), 0),
            (here("10.1.0.1", terminating), 0),
        ];
        for (endpoints, expected) in cases {
            let health = ServiceHealth::of(&cluster(&endpoints), &Family::BOTH);
            let checks: Vec<_> = health.iter().collect();
            let check = Check { port: NonZeroU16::new(30999).unwrap(), local_endpoints: expected };
            assert_eq!(
                checks,
                [(Family::Ipv4, &name(), &check)],
                "{endpoints}: no cluster IP, no check for IPv6"
            );
        }
    }

    #[test]
    fn the_answer_is_that_of_kube_proxy_byte_for_byte() {
        let one = ServiceHealth::of(&cluster("{addresses: [10.1.0.1], nodeName: here}"), &Family::BOTH);
        let none = ServiceHealth::of(&cluster(""), &Family::BOTH);
        for (health, proxy, status, count) in
            [(&one, true, 200, 1), (&one, false, 503, 1), (&none, true, 503, 0), (&none, false, 503, 0)]
        {
            let answer = health.answer(Family::Ipv4, &name(), proxy).unwrap();
            assert_eq!(answer.status(), status);
            assert_eq!(answer.headers()["content-type"], "application/json");
            assert_eq!(answer.headers()["x-content-type-options"], "nosniff");
            assert_eq!(answer.headers()["x-load-balancing-endpoint-weight"], count.to_string());
            let expected = format!(
                "{{\n\t\"service\": {{\n\t\t\"namespace\": \"demo\",\n\t\t\"name\": \"api\"\n\t}},\n\
                    \t\"localEndpoints\": {count},\n\t\"serviceProxyHealthy\": {proxy}\n}}"
            );
            assert_eq!(answer.body(), &expected);
        }
        assert!(one.answer(Family::Ipv6, &name(), true).is_none());
    }
}
