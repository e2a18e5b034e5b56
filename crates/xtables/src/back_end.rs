//! The two kernel interfaces of iptables by name.

use std::fmt;
use std::str::FromStr;

/// A kernel interface of iptables.
///
/// ```
/// use sluicegate_xtables::BackEnd;
///
/// assert_eq!("legacy".parse::<BackEnd>()?, BackEnd::Legacy);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BackEnd {
    /// `ip_tables` and `ip6_tables`: tables that are replaced as a whole, through socket options.
    Legacy,
    /// `nf_tables`: rules as expressions, by netlink.
    Nft,
}

impl BackEnd {
    /// Both back ends.
    pub const BOTH: [Self; 2] = [Self::Legacy, Self::Nft];

    /// Returns the name as in `iptables-legacy` and `iptables-nft`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Nft => "nft",
        }
    }
}

impl fmt::Display for BackEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for BackEnd {
    type Err = UnknownBackEnd;

    fn from_str(text: &str) -> Result<Self, UnknownBackEnd> {
        let found = Self::BOTH.into_iter().find(|back_end| back_end.as_str() == text);
        found.ok_or_else(|| UnknownBackEnd(text.to_owned()))
    }
}

/// The error for a name that is of neither back end; carries the name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected legacy or nft, found {0:?}")]
pub struct UnknownBackEnd(pub String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_found_by_its_name() {
        for back_end in BackEnd::BOTH {
            assert_eq!(back_end.to_string().parse(), Ok(back_end));
        }
        assert!("nftables".parse::<BackEnd>().unwrap_err().to_string().contains("legacy or nft"));
    }
}
