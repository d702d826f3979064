//! Running other programs from the root of the repository.

use crate::Result;
use std::cell::Cell;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;

thread_local! {
    static PREFIX: Cell<&'static str> = const { Cell::new("") };
}

/// Sets the prefix of every line that commands of this thread print. Sections that run beside each
/// other have different prefixes.
pub(crate) fn set_prefix(prefix: &'static str) {
    PREFIX.set(prefix);
}

/// Returns the prefix of this thread.
pub(crate) fn prefix() -> &'static str {
    PREFIX.get()
}

/// Returns the root of the repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is one level below the root")
}

/// Returns the target directory.
pub(crate) fn target_dir() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => root().join(dir),
        None => root().join("target"),
    }
}

/// Creates a command that runs at the root, without the environment variables of `cargo run`.
pub(crate) fn command(program: &str, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(args).current_dir(root()).env_remove("LD_LIBRARY_PATH");
    command
}

/// Creates a cargo command from a line, which is split at blanks.
pub(crate) fn cargo(line: &str) -> Command {
    command("cargo", &line.split_whitespace().collect::<Vec<_>>())
}

/// Prints the command and runs it. Fails if the command fails.
pub(crate) fn run(command: &mut Command) -> Result {
    let line = show(command);
    println!("{}$ {line}", prefix());
    let status = match prefix() {
        "" => command.status(),
        prefix => prefixed(command, prefix),
    };
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{line}`: {status}")),
        Err(error) => Err(format!("`{line}`: {error}")),
    }
}

/// Runs a command and prints its lines with a prefix.
fn prefixed(command: &mut Command, prefix: &'static str) -> io::Result<ExitStatus> {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let out = child.stdout.take().map(|out| thread::spawn(move || copy(out, prefix)));
    if let Some(errors) = child.stderr.take() {
        copy(errors, prefix);
    }
    let status = child.wait();
    // A panic of `println!` was printed.
    let _ = out.map(thread::JoinHandle::join);
    status
}

/// Prints lines with a prefix until the other side closes the pipe.
fn copy(from: impl Read, prefix: &str) {
    let mut lines = BufReader::new(from);
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        println!("{prefix}{}", String::from_utf8_lossy(&line).trim_end());
        line.clear();
    }
}

/// Like [`run`], but returns the output. The output of a failed command is printed, because it
/// contains the reason.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let (text, why) = partial_output(command)?;
    match why {
        None => Ok(text),
        Some(why) => {
            println!("{text}");
            Err(why)
        }
    }
}

/// Like [`output`], but also returns the output of a failed command, with the reason.
pub(crate) fn partial_output(command: &mut Command) -> Result<(String, Option<String>)> {
    let line = show(command);
    println!("{}$ {line}", prefix());
    let output =
        command.stderr(Stdio::inherit()).output().map_err(|error| format!("`{line}`: {error}"))?;
    let text = String::from_utf8(output.stdout).map_err(|_| format!("`{line}`: not UTF-8"))?;
    let why = (!output.status.success()).then(|| format!("`{line}`: {}", output.status));
    Ok((text, why))
}

/// Whether `program args` runs successfully. Prints nothing.
pub(crate) fn works(program: &str, args: &[&str]) -> bool {
    let mut command = command(program, args);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Whether the installed compiler can build for this target.
fn has_target(target: &str) -> bool {
    let installed = command("rustc", &["--print", "target-libdir", "--target", target]).output();
    let installed = installed.ok().and_then(|output| String::from_utf8(output.stdout).ok());
    installed.is_some_and(|dir| !dir.trim().is_empty() && Path::new(dir.trim()).is_dir())
}

/// Installs the standard library of a target with rustup, unless it is installed.
///
/// # Errors
/// Fails if it cannot be installed on this machine.
pub(crate) fn add_target(target: &str) -> Result {
    if has_target(target) || works("rustup", &["target", "add", target]) {
        return Ok(());
    }
    Err(format!("`rustup target add {target}` failed"))
}

/// Returns the host triple.
pub(crate) fn host() -> Result<String> {
    let version = output(&mut command("rustc", &["-vV"]))?;
    let line = version.lines().find_map(|line| line.strip_prefix("host: "));
    line.map(str::to_owned).ok_or(String::from("rustc does not report its host"))
}

fn show(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
