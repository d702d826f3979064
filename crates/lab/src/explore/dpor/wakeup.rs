//! Wakeup trees: the sequences of steps that are still to be tried from a state.
//!
//! A tree's leaf is a whole sequence that an exploration owes; an inner node is a beginning that
//! several of them share. A new sequence is added only if no leaf is already one of its linear
//! forms. Nodes live in one arena with a free list and are linked as first child and next sibling.

use crate::explore::trace::{Print, Trace};

/// No node.
pub(super) const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Node {
    task: u32,
    /// What the step touches, if that is known: the last step of a sequence was never taken from
    /// there.
    print: Option<Print>,
    child: u32,
    sibling: u32,
}

#[derive(Debug)]
pub(super) struct Wakeups {
    nodes: Vec<Node>,
    free: u32,
}

/// A sequence that is owed: steps of a trace, in order, then one step of a task which nobody knows
/// yet.
#[derive(Debug, Default)]
pub(super) struct Owed {
    pub(super) steps: Vec<u32>,
    /// The same steps as a set.
    pub(super) set: Vec<u64>,
    pub(super) last: Option<u32>,
}

impl Owed {
    /// Makes this the sequence of the steps after `step` that do not come after it, then `last`.
    pub(super) fn without(&mut self, trace: &Trace, step: u32, last: u32) {
        self.steps.clear();
        self.set.clear();
        self.set.resize(trace.width(), 0);
        self.last = Some(last);
        for later in step + 1..trace.steps.len() as u32 {
            if !trace.is_before(step, later) {
                self.steps.push(later);
                self.set[later as usize / 64] |= 1 << (later % 64);
            }
        }
    }

    /// Whether nothing owed comes before this step, which is in the sequence.
    pub(super) fn is_initial(&self, trace: &Trace, step: u32) -> bool {
        trace.before(step).iter().zip(&self.set).all(|(before, set)| before & set == 0)
    }

    /// Whether a task's next step may come first without changing the class of the sequence.
    /// `print` is what that step touches; without it nothing is claimed that needs it.
    pub(super) fn first(&self, trace: &Trace, task: u32, print: Option<Print>) -> First {
        for (at, step) in self.steps.iter().copied().enumerate() {
            if trace.steps[step as usize].task == task {
                return if self.is_initial(trace, step) { First::Step(at) } else { First::No };
            }
        }
        let is_independent = |print: Print| {
            self.steps.iter().all(|step| trace.steps[*step as usize].print.is_independent(print))
        };
        let is_free = self.steps.is_empty() || print.is_some_and(is_independent);
        match self.last {
            // The last step may touch other things than it did where its race was seen. If it
            // commutes with all the rest it is the very step that `print` was seen of.
            Some(last) if last == task && is_free => First::Last,
            None if is_free && print.is_some() => First::Apart,
            _ => First::No,
        }
    }

    /// Takes a step out.
    fn remove(&mut self, at: usize) {
        let step = self.steps.remove(at);
        self.set[step as usize / 64] &= !(1 << (step % 64));
    }
}

/// How a task's next step relates to an owed sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum First {
    /// It is this step of the sequence, and can come first.
    Step(usize),
    /// It is the last one of the sequence, and can come first.
    Last,
    /// It is not in the sequence and commutes with all of it.
    Apart,
    /// It can't come first.
    No,
}

impl Wakeups {
    pub(super) fn new() -> Wakeups {
        Wakeups { nodes: Vec::new(), free: NONE }
    }

    /// Adds what is owed to the trees that start with `root`, unless they cover it. Uses up `owed`.
    pub(super) fn insert(&mut self, root: &mut u32, trace: &Trace, owed: &mut Owed) {
        let mut parent = NONE;
        let mut last = NONE;
        let mut at = *root;
        while at != NONE {
            let node = self.nodes[at as usize];
            match owed.first(trace, node.task, node.print) {
                First::No => (last, at) = (at, node.sibling),
                relation => {
                    match relation {
                        First::Step(step) => owed.remove(step),
                        First::Last => owed.last = None,
                        First::Apart | First::No => {}
                    }
                    let is_empty = owed.steps.is_empty() && owed.last.is_none();
                    if node.child == NONE || is_empty {
                        return;
                    }
                    (parent, last, at) = (at, NONE, node.child);
                }
            }
        }
        let chain = self.chain(trace, owed);
        match (last, parent) {
            (NONE, NONE) => *root = chain,
            (NONE, parent) => self.nodes[parent as usize].child = chain,
            (last, _) => self.nodes[last as usize].sibling = chain,
        }
    }

    /// Takes the first tree away: its task and its subtrees.
    pub(super) fn pop(&mut self, root: &mut u32) -> Option<(u32, u32)> {
        let node = *self.nodes.get(*root as usize)?;
        self.nodes[*root as usize].sibling = self.free;
        self.free = *root;
        *root = node.sibling;
        Some((node.task, node.child))
    }

    /// Forgets trees.
    pub(super) fn discard(&mut self, root: u32) {
        // A tree is as deep as its sequences are long, which may be more than a stack holds.
        let mut roots = Vec::new();
        let mut next = Some(root);
        while let Some(mut root) = next {
            while let Some((_, child)) = self.pop(&mut root) {
                if child != NONE {
                    roots.push(child);
                }
            }
            next = roots.pop();
        }
    }

    /// How many trees there are side by side.
    pub(super) fn count(&self, root: u32) -> usize {
        let of = |at: u32| self.nodes.get(at as usize);
        std::iter::successors(of(root), |node| of(node.sibling)).count()
    }

    /// What is owed as a tree of one branch. It ends early with a step that made choices: those
    /// are all tried, with everything that follows.
    fn chain(&mut self, trace: &Trace, owed: &Owed) -> u32 {
        let steps = owed.steps.iter().map(|step| &trace.steps[*step as usize]);
        let end = steps.clone().position(|step| step.has_picks);
        let mut chain = NONE;
        if let (None, Some(task)) = (end, owed.last) {
            chain = self.node(task, None, chain);
        }
        for step in steps.take(end.map_or(usize::MAX, |end| end + 1)).rev() {
            let print = (!step.has_picks).then_some(step.print);
            chain = self.node(step.task, print, chain);
        }
        chain
    }

    fn node(&mut self, task: u32, print: Option<Print>, child: u32) -> u32 {
        let node = Node { task, print, child, sibling: NONE };
        let at = self.free;
        match self.nodes.get_mut(at as usize) {
            Some(free) => {
                self.free = free.sibling;
                *free = node;
                at
            }
            None => {
                self.nodes.push(node);
                self.nodes.len() as u32 - 1
            }
        }
    }
}
