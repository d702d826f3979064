//! The word against the kernel's law, for every word there can be: six states and eight flags.

use super::*;
use asx_kernel::status::Status;

const FLAGS: u64 = 1 << STATE_SHIFT;
const REFERENCES: u64 = 3 * REF;

/// Every state with every set of flags.
fn every_word() -> impl Iterator<Item = Snapshot> {
    let states = TaskState::ALL.into_iter();
    states.flat_map(|state| (0..FLAGS).map(move |flags| Snapshot(flags).with_state(state)))
}

/// What an operation answers on a word, and the word it leaves, without the references.
fn on<R>(word: Snapshot, operation: impl FnOnce(&Word) -> R) -> (R, Snapshot) {
    let (answer, after, _) = counted(word, operation);
    (answer, after)
}

/// The same, and how many references more there are.
fn counted<R>(word: Snapshot, operation: impl FnOnce(&Word) -> R) -> (R, Snapshot, i64) {
    let cell = Word(AtomicU64::new(word.0 | REFERENCES));
    let answer = operation(&cell);
    let after = cell.load().0;
    let more = (after / REF) as i64 - (REFERENCES / REF) as i64;
    (answer, Snapshot(after & ((FLAGS - 1) | STATE)), more)
}

fn law(word: Snapshot, event: TaskEvent) -> Result<(TaskState, TaskEffect), Status> {
    word.state().step(event)
}

/// The word with another state and other flags.
fn with(word: Snapshot, state: TaskState, set: u64, clear: u64) -> u64 {
    (word.with_state(state).0 | set) & !clear
}

/// Whether there is an entry for the task: who makes this true puts one into a queue, or else
/// every later wake would rely on an entry that is not there.
fn in_queue(word: Snapshot) -> bool {
    word.is(SCHEDULED) && !word.is(POLLING)
}

#[test]
fn a_poll_begins_as_the_law_says_for_who_holds_the_only_entry() {
    for word in every_word() {
        let mine = word.is(SCHEDULED) && !word.is(POLLING);
        let expected = match law(word, TaskEvent::Poll) {
            Ok((state, TaskEffect::None)) if mine => Some(with(word, state, POLLING, SCHEDULED)),
            Ok((_, TaskEffect::None)) | Err(_) => None,
            Ok(effect) => panic!("a poll has no effect: {effect:?}"),
        };
        let (begun, after) = on(word, |cell| cell.begin_unsigned(true, false));
        let before = expected.map(|_| word.0);
        assert_eq!(begun.map(|begun| begun.0 & !REFERENCES), before, "{:b}", word.0);
        assert_eq!(after.0, expected.unwrap_or(word.0), "{:b}", word.0);
    }
}

#[test]
fn a_poll_is_a_plain_one_outside_the_cancel_lane_if_nothing_bounds_the_end() {
    for word in every_word().filter(|word| !word.is_completed()) {
        for word in [word, Snapshot(word.0 | CLEANING)] {
            let bounded = word.is_forced() || word.is_cleaning();
            assert_eq!(word.goes_on(), !word.state().in_cancel_lane() && !bounded, "{:b}", word.0);
        }
    }
}

/// A step that is signed is the one that nobody records, with the mark beside it; one that is
/// refused leaves the word alone.
#[test]
fn a_signed_step_is_the_law_s_or_none() {
    fn check<R: PartialEq + std::fmt::Debug>(
        word: Snapshot,
        step: impl Fn(&Word, &mut dyn FnMut(Snapshot, Snapshot) -> Option<Snapshot>) -> Option<R>,
    ) {
        let marked = || Word(AtomicU64::new((word.0 | REFERENCES) | 5 << MARK_SHIFT));
        let as_is = marked();
        let signed = marked();
        let refused = marked();
        let expected = step(&as_is, &mut unsigned);
        let mut seen = None;
        let answer = step(&signed, &mut |before, after| {
            seen = Some((before.0, after.0));
            Some(after.with_mark(9))
        });
        assert_eq!(answer, expected, "{:b}", word.0);
        let before = marked().load();
        let after = as_is.load();
        match answer {
            None => assert!(seen.is_none() && signed.load().0 == before.0, "{:b}", word.0),
            Some(_) => {
                assert_eq!(seen, Some((before.0, after.0)));
                assert_eq!(signed.load().0, after.with_mark(9).0);
            }
        }
        assert_eq!(step(&refused, &mut |_, _| None), None);
        assert_eq!(refused.load().0, before.0);
    }
    for word in every_word() {
        for (starts, plain) in [(false, false), (false, true), (true, false), (true, true)] {
            let how = Begin { starts, plain, reserve: 1 };
            check(word, |cell, sign| cell.begin(how, sign).map(|before| before.0));
        }
        for kept in [false, true] {
            check(word, |cell, sign| cell.complete(Complete { kept, reserve: 1 }, sign));
        }
    }
}

