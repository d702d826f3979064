//! `cargo xtask platforms`: builds asx for every supported platform, and runs tests where this
//! machine can run them.
//!
//! For each of [`PLATFORMS`]:
//! 1. adds the target with rustup, if it is missing;
//! 2. runs clippy over the libraries and tests of the portable crates, with warnings as errors;
//! 3. installs the tools to run its programs (an emulator, a linker), builds tests and runs them.
//!
//! Steps 2 and 3 run beside each other, in two directories below `target`, because two builds in
//! one directory wait for its lock. The summary names each platform that was skipped, and why: its
//! target or tools cannot be installed.

use std::path::PathBuf;
use std::process::Command;

use crate::report::Verdict;
use crate::shell::{
    add_target, cargo, command, output, prefix, run as sh, set_prefix, target_dir, works,
};
use crate::{Result, apt};

/// The crates that are checked with all features and tests on every operating system. Clippy also
/// checks the crates they depend on, the lab for example, without their tests.
const PORTABLE: &str = "--all-features -p asx -p asx-kernel -p asx-journal -p asx-task -p asx-sync \
    -p asx-runtime -p asx-native -p asx-net";

/// The crates for wasm, where threads, sockets and signals are absent. Tests need threads.
const WASM: &str = "-p asx -p asx-kernel -p asx-journal -p asx-task -p asx-sync -p asx-runtime \
    -p asx-native -p asx-net -p asx-macros -p asx-trace -p asx-origin -p asx-lab -p asx-web";

/// Arguments of `cargo test` where programs run directly. One thread: some tests yield in a loop,
/// and two of those at a time take long on a busy machine.
const DIRECT_TESTS: &[&str] = &[
    "-p asx-kernel -p asx-task -p asx-sync -p asx-native -p asx-net --lib -- --test-threads=1",
    "-p asx-native -p asx-net --test portable -- --test-threads=1 --skip guests:: --skip serve::",
];

/// The same without tests of sockets, which musl passes on to the same system as glibc.
const MUSL_TESTS: &[&str] = &[
    "-p asx-kernel -p asx-task -p asx-sync -p asx-native --lib -- --test-threads=1",
    "-p asx-native --test portable -- --test-threads=1 --skip guests::",
];

/// The same under qemu, which runs them slowly.
const QEMU_TESTS: &[&str] = &[
    "-p asx-kernel -p asx-task -p asx-sync -p asx-native -p asx-net --lib -- --test-threads=1",
    "-p asx-native -p asx-net --test portable -- --test-threads=1 basic:: timers:: net:: tcp::",
];

/// The same under wine, without five tests that fail or time out there: resets arrive as an end,
/// closed ports are not reported, refused connections sometimes have no error (`SO_ERROR` is zero),
/// and a thousand connections are not served in 170 seconds. Whether wine or this host is the cause
/// has not been determined; they have not been run on Windows.
const WINE_TESTS: &[&str] = &[
    "-p asx-kernel -p asx-task -p asx-sync -p asx-native -p asx-net --lib -- --test-threads=1",
    "-p asx-native -p asx-net --test portable -- --test-threads=1 \
     basic:: timers:: stop:: tcp:: udp:: serve:: --skip a_reset_is_an_error \
     --skip hears_of_a_reset --skip a_port_that_nobody_is_at --skip a_thousand_connections \
     --skip errors_have_their_kinds",
];

/// The arguments of the stress program where it is run.
const STRESS: &str = "--seconds 20 --patience 120";

/// A platform that asx supports.
struct Platform {
    target: &'static str,
    /// Arguments of `cargo clippy` that select crates, features and tests.
    check: &'static [&'static str],
    /// How its programs are run; `None` if this project cannot run them.
    run: Option<Run>,
}

/// How the programs of a platform are run.
struct Run {
    /// The program that executes them, for the summary.
    with: &'static str,
    /// Debian packages, and a command that succeeds when they are installed.
    tools: fn() -> Tools,
    /// Variables for cargo, without the prefix `CARGO_TARGET_<TARGET>_`.
    variables: &'static [(&'static str, &'static str)],
    /// Arguments of `cargo test`.
    tests: &'static [&'static str],
    /// Prepares the tools after they are installed.
    prepare: fn() -> Result,
    /// Whether the stress program is run as well.
    stress: bool,
}

/// The tools that run programs of a platform.
struct Tools {
    packages: Vec<String>,
    /// True if they are installed.
    works: fn() -> bool,
}

