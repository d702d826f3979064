//! Shared code of the fuzz targets: [`Ops`], which decodes operations from raw bytes.
//!
//! Every byte string is a valid sequence of operations, so no input is wasted. Small values take
//! few bytes, so operations often refer to the same objects. A target loops until
//! [`is_done`](Ops::is_done):
//!
//! ```
//! # use asx_fuzz::Ops;
//! let mut ops = Ops::new(&[0, 7, 1]);
//! let mut sum = 0;
//! while !ops.is_done() {
//!     match ops.below(2) {
//!         0 => sum += u64::from(ops.byte()),
//!         _ => sum *= 2,
//!     }
//! }
//! assert_eq!(sum, 14);
//! ```

/// A decoder of operations. After the end it returns zeros.
#[derive(Clone, Debug)]
pub struct Ops<'a> {
    rest: &'a [u8],
}

impl<'a> Ops<'a> {
    /// Creates a decoder at the start of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Ops<'a> {
        Ops { rest: bytes }
    }

    /// Whether every byte was read.
    pub fn is_done(&self) -> bool {
        self.rest.is_empty()
    }

    /// Returns the next byte.
    pub fn byte(&mut self) -> u8 {
        match self.rest {
            [] => 0,
            [first, rest @ ..] => {
                self.rest = rest;
                *first
            }
        }
    }

    /// Returns a bit.
    pub fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// Returns a number less than `count`, or 0 if `count` is 0.
    pub fn below(&mut self, count: usize) -> usize {
        let raw = if count <= 256 { u64::from(self.byte()) } else { self.word(8) };
        if count == 0 { 0 } else { (raw % count as u64) as usize }
    }

    /// Returns one of the elements, or `None` if there are none.
    pub fn pick<'t, T>(&mut self, from: &'t [T]) -> Option<&'t T> {
        from.get(self.below(from.len()))
    }

    /// Returns 32 bits, little-endian.
    pub fn u32(&mut self) -> u32 {
        self.word(4) as u32
    }

    /// Returns 64 bits, little-endian.
    pub fn u64(&mut self) -> u64 {
        self.word(8)
    }

    /// Returns a number of a chosen size: mostly small, sometimes near the limits.
    pub fn number(&mut self) -> u64 {
        match self.byte() % 8 {
            0..=3 => self.word(1),
            4 => self.word(2),
            5 => self.word(5),
            6 => self.word(8),
            _ => u64::MAX - self.word(1),
        }
    }

    fn word(&mut self, bytes: u32) -> u64 {
        (0..bytes).fold(0, |word, at| word | (u64::from(self.byte()) << (8 * at)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_the_end_all_bytes_are_zero() {
        let mut ops = Ops::new(&[3, 1]);
        assert_eq!((ops.byte(), ops.flag(), ops.is_done()), (3, true, true));
        assert_eq!((ops.byte(), ops.flag(), ops.u64(), ops.below(9)), (0, false, 0, 0));
    }

    #[test]
    fn words_are_little_endian_and_choices_in_range() {
        let mut ops = Ops::new(&[1, 2, 0, 0, 255, 7, 1]);
        assert_eq!((ops.u32(), ops.below(10), ops.below(0)), (0x201, 5, 0));
        assert_eq!((ops.pick(&['a', 'b']), ops.pick::<char>(&[])), (Some(&'b'), None));
        assert_eq!(Ops::new(&[7, 2]).number(), u64::MAX - 2);
        assert_eq!(Ops::new(&[4, 2, 1]).number(), 0x102);
        assert_eq!(Ops::new(&[1, 4]).below(1000), 25);
    }
}