/// What is recorded without the lock of the cancel is no step of a task that is being cancelled.
#[test]
fn a_word_is_plain_if_no_cancel_can_be_under_way() {
    for word in every_word().filter(|word| !word.is_completed()) {
        let free = !word.is(LOCK) && !word.state().in_cancel_lane();
        assert_eq!(word.is_plain(), free, "{:b}", word.0);
    }
}

#[test]
fn marks_are_left_alone_by_all_other_steps() {
    let word = Word::new(3, SCHEDULED | HANDLE, 0);
    word.sign(0xffff);
    assert_eq!((word.load().mark(), word.load().0 / REF), (0xffff, 3));
    word.begin_unsigned(true, false);
    let _ = word.wake();
    let _ = word.end_poll(0);
    word.add_reference();
    word.drop_reference();
    word.lock_cancel();
    let _ = word.request_cancel(CancelRequest { moves: false, unlock: true });
    // The entry before the poll, that after it, and the one in the cancel lane.
    assert_eq!((word.load().mark(), word.load().0 / REF), (0xffff, 4));
    word.sign(1);
    assert_eq!((word.load().mark(), word.load().0 / REF), (1, 4));
}

#[test]
fn an_entry_of_plain_work_does_not_count_once_the_task_is_in_the_cancel_lane() {
    for word in every_word() {
        let (counts, after) = on(word, |cell| cell.begin_unsigned(true, false));
        let (plain, unchanged) = on(word, |cell| cell.begin_unsigned(true, true));
        if word.state().in_cancel_lane() {
            assert!(plain.is_none() && unchanged.0 == word.0, "{:b}", word.0);
        } else {
            assert_eq!((plain.is_some(), unchanged.0), (counts.is_some(), after.0));
        }
    }
}

#[test]
fn a_poll_that_waits_for_its_step_takes_it_later() {
    for word in every_word() {
        let (at_once, after) = on(word, |cell| cell.begin_unsigned(true, false));
        let (held, later) = on(word, |cell| {
            let held = cell.begin_unsigned(false, false);
            if held.is_some() {
                cell.start();
            }
            held
        });
        assert_eq!((at_once.is_some(), after.0), (held.is_some(), later.0), "{:b}", word.0);
    }
}

#[test]
fn a_body_ends_as_the_law_says() {
    for word in every_word() {
        let expected = match law(word, TaskEvent::BodyEnded) {
            Ok((state, _)) => (state.acknowledged(), with(word, state, 0, 0)),
            Err(_) => (false, word.0),
        };
        let (cancelled, after) = on(word, Word::body_ended);
        assert_eq!((cancelled, after.0), expected, "{:b}", word.0);
    }
}

/// A request in between takes nothing away from the look without a lock in `body_ended`: it makes
/// nobody acknowledge.
#[test]
fn only_an_acknowledgement_makes_a_task_end_cancelled() {
    use TaskEvent::*;
    for state in TaskState::ALL {
        for event in [Poll, RequestCancel, BodyEnded, Complete] {
            let Ok((next, _)) = state.step(event) else { continue };
            assert!(state.acknowledged() || !next.acknowledged(), "{state:?} {event:?}");
        }
    }
}

