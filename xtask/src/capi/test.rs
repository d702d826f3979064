//! The tests in C: two compilers, two levels of optimisation, sanitizers, valgrind, consumers.

use super::build::{Build, Built, SONAME, install_from, library, sources};
use super::{abuse, answers, panics, sizes};
use crate::check::others;
use crate::shell::{cargo, command, output, root, run as sh, target_dir, works};
use crate::{Result, apt};
use std::fs;
use std::path::Path;
use std::process::Command;

/// A stripped program must be smaller.
const MOST_BYTES: u64 = 228 * 1024;

const TESTS: [&str; 15] = [
    "basics",
    "leaks",
    "replay",
    "errors",
    "storage",
    "watchdogs",
    "ends",
    "quiet",
    "handles",
    "threads",
    "hooks",
    "profiles",
    "pools",
    "ghosts",
    "memory",
];
/// Those that say nothing about what the full build has and this one lacks.
const EMBEDDED: [&str; 14] = [
    "embedded",
    "basics",
    "leaks",
    "names",
    "watchdogs",
    "ends",
    "quiet",
    "handles",
    "threads",
    "hooks",
    "profiles",
    "pools",
    "ghosts",
    "memory",
];
const EXAMPLES: [&str; 4] = ["sensor", "pipeline", "market", "guide"];
/// Programs that are made, not written.
const MADE: [&str; 4] = ["abuse", "answers", "fixtures", "first"];
const VALGRIND: &str = "--quiet --error-exitcode=9 --leak-check=full --fair-sched=yes";

/// One way to compile.
struct Way {
    name: &'static str,
    flags: &'static [&'static str],
}

