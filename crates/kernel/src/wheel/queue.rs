//! A binary min-heap of entries by (deadline, insertion sequence) that can remove from the middle.
//!
//! Each entry knows its position (`Link::next`), so a cancelled timer leaves at once.

use alloc::vec::Vec;

use super::slab::{KEEP, Link, Slab};

/// What the heap compares, beside the entry it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Node {
    pub(super) deadline: u64,
    pub(super) seq: u64,
    pub(super) at: u32,
}

/// The heap.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) nodes: Vec<Node>,
    place: u32,
}

impl Queue {
    pub(super) const fn new(place: u32) -> Self {
        Queue { nodes: Vec::new(), place }
    }

    /// The earliest.
    pub(super) fn first(&self) -> Option<Node> {
        self.nodes.first().copied()
    }

    pub(super) fn push<T>(&mut self, node: Node, slab: &mut Slab<T>) {
        self.nodes.push(node);
        self.sift_up(self.nodes.len() - 1, node, slab);
    }

    /// Takes out the node at a position.
    pub(super) fn remove<T>(&mut self, position: usize, slab: &mut Slab<T>) {
        let Some(last) = self.nodes.pop() else { return };
        if position < self.nodes.len() {
            // Down to a leaf's level first, then up: the last node may belong above or below.
            let hole = self.sift_down(position, last, slab);
            self.sift_up(hole, last, slab);
        }
    }

    pub(super) fn release(&mut self) {
        self.nodes.shrink_to(KEEP);
    }

    fn set<T>(&mut self, position: usize, node: Node, slab: &mut Slab<T>) {
        self.nodes[position] = node;
        *slab.link_mut(node.at) = Link::anchored(self.place, position as u32);
    }

    fn sift_up<T>(&mut self, mut hole: usize, node: Node, slab: &mut Slab<T>) {
        while hole > 0 {
            let parent = (hole - 1) / 2;
            if self.nodes[parent] < node {
                break;
            }
            self.set(hole, self.nodes[parent], slab);
            hole = parent;
        }
        self.set(hole, node, slab);
    }

    /// Moves smaller children up until `node` fits; the hole that is left is not filled.
    fn sift_down<T>(&mut self, mut hole: usize, node: Node, slab: &mut Slab<T>) -> usize {
        loop {
            let mut child = 2 * hole + 1;
            if child + 1 < self.nodes.len() && self.nodes[child + 1] < self.nodes[child] {
                child += 1;
            }
            if child >= self.nodes.len() || node < self.nodes[child] {
                return hole;
            }
            self.set(hole, self.nodes[child], slab);
            hole = child;
        }
    }
}