const PLATFORMS: &[Platform] = &[
    Platform {
        target: "aarch64-apple-darwin",
        check: &[PORTABLE, "-p asx-stress --tests"],
        run: None,
    },
    Platform {
        target: "x86_64-pc-windows-gnu",
        // The stress program needs unix sockets.
        check: &[PORTABLE, "--tests"],
        run: Some(Run {
            with: "wine",
            tools: wine,
            variables: &[("RUNNER", "wine"), ("LINKER", "x86_64-w64-mingw32-gcc")],
            tests: WINE_TESTS,
            prepare: wine_prefix,
            stress: false,
        }),
    },
    Platform {
        target: "x86_64-unknown-freebsd",
        check: &[PORTABLE, "-p asx-stress --tests"],
        run: None,
    },
    Platform {
        target: "aarch64-unknown-linux-gnu",
        check: &[PORTABLE, "-p asx-stress --tests"],
        run: Some(Run {
            with: "qemu",
            tools: qemu,
            variables: &[
                ("RUNNER", "qemu-aarch64 -L /usr/aarch64-linux-gnu"),
                ("LINKER", "aarch64-linux-gnu-gcc"),
            ],
            tests: QEMU_TESTS,
            prepare: || Ok(()),
            stress: true,
        }),
    },
    Platform {
        target: "i686-unknown-linux-gnu",
        check: &[PORTABLE, "-p asx-stress --tests"],
        run: Some(Run {
            with: "this machine",
            tools: multilib,
            variables: &[],
            tests: DIRECT_TESTS,
            prepare: || Ok(()),
            stress: false,
        }),
    },
    Platform {
        target: "x86_64-unknown-linux-musl",
        check: &[PORTABLE, "-p asx-stress --tests"],
        run: Some(Run {
            with: "this machine",
            tools: no_tools,
            variables: &[],
            tests: MUSL_TESTS,
            prepare: || Ok(()),
            stress: false,
        }),
    },
    Platform {
        target: "aarch64-linux-android",
        check: &[PORTABLE, "-p asx-stress --tests"],
        run: None,
    },
    Platform { target: "wasm32-unknown-unknown", check: &[WASM], run: None },
];

impl Platform {
    /// The entry of the README's table.
    #[cfg(test)]
    fn status(&self) -> &'static str {
        if self.run.is_some() { "tests run" } else { "type-checked only" }
    }

    /// Clippy type-checks everything that `cargo check` does, so one pass serves for both.
    fn check(&self) -> Result {
        let mut clippy = build("clippy --quiet", self.target, "platforms/check");
        clippy.args(self.check.join(" ").split_whitespace());
        sh(clippy.args(["--", "-D", "warnings"]))
    }
}

impl Run {
    /// Installs the tools. The error is the reason to skip the tests.
    fn install(&self) -> Result {
        let Tools { packages, works } = (self.tools)();
        if !works() {
            apt::install(&packages.iter().map(String::as_str).collect::<Vec<_>>())?;
        }
        if !works() {
            return Err(format!("{} does not work", packages.join(", ")));
        }
        (self.prepare)()
    }

    /// Runs the tests, and the stress program.
    fn run(&self, target: &str) -> Result {
        for tests in self.tests {
            let mut test = self.cargo("test --quiet", target);
            sh(test.args(tests.split_whitespace()))?;
        }
        if self.stress {
            let mut stress = self.cargo("run --quiet -p asx-stress", target);
            // The program usually restarts itself as a child, which an emulator cannot do: this
            // variable makes it the child.
            stress.env("ASX_STRESS_INNER", "1").arg("--").args(STRESS.split_whitespace());
            // It prints a line for each program; the last lines are the summary.
            let text = output(&mut stress)?;
            let lines: Vec<&str> = text.lines().collect();
            println!("{}", lines[lines.len().saturating_sub(2)..].join("\n"));
        }
        Ok(())
    }

    /// A cargo command that links and runs programs with these tools.
    fn cargo(&self, line: &str, target: &str) -> Command {
        let mut command = build(line, target, "platforms");
        for (name, value) in self.variables {
            command.env(variable(target, name), value);
        }
        wine_variables(&mut command);
        command
    }
}

/// The name of a variable of cargo for a target.
fn variable(target: &str, name: &str) -> String {
    format!("CARGO_TARGET_{}_{name}", target.to_uppercase().replace('-', "_"))
}

/// A cargo command for a target that builds in a folder of the target directory. Nothing is built
/// twice, so debug information and incremental compilation only cost time.
fn build(line: &str, target: &str, folder: &str) -> Command {
    let mut command = cargo(line);
    command.args(["--target", target, "--target-dir"]).arg(target_dir().join(folder));
    command.env("CARGO_INCREMENTAL", "0");
    for profile in ["DEV", "TEST", "RELEASE"] {
        command.env(format!("CARGO_PROFILE_{profile}_DEBUG"), "0");
    }
    command
}

