//! Changes to an existing flow.

use crate::{Flow, ProtocolInfo, Status};

/// The changes to a flow, as of `conntrack -U`: fields that are `None` stay as they are.
///
/// ```no_run
/// use sluicegate_conntrack::{Client, Filter, FlowChange};
///
/// let mut client = Client::open()?;
/// let mut change = FlowChange::default();
/// change.timeout = Some(600);
/// let mut seventh = Filter::default();
/// seventh.id = Some(7);
/// let flows = client.list(&seventh)?;
/// let changes: Vec<_> = flows.iter().map(|flow| (flow.key(), change)).collect();
/// client.update(&changes)?;
/// # Ok::<(), sluicegate_conntrack::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct FlowChange {
    /// The number of seconds until the flow expires. Packets do not prolong the timeout of a flow with
    /// [`Status::FIXED_TIMEOUT`].
    pub timeout: Option<u32>,
    /// The mark.
    pub mark: Option<u32>,
    /// All status bits of the flow. The kernel refuses to clear [`Status::SEEN_REPLY`], [`Status::ASSURED`]
    /// and a few others (`EBUSY`), and ignores the bits of translations: add bits to those that the flow has.
    pub status: Option<Status>,
    /// The state of its protocol.
    pub protocol_info: Option<ProtocolInfo>,
}

impl FlowChange {
    /// Returns true when the change is empty, or the flow has these values already.
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
