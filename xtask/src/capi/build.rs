//! Building and installing.
//!
//! rustc makes a static library without std. What of it is needed is linked into one object, in
//! which every symbol but `asx_*` is made local; that object is both libraries. So neither has
//! anything to say to the program it is linked into but what the header says.

use crate::Result;
use crate::shell::{cargo, command, output, root, run as sh, target_dir};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// What a program linked against the shared library asks for.
pub(super) const SONAME: &str = "libasx.so.0";
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// One way to build the library.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Build {
    /// As it is shipped.
    Full,
    /// For small machines: without journal, names and dumps.
    Embedded,
}

impl Build {
    pub(super) const ALL: [Build; 2] = [Build::Full, Build::Embedded];

    pub(super) fn name(self) -> &'static str {
        match self {
            Build::Full => "full",
            Build::Embedded => "embedded",
        }
    }

    fn features(self) -> &'static str {
        match self {
            Build::Full => "full",
            Build::Embedded => "",
        }
    }

    /// The profile of cargo, which is also its folder.
    fn profile(self) -> &'static str {
        match self {
            Build::Full => "capi",
            Build::Embedded => "capi-embedded",
        }
    }

    fn folder(self) -> &'static str {
        match self {
            Build::Full => "lib",
            Build::Embedded => "lib-embedded",
        }
    }

    /// Nothing unwinds: the tables would only take room. The full build is for size, but not
    /// without inlining: the short ways through the boundary are worth their bytes. In the embedded
    /// one nothing is, and code that is the same in several places becomes a function.
    fn flags(self) -> &'static str {
        match self {
            Build::Full => "-C force-unwind-tables=no -C llvm-args=-inline-threshold=120",
            Build::Embedded => {
                "-C force-unwind-tables=no -C llvm-args=-enable-machine-outliner=always"
            }
        }
    }
}

/// The library, built.
pub(super) struct Built {
    pub(super) build: Build,
    pub(super) folder: PathBuf,
    /// Every function, sorted.
    pub(super) functions: Vec<String>,
    pub(super) static_size: u64,
    pub(super) shared_size: u64,
}

impl Built {
    /// The one object that is both libraries.
    pub(super) fn object(&self) -> PathBuf {
        self.folder.join("asx.o")
    }
}

impl fmt::Display for Built {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kib = |size: u64| size.div_ceil(1024);
        write!(
            f,
            "{}: {} functions, static library {} KiB, shared library (stripped) {} KiB",
            self.build.name(),
            self.functions.len(),
            kib(self.static_size),
            kib(self.shared_size)
        )
    }
}

/// Where sources of the library are.
pub(super) fn sources() -> PathBuf {
    root().join("crates/capi")
}

/// Builds both libraries.
pub(super) fn library(how: Build) -> Result<Built> {
    let target = target_dir().join("capi");
    let mut build = cargo("rustc --quiet -p asx-capi --no-default-features --lib");
    build.args(["--features", how.features(), "--profile", how.profile()]);
    build.args(["--crate-type", "staticlib", "--target-dir"]).arg(&target);
    sh(build.env("RUSTFLAGS", how.flags()))?;
    let folder = target.join(how.folder());
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let archive = target.join(how.profile()).join("libasx_capi.a");
    let functions = exported(&archive)?;
    let object = folder.join("asx.o");
    let mut link = command("ld", &["-r", "--gc-sections", "-o"]);
    link.arg(&object);
    for function in &functions {
        link.args(["-u", function]);
    }
    sh(link.arg(&archive))?;
    sh(command("objcopy", &["-w", "--keep-global-symbol=asx_*"]).arg(&object))?;
    if how == Build::Embedded {
        // The precompiled `core` has tables for unwinding all the same.
        sh(command("objcopy", &["-R", ".eh_frame", "-R", ".rela.eh_frame"]).arg(&object))?;
    }
    let fixed = folder.join("libasx.a");
    let shared = folder.join(SONAME);
    let _ = fs::remove_file(&fixed);
    sh(command("ar", &["rcsD"]).arg(&fixed).arg(&object))?;
    let mut link = command("cc", &["-shared", "-Wl,--gc-sections,-z,relro,-z,now"]);
    link.arg(format!("-Wl,-soname,{SONAME}")).arg("-o").arg(&shared).arg(&object);
    sh(link.arg("-lpthread"))?;
    sh(command("strip", &["--strip-unneeded"]).arg(&shared))?;
    let size = |path: &Path| fs::metadata(path).map(|data| data.len()).unwrap_or(0);
    let static_size = size(&fixed);
    let shared_size = size(&shared);
    Ok(Built { build: how, folder, functions, static_size, shared_size })
}

fn exported(archive: &Path) -> Result<Vec<String>> {
    let listed = output(command("nm", &["--defined-only"]).arg(archive))?;
    let mut names: Vec<String> = listed
        .lines()
        .filter_map(|line| line.split_once(" T "))
        .map(|(_, name)| name.to_owned())
        .filter(|name| name.starts_with("asx_"))
        .collect();
    names.sort();
    names.dedup();
    if names.is_empty() { Err(String::from("the library exports nothing")) } else { Ok(names) }
}

/// Builds, and copies what a program needs below `prefix`.
pub(super) fn install(prefix: &Path, how: Build) -> Result {
    let built = library(how)?;
    println!("{built}");
    install_from(&built, prefix)
}

pub(super) fn install_from(built: &Built, prefix: &Path) -> Result {
    let io = |error: std::io::Error| format!("{}: {error}", prefix.display());
    let prefix = std::path::absolute(prefix).map_err(io)?;
    let include = prefix.join("include");
    let lib = prefix.join("lib");
    let packages = lib.join("pkgconfig");
    let cmake = lib.join("cmake/asx");
    for folder in [&include, &packages, &cmake] {
        fs::create_dir_all(folder).map_err(io)?;
    }
    let copy = |from: &Path, to: PathBuf| fs::copy(from, to).map(|_| ()).map_err(io);
    for header in ["asx.h", "asx.hpp"] {
        copy(&sources().join("include").join(header), include.join(header))?;
    }
    copy(&built.folder.join("libasx.a"), lib.join("libasx.a"))?;
    copy(&built.folder.join(SONAME), lib.join(SONAME))?;
    let link = lib.join("libasx.so");
    let _ = fs::remove_file(&link);
    std::os::unix::fs::symlink(SONAME, link).map_err(io)?;
    let fill = |name: &str, to: PathBuf| {
        let text = fs::read_to_string(sources().join("cmake").join(name)).map_err(io)?;
        let text = text.replace("@PREFIX@", &prefix.to_string_lossy());
        fs::write(to, text.replace("@VERSION@", VERSION)).map_err(io)
    };
    fill("asx.pc.in", packages.join("asx.pc"))?;
    fill("asxConfigVersion.cmake.in", cmake.join("asxConfigVersion.cmake"))?;
    copy(&sources().join("cmake/asxConfig.cmake"), cmake.join("asxConfig.cmake"))
}
