//! Every interleaving of an owner and its thieves: each entry is delivered exactly once.

use super::*;
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

/// Guards the release of the tail in `push`, and its acquire by the thief.
#[test]
fn a_thief_gets_what_was_pushed() {
    loom::model(|| {
        let owner = Owner::new();
        let victim = owner.stealer();
        let thief = thread::spawn(move || steal(&victim));
        owner.push(entry(0)).unwrap();
        owner.push(entry(1)).unwrap();
        let mut delivered = thief.join().unwrap();
        delivered.extend(owner.drain());
        assert_once(2, delivered);
    });
}

/// Guards the compare-and-swap in `pop` and in `steal_into`.
#[test]
fn an_owner_and_a_thief_share_without_doubles() {
    loom::model(|| {
        let owner = Owner::new();
        for n in 0..3 {
            owner.push(entry(n)).unwrap();
        }
        let victim = owner.stealer();
        let thief = thread::spawn(move || steal(&victim));
        let mut delivered: Vec<_> = owner.pop().into_iter().collect();
        owner.push(entry(3)).unwrap();
        delivered.extend(owner.drain());
        delivered.extend(thief.join().unwrap());
        assert_once(4, delivered);
    });
}

/// Guards the bound in `push`: a slot is written again only when nobody may take from it.
#[test]
fn slots_are_used_again_only_when_taken() {
    loom::model(|| {
        let owner = Owner::new();
        for n in 0..CAPACITY {
            owner.push(entry(n)).unwrap();
        }
        let victim = owner.stealer();
        let thief = thread::spawn(move || steal(&victim));
        let mut delivered = Vec::new();
        for n in CAPACITY..CAPACITY + 2 {
            if let Err(back) = owner.push(entry(n)) {
                delivered.push(back);
            }
        }
        delivered.extend(owner.drain());
        delivered.extend(thief.join().unwrap());
        assert_once(CAPACITY + 2, delivered);
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
    loom::model(|| {
        let (owner, middle) = (Owner::new(), Owner::new());
        for n in 0..CAPACITY {
            owner.push(entry(n)).unwrap();
        }
        let (first, second) = (owner.stealer(), middle.stealer());
        let thief = thread::spawn(move || steal(&second));
        let mut delivered: Vec<_> = first.steal_into(&middle).into_iter().collect();
        delivered.extend(thief.join().unwrap());
        delivered.extend(middle.drain());
        delivered.extend(owner.drain());
        assert_once(CAPACITY, delivered);
    });
}
