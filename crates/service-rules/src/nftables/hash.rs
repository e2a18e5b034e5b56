//! Hash tables of services and frontends, whose keys are hashed in a few instructions.
//!
//! The names and addresses in keys come from others, so the hash starts from a random seed, as that of the
//! standard library does. `SipHash` takes a hundred instructions for each part of a key, which was a quarter of
//! the time of a plan.

use std::hash::{BuildHasher, Hasher, RandomState};

/// A hash table with the hash of this module.
pub(super) type HashMap<K, V> = std::collections::HashMap<K, V, Seeded>;

/// Makes hashers that start from one random seed.
#[derive(Clone, Debug)]
pub(super) struct Seeded(u64);

impl Default for Seeded {
    fn default() -> Self {
        Self(RandomState::new().build_hasher().finish() & !1)
    }
}

impl BuildHasher for Seeded {
    type Hasher = Folding;

    fn build_hasher(&self) -> Folding {
        Folding { hash: self.0, seed: self.0 }
    }
}

/// Hashes by multiplication to 128 bits, whose halves are folded.
#[derive(Debug)]
pub(super) struct Folding {
    hash: u64,
    seed: u64,
}

impl Folding {
    #[inline]
    fn folded(&self, word: u64) -> u64 {
        let product = u128::from(self.hash ^ word) * u128::from(FACTOR ^ self.seed);
        let [low, high] = [product, product >> 64].map(|half| u64::try_from(half & MASK).unwrap_or_default());
        (low ^ high).wrapping_add(SUMMAND)
    }

    #[inline]
    fn fold(&mut self, word: u64) {
        self.hash = self.folded(word);
    }
}

impl Hasher for Folding {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let mut chunks = bytes.chunks_exact(8);
        for chunk in &mut chunks {
            self.fold(chunk.try_into().map_or(0, u64::from_le_bytes));
        }
        let rest = chunks.remainder();
        if !rest.is_empty() {
            let byte = |word: u64, byte: &u8| word << 8 | u64::from(*byte);
            self.fold(rest.iter().fold(1, byte));
        }
    }

    #[inline]
    fn write_u8(&mut self, number: u8) {
        self.fold(number.into());
    }

    #[inline]
    fn write_u16(&mut self, number: u16) {
        self.fold(number.into());
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        self.fold(number.into());
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        self.fold(number);
    }

    #[inline]
    fn write_usize(&mut self, number: usize) {
        self.fold(u64::try_from(number).unwrap_or_default());
    }

    #[inline]
    fn write_isize(&mut self, number: isize) {
        self.fold(u64::from_ne_bytes(i64::try_from(number).unwrap_or_default().to_ne_bytes()));
    }

    #[inline]
    fn finish(&self) -> u64 {
        // The last word reaches the highest bits, which tell the keys of one slot apart, with another fold.
        self.folded(0)
    }
}

/// Odd, so that no two words have the same product. The seed keeps that, as its lowest bit is cleared.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
const SUMMAND: u64 = 0xd1b5_4a32_d192_ed03;
const MASK: u128 = 0xffff_ffff_ffff_ffff;

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    #[test]
    fn addresses_of_a_range_spread_over_a_table() {
        let hashes = Seeded::default();
        let slot = |n: u32| hashes.hash_one(IpAddr::from(Ipv4Addr::from_bits(0x0a60_0000 + n))) >> 48;
        // As many slots as addresses: 63 % of them are expected to be taken, and 57 % if two in ten were alike.
        let taken: HashSet<u64> = (0..0x1_0000).map(slot).collect();
        assert!(taken.len() > 0x1_0000 * 57 / 100, "{}", taken.len());
    }

    #[test]
    fn each_table_has_a_seed_of_its_own() {
        assert_ne!(Seeded::default().hash_one("default/web"), Seeded::default().hash_one("default/web"));
    }

    #[test]
    fn texts_that_differ_in_length_alone_differ() {
        let hashes = Seeded::default();
        let all: HashSet<u64> = (0..40).map(|length| hashes.hash_one(vec![0_u8; length])).collect();
        assert_eq!(all.len(), 40);
    }
}
