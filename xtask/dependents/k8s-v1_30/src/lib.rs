//! Uses every conversion of `sluicegate-services` with the objects of Kubernetes 1.30.

use k8s_openapi::api::core::v1::{Node, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use sluicegate_services::{Cluster, Invalid};


/// Takes objects of the API as they are.
pub fn apply(
    cluster: &mut Cluster,
    node: &Node,
    service: &Service,
    slice: &EndpointSlice,
) -> Result<(), Invalid> {
    cluster.set_node(sluicegate_services::Node::from_api(node).0);
    let service = sluicegate_services::Service::from_api(service)?;
    cluster.set_service(&service.name, service.admission.accepted());
    let slice = sluicegate_services::Slice::from_api(slice)?;
    cluster.set_slice(&slice.name, slice.admission.accepted());
    Ok(())
}
