//! The deterministic random generator. Its outputs are part of the trace format: they never
//! change.
//!
//! `DetRng` is SplitMix64 [Steele, Lea and Flood 2014]: the state advances by a fixed odd constant
//! and is finalised by [`mix64`]. A worker's stream starts from
//! `mix64(seed) ^ mix64(worker + GOLDEN)`, so that streams of one seed are unrelated and worker 0
//! of seed 0 is not the all-zero stream.
//!
//! [Steele, Lea and Flood 2014]: https://doi.org/10.1145/2660193.2660195

/// 2^64 / phi, odd: the SplitMix64 increment.
pub const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// The SplitMix64 finaliser: a bijection on `u64` with good avalanche.
pub const fn mix64(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A deterministic stream of `u64`s.
///
/// ```
/// use asx_kernel::rng::DetRng;
/// let (mut a, mut b) = (DetRng::new(7, 0), DetRng::new(7, 0));
/// assert_eq!(a.next_u64(), b.next_u64());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DetRng {
    state: u64,
}

impl DetRng {
    /// Creates the stream of one worker for a seed.
    pub const fn new(seed: u64, worker: u64) -> DetRng {
        DetRng { state: mix64(seed) ^ mix64(worker.wrapping_add(GOLDEN)) }
    }

    /// Returns the next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mix64(self.state)
    }

    /// Returns `next_u64() % count`, or 0 without drawing if there are fewer than two choices.
    pub fn below(&mut self, count: usize) -> usize {
        if count < 2 { 0 } else { (self.next_u64() % count as u64) as usize }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_frozen() {
        let mut rng = DetRng::new(0, 0);
        let first = [rng.next_u64(), rng.next_u64(), rng.next_u64()];
        assert_eq!(first, FROZEN);
        assert_eq!(mix64(1), 0x5692_161D_100B_05E5);
    }

    const FROZEN: [u64; 3] = [12035550249420947055, 12935080325729570654, 7141179953334974231];

    #[test]
    fn below_draws_only_when_there_is_a_choice() {
        let mut rng = DetRng::new(3, 1);
        let before = rng.clone();
        assert_eq!((rng.below(0), rng.below(1)), (0, 0));
        assert_eq!(rng, before);
        assert!((0..100).all(|_| rng.below(3) < 3));
        assert!((0..100).any(|_| rng.below(2) == 1));
        assert_ne!(rng, before);
    }

    #[test]
    fn streams_differ_by_seed_and_worker() {
        assert_ne!(DetRng::new(1, 0).next_u64(), DetRng::new(0, 0).next_u64());
        assert_ne!(DetRng::new(1, 0).next_u64(), DetRng::new(1, 1).next_u64());
    }
}
