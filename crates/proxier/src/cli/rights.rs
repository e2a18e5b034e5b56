//! The capabilities of this process.

use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

/// Makes `CAP_NET_ADMIN` effective where it is permitted. Threads that start later inherit it.
///
/// The program in the container image has it as a file capability, so that a user who is not root gets it,
/// as Kubernetes gives such a user no capabilities otherwise. The file's effective bit is not set: with it,
/// the kernel refuses to execute the program at all in a container without `CAP_NET_ADMIN` (capabilities(7),
/// "Safety checking for capability-dumb binaries"), and the `EPERM` of a container runtime gives no reason.
pub(super) fn raise() {
    let Ok(mut sets) = capabilities(None) else { return };
    let wanted = CapabilitySet::NET_ADMIN & sets.permitted;
    if sets.effective.contains(wanted) {
        return;
    }
    sets.effective |= wanted;
    // What is permitted may be made effective. If not, what needs it says so.
    let _ = set_capabilities(None, sets);
}
