//! Counts service ports that have endpoints, but none that local-only traffic may use.

use sluicegate_services::{Cluster, Family, categorize};

/// Returns the numbers of service ports whose internal and whose external traffic is dropped on this node,
/// because the traffic policy is `Local` and all endpoints are on other nodes.
pub(super) fn without_local_endpoints(cluster: &Cluster, family: Family) -> (i64, i64) {
    let topology = cluster.topology();
    let (mut internal, mut external) = (0, 0);
    for (name, service) in cluster.local_services() {
        for port in cluster.ports(name, family) {
            let found = categorize(&port, &topology);
            let dropped = found.has_any && found.local.is_empty();
            internal += i64::from(dropped && service.internal_local);
            external += i64::from(dropped && service.external_local);
        }
    }
    (internal, external)
}
