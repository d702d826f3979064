//! What a task can wait for.

/// What a task waits for, as dumps tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[non_exhaustive]
pub enum Wait {
    /// A slot in a channel.
    Reserve,
    /// A message.
    Recv,
    /// A lock or a permit.
    Lock,
    /// A notification, the others at a barrier, somebody's initialisation.
    Signal,
    /// A point in time.
    Time,
    /// The end of a task.
    Join,
    /// The close of a scope.
    Scope,
    /// To be cancelled.
    Cancel,
}

impl Wait {
    pub(crate) const ALL: [Wait; 8] = [
        Wait::Reserve,
        Wait::Recv,
        Wait::Lock,
        Wait::Signal,
        Wait::Time,
        Wait::Join,
        Wait::Scope,
        Wait::Cancel,
    ];

    /// As dumps say it.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Wait::Reserve => "a slot in a channel",
            Wait::Recv => "a message",
            Wait::Lock => "a lock or permit",
            Wait::Signal => "a signal",
            Wait::Time => "a point in time",
            Wait::Join => "the end of a task",
            Wait::Scope => "the close of a scope",
            Wait::Cancel => "its cancel",
        }
    }
}

/// One of the two sides of something that tasks wait at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// That of senders, setters, and those who notify.
    Sends,
    /// That of receivers.
    Receives,
}

/// What tasks wait at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thing {
    /// A channel whose messages each go to one receiver.
    Channel,
    /// A value that is watched.
    Watch,
    /// A channel whose messages go to all receivers.
    Broadcast,
    /// A notification.
    Notify,
}
