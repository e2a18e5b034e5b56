//! What the kernel serves before a sync, and whether that would lose most of it.

use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;

use sluicegate_services::Cluster;

/// The cluster IPs that the rules in the kernel serve, as the last program that wrote them left them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Present {
    /// All of them.
    pub cluster_ips: BTreeSet<IpAddr>,
    /// Those that lead to endpoints.
    pub with_endpoints: BTreeSet<IpAddr>,
}

/// Most of what the kernel serves is missing in a cluster: more often a wrong path, a volume that is not
/// mounted, or a file that lost its content than a wish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Loss {
    /// Services are missing.
    Services {
        /// The number of cluster IPs that are no service's.
        gone: usize,
        /// The number of cluster IPs that the kernel serves.
        all: usize,
    },
    /// Services are there, and none of their EndpointSlices. One that has no endpoint any more has a slice
    /// nevertheless.
    Slices {
        /// The number of cluster IPs whose services have lost them.
        gone: usize,
        /// The number of cluster IPs that lead to endpoints in the kernel and still have a Service.
        all: usize,
    },
}

impl Present {
    /// Adds what other rules serve.
    pub fn add(&mut self, other: Self) {
        self.cluster_ips.extend(other.cluster_ips);
        self.with_endpoints.extend(other.with_endpoints);
    }

    /// Returns what of this is missing in the cluster, if that is most of it: more than half, unless there are
    /// few and others come in their place.
    ///
    /// ```
    /// use sluicegate_service_rules::{Loss, Present};
    /// use sluicegate_services::Cluster;
    ///
    /// let mut present = Present::default();
    /// present.cluster_ips.insert([172, 30, 0, 10].into());
    /// let loss = present.lost_in(&Cluster::default()).unwrap();
    /// assert_eq!(loss, Loss::Services { gone: 1, all: 1 });
    /// ```
    #[must_use]
    pub fn lost_in(&self, cluster: &Cluster) -> Option<Loss> {
        let (mut wanted, mut with_slices) = (BTreeSet::new(), BTreeSet::new());
        for name in cluster.service_names() {
            let ips = cluster.service(name).into_iter().flat_map(|service| service.cluster_ips).flatten();
            if cluster.slices(name).next().is_some() {
                with_slices.extend(ips.clone());
            }
            wanted.extend(ips);
        }
        self.lost(&wanted, &with_slices)
    }

    fn lost(&self, wanted: &BTreeSet<IpAddr>, with_slices: &BTreeSet<IpAddr>) -> Option<Loss> {
        let (gone, all) = (self.cluster_ips.difference(wanted).count(), self.cluster_ips.len());
        if is_most(gone, all, wanted.len()) {
            return Some(Loss::Services { gone, all });
        }
        // Of those that stay: a loss of both kinds is one of everything.
        let stay: Vec<_> = self.with_endpoints.intersection(wanted).collect();
        let (gone, all) = (stay.iter().filter(|ip| !with_slices.contains(ip)).count(), stay.len());
        is_most(gone, all, with_slices.len()).then_some(Loss::Slices { gone, all })
    }
}

const fn is_most(gone: usize, all: usize, wanted: usize) -> bool {
    2 * gone > all && (gone >= MANY || 2 * wanted < all)
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Services { gone, all } => {
                write!(f, "{gone} of the {all} cluster IPs that the kernel serves have no Service any more")
            }
            Self::Slices { gone, all } => write!(
                f,
                "of the {all} cluster IPs that lead to endpoints in the kernel and have a Service, {gone} have no \
                 EndpointSlice any more"
            ),
        }
    }
}

/// The number of cluster IPs from which on others in their place are no reason to remove them.
const MANY: usize = 10;

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;

    fn ips(of: Range<u8>) -> BTreeSet<IpAddr> {
        of.map(|last| IpAddr::from([172, 30, 0, last])).collect()
    }

    #[test]
    fn most_services_are_lost_unless_few_are_replaced() {
        let cases = [
            (0..0, 0..0, false),
            (0..0, 0..50, false),
            (0..1, 0..0, true),
            (0..2, 0..1, false),
            (0..3, 0..1, true),
            // One in place of another.
            (0..1, 9..10, false),
            (0..3, 20..23, false),
            (0..30, 0..15, false),
            (0..30, 0..14, true),
            (0..30, 30..90, true),
        ];
        for (present, wanted, is_lost) in cases {
            let (present, wanted) =
                (Present { cluster_ips: ips(present), ..Present::default() }, ips(wanted));
            assert_eq!(present.lost(&wanted, &wanted).is_some(), is_lost, "{present:?} {wanted:?}");
        }
    }

    #[test]
    fn most_slices_are_lost_where_their_services_stay() {
        let cases = [
            (0..0, 0..0, None),
            (0..1, 0..0, Some((1, 1))),
            (0..1, 0..1, None),
            (0..4, 0..2, None),
            (0..4, 0..1, Some((3, 4))),
            (0..40, 0..19, Some((21, 40))),
            // The other twenty have no endpoint in the kernel.
            (0..20, 20..40, Some((20, 20))),
        ];
        for (with_endpoints, with_slices, expected) in cases {
            let present = Present { cluster_ips: ips(0..40), with_endpoints: ips(with_endpoints) };
            let expected = expected.map(|(gone, all)| Loss::Slices { gone, all });
            assert_eq!(present.lost(&ips(0..40), &ips(with_slices)), expected);
        }
        // Services that go take their slices with them.
        let present = Present { cluster_ips: ips(0..40), with_endpoints: ips(0..9) };
        assert_eq!(present.lost(&ips(9..40), &ips(0..0)), None);
        // Half of them lose their Service, and the other half their slices: that is everything.
        let present = Present { cluster_ips: ips(0..40), with_endpoints: ips(0..40) };
        assert_eq!(present.lost(&ips(0..20), &ips(0..0)), Some(Loss::Slices { gone: 20, all: 20 }));
    }
}
