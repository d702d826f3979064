//! What a program was built from and with: compiler, commit, lockfile.
//!
//! ```text
//! build.rs of a program: emit() -> variables of the build -> origin!() in it -> Origin -> records
//! ```
//!
//! A program's own build script calls [`emit`], for only there is the lockfile known that it was
//! built with. What comes of it depends on the compiler, the commit and the lockfile alone, never
//! on time, place or user: the same of them give the same program.

mod look;

pub use look::emit;

/// What there is to say when a build can't know: outside a repository, or with a compiler that
/// does not tell.
pub const UNKNOWN: &str = "unknown";

/// What a program was built from and with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The compiler.
    pub toolchain: Toolchain,
    /// What it was built for.
    pub target: &'static str,
    /// The commit that was checked out, or [`UNKNOWN`].
    pub source_commit: &'static str,
    /// The lockfile.
    pub lockfile: Lockfile,
}

/// A compiler, as it tells of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Toolchain {
    /// Its release, as `1.95.0`.
    pub release: &'static str,
    /// The commit it was built from, or [`UNKNOWN`].
    pub commit_hash: &'static str,
    /// The machine it runs on, as `x86_64-unknown-linux-gnu`.
    pub host: &'static str,
}

/// The file with the versions of all dependencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lockfile {
    /// Its hash, in hexadecimal.
    pub sha256: &'static str,
    /// Its size in bytes.
    pub size: &'static str,
    /// Whether the repository has it: `true` or `false`.
    pub tracked: &'static str,
}

/// The [`Origin`] of the program whose build script has called [`emit`].
#[macro_export]
macro_rules! origin {
    () => {
        $crate::Origin {
            toolchain: $crate::Toolchain {
                release: env!("ASX_ORIGIN_RELEASE"),
                commit_hash: env!("ASX_ORIGIN_COMPILER_COMMIT"),
                host: env!("ASX_ORIGIN_HOST"),
            },
            target: env!("ASX_ORIGIN_TARGET"),
            source_commit: env!("ASX_ORIGIN_COMMIT"),
            lockfile: $crate::Lockfile {
                sha256: env!("ASX_ORIGIN_LOCK_SHA256"),
                size: env!("ASX_ORIGIN_LOCK_SIZE"),
                tracked: env!("ASX_ORIGIN_LOCK_TRACKED"),
            },
        }
    };
}
