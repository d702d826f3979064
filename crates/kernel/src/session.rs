//! The law of a permit: it is resolved exactly once.
//!
//! The channel counts reserved slots but cannot distinguish permits. The owner of the permits
//! therefore keeps a [`PermitState`] for each and consults it before changing the channel. Dropping
//! a plain permit aborts it. A tracked permit is an obligation: sending commits it and aborting
//! aborts it, each with a proof; dropping it leaks it immediately.

use crate::status::Status;

/// The panic message when user code drops a tracked permit.
pub const LEAK_MESSAGE: &str = "OBLIGATION TOKEN LEAKED: SendPermit";

/// The state of a permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PermitState {
    /// It holds a slot.
    Live,
    /// Its slot was filled.
    Sent,
    /// Its slot was released.
    Aborted,
    /// It was tracked and dropped; its slot was released.
    Leaked,
}

/// An event of a permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PermitEvent {
    /// The holder sends.
    Send,
    /// The holder aborts.
    Abort,
    /// A plain permit is dropped.
    Drop,
    /// A tracked permit is dropped.
    DropTracked(DropContext),
}

/// The context in which a tracked permit is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropContext {
    /// User code.
    User,
    /// The unwinding of a panic.
    Unwinding,
    /// The runtime, which drops the future of an aborted task.
    ForceCompleted,
}

/// The way in which a permit's obligation ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resolution {
    /// It was fulfilled.
    Commit,
    /// It was withdrawn.
    Abort,
    /// It was lost.
    Leak,
}

/// Proof that a permit was sent; only this law creates one.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub struct CommittedProof(());

/// Proof that a permit was aborted; only this law creates one.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub struct AbortedProof(());

/// The host's action for a resolved permit.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub enum PermitEffect {
    /// Fill the slot. The permit is committed even if the receiver turns out to be closed: the
    /// obligation is to send, not to be received.
    Fill(CommittedProof),
    /// Release the slot.
    Free(AbortedProof),
    /// Release the slot and record the leak.
    Leak {
        /// Whether to panic with [`LEAK_MESSAGE`] then; never while unwinding or in the runtime.
        panics: bool,
    },
}

impl PermitState {
    /// Resolves a live permit. A second resolution is refused with the status of the first and
    /// changes nothing. Dropping the guard of a resolved permit does nothing.
    pub fn resolve(self, event: PermitEvent) -> Result<(PermitState, PermitEffect), Status> {
        use PermitState::*;
        match (self, event) {
            (Sent | Aborted, _) => Err(Status::ObligationAlreadyResolved),
            (Leaked, _) => Err(Status::ObligationLeaked),
            (Live, PermitEvent::Send) => Ok((Sent, PermitEffect::Fill(CommittedProof(())))),
            (Live, PermitEvent::Abort | PermitEvent::Drop) => {
                Ok((Aborted, PermitEffect::Free(AbortedProof(()))))
            }
            (Live, PermitEvent::DropTracked(context)) => {
                Ok((Leaked, PermitEffect::Leak { panics: context == DropContext::User }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENTS: [PermitEvent; 6] = [
        PermitEvent::Send,
        PermitEvent::Abort,
        PermitEvent::Drop,
        PermitEvent::DropTracked(DropContext::User),
        PermitEvent::DropTracked(DropContext::Unwinding),
        PermitEvent::DropTracked(DropContext::ForceCompleted),
    ];

    #[test]
    fn a_live_permit_accepts_any_event_and_frees_or_fills_its_slot() {
        let free = || PermitEffect::Free(AbortedProof(()));
        let expected = [
            (PermitState::Sent, PermitEffect::Fill(CommittedProof(()))),
            (PermitState::Aborted, free()),
            (PermitState::Aborted, free()),
            (PermitState::Leaked, PermitEffect::Leak { panics: true }),
            (PermitState::Leaked, PermitEffect::Leak { panics: false }),
            (PermitState::Leaked, PermitEffect::Leak { panics: false }),
        ];
        for (event, expected) in EVENTS.into_iter().zip(expected) {
            assert_eq!(PermitState::Live.resolve(event), Ok(expected), "{event:?}");
        }
    }

    #[test]
    fn a_second_resolution_is_refused_with_the_code_of_the_first() {
        for event in EVENTS {
            let again = |state: PermitState| state.resolve(event).err();
            assert_eq!(again(PermitState::Sent), Some(Status::ObligationAlreadyResolved));
            assert_eq!(again(PermitState::Aborted), Some(Status::ObligationAlreadyResolved));
            assert_eq!(again(PermitState::Leaked), Some(Status::ObligationLeaked));
        }
    }

    #[test]
    fn the_panic_message_is_frozen() {
        assert_eq!(LEAK_MESSAGE, "OBLIGATION TOKEN LEAKED: SendPermit");
    }
}
