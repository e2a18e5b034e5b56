//! What is to be changed about a flow that is there.

use crate::{Flow, ProtocolInfo, Status};

/// What is to be changed about a flow, as by `conntrack -U`: what is `None` stays as it is.
///
/// ```no_run
/// use sluicegate_conntrack::{Client, Filter, FlowChange};
///
/// let mut client = Client::open()?;
/// let change = FlowChange { timeout: Some(600), ..FlowChange::default() };
/// let flows = client.list(&Filter { id: Some(7), ..Filter::default() })?;
/// let changes: Vec<_> = flows.iter().map(|flow| (flow.key(), change)).collect();
/// client.update(&changes)?;
/// # Ok::<(), sluicegate_conntrack::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FlowChange {
    /// Seconds from now until it goes. A flow of [`Status::FIXED_TIMEOUT`] is the one that packets do not prolong.
    pub timeout: Option<u32>,
    /// The mark.
    pub mark: Option<u32>,
    /// All bits that it is to have. The kernel takes none of [`Status::SEEN_REPLY`], [`Status::ASSURED`] and a few others away
    /// (`EBUSY`), and heeds no bit of translations: add to those that the flow has.
    pub status: Option<Status>,
    /// The state of its protocol.
    pub protocol_info: Option<ProtocolInfo>,
}

impl FlowChange {
    /// It says nothing, or what the flow is already.
    #[must_use]
    pub fn is_done(&self, flow: &Flow) -> bool {
        fn same<T: PartialEq + Copy>(wanted: Option<T>, is: Option<T>) -> bool {
            wanted.is_none() || wanted == is
        }
        same(self.timeout, flow.timeout)
            && same(self.mark, flow.mark)
            && same(self.status, flow.status)
            && same(self.protocol_info, flow.protocol_info)
    }
}
