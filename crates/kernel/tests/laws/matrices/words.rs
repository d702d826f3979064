//! Transitions, admission and events of the three state words.

use asx_kernel::obligation::ObligationState;
use asx_kernel::region::{Operation, RegionState, RegionWord};
use asx_kernel::session::Resolution;
use asx_kernel::status::Status;
use asx_kernel::task::{TaskEffect, TaskEvent, TaskState};

/// Rows are "from", columns "to", both in declaration order.
const TASK_STEPS: [[u8; 6]; 6] = [
    // Created Running CancelRequested Cancelling Finalizing Completed
    [0, 1, 1, 0, 0, 1], // Created
    [0, 0, 1, 0, 0, 1], // Running
    [0, 0, 1, 1, 0, 1], // CancelRequested
    [0, 0, 0, 1, 1, 1], // Cancelling
    [0, 0, 0, 0, 1, 1], // Finalizing
    [0, 0, 0, 0, 0, 0], // Completed
];

const TASK_STATES: [TaskState; 6] = [
    TaskState::Created,
    TaskState::Running,
    TaskState::CancelRequested,
    TaskState::Cancelling,
    TaskState::Finalizing,
    TaskState::Completed,
];

#[test]
fn thirteen_of_thirty_six_task_steps_exist() {
    assert_eq!(TaskState::ALL, TASK_STATES);
    for (from, row) in TASK_STATES.into_iter().zip(TASK_STEPS) {
        for (to, legal) in TASK_STATES.into_iter().zip(row) {
            let expected = if legal == 1 { Ok(()) } else { Err(Status::InvalidTransition) };
            assert_eq!(from.check(to), expected, "{from:?} -> {to:?}");
        }
    }
    assert_eq!(TASK_STEPS.as_flattened().iter().filter(|&&legal| legal == 1).count(), 13);
}

#[test]
fn every_task_event_in_every_state_follows_the_table() {
    use TaskEffect::{Acknowledged, Natural, None as Nothing, Requested, Strengthened};
    use TaskState::{CancelRequested, Cancelling, Completed, Created, Finalizing, Running};
    let ends_cancelled = Some((Completed, TaskEffect::Cancelled));
    let ends_naturally = Some((Completed, Natural));
    let events = [
        TaskEvent::Poll,
        TaskEvent::RequestCancel,
        TaskEvent::Acknowledge,
        TaskEvent::BodyEnded,
        TaskEvent::Complete,
    ];
    let table = [
        [
            Some((Running, Nothing)),
            Some((CancelRequested, Requested)),
            None,
            Some((Created, Nothing)),
            ends_naturally,
        ],
        [
            Some((Running, Nothing)),
            Some((CancelRequested, Requested)),
            None,
            Some((Running, Nothing)),
            ends_naturally,
        ],
        [
            Some((CancelRequested, Nothing)),
            Some((CancelRequested, Strengthened)),
            Some((Cancelling, Acknowledged)),
            Some((CancelRequested, Nothing)),
            ends_naturally,
        ],
        [
            Some((Cancelling, Nothing)),
            Some((Cancelling, Strengthened)),
            Some((Cancelling, Nothing)),
            Some((Finalizing, Nothing)),
            ends_cancelled,
        ],
        [
            Some((Finalizing, Nothing)),
            Some((Finalizing, Strengthened)),
            None,
            Some((Finalizing, Nothing)),
            ends_cancelled,
        ],
        [None, Some((Completed, Nothing)), None, None, None],
    ];
    for (from, row) in TASK_STATES.into_iter().zip(table) {
        for (event, expected) in events.into_iter().zip(row) {
            let step = from.step(event);
            assert_eq!(step, expected.ok_or(Status::InvalidTransition), "{from:?} {event:?}");
            let Ok((to, effect)) = step else { continue };
            let changes = to != from || effect == Strengthened;
            if changes {
                assert_eq!(TASK_STEPS[from as usize][to as usize], 1, "{from:?} {event:?}");
            }
        }
    }
}

const REGION_STATES: [RegionState; 5] = [
    RegionState::Open,
    RegionState::Closing,
    RegionState::Draining,
    RegionState::Finalizing,
    RegionState::Closed,
];

const REGION_STEPS: [[u8; 5]; 5] = [
    // Open Closing Draining Finalizing Closed
    [0, 1, 0, 0, 0], // Open
    [0, 0, 1, 1, 0], // Closing
    [0, 0, 0, 1, 0], // Draining
    [0, 0, 0, 0, 1], // Finalizing
    [0, 0, 0, 0, 0], // Closed
];

#[test]
fn five_of_twenty_five_region_steps_exist() {
    assert_eq!(RegionState::ALL, REGION_STATES);
    for (from, row) in REGION_STATES.into_iter().zip(REGION_STEPS) {
        for (to, legal) in REGION_STATES.into_iter().zip(row) {
            let expected = if legal == 1 { Ok(()) } else { Err(Status::InvalidTransition) };
            assert_eq!(from.check(to), expected, "{from:?} -> {to:?}");
        }
    }
}

