//! SHA-256, for one file per build.

/// The words that a hash begins with: the fractions of the square roots of the first primes.
const FIRST: [u32; 8] = [
    0x6a09_e667,
    0xbb67_ae85,
    0x3c6e_f372,
    0xa54f_f53a,
    0x510e_527f,
    0x9b05_688c,
    0x1f83_d9ab,
    0x5be0_cd19,
];

/// The hash of some bytes, in hexadecimal.
///
/// ```
/// let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
/// assert_eq!(asx_origin::sha256(b""), empty);
/// ```
pub fn sha256(bytes: &[u8]) -> String {
    // Filled up with a one, zeros, and the length in bits, to whole blocks.
    let mut padded = bytes.to_vec();
    padded.push(0x80);
    padded.resize((bytes.len() + 9).next_multiple_of(64) - 8, 0);
    padded.extend((bytes.len() as u64 * 8).to_be_bytes());
    let rounds = rounds();
    let words = padded.chunks_exact(64).fold(FIRST, |state, block| mix(state, block, &rounds));
    words.iter().map(|word| format!("{word:08x}")).collect()
}

/// One block into the state.
fn mix(state: [u32; 8], block: &[u8], rounds: &[u32; 64]) -> [u32; 8] {
    let mut words = [0_u32; 64];
    for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
        *word = bytes.iter().fold(0, |word, byte| word << 8 | u32::from(*byte));
    }
    for at in 16..64 {
        let two = words[at - 2];
        let fifteen = words[at - 15];
        let low = fifteen.rotate_right(7) ^ fifteen.rotate_right(18) ^ fifteen >> 3;
        let high = two.rotate_right(17) ^ two.rotate_right(19) ^ two >> 10;
        words[at] = words[at - 16].wrapping_add(low).wrapping_add(words[at - 7]).wrapping_add(high);
    }
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = state;
    for (word, round) in words.iter().zip(rounds) {
        let high = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let chosen = e & f ^ !e & g;
        let one = [high, chosen, *round, *word].iter().fold(h, |sum, part| sum.wrapping_add(*part));
        let low = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let two = low.wrapping_add(a & b ^ a & c ^ b & c);
        (h, g, f, e, d, c, b, a) = (g, f, e, d.wrapping_add(one), c, b, a, one.wrapping_add(two));
    }
    let mixed = [a, b, c, d, e, f, g, h];
    std::array::from_fn(|at| state[at].wrapping_add(mixed[at]))
}

/// The constants of the rounds: the first 32 bits of the fractions of the cube roots of the first
/// 64 primes, found by whole numbers.
fn rounds() -> [u32; 64] {
    let is_prime = |n: &u128| (2..*n).take_while(|d| d * d <= *n).all(|d| !n.is_multiple_of(d));
    let mut primes = (2_u128..).filter(is_prime);
    std::array::from_fn(|_| cube_root(primes.next().unwrap_or(2) << 96) as u32)
}

/// The whole part of a cube root.
fn cube_root(of: u128) -> u128 {
    let mut low = 0_u128;
    let mut high = 1 << 40;
    while high - low > 1 {
        let middle = low.midpoint(high);
        if middle * middle * middle <= of { low = middle } else { high = middle }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::sha256;

    #[test]
    fn known_texts_have_their_known_hashes() {
        let million = vec![b'a'; 1_000_000];
        let two_blocks = b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
        for (bytes, hash) in [
            (&b"abc"[..], "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            (two_blocks, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"),
            (&million, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"),
        ] {
            assert_eq!(sha256(bytes), hash);
        }
    }
}