fn no_tools() -> Tools {
    Tools { packages: Vec::new(), works: || true }
}

fn wine() -> Tools {
    Tools {
        packages: ["wine", "wine64", "gcc-mingw-w64-x86-64-posix"].map(String::from).into(),
        works: || works("wine", &["--version"]) && works("x86_64-w64-mingw32-gcc", &["--version"]),
    }
}

/// Creates the directory of wine, and the library in it that older versions lack.
fn wine_prefix() -> Result {
    let prefix = wine_variables(&mut command("wine", &[]));
    std::fs::create_dir_all(&prefix).map_err(|error| format!("{}: {error}", prefix.display()))?;
    // The first start fills the directory.
    let mut start = command("wine", &["cmd", "/c", "exit"]);
    wine_variables(&mut start);
    sh(&mut start)?;
    let library = prefix.join("drive_c/windows/system32/bcryptprimitives.dll");
    if library.is_file() {
        return Ok(());
    }
    let source = "xtask/src/platforms/bcryptprimitives.c";
    let mut compile = command("x86_64-w64-mingw32-gcc", &["-Wall", "-O1", "-shared", source, "-o"]);
    sh(compile.arg(library).arg("-ladvapi32"))
}

/// Sets a separate directory for wine, returns it, and turns the diagnostics off.
fn wine_variables(command: &mut Command) -> PathBuf {
    let prefix = target_dir().join("platforms/wine");
    command.env("WINEPREFIX", &prefix).env("WINEDEBUG", "-all");
    prefix
}

fn qemu() -> Tools {
    Tools {
        packages: ["qemu-user", "gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"]
            .map(String::from)
            .into(),
        works: || {
            works("qemu-aarch64", &["--version"]) && works("aarch64-linux-gnu-gcc", &["--version"])
        },
    }
}

/// Libraries for 32 bits. The package `gcc-multilib` has them too, but conflicts with cross
/// compilers.
fn multilib() -> Tools {
    let version = output(&mut command("cc", &["-dumpversion"])).unwrap_or_default();
    let version = version.trim().split('.').next().unwrap_or_default();
    Tools {
        packages: vec![String::from("libc6-dev-i386"), format!("lib32gcc-{version}-dev")],
        works: || ["Scrt1.o", "libgcc_s.so"].into_iter().all(finds_32_bit),
    }
}

/// Whether the C compiler finds a file for 32 bits: it prints a path below `lib32` or `32`.
fn finds_32_bit(file: &str) -> bool {
    let found = command("cc", &["-m32", &format!("-print-file-name={file}")]).output();
    found.is_ok_and(|found| String::from_utf8_lossy(&found.stdout).contains("32/"))
}

/// `cargo xtask platforms [TARGET..]`: all platforms, or the named ones.
pub(crate) fn run(args: &[String]) -> Result {
    let known = |target: &String| PLATFORMS.iter().any(|platform| platform.target == target);
    if let Some(target) = args.iter().find(|target| !known(target)) {
        let targets: Vec<&str> = PLATFORMS.iter().map(|platform| platform.target).collect();
        return Err(format!("no platform `{target}`; platforms: {}", targets.join(", ")));
    }
    match verdict(|target| args.is_empty() || args.iter().any(|named| named == target)) {
        Verdict::Passed(note) => {
            println!("platforms: {note}");
            Ok(())
        }
        Verdict::Skipped(why) | Verdict::Failed(why) => Err(why),
    }
}

/// All platforms as a section of the test suite.
pub(crate) fn section() -> Verdict {
    verdict(|_| true)
}

/// Checks the selected platforms. After a failure the next platforms still run.
///
/// Clippy runs beside the tests, which mostly use one core.
fn verdict(is_selected: impl Fn(&str) -> bool) -> Verdict {
    let mut outcomes = Outcomes::default();
    let selected = PLATFORMS.iter().filter(|platform| is_selected(platform.target));
    let platforms: Vec<&Platform> =
        selected.filter(|platform| outcomes.has_target(platform)).collect();
    let (checks, runs) = std::thread::scope(|scope| {
        let prefix = prefix();
        let checks = scope.spawn(|| {
            set_prefix(prefix);
            platforms.iter().map(|platform| (platform.target, platform.check())).collect::<Vec<_>>()
        });
        let runs = platforms.iter().filter_map(|platform| {
            let run = platform.run.as_ref()?;
            Some((platform.target, run, run.install().map(|()| run.run(platform.target))))
        });
        let runs: Vec<_> = runs.collect();
        (checks.join(), runs)
    });
    match checks {
        Ok(checks) => {
            checks.into_iter().for_each(|(target, result)| outcomes.check(target, result))
        }
        Err(_) => outcomes.failed.push("the thread of the checks panicked".into()),
    }
    for (target, run, result) in runs {
        outcomes.run(target, run, result);
    }
    outcomes.verdict()
}