/// An empty region in the given state.
fn region_in(state: RegionState) -> RegionWord {
    let mut word = RegionWord::default();
    match state {
        RegionState::Open => {}
        RegionState::Closing => assert!(word.close()),
        RegionState::Draining => {
            word.task_added();
            word.close();
            word.advance();
            word.task_done();
        }
        RegionState::Finalizing => {
            word.close();
            word.advance();
        }
        RegionState::Closed => {
            word.close();
            word.advance();
            word.advance();
            word.released();
            word.advance();
        }
    }
    assert_eq!(word.state(), state);
    word
}

#[test]
fn an_explicit_region_step_reports_what_prevents_it() {
    use RegionState::{Closed, Finalizing};
    let fill: [fn(&mut RegionWord); 4] = [
        RegionWord::task_added,
        RegionWord::child_added,
        RegionWord::finalizer_added,
        RegionWord::obligation_added,
    ];
    // The result for each subset of {task 1, child 2, finalizer 4, obligation 8}.
    let children = Err(Status::IncompleteChildren);
    let obligations = Err(Status::UnresolvedObligations);
    let mut to_finalizing = [children; 16];
    for free in [0, 4, 8, 12] {
        to_finalizing[free] = Ok(());
    }
    let mut to_closed = [children; 16];
    to_closed[0] = Ok(());
    to_closed[8] = obligations;
    for (from, row) in REGION_STATES.into_iter().zip(REGION_STEPS) {
        for (to, legal) in REGION_STATES.into_iter().zip(row) {
            for subset in 0..16 {
                let mut word = region_in(from);
                for (bit, fill) in fill.iter().enumerate() {
                    if subset >> bit & 1 == 1 {
                        fill(&mut word);
                    }
                }
                let expected = match to {
                    _ if legal == 0 => Err(Status::InvalidTransition),
                    Finalizing => to_finalizing[subset],
                    Closed => to_closed[subset],
                    _ => Ok(()),
                };
                let before = word;
                assert_eq!(word.check(to), expected, "{from:?} -> {to:?} with {subset:04b}");
                assert_eq!(word, before);
            }
        }
    }
}

#[test]
fn only_an_open_region_begins_to_close() {
    for state in REGION_STATES {
        let mut word = region_in(state);
        let before = word;
        let open = state == RegionState::Open;
        assert_eq!(word.close(), open);
        assert_eq!(word.state(), if open { RegionState::Closing } else { state });
        if !open {
            assert_eq!(word, before);
        }
    }
}

#[test]
fn admission_follows_the_table() {
    let ok = Ok(());
    let not_open = Err(Status::RegionNotOpen);
    let closed = Err(Status::RegionClosed);
    let invalid = Err(Status::InvalidTransition);
    let gone = Err(Status::Disconnected);
    // Open, Closing, Draining, Finalizing, Closed
    let table = [
        (Operation::Create, [ok, not_open, not_open, not_open, not_open]),
        (Operation::Defer, [ok, not_open, not_open, not_open, not_open]),
        (Operation::SpawnFinalizer, [invalid, invalid, invalid, ok, closed]),
        (Operation::ArmTimer, [ok, not_open, not_open, not_open, not_open]),
        (Operation::ArmFinalizerTimer, [ok, not_open, not_open, ok, not_open]),
        (Operation::UseChannel, [ok, ok, ok, gone, gone]),
        (Operation::Resolve, [ok, ok, ok, ok, closed]),
        (Operation::UseStorage, [ok, ok, ok, ok, closed]),
        (Operation::Query, [ok, ok, ok, ok, ok]),
    ];
    assert_eq!(Operation::ALL, table.map(|(operation, _)| operation));
    for (operation, row) in table {
        for (state, expected) in REGION_STATES.into_iter().zip(row) {
            assert_eq!(state.admit(operation), expected, "{operation:?} in {state:?}");
        }
    }
}

#[test]
fn an_obligation_is_resolved_once() {
    use ObligationState::{Aborted, Committed, Leaked, Reserved};
    let invalid = Err(Status::InvalidTransition);
    let resolved = Err(Status::ObligationAlreadyResolved);
    let leaked = Err(Status::ObligationLeaked);
    let states = [Reserved, Committed, Aborted, Leaked];
    let table = [[invalid, Ok(()), Ok(()), Ok(())], [resolved; 4], [resolved; 4], [leaked; 4]];
    assert_eq!(ObligationState::ALL, states);
    for (from, row) in states.into_iter().zip(table) {
        for (to, expected) in states.into_iter().zip(row) {
            assert_eq!(from.check(to), expected, "{from:?} -> {to:?}");
        }
        let resolutions = [
            (Resolution::Commit, Committed),
            (Resolution::Abort, Aborted),
            (Resolution::Leak, Leaked),
        ];
        for ((resolution, to), expected) in resolutions.into_iter().zip(&row[1..]) {
            assert_eq!(from.resolve(resolution), expected.map(|()| to), "{from:?} {resolution:?}");
        }
    }
}
