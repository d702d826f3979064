//! Host capabilities: the facilities granted to an adapter, and the error for the others.

use crate::named::ensure;
use crate::status::Status;

named_enum! {
    /// A host facility, which can be used only if it is granted.
    #[derive(PartialOrd, Ord)]
    pub enum Capability {
        /// Reading the clock.
        Clock => "clock",
        /// Drawing randomness.
        Entropy => "entropy",
        /// Arming host timers (`setTimeout`).
        Timer => "timer",
        /// Posting a message to this page (`MessageChannel`).
        Post => "post",
        /// Queueing a microtask.
        Microtask => "microtask",
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
pub struct Capabilities(u16);

impl Capabilities {
    /// Creates an empty set.
    pub const fn none() -> Capabilities {
        Capabilities(0)
    }

    /// Creates the set of all capabilities.
    pub fn all() -> Capabilities {
        Capabilities((1 << Capability::ALL.len()) - 1)
    }

    /// Adds `capability`.
    pub fn grant(&mut self, capability: Capability) {
        self.0 |= capability.mask();
    }

    /// Removes `capability`.
    pub fn revoke(&mut self, capability: Capability) {
        self.0 &= !capability.mask();
    }

    /// Whether `capability` is granted.
    pub const fn has(self, capability: Capability) -> bool {
        self.0 & capability.mask() != 0
    }

    /// Checks that `capability` is granted. Every host call is checked; `site` names the caller.
    pub fn require(self, capability: Capability, site: &'static str) -> Result<(), Denied> {
        ensure(self.has(capability), Denied { capability, provenance: site })
    }
}

/// The error for a host facility that is not granted. No other facility was used instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Denied {
    /// The required capability.
    pub capability: Capability,
    /// The code that requires it.
    pub provenance: &'static str,
}

errors! {
    Denied {
        Denied { capability, provenance } => Status::CapabilityDenied,
            "{} capability denied to {provenance}", capability.name();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::Coded;
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
    fn a_denial_names_the_capability_and_the_caller() {
        for c in Capability::ALL {
            assert_eq!(Capabilities::all().require(c, "x"), Ok(()));
            let denied = Capabilities::none().require(c, "site").unwrap_err();
            assert_eq!(denied, Denied { capability: c, provenance: "site" });
            assert_eq!(denied.status(), Status::CapabilityDenied);
            assert!(denied.to_string().contains(c.name()) && denied.to_string().contains("site"));
        }
    }
}
