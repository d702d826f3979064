//! Ordered sets and maps: B-trees, or sorted vectors where code size matters.
//!
//! A B-tree takes some kilobytes of code for each type of key. With few entries a sorted vector
//! does the same in a few hundred bytes: lookups use binary search, and insertions and removals
//! move the entries behind. Both have the same order and the same methods, so a world behaves the
//! same with either. A vector that becomes empty frees its memory, as a tree does.

use alloc::collections::VecDeque;
#[cfg(feature = "trees")]
pub use alloc::collections::{BTreeMap as Map, BTreeSet as Set};
#[cfg(not(feature = "trees"))]
pub use vectors::{Map, Set};

/// Removes the entry at index `at` of a queue and keeps the order.
pub fn take_at<T>(queue: &mut VecDeque<T>, at: usize) -> Option<T> {
    if cfg!(feature = "trees") { queue.remove(at) } else { take_turning(queue, at) }
}

/// The same in little code: rotates the whole queue once.
fn take_turning<T>(queue: &mut VecDeque<T>, at: usize) -> Option<T> {
    let mut taken = None;
    for position in 0..queue.len() {
        let entry = queue.pop_front()?;
        match position == at {
            true => taken = Some(entry),
            false => queue.push_back(entry),
        }
    }
    taken
}

/// Sorted vectors.
#[cfg(any(not(feature = "trees"), test))]
pub mod vectors {
    use alloc::vec::Vec;
    use core::ops::{Bound, RangeBounds};

    /// A map as a vector, sorted by key.
    #[derive(Clone, Debug)]
    pub struct Map<K, V>(Vec<(K, V)>);

    /// A set, implemented as a map without values.
    #[derive(Clone, Debug)]
    pub struct Set<T>(Map<T, ()>);

    /// An iterator over entries.
    pub type Entries<'a, K, V> =
        core::iter::Map<core::slice::Iter<'a, (K, V)>, fn(&(K, V)) -> (&K, &V)>;

    /// An iterator over a set.
    pub type Members<'a, T> = core::iter::Map<Entries<'a, T, ()>, fn((&'a T, &'a ())) -> &'a T>;

    impl<K, V> Map<K, V> {
        getters! {
            /// The number of entries.
            len(&self) -> usize = self.0.len();
            /// Whether there are no entries.
            is_empty(&self) -> bool = self.0.is_empty();
            /// The entries, in order.
            iter(&self) -> Entries<'_, K, V> = self.0.iter().map(parts);
            /// The keys, in order.
            keys(&self) -> impl DoubleEndedIterator<Item = &K> = self.iter().map(|(key, _)| key);
            /// The values, in the order of their keys.
            values(&self) -> impl Iterator<Item = &V> = self.0.iter().map(|entry| &entry.1);
            /// The first entry.
            first_key_value(&self) -> Option<(&K, &V)> = self.0.first().map(parts);
        }

        /// Returns the values.
        pub fn into_values(self) -> impl ExactSizeIterator<Item = V> {
            self.0.into_iter().map(|(_, value)| value)
        }

        /// Removes the first entry.
        pub fn pop_first(&mut self) -> Option<(K, V)> {
            if self.0.is_empty() { None } else { Some(self.take(0)) }
        }

        /// Keeps only the entries that satisfy `keep`.
        pub fn retain(&mut self, mut keep: impl FnMut(&K, &mut V) -> bool) {
            self.0.retain_mut(|(key, value)| keep(key, value));
            self.tidy();
        }

        fn take(&mut self, at: usize) -> (K, V) {
            let taken = self.0.remove(at);
            self.tidy();
            taken
        }

        /// Frees the memory if no entries are left. Shrinking earlier would need an allocation of
        /// the smaller size.
        fn tidy(&mut self) {
            if self.0.is_empty() {
                self.0 = Vec::new();
            }
        }
    }

    fn parts<K, V>((key, value): &(K, V)) -> (&K, &V) {
        (key, value)
    }

    impl<K: Ord, V> Map<K, V> {
        fn find(&self, key: &K) -> Result<usize, usize> {
            self.0.binary_search_by(|(own, _)| own.cmp(key))
        }

        /// Inserts an entry. Returns the value it replaces.
        pub fn insert(&mut self, key: K, value: V) -> Option<V> {
            match self.find(&key) {
                Ok(at) => return Some(core::mem::replace(&mut self.0[at].1, value)),
                Err(at) => self.0.insert(at, (key, value)),
            }
            None
        }

        /// Removes an entry.
        pub fn remove(&mut self, key: &K) -> Option<V> {
            self.find(key).ok().map(|at| self.take(at).1)
        }

        /// Returns the value of a key.
        pub fn get(&self, key: &K) -> Option<&V> {
            self.find(key).ok().map(|at| &self.0[at].1)
        }

        /// Iterates over the entries with keys in the range, in order.
        pub fn range(&self, keys: impl RangeBounds<K>) -> Entries<'_, K, V> {
            let start = match keys.start_bound() {
                Bound::Included(key) => self.place(key, false),
                Bound::Excluded(key) => self.place(key, true),
                Bound::Unbounded => 0,
            };
            let end = match keys.end_bound() {
                Bound::Included(key) => self.place(key, true),
                Bound::Excluded(key) => self.place(key, false),
                Bound::Unbounded => self.len(),
            };
            self.0.get(start..end).unwrap_or_default().iter().map(parts)
        }

