//! Services and their endpoints as manifests, worded as `kubectl get -o yaml` prints them.

use std::fmt::Write as _;

/// The number of endpoints of each service.
pub const ENDPOINTS: u32 = 5;

/// Returns a ClusterIP service of one port.
#[must_use]
pub fn service(index: u32) -> String {
    let [_, a, b, c] = index.to_be_bytes();
    let ip = format!("172.{}.{b}.{c}", 16 + a);
    format!(
        "apiVersion: v1\n\
         kind: Service\n\
         metadata:\n\
         \x20 annotations:\n\
         \x20   meta.helm.sh/release-name: release-{index}\n\
         \x20   meta.helm.sh/release-namespace: scale\n\
         \x20 creationTimestamp: \"2026-05-04T10:11:12Z\"\n\
         {LABELS}\
         \x20 name: service-{index}\n\
         \x20 namespace: scale\n\
         \x20 resourceVersion: \"{version}\"\n\
         \x20 uid: 8a6c1f2e-1111-4222-8333-{index:012x}\n\
         spec:\n\
         \x20 clusterIP: {ip}\n\
         \x20 clusterIPs:\n\
         \x20 - {ip}\n\
         \x20 internalTrafficPolicy: Cluster\n\
         \x20 ipFamilies:\n\
         \x20 - IPv4\n\
         \x20 ipFamilyPolicy: SingleStack\n\
         \x20 ports:\n\
         \x20 - name: http\n\
         \x20   port: 80\n\
         \x20   protocol: TCP\n\
         \x20   targetPort: 8080\n\
         \x20 selector:\n\
         \x20   app.kubernetes.io/instance: release-{index}\n\
         \x20   app.kubernetes.io/name: app-{index}\n\
         \x20 sessionAffinity: None\n\
         \x20 type: ClusterIP\n\
         status:\n\
         \x20 loadBalancer: {{}}\n",
        version = 1_000_000 + index,
    )
}

/// Returns the endpoints of a service. Each `round` gives the first one another address.
#[must_use]
pub fn slice(index: u32, round: u32) -> String {
    let mut text = "addressType: IPv4\napiVersion: discovery.k8s.io/v1\nendpoints:\n".to_owned();
    for place in 0..ENDPOINTS {
        let round = if place == 0 { round % 200 } else { 0 };
        let [_, a, b, c] = (index * 16 + place + 1).to_be_bytes();
        // 10.0.0.0/8 has 2^24 addresses: a round moves the second byte to where no other service is.
        let a = u32::from(a) + round;
        let node = (index + place) % 100;
        write!(
            text,
            "- addresses:\n\
             \x20 - 10.{a}.{b}.{c}\n\
             \x20 conditions:\n\
             \x20   ready: true\n\
             \x20   serving: true\n\
             \x20   terminating: false\n\
             \x20 nodeName: node-{node}\n\
             \x20 targetRef:\n\
             \x20   kind: Pod\n\
             \x20   name: app-{index}-{place}\n\
             \x20   namespace: scale\n\
             \x20   uid: 9b6c1f2e-1111-4222-8333-{index:08x}{place:04x}\n\
             \x20 zone: zone-{}\n",
            place % 3,
        )
        .expect("a string takes all");
    }
    write!(
        text,
        "kind: EndpointSlice\n\
         metadata:\n\
         \x20 annotations:\n\
         \x20   endpoints.kubernetes.io/last-change-trigger-time: \"2026-05-04T10:11:13Z\"\n\
         \x20 creationTimestamp: \"2026-05-04T10:11:12Z\"\n\
         \x20 generateName: service-{index}-\n\
         \x20 generation: {generation}\n\
         {LABELS}\
         \x20   endpointslice.kubernetes.io/managed-by: endpointslice-controller.k8s.io\n\
         \x20   kubernetes.io/service-name: service-{index}\n\
         \x20 name: service-{index}-abcde\n\
         \x20 namespace: scale\n\
         \x20 ownerReferences:\n\
         \x20 - apiVersion: v1\n\
         \x20   blockOwnerDeletion: true\n\
         \x20   controller: true\n\
         \x20   kind: Service\n\
         \x20   name: service-{index}\n\
         \x20   uid: 8a6c1f2e-1111-4222-8333-{index:012x}\n\
         \x20 resourceVersion: \"{version}\"\n\
         \x20 uid: 7c6c1f2e-1111-4222-8333-{index:012x}\n\
         ports:\n\
         - name: http\n\
         \x20 port: 8080\n\
         \x20 protocol: TCP\n",
        generation = 1 + round,
        version = 2_000_000 + index + round,
    )
    .expect("a string takes all");
    text
}

const LABELS: &str = "  labels:\n    app.kubernetes.io/managed-by: Helm\n    app.kubernetes.io/part-of: shop\n    \
                      app.kubernetes.io/version: 1.27.0\n    helm.sh/chart: chart-1.2.3\n";
