//! A map for what is mostly nothing or one: that costs no allocation.

use std::collections::BTreeMap;
use std::mem;

/// Values by number, in the order of the numbers.
#[derive(Default)]
pub(crate) enum Few<T> {
    #[default]
    None,
    One(u64, T),
    Many(BTreeMap<u64, T>),
}

impl<T> Few<T> {
    /// Adds a value: the one that had the number before.
    pub(crate) fn insert(&mut self, number: u64, value: T) -> Option<T> {
        match self {
            Few::Many(many) => many.insert(number, value),
            Few::One(known, one) if *known == number => Some(mem::replace(one, value)),
            Few::None => {
                *self = Few::One(number, value);
                None
            }
            Few::One(..) => {
                let mut many = BTreeMap::from([(number, value)]);
                if let Few::One(known, one) = mem::replace(self, Few::None) {
                    many.insert(known, one);
                }
                *self = Few::Many(many);
                None
            }
        }
    }

    /// Takes a value out.
    pub(crate) fn remove(&mut self, number: u64) -> Option<T> {
        match self {
            Few::Many(many) => many.remove(&number),
            Few::One(known, _) if *known == number => match mem::replace(self, Few::None) {
                Few::One(_, one) => Some(one),
                Few::None | Few::Many(_) => None,
            },
            Few::None | Few::One(..) => None,
        }
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        let (one, many) = match self {
            Few::None => (None, None),
            Few::One(_, one) => (Some(one), None),
            Few::Many(many) => (None, Some(many.values())),
        };
        one.into_iter().chain(many.into_iter().flatten())
    }

    /// Hands out all of them, in order.
    pub(crate) fn take_each(self, mut f: impl FnMut(T)) {
        match self {
            Few::None => {}
            Few::One(_, one) => f(one),
            Few::Many(many) => many.into_values().for_each(f),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Every sequence of five operations on three numbers, against a map of the standard library.
    #[test]
    fn it_is_a_map_in_the_order_of_the_numbers() {
        for mut script in 0..6_u32.pow(5) {
            let (mut few, mut map) = (Few::default(), BTreeMap::new());
            for time in 0..5 {
                let (number, inserts) = (u64::from(script % 3), script / 3 % 2 == 0);
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