const WAYS: [Way; 3] = [
    Way { name: "O0", flags: &["-O0", "-g"] },
    Way { name: "O2", flags: &["-O2"] },
    Way {
        name: "sanitized",
        flags: &["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
    },
];

/// Everything; answers a line about what was done and what was not.
pub(super) fn run() -> Result<String> {
    let built = library(Build::Full)?;
    println!("{built}");
    symbols(&built)?;
    let reviewed = panics::check(&built.object())?;
    let folder = target_dir().join("capi/tests");
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let cases = abuse::generate(&folder.join("abuse.c"))?;
    answers::generate(&folder.join("answers.c"))?;
    fixtures(&folder.join("fixtures.c"))?;
    guide(&folder.join("first.c"))?;
    let mut skipped = Vec::new();
    let mut programs = 0;
    let compilers = [("gcc", "g++", &["gcc", "g++"][..]), ("clang", "clang++", &CLANG)];
    for (c, cpp, packages) in compilers {
        match have(c, packages) {
            Ok(()) => programs += suite(&built, &folder, c, cpp)?,
            Err(why) => skipped.push(format!("{c}: {why}")),
        }
    }
    match have("valgrind", &["valgrind"]) {
        Ok(()) => under_valgrind(&folder)?,
        Err(why) => skipped.push(format!("valgrind: {why}")),
    }
    let consumer = consumer_size(&folder)?;
    let embedded = embedded(&folder)?;
    skipped.extend(consumers(&built, &folder)?);
    let skipped = match skipped.is_empty() {
        true => String::new(),
        false => format!("; skipped: {}", skipped.join(", ")),
    };
    Ok(format!(
        "{built}; {programs} programs ran, {cases} abuse cases, {reviewed} functions reviewed for \
         panics, stripped consumer {} KiB; {embedded}{skipped}",
        consumer.div_ceil(1024)
    ))
}

/// The embedded build: it has every function, its programs are small, and they run.
fn embedded(folder: &Path) -> Result<String> {
    let built = library(Build::Embedded)?;
    println!("{built}");
    symbols(&built)?;
    panics::check(&built.object())?;
    for way in &WAYS {
        for name in EMBEDDED {
            let source = sources().join(format!("tests/c/{name}.c"));
            let program = folder.join(format!("{name}-{}-embedded", way.name));
            compile(&built, "gcc", C99, way, &source, &program)?;
            sh(&mut Command::new(program))?;
        }
    }
    let (program, library) = sizes::check(&built)?;
    Ok(format!("embedded: programs up to {program} bytes of text, all of it {library}"))
}

const CLANG: [&str; 2] = ["clang", "libclang-rt-dev"];

fn have(program: &str, packages: &[&str]) -> Result {
    if works(program, &["--version"]) { Ok(()) } else { apt::install(packages) }
}

/// What the libraries show of themselves: the header's functions, nothing else, and the name.
fn symbols(built: &Built) -> Result {
    let header = fs::read_to_string(sources().join("include/asx.h")).map_err(|e| e.to_string())?;
    let mut declared: Vec<String> =
        abuse::functions(&header).into_iter().map(|function| function.name).collect();
    declared.sort();
    let listed = |library: &str, flags: &[&str]| {
        let text = output(command("nm", flags).arg(built.folder.join(library)))?;
        let names = text.lines().filter_map(|line| line.rsplit_once(' '));
        let mut names: Vec<String> = names.map(|(_, name)| name.to_owned()).collect();
        names.sort();
        Ok::<_, String>(names)
    };
    let shared = listed(SONAME, &["-D", "--defined-only"])?;
    let fixed = listed("libasx.a", &["-g", "--defined-only"])?;
    for (what, names) in [("shared", &shared), ("static", &fixed)] {
        if *names != declared {
            let odd: Vec<_> = names.iter().filter(|name| !declared.contains(name)).collect();
            let missing: Vec<_> = declared.iter().filter(|name| !names.contains(name)).collect();
            return Err(format!("the {what} library shows {odd:?} and lacks {missing:?}"));
        }
    }
    let dynamic = output(command("readelf", &["-d"]).arg(built.folder.join(SONAME)))?;
    if !dynamic.contains(&format!("Library soname: [{SONAME}]")) {
        return Err(String::from("the shared library has another name than it should"));
    }
    Ok(())
}

/// The corpus as a program.
fn fixtures(to: &Path) -> Result {
    sh(&mut cargo(&format!("build --quiet {} --example c_program", others())))?;
    let program = output(&mut Command::new(target_dir().join("debug/examples/c_program")))?;
    fs::write(to, program).map_err(|error| error.to_string())
}

/// The program in the guide. Its other blocks must be part of an example, line by line, so that
/// they are compiled as well.
fn guide(to: &Path) -> Result {
    let guide = root().join("docs/C.md");
    let text = fs::read_to_string(guide).map_err(|error| error.to_string())?;
    let blocks = text.split("```c\n").skip(1).filter_map(|rest| rest.split("```").next());
    let (programs, parts): (Vec<&str>, Vec<&str>) =
        blocks.partition(|block| block.contains("int main"));
    let program = programs.first().ok_or("docs/C.md has no program")?;
    let mut sources_text = Vec::new();
    for name in EXAMPLES {
        let source = sources().join(format!("examples/c/{name}.c"));
        sources_text.push(fs::read_to_string(source).map_err(|error| error.to_string())?);
    }
    for part in parts {
        if !sources_text.iter().any(|source| trimmed(source).contains(&trimmed(part))) {
            return Err(format!("docs/C.md has code that is in no example:\n{part}"));
        }
    }
    fs::write(to, program).map_err(|error| error.to_string())
}

/// A text without the indentation of its lines.
fn trimmed(text: &str) -> String {
    text.lines().map(|line| format!("{}\n", line.trim())).collect()
}

/// Compiles and runs everything with one compiler; how many programs.
fn suite(built: &Built, folder: &Path, c: &str, cpp: &str) -> Result<usize> {
    let mut count = 0;
    for way in &WAYS {
        let into = |name: &str| folder.join(format!("{name}-{c}-{}", way.name));
        for name in TESTS {
            let source = sources().join(format!("tests/c/{name}.c"));
            compile(built, c, C99, way, &source, &into(name))?;
            sh(&mut Command::new(into(name)))?;
        }
        for name in EXAMPLES {
            let source = sources().join(format!("examples/c/{name}.c"));
            compile(built, c, C99, way, &source, &into(name))?;
            sh(&mut Command::new(into(name)))?;
        }
        for name in MADE {
            // The corpus takes long to compile: once is enough for what it shows.
            if name == "fixtures" && (c != "gcc" || way.name != "O0") {
                continue;
            }
            compile(built, c, C99, way, &folder.join(format!("{name}.c")), &into(name))?;
            sh(&mut Command::new(into(name)))?;
            count += 1;
            if name == "fixtures" {
                count += faults(built, folder, c)?;
            }
        }
        let source = sources().join("tests/c/owners.cpp");
        compile(built, cpp, CPP, way, &source, &into("owners"))?;
        sh(&mut Command::new(into("owners")))?;
        count += TESTS.len() + EXAMPLES.len() + 1 + names(built, c, cpp, way, &into("names"))?;
    }
    Ok(count)
}

/// The program that uses every name of the contract, as C99 and as C++17; how many programs.
fn names(built: &Built, c: &str, cpp: &str, way: &Way, to: &Path) -> Result<usize> {
    let source = sources().join("tests/c/names.c");
    compile(built, c, C99, way, &source, to)?;
    sh(&mut Command::new(to))?;
    let flags: Vec<&str> = way.flags.iter().copied().chain(["-x", "c++"]).collect();
    let to = to.with_extension("cpp");
    // Behind the source the language is told by the names of the files again.
    let library = built.folder.join("libasx.a");
    let mut compile = command(cpp, &["-std=c++17", "-Wall", "-Wextra", "-Werror", "-pedantic"]);
    compile.args(flags).arg("-I").arg(sources().join("include")).arg(&source);
    compile.args(["-x", "none"]).arg(library).args(["-lpthread", "-o"]).arg(&to);
    sh(&mut compile)?;
    sh(&mut Command::new(to))?;
    Ok(2)
}

/// The corpus again, with an allocator that fails.
fn faults(built: &Built, folder: &Path, c: &str) -> Result<usize> {
    let from = folder.join("fixtures.c");
    let to = folder.join("faults");
    let way = Way { name: "faults", flags: &["-O1", "-DFAULTS"] };
    compile(built, c, C99, &way, &from, &to)?;
    sh(&mut Command::new(to))?;
    Ok(1)
}

const C99: &str = "-std=c99";
const CPP: &str = "-std=c++11";

fn compile(built: &Built, compiler: &str, std: &str, way: &Way, from: &Path, to: &Path) -> Result {
    let mut compile = command(compiler, &[std, "-Wall", "-Wextra", "-Wpedantic", "-Werror"]);
    compile.args(way.flags);
    for folder in ["include", "tests/c"] {
        compile.arg("-I").arg(sources().join(folder));
    }
    compile.arg(from).arg(built.folder.join("libasx.a"));
    sh(compile.args(["-lpthread", "-Wl,--gc-sections", "-o"]).arg(to))
}

fn under_valgrind(folder: &Path) -> Result {
    for name in TESTS.iter().chain(&EXAMPLES).chain(&["abuse", "answers", "owners"]) {
        let mut check = command("valgrind", &VALGRIND.split(' ').collect::<Vec<_>>());
        // What a program has to try often it then tries less often.
        sh(check.arg(folder.join(format!("{name}-gcc-O0"))).arg("sampled"))?;
    }
    Ok(())
}

/// The size of the largest example program, stripped. The program of the guide's snippets is not
/// measured: it calls more of the library than a program does.
fn consumer_size(folder: &Path) -> Result<u64> {
    let mut largest = 0;
    for name in sizes::EXAMPLES {
        let from = folder.join(format!("{name}-gcc-O2"));
        let to = folder.join("stripped");
        sh(command("strip", &["-o"]).arg(&to).arg(&from))?;
        largest = largest.max(fs::metadata(&to).map_err(|error| error.to_string())?.len());
    }
    match largest < MOST_BYTES {
        true => Ok(largest),
        false => Err(format!("a stripped consumer has {largest} bytes, not below {MOST_BYTES}")),
    }
}

/// Programs outside the tree, against an installed prefix; what was skipped.
fn consumers(built: &Built, folder: &Path) -> Result<Vec<String>> {
    let mut skipped = Vec::new();
    let prefix = folder.join("prefix");
    install_from(built, &prefix)?;
    let example = sources().join("examples/c/pipeline.c");
    match have("pkg-config", &["pkg-config"]) {
        Ok(()) => with_pkg_config(&prefix, &folder.join("first.c"), &folder.join("app"))?,
        Err(why) => skipped.push(format!("pkg-config: {why}")),
    }
    match have("cmake", &["cmake", "make"]) {
        Ok(()) => with_cmake(&prefix, &example, &folder.join("cmake"))?,
        Err(why) => skipped.push(format!("cmake: {why}")),
    }
    Ok(skipped)
}

/// The guide's own line, word by word, and the program it makes, with nothing set for either.
fn with_pkg_config(prefix: &Path, program: &Path, folder: &Path) -> Result {
    let io = |error: std::io::Error| error.to_string();
    let text = fs::read_to_string(root().join("docs/C.md")).map_err(io)?;
    let mut lines = text.lines().filter(|line| line.starts_with("cc app.c $(PKG_CONFIG_PATH="));
    let line = lines.next().ok_or("docs/C.md has no line for pkg-config")?;
    let line = line.replace("DIR", &prefix.to_string_lossy());
    fs::create_dir_all(folder).map_err(io)?;
    fs::copy(program, folder.join("app.c")).map_err(io)?;
    let _ = fs::remove_file(folder.join("a.out"));
    sh(command("sh", &["-ec", &line]).current_dir(folder))?;
    sh(Command::new("./a.out").current_dir(folder).env_remove("LD_LIBRARY_PATH"))
}

fn with_cmake(prefix: &Path, example: &Path, folder: &Path) -> Result {
    let mut configure = command("cmake", &["-S"]);
    configure.arg(sources().join("tests/consumer")).arg("-B").arg(folder);
    configure.arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.display()));
    sh(configure.arg(format!("-DEXAMPLE={}", example.display())))?;
    sh(command("cmake", &["--build"]).arg(folder))?;
    sh(&mut Command::new(folder.join("static_consumer")))?;
    sh(Command::new(folder.join("shared_consumer")).env("LD_LIBRARY_PATH", prefix.join("lib")))
}
