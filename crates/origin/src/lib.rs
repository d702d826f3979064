//! Build provenance of a program: compiler, commit and lockfile.
//!
//! ```text
//! build script: emit() -> build variables -> origin!() in the program -> Origin -> records
//! ```
//!
//! The program's own build script calls [`emit`], because only there the lockfile of the build is
//! known. The result depends only on the compiler, the commit and the lockfile, and not on time,
//! location or user. Builds with the same three are identical.

mod build;

pub use build::emit;

/// The value of an item that is unknown: the build is outside a repository, or the compiler does
/// not report it.
pub const UNKNOWN: &str = "unknown";

/// The provenance of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The compiler.
    pub toolchain: Toolchain,
    /// The target triple.
    pub target: &'static str,
    /// The commit that was checked out, or [`UNKNOWN`].
    pub source_commit: &'static str,
    /// The lockfile.
    pub lockfile: Lockfile,
}

/// A compiler, as reported by `rustc -vV`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Toolchain {
    /// The release, for example `1.95.0`.
    pub release: &'static str,
    /// The commit it was built from, or [`UNKNOWN`].
    pub commit_hash: &'static str,
    /// The host triple, for example `x86_64-unknown-linux-gnu`.
    pub host: &'static str,
}

/// The `Cargo.lock` of the build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lockfile {
    /// The SHA-256 hash in hexadecimal.
    pub sha256: &'static str,
    /// The size in bytes.
    pub size: &'static str,
    /// Whether the repository tracks the file: `true` or `false`.
    pub tracked: &'static str,
}

/// Returns the [`Origin`] of a program. Its build script must call [`emit`].
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