/// The results so far, as phrases for the summary.
#[derive(Default)]
struct Outcomes {
    checked: Vec<String>,
    tested: Vec<String>,
    skipped: Vec<String>,
    failed: Vec<String>,
}

impl Outcomes {
    /// Installs the target of a platform. Returns whether it can be checked.
    fn has_target(&mut self, platform: &Platform) -> bool {
        let target = platform.target;
        let added = add_target(target);
        if let Err(why) = &added {
            self.skipped.push(format!("{target} ({why})"));
        }
        added.is_ok()
    }

    fn check(&mut self, target: &str, result: Result) {
        match result {
            Ok(()) => self.checked.push(target.into()),
            Err(why) => self.failed.push(why),
        }
    }

    /// Adds the result of tests; the outer error says why the tools cannot be installed.
    fn run(&mut self, target: &str, run: &Run, result: Result<Result>) {
        match result {
            Ok(Ok(())) => self.tested.push(format!("{target} with {}", run.with)),
            Ok(Err(why)) => self.failed.push(why),
            Err(why) => self.skipped.push(format!("tests of {target} ({why})")),
        }
    }

    fn verdict(self) -> Verdict {
        let list = |name: &str, items: &[String]| match items {
            [] => String::new(),
            items => format!("{name}: {}; ", items.join(", ")),
        };
        let failed = list("failed", &self.failed);
        let skipped = list("skipped", &self.skipped);
        let tested = list("tests run", &self.tested);
        let checked = list("type-checked", &self.checked);
        let note = format!("{failed}{skipped}{tested}{checked}");
        let note = String::from(note.trim_end_matches("; "));
        if !self.failed.is_empty() {
            Verdict::Failed(note)
        } else if self.checked.is_empty() {
            Verdict::Skipped(note)
        } else {
            Verdict::Passed(note)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::root;
    use std::collections::BTreeMap;

    /// The rows of the README's table: the target in backticks, and the status.
    fn readme_rows(readme: &str) -> BTreeMap<&str, &str> {
        let (_, rest) = readme.split_once("## Platforms").expect("a section on platforms");
        let section = rest.split("\n## ").next().unwrap_or_default();
        let cells = section.lines().filter_map(|line| {
            let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
            let target = cells.next()?.split('`').nth(1)?;
            Some((target, cells.next()?))
        });
        cells.collect()
    }

    #[test]
    fn readme_table_and_platforms_agree() {
        let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
        let mut rows = readme_rows(&readme);
        // The full test run covers the host.
        assert_eq!(rows.remove("x86_64-unknown-linux-gnu"), Some("tests run"));
        rows.retain(|_, status| *status != "unsupported");
        let listed = PLATFORMS.iter().map(|platform| (platform.target, platform.status()));
        let statuses = rows.into_iter().map(|(target, status)| {
            // The emulator may follow in parentheses.
            (target, status.split(" (").next().unwrap_or_default())
        });
        assert_eq!(statuses.collect::<BTreeMap<_, _>>(), listed.collect());
    }

    #[test]
    fn readme_rows_are_read_from_their_section_only() {
        let readme = "| `a` | b |\n## Platforms\n\n| target | status |\n|---|---|\n| X (`x-y`) | \
                      tests run (qemu) |\n\n## Next\n| `c` | d |\n";
        assert_eq!(readme_rows(readme), BTreeMap::from([("x-y", "tests run (qemu)")]));
    }

    #[test]
    fn variables_are_named_as_cargo_reads_them() {
        let name = variable("x86_64-pc-windows-gnu", "RUNNER");
        assert_eq!(name, "CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER");
    }

    #[test]
    fn a_failure_fails_and_skipped_targets_are_named() {
        let skipped = || vec![String::from("a-b (no target)")];
        let mut outcomes = Outcomes { skipped: skipped(), ..Outcomes::default() };
        assert_eq!(outcomes.verdict(), Verdict::Skipped("skipped: a-b (no target)".into()));
        outcomes = Outcomes { skipped: skipped(), ..Outcomes::default() };
        outcomes.checked.push("c-d".into());
        let note = "skipped: a-b (no target); type-checked: c-d";
        assert_eq!(outcomes.verdict(), Verdict::Passed(note.into()));
        outcomes = Outcomes { skipped: skipped(), ..Outcomes::default() };
        outcomes.checked.push("c-d".into());
        outcomes.failed.push("e-f".into());
        assert!(matches!(outcomes.verdict(), Verdict::Failed(note) if note.contains("e-f")));
    }
}
