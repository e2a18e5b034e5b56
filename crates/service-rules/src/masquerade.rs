//! The bit of the packet mark that requests masquerading.

use std::fmt;

use crate::Error;

/// A bit of the packet mark, 0 to 31: packets that have it set are masqueraded on output. The default, 14, is
/// kube-proxy's.
///
/// ```
/// use sluicegate_service_rules::MasqueradeBit;
///
/// let bit = MasqueradeBit::new(14)?; // kube-proxy's default
/// assert_eq!(bit, MasqueradeBit::default());
/// # Ok::<(), sluicegate_service_rules::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MasqueradeBit(u8);

impl MasqueradeBit {
    /// Checks the number of a bit.
    ///
    /// ```
    /// use sluicegate_service_rules::MasqueradeBit;
    ///
    /// assert_eq!(MasqueradeBit::new(14)?.mark(), 0x4000);
    /// let error = MasqueradeBit::new(32).unwrap_err();
    /// assert_eq!(error.to_string(), "expected a masquerade bit from 0 to 31, found 32");
    /// # Ok::<(), sluicegate_service_rules::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::MasqueradeBit`] when it is above 31.
    pub const fn new(bit: u8) -> Result<Self, Error> {
        if bit < 32 { Ok(Self(bit)) } else { Err(Error::MasqueradeBit { bit }) }
    }

    /// Returns the number of the bit.
    #[must_use]
    pub const fn number(self) -> u8 {
        self.0
    }

    /// Returns the mark with this bit alone.
    #[must_use]
    pub const fn mark(self) -> u32 {
        1 << self.0
    }
}

impl Default for MasqueradeBit {
    fn default() -> Self {
        Self(14)
    }
}

impl fmt::Display for MasqueradeBit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
