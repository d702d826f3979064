//! The digest: a 64-bit incremental hash. Its outputs are part of the trace format: they never
//! change.
//!
//! One absorbed word `w` turns the state `s` into `mix64(rotl(s, 23) ^ w) + GOLDEN`. For a fixed
//! word this is a bijection of the state, and for a fixed state a bijection of the word, so a
//! single changed word always changes the digest. Byte strings are absorbed as their length
//! followed by little-endian words, the last one padded with zeros. The digest does not resist
//! deliberate collisions.

use crate::rng::{GOLDEN, mix64};

/// An incremental 64-bit digest.
///
/// ```
/// use asx_kernel::digest::Digest;
/// let mut d = Digest::new();
/// d.word(1).bytes(b"abc");
/// assert_ne!(d.value(), Digest::new().value());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digest {
    state: u64,
}

impl Default for Digest {
    fn default() -> Self {
        Digest::new()
    }
}

impl Digest {
    /// Creates an empty digest.
    pub const fn new() -> Digest {
        Digest { state: GOLDEN }
    }

    /// Absorbs one word.
    pub fn word(&mut self, word: u64) -> &mut Self {
        self.state = mix64(self.state.rotate_left(23) ^ word).wrapping_add(GOLDEN);
        self
    }

    /// Absorbs a byte string with its length.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.word(bytes.len() as u64);
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.word(u64::from_le_bytes(word));
        }
        self
    }

    /// Returns the digest of the absorbed data.
    pub const fn value(&self) -> u64 {
        mix64(self.state)
    }
}

/// Returns the digest of a few words.
pub fn digest_words(words: &[u64]) -> u64 {
    let mut digest = Digest::new();
    for word in words {
        digest.word(*word);
    }
    digest.value()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_frozen() {
        assert_eq!((digest_words(&[]), digest_words(&[1, 2])), FROZEN);
        assert_eq!(Digest::default().bytes(b"asx kernel").value(), FROZEN_BYTES);
    }

    const FROZEN: (u64, u64) = (16294208416658607535, 11208976228420843929);
    const FROZEN_BYTES: u64 = 16658922138005243078;

    #[test]
    fn length_and_padding_are_distinguished() {
        let of = |b: &[u8]| Digest::new().bytes(b).value();
        assert_ne!(of(b"a"), of(b"a\0"));
        assert_ne!(of(b""), Digest::new().value());
        assert_ne!(digest_words(&[1, 2]), digest_words(&[2, 1]));
    }
}
