//! What is due, or will be within the tick: by (deadline, insertion sequence).

use alloc::vec::Vec;

use super::slab::KEEP;
use crate::queue::{Node, Queue};

/// Two sources: what time has swept together, sorted once, and what was registered late.
#[derive(Debug, Default)]
pub(super) struct Near {
    /// Sorted from `head` on; what is before is gone.
    pub(super) swept: Vec<Node>,
    pub(super) head: usize,
    pub(super) late: Queue,
}

impl Near {
    /// The earliest.
    #[inline]
    pub(super) fn first(&self) -> Option<Node> {
        match (self.swept.get(self.head), self.late.first()) {
            (Some(swept), Some(late)) if late.key() < swept.key() => Some(late),
            (Some(swept), _) => Some(*swept),
            (None, late) => late,
        }
    }

    /// Takes the earliest out.
    #[inline]
    pub(super) fn pop(&mut self) {
        match (self.swept.get(self.head), self.late.first()) {
            (Some(swept), late) if late.is_none_or(|late| swept.key() < late.key()) => {
                self.head += 1;
                if self.head == self.swept.len() {
                    self.swept.clear();
                    self.head = 0;
                }
            }
            _ => self.late.remove(0, |_, _| ()),
        }
    }

    /// Begins a sweep, which appends to `swept`: where.
    pub(super) fn begin(&mut self) -> usize {
        if self.head > self.swept.len() / 2 {
            self.swept.drain(..self.head);
            self.head = 0;
        }
        self.swept.len()
    }

    /// Sorts what a sweep has appended from `start` on; all of it is later than what was there
    /// before.
    pub(super) fn sort(&mut self, start: usize) {
        let swept = &mut self.swept[start..];
        if !swept.is_sorted_by_key(Node::key) {
            swept.sort_unstable_by_key(Node::key);
        }
    }

    /// All that wait here, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Node> {
        self.swept[self.head..].iter().chain(&self.late.nodes)
    }

    pub(super) fn retain(&mut self, keep: impl Fn(&Node) -> bool) {
        self.swept.drain(..self.head);
        self.head = 0;
        self.swept.retain(&keep);
        self.late.retain(keep);
    }

    /// Gives the storage back; only when nothing lives.
    pub(super) fn release(&mut self) {
        self.retain(|_| false);
        self.swept.shrink_to(KEEP);
        self.late.nodes.shrink_to(KEEP);
    }
}
