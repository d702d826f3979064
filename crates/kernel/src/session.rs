//! The law of a permit: it is resolved exactly once.
//!
//! The channel counts reserved slots but cannot tell one permit from another; whoever hands
//! permits out keeps a [`PermitState`] for each and asks it before touching the channel. A plain
//! permit may be dropped: that aborts it. A tracked one is an obligation: sending commits it,
//! aborting aborts it, each with a proof; dropping it leaks it, at that moment.

use crate::status::Status;

/// What a tracked permit dropped by user code panics with.
pub const LEAK_MESSAGE: &str = "OBLIGATION TOKEN LEAKED: SendPermit";

/// Where a permit is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PermitState {
    /// It holds a slot.
    Live,
    /// Its slot was filled.
    Sent,
    /// Its slot was given back.
    Aborted,
    /// It was tracked and dropped; its slot was given back.
    Leaked,
}

/// What happens to a permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PermitEvent {
    /// Its holder sends.
    Send,
    /// Its holder gives it back.
    Abort,
    /// A plain permit is dropped.
    Drop,
    /// A tracked permit is dropped.
    DropTracked(DropContext),
}

/// Who drops a tracked permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropContext {
    /// User code, in the ordinary course.
    User,
    /// A panic that is unwinding already.
    Unwinding,
    /// The runtime, dropping a future it completes by force.
    ForceCompleted,
}

/// How a permit's obligation ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resolution {
    /// Its duty was done.
    Commit,
    /// Its duty was called off.
    Abort,
    /// It was lost.
    Leak,
}

/// Proof that a permit was sent; only this law makes one.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub struct CommittedProof(());

/// Proof that a permit was given back; only this law makes one.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub struct AbortedProof(());

/// What the host does about a resolved permit.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub enum PermitEffect {
    /// Fill the slot. Committed even if the receiver turns out to be gone: the holder's duty is
    /// to send, not to be heard.
    Fill(CommittedProof),
    /// Give the slot back.
    Free(AbortedProof),
    /// Give the slot back, record the leak.
    Leak {
        /// Then panic with [`LEAK_MESSAGE`]; never while unwinding or in the runtime's own hands.
        panics: bool,
    },
}

impl PermitState {
    /// Resolves a live permit; a second resolution is refused with the code of the first, and
    /// nothing changes. A guard whose drop finds its permit resolved has nothing left to do.
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
    fn a_live_permit_takes_any_event_and_frees_or_fills_its_slot() {
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
