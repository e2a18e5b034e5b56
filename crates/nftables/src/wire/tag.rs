//! The tags that map an error of the kernel to what was sent.

/// Returns the tag that maps an error of the kernel to an operation, and to one of its elements.
pub(crate) fn tag(operation: usize, element: usize) -> u64 {
    (operation as u64) << 32 | (element as u64 & 0xffff_ffff)
}

/// Returns the operation and the element of a tag; `None` for the messages that begin and end the batch.
pub(crate) fn untag(tag: u64) -> Option<(usize, usize)> {
    if tag == NO_OPERATION {
        return None;
    }
    Some((usize::try_from(tag >> 32).ok()?, usize::try_from(tag & 0xffff_ffff).ok()?))
}

/// The tag of the messages that begin and end the batch.
pub(crate) const NO_OPERATION: u64 = u64::MAX;
