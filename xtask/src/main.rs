//! The development commands of the project; `cargo xtask help` lists them.

mod apt;
mod asan;
mod audit;

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
mod miri;

mod mutants;
mod nightly;
mod no_std;
mod platforms;

mod report;
mod shell;
mod stress;
mod tidy;
mod tsan;
mod valgrind;
mod web;

use std::process::ExitCode;

/// The result of a command. The error is one line, or empty if the reason was already printed.
type Result<T = ()> = std::result::Result<T, String>;

struct Subcommand {
    name: &'static str,
    usage: &'static str,
    about: &'static str,
    run: fn(&[String]) -> Result,
}

const SUBCOMMANDS: &[Subcommand] = &[
    Subcommand {
        name: "check",
        usage: "",
        about: "before a commit: the quick half",
        run: check::run,
    },
    Subcommand {
        name: "test",
        usage: "[--all | --rest | --list | SECTION..]",
        about: "the quick sections of the test suite; all; those that --all adds; or by name",
        run: ci::run,
    },
    Subcommand { name: "tidy", usage: "[ROOT]", about: "style and layout rules", run: tidy::run },
    Subcommand {
        name: "laws",
        usage: "",
        about: "write the list of shortcuts in docs/LAWS.md",
        run: tidy::shortcuts::run,
    },
    Subcommand { name: "lines", usage: "", about: "lines of code by crate", run: tidy::lines::run },
    Subcommand {
        name: "mutants",
        usage: "[--shard K/N] [--file GLOB] [--jobs J]",
        about: "mutation tests of the kernel",
        run: mutants::run,
    },
    Subcommand {
        name: "fuzz",
        usage: "[--seconds N] [TARGET]",
        about: "run the fuzz targets, or one",
        run: fuzz::run,
    },
    Subcommand {
        name: "determinism",
        usage: "[--seeds N]",
        about: "compare runs of the same seed in different processes",
        run: determinism::run,
    },
    Subcommand {
        name: "loom",
        usage: "",
        about: "every interleaving of the models",
        run: loom::run,
    },
    Subcommand {
        name: "asan",
        usage: "",
        about: "tests under the address sanitizer, leaks included",
        run: asan::run,
    },
    Subcommand {
        name: "tsan",
        usage: "[ARGS]",
        about: "native tests under the thread sanitizer; arguments go to cargo test",
        run: tsan::run,
    },
    Subcommand {
        name: "miri",
        usage: "[FILTERS]",
        about: "unit tests of the task core under Miri",
        run: miri::run,
    },
    Subcommand {
        name: "valgrind",
        usage: "[ARGS]",
        about: "tests under valgrind; arguments go to cargo test",
        run: valgrind::run,
    },
    Subcommand {
        name: "audit",
        usage: "",
        about: "tests and random programs, with a ledger of references",
        run: audit::run,
    },
    Subcommand {
        name: "stress",
        usage: "[--minutes N] [--asan | --tsan | --audit] [ARGS]",
        about: "random programs that use all of asx, for some time",
        run: stress::run,
    },
    Subcommand {
        name: "platforms",
        usage: "[TARGET..]",
        about: "check every supported platform, and run tests on those this machine can run",
        run: platforms::run,
    },
    Subcommand { name: "bare", usage: "", about: "build the kernel without std", run: no_std::run },
    Subcommand {
        name: "capi",
        usage: "[header | install --prefix DIR | sizes | test] [--embedded]",
        about: "the C library: build, make its header, install, measure, test",
        run: capi::run,
    },
    Subcommand {
        name: "web",
        usage: "[--serve | --test | --measure]",
        about: "build what runs in browsers; show, test or measure it",
        run: web::run,
    },
    Subcommand {
        name: "bench",
        usage: "[--lab] [ARGS]",
        about: "benchmarks, or those of the lab; arguments go to them",
        run: bench::run,
    },
    Subcommand {
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
    let Some(subcommand) = SUBCOMMANDS.iter().find(|subcommand| subcommand.name == name) else {
        eprintln!("xtask: unknown command `{name}`");
        help();
        return ExitCode::from(2);
    };
    match (subcommand.run)(&args[1..]) {
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
    println!("cargo xtask <command>\n");
    for Subcommand { name, usage, about, .. } in SUBCOMMANDS {
        println!("  {:<48} {about}", format!("{name} {usage}"));
    }
}

/// Refuses arguments for a command that takes none.
fn no_args(args: &[String]) -> Result {
    if args.is_empty() { Ok(()) } else { Err(format!("unexpected arguments: {args:?}")) }
}
