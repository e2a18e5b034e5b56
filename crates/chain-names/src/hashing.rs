//! Computes the characters of a hash that are part of a name.

use data_encoding::{BASE32_NOPAD, BASE64URL_NOPAD, HEXLOWER};
use sha2::{Sha224, Sha256, Sha512};

use crate::error::Error;
use crate::name::Text;

/// The computation of the hash in a name: the function, the encoding, and the number of characters.
///
/// ```
/// use sluicegate_chain_names::{Encoding, HashFunction, Hashing};
///
/// let kube = Hashing { function: HashFunction::Sha256, encoding: Encoding::Base32, length: 16 };
/// assert_eq!(kube.of(&["default/kubernetes:https", "tcp"])?.as_str(), "NPX46M4PTMTKRN6Y");
/// # Ok::<(), sluicegate_chain_names::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hashing {
    /// The hash function.
    pub function: HashFunction,
    /// The encoding of its bytes.
    pub encoding: Encoding,
    /// The number of leading characters that are kept: 1 to [`available`](Self::available).
    pub length: usize,
}

/// A hash function of the SHA-2 family (FIPS 180-4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HashFunction {
    /// 28 bytes; Calico's IDs of ipsets.
    Sha224,
    /// 32 bytes; kube-proxy, kube-router, Calico's chains.
    Sha256,
    /// 64 bytes; the CNI plugins.
    Sha512,
}

/// The encodings of the bytes of a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Encoding {
    /// `A` to `Z` and `2` to `7`, 5 bits a character (RFC 4648, section 6), unpadded.
    Base32,
    /// Letters, digits, `-` and `_`, 6 bits a character (RFC 4648, section 5), unpadded.
    Base64Url,
    /// `0` to `9` and `a` to `f`, 4 bits a character.
    Hex,
}

/// The characters of a hash, stored inline.
#[derive(Clone, Copy)]
pub struct HashText(Text<MOST_CHARACTERS>);

impl Hashing {
    /// Returns the number of characters of the hash in this encoding, which is the most that
    /// [`length`](Self::length) can be.
    #[must_use]
    pub const fn available(&self) -> usize {
        (self.function.size() * 8).div_ceil(self.encoding.bits())
    }

    /// Returns the characters for `pieces`, hashed one after the other with nothing between them.
    ///
    /// # Errors
    /// When [`length`](Self::length) is 0 or more than [`available`](Self::available).
    pub fn of(&self, pieces: &[&str]) -> Result<HashText, Error> {
        let available = self.available();
        if self.length == 0 || self.length > available {
            return Err(Error::HashLength { asked: self.length, available });
        }
        let mut digest = [0; MOST_BYTES];
        self.function.digest(pieces, &mut digest);
        Ok(self.encode(&digest))
    }

    /// Encodes only the bytes of the digest that the wanted characters depend on.
    fn encode(&self, digest: &[u8; MOST_BYTES]) -> HashText {
        let encoding = self.encoding.table();
        let bytes = (self.length * self.encoding.bits()).div_ceil(8).min(self.function.size());
        let bytes = &digest[..bytes];
        let mut characters = [0; MOST_CHARACTERS];
        let characters = &mut characters[..encoding.encode_len(bytes.len())];
        encoding.encode_mut(bytes, characters);
        let mut text = Text::new();
        let fits =
            text.push(std::str::from_utf8(&characters[..self.length]).expect("the encodings are ASCII"));
        debug_assert!(fits, "no hash has more than {MOST_CHARACTERS} characters");
        HashText(text)
    }
}

impl HashFunction {
    /// Returns the size of the hash in bytes.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Self::Sha224 => 28,
            Self::Sha256 => 32,
            Self::Sha512 => 64,
        }
    }

    fn digest(self, pieces: &[&str], out: &mut [u8; MOST_BYTES]) {
        match self {
            Self::Sha224 => digest::<Sha224>(pieces, out),
            Self::Sha256 => digest::<Sha256>(pieces, out),
            Self::Sha512 => digest::<Sha512>(pieces, out),
        }
    }
}

impl Encoding {
    const fn bits(self) -> usize {
        match self {
            Self::Base32 => 5,
            Self::Base64Url => 6,
            Self::Hex => 4,
        }
    }

    fn table(self) -> data_encoding::Encoding {
        match self {
            Self::Base32 => BASE32_NOPAD,
            Self::Base64Url => BASE64URL_NOPAD,
            Self::Hex => HEXLOWER,
        }
    }
}

impl HashText {
    /// Returns the characters.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl std::fmt::Debug for HashText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HashText({:?})", self.as_str())
    }
}

fn digest<D: sha2::Digest>(pieces: &[&str], out: &mut [u8; MOST_BYTES]) {
    let mut hash = D::new();
    for piece in pieces {
        hash.update(piece);
    }
    let hash = hash.finalize();
    out[..hash.len()].copy_from_slice(&hash);
}

/// SHA-512.
const MOST_BYTES: usize = 64;
/// SHA-512 in hexadecimal.
const MOST_CHARACTERS: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    fn characters(function: HashFunction, encoding: Encoding, length: usize) -> String {
        Hashing { function, encoding, length }.of(&["ab", "", "c"]).unwrap().as_str().to_owned()
    }

    // SHA-2 of "abc": FIPS 180-4 examples; base32 and base64 by coreutils 9.1 (`basenc`).
    #[test]
    fn the_whole_hash_is_the_published_one() {
        assert_eq!(
            characters(HashFunction::Sha256, Encoding::Hex, 64),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(
            characters(HashFunction::Sha224, Encoding::Hex, 56),
            "23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7"
        );
        assert!(
            characters(HashFunction::Sha512, Encoding::Hex, 128)
                .starts_with("ddaf35a193617abacc417349ae204131")
        );
        assert_eq!(
            characters(HashFunction::Sha256, Encoding::Base32, 52),
            "XJ4BNP4PAHH6UQKBIDPF3LRCEOYAGYNDSYLXVHFUCD7WD4QACWWQ"
        );
        assert_eq!(
            characters(HashFunction::Sha256, Encoding::Base64Url, 43),
            "ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0"
        );
    }

    #[test]
    fn a_shorter_hash_is_the_beginning_of_the_whole() {
        for encoding in [Encoding::Base32, Encoding::Base64Url, Encoding::Hex] {
            for function in [HashFunction::Sha224, HashFunction::Sha256, HashFunction::Sha512] {
                let available = Hashing { function, encoding, length: 1 }.available();
                let whole = characters(function, encoding, available);
                for length in 1..=available {
                    assert_eq!(characters(function, encoding, length), whole[..length]);
                }
            }
        }
    }

    #[test]
    fn a_length_that_the_hash_does_not_have_is_refused() {
        for length in [0, 53, usize::MAX] {
            let hashing = Hashing { function: HashFunction::Sha256, encoding: Encoding::Base32, length };
            assert_eq!(hashing.of(&["x"]).unwrap_err(), Error::HashLength { asked: length, available: 52 });
        }
    }
}
