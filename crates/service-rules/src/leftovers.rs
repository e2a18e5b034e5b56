//! What the other modes left, to be removed when one of them is in use.

use crate::{Cleaned, Mode, iptables, ipvs, nftables};

/// Removes what the other modes than `running` left in the current network namespace, be they this proxier's
/// or kube-proxy's: rules of before would go on sending connections to endpoints that are gone. Chains that
/// two modes have under one name are left to the one that runs.
///
/// A failure that only says that the kernel has no such mode ([`Error::is_absent`](crate::Error::is_absent))
/// is not among those of the result.
pub fn remove_other_modes(running: Mode) -> Cleaned {
    let parts = match running {
        Mode::Nftables => [ipvs::cleanup(), iptables::cleanup()],
        Mode::Iptables => [ipvs::cleanup_beside_iptables(), of_nftables()],
        Mode::Ipvs => [iptables::cleanup_except(ipvs::is_ours), of_nftables()],
    };
    let mut cleaned = Cleaned::default();
    for Cleaned { removed, failed } in parts {
        cleaned.removed.extend(removed);
        cleaned.failed.extend(failed.into_iter().filter(|error| !error.is_absent()));
    }
    cleaned
}

fn of_nftables() -> Cleaned {
    let opened = nftables::Applier::open(nftables::Settings::default());
    opened.and_then(|mut applier| applier.cleanup()).into()
}
