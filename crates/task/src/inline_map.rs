//! A map for what is mostly nothing or one: that costs no allocation.

use std::collections::BTreeMap;

/// Values by number, in the order of the numbers.
pub(crate) struct InlineMap<T> {
    /// The only one, if there are not many.
    one: Option<T>,
    /// Its number.
    number: u64,
    #[allow(clippy::box_collection, reason = "a word where there are none")]
    many: Option<Box<BTreeMap<u64, kept::Kept<T>>>>,
}

/// How one of many values is kept.
#[cfg(not(target_family = "wasm"))]
mod kept {
    pub(super) type Kept<T> = T;

    #[inline(always)]
    pub(super) fn keep<T>(value: T) -> Kept<T> {
        value
    }

    #[inline(always)]
    pub(super) fn unkeep<T>(value: Kept<T>) -> T {
        value
    }

    #[inline(always)]
    pub(super) fn of<T>(value: &Kept<T>) -> &T {
        value
    }
}

/// How one of many values is kept. On a page it is a pointer whatever it is, so that the code of
/// the map is the same for all types, and is there once.
#[cfg(target_family = "wasm")]
mod kept {
    pub(super) type Kept<T> = Box<T>;

    pub(super) fn keep<T>(value: T) -> Kept<T> {
        Box::new(value)
    }

    #[allow(clippy::boxed_local, reason = "elsewhere it is no box")]
    pub(super) fn unkeep<T>(value: Kept<T>) -> T {
        *value
    }

    #[allow(clippy::borrowed_box, reason = "elsewhere it is no box")]
    pub(super) fn of<T>(value: &Kept<T>) -> &T {
        value
    }
}

impl<T> Default for InlineMap<T> {
    fn default() -> Self {
        InlineMap { one: None, number: 0, many: None }
    }
}

impl<T> InlineMap<T> {
    /// Adds a value: the one that had the number before.
    #[inline]
    pub(crate) fn insert(&mut self, number: u64, value: T) -> Option<T> {
        if self.many.is_some() || (self.one.is_some() && self.number != number) {
            return self.insert_more(number, value);
        }
        self.number = number;
        self.one.replace(value)
    }

    #[cold]
    fn insert_more(&mut self, number: u64, value: T) -> Option<T> {
        let many = self.many.get_or_insert_default();
        if let Some(one) = self.one.take() {
            many.insert(self.number, kept::keep(one));
        }
        many.insert(number, kept::keep(value)).map(kept::unkeep)
    }

    /// Whether there is none.
    #[cfg(not(any(loom, target_family = "wasm")))]
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.one.is_none() && self.many.is_none()
    }

    /// Takes a value out.
    #[inline]
    pub(crate) fn remove(&mut self, number: u64) -> Option<T> {
        match &mut self.many {
            Some(many) => many.remove(&number).map(kept::unkeep),
            None => self.one.take_if(|_| self.number == number),
        }
    }

    /// Numbers and values, in order.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (u64, &T)> {
        let one = self.one.iter().map(|one| (self.number, one));
        let many = self.many.iter().flat_map(|many| many.iter());
        one.chain(many.map(|(number, value)| (*number, kept::of(value))))
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.one.iter().chain(self.many.iter().flat_map(|many| many.values()).map(kept::of))
    }

    /// Hands out all of them, in order.
    #[inline]
    pub(crate) fn take_each(self, mut f: impl FnMut(T)) {
        if let Some(one) = self.one {
            return f(one);
        }
        self.many.into_iter().flat_map(|many| many.into_values()).map(kept::unkeep).for_each(f);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Every sequence of five operations on three numbers, against a map of the standard library.
    #[test]
    fn it_is_a_map_in_the_order_of_the_numbers() {
        for mut script in 0..6_u32.pow(5) {
            let mut few = InlineMap::default();
            let mut map = BTreeMap::new();
            for time in 0..5 {
                let number = u64::from(script % 3);
                let inserts = script / 3 % 2 == 0;
                script /= 6;
                match inserts {
                    true => assert_eq!(few.insert(number, time), map.insert(number, time)),
                    false => assert_eq!(few.remove(number), map.remove(&number)),
                }
                assert!(few.values().eq(map.values()));
            }
            let mut taken = Vec::new();
            few.take_each(|value| taken.push(value));
            assert!(taken.into_iter().eq(map.into_values()));
        }
    }
}
