//! What the other modes left, to be removed when one of them is in use.

use crate::{Cleaned, Error, Mode, Present, iptables, ipvs, nftables};

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

/// Returns the cluster IPs that rules of the other modes than `running` serve in the current network namespace:
/// what [`remove_other_modes`] would take away. A mode that the kernel does not have serves none.
///
/// # Errors
/// When the rules of one of them cannot be listed.
pub fn present_in_other_modes(running: Mode) -> Result<Present, Error> {
    let lists: [fn() -> Result<Present, Error>; 2] = match running {
        Mode::Nftables => [ipvs::present, iptables::present],
        Mode::Iptables => [ipvs::present, present_in_nftables],
        Mode::Ipvs => [iptables::present, present_in_nftables],
    };
    let mut present = Present::default();
    for list in lists {
        match list() {
            Ok(more) => present.add(more),
            Err(error) if error.is_absent() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(present)
}

fn present_in_nftables() -> Result<Present, Error> {
    nftables::Applier::open(nftables::Settings::default())?.present()
}

fn of_nftables() -> Cleaned {
    let opened = nftables::Applier::open(nftables::Settings::default());
    opened.and_then(|mut applier| applier.cleanup()).into()
}
