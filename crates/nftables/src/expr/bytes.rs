//! A byte string that is stored inline when it is short: rules and elements consist of addresses, ports and
//! marks.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;

/// An immutable byte string. Up to 22 bytes need no allocation: an address of either family, the name of an
/// interface, or an address with protocol and port.
///
/// ```
/// use sluicegate_nftables::expr::Bytes;
///
/// let port = Bytes::from(80_u16.to_be_bytes());
/// assert_eq!(port, [0, 80]);
/// assert_eq!(port.len(), 2); // and whatever else a slice can do
/// ```
#[derive(Clone)]
pub struct Bytes(Storage);

#[derive(Clone)]
enum Storage {
    Inline { length: u8, bytes: [u8; INLINE] },
    Heap(Box<[u8]>),
}

impl Bytes {
    /// Creates an empty value.
    #[must_use]
    pub const fn new() -> Self {
        Self(Storage::Inline { length: 0, bytes: [0; INLINE] })
    }

    /// Returns the bytes.
    #[inline]
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        match &self.0 {
            Storage::Inline { length, bytes } => bytes.get(..usize::from(*length)).unwrap_or_default(),
            Storage::Heap(bytes) => bytes,
        }
    }

    #[inline]
    fn inline(slice: &[u8]) -> Option<Self> {
        let mut bytes = [0; INLINE];
        bytes.get_mut(..slice.len())?.copy_from_slice(slice);
        Some(Self(Storage::Inline { length: u8::try_from(slice.len()).ok()?, bytes }))
    }
}

impl Default for Bytes {
    fn default() -> Self {
        Self::new()
    }
}

impl From<&[u8]> for Bytes {
    #[inline]
    fn from(slice: &[u8]) -> Self {
        Self::inline(slice).unwrap_or_else(|| Self(Storage::Heap(slice.into())))
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self::inline(&bytes).unwrap_or_else(|| Self(Storage::Heap(bytes.into())))
    }
}

impl<const N: usize> From<[u8; N]> for Bytes {
    fn from(bytes: [u8; N]) -> Self {
        Self::from(&bytes[..])
    }
}

impl Deref for Bytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl PartialEq for Bytes {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Bytes {}

impl PartialEq<[u8]> for Bytes {
    fn eq(&self, other: &[u8]) -> bool {
        **self == *other
    }
}

impl PartialEq<&[u8]> for Bytes {
    fn eq(&self, other: &&[u8]) -> bool {
        **self == **other
    }
}

impl<const N: usize> PartialEq<[u8; N]> for Bytes {
    fn eq(&self, other: &[u8; N]) -> bool {
        **self == *other
    }
}

impl PartialOrd for Bytes {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Bytes {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (**self).cmp(&**other)
    }
}

impl Hash for Bytes {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

/// The number of bytes that fit into three words beside the length and the variant.
const INLINE: usize = 22;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bytes_are_kept_wherever_they_are(bytes in prop::collection::vec(any::<u8>(), 0..70)) {
            let (from_slice, from_vec) = (Bytes::from(&bytes[..]), Bytes::from(bytes.clone()));
            prop_assert_eq!(from_slice.as_slice(), &bytes[..]);
            prop_assert_eq!(&from_slice, &from_vec);
            prop_assert_eq!(matches!(from_vec.0, Storage::Inline { .. }), bytes.len() <= INLINE);
        }
    }

    #[test]
    fn they_are_three_words() {
        assert_eq!(size_of::<Bytes>(), 24);
    }
}
