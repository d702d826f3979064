//! What the fuzz targets share: [`Ops`], which reads a stream of operations out of raw bytes.
//!
//! Every byte string is a valid stream, so the fuzzer never wastes an input; small values are cheap
//! to write, so operations collide on the same few objects. A target loops until
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

/// A reader of operations; past the end it reads zeros.
#[derive(Clone, Debug)]
pub struct Ops<'a> {
    rest: &'a [u8],
}

impl<'a> Ops<'a> {
    /// Reads from the start of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Ops<'a> {
        Ops { rest: bytes }
    }

    /// Whether every byte was read.
    pub fn is_done(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        match self.rest {
            [] => 0,
            [first, rest @ ..] => {
                self.rest = rest;
                *first
            }
        }
    }

    /// The next bit of choice.
    pub fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// A number less than `count`, or 0 when there is none.
    pub fn below(&mut self, count: usize) -> usize {
        let raw = if count <= 256 { u64::from(self.byte()) } else { self.word(8) };
        if count == 0 { 0 } else { (raw % count as u64) as usize }
    }

    /// One of the elements, or nothing when there are none.
    pub fn pick<'t, T>(&mut self, from: &'t [T]) -> Option<&'t T> {
        from.get(self.below(from.len()))
    }

    /// 32 bits, little-endian.
    pub fn u32(&mut self) -> u32 {
        self.word(4) as u32
    }

    /// 64 bits, little-endian.
    pub fn u64(&mut self) -> u64 {
        self.word(8)
    }

    /// A number of any size whose size is itself chosen: mostly small, sometimes near the limits.
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
    fn bytes_run_out_into_zeros() {
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
