//! Explores every interleaving of an owner and its thieves: each entry is delivered exactly once.
//!
//! The acquire and release of rule 3 are not covered. They exclude a load that returns a store from
//! later in the schedule, and loom has no such loads.

use super::*;
use crate::prim::race;
use loom::thread;
use std::num::NonZeroUsize;

fn entry(n: usize) -> NonNull<()> {
    NonNull::without_provenance(NonZeroUsize::MIN.saturating_add(n))
}

/// Steals once and returns all entries taken.
fn steal(victim: &Stealer<()>) -> Vec<NonNull<()>> {
    let own = Owner::new();
    victim.steal_into(&own).into_iter().chain(own.drain()).collect()
}

fn assert_once(entries: usize, mut delivered: Vec<NonNull<()>>) {
    delivered.sort();
    assert!(delivered.iter().copied().eq((0..entries).map(entry)), "{delivered:?}");
}

/// Fills a ring, then runs `part` as the owner while a thief steals once.
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

/// Guards the release store of the tail in `push`, and its acquire load by the thief.
#[test]
fn a_thief_gets_entries_that_are_being_pushed() {
    against_a_thief(0, 2, |owner| {
        owner.push(entry(0)).unwrap();
        owner.push(entry(1)).unwrap();
        Vec::new()
    });
}

/// Guards the compare-and-swap in `pop` and in `steal_into`.
#[test]
fn an_owner_and_a_thief_deliver_each_entry_once() {
    against_a_thief(3, 4, |owner| {
        let oldest = owner.pop();
        owner.push(entry(3)).unwrap();
        oldest.into_iter().chain(owner.drain()).collect()
    });
}

/// Guards the bound in `push`, and that slots are read before they are released.
#[test]
fn a_slot_is_reused_only_after_its_entry_was_taken() {
    against_a_thief(CAPACITY, CAPACITY + 2, |owner| {
        (CAPACITY..CAPACITY + 2).filter_map(|n| owner.push(entry(n)).err()).collect()
    });
}

/// Guards the compare-and-swap between thieves.
#[test]
fn an_owner_and_two_thieves_deliver_each_entry_once() {
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

/// Guards the release store of the thief's tail: moved entries can be stolen again.
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