#[test]
fn a_request_is_the_law_s_and_makes_one_entry_at_most() {
    for word in every_word() {
        let (requested, after) =
            on(word, |cell| cell.request_cancel(CancelRequest { moves: false, unlock: false }));
        // With the lock given back it is the same step.
        let locked = Snapshot(word.0 | LOCK);
        let (unlocking, unlocked) =
            on(locked, |cell| cell.request_cancel(CancelRequest { moves: false, unlock: true }));
        assert_eq!((unlocking, unlocked.0), (requested, after.0 & !LOCK), "{:b}", word.0);
        if word.is_completed() {
            assert_eq!((requested, after.0), (Requested::Completed, word.0));
            continue;
        }
        let (state, effect) = law(word, TaskEvent::RequestCancel).unwrap();
        let first = effect == TaskEffect::Requested;
        // Until it was seen each request wakes.
        let wakes = state == TaskState::CancelRequested;
        let enqueue = wakes && !word.is(POLLING) && (first || !word.is(SCHEDULED));
        let moved = enqueue && word.is(SCHEDULED);
        assert_eq!(requested, Requested::Live { effect, enqueue, moved }, "{:b}", word.0);
        let set = if wakes { SCHEDULED } else { 0 };
        assert_eq!(after.0, with(word, state, set, 0), "{:b}", word.0);
        assert_eq!(in_queue(after), in_queue(word) || enqueue, "{:b}", word.0);
    }
}

#[test]
fn a_request_is_acknowledged_as_the_law_says() {
    for word in every_word() {
        let expected = law(word, TaskEvent::Acknowledge).ok();
        let (effect, after) = on(word, Word::acknowledge);
        assert_eq!(effect, expected.map(|(_, effect)| effect), "{:b}", word.0);
        if !word.is(LOCK) {
            let (same, locked) = on(word, Word::acknowledge_and_lock);
            let lock = if effect.is_some() { LOCK } else { 0 };
            assert_eq!((same, locked.0), (effect, after.0 | lock), "{:b}", word.0);
        }
        let state = expected.map_or(word.state(), |(state, _)| state);
        assert_eq!(after.0, with(word, state, 0, 0), "{:b}", word.0);
    }
}

#[test]
fn a_task_completes_once_as_the_law_says() {
    for (word, kept) in every_word().flat_map(|word| [(word, false), (word, true)]) {
        let (ended, after) =
            on(word, |cell| cell.complete(Complete { kept, reserve: 0 }, unsigned));
        let Ok((state, _)) = law(word, TaskEvent::Complete) else {
            assert_eq!(ended, None);
            assert_eq!(after.0, word.0, "a second completion changes nothing");
            continue;
        };
        let discard = !kept && !word.is(HANDLE);
        let expected = Ended { wake_joiner: word.is(WAKER), discard };
        assert_eq!(ended, Some(expected), "{:b}", word.0);
        let set = if kept { KEPT } else { 0 } | if discard { TAKEN } else { 0 };
        assert_eq!(after.0, with(word, state, set, POLLING | SCHEDULED), "{:b}", word.0);
    }
}

/// The state stays, and of all wakes between two polls one makes an entry.
#[test]
fn wakes_make_one_entry_and_no_step() {
    for word in every_word() {
        let free = !word.is_completed() && !word.is(SCHEDULED) && !word.is(POLLING);
        let (woken, after) = on(word, Word::wake);
        let expected = match (word.is_completed(), free) {
            (true, _) => Woken::Stale,
            (false, true) => Woken::Enqueue,
            (false, false) => Woken::Pending,
        };
        let set = if word.is_completed() { 0 } else { SCHEDULED };
        assert_eq!((woken, after.0), (expected, word.0 | set), "{:b}", word.0);
        assert_ne!(on(after, Word::wake).0, Woken::Enqueue, "{:b}", word.0);

        let (forced, after) = on(word, Word::force);
        let set = if word.is_completed() { 0 } else { SCHEDULED | FORCE };
        assert_eq!((forced, after.0), (expected, word.0 | set), "{:b}", word.0);
        let forced = forced == Woken::Enqueue;
        assert_eq!(in_queue(after), in_queue(word) || forced, "{:b}", word.0);

        if !word.is(POLLING) || word.is_completed() {
            continue;
        }
        let (end, after) = on(word, |cell| cell.end_poll(0));
        let again = end == PollEnd::Requeue;
        assert_eq!((again, after.0), (word.is(SCHEDULED), word.0 & !POLLING), "{:b}", word.0);
        assert_eq!(in_queue(after), again, "{:b}", word.0);
        // A wake that only the poller knows of is one before the end of the poll.
        let ((), noted) = on(word, |cell| cell.end_woken_poll(0));
        assert_eq!(
            noted.0,
            on(on(word, Word::wake).1, |cell| cell.end_poll(0)).1.0,
            "{:b}",
            word.0
        );
        assert!(in_queue(noted), "{:b}", word.0);
    }
}

