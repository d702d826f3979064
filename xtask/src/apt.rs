//! Installation of required Debian packages.

use crate::Result;
use crate::shell::{command, output, run, works};

/// Installs packages and prints that. Fails if this would need a password.
pub(crate) fn install(packages: &[&str]) -> Result {
    println!("installing {} with apt-get", packages.join(" and "));
    if !works("apt-get", &["--version"]) {
        return Err(String::from("there is no apt-get"));
    }
    let is_root = output(&mut command("id", &["-u"])).is_ok_and(|id| id.trim() == "0");
    let apt: &[&str] = if is_root { &["apt-get"] } else { &["sudo", "-n", "apt-get"] };
    let apt = |args: &[&str]| {
        let words = [apt, args].concat();
        run(command(words[0], &words[1..]).env("DEBIAN_FRONTEND", "noninteractive"))
    };
    apt(&["update", "-qq"])?;
    apt(&[&["install", "-qq", "-y", "--no-install-recommends"], packages].concat())
}
