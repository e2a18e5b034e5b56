//! The proxy modes.

use std::fmt;
use std::str::FromStr;

use crate::UnknownName;

/// The part of the kernel that the proxier programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// nftables.
    #[default]
    Nftables,
    /// iptables, with kube-proxy's chains and rules.
    Iptables,
    /// IPVS, with kube-proxy's sets, addresses and rules around it.
    Ipvs,
}

impl Mode {
    /// Every mode.
    pub const ALL: [Self; 3] = [Self::Nftables, Self::Iptables, Self::Ipvs];

    /// Returns the name, as kube-proxy's `--proxy-mode` takes it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Nftables => "nftables",
            Self::Iptables => "iptables",
            Self::Ipvs => "ipvs",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Mode {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        let mode = Self::ALL.into_iter().find(|mode| mode.as_str() == name);
        mode.ok_or_else(|| UnknownName::new(Self::ALL.into_iter().map(Self::as_str), name))
    }
}