/// What is counted for a poll and not used goes with its end, or with the end of the task, and
/// nothing else is another then.
#[test]
fn a_reserve_is_counted_from_the_begin_of_a_poll_to_its_end() {
    let references = |cell: &Word| cell.0.load(Relaxed) / REF;
    for (word, used) in every_word().flat_map(|word| [0, 1, RESERVE].map(|used| (word, used))) {
        let cell = Word(AtomicU64::new(word.0 | REFERENCES));
        let begun =
            cell.begin(Begin { starts: true, plain: false, reserve: RESERVE }, unsigned).is_some();
        assert_eq!(begun, on(word, |cell| cell.begin_unsigned(true, false)).0.is_some());
        assert_eq!(references(&cell), 3 + u64::from(if begun { RESERVE } else { 0 }));
        if !begun {
            continue;
        }
        let again = Word(AtomicU64::new(cell.0.load(Relaxed)));
        let woken = Word(AtomicU64::new(cell.0.load(Relaxed)));
        woken.end_woken_poll(RESERVE - used);
        assert_eq!(cell.end_poll(RESERVE - used), PollEnd::Idle);
        // The entry has what was the poll's own.
        assert_eq!(woken.load().0, (cell.load().0 | SCHEDULED) + REF);
        assert_eq!(references(&cell), 2 + u64::from(used));
        assert_eq!(cell.load().0 & (REF - 1) & !(word.0 | STATE), 0);
        again.complete(Complete { kept: false, reserve: RESERVE - used }, unsigned);
        assert!(again.load().is_completed() && references(&again) == 2 + u64::from(used));
    }
}

/// Each owner is counted in the step that makes it one: entries by wakes, requests and force, polls
/// by the entry they were begun with, or by who takes the task over.
#[test]
fn every_entry_and_every_poll_has_one_reference() {
    for word in every_word() {
        let says = format!("{:b}", word.0);
        let (woken, _, more) = counted(word, Word::wake);
        assert_eq!(more, i64::from(woken == Woken::Enqueue), "{says}");
        let (forced, _, more) = counted(word, Word::force);
        assert_eq!(more, i64::from(forced == Woken::Enqueue), "{says}");
        for (moves, unlock) in [(false, false), (true, false), (false, true), (true, true)] {
            let (requested, _, more) =
                counted(word, |cell| cell.request_cancel(CancelRequest { moves, unlock }));
            let made = matches!(requested, Requested::Live { enqueue: true, .. });
            assert_eq!(more, i64::from(made), "{says}");
        }
        let (seized, _, more) = counted(word, Word::seize);
        assert_eq!(more, i64::from(seized.is_some()), "{says}");
        let (begun, _, more) = counted(word, |cell| cell.begin_unsigned(true, false));
        assert!(more == 0, "the entry's: {says} {begun:?}", begun = begun.is_some());
        if word.is(POLLING) && !word.is_completed() {
            let (end, _, more) = counted(word, |cell| cell.end_poll(0));
            assert_eq!(more, if end == PollEnd::Requeue { 0 } else { -1 }, "{says}");
            assert_eq!(counted(word, |cell| cell.end_woken_poll(0)).2, 0, "{says}");
            assert_eq!(
                counted(word, |cell| cell.complete(Complete { kept: false, reserve: 0 }, unsigned))
                    .2,
                -1,
                "{says}"
            );
        }
    }
}

/// A count that has come to half of what fits never comes back, whatever is added and dropped; no
/// flag and no state is touched by that.
#[test]
fn a_saturated_count_is_never_used_up() {
    for word in every_word() {
        for start in [(1 << 31) - 1, 1 << 31, 3 << 30] {
            let cell = Word(AtomicU64::new(word.0 | (start * REF)));
            let saturated = |cell: &Word| {
                let now = cell.0.load(Relaxed);
                assert_eq!(now & (REF - 1), word.0);
                now >= SATURATED
            };
            (0..3).for_each(|_| cell.add_reference());
            assert!(saturated(&cell));
            for _ in 0..5000 {
                assert!(!cell.drop_reference());
            }
            assert!(saturated(&cell), "{start}");
            for _ in 0..5000 {
                cell.add_reference();
            }
            assert!(saturated(&cell) && cell.0.load(Relaxed) / REF < (3 << 30) + 10, "{start}");
        }
        let full = Word(AtomicU64::new(word.0 | PINNED));
        let pinned = |cell: &Word| assert_eq!(cell.0.load(Relaxed) & !(REF - 1), PINNED);
        let _ = full.wake();
        pinned(&full);
        if full.begin(Begin { starts: true, plain: false, reserve: RESERVE }, unsigned).is_some() {
            pinned(&full);
            let _ = full.request_cancel(CancelRequest { moves: false, unlock: false });
            let _ = full.end_poll(RESERVE);
        }
        let _ = full.force();
        let _ = full.seize();
        let _ = full.complete(Complete { kept: false, reserve: RESERVE }, unsigned);
        assert!(!full.drop_reference());
        pinned(&full);
    }
}

