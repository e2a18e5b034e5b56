//! The features of tool and kernel: the plan omits, or expresses differently, what they lack.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use crate::UnknownName;

/// A match, target or option that some kernels or tools lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Feature {
    /// `-m comment`: without it, rules have no comments.
    Comment,
    /// `-m conntrack`: without it, filter rules see every packet and invalid ones are not dropped.
    Conntrack,
    /// `-m addrtype`: without it, node ports are answered on named addresses only, and the short cut of the
    /// node itself past `externalTrafficPolicy: Local` is missing.
    Addrtype,
    /// `-m statistic`: without it, all traffic of a service port goes to its first endpoint.
    Statistic,
    /// `-m recent`: without it, there is no session affinity.
    Recent,
    /// `-m nfacct` and its counters: without it, the two counters of kube-proxy are missing.
    Nfacct,
    /// `-m sctp`: without it, SCTP ports are left out.
    Sctp,
    /// `-m mark`, `-j MARK` and `-j MASQUERADE`: without them, nothing is masqueraded.
    Masquerade,
    /// `-j MASQUERADE --random-fully`, from iptables 1.6.2 on.
    RandomFully,
    /// `-j REJECT`: without it, packets are dropped instead of rejected.
    Reject,
}

impl Feature {
    /// All features.
    pub const ALL: [Self; 10] = [
        Self::Comment,
        Self::Conntrack,
        Self::Addrtype,
        Self::Statistic,
        Self::Recent,
        Self::Nfacct,
        Self::Sctp,
        Self::Masquerade,
        Self::RandomFully,
        Self::Reject,
    ];

    /// Returns the name in rules: `nfacct`, `MASQUERADE`, `random-fully`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Comment => "comment",
            Self::Conntrack => "conntrack",
            Self::Addrtype => "addrtype",
            Self::Statistic => "statistic",
            Self::Recent => "recent",
            Self::Nfacct => "nfacct",
            Self::Sctp => "sctp",
            Self::Masquerade => "MASQUERADE",
            Self::RandomFully => "random-fully",
            Self::Reject => "REJECT",
        }
    }

    /// Returns the consequence of the feature's absence.
    #[must_use]
    pub const fn without(self) -> &'static str {
        match self {
            Self::Comment => "rules have no comments",
            Self::Conntrack => "filter rules see every packet, and invalid ones are not dropped",
            Self::Addrtype => {
                "node ports are answered on named addresses only, and local traffic has no short cut"
            }
            Self::Statistic => "all traffic of a service port goes to its first endpoint",
            Self::Recent => "there is no session affinity",
            Self::Nfacct => "dropped invalid packets and localhost node ports are not counted",
            Self::Sctp => "SCTP ports are left out",
            Self::Masquerade => "nothing is masqueraded",
            Self::RandomFully => "source ports of masqueraded traffic are chosen less randomly",
            Self::Reject => "what would be refused is dropped",
        }
    }

    /// Returns what is unguarded without the feature, where that is more than a convenience: a run loop
    /// reports its absence as an error.
    #[must_use]
    pub const fn unguarded(self) -> Option<&'static str> {
        match self {
            Self::Conntrack => Some("invalid packets are not dropped, and node ports on 127.0.0.1 are off"),
            Self::Masquerade => Some("nothing is masqueraded, so that answers take another way back"),
            _ => None,
        }
    }

    /// Returns the table and the rules that test for the feature.
    #[must_use]
    pub const fn probe(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Self::Comment => ("filter", &["-m comment --comment probe"]),
            Self::Conntrack => ("filter", &["-m conntrack --ctstate NEW"]),
            Self::Addrtype => ("nat", &["-m addrtype --dst-type LOCAL"]),
            Self::Statistic => ("nat", &["-m statistic --mode random --probability 0.5"]),
            Self::Recent => ("nat", &["-m recent --name KUBE-PROBE --rcheck --seconds 1 --reap"]),
            Self::Nfacct => ("filter", &["-m nfacct --nfacct-name ct_state_invalid_dropped_pkts"]),
            Self::Sctp => ("nat", &["-m sctp -p sctp --dport 1"]),
            Self::Masquerade => {
                ("nat", &["-m mark ! --mark 0x1/0x1 -j RETURN", "-j MARK --xor-mark 0x1", "-j MASQUERADE"])
            }
            Self::RandomFully => ("nat", &["-j MASQUERADE --random-fully"]),
            Self::Reject => ("filter", &["-j REJECT"]),
        }
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Feature {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        let feature = Self::ALL.into_iter().find(|feature| feature.as_str().eq_ignore_ascii_case(text));
        feature.ok_or_else(|| UnknownName::new(Self::ALL.into_iter().map(Self::as_str), text))
    }
}

/// The features of [`Feature::ALL`] that are missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Support {
    missing: BTreeSet<Feature>,
}

impl Support {
    /// Returns the support of a tool and kernel that lack only these features.
    #[must_use]
    pub fn without(missing: impl IntoIterator<Item = Feature>) -> Self {
        Self { missing: missing.into_iter().collect() }
    }

    /// Returns `true` if the feature is supported.
    #[must_use]
    pub fn has(&self, feature: Feature) -> bool {
        !self.missing.contains(&feature)
    }

    /// Returns the features that are missing.
    pub fn missing(&self) -> impl ExactSizeIterator<Item = Feature> + '_ {
        self.missing.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_feature_is_found_by_its_name() {
        for feature in Feature::ALL {
            assert_eq!(feature.to_string().parse(), Ok(feature));
        }
        assert!("nonsense".parse::<Feature>().unwrap_err().to_string().contains("nfacct, sctp"));
    }
}
