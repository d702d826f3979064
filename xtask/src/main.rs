//! The chores of the project: `cargo xtask help`.

mod apt;
mod audit;
mod bare;
mod bench;
mod capi;
mod check;
mod ci;
mod conform;
mod deny;
mod determinism;
mod fuzz;
mod instructions;
mod loom;
mod memory;
mod mutants;
mod nightly;
mod platforms;
mod races;
mod report;
mod shell;
mod stress;
mod tidy;
mod web;

use std::process::ExitCode;

/// What a chore answers: `Err` says in one line what went wrong, or nothing when that was said.
type Result<T = ()> = std::result::Result<T, String>;

struct Chore {
    name: &'static str,
    usage: &'static str,
    about: &'static str,
    run: fn(&[String]) -> Result,
}

const CHORES: &[Chore] = &[
    Chore { name: "check", usage: "", about: "before a commit: the quick half", run: check::run },
    Chore {
        name: "test",
        usage: "[--all | --rest | --list | SECTION..]",
        about: "the quick sections of the test suite; all; those that --all adds; or by name",
        run: ci::run,
    },
    Chore { name: "tidy", usage: "[ROOT]", about: "style and layout rules", run: tidy::run },
    Chore {
        name: "laws",
        usage: "",
        about: "write the list of shortcuts in docs/LAWS.md",
        run: tidy::shortcuts::run,
    },
    Chore { name: "lines", usage: "", about: "lines of code by crate", run: tidy::lines::run },
    Chore {
        name: "mutants",
        usage: "[--shard K/N] [--file GLOB] [--jobs J]",
        about: "mutation tests of the kernel",
        run: mutants::run,
    },
    Chore {
        name: "fuzz",
        usage: "[--seconds N] [TARGET]",
        about: "run the fuzz targets, or one",
        run: fuzz::run,
    },
    Chore {
        name: "determinism",
        usage: "[--seeds N]",
        about: "the same seed, the same run, in whatever process",
        run: determinism::run,
    },
    Chore { name: "loom", usage: "", about: "every interleaving of the models", run: loom::run },
    Chore {
        name: "asan",
        usage: "",
        about: "tests under the address sanitizer, leaks included",
        run: memory::asan,
    },
    Chore {
        name: "tsan",
        usage: "[ARGS]",
        about: "native tests under the thread sanitizer; arguments go to cargo test",
        run: races::tsan,
    },
    Chore {
        name: "miri",
        usage: "[FILTERS]",
        about: "unit tests of the task core under Miri",
        run: races::miri,
    },
    Chore {
        name: "valgrind",
        usage: "[ARGS]",
        about: "tests under valgrind; arguments go to cargo test",
        run: memory::valgrind,
    },
    Chore {
        name: "audit",
        usage: "",
        about: "tests and random programs, with books of who owns what",
        run: audit::run,
    },
    Chore {
        name: "stress",
        usage: "[--minutes N] [--asan | --tsan | --audit] [ARGS]",
        about: "random programs over everything, for a while",
        run: stress::run,
    },
    Chore {
        name: "platforms",
        usage: "[TARGET..]",
        about: "check every supported platform, and run tests on those this machine can run",
        run: platforms::run,
    },
    Chore { name: "bare", usage: "", about: "build the kernel without std", run: bare::run },
    Chore {
        name: "capi",
        usage: "[header | install --prefix DIR | sizes | test] [--embedded]",
        about: "the C library: build, make its header, install, measure, test",
        run: capi::run,
    },
    Chore {
        name: "web",
        usage: "[--serve | --test | --measure]",
        about: "build what runs in browsers; show, test or measure it",
        run: web::run,
    },
    Chore {
        name: "bench",
        usage: "[--lab] [ARGS]",
        about: "benchmarks, or those of the lab; arguments go to them",
        run: bench::run,
    },
    Chore {
        name: "instructions",
        usage: "[--bless] [--tokio] [PROGRAM..]",
        about: "instructions per operation, compared with the baseline",
        run: instructions::run,
    },
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let name = args.first().map_or("help", String::as_str);
    if matches!(name, "help" | "--help" | "-h") {
        help();
        return ExitCode::SUCCESS;
    }
    let Some(chore) = CHORES.iter().find(|chore| chore.name == name) else {
        eprintln!("xtask: there is no chore `{name}`");
        help();
        return ExitCode::from(2);
    };
    match (chore.run)(&args[1..]) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            if !why.is_empty() {
                eprintln!("xtask {name}: {why}");
            }
            ExitCode::FAILURE
        }
    }
}

fn help() {
    println!("cargo xtask <chore>\n");
    for Chore { name, usage, about, .. } in CHORES {
        println!("  {:<48} {about}", format!("{name} {usage}"));
    }
}

/// Refuses arguments where a chore takes none.
fn no_args(args: &[String]) -> Result {
    if args.is_empty() { Ok(()) } else { Err(format!("unexpected arguments: {args:?}")) }
}