/// As long as there is a handle that has not claimed, nobody but the scope claims, and that only
/// what is kept for it: nothing sets `TAKEN` without `KEPT`.
#[test]
fn what_is_not_kept_is_claimed_by_nobody_but_the_handle() {
    for word in every_word().filter(|word| word.is(HANDLE) && !word.is(TAKEN | KEPT)) {
        let untouched = |after: Snapshot| assert!(!after.is(TAKEN), "{:b}", word.0);
        untouched(on(word, |cell| cell.complete(Complete { kept: false, reserve: 0 }, unsigned)).1);
        untouched(on(word, |cell| cell.begin_unsigned(true, false).is_some()).1);
        untouched(
            on(word, |cell| cell.request_cancel(CancelRequest { moves: false, unlock: false })).1,
        );
        untouched(on(word, Word::wake).1);
    }
    for word in every_word() {
        let (claimed, after) = on(word, Word::claim);
        assert_eq!((claimed, after.0), (!word.is(TAKEN), word.0 | TAKEN));
    }
}

/// The handle and its reference go in one step, which is what the two are one after the other.
#[test]
fn a_handle_takes_its_reference_along_unless_it_still_needs_it() {
    for (word, references) in every_word().flat_map(|word| [(word, 1), (word, 2)]) {
        let cell = Word(AtomicU64::new(word.0 | (references * REF)));
        let (claimed, after) = on(word, Word::drop_handle);
        let gone = !claimed && references > 1;
        assert_eq!(cell.drop_handle_with(true), Parted { claimed, gone }, "{:b}", word.0);
        assert_eq!(cell.load().0, after.0 | ((references - u64::from(gone)) * REF));
    }
}

#[test]
fn the_last_of_the_references_is_the_last_whoever_drops_it() {
    for word in every_word() {
        let cell = Word(AtomicU64::new(word.0 | (2 * REF)));
        assert!(!cell.drop_reference() && cell.load().0 == word.0 | REF);
        assert!(cell.drop_reference());
    }
}

/// A handle whose result was taken goes without a word: its drop would claim nothing, and nothing
/// anybody does afterwards depends on the bit it leaves.
#[test]
fn nobody_asks_for_the_handle_of_a_result_that_was_taken() {
    let taken = every_word().filter(|word| word.is_completed() && word.is(TAKEN));
    for word in taken {
        assert!(!on(word, Word::take_waker).0 && !on(word, Word::drop_handle).0);
        let with = Snapshot(word.0 | HANDLE);
        let without = Snapshot(word.0 & !HANDLE);
        fn same<R: PartialEq + std::fmt::Debug>(
            [with, without]: [Snapshot; 2],
            operation: impl Fn(&Word) -> R,
        ) {
            let ((a, left), (b, right)) = (on(with, &operation), on(without, &operation));
            assert_eq!((a, left.0 & !HANDLE), (b, right.0 & !HANDLE), "{:b}", with.0);
        }
        let both = [with, without];
        same(both, |cell| cell.begin_unsigned(true, false).is_some());
        same(both, Word::force);
        if word.is(POLLING) {
            same(both, |cell| cell.end_poll(0));
        }
        same(both, Word::wake);
        same(both, |cell| cell.request_cancel(CancelRequest { moves: false, unlock: false }));
        same(both, Word::acknowledge);
        same(both, Word::body_ended);
        same(both, |cell| cell.complete(Complete { kept: false, reserve: 0 }, unsigned));
        same(both, |cell| cell.complete(Complete { kept: true, reserve: 0 }, unsigned));
        same(both, Word::claim);
        same(both, Word::give_waker);
    }
}
