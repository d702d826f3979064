//! A priority queue of timed entries by (deadline, insertion sequence): an indexed 4-ary heap.
//!
//! Keys are stored in the heap itself, so comparisons follow no pointers. The owner of the entries
//! is notified of each move (entry, position) and stores the position, so that any entry can be
//! removed in O(log n).

use crate::named::ensure;
use alloc::vec::Vec;

const ARITY: usize = 4;

/// An entry and its sort key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    pub(crate) deadline: u64,
    pub(crate) seq: u64,
    pub(crate) at: u32,
}

impl Node {
    /// Returns the key as one number, which compares without branches.
    pub(crate) fn key(&self) -> u128 {
        (self.deadline as u128) << 64 | self.seq as u128
    }
}

/// Sorts nodes. Where code size matters (in a web page, or without the feature `trees`) it uses a
/// compact algorithm.
pub(crate) fn sort(nodes: &mut [Node]) {
    if cfg!(target_family = "wasm") || cfg!(not(feature = "trees")) {
        sort_small(nodes);
    } else {
        nodes.sort_unstable_by_key(Node::key);
    }
}

/// Shellsort.
fn sort_small(nodes: &mut [Node]) {
    let mut gap = nodes.len();
    while gap > 1 {
        gap = (gap * 5 / 11).max(1);
        for at in gap..nodes.len() {
            let node = nodes[at];
            let mut hole = at;
            while hole >= gap && node.key() < nodes[hole - gap].key() {
                nodes[hole] = nodes[hole - gap];
                hole -= gap;
            }
            nodes[hole] = node;
        }
    }
}

/// The heap.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    pub(crate) nodes: Vec<Node>,
}

impl Queue {
    /// Returns the earliest node.
    pub(crate) fn first(&self) -> Option<Node> {
        self.nodes.first().copied()
    }

    pub(crate) fn push(&mut self, node: Node, moved: impl FnMut(u32, u32)) {
        self.nodes.push(node);
        self.rise(self.nodes.len() - 1, node, moved);
    }

    /// Removes the node at a position.
    pub(crate) fn remove(&mut self, position: u32, mut moved: impl FnMut(u32, u32)) {
        let Some(last) = self.nodes.pop() else { return };
        let mut hole = position as usize;
        if hole >= self.nodes.len() {
            return;
        }
        // The last node fills the hole. It usually belongs near the leaves, so the hole sinks to
        // the bottom first and the node rises from there, above the old hole if necessary.
        let least = |nodes: &[Node], start: usize| {
            (start..nodes.len().min(start + ARITY)).min_by_key(|child| nodes[*child].key())
        };
        while let Some(child) = least(&self.nodes, hole * ARITY + 1) {
            self.put(hole, self.nodes[child], &mut moved);
            hole = child;
        }
        self.rise(hole, last, moved);
    }

    /// Checks the order, and with `stands` that each (entry, position) agrees with its owner.
    pub(crate) fn check(&self, stands: impl Fn(u32, u32) -> bool) -> Result<(), &'static str> {
        for (position, node) in self.nodes.iter().enumerate() {
            let above = position.checked_sub(1).map(|below| self.nodes[below / ARITY].key());
            ensure(above < Some(node.key()), "a heap is out of order")?;
            ensure(stands(node.at, position as u32), "a heap position is wrong")?;
        }
        Ok(())
    }

    fn rise(&mut self, mut hole: usize, node: Node, mut moved: impl FnMut(u32, u32)) {
        while hole > 0 {
            let parent = (hole - 1) / ARITY;
            if self.nodes[parent].key() < node.key() {
                break;
            }
            self.put(hole, self.nodes[parent], &mut moved);
            hole = parent;
        }
        self.put(hole, node, &mut moved);
    }

    fn put(&mut self, position: usize, node: Node, moved: &mut impl FnMut(u32, u32)) {
        self.nodes[position] = node;
        moved(node.at, position as u32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::DetRng;
    use std::vec;

    #[test]
    fn both_sort_algorithms_give_the_same_order() {
        let mut rng = DetRng::new(5, 0);
        for len in (0..60).chain([111, 1000, 4097]) {
            let node = |at| Node { deadline: rng.next_u64() % 50, seq: rng.next_u64(), at };
            let mut small: Vec<Node> = (0..len).map(node).collect();
            let mut large = small.clone();
            sort_small(&mut small);
            sort(&mut large);
            assert!(small.is_sorted_by_key(Node::key));
            let seqs = |nodes: Vec<Node>| nodes.iter().map(|n| (n.seq, n.at)).collect::<Vec<_>>();
            assert_eq!(seqs(small), seqs(large));
        }
    }

    /// Returns a queue and the position of each of its entries.
    fn filled(deadlines: &[u64]) -> (Queue, Vec<u32>) {
        let mut places = vec![77; deadlines.len()];
        let mut queue = Queue::default();
        for (at, deadline) in deadlines.iter().enumerate() {
            let node = Node { deadline: *deadline, seq: at as u64, at: at as u32 };
            queue.push(node, |at, position| places[at as usize] = position);
            assert_eq!(check(&queue, &places), Ok(()));
        }
        (queue, places)
    }

    fn check(queue: &Queue, places: &[u32]) -> Result<(), &'static str> {
        queue.check(|at, position| places[at as usize] == position)
    }

    fn remove(queue: &mut Queue, places: &mut [u32], at: u32) {
        queue.remove(places[at as usize], |at, position| places[at as usize] = position);
        assert_eq!(check(queue, places), Ok(()));
    }

    fn sorted(queue: &Queue) -> Vec<u32> {
        let mut nodes = queue.nodes.clone();
        nodes.sort_by_key(|node| (node.deadline, node.seq));
        nodes.iter().map(|node| node.at).collect()
    }

    #[test]
    fn earliest_deadline_first_then_insertion() {
        let (mut queue, mut places) = filled(&[5, 3, 5, 1, u64::MAX, 3, 0, 1]);
        for at in [6, 3, 7, 1, 5, 0, 2, 4] {
            assert_eq!(queue.first().map(|node| node.at), Some(at));
            remove(&mut queue, &mut places, at);
        }
        assert!(queue.first().is_none());
        queue.remove(0, |_, _| unreachable!());
    }

    #[test]
    fn any_entry_can_be_removed_from_a_heap_of_any_shape() {
        let mut rng = DetRng::new(1, 0);
        for len in 1..40 {
            let deadlines: Vec<u64> = (0..len).map(|_| rng.next_u64() % 12).collect();
            for gone in 0..len as u32 {
                let (mut queue, mut places) = filled(&deadlines);
                let mut left = sorted(&queue);
                left.retain(|at| *at != gone);
                remove(&mut queue, &mut places, gone);
                assert_eq!(sorted(&queue), left);
            }
        }
    }

    #[test]
    fn check_reports_the_broken_rule() {
        let (mut queue, mut places) = filled(&[1, 2, 3]);
        places[2] = 1;
        assert_eq!(check(&queue, &places), Err("a heap position is wrong"));
        queue.nodes[2].deadline = 0;
        assert_eq!(check(&queue, &places), Err("a heap is out of order"));
    }
}
