//! The arena compared with a map, and the conversion of every handle to its word and back.
#![no_main]

use asx_fuzz::Ops;
use asx_kernel::arena::{Arena, Key};
use asx_kernel::handle::{Handle, Tag};
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeMap;

const TAGS: [Tag; 6] =
    [Tag::Region, Tag::Task, Tag::Obligation, Tag::CancelWitness, Tag::Timer, Tag::Channel];

fuzz_target!(|bytes: &[u8]| {
    let mut ops = Ops::new(bytes);
    let mut arena = Arena::new();
    let mut model: BTreeMap<Key, u8> = BTreeMap::new();
    let mut issued: Vec<Key> = Vec::new();
    while !ops.is_done() {
        match ops.below(6) {
            0 | 1 => {
                let value = ops.byte();
                let key = arena.insert(value).expect("far from 2^32 slots");
                issued.push(key);
                assert_eq!(key.generation, issued.len() as u64, "generations are ordinals");
                assert_eq!(model.insert(key, value), None);
            }
            2 => {
                let key = any_key(&mut ops, &issued);
                assert_eq!(arena.remove(key), model.remove(&key));
            }
            3 => {
                let key = any_key(&mut ops, &issued);
                let value = ops.byte();
                let slot = arena.get_mut(key);
                assert_eq!(slot.as_deref(), model.get(&key));
                if let (Some(slot), Some(known)) = (slot, model.get_mut(&key)) {
                    (*slot, *known) = (value, value);
                }
            }
            4 => {
                let key = any_key(&mut ops, &issued);
                assert_eq!(arena.get(key), model.get(&key));
                let tenant = model.keys().copied().find(|live| live.index == key.index);
                assert_eq!(arena.key_at(key.index), tenant);
            }
            _ => round_trip(&mut ops, &issued),
        }
        assert_eq!(arena.len(), model.len());
    }
    let mut live: Vec<(Key, u8)> = arena.iter().map(|(key, value)| (key, *value)).collect();
    live.sort();
    assert!(live.into_iter().eq(model));
});

/// Returns a key that was issued, possibly stale, or sometimes a forged one.
fn any_key(ops: &mut Ops<'_>, issued: &[Key]) -> Key {
    match ops.pick(issued) {
        Some(key) if ops.below(8) != 7 => *key,
        _ => Key { generation: ops.number(), index: ops.u32() },
    }
}

fn round_trip(ops: &mut Ops<'_>, issued: &[Key]) {
    let key = any_key(ops, issued);
    let tag = TAGS[ops.below(TAGS.len())];
    let mask = ops.u32() as u16;
    let handle = Handle::new(tag, mask, key);
    assert_eq!((handle.tag(), handle.mask(), handle.key()), (Some(tag), mask, key));
    assert_eq!(Handle::from_raw(handle.word(), handle.generation()), handle);
    let forged = Handle::from_raw(ops.u64(), key.generation);
    let same = forged.tag() == Some(tag) && forged.key() == key;
    assert_eq!(forged == handle, same, "equality is tag and key");
}
