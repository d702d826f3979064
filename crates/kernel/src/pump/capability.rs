//! Host capabilities: what the adapter was given, and the refusal when it was not.

use crate::status::{Coded, Status};
use core::fmt;

/// One host facility. There is no other way to reach it than through its grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Capability {
    /// Reading the clock.
    Clock,
    /// Drawing randomness.
    Entropy,
    /// Arming host timers (`setTimeout`).
    Timer,
    /// Posting a message to oneself (`MessageChannel`).
    Post,
    /// Queueing a microtask.
    Microtask,
}

impl Capability {
    /// Every capability.
    pub const ALL: [Capability; 5] = [
        Capability::Clock,
        Capability::Entropy,
        Capability::Timer,
        Capability::Post,
        Capability::Microtask,
    ];

    /// The name written in files and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Capability::Clock => "clock",
            Capability::Entropy => "entropy",
            Capability::Timer => "timer",
            Capability::Post => "post",
            Capability::Microtask => "microtask",
        }
    }

    /// The capability with this name.
    pub fn from_name(name: &str) -> Option<Capability> {
        Capability::ALL.into_iter().find(|c| c.name() == name)
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// The set of capabilities granted to an adapter.
///
/// ```
/// use asx_kernel::pump::{Capabilities, Capability};
/// let mut granted = Capabilities::none();
/// granted.grant(Capability::Clock);
/// assert!(granted.require(Capability::Clock, "my clock").is_ok());
/// let denied = granted.require(Capability::Timer, "my timer").unwrap_err();
/// assert_eq!(denied.to_string(), "timer capability denied to my timer");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Capabilities(u8);

impl Capabilities {
    /// Nothing granted.
    pub const fn none() -> Capabilities {
        Capabilities(0)
    }

    /// Everything granted.
    pub fn all() -> Capabilities {
        let mut set = Capabilities::none();
        Capability::ALL.into_iter().for_each(|c| set.grant(c));
        set
    }

    /// Adds `capability`.
    pub fn grant(&mut self, capability: Capability) {
        self.0 |= capability.bit();
    }

    /// Takes `capability` away.
    pub fn revoke(&mut self, capability: Capability) {
        self.0 &= !capability.bit();
    }

    /// Whether `capability` is granted.
    pub const fn has(self, capability: Capability) -> bool {
        self.0 & capability.bit() != 0
    }

    /// The check every host call passes first; `site` says who wanted it.
    pub fn require(self, capability: Capability, site: &'static str) -> Result<(), Denied> {
        if self.has(capability) { Ok(()) } else { Err(Denied { capability, provenance: site }) }
    }
}

/// A host facility was wanted and is not granted. Nothing was called in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Denied {
    /// What was wanted.
    pub capability: Capability,
    /// Who wanted it.
    pub provenance: &'static str,
}

impl Coded for Denied {
    fn status(&self) -> Status {
        Status::CapabilityDenied
    }
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} capability denied to {}", self.capability.name(), self.provenance)
    }
}

impl core::error::Error for Denied {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn each_capability_is_granted_and_revoked_alone() {
        for c in Capability::ALL {
            let mut one = Capabilities::none();
            one.grant(c);
            let mut rest = Capabilities::all();
            rest.revoke(c);
            for other in Capability::ALL {
                assert!(Capabilities::all().has(other) && !Capabilities::none().has(other));
                assert_eq!(one.has(other), other == c);
                assert_eq!(rest.has(other), other != c);
            }
            one.grant(c);
            assert!(one.has(c));
            one.revoke(c);
            one.revoke(c);
            assert_eq!(one, Capabilities::none());
            assert_eq!(Capability::from_name(c.name()), Some(c));
        }
        assert_eq!(Capability::from_name("Clock"), None);
        let names = Capability::ALL.map(Capability::name);
        assert_eq!(names, ["clock", "entropy", "timer", "post", "microtask"]);
    }

    #[test]
    fn a_denial_names_the_capability_and_who_wanted_it() {
        for c in Capability::ALL {
            assert_eq!(Capabilities::all().require(c, "x"), Ok(()));
            let denied = Capabilities::none().require(c, "site").unwrap_err();
            assert_eq!(denied, Denied { capability: c, provenance: "site" });
            assert_eq!(denied.status(), Status::CapabilityDenied);
            assert!(denied.to_string().contains(c.name()) && denied.to_string().contains("site"));
        }
    }
}