        /// Returns the number of entries before a key, or up to and including it.
        fn place(&self, key: &K, with: bool) -> usize {
            self.find(key).map_or_else(|at| at, |at| at + usize::from(with))
        }
    }

    impl<T> Set<T> {
        /// Creates an empty set.
        pub const fn new() -> Self {
            Set(Map(Vec::new()))
        }

        getters! {
            /// The number of members.
            len(&self) -> usize = self.0.len();
            /// Whether there are no members.
            is_empty(&self) -> bool = self.0.is_empty();
            /// The members, in order.
            iter(&self) -> impl DoubleEndedIterator<Item = &T> = self.0.keys();
            /// The first member.
            first(&self) -> Option<&T> = self.0.0.first().map(|entry| &entry.0);
        }

        /// Removes the first member.
        pub fn pop_first(&mut self) -> Option<T> {
            self.0.pop_first().map(|(value, ())| value)
        }
    }

    impl<T: Ord> Set<T> {
        /// Inserts a member. Returns false if it was present.
        pub fn insert(&mut self, value: T) -> bool {
            self.0.insert(value, ()).is_none()
        }

        /// Removes a member. Returns false if it was absent.
        pub fn remove(&mut self, value: &T) -> bool {
            self.0.remove(value).is_some()
        }

        /// Iterates over the members in the range, in order.
        pub fn range(&self, values: impl RangeBounds<T>) -> Members<'_, T> {
            self.0.range(values).map(|(value, ())| value)
        }

        /// Whether the value is a member.
        pub fn contains(&self, value: &T) -> bool {
            self.0.find(value).is_ok()
        }
    }

    impl<K, V> Default for Map<K, V> {
        fn default() -> Self {
            Map(Vec::new())
        }
    }

    impl<T> Default for Set<T> {
        fn default() -> Self {
            Set::new()
        }
    }

    impl<T: Ord> Extend<T> for Set<T> {
        fn extend<I: IntoIterator<Item = T>>(&mut self, values: I) {
            values.into_iter().for_each(|value| _ = self.insert(value));
        }
    }

    impl<T> IntoIterator for Set<T> {
        type Item = T;
        type IntoIter = core::iter::Map<alloc::vec::IntoIter<(T, ())>, fn((T, ())) -> T>;

        fn into_iter(self) -> Self::IntoIter {
            self.0.0.into_iter().map(|(value, ())| value)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::take_turning;
    use super::vectors::{Map, Set};
    use crate::rng::DetRng;
    use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
    use core::ops::Bound::{Excluded, Included, Unbounded};
    use std::vec::Vec;

    /// Few keys, so that the same keys recur.
    const KEYS: u64 = 24;

    #[test]
    fn a_vector_behaves_as_a_tree_set() {
        let mut random = DetRng::new(1, 1);
        let mut ours = Set::new();
        let mut tree = BTreeSet::new();
        for _ in 0..20_000 {
            let key = random.next_u64() % KEYS;
            match random.next_u64() % 5 {
                0 | 1 => assert_eq!(ours.insert(key), tree.insert(key)),
                2 | 3 => assert_eq!(ours.remove(&key), tree.remove(&key)),
                _ => assert_eq!(ours.pop_first(), tree.pop_first()),
            }
            assert_eq!(ours.contains(&key), tree.contains(&key));
            assert_eq!((ours.len(), ours.is_empty()), (tree.len(), tree.is_empty()));
            assert_eq!(ours.first(), tree.first());
            assert!(ours.iter().eq(&tree));
            for from in [Unbounded, Included(key), Excluded(key)] {
                assert!(ours.range((from, Unbounded)).eq(tree.range((from, Unbounded))));
                assert!(ours.range((Unbounded, from)).eq(tree.range((Unbounded, from))));
            }
        }
        let more = [KEYS + 1, 0, KEYS + 1];
        ours.extend(more);
        tree.extend(more);
        assert!(ours.clone().into_iter().eq(tree));
        assert!(Set::<u8>::default().is_empty());
    }

    #[test]
    fn both_ways_to_take_from_a_queue_leave_the_same() {
        for begin in 0..4 {
            // For every position of the queue's start in its memory.
            let filled = || {
                let mut queue: VecDeque<usize> = (0..begin).collect();
                queue.extend(0..5);
                queue.drain(..begin);
                queue
            };
            for at in 0..7 {
                let mut one = filled();
                let mut other = filled();
                assert_eq!(take_turning(&mut one, at), other.remove(at));
                assert_eq!(one, other);
            }
        }
    }

    #[test]
    fn a_vector_behaves_as_a_tree_map() {
        let mut random = DetRng::new(2, 1);
        let mut ours = Map::default();
        let mut tree = BTreeMap::new();
        for step in 0..20_000 {
            let key = random.next_u64() % KEYS;
            match random.next_u64() % 6 {
                0..=2 => assert_eq!(ours.insert(key, step), tree.insert(key, step)),
                3 => assert_eq!(ours.remove(&key), tree.remove(&key)),
                4 => assert_eq!(ours.pop_first(), tree.pop_first()),
                _ => {
                    ours.retain(|own, _| own % 7 != key % 7);
                    tree.retain(|own, _| own % 7 != key % 7);
                }
            }
            assert_eq!(ours.get(&key), tree.get(&key));
            assert_eq!((ours.len(), ours.is_empty()), (tree.len(), tree.is_empty()));
            assert_eq!(ours.first_key_value(), tree.first_key_value());
            assert!(ours.iter().eq(&tree));
            assert!(ours.keys().eq(tree.keys()) && ours.values().eq(tree.values()));
            let low = key / 2;
            let high = key;
            assert!(ours.range(low..=high).eq(tree.range(low..=high)));
        }
        let values: Vec<_> = ours.clone().into_values().collect();
        assert!(values.into_iter().eq(tree.into_values()));
        assert!(Map::<u8, u8>::default().is_empty());
    }
}
