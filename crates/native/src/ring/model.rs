//! Every interleaving of an owner and its thieves: each entry is delivered exactly once.
//!
//! Rule 3's acquire and release are not shown: a model's load never returns a store that comes
//! later in its schedule, which is what they forbid.

use super::*;
use crate::prim::race;
use loom::thread;
use std::num::NonZeroUsize;

fn entry(n: usize) -> NonNull<()> {
    NonNull::without_provenance(NonZeroUsize::MIN.saturating_add(n))
}

/// All that a thief gets by one steal.
fn steal(victim: &Stealer<()>) -> Vec<NonNull<()>> {
    let own = Owner::new();
    victim.steal_into(&own).into_iter().chain(own.drain()).collect()
}

fn assert_once(entries: usize, mut delivered: Vec<NonNull<()>>) {
    delivered.sort();
    assert!(delivered.iter().copied().eq((0..entries).map(entry)), "{delivered:?}");
}

/// A ring with some entries, what its owner does then, and all while a thief steals once.
fn against_a_thief(before: usize, total: usize, part: fn(&Owner<()>) -> Vec<NonNull<()>>) {
    for swap in [false, true] {
        loom::model(move || {
            let owner = Owner::new();
            for n in 0..before {
                owner.push(entry(n)).unwrap();
            }
            let victim = owner.stealer();
            let own_part = move || (part(&owner), owner);
            let ((mut delivered, owner), stolen) = race(swap, own_part, move || steal(&victim));
            delivered.extend(stolen);
            delivered.extend(owner.drain());
            assert_once(total, delivered);
        });
    }
}

/// Guards the release of the tail in `push`, and its acquire by the thief.
#[test]
fn a_thief_gets_what_was_pushed() {
    against_a_thief(0, 2, |owner| {
        owner.push(entry(0)).unwrap();
        owner.push(entry(1)).unwrap();
        Vec::new()
    });
}

/// Guards the compare-and-swap in `pop` and in `steal_into`.
#[test]
fn an_owner_and_a_thief_share_without_doubles() {
    against_a_thief(3, 4, |owner| {
        let oldest = owner.pop();
        owner.push(entry(3)).unwrap();
        oldest.into_iter().chain(owner.drain()).collect()
    });
}

/// Guards the bound in `push`, and that slots are read before they are given up.
#[test]
fn slots_are_used_again_only_when_taken() {
    against_a_thief(CAPACITY, CAPACITY + 2, |owner| {
        (CAPACITY..CAPACITY + 2).filter_map(|n| owner.push(entry(n)).err()).collect()
    });
}

/// Guards the compare-and-swap between thieves.
#[test]
fn an_owner_and_two_thieves_share_without_doubles() {
    loom::model(|| {
        let owner = Owner::new();
        for n in 0..CAPACITY {
            owner.push(entry(n)).unwrap();
        }
        let thieves =
            [owner.stealer(), owner.stealer()].map(|victim| thread::spawn(move || steal(&victim)));
        let mut delivered: Vec<_> = owner.pop().into_iter().collect();
        for thief in thieves {
            delivered.extend(thief.join().unwrap());
        }
        delivered.extend(owner.drain());
        assert_once(CAPACITY, delivered);
    });
}

/// Guards the release of the thief's tail: what it moved can be stolen on.
#[test]
fn stolen_entries_can_be_stolen_again() {
    for swap in [false, true] {
        loom::model(move || {
            let owner = Owner::new();
            let middle = Owner::new();
            for n in 0..CAPACITY {
                owner.push(entry(n)).unwrap();
            }
            let first = owner.stealer();
            let second = middle.stealer();
            let move_on = move || (first.steal_into(&middle), middle);
            let ((oldest, middle), stolen) = race(swap, move_on, move || steal(&second));
            let delivered = oldest.into_iter().chain(stolen);
            assert_once(CAPACITY, delivered.chain(middle.drain()).chain(owner.drain()).collect());
        });
    }
}
